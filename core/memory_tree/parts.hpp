/// Parts of a memory tree: its settings, its nodes, and the scratch space of a query.
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "base/feature_index.hpp"
#include "memory_tree/one_against_rest.hpp"
#include "memory_tree/scorer.hpp"
#include "memory_tree/sparse_logistic.hpp"

namespace ramify {

enum class Forget : int { oldest = 0, least_useful = 1 };

struct MemoryTreeSettings {
    double leaf_multiplier = 10.0;     ///< c: a leaf holds at most c log2(n) examples
    double alpha = 0.3;                ///< weight of balance against fit
    int reroutes = 1;                  ///< d: stored examples that are rerouted after each learned one
    int n_leaves = 4;                  ///< leaves that a query visits
    int n_neighbours = 10;             ///< examples that vote; 0: all that were scored
    StepSettings step;                 ///< of routers
    StepSettings rest_step{1.0, 0.2};  ///< of labels' own classifiers: gentler first steps, as they correct a vote
    StepSettings scorer_step{0.1, 0.1};
    bool normalize = true;
    bool is_multiclass = false;        ///< exactly one label a row: shares of the vote are its probabilities
    bool has_one_against_rest = true;  ///< each label has a classifier that scores it among the neighbours' labels
    std::size_t max_examples = 0;      ///< 0: no bound
    Forget forget = Forget::oldest;
    std::uint64_t seed = 0;
};

struct MemoryNode {
    std::int32_t parent = -1;
    std::int32_t left = -1, right = -1;  ///< -1 in a leaf
    std::uint32_t n = 0;                 ///< examples below
    std::unique_ptr<SparseLogistic> router;
    std::vector<std::uint32_t> examples;  ///< slots, in a leaf

    bool is_leaf() const { return left < 0; }
};

/// A subtree that a query has not looked into yet; among equals the one found first comes first, whatever slots nodes
/// have.
struct OpenNode {
    double cost;
    std::uint32_t order;
    std::int32_t node;

    bool operator>(const OpenNode& other) const { return cost != other.cost ? cost > other.cost : order > other.order; }
};

/// Scratch space of a query. `scaled` and `pull` are all zero between calls.
struct MemoryScratch {
    std::vector<Entry> x;
    std::vector<double> scaled, pull;
    std::vector<Neighbour> neighbours;
    std::vector<Candidate> candidates;
    std::vector<double> reward;
    std::vector<OpenNode> open;
    std::vector<std::int32_t> path;
    std::int64_t n_nodes = 0, n_examples = 0;  ///< touched so far

    void make_room(std::size_t n_features) {
        if (scaled.size() < n_features) {
            scaled.resize(n_features, 0.0);
            pull.resize(n_features, 0.0);
        }
    }
};

/// Appends a row to `out`, of unit length if asked, with number(feature) for each feature that has one. False if the
/// caller has changed the row meanwhile, and it holds no valid feature any more.
template <class Number>
[[nodiscard]] bool prepare_row(std::span<const std::int32_t> indices, std::span<const float> values, bool normalize,
                               std::vector<Entry>& out, Number&& number) {
    double scale = 1.0;
    if (normalize) {
        double squared = 0.0;
        for (float v : values) squared += static_cast<double>(v) * v;
        if (squared > 0) scale = 1.0 / std::sqrt(squared);
    }
    for (std::size_t k = 0; k < indices.size(); ++k) {
        if (values[k] == 0.0f) continue;
        const std::int32_t feature = indices[k];
        if (feature < 0) return false;
        const std::uint32_t f = number(static_cast<std::uint32_t>(feature));
        if (f != FeatureIndex::unknown) out.push_back({f, static_cast<float>(values[k] * scale)});
    }
    return true;
}

}  // namespace ramify
