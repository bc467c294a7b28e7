/// A LOMtree as flat arrays, to be saved and resumed exactly.
#pragma once

#include <cmath>
#include <cstdint>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

#include "lom_tree.hpp"

namespace ramify {

template <class T>
using LomVector = std::vector<T>;
template <class T>
using LomSpan = std::span<const T>;

/// Regressors one after the other; a regressor's dense columns, then those of its table in order of column.
template <template <class> class Array>
struct RegressorArrays {
    Array<std::int32_t> dense_width;
    Array<std::int64_t> slot_begin;
    Array<float> dense_weight, dense_sum;
    Array<std::uint32_t> slot_column;
    Array<float> slot_weight, slot_sum;
};

template <template <class> class Array>
struct LomArrays {
    Array<std::int64_t> totals;
    Array<std::int32_t> parent, left, right, n_recycled;
    Array<double> size, score, trained, reached;
    Array<std::int64_t> class_begin;
    Array<std::int32_t> class_label;
    Array<double> class_score, class_reached, class_trained;
    RegressorArrays<Array> regressors;
};

inline void append(const NodeRegressor& r, RegressorArrays<LomVector>& out) {
    if (out.slot_begin.empty()) out.slot_begin.push_back(0);
    out.dense_width.push_back(r.dense_width());
    out.dense_weight.insert(out.dense_weight.end(), r.dense_weight().begin(), r.dense_weight().end());
    out.dense_sum.insert(out.dense_sum.end(), r.dense_sum().begin(), r.dense_sum().end());
    std::vector<NodeRegressor::Slot> used;
    for (const auto& slot : r.slots())
        if (slot.column != NodeRegressor::none) used.push_back(slot);
    std::ranges::sort(used, {}, &NodeRegressor::Slot::column);
    for (const auto& slot : used) {
        out.slot_column.push_back(slot.column);
        out.slot_weight.push_back(slot.weight);
        out.slot_sum.push_back(slot.sum);
    }
    out.slot_begin.push_back(std::ssize(out.slot_column));
}

inline void check_lom(bool holds, const char* what) {
    if (!holds) throw std::invalid_argument(std::string("model arrays do not fit together: ") + what);
}

/// The regressors that were saved; throws std::invalid_argument where the arrays do not fit together.
inline std::vector<NodeRegressor> regressors_from(const RegressorArrays<LomSpan>& in, std::size_t n) {
    check_lom(in.dense_width.size() == n && in.slot_begin.size() == n + 1, "one entry a regressor is needed");
    check_lom(in.slot_begin.front() == 0 && in.slot_begin.back() == std::ssize(in.slot_column), "slot_begin");
    check_lom(in.slot_weight.size() == in.slot_column.size() && in.slot_sum.size() == in.slot_column.size(), "slots");
    check_lom(in.dense_sum.size() == in.dense_weight.size(), "dense_sum");
    auto is_sound = [](float weight, float sum) { return std::isfinite(weight) && std::isfinite(sum) && sum >= 0; };
    for (std::size_t i = 0; i < in.dense_weight.size(); ++i) check_lom(is_sound(in.dense_weight[i], in.dense_sum[i]), "dense weights");
    std::vector<NodeRegressor> out;
    std::size_t dense = 0;
    for (std::size_t i = 0; i < n; ++i) {
        const std::int32_t width = in.dense_width[i];
        check_lom(width >= 0 && width % regressor_lanes == 0 && static_cast<std::size_t>(width) <= in.dense_weight.size() - dense, "dense_width");
        check_lom(in.slot_begin[i] <= in.slot_begin[i + 1] && in.slot_begin[i + 1] <= std::ssize(in.slot_column), "slot_begin");
        NodeRegressor& r = out.emplace_back(width);
        r.restore_dense(in.dense_weight.subspan(dense, width), in.dense_sum.subspan(dense, width));
        dense += width;
        r.reserve(static_cast<std::size_t>(in.slot_begin[i + 1] - in.slot_begin[i]));
        for (std::int64_t k = in.slot_begin[i]; k < in.slot_begin[i + 1]; ++k) {
            check_lom(is_sound(in.slot_weight[k], in.slot_sum[k]), "slot weights");
            check_lom(in.slot_column[k] != NodeRegressor::none && r.restore({in.slot_column[k], in.slot_weight[k], in.slot_sum[k]}), "slot_column");
        }
    }
    check_lom(dense == in.dense_weight.size(), "dense weights are left over");
    return out;
}

inline LomArrays<LomVector> to_arrays(const LomTree& tree) {
    LomArrays<LomVector> out;
    const auto& t = tree.totals();
    out.totals = {t.n_examples, t.n_entries, t.width, t.n_swaps};
    out.class_begin.push_back(0);
    for (const LomNode& node : tree.nodes()) {
        out.parent.push_back(node.parent);
        out.left.push_back(node.left);
        out.right.push_back(node.right);
        out.n_recycled.push_back(node.n_recycled);
        out.size.push_back(node.size);
        out.score.push_back(node.score);
        out.trained.push_back(node.trained);
        out.reached.push_back(node.classes.total);
        for (const ClassCount& c : node.classes.counts()) {
            out.class_label.push_back(c.label);
            out.class_score.push_back(c.score);
            out.class_reached.push_back(c.reached);
            out.class_trained.push_back(c.trained);
        }
        out.class_begin.push_back(std::ssize(out.class_label));
        append(node.regressor, out.regressors);
    }
    return out;
}

/// Takes back what to_arrays gave; throws std::invalid_argument where the arrays do not fit together.
inline void from_arrays(const LomArrays<LomSpan>& in, std::int64_t n_labels, LomTree& tree) {
    const std::size_t n = in.parent.size();
    check_lom(n >= 1 && n % 2 == 1 && n < static_cast<std::size_t>(std::numeric_limits<std::int32_t>::max()), "parent");
    for (std::size_t size : {in.left.size(), in.right.size(), in.n_recycled.size(), in.size.size(), in.score.size(), in.trained.size(), in.reached.size()})
        check_lom(size == n, "one entry a node is needed");
    check_lom(in.totals.size() == 4, "totals");
    for (std::int64_t total : in.totals) check_lom(total >= 0, "totals");
    check_lom(in.totals[2] >= 1 && in.totals[2] <= std::int64_t{1} << 32, "totals");
    check_lom(in.class_begin.size() == n + 1 && in.class_begin.front() == 0 && in.class_begin.back() == std::ssize(in.class_label), "class_begin");
    for (std::size_t size : {in.class_score.size(), in.class_reached.size(), in.class_trained.size()}) check_lom(size == in.class_label.size(), "classes");
    std::vector<NodeRegressor> regressors = regressors_from(in.regressors, n);
    std::vector<LomNode> nodes(n);
    auto is_count = [](double count) { return std::isfinite(count) && count >= 0; };
    std::vector<bool> has_parent(n, false);
    for (std::size_t v = 0; v < n; ++v) {
        LomNode& node = nodes[v];
        node.parent = in.parent[v];
        node.left = in.left[v];
        node.right = in.right[v];
        node.n_recycled = in.n_recycled[v];
        node.size = in.size[v];
        node.score = in.score[v];
        node.trained = in.trained[v];
        check_lom(v == 0 ? node.parent == -1 : node.parent >= 0 && node.parent < std::ssize(nodes), "parent");
        if (node.left < 0) {
            check_lom(node.left == -1 && node.right == -1, "a node has two children or none");
        } else {
            for (std::int32_t child : {node.left, node.right}) {
                check_lom(child > 0 && child < std::ssize(nodes) && in.parent[child] == static_cast<std::int32_t>(v) && !has_parent[child], "children");
                has_parent[child] = true;
            }
        }
        check_lom(is_count(node.size) && is_count(node.trained) && std::isfinite(node.score) && node.n_recycled >= 0, "counts");
        check_lom(in.class_begin[v] <= in.class_begin[v + 1] && in.class_begin[v + 1] <= std::ssize(in.class_label), "class_begin");
        for (std::int64_t k = in.class_begin[v]; k < in.class_begin[v + 1]; ++k) {
            const std::int32_t label = in.class_label[k];
            check_lom(label >= 0 && label < n_labels && !node.classes.find(label), "class_label");
            check_lom(is_count(in.class_reached[k]) && in.class_reached[k] > 0 && is_count(in.class_trained[k]) && std::isfinite(in.class_score[k]), "classes");
            node.classes.add(label, in.class_reached[k]);
            node.classes.set_scores(label, in.class_score[k], in.class_trained[k]);
        }
        check_lom(is_count(in.reached[v]) && (in.reached[v] > 0) == (node.classes.size() > 0), "reached");
        node.classes.total = in.reached[v];  // as it was added up, example by example
        node.regressor = std::move(regressors[v]);
    }
    // Every node but the root is somebody's child, and from the root all are reached: so it is a tree.
    std::vector<std::int32_t> open{LomTree::root};
    std::size_t n_reached = 0;
    while (!open.empty()) {
        const LomNode& node = nodes[open.back()];
        open.pop_back();
        ++n_reached;
        if (!node.is_leaf()) open.insert(open.end(), {node.left, node.right});
    }
    check_lom(n_reached == n, "nodes that are not in the tree");
    tree.restore(std::move(nodes), {in.totals[0], in.totals[1], in.totals[2], in.totals[3]});
}

}  // namespace ramify
