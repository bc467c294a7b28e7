/// Rows of a block that have seen few examples: not weights but the steps that made them, from which they are
/// recomputed when they are needed.
///
/// A step is the gradient of an example, which all features of the example share, times the feature's value. Most pairs
/// of a feature and a node occur once to a few times, so this takes a few bytes where a row of weights and sums takes a
/// thousand, and loses nothing: replaying makes the same weights, bit for bit.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <span>
#include <stdexcept>
#include <vector>

#include "kernels/kernels.hpp"

namespace ramify {

/// How steps make rows: AdaGrad's, with sums, or plain descent, whose rates are part of the steps' values.
struct StepRule {
    bool has_sums = true;
    AdaGradSteps adagrad;
};

class ReplayedRows {
public:
    static constexpr int most_steps = 6;
    static constexpr std::uint32_t most_rows = (1u << 29) - 1;

    std::uint32_t n_gradients() const { return static_cast<std::uint32_t>(n_references_.size()) - n_free_gradients_; }
    /// One more than the largest number of a gradient.
    std::size_t n_gradient_numbers() const { return n_references_.size(); }
    std::size_t bytes() const {
        std::size_t total = gradients_.capacity() * sizeof(float) + n_references_.capacity() * sizeof(std::uint32_t);
        for (const Pool& pool : pools_) total += pool.steps.capacity() * sizeof(ReplayedStep);
        return total;
    }

    /// What the budget counts for a row of n steps, and for a gradient, with the room to grow that it may bring.
    static double bytes_of_steps(int n) { return 1.5 * static_cast<double>(n * sizeof(ReplayedStep)); }
    static double bytes_of_gradient(int n_columns) {
        return 1.5 * static_cast<double>(n_columns * sizeof(float) + sizeof(std::uint32_t));
    }

    // --- rows, numbered among those with as many steps -----------------------------------------------------------

    std::span<const ReplayedStep> steps(int n, std::uint32_t number) const {
        return {pools_[n].steps.data() + static_cast<std::size_t>(number) * n, static_cast<std::size_t>(n)};
    }

    /// A row with one step more than the row (n, number), which is gone. Returns its number; n may be 0: a new row.
    std::uint32_t append(int n, std::uint32_t number, ReplayedStep step) {
        const std::uint32_t longer = take(pools_[n + 1], n + 1);
        ReplayedStep* to = pools_[n + 1].steps.data() + static_cast<std::size_t>(longer) * (n + 1);
        if (n > 0) {
            std::ranges::copy(steps(n, number), to);
            give_back(pools_[n], n, number);
        }
        to[n] = step;
        ++n_references_[step.gradient];
        return longer;
    }

    /// The row is stored elsewhere from now on, or dropped.
    void drop(int n, std::uint32_t number) {
        for (const ReplayedStep& step : steps(n, number))
            if (--n_references_[step.gradient] == 0) {
                n_references_[step.gradient] = first_free_gradient_;
                first_free_gradient_ = step.gradient;
                ++n_free_gradients_;
            }
        give_back(pools_[n], n, number);
    }

    /// Weights, and sums if there are any, of a row; n_columns as in kernels().online.
    void replay(int n, std::uint32_t number, const StepRule& rule, int stride, int n_columns, float* row) const {
        const OnlineKernels& k = kernels().online;
        const ReplayedStep* first = steps(n, number).data();
        if (rule.has_sums)
            k.replay_adagrad(first, n, gradients_.data(), stride, n_columns, rule.adagrad, row, row + stride);
        else
            k.replay_descend(first, n, gradients_.data(), stride, n_columns, row);
    }

    void prefetch_steps(int n, std::uint32_t number) const { __builtin_prefetch(steps(n, number).data()); }
    void prefetch_gradients(int n, std::uint32_t number, int stride) const {
        for (const ReplayedStep& step : steps(n, number)) {
            const float* g = gradient(step.gradient, stride);
            for (int c = 0; c < std::min(stride, 64); c += 16) __builtin_prefetch(g + c);
        }
    }

    // --- gradients, of one example each --------------------------------------------------------------------------

    const float* gradient(std::uint32_t number, int stride) const {
        return gradients_.data() + static_cast<std::size_t>(number) * stride;
    }
    std::uint32_t n_references(std::uint32_t number) const { return n_references_[number]; }

    /// A gradient with room for `stride` columns. Rows have to refer to it before anything else is added.
    std::uint32_t add_gradient(std::span<const float> columns, int stride) {
        std::uint32_t number = first_free_gradient_;
        if (n_free_gradients_ > 0) {
            first_free_gradient_ = n_references_[number];
            --n_free_gradients_;
        } else {
            number = static_cast<std::uint32_t>(n_references_.size());
            grow(n_references_, 1);
            grow(gradients_, stride);
        }
        n_references_[number] = 0;
        float* to = gradients_.data() + static_cast<std::size_t>(number) * stride;
        const std::size_t n = std::min<std::size_t>(columns.size(), stride);
        std::copy_n(columns.data(), n, to);
        std::fill(to + n, to + stride, 0.0f);
        return number;
    }

    /// Changes every gradient: work(its columns).
    template <class Work>
    void for_each_gradient(int stride, Work&& work) {
        for (std::size_t at = 0; at < gradients_.size(); at += stride) work(gradients_.data() + at);
    }

    /// Gives gradients another width; new columns are zero.
    void set_stride(int from, int to) {
        if (from == to) return;
        std::vector<float> moved(n_references_.size() * to, 0.0f);
        for (std::size_t g = 0; g < n_references_.size(); ++g)
            std::copy_n(gradients_.data() + g * from, std::min(from, to), moved.data() + g * to);
        gradients_ = std::move(moved);
    }

    /// The same rows, of one column only, which comes first.
    ReplayedRows with_column(int column, int from, int to) const {
        ReplayedRows other;
        other.pools_ = pools_;
        other.n_references_ = n_references_;
        other.first_free_gradient_ = first_free_gradient_;
        other.n_free_gradients_ = n_free_gradients_;
        other.gradients_.assign(n_references_.size() * to, 0.0f);
        for (std::size_t g = 0; g < n_references_.size(); ++g) other.gradients_[g * to] = gradients_[g * from + column];
        return other;
    }

    /// Whether much of the memory is free.
    bool is_sparse() const {
        std::size_t n_free = 0, n = n_references_.size();
        for (const Pool& pool : pools_) n_free += pool.n_free;
        for (int k = 1; k <= most_steps; ++k) n += pools_[k].steps.size() / k;
        return 4 * (n_free + n_free_gradients_) > n;
    }

private:
    struct Pool {
        std::vector<ReplayedStep> steps;
        std::uint32_t first_free = 0, n_free = 0;  ///< a list, linked by the first step's gradient
    };

    template <class T>
    static void grow(std::vector<T>& v, std::size_t n) {
        if (v.size() + n > v.capacity()) v.reserve(std::max(v.size() + n, v.capacity() + v.capacity() / 2));
        v.resize(v.size() + n);
    }

    static std::uint32_t take(Pool& pool, int n) {
        if (pool.n_free > 0) {
            const std::uint32_t number = pool.first_free;
            pool.first_free = pool.steps[static_cast<std::size_t>(number) * n].gradient;
            --pool.n_free;
            return number;
        }
        const std::size_t number = pool.steps.size() / n;
        if (number >= most_rows) throw std::length_error("an online block cannot hold more than 500 million features");
        grow(pool.steps, n);
        return static_cast<std::uint32_t>(number);
    }

    static void give_back(Pool& pool, int n, std::uint32_t number) {
        pool.steps[static_cast<std::size_t>(number) * n].gradient = pool.first_free;
        pool.first_free = number;
        ++pool.n_free;
    }

    std::array<Pool, most_steps + 1> pools_;   ///< by number of steps
    std::vector<float> gradients_;             ///< of `stride` columns each
    std::vector<std::uint32_t> n_references_;  ///< per gradient: steps that use it; a free one: the next free one
    std::uint32_t first_free_gradient_ = 0, n_free_gradients_ = 0;
};

}  // namespace ramify
