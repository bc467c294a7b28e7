/// The eigenvalue problem of a node of a candidate tree (Mineiro and Karampatziakis 2015, equation 2): the node's rows
/// with their importance, and the product of a few directions with the matrix whose top eigenvector splits them.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <span>
#include <vector>

#include "base/parallel.hpp"
#include "base/sparse_rows.hpp"

namespace ramify {

struct SplitCell {
    std::uint32_t at;  ///< column in a row, row in a column
    float value;
};

/// Rows of cells; of its transpose, too, so that every entry of a product is summed by one thread in a fixed order.
struct SplitCells {
    std::vector<std::int64_t> begin{0};
    std::vector<SplitCell> cells;

    std::size_t size() const { return begin.size() - 1; }

    SplitCells transposed(std::size_t n_columns) const {
        SplitCells result;
        result.begin.assign(n_columns + 1, 0);
        for (const SplitCell& cell : cells) ++result.begin[cell.at + 1];
        for (std::size_t j = 0; j < n_columns; ++j) result.begin[j + 1] += result.begin[j];
        result.cells.resize(cells.size());
        std::vector<std::int64_t> next(result.begin.begin(), result.begin.end() - 1);
        for (std::size_t i = 0; i < size(); ++i)
            for (std::int64_t k = begin[i]; k < begin[i + 1]; ++k)
                result.cells[next[cells[k].at]++] = {static_cast<std::uint32_t>(i), cells[k].value};
        return result;
    }
};

/// out = A * in, B columns side by side.
template <int B>
void multiply(const SplitCells& A, const std::vector<float>& in, std::vector<float>& out, int n_threads) {
    constexpr std::size_t chunk = 4096;
    out.resize(A.size() * B);
    parallel_for((A.size() + chunk - 1) / chunk, n_threads, [&](std::size_t task, int) {
        const std::size_t first = task * chunk, last = std::min(A.size(), first + chunk);
        for (std::size_t i = first; i < last; ++i) {
            float sum[B] = {};
            for (std::int64_t k = A.begin[i]; k < A.begin[i + 1]; ++k) {
                const float* from = in.data() + static_cast<std::size_t>(A.cells[k].at) * B;
                const float value = A.cells[k].value;
                for (int j = 0; j < B; ++j) sum[j] += value * from[j];
            }
            for (int j = 0; j < B; ++j) out[i * B + j] = sum[j];
        }
    });
}

/// Where the numbers of features and labels in a node are looked up; as long as there are such, and -1 between two
/// nodes.
struct LocalNumbers {
    std::vector<std::int32_t> of;
    std::vector<std::uint32_t> known;  ///< in order of their numbers

    void resize(std::size_t n) { of.resize(n, -1); }
    void add(std::uint32_t global) {
        if (of[global] < 0) {
            of[global] = 0;
            known.push_back(global);
        }
    }
    /// Numbers what was added, in rising order.
    void settle() {
        std::ranges::sort(known);
        for (std::size_t k = 0; k < known.size(); ++k) of[known[k]] = static_cast<std::int32_t>(k);
    }
    void clear() {
        for (std::uint32_t global : known) of[global] = -1;
        known.clear();
    }
};

/// Rows of a node: which, and how much each counts.
struct SplitRows {
    const PreparedRows& X;
    std::span<const std::int64_t> y_begin;
    std::span<const std::int32_t> y_label;
    std::span<const std::uint8_t> is_head;  ///< labels that the tree is not asked about; empty: none
    std::uint32_t n_features;               ///< the bias feature comes after them and is left out
    std::span<const std::int32_t> rows;
    std::span<const double> importance;  ///< one a row of `rows`

    std::span<const Entry> features(std::size_t k) const {
        std::span<const Entry> x(X.row(rows[k]), static_cast<std::size_t>(X.length(rows[k])));
        if (!x.empty() && x.back().feature >= n_features) x = x.first(x.size() - 1);
        return x;
    }
    template <class Work>
    void for_labels(std::size_t k, Work&& work) const {
        for (std::int64_t at = y_begin[rows[k]]; at < y_begin[rows[k] + 1]; ++at)
            if (is_head.empty() || !is_head[y_label[at]]) work(static_cast<std::uint32_t>(y_label[at]));
    }
};

/// The matrix X^T P Y (Y^T P Y)^-1 Y^T P X with P the importances, as products. If no row has two labels, Y^T P Y is
/// diagonal: the matrix is then that of the classes' sums over the roots of their importances, and the hat matrix is
/// applied once and for all while these are added up, in constant time an entry. Otherwise it is applied by conjugate
/// gradients (equation 3). With `squares_frequency`, classes count by the square of their importance (equation 1):
/// their sums are divided by the root of the total importance instead, which gives eigenvalues of the same unit.
struct SplitProblem {
    std::vector<std::uint32_t> feature;  ///< of the data, rising; everything below is in their order
    SplitCells X, XT;                    ///< rows scaled by the root of their importance, or one row a class
    SplitCells Y, YT;                    ///< the same for labels; empty if no row has two
    std::vector<float> diagonal;         ///< of Y^T P Y
    std::vector<double> balance;  ///< sum of the rows times their importance, at unit length; zero if that is zero

    std::size_t dimension() const { return feature.size(); }
    bool has_classes() const { return diagonal.empty(); }

    SplitProblem(const SplitRows& node, LocalNumbers& features, LocalNumbers& labels, std::vector<float>& sums,
                 bool squares_frequency, int n_threads) {
        const std::size_t n = node.rows.size();
        bool has_classes = true;
        for (std::size_t k = 0; k < n; ++k) {
            for (const Entry& e : node.features(k)) features.add(e.feature);
            int n_labels = 0;
            node.for_labels(k, [&](std::uint32_t l) {
                labels.add(l);
                ++n_labels;
            });
            has_classes &= n_labels <= 1;
        }
        features.settle();
        labels.settle();
        feature = features.known;
        const std::size_t n_labels = labels.known.size();
        balance.assign(dimension(), 0.0);
        for (std::size_t k = 0; k < n; ++k)
            for (const Entry& e : node.features(k)) balance[features.of[e.feature]] += node.importance[k] * e.value;
        double length = 0;
        for (double v : balance) length += v * v;
        length = std::sqrt(length);
        for (double& v : balance) v = length > 0 ? v / length : 0.0;
        if (has_classes)
            add_up_classes(node, features, labels, sums, squares_frequency, n_threads);
        else
            scale_rows(node, features, labels);
        XT = X.transposed(dimension());
        if (!has_classes) YT = Y.transposed(n_labels);
        features.clear();
        labels.clear();
    }

private:
    void add_up_classes(const SplitRows& node, const LocalNumbers& features, const LocalNumbers& labels,
                        std::vector<float>& sums, bool squares_frequency, int n_threads) {
        const std::size_t n_classes = labels.known.size();
        std::vector<std::int64_t> begin(n_classes + 1, 0);
        for (std::size_t k = 0; k < node.rows.size(); ++k)
            node.for_labels(k, [&](std::uint32_t l) { ++begin[labels.of[l] + 1]; });
        for (std::size_t c = 0; c < n_classes; ++c) begin[c + 1] += begin[c];
        std::vector<std::int32_t> row(static_cast<std::size_t>(begin.back()));
        std::vector<std::int64_t> next(begin.begin(), begin.end() - 1);
        for (std::size_t k = 0; k < node.rows.size(); ++k)
            node.for_labels(k, [&](std::uint32_t l) { row[next[labels.of[l]]++] = static_cast<std::int32_t>(k); });
        const double total = std::accumulate(node.importance.begin(), node.importance.end(), 0.0);
        // Chunks of classes side by side, each with sums of its own; put together in order.
        const std::size_t n_chunks = n_threads > 1 ? std::min<std::size_t>(n_classes, 64) : 1;
        std::vector<SplitCells> part(n_chunks);
        std::vector<std::vector<float>> own(usable_threads(n_threads, n_chunks));
        parallel_for(n_chunks, n_threads, [&](std::size_t chunk, int worker) {
            std::vector<float>& sum = n_chunks > 1 ? own[worker] : sums;
            if (sum.size() < dimension()) sum.resize(dimension(), 0.0f);
            std::vector<std::uint32_t> touched;
            for (std::size_t c = n_classes * chunk / n_chunks; c < n_classes * (chunk + 1) / n_chunks; ++c) {
                double mass = 0;
                for (std::int64_t at = begin[c]; at < begin[c + 1]; ++at) {
                    const auto k = static_cast<std::size_t>(row[at]);
                    mass += node.importance[k];
                    for (const Entry& e : node.features(k)) {
                        const auto f = static_cast<std::uint32_t>(features.of[e.feature]);
                        if (sum[f] == 0.0f) touched.push_back(f);
                        sum[f] += static_cast<float>(node.importance[k] * e.value);
                    }
                }
                std::ranges::sort(touched);
                const double scale = mass > 0 ? 1.0 / std::sqrt(squares_frequency ? total : mass) : 0.0;
                for (std::uint32_t f : touched) {
                    if (sum[f] != 0.0f) part[chunk].cells.push_back({f, static_cast<float>(sum[f] * scale)});
                    sum[f] = 0.0f;
                }
                touched.clear();
                part[chunk].begin.push_back(static_cast<std::int64_t>(part[chunk].cells.size()));
            }
        });
        if (n_chunks == 1) {
            X = std::move(part.front());
            return;
        }
        std::size_t n_cells = 0;
        for (const SplitCells& p : part) n_cells += p.cells.size();
        X.cells.reserve(n_cells);
        for (SplitCells& p : part) {
            const auto before = static_cast<std::int64_t>(X.cells.size());
            X.cells.insert(X.cells.end(), p.cells.begin(), p.cells.end());
            for (std::size_t c = 1; c < p.begin.size(); ++c) X.begin.push_back(before + p.begin[c]);
            std::vector<SplitCell>().swap(p.cells);
        }
    }

    void scale_rows(const SplitRows& node, const LocalNumbers& features, const LocalNumbers& labels) {
        diagonal.assign(labels.known.size(), 0.0f);
        std::vector<double> mass(labels.known.size(), 0.0);
        for (std::size_t k = 0; k < node.rows.size(); ++k) {
            const auto root = static_cast<float>(std::sqrt(node.importance[k]));
            node.for_labels(k, [&](std::uint32_t l) {
                Y.cells.push_back({static_cast<std::uint32_t>(labels.of[l]), root});
                mass[labels.of[l]] += node.importance[k];
            });
            Y.begin.push_back(static_cast<std::int64_t>(Y.cells.size()));
            // A row without labels has no part in the labels' space.
            if (Y.begin[k + 1] > Y.begin[k])
                for (const Entry& e : node.features(k))
                    X.cells.push_back({static_cast<std::uint32_t>(features.of[e.feature]), root * e.value});
            X.begin.push_back(static_cast<std::int64_t>(X.cells.size()));
        }
        for (std::size_t l = 0; l < mass.size(); ++l) diagonal[l] = static_cast<float>(mass[l]);
    }
};

/// B directions times the matrix of a problem.
template <int B>
class SplitMatrix {
public:
    SplitMatrix(const SplitProblem& problem, int cg_iterations, int n_threads)
        : problem_(problem), cg_iterations_(cg_iterations), n_threads_(n_threads) {}

    void apply(const std::vector<float>& in, std::vector<float>& out) {
        multiply<B>(problem_.X, in, rows_, n_threads_);
        if (!problem_.has_classes()) {
            solve(rows_, solution_);
            multiply<B>(problem_.Y, solution_, rows_, n_threads_);
        }
        multiply<B>(problem_.XT, rows_, out, n_threads_);
    }

    /// argmin over v of |Y v - z|^2, rows scaled by their importance: a few steps of conjugate gradients,
    /// preconditioned by the diagonal.
    void solve(const std::vector<float>& z, std::vector<float>& v) {
        multiply<B>(problem_.YT, z, residual_, n_threads_);
        const std::size_t n = problem_.diagonal.size();
        v.assign(n * B, 0.0f);
        direction_.assign(n * B, 0.0f);
        double before[B], first[B], now[B], curvature[B];
        precondition(now);
        for (int j = 0; j < B; ++j) first[j] = now[j];
        direction_ = scaled_;
        for (int step = 0; step < cg_iterations_; ++step) {
            multiply<B>(problem_.Y, direction_, product_rows_, n_threads_);
            multiply<B>(problem_.YT, product_rows_, product_, n_threads_);
            for (double& c : curvature) c = 0;
            for (std::size_t i = 0; i < n * B; ++i)
                curvature[i % B] += static_cast<double>(direction_[i]) * product_[i];
            float along[B], keep[B];
            bool moves = false;
            for (int j = 0; j < B; ++j) {
                // A column that has converged stays where it is: there, both are rounding errors.
                const bool goes_on = now[j] > 1e-12 * first[j] && curvature[j] > 0;
                along[j] = goes_on ? static_cast<float>(now[j] / curvature[j]) : 0.0f;
                before[j] = now[j];
                moves |= goes_on;
            }
            if (!moves) return;
            for (std::size_t i = 0; i < n; ++i)
                for (int j = 0; j < B; ++j) {
                    v[i * B + j] += along[j] * direction_[i * B + j];
                    residual_[i * B + j] -= along[j] * product_[i * B + j];
                }
            precondition(now);
            for (int j = 0; j < B; ++j) keep[j] = before[j] > 0 ? static_cast<float>(now[j] / before[j]) : 0.0f;
            for (std::size_t i = 0; i < n; ++i)
                for (int j = 0; j < B; ++j)
                    direction_[i * B + j] = scaled_[i * B + j] + keep[j] * direction_[i * B + j];
        }
    }

private:
    /// scaled = residual / diagonal, and the product of both, by column.
    void precondition(double* product) {
        const std::size_t n = problem_.diagonal.size();
        scaled_.resize(n * B);
        for (int j = 0; j < B; ++j) product[j] = 0;
        for (std::size_t i = 0; i < n; ++i)
            for (int j = 0; j < B; ++j) {
                scaled_[i * B + j] = residual_[i * B + j] / problem_.diagonal[i];
                product[j] += static_cast<double>(scaled_[i * B + j]) * residual_[i * B + j];
            }
    }

    const SplitProblem& problem_;
    const int cg_iterations_, n_threads_;
    std::vector<float> rows_, solution_, residual_, scaled_, direction_, product_, product_rows_;
};

}  // namespace ramify
