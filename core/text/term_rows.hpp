/// From the terms of a text to a sparse row: sorted columns, counts, and weights as in scikit-learn's TfidfTransformer.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

namespace ramify {

/// MurmurHash3 (Appleby), the 32-bit variant with seed 0, as a signed number: the hash of scikit-learn's hashers.
inline std::int32_t murmur_hash(std::string_view bytes) {
    std::uint32_t h = 0;
    const auto scramble = [](std::uint32_t k) { return std::rotl(k * 0xcc9e2d51u, 15) * 0x1b873593u; };
    std::size_t at = 0;
    for (; at + 4 <= bytes.size(); at += 4) {
        std::uint32_t k;
        std::memcpy(&k, bytes.data() + at, 4);
        h = std::rotl(h ^ scramble(k), 13) * 5 + 0xe6546b64u;
    }
    std::uint32_t tail = 0;
    for (std::size_t k = bytes.size(); k > at; --k) tail = tail << 8 | static_cast<unsigned char>(bytes[k - 1]);
    if (bytes.size() > at) h ^= scramble(tail);
    h ^= static_cast<std::uint32_t>(bytes.size());
    h = (h ^ h >> 16) * 0x85ebca6bu;
    h = (h ^ h >> 13) * 0xc2b2ae35u;
    return static_cast<std::int32_t>(h ^ h >> 16);
}

/// Sorts numbers below `limit`: by digits if there are many. `spare` is working space.
inline void sort_numbers(std::vector<std::uint32_t>& numbers, std::vector<std::uint32_t>& spare, std::uint64_t limit) {
    const std::size_t n = numbers.size();
    if (n < 64) {
        std::ranges::sort(numbers);
        return;
    }
    constexpr int max_digit = 11;
    const int n_bits = std::max(1, static_cast<int>(std::bit_width(limit)));
    const int n_passes = (n_bits + max_digit - 1) / max_digit, digit = (n_bits + n_passes - 1) / n_passes;
    const std::uint32_t mask = (1u << digit) - 1;
    spare.resize(n);
    for (int shift = 0; shift < n_bits; shift += digit) {
        std::array<std::uint32_t, 1u << max_digit> begin;
        std::fill_n(begin.begin(), mask + 1, 0u);
        for (std::uint32_t x : numbers) ++begin[x >> shift & mask];
        std::uint32_t total = 0;
        for (std::uint32_t d = 0; d <= mask; ++d) total += std::exchange(begin[d], total);
        for (std::uint32_t x : numbers) spare[begin[x >> shift & mask]++] = x;
        numbers.swap(spare);
    }
}

enum class Norm { none, l1, l2 };

struct Weighting {
    bool binary = false;
    bool sublinear = false;
    Norm norm = Norm::l2;
    std::vector<double> idf;  ///< by column; empty: none

    /// The weight of a count before normalisation. Computed in double, as scikit-learn does by default.
    double weight(double count, std::size_t column) const {
        double value = binary ? 1.0 : count;
        if (sublinear) value = 1.0 + (count == 1.0 ? 0.0 : std::log(value));
        return idf.empty() ? value : value * idf[column];
    }

    /// Scales a row by its norm and rounds it.
    void finish(std::span<const double> row, float* out) const {
        double size = 0;
        if (norm == Norm::l2) {
            for (double v : row) size += v * v;
            size = std::sqrt(size);
        } else if (norm == Norm::l1) {
            for (double v : row) size += std::abs(v);
        }
        const bool is_scaled = norm != Norm::none && size != 0;
        for (std::size_t k = 0; k < row.size(); ++k) out[k] = static_cast<float>(is_scaled ? row[k] / size : row[k]);
    }
};

/// Rows one after the other: as many as `lengths`.
struct TermRows {
    std::vector<std::int64_t> lengths;
    std::vector<std::int32_t> columns;
    std::vector<float> values;
};

/// Makes rows of the columns that occur in a text.
class RowBuilder {
public:
    std::vector<std::uint32_t>
        found;  ///< columns in any order; where terms have signs, doubled, and 1 more if negative

    /// Calls take(column) for every distinct column of `found`, in order.
    template <class Take>
    void for_every_column(std::int64_t n_columns, Take&& take) {
        sort_numbers(found, spare_, static_cast<std::uint64_t>(n_columns));
        for (std::size_t k = 0; k < found.size(); ++k)
            if (k == 0 || found[k] != found[k - 1]) take(std::size_t{found[k]});
    }

    /// Appends a row of `found` and clears it.
    void finish(TermRows& rows, const Weighting& weighting, std::int64_t n_columns, bool has_signs) {
        sort_numbers(found, spare_, static_cast<std::uint64_t>(n_columns) << has_signs);
        row_.clear();
        for (std::size_t k = 0; k < found.size();) {
            const std::uint32_t column = found[k] >> has_signs;
            double count = 0;
            for (; k < found.size() && found[k] >> has_signs == column; ++k)
                count += has_signs && (found[k] & 1) ? -1 : 1;
            rows.columns.push_back(static_cast<std::int32_t>(column));
            row_.push_back(weighting.weight(count, column));
        }
        const std::size_t begin = rows.values.size();
        rows.values.resize(begin + row_.size());
        weighting.finish(row_, rows.values.data() + begin);
        rows.lengths.push_back(std::ssize(row_));
        found.clear();
    }

private:
    std::vector<std::uint32_t> spare_;
    std::vector<double> row_;
};

}  // namespace ramify
