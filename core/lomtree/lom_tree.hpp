/// LOMtree: a tree over examples that grows online and whose nodes send each class to one side, evenly (Choromanska and
/// Langford, "Logarithmic Time Online Multiclass prediction", algorithm 1).
///
/// Where algorithm 1 leaves things open or goes wrong: the example that splits a leaf continues to one of the new
/// children; only leaves count examples, and UpdateC follows at once, so that C of the root is always the size of some
/// leaf; a new leaf answers as its parent until an example of its own has come; a class that a node has not trained on
/// yet is sent by the regressor alone, against the mean of the scores; an orphan whose parent is the root stays; a node
/// that a swap makes an inner one begins with an empty regressor.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <span>
#include <vector>

#include "lomtree/class_counts.hpp"
#include "lomtree/node_regressor.hpp"

namespace ramify {

struct LomSettings {
    RegressorSettings regressor;
    std::int64_t max_nodes = -1;  ///< T: most inner nodes; -1: nodes_per_class for each class seen so far
    double nodes_per_class = 4;
    double swap_resistance = 4;  ///< R_S
    double forgetting =
        0;  ///< by how much older scores count less for the expected scores; 0 is the paper's mean of all
};

struct LomNode {
    std::int32_t parent = -1, left = -1, right = -1;
    std::int32_t n_recycled = 0;    ///< swaps that took this node from its place
    double size = 0;                ///< C: examples of the smallest leaf at or below
    double score = 0, trained = 0;  ///< sums of the paper's m and n
    ClassCounts classes;
    NodeRegressor regressor;

    bool is_leaf() const { return left < 0; }
};

class LomTree {
public:
    explicit LomTree(const LomSettings& settings) : settings_(settings), nodes_(1) {}

    static constexpr std::int32_t root = 0;

    const LomSettings& settings() const { return settings_; }
    std::span<const LomNode> nodes() const { return nodes_; }
    const LomNode& node(std::int32_t v) const { return nodes_[v]; }
    std::int64_t n_inner() const { return static_cast<std::int64_t>(nodes_.size()) / 2; }

    struct Totals {
        std::int64_t n_examples = 0;
        std::int64_t n_entries = 0;  ///< of all rows, to decide whether they are dense
        std::int64_t width = 1;      ///< one more than the largest column
        std::int64_t n_swaps = 0;
    };
    const Totals& totals() const { return totals_; }

    std::int64_t most_inner() const {
        if (settings_.max_nodes >= 0) return settings_.max_nodes;
        return static_cast<std::int64_t>(settings_.nodes_per_class * static_cast<double>(nodes_[root].classes.size())) -
               1;
    }

    void learn(const RegressorRow& x, std::int32_t label, float weight) {
        ++totals_.n_examples;
        totals_.n_entries += static_cast<std::int64_t>(x.column.size());
        totals_.width = std::max<std::int64_t>(totals_.width, x.width());
        std::int32_t v = root;
        for (;;) {
            // A split may move nodes about, but not the memory that their counts lie in.
            ClassCount* count = &nodes_[v].classes.add(label, weight);
            if (nodes_[v].is_leaf() && !split(v)) break;
            LomNode& node = nodes_[v];
            const float score = node.regressor.learn(x, weight, settings_.regressor, scratch_,
                                                     [&](float before) { return target(node, *count, before); });
            const double kept = 1 - settings_.forgetting, seen = static_cast<double>(score) * weight;
            count->score = kept * (count->score + seen);
            count->trained = kept * (count->trained + weight);
            node.score = kept * (node.score + seen);
            node.trained = kept * (node.trained + weight);
            v = child(node, score);
        }
        nodes_[v].size += weight;
        update_sizes(v);
    }

    static std::int32_t child(const LomNode& node, float score) { return score > 0 ? node.right : node.left; }

    /// The leaf that a row reaches.
    std::int32_t leaf(const RegressorRow& x) const {
        std::int32_t v = root;
        while (!nodes_[v].is_leaf()) v = child(nodes_[v], nodes_[v].regressor.score(x));
        return v;
    }

    /// The classes that a node answers with: its own, or its parent's if no example has come yet.
    const ClassCounts& answer(std::int32_t v) const {
        while (nodes_[v].classes.total == 0 && nodes_[v].parent >= 0) v = nodes_[v].parent;
        return nodes_[v].classes;
    }

    std::size_t bytes() const {
        std::size_t total = nodes_.capacity() * sizeof(LomNode);
        for (const LomNode& node : nodes_) total += node.classes.bytes() + node.regressor.bytes();
        return total;
    }

    /// Restores a saved tree, which the caller has checked.
    void restore(std::vector<LomNode>&& nodes, const Totals& totals) {
        nodes_ = std::move(nodes);
        totals_ = totals;
    }

private:
    /// -1 or +1: the side that this class should go to.
    static float target(const LomNode& node, const ClassCount& count, float score) {
        const double mean = node.trained > 0 ? node.score / node.trained : 0.0;
        const double expected = count.trained > 0 ? count.score / count.trained : static_cast<double>(score);
        return mean > expected ? -1.0f : 1.0f;
    }

    /// Makes a leaf an inner node, if it holds several classes and there are nodes for it.
    bool split(std::int32_t v) {
        if (nodes_[v].classes.size() < 2) return false;
        std::int32_t left, right;
        if (n_inner() < most_inner()) {
            if (nodes_.size() + 2 > max_nodes) return false;
            left = static_cast<std::int32_t>(nodes_.size());
            right = left + 1;
            nodes_.resize(nodes_.size() + 2);
        } else {
            if (!(nodes_[v].size - nodes_[v].classes.best_count > settings_.swap_resistance * (nodes_[root].size + 1)))
                return false;
            left = orphan();
            if (left < 0 || left == v) return false;  // with a resistance below 1 it may be this very leaf
            right = nodes_[left].parent;
            detach(left);
            ++totals_.n_swaps;
        }
        nodes_[v].left = left;
        nodes_[v].right = right;
        nodes_[v].regressor = NodeRegressor(dense_width());
        nodes_[left].parent = nodes_[right].parent = v;
        nodes_[left].size = std::floor(nodes_[v].size / 2);
        nodes_[right].size = nodes_[v].size - nodes_[left].size;
        update_sizes(left);
        return true;
    }

    /// A smallest leaf that has a grandparent, or -1.
    std::int32_t orphan() const {
        const double smallest = nodes_[root].size;
        auto is_smallest = [&](std::int32_t v) { return nodes_[v].size == smallest; };
        if (nodes_[root].is_leaf()) return -1;
        std::int32_t v = nodes_[root].left;
        if (nodes_[v].is_leaf() || !is_smallest(v)) v = nodes_[root].right;
        if (nodes_[v].is_leaf() || !is_smallest(v)) return -1;
        while (!nodes_[v].is_leaf()) v = is_smallest(nodes_[v].left) ? nodes_[v].left : nodes_[v].right;
        return v;
    }

    /// Takes a leaf and its parent out of the tree; its sibling moves up.
    void detach(std::int32_t leaf) {
        const std::int32_t parent = nodes_[leaf].parent, grandparent = nodes_[parent].parent;
        const std::int32_t sibling = nodes_[parent].left == leaf ? nodes_[parent].right : nodes_[parent].left;
        (nodes_[grandparent].left == parent ? nodes_[grandparent].left : nodes_[grandparent].right) = sibling;
        nodes_[sibling].parent = grandparent;
        update_sizes(sibling);
        for (std::int32_t v : {leaf, parent}) {
            const std::int32_t n_recycled = nodes_[v].n_recycled + 1;
            nodes_[v] = LomNode{};
            nodes_[v].n_recycled = n_recycled;
        }
    }

    /// UpdateC: the sizes above a node whose own has changed.
    void update_sizes(std::int32_t v) {
        while ((v = nodes_[v].parent) >= 0) {
            const double size = std::min(nodes_[nodes_[v].left].size, nodes_[nodes_[v].right].size);
            if (size == nodes_[v].size) return;
            nodes_[v].size = size;
        }
    }

    /// How many columns of a new regressor lie in an array: all that are known if rows are rather full, else none.
    int dense_width() const {
        const double mean = static_cast<double>(totals_.n_entries) / static_cast<double>(totals_.n_examples);
        return RegressorRow::is_full(mean, static_cast<double>(totals_.width)) ? round_to_regressor_lanes(totals_.width)
                                                                               : 0;
    }

    static constexpr std::size_t max_nodes = std::numeric_limits<std::int32_t>::max() - 2;

    LomSettings settings_;
    std::vector<LomNode> nodes_;
    Totals totals_;
    RegressorScratch scratch_;
};

}  // namespace ramify
