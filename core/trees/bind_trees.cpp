/// Python bindings of label trees: walks over them, Huffman's code, label vectors and their balanced splits.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <algorithm>
#include <cstdint>
#include <limits>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "bindings/arrays.hpp"
#include "bindings/casters.hpp"
#include "trees/label_clustering.hpp"
#include "trees/label_vectors.hpp"
#include "trees/tree_walks.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace {

// Not the whole namespace: functions here have the names of those that they bind.
using ramify::check_csr;
using ramify::CsrInput;
using ramify::CsrView;
using ramify::Doubles;
using ramify::Floats;
using ramify::InOut;
using ramify::Input;
using ramify::Ints;
using ramify::LabelInput;
using ramify::Longs;
using ramify::to_numpy;
using ramify::view;
using ramify::writable;

void check_parents_first(std::span<const std::int32_t> parent) {
    if (parent.empty() || parent[0] != -1) throw nb::value_error("parent[0] must be -1: node 0 is the root");
    for (std::size_t node = 1; node < parent.size(); ++node)
        if (parent[node] < 0 || static_cast<std::size_t>(parent[node]) >= node)
            throw nb::value_error("every node's parent must have a smaller number");
}

auto breadth_first(Ints parent, std::int32_t root) {
    const auto n = static_cast<std::int64_t>(parent.size());
    if (n > std::numeric_limits<std::int32_t>::max()) throw nb::value_error("too many nodes for 32-bit numbers");
    if (root < 0 || root >= n) throw nb::value_error("root must be a node");
    for (std::int32_t p : view(parent))
        if (p < -1 || p >= n) throw nb::value_error("parent must be -1 or a node");
    if (view(parent)[root] != -1) throw nb::value_error("the root must have no parent");
    std::vector<std::int32_t> order;
    {
        nb::gil_scoped_release released;
        order = ramify::breadth_first(view(parent), root);
    }
    return to_numpy(std::move(order));
}

auto node_depths(Ints parent) {
    check_parents_first(view(parent));
    std::vector<std::int32_t> depth(parent.size());
    {
        nb::gil_scoped_release released;
        ramify::node_depths(view(parent), depth);
    }
    return to_numpy(std::move(depth));
}

template <class Value, class Fold>
auto fold(const Ints& parent, const Input<Value>& values, Fold operation) {
    check_parents_first(view(parent));
    if (values.size() != parent.size()) throw nb::value_error("one value per node is needed");
    std::vector<Value> folded(values.data(), values.data() + values.size());
    {
        nb::gil_scoped_release released;
        ramify::fold_upwards<Value>(view(parent), folded, operation);
    }
    return to_numpy(std::move(folded));
}

auto huffman_parents(Doubles frequency, std::int32_t arity) {
    if (arity < 2) throw nb::value_error(("arity must be at least 2, got " + std::to_string(arity)).c_str());
    if (frequency.size() > static_cast<std::size_t>(std::numeric_limits<std::int32_t>::max() / 2))
        throw nb::value_error("too many labels for 32-bit numbers");
    const auto f = view(frequency);
    for (std::size_t k = 0; k < f.size(); ++k)
        if (!(f[k] >= (k ? f[k - 1] : 0.0) && f[k] <= std::numeric_limits<double>::max()))
            throw nb::value_error("frequencies must be finite, not negative and sorted from low to high");
    std::vector<std::int32_t> parent;
    {
        nb::gil_scoped_release released;
        parent = ramify::huffman_parents(f, arity);
    }
    return to_numpy(std::move(parent));
}

/// Rows whose features index an array: their number must fit 32 bits.
CsrView feature_rows(const CsrInput& rows, std::size_t n_features, const char* name) {
    if (n_features > static_cast<std::size_t>(std::numeric_limits<std::int32_t>::max()))
        throw nb::value_error("n_features must fit 32 bits");
    return rows.checked(static_cast<std::int64_t>(n_features), name);
}

/// Each thread has its own scratch memory, so their number is limited.
int checked_threads(int n_threads) {
    if (n_threads < 1) throw nb::value_error("n_threads must be at least 1");
    return std::min(n_threads, 256);
}

ramify::CsrArrays label_vectors(const CsrInput& x, std::size_t n_features, const LabelInput& by_label, float prune,
                                std::size_t max_entries, int n_threads) {
    const CsrView rows = feature_rows(x, n_features, "X");
    check_csr(view(by_label.indptr), view(by_label.indices), rows.n_rows(), "Y");
    if (max_entries == 0) throw nb::value_error("max_entries must be at least 1");
    n_threads = checked_threads(n_threads);
    ramify::LabelVectors vectors;
    {
        nb::gil_scoped_release released;
        vectors = ramify::label_vectors(rows, n_features, view(by_label.indptr), view(by_label.indices), prune,
                                        max_entries, n_threads);
    }
    const auto n = static_cast<std::size_t>(vectors.start.back());
    auto* column = vectors.column.release();
    nb::capsule column_owner(column, [](void* p) noexcept { delete[] static_cast<std::int32_t*>(p); });
    auto* value = vectors.value.release();
    nb::capsule value_owner(value, [](void* p) noexcept { delete[] static_cast<float*>(p); });
    return nb::make_tuple(to_numpy(std::move(vectors.start)), ramify::Array<std::int32_t>(column, {n}, column_owner),
                          ramify::Array<float>(value, {n}, value_owner));
}

void split_labels(const CsrInput& label_vectors, std::size_t n_features, InOut<std::int32_t> order, Longs starts,
                  Longs cuts, Longs stops, double eps, int max_iterations, std::uint64_t seed, int n_threads) {
    const CsrView vectors = feature_rows(label_vectors, n_features, "vectors");
    if (cuts.size() != starts.size() || stops.size() != starts.size())
        throw nb::value_error("starts, cuts and stops must be equally long");
    n_threads = checked_threads(n_threads);
    std::vector<ramify::SplitPart> parts;
    std::int64_t behind = 0;
    for (std::size_t k = 0; k < starts.size(); ++k) {
        const ramify::SplitPart part{view(starts)[k], view(cuts)[k], view(stops)[k]};
        if (part.start < behind || part.cut <= part.start || part.stop <= part.cut ||
            part.stop > static_cast<std::int64_t>(order.size()))
            throw nb::value_error("parts must be sorted and disjoint, each with start < cut < stop");
        behind = part.stop;
        parts.push_back(part);
    }
    const std::span<std::int32_t> labels = writable(order);
    nb::gil_scoped_release released;
    for (std::int32_t label : labels)
        if (label < 0 || label >= vectors.n_rows()) throw nb::value_error("order holds a label without a vector");
    ramify::split_parts(vectors, n_features, labels, parts, {eps, max_iterations, seed}, n_threads);
}

}  // namespace

void bind_trees(nb::module_& m) {
    m.def("breadth_first", &breadth_first, "parent"_a, "root"_a,
          "Nodes in breadth-first order, siblings by number; nodes on a cycle are left out.");
    m.def("node_depths", &node_depths, "parent"_a, "Distance of every node from the root.");
    m.def(
        "subtree_minimum",
        [](Ints parent, Doubles values) {
            return fold<double>(parent, values, [](double a, double b) { return std::min(a, b); });
        },
        "parent"_a, "values"_a, "The smallest value at or below every node.");
    m.def(
        "subtree_sum",
        [](Ints parent, Longs values) {
            return fold<std::int64_t>(parent, values, [](std::int64_t a, std::int64_t b) {
                return static_cast<std::int64_t>(static_cast<std::uint64_t>(a) + static_cast<std::uint64_t>(b));
            });
        },
        "parent"_a, "values"_a, "The sum of the values at and below every node.");
    m.def("huffman_parents", &huffman_parents, "frequency"_a, "arity"_a,
          "Parents of Huffman's code over rising frequencies: leaves first, the root last.");
    m.def("label_vectors", &label_vectors, "X"_a, "n_features"_a, "by_label"_a, "prune"_a, "max_entries"_a,
          "n_threads"_a, "PIFA label vectors of unit length as the three arrays of a csr_array.");
    m.def("split_labels", &split_labels, "vectors"_a, "n_features"_a, "order"_a, "starts"_a, "cuts"_a, "stops"_a,
          "eps"_a, "max_iterations"_a, "seed"_a, "n_threads"_a,
          "Balanced spherical 2-means of order[start:stop] for every part, in place: the first cut - start labels are "
          "one half.");
}
