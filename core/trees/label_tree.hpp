/// A label tree as the core sees it: the flat arrays of ramify.trees.LabelTree, children contiguous, parents first.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

namespace ramify {

struct TreeView {
    std::span<const std::int32_t> parent;       ///< -1 for the root, which is node 0
    std::span<const std::int32_t> first_child;  ///< -1 for leaves
    std::span<const std::int32_t> n_children;
    std::span<const std::int32_t> label;  ///< -1 for inner nodes

    int n_nodes() const { return static_cast<int>(parent.size()); }
    bool is_leaf(int node) const { return label[node] >= 0; }

    /// The leaf of each label up to the largest that has one; -1 where there is none.
    std::vector<std::int32_t> leaf_of() const {
        std::int32_t largest = -1;
        for (std::int32_t j : label) largest = std::max(largest, j);
        std::vector<std::int32_t> leaf(static_cast<std::size_t>(largest) + 1, -1);
        for (int v = 0; v < n_nodes(); ++v) {
            if (!is_leaf(v)) continue;
            if (leaf[label[v]] >= 0)
                throw std::invalid_argument("label tree: two leaves have label " + std::to_string(label[v]));
            leaf[label[v]] = v;
        }
        return leaf;
    }

    /// Checks everything that loops over the tree rely on: a damaged model file must not cause an invalid read.
    void validate(std::int64_t n_labels) const {
        const std::size_t n = parent.size();
        if (n == 0 || first_child.size() != n || n_children.size() != n || label.size() != n)
            throw std::invalid_argument("label tree: its arrays are empty or differ in length");
        if (parent[0] != -1) throw std::invalid_argument("label tree: node 0 is not the root");
        std::int64_t next_child = 1;
        for (std::size_t v = 0; v < n; ++v) {
            if (label[v] >= 0) {
                if (label[v] >= n_labels || n_children[v] != 0)
                    throw std::invalid_argument("label tree: bad leaf " + std::to_string(v));
                continue;
            }
            if (n_children[v] < 1 || first_child[v] != next_child ||
                next_child + n_children[v] > static_cast<std::int64_t>(n) || next_child <= static_cast<std::int64_t>(v))
                throw std::invalid_argument("label tree: bad inner node " + std::to_string(v));
            for (int c = 0; c < n_children[v]; ++c)
                if (parent[next_child + c] != static_cast<std::int32_t>(v))
                    throw std::invalid_argument("label tree: wrong parent of node " + std::to_string(next_child + c));
            next_child += n_children[v];
        }
        if (next_child != static_cast<std::int64_t>(n)) throw std::invalid_argument("label tree: a node has no parent");
    }
};

}  // namespace ramify
