/// Halving a full leaf of a memory tree: balanced 2-means, examples of one label together, and a router that has
/// learned the halves.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <span>
#include <vector>

#include "memory_tree/sparse_logistic.hpp"
#include "memory_tree/store.hpp"

namespace ramify {

struct SplitScratch {
    std::vector<double> direction;  ///< by feature, zero between calls
};

/// Examples of one label are one group; if there is only one label, or several a row, each example is its own.
inline std::vector<std::uint32_t> label_groups(std::span<const std::uint32_t> slots, const MemoryStore& store) {
    const std::size_t n = slots.size();
    std::vector<std::uint32_t> group(n), order(n);
    std::iota(group.begin(), group.end(), 0u);
    if (std::ranges::any_of(slots, [&](std::uint32_t slot) { return store[slot].labels.size() != 1; })) return group;
    std::iota(order.begin(), order.end(), 0u);
    std::ranges::stable_sort(order, {}, [&](std::uint32_t k) { return store[slots[k]].labels[0]; });
    for (std::size_t i = 1; i < n; ++i)
        if (store[slots[order[i]]].labels[0] == store[slots[order[i - 1]]].labels[0])
            group[order[i]] = group[order[i - 1]];
    if (std::ranges::all_of(group, [&](std::uint32_t g) { return g == group[0]; }))
        std::iota(group.begin(), group.end(), 0u);
    return group;
}

/// Which of these examples go right. `first` is the place of the example that begins one half; the other begins with
/// the one least like it.
inline std::vector<bool> halve(std::span<const std::uint32_t> slots, const MemoryStore& store, std::size_t n_features,
                               std::size_t first, const StepSettings& step, SparseLogistic& router,
                               SplitScratch& scratch) {
    constexpr int n_rounds = 4, n_epochs = 3;
    const std::size_t n = slots.size();
    auto row = [&](std::size_t k) -> std::span<const Entry> { return store[slots[k]].x; };
    auto& direction = scratch.direction;
    if (direction.size() < n_features) direction.resize(n_features, 0.0);
    auto along = [&](std::span<const Entry> x) {
        double s = 0.0;
        for (const Entry& e : x) s += direction[e.feature] * e.value;
        return s;
    };
    auto add = [&](std::span<const Entry> x, double factor) {
        for (const Entry& e : x) direction[e.feature] += factor * e.value;
    };
    auto clear = [&](std::span<const Entry> x) {
        for (const Entry& e : x) direction[e.feature] = 0.0;
    };

    const std::vector<std::uint32_t> group = label_groups(slots, store);
    std::vector<std::uint32_t> order;
    std::vector<std::size_t> size(n, 0);
    for (std::size_t k = 0; k < n; ++k) {
        if (group[k] == k) order.push_back(static_cast<std::uint32_t>(k));
        ++size[group[k]];
    }

    add(row(first), 1.0);
    std::size_t farthest = first == 0 ? 1 : 0;
    double least = along(row(farthest));
    for (std::size_t k = 0; k < n; ++k)
        if (k != first)
            if (const double s = along(row(k)); s < least) {
                least = s;
                farthest = k;
            }
    add(row(farthest), -1.0);

    std::vector<bool> goes_right(n);
    std::vector<double> score(n);
    for (int round = 0; round < n_rounds; ++round) {
        std::ranges::fill(score, 0.0);
        for (std::size_t k = 0; k < n; ++k) score[group[k]] += along(row(k));
        for (std::uint32_t g : order) score[g] /= static_cast<double>(size[g]);
        std::ranges::sort(order, [&](std::uint32_t a, std::uint32_t b) {
            return score[a] != score[b] ? score[a] > score[b] : a < b;
        });
        // The first groups go right as long as that brings their number nearer to a half; the last group always stays
        // left.
        std::vector<bool> group_right(n, false);
        std::size_t n_right = 0;
        for (std::size_t i = 0; i + 1 < order.size(); ++i) {
            const std::size_t with = n_right + size[order[i]];
            if (i > 0 && with + n_right > n) break;
            group_right[order[i]] = true;
            n_right = with;
        }
        bool is_same = round > 0;
        for (std::size_t k = 0; k < n; ++k) {
            is_same = is_same && goes_right[k] == group_right[group[k]];
            goes_right[k] = group_right[group[k]];
        }
        if (is_same) break;
        for (std::size_t k = 0; k < n; ++k) clear(row(k));
        for (std::size_t k = 0; k < n; ++k)
            add(row(k), goes_right[k] ? 1.0 / static_cast<double>(n_right) : -1.0 / static_cast<double>(n - n_right));
    }
    for (std::size_t k = 0; k < n; ++k) clear(row(k));

    for (int epoch = 0; epoch < n_epochs; ++epoch)
        for (std::size_t k = 0; k < n; ++k) router.learn(row(k), router.score(row(k)), goes_right[k], 1.0, step);
    // Queries follow the router, so examples do too, unless that leaves a side nearly empty.
    std::vector<bool> sent(n);
    std::size_t n_sent = 0;
    for (std::size_t k = 0; k < n; ++k) {
        sent[k] = router.score(row(k)) > 0;
        n_sent += sent[k];
    }
    return 4 * std::min(n_sent, n - n_sent) >= n ? sent : goes_right;
}

}  // namespace ramify
