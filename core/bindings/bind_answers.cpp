/// Python bindings of answers: their order, and their labels.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "bindings/arrays.hpp"
#include "bindings/label_pairs.hpp"

namespace nb = nanobind;
using namespace nb::literals;
using namespace ramify;

namespace {

void check_rows(std::span<const std::int64_t> indptr, std::size_t n_entries) {
    if (indptr.empty() || indptr.front() != 0 || indptr.back() != static_cast<std::int64_t>(n_entries) ||
        !std::ranges::is_sorted(indptr))
        throw nb::value_error("indptr does not fit the entries");
}

Array<std::int64_t> best_first(const Longs& indptr, const Ints& indices, const Floats& data) {
    const auto ends = view(indptr);
    const auto columns = view(indices);
    const auto values = view(data);
    if (columns.size() != values.size()) throw nb::value_error("indices and data differ in length");
    check_rows(ends, columns.size());
    std::vector<std::int64_t> order(columns.size());
    {
        const nb::gil_scoped_release release;
        std::iota(order.begin(), order.end(), std::int64_t{0});
        const auto is_before = [&](std::int64_t a, std::int64_t b) {
            const float p = values[static_cast<std::size_t>(a)], q = values[static_cast<std::size_t>(b)];
            if (p > q || p < q) return p > q;
            if (std::isnan(p) != std::isnan(q)) return std::isnan(q);
            const std::int32_t i = columns[static_cast<std::size_t>(a)], j = columns[static_cast<std::size_t>(b)];
            return i != j ? i < j : a < b;
        };
        for (std::size_t row = 0; row + 1 < ends.size(); ++row)
            std::sort(order.begin() + ends[row], order.begin() + ends[row + 1], is_before);
    }
    return to_numpy(std::move(order));
}

List<List<Tuple<nb::object, double>>> pairs(const Longs& indptr, const nb::list& labels, const Floats& probabilities) {
    if (labels.size() != probabilities.size()) throw nb::value_error("labels and probabilities differ in length");
    check_rows(view(indptr), probabilities.size());
    return nb::borrow<List<List<Tuple<nb::object, double>>>>(label_pairs(view(indptr), labels, view(probabilities)));
}

}  // namespace

void bind_answers(nb::module_& m) {
    m.def("best_first", &best_first, "indptr"_a, "indices"_a, "data"_a,
          "Positions of the entries, row by row, the best of a row first and the smaller column first among equals.");
    m.def("label_pairs", &pairs, "indptr"_a, "labels"_a, "probabilities"_a,
          "Per row a list of (label, probability), in the order given.");
}
