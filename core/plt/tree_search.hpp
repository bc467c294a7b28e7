/// Searches in a probabilistic label tree: exact best-first, beam, and the labels that the caller names.
///
/// A batch is searched side by side: every row names the node to open next, and rows that open the same node are
/// scored one after the other, so that a block is fetched from memory once for many rows.
///
/// Where exactly one label is true, siblings share a softmax. It sums to one also below a node that is wrong for the
/// row, where no child fits: what the children claim, each for itself, then tells that the node is wrong, and the
/// softmax forgets it. So the top of the tree is opened first: all nodes that a row reaches with at least `top_from`.
/// The mass of each of them is multiplied by the sum of its children's claims, and what the top hands down is divided
/// by its sum. Which nodes these are depends on the row alone, not on what is asked, and below them the search is as
/// ever.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <span>
#include <utility>
#include <vector>

#include "base/parallel.hpp"
#include "base/sparse_rows.hpp"
#include "plt/frozen_blocks.hpp"
#include "plt/opened_blocks.hpp"
#include "plt/search_scratch.hpp"
#include "plt/tree_top.hpp"
#include "trees/best_first.hpp"
#include "trees/label_tree.hpp"

namespace ramify {

/// A tree, its frozen blocks and the maps from scores to probabilities.
struct LabelTreeModel {
    TreeView tree;
    FrozenBlocks blocks;
    FeatureSettings features;
    std::span<const float> link;         ///< [level][knot] logits; empty: scores are logits
    std::span<const float> link_slopes;  ///< the same shape: what the log of a child's rate adds, times this
    std::int64_t n_levels = 0;
    int n_knots = 0;
    float link_low = 0, link_step = 1;
    bool is_multiclass = false;     ///< exactly one child is true (multi-class): siblings are normalised
    std::span<const float> claims;  ///< [logits, slopes][level][knot]: maps of children for themselves; empty: no top
    float top_from = 1.0f;
    std::vector<std::int32_t> level, leaf_of;
    std::vector<std::int32_t> column_of;  ///< per node: among its parent's scores, or -1 if it has none

    void attach() {
        leaf_of = tree.leaf_of();
        level.assign(tree.n_nodes() + 1, 0);
        for (int v = 0; v < tree.n_nodes(); ++v) level[v] = v == 0 ? 1 : level[tree.parent[v]] + 1;
        blocks.n_features = features.n_columns();
        blocks.attach(tree);
        column_of.assign(static_cast<std::size_t>(tree.n_nodes()), -1);
        for (int v = 0; v < tree.n_nodes(); ++v) {
            std::int32_t column = 0;
            for (int i = blocks.panel_begin[v]; i < blocks.panel_begin[v + 1]; ++i)
                for (std::int32_t child :
                     blocks.column_child.subspan(blocks.panel(i).first_column, blocks.panel(i).n_columns))
                    column_of[tree.first_child[v] + child] = column++;
        }
    }

    int gate() const { return tree.n_nodes(); }

    /// The leaf of a label, or -1.
    std::int32_t leaf(std::int64_t label) const {
        return label < 0 || label >= std::ssize(leaf_of) ? -1 : leaf_of[label];
    }

    /// Conditional probabilities of a node's children into scratch.score / scratch.child, below the top. Children left
    /// out have probability 0.
    void conditional(int node, std::span<const Entry> x, ScoreScratch& scratch, bool with_claims = false) const {
        if (node != gate() && tree.n_children[node] == 1 &&
            blocks.has(node)) {  // an only child is as probable as its parent
            static constexpr std::int32_t only_child = 0;
            scratch.begin({&only_child, 1});
            scratch.score[0] = 1.0f;
            scratch.claimed = 1.0f;
            return;
        }
        LinkMap map, claim_map;
        if (n_knots > 0) {
            const std::int64_t at = std::min<std::int64_t>(level[node], n_levels - 1);
            map = {link.data() + at * n_knots, link_slopes.data() + at * n_knots, n_knots, link_low, link_step};
            claim_map = map;
            if (with_claims) {
                claim_map.logits = claims.data() + at * n_knots;
                claim_map.slopes = claims.data() + (n_levels + at) * n_knots;
            }
        }
        blocks.score(node, x, scratch, map, with_claims ? &claim_map : nullptr);
        float* score = scratch.score.data();
        const int n = static_cast<int>(scratch.score.size());
        if (is_multiclass && node != gate()) {
            kernels().to_softmax(score, n);
        } else {
            kernels().to_probabilities(score, n);
        }
    }

    float root_probability(std::span<const Entry> x, SearchScratch& scratch) const {
        if (!blocks.has(gate())) return 1.0f;
        conditional(gate(), x, scratch.score);
        ++scratch.n_inner_products;
        return scratch.score.score.empty() ? 0.0f : scratch.score.score[0];  // empty: no training row had a label
    }

    bool has_top() const { return !claims.empty(); }

    /// Opens the top of the tree for a row into scratch.top and scratch.top_nodes; returns the scale of its masses.
    float open_top(std::span<const Entry> x, SearchScratch& scratch, OpenedBlocks* opened = nullptr) const {
        const float root = root_probability(x, scratch);
        if (opened) opened->root = root;
        scratch.top.clear();
        auto& nodes = scratch.top_nodes;
        nodes.clear();
        start_top(root, scratch.top, [&](const TopNode& at) { nodes.push_back(at); });
        for (std::size_t k = 0; k < nodes.size();) {  // wave by wave, each in the order of nodes, as in a batch
            const std::size_t end = nodes.size();
            std::sort(nodes.begin() + static_cast<std::ptrdiff_t>(k), nodes.end());
            for (; k < end; ++k) {
                const TopNode at = nodes[k];
                open_top_node(at, x, scratch, scratch.top, opened,
                              [&](const TopNode& child) { nodes.push_back(child); });
            }
        }
        const float scale = TreeTop::scale(root, scratch.top.sum);
        if (opened) opened->scale(scale);
        return scale;
    }

    /// The answer is scratch.found, best first; `opened`, if given, keeps what was scored.
    void search(std::span<const Entry> x, const SearchSettings& settings, SearchScratch& scratch,
                OpenedBlocks* opened = nullptr) const {
        if (opened) opened->clear();
        scratch.found.clear();
        BestFirst& search = scratch.best;
        search.clear();
        scratch.given_up = 0;
        if (settings.top_k <= 0) return;
        if (settings.beam > 0)
            beam_search(x, settings, scratch, opened);
        else
            best_first(x, settings, scratch, opened);
        search.finish();
        scratch.given_up = search.given_up(settings);
        scratch.found.swap(search.found);
    }

    /// The same, exact, for all rows of a batch: the answers are in batch.search. Stops when the watch says so.
    void search_batch(const SearchSettings& settings, BatchScratch& batch, SearchScratch& scratch, Watch& watch) const {
        const std::size_t n = batch.n_rows();
        if (batch.search.size() < n) batch.search.resize(n);
        if (batch.keeps_opened) {
            if (batch.opened.size() < n) batch.opened.resize(n);
            for (std::size_t i = 0; i < n; ++i) batch.opened[i].clear();
        }
        auto& next = batch.next;
        next.clear();
        auto advance = [&](std::int32_t row) {
            next_round(batch.search[row], settings,
                       [&](float p, std::int32_t node) { next.push_back({node, row, p}); });
        };
        for (std::size_t i = 0; i < n; ++i) batch.search[i].clear();
        if (settings.top_k <= 0) return;
        if (has_top()) {
            constexpr std::size_t rows_at_once = 1024;  // what their tops hand down is kept
            for (std::size_t first = 0; first < n; first += rows_at_once) {
                open_tops(first, std::min(n, first + rows_at_once), settings, batch, scratch, watch);
                if (watch.should_stop()) return;
            }
            for (std::size_t i = 0; i < n; ++i) advance(static_cast<std::int32_t>(i));
        }
        for (std::size_t i = 0; i < n && !has_top(); ++i) {
            const float root = root_probability(batch.row(i), scratch);
            if (batch.keeps_opened) batch.opened[i].root = root;
            batch.search[i].reach(settings, root, 0, tree.label[0]);
            advance(static_cast<std::int32_t>(i));
        }
        while (!next.empty()) {
            batch.visits.swap(next);
            next.clear();
            std::sort(batch.visits.begin(), batch.visits.end());
            batch.is_asked.assign(n, 0);
            for (std::size_t k = 0; k < batch.visits.size(); ++k) {
                if (k % 64 == 0 && watch.should_stop()) return;
                const auto [node, row, p] = batch.visits[k];
                open_node(node, p, batch.row(row), settings, batch.search[row], scratch,
                          batch.keeps_opened ? &batch.opened[row] : nullptr);
                batch.is_asked[row] = 1;
            }
            for (std::size_t i = 0; i < n; ++i)
                if (batch.is_asked[i]) advance(static_cast<std::int32_t>(i));
        }
        for (std::size_t i = 0; i < n; ++i) batch.search[i].finish();
    }

    /// Probabilities of the named labels' leaves, in their order, into `out`. Leaf -1 (a label outside the tree) has
    /// probability 0.
    void named(std::span<const Entry> x, std::span<const std::int32_t> leaves, SearchScratch& scratch,
               float* out) const {
        if (scratch.probability.size() != static_cast<std::size_t>(tree.n_nodes())) {
            scratch.probability.assign(tree.n_nodes(), 0.0f);
            scratch.is_marked.assign(tree.n_nodes(), 0);
        }
        scratch.nodes.clear();
        if (leaves.empty()) return;
        for (std::int32_t leaf : leaves)
            for (std::int32_t v = leaf; v >= 0 && !scratch.is_marked[v]; v = tree.parent[v]) {
                scratch.is_marked[v] = 1;
                scratch.nodes.push_back(v);
            }
        std::ranges::sort(scratch.nodes);  // parents before children
        if (has_top()) {
            const float scale = open_top(x, scratch);
            for (const TopNode& at : scratch.top_nodes)
                if (scratch.is_marked[at.node]) scratch.is_marked[at.node] = 2;
            scratch.top.hand_down(scale, [&](float p, std::int32_t v) {
                if (scratch.is_marked[v]) scratch.probability[v] = p;
            });
        }
        for (std::int32_t v : scratch.nodes) {
            if (v == 0 && !has_top()) scratch.probability[0] = root_probability(x, scratch);
            if (tree.is_leaf(v) || scratch.is_marked[v] == 2) continue;
            const float p = scratch.probability[v];
            const std::int32_t first = tree.first_child[v];
            if (!(p > 0)) continue;
            conditional(v, x, scratch.score);
            scratch.n_inner_products += n_products(v);
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
    /// An only child is as probable as its parent, which takes none.
    std::int32_t n_products(std::int32_t node) const { return tree.n_children[node] == 1 ? 0 : tree.n_children[node]; }

    /// Whether a node that is reached with this product belongs to the top.
    bool is_top(std::int32_t node, float product) const {
        return product >= top_from && !tree.is_leaf(node) && blocks.has(node);
    }

    template <class Deeper>
    void start_top(float root, TreeTop& top, Deeper&& deeper) const {
        if (is_top(0, root))
            deeper(TopNode{0, root, root});
        else
            top.add(0, root, 1.0f);
    }

    /// Opens a node of the top; deeper(child) is called for children that belong to it too, the others end it.
    template <class Deeper>
    void open_top_node(const TopNode& at, std::span<const Entry> x, SearchScratch& scratch, TreeTop& top,
                       OpenedBlocks* opened, Deeper&& deeper) const {
        constexpr float least = 1e-6f;         // a node where nothing is claimed at all is not ruled out
        constexpr float largest_mass = 1e30f;  // of odd maps in a deep tree
        const bool is_root = at.node == 0;     // all that its children claim would be divided away again
        conditional(at.node, x, scratch.score, !is_root);
        scratch.n_inner_products += n_products(at.node);
        const float mass =
            is_root ? at.mass
                    : std::clamp(at.mass * std::max(scratch.score.claimed, least), 1 / largest_mass, largest_mass);
        if (opened) opened->add(at.node, mass, scratch.score.score);
        const std::int32_t first = tree.first_child[at.node];
        for (std::size_t c = 0; c < scratch.score.child.size(); ++c) {
            const std::int32_t child = first + scratch.score.child[c];
            const float share = scratch.score.score[c];
            if (is_top(child, at.product * share))
                deeper(TopNode{child, at.product * share, mass * share});
            else
                top.add(child, mass, share);
        }
    }

    /// The tops of some rows of a batch, and what they hand down to their searches.
    void open_tops(std::size_t begin, std::size_t end, const SearchSettings& settings, BatchScratch& batch,
                   SearchScratch& scratch, Watch& watch) const {
        auto& next = batch.next_top;
        next.clear();
        if (batch.top.size() < end - begin) batch.top.resize(end - begin);
        std::vector<float>& root = scratch.probability_of_root;
        root.resize(end - begin);
        for (std::size_t i = begin; i < end; ++i) {
            batch.top[i - begin].clear();
            root[i - begin] = root_probability(batch.row(i), scratch);
            start_top(root[i - begin], batch.top[i - begin],
                      [&](const TopNode& at) { next.push_back({at, static_cast<std::int32_t>(i)}); });
        }
        while (!next.empty()) {
            batch.top_visits.swap(next);
            next.clear();
            std::sort(batch.top_visits.begin(), batch.top_visits.end());
            for (std::size_t k = 0; k < batch.top_visits.size(); ++k) {
                if (k % 64 == 0 && watch.should_stop()) return;
                const auto& [at, row] = batch.top_visits[k];
                ++batch.search[row].n_opened;
                open_top_node(at, batch.row(row), scratch, batch.top[row - begin],
                              batch.keeps_opened ? &batch.opened[row] : nullptr,
                              [&](const TopNode& child) { next.push_back({child, row}); });
            }
        }
        for (std::size_t i = begin; i < end; ++i) {
            const double sum = batch.top_sum.empty() ? batch.top[i - begin].sum : batch.top_sum[i];
            const float scale = TreeTop::scale(root[i - begin], sum);
            if (batch.keeps_opened) {
                batch.opened[i].root = root[i - begin];
                batch.opened[i].scale(scale);
            }
            reach_below(batch.top[i - begin], scale, settings, batch.search[i]);
        }
    }

    void reach_below(const TreeTop& top, float scale, const SearchSettings& settings, BestFirst& search) const {
        top.hand_down(scale, [&](float p, std::int32_t v) { search.reach(settings, p, v, tree.label[v]); });
    }

    /// The nodes of the next round that have a block; the others have no children that could be true.
    template <class Open>
    void next_round(BestFirst& search, const SearchSettings& settings, Open&& open) const {
        search.next_round(settings, [&](float p, std::int32_t node) {
            if (blocks.has(node)) open(p, node);
            return blocks.has(node);
        });
    }

    void open_node(std::int32_t node, float p, std::span<const Entry> x, const SearchSettings& settings,
                   BestFirst& search, SearchScratch& scratch, OpenedBlocks* opened) const {
        conditional(node, x, scratch.score);
        if (opened) opened->add(node, p, scratch.score.score);
        scratch.n_inner_products += n_products(node);
        ++search.n_opened;
        const std::int32_t first = tree.first_child[node];
        const auto n = static_cast<int>(scratch.score.score.size());
        scratch.position.resize(std::max(scratch.position.size(), scratch.score.score.size() + group_columns));
        scratch.product.resize(scratch.position.size());
        const int n_reaching = kernels().reaching(scratch.score.score.data(), n, p, search.cutoff(settings),
                                                  scratch.position.data(), scratch.product.data());
        for (int k = 0; k < n_reaching; ++k) {  // most children are not among them
            const std::int32_t child = first + scratch.score.child[static_cast<std::size_t>(scratch.position[k])];
            search.reach(settings, scratch.product[k], child, tree.label[child]);
        }
    }

    void best_first(std::span<const Entry> x, const SearchSettings& settings, SearchScratch& scratch,
                    OpenedBlocks* opened) const {
        BestFirst& search = scratch.best;
        if (has_top()) {
            const float scale = open_top(x, scratch, opened);
            search.n_opened += static_cast<std::int32_t>(scratch.top_nodes.size());
            reach_below(scratch.top, scale, settings, search);
        } else {
            const float root = root_probability(x, scratch);
            if (opened) opened->root = root;
            search.reach(settings, root, 0, tree.label[0]);
        }
        for (;;) {
            auto& round = scratch.open;
            round.clear();
            next_round(search, settings, [&](float p, std::int32_t node) { round.emplace_back(p, node); });
            if (round.empty()) return;
            std::ranges::sort(round, {}, &std::pair<float, std::int32_t>::second);  // as in a batch
            for (const auto& [p, node] : round) open_node(node, p, x, settings, search, scratch, opened);
        }
    }

    /// The `beam` most probable nodes of each level are opened, best first; the leaves met on the way are the
    /// candidates. It ends as soon as no node on the beam can still lead into the answer, with the same result as if
    /// all levels had been searched: a node that is left out is less probable than all that matter, and so are those
    /// below it. The nodes of the top are opened in any case; those below it join the beam at their levels.
    void beam_search(std::span<const Entry> x, const SearchSettings& settings, SearchScratch& scratch,
                     OpenedBlocks* opened) const {
        auto& level_nodes = scratch.open;
        auto& next = scratch.next;
        auto better = [](const auto& a, const auto& b) {
            return a.first != b.first ? a.first > b.first : a.second < b.second;
        };
        BestFirst& search = scratch.best;
        auto reach = [&](float p, std::int32_t node) {
            if (search.is_beaten(p, settings) || !settings.admits(p, node)) return;
            if (tree.is_leaf(node))
                search.enter(settings, p, tree.label[node]);
            else
                next.emplace_back(p, node);
        };
        next.clear();
        auto& below = scratch.top.below;
        below.clear();
        float scale = 0;
        if (has_top()) {
            scale = open_top(x, scratch, opened);
            search.n_opened += static_cast<std::int32_t>(scratch.top_nodes.size());
            std::ranges::stable_sort(below, {}, [&](const TreeTop::Edge& edge) { return level[edge.node]; });
        } else {
            const float root = root_probability(x, scratch);
            if (opened) opened->root = root;
            reach(root, 0);
        }
        auto edge = below.begin();
        for (std::int32_t at_level = 1; !next.empty() || edge != below.end(); ++at_level) {
            for (; edge != below.end() && level[edge->node] == at_level; ++edge)
                reach(edge->probability(scale), edge->node);
            if (static_cast<std::int64_t>(next.size()) > settings.beam) {
                std::ranges::nth_element(next, next.begin() + settings.beam, better);
                search.pass_over(next[settings.beam].first);  // the best of those that fall off
                next.resize(settings.beam);
            }
            std::ranges::sort(next, better);
            level_nodes.swap(next);
            next.clear();
            for (const auto& [p, node] : level_nodes) {
                if (search.is_left_out(p, settings)) {
                    search.pass_over(p);
                    break;
                }
                if (!blocks.has(node)) continue;
                ++search.n_opened;
                conditional(node, x, scratch.score);
                if (opened) opened->add(node, p, scratch.score.score);
                scratch.n_inner_products += n_products(node);
                const std::int32_t first = tree.first_child[node];
                for (std::size_t c = 0; c < scratch.score.child.size(); ++c)
                    reach(p * scratch.score.score[c], first + scratch.score.child[c]);
            }
        }
    }
};

}  // namespace ramify
