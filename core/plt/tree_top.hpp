/// The top of a label tree for a row: the nodes that are opened before any search, and what they hand down to it.
/// plt/tree_search.hpp says what it is for.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

namespace ramify {

/// A node of the top of the tree.
struct TopNode {
    std::int32_t node;
    float product;  ///< of the softmax shares on its path
    float mass;     ///< the same, with what the nodes on its path were revised by

    friend bool operator<(const TopNode& a, const TopNode& b) { return a.node < b.node; }
};

/// What the top of the tree says about a row.
struct TreeTop {
    /// A node that ends the top has this share of its parent's mass.
    struct Edge {
        std::int32_t node;
        float parent_mass, share;

        /// Rounding must not make it more than certain. As OpenedBlocks::child has it, bit for bit.
        float probability(float scale) const { return std::min(parent_mass * scale * share, 1.0f); }
    };
    std::vector<Edge> below;
    double sum = 0;  ///< of all masses below

    void clear() {
        below.clear();
        sum = 0;
    }
    void add(std::int32_t node, float parent_mass, float share) {
        below.push_back({node, parent_mass, share});
        sum += static_cast<double>(parent_mass * share);
    }
    /// What makes probabilities of masses with this sum, of a row whose root has this probability.
    static float scale(float root, double sum) {
        return sum > 0 ? static_cast<float>(static_cast<double>(root) / sum) : 0.0f;
    }
    /// Calls reach(probability, node).
    template <class Reach>
    void hand_down(float scale, Reach&& reach) const {
        for (const Edge& edge : below) reach(edge.probability(scale), edge.node);
    }
};

}  // namespace ramify
