/// Two sides of a node such that each side's own ranking of labels serves its rows well: FastXML's nDCG objective.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "base/parallel.hpp"

namespace ramify {

/// Labels of all rows, with what the objective needs of them.
struct RankedLabels {
    std::span<const std::int64_t> begin;
    std::span<const std::int32_t> label;
    std::span<const float> gain;  ///< what a label counts in the nDCG; empty: one for each
    std::vector<double> share;    ///< per row, its weight divided by its best possible DCG

    RankedLabels(std::span<const std::int64_t> begin_, std::span<const std::int32_t> label_,
                 std::span<const float> gain_, std::span<const float> row_weight)
        : begin(begin_), label(label_), gain(gain_), share(begin_.size() - 1, 0.0) {
        std::vector<double> ideal{0.0};
        for (std::size_t i = 0; i < share.size(); ++i) {
            const auto n = static_cast<std::size_t>(begin[i + 1] - begin[i]);
            while (ideal.size() <= n) ideal.push_back(ideal.back() + discount(ideal.size()));
            // Rounded, so that sums of shares are exact in any order: rows in another order, or one given twice instead
            // of a weight of two, lead to the same ranking, and rows that leave a side leave nothing behind.
            if (n > 0) share[i] = rounded(rounded(1 / ideal[n]) * (row_weight.empty() ? 1.0 : row_weight[i]));
        }
    }

    /// What the label at this rank (from 1) adds to the DCG.
    static double discount(std::size_t rank) { return 1 / std::log2(static_cast<double>(rank) + 1); }

    std::span<const std::int32_t> of(std::int64_t row) const {
        return label.subspan(begin[row], begin[row + 1] - begin[row]);
    }
    double gain_of(std::int32_t l) const { return gain.empty() ? 1.0 : gain[l]; }

private:
    static double rounded(double x) { return std::max(1.0, std::round(x * 1048576.0)) / 1048576.0; }
};

/// Alternates between the best rankings for the sides and the best side for each row, until no row moves.
class RankingSplit {
public:
    explicit RankingSplit(std::size_t n_labels) : sums_(n_labels), value_(n_labels), is_listed_(n_labels, 0) {}

    /// `side` holds 0 or 1 for each of the rows, at first a random one; `objectives`, if there, gets the objective of
    /// each round. A row that both sides serve equally well, as one without labels, stays where it is.
    void run(const RankedLabels& labels, std::span<const std::int32_t> rows, std::span<std::int8_t> side,
             int max_iterations, std::vector<double>* objectives = nullptr, Watch* watch = nullptr) {
        list(labels, rows);
        for (std::size_t k = 0; k < rows.size(); ++k) add(labels, rows[k], side[k], 1.0);
        for (int iteration = 0; iteration < max_iterations; ++iteration) {
            if (watch && watch->should_stop()) break;
            const double objective = rank(labels, 0) + rank(labels, 1);
            if (objectives) objectives->push_back(objective);
            bool has_moved = false;
            for (std::size_t k = 0; k < rows.size(); ++k) {
                double difference = 0;
                for (std::int32_t l : labels.of(rows[k])) difference += value_[l].of[1] - value_[l].of[0];
                if (std::abs(difference) <= tie) continue;
                const std::int8_t better = difference > 0;
                if (better == side[k]) continue;
                add(labels, rows[k], side[k], -1.0);
                add(labels, rows[k], better, 1.0);
                side[k] = better;
                has_moved = true;
            }
            if (!has_moved) break;
        }
        for (std::int32_t l : listed_) is_listed_[l] = 0;
    }

private:
    static constexpr double tie = 1e-9;  ///< differences of rounding only
    struct Pair {
        double of[2] = {0, 0};
    };

    void list(const RankedLabels& labels, std::span<const std::int32_t> rows) {
        listed_.clear();
        for (std::int32_t row : rows)
            for (std::int32_t l : labels.of(row))
                if (!is_listed_[l]) {
                    is_listed_[l] = 1;
                    sums_[l] = value_[l] = Pair{};
                    listed_.push_back(l);
                }
    }

    void add(const RankedLabels& labels, std::int32_t row, int side, double sign) {
        const double share = sign * labels.share[row];
        for (std::int32_t l : labels.of(row)) sums_[l].of[side] += share;
    }

    /// Ranks the node's labels by their gain on a side, and labels that no row there has by their gain on the other
    /// side. Returns the ranking's value.
    double rank(const RankedLabels& labels, int side) {
        order_.clear();
        for (std::int32_t l : listed_) {
            const double gain = labels.gain_of(l);
            order_.push_back({sums_[l].of[side] * gain, sums_[l].of[1 - side] * gain, l});
        }
        std::ranges::sort(order_, [](const Worth& a, const Worth& b) {
            if (a.here != b.here) return a.here > b.here;
            return a.there != b.there ? a.there > b.there : a.label < b.label;
        });
        while (discount_.size() <= order_.size()) discount_.push_back(RankedLabels::discount(discount_.size() + 1));
        double total = 0;
        for (std::size_t k = 0; k < order_.size(); ++k) {
            value_[order_[k].label].of[side] = discount_[k] * labels.gain_of(order_[k].label);
            total += order_[k].here * discount_[k];
        }
        return total;
    }

    struct Worth {
        double here, there;
        std::int32_t label;
    };
    std::vector<Pair> sums_, value_;  // per label
    std::vector<std::uint8_t> is_listed_;
    std::vector<std::int32_t> listed_;
    std::vector<Worth> order_;
    std::vector<double> discount_;
};

}  // namespace ramify
