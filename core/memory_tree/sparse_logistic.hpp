/// One linear classifier that learns online: logistic loss, AdaGrad, weights only for features that it has met.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "kernels/kernels.hpp"

namespace ramify {

struct StepSettings {
    double learning_rate = 2.0;
    double eps = 0.2;
};

/// 1 / (1 + exp(-s)), for any s.
inline double logistic(double s) { return s >= 0 ? 1 / (1 + std::exp(-s)) : std::exp(s) / (1 + std::exp(s)); }

/// Squares of larger ones would leave float's range: rows of any finite values must leave finite weights.
inline constexpr double largest_gradient = 1e15;

/// AdaGrad's step for one weight; sums and weights are floats, everything between is double, so that no vector unit changes a bit.
inline void adagrad_step(float& weight, float& sum, double gradient, const StepSettings& step) {
    gradient = std::clamp(gradient, -largest_gradient, largest_gradient);
    sum = static_cast<float>(sum + gradient * gradient);
    weight = static_cast<float>(weight - step.learning_rate * gradient / (std::sqrt(static_cast<double>(sum)) + step.eps));
}

class SparseLogistic {
public:
    struct Cell {
        std::uint32_t feature;
        float weight;
        float sum;  ///< of squared gradients
    };
    static constexpr std::uint32_t empty = 0xffffffffu;
    static constexpr double bias_value = 0.2;  ///< of the constant feature

    double score(std::span<const Entry> x) const {
        double s = bias_.weight * bias_value;
        if (cells_.empty()) return s;
        for (const Entry& e : x) {
            const Cell& cell = cells_[at(e.feature)];
            if (cell.feature == e.feature) s += static_cast<double>(cell.weight) * e.value;
        }
        return s;
    }

    /// One step towards `is_positive`, from the score that x has now.
    void learn(std::span<const Entry> x, double score, bool is_positive, double importance, const StepSettings& step) {
        const double slope = (logistic(score) - (is_positive ? 1.0 : 0.0)) * importance;
        if (slope == 0.0) return;
        adagrad_step(bias_.weight, bias_.sum, slope * bias_value, step);
        if (2 * (n_cells_ + x.size()) > cells_.size()) grow(n_cells_ + x.size());
        for (const Entry& e : x) {
            Cell& cell = cells_[at(e.feature)];
            if (cell.feature == empty) {
                cell = {e.feature, 0.0f, 0.0f};
                ++n_cells_;
            }
            adagrad_step(cell.weight, cell.sum, slope * e.value, step);
        }
    }

    float weight(std::uint32_t feature) const {
        if (cells_.empty()) return 0.0f;
        const Cell& cell = cells_[at(feature)];
        return cell.feature == feature ? cell.weight : 0.0f;
    }
    const Cell& bias() const { return bias_; }

    /// The cells in order of feature, as a file holds them.
    std::vector<Cell> sorted_cells() const {
        std::vector<Cell> out;
        for (const Cell& cell : cells_)
            if (cell.feature != empty) out.push_back(cell);
        std::ranges::sort(out, {}, &Cell::feature);
        return out;
    }
    std::size_t n_cells() const { return n_cells_; }
    std::size_t bytes() const { return cells_.capacity() * sizeof(Cell); }

    void restore(std::span<const Cell> cells, float bias_weight, float bias_sum) {
        bias_.weight = bias_weight;
        bias_.sum = bias_sum;
        cells_.clear();
        n_cells_ = cells.size();
        if (cells.empty()) return;
        grow(n_cells_);
        for (const Cell& cell : cells) cells_[at(cell.feature)] = cell;
    }

private:
    /// Where the feature is, or would be put: the table is never more than half full.
    std::size_t at(std::uint32_t feature) const {
        std::size_t place = (feature * 0x9e3779b1u) >> shift_;
        while (cells_[place].feature != feature && cells_[place].feature != empty) place = (place + 1) & (cells_.size() - 1);
        return place;
    }

    void grow(std::size_t n_needed) {
        std::size_t size = std::max<std::size_t>(16, cells_.size());
        while (size < 2 * n_needed) size *= 2;
        std::vector<Cell> old(size, Cell{empty, 0.0f, 0.0f});
        old.swap(cells_);
        shift_ = 32;
        while (size > 1) {
            size /= 2;
            --shift_;
        }
        for (const Cell& cell : old)
            if (cell.feature != empty) cells_[at(cell.feature)] = cell;
    }

    std::vector<Cell> cells_;
    std::size_t n_cells_ = 0;
    int shift_ = 32;
    Cell bias_{empty, 0.0f, 0.0f};
};

}  // namespace ramify
