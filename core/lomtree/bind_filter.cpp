/// Python bindings of filter trees.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>

#include <algorithm>
#include <cstdint>
#include <optional>
#include <vector>

#include "base/parallel.hpp"
#include "bindings/arrays.hpp"
#include "bindings/casters.hpp"
#include "bindings/regressor_rows.hpp"
#include "bindings/saved_arrays.hpp"
#include "lomtree/filter_tree.hpp"
#include "lomtree/regressor_state.hpp"

namespace nb = nanobind;
using namespace nb::literals;
using namespace ramify;

namespace {

/// A tournament. `learn` must not run at the same time as queries.
class BoundFilterTree {
public:
    BoundFilterTree(const RegressorSettings& settings, const Ints& order) : tree_(settings, view(order)) {}

    /// How many of the rows' classes won all their matches before they were learned.
    double learn(const CsrInput& x, const Ints& labels, const std::optional<Floats>& sample_weight,
                 const std::optional<Longs>& order, Progress* progress) {
        const ClassRows rows(x, labels, tree_.n_classes(), sample_weight, order);
        nb::gil_scoped_release release;
        std::int64_t width = 1;
        for (std::int32_t j : rows.X.indices) width = std::max<std::int64_t>(width, j + std::int64_t{2});
        const double mean = 1.0 + static_cast<double>(rows.X.indices.size()) /
                                      static_cast<double>(std::max<std::int64_t>(1, rows.X.n_rows()));
        const int dense_width =
            RegressorRow::is_full(mean, static_cast<double>(width)) ? round_to_regressor_lanes(width) : 0;
        double won = 0;
        rows.for_each(tree_.settings(), progress, [&](const RegressorRow& row, std::int32_t label, float weight) {
            if (tree_.learn(row, label, weight, dense_width)) won += weight;
        });
        return won;
    }

    auto winners(const CsrInput& x, int n_threads) const {
        const CsrView X = x.checked(max_regressor_features, "X");
        std::vector<std::int32_t> winner(static_cast<std::size_t>(X.n_rows()));
        {
            nb::gil_scoped_release release;
            for_every_row(X, tree_.settings(), n_threads,
                          [&](std::int64_t i, const RegressorRow& row) { winner[i] = tree_.winner(row); });
        }
        return to_numpy(std::move(winner));
    }

    ArrayDict state() const { return to_dict(to_arrays(tree_.regressors())); }

    void restore(const ArrayDict& arrays) {
        nb::list keep;
        RegressorArrays<ArrayView> in;
        SavedArrays(arrays, keep).take_all(in);
        tree_.restore(regressors_from(in, tree_.regressors().size()));
    }

private:
    FilterTree tree_;
};

}  // namespace

void bind_filter_tree(nb::module_& m) {
    nb::class_<BoundFilterTree>(m, "FilterTree", "A tournament of classes.")
        .def(nb::init<const RegressorSettings&, const Ints&>(), "regressor"_a, "order"_a)
        .def("learn", &BoundFilterTree::learn, "X"_a, "labels"_a, "sample_weight"_a.none(), "order"_a.none(),
             "progress"_a.none(),
             "Learn rows of one class each, in order; the weight of those whose class won all its matches before.")
        .def("winners", &BoundFilterTree::winners, "X"_a, "n_threads"_a, "The class that wins, for each row.")
        .def("state", &BoundFilterTree::state, "The regressors, as arrays.")
        .def("restore", &BoundFilterTree::restore, "arrays"_a, "Restore what `state` returned.");
}
