/// Searches in a probabilistic label tree: exact best-first, beam, and the labels that the caller names.
///
/// The probability of a node is the product of the conditional probabilities on its path (online-plt, equation 2), so it
/// never exceeds its parent's: the best-first search may stop as soon as no open node can still enter the answer.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <queue>
#include <span>
#include <utility>
#include <vector>

#include "frozen_blocks.hpp"
#include "label_tree.hpp"
#include "sparse_rows.hpp"

namespace ramify {

struct Found {
    float probability;
    std::int32_t label;
    /// The order of answers: more probable first, then the lower label.
    friend bool operator<(const Found& a, const Found& b) {
        return a.probability != b.probability ? a.probability > b.probability : a.label < b.label;
    }
};

struct SearchSettings {
    std::int64_t top_k = std::numeric_limits<std::int64_t>::max();
    float threshold = 0.0f;                     ///< labels below it are left out; 0 leaves out impossible ones only
    std::span<const float> node_threshold = {};  ///< per node: the least threshold below it; a leaf's own
    std::int64_t beam = 0;                      ///< nodes kept per level; 0: exact
};

/// Scratch space of one thread.
struct SearchScratch {
    ScoreScratch score;
    std::vector<Entry> x;
    std::vector<std::pair<float, std::int32_t>> open, next;
    std::vector<Found> found;
    std::vector<float> probability;        ///< per node, for named labels
    std::vector<std::int32_t> nodes;       ///< opened for named labels
    std::vector<std::uint8_t> is_marked;   ///< per node
    std::int64_t n_scored_blocks = 0;
};

/// A tree, its frozen blocks and the maps from scores to probabilities.
struct LabelTreeModel {
    TreeView tree;
    FrozenBlocks blocks;
    FeatureSettings features;
    std::span<const float> link;  ///< [level][knot] logits; empty: scores are logits
    std::int64_t n_levels = 0;
    int n_knots = 0;
    float link_low = 0, link_step = 1;
    bool one_of = false;  ///< exactly one child is true (multi-class): siblings are normalised
    std::vector<std::int32_t> level, leaf_of;

    void attach() {
        leaf_of = tree.leaf_of();
        level.assign(tree.n_nodes() + 1, 0);
        for (int v = 0; v < tree.n_nodes(); ++v) level[v] = v == 0 ? 1 : level[tree.parent[v]] + 1;
        blocks.n_features = features.n_columns();
        blocks.attach(tree);
    }

    int gate() const { return tree.n_nodes(); }

    /// The leaf of a label, or -1.
    std::int32_t leaf(std::int64_t label) const { return label < 0 || label >= std::ssize(leaf_of) ? -1 : leaf_of[label]; }

    /// Conditional probabilities of a node's children into scratch.score / scratch.child. Children left out have probability 0.
    void conditional(int node, std::span<const Entry> x, ScoreScratch& scratch) const {
        if (node != gate() && tree.n_children[node] == 1 && blocks.has(node)) {  // an only child is as probable as its parent
            scratch.score.assign(1, 1.0f);
            scratch.child.assign(1, 0);
            return;
        }
        LinkMap map;
        if (n_knots > 0) {
            const std::int64_t at = std::min<std::int64_t>(level[node], n_levels - 1);
            map = {link.data() + at * n_knots, n_knots, link_low, link_step};
        }
        blocks.score(node, x, scratch, map);
        float* score = scratch.score.data();
        const int n = static_cast<int>(scratch.score.size());
        if (one_of && node != gate()) {
            to_softmax(score, n);
        } else {
            kernels().to_probabilities(score, n);
        }
    }

    float root_probability(std::span<const Entry> x, SearchScratch& scratch) const {
        if (!blocks.has(gate())) return 1.0f;
        conditional(gate(), x, scratch.score);
        ++scratch.n_scored_blocks;
        return scratch.score.score.empty() ? 0.0f : scratch.score.score[0];  // empty: no training row had a label
    }

    /// The answer is scratch.found, best first.
    void search(std::span<const Entry> x, const SearchSettings& settings, SearchScratch& scratch) const {
        scratch.found.clear();
        if (settings.top_k <= 0) return;
        if (settings.beam > 0)
            beam_search(x, settings, scratch);
        else
            best_first(x, settings, scratch);
        std::sort(scratch.found.begin(), scratch.found.end());
        if (static_cast<std::int64_t>(scratch.found.size()) > settings.top_k) scratch.found.resize(settings.top_k);
    }

    /// Probabilities of the named labels' leaves, in their order, into `out`. Leaf -1 (a label outside the tree) has probability 0.
    void named(std::span<const Entry> x, std::span<const std::int32_t> leaves, SearchScratch& scratch, float* out) const {
        if (scratch.probability.size() != static_cast<std::size_t>(tree.n_nodes())) {
            scratch.probability.assign(tree.n_nodes(), 0.0f);
            scratch.is_marked.assign(tree.n_nodes(), 0);
        }
        scratch.nodes.clear();
        for (std::int32_t leaf : leaves)
            for (std::int32_t v = leaf; v >= 0 && !scratch.is_marked[v]; v = tree.parent[v]) {
                scratch.is_marked[v] = 1;
                scratch.nodes.push_back(v);
            }
        std::ranges::sort(scratch.nodes);  // parents before children
        for (std::int32_t v : scratch.nodes) {
            if (v == 0) scratch.probability[0] = root_probability(x, scratch);
            if (tree.is_leaf(v)) continue;
            const float p = scratch.probability[v];
            const std::int32_t first = tree.first_child[v];
            if (!(p > 0)) continue;
            conditional(v, x, scratch.score);
            ++scratch.n_scored_blocks;
            for (std::size_t c = 0; c < scratch.score.child.size(); ++c) {
                const std::int32_t child = first + scratch.score.child[c];
                if (scratch.is_marked[child]) scratch.probability[child] = p * scratch.score.score[c];
            }
        }
        for (std::size_t k = 0; k < leaves.size(); ++k) out[k] = leaves[k] < 0 ? 0.0f : scratch.probability[leaves[k]];
        for (std::int32_t v : scratch.nodes) {
            scratch.probability[v] = 0.0f;
            scratch.is_marked[v] = 0;
        }
    }

private:
    /// Independent chances, given that exactly one comes true, are in proportion to their odds: a softmax of the logits.
    static void to_softmax(float* logits, int n) {
        if (n == 0) return;
        const float largest = *std::max_element(logits, logits + n);
        double sum = 0;
        for (int c = 0; c < n; ++c) sum += logits[c] = std::exp(logits[c] - largest);
        const auto scale = static_cast<float>(1.0 / sum);
        for (int c = 0; c < n; ++c) logits[c] *= scale;
    }

    static float lowest(const SearchSettings& s, std::int32_t node) {
        return s.node_threshold.empty() ? s.threshold : std::max(s.threshold, s.node_threshold[node]);
    }
    static bool qualifies(float p, const SearchSettings& s, std::int32_t node) { return p > 0.0f && p >= lowest(s, node); }

    void best_first(std::span<const Entry> x, const SearchSettings& settings, SearchScratch& scratch) const {
        auto& open = scratch.open;    // a heap, the most probable on top; ties by the lower node
        auto& found = scratch.found;  // a heap, the worst answer on top
        auto worse = [](const auto& a, const auto& b) { return a.first != b.first ? a.first < b.first : a.second > b.second; };
        const auto k = static_cast<std::size_t>(settings.top_k);
        open.clear();
        auto is_full = [&] { return found.size() >= k; };
        auto reach = [&](float p, std::int32_t node) {
            if (!qualifies(p, settings, node)) return;
            if (tree.is_leaf(node)) {
                const Found f{p, tree.label[node]};
                if (!is_full()) {
                    found.push_back(f);
                    std::push_heap(found.begin(), found.end());
                } else if (f < found.front()) {
                    std::pop_heap(found.begin(), found.end());
                    found.back() = f;
                    std::push_heap(found.begin(), found.end());
                }
            } else if (!is_full() || p >= found.front().probability) {
                open.emplace_back(p, node);
                std::ranges::push_heap(open, worse);
            }
        };
        reach(root_probability(x, scratch), 0);
        while (!open.empty()) {
            const auto [p, node] = open.front();
            if (is_full() && p < found.front().probability) break;
            std::ranges::pop_heap(open, worse);
            open.pop_back();
            if (!blocks.has(node)) continue;
            conditional(node, x, scratch.score);
            ++scratch.n_scored_blocks;
            const std::int32_t first = tree.first_child[node];
            for (std::size_t c = 0; c < scratch.score.child.size(); ++c) reach(p * scratch.score.score[c], first + scratch.score.child[c]);
        }
    }

    /// The `beam` most probable nodes of each level are opened; the leaves met on the way are the candidates.
    void beam_search(std::span<const Entry> x, const SearchSettings& settings, SearchScratch& scratch) const {
        auto& level_nodes = scratch.open;
        auto& next = scratch.next;
        auto better = [](const auto& a, const auto& b) { return a.first != b.first ? a.first > b.first : a.second < b.second; };
        auto reach = [&](float p, std::int32_t node) {
            if (!qualifies(p, settings, node)) return;
            if (tree.is_leaf(node))
                scratch.found.push_back({p, tree.label[node]});
            else
                next.emplace_back(p, node);
        };
        next.clear();
        reach(root_probability(x, scratch), 0);
        while (!next.empty()) {
            if (static_cast<std::int64_t>(next.size()) > settings.beam) {
                std::ranges::nth_element(next, next.begin() + settings.beam, better);
                next.resize(settings.beam);
            }
            level_nodes.swap(next);
            next.clear();
            for (const auto& [p, node] : level_nodes) {
                if (!blocks.has(node)) continue;
                conditional(node, x, scratch.score);
                ++scratch.n_scored_blocks;
                const std::int32_t first = tree.first_child[node];
                for (std::size_t c = 0; c < scratch.score.child.size(); ++c) reach(p * scratch.score.score[c], first + scratch.score.child[c]);
            }
        }
    }
};

}  // namespace ramify
