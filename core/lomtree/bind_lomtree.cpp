/// Python bindings of LOMtrees.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>

#include <cmath>
#include <limits>
#include <mutex>
#include <optional>
#include <shared_mutex>

#include "base/label_query.hpp"
#include "base/model_mutex.hpp"
#include "base/parallel.hpp"
#include "bindings/arrays.hpp"
#include "bindings/casters.hpp"
#include "bindings/checks.hpp"
#include "bindings/csr_answers.hpp"
#include "bindings/regressor_rows.hpp"
#include "bindings/saved_arrays.hpp"
#include "lomtree/lom_state.hpp"

namespace nb = nanobind;
using namespace nb::literals;
using namespace ramify;

namespace {

RegressorSettings regressor_settings(bool is_logistic, bool is_adaptive, bool is_invariant, float learning_rate,
                                     float eps, bool normalize, float bias) {
    if (!(learning_rate > 0) || !std::isfinite(learning_rate))
        throw nb::value_error("learning_rate must be finite and above 0");
    if (!(eps > 0) || !std::isfinite(eps)) throw nb::value_error("eps must be finite and above 0");
    if (!(bias >= 0) || !(bias <= 1e6f)) throw nb::value_error("bias must be between 0 and a million");
    return {is_logistic, is_adaptive, is_invariant, learning_rate, eps, normalize, bias};
}

/// What a leaf's classes answer, best first.
void choose(const ClassCounts& classes, const LabelQuery& query, std::int64_t n_labels,
            std::vector<LabelProbability>& found) {
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

/// Every call releases the GIL and then takes the lock: threads may query at the same time, one at a time may learn.
class BoundLomTree {
public:
    BoundLomTree(const RegressorSettings& regressor, std::int64_t max_nodes, double nodes_per_class,
                 double swap_resistance, double forgetting)
        : tree_(LomSettings{regressor, max_nodes, nodes_per_class, swap_resistance, forgetting}) {
        if (max_nodes < -1) throw nb::value_error("max_nodes must not be negative");
        if (!(nodes_per_class > 0) || !(nodes_per_class <= 1e9))
            throw nb::value_error("nodes_per_class must be above 0");
        if (!(swap_resistance >= 0) || !std::isfinite(swap_resistance))
            throw nb::value_error("swap_resistance must be finite and not negative");
        if (!(forgetting >= 0 && forgetting < 1)) throw nb::value_error("forgetting must be at least 0 and below 1");
    }

    void learn(const CsrInput& x, const Ints& labels, const std::optional<Floats>& sample_weight,
               const std::optional<Longs>& order, Progress* progress) {
        const ClassRows rows(x, labels, std::numeric_limits<std::int32_t>::max(), sample_weight, order);
        nb::gil_scoped_release release;
        const std::unique_lock lock(mutex_);
        const ModelMutex::Change change(mutex_);
        rows.for_each(settings(), progress, [&](const RegressorRow& row, std::int32_t label, float weight) {
            tree_.learn(row, label, weight);
        });
    }

    /// Progressive validation: answers each row (classes, best first) by what was learned before it, then learns it.
    RankedRows test_then_learn(const CsrInput& x, const Ints& labels, std::int64_t top_k) {
        const ClassRows rows(x, labels, std::numeric_limits<std::int32_t>::max(), {}, {});
        RankedAnswers answers;
        {
            nb::gil_scoped_release release;
            const std::unique_lock lock(mutex_);
            const ModelMutex::Change change(mutex_);
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

    CsrArrays predict(const CsrInput& x, std::int64_t n_labels, std::optional<std::int64_t> top_k, float threshold,
                      const std::optional<Floats>& label_threshold, int n_threads) const {
        const CsrView X = x.checked(max_regressor_features, "X");
        check_label_count(n_labels);
        LabelQuery query = checked_query(n_labels, top_k, threshold, label_threshold);
        CsrAnswers<LabelProbability> answers(X.n_rows(), regressor_chunk);
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
    RowAnswer predict_row(const Ints& indices, const Floats& values, std::int64_t n_labels, std::int64_t top_k,
                          float threshold) const {
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
    auto named(const CsrInput& x, const Ints& labels, int n_threads) const {
        const CsrView X = x.checked(max_regressor_features, "X");
        const auto n = static_cast<std::size_t>(X.n_rows()), n_named = labels.size();
        std::vector<float> probability(n * n_named, 0.0f);
        {
            nb::gil_scoped_release release;
            const std::shared_lock lock(mutex_);
            for_every_row(X, settings(), n_threads, [&](std::int64_t i, const RegressorRow& row) {
                const ClassCounts& classes = tree_.answer(tree_.leaf(row));
                for (std::size_t k = 0; k < n_named; ++k)
                    if (const ClassCount* c = classes.find(labels.data()[k]))
                        probability[static_cast<std::size_t>(i) * n_named + k] =
                            static_cast<float>(c->reached / classes.total);
            });
        }
        return to_numpy(std::move(probability), {n, n_named});
    }

    /// The leaf that each row reaches.
    auto leaves(const CsrInput& x, int n_threads) const {
        const CsrView X = x.checked(max_regressor_features, "X");
        std::vector<std::int32_t> leaf(static_cast<std::size_t>(X.n_rows()));
        {
            nb::gil_scoped_release release;
            const std::shared_lock lock(mutex_);
            for_every_row(X, settings(), n_threads,
                          [&](std::int64_t i, const RegressorRow& row) { leaf[i] = tree_.leaf(row); });
        }
        return to_numpy(std::move(leaf));
    }

    /// A row's way: for each node its examples, the class's share of what it answers, the score, and what each feature
    /// added; -1 is the bias.
    List<Tuple<std::int32_t, double, float, float, Array<std::int32_t>, Array<float>>> route(const Ints& indices,
                                                                                             const Floats& values,
                                                                                             std::int32_t label) const {
        const RegressorRow row = one_row(indices, values, settings());
        nb::list steps;
        const auto lock = locked_with_gil<std::shared_lock<ModelMutex>>();
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
            steps.append(nb::make_tuple(v, node.classes.total, share, score, to_numpy(std::move(feature)),
                                        to_numpy(std::move(added))));
            if (node.is_leaf()) return steps;
            v = LomTree::child(node, score);
        }
    }

    ArrayDict state() const {
        LomArrays<OwnedArray> arrays;
        {
            nb::gil_scoped_release release;
            const std::shared_lock lock(mutex_);
            arrays = to_arrays(tree_);
        }
        return to_dict(std::move(arrays));
    }

    void restore(const ArrayDict& arrays, std::int64_t n_labels) {
        nb::list keep;
        LomArrays<ArrayView> in;
        SavedArrays(arrays, keep).take_all(in);
        const auto lock = locked_with_gil<std::unique_lock<ModelMutex>>();
        const ModelMutex::Change change(mutex_);
        from_arrays(in, n_labels, tree_);
    }

    template <class Question>
    auto asked(Question&& question) const {
        nb::gil_scoped_release release;
        const std::shared_lock lock(mutex_);
        return question(tree_);
    }

private:
    /// For work with Python objects. Never wait for this lock while holding the GIL: its owner may need the GIL.
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
            if (c.label >= n_labels) throw std::invalid_argument("n_labels is too small: a larger class was learned");
    }

    LomTree tree_;
    mutable ModelMutex mutex_;
};

}  // namespace

void bind_lomtree(nb::module_& m) {
    nb::class_<RegressorSettings>(m, "RegressorSettings",
                                  "How a node's linear regressor sees rows and learns from them.")
        .def(
            "__init__",
            [](RegressorSettings* self, bool is_logistic, bool is_adaptive, float learning_rate, float eps,
               bool normalize, float bias, bool is_invariant) {
                new (self) RegressorSettings(
                    regressor_settings(is_logistic, is_adaptive, is_invariant, learning_rate, eps, normalize, bias));
            },
            nb::kw_only(), "is_logistic"_a, "is_adaptive"_a, "learning_rate"_a, "eps"_a, "normalize"_a, "bias"_a,
            "is_invariant"_a = true);
    nb::class_<BoundLomTree>(m, "LomTree", "A LOMtree that learns row by row.")
        .def(nb::init<const RegressorSettings&, std::int64_t, double, double, double>(), nb::kw_only(), "regressor"_a,
             "max_nodes"_a, "nodes_per_class"_a, "swap_resistance"_a, "forgetting"_a)
        .def("learn", &BoundLomTree::learn, "X"_a, "labels"_a, "sample_weight"_a.none() = nb::none(),
             "order"_a.none() = nb::none(), "progress"_a.none() = nb::none(), "Learn rows of one class each, in order.")
        .def("test_then_learn", &BoundLomTree::test_then_learn, "X"_a, "labels"_a, "top_k"_a,
             "Answer each row just before it is learned: where each answer begins, and classes, best first.")
        .def("predict", &BoundLomTree::predict, "X"_a, "n_labels"_a, "top_k"_a.none(), "threshold"_a,
             "label_threshold"_a.none(), "n_threads"_a, "CSR parts of the answer, rows sorted by label.")
        .def("predict_row", &BoundLomTree::predict_row, "indices"_a, "values"_a, "n_labels"_a, "top_k"_a, "threshold"_a,
             "One row: labels and their probabilities, best first.")
        .def("named", &BoundLomTree::named, "X"_a, "labels"_a, "n_threads"_a,
             "Probabilities of these labels for each row.")
        .def("leaves", &BoundLomTree::leaves, "X"_a, "n_threads"_a, "The leaf that each row reaches.")
        .def("route", &BoundLomTree::route, "indices"_a, "values"_a, "label"_a,
             "For each node on the row's way: node, examples, the class's share, score, features (-1: the bias) and "
             "what each added.")
        .def("state", &BoundLomTree::state, "Everything learned, as arrays.")
        .def("restore", &BoundLomTree::restore, "arrays"_a, "n_labels"_a, "Restore what `state` returned.")
        .def_prop_ro(
            "n_examples",
            [](const BoundLomTree& t) { return t.asked([](const LomTree& tree) { return tree.totals().n_examples; }); })
        .def_prop_ro(
            "n_swaps",
            [](const BoundLomTree& t) { return t.asked([](const LomTree& tree) { return tree.totals().n_swaps; }); })
        .def_prop_ro("n_inner",
                     [](const BoundLomTree& t) { return t.asked([](const LomTree& tree) { return tree.n_inner(); }); })
        .def_prop_ro("memory",
                     [](const BoundLomTree& t) { return t.asked([](const LomTree& tree) { return tree.bytes(); }); });
}
