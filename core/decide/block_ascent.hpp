/// Choosing k labels a row for a measure of all rows together: block coordinate ascent on expected counts.
///
/// A row is a block: with the other rows as they are, its best k labels are those of the largest gains.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "base/sparse_rows.hpp"

namespace ramify {

/// Of each label: what is expected of the rows decided so far.
struct ExpectedCounts {
    std::span<double> hits;       ///< true positives; for coverage the probability that every decision for it is wrong
    std::span<double> predicted;  ///< decisions for it
    std::span<const double> positive;  ///< positives among all rows
    double n_rows;
};

/// What a decision adds to a measure of the form sum over labels of value(hits, predicted, positive).
struct MacroF {
    static double value(const ExpectedCounts& c, std::size_t j, double hits, double predicted) {
        const double total = predicted + c.positive[j];
        return total > 0 ? 2 * hits / total : 0;
    }
};
struct MacroJaccard {
    static double value(const ExpectedCounts& c, std::size_t j, double hits, double predicted) {
        const double either = predicted + c.positive[j] - hits;
        return either > 0 ? hits / either : 0;
    }
};
struct MacroRecall {
    static double value(const ExpectedCounts& c, std::size_t j, double hits, double) {
        return c.positive[j] > 0 ? hits / c.positive[j] : 0;
    }
};
struct MacroBalancedAccuracy {
    static double value(const ExpectedCounts& c, std::size_t j, double hits, double predicted) {
        const double positive = c.positive[j], negative = c.n_rows - positive;
        const double recall = positive > 0 ? hits / positive : 0;
        const double specificity = negative > 0 ? (negative - (predicted - hits)) / negative : 0;
        return (recall + specificity) / 2;
    }
};

template <class Measure>
struct CountGain {
    static double gain(const ExpectedCounts& c, std::size_t j, double p) {
        return Measure::value(c, j, c.hits[j] + p, c.predicted[j] + 1) -
               Measure::value(c, j, c.hits[j], c.predicted[j]);
    }
    static void add(ExpectedCounts& c, std::size_t j, double p) {
        c.hits[j] += p;
        c.predicted[j] += 1;
    }
    static void remove(ExpectedCounts& c, std::size_t j, double p) {
        // Sums of floats do not come back to exactly what they were; below zero they must not go.
        c.hits[j] = std::max(0.0, c.hits[j] - p);
        c.predicted[j] -= 1;
    }
};

/// Labels for which at least one decision is right: the gain is the probability that this one is the first.
struct CoverageGain {
    static double wrong(double p) { return std::max(1 - p, 1e-9); }  // a certain one must be removable again
    static double gain(const ExpectedCounts& c, std::size_t j, double p) { return c.hits[j] * (1 - wrong(p)); }
    static void add(ExpectedCounts& c, std::size_t j, double p) {
        c.hits[j] *= wrong(p);
        c.predicted[j] += 1;
    }
    static void remove(ExpectedCounts& c, std::size_t j, double p) {
        c.hits[j] = std::min(1.0, c.hits[j] / wrong(p));
        c.predicted[j] -= 1;
    }
};

/// One pass over the rows in this order; `is_chosen` marks entries of P, at most k a row. The number of rows that
/// changed.
template <class Gain>
std::int64_t ascend(const CsrView& P, std::int64_t k, std::span<const std::int64_t> order, ExpectedCounts counts,
                    std::span<std::uint8_t> is_chosen) {
    std::vector<std::pair<double, std::int64_t>> gains;
    std::int64_t n_changed = 0;
    // The larger gain first, then the larger probability (rows of labels that gain nothing), then the lower label.
    auto better = [&](const auto& x, const auto& y) {
        if (x.first != y.first) return x.first > y.first;
        if (P.data[x.second] != P.data[y.second]) return P.data[x.second] > P.data[y.second];
        return x.second < y.second;
    };
    for (std::int64_t i : order) {
        const std::int64_t begin = P.indptr[i], end = P.indptr[i + 1];
        for (std::int64_t e = begin; e < end; ++e)
            if (is_chosen[e]) Gain::remove(counts, P.indices[e], P.data[e]);
        gains.clear();
        for (std::int64_t e = begin; e < end; ++e) gains.emplace_back(Gain::gain(counts, P.indices[e], P.data[e]), e);
        const auto n_taken = static_cast<std::size_t>(std::min(k, end - begin));
        if (n_taken < gains.size())
            std::nth_element(gains.begin(), gains.begin() + static_cast<std::ptrdiff_t>(n_taken), gains.end(), better);
        bool changes = false;
        for (std::size_t c = 0; c < n_taken; ++c) {
            const std::int64_t e = gains[c].second;
            changes = changes || !is_chosen[e];
            Gain::add(counts, P.indices[e], P.data[e]);
        }
        n_changed += changes;
        if (!changes) continue;
        std::fill(is_chosen.begin() + begin, is_chosen.begin() + end, std::uint8_t{0});
        for (std::size_t c = 0; c < n_taken; ++c) is_chosen[gains[c].second] = 1;
    }
    return n_changed;
}

}  // namespace ramify
