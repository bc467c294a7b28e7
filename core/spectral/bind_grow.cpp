/// Python bindings of the hierarchical spectral method: growing a candidate tree, and the kernels that tests call
/// alone.
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

#include "bindings/arrays.hpp"
#include "bindings/casters.hpp"
#include "bindings/checks.hpp"
#include "bindings/saved_arrays.hpp"
#include "bindings/spectral_arrays.hpp"
#include "spectral/grow.hpp"
#include "spectral/space.hpp"

namespace nb = nanobind;
using namespace nb::literals;
using namespace ramify;

namespace {

EigenSettings eigen_settings(const std::string& solver, int max_iterations, double tolerance, int cg_iterations,
                             bool squares_frequency) {
    if (solver != "randomised" && solver != "power") throw nb::value_error("solver must be 'randomised' or 'power'");
    if (max_iterations < 1 || cg_iterations < 1 || !(tolerance >= 0))
        throw nb::value_error("iterations must be above 0, tolerance not negative");
    return {solver == "randomised", max_iterations, tolerance, cg_iterations, squares_frequency};
}

ArrayDict grow(const CsrInput& x, const LabelInput& y, std::int64_t n_labels, const Ints& head,
               const std::optional<Floats>& sample_weight, const FeatureSettings& features, const Floats& space_vectors,
               const CandidateTreeSettings& settings, std::uint64_t seed, int n_threads, Progress* progress) {
    const CsrView X = x.checked(features.n_features, "X");
    check_rising_labels(x, y, n_labels);
    if (X.n_rows() == 0) throw nb::value_error("a tree needs at least one row");
    const TreeSpace space = checked_space(view(space_vectors), features);
    for (std::int32_t l : view(head))
        if (l < 0 || l >= n_labels) throw nb::value_error("a head label is >= n_labels or negative");
    const std::span<const float> weight =
        checked_positive(sample_weight, static_cast<std::size_t>(X.n_rows()), "sample_weight");
    CandidateTreeStorage tree;
    {
        nb::gil_scoped_release release;
        const PreparedRows rows = space.prepared(X, n_threads);
        CandidateTreeGrower grower(rows, view(y.indptr), view(y.indices), n_labels, weight, view(head),
                                   space.seen().n_features, settings, seed, n_threads);
        tree = grower.grow(progress);
    }
    return to_dict(std::move(tree));
}

void train_groups(const FloatDict& base, const CsrInput& x, const LabelInput& y,
                  const std::optional<Floats>& sample_weight, const FeatureSettings& features, bool is_multiclass,
                  std::int64_t n_labels, std::int64_t rank, float learning_rate, float eps, std::int64_t group_size,
                  int passes, bool is_shuffled, std::uint64_t seed, int n_threads, Progress* progress) {
    const CsrView X = x.checked(features.n_features, "X");
    check_rising_labels(x, y, n_labels);
    const std::span<const float> weight =
        checked_positive(sample_weight, static_cast<std::size_t>(X.n_rows()), "sample_weight");
    if (passes < 0 || group_size < 1) throw nb::value_error("passes must not be negative, group_size above 0");
    if (features.bias != 0.0f) throw nb::value_error("bias must be 0: the classifier has its own biases");
    BaseParameters<float> shape;
    shape.n_features = features.n_features;
    shape.n_labels = n_labels;
    shape.rank = rank;
    BaseDescent descent = descent_on(base, shape, {learning_rate, eps, is_multiclass, false});
    nb::gil_scoped_release release;
    const PreparedRows rows(X, features, n_threads);
    const LabelledRows labelled{rows, features.n_features, view(y.indptr), view(y.indices), weight};
    train_against_groups(labelled, descent, group_size, {passes, is_shuffled, true}, seed, progress);
}

/// All rows as the problem of one node.
struct WholeProblem {
    FeatureSettings features;
    PreparedRows rows;
    std::vector<std::int32_t> all;

    WholeProblem(const CsrView& X, int n_threads)
        : features{X.n_columns, false, 0.0f}, rows(X, features, n_threads), all(static_cast<std::size_t>(X.n_rows())) {
        for (std::size_t i = 0; i < all.size(); ++i) all[i] = static_cast<std::int32_t>(i);
    }

    SplitProblem problem(const LabelInput& y, std::int64_t n_labels, std::span<const double> importance,
                         bool squares_frequency, int n_threads) const {
        LocalNumbers local_features, local_labels;
        local_features.resize(static_cast<std::size_t>(features.n_features));
        local_labels.resize(static_cast<std::size_t>(n_labels));
        std::vector<float> sums;
        return SplitProblem({rows,
                             view(y.indptr),
                             view(y.indices),
                             {},
                             static_cast<std::uint32_t>(features.n_features),
                             all,
                             importance},
                            local_features, local_labels, sums, squares_frequency, n_threads);
    }
};

CsrView checked_problem(const CsrInput& x, const LabelInput& y, std::int64_t n_features, std::int64_t n_labels,
                        const Doubles& importance) {
    if (n_features < 0 || n_features >= std::numeric_limits<std::int32_t>::max())
        throw nb::value_error("n_features is out of range");
    const CsrView X = x.checked(n_features, "X");
    check_rising_labels(x, y, n_labels);
    checked_positive(importance, static_cast<std::size_t>(X.n_rows()), "importance");
    return X;
}

Tuple<Array<float>, double> split_direction(const CsrInput& x, const LabelInput& y, std::int64_t n_features,
                                            std::int64_t n_labels, const Doubles& importance, const std::string& solver,
                                            int max_iterations, double tolerance, int cg_iterations, std::uint64_t seed,
                                            int n_threads, bool squares_frequency) {
    const CsrView X = checked_problem(x, y, n_features, n_labels, importance);
    const EigenSettings settings = eigen_settings(solver, max_iterations, tolerance, cg_iterations, squares_frequency);
    std::vector<float> direction(static_cast<std::size_t>(n_features), 0.0f);
    double value = 0;
    {
        nb::gil_scoped_release release;
        const SplitProblem problem =
            WholeProblem(X, n_threads).problem(y, n_labels, view(importance), squares_frequency, n_threads);
        const TopDirection top = top_direction(problem, settings, seed, n_threads);
        for (std::size_t f = 0; f < top.w.size(); ++f) direction[problem.feature[f]] = top.w[f];
        value = top.value;
    }
    return nb::make_tuple(to_numpy(std::move(direction)), value);
}

auto least_squares(const LabelInput& y, std::int64_t n_labels, const Doubles& importance, const Floats& target,
                   int cg_iterations) {
    if (target.size() + 1 != y.indptr.size()) throw nb::value_error("target needs an entry for each row");
    if (cg_iterations < 1) throw nb::value_error("cg_iterations must be above 0");
    const std::vector<std::int64_t> no_begin(y.indptr.size(), 0);
    check_rising_labels(y, y, n_labels);
    checked_positive(importance, target.size(), "importance");
    std::vector<float> answer(static_cast<std::size_t>(n_labels), 0.0f);
    {
        nb::gil_scoped_release release;
        const CsrView X{no_begin, {}, {}, 1};
        const SplitProblem problem = WholeProblem(X, 1).problem(y, n_labels, view(importance), false, 1);
        if (problem.has_classes()) throw std::invalid_argument("no row has two labels: there is nothing to solve");
        std::vector<float> scaled(target.size()), solution;
        for (std::size_t i = 0; i < scaled.size(); ++i)
            scaled[i] = static_cast<float>(target.data()[i] * std::sqrt(importance.data()[i]));
        SplitMatrix<1>(problem, cg_iterations, 1).solve(scaled, solution);
        std::vector<std::uint8_t> occurs(static_cast<std::size_t>(n_labels), 0);
        for (std::int32_t l : view(y.indices)) occurs[l] = 1;
        for (std::size_t l = 0, at = 0; l < occurs.size(); ++l)
            if (occurs[l]) answer[l] = solution[at++];
    }
    return to_numpy(std::move(answer));
}

double median_of(const Doubles& values, const Doubles& importance) {
    if (values.size() == 0) throw nb::value_error("values must not be empty");
    checked_positive(importance, values.size(), "importance");
    for (double v : view(values))
        if (!std::isfinite(v)) throw nb::value_error("values must be finite");
    return weighted_median(view(values), view(importance));
}

}  // namespace

void bind_candidate_trees(nb::module_& m) {
    nb::class_<CandidateTreeSettings>(m, "CandidateTreeSettings", "How a candidate tree is grown.")
        .def(
            "__init__",
            [](CandidateTreeSettings* self, int max_depth, std::int64_t n_candidates, double recall, double noise,
               const std::string& deviation, double min_path, double prune, bool keeps_inner, const std::string& solver,
               int max_iterations, double tolerance, int cg_iterations, bool squares_frequency) {
                if (max_depth < 0 || max_depth > 60) throw nb::value_error("max_depth must be between 0 and 60");
                if (n_candidates < 1 || n_candidates > std::numeric_limits<std::int32_t>::max())
                    throw nb::value_error("n_candidates must be above 0");
                if (!(recall >= 0) || !(noise >= 0) || !std::isfinite(noise))
                    throw nb::value_error("recall and noise must not be negative");
                if (!(min_path > 0 && min_path <= 1) || !(prune >= 0 && prune < 1))
                    throw nb::value_error("min_path must be in (0, 1], prune in [0, 1)");
                if (deviation != "eigenvalue" && deviation != "within")
                    throw nb::value_error("deviation must be 'eigenvalue' or 'within'");
                new (self) CandidateTreeSettings{
                    max_depth,
                    n_candidates,
                    recall,
                    noise,
                    deviation == "within",
                    min_path,
                    prune,
                    keeps_inner,
                    eigen_settings(solver, max_iterations, tolerance, cg_iterations, squares_frequency)};
            },
            nb::kw_only(), "max_depth"_a, "n_candidates"_a, "recall"_a, "noise"_a, "deviation"_a, "min_path"_a,
            "prune"_a, "keeps_inner"_a, "solver"_a, "max_iterations"_a, "tolerance"_a, "cg_iterations"_a,
            "squares_frequency"_a = false);
    m.def("grow_candidate_tree", &grow, "X"_a, "Y"_a, "n_labels"_a, "head"_a, "sample_weight"_a.none(), "features"_a,
          "space"_a, "settings"_a, "seed"_a, "n_threads"_a, "progress"_a.none() = nb::none(),
          "Grow a tree of eigen-splits; its arrays.");
    m.def("split_direction", &split_direction, "X"_a, "Y"_a, "n_features"_a, "n_labels"_a, "importance"_a, "solver"_a,
          "max_iterations"_a, "tolerance"_a, "cg_iterations"_a, "seed"_a, "n_threads"_a, "squares_frequency"_a = false,
          "The direction that splits all these rows, and its eigenvalue.");
    m.def("least_squares_labels", &least_squares, "Y"_a, "n_labels"_a, "importance"_a, "target"_a, "cg_iterations"_a,
          "Weights of labels whose sums come closest to a target, by conjugate gradients.");
    m.def("weighted_median", &median_of, "values"_a, "importance"_a,
          "The value that parts the importance into halves.");
    m.def("train_against_groups", &train_groups, "base"_a, "X"_a, "Y"_a, "sample_weight"_a.none(), "features"_a,
          nb::kw_only(), "is_multiclass"_a, "n_labels"_a, "rank"_a, "learning_rate"_a, "eps"_a, "group_size"_a,
          "passes"_a, "is_shuffled"_a, "seed"_a, "n_threads"_a, "progress"_a.none() = nb::none(),
          "Train a classifier of low rank in place, each row against a random group of labels.");
}
