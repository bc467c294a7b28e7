/// A linear regressor that learns online, for any number of features: a tree has one at each inner node.
///
/// Columns below `dense_width` lie in an array, the others in an open-addressing table. Column 0 is the constant
/// feature, column j + 1 is feature j. The split is fixed when the regressor is made, by how dense the rows were so
/// far.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <span>
#include <stdexcept>
#include <vector>

#include "base/hash_map.hpp"
#include "base/sparse_rows.hpp"
#include "kernels/kernels.hpp"

namespace ramify {

struct RegressorSettings {
    bool is_logistic = false;  ///< logistic loss; else squared error to -1 and +1
    bool is_adaptive = true;   ///< AdaGrad; else one step size for all
    bool is_invariant = true;  ///< an example of weight two is one seen twice (importance-invariant steps)
    float learning_rate = 0.5f;
    float eps = 0.001f;
    bool normalize = true;
    float bias = 0.3f;
};

inline int round_to_regressor_lanes(std::int64_t n) {
    return static_cast<int>((n + regressor_lanes - 1) / regressor_lanes * regressor_lanes);
}

/// A row as regressors see it: scaled, the constant feature first, also as a dense array if it is nearly full.
class RegressorRow {
public:
    std::vector<std::uint32_t> column;
    std::vector<float> value;
    std::vector<float> spread;  ///< by column, padded; empty for a row with many gaps

    /// Features are sorted; huge values are clipped, so that sums of squares stay finite.
    void prepare(std::span<const std::int32_t> indices, std::span<const float> values,
                 const RegressorSettings& settings) {
        double scale = 1.0;
        if (settings.normalize) {
            double squared = 0;
            for (float v : values) squared += static_cast<double>(v) * v;
            if (squared > 0) scale = 1.0 / std::sqrt(squared);
        }
        column.clear();
        value.clear();
        column.push_back(0);
        value.push_back(settings.bias);
        for (std::size_t k = 0; k < indices.size(); ++k) {
            if (values[k] == 0.0f) continue;
            column.push_back(static_cast<std::uint32_t>(indices[k]) + 1);
            if (column.back() <= column[column.size() - 2] || column.back() > largest_column) refuse_changed_rows();
            value.push_back(static_cast<float>(std::clamp(values[k] * scale, -largest, largest)));
        }
        spread.clear();
        if (is_full(column.size(), std::size_t{column.back()} + 1)) {
            spread.assign(static_cast<std::size_t>(round_to_regressor_lanes(std::int64_t{column.back()} + 1)), 0.0f);
            for (std::size_t k = 0; k < column.size(); ++k) spread[column[k]] = value[k];
        }
    }

    std::uint32_t width() const { return column.back() + 1; }

    static bool is_full(double n_entries, double n_columns) {
        return 4 * n_entries >= n_columns && n_columns <= widest;
    }
    static constexpr double widest = 1 << 20;

private:
    static constexpr double largest = 1e12;
    static constexpr std::uint32_t largest_column = std::numeric_limits<std::int32_t>::max();
};

/// Scratch space for a step on columns that are not contiguous.
struct RegressorScratch {
    std::vector<float> weight, sum, value, factor;
    std::vector<float*> weight_at, sum_at;

    void resize(std::size_t n, int padded) {
        if (weight.size() < static_cast<std::size_t>(padded))
            for (auto* part : {&weight, &sum, &value}) part->resize(padded);
        weight_at.resize(n);
        sum_at.resize(n);
        for (int k = static_cast<int>(n); k < padded; ++k) weight[k] = sum[k] = value[k] = 0.0f;
    }
};

class NodeRegressor {
public:
    struct Weight {
        float weight = 0.0f;
        float sum = 0.0f;  ///< of squared gradients
    };
    using Table = HashMap<Weight, 75>;

    NodeRegressor() = default;
    explicit NodeRegressor(int dense_width) : weight_(dense_width, 0.0f), sum_(dense_width, 0.0f) {}

    int dense_width() const { return static_cast<int>(weight_.size()); }
    std::span<const float> dense_weight() const { return weight_; }
    std::span<const float> dense_sum() const { return sum_; }
    const Table& table() const { return table_; }
    bool has_empty_table() const { return table_.size() == 0; }
    std::size_t bytes() const { return (weight_.capacity() + sum_.capacity()) * sizeof(float) + table_.bytes(); }

    float weight(std::uint32_t column) const {
        if (column < weight_.size()) return weight_[column];
        const Weight* found = table_.find(column);
        return found ? found->weight : 0.0f;
    }

    float score(const RegressorRow& x) const {
        if (!x.spread.empty() && x.spread.size() <= weight_.size())
            return kernels().regressor.dot(weight_.data(), x.spread.data(), static_cast<int>(x.spread.size()));
        for (std::uint32_t c : x.column) table_.prefetch(c);
        float total = 0;
        for (std::size_t k = 0; k < x.column.size(); ++k) total += x.value[k] * weight(x.column[k]);
        return total;
    }

    /// Scores a row and takes one step towards what target(score) says, -1 or +1; the score after the step.
    template <class Target>
    float learn(const RegressorRow& x, float importance, const RegressorSettings& settings, RegressorScratch& s,
                Target&& target) {
        if (!x.spread.empty() && x.spread.size() <= weight_.size()) {
            const int n = static_cast<int>(x.spread.size());
            const float score = kernels().regressor.dot(weight_.data(), x.spread.data(), n);
            return step(weight_.data(), sum_.data(), x.spread.data(), n, score, target(score), importance, settings, s);
        }
        const std::size_t n = x.column.size();
        const int padded = round_to_regressor_lanes(static_cast<std::int64_t>(n));
        s.resize(n, padded);
        reserve(n);
        for (std::size_t k = 0; k < n; ++k) table_.prefetch(x.column[k]);
        float score = 0;
        for (std::size_t k = 0; k < n; ++k) {
            const std::uint32_t c = x.column[k];
            if (c < weight_.size()) {
                s.weight_at[k] = &weight_[c];
                s.sum_at[k] = &sum_[c];
            } else {
                Weight& found = table_.find_or_add(c).first;
                s.weight_at[k] = &found.weight;
                s.sum_at[k] = &found.sum;
            }
            s.weight[k] = *s.weight_at[k];
            s.sum[k] = *s.sum_at[k];
            s.value[k] = x.value[k];
            score += x.value[k] * s.weight[k];
        }
        const float after =
            step(s.weight.data(), s.sum.data(), s.value.data(), padded, score, target(score), importance, settings, s);
        for (std::size_t k = 0; k < n; ++k) {
            *s.weight_at[k] = s.weight[k];
            *s.sum_at[k] = s.sum[k];
        }
        return after;
    }

    /// Makes room for this many more columns, so that adding them moves nothing.
    void reserve(std::size_t n_more) {
        if (table_.size() + n_more >= Table::free_key / 4)
            throw std::length_error("a node cannot hold this many features");
        table_.reserve_more(n_more);
    }

    /// Restores a stored column; false if it is there already, lies among the dense ones, or is no column.
    bool restore(std::uint32_t column, const Weight& weight) {
        if (column < weight_.size() || column == Table::free_key || table_.find(column)) return false;
        reserve(1);
        table_.add(column, weight);
        return true;
    }
    void restore_dense(std::span<const float> weight, std::span<const float> sum) {
        std::ranges::copy(weight, weight_.begin());
        std::ranges::copy(sum, sum_.begin());
    }

private:
    static float step(float* weight, float* sum, const float* x, int n, float score, float target, float importance,
                      const RegressorSettings& settings, RegressorScratch& s) {
        const RegressorKernels& loops = kernels().regressor;
        const float gradient = settings.is_logistic ? -target / (1.0f + std::exp(target * score)) : score - target;
        if (gradient == 0.0f) return score;
        s.factor.resize(std::max<std::size_t>(s.factor.size(), n));
        float reach;  // by how much a full step would move the score, for each unit of the gradient
        if (settings.is_adaptive) {
            reach = loops.adagrad_factors(sum, x, n, gradient, settings.learning_rate, settings.eps, s.factor.data());
        } else {
            std::fill_n(s.factor.data(), n, settings.learning_rate);
            reach = settings.learning_rate * loops.dot(x, x, n);
        }
        reach *= importance;
        if (!(reach > 0)) return score;
        // Importance-invariant steps on the squared error are the limit of many small ones, which comes near the target
        // and never goes beyond it. Elsewhere the score moves by at most `longest`, so that no row can push it out of
        // reach.
        float share = importance;
        if (settings.is_logistic || !settings.is_invariant) {
            if (reach * std::abs(gradient) > longest) share *= longest / (reach * std::abs(gradient));
        } else {
            share *= -std::expm1(-reach) / reach;
        }
        loops.descend(weight, x, s.factor.data(), n, share * gradient);
        return score - share / importance * reach * gradient;
    }
    static constexpr float longest = 10.0f;

    std::vector<float> weight_, sum_;
    Table table_;
};

}  // namespace ramify
