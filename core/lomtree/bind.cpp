/// Python's view of LOMtrees and of filter trees.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>

#include <cmath>
#include <limits>
#include <mutex>
#include <optional>
#include <shared_mutex>
#include <string>

#include "bindings/arrays.hpp"
#include "bindings/checks.hpp"
#include "bindings/csr_answers.hpp"
#include "lomtree/filter_tree.hpp"
#include "base/label_query.hpp"
#include "lomtree/lom_state.hpp"
#include "base/parallel.hpp"
#include "lomtree/regressor_state.hpp"
#include "bindings/saved_arrays.hpp"

namespace nb = nanobind;
using namespace nb::literals;
using namespace ramify;

namespace {

constexpr std::int64_t max_features = std::numeric_limits<std::int32_t>::max() - 1;
constexpr std::int64_t chunk = 256;  // rows that a thread takes at once

RegressorSettings regressor_settings(bool is_logistic, bool is_adaptive, float learning_rate, float eps, bool normalize, float bias) {
    if (!(learning_rate > 0) || !std::isfinite(learning_rate)) throw nb::value_error("learning_rate must be finite and above 0");
    if (!(eps > 0) || !std::isfinite(eps)) throw nb::value_error("eps must be finite and above 0");
    if (!(bias >= 0) || !(bias <= 1e6f)) throw nb::value_error("bias must be between 0 and a million");
    return {is_logistic, is_adaptive, learning_rate, eps, normalize, bias};
}

/// Rows to learn from, checked: one class each, weights, and the order in which they come.
struct LabelledRows {
    CsrView X;
    std::span<const std::int32_t> label;
    std::span<const float> weight;
    std::span<const std::int64_t> order;

    LabelledRows(const Longs& indptr, const Ints& indices, const Floats& data, const Ints& labels, std::int64_t n_labels,
                 const std::optional<Floats>& sample_weight, const std::optional<Longs>& given_order)
        : X(checked_csr(indptr, indices, data, max_features, "X")), label(view(labels)) {
        const auto n = static_cast<std::size_t>(X.n_rows());
        if (label.size() != n) throw nb::value_error("X and the classes differ in their number of rows");
        for (std::int32_t l : label)
            if (l < 0 || l >= n_labels) throw nb::value_error(("class " + std::to_string(l) + " is outside 0.." + std::to_string(n_labels - 1)).c_str());
        weight = checked_positive(sample_weight, n, "sample_weight");
        if (given_order) {
            order = view(*given_order);
            for (std::int64_t i : order)
                if (i < 0 || i >= X.n_rows()) throw nb::value_error("order names a row that is not there");
        }
        if (!rises_in_rows(X.indptr, X.indices)) throw nb::value_error("X: the features of a row must rise");
    }

    /// Calls work(prepared row, class, weight) in order.
    template <class Work>
    void for_each(const RegressorSettings& settings, Progress* progress, Work&& work) const {
        const std::int64_t n = order.empty() ? X.n_rows() : std::ssize(order);
        if (progress) progress->total += static_cast<std::size_t>(n);
        Watch watch;
        RegressorRow row;
        for (std::int64_t at = 0; at < n; ++at) {
            if (at % chunk == 0) watch.should_stop();
            const std::int64_t i = order.empty() ? at : order[at];
            prepare(X, i, settings, row);
            work(row, label[i], weight.empty() ? 1.0f : weight[i]);
            if (progress) ++progress->done;
        }
    }

    static void prepare(const CsrView& X, std::int64_t i, const RegressorSettings& settings, RegressorRow& row) {
        const auto [indices, values] = X.row(i);
        row.prepare(indices, values, settings);
    }
};

/// Calls work(row number, prepared row) for all rows, on several threads.
template <class Work>
void for_every_row(const CsrView& X, const RegressorSettings& settings, int n_threads, Work&& work) {
    parallel_chunks(X.n_rows(), chunk, n_threads, [&](std::int64_t first, std::int64_t last, int) {
        RegressorRow row;
        for (std::int64_t i = first; i < last; ++i) {
            LabelledRows::prepare(X, i, settings, row);
            work(i, row);
        }
    });
}

RegressorRow one_row(const Ints& indices, const Floats& values, const RegressorSettings& settings) {
    if (indices.size() != values.size()) throw nb::value_error("indices and values differ in length");
    std::int64_t last = -1;
    for (std::int32_t j : view(indices)) {
        if (j <= last || j >= max_features) throw nb::value_error("feature numbers must rise, from 0 on");
        last = j;
    }
    RegressorRow row;
    row.prepare(view(indices), view(values), settings);
    return row;
}

/// What a leaf's classes answer, best first.
void choose(const ClassCounts& classes, const LabelQuery& query, std::int64_t n_labels, std::vector<LabelProbability>& found) {
    found.clear();
    auto share = [&](double count) { return static_cast<float>(count / classes.total); };
    if (query.top_k == 1 && classes.total > 0 && query.label_threshold.empty()) {  // what `predict` asks
        if (share(classes.best_count) >= query.threshold) found.push_back({classes.best, share(classes.best_count)});
        return;
    }
    for (const ClassCount& c : classes.counts())
        if (share(c.reached) >= query.needed(c.label)) found.push_back({c.label, share(c.reached)});
    query.choose(found, n_labels, [&](std::int32_t l) { return classes.find(l) != nullptr; });
}

/// Every call lets go of the GIL and then takes the lock: threads may ask at the same time, one at a time may learn.
class BoundLomTree {
public:
    BoundLomTree(const RegressorSettings& regressor, std::int64_t max_nodes, double nodes_per_class, double swap_resistance, double forgetting)
        : tree_(LomSettings{regressor, max_nodes, nodes_per_class, swap_resistance, forgetting}) {
        if (max_nodes < -1) throw nb::value_error("max_nodes must not be negative");
        if (!(nodes_per_class > 0) || !(nodes_per_class <= 1e9)) throw nb::value_error("nodes_per_class must be above 0");
        if (!(swap_resistance >= 0) || !std::isfinite(swap_resistance)) throw nb::value_error("swap_resistance must be finite and not negative");
        if (!(forgetting >= 0 && forgetting < 1)) throw nb::value_error("forgetting must be at least 0 and below 1");
    }

    void learn(const Longs& indptr, const Ints& indices, const Floats& data, const Ints& labels, const std::optional<Floats>& sample_weight,
               const std::optional<Longs>& order, Progress* progress) {
        const LabelledRows rows(indptr, indices, data, labels, std::numeric_limits<std::int32_t>::max(), sample_weight, order);
        nb::gil_scoped_release release;
        const std::unique_lock lock(mutex_);
        rows.for_each(settings(), progress, [&](const RegressorRow& row, std::int32_t label, float weight) { tree_.learn(row, label, weight); });
    }

    /// Progressive validation: answers each row (classes, best first) by what was learned before it, then learns it.
    nb::tuple test_then_learn(const Longs& indptr, const Ints& indices, const Floats& data, const Ints& labels, std::int64_t top_k) {
        const LabelledRows rows(indptr, indices, data, labels, std::numeric_limits<std::int32_t>::max(), {}, {});
        RankedAnswers answers;
        {
            nb::gil_scoped_release release;
            const std::unique_lock lock(mutex_);
            LabelQuery query;
            query.top_k = std::max<std::int64_t>(top_k, 0);
            std::vector<LabelProbability> found;
            rows.for_each(settings(), nullptr, [&](const RegressorRow& row, std::int32_t label, float weight) {
                choose(tree_.answer(tree_.leaf(row)), query, 0, found);
                answers.add(found);
                tree_.learn(row, label, weight);
            });
        }
        return std::move(answers).to_tuple();
    }

    nb::tuple predict(const Longs& indptr, const Ints& indices, const Floats& data, std::int64_t n_labels, std::optional<std::int64_t> top_k, float threshold,
                      const std::optional<Floats>& label_threshold, int n_threads) const {
        const CsrView X = checked_csr(indptr, indices, data, max_features, "X");
        check_label_count(n_labels);
        LabelQuery query = checked_query(n_labels, top_k, threshold, label_threshold);
        CsrAnswers<LabelProbability> answers(X.n_rows(), chunk);
        {
            nb::gil_scoped_release release;
            const std::shared_lock lock(mutex_);
            refuse_fewer_labels(n_labels);
            query.prepare(n_labels);
            for_every_row(X, settings(), n_threads, [&](std::int64_t i, const RegressorRow& row) {
                thread_local std::vector<LabelProbability> found;
                choose(tree_.answer(tree_.leaf(row)), query, n_labels, found);
                answers.add(i, found);
            });
            answers.join();
        }
        return std::move(answers).to_tuple();
    }

    /// One row, answered best first, with as little ado as possible.
    nb::tuple predict_row(const Ints& indices, const Floats& values, std::int64_t n_labels, std::int64_t top_k, float threshold) const {
        const RegressorRow row = one_row(indices, values, settings());
        check_label_count(n_labels);
        LabelQuery query = checked_query(n_labels, top_k, threshold);
        std::vector<LabelProbability> found;
        {
            nb::gil_scoped_release release;
            const std::shared_lock lock(mutex_);
            refuse_fewer_labels(n_labels);
            query.prepare(n_labels);
            choose(tree_.answer(tree_.leaf(row)), query, n_labels, found);
        }
        return row_answer(found);
    }

    /// Probabilities of these labels for each row: n x len(labels).
    auto named(const Longs& indptr, const Ints& indices, const Floats& data, const Ints& labels, int n_threads) const {
        const CsrView X = checked_csr(indptr, indices, data, max_features, "X");
        const auto n = static_cast<std::size_t>(X.n_rows()), n_named = labels.size();
        std::vector<float> probability(n * n_named, 0.0f);
        {
            nb::gil_scoped_release release;
            const std::shared_lock lock(mutex_);
            for_every_row(X, settings(), n_threads, [&](std::int64_t i, const RegressorRow& row) {
                const ClassCounts& classes = tree_.answer(tree_.leaf(row));
                for (std::size_t k = 0; k < n_named; ++k)
                    if (const ClassCount* c = classes.find(labels.data()[k]))
                        probability[static_cast<std::size_t>(i) * n_named + k] = static_cast<float>(c->reached / classes.total);
            });
        }
        return to_numpy(std::move(probability), {n, n_named});
    }

    /// The leaf that each row reaches.
    auto leaves(const Longs& indptr, const Ints& indices, const Floats& data, int n_threads) const {
        const CsrView X = checked_csr(indptr, indices, data, max_features, "X");
        std::vector<std::int32_t> leaf(static_cast<std::size_t>(X.n_rows()));
        {
            nb::gil_scoped_release release;
            const std::shared_lock lock(mutex_);
            for_every_row(X, settings(), n_threads, [&](std::int64_t i, const RegressorRow& row) { leaf[i] = tree_.leaf(row); });
        }
        return to_numpy(std::move(leaf));
    }

    /// A row's way: for each node its examples, the class's share of what it answers, the score, and what each feature added; -1 is the bias.
    nb::list route(const Ints& indices, const Floats& values, std::int32_t label) const {
        const RegressorRow row = one_row(indices, values, settings());
        nb::list steps;
        const auto lock = locked_with_gil<std::shared_lock<std::shared_mutex>>();
        for (std::int32_t v = LomTree::root;;) {
            const LomNode& node = tree_.node(v);
            const ClassCounts& classes = tree_.answer(v);
            const ClassCount* count = classes.find(label);
            std::vector<std::int32_t> feature;
            std::vector<float> added;
            float score = 0;
            if (!node.is_leaf()) {
                score = node.regressor.score(row);
                for (std::size_t k = 0; k < row.column.size(); ++k)
                    if (const float w = node.regressor.weight(row.column[k]); w != 0.0f && row.value[k] != 0.0f) {
                        feature.push_back(static_cast<std::int32_t>(row.column[k]) - 1);
                        added.push_back(w * row.value[k]);
                    }
            }
            const float share = count ? static_cast<float>(count->reached / classes.total) : 0.0f;
            steps.append(nb::make_tuple(v, node.classes.total, share, score, to_numpy(std::move(feature)), to_numpy(std::move(added))));
            if (node.is_leaf()) return steps;
            v = LomTree::child(node, score);
        }
    }

    nb::dict state() const {
        LomArrays<OwnedArray> arrays;
        {
            nb::gil_scoped_release release;
            const std::shared_lock lock(mutex_);
            arrays = to_arrays(tree_);
        }
        return to_dict(std::move(arrays));
    }

    void restore(const nb::dict& arrays, std::int64_t n_labels) {
        nb::list keep;
        LomArrays<ArrayView> in;
        SavedArrays(arrays, keep).take_all(in);
        const auto lock = locked_with_gil<std::unique_lock<std::shared_mutex>>();
        from_arrays(in, n_labels, tree_);
    }

    template <class Question>
    auto asked(Question&& question) const {
        nb::gil_scoped_release release;
        const std::shared_lock lock(mutex_);
        return question(tree_);
    }

private:
    /// For work with Python objects. Nobody waits for the lock while he holds the GIL: its owner may need that to go on.
    template <class Lock>
    Lock locked_with_gil() const {
        Lock lock(mutex_, std::defer_lock);
        const nb::gil_scoped_release release;
        lock.lock();
        return lock;
    }

    const RegressorSettings& settings() const { return tree_.settings().regressor; }

    /// Thresholds are looked up by label.
    void refuse_fewer_labels(std::int64_t n_labels) const {
        for (const ClassCount& c : tree_.node(LomTree::root).classes.counts())
            if (c.label >= n_labels) throw std::invalid_argument("n_labels is below a class that was learned");
    }

    LomTree tree_;
    mutable std::shared_mutex mutex_;
};

/// A tournament that learns in `learn`, and is only asked afterwards.
class BoundFilterTree {
public:
    BoundFilterTree(const RegressorSettings& settings, const Ints& order) : tree_(settings, view(order)) {}

    /// How many of the rows' classes won all their matches before they were learned.
    double learn(const Longs& indptr, const Ints& indices, const Floats& data, const Ints& labels, const std::optional<Floats>& sample_weight,
                 const std::optional<Longs>& order, Progress* progress) {
        const LabelledRows rows(indptr, indices, data, labels, tree_.n_classes(), sample_weight, order);
        nb::gil_scoped_release release;
        std::int64_t width = 1;
        for (std::int32_t j : rows.X.indices) width = std::max<std::int64_t>(width, j + std::int64_t{2});
        const double mean = 1.0 + static_cast<double>(rows.X.indices.size()) / static_cast<double>(std::max<std::int64_t>(1, rows.X.n_rows()));
        const int dense_width = RegressorRow::is_full(mean, static_cast<double>(width)) ? round_to_regressor_lanes(width) : 0;
        double won = 0;
        rows.for_each(tree_.settings(), progress, [&](const RegressorRow& row, std::int32_t label, float weight) {
            if (tree_.learn(row, label, weight, dense_width)) won += weight;
        });
        return won;
    }

    auto winners(const Longs& indptr, const Ints& indices, const Floats& data, int n_threads) const {
        const CsrView X = checked_csr(indptr, indices, data, max_features, "X");
        std::vector<std::int32_t> winner(static_cast<std::size_t>(X.n_rows()));
        {
            nb::gil_scoped_release release;
            for_every_row(X, tree_.settings(), n_threads, [&](std::int64_t i, const RegressorRow& row) { winner[i] = tree_.winner(row); });
        }
        return to_numpy(std::move(winner));
    }

    nb::dict state() const {
        return to_dict(to_arrays(tree_.regressors()));
    }

    void restore(const nb::dict& arrays) {
        nb::list keep;
        RegressorArrays<ArrayView> in;
        SavedArrays(arrays, keep).take_all(in);
        tree_.restore(regressors_from(in, tree_.regressors().size()));
    }

private:
    FilterTree tree_;
};

}  // namespace

void bind_lomtree(nb::module_& m) {
    nb::class_<RegressorSettings>(m, "RegressorSettings", "How a node's linear regressor sees rows and learns from them.")
        .def("__init__", [](RegressorSettings* self, bool is_logistic, bool is_adaptive, float learning_rate, float eps, bool normalize, float bias) {
            new (self) RegressorSettings(regressor_settings(is_logistic, is_adaptive, learning_rate, eps, normalize, bias));
        }, nb::kw_only(), "is_logistic"_a, "is_adaptive"_a, "learning_rate"_a, "eps"_a, "normalize"_a, "bias"_a);
    nb::class_<BoundLomTree>(m, "LomTree", "A LOMtree that learns row by row.")
        .def(nb::init<const RegressorSettings&, std::int64_t, double, double, double>(), nb::kw_only(), "regressor"_a, "max_nodes"_a, "nodes_per_class"_a, "swap_resistance"_a,
             "forgetting"_a)
        .def("learn", &BoundLomTree::learn, "indptr"_a, "indices"_a, "data"_a, "labels"_a, "sample_weight"_a.none() = nb::none(), "order"_a.none() = nb::none(),
             "progress"_a.none() = nb::none(), "Learn rows of one class each, in order.")
        .def("test_then_learn", &BoundLomTree::test_then_learn, "indptr"_a, "indices"_a, "data"_a, "labels"_a, "top_k"_a,
             "Answer each row just before it is learned: where each answer begins, and classes, best first.")
        .def("predict", &BoundLomTree::predict, "indptr"_a, "indices"_a, "data"_a, "n_labels"_a, "top_k"_a.none(), "threshold"_a, "label_threshold"_a.none(),
             "n_threads"_a, "CSR parts of the answer, rows sorted by label.")
        .def("predict_row", &BoundLomTree::predict_row, "indices"_a, "values"_a, "n_labels"_a, "top_k"_a, "threshold"_a,
             "One row: labels and their probabilities, best first.")
        .def("named", &BoundLomTree::named, "indptr"_a, "indices"_a, "data"_a, "labels"_a, "n_threads"_a, "Probabilities of these labels for each row.")
        .def("leaves", &BoundLomTree::leaves, "indptr"_a, "indices"_a, "data"_a, "n_threads"_a, "The leaf that each row reaches.")
        .def("route", &BoundLomTree::route, "indices"_a, "values"_a, "label"_a,
             "For each node on the row's way: node, examples, the class's share, score, features (-1: the bias) and what each added.")
        .def("state", &BoundLomTree::state, "Everything learned, as arrays.")
        .def("restore", &BoundLomTree::restore, "arrays"_a, "n_labels"_a, "Take back what `state` gave.")
        .def_prop_ro("n_examples", [](const BoundLomTree& t) { return t.asked([](const LomTree& tree) { return tree.totals().n_examples; }); })
        .def_prop_ro("n_swaps", [](const BoundLomTree& t) { return t.asked([](const LomTree& tree) { return tree.totals().n_swaps; }); })
        .def_prop_ro("n_inner", [](const BoundLomTree& t) { return t.asked([](const LomTree& tree) { return tree.n_inner(); }); })
        .def_prop_ro("memory", [](const BoundLomTree& t) { return t.asked([](const LomTree& tree) { return tree.bytes(); }); });
    nb::class_<BoundFilterTree>(m, "FilterTree", "A tournament of classes.")
        .def(nb::init<const RegressorSettings&, const Ints&>(), "regressor"_a, "order"_a)
        .def("learn", &BoundFilterTree::learn, "indptr"_a, "indices"_a, "data"_a, "labels"_a, "sample_weight"_a.none(), "order"_a.none(), "progress"_a.none(),
             "Learn rows of one class each, in order; the weight of those whose class won all its matches before.")
        .def("winners", &BoundFilterTree::winners, "indptr"_a, "indices"_a, "data"_a, "n_threads"_a, "The class that wins, for each row.")
        .def("state", &BoundFilterTree::state, "The regressors, as arrays.")
        .def("restore", &BoundFilterTree::restore, "arrays"_a, "Take back what `state` gave.");
}
