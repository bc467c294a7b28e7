/// Rows of a CSR array as the models see them: scaled to unit length when asked, a constant bias feature at the end.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

#include "base/parallel.hpp"
#include "base/scratch_memory.hpp"
#include "kernels/kernels.hpp"

namespace ramify {

/// One row of a CSR array, not owned.
struct RowView {
    std::span<const std::int32_t> indices;
    std::span<const float> values;
};

/// Rows belong to the caller, and another of its threads may write to them after they were checked. So what is read for
/// use as an index is checked again on the core's own copy.
[[noreturn]] inline void refuse_changed_rows() {
    throw std::runtime_error("X changed while it was being read: another thread must not write to it during the call");
}

/// A CSR array, not owned.
struct CsrView {
    std::span<const std::int64_t> indptr;
    std::span<const std::int32_t> indices;
    std::span<const float> data;  ///< empty where only the columns matter
    std::int64_t n_columns;

    std::int64_t n_rows() const { return static_cast<std::int64_t>(indptr.size()) - 1; }
    std::int64_t length(std::int64_t i) const { return indptr[i + 1] - indptr[i]; }
    RowView row(std::int64_t i) const {
        const std::int64_t from = indptr[i], to = indptr[i + 1];
        if (from < 0 || to < from || to > std::ssize(indices)) refuse_changed_rows();
        const auto start = static_cast<std::size_t>(from), length = static_cast<std::size_t>(to - from);
        return {indices.subspan(start, length), data.subspan(start, length)};
    }
};

struct FeatureSettings {
    std::int64_t n_features = 0;
    bool normalize = true;
    float bias = 1.0f;   ///< value of the constant feature, numbered n_features; 0: none
    double scale = 1.0;  ///< of all values, where rows are not normalised

    std::int64_t n_columns() const { return n_features + (bias != 0.0f); }

    /// Writes one prepared row to `out`, which has room for it and the bias; the number of entries written.
    std::size_t write(std::span<const std::int32_t> indices, std::span<const float> values,
                      std::span<Entry> out) const {
        double factor = scale;  // a float could overflow: the inverse of a tiny row's length
        if (normalize) {
            double squared = 0;
            for (float v : values) squared += static_cast<double>(v) * v;
            factor = squared > 0 ? 1.0 / std::sqrt(squared) : 1.0;
        }
        const std::size_t room = out.size() - std::min<std::size_t>(out.size(), bias != 0.0f);
        std::size_t n = 0;
        for (std::size_t k = 0; k < indices.size(); ++k) {
            if (values[k] == 0.0f) continue;
            if (n == room) refuse_changed_rows();
            out[n++] = {static_cast<std::uint32_t>(indices[k]), static_cast<float>(values[k] * factor)};
        }
        std::uint32_t last = 0;
        bool rises = true;  // searches rely on it
        for (std::size_t k = 0; k < n; ++k) {
            last = std::max(last, out[k].feature);
            rises &= k == 0 || out[k - 1].feature <= out[k].feature;
        }
        if (n > 0 && last >= n_features) refuse_changed_rows();
        if (!rises) std::ranges::stable_sort(out.first(n), {}, &Entry::feature);
        if (bias != 0.0f) out[n++] = {static_cast<std::uint32_t>(n_features), bias};
        return n;
    }

    /// Appends one prepared row to `out`.
    void append(std::span<const std::int32_t> indices, std::span<const float> values, std::vector<Entry>& out) const {
        const std::size_t before = out.size();
        out.resize(before + indices.size() + 1);
        try {
            out.resize(before + write(indices, values, std::span(out).subspan(before)));
        } catch (...) {
            out.resize(before);
            throw;
        }
    }
};

/// All rows of X, prepared once before training.
struct PreparedRows {
    std::vector<std::int64_t> begin;
    ScratchArray<Entry> entries;  ///< not a std::vector, which would write zeros first
    std::vector<float> squared_norm;

    /// `directory`: where to keep the entries in a file if not in memory.
    PreparedRows(const CsrView& X, const FeatureSettings& features, int n_threads, const std::string& directory = {})
        : begin(X.n_rows() + 1, 0), squared_norm(X.n_rows()) {
        constexpr std::int64_t chunk = 1024;
        auto for_every_row = [&](auto&& work) {
            parallel_chunks(X.n_rows(), chunk, n_threads, [&](std::int64_t first, std::int64_t last, int) {
                for (std::int64_t i = first; i < last; ++i) work(i, X.row(i));
            });
        };
        for_every_row([&](std::int64_t i, const RowView& row) {
            begin[i + 1] = std::ssize(row.values) - std::ranges::count(row.values, 0.0f) + (features.bias != 0.0f);
        });
        std::partial_sum(begin.begin(), begin.end(), begin.begin());
        entries = scratch_array<Entry>(static_cast<std::size_t>(begin.back()), directory);
        for_every_row([&](std::int64_t i, const RowView& row) {
            const std::span<Entry> out(entries.get() + begin[i], static_cast<std::size_t>(begin[i + 1] - begin[i]));
            if (features.write(row.indices, row.values, out) != out.size()) refuse_changed_rows();
            float squared = 0;
            for (std::int64_t k = begin[i]; k < begin[i + 1]; ++k) squared += entries[k].value * entries[k].value;
            squared_norm[i] = squared;
        });
    }

    const Entry* row(std::int64_t i) const { return entries.get() + begin[i]; }
    int length(std::int64_t i) const { return static_cast<int>(begin[i + 1] - begin[i]); }
};

}  // namespace ramify
