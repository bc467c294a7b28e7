/// Where a new label goes: the policies of the online-plt paper (algorithm 8), its forerunner's, and our own.
#pragma once

#include <cmath>
#include <cstdint>
#include <functional>
#include <limits>
#include <span>
#include <utility>

#include "online_tree.hpp"

namespace ramify {

enum class Policy { none, best, random, fair, cpt, callable };

struct PolicySettings {
    Policy policy = Policy::fair;
    double alpha = 0.75;       ///< best, cpt: weight of balance against fit
    double fair_share = 1.2;   ///< fair: how much heavier than the average of its siblings a child may be
    std::uint64_t random_state = 0;  ///< random: state of the generator; part of a saved model
};

/// Node to extend, and whether to insert a node there first.
struct Extension {
    int node;
    bool insert;
};

/// What a policy may look at: the conditional probabilities of a node's children for the example at hand, by column.
using ChildProbabilities = std::function<std::span<const float>(int node)>;
/// A user's own policy: label -> extension.
using OwnPolicy = std::function<Extension(std::int32_t label)>;

class TreePolicy {
public:
    TreePolicy(const PolicySettings& settings, const GrowthSettings& growth) : settings_(settings), growth_(growth) {}

    std::uint64_t random_state() const { return settings_.random_state; }
    void set_random_state(std::uint64_t state) { settings_.random_state = state; }
    Policy kind() const { return settings_.policy; }

    /// The node chosen for the last new label is used again for further new labels of the same example.
    void begin_example() { selected_ = -1; }

    Extension select(const OnlineTree& tree, const ChildProbabilities& probabilities) {
        if (settings_.policy == Policy::cpt) return {descend_to_leaf(tree, probabilities), true};
        int v = selected_ < 0 ? descend(tree, probabilities) : selected_;
        if (!tree.is_leaf(v) && tree.n_leaf_children(v) == 1)
            for (std::int32_t c : tree.block(v)->child)
                if (c >= 0 && tree.is_leaf(c)) {
                    v = c;
                    break;
                }
        selected_ = v;
        return {v, tree.is_leaf(v) || tree.n_children(v) >= growth_.pre_leaf_arity};
    }

private:
    int descend(const OnlineTree& tree, const ChildProbabilities& probabilities) {
        int v = OnlineTree::root;
        while (!tree.is_pre_leaf(v) && tree.n_children(v) >= growth_.arity) {
            const auto& child = tree.block(v)->child;
            if (settings_.policy == Policy::random) {
                auto left = static_cast<int>(next_random() % static_cast<std::uint64_t>(tree.n_children(v)));
                for (std::int32_t c : child)
                    if (c >= 0 && left-- == 0) {
                        v = c;
                        break;
                    }
                continue;
            }
            const std::span<const float> p = probabilities(v);
            const double average = static_cast<double>(tree.n_leaves(v)) / tree.n_children(v);
            double best = -std::numeric_limits<double>::infinity();
            int chosen = -1;
            for (std::size_t k = 0; k < child.size(); ++k) {
                const std::int32_t c = child[k];
                if (c < 0) continue;
                double score = p[k];
                if (settings_.policy == Policy::best)
                    score = (1 - settings_.alpha) * p[k] + settings_.alpha / tree.n_leaves(c) * std::log(average);
                else if (tree.n_leaves(c) > settings_.fair_share * average)
                    continue;
                if (chosen < 0 || score > best) {  // the first one in any case: a score may be NaN
                    best = score;
                    chosen = c;
                }
            }
            v = chosen;  // the lightest child is never heavier than the average, so there is one
        }
        return v;
    }

    /// The conditional probability tree's way: at each node to the side that fits and is light, down to a leaf.
    int descend_to_leaf(const OnlineTree& tree, const ChildProbabilities& probabilities) const {
        int v = OnlineTree::root;
        while (!tree.is_leaf(v)) {
            const std::span<const float> p = probabilities(v);
            const auto& child = tree.block(v)->child;
            double best = -std::numeric_limits<double>::infinity(), sum = 0;
            for (std::size_t k = 0; k < child.size(); ++k)
                if (child[k] >= 0) sum += p[k];
            int chosen = -1;
            for (std::size_t k = 0; k < child.size(); ++k) {
                if (child[k] < 0) continue;
                // For two children the larger score is the side of the sign of (1 - alpha) (p1 - p0) + alpha log2(n0 / n1).
                const double fit = sum > 0 ? p[k] / sum : 0.5;
                const double score = (1 - settings_.alpha) * fit - settings_.alpha * std::log2(static_cast<double>(tree.n_leaves(child[k])));
                if (chosen < 0 || score > best) {  // the first one in any case: a score may be NaN
                    best = score;
                    chosen = child[k];
                }
            }
            v = chosen;
        }
        return v;
    }

    std::uint64_t next_random() {
        std::uint64_t z = (settings_.random_state += 0x9e3779b97f4a7c15ull);
        z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
        z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
        return z ^ (z >> 31);
    }

    PolicySettings settings_;
    GrowthSettings growth_;
    int selected_ = -1;
};

}  // namespace ramify
