/// Bags of embeddings: which row of a table a feature has, the rows of a bag with their weights, and tables in floats
/// or bytes.
#pragma once

#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

#include "base/sparse_rows.hpp"
#include "kernels/kernels.hpp"

namespace ramify {

/// Floats of a row: its dimension, padded to the vector width.
inline std::size_t embedding_stride(std::int64_t dim) { return static_cast<std::size_t>((dim + 7) / 8 * 8); }

/// Feature columns that have an embedding, rising; the place in the list is the row of the table. Features are found by
/// a bitmap: columns of hashed n-grams are millions, of which few were ever seen.
class EmbeddingColumns {
public:
    EmbeddingColumns() = default;
    EmbeddingColumns(std::span<const std::int32_t> columns, std::int64_t n_features)
        : n_rows_(static_cast<std::uint32_t>(columns.size())) {
        words_.resize(static_cast<std::size_t>(n_features + 63) / 64);
        std::int64_t before = -1;
        for (std::int32_t column : columns) {
            if (column <= before || column >= n_features)
                throw std::invalid_argument("columns of an embedding must be strictly increasing and below n_features");
            before = column;
            words_[static_cast<std::size_t>(column) / 64].bits |= 1ull << (column % 64);
        }
        std::uint64_t count = 0;
        for (BitmapWord& word : words_) {
            word.before = count;
            count += static_cast<std::uint64_t>(std::popcount(word.bits));
        }
    }

    static constexpr std::uint32_t none = 0xffffffffu;
    std::uint32_t n_rows() const { return n_rows_; }
    std::uint32_t row(std::int32_t feature) const {
        const BitmapWord& word = words_[static_cast<std::size_t>(feature) / 64];
        const std::uint64_t bit = 1ull << (feature % 64);
        return word.bits & bit ? static_cast<std::uint32_t>(word.before) +
                                     static_cast<std::uint32_t>(std::popcount(word.bits & (bit - 1)))
                               : none;
    }

private:
    std::vector<BitmapWord> words_;
    std::uint32_t n_rows_ = 0;
};

/// The known features of one row of X as rows of the table, with their weights in the sum.
struct Bag {
    std::vector<std::uint32_t> row;
    std::vector<float> weight;
    std::vector<std::int32_t> feature;

    /// With `normalize` the sum is a mean: weights are divided by the sum of their absolute values. Features without an
    /// embedding count nowhere. The bias has the row after the last column's.
    void fill(const FeatureSettings& features, const EmbeddingColumns& columns, std::span<const std::int32_t> indices,
              std::span<const float> values) {
        row.clear();
        weight.clear();
        feature.clear();
        double total = std::abs(static_cast<double>(features.bias));
        for (std::size_t k = 0; k < indices.size(); ++k) {
            const std::int32_t j = indices[k];
            const float value = values[k];
            if (j < 0 || j >= features.n_features) refuse_changed_rows();
            const std::uint32_t at = columns.row(j);
            if (at == EmbeddingColumns::none || value == 0.0f) continue;
            row.push_back(at);
            weight.push_back(value);
            feature.push_back(j);
            total += std::abs(static_cast<double>(value));
        }
        if (features.bias != 0.0f) {
            row.push_back(columns.n_rows());
            weight.push_back(features.bias);
            feature.push_back(static_cast<std::int32_t>(features.n_features));
        }
        if (!features.normalize || !(total > 0)) return;
        for (float& w : weight) w = static_cast<float>(w / total);
    }
    int size() const { return static_cast<int>(row.size()); }
};

/// Rows of floats, or of bytes that a scale per row multiplies.
struct EmbeddingTable {
    std::span<const float> floats;
    std::span<const std::int8_t> bytes;
    std::span<const float> scale;
    std::size_t stride = 8;

    bool is_quantized() const { return floats.empty() && !bytes.empty(); }

    /// A damaged model file must not cause an invalid read.
    void validate(std::size_t n_rows, const char* name) const {
        const std::size_t size = is_quantized() ? bytes.size() : floats.size();
        if (size != n_rows * stride || (is_quantized() && scale.size() != n_rows))
            throw std::invalid_argument(std::string(name) + ": the table does not have " + std::to_string(n_rows) +
                                        " rows of " + std::to_string(stride));
    }
    void sum(const std::uint32_t* index, const float* value, int n, float* out) const {
        const EmbeddingKernels& k = kernels().embedding;
        if (is_quantized())
            k.sum_bytes(bytes.data(), scale.data(), stride, index, value, n, out);
        else
            k.sum(floats.data(), stride, index, value, n, out);
    }
    void dots(const std::uint32_t* index, int n, const float* x, float* products) const {
        const EmbeddingKernels& k = kernels().embedding;
        if (is_quantized())
            k.dots_bytes(bytes.data(), scale.data(), stride, index, n, x, products);
        else
            k.dots(floats.data(), stride, index, n, x, products);
    }
};

}  // namespace ramify
