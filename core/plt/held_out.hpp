/// Statistics of held-out rows: scores against truth, level by level.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <span>
#include <vector>

#include "kernels/kernels.hpp"

namespace ramify {

/// Log of the share of rows that are positive. Shares below those that a histogram tells apart count as the least.
inline float log_rate(double positive, double total) {
    constexpr double least = 1e-6;
    return static_cast<float>(std::log(total > 0 ? std::clamp(positive / total, least, 1.0) : least));
}

/// Scores of examples that a node's classifiers have not seen, counted per level and log rate of the child: the
/// material of calibration.
struct ScoreHistogram {
    static constexpr int n_bins = 512;
    static constexpr float low = -8.0f, width = 1.0f / 32;
    int n_rates;                             ///< 1: all rates are counted together
    std::vector<double> positive, negative;  ///< [level][rate][bin]

    ScoreHistogram(int n_levels, int n_rates)
        : n_rates(n_rates), positive(n_levels * n_rates * n_bins), negative(n_levels * n_rates * n_bins) {}
    static int bin(float score) {
        const float at = (score - low) / width;  // compared as a float: an int could not hold every score
        return at >= 0.0f ? (at < static_cast<float>(n_bins) ? static_cast<int>(at) : n_bins - 1) : 0;
    }
    /// Rate k holds log rates between -k - 1 and -k.
    int rate_bin(float rate) const { return std::clamp(static_cast<int>(-rate), 0, n_rates - 1); }
};

/// The grid of scores on which the maps are defined that held-out rows compare.
struct LinkGrid {
    static constexpr int n_knots = 33;
    static constexpr float low = -4.0f, step = 0.25f;
};

/// Where exactly one child is true: the log loss of the softmax of some maps of the scores, each at some temperatures.
struct SoftmaxLoss {
    static constexpr std::array<int, 9> tenths{4, 5, 6, 7, 8, 9, 10, 12, 15};
    static constexpr std::array<float, 9> factors{0.4f, 0.5f, 0.6f, 0.7f, 0.8f, 0.9f, 1.0f, 1.2f, 1.5f};
    std::vector<double> loss;  ///< [level][map][factor]

    SoftmaxLoss(int n_levels, std::size_t n_maps) : loss(n_levels * n_maps * factors.size()) {}

    /// `logits` are those of one map. true_column < 0: no row of the true child was left to train it. Leaving such rows
    /// out would make all others look easier than they are, so the child takes part with the mean of its siblings, as
    /// one that is hardly known.
    void add(std::size_t map, std::span<const float> logits, int true_column, double weight) {
        if (logits.empty()) return;
        const float largest = *std::ranges::max_element(logits);
        float true_logit = 0;
        if (true_column >= 0) {
            true_logit = logits[true_column];
        } else {
            for (float logit : logits) true_logit += logit;
            true_logit /= static_cast<float>(logits.size());
        }
        // The exponentials of all factors are powers of one, made for some columns at a time.
        constexpr std::size_t width = 16;
        std::array<std::array<float, width>, factors.size()> sums{};
        for (std::size_t first = 0; first < logits.size(); first += width) {
            std::array<float, width> base{}, power;
            power.fill(1.0f);
            for (std::size_t c = 0; c < std::min(width, logits.size() - first); ++c)
                base[c] = std::exp(0.1f * (logits[first + c] - largest));
            int exponent = 0;
            for (std::size_t k = 0; k < factors.size(); ++k) {
                for (; exponent < tenths[k]; ++exponent)
                    for (std::size_t c = 0; c < width; ++c) power[c] *= base[c];
                for (std::size_t c = 0; c < width; ++c) sums[k][c] += power[c];
            }
        }
        for (std::size_t k = 0; k < factors.size(); ++k) {
            const double true_exponent = factors[k] * (true_logit - largest);
            double sum = true_column >= 0 ? 0.0 : std::exp(true_exponent);
            for (float part : sums[k]) sum += part;
            loss[map * factors.size() + k] += weight * (std::log(sum) - true_exponent);
        }
    }
};

/// Of one solver, or while it is being counted of one node (then with a single level).
struct HeldOut {
    ScoreHistogram histogram;
    SoftmaxLoss softmax;
    HeldOut(int n_levels, int n_rates, std::size_t n_maps) : histogram(n_levels, n_rates), softmax(n_levels, n_maps) {}

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

/// Maps whose softmax losses are wanted: for each solver as many, each with logits and slopes for each level.
struct LinkTables {
    std::span<const float> values;  ///< [solver][map][level][logits, slopes][knot]; empty: none
    std::size_t n_maps = 0;
    int n_levels = 0;

    LinkMap map(std::size_t solver, std::size_t map, int level) const {
        const std::size_t at = ((solver * n_maps + map) * n_levels + level) * 2 * LinkGrid::n_knots;
        return {values.data() + at, values.data() + at + LinkGrid::n_knots, LinkGrid::n_knots, LinkGrid::low,
                LinkGrid::step};
    }
};

}  // namespace ramify
