/// A label tree that grows while its classifiers learn: algorithms 4 to 6 of "Online probabilistic label trees" as
/// column operations.
///
/// The classifiers of a node's children are columns of the node's block, and so is theta, the node's auxiliary
/// classifier: both are updated on exactly the same examples. A new leaf's classifier is minus theta, an inserted
/// node's is theta.
#pragma once

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstdint>
#include <memory>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

#include "online_plt/block.hpp"
#include "trees/label_tree.hpp"

namespace ramify {

/// Where a tree may still be extended, which is where theta has to be kept.
struct GrowthSettings {
    enum class Theta { nowhere, pre_leaves, leaves, everywhere };
    Theta theta = Theta::pre_leaves;
    int arity = 2;             ///< b: inner nodes are filled up to it
    int pre_leaf_arity = 100;  ///< b_max: children of a node whose children are all leaves
};

class OnlineTree {
public:
    static constexpr int root = 0;

    OnlineTree(const GrowthSettings& growth, const StepRule& rule, bool may_have_empty_rows)
        : growth_(growth), rule_(rule), may_have_empty_rows_(may_have_empty_rows) {
        new_node(-1, -1);
        block_[root] = empty_block();
        if (wants_theta(root) || is_gate_pending()) block_[root]->add_column(theta_column);
    }

    // --- shape ------------------------------------------------------------------------------------------------------

    int n_nodes() const { return n_nodes_; }
    bool has_labels() const { return n_leaves_[root] > 0; }
    bool may_have_empty_rows() const { return may_have_empty_rows_; }
    bool is_leaf(int v) const { return label_[v] >= 0; }
    std::int32_t label(int v) const { return label_[v]; }
    std::int32_t parent(int v) const { return parent_[v]; }
    std::int32_t column(int v) const { return column_[v]; }
    int n_leaves(int v) const { return n_leaves_[v]; }
    int n_children(int v) const { return n_children_[v]; }
    int n_leaf_children(int v) const { return n_leaf_children_[v]; }
    bool is_pre_leaf(int v) const { return n_children_[v] == n_leaf_children_[v]; }
    /// The leaf of a label, or -1.
    std::int32_t leaf(std::int64_t label) const {
        return label >= 0 && label < std::ssize(leaf_of_) ? leaf_of_[label] : -1;
    }
    std::int64_t label_bound() const { return std::ssize(leaf_of_); }
    OnlineBlock* block(int v) const { return block_[v].get(); }
    OnlineBlock* gate() const { return gate_.get(); }

    /// Memory of nodes and labels, in bytes.
    std::size_t shape_bytes() const {
        std::size_t total = parent_.capacity() * (6 * sizeof(std::int32_t) + sizeof(void*)) +
                            leaf_of_.capacity() * sizeof(std::int32_t);
        for (const auto& block : block_)
            if (block) total += block->child.capacity() * sizeof(std::int32_t);
        return total;
    }
    /// Memory of the classifiers, in bytes.
    std::size_t block_bytes() const {
        std::size_t total = gate_ ? gate_->bytes() : 0;
        for (const auto& block : block_)
            if (block) total += block->bytes();
        return total;
    }

    // --- growth; several threads may extend subtrees that have no node in common, once there is room
    // ------------------

    /// Makes room for this many more nodes, and for labels below the bound, so that adding them moves nothing.
    void reserve_nodes(std::size_t n_more) {
        const std::size_t needed = static_cast<std::size_t>(n_nodes_) + n_more;
        if (needed > parent_.size()) resize_nodes(std::max(needed, parent_.size() * 3 / 2));
    }
    std::size_t capacity() const { return parent_.size(); }
    void reserve_labels(std::int64_t bound) {
        if (bound > std::ssize(leaf_of_)) leaf_of_.resize(std::max<std::size_t>(bound, leaf_of_.size() * 3 / 2), -1);
    }

    /// A node's label count; callers that send new labels there add to it.
    void add_leaves(int v, int n) { n_leaves_[v] += n; }

    /// The first label of all: the root is its leaf.
    void label_root(std::int32_t label) {
        label_[root] = label;
        set_leaf(label, root);
        n_leaves_[root] = 1;
    }

    /// Algorithm 5: a new node between v and its children; of a leaf, a new leaf below v that takes its label. Returns
    /// it.
    int insert_node(int v) {
        const int theta = theta_of(v);
        OnlineBlock& old = *block_[v];
        const int inserted = new_node(v, label_[v]);
        n_leaves_[inserted] = 1;
        if (is_leaf(v)) {
            set_leaf(label_[v], inserted);
            label_[v] = -1;
            column_[inserted] = old.add_copy(theta, 1.0f, inserted);
            n_children_[v] = n_leaf_children_[v] = 1;
            if (parent_[v] >= 0)
                std::atomic_ref(n_leaf_children_[parent_[v]])
                    .fetch_sub(1);  // v's siblings may do the same concurrently
            if (growth_.theta == GrowthSettings::Theta::leaves || growth_.theta == GrowthSettings::Theta::everywhere)
                block_[inserted] = std::make_unique<OnlineBlock>(old.with_column(theta, theta_column));
        } else {
            auto fresh = std::make_unique<OnlineBlock>(old.with_column(theta, theta_column));
            column_[inserted] = fresh->add_copy(0, 1.0f, inserted);
            n_leaves_[inserted] = 0;
            for (std::int32_t c : old.child) {
                if (c < 0) continue;
                parent_[c] = inserted;
                n_leaves_[inserted] += n_leaves_[c];
            }
            n_children_[inserted] = n_children_[v];
            n_leaf_children_[inserted] = n_leaf_children_[v];
            n_children_[v] = 1;
            n_leaf_children_[v] = 0;
            block_[inserted] = std::move(block_[v]);
            block_[v] = std::move(fresh);
        }
        return inserted;
    }

    /// Algorithm 6: a new leaf below v. It is not counted at v and above.
    int add_leaf(std::int32_t label, int v) {
        const int theta = theta_of(v);
        const int leaf = new_node(v, label);
        set_leaf(label, leaf);
        column_[leaf] = block_[v]->add_copy(theta, -1.0f, leaf);
        ++n_children_[v];
        ++n_leaf_children_[v];
        n_leaves_[leaf] = 1;
        if (wants_theta(leaf)) {
            block_[leaf] = empty_block();
            block_[leaf]->add_column(theta_column);
        }
        release_theta(v);
        for (std::int32_t c : block_[v]->child)  // a leaf that has got a leaf beside it is not extended any more
            if (c >= 0 && is_leaf(c) && block_[c] && !wants_theta(c)) block_[c].reset();
        return leaf;
    }

    /// The root's own classifier, made when the first row without labels comes: until then it has seen what theta has
    /// seen.
    void open_gate() {
        gate_ = std::make_unique<OnlineBlock>(block_[root]->with_column(theta_of(root), root));
        release_theta(root);
    }

    // --- a tree that is given
    // -----------------------------------------------------------------------------------------

    /// Starts with a whole tree instead of a bare root; its classifiers have learned nothing.
    void adopt(const TreeView& tree) {
        parent_.assign(tree.parent.begin(), tree.parent.end());
        label_.assign(tree.label.begin(), tree.label.end());
        rebuild_shape();
        block_.resize(n_nodes());
        for (int v = 0; v < n_nodes(); ++v) {
            if (is_leaf(v) && !wants_theta(v) && !(v == root && is_gate_pending())) continue;
            block_[v] = empty_block();
            if (wants_theta(v) || (v == root && is_gate_pending())) block_[v]->add_column(theta_column);
        }
        for (int v = 1; v < n_nodes(); ++v) column_[v] = block_[parent_[v]]->add_column(v);
    }

    /// Restores a stored tree; the columns of the blocks say which node they belong to.
    void restore(std::vector<std::int32_t> parent, std::vector<std::int32_t> label,
                 std::vector<std::unique_ptr<OnlineBlock>> blocks, std::unique_ptr<OnlineBlock> gate) {
        parent_ = std::move(parent);
        label_ = std::move(label);
        rebuild_shape();
        block_ = std::move(blocks);
        gate_ = std::move(gate);
        std::vector<bool> has_column(n_nodes());
        for (int v = 0; v < n_nodes(); ++v) {
            if (!block_[v]) {
                if (!is_leaf(v))
                    throw std::invalid_argument("online model: inner node " + std::to_string(v) + " has no block");
                if (wants_theta(v))
                    throw std::invalid_argument("online model: leaf " + std::to_string(v) + " lacks theta");
                continue;
            }
            for (int c = 0; c < block_[v]->n_columns(); ++c) {
                const std::int32_t child = block_[v]->child[c];
                if (child < 0) continue;
                if (child >= n_nodes() || parent_[child] != v || has_column[child])
                    throw std::invalid_argument("online model: a column of node " + std::to_string(v) +
                                                " belongs to no child");
                has_column[child] = true;
                column_[child] = c;
            }
            if (wants_theta(v) && block_[v]->theta() < 0)
                throw std::invalid_argument("online model: node " + std::to_string(v) + " lacks theta");
            if (is_leaf(v) && block_[v]->n_columns() == 0) block_[v].reset();
        }
        for (int v = 1; v < n_nodes(); ++v)
            if (!has_column[v])
                throw std::invalid_argument("online model: node " + std::to_string(v) + " has no column");
        if (gate_ && !may_have_empty_rows_)
            throw std::invalid_argument("online model: a root that is certain has a classifier");
        if (is_gate_pending() && (!block_[root] || block_[root]->theta() < 0))
            throw std::invalid_argument("online model: the root lacks theta");
    }

    std::unique_ptr<OnlineBlock> empty_block() const { return std::make_unique<OnlineBlock>(rule_); }

    /// Whether a policy may extend the tree at this node.
    bool wants_theta(int v) const {
        switch (growth_.theta) {
            case GrowthSettings::Theta::nowhere: return false;
            case GrowthSettings::Theta::everywhere: return true;
            case GrowthSettings::Theta::leaves: return n_children_[v] == 0;
            case GrowthSettings::Theta::pre_leaves: break;
        }
        if (n_children_[v] > 0) return is_pre_leaf(v) || n_children_[v] < growth_.arity;
        const std::int32_t p = parent_[v];
        return p < 0 || n_leaf_children_[p] == 1 || !is_pre_leaf(p);
    }

private:
    /// The gate will be copied from the root's theta.
    bool is_gate_pending() const { return may_have_empty_rows_ && !gate_; }

    int theta_of(int v) const {
        const int theta = block_[v] ? block_[v]->theta() : -1;
        if (theta < 0)
            throw std::invalid_argument("node " + std::to_string(v) +
                                        " cannot be extended: it is full, or its auxiliary classifier is gone");
        return theta;
    }

    void release_theta(int v) {
        if (wants_theta(v) || (v == root && is_gate_pending())) return;
        const std::int32_t moved = block_[v]->drop_theta();
        if (block_[v]->n_columns() == 0) block_[v].reset();  // a leaf that is never extended has nothing to learn
        if (moved >= 0)
            column_[moved] =
                static_cast<std::int32_t>(std::ranges::find(block_[v]->child, moved) - block_[v]->child.begin());
    }

    int new_node(std::int32_t parent, std::int32_t label) {
        const int node = std::atomic_ref(n_nodes_).fetch_add(1);
        if (static_cast<std::size_t>(node) >= parent_.size())
            resize_nodes(static_cast<std::size_t>(node) + 1);  // never among several threads
        parent_[node] = parent;
        label_[node] = label;
        return node;
    }

    void resize_nodes(std::size_t size) {
        parent_.resize(size, -1);
        label_.resize(size, -1);
        column_.resize(size, -1);
        n_leaves_.resize(size, 0);
        n_children_.resize(size, 0);
        n_leaf_children_.resize(size, 0);
        block_.resize(size);
    }

    void set_leaf(std::int32_t label, std::int32_t node) {
        reserve_labels(static_cast<std::int64_t>(label) + 1);
        leaf_of_[label] = node;
    }

    void rebuild_shape() {
        const int n = n_nodes_ = static_cast<int>(parent_.size());
        if (n == 0 || static_cast<int>(label_.size()) != n || parent_[root] != -1)
            throw std::invalid_argument("online model: its tree has no root");
        column_.assign(n, -1);
        n_leaves_.assign(n, 0);
        n_children_.assign(n, 0);
        n_leaf_children_.assign(n, 0);
        block_.clear();
        block_.resize(n);
        leaf_of_.clear();
        for (int v = 1; v < n; ++v) {
            if (parent_[v] < 0 || parent_[v] >= n || is_leaf(parent_[v]))
                throw std::invalid_argument("online model: node " + std::to_string(v) + " has no parent");
            ++n_children_[parent_[v]];
            n_leaf_children_[parent_[v]] += is_leaf(v);
        }
        for (int v = 0; v < n; ++v) {
            if (!is_leaf(v)) {
                if (n_children_[v] == 0 && n > 1)
                    throw std::invalid_argument("online model: inner node " + std::to_string(v) + " has no child");
                continue;
            }
            if (leaf(label_[v]) >= 0)
                throw std::invalid_argument("online model: two leaves have label " + std::to_string(label_[v]));
            set_leaf(label_[v], v);
            n_leaves_[v] = 1;
        }
        // From the leaves up, a node when all its children are counted; nodes on a cycle never are.
        std::vector<std::int32_t> n_uncounted = n_children_, counted;
        for (int v = 0; v < n; ++v)
            if (n_children_[v] == 0) counted.push_back(v);
        for (std::size_t k = 0; k < counted.size(); ++k) {
            const std::int32_t p = parent_[counted[k]];
            if (p < 0) continue;
            n_leaves_[p] += n_leaves_[counted[k]];
            if (--n_uncounted[p] == 0) counted.push_back(p);
        }
        if (std::ssize(counted) != n) throw std::invalid_argument("online model: its tree has a cycle");
    }

    GrowthSettings growth_;
    StepRule rule_;
    bool may_have_empty_rows_;
    // Per node, with room for more than there are.
    int n_nodes_ = 0;
    std::vector<std::int32_t> parent_, label_, column_, n_leaves_, n_children_, n_leaf_children_, leaf_of_;
    std::vector<std::unique_ptr<OnlineBlock>> block_;
    std::unique_ptr<OnlineBlock> gate_;
};

}  // namespace ramify
