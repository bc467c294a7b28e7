/// Python bindings of answers: their order, and their labels.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <tuple>
#include <utility>
#include <vector>

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

/// The entries of an answer, checked, and their order within a row: the best first, the smaller column among equals.
struct Entries {
    std::span<const std::int64_t> ends;
    std::span<const std::int32_t> columns;
    std::span<const float> values;

    Entries(const Longs& indptr, const Ints& indices, const Floats& data)
        : ends(view(indptr)), columns(view(indices)), values(view(data)) {
        if (columns.size() != values.size()) throw nb::value_error("indices and data differ in length");
        check_rows(ends, columns.size());
    }

    bool operator()(std::int64_t a, std::int64_t b) const {
        const float p = values[static_cast<std::size_t>(a)], q = values[static_cast<std::size_t>(b)];
        if (p > q || p < q) return p > q;
        if (std::isnan(p) != std::isnan(q)) return std::isnan(q);
        const std::int32_t i = columns[static_cast<std::size_t>(a)], j = columns[static_cast<std::size_t>(b)];
        return i != j ? i < j : a < b;
    }
};

Array<std::int64_t> best_first(const Longs& indptr, const Ints& indices, const Floats& data) {
    const Entries entries(indptr, indices, data);
    std::vector<std::int64_t> order(entries.columns.size());
    {
        const nb::gil_scoped_release release;
        std::iota(order.begin(), order.end(), std::int64_t{0});
        for (std::size_t row = 0; row + 1 < entries.ends.size(); ++row)
            std::sort(order.begin() + entries.ends[row], order.begin() + entries.ends[row + 1], entries);
    }
    return to_numpy(std::move(order));
}

Tuple<Array<std::int32_t>, Array<std::int32_t>, Array<float>> row_by_column(const Ints& indices, const Floats& data) {
    const std::span<const std::int32_t> columns = view(indices);
    const std::span<const float> values = view(data);
    if (columns.size() != values.size()) throw nb::value_error("indices and data differ in length");
    if (columns.size() > static_cast<std::size_t>(std::numeric_limits<std::int32_t>::max()))
        throw nb::value_error("one row cannot have so many entries");
    std::vector<std::pair<std::int32_t, float>> entries(columns.size());
    for (std::size_t k = 0; k < entries.size(); ++k) entries[k] = {columns[k], values[k]};
    std::ranges::sort(entries, {}, &std::pair<std::int32_t, float>::first);
    std::vector<std::int32_t> column(entries.size());
    std::vector<float> value(entries.size());
    for (std::size_t k = 0; k < entries.size(); ++k) std::tie(column[k], value[k]) = entries[k];
    const auto n = static_cast<std::int32_t>(entries.size());
    return nb::make_tuple(to_numpy(std::vector<std::int32_t>{0, n}), to_numpy(std::move(column)),
                          to_numpy(std::move(value)));
}

Tuple<Array<std::int64_t>, Array<std::int64_t>> best_of_rows(const Longs& indptr, const Ints& indices,
                                                             const Floats& data, std::int64_t top_k) {
    const Entries entries(indptr, indices, data);
    std::vector<std::int64_t> begin{0}, position;
    {
        const nb::gil_scoped_release release;
        top_k = std::max<std::int64_t>(top_k, 0);
        begin.reserve(entries.ends.size());
        for (std::size_t row = 0; row + 1 < entries.ends.size(); ++row) {
            const auto first = std::ssize(position);
            const std::int64_t n = entries.ends[row + 1] - entries.ends[row];
            position.resize(static_cast<std::size_t>(first + n));
            std::iota(position.begin() + first, position.end(), entries.ends[row]);
            if (n > top_k) {
                std::ranges::nth_element(position.begin() + first, position.begin() + first + top_k, position.end(),
                                         entries);
                position.resize(static_cast<std::size_t>(first + top_k));
                std::sort(position.begin() + first, position.end());
            }
            begin.push_back(std::ssize(position));
        }
    }
    return nb::make_tuple(to_numpy(std::move(begin)), to_numpy(std::move(position)));
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
    m.def("row_by_column", &row_by_column, "indices"_a, "data"_a,
          "One row's entries in order of column, as the parts of a CSR array.");
    m.def(
        "best_of_rows", &best_of_rows, "indptr"_a, "indices"_a, "data"_a, "top_k"_a,
        "Where each row begins, and the positions of its k largest entries, the smaller column first among equals, in "
        "rising order.");
    m.def("label_pairs", &pairs, "indptr"_a, "labels"_a, "probabilities"_a,
          "Per row a list of (label, probability), in the order given.");
}
