/// Walks over a tree given as an array of parents: loops over nodes, so depth costs no recursion.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace ramify {

/// Nodes in breadth-first order from `root`, siblings in the order of their numbers.
/// Nodes that the root does not reach (they hang on a cycle) are left out, so a short answer means a cycle.
inline std::vector<std::int32_t> breadth_first(std::span<const std::int32_t> parent, std::int32_t root) {
    const std::size_t n = parent.size();
    std::vector<std::int32_t> first(n + 1, 0), children(n), order;
    for (std::size_t node = 0; node < n; ++node)
        if (parent[node] >= 0) ++first[parent[node] + 1];
    for (std::size_t node = 0; node < n; ++node) first[node + 1] += first[node];
    std::vector<std::int32_t> slot(first.begin(), first.end() - 1);
    for (std::size_t node = 0; node < n; ++node)
        if (parent[node] >= 0) children[slot[parent[node]]++] = static_cast<std::int32_t>(node);

    order.reserve(n);
    order.push_back(root);
    for (std::size_t next = 0; next < order.size(); ++next)
        order.insert(order.end(), children.begin() + first[order[next]], children.begin() + first[order[next] + 1]);
    return order;
}

/// Distance from the root; parents must be numbered before their children.
inline void node_depths(std::span<const std::int32_t> parent, std::span<std::int32_t> depth) {
    depth[0] = 0;
    for (std::size_t node = 1; node < parent.size(); ++node) depth[node] = depth[parent[node]] + 1;
}

/// Folds every node's value into its parent, leaves first; parents must be numbered before their children.
template <class Value, class Fold>
void fold_upwards(std::span<const std::int32_t> parent, std::span<Value> values, Fold fold) {
    for (std::size_t node = parent.size(); node-- > 1;) values[parent[node]] = fold(values[parent[node]], values[node]);
}

/// Huffman's code of any arity over frequencies sorted from low to high: the parent of every node.
/// Leaves are the first nodes, in the order given; the root is the last node. Two queues instead of a heap:
/// merged nodes come out in rising order by themselves. On a tie a leaf goes before a merged node, which keeps the tree
/// shallow.
inline std::vector<std::int32_t> huffman_parents(std::span<const double> frequency, std::int32_t arity) {
    const std::size_t n = frequency.size(), wide = static_cast<std::size_t>(arity);
    std::vector<std::int32_t> parent(n, -1);
    std::vector<double> weight(frequency.begin(), frequency.end());
    std::size_t leaf = 0, merged = n, left = n;
    // The first merge is the narrow one, so that every other node, and the root above all, is full.
    std::size_t take = n > 1 ? (n - 2) % (wide - 1) + 2 : 0;
    while (left > 1) {
        double sum = 0;
        const auto node = static_cast<std::int32_t>(weight.size());
        for (std::size_t child = 0; child < take; ++child) {
            const bool from_leaves = leaf < n && (merged == weight.size() || weight[leaf] <= weight[merged]);
            const std::size_t chosen = from_leaves ? leaf++ : merged++;
            sum += weight[chosen];
            parent[chosen] = node;
        }
        weight.push_back(sum);
        parent.push_back(-1);
        left -= take - 1;
        take = wide;
    }
    return parent;
}

}  // namespace ramify
