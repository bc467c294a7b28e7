/// Buffered examples go down the tree level by level: a node learns all of its examples, in order, before its children
/// do.
///
/// What a node does depends only on the examples that reach it and their order: which child a new label goes to, how
/// the tree is extended there, and every weight. So the result is that of one example after the other, bit for bit,
/// whatever the size of the buffer; but a block stays in cache while it learns, and the nodes of a level run in
/// parallel. Paper: Jasinska-Kobus et al., "Online probabilistic label trees", algorithms 3 to 8.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <functional>
#include <span>
#include <utility>
#include <vector>

#include "base/parallel.hpp"
#include "online_plt/policy.hpp"
#include "online_plt/tree.hpp"
#include "online_plt/update.hpp"

namespace ramify {

/// Examples that wait to be learned.
struct ExampleBuffer {
    std::vector<Entry> entries;
    std::vector<std::size_t> begin{0};
    std::vector<std::int32_t> labels;
    std::vector<std::size_t> label_begin{0};
    std::vector<float> weight;
    std::uint64_t first_example = 0;  ///< its number in the stream

    std::size_t size() const { return weight.size(); }
    std::span<const Entry> row(std::size_t e) const { return {entries.data() + begin[e], begin[e + 1] - begin[e]}; }
    std::span<const std::int32_t> labels_of(std::size_t e) const {
        return {labels.data() + label_begin[e], label_begin[e + 1] - label_begin[e]};
    }

    void clear() {
        first_example += size();
        entries.clear();
        begin.assign(1, 0);
        labels.clear();
        label_begin.assign(1, 0);
        weight.clear();
    }
};

class LevelPass {
public:
    LevelPass(OnlineTree& tree, const TreePolicy& policy, const BlockLearner& learner)
        : tree_(tree), policy_(policy), learner_(learner) {}

    /// Learns all examples of the buffer; returns the number of single classifiers' updates. An interrupt may end it
    /// between two nodes: then run it again with the same buffer: it continues where it stopped.
    std::uint64_t run(const ExampleBuffer& buffer, int n_threads) {
        if (!is_under_way_) {
            buffer_ = &buffer;
            start_at_root();
            gate_begin_ = tree_.gate() ? 0 : buffer.size();
            frontier_.assign(1, OnlineTree::root);
            n_updates_ = 0;
            is_under_way_ = true;
        }
        std::vector<Worker> workers(usable_threads(n_threads));
        while (!frontier_.empty()) {
            parallel_for(frontier_.size(), n_threads, [&](std::size_t task, int worker) {
                if (frontier_[task] == gate)
                    learn_gate(workers[worker]);
                else
                    visit(frontier_[task], workers[worker]);
            });
            next_frontier();
        }
        for (std::int32_t label : new_labels_) on_the_way_[label] = -1;
        for (std::int32_t label : known_labels_) path_at_[label] = -1;
        is_under_way_ = false;
        for (const Worker& worker : workers) n_updates_ += worker.n_updates;
        return n_updates_;
    }

    /// Memory that it keeps for each label, in bytes.
    std::size_t bytes() const {
        return on_the_way_.capacity() * sizeof on_the_way_[0] + path_at_.capacity() * sizeof path_at_[0];
    }
    /// Whether it was interrupted and has to go on before anything else.
    bool is_under_way() const { return is_under_way_; }
    /// Whether a node failed half-way, for lack of memory: the tree is then unusable.
    bool is_broken() const { return is_broken_; }

private:
    static constexpr std::int32_t gate = -1;
    /// Marks a label, in a node's list, that has no leaf yet and gets one at or below the node.
    static constexpr std::uint32_t to_be_placed = 1u << 31;

    struct Worker {
        OnlineScratch learning, deciding;
        std::vector<std::uint32_t> columns;
        std::vector<std::pair<std::int32_t, std::size_t>>
            passed;  ///< children that the example continues to, and where its label count is
        std::uint64_t n_updates = 0;
    };

    /// A node's list: example, number of labels below the node, those labels.
    void start_at_root() {
        std::int32_t largest = -1;
        for (std::int32_t label : buffer_->labels) largest = std::max(largest, label);
        tree_.reserve_labels(largest + 1);
        if (std::ssize(on_the_way_) <= largest) {
            on_the_way_.resize(std::max<std::size_t>(largest + 1, on_the_way_.size() * 3 / 2), -1);
            path_at_.resize(on_the_way_.size(), -1);
        }
        new_labels_.clear();
        known_labels_.clear();
        paths_.clear();
        if (lists_.empty()) lists_.resize(1);
        std::vector<std::uint32_t>& list = lists_[OnlineTree::root];
        for (std::size_t e = 0; e < buffer_->size(); ++e) {
            list.push_back(static_cast<std::uint32_t>(e));
            list.push_back(static_cast<std::uint32_t>(buffer_->labels_of(e).size()));
            for (std::int32_t label : buffer_->labels_of(e)) {
                const bool is_new = tree_.leaf(label) < 0 && on_the_way_[label] < 0;
                if (is_new) {
                    on_the_way_[label] = OnlineTree::root;
                    new_labels_.push_back(label);
                } else if (tree_.leaf(label) >= 0 && path_at_[label] < 0) {
                    known_labels_.push_back(label);
                    paths_.push_back(-1);
                    for (std::int32_t a = tree_.leaf(label); a != OnlineTree::root; a = tree_.parent(a))
                        paths_.push_back(a);
                    path_at_[label] = std::ssize(paths_) - 1;
                }
                list.push_back(static_cast<std::uint32_t>(label) | (is_new ? to_be_placed : 0));
            }
        }
        tree_.reserve_nodes(2 * new_labels_.size());  // threads add nodes: nothing may move meanwhile
        if (lists_.size() < tree_.capacity()) {
            lists_.resize(tree_.capacity());
            is_inserted_.resize(tree_.capacity(), 0);
        }
    }

    /// The children of the nodes just visited that have something to learn, the most work first.
    void next_frontier() {
        std::vector<std::pair<std::size_t, std::int32_t>> next;
        for (std::int32_t v : frontier_) {
            if (v == OnlineTree::root && gate_begin_ < buffer_->size()) next.emplace_back(8 * buffer_->size(), gate);
            if (v == gate || tree_.is_leaf(v) || !tree_.block(v)) continue;
            for (std::int32_t c : tree_.block(v)->child) {
                if (c < 0 || (lists_[c].empty() && !is_inserted_[c])) continue;
                is_inserted_[c] = 0;
                next.emplace_back(
                    tree_.block(c) ? lists_[c].size() * static_cast<std::size_t>(tree_.block(c)->stride()) : 0, c);
            }
        }
        std::ranges::sort(next, std::greater<>{});
        frontier_.clear();
        for (const auto& [work, v] : next) frontier_.push_back(v);
    }

    /// A node learns its list: places new labels, or sends them on, and updates its children's classifiers.
    void visit(std::int32_t v, Worker& w) {
        try {
            learn_list(v, w);
        } catch (...) {
            is_broken_ = true;
            throw;
        }
    }

    void learn_list(std::int32_t v, Worker& w) {
        std::vector<std::uint32_t> list;
        list.swap(lists_[v]);
        if (!tree_.block(v)) return;  // a leaf that is not extended any more
        OnlineScratch& s = w.learning;
        BlockLearner::signs(*tree_.block(v), s.sign);
        int turn = 0;
        bool is_looked_up = false;
        for (std::size_t at = 0; at < list.size(); turn ^= 1) {
            const std::uint32_t example = list[at];
            const std::span<std::uint32_t> labels(list.data() + at + 2, list[at + 1]);
            at += 2 + labels.size();
            const std::span<const Entry> x = buffer_->row(example);
            const bool is_changed = extend(v, example, labels, w);
            if (!tree_.block(v)) return;  // the root's own classifier takes the rest
            if (is_changed) BlockLearner::signs(*tree_.block(v), s.sign);
            OnlineBlock& block = *tree_.block(v);
            if (labels.empty()) {  // a row without labels ends at the root
                is_looked_up = false;
                continue;
            }
            if (!is_looked_up) BlockLearner::look_up(block, x, s.place[turn]);
            // The rows of the next example are looked up, and fetched, while this one is learned; unless it changes the
            // tree.
            const bool next_is_plain =
                at < list.size() && list[at + 1] > 0 && !has_new({list.data() + at + 2, list[at + 1]});
            if (next_is_plain) BlockLearner::look_up(block, buffer_->row(list[at]), s.place[turn ^ 1]);
            is_looked_up = next_is_plain;
            pass_on(v, example, labels, s.sign, w);
            learner_.update(block, x, s.place[turn], buffer_->weight[example], s);
            for (std::uint32_t c : w.columns) s.sign[c] = -1.0f;
            w.n_updates += static_cast<std::uint64_t>(block.n_classifiers());
        }
    }

    static bool has_new(std::span<const std::uint32_t> labels) {
        return std::ranges::any_of(labels, [](std::uint32_t label) { return label & to_be_placed; });
    }

    /// Puts the example on the lists of the positive children, whose columns are then to say +1.
    void pass_on(std::int32_t v, std::uint32_t example, std::span<const std::uint32_t> labels, std::vector<float>& sign,
                 Worker& w) {
        w.columns.clear();
        w.passed.clear();
        if (tree_.is_leaf(v)) return;
        for (std::uint32_t label : labels) {
            const std::int32_t c = child_towards(v, static_cast<std::int32_t>(label & ~to_be_placed));
            const auto column = static_cast<std::uint32_t>(tree_.column(c));
            if (sign[column] < 0) {
                sign[column] = 1.0f;
                w.columns.push_back(column);
            }
            if (!tree_.block(c)) continue;  // a leaf without theta has nothing to learn
            std::vector<std::uint32_t>& list = lists_[c];
            auto open = std::ranges::find(w.passed, c, &std::pair<std::int32_t, std::size_t>::first);
            if (open == w.passed.end()) {
                list.push_back(example);
                w.passed.emplace_back(c, list.size());
                list.push_back(0);
                open = std::prev(w.passed.end());
            }
            list.push_back(label);
            ++list[open->second];
        }
    }

    /// The child of v on the way to a label's leaf, or to where a new label has come so far.
    std::int32_t child_towards(std::int32_t v, std::int32_t label) {
        std::int64_t& path = path_at_[label];
        if (path >= 0 && paths_[path] == v) --path;
        std::int32_t at = path >= 0 ? paths_[path] : -1;
        if (at < 0) at = tree_.leaf(label);
        if (at < 0) at = on_the_way_[label];
        while (tree_.parent(at) != v) at = tree_.parent(at);  // a node may have been inserted since
        return at;
    }

    /// New labels of an example at v: v is extended for them, or they go on to a child. Whether v's columns have
    /// changed.
    bool extend(std::int32_t v, std::uint32_t example, std::span<std::uint32_t> labels, Worker& w) {
        bool is_changed = false;
        if (labels.empty() && v == OnlineTree::root && tree_.may_have_empty_rows() && !tree_.gate()) {
            tree_.open_gate();
            gate_begin_ = example;
            is_changed = true;
        }
        int n_new = 0;
        std::uint64_t first_new =
            0;  // stands for all of them: further new labels of an example go where the first one goes
        for (std::uint32_t& label : labels) {
            if (!(label & to_be_placed)) continue;
            if (!tree_.has_labels()) {
                label &= ~to_be_placed;
                tree_.label_root(static_cast<std::int32_t>(label));
                continue;
            }
            if (n_new++ == 0) first_new = label & ~to_be_placed;
        }
        if (n_new == 0) return is_changed;
        if (v == OnlineTree::root) tree_.add_leaves(v, n_new);
        const std::span<const Entry> x = buffer_->row(example);
        const ChildProbabilities probabilities = [&](int node) {
            return learner_.probabilities(*tree_.block(node), x, w.deciding);
        };
        if (!policy_.stops_at(tree_, v)) {
            const int c = policy_.choose_child(tree_, v, first_new, probabilities);
            tree_.add_leaves(c, n_new);
            for (std::uint32_t label : labels)
                if (label & to_be_placed) on_the_way_[label & ~to_be_placed] = c;
            return is_changed;
        }
        int selected = v;
        for (std::uint32_t& label : labels) {
            if (!(label & to_be_placed)) continue;
            label &= ~to_be_placed;
            selected = policy_.select(tree_, selected, first_new, probabilities);
            if (selected != v) {  // a leaf below v, whose theta must have seen what came before
                Worker own;
                visit(selected, own);
                w.n_updates += own.n_updates;
            }
            if (policy_.inserts_at(tree_, selected)) is_inserted_[tree_.insert_node(selected)] = 1;
            tree_.add_leaf(static_cast<std::int32_t>(label), selected);
            for (int a = selected; a != v; a = tree_.parent(a)) tree_.add_leaves(a, 1);
        }
        return true;
    }

    /// The root's own classifier: whether a row has any label.
    void learn_gate(Worker& w) {
        OnlineBlock& block = *tree_.gate();
        OnlineScratch& s = w.learning;
        s.sign.assign(round_to_lanes(1), 0.0f);
        for (; gate_begin_ < buffer_->size(); ++gate_begin_) {
            const std::size_t e = gate_begin_;
            s.sign[0] = buffer_->labels_of(e).empty() ? -1.0f : 1.0f;
            BlockLearner::look_up(block, buffer_->row(e), s.place[0]);
            learner_.update(block, buffer_->row(e), s.place[0], buffer_->weight[e], s);
            ++w.n_updates;
        }
    }

    OnlineTree& tree_;
    const TreePolicy& policy_;
    const BlockLearner& learner_;
    const ExampleBuffer* buffer_ = nullptr;
    bool is_under_way_ = false;
    std::atomic<bool> is_broken_{false};
    std::uint64_t n_updates_ = 0;
    std::size_t gate_begin_ = 0;                     ///< the first example that the root's own classifier learns
    std::vector<std::vector<std::uint32_t>> lists_;  ///< per node; empty between passes
    std::vector<std::uint8_t> is_inserted_;  ///< per node: put above children whose lists may hold examples already
    std::vector<std::int32_t> on_the_way_;   ///< per label without a leaf: the node that it has come to; else -1
    // The way to each known label as it was before the pass: from its leaf up, after a -1; and how far the label has
    // come.
    std::vector<std::int32_t> paths_;
    std::vector<std::int64_t> path_at_;  ///< per label; -1 for those that the pass does not have
    std::vector<std::int32_t> new_labels_, known_labels_, frontier_;
};

}  // namespace ramify
