#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <algorithm>
#include <cstdint>
#include <limits>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "tree_walks.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace {

template <class T>
using In = nb::ndarray<const T, nb::ndim<1>, nb::c_contig, nb::device::cpu>;

template <class T>
std::span<const T> view(const In<T>& array) {
    return {array.data(), array.size()};
}

/// Hands a vector's memory to numpy.
template <class T>
nb::ndarray<nb::numpy, T, nb::ndim<1>> to_numpy(std::vector<T>&& values) {
    auto* kept = new std::vector<T>(std::move(values));
    nb::capsule owner(kept, [](void* p) noexcept { delete static_cast<std::vector<T>*>(p); });
    return nb::ndarray<nb::numpy, T, nb::ndim<1>>(kept->data(), {kept->size()}, owner);
}

void check_parents_first(std::span<const std::int32_t> parent) {
    if (parent.empty() || parent[0] != -1) throw nb::value_error("parent[0] must be -1: node 0 is the root");
    for (std::size_t node = 1; node < parent.size(); ++node)
        if (parent[node] < 0 || static_cast<std::size_t>(parent[node]) >= node)
            throw nb::value_error("every node's parent must have a smaller number");
}

auto breadth_first(In<std::int32_t> parent, std::int32_t root) {
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

auto node_depths(In<std::int32_t> parent) {
    check_parents_first(view(parent));
    std::vector<std::int32_t> depth(parent.size());
    {
        nb::gil_scoped_release released;
        ramify::node_depths(view(parent), depth);
    }
    return to_numpy(std::move(depth));
}

template <class Value, class Fold>
auto fold(const In<std::int32_t>& parent, const In<Value>& values, Fold operation) {
    check_parents_first(view(parent));
    if (values.size() != parent.size()) throw nb::value_error("one value per node is needed");
    std::vector<Value> folded(values.data(), values.data() + values.size());
    {
        nb::gil_scoped_release released;
        ramify::fold_upwards<Value>(view(parent), folded, operation);
    }
    return to_numpy(std::move(folded));
}

auto huffman_parents(In<double> frequency, std::int32_t arity) {
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

}  // namespace

void bind_trees(nb::module_& m) {
    m.def("breadth_first", &breadth_first, "parent"_a, "root"_a,
          "Nodes in breadth-first order, siblings by number; nodes on a cycle are left out.");
    m.def("node_depths", &node_depths, "parent"_a, "Distance of every node from the root.");
    m.def(
        "subtree_minimum",
        [](In<std::int32_t> parent, In<double> values) {
            return fold<double>(parent, values, [](double a, double b) { return std::min(a, b); });
        },
        "parent"_a, "values"_a, "The smallest value at or below every node.");
    m.def(
        "subtree_sum",
        [](In<std::int32_t> parent, In<std::int64_t> values) {
            return fold<std::int64_t>(parent, values, [](std::int64_t a, std::int64_t b) {
                return static_cast<std::int64_t>(static_cast<std::uint64_t>(a) + static_cast<std::uint64_t>(b));
            });
        },
        "parent"_a, "values"_a, "The sum of the values at and below every node.");
    m.def("huffman_parents", &huffman_parents, "frequency"_a, "arity"_a,
          "Parents of Huffman's code over rising frequencies: leaves first, the root last.");
}
