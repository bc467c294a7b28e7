/// Similarities to all rows at once, in 16 bits, with a bound of their error: who may be near, before rows are
/// compared.
///
/// A list holds the rows with a positive, or a negative, value of a feature; values are bytes times a step. Long lists
/// are columns with a byte for every row, so that many rows are added at once; short ones name their rows. Rows come in
/// blocks whose sums stay in the cache, each searched for several queries in turn.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <span>
#include <vector>

#include "base/sparse_rows.hpp"
#include "kernels/kernels.hpp"

namespace ramify {

/// One query, while the blocks are searched for it.
struct CoarseQuery {
    struct Candidate {
        std::uint32_t row;
        std::int16_t sum;  ///< its similarity in units of 1 / scale
    };
    struct Postings {
        std::int64_t next, end;
        std::int16_t factor;
    };
    std::vector<Postings> postings;
    std::vector<const std::uint8_t*> column;
    std::vector<std::int16_t> factor;  ///< per column
    double scale = 0;
    int error = 0;  ///< no sum differs by more from the similarity times scale
    std::int16_t least = 1;
    std::vector<Candidate> candidates;

    /// Keeps the candidates that may be among the n nearest, and raises `least` accordingly.
    void narrow(std::size_t n) {
        if (candidates.size() < n) return;
        const auto nth = candidates.begin() + static_cast<std::ptrdiff_t>(n - 1);
        std::ranges::nth_element(candidates, nth, std::greater{}, &Candidate::sum);
        raise(nth->sum);
        std::erase_if(candidates, [&](const Candidate& c) { return c.sum < least; });
    }

    /// n rows have at least this sum.
    void raise(int sum) { least = static_cast<std::int16_t>(std::max<int>(least, sum - 2 * error)); }
};

/// Sums of one block; of one thread.
struct CoarseScratch {
    alignas(64) std::int16_t sums[8192];
    std::int16_t largest[8192 / nearest_group];
    std::uint32_t position[8192];
    std::vector<const std::uint8_t*> column;  ///< of the query, where the block begins
};

class CoarseIndex {
public:
    static constexpr std::int64_t block_rows = 8192;

    /// Rows as CSR; features rise within a row.
    void build(std::span<const std::int64_t> row_begin, std::span<const std::int32_t> feature,
               std::span<const float> value) {
        n_rows_ = std::ssize(row_begin) - 1;
        // As long as the rows need it, not as the model says: a file of a few bytes may give any number.
        const auto last = std::ranges::max_element(feature);
        const std::size_t n_features = last == feature.end() ? 0 : static_cast<std::size_t>(*last) + 1;
        std::vector<Range> of_sign(2 * n_features);
        for (std::size_t e = 0; e < feature.size(); ++e) {
            Range& range = of_sign[sign_of(feature[e], value[e])];
            ++range.size;
            range.largest = std::max(range.largest, std::abs(value[e]));
        }
        make_lists(of_sign);
        for (std::int64_t i = 0; i < n_rows_; ++i)
            for (std::int64_t e = row_begin[i]; e < row_begin[i + 1]; ++e) {
                if (value[e] == 0.0f) continue;
                Range& range = of_sign[sign_of(feature[e], value[e])];
                List& list = lists_[range.list];
                const float magnitude = std::abs(value[e]);
                const auto byte =
                    static_cast<std::uint8_t>(std::clamp(std::round(magnitude / list.step), 1.0f, 255.0f));
                list.error = std::max(list.error, std::abs(magnitude - static_cast<float>(byte) * list.step));
                if (list.column >= 0) {
                    columns_[static_cast<std::size_t>(list.column * stride_ + i)] = byte;
                    continue;
                }
                row_[static_cast<std::size_t>(list.begin + range.n_placed)] = static_cast<std::uint32_t>(i);
                value_[static_cast<std::size_t>(list.begin + range.n_placed++)] = byte;
            }
    }

    /// Those that a row has, and any before them.
    std::size_t n_features() const { return list_begin_.size() - 1; }
    std::int64_t n_blocks() const { return (n_rows_ + block_rows - 1) / block_rows; }

    /// False if there are too many features to sum them up in 16 bits.
    bool begin(std::span<const Entry> x, CoarseQuery& query) const {
        query.postings.clear(), query.column.clear(), query.factor.clear(), query.candidates.clear();
        query.least = 1;
        double rounding = 0, n_terms = 0;
        for_each_list(x, [&](const Entry& e, const List& list) {
            rounding += std::abs(static_cast<double>(e.value)) * list.error;
            ++n_terms;
        });
        // Rows and queries have unit length: no sum of some products exceeds one. Each term is rounded twice.
        constexpr double most = std::numeric_limits<std::int16_t>::max();
        query.scale = std::min(30000.0, (most - n_terms - 2) / (1.001 + rounding));
        if (!(query.scale >= 1000)) return false;  // NaN too
        query.error = static_cast<int>(std::ceil(rounding * query.scale + n_terms + 1));
        for_each_list(x, [&](const Entry& e, const List& list) {
            const double exact = 256.0 * query.scale * e.value * list.step * (list.is_negative ? -1 : 1);
            const auto factor = static_cast<std::int16_t>(std::lround(exact));
            if (list.column < 0) {
                query.postings.push_back({list.begin, list.begin + list.size, factor});
            } else {
                query.column.push_back(columns_.data() + list.column * stride_);
                query.factor.push_back(factor);
            }
        });
        return true;
    }

    /// Adds the block's rows that may be among the n nearest to the candidates. Blocks come in order.
    void search(std::int64_t block, std::size_t n, CoarseQuery& query, CoarseScratch& s) const {
        const std::int64_t first = block * block_rows, last = std::min(n_rows_, first + block_rows);
        const int size = static_cast<int>((last - first + nearest_group - 1) / nearest_group * nearest_group);
        std::fill_n(s.sums, size, std::int16_t{0});
        for (CoarseQuery::Postings& p : query.postings) {
            std::int64_t stop = p.next;
            if (p.next < p.end && row_[p.end - 1] < last)
                stop = p.end;
            else
                while (stop < p.end && row_[stop] < last) ++stop;
            kernels().nearest.add_postings(row_.data() + p.next, value_.data() + p.next, stop - p.next,
                                           static_cast<std::uint32_t>(first), p.factor, s.sums);
            p.next = stop;
        }
        s.column.clear();
        for (const std::uint8_t* column : query.column) s.column.push_back(column + first);
        kernels().nearest.add_columns(s.column.data(), query.factor.data(), static_cast<int>(s.column.size()), size,
                                      s.sums);
        const auto n_groups = static_cast<std::size_t>(size / nearest_group);
        if (query.candidates.empty() && n <= n_groups) {  // a first bound, before candidates are listed
            kernels().nearest.largest(s.sums, size, s.largest);
            std::ranges::nth_element(s.largest, s.largest + n - 1, s.largest + n_groups, std::greater{});
            query.raise(s.largest[n - 1]);
        }
        const int n_found = kernels().nearest.reaching(s.sums, size, query.least, s.position);
        for (int k = 0; k < n_found; ++k)
            query.candidates.push_back({static_cast<std::uint32_t>(first) + s.position[k], s.sums[s.position[k]]});
        if (query.candidates.size() > 2 * n + 256) query.narrow(n);
    }

    /// All rows that share a feature with x, in order.
    void sharing(std::span<const Entry> x, std::vector<std::uint32_t>& rows) const {
        rows.clear();
        for_each_list(x, [&](const Entry&, const List& list) {
            if (list.column < 0) {
                rows.insert(rows.end(), row_.begin() + list.begin, row_.begin() + list.begin + list.size);
                return;
            }
            const std::uint8_t* column = columns_.data() + list.column * stride_;
            for (std::int64_t i = 0; i < n_rows_; ++i)
                if (column[i] != 0) rows.push_back(static_cast<std::uint32_t>(i));
        });
        std::ranges::sort(rows);
        const auto repeated = std::ranges::unique(rows);
        rows.erase(repeated.begin(), repeated.end());
    }

private:
    struct List {
        std::int64_t begin;  ///< of its postings
        std::int64_t size;
        std::int64_t column;  ///< or -1
        float step;
        float error;  ///< the most that a value differs from its byte times step
        bool is_negative;
    };
    /// While the index is built: the values of one sign of a feature.
    struct Range {
        std::int64_t size = 0, n_placed = 0;
        std::size_t list = 0;
        float largest = 0;
    };
    /// A list of this share of the rows is stored as a column: adding it is faster then, for at most 16 bytes a value.
    static constexpr std::int64_t column_share = 16;

    static std::size_t sign_of(std::int32_t feature, float value) {
        return 2 * static_cast<std::size_t>(feature) + (value < 0 ? 1 : 0);
    }

    void make_lists(std::vector<Range>& of_sign) {
        stride_ = (n_rows_ + nearest_group - 1) / nearest_group * nearest_group;
        lists_.clear();
        list_begin_.assign(of_sign.size() / 2 + 1, 0);
        std::int64_t n_columns = 0, n_postings = 0;
        for (std::size_t k = 0; k < of_sign.size(); ++k) {
            Range& range = of_sign[k];
            if (range.largest > 0) {
                range.list = lists_.size();
                const bool is_column = range.size * column_share >= n_rows_;
                const float step = std::max(range.largest / 255.0f, std::numeric_limits<float>::min());
                lists_.push_back({n_postings, range.size, is_column ? n_columns++ : -1, step, 0.0f, k % 2 == 1});
                if (!is_column) n_postings += range.size;
            }
            list_begin_[k / 2 + 1] = static_cast<std::int32_t>(lists_.size());
        }
        columns_.assign(static_cast<std::size_t>(n_columns * stride_), 0);
        row_.resize(static_cast<std::size_t>(n_postings));
        value_.resize(static_cast<std::size_t>(n_postings));
    }

    template <class Work>
    void for_each_list(std::span<const Entry> x, Work&& work) const {
        for (const Entry& e : x)
            for (std::int32_t l = list_begin_[e.feature]; l < list_begin_[e.feature + 1]; ++l) work(e, lists_[l]);
    }

    std::int64_t n_rows_ = 0, stride_ = 0;
    std::vector<std::int32_t> list_begin_;  // per feature: none, one or two lists
    std::vector<List> lists_;
    std::vector<std::uint8_t> columns_;
    std::vector<std::uint32_t> row_;  // of postings, with their values
    std::vector<std::uint8_t> value_;
};

}  // namespace ramify
