/// Python bindings of online label trees.
#include <nanobind/nanobind.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include "bindings/online_learner.hpp"

namespace nb = nanobind;
using namespace nb::literals;
using namespace ramify;

void bind_online(nb::module_& m) {
    nb::class_<BoundLearner>(m, "OnlineLearner", "A label tree that learns, and grows, example by example.")
        .def(
            "__init__",
            [](BoundLearner* self, const std::string& rule, float learning_rate, float eps, float decay, float l2,
               bool normalize, float bias, bool is_multiclass, std::size_t buffer_entries, std::size_t memory_budget,
               const std::string& policy, double alpha, double fair_share, int arity, int pre_leaf_arity,
               std::uint64_t seed, bool eps_in_root, std::int64_t beam) {
                LearnerOptions options = learner_options(rule, learning_rate, eps, eps_in_root, decay, l2, normalize,
                                                         bias, is_multiclass, buffer_entries, memory_budget, policy,
                                                         alpha, fair_share, arity, pre_leaf_arity, seed);
                options.settings.beam = beam;
                new (self) BoundLearner(options);
            },
            nb::kw_only(), "rule"_a, "learning_rate"_a, "eps"_a, "decay"_a, "l2"_a, "normalize"_a, "bias"_a,
            "is_multiclass"_a, "buffer_entries"_a, "memory_budget"_a, "policy"_a, "alpha"_a, "fair_share"_a, "arity"_a,
            "pre_leaf_arity"_a, "seed"_a, "eps_in_root"_a = false, "beam"_a = 0)
        .def("adopt", &BoundLearner::adopt, "tree"_a, "Start with this tree.")
        .def("learn", &BoundLearner::learn, "X"_a, "Y"_a, "sample_weight"_a.none(), "order"_a.none(), "n_threads"_a,
             "own_policy"_a.none(), "progress"_a.none(), "Learn the rows, in the order given or their own.")
        .def("test_then_learn", &BoundLearner::test_then_learn, "X"_a, "Y"_a, "top_k"_a, "n_threads"_a,
             "own_policy"_a.none(),
             "Answer each row by what was learned before it, then learn it: where rows begin, and labels, best first.")
        .def("apply_all", &BoundLearner::apply_all, "n_threads"_a, "Bring every block up to date.")
        .def("search", &BoundLearner::search, "X"_a, "top_k"_a.none(), "threshold"_a, "label_threshold"_a.none(),
             "n_threads"_a, "CSR parts of the answer, rows sorted by label, and the number of inner products taken.")
        .def("search_row", &BoundLearner::search_row, "indices"_a, "values"_a, "top_k"_a, "threshold"_a,
             "One row: labels and their probabilities, best first.")
        .def("named", &BoundLearner::named, "X"_a, "labels"_a, "n_threads"_a,
             "Probabilities of the labels named for each row.")
        .def("explain", &BoundLearner::explain, "indices"_a, "values"_a, "label"_a,
             "For each node on the label's path: node, conditional probability, features (-1: bias) and what each "
             "added to the score.")
        .def("tree", &BoundLearner::tree, "Parents and labels of the tree's nodes, numbered breadth first.")
        .def("freeze", &BoundLearner::freeze, "n_features"_a, "prune"_a, "n_threads"_a,
             "Arrays of frozen blocks, with the tree's parent and label.")
        .def("state", &BoundLearner::state, "n_threads"_a, "replay"_a = false,
             "Everything that is learned, as arrays; with replay, rows that are kept as their steps come as weights.")
        .def("restore", &BoundLearner::restore, "arrays"_a, "n_labels"_a,
             "Restore what state returned; labels are below n_labels.")
        .def("first_without_leaf", &BoundLearner::first_without_leaf, "labels"_a,
             "The first of these labels that has no leaf in the tree, or -1.")
        .def("children", &BoundLearner::children, "node"_a,
             "Children of a node, by the numbers of their making; the root is 0.")
        .def("is_leaf", &BoundLearner::is_leaf, "node"_a)
        .def("n_leaves", &BoundLearner::n_leaves, "node"_a, "Labels below a node.")
        .def("probabilities", &BoundLearner::probabilities, "node"_a, "indices"_a, "values"_a,
             "Conditional probabilities of a node's children.")
        .def_prop_ro("n_examples", &BoundLearner::n_examples, "Examples learned.")
        .def_prop_ro("n_updates", &BoundLearner::n_updates, "Updates of single classifiers, auxiliary ones included.")
        .def_prop_ro("n_evicted_rows", &BoundLearner::n_evicted_rows, "Rows given up for the memory budget.")
        .def_prop_ro("memory", &BoundLearner::memory, "Bytes held.")
        .def_prop_ro("weight_memory", &BoundLearner::weight_memory, "Bytes of what the memory budget bounds.")
        .def_prop_ro("has_labels", &BoundLearner::has_labels, "Whether any label has been seen.");
}
