/// The direction that splits a node: the top eigenvector orthogonal to the balance direction, by subspace iteration.
///
/// One direction is power iteration; several at once are randomised PCA with power iterations (Halko et al. 2011).
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "base/hashing.hpp"
#include "spectral/problem.hpp"

namespace ramify {

struct EigenSettings {
    bool is_block = true;  ///< several directions at once
    int max_iterations = 20;
    double tolerance = 1e-3;  ///< stop when the eigenvalue grows by less than this share of it; 0: never
    int cg_iterations = 8;
    bool squares_frequency = false;  ///< equation 1 instead of equation 2, where no row has two labels
};

struct TopDirection {
    std::vector<float> w;  ///< by local feature, unit length; empty if nothing is left beside the balance direction
    double value = 0;      ///< its eigenvalue
};

/// Eigenvalues (falling) and eigenvectors (columns) of a small symmetric matrix by Jacobi's rotations.
template <int B>
void small_eigen(double (&A)[B][B], double (&V)[B][B], double (&value)[B]) {
    for (int i = 0; i < B; ++i)
        for (int j = 0; j < B; ++j) V[i][j] = i == j;
    for (int sweep = 0; sweep < 60; ++sweep) {
        double off = 0, all = 0;
        for (int i = 0; i < B; ++i)
            for (int j = 0; j < B; ++j) (i == j ? all : off) += A[i][j] * A[i][j];
        if (!(off > 1e-28 * all)) break;
        for (int p = 0; p < B; ++p)
            for (int q = p + 1; q < B; ++q) {
                if (A[p][q] == 0) continue;
                const double theta = (A[q][q] - A[p][p]) / (2 * A[p][q]);
                const double t = (theta >= 0 ? 1.0 : -1.0) / (std::abs(theta) + std::sqrt(theta * theta + 1));
                const double c = 1 / std::sqrt(t * t + 1), s = t * c;
                for (int k = 0; k < B; ++k) {
                    const double a = A[k][p], b = A[k][q];
                    A[k][p] = c * a - s * b;
                    A[k][q] = s * a + c * b;
                }
                for (int k = 0; k < B; ++k) {
                    const double a = A[p][k], b = A[q][k];
                    A[p][k] = c * a - s * b;
                    A[q][k] = s * a + c * b;
                }
                for (int k = 0; k < B; ++k) {
                    const double a = V[k][p], b = V[k][q];
                    V[k][p] = c * a - s * b;
                    V[k][q] = s * a + c * b;
                }
            }
    }
    int order[B];
    for (int i = 0; i < B; ++i) order[i] = i;
    std::sort(order, order + B, [&](int a, int b) { return A[a][a] > A[b][b]; });
    double sorted[B][B];
    for (int j = 0; j < B; ++j) {
        value[j] = A[order[j]][order[j]];
        for (int i = 0; i < B; ++i) sorted[i][j] = V[i][order[j]];
    }
    std::copy(&sorted[0][0], &sorted[0][0] + B * B, &V[0][0]);
}

template <int B>
class SubspaceIteration {
public:
    SubspaceIteration(const SplitProblem& problem, const EigenSettings& settings, int n_threads)
        : problem_(problem),
          settings_(settings),
          n_threads_(n_threads),
          matrix_(problem, settings.cg_iterations, n_threads) {}

    TopDirection run(std::uint64_t seed) {
        const std::size_t d = problem_.dimension();
        // From the feature's own number: the start does not depend on what else is in the node.
        W_.resize(d * B);
        for (std::size_t f = 0; f < d; ++f)
            for (int j = 0; j < B; ++j)
                W_[f * B + j] = static_cast<float>(
                    static_cast<double>(mix(seed + mix(problem_.feature[f] * std::uint64_t{B} + j)) >> 11) * 0x1p-52 -
                    1.0);
        project(W_);
        if (!orthonormalise(W_)) return {};
        double last = 0, vectors[B][B], values[B];
        for (int iteration = 0;; ++iteration) {
            matrix_.apply(W_, AW_);
            project(AW_);
            gram(W_, AW_);
            small_eigen<B>(G_, vectors, values);
            // Without a tolerance all steps are taken: what the eigenvalue gains at last is less than it is rounded.
            const bool is_close = settings_.tolerance > 0 && !(values[0] - last > settings_.tolerance * values[0]);
            const bool is_last = is_close || iteration + 1 >= settings_.max_iterations;
            last = values[0];
            if (is_last) break;
            W_.swap(AW_);
            if (!orthonormalise(W_)) return {};
        }
        TopDirection top;
        top.value = values[0];
        if (!(top.value > 0)) return {};
        top.w.resize(d);
        double length = 0;
        std::size_t largest = 0;
        for (std::size_t f = 0; f < d; ++f) {
            double sum = 0;
            for (int j = 0; j < B; ++j) sum += vectors[j][0] * W_[f * B + j];
            top.w[f] = static_cast<float>(sum);
            length += sum * sum;
            if (std::abs(top.w[f]) > std::abs(top.w[largest])) largest = f;
        }
        if (!(length > 0)) return {};
        // Of the two signs the one that makes the largest weight positive.
        const double scale = (top.w[largest] < 0 ? -1.0 : 1.0) / std::sqrt(length);
        for (float& v : top.w) v = static_cast<float>(v * scale);
        return top;
    }

private:
    /// Runs work(first, last, sums) over chunks of the features and adds up the sums of the chunks, in order: the
    /// number of threads changes no bit.
    template <int N, class Work>
    void sum_over_features(double (&sum)[N], Work&& work) const {
        constexpr std::int64_t chunk = 8192;
        const auto d = static_cast<std::int64_t>(problem_.dimension());
        std::vector<double> part(n_chunks(d, chunk) * N, 0.0);
        parallel_chunks(d, chunk, n_threads_, [&](std::int64_t first, std::int64_t last, int) {
            work(static_cast<std::size_t>(first), static_cast<std::size_t>(last), part.data() + first / chunk * N);
        });
        for (double& s : sum) s = 0;
        for (std::size_t k = 0; k < part.size(); ++k) sum[k % N] += part[k];
    }

    /// Takes the balance direction out of every column.
    void project(std::vector<float>& W) const {
        double along[B];
        sum_over_features(along, [&](std::size_t first, std::size_t last, double* sum) {
            for (std::size_t f = first; f < last; ++f)
                for (int j = 0; j < B; ++j) sum[j] += problem_.balance[f] * W[f * B + j];
        });
        for_features([&](std::size_t f) {
            for (int j = 0; j < B; ++j)
                W[f * B + j] = static_cast<float>(W[f * B + j] - along[j] * problem_.balance[f]);
        });
    }

    template <class Work>
    void for_features(Work&& work) const {
        const auto d = static_cast<std::int64_t>(problem_.dimension());
        parallel_chunks(d, 8192, n_threads_, [&](std::int64_t first, std::int64_t last, int) {
            for (std::int64_t f = first; f < last; ++f) work(static_cast<std::size_t>(f));
        });
    }

    /// G = A^T C, made symmetric. Some rows are added up in floats, side by side, before they go into the sum.
    void gram(const std::vector<float>& A, const std::vector<float>& C) {
        constexpr std::size_t n_together = 32;
        double sum[B * B];
        sum_over_features(sum, [&](std::size_t from, std::size_t to, double* whole) {
            for (std::size_t first = from; first < to; first += n_together) {
                float part[B][B] = {};
                for (std::size_t f = first; f < std::min(to, first + n_together); ++f)
                    for (int i = 0; i < B; ++i)
                        for (int j = 0; j < B; ++j) part[i][j] += A[f * B + i] * C[f * B + j];
                for (int i = 0; i < B; ++i)
                    for (int j = 0; j < B; ++j) whole[i * B + j] += part[i][j];
            }
        });
        for (int i = 0; i < B; ++i)
            for (int j = 0; j < B; ++j) G_[i][j] = (sum[i * B + j] + sum[j * B + i]) / 2;
    }

    /// Columns of unit length, orthogonal to each other and the balance direction; what depends on the others becomes
    /// zero. False: all did.
    bool orthonormalise(std::vector<float>& W) {
        double vectors[B][B], values[B];
        // Twice: what was nearly dependent is orthogonal to rounding only after the second time.
        for (int round = 0; round < 2; ++round) {
            gram(W, W);
            small_eigen<B>(G_, vectors, values);
            if (!(values[0] > 1e-300) || !std::isfinite(values[0])) return false;
            float change[B][B];
            for (int j = 0; j < B; ++j)
                for (int i = 0; i < B; ++i)
                    change[i][j] =
                        values[j] > 1e-11 * values[0] ? static_cast<float>(vectors[i][j] / std::sqrt(values[j])) : 0.0f;
            for_features([&](std::size_t f) {
                float row[B] = {};
                for (int i = 0; i < B; ++i)
                    for (int j = 0; j < B; ++j) row[j] += W[f * B + i] * change[i][j];
                for (int j = 0; j < B; ++j) W[f * B + j] = row[j];
            });
            if (round == 0) project(W);
        }
        return true;
    }

    const SplitProblem& problem_;
    const EigenSettings& settings_;
    const int n_threads_;
    SplitMatrix<B> matrix_;
    std::vector<float> W_, AW_;
    double G_[B][B];
};

/// Directions that are iterated together.
inline constexpr int eigen_block = 8;

inline TopDirection top_direction(const SplitProblem& problem, const EigenSettings& settings, std::uint64_t seed,
                                  int n_threads) {
    if (problem.dimension() == 0) return {};
    if (settings.is_block) return SubspaceIteration<eigen_block>(problem, settings, n_threads).run(seed);
    return SubspaceIteration<1>(problem, settings, n_threads).run(seed);
}

/// The weighted median: above the value at which half the importance is reached, half-way to the next one, so that no
/// row lies on the boundary, where rounding would decide. If half is reached at the largest value only, it is below
/// that: both sides have rows unless all values are the same.
inline double weighted_median(std::span<const double> z, std::span<const double> importance) {
    struct Value {
        double z, importance;
    };
    std::vector<Value> values(z.size());
    for (std::size_t k = 0; k < z.size(); ++k) values[k] = {z[k], importance[k]};
    std::ranges::sort(values, std::less<>(), &Value::z);
    double total = 0, reached = 0;
    for (const Value& value : values) total += value.importance;
    double below = values.front().z;  // the last value with larger ones after it
    for (std::size_t at = 0; at + 1 < values.size(); ++at) {
        const double value = values[at].z, next = values[at + 1].z;
        reached += values[at].importance;
        if (next == value) continue;
        below = value + (next - value) / 2;
        if (reached >= total / 2 * (1 - 1e-9)) break;
    }
    return below;
}

}  // namespace ramify
