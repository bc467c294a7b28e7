/// PIFA label vectors: the sum of the unit-norm feature rows of a label's positive examples, normalised.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "base/freed_memory.hpp"
#include "base/huge_pages.hpp"
#include "base/parallel.hpp"
#include "base/sparse_rows.hpp"

namespace ramify {

/// Rows of a sparse array, owned.
struct LabelVectors {
    std::vector<std::int64_t> start;
    std::unique_ptr<std::int32_t[]> column;  // not a std::vector, which would write zeros first
    std::unique_ptr<float[]> value;
};

/// One over the length of every row, and 0 for a row of zeros.
inline std::vector<float> inverse_norms(const CsrView& rows, int n_threads) {
    constexpr std::size_t chunk = 4096;
    const auto n_rows = static_cast<std::size_t>(rows.n_rows());
    std::vector<float> inverse(n_rows);
    parallel_for((n_rows + chunk - 1) / chunk, n_threads, [&](std::size_t task, int) {
        for (std::size_t row = task * chunk; row < std::min(n_rows, (task + 1) * chunk); ++row) {
            double square = 0;
            for (float v : rows.row(static_cast<std::int64_t>(row)).values) square += static_cast<double>(v) * v;
            inverse[row] = square > 0 ? static_cast<float>(1.0 / std::sqrt(square)) : 0.0f;
        }
    });
    return inverse;
}

/// Prefetches a row.
inline void prefetch_row([[maybe_unused]] const CsrView& rows, [[maybe_unused]] std::size_t row) {
#if defined(__GNUC__)
    for (std::int64_t z = rows.indptr[row]; z < rows.indptr[row + 1]; z += 16) {
        __builtin_prefetch(rows.indices.data() + z);
        __builtin_prefetch(rows.data.data() + z);
    }
#endif
}

/// Sums rows scaled to unit length into one dense array; keeps a list of the features it touched while that is cheaper
/// than a scan.
class RowSum {
public:
    explicit RowSum(std::size_t n_features) : sum_(n_features, 0.0f), is_touched_(n_features, 0) {}

    /// Announces the number of entries to come, repetitions included.
    void begin(std::int64_t n_entries) { keeps_list_ = n_entries < static_cast<std::int64_t>(sum_.size() / 4); }

    void add(const CsrView& rows, std::size_t row, float scale) {
        const auto [columns, values] = rows.row(static_cast<std::int64_t>(row));
        ++n_rows_;
        for (std::size_t z = 0; z < columns.size(); ++z) {
            const auto column = static_cast<std::size_t>(columns[z]);
            if (column >= sum_.size()) refuse_changed_rows();
            sum_[column] += scale * values[z];
        }
        if (keeps_list_) note(columns);
    }

    /// Appends the entries that are not small, at most `most` of them, as a vector of unit length, and resets.
    void take(float prune, std::size_t most, std::vector<std::int32_t>& column, std::vector<float>& value) {
        if (!keeps_list_) {
            touched_.resize(sum_.size());
            std::size_t n = 0;
            for (std::size_t feature = 0; feature < sum_.size(); ++feature) {  // no branch: it would be unpredictable
                touched_[n] = static_cast<std::int32_t>(feature);
                n += sum_[feature] != 0;
            }
            touched_.resize(n);
        }
        const std::size_t begin = column.size();
        value.resize(begin + touched_.size());
        for (std::size_t k = 0; k < touched_.size(); ++k) {
            value[begin + k] = sum_[touched_[k]];
            sum_[touched_[k]] = 0;
            is_touched_[touched_[k]] = 0;
        }
        const double norm = std::sqrt(square(value.data() + begin, touched_.size()));
        const auto least = static_cast<float>(prune * norm / std::sqrt(static_cast<double>(touched_.size())));
        column.resize(begin + touched_.size());
        std::size_t end = begin;
        for (std::size_t k = 0; k < touched_.size(); ++k) {
            const float sum = value[begin + k];
            value[end] = sum;
            column[end] = touched_[k];
            end += std::abs(sum) >= least && sum != 0;
        }
        if (end - begin > most) end = keep_largest(most, begin, end, column, value);
        column.resize(end);
        value.resize(end);
        const double kept = std::sqrt(square(value.data() + begin, end - begin));
        if (!(kept >
              1e-6 * static_cast<double>(n_rows_))) {  // unit rows that cancel each other: what is left is rounding
            column.resize(begin);
            value.resize(begin);
        }
        const auto scale = static_cast<float>(1.0 / kept);
        for (std::size_t k = begin; k < value.size(); ++k) value[k] *= scale;
        touched_.clear();
        n_rows_ = 0;
    }

private:
    void note(std::span<const std::int32_t> columns) {
        std::size_t size = touched_.size();
        touched_.resize(size + columns.size());
        for (std::int32_t column : columns) {
            if (static_cast<std::size_t>(column) >= is_touched_.size()) refuse_changed_rows();
            touched_[size] = column;
            size += is_touched_[column] == 0;
            is_touched_[column] = 1;
        }
        touched_.resize(size);
    }

    /// Moves the `most` largest entries to the front, in their order; of equal ones the first. Returns where they end.
    std::size_t keep_largest(std::size_t most, std::size_t begin, std::size_t end, std::vector<std::int32_t>& column,
                             std::vector<float>& value) {
        size_.clear();
        for (std::size_t k = begin; k < end; ++k) size_.push_back(std::abs(value[k]));
        const auto last = size_.begin() + static_cast<std::ptrdiff_t>(most) - 1;
        std::ranges::nth_element(size_, last, std::ranges::greater{});
        const float least = *last;
        auto n_equal = static_cast<std::size_t>(std::ranges::count(size_.begin(), last + 1, least));
        std::size_t to = begin;
        for (std::size_t k = begin; k < end; ++k) {
            const float size = std::abs(value[k]);
            if (size < least || (size == least && n_equal == 0)) continue;
            n_equal -= size == least;
            column[to] = column[k];
            value[to++] = value[k];
        }
        return to;
    }

    /// The sum of squares in eight lanes, which a compiler can keep in vector registers without changing the result.
    static double square(const float* value, std::size_t n) {
        float lanes[8] = {};
        std::size_t k = 0;
        for (; k + 8 <= n; k += 8)
            for (std::size_t lane = 0; lane < 8; ++lane) lanes[lane] += value[k + lane] * value[k + lane];
        double sum = 0;
        for (; k < n; ++k) sum += static_cast<double>(value[k]) * value[k];
        for (float lane : lanes) sum += lane;
        return sum;
    }

    std::vector<float> sum_, size_;
    std::vector<char> is_touched_;
    std::vector<std::int32_t> touched_;
    std::size_t n_rows_ = 0;
    bool keeps_list_ = true;
};

/// `examples[start_of[l] .. start_of[l + 1]]` are the positive rows of label l.
/// Entries smaller than `prune` times the vector's root mean square are dropped before the vector is normalised:
/// the long thin tail of a frequent label takes most of the memory and hardly changes the direction. Of the others the
/// `most` largest are kept.
inline LabelVectors label_vectors(const CsrView& rows, std::size_t n_features, std::span<const std::int64_t> start_of,
                                  std::span<const std::int32_t> examples, float prune, std::size_t most,
                                  int n_threads) {
    struct Block {
        std::vector<std::int32_t> column;
        std::vector<float> value;
    };
    const std::size_t n_labels = start_of.size() - 1;
    const auto inverse = inverse_norms(rows, n_threads);
    const auto work = [&](std::size_t label) {
        std::int64_t entries = 0;
        for (std::int64_t k = start_of[label]; k < start_of[label + 1]; ++k) entries += rows.length(examples[k]);
        return entries;
    };

    // Blocks of about equal work, so that a few heavy labels do not keep one thread busy alone.
    std::vector<std::size_t> first_label{0};
    std::int64_t since = 0;
    for (std::size_t label = 0; label < n_labels; ++label) {
        since += work(label);
        if (since >= 1 << 19) first_label.push_back(label + 1), since = 0;
    }
    if (first_label.back() != n_labels) first_label.push_back(n_labels);

    const std::size_t n_blocks = first_label.size() - 1;
    std::vector<Block> blocks(n_blocks);
    std::vector<std::unique_ptr<RowSum>> sums(std::max(n_threads, 1));
    LabelVectors result;
    result.start.assign(n_labels + 1, 0);
    parallel_for(n_blocks, n_threads, [&](std::size_t task, int worker) {
        if (!sums[worker]) sums[worker] = std::make_unique<RowSum>(n_features);
        Block& block = blocks[task];
        for (std::size_t label = first_label[task]; label < first_label[task + 1]; ++label) {
            const std::size_t before = block.column.size();
            sums[worker]->begin(work(label));
            for (std::int64_t k = start_of[label]; k < start_of[label + 1]; ++k) {
                // Rows are scattered in memory: prefetch the next one.
                if (k + 1 < start_of[label + 1]) prefetch_row(rows, examples[k + 1]);
                sums[worker]->add(rows, examples[k], inverse[examples[k]]);
            }
            sums[worker]->take(prune, most, block.column, block.value);
            result.start[label + 1] = static_cast<std::int64_t>(block.column.size() - before);
        }
        block.column.shrink_to_fit();  // it grew by doubling, and all blocks wait for the last
        block.value.shrink_to_fit();
    });
    sums.clear();

    for (std::size_t label = 0; label < n_labels; ++label) result.start[label + 1] += result.start[label];
    result.column = std::make_unique_for_overwrite<std::int32_t[]>(result.start[n_labels]);
    result.value = std::make_unique_for_overwrite<float[]>(result.start[n_labels]);
    ask_for_huge_pages(result.column.get(), result.start[n_labels] * sizeof(std::int32_t));
    ask_for_huge_pages(result.value.get(), result.start[n_labels] * sizeof(float));
    FreedMemory freed;
    parallel_for(n_blocks, n_threads, [&](std::size_t task, int) {
        const std::int64_t begin = result.start[first_label[task]];
        std::ranges::copy(blocks[task].column, result.column.get() + begin);
        std::ranges::copy(blocks[task].value, result.value.get() + begin);
        const std::size_t n_bytes = blocks[task].column.size() * (sizeof(std::int32_t) + sizeof(float));
        blocks[task] = {};  // so that never much more than one copy is in memory
        freed.add(n_bytes);
    });
    return result;
}

}  // namespace ramify
