/// Searches in a label tree that is still learning: exact best-first, and the labels that the caller names.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <span>
#include <utility>
#include <vector>

#include "online_plt/learner.hpp"
#include "trees/best_first.hpp"

namespace ramify {

struct OnlineSearchScratch {
    OnlineScratch score;
    std::vector<Entry> x;
    BestFirst best;
    std::vector<std::pair<float, std::int32_t>> open, next;  ///< for named labels, and of a beam
    std::vector<Found> found;
    std::vector<std::uint8_t> is_marked;  ///< per node, for named labels
    std::vector<std::int32_t> marked;
    std::int64_t n_inner_products = 0;
};

/// A node on the way to a label.
struct PathStep {
    std::int32_t node;
    float probability;                  ///< given the node before
    std::vector<std::int32_t> feature;  ///< -1: the bias
    std::vector<float> contribution;
};

class OnlineSearch {
public:
    explicit OnlineSearch(const OnlineLearner& learner) : learner_(learner) {}

    /// The answer is scratch.best.found, best first.
    void search(std::span<const Entry> x, const SearchSettings& settings, OnlineSearchScratch& scratch) const {
        const OnlineTree& tree = learner_.tree();
        BestFirst& best = scratch.best;
        best.clear();
        if (settings.top_k <= 0 || !tree.has_labels()) return;
        if (learner_.settings().beam > 0) return beam_search(x, settings, scratch);
        best.reach(settings, root_probability(x, scratch), OnlineTree::root, tree.label(OnlineTree::root));
        float p;
        std::int32_t node;
        while (best.next(settings, p, node)) {
            const std::span<const float> conditional = conditionals(node, x, scratch);
            const auto& child = tree.block(node)->child;
            for (std::size_t c = 0; c < child.size(); ++c)
                if (child[c] >= 0) best.reach(settings, p * conditional[c], child[c], tree.label(child[c]));
        }
        best.finish();
    }

    /// The `beam` most probable nodes of each level are opened; the leaves met on the way are the candidates. A beam of
    /// one is greedy descent.
    void beam_search(std::span<const Entry> x, const SearchSettings& settings, OnlineSearchScratch& scratch) const {
        const OnlineTree& tree = learner_.tree();
        BestFirst& best = scratch.best;
        auto& open = scratch.open;
        auto& next = scratch.next;
        const auto better = [](const auto& a, const auto& b) {
            return a.first != b.first ? a.first > b.first : a.second < b.second;
        };
        next.clear();
        const auto reach = [&](float p, std::int32_t node) {
            if (tree.is_leaf(node))
                best.reach(settings, p, node, tree.label(node));
            else if (settings.admits(p, node))
                next.emplace_back(p, node);
        };
        reach(root_probability(x, scratch), OnlineTree::root);
        while (!next.empty()) {
            if (std::ssize(next) > learner_.settings().beam) {
                std::ranges::nth_element(next, next.begin() + learner_.settings().beam, better);
                next.resize(static_cast<std::size_t>(learner_.settings().beam));
            }
            open.swap(next);
            next.clear();
            for (const auto& [p, node] : open) {
                const std::span<const float> conditional = conditionals(node, x, scratch);
                const auto& child = tree.block(node)->child;
                for (std::size_t c = 0; c < child.size(); ++c)
                    if (child[c] >= 0) reach(p * conditional[c], child[c]);
            }
        }
        best.finish();
    }

    /// Probabilities of the named labels into `out`; a label that the tree does not have has probability 0.
    void named(std::span<const Entry> x, std::span<const std::int32_t> labels, OnlineSearchScratch& scratch,
               float* out) const {
        const OnlineTree& tree = learner_.tree();
        if (scratch.is_marked.size() < static_cast<std::size_t>(tree.n_nodes()))
            scratch.is_marked.resize(tree.n_nodes(), 0);
        scratch.marked.clear();
        for (std::int32_t label : labels)
            for (std::int32_t v = tree.leaf(label); v >= 0 && !scratch.is_marked[v]; v = tree.parent(v)) {
                scratch.is_marked[v] = 1;
                scratch.marked.push_back(v);
            }
        auto& open = scratch.open;
        auto& found = scratch.found;
        open.clear();
        found.clear();
        auto reach = [&](float p, std::int32_t node) {
            if (tree.is_leaf(node))
                found.push_back({p, tree.label(node)});
            else
                open.emplace_back(p, node);
        };
        if (!scratch.marked.empty()) reach(root_probability(x, scratch), OnlineTree::root);
        while (!open.empty()) {
            const auto [p, node] = open.back();
            open.pop_back();
            const std::span<const float> conditional = conditionals(node, x, scratch);
            const auto& child = tree.block(node)->child;
            for (std::size_t c = 0; c < child.size(); ++c)
                if (child[c] >= 0 && scratch.is_marked[child[c]]) reach(p * conditional[c], child[c]);
        }
        for (std::int32_t v : scratch.marked) scratch.is_marked[v] = 0;
        std::ranges::sort(found, {}, &Found::label);
        for (std::size_t k = 0; k < labels.size(); ++k) {
            const auto at = std::ranges::lower_bound(found, labels[k], {}, &Found::label);
            out[k] = at != found.end() && at->label == labels[k] ? at->probability : 0.0f;
        }
    }

    /// The path from the root to a leaf, with what each feature of x added to the score of each node.
    std::vector<PathStep> explain(std::int32_t leaf, std::span<const Entry> x, OnlineSearchScratch& scratch) const {
        const OnlineTree& tree = learner_.tree();
        std::vector<PathStep> steps;
        for (std::int32_t v = leaf; v >= 0; v = tree.parent(v)) {
            const OnlineBlock* block = v == OnlineTree::root ? tree.gate() : tree.block(tree.parent(v));
            if (!block) continue;  // every example had a label: the root is certain
            const int column = v == OnlineTree::root ? 0 : tree.column(v);
            PathStep step{v, probabilities(*block, x, scratch)[column], {}, {}};
            for (const Entry& e : x) {
                const OnlineBlock::Place place = block->find(e.feature);
                if (place == OnlineBlock::none) continue;
                const float weight = block->weights(place, scratch.score.replayed)[column];
                if (weight == 0.0f) continue;
                step.feature.push_back(e.feature == OnlineLearner::bias_feature ? -1
                                                                                : static_cast<std::int32_t>(e.feature));
                step.contribution.push_back(weight * block->scale * e.value);
            }
            steps.push_back(std::move(step));
        }
        std::ranges::reverse(steps);
        return steps;
    }

    /// Per node the least threshold of the labels below it; labels beyond `threshold` have threshold 0.
    std::vector<float> node_thresholds(std::span<const float> threshold) const {
        const OnlineTree& tree = learner_.tree();
        std::vector<float> least(tree.n_nodes(), std::numeric_limits<float>::infinity());
        for (int v = 0; v < tree.n_nodes(); ++v) {
            if (!tree.is_leaf(v)) continue;
            const float t = tree.label(v) < std::ssize(threshold) ? threshold[tree.label(v)] : 0.0f;
            for (int a = v; a >= 0 && t < least[a]; a = tree.parent(a)) least[a] = t;
        }
        return least;
    }

    /// P(any label), which is one as long as every example had one.
    float root_probability(std::span<const Entry> x, OnlineSearchScratch& scratch) const {
        const OnlineBlock* gate = learner_.tree().gate();
        return gate ? probabilities(*gate, x, scratch)[0] : 1.0f;
    }

    std::span<const float> conditionals(int node, std::span<const Entry> x, OnlineSearchScratch& scratch) const {
        return probabilities(*learner_.tree().block(node), x, scratch);
    }

private:
    std::span<const float> probabilities(const OnlineBlock& block, std::span<const Entry> x,
                                         OnlineSearchScratch& scratch) const {
        scratch.n_inner_products += std::ssize(block.child);
        return learner_.probabilities(block, x, scratch.score);
    }

    const OnlineLearner& learner_;
};

}  // namespace ramify
