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
#include <unordered_map>
#include <utility>
#include <vector>

namespace ramify {

/// Copies numbers that are nearly in order, and puts them in order.
inline void copy_by_insertion(const std::uint32_t* from, std::size_t n, std::uint32_t* to) {
    for (std::size_t k = 0; k < n; ++k) {
        const std::uint32_t x = from[k];
        std::size_t at = k;
        for (; at > 0 && to[at - 1] > x; --at) to[at] = to[at - 1];
        to[at] = x;
    }
}

/// Moves numbers to where the digits from `shift` on belong, in order, and keeps the order of equal digits.
template <std::size_t max_digits>
void spread_by_digit(const std::uint32_t* from, std::size_t n, std::uint32_t* to, int shift, std::uint32_t mask) {
    std::array<std::uint32_t, max_digits> begin;
    std::fill_n(begin.begin(), mask + 1, 0u);
    for (std::size_t k = 0; k < n; ++k) ++begin[from[k] >> shift & mask];
    std::uint32_t total = 0;
    for (std::uint32_t digit = 0; digit <= mask; ++digit) total += std::exchange(begin[digit], total);
    for (std::size_t k = 0; k < n; ++k) to[begin[from[k] >> shift & mask]++] = from[k];
}

/// Sorts numbers of at most `limit`. `spare` is working space.
inline void sort_numbers(std::vector<std::uint32_t>& numbers, std::vector<std::uint32_t>& spare, std::uint64_t limit) {
    const std::size_t n = numbers.size();
    if (spare.size() < n) spare.resize(2 * n);
    const int n_bits = std::max(1, static_cast<int>(std::bit_width(limit)));
    if (n < 12) {
        copy_by_insertion(numbers.data(), n, spare.data());
        std::copy_n(spare.data(), n, numbers.data());
    } else if (n < 80) {  // one bucket for about every number
        const int bits = std::min(7, static_cast<int>(std::bit_width(n)));
        spread_by_digit<128>(numbers.data(), n, spare.data(), std::max(0, n_bits - bits), (1u << bits) - 1);
        copy_by_insertion(spare.data(), n, numbers.data());
    } else {
        constexpr int max_digit = 11;
        const int n_passes = (n_bits + max_digit - 1) / max_digit, digit = (n_bits + n_passes - 1) / n_passes;
        std::uint32_t *from = numbers.data(), *to = spare.data();
        for (int shift = 0; shift < n_bits; shift += digit) {
            spread_by_digit<std::size_t{1} << max_digit>(from, n, to, shift, (1u << digit) - 1);
            std::swap(from, to);
        }
        if (from != numbers.data()) std::copy_n(from, n, numbers.data());
    }
}

enum class Norm { none, l1, l2 };

struct Weighting {
    bool binary = false;
    bool sublinear = false;
    Norm norm = Norm::l2;
    std::vector<double> idf;  ///< by column; empty: none

    /// The weights of counts before normalisation. Computed in double, as scikit-learn does by default.
    void weigh(std::span<const std::uint32_t> columns, std::span<double> counts) const {
        if (binary) std::ranges::fill(counts, 1.0);
        if (sublinear)
            for (double& count : counts) count = 1.0 + log_of(count);
        if (!idf.empty())
            for (std::size_t k = 0; k < counts.size(); ++k) counts[k] *= idf[columns[k]];
    }

    /// Logarithms of most counts, so that they are not computed again for every term of every text.
    static double log_of(double count) {
        static const auto logs = [] {
            std::array<double, 256> logs{};
            for (std::size_t k = 1; k < logs.size(); ++k) logs[k] = std::log(static_cast<double>(k));
            return logs;
        }();
        const auto whole = static_cast<std::int64_t>(count);
        return whole > 0 && whole < std::ssize(logs) ? logs[static_cast<std::size_t>(whole)] : std::log(count);
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

    void reserve(std::size_t n_rows, std::size_t n_values) {
        lengths.reserve(n_rows);
        columns.reserve(n_values);
        values.reserve(n_values);
    }
};

/// How often each column occurs in a text, for many texts one after the other. The columns are marked in a bitmap,
/// which has them in order; words with marks are marked in a second one, and its words in a third. A count has one
/// byte, so that those of all columns fit into the caches; the few large ones are kept apart.
class ColumnCounts {
public:
    explicit ColumnCounts(std::size_t n_columns)
        : counts_(n_columns, 0),
          columns_(n_columns / 64 + 1, 0),
          words_(columns_.size() / 64 + 1, 0),
          groups_(words_.size() / 64 + 1, 0) {}

    /// A column that is added soon: there may be so many that their counts are far away.
    void prefetch(std::uint32_t column) const {
        __builtin_prefetch(&counts_[column], 1);
        __builtin_prefetch(&columns_[column / 64], 1);
    }

    void add(std::uint32_t column, std::uint32_t count = 1) {
        std::uint8_t& stored = counts_[column];
        if (count < std::uint32_t{is_large} - stored) [[likely]]
            stored = static_cast<std::uint8_t>(stored + count);
        else
            add_to_large(column, count);
        mark(columns_, column);
        mark(words_, column / 64);
        mark(groups_, column / (64 * 64));
        ++n_added_;
    }

    /// At least as many as there are columns.
    std::size_t n_added() const { return n_added_; }

    /// Calls take(column, count) for every column in order, and forgets it.
    template <class Take>
    void drain(Take&& take) {
        n_added_ = 0;
        for (std::size_t top = 0; top < groups_.size(); ++top)
            drain_word(groups_, top, [&](std::size_t group) {
                drain_word(words_, group, [&](std::size_t word) {
                    drain_word(columns_, word, [&](std::size_t column) { take(column, take_count(column)); });
                });
            });
    }

private:
    using Bits = std::vector<std::uint64_t>;
    static constexpr std::uint8_t is_large = 255;

    [[gnu::noinline]] void add_to_large(std::uint32_t column, std::uint32_t count) {
        if (counts_[column] != is_large) count += std::exchange(counts_[column], is_large);
        large_[column] += count;
    }

    std::uint32_t take_count(std::size_t column) {
        const std::uint8_t count = std::exchange(counts_[column], 0);
        if (count != is_large) [[likely]]
            return count;
        return large_.extract(static_cast<std::uint32_t>(column)).mapped();
    }

    static void mark(Bits& bits, std::size_t k) { bits[k / 64] |= std::uint64_t{1} << k % 64; }

    template <class Take>
    static void drain_word(Bits& bits, std::size_t word, Take&& take) {
        for (std::uint64_t marks = std::exchange(bits[word], 0); marks; marks &= marks - 1)
            take(word * 64 + static_cast<std::size_t>(std::countr_zero(marks)));
    }

    std::vector<std::uint8_t> counts_;
    std::unordered_map<std::uint32_t, std::uint32_t> large_;
    Bits columns_, words_, groups_;
    std::size_t n_added_ = 0;
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
        make_room(found.size());
        std::size_t n = 0;
        if (has_signs) {
            for (std::size_t k = 0; k < found.size(); ++n) {
                columns_[n] = found[k] >> 1;
                counts_[n] = 0;
                for (; k < found.size() && found[k] >> 1 == columns_[n]; ++k) counts_[n] += found[k] & 1 ? -1 : 1;
            }
        } else if (!found.empty()) {  // without branches, which would often be mispredicted
            std::uint32_t begin = 0;
            const std::size_t last = found.size() - 1;
            for (std::size_t k = 0; k <= last; ++k) {
                const bool ends = k == last || found[k] != found[k + 1];
                columns_[n] = found[k];
                counts_[n] = static_cast<double>(k + 1 - begin);
                n += ends;
                begin = ends ? static_cast<std::uint32_t>(k + 1) : begin;
            }
        }
        found.clear();
        append(rows, weighting, n);
    }

    /// Appends a row of counts and clears them.
    void finish(TermRows& rows, const Weighting& weighting, ColumnCounts& counts) {
        make_room(counts.n_added());
        std::size_t n = 0;
        counts.drain([&](std::size_t column, std::uint32_t count) {
            columns_[n] = static_cast<std::uint32_t>(column);
            counts_[n++] = count;
        });
        append(rows, weighting, n);
    }

private:
    void make_room(std::size_t n) {
        if (columns_.size() >= n) return;
        columns_.resize(2 * n);
        counts_.resize(2 * n);
    }

    void append(TermRows& rows, const Weighting& weighting, std::size_t n) {
        const std::span<double> row(counts_.data(), n);
        weighting.weigh({columns_.data(), n}, row);
        const std::size_t begin = rows.values.size();
        rows.values.resize(begin + n);
        weighting.finish(row, rows.values.data() + begin);
        rows.columns.insert(rows.columns.end(), columns_.begin(), columns_.begin() + std::ptrdiff_t(n));
        rows.lengths.push_back(static_cast<std::int64_t>(n));
    }

    std::vector<std::uint32_t> spare_, columns_;
    std::vector<double> counts_;
};

}  // namespace ramify
