/// From the labels that neighbours vote for to an answer: the best of them, or all that reach a threshold.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include "base/label_query.hpp"
#include "memory_tree/one_against_rest.hpp"

namespace ramify {

struct AnswerSettings {
    std::int64_t n_labels = std::numeric_limits<std::int64_t>::max();
    std::int64_t top_k = std::numeric_limits<std::int64_t>::max();
    float threshold = 0.0f;
    std::span<const float> label_threshold;  ///< in place of `threshold`, if there are any
    bool fills_up = false;                   ///< with labels of probability zero, where they reach the threshold

    float needed(std::int32_t label) const { return label_threshold.empty() ? threshold : label_threshold[label]; }
};

/// The answer, best first, the smaller label first among equals. Candidates rise by label.
/// With `is_uninformed` all labels are equally probable.
inline void best_labels(std::span<const Candidate> candidates, const AnswerSettings& wanted,
                        std::vector<LabelProbability>& found, bool is_uninformed = false) {
    found.clear();
    for (const Candidate& c : candidates)
        if (c.label < wanted.n_labels)
            if (const auto p = static_cast<float>(c.probability); p >= wanted.needed(c.label))
                found.push_back({c.label, p});
    std::ranges::sort(found, is_better);
    if (std::ssize(found) > wanted.top_k) found.resize(static_cast<std::size_t>(wanted.top_k));
    if (!wanted.fills_up || std::ssize(found) >= std::min(wanted.top_k, wanted.n_labels)) return;
    const float others = is_uninformed ? 1.0f / static_cast<float>(std::max<std::int64_t>(1, wanted.n_labels)) : 0.0f;
    if (wanted.label_threshold.empty() && others < wanted.threshold) return;
    auto known = candidates.begin();
    for (std::int32_t label = 0; label < wanted.n_labels && std::ssize(found) < wanted.top_k; ++label) {
        while (known != candidates.end() && known->label < label) ++known;
        if (known != candidates.end() && known->label == label) continue;
        if (others >= wanted.needed(label)) found.push_back({label, others});
    }
}

}  // namespace ramify
