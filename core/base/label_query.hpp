/// A query about a row: at most top_k labels, each with at least its threshold, and how they are chosen.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace ramify {

struct LabelProbability {
    std::int32_t label;
    float probability;
};

/// Best first; of equals the smaller label.
inline bool is_better(const LabelProbability& a, const LabelProbability& b) {
    return a.probability != b.probability ? a.probability > b.probability : a.label < b.label;
}

/// Leaves the k best of these labels, in no order.
inline void keep_best(std::vector<LabelProbability>& labels, std::size_t k) {
    if (labels.size() <= k) return;
    std::ranges::nth_element(labels, labels.begin() + static_cast<std::ptrdiff_t>(k), is_better);
    labels.resize(k);
}

struct LabelQuery {
    std::int64_t top_k = 0;
    float threshold = 0;
    std::span<const float> label_threshold;  ///< per label; empty: the one threshold
    std::vector<std::int32_t>
        always;  ///< labels whose threshold is zero: part of the answer even if the model does not know them
    bool has_every_label = false;  ///< the same for all labels

    void prepare(std::int64_t n_labels) {
        has_every_label = label_threshold.empty() && threshold <= 0;
        for (std::size_t l = 0; l < label_threshold.size(); ++l)
            if (label_threshold[l] <= 0) always.push_back(static_cast<std::int32_t>(l));
        top_k = std::clamp<std::int64_t>(top_k, 0, n_labels);
    }
    float needed(std::int32_t l) const { return label_threshold.empty() ? threshold : label_threshold[l]; }

    /// From the labels that reach their thresholds to the answer, best first. Behind them come labels of probability
    /// zero, where that is enough: those for which the model knows nothing, is_known(label) says which ones it does.
    template <class IsKnown>
    void choose(std::vector<LabelProbability>& found, std::int64_t n_labels, IsKnown&& is_known) const {
        const auto k = static_cast<std::size_t>(top_k);
        keep_best(found, k);
        std::ranges::sort(found, is_better);
        auto add_absent = [&](std::int32_t l) {
            if (!is_known(l)) found.push_back({l, 0.0f});
        };
        if (has_every_label)
            for (std::int32_t l = 0; l < n_labels && found.size() < k; ++l) add_absent(l);
        for (std::size_t i = 0; i < always.size() && found.size() < k; ++i) add_absent(always[i]);
    }
};

}  // namespace ramify
