/// Python bindings of contextual memory trees.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <cmath>
#include <limits>
#include <mutex>
#include <optional>
#include <string>

#include "base/model_mutex.hpp"
#include "base/parallel.hpp"
#include "bindings/arrays.hpp"
#include "bindings/casters.hpp"
#include "bindings/checks.hpp"
#include "bindings/csr_answers.hpp"
#include "bindings/learning_rows.hpp"
#include "bindings/saved_arrays.hpp"
#include "memory_tree/answers.hpp"
#include "memory_tree/options.hpp"
#include "memory_tree/state.hpp"
#include "memory_tree/tree.hpp"

namespace nb = nanobind;
using namespace nb::literals;
using namespace ramify;

namespace {

constexpr std::int64_t any_feature = std::numeric_limits<std::int32_t>::max();

/// A neighbour's slot, arrival, weight, share of the vote, score, labels, features and what each added to the score.
using Voter =
    Tuple<std::uint32_t, std::uint64_t, float, double, double, Array<std::int32_t>, Array<std::int32_t>, Array<float>>;
/// A node, the examples below it, the share of them with the label, the router's score, whether the path goes right,
/// features and what each added.
using RouterStep = Tuple<std::int32_t, std::uint32_t, double, double, bool, Array<std::int32_t>, Array<float>>;

/// Every call takes the lock after releasing the GIL: Python threads take turns.
class BoundMemoryTree {
    struct Locked {
        nb::gil_scoped_release release;
        std::scoped_lock<ModelMutex> lock;
        explicit Locked(BoundMemoryTree& self) : lock(self.mutex_) {}
    };
    template <class Work>
    auto locked(Work&& work) {
        const Locked lock(*this);
        return work();
    }

public:
    explicit BoundMemoryTree(const MemoryTreeSettings& settings) : tree_(settings) {}

    void learn(const CsrInput& x, const LabelInput& y, const std::optional<Floats>& sample_weight,
               const std::optional<Longs>& order, Progress* progress) {
        learn_rows(x, y, sample_weight, order, progress, [](const MemoryScratch&) {});
    }

    /// Progressive validation: answers each row (labels, best first) by what was learned before it, then learns it.
    RankedRows test_then_learn(const CsrInput& x, const LabelInput& y, std::int64_t top_k) {
        RankedAnswers answers;
        std::vector<LabelProbability> found;
        AnswerSettings wanted;
        wanted.top_k = std::max<std::int64_t>(top_k, 0);
        learn_rows(x, y, {}, {}, nullptr, [&](const MemoryScratch& s) {
            best_labels(s.candidates, wanted, found);
            answers.add(found);
        });
        return std::move(answers).to_tuple();
    }

    /// Another epoch over the stored examples, by slot in this order.
    void revisit(const Longs& order, Progress* progress) {
        const Locked locked(*this);
        const auto n = static_cast<std::int64_t>(tree_.store().size());
        for (std::int64_t slot : view(order))
            if (slot < 0 || slot >= n) throw nb::value_error("order contains an example that is not stored");
        if (progress) progress->total = order.size();
        const ModelMutex::Change change(mutex_);
        Watch watch;
        for (std::size_t k = 0; k < order.size(); ++k) {
            tree_.revisit(static_cast<std::uint32_t>(order.data()[k]), scratch_);
            if (k % 16 == 0) watch.should_stop();
            if (progress) progress->done = k + 1;
        }
    }

    /// CSR parts of the answer, rows sorted by label; then how many nodes and examples were looked at.
    Tuple<Array<std::int64_t>, Array<std::int32_t>, Array<float>, std::int64_t, std::int64_t> query(
        const CsrInput& x, std::int64_t n_labels, std::optional<std::int64_t> top_k, float threshold,
        const std::optional<Floats>& label_threshold, int n_threads) {
        const CsrView X = x.checked(any_feature, "X");
        AnswerSettings wanted = answer_settings(n_labels, top_k, threshold);
        if (label_threshold) {
            if (std::ssize(view(*label_threshold)) != n_labels)
                throw nb::value_error("label_threshold needs a value for each label");
            wanted.label_threshold = view(*label_threshold);
        }
        CsrAnswers<LabelProbability> answers(X.n_rows(), chunk);
        std::int64_t n_nodes = 0, n_examples = 0;
        {
            const Locked locked(*this);
            for_rows(X, n_threads, n_nodes, n_examples,
                     [&](std::int64_t i, const MemoryScratch& s, std::vector<LabelProbability>& found) {
                         best_labels(s.candidates, wanted, found, is_uninformed());
                         answers.add(i, found);
                     });
            answers.join();
        }
        return std::move(answers).to_tuple(n_nodes, n_examples);
    }

    /// One row, answered best first.
    RowAnswer query_row(const Ints& indices, const Floats& values, std::int64_t n_labels,
                        std::optional<std::int64_t> top_k, float threshold) {
        check_finite_row(indices, values);
        const AnswerSettings wanted = answer_settings(n_labels, top_k, threshold);
        std::vector<LabelProbability> found;
        {
            const Locked locked(*this);
            ask(indices, values);
            best_labels(scratch_.candidates, wanted, found, is_uninformed());
        }
        return row_answer(found);
    }

    /// Probabilities of these labels, a row of them for each row of X.
    nb::ndarray<nb::numpy, float> named(const CsrInput& x, std::int64_t n_labels, const Ints& labels, int n_threads) {
        const CsrView X = x.checked(any_feature, "X");
        const std::size_t width = labels.size();
        std::vector<float> out(static_cast<std::size_t>(X.n_rows()) * width, 0.0f);
        {
            const Locked locked(*this);
            std::int64_t n_nodes = 0, n_examples = 0;
            for_rows(X, n_threads, n_nodes, n_examples, [&](std::int64_t i, const MemoryScratch& s, auto&) {
                for (std::size_t k = 0; k < width; ++k) {
                    const auto at = std::ranges::lower_bound(s.candidates, labels.data()[k], {}, &Candidate::label);
                    if (at != s.candidates.end() && at->label == labels.data()[k])
                        out[i * width + k] = static_cast<float>(at->probability);
                    else if (is_uninformed())
                        out[i * width + k] = 1.0f / static_cast<float>(std::max<std::int64_t>(1, n_labels));
                }
            });
        }
        return to_numpy(std::move(out), {static_cast<std::size_t>(X.n_rows()), width});
    }

    /// The examples that vote for a row, best first.
    List<Voter> neighbours(const Ints& indices, const Floats& values) {
        check_finite_row(indices, values);
        const Locked locked(*this);
        ask(indices, values);
        const nb::gil_scoped_acquire gil;
        nb::list out;
        std::vector<double> scaled(tree_.features().size(), 0.0);
        tree_.scorer().scatter(scratch_.x, scaled.data());
        for (const Neighbour& n : scratch_.neighbours) {
            const StoredExample& e = tree_.store()[n.slot];
            std::vector<std::int32_t> feature;
            std::vector<float> added;
            for (const Entry& entry : e.x)
                if (scaled[entry.feature] != 0.0) {
                    feature.push_back(static_cast<std::int32_t>(tree_.features().feature(entry.feature)));
                    added.push_back(static_cast<float>(scaled[entry.feature] * entry.value));
                }
            out.append(nb::make_tuple(n.slot, e.arrival, e.weight, n.share, n.score,
                                      to_numpy(std::vector<std::int32_t>(e.labels)), to_numpy(std::move(feature)),
                                      to_numpy(std::move(added))));
        }
        return out;
    }

    /// From the root to a stored example's leaf.
    List<RouterStep> route(const Ints& indices, const Floats& values, std::int64_t slot, std::int32_t label) {
        check_finite_row(indices, values);
        const Locked locked(*this);
        if (slot < 0 || slot >= static_cast<std::int64_t>(tree_.store().size()))
            throw nb::value_error("no such example is stored");
        scratch_.x.clear();
        tree_.prepare(view(indices), view(values), scratch_.x);
        std::vector<std::int32_t> number(tree_.n_node_slots(), -1), path;
        const std::vector<std::int32_t> order = MemoryState::breadth_first(tree_);
        for (std::size_t i = 0; i < order.size(); ++i) number[order[i]] = static_cast<std::int32_t>(i);
        std::vector<std::uint32_t> n_with_label(tree_.n_node_slots(), 0);
        if (label >= 0)
            for (std::uint32_t other : tree_.store().with_label(label))
                for (std::int32_t v = tree_.store()[other].leaf; v >= 0; v = tree_.node(v).parent) ++n_with_label[v];
        for (std::int32_t v = tree_.store()[static_cast<std::uint32_t>(slot)].leaf; v >= 0; v = tree_.node(v).parent)
            path.push_back(v);
        const nb::gil_scoped_acquire gil;
        nb::list out;
        for (std::size_t k = path.size(); k-- > 0;) {
            const MemoryNode& v = tree_.node(path[k]);
            std::vector<std::int32_t> feature;
            std::vector<float> added;
            double score = 0.0;
            if (!v.is_leaf()) {
                score = v.router->score(scratch_.x);
                for (const Entry& e : scratch_.x)
                    if (const float w = v.router->weight(e.feature); w != 0.0f) {
                        feature.push_back(static_cast<std::int32_t>(tree_.features().feature(e.feature)));
                        added.push_back(w * e.value);
                    }
                feature.push_back(-1);
                added.push_back(static_cast<float>(v.router->bias().weight * SparseLogistic::bias_value));
            }
            const bool right = !v.is_leaf() && v.right == path[k - 1];
            out.append(nb::make_tuple(number[path[k]], v.n,
                                      static_cast<double>(n_with_label[path[k]]) / std::max(1u, v.n), score, right,
                                      to_numpy(std::move(feature)), to_numpy(std::move(added))));
        }
        return out;
    }

    ArrayDict state() {
        MemoryState::Owned arrays;
        {
            const Locked locked(*this);
            arrays = MemoryState::to_arrays(tree_);
        }
        return to_dict(std::move(arrays));
    }

    void restore(const ArrayDict& arrays, std::int64_t n_labels) {
        MemoryState::Viewed in;
        nb::list keep;
        SavedArrays(arrays, keep).take_back_all(in);
        const Locked locked(*this);
        const ModelMutex::Change change(mutex_);
        if (tree_.n_learned() > 0) throw nb::value_error("only a new memory tree can restore a model");
        MemoryTree tree(tree_.settings());
        MemoryState::from_arrays(in, std::min<std::int64_t>(n_labels, std::numeric_limits<std::int32_t>::max()), tree);
        tree_ = std::move(tree);
    }

    std::uint64_t n_learned() {
        return locked([&] { return tree_.n_learned(); });
    }
    std::uint64_t n_forgotten() {
        return locked([&] { return tree_.n_forgotten(); });
    }
    std::size_t n_examples() {
        return locked([&] { return tree_.store().size(); });
    }
    std::size_t leaf_capacity() {
        return locked([&] { return tree_.leaf_capacity(); });
    }
    std::size_t memory() {
        return locked([&] { return tree_.bytes(); });
    }
    double sharpness() {
        return locked([&] { return tree_.scorer().sharpness(); });
    }

private:
    /// Multi-class and nothing stored: all classes are equally probable.
    bool is_uninformed() const { return tree_.settings().is_multiclass && tree_.store().size() == 0; }

    static AnswerSettings answer_settings(std::int64_t n_labels, std::optional<std::int64_t> top_k, float threshold) {
        if (n_labels < 0 || (top_k && *top_k < 0)) throw nb::value_error("n_labels and top_k must not be negative");
        AnswerSettings wanted;
        wanted.n_labels = n_labels;
        if (top_k) wanted.top_k = *top_k;
        wanted.threshold = threshold;
        wanted.fills_up = true;
        return wanted;
    }

    static void check_finite_row(const Ints& indices, const Floats& values) {
        check_row(indices, values);
        check_finite(view(values));
    }
    static void check_finite(std::span<const float> values) {
        for (float v : values)
            if (!std::isfinite(v)) throw nb::value_error("a value is NaN or infinite");
    }

    void ask(const Ints& indices, const Floats& values) {
        scratch_.x.clear();
        tree_.prepare(view(indices), view(values), scratch_.x);
        tree_.query(scratch_.x, scratch_);
    }

    template <class Seen>
    void learn_rows(const CsrInput& x, const LabelInput& y, const std::optional<Floats>& sample_weight,
                    const std::optional<Longs>& order, Progress* progress, Seen&& seen) {
        const LearningRows rows(x, y, sample_weight, order, any_feature);
        check_finite(rows.X.data);
        if (!rises_in_rows(rows.label_begin, rows.labels))
            throw nb::value_error("labels of a row must be strictly increasing");
        const Locked locked(*this);
        const ModelMutex::Change change(mutex_);
        rows.for_each(progress, [&](const RowView& row, std::span<const std::int32_t> labels, float weight) {
            tree_.learn(row.indices, row.values, labels, weight, scratch_, seen);
        });
    }

    static constexpr std::int64_t chunk = 64;  ///< rows that a thread takes at once

    /// work(row number, scratch with the query's answer, room) for every row.
    template <class Work>
    void for_rows(const CsrView& X, int n_threads, std::int64_t& n_nodes, std::int64_t& n_examples, Work&& work) const {
        check_finite(X.data);
        std::vector<MemoryScratch> scratch(usable_threads(n_threads, n_chunks(X.n_rows(), chunk)));
        std::vector<std::vector<LabelProbability>> found(scratch.size());
        parallel_chunks(X.n_rows(), chunk, n_threads, [&](std::int64_t first, std::int64_t last, int worker) {
            MemoryScratch& s = scratch[worker];
            for (std::int64_t i = first; i < last; ++i) {
                const auto [indices, values] = X.row(i);
                s.x.clear();
                tree_.prepare(indices, values, s.x);
                tree_.query(s.x, s);
                work(i, s, found[worker]);
            }
        });
        for (const MemoryScratch& s : scratch) {
            n_nodes += s.n_nodes;
            n_examples += s.n_examples;
        }
    }

    MemoryTree tree_;
    MemoryScratch scratch_;
    ModelMutex mutex_;
};

}  // namespace

void bind_memory_tree(nb::module_& m) {
    nb::class_<BoundMemoryTree>(
        m, "MemoryTree", "Stored examples in the leaves of a tree whose routers and scorer learn, example by example.")
        .def(
            "__init__",
            [](BoundMemoryTree* self, double leaf_multiplier, double alpha, int reroutes, int n_leaves,
               int n_neighbours, double learning_rate, double eps, double scorer_rate, bool normalize,
               bool is_multiclass, bool has_one_against_rest, std::size_t max_examples, const std::string& forget,
               std::uint64_t seed) {
                new (self) BoundMemoryTree(memory_tree_settings(
                    leaf_multiplier, alpha, reroutes, n_leaves, n_neighbours, learning_rate, eps, scorer_rate,
                    normalize, is_multiclass, has_one_against_rest, max_examples, forget, seed));
            },
            nb::kw_only(), "leaf_multiplier"_a, "alpha"_a, "reroutes"_a, "n_leaves"_a, "n_neighbours"_a,
            "learning_rate"_a, "eps"_a, "scorer_rate"_a, "normalize"_a, "is_multiclass"_a, "has_one_against_rest"_a,
            "max_examples"_a, "forget"_a, "seed"_a)
        .def("learn", &BoundMemoryTree::learn, "X"_a, "Y"_a, "sample_weight"_a.none(), "order"_a.none(),
             "progress"_a.none(), "Learn and store the rows, in the order given or their own.")
        .def("test_then_learn", &BoundMemoryTree::test_then_learn, "X"_a, "Y"_a, "top_k"_a,
             "Answer each row by what was learned before it, then learn it: where rows begin, and labels, best first.")
        .def("revisit", &BoundMemoryTree::revisit, "order"_a, "progress"_a.none(),
             "Another epoch over stored examples, by slot.")
        .def("query", &BoundMemoryTree::query, "X"_a, "n_labels"_a, "top_k"_a.none(), "threshold"_a,
             "label_threshold"_a.none(), "n_threads"_a,
             "CSR parts of the answer, rows sorted by label, and how many nodes and examples were looked at.")
        .def("query_row", &BoundMemoryTree::query_row, "indices"_a, "values"_a, "n_labels"_a, "top_k"_a.none(),
             "threshold"_a, "One row: labels and their probabilities, best first.")
        .def("named", &BoundMemoryTree::named, "X"_a, "n_labels"_a, "labels"_a, "n_threads"_a,
             "Probabilities of these labels, a row of them for each row.")
        .def("neighbours", &BoundMemoryTree::neighbours, "indices"_a, "values"_a,
             "Examples that vote, best first: slot, arrival, weight, share, score, labels, features, and what each "
             "added to the score.")
        .def("route", &BoundMemoryTree::route, "indices"_a, "values"_a, "slot"_a, "label"_a,
             "To a stored example's leaf: node, examples below, the label's share, score, whether right, features (-1: "
             "bias), and what each added.")
        .def("state", &BoundMemoryTree::state, "Everything that is stored and learned, as arrays.")
        .def("restore", &BoundMemoryTree::restore, "arrays"_a, "n_labels"_a,
             "Restore what state returned; labels are below n_labels.")
        .def_prop_ro("n_learned", &BoundMemoryTree::n_learned, "Rows learned.")
        .def_prop_ro("n_examples", &BoundMemoryTree::n_examples, "Examples stored.")
        .def_prop_ro("n_forgotten", &BoundMemoryTree::n_forgotten, "Examples that left.")
        .def_prop_ro("leaf_capacity", &BoundMemoryTree::leaf_capacity, "Examples that a leaf may hold by now.")
        .def_prop_ro("sharpness", &BoundMemoryTree::sharpness, "What scores are multiplied with before the vote.")
        .def_prop_ro("memory", &BoundMemoryTree::memory, "Bytes held.");
}
