/// Probabilities of single labels of a row that a tree was searched for: looked up, bounded, or scored.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "plt/opened_blocks.hpp"
#include "plt/tree_search.hpp"

namespace ramify {

class LabelLookup {
public:
    struct Known {
        float probability;  ///< the label's own, or one that it does not exceed
        bool is_exact;
    };

    /// For one row, until `close`; what is scored in addition is added to `opened`.
    void open(const LabelTreeModel& model, std::span<const Entry> x, OpenedBlocks& opened) {
        if (is_open_) block_of_.clear();  // an error, such as a lack of memory, came before `close`
        is_open_ = true;
        model_ = &model;
        x_ = x;
        opened_ = &opened;
        block_of_.resize(static_cast<std::size_t>(model.tree.n_nodes()), -1);
        for (std::size_t b = 0; b < opened.size(); ++b) block_of_[opened.node(b)] = static_cast<std::int32_t>(b);
    }

    void close() {
        for (std::size_t b = 0; b < opened_->size(); ++b) block_of_[opened_->node(b)] = -1;
        is_open_ = false;
    }

    /// What the opened blocks tell of a label: the least probability on its path that they hold.
    Known known(std::int32_t label) const {
        const std::int32_t leaf = model_->leaf(label);
        if (leaf < 0) return {0.0f, true};
        for (std::int32_t v = leaf; v > 0; v = model_->tree.parent[v])
            if (block_of_[model_->tree.parent[v]] >= 0) {
                const float p = child(v);
                return {p, v == leaf || p == 0.0f};
            }
        return {opened_->root, leaf == 0 || opened_->root == 0.0f};
    }

    /// The label's probability; opens those nodes on its path that are not.
    float scored(std::int32_t label, ScoreScratch& scratch) {
        const std::int32_t leaf = model_->leaf(label);
        if (leaf < 0) return 0.0f;
        path_.clear();
        std::int32_t v = leaf;
        while (v > 0 && block_of_[model_->tree.parent[v]] < 0) path_.push_back(v), v = model_->tree.parent[v];
        float p = v == 0 ? opened_->root : child(v);
        for (; !path_.empty() && p > 0.0f; path_.pop_back()) {
            model_->conditional(v, x_, scratch);
            block_of_[v] = static_cast<std::int32_t>(opened_->size());
            opened_->add(v, p, scratch.score);
            v = path_.back();
            p = child(v);
        }
        return p;
    }

private:
    /// The probability of a node whose parent is opened.
    float child(std::int32_t v) const {
        const std::int32_t column = model_->column_of[v];  // none: no training row has it
        return column < 0 ? 0.0f : opened_->child(static_cast<std::size_t>(block_of_[model_->tree.parent[v]]), column);
    }

    const LabelTreeModel* model_ = nullptr;
    std::span<const Entry> x_;
    OpenedBlocks* opened_ = nullptr;
    bool is_open_ = false;
    std::vector<std::int32_t> block_of_;  // per node: its number among the opened; -1 for all others, and once closed
    std::vector<std::int32_t> path_;
};

}  // namespace ramify
