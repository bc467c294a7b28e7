/// Online F-measure optimisation: a threshold is half the F measure so far (Jasinska et al., "Extreme F-Measure
/// Maximization using Sparse Probability Estimates", algorithm 2).
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>

#include "base/sparse_rows.hpp"

namespace ramify {

/// What OFO keeps of each label: a true positives, b positives plus predicted positives, both begun with given values.
struct OnlineF {
    std::span<double> a, b;                  ///< per label, or one of each for all labels together
    std::span<const float> bound;            ///< least threshold of each, fixed beforehand; empty: see `positives`
    std::span<std::int64_t> positives = {};  ///< of each, so far: the bound follows from them (causal); empty: no bound
    std::int64_t n_seen = 0;                 ///< rows so far

    /// The threshold as it stands; single precision, as that is how it is kept and compared.
    float threshold(std::size_t slot) const {
        const auto half_f = static_cast<float>(a[slot] / b[slot]);
        if (!bound.empty()) return std::max(half_f, bound[slot]);
        if (positives.empty() || n_seen == 0) return half_f;
        const auto n_positive = static_cast<double>(positives[slot]);
        return std::max(half_f, static_cast<float>(n_positive / (n_positive + static_cast<double>(n_seen))));
    }

    /// One row after the other: decide with the thresholds as they stand, then update those of labels true or decided
    /// for.
    void pass(const CsrView& P, std::span<const std::int64_t> true_indptr, std::span<const std::int32_t> true_label) {
        const bool is_common = a.size() == 1 && positives.empty();  // a single label is nothing special
        for (std::int64_t i = 0; i < P.n_rows(); ++i) {
            std::int64_t p = P.indptr[i], y = true_indptr[i];
            const std::int64_t p_end = P.indptr[i + 1], y_end = true_indptr[i + 1];
            // Labels that share a threshold are all decided for before it moves.
            const float common = is_common ? threshold(0) : 0.0f;
            double n_hits = 0, n_touched = 0;
            while (p < p_end || y < y_end) {
                const std::int32_t label =
                    y == y_end || (p < p_end && P.indices[p] < true_label[y]) ? P.indices[p] : true_label[y];
                const bool is_true = y < y_end && true_label[y] == label;
                const bool is_stored = p < p_end && P.indices[p] == label;
                const bool is_predicted =
                    is_stored && P.data[p] >= (is_common ? common : threshold(static_cast<std::size_t>(label)));
                p += is_stored;
                y += is_true;
                if (is_common) {
                    n_hits += is_true && is_predicted;
                    n_touched += is_true + is_predicted;
                    continue;
                }
                a[label] += is_true && is_predicted;
                b[label] += is_true + is_predicted;
                // Moved only after the label was decided for, and a label comes once a row: the bound stays causal.
                if (!positives.empty()) positives[label] += is_true;
            }
            if (is_common) {
                a[0] += n_hits;
                b[0] += n_touched;
            }
            ++n_seen;
        }
    }
};

}  // namespace ramify
