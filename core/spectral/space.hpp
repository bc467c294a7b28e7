/// The space in which a candidate tree may split rows: before the tree is grown, the low-rank classifier is trained
/// against random labels, and what it has made of the features is where rows of like labels lie close together. The
/// discussion of Mineiro and Karampatziakis 2015 proposes such a representation where hyperplanes of the features
/// themselves do not find the labels.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <numeric>
#include <vector>

#include "base/descent_passes.hpp"
#include "base/hashing.hpp"
#include "base/parallel.hpp"
#include "spectral/base.hpp"

namespace ramify {

/// A random partition of the labels into groups of about `size`, each sorted.
inline std::vector<std::vector<std::int32_t>> random_groups(std::int64_t n_labels, std::int64_t size,
                                                            std::uint64_t seed) {
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

/// In every epoch the labels are partitioned at random; a row competes with one random group and its own labels.
inline void train_against_groups(const LabelledRows& rows, BaseDescent& descent, std::int64_t group_size,
                                 const PassSettings& passes, std::uint64_t seed, Progress* progress) {
    std::vector<std::vector<std::int32_t>> groups;
    std::vector<std::int32_t> labels;
    std::uint64_t seed_now = 0;
    for_every_step(
        rows.size(), passes, seed, progress,
        [&](std::uint64_t pass_seed) {
            seed_now = pass_seed;
            groups = random_groups(descent.parameters.n_labels, group_size, mix(pass_seed));
        },
        [&](std::int32_t i, double share) {
            const auto& group = groups[mix(seed_now + mix(static_cast<std::uint64_t>(i))) % groups.size()];
            labels.clear();
            std::ranges::set_union(group, rows.labels(i), std::back_inserter(labels));
            const auto rate = static_cast<float>(descent.settings.learning_rate * share);
            const auto log_groups = static_cast<float>(std::log(static_cast<double>(groups.size())));
            descent.step(rows.features(i), -1, labels, rows.labels(i), rows.weight(i), rate, log_groups);
        });
}

}  // namespace ramify
