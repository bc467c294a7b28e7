/// Epochs of stochastic gradient descent over labelled rows, each in another order. Trains the classifier behind a
/// candidate tree, and the space that the tree may be grown in.
#pragma once

#include <cstddef>
#include <cstdint>
#include <numeric>
#include <span>
#include <vector>

#include "base/hashing.hpp"
#include "base/parallel.hpp"
#include "base/sparse_rows.hpp"

namespace ramify {

struct LabelledRows {
    const PreparedRows& X;  ///< with or without a bias feature at the end
    std::int64_t n_features;
    std::span<const std::int64_t> y_begin;
    std::span<const std::int32_t> y_label;
    std::span<const float> row_weight;  ///< empty: one each

    std::size_t size() const { return X.squared_norm.size(); }
    std::span<const Entry> features(std::int32_t i) const {
        const std::span<const Entry> x(X.row(i), static_cast<std::size_t>(X.length(i)));
        const bool has_bias = !x.empty() && x.back().feature >= static_cast<std::uint32_t>(n_features);
        return has_bias ? x.first(x.size() - 1) : x;
    }
    std::span<const std::int32_t> labels(std::int32_t i) const {
        return y_label.subspan(static_cast<std::size_t>(y_begin[i]),
                               static_cast<std::size_t>(y_begin[i + 1] - y_begin[i]));
    }
    float weight(std::int32_t i) const { return row_weight.empty() ? 1.0f : row_weight[i]; }
};

struct PassSettings {
    int passes = 5;
    bool is_shuffled = true;
    bool decays = true;  ///< the rate falls to zero over all passes
};

/// Calls begin(seed of the pass) before each pass, then step(row, share of the learning rate) for every row.
template <class Begin, class Step>
void for_every_step(std::size_t n_rows, const PassSettings& settings, std::uint64_t seed, Progress* progress,
                    Begin&& begin, Step&& step) {
    std::vector<std::int32_t> order(n_rows);
    std::iota(order.begin(), order.end(), 0);
    if (progress) progress->total = n_rows * static_cast<std::size_t>(settings.passes);
    Watch watch;
    const double n_steps = static_cast<double>(n_rows) * settings.passes;
    double n_done = 0;
    for (int pass = 0; pass < settings.passes; ++pass) {
        const std::uint64_t pass_seed = mix(seed + static_cast<std::uint64_t>(pass));
        begin(pass_seed);
        if (settings.is_shuffled) shuffle(order, pass_seed);
        for (std::int32_t i : order) {
            step(i, settings.decays ? 1.0 - n_done / n_steps : 1.0);
            ++n_done;
            if (progress) ++progress->done;
            if ((static_cast<std::int64_t>(n_done) & 63) == 0) watch.should_stop();
        }
    }
}

}  // namespace ramify
