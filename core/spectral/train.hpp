/// Training of the base classifier on sampled paths: every time a row is visited, it takes a random path through the
/// tree, as a similar row could, and the leaf at its end says which labels compete (Mineiro and Karampatziakis, "A
/// Hierarchical Spectral Method for Extreme Classification", section 3.5).
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "base/descent_passes.hpp"
#include "base/hashing.hpp"
#include "base/parallel.hpp"
#include "base/sparse_rows.hpp"
#include "forest/instance_forest.hpp"
#include "spectral/base.hpp"
#include "spectral/candidates.hpp"
#include "spectral/grow.hpp"

namespace ramify {

/// A random leaf: a node sends the row right with the probability that its score, disturbed, is above zero.
inline std::int64_t sampled_leaf(const InstanceForest& forest, std::span<const float> sigma, const ForestRow& row,
                                 std::uint64_t seed) {
    std::int64_t v = 0;
    while (forest.child[v] >= 0) {
        const double score = forest.score(v, row);
        const double by_chance = static_cast<double>(mix(seed + mix(static_cast<std::uint64_t>(v))) >> 11) * 0x1p-53;
        const bool goes_right = by_chance < right_share(score, sigma[v]);
        v = forest.child[v] + goes_right;
    }
    return v;
}

/// The leaf of every row: a random one, or the one of prediction.
inline std::vector<std::int32_t> leaves_of(const InstanceForest& forest, std::span<const float> sigma,
                                           const PreparedRows& X, bool is_sampled, std::uint64_t seed, int n_threads) {
    constexpr std::size_t chunk = 1024;
    const std::size_t n = X.squared_norm.size();
    std::vector<std::int32_t> leaf(n);
    std::vector<ForestScratch> scratch(usable_threads(n_threads, (n + chunk - 1) / chunk));
    parallel_for((n + chunk - 1) / chunk, n_threads, [&](std::size_t task, int worker) {
        ForestScratch& s = scratch[worker];
        s.dense.resize(static_cast<std::size_t>(forest.features.n_columns()), 0.0f);
        for (std::size_t i = task * chunk; i < std::min(n, (task + 1) * chunk); ++i) {
            const std::span<const Entry> x(X.row(static_cast<std::int64_t>(i)),
                                           static_cast<std::size_t>(X.length(static_cast<std::int64_t>(i))));
            InstanceForest::scatter(x, s.dense.data());
            const ForestRow row{x, s.dense.data()};
            leaf[i] = static_cast<std::int32_t>(is_sampled ? sampled_leaf(forest, sigma, row, mix(seed + mix(i)))
                                                           : forest.leaf(0, row, s));
            InstanceForest::clear(x, s.dense.data());
        }
    });
    return leaf;
}

/// All leaves that a row reaches with a probability worth following, of every row.
inline std::vector<std::vector<LeafShare>> leaf_shares(const InstanceForest& forest, std::span<const float> sigma,
                                                       const PreparedRows& X, double min_path, int n_threads) {
    constexpr std::size_t chunk = 1024;
    const std::size_t n = X.squared_norm.size();
    std::vector<std::vector<LeafShare>> found(n);
    std::vector<std::vector<float>> dense(usable_threads(n_threads, (n + chunk - 1) / chunk));
    parallel_for((n + chunk - 1) / chunk, n_threads, [&](std::size_t task, int worker) {
        dense[worker].resize(static_cast<std::size_t>(forest.features.n_columns()), 0.0f);
        std::vector<LeafShare> open;
        for (std::size_t i = task * chunk; i < std::min(n, (task + 1) * chunk); ++i) {
            const std::span<const Entry> x(X.row(static_cast<std::int64_t>(i)),
                                           static_cast<std::size_t>(X.length(static_cast<std::int64_t>(i))));
            InstanceForest::scatter(x, dense[worker].data());
            open.assign(1, {0, 1.0f});
            while (!open.empty()) {
                const auto [v, path] = open.back();
                open.pop_back();
                if (forest.child[v] < 0) {
                    found[i].push_back({v, path});
                    continue;
                }
                const auto [left, right] =
                    shared_row(path, forest.score(v, {x, dense[worker].data()}), sigma[v], min_path);
                if (right > 0) open.push_back({forest.child[v] + 1, static_cast<float>(right)});
                if (left > 0) open.push_back({forest.child[v], static_cast<float>(left)});
            }
            InstanceForest::clear(x, dense[worker].data());
        }
    });
    return found;
}

/// `seen` are the rows as the tree sees them; `is_sampled`: they take random paths, else those of prediction.
inline void train_base(const InstanceForest& forest, std::span<const float> sigma, const LabelledRows& rows,
                       const PreparedRows& seen, BaseDescent& descent, bool is_sampled, const PassSettings& passes,
                       std::uint64_t seed, int n_threads, Progress* progress) {
    std::vector<std::int32_t> leaf;
    for_every_step(
        rows.size(), passes, seed, progress,
        [&](std::uint64_t pass_seed) { leaf = leaves_of(forest, sigma, seen, is_sampled, pass_seed, n_threads); },
        [&](std::int32_t i, double share) {
            const std::int64_t first = forest.label_begin[leaf[i]];
            const auto n_slots = static_cast<std::size_t>(forest.label_begin[leaf[i] + 1] - first);
            const auto rate = static_cast<float>(descent.settings.learning_rate * share);
            descent.step(rows.features(i), first, forest.label.subspan(first, n_slots), rows.labels(i), rows.weight(i),
                         rate);
        });
}

}  // namespace ramify
