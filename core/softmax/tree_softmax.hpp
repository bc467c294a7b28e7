/// A trained tree softmax: the hidden vector of a row, and the exact best-first search for its most probable labels.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

#include "softmax/embedding_bag.hpp"
#include "softmax/sibling_decisions.hpp"
#include "trees/best_first.hpp"
#include "trees/label_tree.hpp"

namespace ramify {

/// Scratch space of one thread.
struct SoftmaxScratch {
    Bag bag;
    std::vector<float> hidden;
    std::vector<std::uint32_t> row;
    std::vector<float> probability;
    BestFirst best;
    std::vector<std::uint8_t> is_known;  ///< per node: its probability has been found, for named labels
    std::vector<float> of_node;          ///< that probability
    std::vector<std::int32_t> path, seen;
    std::int64_t n_opened = 0;
};

struct TreeSoftmax {
    FeatureSettings features;
    EmbeddingColumns columns;
    EmbeddingTable embedding, output;
    SiblingDecisions decisions;
    std::vector<std::int32_t> leaf_of;

    const TreeView& tree() const { return decisions.tree; }

    void validate() const {
        embedding.validate(columns.n_rows() + (features.bias != 0.0f), "embedding");
        output.validate(decisions.n_rows(), "output");
    }

    std::int32_t leaf(std::int32_t label) const {
        return label >= 0 && static_cast<std::size_t>(label) < leaf_of.size() ? leaf_of[static_cast<std::size_t>(label)]
                                                                              : -1;
    }

    /// The mean of the embeddings of a row's features, into s.hidden.
    void hide(std::span<const std::int32_t> indices, std::span<const float> values, SoftmaxScratch& s) const {
        s.bag.fill(features, columns, indices, values);
        s.hidden.resize(embedding.stride);
        embedding.sum(s.bag.row.data(), s.bag.weight.data(), s.bag.size(), s.hidden.data());
    }

    /// The probability that the row has any label at all.
    float root(SoftmaxScratch& s) const {
        if (!decisions.is_plt) return 1.0f;
        const std::uint32_t gate = 0;
        float score;
        output.dots(&gate, 1, s.hidden.data(), &score);
        kernels().to_probabilities(&score, 1);
        return score;
    }

    /// The probabilities of a node's children given the node, into s.probability.
    void open(std::int32_t node, SoftmaxScratch& s) const {
        const auto n = static_cast<std::uint32_t>(tree().n_children[node]), n_rows = decisions.n_decided(node),
                   first = decisions.first_row(node);
        s.row.resize(n_rows);
        for (std::uint32_t k = 0; k < n_rows; ++k) s.row[k] = first + k;
        if (s.probability.size() < n) s.probability.resize(n);
        output.dots(s.row.data(), static_cast<int>(n_rows), s.hidden.data(), s.probability.data());
        decisions.to_probabilities(node, s.probability.data());
        ++s.n_opened;
    }

    /// The most probable labels of the row that s.hidden stands for, into s.best.found, best first.
    void search(const SearchSettings& settings, SoftmaxScratch& s) const {
        s.best.clear();
        s.best.reach(settings, root(s), 0, tree().label[0]);
        float p;
        for (std::int32_t node; s.best.next(settings, p, node);) {
            open(node, s);
            for (std::int32_t c = 0, v = tree().first_child[node]; c < tree().n_children[node]; ++c, ++v)
                s.best.reach(settings, p * s.probability[static_cast<std::size_t>(c)], v, tree().label[v]);
        }
        s.best.finish();
    }

    /// The probability of one label; what has been found for its path is kept in the scratch until `forget`.
    float named(std::int32_t label, SoftmaxScratch& s) const {
        const std::int32_t end = leaf(label);
        if (end < 0) return 0.0f;
        s.is_known.resize(static_cast<std::size_t>(tree().n_nodes()));
        s.of_node.resize(static_cast<std::size_t>(tree().n_nodes()));
        if (!s.is_known[0]) {
            s.of_node[0] = root(s);
            s.is_known[0] = 1;
            s.seen.push_back(0);
        }
        s.path.clear();
        std::int32_t v = end;
        for (; !s.is_known[v]; v = tree().parent[v]) s.path.push_back(tree().parent[v]);
        for (auto node = s.path.rbegin(); node != s.path.rend(); ++node) {
            open(*node, s);
            for (std::int32_t c = 0, child = tree().first_child[*node]; c < tree().n_children[*node]; ++c, ++child) {
                s.of_node[child] = s.of_node[*node] * s.probability[static_cast<std::size_t>(c)];
                s.is_known[child] = 1;
                s.seen.push_back(child);
            }
        }
        return s.of_node[end];
    }
    void forget(SoftmaxScratch& s) const {
        for (std::int32_t v : s.seen) s.is_known[v] = 0;
        s.seen.clear();
    }
};

}  // namespace ramify
