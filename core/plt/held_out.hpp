/// Statistics of held-out rows: scores against truth, level by level.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <numeric>
#include <span>
#include <vector>

namespace ramify {

/// Scores of examples that a node's classifiers have not seen, counted per level: the material of calibration.
struct ScoreHistogram {
    static constexpr int n_bins = 512;
    static constexpr float low = -8.0f, width = 1.0f / 32;
    std::vector<double> positive, negative;  ///< [level][bin]

    explicit ScoreHistogram(int n_levels) : positive(n_levels * n_bins), negative(n_levels * n_bins) {}
    static int bin(float score) {
        const float at = (score - low) / width;  // compared as a float: an int could not hold every score
        return at >= 0.0f ? (at < static_cast<float>(n_bins) ? static_cast<int>(at) : n_bins - 1) : 0;
    }
};

/// Where exactly one child is true: the log loss of the softmax of slope * score, for some slopes, per level.
struct SoftmaxLoss {
    static constexpr std::array<float, 13> slopes{0.5f, 0.7f, 1.0f,  1.4f,  2.0f,  2.8f, 4.0f,
                                                  5.6f, 8.0f, 11.0f, 16.0f, 22.0f, 32.0f};
    std::vector<double> loss;  ///< [level][slope]

    explicit SoftmaxLoss(int n_levels) : loss(n_levels * slopes.size()) {}

    /// true_column < 0: no row of the true child was left to train it. Leaving such rows out would make all others look
    /// easier than they are, so the child takes part with the mean score of its siblings, as one that is hardly known.
    void add(int level, std::span<const float> score, int true_column, double weight) {
        if (score.empty()) return;
        const float largest = *std::ranges::max_element(score);
        const bool is_known = true_column >= 0;
        const float true_score =
            is_known ? score[true_column]
                     : std::accumulate(score.begin(), score.end(), 0.0f) / static_cast<float>(score.size());
        for (std::size_t k = 0; k < slopes.size(); ++k) {
            const double true_exponent = slopes[k] * (true_score - largest);
            double sum = is_known ? 0.0 : std::exp(true_exponent);
            for (float s : score) sum += std::exp(slopes[k] * (s - largest));
            loss[level * slopes.size() + k] += weight * (std::log(sum) - true_exponent);
        }
    }
};

/// Of one solver, or while it is being counted of one node (then with a single level).
struct HeldOut {
    ScoreHistogram histogram;
    SoftmaxLoss softmax;
    explicit HeldOut(int n_levels) : histogram(n_levels), softmax(n_levels) {}

    /// Adds a node's counts to its level.
    void add(const HeldOut& of_node, int level) {
        auto add_to = [level](std::vector<double>& to, const std::vector<double>& from) {
            for (std::size_t k = 0; k < from.size(); ++k) to[level * from.size() + k] += from[k];
        };
        add_to(histogram.positive, of_node.histogram.positive);
        add_to(histogram.negative, of_node.histogram.negative);
        add_to(softmax.loss, of_node.softmax.loss);
    }
};

}  // namespace ramify
