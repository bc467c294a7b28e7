/// Python's view of the hierarchical spectral method: growing a candidate tree, training what stands behind it, and their answers.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <cmath>
#include <limits>
#include <optional>
#include <string>

#include "arrays.hpp"
#include "checks.hpp"
#include "csr_answers.hpp"
#include "instance_forest.hpp"
#include "parallel.hpp"
#include "saved_arrays.hpp"
#include "spectral_base.hpp"
#include "spectral_grow.hpp"
#include "spectral_train.hpp"

namespace nb = nanobind;
using namespace nb::literals;
using namespace ramify;

namespace {

/// Labels that rise within each row.
void check_rising_labels(const Longs& x_indptr, const Longs& y_indptr, const Ints& y_indices, std::int64_t n_labels) {
    check_label_count(n_labels);
    check_label_rows(x_indptr, y_indptr, y_indices, n_labels);
    for (std::size_t i = 0; i + 1 < y_indptr.size(); ++i)
        for (std::int64_t k = y_indptr.data()[i] + 1; k < y_indptr.data()[i + 1]; ++k)
            if (y_indices.data()[k] <= y_indices.data()[k - 1]) throw nb::value_error("Y: labels of a row must rise");
    if (x_indptr.size() > static_cast<std::size_t>(std::numeric_limits<std::int32_t>::max())) throw nb::value_error("at most 2^31 - 2 rows");
}

EigenSettings eigen_settings(const std::string& solver, int max_iterations, double tolerance, int cg_iterations) {
    if (solver != "randomised" && solver != "power") throw nb::value_error("solver must be 'randomised' or 'power'");
    if (max_iterations < 1 || cg_iterations < 1 || !(tolerance >= 0)) throw nb::value_error("iterations must be above 0, tolerance not negative");
    return {solver == "randomised", max_iterations, tolerance, cg_iterations};
}

nb::dict grow(const Longs& x_indptr, const Ints& x_indices, const Floats& x_data, const Longs& y_indptr, const Ints& y_indices, std::int64_t n_labels,
              const Ints& head, const std::optional<Floats>& sample_weight, const FeatureSettings& features, const CandidateTreeSettings& settings,
              std::uint64_t seed, int n_threads, Progress* progress) {
    const CsrView X = checked_csr(x_indptr, x_indices, x_data, features.n_features, "X");
    check_rising_labels(x_indptr, y_indptr, y_indices, n_labels);
    if (X.n_rows() == 0) throw nb::value_error("a tree needs at least one row");
    if (features.bias != 1.0f) throw nb::value_error("a candidate tree keeps its medians in a bias feature of 1");
    for (std::int32_t l : view(head))
        if (l < 0 || l >= n_labels) throw nb::value_error("a head label is outside the labels");
    const std::span<const float> weight = checked_positive(sample_weight, static_cast<std::size_t>(X.n_rows()), "sample_weight");
    CandidateTreeStorage tree;
    {
        nb::gil_scoped_release release;
        const PreparedRows rows(X, features, n_threads);
        CandidateTreeGrower grower(rows, view(y_indptr), view(y_indices), n_labels, weight, view(head), features.n_features, settings, seed, n_threads);
        tree = grower.grow(progress);
    }
    return to_dict(std::move(tree));
}

/// All rows as the problem of one node.
struct WholeProblem {
    FeatureSettings features;
    PreparedRows rows;
    std::vector<std::int32_t> all;

    WholeProblem(const CsrView& X, int n_threads) : features{X.n_columns, false, 0.0f}, rows(X, features, n_threads), all(static_cast<std::size_t>(X.n_rows())) {
        for (std::size_t i = 0; i < all.size(); ++i) all[i] = static_cast<std::int32_t>(i);
    }

    SplitProblem problem(const Longs& y_indptr, const Ints& y_indices, std::int64_t n_labels, std::span<const double> importance, int n_threads) const {
        LocalNumbers local_features, local_labels;
        local_features.resize(static_cast<std::size_t>(features.n_features));
        local_labels.resize(static_cast<std::size_t>(n_labels));
        std::vector<float> sums;
        return SplitProblem({rows, view(y_indptr), view(y_indices), {}, static_cast<std::uint32_t>(features.n_features), all, importance}, local_features,
                           local_labels, sums, n_threads);
    }
};

CsrView checked_problem(const Longs& x_indptr, const Ints& x_indices, const Floats& x_data, const Longs& y_indptr, const Ints& y_indices,
                        std::int64_t n_features, std::int64_t n_labels, const Doubles& importance) {
    if (n_features < 0 || n_features >= std::numeric_limits<std::int32_t>::max()) throw nb::value_error("n_features is out of range");
    const CsrView X = checked_csr(x_indptr, x_indices, x_data, n_features, "X");
    check_rising_labels(x_indptr, y_indptr, y_indices, n_labels);
    checked_positive(importance, static_cast<std::size_t>(X.n_rows()), "importance");
    return X;
}

nb::tuple split_direction(const Longs& x_indptr, const Ints& x_indices, const Floats& x_data, const Longs& y_indptr, const Ints& y_indices,
                          std::int64_t n_features, std::int64_t n_labels, const Doubles& importance, const std::string& solver, int max_iterations,
                          double tolerance, int cg_iterations, std::uint64_t seed, int n_threads) {
    const CsrView X = checked_problem(x_indptr, x_indices, x_data, y_indptr, y_indices, n_features, n_labels, importance);
    const EigenSettings settings = eigen_settings(solver, max_iterations, tolerance, cg_iterations);
    std::vector<float> direction(static_cast<std::size_t>(n_features), 0.0f);
    double value = 0;
    {
        nb::gil_scoped_release release;
        const SplitProblem problem = WholeProblem(X, n_threads).problem(y_indptr, y_indices, n_labels, view(importance), n_threads);
        const TopDirection top = top_direction(problem, settings, seed, n_threads);
        for (std::size_t f = 0; f < top.w.size(); ++f) direction[problem.feature[f]] = top.w[f];
        value = top.value;
    }
    return nb::make_tuple(to_numpy(std::move(direction)), value);
}

auto least_squares(const Longs& y_indptr, const Ints& y_indices, std::int64_t n_labels, const Doubles& importance, const Floats& target, int cg_iterations) {
    if (target.size() + 1 != y_indptr.size()) throw nb::value_error("target needs an entry for each row");
    if (cg_iterations < 1) throw nb::value_error("cg_iterations must be above 0");
    const std::vector<std::int64_t> no_begin(y_indptr.size(), 0);
    check_rising_labels(y_indptr, y_indptr, y_indices, n_labels);
    checked_positive(importance, target.size(), "importance");
    std::vector<float> answer(static_cast<std::size_t>(n_labels), 0.0f);
    {
        nb::gil_scoped_release release;
        const CsrView X{no_begin, {}, {}, 1};
        const SplitProblem problem = WholeProblem(X, 1).problem(y_indptr, y_indices, n_labels, view(importance), 1);
        if (problem.has_classes()) throw std::invalid_argument("no row has two labels: there is nothing to solve");
        std::vector<float> scaled(target.size()), solution;
        for (std::size_t i = 0; i < scaled.size(); ++i) scaled[i] = static_cast<float>(target.data()[i] * std::sqrt(importance.data()[i]));
        SplitMatrix<1>(problem, cg_iterations, 1).solve(scaled, solution);
        std::vector<std::uint8_t> occurs(static_cast<std::size_t>(n_labels), 0);
        for (std::int32_t l : view(y_indices)) occurs[l] = 1;
        for (std::size_t l = 0, at = 0; l < occurs.size(); ++l)
            if (occurs[l]) answer[l] = solution[at++];
    }
    return to_numpy(std::move(answer));
}

double median_of(const Doubles& values, const Doubles& importance) {
    if (values.size() == 0) throw nb::value_error("no values have no median");
    checked_positive(importance, values.size(), "importance");
    for (double v : view(values))
        if (!std::isfinite(v)) throw nb::value_error("values must be finite");
    return weighted_median(view(values), view(importance));
}

std::span<float> take_own(const nb::dict& arrays, const char* name) {
    InOut<float> array;
    if (!arrays.contains(name) || !nb::try_cast(arrays[name], array, false))
        throw nb::value_error((std::string("learning needs an array of floats to write to, named ") + name).c_str());
    return writable(array);
}

WeightKind weight_kind(const std::string& name) {
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
        check_label_count(n_labels);
        if (features.bias != 1.0f) throw nb::value_error("a candidate tree keeps its medians in a bias feature of 1");
        const SavedArrays saved_tree(tree, keep_);
        saved_tree.take_all(forest_);
        sigma_ = saved_tree.take<float>("sigma");
        forest_.features = features;
        forest_.n_labels = n_labels;
        forest_.attach();
        if (forest_.n_trees() != 1) throw nb::value_error("a candidate tree is one tree");
        if (sigma_.size() != forest_.child.size()) throw nb::value_error("model arrays do not fit together: sigma");
        for (float s : sigma_)
            if (!(s >= 0) || !std::isfinite(s)) throw nb::value_error("model arrays do not fit together: sigma");
        base_ = shape<const float>(weights, rank, has_slot_weights);
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
        const ForestRow row = prepare_row(indices, values, s);
        const std::int64_t leaf = forest_.leaf(0, row, s.forest);
        InstanceForest::clear(row.x, s.forest.dense.data());
        score(leaf, row.x, s);
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
        Scratch s;
        const ForestRow row = prepare_row(indices, values, s);
        nb::list steps;
        for (std::int64_t v = 0;;) {
            std::vector<std::int32_t> feature;
            std::vector<float> contribution;
            for (std::int64_t k = forest_.weight_begin[v]; k < forest_.weight_begin[v + 1]; ++k) {
                const std::int32_t f = forest_.weight_feature[k];
                if (row.dense[f] == 0.0f) continue;
                feature.push_back(f);
                contribution.push_back(row.dense[f] * forest_.weight[k]);
            }
            const double score = forest_.score(v, row);
            steps.append(nb::make_tuple(v, score, to_numpy(std::move(feature)), to_numpy(std::move(contribution))));
            if (forest_.child[v] < 0) return steps;
            v = forest_.child[v] + (score > 0);
        }
    }

    /// What each feature of a row adds to the score of a candidate, and the bias at the end under the number after the last feature.
    nb::tuple slot_parts(const Ints& indices, const Floats& values, std::int64_t slot) const {
        if (slot < 0 || slot >= base_.n_slots) throw nb::value_error("there is no slot of this number");
        Scratch s;
        const ForestRow row = prepare_row(indices, values, s);
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
    template <class F>
    BaseParameters<F> shape(const std::string& weights, std::int64_t rank, bool has_slot_weights) const {
        return shape<F>(weight_kind(weights), rank, has_slot_weights);
    }

    std::span<const std::int32_t> candidates(std::int64_t leaf) const {
        return forest_.label.subspan(forest_.label_begin[leaf], forest_.label_begin[leaf + 1] - forest_.label_begin[leaf]);
    }

    std::span<const Entry> without_bias(std::span<const Entry> x) const { return x.first(x.size() - 1); }

    /// Probabilities of a leaf's candidates into s.probability.
    void score(std::int64_t leaf, std::span<const Entry> with_bias, Scratch& s) const {
        const std::span<const Entry> x = without_bias(with_bias);
        const std::int64_t first = forest_.label_begin[leaf];
        s.label = candidates(leaf);
        base_.project(x, s.hidden);
        s.probability.resize(s.label.size());
        for (std::size_t k = 0; k < s.label.size(); ++k) s.probability[k] = base_.score(x, s.hidden, s.label[k], first + static_cast<std::int64_t>(k));
        to_candidate_probabilities(s.probability, is_multiclass_);
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
            s.forest.dense.resize(static_cast<std::size_t>(forest_.features.n_columns()), 0.0f);
            for (std::int64_t i = first; i < last; ++i) {
                s.forest.entries.clear();
                const auto [indices, values] = X.row(i);
                forest_.features.append(indices, values, s.forest.entries);
                const std::span<const Entry> x = s.forest.entries;
                InstanceForest::scatter(x, s.forest.dense.data());
                const std::int64_t leaf = forest_.leaf(0, {x, s.forest.dense.data()}, s.forest);
                InstanceForest::clear(x, s.forest.dense.data());
                score(leaf, x, s);
                n_scored[worker] += static_cast<std::int64_t>(s.label.size());
                work(i, leaf, s);
            }
        });
        std::int64_t n_products = 0;
        for (const Scratch& s : scratch) n_products += s.forest.n_products;
        for (std::int64_t scored : n_scored) n_products += scored;
        return n_products;
    }

    /// Puts the row into the scratch's dense array; who asks clears it again.
    ForestRow prepare_row(const Ints& indices, const Floats& values, Scratch& s) const {
        check_row(indices, values, forest_.features.n_features);
        s.forest.dense.resize(static_cast<std::size_t>(forest_.features.n_columns()), 0.0f);
        s.forest.entries.clear();
        forest_.features.append(view(indices), view(values), s.forest.entries);
        InstanceForest::scatter(s.forest.entries, s.forest.dense.data());
        return {s.forest.entries, s.forest.dense.data()};
    }

    InstanceForest forest_;
    std::span<const float> sigma_;
    BaseParameters<const float> base_;
    bool is_multiclass_;
    nb::list keep_;
};

}  // namespace

void bind_spectral(nb::module_& m) {
    nb::class_<CandidateTreeSettings>(m, "CandidateTreeSettings", "How a candidate tree is grown.")
        .def(
            "__init__",
            [](CandidateTreeSettings* self, int max_depth, std::int64_t n_candidates, double recall, double noise, const std::string& deviation, double min_path, double prune,
               bool keeps_inner,
               const std::string& solver, int max_iterations, double tolerance, int cg_iterations) {
                if (max_depth < 0 || max_depth > 60) throw nb::value_error("max_depth must be between 0 and 60");
                if (n_candidates < 1 || n_candidates > std::numeric_limits<std::int32_t>::max()) throw nb::value_error("n_candidates must be above 0");
                if (!(recall >= 0) || !(noise >= 0) || !std::isfinite(noise)) throw nb::value_error("recall and noise must not be negative");
                if (!(min_path > 0 && min_path <= 1) || !(prune >= 0 && prune < 1)) throw nb::value_error("min_path must be in (0, 1], prune in [0, 1)");
                if (deviation != "eigenvalue" && deviation != "within") throw nb::value_error("deviation must be 'eigenvalue' or 'within'");
                new (self) CandidateTreeSettings{max_depth, n_candidates, recall, noise, deviation == "within", min_path, prune, keeps_inner,
                                                 eigen_settings(solver, max_iterations, tolerance, cg_iterations)};
            },
            nb::kw_only(), "max_depth"_a, "n_candidates"_a, "recall"_a, "noise"_a, "deviation"_a, "min_path"_a, "prune"_a, "keeps_inner"_a, "solver"_a, "max_iterations"_a,
            "tolerance"_a, "cg_iterations"_a);
    m.def("grow_candidate_tree", &grow, "x_indptr"_a, "x_indices"_a, "x_data"_a, "y_indptr"_a, "y_indices"_a, "n_labels"_a, "head"_a, "sample_weight"_a.none(),
          "features"_a, "settings"_a, "seed"_a, "n_threads"_a, "progress"_a.none() = nb::none(), "Grow a tree of eigen-splits; its arrays.");
    m.def("split_direction", &split_direction, "x_indptr"_a, "x_indices"_a, "x_data"_a, "y_indptr"_a, "y_indices"_a, "n_features"_a, "n_labels"_a,
          "importance"_a, "solver"_a, "max_iterations"_a, "tolerance"_a, "cg_iterations"_a, "seed"_a, "n_threads"_a,
          "The direction that splits all these rows, and its eigenvalue.");
    m.def("least_squares_labels", &least_squares, "y_indptr"_a, "y_indices"_a, "n_labels"_a, "importance"_a, "target"_a, "cg_iterations"_a,
          "Weights of labels whose sums come closest to a target, by conjugate gradients.");
    m.def("weighted_median", &median_of, "values"_a, "importance"_a, "The value that parts the importance into halves.");
    nb::class_<BoundSpectral>(m, "SpectralModel", "A candidate tree and the classifier behind it over (memory-mapped) arrays, and their answers.")
        .def(nb::init<const nb::dict&, const nb::dict&, std::int64_t, const FeatureSettings&, bool, const std::string&, std::int64_t, bool>(), "tree"_a,
             "base"_a, "n_labels"_a, "features"_a, "is_multiclass"_a, "weights"_a, "rank"_a, "has_slot_weights"_a)
        .def("predict", &BoundSpectral::predict, "indptr"_a, "indices"_a, "data"_a, "top_k"_a.none(), "threshold"_a, "label_threshold"_a.none(), "n_threads"_a,
             "CSR parts of the answer, rows sorted by label, and the number of inner products.")
        .def("predict_row", &BoundSpectral::predict_row, "indices"_a, "values"_a, "top_k"_a, "threshold"_a, "One row: labels and their probabilities, best first.")
        .def("named", &BoundSpectral::named, "indptr"_a, "indices"_a, "data"_a, "labels"_a, "n_threads"_a, "Probabilities of these labels for each row.")
        .def("leaves", &BoundSpectral::leaves, "indptr"_a, "indices"_a, "data"_a, "seed"_a.none(), "n_threads"_a,
             "The leaf of each row: the one of prediction, or with a seed one by chance.")
        .def("fractions", &BoundSpectral::fractions, "indptr"_a, "indices"_a, "data"_a, "min_path"_a, "n_threads"_a,
             "The leaves that each row reaches in fractions: where a row's begin, leaves, and the probabilities.")
        .def("route", &BoundSpectral::route, "indices"_a, "values"_a, "For each node on the row's way: node, score, features and what each added to the score.")
        .def("slot_parts", &BoundSpectral::slot_parts, "indices"_a, "values"_a, "slot"_a, "What each feature of a row adds to a candidate's score; the bias is the last.")
        .def("train", &BoundSpectral::train, "base"_a, "x_indptr"_a, "x_indices"_a, "x_data"_a, "y_indptr"_a, "y_indices"_a, "sample_weight"_a.none(),
             nb::kw_only(), "learning_rate"_a, "eps"_a, "has_slot_bias"_a, "passes"_a, "is_shuffled"_a, "is_sampled"_a, "decays"_a, "seed"_a, "n_threads"_a,
             "progress"_a.none() = nb::none(), "Train the classifier's arrays in place.");
}
