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

#include "arrays.hpp"
#include "checks.hpp"
#include "csr_answers.hpp"
#include "forest_bindings.hpp"
#include "parallel.hpp"
#include "saved_arrays.hpp"
#include "spectral_base.hpp"
#include "spectral_train.hpp"

namespace ramify {

inline std::span<float> take_own(const nb::dict& arrays, const char* name) {
    InOut<float> array;
    if (!arrays.contains(name) || !nb::try_cast(arrays[name], array, false))
        throw nb::value_error((std::string("learning needs an array of floats to write to, named ") + name).c_str());
    return writable(array);
}

inline WeightKind weight_kind(const std::string& name) {
    if (name == "full") return WeightKind::full;
    if (name == "hashed") return WeightKind::hashed;
    if (name == "low_rank") return WeightKind::low_rank;
    throw nb::value_error("weights must be 'full', 'hashed' or 'low_rank'");
}

/// A candidate tree and the classifier behind it. Keeps the numpy arrays alive that it reads, memory-mapped ones too.
class BoundSpectral {
public:
    BoundSpectral(const nb::dict& tree, const nb::dict& base, std::int64_t n_labels, const FeatureSettings& features, bool is_multiclass,
                  const std::string& weights, std::int64_t rank, bool has_slot_weights)
        : is_multiclass_(is_multiclass) {
        if (features.bias != 1.0f) throw nb::value_error("a candidate tree keeps its medians in a bias feature of 1");
        const SavedArrays saved_tree(tree, keep_);
        forest_ = attached_forest(saved_tree, n_labels, features);
        sigma_ = saved_tree.take<float>("sigma");
        if (forest_.n_trees() != 1) throw nb::value_error("a candidate tree is one tree");
        check_arrays(sigma_.size() == forest_.child.size(), "sigma");
        for (float s : sigma_) check_arrays(s >= 0 && std::isfinite(s), "sigma");
        base_ = shape<const float>(weight_kind(weights), rank, has_slot_weights);
        const SavedArrays saved_base(base, keep_);
        base_.input = saved_base.take<float>("input");
        base_.output = saved_base.take<float>("output");
        base_.label_bias = saved_base.take<float>("label_bias");
        base_.slot_bias = saved_base.take<float>("slot_bias");
        base_.check();
    }

    nb::tuple predict(const Longs& indptr, const Ints& indices, const Floats& data, std::optional<std::int64_t> top_k, float threshold,
                      const std::optional<Floats>& label_threshold, int n_threads) const {
        const CsrView X = checked_csr(indptr, indices, data, forest_.features.n_features, "X");
        LabelQuery query = checked_query(forest_.n_labels, top_k, threshold, label_threshold);
        CsrAnswers<LabelProbability> answers(X.n_rows(), chunk);
        std::int64_t n_products = 0;
        {
            nb::gil_scoped_release release;
            query.prepare(forest_.n_labels);
            n_products = for_every_row(X, n_threads, [&](std::int64_t i, std::int64_t, Scratch& s) {
                choose(query, s);
                answers.add(i, s.forest.found);
            });
            answers.join();
        }
        return std::move(answers).to_tuple(n_products);
    }

    /// Probabilities of these labels for each row: n x len(labels).
    auto named(const Longs& indptr, const Ints& indices, const Floats& data, const Ints& labels, int n_threads) const {
        const CsrView X = checked_csr(indptr, indices, data, forest_.features.n_features, "X");
        check_named_labels(labels, forest_.n_labels);
        const auto n = static_cast<std::size_t>(X.n_rows()), n_named = labels.size();
        std::vector<float> probability(n * n_named, 0.0f);
        {
            nb::gil_scoped_release release;
            for_every_row(X, n_threads, [&](std::int64_t i, std::int64_t leaf, Scratch& s) {
                const auto of_leaf = candidates(leaf);
                for (std::size_t k = 0; k < n_named; ++k) {
                    const auto at = std::ranges::lower_bound(of_leaf, labels.data()[k]);
                    if (at != of_leaf.end() && *at == labels.data()[k])
                        probability[static_cast<std::size_t>(i) * n_named + k] = s.probability[static_cast<std::size_t>(at - of_leaf.begin())];
                }
            });
        }
        return to_numpy(std::move(probability), {n, n_named});
    }

    nb::tuple predict_row(const Ints& indices, const Floats& values, std::int64_t top_k, float threshold) const {
        thread_local Scratch s;
        score(placed_row(forest_, indices, values, s.forest), s);
        LabelQuery query = checked_query(forest_.n_labels, top_k, threshold);
        query.prepare(forest_.n_labels);
        choose(query, s);
        return row_answer(s.forest.found);
    }

    /// The leaf of each row: the one that prediction takes, or with a seed one by chance.
    auto leaves(const Longs& indptr, const Ints& indices, const Floats& data, std::optional<std::uint64_t> seed, int n_threads) const {
        const CsrView X = checked_csr(indptr, indices, data, forest_.features.n_features, "X");
        std::vector<std::int32_t> leaf;
        {
            nb::gil_scoped_release release;
            const PreparedRows rows(X, forest_.features, n_threads);
            leaf = leaves_of(forest_, sigma_, rows, seed.has_value(), seed.value_or(0), n_threads);
        }
        return to_numpy(std::move(leaf));
    }

    /// The leaves that each row reaches in fractions, as while the tree grew: where a row's begin, leaves, and the probabilities.
    nb::tuple fractions(const Longs& indptr, const Ints& indices, const Floats& data, double min_path, int n_threads) const {
        const CsrView X = checked_csr(indptr, indices, data, forest_.features.n_features, "X");
        if (!(min_path > 0 && min_path <= 1)) throw nb::value_error("min_path must be in (0, 1]");
        std::vector<std::int64_t> begin(static_cast<std::size_t>(X.n_rows()) + 1, 0);
        std::vector<std::int32_t> leaf;
        std::vector<float> share;
        {
            nb::gil_scoped_release release;
            const PreparedRows rows(X, forest_.features, n_threads);
            const std::vector<std::vector<LeafShare>> found = leaf_shares(forest_, sigma_, rows, min_path, n_threads);
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

    /// A row's way: for each node but the leaf its score and what each feature added to it.
    nb::list route(const Ints& indices, const Floats& values) const {
        ForestScratch s;
        return forest_route(forest_, 0, placed_row(forest_, indices, values, s));
    }

    /// What each feature of a row adds to the score of a candidate, and the bias at the end under the number after the last feature.
    nb::tuple slot_parts(const Ints& indices, const Floats& values, std::int64_t slot) const {
        if (slot < 0 || slot >= base_.n_slots) throw nb::value_error("there is no slot of this number");
        ForestScratch s;
        const ForestRow row = placed_row(forest_, indices, values, s);
        std::vector<std::int32_t> feature;
        std::vector<float> added;
        const std::int32_t label = forest_.label[slot];
        for (const Entry& e : without_bias(row.x)) {
            feature.push_back(static_cast<std::int32_t>(e.feature));
            added.push_back(e.value * base_.weight(e.feature, label, slot));
        }
        feature.push_back(static_cast<std::int32_t>(forest_.features.n_features));
        added.push_back(base_.label_bias[label] + base_.slot_bias[slot]);
        return nb::make_tuple(to_numpy(std::move(feature)), to_numpy(std::move(added)));
    }

    /// Stochastic gradient descent on arrays of the same shapes as the model's, written in place.
    void train(const nb::dict& base, const Longs& x_indptr, const Ints& x_indices, const Floats& x_data, const Longs& y_indptr, const Ints& y_indices,
               const std::optional<Floats>& sample_weight, float learning_rate, float eps, bool has_slot_bias, int passes, bool is_shuffled, bool is_sampled,
               bool decays, std::uint64_t seed, int n_threads, Progress* progress) const {
        const CsrView X = checked_csr(x_indptr, x_indices, x_data, forest_.features.n_features, "X");
        check_rising_labels(x_indptr, y_indptr, y_indices, forest_.n_labels);
        const std::span<const float> weight = checked_positive(sample_weight, static_cast<std::size_t>(X.n_rows()), "sample_weight");
        if (!(learning_rate > 0) || !std::isfinite(learning_rate) || !(eps > 0) || !std::isfinite(eps) || passes < 0)
            throw nb::value_error("learning_rate and eps must be finite and above 0, passes not negative");
        BaseDescent descent;
        descent.parameters = shape<float>(base_.kind, base_.rank, base_.has_slot_weights);
        descent.parameters.input = take_own(base, "input");
        descent.parameters.output = take_own(base, "output");
        descent.parameters.label_bias = take_own(base, "label_bias");
        descent.parameters.slot_bias = take_own(base, "slot_bias");
        descent.input_sum = take_own(base, "input_sum");
        descent.output_sum = take_own(base, "output_sum");
        descent.label_bias_sum = take_own(base, "label_bias_sum");
        descent.slot_bias_sum = take_own(base, "slot_bias_sum");
        descent.settings = {learning_rate, eps, is_multiclass_, has_slot_bias};
        descent.check();
        nb::gil_scoped_release release;
        const PreparedRows rows(X, forest_.features, n_threads);
        train_base(forest_, sigma_, rows, view(y_indptr), view(y_indices), weight, descent, {passes, is_shuffled, is_sampled, decays}, seed, n_threads, progress);
    }

private:
    struct Scratch {
        ForestScratch forest;
        std::vector<float> hidden, probability;  ///< of the candidates of the leaf at hand
        std::span<const std::int32_t> label;
    };
    static constexpr std::int64_t chunk = 256;  ///< rows that a thread takes at once

    template <class F>
    BaseParameters<F> shape(WeightKind kind, std::int64_t rank, bool has_slot_weights) const {
        BaseParameters<F> p;
        p.kind = kind;
        p.n_features = forest_.features.n_features;
        p.n_labels = forest_.n_labels;
        p.n_slots = static_cast<std::int64_t>(forest_.label.size());
        p.rank = rank;
        p.has_slot_weights = has_slot_weights;
        return p;
    }

    std::span<const std::int32_t> candidates(std::int64_t leaf) const {
        return forest_.label.subspan(forest_.label_begin[leaf], forest_.label_begin[leaf + 1] - forest_.label_begin[leaf]);
    }

    std::span<const Entry> without_bias(std::span<const Entry> x) const { return x.first(x.size() - 1); }

    /// The leaf of a row, which leaves the scratch; the probabilities of the leaf's candidates are in s.probability.
    std::int64_t score(const ForestRow& row, Scratch& s) const {
        const std::int64_t leaf = forest_.leaf(0, row, s.forest);
        InstanceForest::clear(row.x, s.forest.dense.data());
        const std::span<const Entry> x = without_bias(row.x);
        const std::int64_t first = forest_.label_begin[leaf];
        s.label = candidates(leaf);
        base_.project(x, s.hidden);
        s.probability.resize(s.label.size());
        for (std::size_t k = 0; k < s.label.size(); ++k) s.probability[k] = base_.score(x, s.hidden, s.label[k], first + static_cast<std::int64_t>(k));
        to_candidate_probabilities(s.probability, is_multiclass_);
        return leaf;
    }

    /// What the query asks for, best first, into s.forest.found; labels that are no candidates have probability zero.
    void choose(const LabelQuery& query, Scratch& s) const {
        auto& found = s.forest.found;
        found.clear();
        for (std::size_t k = 0; k < s.label.size(); ++k)
            if (s.probability[k] >= query.needed(s.label[k])) found.push_back({s.label[k], s.probability[k]});
        query.choose(found, forest_.n_labels, [&](std::int32_t l) { return std::ranges::binary_search(s.label, l); });
    }

    /// Calls work(row, its leaf, scratch with the candidates' probabilities); the number of inner products, those of the tree and those behind it.
    template <class Work>
    std::int64_t for_every_row(const CsrView& X, int n_threads, Work&& work) const {
        std::vector<Scratch> scratch(usable_threads(n_threads, n_chunks(X.n_rows(), chunk)));
        std::vector<std::int64_t> n_scored(scratch.size(), 0);
        parallel_chunks(X.n_rows(), chunk, n_threads, [&](std::int64_t first, std::int64_t last, int worker) {
            Scratch& s = scratch[worker];
            for (std::int64_t i = first; i < last; ++i) {
                const std::int64_t leaf = score(forest_.place(X.row(i), s.forest), s);
                n_scored[worker] += static_cast<std::int64_t>(s.label.size());
                work(i, leaf, s);
            }
        });
        std::int64_t n_products = 0;
        for (const Scratch& s : scratch) n_products += s.forest.n_products;
        for (std::int64_t scored : n_scored) n_products += scored;
        return n_products;
    }

    InstanceForest forest_;
    std::span<const float> sigma_;
    BaseParameters<const float> base_;
    bool is_multiclass_;
    nb::list keep_;
};

}  // namespace ramify
