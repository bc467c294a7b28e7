/// Python bindings of batch training.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <cmath>
#include <limits>
#include <optional>

#include "base/parallel.hpp"
#include "bindings/arrays.hpp"
#include "bindings/block_arrays.hpp"
#include "bindings/casters.hpp"
#include "bindings/checks.hpp"
#include "plt/hashed_blocks.hpp"
#include "plt/train_blocks.hpp"

namespace nb = nanobind;
using namespace nb::literals;
using namespace ramify;

namespace {

using Links = nb::ndarray<const float, nb::ndim<5>, nb::c_contig, nb::device::cpu>;

/// The weights of n rows, checked.
std::span<const float> checked_weights(const std::optional<Floats>& sample_weight, std::size_t n_rows) {
    if (!sample_weight) return {};
    const std::span<const float> weight = view(*sample_weight);
    if (weight.size() != n_rows) throw nb::value_error("sample_weight and X differ in length");
    for (float w : weight)
        if (!(w >= 0) || !std::isfinite(w)) throw nb::value_error("sample_weight must be finite and not negative");
    return weight;
}

/// The leaf of every label; all labels of Y must have one.
std::vector<std::int32_t> checked_leaves(const TreeView& tree, const LabelInput& y) {
    std::vector<std::int32_t> leaf_of = tree.leaf_of();
    for (std::int32_t j : view(y.indices))
        if (static_cast<std::size_t>(j) >= leaf_of.size() || leaf_of[j] < 0)
            throw nb::value_error(("label " + std::to_string(j) + " has no leaf in the tree").c_str());
    return leaf_of;
}

/// Training data assigned to the nodes of a tree; can be trained with several settings.
class BoundTrainer {
public:
    BoundTrainer(const CsrInput& x, const LabelInput& y, const TreeInput& tree_arrays,
                 const std::optional<Floats>& sample_weight, const FeatureSettings& features, std::uint64_t seed,
                 int n_threads, const std::optional<Longs>& row_number, const std::string& directory)
        : tree_arrays_(tree_arrays), n_features_(features.n_columns()), seed_(seed) {
        const CsrView X = x.checked(features.n_features, "X");
        tree_ = tree_arrays.checked();
        check_label_rows(x, y, tree_arrays.n_labels);
        weight_ = checked_weights(sample_weight, X.indptr.size() - 1);
        if (sample_weight) keep_.append(*sample_weight);
        std::span<const std::int64_t> numbers;
        if (row_number) {
            numbers = view(*row_number);
            keep_.append(*row_number);
            if (numbers.size() + 1 != X.indptr.size()) throw nb::value_error("row_number and X differ in length");
        }
        const std::vector<std::int32_t> leaf_of = checked_leaves(tree_, y);
        nb::gil_scoped_release release;
        rows_.emplace(X, features, n_threads, directory);
        node_rows_.emplace(tree_, view(y.indptr), view(y.indices), leaf_of, n_threads);
        trainer_.emplace(*rows_, tree_, *node_rows_, weight_, n_features_, seed, n_threads, numbers);
    }

    BoundTrainer(const BoundTrainer&) = delete;
    BoundTrainer& operator=(const BoundTrainer&) = delete;

    ArrayDict train(const SolverSettings& solver, Progress* progress, const std::optional<Ints>& nodes) {
        return train_levels({solver}, progress, nodes);
    }

    ArrayDict train_levels(const std::vector<SolverSettings>& solvers, Progress* progress,
                           const std::optional<Ints>& nodes) {
        if (solvers.size() != 1 && solvers.size() != static_cast<std::size_t>(n_levels()))
            throw nb::value_error(("expected one solver or one for each of " + std::to_string(n_levels()) +
                                   " levels, got " + std::to_string(solvers.size()))
                                      .c_str());
        for (const SolverSettings& solver : solvers)
            if (solver.learning_rate > 0)
                throw nb::value_error("FOBOS trains only weights that nodes share: use train_hashed");
        BlockStorage storage;
        {
            nb::gil_scoped_release release;
            std::optional<std::span<const std::int32_t>> only;
            if (nodes) only = view(*nodes);
            storage = join_panels(trainer_->train(solvers, progress, only));
        }
        return to_dict(std::move(storage));
    }

    ArrayDict train_hashed(const SolverSettings& solver, int bits, Progress* progress) {
        if (bits < 5 || bits > 32) throw nb::value_error("hash_bits must be between 5 and 32");
        BlockStorage storage;
        {
            nb::gil_scoped_release release;
            HashedTrainer(*rows_, tree_, *node_rows_, weight_, seed_).train(solver, bits, storage, progress);
        }
        return to_dict(std::move(storage));
    }

    int n_levels() const { return trainer_->plan().n_levels(); }
    double total_work() const { return trainer_->plan().total_work(); }

    Tuple<List<Tuple<Array<double>, Array<double>, Array<double>>>, Array<double>> held_out(
        const std::vector<SolverSettings>& solvers, double share, std::int64_t max_rows, int n_rates,
        const std::optional<Links>& links, bool by_level, bool keeps_scores, int max_columns, bool of_paths) {
        check_rates(n_rates);
        const TriedSolvers tried = tried_solvers(solvers, by_level);
        const LinkTables tables = link_tables(links, tried.size());
        HeldOutSample sample;
        {
            nb::gil_scoped_release release;
            sample = trainer_->held_out(tried, share, max_rows, {n_rates, tables, keeps_scores, max_columns, of_paths});
        }
        const auto n_levels = static_cast<std::size_t>(trainer_->plan().n_levels());
        const std::vector<std::size_t> shape{n_levels, static_cast<std::size_t>(n_rates),
                                             std::size_t{ScoreHistogram::n_bins}};
        nb::list of_solver;
        for (HeldOut& found : sample.of_solver)
            of_solver.append(nb::make_tuple(
                to_numpy(std::move(found.histogram.positive), shape),
                to_numpy(std::move(found.histogram.negative), shape),
                to_numpy(std::move(found.softmax.loss), {n_levels, tables.n_maps, SoftmaxLoss::factors.size()})));
        return nb::make_tuple(of_solver, to_numpy(std::move(sample.stands_for)));
    }

    Tuple<Array<double>, Array<double>, Array<double>, Array<double>> held_out_nodes(
        const std::vector<SolverSettings>& solvers, const Ints& nodes, const Doubles& samples, int n_rates,
        const std::optional<Links>& links, bool by_level, int max_columns, bool of_paths) {
        check_rates(n_rates);
        const TriedSolvers tried = tried_solvers(solvers, by_level);
        const LinkTables tables = link_tables(links, tried.size());
        if (nodes.size() != samples.size()) throw nb::value_error("nodes and samples differ in length");
        std::vector<NodeTask> tasks;
        for (std::size_t k = 0; k < nodes.size(); ++k) {
            const std::int32_t node = view(nodes)[k];
            if (node < 0 || node > tree_.n_nodes()) throw nb::value_error("nodes holds what is no node");
            tasks.push_back({node, true, static_cast<std::size_t>(node_rows_->n_rows(node)) + 1, view(samples)[k],
                             max_columns, of_paths});
        }
        HeldOutNodes found;
        {
            nb::gil_scoped_release release;
            found = trainer_->held_out_nodes(tried, tasks, {n_rates, tables, false, max_columns, of_paths});
        }
        std::vector<double> positive, negative, softmax;
        auto append = [](std::vector<double>& to, const std::vector<double>& from) {
            to.insert(to.end(), from.begin(), from.end());
        };
        for (const auto& of_node : found.parts)
            for (const HeldOut& of_solver : of_node) {
                append(positive, of_solver.histogram.positive);
                append(negative, of_solver.histogram.negative);
                append(softmax, of_solver.softmax.loss);
            }
        const std::vector<std::size_t> shape{tasks.size(), tried.size(), static_cast<std::size_t>(n_rates),
                                             std::size_t{ScoreHistogram::n_bins}};
        return nb::make_tuple(
            to_numpy(std::move(positive), shape), to_numpy(std::move(negative), shape),
            to_numpy(std::move(softmax), {tasks.size(), tried.size(), tables.n_maps, SoftmaxLoss::factors.size()}),
            to_numpy(std::move(found.positives)));
    }

    ArrayDict held_out_blocks() { return to_dict(join_panels(trainer_->held_out_blocks())); }

private:
    static void check_rates(int n_rates) {
        if (n_rates < 1 || n_rates > 64) throw nb::value_error("n_rates must be between 1 and 64");
    }

    TriedSolvers tried_solvers(const std::vector<SolverSettings>& solvers, bool by_level) const {
        if (by_level && solvers.size() != static_cast<std::size_t>(n_levels()))
            throw nb::value_error("by_level needs one solver for each level");
        return {solvers, by_level};
    }

    LinkTables link_tables(const std::optional<Links>& links, std::size_t n_solvers) const {
        LinkTables tables{{}, 0, n_levels()};
        if (!links) return tables;
        if (links->shape(0) != n_solvers || links->shape(2) != static_cast<std::size_t>(n_levels()) ||
            links->shape(3) != 2 || links->shape(4) != LinkGrid::n_knots)
            throw nb::value_error("links must have the shape (solvers, maps, levels, 2, knots)");
        tables.values = {links->data(), links->size()};
        tables.n_maps = links->shape(1);
        for (float value : tables.values)
            if (!std::isfinite(value)) throw nb::value_error("links must be finite");
        return tables;
    }

    TreeInput tree_arrays_;
    TreeView tree_;
    std::int64_t n_features_;
    std::uint64_t seed_;
    std::span<const float> weight_;
    std::optional<PreparedRows> rows_;
    std::optional<NodeRows> node_rows_;
    std::optional<BlockTrainer> trainer_;
    nb::list keep_;
};

/// What the labels and the lengths of all rows say about the work: who trains what, and on which rows.
class BoundPlan {
public:
    BoundPlan(const LabelInput& y, const TreeInput& tree_arrays, const Longs& row_length,
              const std::optional<Floats>& sample_weight, std::uint64_t seed, int n_threads)
        : tree_arrays_(tree_arrays) {
        tree_ = tree_arrays.checked();
        const auto n_rows = static_cast<std::int64_t>(row_length.size());
        check_csr(view(y.indptr), view(y.indices), tree_arrays.n_labels, "Y");
        if (std::ssize(view(y.indptr)) != n_rows + 1) throw nb::value_error("row_length and Y differ in length");
        weight_ = checked_weights(sample_weight, row_length.size());
        if (sample_weight) keep_.append(*sample_weight);
        const std::vector<std::int32_t> leaf_of = checked_leaves(tree_, y);
        const std::span<const std::int64_t> length = view(row_length);
        nb::gil_scoped_release release;
        node_rows_.emplace(tree_, view(y.indptr), view(y.indices), leaf_of, n_threads);
        plan_.emplace(tree_, *node_rows_, weight_, seed,
                      node_tasks(tree_, *node_rows_, [&](std::int32_t row) { return length[row]; }));
    }

    BoundPlan(const BoundPlan&) = delete;
    BoundPlan& operator=(const BoundPlan&) = delete;

    double total_work() const { return plan_->total_work(); }
    Array<double> level_positives() const { return to_numpy(plan_->level_positives()); }

    Array<std::int32_t> levels() const {
        std::vector<std::int32_t> level;
        for (int v = 0; v <= tree_.n_nodes(); ++v) level.push_back(plan_->level(v));
        return to_numpy(std::move(level));
    }

    Array<std::int64_t> work() const {
        std::vector<std::int64_t> work(tree_.n_nodes() + 1, 0);
        for (const NodeTask& task : plan_->tasks()) work[task.node] = static_cast<std::int64_t>(task.work);
        return to_numpy(std::move(work));
    }

    Tuple<Array<std::int32_t>, Array<double>> sample(double share, std::int64_t max_rows, bool of_paths) const {
        std::vector<std::int32_t> nodes;
        std::vector<double> samples;
        for (const NodeTask& task : plan_->sampled_nodes(share, max_rows, 0, of_paths)) {
            nodes.push_back(task.node);
            samples.push_back(task.sample);
        }
        return nb::make_tuple(to_numpy(std::move(nodes)), to_numpy(std::move(samples)));
    }

    Array<std::int32_t> rows(int node, double sample) const {
        if (node < 0 || node > tree_.n_nodes()) throw nb::value_error("node is out of range");
        return to_numpy(plan_->sampled_rows(node, sample));
    }

private:
    TreeInput tree_arrays_;
    TreeView tree_;
    std::span<const float> weight_;
    std::optional<NodeRows> node_rows_;
    std::optional<NodePlan> plan_;
    nb::list keep_;
};

}  // namespace

void bind_blocks(nb::module_& m) {
    nb::class_<FeatureSettings>(m, "FeatureSettings",
                                "How a row of X is prepared: unit length or a common scale, a bias feature.")
        .def(
            "__init__",
            [](FeatureSettings* self, std::int64_t n_features, bool normalize, float bias, double scale) {
                if (n_features < 0 || n_features >= std::numeric_limits<std::int32_t>::max())
                    throw nb::value_error("n_features is out of range");
                if (!std::isfinite(bias)) throw nb::value_error("bias must be finite");
                if (!(scale > 0 && std::isfinite(scale))) throw nb::value_error("scale must be above 0 and finite");
                new (self) FeatureSettings{n_features, normalize, bias, scale};
            },
            "n_features"_a, "normalize"_a, "bias"_a, "scale"_a = 1.0)
        .def_ro("n_features", &FeatureSettings::n_features)
        .def_ro("normalize", &FeatureSettings::normalize)
        .def_ro("bias", &FeatureSettings::bias)
        .def_ro("scale", &FeatureSettings::scale)
        .def("__reduce__", [](nb::handle self) {
            const auto& s = nb::cast<const FeatureSettings&>(self);
            return nb::make_tuple(self.type(), nb::make_tuple(s.n_features, s.normalize, s.bias, s.scale));
        });

    nb::class_<SolverSettings>(m, "SolverSettings", "How the binary problems of siblings are solved.")
        .def(
            "__init__",
            [](SolverSettings* self, const std::string& loss, float C, float positive_weight, int max_epochs, float eps,
               float prune, float gap, float learning_rate, float l2, bool packs) {
                if (loss != "squared_hinge" && loss != "logistic")
                    throw nb::value_error("loss must be 'squared_hinge' or 'logistic'");
                const bool is_finite =
                    std::isfinite(C) && std::isfinite(positive_weight) && std::isfinite(eps) && std::isfinite(prune);
                if (!is_finite || C <= 0 || positive_weight <= 0 || max_epochs < 1)
                    throw nb::value_error("C, positive_weight and max_epochs must be above 0, and all settings finite");
                if (eps < 0 || prune < 0) throw nb::value_error("eps and prune must not be negative");
                if (!(gap >= 0 && gap < 1)) throw nb::value_error("gap must be at least 0 and below 1");
                if (!(learning_rate >= 0 && l2 >= 0 && std::isfinite(learning_rate) && std::isfinite(l2)))
                    throw nb::value_error("learning_rate and l2 must be finite and not negative");
                auto* s = new (self) SolverSettings;
                s->loss = loss == "logistic" ? Loss::logistic : Loss::squared_hinge;
                s->C = C;
                s->positive_weight = positive_weight;
                s->max_epochs = max_epochs;
                s->eps = eps;
                s->prune = prune;
                s->gap = gap;
                s->learning_rate = learning_rate;
                s->l2 = l2;
                s->packs = packs;
            },
            nb::kw_only(), "loss"_a, "C"_a, "positive_weight"_a, "max_epochs"_a, "eps"_a, "prune"_a, "gap"_a = 0.0f,
            "learning_rate"_a = 0.0f, "l2"_a = 0.0f, "packs"_a = false)
        .def_ro("C", &SolverSettings::C)
        .def_ro("positive_weight", &SolverSettings::positive_weight)
        .def(
            "settings",
            [](const SolverSettings& s) {
                nb::dict all;
                all["loss"] = s.loss == Loss::logistic ? "logistic" : "squared_hinge";
                all["C"] = s.C;
                all["positive_weight"] = s.positive_weight;
                all["max_epochs"] = s.max_epochs;
                all["eps"] = s.eps;
                all["prune"] = s.prune;
                all["gap"] = s.gap;
                all["learning_rate"] = s.learning_rate;
                all["l2"] = s.l2;
                all["packs"] = s.packs;
                return all;
            },
            "All of them, as the constructor takes them.");

    m.def(
        "is_held_out",
        [](const Longs& rows, std::uint64_t seed) {
            std::vector<std::uint8_t> held_out;
            for (std::int64_t row : view(rows)) held_out.push_back(is_held_out_of_paths(seed, row));
            return to_numpy(std::move(held_out));
        },
        "rows"_a, "seed"_a, "For each row number whether trainers with this seed hold the row out for paths.");
    m.attr("HISTOGRAM_LOW") = ScoreHistogram::low;
    m.attr("SOFTMAX_FACTORS") = std::vector<float>(SoftmaxLoss::factors.begin(), SoftmaxLoss::factors.end());
    m.attr("LINK_LOW") = LinkGrid::low;
    m.attr("LINK_STEP") = LinkGrid::step;
    m.attr("LINK_KNOTS") = LinkGrid::n_knots;
    m.attr("HISTOGRAM_WIDTH") = ScoreHistogram::width;

    nb::class_<BoundTrainer>(m, "BlockTrainer", "Rows assigned to the nodes of a label tree, ready to be trained.")
        .def(nb::init<const CsrInput&, const LabelInput&, const TreeInput&, const std::optional<Floats>&,
                      const FeatureSettings&, std::uint64_t, int, const std::optional<Longs>&, const std::string&>(),
             "X"_a, "Y"_a, "tree"_a, "sample_weight"_a.none(), "features"_a, "seed"_a, "n_threads"_a,
             "row_number"_a.none() = nb::none(), "directory"_a = "",
             "row_number: the numbers of these rows, where they are some rows of a larger set. directory: keep the "
             "prepared rows in a file there, not in memory.")
        .def_prop_ro("n_levels", &BoundTrainer::n_levels,
                     "Levels with a map of their own: the gate, the root's children, …")
        .def_prop_ro("total_work", &BoundTrainer::total_work, "Multiplications of an epoch over all nodes, roughly.")
        .def("train", &BoundTrainer::train, "solver"_a, "progress"_a.none() = nb::none(), "nodes"_a.none() = nb::none(),
             "Train all nodes, or only these (in rising order); the arrays of the frozen blocks.")
        .def("train_levels", &BoundTrainer::train_levels, "solvers"_a, "progress"_a.none() = nb::none(),
             "nodes"_a.none() = nb::none(),
             "The same with a solver for each level: of the gate, of the root's children, and so on.")
        .def("train_hashed", &BoundTrainer::train_hashed, "solver"_a, "bits"_a, "progress"_a.none() = nb::none(),
             "Train all nodes on one shared table of 2^bits weights.")
        .def(
            "held_out", &BoundTrainer::held_out, "solvers"_a, "share"_a, "max_rows"_a, "n_rates"_a = 1,
            "links"_a.none() = nb::none(), "by_level"_a = false, "keeps_scores"_a = false, "max_columns"_a = 0,
            "of_paths"_a = false,
            "From a sample of the nodes, for each solver: histograms (levels x rates x bins) of the scores of positive "
            "and negative held-out examples (rate k: log rates of the child from -k - 1 to -k), and the softmax losses "
            "(levels x maps x factors) of rows with one "
            "positive child, for the maps in links (solvers x maps x levels x 2 x knots: logits and slopes) times some "
            "factors. And for how many positive examples of its level each held-out one stands. With by_level, solvers "
            "holds one for each level and they count as one. With of_paths the same rows are held out at all nodes, "
            "the "
            "sample prefers children of nodes that are in it, and held_out_blocks has what was trained for the first "
            "solver. With keeps_scores the next call for the same solvers does "
            "not train them again; its answers are the same. Of a node with more children than max_columns (0: any "
            "number) "
            "only every k-th is used, in order of frequency.")
        .def("held_out_nodes", &BoundTrainer::held_out_nodes, "solvers"_a, "nodes"_a, "samples"_a, "n_rates"_a = 1,
             "links"_a.none() = nb::none(), "by_level"_a = false, "max_columns"_a = 0, "of_paths"_a = false,
             "The same for these nodes and shares of their rows, not summed up: positive and negative histograms "
             "(nodes x solvers x rates x bins), softmax losses (nodes x solvers x maps x factors), and the positive "
             "examples held out at each node.")
        .def("held_out_blocks", &BoundTrainer::held_out_blocks,
             "The blocks that the last held_out or held_out_nodes with of_paths trained; they are handed over.");

    nb::class_<BoundPlan>(m, "NodePlan",
                          "Which nodes are trained on which rows, from labels and lengths of rows alone.")
        .def(nb::init<const LabelInput&, const TreeInput&, const Longs&, const std::optional<Floats>&, std::uint64_t,
                      int>(),
             "Y"_a, "tree"_a, "row_length"_a, "sample_weight"_a.none(), "seed"_a, "n_threads"_a)
        .def_prop_ro("total_work", &BoundPlan::total_work, "Multiplications of an epoch over all nodes, roughly.")
        .def("work", &BoundPlan::work, "The same for each node, the root's gate last; 0: the node has no rows.")
        .def("levels", &BoundPlan::levels, "The level of the children of each node, the root's gate last.")
        .def("level_positives", &BoundPlan::level_positives, "Positive examples of each level, by weight.")
        .def("sample", &BoundPlan::sample, "share"_a, "max_rows"_a, "of_paths"_a = false,
             "Nodes on which settings are tried, and the share of its rows that each uses.")
        .def("rows", &BoundPlan::rows, "node"_a, "sample"_a = 1.0, "The rows of a node, or a sample of them.");
}
