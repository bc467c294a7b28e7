/// Checks of arguments before the core reads them: rows, labels and weights. Each mistake has one message.
#pragma once

#include <nanobind/nanobind.h>

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <string>

#include "base/label_query.hpp"
#include "bindings/arrays.hpp"
#include "bindings/casters.hpp"

namespace ramify {

inline void check_label_count(std::int64_t n_labels) {
    if (n_labels < 0 || n_labels > std::numeric_limits<std::int32_t>::max())
        throw nb::value_error("n_labels is out of range");
}

/// The labels of rows, for rows that X has.
template <class Rows>
void check_label_rows(const Rows& x, const LabelInput& y, std::int64_t n_labels) {
    check_csr(view(y.indptr), view(y.indices), n_labels, "Y");
    if (x.indptr.size() != y.indptr.size()) throw nb::value_error("X and Y differ in their number of rows");
}

/// Whether the indices of each row are strictly increasing.
inline bool rises_in_rows(std::span<const std::int64_t> indptr, std::span<const std::int32_t> indices) {
    for (std::size_t i = 1; i < indptr.size(); ++i)
        for (std::int64_t k = indptr[i - 1] + 1; k < indptr[i]; ++k)
            if (indices[k] <= indices[k - 1]) return false;
    return true;
}

/// Labels, strictly increasing within each row.
template <class Rows>
void check_rising_labels(const Rows& x, const LabelInput& y, std::int64_t n_labels) {
    check_label_count(n_labels);
    check_label_rows(x, y, n_labels);
    if (!rises_in_rows(view(y.indptr), view(y.indices)))
        throw nb::value_error("Y: labels of a row must be strictly increasing");
    if (x.indptr.size() > static_cast<std::size_t>(std::numeric_limits<std::int32_t>::max()))
        throw nb::value_error("at most 2^31 - 2 rows");
}

/// Labels whose probabilities are wanted.
inline void check_named_labels(const Ints& labels, std::int64_t n_labels) {
    for (std::int32_t l : view(labels))
        if (l < 0 || l >= n_labels)
            throw nb::value_error(("label " + std::to_string(l) + " is outside the model's labels").c_str());
}

/// The same, each row with labels of its own.
inline void check_named_labels(const CsrInput& x, const LabelInput& labels, std::int64_t n_labels) {
    check_csr(view(labels.indptr), view(labels.indices), n_labels, "labels");
    if (labels.indptr.size() != x.indptr.size())
        throw nb::value_error("X and the named labels differ in their number of rows");
}

/// At most top_k labels, all by default, that reach the threshold or each its own.
inline LabelQuery checked_query(std::int64_t n_labels, std::optional<std::int64_t> top_k, float threshold,
                                const std::optional<Floats>& label_threshold = {}) {
    LabelQuery query;
    query.top_k = top_k.value_or(n_labels);
    query.threshold = threshold;
    if (label_threshold) {
        query.label_threshold = view(*label_threshold);
        if (query.label_threshold.size() != static_cast<std::size_t>(n_labels))
            throw nb::value_error("label_threshold needs a value for each label");
    }
    return query;
}

/// One row for a model of n_features features.
inline void check_row(const Ints& indices, const Floats& values, std::int64_t n_features) {
    if (indices.size() != values.size()) throw nb::value_error("indices and values differ in length");
    for (std::int32_t j : view(indices))
        if (j < 0 || j >= n_features) throw nb::value_error("a feature number is >= n_features or negative");
}

/// One row for a learner, which takes any feature.
inline void check_row(const Ints& indices, const Floats& values) {
    if (indices.size() != values.size()) throw nb::value_error("indices and values differ in length");
    for (std::int32_t j : view(indices))
        if (j < 0) throw nb::value_error("a feature number is negative");
}

template <class T>
std::span<const T> checked_positive(const Input<T>& values, std::size_t size, const char* name) {
    if (values.size() != size) throw nb::value_error((std::string(name) + " has a wrong length").c_str());
    for (T v : view(values))
        if (!(v > 0) || !std::isfinite(v))
            throw nb::value_error((std::string(name) + " must be finite and above 0").c_str());
    return view(values);
}

/// Optional weights: empty if not given.
inline std::span<const float> checked_positive(const std::optional<Floats>& values, std::size_t size,
                                               const char* name) {
    return values ? checked_positive(*values, size, name) : std::span<const float>{};
}

}  // namespace ramify
