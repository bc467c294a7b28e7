/// The eigenvalue problem of a node of a candidate tree (Mineiro and Karampatziakis 2015, equation 2): the node's rows
/// with their importance, and the product of a few directions with the matrix whose top eigenvector splits them.
#pragma once

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <span>
#include <vector>

#include "base/parallel.hpp"
#include "base/sparse_rows.hpp"
#include "spectral/cells.hpp"

namespace ramify {

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
    /// The same from several threads at once; what was added is found by `collect`.
    void mark(std::uint32_t global) {
        std::atomic_ref<std::int32_t> number(of[global]);
        if (number.load(std::memory_order_relaxed) < 0) number.store(0, std::memory_order_relaxed);
    }
    void collect() {
        for (std::size_t global = 0; global < of.size(); ++global)
            if (of[global] >= 0) known.push_back(static_cast<std::uint32_t>(global));
    }
    /// Numbers what was added, in rising order.
    void settle() {
        if (!std::ranges::is_sorted(known)) std::ranges::sort(known);
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
        const bool has_classes = number(node, features, labels, n_threads);
        feature = features.known;
        if (has_classes)
            add_up_classes(node, features, labels, sums, squares_frequency, n_threads);
        else
            scale_rows(node, features, labels);
        XT = X.transposed(dimension(), n_threads);
        if (!has_classes) YT = Y.transposed(labels.known.size(), n_threads);
        find_balance(node, features, n_threads);
        features.clear();
        labels.clear();
    }

private:
    /// Numbers the node's features and labels; whether no row has two labels.
    static bool number(const SplitRows& node, LocalNumbers& features, LocalNumbers& labels, int n_threads) {
        bool has_classes = true;
        std::int64_t n_entries = 0;
        for (std::size_t k = 0; k < node.rows.size(); ++k) {
            n_entries += node.X.length(node.rows[k]);
            int n_labels = 0;
            node.for_labels(k, [&](std::uint32_t l) {
                labels.add(l);
                ++n_labels;
            });
            has_classes &= n_labels <= 1;
        }
        // Looking through all features that there are pays only where the node has most of them.
        if (n_entries < static_cast<std::int64_t>(features.of.size())) {
            for (std::size_t k = 0; k < node.rows.size(); ++k)
                for (const Entry& e : node.features(k)) features.add(e.feature);
        } else {
            parallel_chunks(std::ssize(node.rows), 4096, n_threads, [&](std::int64_t first, std::int64_t last, int) {
                for (std::int64_t k = first; k < last; ++k)
                    for (const Entry& e : node.features(static_cast<std::size_t>(k))) features.mark(e.feature);
            });
            features.collect();
        }
        features.settle();
        labels.settle();
        return has_classes;
    }

    /// The direction of the rows' sum.
    void find_balance(const SplitRows& node, const LocalNumbers& features, int n_threads) {
        balance.assign(dimension(), 0.0);
        // Parts of the rows have sums of their own. Their number depends on the rows alone, so threads change no bit.
        const std::size_t n = node.rows.size(), n_parts = n < 65536 ? 1 : 4;
        std::vector<std::vector<double>> sums(n_parts - 1);
        parallel_for(n_parts, n_threads, [&](std::size_t part, int) {
            if (part > 0) sums[part - 1].assign(dimension(), 0.0);
            std::vector<double>& sum = part > 0 ? sums[part - 1] : balance;
            for (std::size_t k = n * part / n_parts; k < n * (part + 1) / n_parts; ++k)
                for (const Entry& e : node.features(k)) sum[features.of[e.feature]] += node.importance[k] * e.value;
        });
        for (const auto& sum : sums)
            for (std::size_t f = 0; f < balance.size(); ++f) balance[f] += sum[f];
        double length = 0;
        for (double v : balance) length += v * v;
        length = std::sqrt(length);
        for (double& v : balance) v = length > 0 ? v / length : 0.0;
    }

    void add_up_classes(const SplitRows& node, const LocalNumbers& features, const LocalNumbers& labels,
                        std::vector<float>& sums, bool squares_frequency, int n_threads) {
        const std::size_t n_classes = labels.known.size();
        std::vector<std::int64_t> begin(n_classes + 1, 0), room(n_classes + 1, 0);
        for (std::size_t k = 0; k < node.rows.size(); ++k)
            node.for_labels(k, [&](std::uint32_t l) {
                ++begin[labels.of[l] + 1];
                room[labels.of[l] + 1] += std::ssize(node.features(k));
            });
        for (std::size_t c = 0; c < n_classes; ++c) {
            begin[c + 1] += begin[c];
            room[c + 1] += room[c];
        }
        std::vector<std::int32_t> row(static_cast<std::size_t>(begin.back()));
        std::vector<std::int64_t> next(begin.begin(), begin.end() - 1);
        for (std::size_t k = 0; k < node.rows.size(); ++k)
            node.for_labels(k, [&](std::uint32_t l) { row[next[labels.of[l]]++] = static_cast<std::int32_t>(k); });
        const double total = std::accumulate(node.importance.begin(), node.importance.end(), 0.0);
        X.begin.assign(room.begin(), room.end() - 1);
        X.end = X.begin;
        X.cells = std::make_unique_for_overwrite<SplitCell[]>(static_cast<std::size_t>(room.back()));
        // Chunks of classes side by side, each with sums of its own.
        const std::size_t n_chunks = n_threads > 1 ? std::min<std::size_t>(n_classes, 64) : 1;
        std::vector<std::vector<float>> own(usable_threads(n_threads, n_chunks));
        parallel_for(n_chunks, n_threads, [&](std::size_t chunk, int worker) {
            std::vector<float>& sum = n_chunks > 1 ? own[worker] : sums;
            if (sum.size() < dimension()) sum.resize(dimension(), 0.0f);
            for (std::size_t c = n_classes * chunk / n_chunks; c < n_classes * (chunk + 1) / n_chunks; ++c) {
                double mass = 0;
                SplitCell* const first = X.cells.get() + X.begin[c];
                SplitCell* last = first;
                for (std::int64_t at = begin[c]; at < begin[c + 1]; ++at) {
                    const auto k = static_cast<std::size_t>(row[at]);
                    mass += node.importance[k];
                    for (const Entry& e : node.features(k)) {
                        const auto f = static_cast<std::uint32_t>(features.of[e.feature]);
                        const auto value = static_cast<float>(node.importance[k] * e.value);
                        // A sum that was zero again is listed twice; there is room for every entry.
                        if (sum[f] == 0.0f && value != 0.0f) *last++ = {f, 0.0f};
                        sum[f] += value;
                    }
                }
                const double scale = mass > 0 ? 1.0 / std::sqrt(squares_frequency ? total : mass) : 0.0;
                SplitCell* kept = first;
                for (const SplitCell* cell = first; cell < last; ++cell) {
                    float& s = sum[cell->at];
                    if (s != 0.0f) *kept++ = {cell->at, static_cast<float>(s * scale)};
                    s = 0.0f;
                }
                X.end[c] = kept - X.cells.get();
            }
        });
    }

    void scale_rows(const SplitRows& node, const LocalNumbers& features, const LocalNumbers& labels) {
        diagonal.assign(labels.known.size(), 0.0f);
        std::vector<double> mass(labels.known.size(), 0.0);
        const std::size_t n = node.rows.size();
        std::int64_t n_entries = 0, n_given = 0;
        for (std::size_t k = 0; k < n; ++k) {
            n_entries += std::ssize(node.features(k));
            node.for_labels(k, [&](std::uint32_t) { ++n_given; });
        }
        X.reserve(n, n_entries);
        Y.reserve(n, n_given);
        std::int64_t x = 0, y = 0;
        for (std::size_t k = 0; k < n; ++k) {
            const auto root = static_cast<float>(std::sqrt(node.importance[k]));
            X.begin.push_back(x);
            Y.begin.push_back(y);
            node.for_labels(k, [&](std::uint32_t l) {
                Y.cells[y++] = {static_cast<std::uint32_t>(labels.of[l]), root};
                mass[labels.of[l]] += node.importance[k];
            });
            // A row without labels has no part in the labels' space.
            if (y > Y.begin[k])
                for (const Entry& e : node.features(k))
                    X.cells[x++] = {static_cast<std::uint32_t>(features.of[e.feature]), root * e.value};
            X.end.push_back(x);
            Y.end.push_back(y);
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
