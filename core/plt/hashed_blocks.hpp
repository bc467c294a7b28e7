/// The memory-bounded option: one table of weights that all nodes share by feature hashing (Jasinska et al.,
/// "Extreme F-Measure Maximization using Sparse Probability Estimates", section 5).
///
/// A weight is found by hashing (feature, node, tile), so the table's size is fixed before training. All nodes are then
/// one problem in the hashed space, and dual coordinate descent, or FOBOS as in the paper, visits them an epoch at a
/// time.
#pragma once

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <span>
#include <vector>

#include "base/hashing.hpp"
#include "base/parallel.hpp"
#include "base/sparse_rows.hpp"
#include "kernels/kernels.hpp"
#include "plt/frozen_blocks.hpp"
#include "plt/held_out.hpp"
#include "plt/node_rows.hpp"
#include "trees/label_tree.hpp"

namespace ramify {

class HashedTrainer {
public:
    HashedTrainer(const PreparedRows& X, const TreeView& tree, const NodeRows& rows, std::span<const float> row_weight,
                  std::uint64_t seed)
        : X_(X), rows_(rows), row_weight_(row_weight), n_nodes_(tree.n_nodes()), seed_(seed) {
        for (int v = 0; v <= tree.n_nodes(); ++v)
            if (rows.n_rows(v) > 0) add_node(v, v == tree.n_nodes() ? 1 : tree.n_children[v]);
    }

    /// The panels name the columns; their weights are all in out.table, of 2^bits floats.
    void train(const SolverSettings& solver, int bits, BlockStorage& out, Progress* progress) {
        out.table.assign(std::size_t{1} << bits, 0.0f);
        if (progress) progress->total = tiles_.size() * solver.max_epochs;
        for (int epoch = 0; epoch < solver.max_epochs; ++epoch)
            for (Tile& tile : tiles_) {
                if (solver.learning_rate > 0)
                    descend(tile, solver, epoch, out.table);
                else
                    solve(tile, solver, epoch, out.table);
                if (poll_interrupt) poll_interrupt();
                if (progress) ++progress->done;
            }
        for (const Node& node : nodes_)
            // A gate that never opened keeps its panel, without columns: see BlockTrainer.
            for (std::size_t first = 0; first < std::max<std::size_t>(node.child.size(), node.node == n_nodes_);
                 first += max_panel_columns) {
                const std::size_t end = std::min(node.child.size(), first + max_panel_columns);
                PanelRecord record{};
                record.node = node.node;
                record.first_column = static_cast<std::int64_t>(out.column_child.size());
                record.n_columns = static_cast<std::int64_t>(end - first);
                record.bucket_bits = hashed_index;
                record.row_begin = static_cast<std::int64_t>(first / max_tile_columns);
                out.column_child.insert(out.column_child.end(), node.child.begin() + first, node.child.begin() + end);
                for (std::size_t c = first; c < end; ++c)
                    out.column_scale.push_back(tiles_[node.first_tile + c / max_tile_columns].scale);
                out.column_rate.insert(out.column_rate.end(), node.rate.begin() + first, node.rate.begin() + end);
                const auto* fields = reinterpret_cast<const std::int64_t*>(&record);
                out.panels.insert(out.panels.end(), fields, fields + panel_fields);
            }
    }

private:
    struct Node {
        int node;
        std::vector<std::int32_t> child, column_of_child;
        std::vector<float> rate;  ///< of each column, see NodeProblem
        std::size_t first_tile = 0;
    };
    struct Tile {
        std::size_t node;  ///< into nodes_
        int tile, n_columns;
        std::vector<std::uint32_t> positive;
        std::vector<float> dual;
        std::vector<std::uint8_t> active;
        std::vector<int> order;
        float scale = 1.0f;           ///< FOBOS: weights are this times what the table holds
        std::uint64_t n_updates = 0;  ///< FOBOS: examples seen
    };

    void add_node(int v, int n_children) {
        Node node{v, {}, std::vector<std::int32_t>(n_children, -1), {}};
        std::vector<std::int64_t> count(n_children, 0);
        const std::int64_t first = rows_.begin[v], end = rows_.begin[v + 1];
        std::vector<double> positive(n_children, 0.0);
        double total = 0;
        for (std::int64_t e = first; e < end; ++e) {
            const double weight = row_weight_.empty() ? 1.0 : row_weight_[rows_.row[e]];
            total += weight;
            for (std::int64_t q = rows_.positive_begin[e]; q < rows_.positive_begin[e + 1]; ++q) {
                ++count[rows_.positive[q]];
                positive[rows_.positive[q]] += weight;
            }
        }
        for (int c = 0; c < n_children; ++c)
            if (count[c] > 0) node.child.push_back(c);
        std::ranges::stable_sort(node.child, std::greater{}, [&](int c) { return count[c]; });
        for (std::size_t k = 0; k < node.child.size(); ++k)
            node.column_of_child[node.child[k]] = static_cast<std::int32_t>(k);
        for (std::int32_t c : node.child) node.rate.push_back(log_rate(positive[c], total));
        node.first_tile = tiles_.size();
        const int n_columns = static_cast<int>(node.child.size());
        for (int from = 0; from < n_columns; from += max_tile_columns) {
            Tile tile{
                nodes_.size(), from / max_tile_columns, std::min(max_tile_columns, n_columns - from), {}, {}, {}, {}};
            for (std::int64_t e = first; e < end; ++e) {
                std::uint32_t bits = 0;
                for (std::int64_t q = rows_.positive_begin[e]; q < rows_.positive_begin[e + 1]; ++q) {
                    const int column = node.column_of_child[rows_.positive[q]] - from;
                    if (column >= 0 && column < tile.n_columns) bits |= 1u << column;
                }
                tile.positive.push_back(bits);
            }
            tile.dual.assign((end - first) * hashed_stride(tile.n_columns), 0.0f);
            tile.active.resize(end - first);
            tile.order.resize(end - first);
            tiles_.push_back(std::move(tile));
        }
        nodes_.push_back(std::move(node));
    }

    std::uint64_t seed_of(const Tile& tile) const {
        return mix(seed_ * 31 + mix(static_cast<std::uint64_t>(nodes_[tile.node].node) * 4096 + tile.tile));
    }

    /// One epoch of FOBOS with the logistic loss (the paper's appendix B): a gradient step, then the regulariser
    /// shrinks the weights of the tile, which is what its scale does. Rows come in a new order each epoch.
    void descend(Tile& tile, const SolverSettings& solver, int epoch, std::vector<float>& table) {
        const int node = nodes_[tile.node].node, stride = hashed_stride(tile.n_columns);
        const HashedTile hashed(node, tile.tile, stride, table.size());
        const OnlineKernels& k = kernels().online;
        alignas(64) float sign[max_tile_columns], score[max_tile_columns];
        std::iota(tile.order.begin(), tile.order.end(), 0);
        shuffle(tile.order, seed_of(tile) + static_cast<std::uint64_t>(epoch));
        for (const int e : tile.order) {
            const std::int32_t i = rows_.row[rows_.begin[node] + e];
            entries_.clear();
            append_hashed(i, hashed);
            slot_.clear(), value_.clear();
            for (const Entry& entry : entries_) {
                slot_.push_back(table.data() + static_cast<std::size_t>(entry.feature) * stride);
                value_.push_back(entry.value);
            }
            for (int c = 0; c < stride; ++c)
                sign[c] = c >= tile.n_columns ? 0.0f : tile.positive[e] >> c & 1u ? 1.0f : -1.0f;
            const int n = static_cast<int>(slot_.size());
            k.score(slot_.data(), value_.data(), n, stride, score);
            k.gradient(sign, tile.scale, row_weight_.empty() ? 1.0f : row_weight_[i], stride, score);
            const double decay = static_cast<double>(solver.learning_rate) * solver.l2;
            const auto rate =
                static_cast<float>(solver.learning_rate / (1.0 + decay * static_cast<double>(tile.n_updates++)));
            k.descend(slot_.data(), value_.data(), n, stride, score, rate / tile.scale);
            tile.scale /= 1.0f + rate * solver.l2;
        }
    }

    /// One epoch of one tile, on rows whose features are replaced by their slots.
    void solve(Tile& tile, const SolverSettings& solver, int epoch, std::vector<float>& table) {
        const int node = nodes_[tile.node].node, stride = hashed_stride(tile.n_columns);
        const HashedTile hashed(node, tile.tile, stride, table.size());
        const std::int64_t first = rows_.begin[node], n_rows = rows_.n_rows(node);
        entries_.clear();
        std::vector<std::size_t> start;
        solved_.clear();
        for (std::int64_t e = first; e < first + n_rows; ++e) {
            const std::int32_t i = rows_.row[e];
            start.push_back(entries_.size());
            append_hashed(i, hashed);
            float squared = 0;
            for (std::size_t k = start.back(); k < entries_.size(); ++k)
                squared += entries_[k].value * entries_[k].value;
            solved_.push_back({nullptr, static_cast<int>(entries_.size() - start.back()), squared,
                               row_weight_.empty() ? 1.0f : row_weight_[i],
                               tile.positive[static_cast<std::size_t>(e - first)]});
        }
        for (std::size_t k = 0; k < start.size(); ++k) solved_[k].entries = entries_.data() + start[k];
        TileProblem problem{};
        problem.n_rows = static_cast<int>(n_rows);
        problem.n_columns = tile.n_columns;
        problem.stride = stride;
        problem.rows = solved_.data();
        problem.weights = table.data();
        problem.dual = tile.dual.data();
        problem.active = tile.active.data();
        problem.order = tile.order.data();
        problem.first_epoch = epoch;
        problem.end_epoch = epoch + 1;
        problem.seed = seed_of(tile);
        kernels().solve_tile(problem, solver);
    }

    /// Features that share a slot are one feature in the hashed space: their values add up, and with them the row's
    /// length, by which steps are measured. Counted separately they would make steps too long, and weights would
    /// diverge.
    void append_hashed(std::int32_t i, const HashedTile& hashed) {
        const std::size_t start = entries_.size();
        if (place_.size() < hashed.n_slots) place_.resize(hashed.n_slots, 0);
        for (int k = 0; k < X_.length(i); ++k) {
            const std::uint32_t slot = hashed.slot(X_.row(i)[k].feature);
            const std::size_t at = start + place_[slot];  // left by an earlier row, unless that entry has this slot
            if (at < entries_.size() && entries_[at].feature == slot) {
                entries_[at].value += X_.row(i)[k].value;
            } else {
                place_[slot] = static_cast<std::uint32_t>(entries_.size() - start);
                entries_.push_back({slot, X_.row(i)[k].value});
            }
        }
    }

    const PreparedRows& X_;
    const NodeRows& rows_;
    std::span<const float> row_weight_;
    int n_nodes_;
    std::uint64_t seed_;
    std::vector<Node> nodes_;
    std::vector<Tile> tiles_;
    std::vector<Entry> entries_;
    std::vector<std::uint32_t> place_;  ///< per slot: where in the row that slot was put last
    std::vector<TileRow> solved_;
    std::vector<float*> slot_;  ///< of one row, for FOBOS
    std::vector<float> value_;
};

}  // namespace ramify
