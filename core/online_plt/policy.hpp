/// Where a new label goes: the policies of "Online probabilistic label trees" (algorithm 8), its forerunner's, and our
/// own.
///
/// A policy decides at one node at a time, by nothing but that node, its children and the example: so nodes can be
/// visited in any order that keeps the order of examples at each of them.
#pragma once

#include <cmath>
#include <cstdint>
#include <functional>
#include <limits>
#include <span>

#include "base/hashing.hpp"
#include "online_plt/tree.hpp"

namespace ramify {

enum class Policy { none, best, balanced, random, fair, cpt, callable };

struct PolicySettings {
    Policy policy = Policy::fair;
    double alpha = 0.75;      ///< weight of balance against fit
    double fair_share = 3.0;  ///< fair: how much heavier than the average of its siblings a child may be
    std::uint64_t seed = 0;   ///< random
};

/// Node to extend, and whether to insert a node there first.
struct Extension {
    int node;
    bool insert;
};

/// What a policy may read: the conditional probabilities of a node's children for the current example, by column.
using ChildProbabilities = std::function<std::span<const float>(int node)>;
/// A user's own policy: label -> extension.
using OwnPolicy = std::function<Extension(std::int32_t label)>;

class TreePolicy {
public:
    TreePolicy(const PolicySettings& settings, const GrowthSettings& growth) : settings_(settings), growth_(growth) {}

    Policy kind() const { return settings_.policy; }

    /// Whether the descent ends here: at a leaf, at a node whose children are all leaves, or at one with room for more.
    bool stops_at(const OnlineTree& tree, int v) const {
        if (settings_.policy == Policy::cpt) return tree.is_leaf(v);
        return tree.is_pre_leaf(v) || tree.n_children(v) < growth_.arity;
    }

    /// The node to extend for a new label: `selected`, where the descent ended or where the example's last new label
    /// went, or, if just one of its children is a leaf, that leaf.
    int select(const OnlineTree& tree, int selected, std::uint64_t label,
               const ChildProbabilities& probabilities) const {
        if (settings_.policy == Policy::cpt) {
            while (!tree.is_leaf(selected)) selected = choose_child(tree, selected, label, probabilities);
        } else if (!tree.is_leaf(selected) && tree.n_leaf_children(selected) == 1) {
            for (std::int32_t c : tree.block(selected)->child)
                if (c >= 0 && tree.is_leaf(c)) return c;
        }
        return selected;
    }

    /// Whether a node must be inserted before a leaf can be added.
    bool inserts_at(const OnlineTree& tree, int v) const {
        return tree.is_leaf(v) || tree.n_children(v) >= growth_.pre_leaf_arity;
    }

    /// The child to descend to.
    int choose_child(const OnlineTree& tree, int v, std::uint64_t label,
                     const ChildProbabilities& probabilities) const {
        const auto& child = tree.block(v)->child;
        double n_leaves = 0;  // of v as the example finds it
        for (std::int32_t c : child)
            if (c >= 0) n_leaves += tree.n_leaves(c);
        if (settings_.policy == Policy::random) {
            // Drawn from the label and the size of the subtree, so that the order of draws does not matter.
            const std::uint64_t drawn = mix(mix(settings_.seed + label) + static_cast<std::uint64_t>(n_leaves));
            auto left = static_cast<int>((drawn >> 32) * static_cast<std::uint64_t>(tree.n_children(v)) >> 32);
            for (std::int32_t c : child)
                if (c >= 0 && left-- == 0) return c;
        }
        const std::span<const float> p = probabilities(v);
        const double average = n_leaves / tree.n_children(v);
        double sum = 0, best = -std::numeric_limits<double>::infinity();
        for (std::size_t k = 0; k < child.size(); ++k)
            if (child[k] >= 0) sum += p[k];
        int chosen = -1;
        for (std::size_t k = 0; k < child.size(); ++k) {
            const std::int32_t c = child[k];
            if (c < 0 || (settings_.policy == Policy::fair && tree.n_leaves(c) > settings_.fair_share * average))
                continue;
            const double score = value(p[k], sum, tree.n_leaves(c), average);
            if (!(score > best) && chosen >= 0) continue;
            best = score;
            chosen = c;
        }
        return chosen;  // the lightest child is never heavier than the average, so there is one
    }

private:
    double value(double p, double sum, double n_leaves, double average) const {
        const double alpha = settings_.alpha;
        switch (settings_.policy) {
            case Policy::best: return (1 - alpha) * p + alpha / n_leaves * std::log(average);
            // Balance as napkinXC, whose authors are the paper's, computes it: it does not fade where labels are many.
            case Policy::balanced:
            case Policy::fair: return (1 - alpha) * p + alpha * std::log(average / n_leaves);
            // Of two children the better one is that of the sign of (1 - alpha) (p1 - p0) + alpha log2(n0 / n1).
            case Policy::cpt: return (1 - alpha) * (sum > 0 ? p / sum : 0.5) - alpha * std::log2(n_leaves);
            default: return p;
        }
    }

    PolicySettings settings_;
    GrowthSettings growth_;
};

}  // namespace ramify
