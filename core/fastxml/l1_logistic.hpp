/// Logistic regression with an L1 penalty on a few columns: Newton steps by coordinate descent (newGLMNET).
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <numeric>
#include <span>
#include <utility>
#include <vector>

#include "base/hashing.hpp"
#include "base/parallel.hpp"

namespace ramify {

/// A value in a column: the row's number, and the value there.
struct Cell {
    std::uint32_t row;
    float value;
};

/// Which rows belong to the positive side, what an error costs there, and the columns that describe them.
struct SeparatorProblem {
    std::vector<std::int8_t> is_positive;
    std::vector<double> cost;
    std::vector<std::size_t> begin{0};  ///< of each column in `cells`, and the end
    std::vector<Cell> cells;

    std::size_t n_rows() const { return is_positive.size(); }
    std::size_t n_columns() const { return begin.size() - 1; }
    std::span<const Cell> column(std::size_t j) const { return {cells.data() + begin[j], begin[j + 1] - begin[j]}; }
};

struct SeparatorSettings {
    double C = 1.0;       ///< cost of errors against the L1 norm of the weights
    double eps = 0.01;    ///< stops when the optimum is violated by this share of what it is at zero weights
    int max_newton = 20;  ///< Newton steps
};

/// Minimises |w|_1 + sum over rows of cost * log(1 + exp(-y w.x)), from w = 0.
/// Vectors are kept from one problem to the next; the answer depends on the problem and the seed alone.
class SeparatorSolver {
public:
    std::vector<double> weight;  ///< per column

    void solve(const SeparatorProblem& problem, const SeparatorSettings& settings, std::uint64_t seed,
               Watch* watch = nullptr) {
        const std::size_t n_rows = problem.n_rows(), n_columns = problem.n_columns();
        random_ = seed;
        weight.assign(n_columns, 0.0);
        direction_.assign(n_columns, 0.0);
        gradient_.assign(n_columns, 0.0);
        curvature_.assign(n_columns, 0.0);
        score_.assign(n_rows, 0.0);
        change_.assign(n_rows, 0.0);
        slope_.resize(n_rows);
        bend_.resize(n_rows);
        // Not the number of rows: a row of weight two is as good as two rows.
        total_cost_ = std::accumulate(problem.cost.begin(), problem.cost.end(), 0.0);
        active_.resize(n_columns);
        for (std::size_t j = 0; j < n_columns; ++j) active_[j] = j;
        double first_violation = -1, largest_before = std::numeric_limits<double>::infinity(), inner_eps = 1;
        for (int step = 0; step < settings.max_newton; ++step) {
            if (watch && watch->should_stop()) return;
            const auto [violation, largest] = look_around(problem, largest_before);
            if (first_violation < 0) first_violation = violation;
            if (violation <= settings.eps * first_violation) {
                if (active_.size() == n_columns || std::isinf(largest_before)) return;
                // Solved among the columns that were left: what was set aside is looked at once more.
                active_.resize(n_columns);
                for (std::size_t j = 0; j < n_columns; ++j) active_[j] = j;
                largest_before = std::numeric_limits<double>::infinity();
                continue;
            }
            largest_before = largest;
            const int passes = descend(problem, inner_eps * first_violation, watch);
            if (!search_line(problem)) return;
            if (passes == 1) inner_eps *= 0.25;
        }
    }

private:
    static constexpr double ridge = 1e-12;  ///< keeps a column of zeros from dividing by zero
    static constexpr double smallest = 1e-10;
    static constexpr int max_passes = 100;
    static constexpr int max_halvings = 20;

    /// How far a column is from its optimality condition.
    static double violation_of(double w, double gradient) {
        if (w > 0) return std::abs(gradient + 1);
        if (w < 0) return std::abs(gradient - 1);
        return std::max(0.0, std::abs(gradient) - 1);
    }

    /// Gradient and curvature at the present weights; columns that stay at zero for sure are set aside.
    std::pair<double, double> look_around(const SeparatorProblem& problem, double largest_before) {
        const std::size_t n_rows = problem.n_rows();
        for (std::size_t i = 0; i < n_rows; ++i) {
            const double p = 1 / (1 + std::exp(-score_[i]));
            slope_[i] = problem.cost[i] * (problem.is_positive[i] ? p - 1 : p);
            bend_[i] = problem.cost[i] * p * (1 - p);
        }
        double total = 0, largest = 0;
        std::size_t kept = 0;
        for (std::size_t j : active_) {
            double gradient = 0, curvature = ridge;
            for (const Cell& cell : problem.column(j)) {
                const double v = cell.value;
                gradient += slope_[cell.row] * v;
                curvature += bend_[cell.row] * v * v;
            }
            gradient_[j] = gradient;
            curvature_[j] = curvature;
            direction_[j] = 0;
            if (weight[j] == 0 && std::abs(gradient) < 1 - largest_before / total_cost_) continue;
            const double violation = violation_of(weight[j], gradient);
            total += violation;
            largest = std::max(largest, violation);
            active_[kept++] = j;
        }
        active_.resize(kept);
        return {total, largest};
    }

    /// Coordinate descent on the quadratic model around the present weights; the number of passes it took.
    int descend(const SeparatorProblem& problem, double eps, Watch* watch) {
        std::ranges::fill(change_, 0.0);
        inner_ = active_;
        for (int pass = 1;; ++pass) {
            if (watch && watch->should_stop()) return pass;
            double total = 0;
            for (std::size_t k = inner_.size(); k > 1; --k) {
                random_ = mix(random_);
                std::swap(inner_[k - 1], inner_[random_ % k]);
            }
            for (std::size_t j : inner_) {
                const std::span<const Cell> column = problem.column(j);
                double gradient = gradient_[j] + ridge * direction_[j];
                for (const Cell& cell : column) gradient += bend_[cell.row] * change_[cell.row] * cell.value;
                const double at = weight[j] + direction_[j], h = curvature_[j];
                total += violation_of(at, gradient);
                double step;
                if (gradient + 1 < h * at)
                    step = -(gradient + 1) / h;
                else if (gradient - 1 > h * at)
                    step = -(gradient - 1) / h;
                else
                    step = -at;
                if (std::abs(step) < 1e-12) continue;
                step = std::clamp(step, -10.0, 10.0);
                direction_[j] += step;
                for (const Cell& cell : column) change_[cell.row] += step * cell.value;
            }
            if (total <= eps || pass == max_passes) return pass;
        }
    }

    static double log_loss(double margin) {
        return margin > 0 ? std::log1p(std::exp(-margin)) : std::log1p(std::exp(margin)) - margin;
    }

    /// Goes along the direction as far as the objective falls by enough; false if it does not fall at all.
    bool search_line(const SeparatorProblem& problem) {
        double expected = 0;
        for (std::size_t j : active_)
            expected += gradient_[j] * direction_[j] + std::abs(weight[j] + direction_[j]) - std::abs(weight[j]);
        if (!(expected < 0)) return false;
        double length = 1;
        for (int k = 0; k < max_halvings; ++k, length /= 2) {
            double difference = 0;
            for (std::size_t j : active_)
                difference += std::abs(weight[j] + length * direction_[j]) - std::abs(weight[j]);
            for (std::size_t i = 0; i < problem.n_rows(); ++i) {
                if (change_[i] == 0) continue;
                const double sign = problem.is_positive[i] ? 1 : -1;
                difference +=
                    problem.cost[i] * (log_loss(sign * (score_[i] + length * change_[i])) - log_loss(sign * score_[i]));
            }
            if (!(difference <= 0.01 * length * expected)) continue;
            for (std::size_t j : active_) {
                weight[j] += length * direction_[j];
                if (std::abs(weight[j]) < smallest) weight[j] = 0;  // what rounding leaves of a step back to zero
            }
            for (std::size_t i = 0; i < problem.n_rows(); ++i) score_[i] += length * change_[i];
            return true;
        }
        return false;
    }

    std::vector<double> direction_, gradient_, curvature_;  // per column
    std::vector<double> score_, change_, slope_, bend_;     // per row
    std::vector<std::size_t> active_, inner_;
    double total_cost_ = 0;
    std::uint64_t random_ = 0;
};

}  // namespace ramify
