/// A LOMtree as flat arrays, to be saved and resumed exactly.
#pragma once

#include <cmath>
#include <cstdint>
#include <span>
#include <vector>

#include "base/flat_arrays.hpp"
#include "lomtree/lom_tree.hpp"
#include "lomtree/regressor_state.hpp"

namespace ramify {

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

template <template <class> class Array, class Work>
void for_each_array(LomArrays<Array>& a, Work&& work) {
    work("totals", a.totals);
    work("parent", a.parent);
    work("left", a.left);
    work("right", a.right);
    work("n_recycled", a.n_recycled);
    work("size", a.size);
    work("score", a.score);
    work("trained", a.trained);
    work("reached", a.reached);
    work("class_begin", a.class_begin);
    work("class_label", a.class_label);
    work("class_score", a.class_score);
    work("class_reached", a.class_reached);
    work("class_trained", a.class_trained);
    for_each_array(a.regressors, work);
}

inline LomArrays<OwnedArray> to_arrays(const LomTree& tree) {
    LomArrays<OwnedArray> out;
    const auto& t = tree.totals();
    out.totals = {t.n_examples, t.n_entries, t.width, t.n_swaps};
    out.class_begin.push_back(0);
    out.regressors.slot_begin.push_back(0);
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

/// Restores what to_arrays returned; throws std::invalid_argument if the arrays are inconsistent.
inline void from_arrays(const LomArrays<ArrayView>& in, std::int64_t n_labels, LomTree& tree) {
    const std::size_t n = in.parent.size();
    check_arrays(n >= 1 && n % 2 == 1 && n < static_cast<std::size_t>(std::numeric_limits<std::int32_t>::max()),
                 "parent");
    for (std::size_t size : {in.left.size(), in.right.size(), in.n_recycled.size(), in.size.size(), in.score.size(),
                             in.trained.size(), in.reached.size()})
        check_arrays(size == n, "one entry a node is needed");
    check_arrays(in.totals.size() == 4, "totals");
    // Far below the largest number: learning goes on counting from them.
    for (std::int64_t total : in.totals) check_arrays(total >= 0 && total <= std::int64_t{1} << 62, "totals");
    check_arrays(in.totals[2] >= 1 && in.totals[2] <= std::int64_t{1} << 32, "totals");
    check_begin(in.class_begin, n, in.class_label.size(), "class_begin");
    for (std::size_t size : {in.class_score.size(), in.class_reached.size(), in.class_trained.size()})
        check_arrays(size == in.class_label.size(), "classes");
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
        check_arrays(v == 0 ? node.parent == -1 : node.parent >= 0 && node.parent < std::ssize(nodes), "parent");
        if (node.left < 0) {
            check_arrays(node.left == -1 && node.right == -1, "a node has two children or none");
        } else {
            for (std::int32_t child : {node.left, node.right}) {
                check_arrays(child > 0 && child < std::ssize(nodes) &&
                                 in.parent[child] == static_cast<std::int32_t>(v) && !has_parent[child],
                             "children");
                has_parent[child] = true;
            }
        }
        check_arrays(is_count(node.size) && is_count(node.trained) && std::isfinite(node.score) &&
                         node.n_recycled >= 0 && node.n_recycled <= 1 << 30,
                     "counts");
        for (std::int64_t k = in.class_begin[v]; k < in.class_begin[v + 1]; ++k) {
            const std::int32_t label = in.class_label[k];
            check_arrays(label >= 0 && label < n_labels && !node.classes.find(label), "class_label");
            check_arrays(is_count(in.class_reached[k]) && in.class_reached[k] > 0 && is_count(in.class_trained[k]) &&
                             std::isfinite(in.class_score[k]),
                         "classes");
            node.classes.add(label, in.class_reached[k]);
            node.classes.set_scores(label, in.class_score[k], in.class_trained[k]);
        }
        check_arrays(is_count(in.reached[v]) && (in.reached[v] > 0) == (node.classes.size() > 0), "reached");
        check_arrays(std::abs(in.reached[v] - node.classes.total) <= 1e-6 * in.reached[v],
                     "reached: it must be the sum over the classes");
        node.classes.total = in.reached[v];  // as it was added up, example by example
        node.regressor = std::move(regressors[v]);
    }
    // Every node but the root is a child, and all are reached from the root: so it is a tree.
    std::vector<std::int32_t> open{LomTree::root};
    std::size_t n_reached = 0;
    while (!open.empty()) {
        const LomNode& node = nodes[open.back()];
        open.pop_back();
        ++n_reached;
        if (!node.is_leaf()) open.insert(open.end(), {node.left, node.right});
    }
    check_arrays(n_reached == n, "nodes that are not in the tree");
    tree.restore(std::move(nodes), {in.totals[0], in.totals[1], in.totals[2], in.totals[3]});
}

}  // namespace ramify
