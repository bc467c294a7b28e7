/// Batch training: the children of each node solved together, straight into frozen panels.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <memory>
#include <numeric>
#include <span>
#include <vector>

#include "frozen_blocks.hpp"
#include "kernels.hpp"
#include "label_tree.hpp"
#include "node_rows.hpp"
#include "parallel.hpp"
#include "sparse_rows.hpp"

namespace ramify {

inline std::uint64_t mix(std::uint64_t z) {
    z = (z + 0x9e3779b97f4a7c15ull) * 0xbf58476d1ce4e5b9ull;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
    return z ^ (z >> 31);
}

/// Scores of examples that a node's classifiers have not seen, counted per level: the material of calibration.
struct ScoreHistogram {
    static constexpr int n_bins = 512;
    static constexpr float low = -8.0f, width = 1.0f / 32;
    std::vector<double> positive, negative;  ///< [level][bin]

    explicit ScoreHistogram(int n_levels) : positive(n_levels * n_bins), negative(n_levels * n_bins) {}
    static int bin(float score) { return std::clamp(static_cast<int>((score - low) / width), 0, n_bins - 1); }
};

struct TrainSettings {
    SolverSettings solver;
    FeatureSettings features;
    double held_out = 0.1;  ///< share of the work of each level that is trained again with rows held out; 0: no calibration
    std::uint64_t seed = 0;
    int n_threads = 1;
};

/// A growing buffer of floats, aligned for vector loads and not initialised.
class FloatBuffer {
public:
    float* zeroed(std::size_t n) {
        if (n > capacity_) {
            capacity_ = n + n / 4 + 64;
            data_.reset(static_cast<float*>(::operator new[](capacity_ * sizeof(float), std::align_val_t{64})));
        }
        std::memset(data_.get(), 0, n * sizeof(float));
        return data_.get();
    }
    const float* data() const { return data_.get(); }

private:
    struct Delete {
        void operator()(float* p) const { ::operator delete[](p, std::align_val_t{64}); }
    };
    std::unique_ptr<float[], Delete> data_;
    std::size_t capacity_ = 0;
};

class BlockTrainer {
public:
    BlockTrainer(const PreparedRows& X, const TreeView& tree, const NodeRows& rows, std::span<const float> row_weight,
                 const TrainSettings& settings, Progress* progress)
        : X_(X), tree_(tree), rows_(rows), row_weight_(row_weight), settings_(settings), progress_(progress) {
        level_.assign(tree.n_nodes() + 1, 0);
        for (int v = 0; v < tree.n_nodes(); ++v) level_[v] = v == 0 ? 1 : level_[tree.parent[v]] + 1;
    }

    /// Levels count the depth of the nodes that are scored: 0 is the root's gate, 1 the root's children, and so on.
    int n_levels() const { return *std::ranges::max_element(level_); }

    /// Trains every node that has rows; panels come back in order of node.
    std::vector<Panel> train(ScoreHistogram& histogram) {
        std::vector<Task> tasks = plan();
        std::size_t total = 0;
        for (const Task& task : tasks) total += task.work;
        if (progress_) progress_->total = total;

        std::vector<std::vector<Panel>> panels(tree_.n_nodes() + 1);
        std::vector<Scratch> scratch(std::max(1, settings_.n_threads));
        std::vector<ScoreHistogram> counts;
        std::vector<std::size_t> narrow;
        std::size_t n_held_out = 0;
        for (Task& task : tasks)
            if (task.held_out) task.histogram = n_held_out++;
        counts.assign(n_held_out, ScoreHistogram(1));

        // A node that is a large part of all the work shares its tiles among the threads; the others go one to a thread.
        for (std::size_t t = 0; t < tasks.size(); ++t) {
            if (settings_.n_threads > 1 && tasks[t].n_tiles > 1 && tasks[t].work * settings_.n_threads * 2 > total)
                run(tasks[t], scratch, settings_.n_threads, 0, panels, counts);
            else
                narrow.push_back(t);
        }
        parallel_for(narrow.size(), settings_.n_threads,
                     [&](std::size_t k, int worker) { run(tasks[narrow[k]], scratch, 1, worker, panels, counts); });

        for (const Task& task : tasks)  // in the order of the plan, so that sums do not depend on the threads
            if (task.held_out)
                for (int b = 0; b < ScoreHistogram::n_bins; ++b) {
                    histogram.positive[level_[task.node] * ScoreHistogram::n_bins + b] += counts[task.histogram].positive[b];
                    histogram.negative[level_[task.node] * ScoreHistogram::n_bins + b] += counts[task.histogram].negative[b];
                }
        std::vector<Panel> all;
        for (auto& of_node : panels) std::ranges::move(of_node, std::back_inserter(all));
        return all;
    }

private:
    struct Task {
        int node;
        bool held_out;
        std::size_t work;
        int n_tiles;
        std::size_t histogram = 0;
    };

    /// A node's training problem: its rows with features numbered locally, its children in order of frequency.
    struct Problem {
        std::vector<const Entry*> row;
        std::vector<int> length;
        std::vector<float> squared_norm, weight;
        std::vector<std::int64_t> entry;       ///< of NodeRows
        std::vector<std::uint32_t> feature;    ///< local number -> feature; empty: numbers are the features themselves
        std::vector<Entry> local;
        std::size_t n_features = 0;
        std::vector<std::int32_t> child, column_of_child;
        std::size_t n_train = 0;               ///< rows beyond these are held out, for scoring
    };

    struct TileScratch {
        FloatBuffer weights, dual;
        std::vector<std::uint32_t> positive;
        std::vector<std::uint8_t> active;
        std::vector<int> order;
    };

    struct Scratch {
        std::vector<std::int32_t> local_number;  ///< feature -> local number + 1, 0 for none; always zero between nodes
        Problem problem;
        TileScratch tile;
    };

    /// Weights of 8 neighbouring columns for one feature.
    struct FrozenGroup {
        std::uint32_t feature;
        std::uint8_t group;
        std::array<std::int8_t, group_columns> weight;
    };
    struct FrozenTile {
        std::vector<FrozenGroup> groups;
        std::vector<float> scale;
    };

    int n_children(int node) const { return node == tree_.n_nodes() ? 1 : tree_.n_children[node]; }

    std::vector<Task> plan() const {
        std::vector<Task> tasks;
        std::vector<double> work_of_level(n_levels(), 0.0), held_out_work(n_levels(), 0.0);
        for (int v = 0; v <= tree_.n_nodes(); ++v) {
            if (rows_.n_rows(v) == 0) continue;
            std::size_t non_zeros = 0;
            for (std::int64_t e = rows_.begin[v]; e < rows_.begin[v + 1]; ++e) non_zeros += X_.length(rows_.row[e]);
            const int n_tiles = (n_children(v) + max_tile_columns - 1) / max_tile_columns;
            tasks.push_back({v, false, non_zeros * n_tiles + 1, n_tiles});
            work_of_level[level_[v]] += static_cast<double>(tasks.back().work);
        }
        if (settings_.held_out > 0) {
            std::vector<std::size_t> order(tasks.size());
            std::iota(order.begin(), order.end(), 0);
            std::ranges::sort(order, {}, [&](std::size_t t) { return mix(settings_.seed * 77 + tasks[t].node); });
            for (std::size_t t : order) {
                const int level = level_[tasks[t].node];
                if (held_out_work[level] >= settings_.held_out * work_of_level[level] || rows_.n_rows(tasks[t].node) < 5) continue;
                held_out_work[level] += static_cast<double>(tasks[t].work);
                Task again = tasks[t];
                again.held_out = true;
                tasks.push_back(again);
            }
        }
        std::ranges::stable_sort(tasks, std::greater{}, &Task::work);  // the largest first, for balance
        return tasks;
    }

    void run(const Task& task, std::vector<Scratch>& scratch, int n_threads, int worker, std::vector<std::vector<Panel>>& panels,
             std::vector<ScoreHistogram>& counts) {
        Scratch& mine = scratch[worker];
        prepare(task, mine);
        const Problem& problem = mine.problem;
        const int n_columns = static_cast<int>(problem.child.size());
        std::vector<FrozenTile> tiles((n_columns + max_tile_columns - 1) / max_tile_columns);
        std::vector<ScoreHistogram> tile_counts(task.held_out ? tiles.size() : 0, ScoreHistogram(1));
        parallel_for(tiles.size(), n_threads, [&](std::size_t t, int other) {
            TileScratch& space = n_threads > 1 ? scratch[other].tile : mine.tile;
            const int stride = solve(task, problem, static_cast<int>(t), space);
            if (task.held_out)
                score_held_out(problem, static_cast<int>(t), stride, space, tile_counts[t]);
            else
                tiles[t] = freeze(problem, static_cast<int>(t), stride, space);
        });
        if (task.held_out) {
            for (const ScoreHistogram& c : tile_counts)
                for (int b = 0; b < ScoreHistogram::n_bins; ++b) {
                    counts[task.histogram].positive[b] += c.positive[b];
                    counts[task.histogram].negative[b] += c.negative[b];
                }
        } else {
            panels[task.node] = assemble(task.node, problem, tiles);
        }
        if (progress_) progress_->done += task.work;
    }

    bool is_held_out(int node, std::int32_t row) const { return mix(settings_.seed + 1000003ull * node + mix(row)) % 5 == 0; }

    void prepare(const Task& task, Scratch& scratch) {
        Problem& p = scratch.problem;
        p.row.clear(), p.length.clear(), p.squared_norm.clear(), p.weight.clear(), p.entry.clear(), p.feature.clear();
        std::size_t non_zeros = 0;
        for (bool held_out : {false, true}) {
            for (std::int64_t e = rows_.begin[task.node]; e < rows_.begin[task.node + 1]; ++e) {
                const std::int32_t i = rows_.row[e];
                if (!row_weight_.empty() && row_weight_[i] <= 0) continue;
                if (held_out != (task.held_out && is_held_out(task.node, i))) continue;
                p.entry.push_back(e);
                p.row.push_back(X_.row(i));
                p.length.push_back(X_.length(i));
                p.squared_norm.push_back(X_.squared_norm[i]);
                if (!row_weight_.empty()) p.weight.push_back(row_weight_[i]);
                non_zeros += X_.length(i);
            }
            if (!held_out) p.n_train = p.row.size();
        }
        const auto n_columns = static_cast<std::size_t>(settings_.features.n_columns());
        if (non_zeros > 8 * n_columns)
            p.n_features = n_columns;  // most features occur: numbering them anew would cost more than it saves
        else
            number_locally(scratch, non_zeros);

        // Children by falling frequency: neighbours then shrink together. Children that never occur are left out: their probability is 0.
        const int n_children = this->n_children(task.node);
        std::vector<std::int64_t> count(n_children, 0);
        for (std::int64_t e : std::span(p.entry).first(p.n_train))
            for (std::int64_t q = rows_.positive_begin[e]; q < rows_.positive_begin[e + 1]; ++q) ++count[rows_.positive[q]];
        p.child.clear();
        for (int c = 0; c < n_children; ++c)
            if (count[c] > 0) p.child.push_back(c);
        std::ranges::stable_sort(p.child, std::greater{}, [&](int c) { return count[c]; });
        p.column_of_child.assign(n_children, -1);
        for (std::size_t k = 0; k < p.child.size(); ++k) p.column_of_child[p.child[k]] = static_cast<std::int32_t>(k);
    }

    void number_locally(Scratch& scratch, std::size_t non_zeros) {
        Problem& p = scratch.problem;
        auto& number = scratch.local_number;
        number.resize(settings_.features.n_columns(), 0);
        for (std::size_t r = 0; r < p.row.size(); ++r)
            for (int k = 0; k < p.length[r]; ++k) {
                const std::uint32_t f = p.row[r][k].feature;
                if (!number[f]) {
                    number[f] = 1;
                    p.feature.push_back(f);
                }
            }
        std::ranges::sort(p.feature);
        for (std::size_t k = 0; k < p.feature.size(); ++k) number[p.feature[k]] = static_cast<std::int32_t>(k);
        p.local.clear();
        p.local.reserve(non_zeros);
        for (std::size_t r = 0; r < p.row.size(); ++r) {
            const Entry* from = p.row[r];
            p.row[r] = p.local.data() + p.local.size();
            for (int k = 0; k < p.length[r]; ++k) p.local.push_back({static_cast<std::uint32_t>(number[from[k].feature]), from[k].value});
        }
        for (std::uint32_t f : p.feature) number[f] = 0;
        p.n_features = p.feature.size();
    }

    /// Bit c of the answer: column first + c is positive in this entry.
    std::uint32_t positive_bits(const Problem& p, std::int64_t entry, int first, int n) const {
        std::uint32_t bits = 0;
        for (std::int64_t q = rows_.positive_begin[entry]; q < rows_.positive_begin[entry + 1]; ++q) {
            const int column = p.column_of_child[rows_.positive[q]] - first;
            if (column >= 0 && column < n) bits |= 1u << column;
        }
        return bits;
    }

    static int tile_columns(const Problem& p, int tile) {
        return std::min(max_tile_columns, static_cast<int>(p.child.size()) - tile * max_tile_columns);
    }

    int solve(const Task& task, const Problem& p, int tile, TileScratch& space) const {
        const Kernels& kernel = kernels();
        const int n_rows = static_cast<int>(p.n_train), n_columns = tile_columns(p, tile);
        const int stride = (n_columns + kernel.lanes - 1) / kernel.lanes * kernel.lanes;
        space.positive.resize(n_rows);
        for (int r = 0; r < n_rows; ++r) space.positive[r] = positive_bits(p, p.entry[r], tile * max_tile_columns, n_columns);
        space.active.resize(n_rows);
        space.order.resize(n_rows);
        TileProblem problem{};
        problem.n_rows = n_rows;
        problem.n_columns = n_columns;
        problem.stride = stride;
        problem.rows = p.row.data();
        problem.row_length = p.length.data();
        problem.squared_norm = p.squared_norm.data();
        problem.row_weight = p.weight.empty() ? nullptr : p.weight.data();
        problem.positive = space.positive.data();
        problem.weights = space.weights.zeroed(p.n_features * stride);
        problem.dual = space.dual.zeroed(static_cast<std::size_t>(n_rows) * stride);
        problem.active = space.active.data();
        problem.order = space.order.data();
        problem.end_epoch = settings_.solver.max_epochs;
        problem.seed = mix(settings_.seed * 31 + mix(static_cast<std::uint64_t>(task.node) * 4096 + tile));
        kernel.solve_tile(problem, settings_.solver);
        return stride;
    }

    void score_held_out(const Problem& p, int tile, int stride, TileScratch& space, ScoreHistogram& counts) const {
        const int n_columns = tile_columns(p, tile);
        const float* weights = space.weights.data();
        for (std::size_t r = p.n_train; r < p.row.size(); ++r) {
            std::array<float, max_tile_columns> score{};
            for (int k = 0; k < p.length[r]; ++k) {
                const Entry x = p.row[r][k];
                const float* w = weights + static_cast<std::size_t>(x.feature) * stride;
                for (int c = 0; c < stride; ++c) score[c] += std::abs(w[c]) > settings_.solver.prune ? w[c] * x.value : 0.0f;
            }
            const std::uint32_t bits = positive_bits(p, p.entry[r], tile * max_tile_columns, n_columns);
            const double weight = p.weight.empty() ? 1.0 : p.weight[r];
            for (int c = 0; c < n_columns; ++c)
                (bits >> c & 1 ? counts.positive : counts.negative)[ScoreHistogram::bin(score[c])] += weight;
        }
    }

    FrozenTile freeze(const Problem& p, int tile, int stride, TileScratch& space) const {
        const float* weights = space.weights.data();
        const int n_columns = tile_columns(p, tile), n_groups = (n_columns + group_columns - 1) / group_columns;
        const int first_group = tile * max_tile_columns % max_panel_columns / group_columns;
        const float prune = settings_.solver.prune;
        std::array<float, max_tile_columns> largest{}, inverse{};
        for (std::size_t f = 0; f < p.n_features; ++f)
            for (int c = 0; c < stride; ++c) largest[c] = std::max(largest[c], std::abs(weights[f * stride + c]));
        FrozenTile frozen;
        for (int c = 0; c < n_columns; ++c) {
            frozen.scale.push_back(largest[c] / 127.0f);
            inverse[c] = largest[c] > 0 ? 127.0f / largest[c] : 0.0f;
        }
        for (std::size_t f = 0; f < p.n_features; ++f)
            for (int g = 0; g < n_groups; ++g) {
                const float* w = weights + f * stride + g * group_columns;
                bool any = false;
                for (int c = 0; c < group_columns; ++c) any |= std::abs(w[c]) > prune;
                if (!any) continue;
                FrozenGroup group{static_cast<std::uint32_t>(f), static_cast<std::uint8_t>(first_group + g), {}};
                for (int c = 0; c < group_columns; ++c)
                    if (std::abs(w[c]) > prune) group.weight[c] = static_cast<std::int8_t>(std::lrint(w[c] * inverse[g * group_columns + c]));
                frozen.groups.push_back(group);
            }
        return frozen;
    }

    std::vector<Panel> assemble(int node, const Problem& p, const std::vector<FrozenTile>& tiles) const {
        constexpr std::size_t tiles_per_panel = max_panel_columns / max_tile_columns;
        std::vector<Panel> panels;
        for (std::size_t first = 0; first < tiles.size(); first += tiles_per_panel) {
            const std::size_t end = std::min(tiles.size(), first + tiles_per_panel);
            Panel panel;
            panel.node = node;
            std::vector<std::uint32_t> count(p.n_features + 1, 0);
            for (std::size_t t = first; t < end; ++t) {
                for (const FrozenGroup& g : tiles[t].groups) ++count[g.feature + 1];
                panel.scale.insert(panel.scale.end(), tiles[t].scale.begin(), tiles[t].scale.end());
            }
            const auto c0 = p.child.begin() + static_cast<std::ptrdiff_t>(first * max_tile_columns);
            panel.child.assign(c0, c0 + static_cast<std::ptrdiff_t>(panel.scale.size()));
            for (std::size_t f = 0; f < p.n_features; ++f)
                if (count[f + 1]) {
                    panel.feature.push_back(p.feature.empty() ? static_cast<std::uint32_t>(f) : p.feature[f]);
                    panel.row_group.push_back(panel.row_group.back() + count[f + 1]);
                }
            for (std::size_t f = 0; f < p.n_features; ++f) count[f + 1] += count[f];
            panel.group_id.resize(count.back());
            panel.group_weight.resize(count.back() * std::size_t{group_columns});
            for (std::size_t t = first; t < end; ++t)
                for (const FrozenGroup& g : tiles[t].groups) {
                    const std::uint32_t at = count[g.feature]++;
                    panel.group_id[at] = g.group;
                    std::ranges::copy(g.weight, panel.group_weight.begin() + std::ptrdiff_t{group_columns} * at);
                }
            panels.push_back(std::move(panel));
        }
        return panels;
    }

    const PreparedRows& X_;
    const TreeView& tree_;
    const NodeRows& rows_;
    std::span<const float> row_weight_;
    const TrainSettings& settings_;
    Progress* progress_;
    std::vector<int> level_;
};

}  // namespace ramify
