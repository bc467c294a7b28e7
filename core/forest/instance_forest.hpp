/// Trees whose inner nodes send a row to one of two children and whose leaves hold label distributions: the flat arrays
/// of a whole forest, and the answers that it gives.
#pragma once

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "base/flat_arrays.hpp"
#include "base/label_query.hpp"
#include "base/sparse_rows.hpp"
#include "kernels/kernels.hpp"

namespace ramify {

/// Node v of a tree sends a row to `child[v]` + 1 if its score is above zero, else to `child[v]`; in a leaf `child` is
/// -1. Children come after their parent, trees one after the other. Vectors while growing, views of numpy arrays
/// afterwards.
template <template <class> class Array>
struct ForestArrays {
    Array<std::int64_t> tree_begin;      ///< n_trees + 1: a tree's nodes, the root first
    Array<std::int32_t> child;           ///< per node
    Array<float> mass;                   ///< per node: the weight of the training rows that came there
    Array<std::int64_t> weight_begin;    ///< n_nodes + 1
    Array<std::int32_t> weight_feature;  ///< rising within a node; the bias feature is the last one
    Array<float> weight;
    Array<std::int64_t> label_begin;  ///< n_nodes + 1
    Array<std::int32_t> label;        ///< rising within a leaf
    Array<float> probability;
};
using ForestStorage = ForestArrays<OwnedArray>;

template <template <class> class Array, class Work>
void for_each_array(ForestArrays<Array>& a, Work&& work) {
    work("tree_begin", a.tree_begin);
    work("child", a.child);
    work("mass", a.mass);
    work("weight_begin", a.weight_begin);
    work("weight_feature", a.weight_feature);
    work("weight", a.weight);
    work("label_begin", a.label_begin);
    work("label", a.label);
    work("probability", a.probability);
}

/// A row that is asked about: its features in order, and the same by feature number, for nodes of few weights.
struct ForestRow {
    std::span<const Entry> x;
    const float* dense;
};

/// Space for answering: arrays as long as there are features and labels, zero between two questions.
struct ForestScratch {
    std::vector<Entry> entries;
    std::vector<float> dense;  ///< a row by feature
    std::vector<float> total;  ///< by label
    std::vector<std::uint8_t> is_touched;
    std::vector<std::int32_t> touched;
    std::vector<LabelProbability> found;
    std::int64_t n_products = 0;
};

/// Read-only view of the arrays, checked once so that no damaged file can lead outside them.
struct InstanceForest : ForestArrays<ArrayView> {
    FeatureSettings features;
    std::int64_t n_labels = 0;

    std::int64_t n_trees() const { return static_cast<std::int64_t>(tree_begin.size()) - 1; }
    std::int64_t n_nodes() const { return static_cast<std::int64_t>(child.size()); }

    void attach() {
        if (tree_begin.size() < 2 || tree_begin.front() != 0 || tree_begin.back() != n_nodes())
            refuse_arrays("tree_begin");
        for (std::size_t t = 1; t < tree_begin.size(); ++t)
            if (tree_begin[t] <= tree_begin[t - 1]) refuse_arrays("tree_begin");
        if (mass.size() != child.size()) refuse_arrays("mass");
        for (float m : mass)
            if (!(m > 0) || !std::isfinite(m)) refuse_arrays("mass");
        check_begin(weight_begin, child.size(), weight.size(), "weight_begin");
        check_begin(label_begin, child.size(), label.size(), "label_begin");
        if (weight_feature.size() != weight.size()) refuse_arrays("weight_feature");
        if (probability.size() != label.size()) refuse_arrays("probability");
        for (std::int64_t t = 0; t < n_trees(); ++t)
            for (std::int64_t v = tree_begin[t]; v < tree_begin[t + 1]; ++v) check_node(v, tree_begin[t + 1]);
        for (float w : weight)
            if (!std::isfinite(w)) refuse_arrays("weight");
        for (float p : probability)
            if (!(p > 0 && p <= 1)) refuse_arrays("probability");
        index_wide_nodes();
    }

    void resize(ForestScratch& s) const {
        s.dense.resize(static_cast<std::size_t>(features.n_columns()), 0.0f);
        s.total.resize(static_cast<std::size_t>(n_labels), 0.0f);
        s.is_touched.resize(static_cast<std::size_t>(n_labels), 0);
    }

    /// The leaf that a row reaches.
    std::int64_t leaf(std::int64_t tree, const ForestRow& row, ForestScratch& s) const {
        std::int64_t v = tree_begin[tree];
        while (child[v] >= 0) {
            v = child[v] + (score(v, row) > 0);
            ++s.n_products;
        }
        return v;
    }

    /// From the row's side or from the node's, whichever is shorter.
    double score(std::int64_t v, const ForestRow& row) const {
        const std::int64_t first = weight_begin[v], n = weight_begin[v + 1] - first;
        if (index_of_[v] < 0 || static_cast<std::int64_t>(row.x.size()) >= n)
            return kernels().dot_list(weight_feature.data() + first, weight.data() + first, n, row.dense);
        const BitmapWord* bitmap = bitmap_.data() + static_cast<std::size_t>(index_of_[v]) * n_words();
        return kernels().dot_bitmap(row.x.data(), static_cast<int>(row.x.size()), bitmap, weight.data() + first);
    }

    static void scatter(std::span<const Entry> x, float* dense) {
        for (const Entry& e : x) dense[e.feature] = e.value;
    }
    static void clear(std::span<const Entry> x, float* dense) {
        for (const Entry& e : x) dense[e.feature] = 0.0f;
    }

    /// Puts a row into the scratch, from where `clear` takes it again.
    ForestRow place(const RowView& row, ForestScratch& s) const {
        if (s.dense.size() < static_cast<std::size_t>(features.n_columns()))
            s.dense.resize(static_cast<std::size_t>(features.n_columns()), 0.0f);
        s.entries.clear();
        features.append(row.indices, row.values, s.entries);
        scatter(s.entries, s.dense.data());
        return {s.entries, s.dense.data()};
    }

    /// Mean of the distributions of these leaves, into s.total for the labels in s.touched.
    void average(std::span<const std::int32_t> leaves, ForestScratch& s) const {
        for (std::int32_t v : leaves)
            for (std::int64_t k = label_begin[v]; k < label_begin[v + 1]; ++k) {
                const std::int32_t l = label[k];
                if (!s.is_touched[l]) {
                    s.is_touched[l] = 1;
                    s.touched.push_back(l);
                }
                s.total[l] += probability[k];
            }
        const auto n = static_cast<float>(leaves.size());
        for (std::int32_t l : s.touched) s.total[l] /= n;
    }

    static void forget(ForestScratch& s) {
        for (std::int32_t l : s.touched) {
            s.total[l] = 0;
            s.is_touched[l] = 0;
        }
        s.touched.clear();
    }

    /// What the query asks for, best first, into s.found; after `average`.
    void choose(const LabelQuery& query, ForestScratch& s) const {
        s.found.clear();
        for (std::int32_t l : s.touched)
            if (s.total[l] >= query.needed(l)) s.found.push_back({l, s.total[l]});
        query.choose(s.found, n_labels, [&](std::int32_t l) { return s.is_touched[l] != 0; });
    }

private:
    std::size_t n_words() const { return static_cast<std::size_t>(features.n_columns() + 63) / 64; }

    /// Nodes of many weights, those near the roots, get a bitmap of their features, so that a row need not go through
    /// all.
    void index_wide_nodes() {
        // From here on the bitmap takes no more than four times the space of the weights themselves.
        const std::int64_t wide = std::max<std::int64_t>(32, features.n_columns() / 128);
        index_of_.assign(child.size(), -1);
        bitmap_.clear();
        std::int32_t n_indexed = 0;
        for (std::size_t v = 0; v < child.size(); ++v) {
            if (weight_begin[v + 1] - weight_begin[v] < wide) continue;
            index_of_[v] = n_indexed++;
            const std::size_t base = bitmap_.size();
            bitmap_.resize(base + n_words());
            for (std::int64_t k = weight_begin[v]; k < weight_begin[v + 1]; ++k)
                bitmap_[base + weight_feature[k] / 64].bits |= 1ull << (weight_feature[k] % 64);
            for (std::size_t w = base + 1; w < bitmap_.size(); ++w)
                bitmap_[w].before =
                    bitmap_[w - 1].before + static_cast<std::uint64_t>(std::popcount(bitmap_[w - 1].bits));
        }
    }

    std::vector<std::int32_t> index_of_;  // per node, -1 if it has no bitmap
    std::vector<BitmapWord> bitmap_;

    static bool rises_within(std::span<const std::int32_t> values, std::int64_t n) {
        std::int64_t last = -1;
        for (std::int32_t value : values) {
            if (value <= last || value >= n) return false;
            last = value;
        }
        return true;
    }

    void check_node(std::int64_t v, std::int64_t end) const {
        if (child[v] < 0 ? child[v] != -1 : (child[v] <= v || child[v] >= end - 1)) refuse_arrays("child");
        const auto n_weights = static_cast<std::size_t>(weight_begin[v + 1] - weight_begin[v]);
        const auto n_here = static_cast<std::size_t>(label_begin[v + 1] - label_begin[v]);
        if (child[v] < 0 ? n_weights > 0 : n_here > 0)
            refuse_arrays("a leaf with weights, or an inner node with labels");
        if (!rises_within(weight_feature.subspan(weight_begin[v], n_weights), features.n_columns()))
            refuse_arrays("weight_feature");
        if (!rises_within(label.subspan(label_begin[v], n_here), n_labels)) refuse_arrays("label");
    }
};

}  // namespace ramify
