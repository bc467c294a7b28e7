/// Where a candidate tree splits rows: among the features as they are, or in a space of low rank that they were
/// projected to.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "base/parallel.hpp"
#include "base/sparse_rows.hpp"

namespace ramify {

/// Sum over the row's features of their vectors.
inline void project(std::span<const Entry> x, const float* vectors, std::int64_t rank, float* out) {
    for (std::int64_t j = 0; j < rank; ++j) out[j] = 0.0f;
    for (const Entry& e : x) {
        const float* from = vectors + static_cast<std::size_t>(e.feature) * rank;
        for (std::int64_t j = 0; j < rank; ++j) out[j] += e.value * from[j];
    }
}

struct TreeSpace {
    FeatureSettings features;        ///< of the rows that come in, with a bias feature of 1
    std::span<const float> vectors;  ///< `rank` numbers a feature
    std::int64_t rank = 0;           ///< 0: the tree takes the features as they are

    bool is_learned() const { return rank > 0; }

    /// Of what the tree sees. In a learned space all rows have unit length.
    FeatureSettings seen() const { return is_learned() ? FeatureSettings{rank, true, features.bias} : features; }

    /// Rows in the space: n x rank.
    std::vector<float> projected(const CsrView& X, int n_threads) const {
        constexpr std::int64_t chunk = 1024;
        std::vector<float> out(static_cast<std::size_t>(X.n_rows() * rank));
        parallel_chunks(X.n_rows(), chunk, n_threads, [&](std::int64_t first, std::int64_t last, int) {
            std::vector<Entry> x;
            for (std::int64_t i = first; i < last; ++i) {
                x.clear();
                const RowView row = X.row(i);
                features.append(row.indices, row.values, x);
                project(std::span(x).first(x.size() - 1), vectors.data(), rank, out.data() + i * rank);
            }
        });
        return out;
    }

    /// All rows as the tree sees them.
    PreparedRows prepared(const CsrView& X, int n_threads) const {
        if (!is_learned()) return PreparedRows(X, features, n_threads);
        const std::vector<float> values = projected(X, n_threads);
        std::vector<std::int64_t> begin(static_cast<std::size_t>(X.n_rows()) + 1);
        for (std::size_t i = 0; i < begin.size(); ++i) begin[i] = static_cast<std::int64_t>(i) * rank;
        std::vector<std::int32_t> dimension(values.size());
        for (std::size_t k = 0; k < dimension.size(); ++k)
            dimension[k] = static_cast<std::int32_t>(k % static_cast<std::size_t>(rank));
        return PreparedRows({begin, dimension, values, rank}, seen(), n_threads);
    }
};

}  // namespace ramify
