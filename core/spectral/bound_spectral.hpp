/// The hierarchical spectral method as Python sees it: a candidate tree with the classifier behind it, its answers and its training.
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "bindings/arrays.hpp"
#include "bindings/checks.hpp"
#include "bindings/csr_answers.hpp"
#include "forest/forest_bindings.hpp"
#include "base/parallel.hpp"
#include "bindings/saved_arrays.hpp"
#include "spectral/arrays.hpp"
#include "spectral/base.hpp"
#include "spectral/candidates.hpp"
#include "spectral/train.hpp"
#include "spectral/tree_space.hpp"

namespace ramify {

/// A candidate tree and the classifier behind it. Keeps the numpy arrays alive that it reads, memory-mapped ones too.
class BoundSpectral {
public:
    BoundSpectral(const nb::dict& tree, const nb::dict& base, std::int64_t n_labels, std::int64_t n_candidates, const FeatureSettings& features,
                  bool is_multiclass, const std::string& weights, std::int64_t rank, bool has_slot_weights)
        : is_multiclass_(is_multiclass), n_candidates_(n_candidates) {
        if (n_candidates < 1) throw nb::value_error("n_candidates must be above 0");
        const SavedArrays saved_tree(tree, keep_);
        space_ = checked_space(saved_tree.take<float>("space"), features);
        for (std::int64_t j = 0; j < space_.rank; ++j) dimensions_.push_back(static_cast<std::int32_t>(j));
        forest_ = attached_forest(saved_tree, n_labels, space_.seen());
        sigma_ = saved_tree.take<float>("sigma");
        if (forest_.n_trees() != 1) throw nb::value_error("a candidate tree is one tree");
        check_arrays(sigma_.size() == forest_.child.size(), "sigma");
        for (float s : sigma_) check_arrays(s >= 0 && std::isfinite(s), "sigma");
        mark_head(saved_tree.take<std::int32_t>("head"));
        base_ = shape<const float>(weight_kind(weights), rank, has_slot_weights);
        const SavedArrays saved_base(base, keep_);
        base_.input = saved_base.take<float>("input");
        base_.output = saved_base.take<float>("output");
        base_.label_bias = saved_base.take<float>("label_bias");
        base_.slot_bias = saved_base.take<float>("slot_bias");
        base_.check();
    }

    nb::tuple predict(const Longs& indptr, const Ints& indices, const Floats& data, std::optional<std::int64_t> top_k, float threshold,
                      const std::optional<Floats>& label_threshold, std::int64_t ways, int n_threads) const {
        const CsrView X = checked_rows(indptr, indices, data, ways);
        LabelQuery query = checked_query(forest_.n_labels, top_k, threshold, label_threshold);
        CsrAnswers<LabelProbability> answers(X.n_rows(), chunk);
        std::int64_t n_products = 0;
        {
            nb::gil_scoped_release release;
            query.prepare(forest_.n_labels);
            n_products = for_every_row(X, ways, n_threads, [&](std::int64_t i, Scratch& s) {
                choose(query, s);
                answers.add(i, s.forest.found);
            });
            answers.join();
        }
        return std::move(answers).to_tuple(n_products);
    }

    /// Probabilities of these labels for each row: n x len(labels).
    auto named(const Longs& indptr, const Ints& indices, const Floats& data, const Ints& labels, std::int64_t ways, int n_threads) const {
        const CsrView X = checked_rows(indptr, indices, data, ways);
        check_named_labels(labels, forest_.n_labels);
        const auto n = static_cast<std::size_t>(X.n_rows()), n_named = labels.size();
        std::vector<float> probability(n * n_named, 0.0f);
        {
            nb::gil_scoped_release release;
            for_every_row(X, ways, n_threads, [&](std::int64_t i, Scratch& s) {
                for (std::size_t k = 0; k < n_named; ++k)
                    if (const auto at = place_of(labels.data()[k], s)) probability[static_cast<std::size_t>(i) * n_named + k] = s.probability[*at];
            });
        }
        return to_numpy(std::move(probability), {n, n_named});
    }

    nb::tuple predict_row(const Ints& indices, const Floats& values, std::int64_t top_k, float threshold, std::int64_t ways) const {
        thread_local Scratch s;
        check_question(indices, values, ways);
        score({view(indices), view(values)}, ways, s);
        LabelQuery query = checked_query(forest_.n_labels, top_k, threshold);
        query.prepare(forest_.n_labels);
        choose(query, s);
        return row_answer(s.forest.found);
    }

    /// What the tree finds worth looking at: CSR parts, labels with their share of the training rows where the row went.
    nb::tuple candidates(const Longs& indptr, const Ints& indices, const Floats& data, std::int64_t ways, int n_threads) const {
        const CsrView X = checked_rows(indptr, indices, data, ways);
        CsrAnswers<LabelProbability> answers(X.n_rows(), chunk);
        {
            nb::gil_scoped_release release;
            std::vector<Scratch> scratch(usable_threads(n_threads, n_chunks(X.n_rows(), chunk)));
            parallel_chunks(X.n_rows(), chunk, n_threads, [&](std::int64_t first, std::int64_t last, int worker) {
                Scratch& s = scratch[worker];
                for (std::int64_t i = first; i < last; ++i) {
                    find_candidates(X.row(i), ways, s);
                    s.forest.found.clear();
                    for (std::size_t k = 0; k < s.candidates.label.size(); ++k) s.forest.found.push_back({s.candidates.label[k], s.candidates.share[k]});
                    answers.add(i, s.forest.found);
                }
            });
            answers.join();
        }
        return std::move(answers).to_tuple(0);
    }

    /// The leaf of each row: the one that prediction takes, or with a seed one by chance.
    auto leaves(const Longs& indptr, const Ints& indices, const Floats& data, std::optional<std::uint64_t> seed, int n_threads) const {
        const CsrView X = checked_rows(indptr, indices, data, 1);
        std::vector<std::int32_t> leaf;
        {
            nb::gil_scoped_release release;
            leaf = leaves_of(forest_, sigma_, space_.prepared(X, n_threads), seed.has_value(), seed.value_or(0), n_threads);
        }
        return to_numpy(std::move(leaf));
    }

    /// The leaves that each row reaches in fractions, as while the tree grew: where a row's begin, leaves, and the probabilities.
    nb::tuple fractions(const Longs& indptr, const Ints& indices, const Floats& data, double min_path, int n_threads) const {
        const CsrView X = checked_rows(indptr, indices, data, 1);
        if (!(min_path > 0 && min_path <= 1)) throw nb::value_error("min_path must be in (0, 1]");
        std::vector<std::int64_t> begin(static_cast<std::size_t>(X.n_rows()) + 1, 0);
        std::vector<std::int32_t> leaf;
        std::vector<float> share;
        {
            nb::gil_scoped_release release;
            const std::vector<std::vector<LeafShare>> found = leaf_shares(forest_, sigma_, space_.prepared(X, n_threads), min_path, n_threads);
            for (std::size_t i = 0; i < found.size(); ++i) {
                for (const LeafShare& f : found[i]) {
                    leaf.push_back(f.leaf);
                    share.push_back(f.share);
                }
                begin[i + 1] = static_cast<std::int64_t>(leaf.size());
            }
        }
        return nb::make_tuple(to_numpy(std::move(begin)), to_numpy(std::move(leaf)), to_numpy(std::move(share)));
    }

    /// A row's way: for each node its score and what each feature added to it, the bias under the number after the last feature.
    nb::list route(const Ints& indices, const Floats& values) const {
        Scratch s;
        check_question(indices, values, 1);
        const ForestRow row = place({view(indices), view(values)}, s);
        if (!space_.is_learned()) return forest_route(forest_, 0, row);
        nb::list steps;
        for (std::int64_t v = 0;;) {
            const double score = forest_.score(v, row);
            auto [feature, added] = node_parts(v, s);
            steps.append(nb::make_tuple(v, score, to_numpy(std::move(feature)), to_numpy(std::move(added))));
            if (forest_.child[v] < 0) return steps;
            v = forest_.child[v] + (score > 0);
        }
    }

    /// What each feature of a row adds to the score of a candidate, and the bias at the end under the number after the last feature; None for no candidate.
    std::optional<nb::tuple> candidate_parts(const Ints& indices, const Floats& values, std::int32_t label, std::int64_t ways) const {
        Scratch s;
        check_question(indices, values, ways);
        find_candidates({view(indices), view(values)}, ways, s);
        const auto at = place_of(label, s);
        if (!at) return std::nullopt;
        const std::int64_t slot = s.candidates.slot(*at);
        std::vector<std::int32_t> feature;
        std::vector<float> added;
        for (const Entry& e : s.x) {
            feature.push_back(static_cast<std::int32_t>(e.feature));
            added.push_back(e.value * base_.weight(e.feature, label, slot));
        }
        feature.push_back(static_cast<std::int32_t>(space_.features.n_features));
        added.push_back(base_.label_bias[label] + (slot < 0 ? s.candidates.mean_bias(*at) : base_.slot_bias[slot]));
        return nb::make_tuple(to_numpy(std::move(feature)), to_numpy(std::move(added)));
    }

    /// Stochastic gradient descent on arrays of the same shapes as the model's, written in place.
    void train(const nb::dict& base, const Longs& x_indptr, const Ints& x_indices, const Floats& x_data, const Longs& y_indptr, const Ints& y_indices,
               const std::optional<Floats>& sample_weight, float learning_rate, float eps, bool has_slot_bias, int passes, bool is_shuffled, bool is_sampled,
               bool decays, std::uint64_t seed, int n_threads, Progress* progress) const {
        const CsrView X = checked_rows(x_indptr, x_indices, x_data, 1);
        check_rising_labels(x_indptr, y_indptr, y_indices, forest_.n_labels);
        const std::span<const float> weight = checked_positive(sample_weight, static_cast<std::size_t>(X.n_rows()), "sample_weight");
        if (passes < 0) throw nb::value_error("passes must not be negative");
        BaseDescent descent =
            descent_on(base, shape<float>(base_.kind, base_.rank, base_.has_slot_weights), {learning_rate, eps, is_multiclass_, has_slot_bias});
        nb::gil_scoped_release release;
        const PreparedRows rows(X, space_.features, n_threads);
        std::optional<PreparedRows> in_space;
        if (space_.is_learned()) in_space.emplace(space_.prepared(X, n_threads));
        const LabelledRows labelled{rows, space_.features.n_features, view(y_indptr), view(y_indices), weight};
        train_base(forest_, sigma_, labelled, in_space ? *in_space : rows, descent, is_sampled, {passes, is_shuffled, decays}, seed, n_threads, progress);
    }

private:
    struct Scratch {
        ForestScratch forest;
        CandidateSearch search;
        RowCandidates candidates;                ///< of the row at hand
        std::vector<float> hidden, probability;  ///< the latter of the candidates
        std::span<const Entry> x;                ///< the row's features
        std::vector<Entry> entries;              ///< the same with their bias, where the tree sees others
        std::vector<float> in_space;
    };
    static constexpr std::int64_t chunk = 256;  ///< rows that a thread takes at once
    static constexpr std::int64_t most_ways = 65'536;

    template <class F>
    BaseParameters<F> shape(WeightKind kind, std::int64_t rank, bool has_slot_weights) const {
        BaseParameters<F> p;
        p.kind = kind;
        p.n_features = space_.features.n_features;
        p.n_labels = forest_.n_labels;
        p.n_slots = static_cast<std::int64_t>(forest_.label.size());
        p.rank = rank;
        p.has_slot_weights = has_slot_weights;
        return p;
    }

    void mark_head(std::span<const std::int32_t> head) {
        if (head.empty()) return;
        is_head_.assign(static_cast<std::size_t>(forest_.n_labels), 0);
        for (std::int32_t l : head) {
            check_arrays(l >= 0 && l < forest_.n_labels, "head");
            is_head_[l] = 1;
        }
    }

    void check_ways(std::int64_t ways) const {
        if (ways < 1 || ways > most_ways) throw nb::value_error("ways must be between 1 and 65,536");
        if (ways > 1 && base_.has_slot_weights) throw nb::value_error("weights of a leaf's own answer for that leaf alone: ways must be 1");
    }

    CsrView checked_rows(const Longs& indptr, const Ints& indices, const Floats& data, std::int64_t ways) const {
        check_ways(ways);
        return checked_csr(indptr, indices, data, space_.features.n_features, "X");
    }

    void check_question(const Ints& indices, const Floats& values, std::int64_t ways) const {
        check_ways(ways);
        check_row(indices, values, space_.features.n_features);
    }

    /// Puts a row before the tree, from where `clear` takes it again, and its features into s.x.
    ForestRow place(const RowView& row, Scratch& s) const {
        if (!space_.is_learned()) {
            const ForestRow placed = forest_.place(row, s.forest);
            s.x = placed.x.first(placed.x.size() - 1);
            return placed;
        }
        s.entries.clear();
        space_.features.append(row.indices, row.values, s.entries);
        s.x = std::span(s.entries).first(s.entries.size() - 1);
        s.in_space.resize(dimensions_.size());
        project(s.x, space_.vectors.data(), space_.rank, s.in_space.data());
        return forest_.place({dimensions_, s.in_space}, s.forest);
    }

    /// The row's candidates into s.candidates, its features into s.x.
    void find_candidates(const RowView& row, std::int64_t ways, Scratch& s) const {
        const ForestRow placed = place(row, s);
        if (ways > 1) {
            s.search.find_leaves(forest_, sigma_, placed, ways, s.forest.n_products);
            s.candidates = s.search.merge(forest_, base_.slot_bias, n_candidates_, is_head_);
        } else {
            const std::int64_t leaf = forest_.leaf(0, placed, s.forest), first = forest_.label_begin[leaf];
            const auto n = static_cast<std::size_t>(forest_.label_begin[leaf + 1] - first);
            s.candidates = {forest_.label.subspan(first, n), forest_.probability.subspan(first, n), first, {}};
        }
        InstanceForest::clear(placed.x, s.forest.dense.data());
    }

    /// The candidates' probabilities into s.probability.
    void score(const RowView& row, std::int64_t ways, Scratch& s) const {
        find_candidates(row, ways, s);
        base_.project(s.x, s.hidden);
        const RowCandidates& c = s.candidates;
        s.probability.resize(c.label.size());
        for (std::size_t k = 0; k < c.label.size(); ++k) s.probability[k] = base_.score(s.x, s.hidden, c.label[k], c.slot(k)) + c.mean_bias(k);
        to_candidate_probabilities(s.probability, is_multiclass_);
    }

    /// Where a label is among the candidates.
    static std::optional<std::size_t> place_of(std::int32_t label, const Scratch& s) {
        const auto at = std::ranges::lower_bound(s.candidates.label, label);
        if (at == s.candidates.label.end() || *at != label) return std::nullopt;
        return static_cast<std::size_t>(at - s.candidates.label.begin());
    }

    /// What each feature of the row at hand, and the bias after them, adds to a node's score in the learned space.
    std::pair<std::vector<std::int32_t>, std::vector<float>> node_parts(std::int64_t v, const Scratch& s) const {
        std::pair<std::vector<std::int32_t>, std::vector<float>> parts;
        if (forest_.child[v] < 0) return parts;
        double squared = 0;
        for (float h : s.in_space) squared += static_cast<double>(h) * h;
        const double scale = squared > 0 ? 1 / std::sqrt(squared) : 0.0;
        float bias = 0;  // a damaged node may have none
        for (std::int64_t k = forest_.weight_begin[v]; k < forest_.weight_begin[v + 1]; ++k)
            if (forest_.weight_feature[k] == space_.rank) bias = forest_.weight[k];
        for (const Entry& e : s.x) {
            double sum = 0;
            for (std::int64_t k = forest_.weight_begin[v]; k < forest_.weight_begin[v + 1]; ++k)
                if (forest_.weight_feature[k] < space_.rank)
                    sum += static_cast<double>(forest_.weight[k]) * space_.vectors[static_cast<std::size_t>(e.feature) * space_.rank + forest_.weight_feature[k]];
            parts.first.push_back(static_cast<std::int32_t>(e.feature));
            parts.second.push_back(static_cast<float>(e.value * sum * scale));
        }
        parts.first.push_back(static_cast<std::int32_t>(space_.features.n_features));
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
        query.choose(found, forest_.n_labels, [&](std::int32_t l) { return place_of(l, s).has_value(); });
    }

    /// Calls work(row, scratch with the candidates' probabilities); the number of inner products, those of the tree and those behind it.
    template <class Work>
    std::int64_t for_every_row(const CsrView& X, std::int64_t ways, int n_threads, Work&& work) const {
        std::vector<Scratch> scratch(usable_threads(n_threads, n_chunks(X.n_rows(), chunk)));
        std::vector<std::int64_t> n_scored(scratch.size(), 0);
        parallel_chunks(X.n_rows(), chunk, n_threads, [&](std::int64_t first, std::int64_t last, int worker) {
            Scratch& s = scratch[worker];
            for (std::int64_t i = first; i < last; ++i) {
                score(X.row(i), ways, s);
                n_scored[worker] += static_cast<std::int64_t>(s.candidates.label.size());
                work(i, s);
            }
        });
        std::int64_t n_products = 0;
        for (const Scratch& s : scratch) n_products += s.forest.n_products;
        for (std::int64_t scored : n_scored) n_products += scored;
        return n_products;
    }

    TreeSpace space_;
    std::vector<std::int32_t> dimensions_;  // of the learned space, in order
    InstanceForest forest_;
    std::span<const float> sigma_;
    std::vector<std::uint8_t> is_head_;  // empty: no label is
    BaseParameters<const float> base_;
    bool is_multiclass_;
    std::int64_t n_candidates_;
    nb::list keep_;
};

}  // namespace ramify
