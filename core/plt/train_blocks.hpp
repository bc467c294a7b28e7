/// Batch training: the children of each node solved together, straight into frozen panels.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstdint>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "base/parallel.hpp"
#include "base/shared_tasks.hpp"
#include "base/sparse_rows.hpp"
#include "kernels/kernels.hpp"
#include "plt/frozen_blocks.hpp"
#include "plt/held_out.hpp"
#include "plt/node_plan.hpp"
#include "plt/node_problem.hpp"
#include "plt/node_rows.hpp"
#include "trees/label_tree.hpp"

namespace ramify {

/// How held-out rows are looked at, beside the solvers.
struct HeldOutOptions {
    int n_rates = 1;
    LinkTables links;           ///< maps whose softmax losses are wanted
    bool keeps_scores = false;  ///< the next call for the same solvers counts without training again
    int max_columns = 0;        ///< of a node's children; 0: all
    bool of_paths = false;      ///< for whole paths: `held_out_blocks` has what was trained for the first solver
};

/// Statistics of held-out rows for some solvers, and how much of the tree they represent.
struct HeldOutSample {
    std::vector<HeldOut> of_solver;
    std::vector<double>
        stands_for;  ///< per level: its positive examples, for each one of them that was held out; 0 where none was
};

/// Settings that held-out rows compare, each for all levels; or, `by_level`, one for each level, tried together.
struct TriedSolvers {
    std::span<const SolverSettings> settings;
    bool by_level = false;

    std::size_t size() const { return by_level ? 1 : settings.size(); }
    const SolverSettings& at(int solver, int level) const { return settings[by_level ? level : solver]; }
    float prune(int solver) const { return settings[by_level ? 0 : solver].prune; }  // the same for every level
};

/// Scores of held-out rows by node and solver, kept so that they can be counted again: maps to probabilities are fitted
/// on them first and then compared on them.
struct KeptScores {
    std::vector<SolverSettings> settings;  ///< one for each level
    double share = 0;
    std::int64_t max_rows = 0;
    std::vector<std::vector<std::vector<float>>> of_node;

    bool are_of(const TriedSolvers& solvers, double of_share, std::int64_t of_rows) const {
        return solvers.by_level && !of_node.empty() && share == of_share && max_rows == of_rows &&
               std::ranges::equal(settings, solvers.settings);
    }
};

/// Statistics of held-out rows before they are summed up: for each node and solver, and the positive examples held out
/// at each node.
struct HeldOutNodes {
    std::vector<std::vector<HeldOut>> parts;
    std::vector<double> positives;
};

class BlockTrainer {
public:
    /// `row_weight` may be empty, and `row_number` (see NodeProblems). The arguments must outlive the trainer.
    BlockTrainer(const PreparedRows& X, const TreeView& tree, const NodeRows& rows, std::span<const float> row_weight,
                 std::int64_t n_features, std::uint64_t seed, int n_threads,
                 std::span<const std::int64_t> row_number = {})
        : tree_(tree),
          rows_(rows),
          n_features_(n_features),
          n_threads_(usable_threads(n_threads)),
          problems_(X, tree, rows, row_weight, n_features, seed, row_number),
          plan_(tree, rows, row_weight, seed, problems_.tasks()) {
        problem_.resize(n_threads_);
        scratch_.resize(n_threads_);
    }

    const NodePlan& plan() const { return plan_; }

    /// Trains every node that has rows, or those of them in `nodes` (in rising order); panels come back in order of
    /// node. `solvers` holds one for each level, or one for all.
    std::vector<FrozenPanel> train(std::span<const SolverSettings> solvers, Progress* progress,
                                   std::optional<std::span<const std::int32_t>> nodes = {}) {
        const auto solver_of = [&](int node) -> const SolverSettings& {
            return solvers[solvers.size() == 1 ? 0 : static_cast<std::size_t>(plan_.level(node))];
        };
        std::vector<NodeTask> tasks = plan_.tasks();
        if (nodes)
            std::erase_if(tasks, [&](const NodeTask& task) { return !std::ranges::binary_search(*nodes, task.node); });
        std::vector<std::vector<FrozenPanel>> panels(tree_.n_nodes() + 1);
        std::vector<std::vector<FrozenTile>> tiles(
            n_threads_);  // of the problem that this thread prepared; memory is kept for the next
        std::vector<float> prune(n_threads_);
        solve_all(
            tasks, 1, [&](const NodeTask& task, int) -> const SolverSettings& { return solver_of(task.node); },
            progress,
            [&](const NodeTask& task, int owner) {
                prune[owner] = problem_[owner].prune(solver_of(task.node).prune);
                tiles[owner].resize(std::max<std::size_t>(tiles[owner].size(), problem_[owner].n_tiles()));
            },
            [&](int owner, int tile, int, int stride, const TileScratch& space) {
                freeze(problem_[owner], tile, stride, space, prune[owner], tiles[owner][tile]);
            },
            [&](const NodeTask& task, int owner) {
                for (Panel& panel :
                     assemble(task.node, problem_[owner], std::span(tiles[owner]).first(problem_[owner].n_tiles())))
                    panels[task.node].emplace_back(std::move(panel), n_features_, solver_of(task.node).packs);
            });
        std::vector<FrozenPanel> all;
        for (auto& of_node : panels) std::ranges::move(of_node, std::back_inserter(all));
        return all;
    }

    /// Trains again a sample of the nodes, this share of each level's work, each on at most max_rows rows and without
    /// the held-out fifth of them, and counts the scores of that fifth. Softmax losses are for data where exactly one
    /// label of a row is true.
    HeldOutSample held_out(const TriedSolvers& solvers, double share, std::int64_t max_rows,
                           const HeldOutOptions& options) {
        const std::vector<NodeTask> tasks = plan_.sampled_nodes(share, max_rows, options.max_columns, options.of_paths);
        const bool has_scores = options.max_columns == 0 && !options.of_paths && kept_.are_of(solvers, share, max_rows);
        if (!has_scores) kept_ = {};
        const HeldOutNodes found = held_out_nodes(solvers, tasks, options, has_scores);
        kept_.settings.assign(solvers.settings.begin(), solvers.settings.end());
        kept_.share = share, kept_.max_rows = max_rows;
        const std::size_t n_solvers = solvers.size();
        const int n_levels = plan_.n_levels();
        HeldOutSample sample{std::vector<HeldOut>(n_solvers, HeldOut(n_levels, options.n_rates, options.links.n_maps)),
                             plan_.level_positives()};
        std::vector<double> held_out(n_levels, 0.0);
        for (std::size_t t = 0; t < tasks.size();
             ++t) {  // always in this order, so that sums do not depend on the threads
            const int level = plan_.level(tasks[t].node);
            for (std::size_t s = 0; s < n_solvers; ++s) sample.of_solver[s].add(found.parts[t][s], level);
            held_out[level] += found.positives[t];
        }
        for (int level = 0; level < n_levels; ++level)
            sample.stands_for[level] = held_out[level] > 0 ? sample.stands_for[level] / held_out[level] : 0.0;
        return sample;
    }

    /// The same for given nodes and shares of their rows, each node by itself. With `has_scores`, on those kept for the
    /// same tasks.
    HeldOutNodes held_out_nodes(const TriedSolvers& solvers, const std::vector<NodeTask>& tasks,
                                const HeldOutOptions& options, bool has_scores = false) {
        const std::size_t n_solvers = solvers.size();
        const LinkTables& links = options.links;
        std::vector<std::vector<FrozenPanel>> panels(options.of_paths ? tasks.size() : 0);
        std::vector<std::vector<FrozenTile>> tiles(n_threads_);
        HeldOutNodes found{std::vector<std::vector<HeldOut>>(tasks.size()), std::vector<double>(tasks.size(), 0.0)};
        std::vector<std::vector<std::vector<float>>> scores(
            n_threads_);  // of the problem that this thread prepared, for each solver
        if (options.keeps_scores) kept_.of_node.resize(tasks.size());
        solve_all(
            tasks, has_scores ? 0 : static_cast<int>(n_solvers),
            [&](const NodeTask& task, int solver) -> const SolverSettings& {
                return solvers.at(solver, plan_.level(task.node));
            },
            nullptr,
            [&](const NodeTask& task, int owner) {
                const NodeProblem& p = problem_[owner];
                if (has_scores) {
                    scores[owner] = std::move(kept_.of_node[static_cast<std::size_t>(&task - tasks.data())]);
                    return;
                }
                tiles[owner].resize(std::max<std::size_t>(tiles[owner].size(), p.n_tiles()));
                scores[owner].resize(n_solvers);
                for (auto& of_solver : scores[owner]) of_solver.resize((p.row.size() - p.n_train) * p.child.size());
            },
            [&](int owner, int tile, int solver, int stride, const TileScratch& space) {
                const float prune = problem_[owner].prune(solvers.prune(solver));
                score_held_out(problem_[owner], tile, stride, space, prune, scores[owner][solver]);
                if (options.of_paths && solver == 0)
                    freeze(problem_[owner], tile, stride, space, prune, tiles[owner][tile]);
            },
            [&](const NodeTask& task, int owner) {
                const NodeProblem& p = problem_[owner];
                const auto t = static_cast<std::size_t>(&task - tasks.data());
                found.parts[t].assign(n_solvers, HeldOut(1, options.n_rates, links.n_maps));
                std::vector<LinkMap> maps(links.n_maps);
                for (std::size_t s = 0; s < n_solvers; ++s) {
                    for (std::size_t m = 0; m < maps.size(); ++m) maps[m] = links.map(s, m, plan_.level(task.node));
                    count(p, scores[owner][s], maps, found.parts[t][s]);
                }
                for (std::int64_t e : std::span(p.entry).subspan(p.n_train))
                    found.positives[t] += plan_.positive_mass(
                        e, [&](std::int32_t child) { return p.column_of_child[child] != NodeProblem::not_taken; });
                if (options.keeps_scores) kept_.of_node[t] = std::move(scores[owner]);
                if (options.of_paths)
                    for (Panel& panel : assemble(task.node, p, std::span(tiles[owner]).first(p.n_tiles())))
                        panels[t].emplace_back(std::move(panel), n_features_);
            });
        if (!options.keeps_scores) kept_ = {};
        held_out_blocks_.clear();
        for (auto& of_node : panels) std::ranges::move(of_node, std::back_inserter(held_out_blocks_));
        std::ranges::stable_sort(held_out_blocks_, {}, [](const FrozenPanel& panel) { return panel.record.node; });
        return found;
    }

    /// The panels of the nodes that the last call looked at for paths, trained without the held-out rows.
    std::vector<FrozenPanel> held_out_blocks() { return std::exchange(held_out_blocks_, {}); }

private:
    /// Weights of 8 neighbouring columns for one feature.
    struct FrozenGroup {
        std::uint32_t feature;
        std::uint8_t group;
        std::array<std::int8_t, group_columns> weight;
    };
    struct FrozenTile {
        std::vector<FrozenGroup> groups;
        std::vector<float> scale;
        std::vector<std::uint8_t> above;  ///< scratch: of each line, the groups that have a weight to keep
    };

    /// For each task: prepares problem_[owner] and calls begin(task, owner); for its tiles and its solvers,
    /// solver_of(task, solver), in any order, use(owner, tile, solver, stride, space) with the weights in space; at
    /// last end(task, owner).
    template <class SolverOf, class Begin, class Use, class End>
    void solve_all(const std::vector<NodeTask>& tasks, int n_solvers, SolverOf&& solver_of, Progress* progress,
                   Begin&& begin, Use&& use, End&& end) {
        std::size_t total = 0, most_tiles = 0;
        for (const NodeTask& task : tasks) {
            total += task.work;
            most_tiles += (problems_.n_children(task.node) + max_tile_columns - 1) / max_tile_columns;
        }
        if (progress) progress->total = total;
        Watch watch;
        share_tasks(
            tasks.size(), most_tiles * n_solvers, n_threads_,
            [&](std::size_t t, int owner) {
                problems_.prepare(tasks[t], problem_[owner]);
                begin(tasks[t], owner);
                return problem_[owner].n_tiles() * n_solvers;
            },
            [&](std::size_t t, int step, int owner, int worker) {
                const int tile = step / n_solvers, solver = step % n_solvers;
                TileScratch& space = scratch_[worker];
                use(owner, tile, solver,
                    problems_.solve(tasks[t], problem_[owner], tile, solver_of(tasks[t], solver), space, &watch),
                    space);
            },
            [&](std::size_t t, int owner) {
                end(tasks[t], owner);
                if (progress) progress->done += tasks[t].work;
            },
            watch);
    }

    /// Scores of the held-out rows for the columns of a tile, into scores[row][column].
    void score_held_out(const NodeProblem& p, int tile, int stride, const TileScratch& space, float prune,
                        std::vector<float>& scores) const {
        const int n_columns = p.tile_columns(tile);
        for (std::size_t r = p.n_train; r < p.row.size(); ++r) {
            std::array<float, max_tile_columns> score{};
            for (int k = 0; k < p.length[r]; ++k) {
                const Entry x = p.row[r][k];
                const auto [line, ratio] = p.place_of(x.feature);
                const float* w = space.weights.data() + static_cast<std::size_t>(line) * stride;
                for (int c = 0; c < stride; ++c) {
                    const float weight = w[c] * ratio;
                    score[c] += (std::abs(weight) > prune ? weight : 0.0f) * x.value;
                }
            }
            std::copy_n(score.begin(), n_columns,
                        scores.begin() +
                            static_cast<std::ptrdiff_t>((r - p.n_train) * p.child.size() + tile * max_tile_columns));
        }
    }

    /// Counts scores[row][column] of the held-out rows.
    void count(const NodeProblem& p, const std::vector<float>& scores, std::span<const LinkMap> maps,
               HeldOut& out) const {
        constexpr std::size_t n_bins = ScoreHistogram::n_bins;
        std::vector<bool> is_positive(p.child.size());
        std::vector<float> logits;
        const std::vector<float> unscaled(maps.empty() ? 0 : p.child.size(), 1.0f);
        for (std::size_t r = p.n_train; r < p.row.size(); ++r) {
            const std::span<const float> score =
                std::span(scores).subspan((r - p.n_train) * p.child.size(), p.child.size());
            const double weight = p.weight.empty() ? 1.0 : p.weight[r];
            is_positive.assign(p.child.size(), false);
            int n_positive = 0, true_column = -1;
            for (std::int64_t q = rows_.positive_begin[p.entry[r]]; q < rows_.positive_begin[p.entry[r] + 1];
                 ++q, ++n_positive)
                if (const int column = p.column_of_child[rows_.positive[q]]; column >= 0)
                    is_positive[true_column = column] = true;
            for (std::size_t c = 0; c < score.size(); ++c)
                (is_positive[c] ? out.histogram.positive
                                : out.histogram.negative)[out.histogram.rate_bin(p.rate[c]) * n_bins +
                                                          ScoreHistogram::bin(score[c])] += weight;
            if (n_positive != 1) continue;
            for (std::size_t m = 0; m < maps.size(); ++m) {
                logits.assign(score.begin(), score.end());
                kernels().to_logits(logits.data(), unscaled.data(), p.rate.data(), static_cast<int>(logits.size()),
                                    maps[m]);
                out.softmax.add(m, logits, true_column, weight);
            }
        }
    }

    void freeze(const NodeProblem& p, int tile, int stride, const TileScratch& space, float prune,
                FrozenTile& frozen) const {
        const FreezeKernels& kernel = kernels().freeze;
        const float* weights = space.weights.data();
        const int n_columns = p.tile_columns(tile);
        const int first_group = tile * max_tile_columns % max_panel_columns / group_columns;
        const std::size_t n_single = p.has_numbers() ? p.number_of_line.size() : p.n_lines;
        std::array<float, max_tile_columns> largest{}, inverse{};
        frozen.groups.clear();
        frozen.scale.clear();
        frozen.above.resize(p.n_lines);
        std::uint8_t* above = frozen.above.data();
        kernel.scan(weights, n_single, stride, nullptr, prune, largest.data(), above);
        kernel.scan(weights + n_single * static_cast<std::size_t>(stride), p.n_lines - n_single, stride,
                    p.largest_ratio.data(), prune, largest.data(), above + n_single);
        for (int c = 0; c < n_columns; ++c) {
            frozen.scale.push_back(largest[c] / 127.0f);
            inverse[c] = largest[c] > 0 ? 127.0f / largest[c] : 0.0f;
        }
        auto keep = [&](std::size_t number, int g, const float* line, float ratio) {
            FrozenGroup& kept = frozen.groups.emplace_back();
            kept.feature = static_cast<std::uint32_t>(number);
            kept.group = static_cast<std::uint8_t>(g + first_group);
            kernel.to_bytes(line + g * group_columns, ratio, prune, inverse.data() + g * group_columns,
                            kept.weight.data());
        };
        for (std::size_t line = 0; line < p.n_lines; ++line) {
            const float* w = weights + line * static_cast<std::size_t>(stride);
            for (unsigned bits = above[line]; bits != 0; bits &= bits - 1) {
                const int g = std::countr_zero(bits);
                if (line < n_single) {
                    keep(p.has_numbers() ? p.number_of_line[line] : line, g, w, 1.0f);
                    continue;
                }
                float most = 0;
                for (int c = g * group_columns; c < (g + 1) * group_columns; ++c)
                    most = most < std::abs(w[c]) ? std::abs(w[c]) : most;
                const std::size_t m = line - n_single;
                for (std::size_t k = p.merged_begin[m]; k < p.merged_begin[m + 1]; ++k)
                    if (most * std::abs(p.merged[k].ratio) > prune) keep(p.merged[k].number, g, w, p.merged[k].ratio);
            }
        }
    }

    std::vector<Panel> assemble(int node, const NodeProblem& p, std::span<const FrozenTile> tiles) const {
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
            const auto r0 = p.rate.begin() + static_cast<std::ptrdiff_t>(first * max_tile_columns);
            panel.rate.assign(r0, r0 + static_cast<std::ptrdiff_t>(panel.scale.size()));
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
        // A gate that never opened keeps a panel without columns: no gate at all would mean that rows always have
        // labels.
        if (panels.empty() && node == tree_.n_nodes()) {
            panels.emplace_back();
            panels.back().node = node;
        }
        return panels;
    }

    const TreeView& tree_;
    const NodeRows& rows_;
    std::int64_t n_features_;
    int n_threads_;
    NodeProblems problems_;
    NodePlan plan_;
    std::vector<NodeProblem> problem_;  ///< of each thread: the one that it prepared
    std::vector<TileScratch> scratch_;
    KeptScores kept_;
    std::vector<FrozenPanel> held_out_blocks_;
};

}  // namespace ramify
