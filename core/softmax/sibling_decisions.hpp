/// What is decided at the nodes of a label tree, and by which rows of the output table.
///
/// Hierarchical softmax: exactly one child of a node is right. Two children share one row, whose sigmoid is the second
/// child's probability (Morin and Bengio 2005; fastText); more have a row each and a softmax. Probabilistic label tree:
/// any number of children may be right, so each node has a row and a sigmoid of its own; the root's says whether there
/// is any label at all. An only child is right whenever its parent is, and needs no row.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <span>
#include <vector>

#include "kernels/kernels.hpp"
#include "trees/label_tree.hpp"

namespace ramify {

/// Probabilities from scores, in place, in the largest score's frame so that nothing overflows.
inline void softmax(std::span<float> scores) {
    float largest = scores[0];
    for (float s : scores) largest = std::max(largest, s);
    float total = 0;
    for (float& s : scores) total += s = std::exp(s - largest);
    // NaN scores, as a damaged model may have, carry no information.
    const bool is_sound = total >= 1.0f;
    for (float& s : scores) s = is_sound ? s / total : 1.0f / static_cast<float>(scores.size());
}

class SiblingDecisions {
public:
    TreeView tree;
    bool is_plt = false;

    SiblingDecisions() = default;
    SiblingDecisions(const TreeView& of_tree, bool plt) : tree(of_tree), is_plt(plt) {
        const auto n = static_cast<std::size_t>(tree.n_nodes());
        if (is_plt) {
            n_rows_ = static_cast<std::uint32_t>(n);
            return;
        }
        first_row_.resize(n);
        for (std::size_t v = 0; v < n; ++v) {
            first_row_[v] = n_rows_;
            n_rows_ += n_decided(static_cast<std::int32_t>(v));
        }
    }

    std::uint32_t n_rows() const { return n_rows_; }

    /// Rows that decide among the children of a node.
    std::uint32_t n_decided(std::int32_t node) const {
        const auto n = static_cast<std::uint32_t>(tree.n_children[node]);
        if (n <= 1) return 0;
        return !is_plt && n == 2 ? 1 : n;
    }
    std::uint32_t first_row(std::int32_t node) const {
        return is_plt ? static_cast<std::uint32_t>(tree.first_child[node]) : first_row_[static_cast<std::size_t>(node)];
    }
    bool is_softmax(std::int32_t node) const { return !is_plt && tree.n_children[node] > 2; }

    /// From the scores of a node's rows to its children's probabilities; room for both in `values`.
    void to_probabilities(std::int32_t node, float* values) const {
        const int n = tree.n_children[node];
        if (n == 1) {
            values[0] = 1.0f;
        } else if (is_softmax(node)) {
            softmax({values, static_cast<std::size_t>(n)});
        } else if (is_plt) {
            kernels().to_probabilities(values, n);
        } else {
            values[1] = values[0];
            values[0] = -values[0];
            kernels().to_probabilities(values, 2);
        }
    }

private:
    std::vector<std::uint32_t> first_row_;
    std::uint32_t n_rows_ = 0;
};

/// One example's targets: rows of the output table and their desired outputs; softmaxes are ranges of rows.
class ExampleDecisions {
public:
    std::vector<std::uint32_t> row;
    std::vector<float> target;

    explicit ExampleDecisions(const SiblingDecisions& decisions)
        : decisions_(&decisions), stamp_(decisions.is_plt ? static_cast<std::size_t>(decisions.tree.n_nodes()) : 0) {}

    /// Hierarchical softmax: the way to one leaf.
    void collect_path(std::int32_t leaf) {
        clear();
        const TreeView& tree = decisions_->tree;
        for (std::int32_t v = leaf; v > 0; v = tree.parent[v]) {
            const std::int32_t p = tree.parent[v];
            const std::uint32_t n = decisions_->n_decided(p), first = decisions_->first_row(p);
            const auto place = static_cast<std::uint32_t>(v - tree.first_child[p]);
            if (n > 1) softmaxes_.push_back({static_cast<std::uint32_t>(row.size()), n});
            for (std::uint32_t k = 0; k < n; ++k) {
                row.push_back(first + k);
                target.push_back(n == 1 ? static_cast<float>(place == 1) : static_cast<float>(place == k));
            }
        }
    }

    /// Probabilistic label tree: the root, and all children of every node that has a label of the example below it.
    void collect_labels(std::span<const std::int32_t> leaves) {
        clear();
        if (++now_ == 0) {  // stamps would repeat
            std::ranges::fill(stamp_, 0);
            now_ = 1;
        }
        const TreeView& tree = decisions_->tree;
        row.push_back(0);
        target.push_back(leaves.empty() ? 0.0f : 1.0f);
        opened_.clear();
        for (std::int32_t leaf : leaves)
            for (std::int32_t v = leaf; v >= 0 && stamp_[v] != now_; v = tree.parent[v]) {
                stamp_[v] = now_;
                if (!tree.is_leaf(v)) opened_.push_back(v);
            }
        for (std::int32_t v : opened_) {
            const std::uint32_t n = decisions_->n_decided(v), first = decisions_->first_row(v);
            for (std::uint32_t k = 0; k < n; ++k) {
                row.push_back(first + k);
                target.push_back(static_cast<float>(stamp_[first + k] == now_));
            }
        }
    }

    /// From scores to (target - probability) * factor, in place: the gradient of the log-likelihood.
    void to_gradient(std::span<float> scores, float factor) const {
        const std::size_t n = target.size();
        if (softmaxes_.empty()) {
            kernels().to_probabilities(scores.data(), static_cast<int>(n));
        } else {
            std::size_t k = 0;
            for (const auto& [begin, length] : softmaxes_) {
                kernels().to_probabilities(scores.data() + k, static_cast<int>(begin - k));
                softmax({scores.data() + begin, length});
                k = begin + length;
            }
            kernels().to_probabilities(scores.data() + k, static_cast<int>(n - k));
        }
        for (std::size_t k = 0; k < n; ++k) scores[k] = (target[k] - scores[k]) * factor;
    }

private:
    struct Range {
        std::uint32_t begin, length;
    };
    void clear() {
        row.clear();
        target.clear();
        softmaxes_.clear();
    }

    const SiblingDecisions* decisions_;
    std::vector<Range> softmaxes_;
    std::vector<std::uint32_t> stamp_;  ///< per node: the last example that has a label below it
    std::vector<std::int32_t> opened_;
    std::uint32_t now_ = 0;
};

}  // namespace ramify
