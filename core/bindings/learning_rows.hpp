/// Rows for an online learner, each with any number of labels and a weight, in their own order or a given one.
#pragma once

#include <nanobind/nanobind.h>

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <span>

#include "base/parallel.hpp"
#include "bindings/arrays.hpp"
#include "bindings/casters.hpp"

namespace ramify {

struct LearningRows {
    CsrView X;
    std::span<const std::int64_t> label_begin;
    std::span<const std::int32_t> labels;
    std::span<const float> weight;                       ///< empty: 1 each
    std::optional<std::span<const std::int64_t>> order;  ///< row numbers; none: all rows in order

    LearningRows(const CsrInput& x, const LabelInput& y, const std::optional<Floats>& sample_weight,
                 const std::optional<Longs>& given_order, std::int64_t n_columns)
        : X(x.checked(n_columns, "X")), label_begin(view(y.indptr)), labels(view(y.indices)) {
        check_csr(label_begin, labels, std::numeric_limits<std::int32_t>::max(), "Y");
        if (sample_weight) weight = view(*sample_weight);
        if (label_begin.size() != X.indptr.size() ||
            (sample_weight && static_cast<std::int64_t>(weight.size()) != X.n_rows()))
            throw nb::value_error("X, Y and sample_weight differ in their number of rows");
        if (given_order) {
            order = view(*given_order);
            for (std::int64_t i : *order)
                if (i < 0 || i >= X.n_rows()) throw nb::value_error("order contains a row that X does not have");
        }
        for (float w : weight)
            if (!(w >= 0) || !std::isfinite(w))
                throw nb::value_error("sample_weight must not be negative, NaN or infinite");
    }

    std::span<const std::int32_t> labels_of(std::int64_t i) const {
        return labels.subspan(static_cast<std::size_t>(label_begin[i]),
                              static_cast<std::size_t>(label_begin[i + 1] - label_begin[i]));
    }

    /// Calls work(row, its labels, its weight) for each row in turn.
    template <class Work>
    void for_each(Progress* progress, Work&& work) const {
        const std::int64_t n = order ? std::ssize(*order) : X.n_rows();
        if (progress) progress->total = static_cast<std::size_t>(n);
        Watch watch;
        for (std::int64_t k = 0; k < n; ++k) {
            const std::int64_t i = order ? (*order)[static_cast<std::size_t>(k)] : k;
            work(X.row(i), labels_of(i), weight.empty() ? 1.0f : weight[static_cast<std::size_t>(i)]);
            if (k % 16 == 0) watch.should_stop();
            if (progress) progress->done = static_cast<std::size_t>(k + 1);
        }
    }
};

}  // namespace ramify
