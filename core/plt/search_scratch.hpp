/// What searches of label trees write to, kept from row to row: of one thread, and of the rows that it searches side by
/// side.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "base/sparse_rows.hpp"
#include "plt/frozen_blocks.hpp"
#include "plt/opened_blocks.hpp"
#include "plt/tree_top.hpp"
#include "trees/best_first.hpp"

namespace ramify {

/// Scratch space of one thread.
struct SearchScratch {
    ScoreScratch score;
    std::vector<Entry> x;
    std::vector<std::pair<float, std::int32_t>> open, next;  ///< of a beam, or of a round
    BestFirst best;
    std::vector<Found> found;
    std::vector<std::int32_t> position;   ///< of the children that matter
    std::vector<float> product;           ///< their probabilities
    std::vector<float> probability;       ///< per node, for named labels
    std::vector<std::int32_t> nodes;      ///< opened for named labels
    std::vector<std::uint8_t> is_marked;  ///< per node; 2: it belongs to the top
    TreeTop top;
    std::vector<float> probability_of_root;  ///< per row of a batch whose tops are opened
    std::vector<TopNode> top_nodes;          ///< in the order in which they were opened
    float given_up = 0;                      ///< see BestFirst
    std::int64_t n_inner_products = 0;  ///< of rows with a child's weights, counted as in Jasinska et al. 2016, table 2
};

/// The rows that one thread searches side by side.
struct BatchScratch {
    /// What a row waits for. Sorted by node, then by row.
    struct Visit {
        std::int32_t node, row;
        float probability;
        friend bool operator<(const Visit& a, const Visit& b) {
            return a.node != b.node ? a.node < b.node : a.row < b.row;
        }
    };

    std::vector<Entry> entries;      ///< of all rows
    std::vector<std::size_t> begin;  ///< per row, and one more
    std::vector<BestFirst> search;   ///< per row
    std::vector<Visit> visits, next;
    struct TopVisit {
        TopNode at;
        std::int32_t row;
        friend bool operator<(const TopVisit& a, const TopVisit& b) {
            return a.at.node != b.at.node ? a.at < b.at : a.row < b.row;
        }
    };
    std::vector<TopVisit> top_visits, next_top;
    std::vector<TreeTop> top;            ///< of some rows
    std::span<const double> top_sum;     ///< per row, of the whole tree where this is a part of it; empty: as found
    std::vector<std::uint8_t> is_asked;  ///< per row: whether it opened nodes in this round
    std::vector<OpenedBlocks> opened;    ///< per row, if they are wanted
    bool keeps_opened = false;

    void clear() {
        entries.clear();
        begin.assign(1, 0);
    }
    std::size_t n_rows() const { return begin.size() - 1; }
    std::span<const Entry> row(std::size_t i) const {
        return std::span(entries).subspan(begin[i], begin[i + 1] - begin[i]);
    }
};

}  // namespace ramify
