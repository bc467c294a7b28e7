/// The space in which a candidate tree may split rows: before the tree is grown, the classifier of low rank is trained against labels drawn by
/// chance, and what it has made of the features is where rows of like labels lie close together. The hierarchical-spectral paper's
/// discussion proposes such a representation where hyperplanes of the features themselves do not find the labels.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <numeric>
#include <span>
#include <vector>

#include "hashing.hpp"
#include "parallel.hpp"
#include "sparse_rows.hpp"
#include "spectral_base.hpp"

namespace ramify {

/// Labels parted at random into groups of about `size`, each rising.
inline std::vector<std::vector<std::int32_t>> random_groups(std::int64_t n_labels, std::int64_t size, std::uint64_t seed) {
    std::vector<std::int32_t> label(static_cast<std::size_t>(n_labels));
    std::iota(label.begin(), label.end(), 0);
    shuffle(label, seed);
    const auto n_groups = std::max<std::int64_t>(1, (n_labels + size / 2) / size);
    std::vector<std::vector<std::int32_t>> groups(static_cast<std::size_t>(n_groups));
    for (std::int64_t g = 0; g < n_groups; ++g) {
        groups[g].assign(label.begin() + n_labels * g / n_groups, label.begin() + n_labels * (g + 1) / n_groups);
        std::ranges::sort(groups[g]);
    }
    return groups;
}

/// In every pass the labels are parted at random; a row competes with one group, by chance, and its own labels.
inline void train_against_groups(const PreparedRows& X, std::span<const std::int64_t> y_begin, std::span<const std::int32_t> y_label,
                                 std::span<const float> row_weight, BaseDescent& descent, std::int64_t group_size, int passes, bool is_shuffled,
                                 std::uint64_t seed, Progress* progress) {
    const std::size_t n = X.squared_norm.size();
    std::vector<std::int32_t> order(n), labels;
    std::iota(order.begin(), order.end(), 0);
    if (progress) progress->total = n * static_cast<std::size_t>(passes);
    Watch watch;
    const double n_steps = static_cast<double>(n) * passes;
    double n_done = 0;
    for (int pass = 0; pass < passes; ++pass) {
        const std::uint64_t pass_seed = mix(seed + static_cast<std::uint64_t>(pass));
        const auto groups = random_groups(descent.parameters.n_labels, group_size, mix(pass_seed));
        const auto log_groups = static_cast<float>(std::log(static_cast<double>(groups.size())));
        if (is_shuffled) shuffle(order, pass_seed);
        for (std::int32_t i : order) {
            const std::span<const Entry> x(X.row(i), static_cast<std::size_t>(X.length(i)));
            const auto positive = y_label.subspan(static_cast<std::size_t>(y_begin[i]), static_cast<std::size_t>(y_begin[i + 1] - y_begin[i]));
            const auto& group = groups[mix(pass_seed + mix(static_cast<std::uint64_t>(i))) % groups.size()];
            labels.clear();
            std::ranges::set_union(group, positive, std::back_inserter(labels));
            const double rate = descent.settings.learning_rate * (1.0 - n_done / n_steps);
            descent.step(x, -1, labels, positive, row_weight.empty() ? 1.0f : row_weight[i], static_cast<float>(rate), log_groups);
            ++n_done;
            if (progress) ++progress->done;
            if ((static_cast<std::int64_t>(n_done) & 63) == 0) watch.should_stop();
        }
    }
}

}  // namespace ramify
