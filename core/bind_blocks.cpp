/// Python's view of batch training and of the trained label tree.
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

#include "arrays.hpp"
#include "block_arrays.hpp"
#include "hashed_blocks.hpp"
#include "parallel.hpp"
#include "train_blocks.hpp"
#include "tree_search.hpp"

namespace nb = nanobind;
using namespace nb::literals;
using namespace ramify;

namespace {

using Ints = Input<std::int32_t>;
using Longs = Input<std::int64_t>;
using Floats = Input<float>;

TreeView tree_view(const Ints& parent, const Ints& first_child, const Ints& n_children, const Ints& label, std::int64_t n_labels) {
    TreeView tree{view(parent), view(first_child), view(n_children), view(label)};
    tree.validate(n_labels);
    return tree;
}

/// Training data assigned to the nodes of a tree; can be trained with several settings.
class BoundTrainer {
public:
    BoundTrainer(const Longs& x_indptr, const Ints& x_indices, const Floats& x_data, const Longs& y_indptr, const Ints& y_indices, const Ints& parent,
                 const Ints& first_child, const Ints& n_children, const Ints& label, std::int64_t n_labels, const std::optional<Floats>& sample_weight,
                 const FeatureSettings& features, std::uint64_t seed, int n_threads)
        : n_features_(features.n_columns()), seed_(seed) {
        const CsrView X = checked_csr(x_indptr, x_indices, x_data, features.n_features, "X");
        check_csr(view(y_indptr), view(y_indices), n_labels, "Y");
        if (y_indptr.size() != x_indptr.size()) throw nb::value_error("X and Y differ in their number of rows");
        tree_ = tree_view(parent, first_child, n_children, label, n_labels);
        for (const Ints* a : {&parent, &first_child, &n_children, &label}) keep_.append(*a);
        if (sample_weight) {
            weight_ = view(*sample_weight);
            keep_.append(*sample_weight);
            if (weight_.size() + 1 != X.indptr.size()) throw nb::value_error("sample_weight and X differ in length");
            for (float w : weight_)
                if (!(w >= 0) || !std::isfinite(w)) throw nb::value_error("sample_weight must be finite and not negative");
        }
        std::vector<std::int32_t> leaf_of = tree_.leaf_of();
        for (std::int32_t j : view(y_indices))
            if (static_cast<std::size_t>(j) >= leaf_of.size() || leaf_of[j] < 0) throw nb::value_error(("label " + std::to_string(j) + " has no leaf in the tree").c_str());
        nb::gil_scoped_release release;
        rows_.emplace(X, features, n_threads);
        node_rows_.emplace(tree_, view(y_indptr), view(y_indices), leaf_of, n_threads);
        trainer_.emplace(*rows_, tree_, *node_rows_, weight_, n_features_, seed, n_threads);
    }

    BoundTrainer(const BoundTrainer&) = delete;
    BoundTrainer& operator=(const BoundTrainer&) = delete;

    nb::dict train(const SolverSettings& solver, Progress* progress) {
        BlockStorage storage;
        {
            nb::gil_scoped_release release;
            storage = join_panels(trainer_->train(solver, progress));
        }
        return to_dict(std::move(storage));
    }

    nb::dict train_hashed(const SolverSettings& solver, int bits, Progress* progress) {
        if (bits < 5 || bits > 32) throw nb::value_error("hash_bits must be between 5 and 32");
        BlockStorage storage;
        {
            nb::gil_scoped_release release;
            HashedTrainer(*rows_, tree_, *node_rows_, weight_, seed_).train(solver, bits, storage, progress);
        }
        return to_dict(std::move(storage));
    }

    double total_work() const { return trainer_->total_work(); }

    nb::tuple held_out(const std::vector<SolverSettings>& solvers, double share, std::int64_t max_rows, bool one_of) {
        HeldOutSample sample;
        {
            nb::gil_scoped_release release;
            sample = trainer_->held_out(solvers, share, max_rows, one_of);
        }
        const auto n_levels = static_cast<std::size_t>(trainer_->n_levels());
        const std::vector<std::size_t> shape{n_levels, std::size_t{ScoreHistogram::n_bins}};
        nb::list of_solver;
        for (HeldOut& found : sample.of_solver)
            of_solver.append(nb::make_tuple(to_numpy(std::move(found.histogram.positive), shape), to_numpy(std::move(found.histogram.negative), shape),
                                            to_numpy(std::move(found.softmax.loss), {n_levels, SoftmaxLoss::slopes.size()})));
        return nb::make_tuple(of_solver, to_numpy(std::move(sample.stands_for)));
    }

private:
    TreeView tree_;
    std::int64_t n_features_;
    std::uint64_t seed_;
    std::span<const float> weight_;
    std::optional<PreparedRows> rows_;
    std::optional<NodeRows> node_rows_;
    std::optional<BlockTrainer> trainer_;
    nb::list keep_;
};

/// A trained label tree. Keeps the numpy arrays alive that it reads, memory-mapped ones too.
class BoundModel {
public:
    BoundModel(const nb::dict& arrays, const Ints& parent, const Ints& first_child, const Ints& n_children, const Ints& label, std::int64_t n_labels,
               const FeatureSettings& features, const nb::ndarray<const float, nb::ndim<2>, nb::c_contig, nb::device::cpu>& link, float link_low,
               float link_step, bool one_of)
        : n_labels_(n_labels) {
        model_.tree = tree_view(parent, first_child, n_children, label, n_labels);
        for (const Ints* a : {&parent, &first_child, &n_children, &label}) keep_.append(*a);
        FrozenBlocks& b = model_.blocks;
        b.panels = take<std::int64_t, 2>(arrays, "panels");
        b.column_child = take<std::int32_t>(arrays, "column_child");
        b.column_scale = take<float>(arrays, "column_scale");
        b.index = take<std::uint32_t>(arrays, "index");
        b.rows = take<std::uint8_t>(arrays, "rows");
        b.table = take<float>(arrays, "table");
        model_.features = features;
        if (link.shape(0) > 0) {
            if (link.shape(1) < 2 || !(link_step > 0) || !std::isfinite(link_step) || !std::isfinite(link_low))
                throw nb::value_error("a link map needs at least two knots and a grid of finite numbers");
            model_.link = {link.data(), link.size()};
            for (float logit : model_.link)
                if (!std::isfinite(logit)) throw nb::value_error("a link map must be finite");
            model_.n_levels = static_cast<std::int64_t>(link.shape(0));
            model_.n_knots = static_cast<int>(link.shape(1));
            model_.link_low = link_low;
            model_.link_step = link_step;
            keep_.append(link);
        }
        model_.one_of = one_of;
        model_.attach();
    }

    nb::tuple search(const Longs& indptr, const Ints& indices, const Floats& data, std::optional<std::int64_t> top_k, float threshold,
                     const std::optional<Floats>& node_threshold, std::int64_t beam, int n_threads) const {
        const CsrView X = checked_csr(indptr, indices, data, model_.features.n_features, "X");
        SearchSettings settings;
        if (top_k) settings.top_k = *top_k;
        settings.threshold = threshold;
        settings.beam = beam;
        if (node_threshold) {
            settings.node_threshold = view(*node_threshold);
            if (settings.node_threshold.size() != model_.tree.parent.size()) throw nb::value_error("node_threshold needs a value for each node");
        }
        const std::int64_t n = X.n_rows();
        std::vector<std::int64_t> out_indptr(n + 1, 0);
        std::vector<std::int32_t> out_label;
        std::vector<float> out_probability;
        std::int64_t n_products = 0;
        {
            nb::gil_scoped_release release;
            const int threads = usable_threads(n_threads, static_cast<std::size_t>(n));
            const std::int64_t chunk = settings.beam > 0 ? 128 : rows_side_by_side(settings, n, threads);
            const auto n_chunks = static_cast<std::size_t>((n + chunk - 1) / chunk);
            std::vector<std::vector<Found>> answers(n_chunks);
            std::vector<SearchScratch> scratch(threads);
            std::vector<BatchScratch> batches(threads);
            Watch watch;
            auto work = [&](std::size_t task, int worker) {
                SearchScratch& s = scratch[worker];
                BatchScratch& batch = batches[worker];
                const std::int64_t from = static_cast<std::int64_t>(task) * chunk, to = std::min(n, from + chunk);
                auto answer = [&](std::int64_t i, std::vector<Found>& found) {
                    std::ranges::sort(found, {}, &Found::label);
                    answers[task].insert(answers[task].end(), found.begin(), found.end());
                    out_indptr[i + 1] = static_cast<std::int64_t>(found.size());
                };
                if (settings.beam > 0) {
                    for (std::int64_t i = from; i < to; ++i) {
                        prepare(X, i, s.x);
                        model_.search(s.x, settings, s);
                        answer(i, s.found);
                    }
                    return;
                }
                batch.clear();
                for (std::int64_t i = from; i < to; ++i) {
                    append(X, i, batch.entries);
                    batch.begin.push_back(batch.entries.size());
                }
                model_.search_batch(settings, batch, s, watch);
                for (std::int64_t i = from; i < to; ++i) answer(i, batch.search[i - from].found);
            };
            parallel_for(n_chunks, threads, work, &watch);
            for (std::int64_t i = 0; i < n; ++i) out_indptr[i + 1] += out_indptr[i];
            out_label.reserve(out_indptr.back());
            out_probability.reserve(out_indptr.back());
            for (auto& answer : answers) {
                for (const Found& f : answer) {
                    out_label.push_back(f.label);
                    out_probability.push_back(f.probability);
                }
                std::vector<Found>().swap(answer);
            }
            for (const SearchScratch& s : scratch) n_products += s.n_inner_products;
        }
        return nb::make_tuple(to_numpy(std::move(out_indptr)), to_numpy(std::move(out_label)), to_numpy(std::move(out_probability)), n_products);
    }

    /// One row, answered best first, with as little ado as possible.
    nb::tuple search_row(const Ints& indices, const Floats& values, std::int64_t top_k, float threshold) const {
        const std::span<const std::int32_t> columns = view(indices);
        if (columns.size() != values.size()) throw nb::value_error("indices and values differ in length");
        for (std::int32_t j : columns)
            if (j < 0 || j >= model_.features.n_features) throw nb::value_error("a feature number is outside the model's features");
        thread_local SearchScratch s;
        s.x.clear();
        model_.features.append(columns, view(values), s.x);
        SearchSettings settings;
        settings.top_k = top_k;
        settings.threshold = threshold;
        model_.search(s.x, settings, s);
        std::vector<std::int32_t> labels;
        std::vector<float> probabilities;
        for (const Found& f : s.found) {
            labels.push_back(f.label);
            probabilities.push_back(f.probability);
        }
        return nb::make_tuple(to_numpy(std::move(labels)), to_numpy(std::move(probabilities)));
    }

    /// Probabilities of named labels: those of row i are labels[label_indptr[i] .. label_indptr[i + 1]].
    auto named(const Longs& indptr, const Ints& indices, const Floats& data, const Longs& label_indptr, const Ints& labels, int n_threads) const {
        const CsrView X = checked_csr(indptr, indices, data, model_.features.n_features, "X");
        check_csr(view(label_indptr), view(labels), n_labels_, "labels");
        if (label_indptr.size() != indptr.size()) throw nb::value_error("X and the named labels differ in their number of rows");
        std::vector<float> probability(labels.size());
        {
            nb::gil_scoped_release release;
            std::vector<std::int32_t> leaves(labels.size());
            for (std::size_t k = 0; k < leaves.size(); ++k) leaves[k] = model_.leaf(labels.data()[k]);
            constexpr std::int64_t chunk = 128;
            const std::int64_t n = X.n_rows();
            const auto n_chunks = static_cast<std::size_t>((n + chunk - 1) / chunk);
            parallel_for(n_chunks, n_threads, [&](std::size_t task, int) {
                thread_local SearchScratch s;  // kept from call to call: it is as large as the tree
                for (std::int64_t i = static_cast<std::int64_t>(task) * chunk; i < std::min(n, static_cast<std::int64_t>(task + 1) * chunk); ++i) {
                    prepare(X, i, s.x);
                    const std::int64_t a = label_indptr.data()[i], b = label_indptr.data()[i + 1];
                    model_.named(s.x, std::span(leaves).subspan(a, b - a), s, probability.data() + a);
                }
            });
        }
        return to_numpy(std::move(probability));
    }

    /// Why a label: for each node on the path, its conditional probability and what each feature of x added to its score.
    nb::list explain(const Ints& indices, const Floats& values, std::int32_t label) const {
        std::vector<Entry> x;
        for (std::int32_t j : view(indices))
            if (j < 0 || j >= model_.features.n_features) throw nb::value_error("a feature number is outside the model's features");
        if (indices.size() != values.size()) throw nb::value_error("indices and values differ in length");
        model_.features.append(view(indices), view(values), x);
        const std::int32_t leaf = model_.leaf(label);
        if (leaf < 0) throw nb::value_error("this label has no leaf in the tree");
        std::vector<std::pair<int, int>> path;  // (block, child)
        for (std::int32_t v = leaf; v > 0; v = model_.tree.parent[v]) path.emplace_back(model_.tree.parent[v], v);
        path.emplace_back(model_.gate(), 0);
        nb::list answer;
        ScoreScratch scratch;
        for (auto it = path.rbegin(); it != path.rend(); ++it) {
            const auto [block, child] = *it;
            if (block == model_.gate() && !model_.blocks.has(block)) continue;
            const std::int32_t position = block == model_.gate() ? 0 : child - model_.tree.first_child[block];
            float probability = 0;
            if (model_.blocks.has(block)) {
                model_.conditional(block, x, scratch);
                for (std::size_t c = 0; c < scratch.child.size(); ++c)
                    if (scratch.child[c] == position) probability = scratch.score[c];
            }
            std::vector<std::int32_t> feature;
            std::vector<float> contribution;
            for (int i = model_.blocks.panel_begin[block]; i < model_.blocks.panel_begin[block + 1]; ++i) {
                const PanelRecord& p = model_.blocks.panel(i);
                for (int c = 0; c < p.n_columns; ++c) {
                    if (model_.blocks.column_child[p.first_column + c] != position) continue;
                    for (const Entry& e : x) {
                        const float w = model_.blocks.weight(p, e.feature, c);
                        if (w == 0.0f) continue;
                        feature.push_back(static_cast<std::int32_t>(e.feature));
                        contribution.push_back(w * e.value);
                    }
                }
            }
            answer.append(nb::make_tuple(child, probability, to_numpy(std::move(feature)), to_numpy(std::move(contribution))));
        }
        return answer;
    }

private:
    template <class T, int Dimensions = 1>
    std::span<const T> take(const nb::dict& arrays, const char* name) {
        if (!arrays.contains(name)) throw nb::value_error((std::string("the model has no array named ") + name).c_str());
        nb::ndarray<const T, nb::ndim<Dimensions>, nb::c_contig, nb::device::cpu> array;
        if (!nb::try_cast(arrays[name], array, false))  // a converted copy would not outlive this call
            throw nb::value_error((std::string("the model's array ") + name + " has a wrong type or shape").c_str());
        keep_.append(arrays[name]);
        return {array.data(), array.size()};
    }

    void append(const CsrView& X, std::int64_t i, std::vector<Entry>& rows) const {
        const auto from = static_cast<std::size_t>(X.indptr[i]), length = static_cast<std::size_t>(X.indptr[i + 1]) - from;
        model_.features.append(X.indices.subspan(from, length), X.data.subspan(from, length), rows);
    }
    void prepare(const CsrView& X, std::int64_t i, std::vector<Entry>& row) const {
        row.clear();
        append(X, i, row);
    }

    /// A model that lies in the processor's cache is searched a few rows at a time, which stay there too. A larger one wants enough
    /// rows that many open the same nodes, but so few that every thread has work and long answers fit into memory.
    std::int64_t rows_side_by_side(const SearchSettings& settings, std::int64_t n_rows, int n_threads) const {
        constexpr std::size_t beyond_caches = std::size_t{256} << 20;
        const std::int64_t most = model_.blocks.rows.size() < beyond_caches ? 64 : settings.top_k > 1000 ? 256 : 16384;
        return std::clamp<std::int64_t>((n_rows + n_threads - 1) / n_threads, 1, most);
    }

    LabelTreeModel model_;
    std::int64_t n_labels_;
    nb::list keep_;
};

}  // namespace

void bind_blocks(nb::module_& m) {
    nb::class_<FeatureSettings>(m, "FeatureSettings", "How a row of X is prepared: unit length, a bias feature.")
        .def(
            "__init__",
            [](FeatureSettings* self, std::int64_t n_features, bool normalize, float bias) {
                if (n_features < 0 || n_features >= std::numeric_limits<std::int32_t>::max()) throw nb::value_error("n_features is out of range");
                if (!std::isfinite(bias)) throw nb::value_error("bias must be finite");
                new (self) FeatureSettings{n_features, normalize, bias};
            },
            "n_features"_a, "normalize"_a, "bias"_a)
        .def_ro("n_features", &FeatureSettings::n_features)
        .def_ro("normalize", &FeatureSettings::normalize)
        .def_ro("bias", &FeatureSettings::bias);

    nb::class_<SolverSettings>(m, "SolverSettings", "How the binary problems of siblings are solved.")
        .def(
            "__init__",
            [](SolverSettings* self, const std::string& loss, float C, float positive_weight, int max_epochs, float eps, float prune) {
                if (loss != "squared_hinge" && loss != "logistic") throw nb::value_error("loss must be 'squared_hinge' or 'logistic'");
                const bool is_finite = std::isfinite(C) && std::isfinite(positive_weight) && std::isfinite(eps) && std::isfinite(prune);
                if (!is_finite || C <= 0 || positive_weight <= 0 || max_epochs < 1)
                    throw nb::value_error("C, positive_weight and max_epochs must be above 0, and all settings finite");
                if (eps < 0 || prune < 0) throw nb::value_error("eps and prune must not be negative");
                auto* s = new (self) SolverSettings;
                s->loss = loss == "logistic" ? Loss::logistic : Loss::squared_hinge;
                s->C = C;
                s->positive_weight = positive_weight;
                s->max_epochs = max_epochs;
                s->eps = eps;
                s->prune = prune;
            },
            nb::kw_only(), "loss"_a, "C"_a, "positive_weight"_a, "max_epochs"_a, "eps"_a, "prune"_a)
        .def_ro("C", &SolverSettings::C)
        .def_ro("positive_weight", &SolverSettings::positive_weight);

    m.attr("HISTOGRAM_LOW") = ScoreHistogram::low;
    m.attr("SOFTMAX_SLOPES") = std::vector<float>(SoftmaxLoss::slopes.begin(), SoftmaxLoss::slopes.end());
    m.attr("HISTOGRAM_WIDTH") = ScoreHistogram::width;

    nb::class_<BoundTrainer>(m, "BlockTrainer", "Rows assigned to the nodes of a label tree, ready to be trained.")
        .def(nb::init<const Longs&, const Ints&, const Floats&, const Longs&, const Ints&, const Ints&, const Ints&, const Ints&, const Ints&, std::int64_t,
                      const std::optional<Floats>&, const FeatureSettings&, std::uint64_t, int>(),
             "x_indptr"_a, "x_indices"_a, "x_data"_a, "y_indptr"_a, "y_indices"_a, "parent"_a, "first_child"_a, "n_children"_a, "label"_a, "n_labels"_a,
             "sample_weight"_a.none(), "features"_a, "seed"_a, "n_threads"_a)
        .def_prop_ro("total_work", &BoundTrainer::total_work, "Multiplications of an epoch over all nodes, roughly.")
        .def("train", &BoundTrainer::train, "solver"_a, "progress"_a.none() = nb::none(), "Train all nodes; the arrays of the frozen blocks.")
        .def("train_hashed", &BoundTrainer::train_hashed, "solver"_a, "bits"_a, "progress"_a.none() = nb::none(),
             "Train all nodes on one shared table of 2^bits weights.")
        .def("held_out", &BoundTrainer::held_out, "solvers"_a, "share"_a, "max_rows"_a, "one_of"_a = false,
             "From a sample of the nodes, for each solver: histograms (levels x bins) of the scores of positive and negative held-out examples, and "
             "the softmax losses (levels x slopes) of rows with one positive child, if they are asked for by one_of. And for how many positive examples of its level each held-out one stands.");

    nb::class_<BoundModel>(m, "LabelTreeModel", "A trained label tree over (memory-mapped) arrays, and its searches.")
        .def(nb::init<const nb::dict&, const Ints&, const Ints&, const Ints&, const Ints&, std::int64_t, const FeatureSettings&,
                      const nb::ndarray<const float, nb::ndim<2>, nb::c_contig, nb::device::cpu>&, float, float, bool>(),
             "blocks"_a, "parent"_a, "first_child"_a, "n_children"_a, "label"_a, "n_labels"_a, "features"_a, "link"_a, "link_low"_a, "link_step"_a, "one_of"_a)
        .def("search", &BoundModel::search, "indptr"_a, "indices"_a, "data"_a, "top_k"_a.none(), "threshold"_a, "node_threshold"_a.none(), "beam"_a,
             "n_threads"_a, "CSR parts of the answer, rows sorted by label, and the number of inner products taken.")
        .def("search_row", &BoundModel::search_row, "indices"_a, "values"_a, "top_k"_a, "threshold"_a, "One row: labels and their probabilities, best first.")
        .def("named", &BoundModel::named, "indptr"_a, "indices"_a, "data"_a, "label_indptr"_a, "labels"_a, "n_threads"_a,
             "Probabilities of the labels named for each row.")
        .def("explain", &BoundModel::explain, "indices"_a, "values"_a, "label"_a,
             "For each node on the label's path: node, conditional probability, features and what each added to the score.");
}
