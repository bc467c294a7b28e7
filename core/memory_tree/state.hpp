/// A memory tree as flat arrays, and back: everything that decides what it will answer and learn.
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

#include "base/flat_arrays.hpp"
#include "memory_tree/tree.hpp"

namespace ramify {

/// Weights of some linear classifiers, one after the other, each in order of feature.
template <template <class> class Array>
struct ClassifierArrays {
    Array<std::int64_t> begin;  ///< one more than there are classifiers
    Array<float> bias;          ///< weight and AdaGrad's sum of each
    Array<std::uint32_t> feature;
    Array<float> weight, sum;
};

template <template <class> class Array>
struct MemoryArrays {
    Array<std::uint32_t> feature;  ///< in order of their numbers
    Array<float> scorer_weight, scorer_sum;
    Array<float> scalars;             ///< the scorer's sharpness with its sum, then what the labels' classifiers share
    Array<std::int32_t> left, right;  ///< nodes breadth first, -1 in leaves
    ClassifierArrays<Array> router;   ///< of inner nodes, in their order
    ClassifierArrays<Array> rest;     ///< of labels
    Array<std::int64_t> x_begin, y_begin;
    Array<std::uint32_t> x_feature;
    Array<float> x_value;
    Array<std::int32_t> y_label;
    Array<std::uint32_t> place;  ///< of an example among those with each of its labels
    Array<float> weight, use;
    Array<std::uint64_t> arrival;
    Array<std::int32_t> leaf;
    Array<std::uint32_t> place_in_leaf;
    Array<std::uint64_t> counts;  ///< learned, drawn, forgotten
};

template <template <class> class Array, class Work>
void for_each_array(MemoryArrays<Array>& a, Work&& work) {
    work("feature", a.feature);
    work("scorer_weight", a.scorer_weight);
    work("scorer_sum", a.scorer_sum);
    work("scalars", a.scalars);
    work("left", a.left);
    work("right", a.right);
    auto classifiers = [&](const std::string& name, auto& c) {
        work((name + "_begin").c_str(), c.begin);
        work((name + "_bias").c_str(), c.bias);
        work((name + "_feature").c_str(), c.feature);
        work((name + "_weight").c_str(), c.weight);
        work((name + "_sum").c_str(), c.sum);
    };
    classifiers("router", a.router);
    classifiers("rest", a.rest);
    work("x_begin", a.x_begin);
    work("x_feature", a.x_feature);
    work("x_value", a.x_value);
    work("y_begin", a.y_begin);
    work("y_label", a.y_label);
    work("place", a.place);
    work("weight", a.weight);
    work("use", a.use);
    work("arrival", a.arrival);
    work("leaf", a.leaf);
    work("place_in_leaf", a.place_in_leaf);
    work("counts", a.counts);
}

struct MemoryState {
    using Owned = MemoryArrays<OwnedArray>;
    using Viewed = MemoryArrays<ArrayView>;

    /// Node slots breadth first.
    static std::vector<std::int32_t> breadth_first(const MemoryTree& tree) {
        std::vector<std::int32_t> order{tree.root()};
        for (std::size_t i = 0; i < order.size(); ++i)
            if (const MemoryNode& v = tree.node(order[i]); !v.is_leaf()) order.insert(order.end(), {v.left, v.right});
        return order;
    }

    static Owned to_arrays(const MemoryTree& tree) {
        Owned out;
        out.feature.assign(tree.features().features().begin(), tree.features().features().end());
        out.scorer_weight = tree.scorer().weights();
        out.scorer_sum = tree.scorer().sums();
        out.scalars = {tree.scorer().log_sharpness(), tree.scorer().log_sharpness_sum()};
        for (float v : tree.one_against_rest().shared()) out.scalars.push_back(v);
        const std::vector<std::int32_t> order = breadth_first(tree);
        std::vector<std::int32_t> number(tree.n_node_slots(), -1);
        for (std::size_t i = 0; i < order.size(); ++i) number[order[i]] = static_cast<std::int32_t>(i);
        out.router.begin = {0};
        for (std::int32_t slot : order) {
            const MemoryNode& v = tree.node(slot);
            out.left.push_back(v.is_leaf() ? -1 : number[v.left]);
            out.right.push_back(v.is_leaf() ? -1 : number[v.right]);
            if (!v.is_leaf()) append(*v.router, out.router);
        }
        out.rest.begin = {0};
        for (const SparseLogistic& c : tree.one_against_rest().classifiers()) append(c, out.rest);
        out.x_begin = out.y_begin = {0};
        for (std::uint32_t slot = 0; slot < tree.store().size(); ++slot) {
            const StoredExample& e = tree.store()[slot];
            for (const Entry& entry : e.x) {
                out.x_feature.push_back(entry.feature);
                out.x_value.push_back(entry.value);
            }
            out.x_begin.push_back(std::ssize(out.x_feature));
            out.y_label.insert(out.y_label.end(), e.labels.begin(), e.labels.end());
            out.y_begin.push_back(std::ssize(out.y_label));
            out.place.insert(out.place.end(), e.place.begin(), e.place.end());
            out.weight.push_back(e.weight);
            out.use.push_back(e.use);
            out.arrival.push_back(e.arrival);
            out.leaf.push_back(number[e.leaf]);
            out.place_in_leaf.push_back(e.place_in_leaf);
        }
        out.counts = {tree.n_learned(), tree.n_drawn(), tree.n_forgotten()};
        return out;
    }

    /// Fills a new tree. Rejects arrays that no tree could have written.
    static void from_arrays(const Viewed& in, std::int64_t n_labels, MemoryTree& tree) {
        const std::size_t n_features = in.feature.size();
        need(in.scorer_weight.size() == n_features && in.scorer_sum.size() == n_features && in.scalars.size() == 6 &&
                 in.counts.size() == 3,
             "sizes differ");
        for (auto values : {in.scorer_weight, in.scalars, in.weight, in.use, in.x_value}) need_finite(values);
        need_sums(in.scorer_sum);
        need(in.scalars[1] >= 0 && in.scalars[3] >= 0 && in.scalars[5] >= 0 && std::abs(in.scalars[0]) <= 10,
             "a shared weight is out of range");
        tree.features_.assign(in.feature);
        tree.scorer_.restore(in.scorer_weight, in.scorer_sum, in.scalars[0], in.scalars[1]);
        tree.one_against_rest_.restore_shared(in.scalars.subspan(2));
        restore_nodes(in, n_features, tree);
        restore_rest(in, n_features, n_labels, tree);
        restore_examples(in, n_features, n_labels, tree);
        tree.n_learned_ = in.counts[0];
        tree.n_drawn_ = in.counts[1];
        tree.n_forgotten_ = in.counts[2];
    }

private:
    static void need(bool is_good, const char* otherwise) {
        if (!is_good)
            throw std::invalid_argument(std::string("the memory tree's arrays are inconsistent: ") + otherwise);
    }
    static void need_finite(std::span<const float> values) {
        for (float v : values) need(std::isfinite(v), "a number is NaN or infinite");
    }
    /// Sums of squares only grow: infinite ones stop a weight for good, and nothing else.
    static void need_sums(std::span<const float> values) {
        for (float v : values) need(v >= 0, "a sum of squares is negative or NaN");
    }
    static void need_begin(std::span<const std::int64_t> begin, std::size_t n_parts, std::size_t n_items) {
        need(begin.size() == n_parts + 1 && begin.front() == 0 && begin.back() == static_cast<std::int64_t>(n_items),
             "row pointers do not match");
        for (std::size_t i = 0; i < n_parts; ++i) need(begin[i] <= begin[i + 1], "row pointers decrease");
    }

    static void append(const SparseLogistic& classifier, ClassifierArrays<OwnedArray>& out) {
        out.bias.insert(out.bias.end(), {classifier.bias().weight, classifier.bias().sum});
        for (const auto& [feature, stored] : classifier.weights().sorted()) {
            out.feature.push_back(feature);
            out.weight.push_back(stored.weight);
            out.sum.push_back(stored.sum);
        }
        out.begin.push_back(std::ssize(out.feature));
    }

    static void check_classifiers(const ClassifierArrays<ArrayView>& in, std::size_t n_classifiers,
                                  std::size_t n_features) {
        need_begin(in.begin, n_classifiers, in.feature.size());
        need(in.bias.size() == 2 * n_classifiers && in.weight.size() == in.feature.size() &&
                 in.sum.size() == in.feature.size(),
             "classifiers differ in size");
        need_finite(in.weight);
        need_sums(in.sum);
        for (std::size_t i = 0; i < n_classifiers; ++i) {
            need(std::isfinite(in.bias[2 * i]) && in.bias[2 * i + 1] >= 0, "a bias is out of range");
            for (std::int64_t k = in.begin[i]; k < in.begin[i + 1]; ++k)
                need(in.feature[k] < n_features && (k == in.begin[i] || in.feature[k - 1] < in.feature[k]),
                     "features of a classifier are out of order");
        }
    }
    static void restore_classifier(const ClassifierArrays<ArrayView>& in, std::size_t i, SparseLogistic& out) {
        std::vector<SparseLogistic::Weights::Slot> weights;
        for (std::int64_t k = in.begin[i]; k < in.begin[i + 1]; ++k)
            weights.push_back({in.feature[k], {in.weight[k], in.sum[k]}});
        out.restore(weights, {in.bias[2 * i], in.bias[2 * i + 1]});
    }

    static void restore_nodes(const Viewed& in, std::size_t n_features, MemoryTree& tree) {
        const std::size_t n_nodes = in.left.size();
        need(n_nodes >= 1 && in.right.size() == n_nodes && n_nodes < std::numeric_limits<std::int32_t>::max(),
             "there are no nodes");
        std::vector<MemoryNode> nodes(n_nodes);
        std::int32_t next = 1;
        std::size_t n_inner = 0;
        for (std::size_t v = 0; v < n_nodes; ++v) {
            if (in.left[v] == -1 && in.right[v] == -1) continue;
            // Breadth first, children are numbered in the order of their parents: no cycle can be written.
            need(in.left[v] == next && in.right[v] == next + 1 && in.left[v] > static_cast<std::int64_t>(v) &&
                     in.right[v] < static_cast<std::int64_t>(n_nodes),
                 "nodes are out of order");
            nodes[v].left = next++;
            nodes[v].right = next++;
            nodes[nodes[v].left].parent = nodes[nodes[v].right].parent = static_cast<std::int32_t>(v);
            ++n_inner;
        }
        need(next == static_cast<std::int64_t>(n_nodes), "nodes have no parent");
        check_classifiers(in.router, n_inner, n_features);
        std::size_t i = 0;
        for (MemoryNode& v : nodes)
            if (!v.is_leaf()) {
                v.router = std::make_unique<SparseLogistic>();
                restore_classifier(in.router, i++, *v.router);
            }
        tree.nodes_ = std::move(nodes);
        tree.root_ = 0;
    }

    static void restore_rest(const Viewed& in, std::size_t n_features, std::int64_t n_labels, MemoryTree& tree) {
        need(!in.rest.begin.empty() && static_cast<std::int64_t>(in.rest.begin.size()) - 1 <= n_labels,
             "there are more classifiers than labels");
        const std::size_t n = in.rest.begin.size() - 1;
        check_classifiers(in.rest, n, n_features);
        tree.one_against_rest_.classifiers().resize(n);
        for (std::size_t i = 0; i < n; ++i) restore_classifier(in.rest, i, tree.one_against_rest_.classifiers()[i]);
    }

    static void restore_examples(const Viewed& in, std::size_t n_features, std::int64_t n_labels, MemoryTree& tree) {
        const std::size_t n = in.weight.size();
        need(n < MemoryStore::none && in.use.size() == n && in.arrival.size() == n && in.leaf.size() == n &&
                 in.place_in_leaf.size() == n,
             "examples differ in number");
        need_begin(in.x_begin, n, in.x_feature.size());
        need_begin(in.y_begin, n, in.y_label.size());
        need(in.x_value.size() == in.x_feature.size() && in.place.size() == in.y_label.size(),
             "examples differ in size");
        need(tree.settings_.max_examples == 0 || n <= tree.settings_.max_examples,
             "there are more examples than max_examples");
        std::vector<std::uint32_t> n_in_leaf(tree.nodes_.size(), 0);
        for (std::size_t i = 0; i < n; ++i) {
            need(in.weight[i] > 0, "an example has no weight");
            need(in.arrival[i] <= in.counts[0] && in.counts[0] < std::uint64_t{1} << 62,
                 "an example arrived later than the last row");
            need(in.leaf[i] >= 0 && in.leaf[i] < std::ssize(tree.nodes_) && tree.nodes_[in.leaf[i]].is_leaf(),
                 "an example is in no leaf");
            ++n_in_leaf[in.leaf[i]];
        }
        for (std::size_t v = 0; v < tree.nodes_.size(); ++v) {
            if (!tree.nodes_[v].is_leaf()) continue;
            need(n_in_leaf[v] > 0 || tree.nodes_.size() == 1, "a leaf is empty");
            tree.nodes_[v].examples.assign(n_in_leaf[v], MemoryStore::none);
            for (std::int32_t u = static_cast<std::int32_t>(v); u >= 0; u = tree.nodes_[u].parent)
                tree.nodes_[u].n += n_in_leaf[v];
        }
        for (std::size_t i = 0; i < n; ++i) {
            StoredExample e;
            for (std::int64_t k = in.x_begin[i]; k < in.x_begin[i + 1]; ++k) {
                need(in.x_feature[k] < n_features, "an example has an unknown feature");
                e.x.push_back({in.x_feature[k], in.x_value[k]});
            }
            for (std::int64_t k = in.y_begin[i]; k < in.y_begin[i + 1]; ++k) {
                need(in.y_label[k] >= 0 && in.y_label[k] < n_labels &&
                         (k == in.y_begin[i] || in.y_label[k - 1] < in.y_label[k]),
                     "labels are out of range or order");
                e.labels.push_back(in.y_label[k]);
            }
            e.weight = in.weight[i];
            e.use = in.use[i];
            e.arrival = in.arrival[i];
            e.leaf = in.leaf[i];
            e.place_in_leaf = in.place_in_leaf[i];
            auto& list = tree.nodes_[e.leaf].examples;
            need(e.place_in_leaf < list.size() && list[e.place_in_leaf] == MemoryStore::none,
                 "two examples have one place");
            list[e.place_in_leaf] = static_cast<std::uint32_t>(i);
            if (tree.keeps_order())
                need(tree.by_arrival_.emplace(e.arrival, static_cast<std::uint32_t>(i)).second,
                     "two examples arrived at once");
            tree.store_.add(std::move(e));
        }
        need(tree.store_.restore_places(in.place), "places among the examples of a label do not fit");
    }
};

}  // namespace ramify
