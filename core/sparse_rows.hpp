/// Rows of a CSR array as the models see them: scaled to unit length when asked, a constant bias feature at the end.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "kernels.hpp"

namespace ramify {

struct CsrView {
    std::span<const std::int64_t> indptr;
    std::span<const std::int32_t> indices;
    std::span<const float> data;
    std::int64_t n_columns;

    std::int64_t n_rows() const { return static_cast<std::int64_t>(indptr.size()) - 1; }
};

struct FeatureSettings {
    std::int64_t n_features = 0;
    bool normalize = true;
    float bias = 1.0f;  ///< value of the constant feature, numbered n_features; 0: none

    std::int64_t n_columns() const { return n_features + (bias != 0.0f); }

    /// Appends one prepared row to `out`.
    void append(std::span<const std::int32_t> indices, std::span<const float> values, std::vector<Entry>& out) const {
        double scale = 1.0;  // a float could overflow: the inverse of a tiny row's length
        if (normalize) {
            double squared = 0;
            for (float v : values) squared += static_cast<double>(v) * v;
            if (squared > 0) scale = 1.0 / std::sqrt(squared);
        }
        for (std::size_t k = 0; k < indices.size(); ++k)
            if (values[k] != 0.0f) out.push_back({static_cast<std::uint32_t>(indices[k]), static_cast<float>(values[k] * scale)});
        if (bias != 0.0f) out.push_back({static_cast<std::uint32_t>(n_features), bias});
    }
};

/// All rows of X, prepared once before training.
struct PreparedRows {
    std::vector<std::int64_t> begin{0};
    std::vector<Entry> entries;
    std::vector<float> squared_norm;

    PreparedRows(const CsrView& X, const FeatureSettings& features) {
        const std::int64_t n = X.n_rows();
        begin.reserve(n + 1);
        squared_norm.reserve(n);
        entries.reserve(X.indices.size() + (features.bias != 0.0f ? n : 0));
        for (std::int64_t i = 0; i < n; ++i) {
            const auto from = static_cast<std::size_t>(X.indptr[i]), length = static_cast<std::size_t>(X.indptr[i + 1]) - from;
            features.append(X.indices.subspan(from, length), X.data.subspan(from, length), entries);
            float squared = 0;
            for (std::size_t k = begin.back(); k < entries.size(); ++k) squared += entries[k].value * entries[k].value;
            squared_norm.push_back(squared);
            begin.push_back(static_cast<std::int64_t>(entries.size()));
        }
    }

    const Entry* row(std::int64_t i) const { return entries.data() + begin[i]; }
    int length(std::int64_t i) const { return static_cast<int>(begin[i + 1] - begin[i]); }
};

}  // namespace ramify
