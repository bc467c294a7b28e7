/// Growing FastXML's trees: each node's rows are split by ranking, a sparse separator learns the split, and decides.
#pragma once

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <stdexcept>
#include <utility>
#include <vector>

#include "base/hashing.hpp"
#include "base/parallel.hpp"
#include "base/sparse_rows.hpp"
#include "fastxml/l1_logistic.hpp"
#include "fastxml/ranking_split.hpp"
#include "forest/instance_forest.hpp"

namespace ramify {

struct ForestSettings {
    std::int64_t n_trees = 50;
    double max_leaf = 10;  ///< a node whose rows weigh no more is a leaf
    std::int64_t labels_per_leaf = 100;
    int max_iterations = 100;  ///< of the rankings and sides of a node
    SeparatorSettings separator;
};

/// What all trees are grown from.
struct ForestData {
    const PreparedRows& rows;
    const RankedLabels& labels;
    std::span<const float> row_weight;  ///< empty: one for each
    std::int64_t n_columns;             ///< features, the bias included
    std::int64_t n_labels;
    std::vector<std::uint64_t> row_hash;  ///< of a row's features and labels

    ForestData(const PreparedRows& rows_, const RankedLabels& labels_, std::span<const float> row_weight_,
               std::int64_t n_columns_, std::int64_t n_labels_)
        : rows(rows_),
          labels(labels_),
          row_weight(row_weight_),
          n_columns(n_columns_),
          n_labels(n_labels_),
          row_hash(labels.share.size()) {
        for (std::size_t i = 0; i < row_hash.size(); ++i) {
            const auto row = static_cast<std::int64_t>(i);
            std::uint64_t hash = 0;
            for (const Entry* e = rows.row(row); e != rows.row(row) + rows.length(row); ++e)
                hash =
                    mix(hash ^ (static_cast<std::uint64_t>(e->feature) << 32 | std::bit_cast<std::uint32_t>(e->value)));
            for (std::int32_t l : labels.of(row)) hash = mix(hash ^ static_cast<std::uint32_t>(l));
            row_hash[i] = hash;
        }
    }

    double weight(std::int32_t row) const { return row_weight.empty() ? 1.0 : row_weight[row]; }
};

/// Grows trees one after the other, in its own scratch space.
class TreeGrower {
public:
    TreeGrower(const ForestData& data, const ForestSettings& settings)
        : data_(data),
          settings_(settings),
          split_(static_cast<std::size_t>(data.n_labels)),
          sums_(data.n_columns),
          column_of_(data.n_columns, -1),
          dense_weight_(data.n_columns, 0.0f),
          label_total_(data.n_labels, 0.0) {}

    /// One tree; its node numbers begin at 0.
    ForestStorage grow(std::uint64_t seed, Progress* progress, Watch& watch) {
        ForestStorage tree;
        rows_.resize(data_.row_hash.size());
        for (std::size_t i = 0; i < rows_.size(); ++i) rows_[i] = static_cast<std::int32_t>(i);
        // Breadth first: the queue is the list of nodes, and the children of a node lie side by side.
        std::vector<Pending> nodes{{0, rows_.size(), mix(seed)}};
        tree.weight_begin.push_back(0);
        tree.label_begin.push_back(0);
        for (std::size_t v = 0; v < nodes.size() && !watch.should_stop(); ++v) {
            const Pending node = nodes[v];
            const std::span<std::int32_t> rows(rows_.data() + node.begin, node.end - node.begin);
            double mass = 0;
            for (std::int32_t i : rows) mass += data_.weight(i);
            std::size_t n_left = 0;
            if (mass > settings_.max_leaf && !have_same_labels(rows)) n_left = split(rows, node.seed, watch);
            if (n_left > 0 && n_left < rows.size()) {
                tree.child.push_back(static_cast<std::int32_t>(nodes.size()));
                nodes.push_back({node.begin, node.begin + n_left, mix(node.seed ^ 1)});
                nodes.push_back({node.begin + n_left, node.end, mix(node.seed ^ 2)});
                for (const auto& [feature, w] : separator_) {
                    tree.weight_feature.push_back(feature);
                    tree.weight.push_back(w);
                }
            } else {
                tree.child.push_back(-1);
                add_leaf(rows, mass, tree);
                if (progress) progress->done += rows.size();
            }
            tree.mass.push_back(static_cast<float>(std::min(mass, double{std::numeric_limits<float>::max()})));
            tree.weight_begin.push_back(static_cast<std::int64_t>(tree.weight.size()));
            tree.label_begin.push_back(static_cast<std::int64_t>(tree.label.size()));
        }
        return tree;
    }

private:
    struct Pending {
        std::size_t begin, end;  ///< in rows_
        std::uint64_t seed;
    };

    /// Then no split could rank better.
    bool have_same_labels(std::span<const std::int32_t> rows) const {
        const auto first = data_.labels.of(rows[0]);
        return std::ranges::all_of(rows, [&](std::int32_t i) { return std::ranges::equal(data_.labels.of(i), first); });
    }

    /// Puts the rows of the negative side first; how many they are. The separator is left in separator_.
    std::size_t split(std::span<std::int32_t> rows, std::uint64_t seed, Watch& watch) {
        side_.resize(rows.size());
        // The start is drawn from what a row holds, not from its number: the order of rows does not matter, nor whether
        // a row is given twice or weighs two.
        for (std::size_t k = 0; k < rows.size(); ++k) side_[k] = mix(seed ^ data_.row_hash[rows[k]]) >> 63;
        split_.run(data_.labels, rows, side_, settings_.max_iterations, nullptr, &watch);
        make_problem(rows);
        solver_.solve(problem_, settings_.separator, seed, &watch);
        separator_.clear();
        for (std::size_t j = 0; j < feature_.size(); ++j)
            if (const auto w = static_cast<float>(solver_.weight[j]); w != 0) separator_.emplace_back(feature_[j], w);
        if (separator_.empty()) return 0;
        for (const auto& [feature, w] : separator_) dense_weight_[feature] = w;
        const auto right = std::ranges::stable_partition(rows, [&](std::int32_t i) {
            double score = 0;
            for (const Entry* e = data_.rows.row(i); e != data_.rows.row(i) + data_.rows.length(i); ++e)
                score += static_cast<double>(e->value) * dense_weight_[e->feature];
            return !(score > 0);
        });
        for (const auto& [feature, w] : separator_) dense_weight_[feature] = 0.0f;
        return rows.size() - right.size();
    }

    /// Rows without labels do not influence the split: their side is random.
    void make_problem(std::span<const std::int32_t> rows) {
        problem_.is_positive.clear();
        problem_.cost.clear();
        used_.clear();
        double mass[2] = {0, 0};
        for (std::size_t k = 0; k < rows.size(); ++k) {
            if (data_.labels.of(rows[k]).empty()) continue;
            used_.push_back(rows[k]);
            problem_.is_positive.push_back(side_[k]);
            problem_.cost.push_back(data_.weight(rows[k]));
            mass[side_[k]] += problem_.cost.back();
        }
        // Both sides count the same, however many rows they have.
        for (std::size_t k = 0; k < used_.size(); ++k)
            problem_.cost[k] *= settings_.separator.C * (mass[0] + mass[1]) / mass[problem_.is_positive[k]];
        choose_columns();
        const std::vector<std::size_t>& begin = problem_.begin;
        problem_.cells.resize(begin.back());
        next_.assign(begin.begin(), begin.end() - 1);
        for (std::size_t k = 0; k < used_.size(); ++k)
            for (const Entry* e = data_.rows.row(used_[k]); e != data_.rows.row(used_[k]) + data_.rows.length(used_[k]);
                 ++e)
                if (const std::int32_t j = column_of_[e->feature]; j >= 0)
                    problem_.cells[next_[j]++] = {static_cast<std::uint32_t>(k), e->value};
        for (std::int32_t f : feature_) column_of_[f] = -1;
    }

    /// The features that can have a weight at all: the loss falls by no more than the sums below for a step of one
    /// along or against a feature, wherever the weights are, and the penalty rises by one.
    void choose_columns() {
        touched_.clear();
        for (std::size_t k = 0; k < used_.size(); ++k) {
            const double cost = problem_.cost[k];
            for (const Entry* e = data_.rows.row(used_[k]); e != data_.rows.row(used_[k]) + data_.rows.length(used_[k]);
                 ++e) {
                ColumnSums& sums = sums_[e->feature];
                if (sums.count++ == 0) touched_.push_back(static_cast<std::int32_t>(e->feature));
                const bool is_along = (e->value > 0) == (problem_.is_positive[k] != 0);
                (is_along ? sums.along : sums.against) += cost * std::abs(static_cast<double>(e->value));
            }
        }
        feature_.clear();
        for (std::int32_t f : touched_)
            if (std::max(sums_[f].along, sums_[f].against) > 1) feature_.push_back(f);
        std::ranges::sort(feature_);
        problem_.begin.assign(1, 0);
        for (std::size_t j = 0; j < feature_.size(); ++j) {
            column_of_[feature_[j]] = static_cast<std::int32_t>(j);
            problem_.begin.push_back(problem_.begin.back() + sums_[feature_[j]].count);
        }
        for (std::int32_t f : touched_) sums_[f] = ColumnSums{};
    }

    /// The mean of the rows' labels, the most probable ones of them.
    void add_leaf(std::span<const std::int32_t> rows, double mass, ForestStorage& tree) {
        touched_.clear();
        for (std::int32_t i : rows)
            for (std::int32_t l : data_.labels.of(i)) {
                if (label_total_[l] == 0) touched_.push_back(l);
                label_total_[l] += data_.weight(i);
            }
        leaf_.clear();
        for (std::int32_t l : touched_) {
            const auto p = static_cast<float>(std::min(1.0, label_total_[l] / mass));
            if (p > 0) leaf_.push_back({l, p});
            label_total_[l] = 0;
        }
        keep_best(leaf_, static_cast<std::size_t>(settings_.labels_per_leaf));
        std::ranges::sort(leaf_, {}, &LabelProbability::label);
        for (const LabelProbability& of : leaf_) {
            tree.label.push_back(of.label);
            tree.probability.push_back(of.probability);
        }
    }

    struct ColumnSums {
        std::size_t count = 0;
        double along = 0, against = 0;
    };

    const ForestData& data_;
    const ForestSettings& settings_;
    RankingSplit split_;
    SeparatorProblem problem_;
    SeparatorSolver solver_;
    std::vector<std::int32_t> rows_, used_, touched_, feature_;
    std::vector<std::int8_t> side_;
    std::vector<ColumnSums> sums_;         // per feature, empty between two nodes
    std::vector<std::int32_t> column_of_;  // per feature, -1 between two nodes
    std::vector<float> dense_weight_;      // per feature, zero between two nodes
    std::vector<std::size_t> next_;
    std::vector<std::pair<std::int32_t, float>> separator_;
    std::vector<double> label_total_;  // per label, zero between two leaves
    std::vector<LabelProbability> leaf_;
};

/// Appends a tree to a forest.
inline void append_tree(ForestStorage& forest, const ForestStorage& tree) {
    const auto first_node = static_cast<std::int32_t>(forest.child.size());
    const auto first_weight = static_cast<std::int64_t>(forest.weight.size()),
               first_label = static_cast<std::int64_t>(forest.label.size());
    for (std::int32_t c : tree.child) forest.child.push_back(c < 0 ? -1 : c + first_node);
    for (std::size_t v = 1; v < tree.weight_begin.size(); ++v) {
        forest.weight_begin.push_back(first_weight + tree.weight_begin[v]);
        forest.label_begin.push_back(first_label + tree.label_begin[v]);
    }
    auto append = [](auto& to, const auto& from) { to.insert(to.end(), from.begin(), from.end()); };
    append(forest.mass, tree.mass);
    append(forest.weight_feature, tree.weight_feature);
    append(forest.weight, tree.weight);
    append(forest.label, tree.label);
    append(forest.probability, tree.probability);
    forest.tree_begin.push_back(static_cast<std::int64_t>(forest.child.size()));
}

/// All trees, a thread on each; the same forest for any number of threads. Trees are numbered from `first_tree` on: a
/// forest may be grown in parts.
inline ForestStorage grow_forest(const ForestData& data, const ForestSettings& settings, std::uint64_t seed,
                                 int n_threads, Progress* progress, std::uint64_t first_tree = 0) {
    const auto n_trees = static_cast<std::size_t>(settings.n_trees);
    if (progress) progress->total = n_trees * data.row_hash.size();
    std::vector<ForestStorage> trees(n_trees);
    std::vector<TreeGrower> growers;
    for (int k = 0; k < usable_threads(n_threads, n_trees); ++k) growers.emplace_back(data, settings);
    Watch watch;
    parallel_for(
        n_trees, n_threads,
        [&](std::size_t t, int worker) {
            trees[t] = growers[worker].grow(mix(seed) + first_tree + t, progress, watch);
        },
        &watch);
    ForestStorage forest;
    forest.tree_begin.push_back(0);
    forest.weight_begin.push_back(0);
    forest.label_begin.push_back(0);
    std::size_t n_nodes = 0;
    for (ForestStorage& tree : trees) {
        n_nodes += tree.child.size();
        if (n_nodes > static_cast<std::size_t>(std::numeric_limits<std::int32_t>::max()))
            throw std::length_error(
                "the forest has more nodes than an int32 can number: fewer trees, or larger leaves");
        append_tree(forest, tree);
        tree = ForestStorage{};
    }
    return forest;
}

}  // namespace ramify
