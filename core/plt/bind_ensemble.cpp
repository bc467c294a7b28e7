/// Python bindings of several label trees whose probabilities are averaged.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <cstdint>
#include <limits>
#include <optional>
#include <vector>

#include "bindings/label_tree_model.hpp"
#include "plt/tree_ensemble.hpp"

namespace nb = nanobind;
using namespace nb::literals;
using namespace ramify;

namespace {

/// Several trained trees whose probabilities are averaged. Keeps them alive.
class BoundEnsemble {
public:
    explicit BoundEnsemble(const List<nb::object>& trees) : keep_(nb::borrow<nb::list>(trees)) {
        for (nb::handle tree : trees) {
            const BoundModel& bound = nb::cast<const BoundModel&>(tree);
            if (!models_.empty() && (bound.model().features.n_features != models_[0]->model().features.n_features ||
                                     bound.n_labels() != models_[0]->n_labels()))
                throw nb::value_error("the trees of an ensemble must have the same features and labels");
            models_.push_back(&bound);
            ensemble_.trees.push_back(&bound.model());
        }
        if (models_.empty()) throw nb::value_error("an ensemble needs at least one tree");
    }

    /// `node_threshold` is one array per tree, for its search; `label_threshold` applies to the mean.
    CsrArrays search(const CsrInput& x, std::optional<std::int64_t> top_k, float tree_threshold, float threshold,
                     const std::vector<Floats>& node_threshold, const std::optional<Floats>& label_threshold,
                     std::int64_t beam, int n_threads, float bound) const {
        const LabelTreeModel& first = models_[0]->model();
        const CsrView X = x.checked(first.features.n_features, "X");
        const std::int64_t n = X.n_rows();
        const LabelQuery checked = checked_query(models_[0]->n_labels(), top_k, threshold, label_threshold);
        const EnsembleQuery query{checked.top_k, checked.threshold, checked.label_threshold};
        const std::vector<SearchSettings> settings = tree_settings(
            top_k.value_or(std::numeric_limits<std::int64_t>::max()), tree_threshold, node_threshold, beam, bound);
        const int threads = usable_threads(n_threads, static_cast<std::size_t>(n));
        constexpr std::int64_t most_rows = 1024;  // opened blocks are kept for all of them
        const std::int64_t chunk =
            std::min<std::int64_t>(models_[0]->rows_side_by_side(settings[0], n, threads), most_rows);
        CsrAnswers<Found> answers(n, chunk);
        {
            nb::gil_scoped_release release;
            std::vector<EnsembleScratch> scratch(static_cast<std::size_t>(threads), EnsembleScratch(models_.size()));
            Watch watch;
            parallel_chunks(
                n, chunk, threads,
                [&](std::int64_t from, std::int64_t to, int worker) {
                    EnsembleScratch& s = scratch[static_cast<std::size_t>(worker)];
                    BatchScratch& batch = s.tree[0].batch;
                    batch.clear();
                    for (std::int64_t i = from; i < to; ++i) {
                        const auto [indices, values] = X.row(i);
                        first.features.append(indices, values, batch.entries);
                        batch.begin.push_back(batch.entries.size());
                    }
                    if (beam <= 0) {
                        ensemble_.search_batch(settings, query, s, watch, [&](std::size_t i) {
                            answers.add(from + static_cast<std::int64_t>(i), s.found);
                        });
                        return;
                    }
                    for (std::int64_t i = from; i < to; ++i) {
                        const auto row = batch.row(static_cast<std::size_t>(i - from));
                        s.x.assign(row.begin(), row.end());
                        ensemble_.search(settings, query, s);
                        answers.add(i, s.found);
                    }
                },
                &watch);
            answers.join();
        }
        return std::move(answers).to_tuple();
    }

    /// One row, answered best first. Without top_k, a label is found if it reaches the threshold in some tree, as every
    /// label does whose mean reaches it.
    RowAnswer search_row(const Ints& indices, const Floats& values, std::optional<std::int64_t> top_k, float threshold,
                         std::int64_t beam, float bound) const {
        const LabelTreeModel& first = models_[0]->model();
        check_row(indices, values, first.features.n_features);
        thread_local EnsembleScratch s(0);  // kept from call to call: it is as large as the trees
        if (s.tree.size() < models_.size()) s = EnsembleScratch(models_.size());
        s.x.clear();
        first.features.append(view(indices), view(values), s.x);
        const std::int64_t k = top_k.value_or(std::numeric_limits<std::int64_t>::max());
        ensemble_.search(tree_settings(k, top_k ? 0.0f : threshold, {}, beam, bound), {k, threshold, {}}, s);
        return row_answer(s.found);
    }

private:
    std::vector<SearchSettings> tree_settings(std::int64_t top_k, float threshold,
                                              const std::vector<Floats>& node_threshold, std::int64_t beam,
                                              float bound) const {
        if (!node_threshold.empty() && node_threshold.size() != models_.size())
            throw nb::value_error("node_threshold needs an array for each tree");
        std::vector<SearchSettings> settings(models_.size(),
                                             BoundModel::checked_settings(top_k, threshold, beam, bound));
        for (std::size_t t = 0; t < models_.size(); ++t) settings[t].eager = models_[t]->eager;
        for (std::size_t t = 0; t < node_threshold.size(); ++t) {
            settings[t].node_threshold = view(node_threshold[t]);
            models_[t]->check_node_threshold(settings[t].node_threshold);
        }
        return settings;
    }

    nb::list keep_;
    std::vector<const BoundModel*> models_;
    TreeEnsemble ensemble_;
};

}  // namespace

void bind_ensemble(nb::module_& m) {
    nb::class_<BoundEnsemble>(m, "LabelTreeEnsemble", "Trained label trees over the same labels, and their mean.")
        .def(nb::init<const List<nb::object>&>(), "trees"_a)
        .def("search", &BoundEnsemble::search, "X"_a, "top_k"_a.none(), "tree_threshold"_a, "threshold"_a,
             "node_threshold"_a, "label_threshold"_a.none(), "beam"_a, "n_threads"_a, "bound"_a = 0.0f,
             "CSR parts of the answer, rows sorted by label.")
        .def("search_row", &BoundEnsemble::search_row, "indices"_a, "values"_a, "top_k"_a.none(), "threshold"_a,
             "beam"_a = 0, "bound"_a = 0.0f, "One row: labels and their mean probabilities, best first.");
}
