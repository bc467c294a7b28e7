/// Python bindings of trees between similarity and frequency.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/vector.h>

#include <cmath>
#include <cstdint>
#include <numeric>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "bindings/arrays.hpp"
#include "bindings/casters.hpp"
#include "trees/collapse_levels.hpp"
#include "trees/greedy_frequency.hpp"
#include "trees/interpolated_split.hpp"

namespace nb = nanobind;
using namespace nb::literals;
using namespace ramify;

namespace {

void check_weights(std::span<const double> weight, const char* name) {
    for (double w : weight)
        if (!(w >= 0 && w <= 1e30))
            throw nb::value_error((std::string(name) + " must not be negative, nor above 1e30").c_str());
}

ObjectiveSettings checked_settings(double similarity, double frequency, double eps, int max_iterations,
                                   std::uint64_t seed, bool has_own_pull) {
    if (!(similarity >= 0 && frequency >= 0 && eps >= 0) || !std::isfinite(similarity + frequency) ||
        max_iterations < 1)
        throw nb::value_error("similarity, frequency and eps must not be negative, max_iterations at least 1");
    return {similarity, frequency, eps, max_iterations, seed, true, similarity == 0, has_own_pull};
}

auto bound_split(const CsrInput& label_vectors, std::size_t n_features, InOut<std::int32_t> order,
                 const Doubles& weight, const Longs& starts, const Longs& stops, double similarity, double frequency,
                 double eps, int max_iterations, std::uint64_t seed, int n_threads, bool has_own_pull) {
    const CsrView vectors = label_vectors.checked(static_cast<std::int64_t>(n_features), "vectors");
    if (stops.size() != starts.size()) throw nb::value_error("starts and stops must be equally long");
    if (weight.size() != order.size()) throw nb::value_error("order and weight must be equally long");
    if (n_threads < 1) throw nb::value_error("n_threads must be at least 1");
    const ObjectiveSettings settings = checked_settings(similarity, frequency, eps, max_iterations, seed, has_own_pull);
    std::vector<WeighedPart> parts;
    std::int64_t behind = 0;
    for (std::size_t k = 0; k < starts.size(); ++k) {
        const WeighedPart part{view(starts)[k], view(stops)[k]};
        if (part.start < behind || part.stop - part.start < 2 || part.stop > static_cast<std::int64_t>(order.size()))
            throw nb::value_error("parts must be sorted and disjoint, each with at least two labels");
        behind = part.stop;
        parts.push_back(part);
    }
    const std::span<std::int32_t> labels = writable(order);
    for (std::int32_t label : labels)
        if (label < 0 || label >= vectors.n_rows()) throw nb::value_error("order holds a label without a vector");
    std::vector<std::int64_t> cuts;
    {
        nb::gil_scoped_release released;
        check_weights(view(weight), "weight");
        cuts = split_by_objective(vectors, n_features, labels, view(weight), parts, settings, std::min(n_threads, 256));
    }
    return to_numpy(std::move(cuts));
}

Tuple<Array<float>, Array<double>> bound_alternate(const CsrInput& label_vectors, std::size_t n_features,
                                                   const Doubles& weight, double similarity, double frequency,
                                                   double eps, int max_iterations, std::uint64_t seed, bool rounds,
                                                   bool has_own_pull) {
    const CsrView vectors = label_vectors.checked(static_cast<std::int64_t>(n_features), "vectors");
    if (static_cast<std::int64_t>(weight.size()) != vectors.n_rows())
        throw nb::value_error("a weight for each label is needed");
    if (weight.size() < 2) throw nb::value_error("at least two labels are needed");
    check_weights(view(weight), "weight");
    ObjectiveSettings settings = checked_settings(similarity, frequency, eps, max_iterations, seed, has_own_pull);
    settings.rounds = rounds;
    std::vector<std::int32_t> labels(weight.size());
    std::iota(labels.begin(), labels.end(), 0);
    ObjectiveSplitter splitter(vectors, n_features, settings);
    {
        nb::gil_scoped_release released;
        splitter.assign(labels, view(weight), seed, 1);
    }
    return nb::make_tuple(to_numpy(std::move(splitter.share_left)), to_numpy(std::move(splitter.objectives)));
}

auto bound_greedy(const LabelInput& by_row, const LabelInput& by_label, const Doubles& weight) {
    const Incidence incidence{view(by_row.indptr), view(by_label.indptr), view(by_row.indices), view(by_label.indices)};
    check_csr(incidence.row_start, incidence.labels_of_rows, static_cast<std::int64_t>(by_label.indptr.size()) - 1,
              "Y by rows");
    check_csr(incidence.column_start, incidence.rows_of_labels, static_cast<std::int64_t>(by_row.indptr.size()) - 1,
              "Y by columns");
    if (by_row.indices.size() != by_label.indices.size())
        throw nb::value_error("Y by rows and by columns must have as many entries");
    if (weight.size() != incidence.n_rows()) throw nb::value_error("a weight for each row of Y is needed");
    check_weights(view(weight), "weight");
    std::vector<double> found;
    {
        nb::gil_scoped_release released;
        found = greedy_frequency(incidence, view(weight));
    }
    return to_numpy(std::move(found));
}

auto bound_collapse(const TreeInput& tree_arrays, const Doubles& mass, int arity) {
    const TreeView tree = tree_arrays.checked();
    if (mass.size() != tree.parent.size()) throw nb::value_error("a mass for each node is needed");
    if (arity < 2) throw nb::value_error("arity must be at least 2");
    check_weights(view(mass), "mass");
    std::vector<std::uint8_t> stays;
    {
        nb::gil_scoped_release released;
        stays = LevelCollapse(tree.first_child, tree.n_children, view(mass), arity).solve();
    }
    return to_numpy(std::move(stays));
}

}  // namespace

void bind_interpolated(nb::module_& m) {
    m.def("split_by_objective", &bound_split, "vectors"_a, "n_features"_a, "order"_a, "weight"_a, "starts"_a, "stops"_a,
          nb::kw_only(), "similarity"_a, "frequency"_a, "eps"_a, "max_iterations"_a, "seed"_a, "n_threads"_a,
          "has_own_pull"_a = false,
          "Splits order[start:stop] of every part in place, the masses of its labels beside it; where each part was "
          "cut.");
    m.def("alternating_maximisation", &bound_alternate, "vectors"_a, "n_features"_a, "weight"_a, nb::kw_only(),
          "similarity"_a, "frequency"_a, "eps"_a, "max_iterations"_a, "seed"_a, "rounds"_a, "has_own_pull"_a = false,
          "All labels as one part: what share of each goes left, and the objective after each iteration.");
    m.def("collapse_levels", &bound_collapse, "tree"_a, "mass"_a, "arity"_a,
          "Which nodes stay when inner nodes are taken out so that as little mass as possible passes inner nodes.");
    m.def("greedy_frequency", &bound_greedy, "by_row"_a, "by_label"_a, "weight"_a,
          "The mass of the contexts that each label is the first to cover, the heaviest label first.");
}
