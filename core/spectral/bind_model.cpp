/// Python bindings of a trained hierarchical spectral model: answers, explanations, and training of its classifier.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/parallel.hpp"
#include "bindings/arrays.hpp"
#include "bindings/casters.hpp"
#include "bindings/checks.hpp"
#include "bindings/csr_answers.hpp"
#include "bindings/saved_arrays.hpp"
#include "bindings/spectral_arrays.hpp"
#include "forest/forest_bindings.hpp"
#include "spectral/model.hpp"
#include "spectral/train.hpp"

namespace nb = nanobind;
using namespace nb::literals;
using namespace ramify;

namespace {

/// A candidate tree and the classifier behind it. Keeps the numpy arrays alive that it reads, memory-mapped ones too.
class BoundSpectral {
public:
    BoundSpectral(const ArrayDict& tree, const ArrayDict& base, std::int64_t n_labels, std::int64_t n_candidates,
                  const FeatureSettings& features, bool is_multiclass, const std::string& weights, std::int64_t rank,
                  bool has_slot_weights) {
        if (n_candidates < 1) throw nb::value_error("n_candidates must be above 0");
        const SavedArrays saved_tree(tree, keep_);
        model_.is_multiclass = is_multiclass;
        model_.n_candidates = n_candidates;
        model_.set_space(checked_space(saved_tree.take<float>("space"), features));
        model_.forest = attached_forest(saved_tree, n_labels, model_.space.seen());
        model_.sigma = saved_tree.take<float>("sigma");
        if (model_.forest.n_trees() != 1) throw nb::value_error("a candidate tree is one tree");
        check_arrays(model_.sigma.size() == model_.forest.child.size(), "sigma");
        for (float s : model_.sigma) check_arrays(s >= 0 && std::isfinite(s), "sigma");
        model_.mark_head(saved_tree.take<std::int32_t>("head"));
        model_.base = model_.shape<const float>(weight_kind(weights), rank, has_slot_weights);
        const SavedArrays saved_base(base, keep_);
        model_.base.input = saved_base.take<float>("input");
        model_.base.output = saved_base.take<float>("output");
        model_.base.label_bias = saved_base.take<float>("label_bias");
        model_.base.slot_bias = saved_base.take<float>("slot_bias");
        model_.base.check();
    }

    CountedAnswers predict(const CsrInput& x, std::optional<std::int64_t> top_k, float threshold,
                           const std::optional<Floats>& label_threshold, std::int64_t n_leaves, int n_threads) const {
        const CsrView X = checked_rows(x, n_leaves);
        LabelQuery query = checked_query(model_.forest.n_labels, top_k, threshold, label_threshold);
        CsrAnswers<LabelProbability> answers(X.n_rows(), SpectralModel::chunk);
        std::int64_t n_products = 0;
        {
            nb::gil_scoped_release release;
            query.prepare(model_.forest.n_labels);
            n_products = model_.for_every_row(X, n_leaves, n_threads, [&](std::int64_t i, SpectralScratch& s) {
                model_.choose(query, s);
                answers.add(i, s.forest.found);
            });
            answers.join();
        }
        return std::move(answers).to_tuple(n_products);
    }

    /// Probabilities of these labels for each row: n x len(labels).
    auto named(const CsrInput& x, const Ints& labels, std::int64_t n_leaves, int n_threads) const {
        const CsrView X = checked_rows(x, n_leaves);
        check_named_labels(labels, model_.forest.n_labels);
        const auto n = static_cast<std::size_t>(X.n_rows()), n_named = labels.size();
        std::vector<float> probability(n * n_named, 0.0f);
        {
            nb::gil_scoped_release release;
            model_.for_every_row(X, n_leaves, n_threads, [&](std::int64_t i, SpectralScratch& s) {
                for (std::size_t k = 0; k < n_named; ++k)
                    if (const auto at = model_.place_of(labels.data()[k], s))
                        probability[static_cast<std::size_t>(i) * n_named + k] = s.probability[*at];
            });
        }
        return to_numpy(std::move(probability), {n, n_named});
    }

    RowAnswer predict_row(const Ints& indices, const Floats& values, std::int64_t top_k, float threshold,
                          std::int64_t n_leaves) const {
        thread_local SpectralScratch s;
        check_question(indices, values, n_leaves);
        model_.score({view(indices), view(values)}, n_leaves, s);
        LabelQuery query = checked_query(model_.forest.n_labels, top_k, threshold);
        query.prepare(model_.forest.n_labels);
        model_.choose(query, s);
        return row_answer(s.forest.found);
    }

    /// Each row's candidates: CSR parts, labels with their share of the training rows of its leaves.
    CountedAnswers candidates(const CsrInput& x, std::int64_t n_leaves, int n_threads) const {
        const CsrView X = checked_rows(x, n_leaves);
        CsrAnswers<LabelProbability> answers(X.n_rows(), SpectralModel::chunk);
        {
            nb::gil_scoped_release release;
            std::vector<SpectralScratch> scratch(usable_threads(n_threads, n_chunks(X.n_rows(), SpectralModel::chunk)));
            parallel_chunks(X.n_rows(), SpectralModel::chunk, n_threads,
                            [&](std::int64_t first, std::int64_t last, int worker) {
                                SpectralScratch& s = scratch[worker];
                                for (std::int64_t i = first; i < last; ++i) {
                                    model_.find_candidates(X.row(i), n_leaves, s);
                                    s.forest.found.clear();
                                    for (std::size_t k = 0; k < s.candidates.label.size(); ++k)
                                        s.forest.found.push_back({s.candidates.label[k], s.candidates.share[k]});
                                    answers.add(i, s.forest.found);
                                }
                            });
            answers.join();
        }
        return std::move(answers).to_tuple(0);
    }

    /// The leaf of each row: the one of prediction, or a random one if a seed is given.
    auto leaves(const CsrInput& x, std::optional<std::uint64_t> seed, int n_threads) const {
        const CsrView X = checked_rows(x, 1);
        std::vector<std::int32_t> leaf;
        {
            nb::gil_scoped_release release;
            leaf = leaves_of(model_.forest, model_.sigma, model_.space.prepared(X, n_threads), seed.has_value(),
                             seed.value_or(0), n_threads);
        }
        return to_numpy(std::move(leaf));
    }

    /// The leaves that each row reaches in fractions, as while the tree grew: where a row's begin, leaves, and the
    /// probabilities.
    CsrArrays fractions(const CsrInput& x, double min_path, int n_threads) const {
        const CsrView X = checked_rows(x, 1);
        if (!(min_path > 0 && min_path <= 1)) throw nb::value_error("min_path must be in (0, 1]");
        std::vector<std::int64_t> begin(static_cast<std::size_t>(X.n_rows()) + 1, 0);
        std::vector<std::int32_t> leaf;
        std::vector<float> share;
        {
            nb::gil_scoped_release release;
            const std::vector<std::vector<LeafShare>> found =
                leaf_shares(model_.forest, model_.sigma, model_.space.prepared(X, n_threads), min_path, n_threads);
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

    /// A row's way: for each node its score and what each feature added to it, the bias under the number after the last
    /// feature.
    PathSteps route(const Ints& indices, const Floats& values) const {
        SpectralScratch s;
        check_question(indices, values, 1);
        const ForestRow row = model_.place({view(indices), view(values)}, s);
        if (!model_.space.is_learned()) return forest_route(model_.forest, 0, row);
        nb::list steps;
        for (std::int64_t v = 0;;) {
            const double score = model_.forest.score(v, row);
            auto [feature, added] = model_.node_parts(v, s);
            steps.append(nb::make_tuple(v, score, to_numpy(std::move(feature)), to_numpy(std::move(added))));
            if (model_.forest.child[v] < 0) return steps;
            v = model_.forest.child[v] + (score > 0);
        }
    }

    /// What each feature of a row adds to the score of a candidate, and the bias at the end under the number after the
    /// last feature; None for no candidate.
    std::optional<Tuple<Array<std::int32_t>, Array<float>>> candidate_parts(const Ints& indices, const Floats& values,
                                                                            std::int32_t label,
                                                                            std::int64_t n_leaves) const {
        SpectralScratch s;
        check_question(indices, values, n_leaves);
        model_.find_candidates({view(indices), view(values)}, n_leaves, s);
        const auto at = model_.place_of(label, s);
        if (!at) return std::nullopt;
        const std::int64_t slot = s.candidates.slot(*at);
        std::vector<std::int32_t> feature;
        std::vector<float> added;
        for (const Entry& e : s.x) {
            feature.push_back(static_cast<std::int32_t>(e.feature));
            added.push_back(e.value * model_.base.weight(e.feature, label, slot));
        }
        feature.push_back(static_cast<std::int32_t>(model_.space.features.n_features));
        added.push_back(model_.base.label_bias[label] +
                        (slot < 0 ? s.candidates.mean_bias(*at) : model_.base.slot_bias[slot]));
        return nb::make_tuple(to_numpy(std::move(feature)), to_numpy(std::move(added)));
    }

    /// Stochastic gradient descent on arrays of the same shapes as the model's, written in place.
    void train(const FloatDict& base, const CsrInput& x, const LabelInput& y,
               const std::optional<Floats>& sample_weight, float learning_rate, float eps, bool has_slot_bias,
               int passes, bool is_shuffled, bool is_sampled, bool decays, std::uint64_t seed, int n_threads,
               Progress* progress) const {
        const CsrView X = checked_rows(x, 1);
        check_rising_labels(x, y, model_.forest.n_labels);
        const std::span<const float> weight =
            checked_positive(sample_weight, static_cast<std::size_t>(X.n_rows()), "sample_weight");
        if (passes < 0) throw nb::value_error("passes must not be negative");
        BaseDescent descent =
            descent_on(base, model_.shape<float>(model_.base.kind, model_.base.rank, model_.base.has_slot_weights),
                       {learning_rate, eps, model_.is_multiclass, has_slot_bias});
        nb::gil_scoped_release release;
        const PreparedRows rows(X, model_.space.features, n_threads);
        std::optional<PreparedRows> in_space;
        if (model_.space.is_learned()) in_space.emplace(model_.space.prepared(X, n_threads));
        const LabelledRows labelled{rows, model_.space.features.n_features, view(y.indptr), view(y.indices), weight};
        train_base(model_.forest, model_.sigma, labelled, in_space ? *in_space : rows, descent, is_sampled,
                   {passes, is_shuffled, decays}, seed, n_threads, progress);
    }

private:
    void check_n_leaves(std::int64_t n_leaves) const {
        if (n_leaves < 1 || n_leaves > SpectralModel::max_leaves)
            throw nb::value_error("n_leaves must be between 1 and 65,536");
        if (n_leaves > 1 && model_.base.has_slot_weights)
            throw nb::value_error("n_leaves must be 1 if each leaf has its own weights");
    }

    CsrView checked_rows(const CsrInput& x, std::int64_t n_leaves) const {
        check_n_leaves(n_leaves);
        return x.checked(model_.space.features.n_features, "X");
    }

    void check_question(const Ints& indices, const Floats& values, std::int64_t n_leaves) const {
        check_n_leaves(n_leaves);
        check_row(indices, values, model_.space.features.n_features);
    }

    SpectralModel model_;
    nb::list keep_;
};

}  // namespace

void bind_spectral_model(nb::module_& m) {
    nb::class_<BoundSpectral>(
        m, "SpectralModel",
        "A candidate tree and the classifier behind it over (memory-mapped) arrays, and their answers.")
        .def(nb::init<const ArrayDict&, const ArrayDict&, std::int64_t, std::int64_t, const FeatureSettings&, bool,
                      const std::string&, std::int64_t, bool>(),
             "tree"_a, "base"_a, "n_labels"_a, "n_candidates"_a, "features"_a, "is_multiclass"_a, "weights"_a, "rank"_a,
             "has_slot_weights"_a)
        .def("predict", &BoundSpectral::predict, "X"_a, "top_k"_a.none(), "threshold"_a, "label_threshold"_a.none(),
             "n_leaves"_a, "n_threads"_a,
             "CSR parts of the answer, rows sorted by label, and the number of inner products.")
        .def("predict_row", &BoundSpectral::predict_row, "indices"_a, "values"_a, "top_k"_a, "threshold"_a,
             "n_leaves"_a, "One row: labels and their probabilities, best first.")
        .def("named", &BoundSpectral::named, "X"_a, "labels"_a, "n_leaves"_a, "n_threads"_a,
             "Probabilities of these labels for each row.")
        .def("candidates", &BoundSpectral::candidates, "X"_a, "n_leaves"_a, "n_threads"_a,
             "CSR parts of each row's candidates with their shares.")
        .def("leaves", &BoundSpectral::leaves, "X"_a, "seed"_a.none(), "n_threads"_a,
             "The leaf of each row: the one of prediction, or a random one if a seed is given.")
        .def("fractions", &BoundSpectral::fractions, "X"_a, "min_path"_a, "n_threads"_a,
             "The leaves that each row reaches in fractions: where a row's begin, leaves, and the probabilities.")
        .def("route", &BoundSpectral::route, "indices"_a, "values"_a,
             "For each node on the row's way: node, score, features and what each added to the score.")
        .def("candidate_parts", &BoundSpectral::candidate_parts, "indices"_a, "values"_a, "label"_a, "n_leaves"_a,
             "What each feature of a row adds to a candidate's score, the bias last; None for a label that is none.")
        .def("train", &BoundSpectral::train, "base"_a, "X"_a, "Y"_a, "sample_weight"_a.none(), nb::kw_only(),
             "learning_rate"_a, "eps"_a, "has_slot_bias"_a, "passes"_a, "is_shuffled"_a, "is_sampled"_a, "decays"_a,
             "seed"_a, "n_threads"_a, "progress"_a.none() = nb::none(), "Train the classifier's arrays in place.");
}
