/// A candidate tree with the classifier behind it: a row's candidates, their probabilities, and what they are made of.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "base/label_query.hpp"
#include "base/parallel.hpp"
#include "spectral/base.hpp"
#include "spectral/candidates.hpp"
#include "spectral/tree_space.hpp"

namespace ramify {

struct SpectralScratch {
    ForestScratch forest;
    CandidateSearch search;
    RowCandidates candidates;                ///< of the current row
    std::vector<float> hidden, probability;  ///< the latter of the candidates
    std::span<const Entry> x;                ///< the row's features
    std::vector<Entry> entries;              ///< the same with their bias, where the tree sees others
    std::vector<float> in_space;
};

struct SpectralModel {
    using Scratch = SpectralScratch;

    TreeSpace space;
    std::vector<std::int32_t> dimensions;  ///< of the learned space, in order
    InstanceForest forest;
    std::span<const float> sigma;
    std::vector<std::uint8_t> is_head;  ///< empty: no label is
    BaseParameters<const float> base;
    bool is_multiclass = false;
    std::int64_t n_candidates = 1;

    static constexpr std::int64_t chunk = 256;  ///< rows that a thread takes at once
    static constexpr std::int64_t max_leaves = 65'536;

    /// Sets the space of the tree, before `forest`.
    void set_space(const TreeSpace& given) {
        space = given;
        dimensions.resize(static_cast<std::size_t>(space.rank));
        std::iota(dimensions.begin(), dimensions.end(), 0);
    }

    /// The classifier's parameters without their arrays.
    template <class F>
    BaseParameters<F> shape(WeightKind kind, std::int64_t rank, bool has_slot_weights) const {
        BaseParameters<F> p;
        p.kind = kind;
        p.n_features = space.features.n_features;
        p.n_labels = forest.n_labels;
        p.n_slots = static_cast<std::int64_t>(forest.label.size());
        p.rank = rank;
        p.has_slot_weights = has_slot_weights;
        return p;
    }

    void mark_head(std::span<const std::int32_t> head) {
        if (head.empty()) return;
        is_head.assign(static_cast<std::size_t>(forest.n_labels), 0);
        for (std::int32_t l : head) {
            check_arrays(l >= 0 && l < forest.n_labels, "head");
            is_head[l] = 1;
        }
    }

    /// Prepares a row for the tree, until `clear`, and puts its features into s.x.
    ForestRow place(const RowView& row, Scratch& s) const {
        if (!space.is_learned()) {
            const ForestRow placed = forest.place(row, s.forest);
            s.x = placed.x.first(placed.x.size() - 1);
            return placed;
        }
        s.entries.clear();
        space.features.append(row.indices, row.values, s.entries);
        s.x = std::span(s.entries).first(s.entries.size() - 1);
        s.in_space.resize(dimensions.size());
        project(s.x, space.vectors.data(), space.rank, s.in_space.data());
        return forest.place({dimensions, s.in_space}, s.forest);
    }

    /// The row's candidates into s.candidates, its features into s.x.
    void find_candidates(const RowView& row, std::int64_t n_leaves, Scratch& s) const {
        const ForestRow placed = place(row, s);
        if (n_leaves > 1) {
            s.search.find_leaves(forest, sigma, placed, n_leaves, s.forest.n_products);
            s.candidates = s.search.merge(forest, base.slot_bias, n_candidates, is_head);
        } else {
            const std::int64_t leaf = forest.leaf(0, placed, s.forest), first = forest.label_begin[leaf];
            const auto n = static_cast<std::size_t>(forest.label_begin[leaf + 1] - first);
            s.candidates = {forest.label.subspan(first, n), forest.probability.subspan(first, n), first, {}};
        }
        InstanceForest::clear(placed.x, s.forest.dense.data());
    }

    /// The candidates' probabilities into s.probability.
    void score(const RowView& row, std::int64_t n_leaves, Scratch& s) const {
        find_candidates(row, n_leaves, s);
        base.project(s.x, s.hidden);
        const RowCandidates& c = s.candidates;
        s.probability.resize(c.label.size());
        for (std::size_t k = 0; k < c.label.size(); ++k)
            s.probability[k] = base.score(s.x, s.hidden, c.label[k], c.slot(k)) + c.mean_bias(k);
        to_candidate_probabilities(s.probability, is_multiclass);
    }

    /// Where a label is among the candidates.
    static std::optional<std::size_t> place_of(std::int32_t label, const Scratch& s) {
        const auto at = std::ranges::lower_bound(s.candidates.label, label);
        if (at == s.candidates.label.end() || *at != label) return std::nullopt;
        return static_cast<std::size_t>(at - s.candidates.label.begin());
    }

    /// What each feature of the current row, and the bias after them, adds to a node's score in the learned space.
    std::pair<std::vector<std::int32_t>, std::vector<float>> node_parts(std::int64_t v, const Scratch& s) const {
        std::pair<std::vector<std::int32_t>, std::vector<float>> parts;
        if (forest.child[v] < 0) return parts;
        double squared = 0;
        for (float h : s.in_space) squared += static_cast<double>(h) * h;
        const double scale = squared > 0 ? 1 / std::sqrt(squared) : 0.0;
        float bias = 0;  // a damaged node may have none
        for (std::int64_t k = forest.weight_begin[v]; k < forest.weight_begin[v + 1]; ++k)
            if (forest.weight_feature[k] == space.rank) bias = forest.weight[k];
        for (const Entry& e : s.x) {
            double sum = 0;
            for (std::int64_t k = forest.weight_begin[v]; k < forest.weight_begin[v + 1]; ++k)
                if (forest.weight_feature[k] < space.rank)
                    sum += static_cast<double>(forest.weight[k]) *
                           space.vectors[static_cast<std::size_t>(e.feature) * space.rank + forest.weight_feature[k]];
            parts.first.push_back(static_cast<std::int32_t>(e.feature));
            parts.second.push_back(static_cast<float>(e.value * sum * scale));
        }
        parts.first.push_back(static_cast<std::int32_t>(space.features.n_features));
        parts.second.push_back(bias);
        return parts;
    }

    /// What the query asks for, best first, into s.forest.found; labels that are no candidates have probability zero.
    void choose(const LabelQuery& query, Scratch& s) const {
        auto& found = s.forest.found;
        found.clear();
        const RowCandidates& c = s.candidates;
        for (std::size_t k = 0; k < c.label.size(); ++k)
            if (s.probability[k] >= query.needed(c.label[k])) found.push_back({c.label[k], s.probability[k]});
        query.choose(found, forest.n_labels, [&](std::int32_t l) { return place_of(l, s).has_value(); });
    }

    /// Calls work(row, scratch with the candidates' probabilities); the number of inner products, those of the tree and
    /// those behind it.
    template <class Work>
    std::int64_t for_every_row(const CsrView& X, std::int64_t n_leaves, int n_threads, Work&& work) const {
        std::vector<Scratch> scratch(usable_threads(n_threads, n_chunks(X.n_rows(), chunk)));
        std::vector<std::int64_t> n_scored(scratch.size(), 0);
        parallel_chunks(X.n_rows(), chunk, n_threads, [&](std::int64_t first, std::int64_t last, int worker) {
            Scratch& s = scratch[worker];
            for (std::int64_t i = first; i < last; ++i) {
                score(X.row(i), n_leaves, s);
                n_scored[worker] += static_cast<std::int64_t>(s.candidates.label.size());
                work(i, s);
            }
        });
        std::int64_t n_products = 0;
        for (const Scratch& s : scratch) n_products += s.forest.n_products;
        for (std::int64_t scored : n_scored) n_products += scored;
        return n_products;
    }
};

}  // namespace ramify
