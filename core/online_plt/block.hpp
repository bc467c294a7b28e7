/// A sibling block that learns: a map from feature to one row that holds a weight for each child, growing both ways.
///
/// Rows are found by an open-addressing index. For AdaGrad a row is `stride` weights followed by `stride` sums of
/// squared gradients; rows of features that came a few times only are kept as their steps instead (replayed_rows.hpp),
/// with the same result. One column may be theta, the auxiliary classifier of "Online probabilistic label trees": a
/// phantom child that is always positive, from which the columns of new children are made.
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
#include "online_plt/replayed_rows.hpp"

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

    explicit OnlineBlock(const StepRule& rule) : rule_(rule) {}

    int n_columns() const { return static_cast<int>(child.size()); }
    /// Columns that learn: those of children, and theta.
    int n_classifiers() const { return n_columns() - static_cast<int>(std::ranges::count(child, vacant_column)); }
    int stride() const { return stride_; }
    bool has_sums() const { return rule_.has_sums; }
    std::size_t row_size() const { return static_cast<std::size_t>(stride_) * (has_sums() ? 2 : 1); }
    const ReplayedRows& replayed() const { return replayed_; }
    float* row(std::uint32_t r) { return rows_.get() + r * row_size(); }
    const float* row(std::uint32_t r) const { return rows_.get() + r * row_size(); }

    /// Memory of this block in bytes, without that of its list of children.
    std::size_t bytes() const {
        return sizeof *this + static_cast<std::size_t>(row_capacity_) * row_size() * sizeof(float) + index_.bytes() +
               replayed_.bytes();
    }

    int theta() const {
        const auto at = std::ranges::find(child, theta_column);
        return at == child.end() ? -1 : static_cast<int>(at - child.begin());
    }

    // --- rows -------------------------------------------------------------------------------------------------------

    /// Where a feature's row is: its number and, in the upper bits, the number of steps if it is replayed.
    using Place = std::uint32_t;
    static constexpr Place none = 0xffffffffu;
    static constexpr int number_bits = 29;
    static int n_steps(Place place) { return static_cast<int>(place >> number_bits); }
    static std::uint32_t number(Place place) { return place & ((1u << number_bits) - 1); }
    static bool is_stored(Place place) { return n_steps(place) == 0; }

    /// Steps after which a row is stored: fewer where rows are short, as in trees of arity two.
    int most_steps() const { return n_columns() <= 8 ? 2 : 4; }
    bool is_full_grown(Place place) const { return place != none && n_steps(place) >= most_steps(); }

    std::uint32_t n_stored_rows() const { return n_rows_; }
    std::size_t n_all_rows() const { return index_.size(); }

    void prefetch_slot(std::uint32_t feature) const { index_.prefetch(feature); }

    void prefetch_row(Place place) const {
        if (!is_stored(place)) return replayed_.prefetch_steps(n_steps(place), number(place));
        const float* w = row(place);
        __builtin_prefetch(w, 1);
        if (stride_ > 8) __builtin_prefetch(w + 16, 1);
        if (has_sums() && stride_ > 8) {
            __builtin_prefetch(w + stride_, 1);
            __builtin_prefetch(w + stride_ + 16, 1);
        }
    }
    void prefetch_gradients(Place place) const { replayed_.prefetch_gradients(n_steps(place), number(place), stride_); }

    /// The place of a feature's row, or none.
    Place find(std::uint32_t feature) const {
        const Place* place = index_.find(feature);
        return place ? *place : none;
    }

    /// Weights, and sums behind them, of a replayed row into `out`, which has room for row_size() floats.
    const float* replay(Place place, float* out) const {
        replayed_.replay(n_steps(place), number(place), rule_, stride_, padded_columns(n_columns()), out);
        return out;
    }
    /// The weights of a row, in memory or replayed into `scratch`.
    const float* weights(Place place, std::vector<float>& scratch) const {
        if (is_stored(place)) return row(place);
        scratch.assign(row_size(), 0.0f);
        return replay(place, scratch.data());
    }

    /// Makes room for this many more stored rows, so that adding them moves nothing.
    void reserve_rows(std::size_t n_more) {
        const std::size_t needed = n_rows_ + n_more;
        if (needed > ReplayedRows::most_rows)
            throw std::length_error("an online block cannot hold more than 500 million features");
        if (needed > row_capacity_)
            resize(static_cast<std::uint32_t>(std::max<std::size_t>(needed, row_capacity_ + row_capacity_ / 2)),
                   stride_);
    }
    void reserve_features(std::size_t n_more) { index_.reserve_more(n_more); }

    /// A new feature's stored row of zeros, or none if it has a row; reserve_rows and reserve_features come first.
    Place add_row(std::uint32_t feature) {
        const auto [place, is_new] = index_.find_or_add(feature);
        if (!is_new) return none;
        place = n_rows_++;
        std::fill_n(row(place), row_size(), 0.0f);
        return place;
    }

    /// Stores a replayed row; reserve_rows comes first.
    Place store(std::uint32_t feature) {
        Place& place = *index_.find(feature);
        if (is_stored(place)) return place;
        std::fill_n(row(n_rows_), row_size(), 0.0f);
        replay(place, row(n_rows_));
        replayed_.drop(n_steps(place), number(place));
        return place = n_rows_++;
    }

    /// The gradient of an example, for the steps that come next.
    std::uint32_t add_gradient(std::span<const float> gradient) { return replayed_.add_gradient(gradient, stride_); }

    /// A step of a feature that has no row, or a replayed one; reserve_features comes first. None, or its row where it
    /// is stored now: the caller has to take the step.
    Place add_step(std::uint32_t feature, ReplayedStep step) {
        const auto [place, is_new] = index_.find_or_add(feature);
        if (!is_new && is_stored(place)) return place;
        const int n = is_new ? 0 : n_steps(place);
        if (n == ReplayedRows::most_steps) {
            reserve_rows(1);
            return store(feature);
        }
        place = replayed_.append(n, is_new ? 0 : number(place), step) | static_cast<Place>(n + 1) << number_bits;
        return none;
    }

    /// The feature of every stored row.
    std::vector<std::uint32_t> stored_features() const {
        std::vector<std::uint32_t> of_row(n_rows_);
        index_.for_each([&](std::uint32_t feature, Place place) {
            if (is_stored(place)) of_row[place] = feature;
        });
        return of_row;
    }

    struct FeaturePlace {
        std::uint32_t feature;
        Place place;
    };
    /// All rows, or the replayed ones, by feature: an order that does not depend on how the memory came about.
    std::vector<FeaturePlace> sorted_rows(bool only_replayed = false) const {
        std::vector<FeaturePlace> rows;
        index_.for_each([&](std::uint32_t feature, Place place) {
            if (!only_replayed || !is_stored(place)) rows.push_back({feature, place});
        });
        std::ranges::sort(rows, {}, &FeaturePlace::feature);
        return rows;
    }

    // --- what the memory budget counts: what rows may come to, not what their memory happens to be -----------------

    /// What a row takes with its place in the index and the room to grow that it may bring, half as much again.
    double bytes_of_row(Place place) const {
        const int n_columns = padded_columns(n_classifiers());
        if (is_stored(place)) return 1.5 * static_cast<double>(n_columns * (has_sums() ? 2 : 1) * sizeof(float)) + 16;
        double bytes = ReplayedRows::bytes_of_steps(n_steps(place)) + 16;
        for (const ReplayedStep& step : replayed_.steps(n_steps(place), number(place)))
            bytes += ReplayedRows::bytes_of_gradient(n_columns) / replayed_.n_references(step.gradient);
        return bytes;
    }

    /// Stored rows in order of arrival, then the others by feature.
    std::vector<FeaturePlace> rows_in_order() const {
        std::vector<FeaturePlace> rows;
        const std::vector<std::uint32_t> stored = stored_features();
        for (std::uint32_t r = 0; r < n_rows_; ++r) rows.push_back({stored[r], r});
        const std::vector<FeaturePlace> others = sorted_rows(true);
        rows.insert(rows.end(), others.begin(), others.end());
        return rows;
    }

    /// Keeps some of rows_in_order().
    void retain(const std::vector<FeaturePlace>& rows, const std::vector<bool>& is_kept) {
        std::uint32_t kept = 0;
        std::vector<FeaturePlace> moved;
        for (std::size_t k = 0; k < rows.size(); ++k) {
            const Place place = rows[k].place;
            if (!is_kept[k]) continue;
            if (is_stored(place)) {
                if (kept != place) std::copy_n(row(place), row_size(), row(kept));
                moved.push_back({rows[k].feature, kept++});
            } else {
                moved.push_back(rows[k]);
            }
        }
        n_rows_ = kept;
        resize(kept, stride_);
        rebuild(moved);
    }

    /// Gives back room that was made for rows and columns that did not come.
    void trim() {
        const int stride = padded_columns(n_columns());
        if (row_capacity_ > n_rows_ + n_rows_ / 2 || stride_ > stride) resize(n_rows_, stride);
        if (replayed_.is_sparse()) rebuild(rows_in_order());
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
            if (has_sums()) w[stride_ + to] = w[stride_ + from];
        }
        replayed_.for_each_gradient(stride_, [&](float* g) { g[to] = sign * g[from]; });
        return to;
    }

    /// A block over the same features whose only column is a copy of one of ours.
    OnlineBlock with_column(int from, std::int32_t node) const {
        OnlineBlock other(rule_);
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
            if (has_sums()) w[other.stride_] = row(r)[stride_ + from];
        }
        other.replayed_ = replayed_.with_column(from, stride_, other.stride_);
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
            if (has_sums()) {
                w[stride_ + at] = w[stride_ + last];
                w[stride_ + last] = 0.0f;
            }
        }
        replayed_.for_each_gradient(stride_, [&](float* g) {
            g[at] = g[last];
            g[last] = 0.0f;
        });
        child[at] = child[last];
        child.pop_back();
        if (stride_ > padded_columns(last)) resize(row_capacity_, padded_columns(last));
        return moved;
    }

    /// Multiplies all weights into the stored numbers, so that scale is one again.
    void absorb_scale() {
        const std::vector<FeaturePlace> replayed = sorted_rows(true);
        reserve_rows(replayed.size());
        for (const FeaturePlace& r : replayed) store(r.feature);
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

    /// A new index and compact replayed rows for these.
    void rebuild(const std::vector<FeaturePlace>& rows) {
        ReplayedRows compact;
        std::vector<std::uint32_t> new_number(replayed_.n_gradient_numbers(), none);
        HashMap<Place, 75> index;
        index.reserve_more(rows.size());
        for (const auto& [feature, place] : rows) {
            Place to = is_stored(place) ? place : 0;
            int n = 0;
            for (ReplayedStep step :
                 is_stored(place) ? std::span<const ReplayedStep>{} : replayed_.steps(n_steps(place), number(place))) {
                std::uint32_t& moved = new_number[step.gradient];
                if (moved == none) {
                    const float* g = replayed_.gradient(step.gradient, stride_);
                    moved = compact.add_gradient({g, static_cast<std::size_t>(stride_)}, stride_);
                }
                step.gradient = moved;
                to = compact.append(n, to, step);
                ++n;
            }
            index.add(feature, to | static_cast<Place>(n) << number_bits);
        }
        replayed_ = std::move(compact);
        index_ = std::move(index);
    }

    /// Moves the rows to memory of another size; new columns are zero. Memory beyond the last row is not touched.
    void resize(std::uint32_t capacity, int stride) {
        const std::size_t width = static_cast<std::size_t>(stride) * (has_sums() ? 2 : 1);
        const std::size_t bytes = std::max<std::size_t>(64, (capacity * width * sizeof(float) + 63) / 64 * 64);
        std::unique_ptr<float, Free> moved(static_cast<float*>(std::aligned_alloc(64, bytes)));
        if (!moved) throw std::bad_alloc();
        const int kept = std::min(stride, stride_);
        for (std::uint32_t r = 0; r < n_rows_; ++r) {
            float* to = moved.get() + r * width;
            const float* from = row(r);
            std::fill_n(to, width, 0.0f);
            std::copy_n(from, kept, to);
            if (has_sums()) std::copy_n(from + stride_, kept, to + stride);
        }
        replayed_.set_stride(stride_, stride);
        rows_ = std::move(moved);
        row_capacity_ = capacity;
        stride_ = stride;
    }

    StepRule rule_;
    int stride_ = least_stride;
    std::uint32_t n_rows_ = 0, row_capacity_ = 0;
    std::unique_ptr<float, Free> rows_;
    ReplayedRows replayed_;
    HashMap<Place, 75> index_;
};

}  // namespace ramify
