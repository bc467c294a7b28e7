/// Online one-against-rest over labels of retrieved examples: a linear classifier per label, added to the neighbours'
/// vote.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "memory_tree/sparse_logistic.hpp"

namespace ramify {

/// A label that a neighbour has, with the neighbours' vote for it.
struct Candidate {
    std::int32_t label;
    double vote;
    double probability;
};

/// log odds = (label's own classifier)(x) + trust * (log odds of the vote) + offset; trust and offset are shared by all
/// labels.
class OneAgainstRest {
public:
    static constexpr double least_vote = 1e-3;

    double log_odds(std::span<const Entry> x, std::int32_t label, double vote) const {
        const double own = static_cast<std::size_t>(label) < classifiers_.size() ? classifiers_[label].score(x) : 0.0;
        return own + trust_ * vote_odds(vote) + offset_;
    }

    /// Candidates rising by label; true labels rising. False candidates are the negatives; true labels learn, found or
    /// not.
    void learn(std::span<const Entry> x, std::span<const Candidate> candidates, std::span<const std::int32_t> labels,
               double importance, const StepSettings& step) {
        const std::int32_t largest =
            std::max(labels.empty() ? -1 : labels.back(), candidates.empty() ? -1 : candidates.back().label);
        if (largest >= std::ssize(classifiers_)) classifiers_.resize(largest + 1);
        auto truth = labels.begin();
        auto learn_missed_below = [&](std::int64_t end) {
            for (; truth != labels.end() && *truth < end; ++truth) {
                const double odds = log_odds(x, *truth, 0.0);
                classifiers_[*truth].learn(x, odds, true, importance, step);
            }
        };
        double of_trust = 0.0, of_offset = 0.0;
        for (const Candidate& c : candidates) {
            learn_missed_below(c.label);
            const bool is_true = truth != labels.end() && *truth == c.label;
            truth += is_true;
            const double odds = log_odds(x, c.label, c.vote);
            classifiers_[c.label].learn(x, odds, is_true, importance, step);
            const double slope = (logistic(odds) - is_true) * importance;
            of_trust += slope * vote_odds(c.vote);
            of_offset += slope;
        }
        learn_missed_below(std::int64_t{1} << 32);
        // All labels share these two: they take small steps.
        const StepSettings small{0.05 * step.learning_rate, 1.0};
        adagrad_step(trust_, trust_sum_, of_trust, small);
        adagrad_step(offset_, offset_sum_, of_offset, small);
    }

    static double vote_odds(double vote) {
        const double v = std::clamp(vote, least_vote, 1.0 - least_vote);
        return std::log(v / (1.0 - v));
    }

    std::vector<SparseLogistic>& classifiers() { return classifiers_; }
    const std::vector<SparseLogistic>& classifiers() const { return classifiers_; }
    std::vector<float> shared() const { return {trust_, trust_sum_, offset_, offset_sum_}; }
    void restore_shared(std::span<const float> values) {
        trust_ = values[0];
        trust_sum_ = values[1];
        offset_ = values[2];
        offset_sum_ = values[3];
    }
    std::size_t bytes() const {
        std::size_t total = classifiers_.capacity() * sizeof(SparseLogistic);
        for (const SparseLogistic& c : classifiers_) total += c.bytes();
        return total;
    }

private:
    std::vector<SparseLogistic> classifiers_;
    float trust_ = 1.0f, trust_sum_ = 0.0f;
    float offset_ = 0.0f, offset_sum_ = 0.0f;
};

}  // namespace ramify
