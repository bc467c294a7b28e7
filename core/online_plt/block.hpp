/// A sibling block that learns: a map from feature to one row that holds a weight for each child, growing both ways.
///
/// Rows are found by an open-addressing index and lie in order of arrival. For AdaGrad a row is `stride` weights
/// followed by `stride` sums of squared gradients. One column may be theta, the auxiliary classifier of "Online
/// probabilistic label trees": a phantom child that is always positive, from which the columns of new children are
/// made.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <new>
#include <span>
#include <stdexcept>
#include <vector>

#include "base/hash_map.hpp"
#include "kernels/kernels.hpp"

namespace ramify {

/// What stands in OnlineBlock::child for columns that are no child.
inline constexpr std::int32_t theta_column = -1;
inline constexpr std::int32_t vacant_column = -2;

/// Columns of a row with its padding: few, as in trees of arity two, take half a vector.
inline constexpr int least_stride = 4;
inline int round_to_lanes(int n) { return (n + 7) / 8 * 8; }
inline int padded_columns(int n) { return n <= least_stride ? least_stride : round_to_lanes(n); }

class OnlineBlock {
public:
    std::vector<std::int32_t> child;  ///< node of each column, or theta_column, or vacant_column
    float scale = 1.0f;               ///< weights are this times what is stored (FOBOS)
    std::uint64_t n_updates = 0;      ///< examples applied

    explicit OnlineBlock(bool has_sums) : has_sums_(has_sums) {}

    int n_columns() const { return static_cast<int>(child.size()); }
    /// Columns that learn: those of children, and theta.
    int n_classifiers() const { return n_columns() - static_cast<int>(std::ranges::count(child, vacant_column)); }
    int stride() const { return stride_; }
    std::uint32_t n_rows() const { return n_rows_; }
    bool has_sums() const { return has_sums_; }
    std::size_t row_size() const { return static_cast<std::size_t>(stride_) * (has_sums_ ? 2 : 1); }
    float* rows() { return rows_.get(); }
    const float* rows() const { return rows_.get(); }
    float* row(std::uint32_t r) { return rows_.get() + r * row_size(); }
    const float* row(std::uint32_t r) const { return rows_.get() + r * row_size(); }

    /// Memory of this block in bytes, without that of its list of children.
    std::size_t bytes() const {
        return sizeof *this + static_cast<std::size_t>(row_capacity_) * row_size() * sizeof(float) + index_.bytes();
    }

    /// What a row takes with its place in the index and the room to grow that it may bring, half as much again.
    double bytes_of_row() const {
        return 1.5 * static_cast<double>(static_cast<std::size_t>(padded_columns(n_classifiers())) *
                                         (has_sums_ ? 2 : 1) * sizeof(float)) +
               16;
    }

    int theta() const {
        const auto at = std::ranges::find(child, theta_column);
        return at == child.end() ? -1 : static_cast<int>(at - child.begin());
    }

    // --- rows -------------------------------------------------------------------------------------------------------

    void prefetch_slot(std::uint32_t feature) const { index_.prefetch(feature); }

    void prefetch_row(std::uint32_t r) const {
        const float* w = row(r);
        __builtin_prefetch(w, 1);
        if (stride_ > 8) __builtin_prefetch(w + 16, 1);
        if (has_sums_ && stride_ > 8) {
            __builtin_prefetch(w + stride_, 1);
            __builtin_prefetch(w + stride_ + 16, 1);
        }
    }

    static constexpr std::uint32_t none = 0xffffffffu;

    /// The row of a feature, or none.
    std::uint32_t find(std::uint32_t feature) const {
        const std::uint32_t* row = index_.find(feature);
        return row ? *row : none;
    }

    /// Makes room for this many more rows, so that adding them moves nothing.
    void reserve_rows(std::size_t n_more) {
        const std::size_t needed = n_rows_ + n_more;
        if (needed >= none / 2) throw std::length_error("an online block cannot hold more than two billion features");
        if (needed > row_capacity_)
            resize(static_cast<std::uint32_t>(std::max<std::size_t>(needed, row_capacity_ + row_capacity_ / 2)),
                   stride_);
        index_.reserve_more(n_more);
    }

    /// The row of a feature, made of zeros if it is new; reserve_rows comes first.
    std::uint32_t find_or_add(std::uint32_t feature) {
        const auto [at, is_new] = index_.find_or_add(feature);
        if (is_new) {
            at = n_rows_++;
            std::fill_n(row(at), row_size(), 0.0f);
        }
        return at;
    }

    /// The feature of every row.
    std::vector<std::uint32_t> features() const {
        std::vector<std::uint32_t> of_row(n_rows_);
        index_.for_each([&](std::uint32_t feature, std::uint32_t row) { of_row[row] = feature; });
        return of_row;
    }

    /// Keeps the rows for which keep(row number) holds; returns how many were dropped.
    template <class Keep>
    std::uint32_t retain(Keep keep) {
        const std::vector<std::uint32_t> of_row = features();
        std::uint32_t kept = 0;
        std::vector<std::uint32_t> kept_feature;
        for (std::uint32_t r = 0; r < n_rows_; ++r) {
            if (!keep(r)) continue;
            if (kept != r) std::copy_n(row(r), row_size(), row(kept));
            kept_feature.push_back(of_row[r]);
            ++kept;
        }
        const std::uint32_t dropped = n_rows_ - kept;
        if (dropped == 0) return 0;
        n_rows_ = kept;
        resize(kept, stride_);
        index_ = {};
        index_.reserve_more(kept);
        for (std::uint32_t r = 0; r < kept; ++r) index_.add(kept_feature[r], r);
        return dropped;
    }

    /// Gives back room that was made for rows and columns that did not come.
    void trim() {
        const int stride = padded_columns(n_columns());
        if (row_capacity_ > n_rows_ + n_rows_ / 2 || stride_ > stride) resize(n_rows_, stride);
    }

    // --- columns ----------------------------------------------------------------------------------------------------

    /// Appends a column of zeros.
    int add_column(std::int32_t node) {
        if (n_columns() ==
            stride_) {  // a quarter more, so that a very wide block is not copied for every eight children
            resize(row_capacity_, round_to_lanes(stride_ + std::max(1, stride_ / 4)));
        }
        child.push_back(node);
        return n_columns() - 1;
    }

    /// Appends a column that is `sign` times another one. AdaGrad sums are copied too: it continues where the other
    /// stands.
    int add_copy(int from, float sign, std::int32_t node) {
        const int to = add_column(node);
        for (std::uint32_t r = 0; r < n_rows_; ++r) {
            float* w = row(r);
            w[to] = sign * w[from];
            if (has_sums_) w[stride_ + to] = w[stride_ + from];
        }
        return to;
    }

    /// A block over the same features whose only column is a copy of one of ours.
    OnlineBlock with_column(int from, std::int32_t node) const {
        OnlineBlock other(has_sums_);
        other.scale = scale;
        other.n_updates = n_updates;
        other.index_ = index_;
        other.resize(n_rows_, least_stride);
        other.n_rows_ = n_rows_;
        other.child.push_back(node);
        for (std::uint32_t r = 0; r < n_rows_; ++r) {
            float* w = other.row(r);
            std::fill_n(w, other.row_size(), 0.0f);
            w[0] = row(r)[from];
            if (has_sums_) w[other.stride_] = row(r)[stride_ + from];
        }
        return other;
    }

    /// Takes theta away where no child will be made of it any more. Returns the node whose column moved into its place,
    /// or -1.
    std::int32_t drop_theta() {
        const int at = theta();
        if (at < 0) return -1;
        const int last = n_columns() - 1;
        if (last > 0 && padded_columns(last) == padded_columns(last + 1)) {  // moving columns would not save memory
            child[at] = vacant_column;
            return -1;
        }
        const std::int32_t moved = at == last ? -1 : child[last];
        for (std::uint32_t r = 0; r < n_rows_; ++r) {
            float* w = row(r);
            w[at] = w[last];
            w[last] = 0.0f;
            if (has_sums_) {
                w[stride_ + at] = w[stride_ + last];
                w[stride_ + last] = 0.0f;
            }
        }
        child[at] = child[last];
        child.pop_back();
        if (stride_ > padded_columns(last)) resize(row_capacity_, padded_columns(last));
        return moved;
    }

    /// Multiplies all weights into the stored numbers, so that scale is one again.
    void absorb_scale() {
        for (std::uint32_t r = 0; r < n_rows_; ++r) {
            float* w = row(r);
            for (int c = 0; c < stride_; ++c) w[c] *= scale;
        }
        scale = 1.0f;
    }

private:
    struct Free {
        void operator()(float* p) const { std::free(p); }
    };

    /// Moves the rows to memory of another size; new columns are zero. Memory beyond the last row is not touched.
    void resize(std::uint32_t capacity, int stride) {
        const std::size_t width = static_cast<std::size_t>(stride) * (has_sums_ ? 2 : 1);
        const std::size_t bytes = std::max<std::size_t>(64, (capacity * width * sizeof(float) + 63) / 64 * 64);
        std::unique_ptr<float, Free> moved(static_cast<float*>(std::aligned_alloc(64, bytes)));
        if (!moved) throw std::bad_alloc();
        const int kept = std::min(stride, stride_);
        for (std::uint32_t r = 0; r < n_rows_; ++r) {
            float* to = moved.get() + r * width;
            const float* from = row(r);
            std::fill_n(to, width, 0.0f);
            std::copy_n(from, kept, to);
            if (has_sums_) std::copy_n(from + stride_, kept, to + stride);
        }
        rows_ = std::move(moved);
        row_capacity_ = capacity;
        stride_ = stride;
    }

    bool has_sums_;
    int stride_ = least_stride;
    std::uint32_t n_rows_ = 0, row_capacity_ = 0;
    std::unique_ptr<float, Free> rows_;
    HashMap<std::uint32_t, 75> index_;  ///< from feature to row
};

}  // namespace ramify
