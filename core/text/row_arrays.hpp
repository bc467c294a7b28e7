/// Rows of texts as the parts of a CSR array.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <iterator>
#include <memory>
#include <new>
#include <utility>
#include <vector>

#ifdef __linux__
#include <sys/mman.h>
#endif

#include "base/parallel.hpp"
#include "bindings/arrays.hpp"
#include "text/term_rows.hpp"

namespace ramify {

struct Free {
    void operator()(void* memory) const { std::free(memory); }
};
template <class T>
using FreedArray = std::unique_ptr<T[], Free>;

/// Memory whose content is not set. If it is much, in large pages where the system has them: a page of the usual size
/// takes as long to come into being as a thousand values to be copied.
template <class T>
FreedArray<T> allocate(std::size_t n) {
    constexpr std::size_t large_page = std::size_t{1} << 21;
    const std::size_t n_bytes = std::max<std::size_t>(n * sizeof(T), 1);
    const bool is_large = n_bytes >= 2 * large_page;
    void* memory = is_large ? std::aligned_alloc(large_page, (n_bytes + large_page - 1) / large_page * large_page)
                            : std::malloc(n_bytes);
    if (!memory) throw std::bad_alloc();
#ifdef __linux__
    if (is_large) madvise(memory, n_bytes, MADV_HUGEPAGE);
#endif
    return FreedArray<T>(static_cast<T*>(memory));
}

/// Pieces of rows that become one CSR array in the end: allocated once, and copied by several threads.
class RowArrays {
public:
    void add(TermRows&& rows) { parts_.push_back(std::move(rows)); }
    void add(std::vector<TermRows>&& parts) {
        parts_.insert(parts_.end(), std::make_move_iterator(parts.begin()), std::make_move_iterator(parts.end()));
    }

    /// Copies the pieces; needs no GIL.
    void join(int n_threads) {
        std::vector<std::size_t> first_row(parts_.size()), first_value(parts_.size());
        std::size_t n_rows = 0;
        for (std::size_t k = 0; k < parts_.size(); ++k) {
            first_row[k] = std::exchange(n_rows, n_rows + parts_[k].lengths.size());
            first_value[k] = std::exchange(n_values_, n_values_ + parts_[k].columns.size());
        }
        indptr_.resize(n_rows + 1);
        indices_ = allocate<std::int32_t>(n_values_);
        values_ = allocate<float>(n_values_);
        parallel_for(parts_.size(), n_values_ < min_values ? 1 : n_threads, [&](std::size_t k, int) {
            auto end = static_cast<std::int64_t>(first_value[k]);
            for (std::size_t row = 0; row < parts_[k].lengths.size(); ++row)
                indptr_[first_row[k] + row + 1] = end += parts_[k].lengths[row];
            std::ranges::copy(parts_[k].columns, indices_.get() + first_value[k]);
            std::ranges::copy(parts_[k].values, values_.get() + first_value[k]);
            parts_[k] = TermRows();  // otherwise the peak is twice the result
        });
    }

    CsrArrays to_tuple() && {
        return nb::make_tuple(to_numpy(std::move(indptr_)), hand_over(indices_), hand_over(values_));
    }

private:
    static constexpr std::size_t min_values = 100'000;  ///< for several threads

    template <class T>
    Array<T> hand_over(FreedArray<T>& values) {
        T* data = values.get();
        nb::capsule owner(values.release(), [](void* p) noexcept { std::free(p); });
        return Array<T>(data, {n_values_}, owner);
    }

    std::vector<TermRows> parts_;
    std::vector<std::int64_t> indptr_;
    FreedArray<std::int32_t> indices_;
    FreedArray<float> values_;
    std::size_t n_values_ = 0;
};

}  // namespace ramify
