/// Python bindings of a trained label tree and its searches.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <cmath>

#include "bindings/label_tree_model.hpp"

namespace nb = nanobind;
using namespace nb::literals;
using namespace ramify;

namespace {

/// Whether a row meets the requirements of the searches. One call: for a short row a few numpy operations take as long
/// as the answer.
bool is_plain_row(const Ints& indices, const Floats& values, std::int64_t n_features) {
    const std::span<const std::int32_t> columns = view(indices);
    if (columns.size() != values.size()) return false;
    std::int64_t last = -1;
    for (std::int32_t j : columns) {
        if (j <= last) return false;
        last = j;
    }
    for (float v : view(values))
        if (!std::isfinite(v)) return false;
    return last < n_features;
}

}  // namespace

void bind_search(nb::module_& m) {
    m.def("is_plain_row", &is_plain_row, "indices"_a, "values"_a, "n_features"_a,
          "Whether the features of a row rise, lie within the bounds, and have finite values.");
    nb::class_<BoundModel>(m, "LabelTreeModel", "A trained label tree over (memory-mapped) arrays, and its searches.")
        .def(nb::init<const ArrayDict&, const TreeInput&, const FeatureSettings&, const BoundModel::LinkTable&,
                      const BoundModel::LinkTable&, float, float, bool, const std::optional<BoundModel::ClaimTables>&,
                      float>(),
             "blocks"_a, "tree"_a, "features"_a, "link"_a, "link_slopes"_a, "link_low"_a, "link_step"_a,
             "is_multiclass"_a, "claims"_a.none() = nb::none(), "top_from"_a = 1.0f)
        .def_rw(
            "eager", &BoundModel::eager,
            "Nodes of at least this share of the best one's probability are opened together with it; 1: one by one.")
        .def("search", &BoundModel::search, "X"_a, "top_k"_a.none(), "threshold"_a, "node_threshold"_a.none(), "beam"_a,
             "n_threads"_a, "bound"_a = 0.0f, "top_sums"_a.none() = nb::none(),
             "CSR parts of the answer, rows sorted by label, and the number of inner products taken.")
        .def("top_sums", &BoundModel::top_sums, "X"_a, "n_threads"_a,
             "For each row the sum of what the top of the tree hands down, of a model with claims.")
        .def("trace", &BoundModel::trace, "X"_a, "top_k"_a.none(), "threshold"_a, "node_threshold"_a.none(), "beam"_a,
             "n_threads"_a, "bound"_a = 0.0f,
             "What search answers, and for each row the number of blocks scored and the probability above which "
             "nothing was missed, 0 if nothing was.")
        .def("search_row", &BoundModel::search_row, "indices"_a, "values"_a, "top_k"_a, "threshold"_a, "beam"_a = 0,
             "bound"_a = 0.0f, "One row: labels and their probabilities, best first.")
        .def("named", &BoundModel::named, "X"_a, "labels"_a, "n_threads"_a,
             "Probabilities of the labels named for each row.")
        .def("paths", &BoundModel::paths, "X"_a, "least"_a,
             "Row, label and the logs of the conditional probabilities by level of all leaves reached with at least "
             "this "
             "probability.")
        .def("explain", &BoundModel::explain, "indices"_a, "values"_a, "label"_a,
             "For each node on the label's path: node, conditional probability, features and what each added to the "
             "score.");
}
