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
#include "hashing.hpp"
#include "kernels.hpp"
#include "label_tree.hpp"
#include "node_rows.hpp"
#include "parallel.hpp"
#include "sparse_rows.hpp"

namespace ramify {

/// Scores of examples that a node's classifiers have not seen, counted per level: the material of calibration.
struct ScoreHistogram {
    static constexpr int n_bins = 512;
    static constexpr float low = -8.0f, width = 1.0f / 32;
    std::vector<double> positive, negative;  ///< [level][bin]

    explicit ScoreHistogram(int n_levels) : positive(n_levels * n_bins), negative(n_levels * n_bins) {}
    static int bin(float score) {
        const float at = (score - low) / width;  // compared as a float: an int could not hold every score
        return at >= 0.0f ? (at < static_cast<float>(n_bins) ? static_cast<int>(at) : n_bins - 1) : 0;
    }
};

/// Where exactly one child is true: the log loss of the softmax of slope * score, for some slopes, per level.
struct SoftmaxLoss {
    static constexpr std::array<float, 13> slopes{0.5f, 0.7f, 1.0f, 1.4f, 2.0f, 2.8f, 4.0f, 5.6f, 8.0f, 11.0f, 16.0f, 22.0f, 32.0f};
    std::vector<double> loss;  ///< [level][slope]

    explicit SoftmaxLoss(int n_levels) : loss(n_levels * slopes.size()) {}

    void add(int level, std::span<const float> score, int true_column, double weight) {
        const float largest = *std::ranges::max_element(score);
        for (std::size_t k = 0; k < slopes.size(); ++k) {
            double sum = 0;
            for (float s : score) sum += std::exp(slopes[k] * (s - largest));
            loss[level * slopes.size() + k] += weight * (std::log(sum) - slopes[k] * (score[true_column] - largest));
        }
    }
};

struct HeldOut {
    ScoreHistogram histogram;
    SoftmaxLoss softmax;
    explicit HeldOut(int n_levels) : histogram(n_levels), softmax(n_levels) {}
};

/// A growing buffer of floats, aligned for vector loads and not initialised.
class FloatBuffer {
public:
    float* zeroed(std::size_t n) {
        if (n > capacity_) {
            capacity_ = n + n / 4 + 64;
            data_.reset(static_cast<float*>(::operator new[](capacity_ * sizeof(float), std::align_val_t{64})));
        }
        if (n > 0) std::memset(data_.get(), 0, n * sizeof(float));
        return data_.get();
    }
    float* data() { return data_.get(); }
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
    /// `row_weight` may be empty. What is given must outlive the trainer.
    BlockTrainer(const PreparedRows& X, const TreeView& tree, const NodeRows& rows, std::span<const float> row_weight, std::int64_t n_features,
                 std::uint64_t seed, int n_threads)
        : X_(X), tree_(tree), rows_(rows), row_weight_(row_weight), n_features_(n_features), seed_(seed), n_threads_(usable_threads(n_threads)) {
        level_.assign(tree.n_nodes() + 1, 0);
        for (int v = 0; v < tree.n_nodes(); ++v) level_[v] = v == 0 ? 1 : level_[tree.parent[v]] + 1;
        scratch_.resize(n_threads_);
    }

    /// Levels count the depth of the nodes that are scored: 0 is the root's gate, 1 the root's children, and so on.
    int n_levels() const { return *std::ranges::max_element(level_); }

    /// Multiplications of an epoch over all nodes, roughly.
    double total_work() const {
        double total = 0;
        for (const Task& task : all_nodes()) total += static_cast<double>(task.work);
        return total;
    }

    /// Trains every node that has rows; panels come back in order of node.
    std::vector<Panel> train(const SolverSettings& solver, Progress* progress) {
        const std::vector<Task> tasks = all_nodes();
        std::vector<std::vector<Panel>> panels(tree_.n_nodes() + 1);
        run_all(tasks, progress, [&](const Task& task, int n_threads, int worker) {
            std::vector<FrozenTile> tiles(n_tiles(scratch_[worker].problem));
            solve_tiles(task, solver, n_threads, worker, [&](int tile, int stride, const TileScratch& space) {
                tiles[tile] = freeze(scratch_[worker].problem, tile, stride, space, solver.prune);
            });
            panels[task.node] = assemble(task.node, scratch_[worker].problem, tiles);
        });
        std::vector<Panel> all;
        for (auto& of_node : panels) std::ranges::move(of_node, std::back_inserter(all));
        return all;
    }

    /// Trains again a sample of the nodes, this share of each level's work, each on at most max_rows rows and without a
    /// fifth of those, and counts the scores of that fifth.
    HeldOut held_out(const SolverSettings& solver, double share, std::int64_t max_rows) {
        const std::vector<Task> tasks = sampled_nodes(share, max_rows);
        std::vector<HeldOut> parts(tasks.size(), HeldOut(1));
        run_all(tasks, nullptr, [&](const Task& task, int n_threads, int worker) {
            const Problem& problem = scratch_[worker].problem;
            std::vector<float> scores((problem.row.size() - problem.n_train) * problem.child.size());
            solve_tiles(task, solver, n_threads, worker,
                        [&](int tile, int stride, TileScratch& space) { score_held_out(problem, tile, stride, space, solver.prune, scores); });
            count(problem, scores, parts[&task - tasks.data()]);
        });
        HeldOut total(n_levels());
        auto add = [](std::vector<double>& to, const std::vector<double>& from, int level) {
            for (std::size_t b = 0; b < from.size(); ++b) to[level * from.size() + b] += from[b];
        };
        for (std::size_t t = 0; t < tasks.size(); ++t) {  // always in this order, so that sums do not depend on the threads
            const int level = level_[tasks[t].node];
            add(total.histogram.positive, parts[t].histogram.positive, level);
            add(total.histogram.negative, parts[t].histogram.negative, level);
            add(total.softmax.loss, parts[t].softmax.loss, level);
        }
        return total;
    }

private:
    struct Task {
        int node;
        bool held_out;
        std::size_t work;     ///< multiplications in an epoch, roughly
        double sample = 1.0;  ///< share of the rows that is used
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

    static int n_tiles(const Problem& p) { return (static_cast<int>(p.child.size()) + max_tile_columns - 1) / max_tile_columns; }

    /// The largest first, for balance.
    std::vector<Task> all_nodes() const {
        std::vector<Task> tasks;
        for (int v = 0; v <= tree_.n_nodes(); ++v) {
            if (rows_.n_rows(v) == 0) continue;
            std::size_t non_zeros = 0;
            for (std::int64_t e = rows_.begin[v]; e < rows_.begin[v + 1]; ++e) non_zeros += X_.length(rows_.row[e]);
            tasks.push_back({v, false, non_zeros * ((n_children(v) + max_tile_columns - 1) / max_tile_columns) + 1});
        }
        std::ranges::stable_sort(tasks, std::greater{}, &Task::work);
        return tasks;
    }

    std::vector<Task> sampled_nodes(double share, std::int64_t max_rows) const {
        std::vector<Task> tasks = all_nodes(), sample;
        std::vector<double> work_of_level(n_levels(), 0.0), taken(n_levels(), 0.0);
        for (const Task& task : tasks) work_of_level[level_[task.node]] += static_cast<double>(task.work);
        std::ranges::sort(tasks, {}, [&](const Task& task) { return mix(seed_ * 77 + task.node); });
        for (Task task : tasks) {
            const int level = level_[task.node];
            if (taken[level] >= share * work_of_level[level] || rows_.n_rows(task.node) < 5) continue;
            taken[level] += static_cast<double>(task.work);
            task.held_out = true;
            task.sample = std::min(1.0, static_cast<double>(std::max<std::int64_t>(max_rows, 0)) / static_cast<double>(rows_.n_rows(task.node)));
            task.work = static_cast<std::size_t>(static_cast<double>(task.work) * task.sample) + 1;
            sample.push_back(task);
        }
        std::ranges::stable_sort(sample, std::greater{}, &Task::work);
        return sample;
    }

    /// Calls body(task, n_threads, worker) with the task's problem prepared in scratch_[worker].
    template <class Body>
    void run_all(const std::vector<Task>& tasks, Progress* progress, Body&& body) {
        std::size_t total = 0;
        for (const Task& task : tasks) total += task.work;
        if (progress) progress->total = total;
        Watch watch;
        watch_ = &watch;
        auto run = [&](const Task& task, int n_threads, int worker) {
            prepare(task, scratch_[worker]);
            body(task, n_threads, worker);
            if (progress) progress->done += task.work;
        };
        // A node that is a large part of all the work shares its tiles among the threads; the others go one to a thread.
        std::size_t next = 0;
        while (n_threads_ > 1 && next < tasks.size() && tasks[next].work * n_threads_ * 2 > total && n_children(tasks[next].node) > max_tile_columns)
            run(tasks[next++], n_threads_, 0);
        parallel_for(tasks.size() - next, n_threads_, [&](std::size_t t, int worker) { run(tasks[next + t], 1, worker); }, &watch);
    }

    /// Solves the tiles of a prepared problem and calls use(tile, stride, space) on each one's weights.
    template <class Use>
    void solve_tiles(const Task& task, const SolverSettings& solver, int n_threads, int worker, Use&& use) {
        const Problem& problem = scratch_[worker].problem;
        parallel_for(n_tiles(problem), n_threads, [&](std::size_t tile, int other) {
            TileScratch& space = scratch_[n_threads > 1 ? other : worker].tile;
            use(static_cast<int>(tile), solve(task, problem, static_cast<int>(tile), solver, space), space);
        }, watch_);
    }

    std::uint64_t draw(int node, std::int32_t row) const { return mix(seed_ + 1000003ull * node + mix(row)); }

    void prepare(const Task& task, Scratch& scratch) {
        Problem& p = scratch.problem;
        p.row.clear(), p.length.clear(), p.squared_norm.clear(), p.weight.clear(), p.entry.clear(), p.feature.clear();
        std::size_t non_zeros = 0;
        for (bool held_out : {false, true}) {
            for (std::int64_t e = rows_.begin[task.node]; e < rows_.begin[task.node + 1]; ++e) {
                const std::int32_t i = rows_.row[e];
                if (!row_weight_.empty() && row_weight_[i] <= 0) continue;
                if (task.held_out) {
                    const std::uint64_t drawn = draw(task.node, i);
                    if (held_out != (drawn % 5 == 0) || static_cast<double>(drawn >> 11) * 0x1p-53 >= task.sample) continue;
                } else if (held_out) {
                    break;
                }
                p.entry.push_back(e);
                p.row.push_back(X_.row(i));
                p.length.push_back(X_.length(i));
                p.squared_norm.push_back(X_.squared_norm[i]);
                if (!row_weight_.empty()) p.weight.push_back(row_weight_[i]);
                non_zeros += X_.length(i);
            }
            if (!held_out) p.n_train = p.row.size();
        }
        const auto n_columns = static_cast<std::size_t>(n_features_);
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
        number.resize(n_features_, 0);
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

    int solve(const Task& task, const Problem& p, int tile, const SolverSettings& solver, TileScratch& space) const {
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
        problem.end_epoch = solver.max_epochs;
        problem.seed = mix(seed_ * 31 + mix(static_cast<std::uint64_t>(task.node) * 4096 + tile));
        problem.should_stop = [](void* watch) { return static_cast<Watch*>(watch)->should_stop(); };
        problem.watch = watch_;
        kernel.solve_tile(problem, solver);
        return stride;
    }

    /// Scores of the held-out rows for the columns of a tile, into scores[row][column].
    void score_held_out(const Problem& p, int tile, int stride, TileScratch& space, float prune, std::vector<float>& scores) const {
        const int n_columns = tile_columns(p, tile);
        float* weights = space.weights.data();
        for (std::size_t k = 0; k < p.n_features * stride; ++k) weights[k] = std::abs(weights[k]) > prune ? weights[k] : 0.0f;
        for (std::size_t r = p.n_train; r < p.row.size(); ++r) {
            std::array<float, max_tile_columns> score{};
            for (int k = 0; k < p.length[r]; ++k) {
                const Entry x = p.row[r][k];
                const float* w = weights + static_cast<std::size_t>(x.feature) * stride;
                for (int c = 0; c < stride; ++c) score[c] += w[c] * x.value;
            }
            std::copy_n(score.begin(), n_columns, scores.begin() + static_cast<std::ptrdiff_t>((r - p.n_train) * p.child.size() + tile * max_tile_columns));
        }
    }

    void count(const Problem& p, const std::vector<float>& scores, HeldOut& out) const {
        std::vector<bool> is_positive(p.child.size());
        for (std::size_t r = p.n_train; r < p.row.size(); ++r) {
            const std::span<const float> score = std::span(scores).subspan((r - p.n_train) * p.child.size(), p.child.size());
            const double weight = p.weight.empty() ? 1.0 : p.weight[r];
            is_positive.assign(p.child.size(), false);
            int n_positive = 0, true_column = -1;
            for (std::int64_t q = rows_.positive_begin[p.entry[r]]; q < rows_.positive_begin[p.entry[r] + 1]; ++q, ++n_positive)
                if (const int column = p.column_of_child[rows_.positive[q]]; column >= 0) is_positive[true_column = column] = true;
            for (std::size_t c = 0; c < score.size(); ++c)
                (is_positive[c] ? out.histogram.positive : out.histogram.negative)[ScoreHistogram::bin(score[c])] += weight;
            if (n_positive == 1 && true_column >= 0) out.softmax.add(0, score, true_column, weight);
        }
    }

    FrozenTile freeze(const Problem& p, int tile, int stride, const TileScratch& space, float prune) const {
        const float* weights = space.weights.data();
        const int n_columns = tile_columns(p, tile), n_groups = (n_columns + group_columns - 1) / group_columns;
        const int first_group = tile * max_tile_columns % max_panel_columns / group_columns;
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
        // A gate that never opened keeps a panel without columns: no gate at all would mean that rows always have labels.
        if (panels.empty() && node == tree_.n_nodes()) {
            panels.emplace_back();
            panels.back().node = node;
        }
        return panels;
    }

    const PreparedRows& X_;
    const TreeView& tree_;
    const NodeRows& rows_;
    std::span<const float> row_weight_;
    std::int64_t n_features_;
    std::uint64_t seed_;
    int n_threads_;
    std::vector<int> level_;
    std::vector<Scratch> scratch_;
    Watch* watch_ = nullptr;  ///< of the call that runs
};

}  // namespace ramify
