/// Which nodes are trained, what each costs, and which of them stand for their level when settings are tried. Needs the
/// labels and the lengths of the rows, not the rows: who hands out work to other machines has no more.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "base/hashing.hpp"
#include "kernels/kernels.hpp"
#include "plt/node_rows.hpp"
#include "trees/label_tree.hpp"

namespace ramify {

/// A node to be trained, on all its rows or, to look at held-out ones, on a sample.
struct NodeTask {
    int node;
    bool held_out;
    std::size_t work;       ///< multiplications in an epoch, roughly
    double sample = 1.0;    ///< share of the rows that is used
    int max_columns = 0;    ///< of more children, every k-th in order of frequency is used; 0: all
    bool of_paths = false;  ///< the same rows are held out at all nodes
};

/// A number drawn for a row at a node: it decides whether the row is in the node's sample, and held out of it.
inline std::uint64_t draw_row(std::uint64_t seed, int node, std::int64_t row) {
    return mix(seed + 1000003ull * node + mix(static_cast<std::uint64_t>(row)));
}
inline bool is_sampled(std::uint64_t drawn, double sample) {
    return static_cast<double>(drawn >> 11) * 0x1p-53 < sample;
}
inline bool is_held_out(std::uint64_t drawn) { return drawn % 5 == 0; }
/// Where whole paths are looked at, the same rows are held out at all nodes.
inline bool is_held_out_of_paths(std::uint64_t seed, std::int64_t row) { return is_held_out(draw_row(seed, -1, row)); }

inline void largest_first(std::vector<NodeTask>& tasks) {
    std::ranges::stable_sort(tasks, std::greater{}, &NodeTask::work);
}

/// Every node that has rows; `length(row)` is the number of its entries, the bias included.
template <class Length>
std::vector<NodeTask> node_tasks(const TreeView& tree, const NodeRows& rows, Length&& length) {
    std::vector<NodeTask> tasks;
    for (int v = 0; v <= tree.n_nodes(); ++v) {
        if (rows.n_rows(v) == 0) continue;
        const int n_children = v == tree.n_nodes() ? 1 : tree.n_children[v];
        std::size_t non_zeros = 0;
        for (std::int64_t e = rows.begin[v]; e < rows.begin[v + 1]; ++e) non_zeros += length(rows.row[e]);
        tasks.push_back({v, false, non_zeros * ((n_children + max_tile_columns - 1) / max_tile_columns) + 1});
    }
    return tasks;
}

class NodePlan {
public:
    /// `row_weight` may be empty. The arguments must outlive the plan.
    NodePlan(const TreeView& tree, const NodeRows& rows, std::span<const float> row_weight, std::uint64_t seed,
             std::vector<NodeTask> tasks)
        : tree_(tree), rows_(rows), row_weight_(row_weight), seed_(seed), tasks_(std::move(tasks)) {
        largest_first(tasks_);
        level_.assign(tree.n_nodes() + 1, 0);
        for (int v = 0; v < tree.n_nodes(); ++v) level_[v] = v == 0 ? 1 : level_[tree.parent[v]] + 1;
    }

    /// The largest first, for balance.
    const std::vector<NodeTask>& tasks() const { return tasks_; }
    int level(int node) const { return level_[node]; }

    /// Levels count the depth of the nodes that are scored: 0 is the root's gate, 1 the root's children, and so on.
    int n_levels() const { return *std::ranges::max_element(level_); }

    /// Multiplications of an epoch over all nodes, roughly.
    double total_work() const {
        double total = 0;
        for (const NodeTask& task : tasks_) total += static_cast<double>(task.work);
        return total;
    }

    /// The positive examples of an entry's row among those of the node's children that count, by weight.
    template <class Counts>
    double positive_mass(std::int64_t entry, Counts&& counts) const {
        const auto first = rows_.positive.begin() + rows_.positive_begin[entry];
        const auto n =
            static_cast<double>(std::count_if(first, rows_.positive.begin() + rows_.positive_begin[entry + 1], counts));
        return row_weight_.empty() ? n : n * row_weight_[rows_.row[entry]];
    }

    std::vector<double> level_positives() const {
        std::vector<double> total(n_levels(), 0.0);
        for (const NodeTask& task : tasks_)
            for (std::int64_t e = rows_.begin[task.node]; e < rows_.begin[task.node + 1]; ++e)
                total[level_[task.node]] += positive_mass(e, [](std::int32_t) { return true; });
        return total;
    }

    /// This share of each level's work, each node with at most max_rows rows and max_columns children (0: all). For
    /// paths, children of nodes in the sample come first.
    std::vector<NodeTask> sampled_nodes(double share, std::int64_t max_rows, int max_columns = 0,
                                        bool of_paths = false) const {
        std::vector<NodeTask> tasks = tasks_, sample;
        std::vector<double> work_of_level(n_levels(), 0.0), taken(n_levels(), 0.0);
        for (const NodeTask& task : tasks) work_of_level[level_[task.node]] += static_cast<double>(task.work);
        std::ranges::sort(tasks, {}, [&](const NodeTask& task) { return mix(seed_ * 77 + task.node); });
        std::vector<bool> is_chosen(level_.size());
        const auto choose = [&](NodeTask task) {
            const int level = level_[task.node];
            if (taken[level] >= share * work_of_level[level] || rows_.n_rows(task.node) < 5 || is_chosen[task.node])
                return;
            taken[level] += static_cast<double>(task.work);
            is_chosen[task.node] = true;
            task.held_out = true;
            task.max_columns = max_columns;
            task.of_paths = of_paths;
            task.sample = std::min(1.0, static_cast<double>(std::max<std::int64_t>(max_rows, 0)) /
                                            static_cast<double>(rows_.n_rows(task.node)));
            task.work = static_cast<std::size_t>(static_cast<double>(task.work) * task.sample) + 1;
            sample.push_back(task);
        };
        if (of_paths) {
            std::vector<NodeTask> from_the_top = tasks;
            std::ranges::stable_sort(from_the_top, {}, [&](const NodeTask& task) { return level_[task.node]; });
            for (const NodeTask& task : from_the_top)
                if (level_[task.node] <= 1 || is_chosen[tree_.parent[task.node]]) choose(task);
        }
        for (const NodeTask& task : tasks) choose(task);
        largest_first(sample);
        return sample;
    }

    /// The rows of a node that are in a sample of it.
    std::vector<std::int32_t> sampled_rows(int node, double sample) const {
        std::vector<std::int32_t> found;
        for (std::int64_t e = rows_.begin[node]; e < rows_.begin[node + 1]; ++e)
            if (is_sampled(draw_row(seed_, node, rows_.row[e]), sample)) found.push_back(rows_.row[e]);
        return found;
    }

private:
    const TreeView& tree_;
    const NodeRows& rows_;
    std::span<const float> row_weight_;
    std::uint64_t seed_;
    std::vector<NodeTask> tasks_;
    std::vector<int> level_;
};

}  // namespace ramify
