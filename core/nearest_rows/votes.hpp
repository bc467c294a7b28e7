/// The vote of the nearest rows: probabilities of their labels.
#pragma once

#include <cmath>
#include <cstdint>
#include <vector>

#include "base/label_query.hpp"
#include "nearest_rows/row_index.hpp"

namespace ramify {

/// Space for a vote: arrays as long as there are labels, zero between two votes.
struct VoteScratch : NearestScratch {
    std::vector<double> total;  ///< by label
    std::vector<std::uint8_t> is_voted;
    std::vector<std::int32_t> voted;
    std::vector<LabelProbability> found;
    bool is_empty = false;  ///< no row resembles the one in question
};

/// Rows vote with their weight times similarity ** power.
struct NearestVote {
    const NearestRows& rows;
    double k;
    double power;

    void resize(VoteScratch& s) const {
        rows.resize(s);
        s.total.resize(static_cast<std::size_t>(rows.n_labels), 0.0);
        s.is_voted.resize(static_cast<std::size_t>(rows.n_labels), 0);
    }

    double vote_of(const Neighbour& n) const { return n.weight * std::pow(static_cast<double>(n.similarity), power); }

    double sum_of_votes(const std::vector<Neighbour>& nearest) const {
        double sum = 0;
        for (const Neighbour& n : nearest) sum += vote_of(n);
        return sum;
    }

    /// Calls answer(number of the query) for each in turn, while its votes count.
    template <class Answer>
    void cast(std::span<const RowView> queries, VoteScratch& s, Answer&& answer) const {
        rows.find(queries, k, s, [&](std::size_t i) {
            count(s);
            answer(i);
            forget(s);
        });
    }

    /// Counts the votes of s.nearest, until `forget`.
    void count(VoteScratch& s) const {
        const double sum = sum_of_votes(s.nearest);
        s.is_empty = !(sum > 0);
        if (s.is_empty) return;
        for (const Neighbour& n : s.nearest) {
            const double share = vote_of(n) / sum;
            for (std::int64_t e = rows.label_begin[n.row]; e < rows.label_begin[n.row + 1]; ++e) {
                const std::int32_t l = rows.label[e];
                if (!s.is_voted[l]) {
                    s.is_voted[l] = 1;
                    s.voted.push_back(l);
                }
                s.total[l] += share;
            }
        }
    }

    /// A label's probability: its share of the votes, of all rows if there is none.
    float probability(std::int32_t l, const VoteScratch& s) const {
        return s.is_empty ? rows.frequency[l] : static_cast<float>(std::min(1.0, s.total[l]));
    }

    /// What the query asks for, best first, into s.found.
    void choose(const LabelQuery& query, VoteScratch& s) const {
        s.found.clear();
        auto consider = [&](std::int32_t l) {
            const float p = probability(l, s);
            if (p >= query.needed(l)) s.found.push_back({l, p});
        };
        if (s.is_empty)
            for (std::int32_t l = 0; l < rows.n_labels; ++l) consider(l);
        else
            for (std::int32_t l : s.voted) consider(l);
        query.choose(s.found, rows.n_labels, [&](std::int32_t l) { return s.is_empty || s.is_voted[l] != 0; });
    }

    static void forget(VoteScratch& s) {
        for (std::int32_t l : s.voted) {
            s.total[l] = 0;
            s.is_voted[l] = 0;
        }
        s.voted.clear();
    }
};

}  // namespace ramify
