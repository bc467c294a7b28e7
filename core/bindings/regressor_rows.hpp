/// Rows of one class each for LOMtrees and filter trees, checked and prepared for their regressors.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <string>

#include "base/parallel.hpp"
#include "bindings/arrays.hpp"
#include "bindings/casters.hpp"
#include "bindings/checks.hpp"
#include "lomtree/node_regressor.hpp"

namespace ramify {

inline constexpr std::int64_t max_regressor_features = std::numeric_limits<std::int32_t>::max() - 1;
inline constexpr std::int64_t regressor_chunk = 256;  ///< rows that a thread takes at once

/// Rows to learn from, checked: one class each, weights, and the order in which they come.
struct ClassRows {
    CsrView X;
    std::span<const std::int32_t> label;
    std::span<const float> weight;
    std::span<const std::int64_t> order;

    ClassRows(const CsrInput& x, const Ints& labels, std::int64_t n_labels, const std::optional<Floats>& sample_weight,
              const std::optional<Longs>& given_order)
        : X(x.checked(max_regressor_features, "X")), label(view(labels)) {
        const auto n = static_cast<std::size_t>(X.n_rows());
        if (label.size() != n) throw nb::value_error("X and the classes differ in their number of rows");
        for (std::int32_t l : label)
            if (l < 0 || l >= n_labels)
                throw nb::value_error(
                    ("class " + std::to_string(l) + " is outside 0.." + std::to_string(n_labels - 1)).c_str());
        weight = checked_positive(sample_weight, n, "sample_weight");
        if (given_order) {
            order = view(*given_order);
            for (std::int64_t i : order)
                if (i < 0 || i >= X.n_rows()) throw nb::value_error("order contains a row that X does not have");
        }
        if (!rises_in_rows(X.indptr, X.indices))
            throw nb::value_error("X: features of a row must be strictly increasing");
    }

    /// Calls work(prepared row, class, weight) in order.
    template <class Work>
    void for_each(const RegressorSettings& settings, Progress* progress, Work&& work) const {
        const std::int64_t n = order.empty() ? X.n_rows() : std::ssize(order);
        if (progress) progress->total += static_cast<std::size_t>(n);
        Watch watch;
        RegressorRow row;
        for (std::int64_t at = 0; at < n; ++at) {
            if (at % regressor_chunk == 0) watch.should_stop();
            const std::int64_t i = order.empty() ? at : order[at];
            prepare(X, i, settings, row);
            work(row, label[i], weight.empty() ? 1.0f : weight[i]);
            if (progress) ++progress->done;
        }
    }

    static void prepare(const CsrView& X, std::int64_t i, const RegressorSettings& settings, RegressorRow& row) {
        const auto [indices, values] = X.row(i);
        row.prepare(indices, values, settings);
    }
};

/// Calls work(row number, prepared row) for all rows, on several threads.
template <class Work>
void for_every_row(const CsrView& X, const RegressorSettings& settings, int n_threads, Work&& work) {
    parallel_chunks(X.n_rows(), regressor_chunk, n_threads, [&](std::int64_t first, std::int64_t last, int) {
        RegressorRow row;
        for (std::int64_t i = first; i < last; ++i) {
            ClassRows::prepare(X, i, settings, row);
            work(i, row);
        }
    });
}

inline RegressorRow one_row(const Ints& indices, const Floats& values, const RegressorSettings& settings) {
    if (indices.size() != values.size()) throw nb::value_error("indices and values differ in length");
    std::int64_t last = -1;
    for (std::int32_t j : view(indices)) {
        if (j <= last || j >= max_regressor_features)
            throw nb::value_error("feature numbers must be strictly increasing and not negative");
        last = j;
    }
    RegressorRow row;
    row.prepare(view(indices), view(values), settings);
    return row;
}

}  // namespace ramify
