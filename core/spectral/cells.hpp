/// Sparse matrices of the eigenvalue problem: rows of cells, their transpose, and the product with a few directions.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "base/parallel.hpp"

namespace ramify {

struct SplitCell {
    std::uint32_t at;  ///< column in a row, row in a column
    float value;
};

/// Rows of cells; of its transpose, too, so that every entry of a product is summed by one thread in a fixed order.
/// There may be unused room between two rows: threads write rows side by side before their lengths are known.
struct SplitCells {
    std::vector<std::int64_t> begin, end;
    std::unique_ptr<SplitCell[]> cells;  ///< not a std::vector, which would write zeros first

    std::size_t size() const { return begin.size(); }

    void reserve(std::size_t n_rows, std::int64_t n_cells) {
        begin.reserve(n_rows);
        end.reserve(n_rows);
        cells = std::make_unique_for_overwrite<SplitCell[]>(static_cast<std::size_t>(n_cells));
    }

    /// The same cells by column. Blocks of rows are counted and written side by side; their number changes no bit.
    SplitCells transposed(std::size_t n_columns, int n_threads) const {
        const auto n_blocks = static_cast<std::size_t>(usable_threads(n_threads, (size() + 4095) / 4096));
        auto of_block = [&](std::size_t block, auto&& work) {
            for (std::size_t i = size() * block / n_blocks; i < size() * (block + 1) / n_blocks; ++i)
                for (std::int64_t k = begin[i]; k < end[i]; ++k) work(i, cells[k]);
        };
        std::vector<std::vector<std::int64_t>> next(n_blocks);
        parallel_for(n_blocks, n_threads, [&](std::size_t block, int) {
            next[block].assign(n_columns, 0);
            of_block(block, [&](std::size_t, const SplitCell& cell) { ++next[block][cell.at]; });
        });
        SplitCells result;
        result.begin.resize(n_columns);
        result.end.resize(n_columns);
        std::int64_t total = 0;
        for (std::size_t j = 0; j < n_columns; ++j) {
            result.begin[j] = total;
            for (auto& counted : next) total += std::exchange(counted[j], total);
            result.end[j] = total;
        }
        result.cells = std::make_unique_for_overwrite<SplitCell[]>(static_cast<std::size_t>(total));
        parallel_for(n_blocks, n_threads, [&](std::size_t block, int) {
            of_block(block, [&](std::size_t i, const SplitCell& cell) {
                result.cells[next[block][cell.at]++] = {static_cast<std::uint32_t>(i), cell.value};
            });
        });
        return result;
    }
};

/// out = A * in, B columns side by side.
template <int B>
void multiply(const SplitCells& A, const std::vector<float>& in, std::vector<float>& out, int n_threads) {
    constexpr std::int64_t ahead = 24;  // cells that are prefetched
    out.resize(A.size() * B);
    parallel_chunks(static_cast<std::int64_t>(A.size()), 1024, n_threads,
                    [&](std::int64_t first, std::int64_t last, int) {
                        for (std::int64_t i = first; i < last; ++i) {
                            float sum[B] = {};
                            const SplitCell *cell = A.cells.get() + A.begin[i], *stop = A.cells.get() + A.end[i];
                            const auto add = [&] {
                                const float* from = in.data() + static_cast<std::size_t>(cell->at) * B;
                                for (int j = 0; j < B; ++j) sum[j] += cell->value * from[j];
                            };
                            for (; stop - cell > ahead; ++cell) {
                                __builtin_prefetch(in.data() + static_cast<std::size_t>(cell[ahead].at) * B);
                                add();
                            }
                            for (; cell < stop; ++cell) add();
                            for (int j = 0; j < B; ++j) out[i * B + j] = sum[j];
                        }
                    });
}

}  // namespace ramify
