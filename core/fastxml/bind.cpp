/// Python bindings of FastXML: growing a forest, its answers, and the two kernels that tests call alone.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <cmath>
#include <limits>
#include <optional>
#include <string>

#include "base/parallel.hpp"
#include "bindings/arrays.hpp"
#include "bindings/casters.hpp"
#include "bindings/checks.hpp"
#include "bindings/csr_answers.hpp"
#include "bindings/saved_arrays.hpp"
#include "fastxml/grow_forest.hpp"
#include "forest/forest_bindings.hpp"
#include "forest/instance_forest.hpp"

namespace nb = nanobind;
using namespace nb::literals;
using namespace ramify;

namespace {

ArrayDict grow(const CsrInput& x, const LabelInput& y, std::int64_t n_labels, const std::optional<Floats>& label_gain,
               const std::optional<Floats>& sample_weight, const FeatureSettings& features,
               const ForestSettings& settings, std::uint64_t seed, int n_threads, Progress* progress,
               std::uint64_t first_tree) {
    const CsrView X = x.checked(features.n_features, "X");
    check_label_count(n_labels);
    check_label_rows(x, y, n_labels);
    const auto n_rows = static_cast<std::size_t>(X.n_rows());
    if (n_rows == 0) throw nb::value_error("a forest needs at least one row");
    if (n_rows > static_cast<std::size_t>(std::numeric_limits<std::int32_t>::max()))
        throw nb::value_error("a forest takes at most 2^31 - 1 rows");
    const std::span<const float> weight = checked_positive(sample_weight, n_rows, "sample_weight");
    const std::span<const float> gain = checked_positive(label_gain, static_cast<std::size_t>(n_labels), "label_gain");
    ForestStorage forest;
    {
        nb::gil_scoped_release release;
        const PreparedRows rows(X, features, n_threads);
        const RankedLabels labels(view(y.indptr), view(y.indices), gain, weight);
        const ForestData data(rows, labels, weight, features.n_columns(), n_labels);
        forest = grow_forest(data, settings, seed, n_threads, progress, first_tree);
    }
    return to_dict(std::move(forest));
}

auto separate(const CsrInput& x, std::int64_t n_features, const Bytes& is_positive, const Floats& cost, double eps,
              int max_newton, std::uint64_t seed) {
    if (n_features < 0 || n_features > std::numeric_limits<std::int32_t>::max())
        throw nb::value_error("n_features is out of range");
    const CsrView X = x.checked(n_features, "X");
    const auto n_rows = static_cast<std::size_t>(X.n_rows());
    if (is_positive.size() != n_rows || cost.size() != n_rows)
        throw nb::value_error("is_positive and cost need an entry for each row");
    std::vector<double> weight;
    {
        nb::gil_scoped_release release;
        SeparatorProblem problem;
        problem.is_positive.assign(view(is_positive).begin(), view(is_positive).end());
        problem.cost.assign(view(cost).begin(), view(cost).end());
        problem.begin.assign(static_cast<std::size_t>(n_features) + 1, 0);
        for (std::int32_t j : X.indices) ++problem.begin[static_cast<std::size_t>(j) + 1];
        for (std::size_t j = 1; j < problem.begin.size(); ++j) problem.begin[j] += problem.begin[j - 1];
        problem.cells.resize(X.indices.size());
        std::vector<std::size_t> next(problem.begin.begin(), problem.begin.end() - 1);
        for (std::size_t i = 0; i < n_rows; ++i)
            for (std::int64_t k = X.indptr[i]; k < X.indptr[i + 1]; ++k)
                problem.cells[next[X.indices[k]]++] = {static_cast<std::uint32_t>(i), X.data[k]};
        SeparatorSolver solver;
        Watch watch;
        solver.solve(problem, {.C = 1.0, .eps = eps, .max_newton = max_newton}, seed, &watch);
        weight = std::move(solver.weight);
    }
    return to_numpy(std::move(weight));
}

Tuple<Array<std::int8_t>, Array<double>> split_by_ranking(const LabelInput& y, std::int64_t n_labels,
                                                          const std::optional<Floats>& label_gain,
                                                          const std::optional<Floats>& sample_weight,
                                                          const Bytes& start, int max_iterations) {
    check_label_count(n_labels);
    check_csr(view(y.indptr), view(y.indices), n_labels, "Y");
    const std::size_t n_rows = y.indptr.size() - 1;
    if (start.size() != n_rows) throw nb::value_error("start needs an entry for each row");
    const std::span<const float> gain = checked_positive(label_gain, static_cast<std::size_t>(n_labels), "label_gain");
    const std::span<const float> weight = checked_positive(sample_weight, n_rows, "sample_weight");
    std::vector<std::int8_t> side;
    std::vector<double> objectives;
    {
        nb::gil_scoped_release release;
        for (std::int8_t s : view(start)) side.push_back(s != 0);
        std::vector<std::int32_t> rows(n_rows);
        for (std::size_t i = 0; i < n_rows; ++i) rows[i] = static_cast<std::int32_t>(i);
        Watch watch;
        RankingSplit(static_cast<std::size_t>(n_labels))
            .run({view(y.indptr), view(y.indices), gain, weight}, rows, side, max_iterations, &objectives, &watch);
    }
    return nb::make_tuple(to_numpy(std::move(side)), to_numpy(std::move(objectives)));
}

/// A grown forest. Keeps the numpy arrays alive that it reads, memory-mapped ones too.
class BoundForest {
public:
    BoundForest(const ArrayDict& arrays, std::int64_t n_labels, const FeatureSettings& features)
        : forest_(attached_forest(SavedArrays(arrays, keep_), n_labels, features)) {}

    CountedAnswers predict(const CsrInput& x, std::optional<std::int64_t> top_k, float threshold,
                           const std::optional<Floats>& label_threshold, int n_threads) const {
        const CsrView X = x.checked(forest_.features.n_features, "X");
        LabelQuery query = checked_query(forest_.n_labels, top_k, threshold, label_threshold);
        CsrAnswers<LabelProbability> answers(X.n_rows(), chunk);
        std::int64_t n_products = 0;
        {
            nb::gil_scoped_release release;
            query.prepare(forest_.n_labels);
            n_products = for_every_row(X, n_threads,
                                       [&](std::int64_t i, std::span<const std::int32_t> leaves, ForestScratch& s) {
                                           forest_.average(leaves, s);
                                           forest_.choose(query, s);
                                           forest_.forget(s);
                                           answers.add(i, s.found);
                                       });
            answers.join();
        }
        return std::move(answers).to_tuple(n_products);
    }

    /// Probabilities of these labels for each row: n x len(labels).
    auto named(const CsrInput& x, const Ints& labels, int n_threads) const {
        const CsrView X = x.checked(forest_.features.n_features, "X");
        check_named_labels(labels, forest_.n_labels);
        const auto n = static_cast<std::size_t>(X.n_rows()), n_named = labels.size();
        std::vector<float> probability(n * n_named);
        {
            nb::gil_scoped_release release;
            for_every_row(X, n_threads, [&](std::int64_t i, std::span<const std::int32_t> leaves, ForestScratch& s) {
                forest_.average(leaves, s);
                for (std::size_t k = 0; k < n_named; ++k)
                    probability[static_cast<std::size_t>(i) * n_named + k] = s.total[labels.data()[k]];
                forest_.forget(s);
            });
        }
        return to_numpy(std::move(probability), {n, n_named});
    }

    /// The leaf of each row in each tree: n x n_trees.
    auto leaves(const CsrInput& x, int n_threads) const {
        const CsrView X = x.checked(forest_.features.n_features, "X");
        const auto n = static_cast<std::size_t>(X.n_rows()), n_trees = static_cast<std::size_t>(forest_.n_trees());
        std::vector<std::int32_t> leaf(n * n_trees);
        {
            nb::gil_scoped_release release;
            for_every_row(X, n_threads, [&](std::int64_t i, std::span<const std::int32_t> of_row, ForestScratch&) {
                std::ranges::copy(of_row,
                                  leaf.begin() + static_cast<std::ptrdiff_t>(static_cast<std::size_t>(i) * n_trees));
            });
        }
        return to_numpy(std::move(leaf), {n, n_trees});
    }

    /// One row, answered best first, with little overhead.
    RowAnswer predict_row(const Ints& indices, const Floats& values, std::int64_t top_k, float threshold) const {
        thread_local ForestScratch s;
        forest_.resize(s);
        const ForestRow row = placed_row(forest_, indices, values, s);
        std::vector<std::int32_t> leaves(static_cast<std::size_t>(forest_.n_trees()));
        for (std::size_t t = 0; t < leaves.size(); ++t)
            leaves[t] = static_cast<std::int32_t>(forest_.leaf(static_cast<std::int64_t>(t), row, s));
        InstanceForest::clear(row.x, s.dense.data());
        LabelQuery query = checked_query(forest_.n_labels, top_k, threshold);
        query.prepare(forest_.n_labels);
        forest_.average(leaves, s);
        forest_.choose(query, s);
        forest_.forget(s);
        return row_answer(s.found);
    }

    /// A row's way through a tree: nodes from the root to the leaf, and for each but the last what each feature added
    /// to the score.
    PathSteps route(const Ints& indices, const Floats& values, std::int64_t tree) const {
        if (tree < 0 || tree >= forest_.n_trees()) throw nb::value_error("tree is out of range");
        ForestScratch s;
        return forest_route(forest_, tree, placed_row(forest_, indices, values, s));
    }

private:
    static constexpr std::int64_t chunk = 1024;  ///< rows that a thread takes at once

    /// Calls work(row, its leaves, scratch) for every row. The rows of a chunk go through one tree after the other, so
    /// that a tree stays in the cache meanwhile. The number of inner products.
    template <class Work>
    std::int64_t for_every_row(const CsrView& X, int n_threads, Work&& work) const {
        const std::int64_t n_trees = forest_.n_trees();
        std::vector<ForestScratch> scratch(usable_threads(n_threads, n_chunks(X.n_rows(), chunk)));
        parallel_chunks(X.n_rows(), chunk, n_threads, [&](std::int64_t first, std::int64_t last, int worker) {
            ForestScratch& s = scratch[worker];
            const auto n_rows = static_cast<std::size_t>(last - first);
            forest_.resize(s);
            s.entries.clear();
            std::vector<std::size_t> begin{0};
            for (std::int64_t i = first; i < last; ++i) {
                const auto [indices, values] = X.row(i);
                forest_.features.append(indices, values, s.entries);
                begin.push_back(s.entries.size());
            }
            std::vector<std::int32_t> leaf(n_rows * static_cast<std::size_t>(n_trees));
            for (std::int64_t t = 0; t < n_trees; ++t)
                for (std::size_t k = 0; k < n_rows; ++k) {
                    const std::span<const Entry> x(s.entries.data() + begin[k], begin[k + 1] - begin[k]);
                    InstanceForest::scatter(x, s.dense.data());
                    leaf[k * n_trees + t] = static_cast<std::int32_t>(forest_.leaf(t, {x, s.dense.data()}, s));
                    InstanceForest::clear(x, s.dense.data());
                }
            for (std::int64_t i = first; i < last; ++i)
                work(i, std::span<const std::int32_t>(leaf).subspan((i - first) * n_trees, n_trees), s);
        });
        std::int64_t n_products = 0;
        for (const ForestScratch& s : scratch) n_products += s.n_products;
        return n_products;
    }

    nb::list keep_;
    InstanceForest forest_;
};

}  // namespace

void bind_fastxml(nb::module_& m) {
    nb::class_<ForestSettings>(m, "ForestSettings", "How the trees of a forest are grown.")
        .def(
            "__init__",
            [](ForestSettings* self, std::int64_t n_trees, double max_leaf, std::int64_t labels_per_leaf,
               int max_iterations, double C, double eps, int max_newton) {
                if (n_trees < 1 || n_trees > 1'000'000) throw nb::value_error("n_trees must be between 1 and 1000000");
                if (!(max_leaf > 0) || labels_per_leaf < 1 || max_iterations < 1 || max_newton < 1)
                    throw nb::value_error("max_leaf, labels_per_leaf, max_iterations and max_newton must be above 0");
                if (!(C > 0) || !std::isfinite(C) || !(eps >= 0))
                    throw nb::value_error("C must be finite and above 0, eps not negative");
                new (self) ForestSettings{n_trees, max_leaf, labels_per_leaf, max_iterations, {C, eps, max_newton}};
            },
            nb::kw_only(), "n_trees"_a, "max_leaf"_a, "labels_per_leaf"_a, "max_iterations"_a, "C"_a, "eps"_a,
            "max_newton"_a);
    m.def("grow_forest", &grow, "X"_a, "Y"_a, "n_labels"_a, "label_gain"_a.none(), "sample_weight"_a.none(),
          "features"_a, "settings"_a, "seed"_a, "n_threads"_a, "progress"_a.none() = nb::none(), "first_tree"_a = 0,
          "Grow FastXML's trees, or some of a larger forest from `first_tree` on; the arrays of the forest.");
    m.def("l1_logistic", &separate, "X"_a, "n_features"_a, "is_positive"_a, "cost"_a, "eps"_a, "max_newton"_a, "seed"_a,
          "Weights of the L1-regularised logistic regression of some rows.");
    m.def("split_by_ranking", &split_by_ranking, "Y"_a, "n_labels"_a, "label_gain"_a.none(), "sample_weight"_a.none(),
          "start"_a, "max_iterations"_a,
          "The side of each row after the nDCG alternation from these sides, and the objective of each round.");
    nb::class_<BoundForest>(m, "InstanceForest", "A grown forest over (memory-mapped) arrays, and its answers.")
        .def(nb::init<const ArrayDict&, std::int64_t, const FeatureSettings&>(), "arrays"_a, "n_labels"_a, "features"_a)
        .def("predict", &BoundForest::predict, "X"_a, "top_k"_a.none(), "threshold"_a, "label_threshold"_a.none(),
             "n_threads"_a, "CSR parts of the answer, rows sorted by label, and the number of inner products.")
        .def("predict_row", &BoundForest::predict_row, "indices"_a, "values"_a, "top_k"_a, "threshold"_a,
             "One row: labels and their probabilities, best first.")
        .def("named", &BoundForest::named, "X"_a, "labels"_a, "n_threads"_a,
             "Probabilities of these labels for each row.")
        .def("leaves", &BoundForest::leaves, "X"_a, "n_threads"_a, "The leaf of each row in each tree.")
        .def("route", &BoundForest::route, "indices"_a, "values"_a, "tree"_a,
             "For each node on the row's way through a tree: node, score, features and what each added to the score.");
}
