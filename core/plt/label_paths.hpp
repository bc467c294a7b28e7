/// Whole paths from the root to labels, level by level: what the exponents of levels are fitted on.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "plt/tree_search.hpp"

namespace ramify {

/// Calls leaf(node, logs of the conditional probabilities at each level) for all leaves that a row reaches with at
/// least `least`. Levels beyond the last map count to it.
template <class Leaf>
void label_paths(const LabelTreeModel& model, std::span<const Entry> x, float least, SearchScratch& scratch,
                 Leaf&& leaf) {
    std::vector<std::int32_t> nodes{0};
    const auto width = static_cast<std::size_t>(model.n_levels);
    std::vector<float> logs(width, 0.0f), child_logs;  // of all nodes that are reached, line by line
    std::vector<float> product{model.root_probability(x, scratch)};
    if (width == 0 || !(product[0] >= least)) return;
    logs[0] = std::log(product[0]);
    for (std::size_t k = 0; k < nodes.size(); ++k) {
        const std::int32_t node = nodes[k];
        if (model.tree.is_leaf(node)) {
            leaf(node, std::span<const float>(logs).subspan(k * width, width));
            continue;
        }
        if (!model.blocks.has(node)) continue;
        model.conditional(node, x, scratch.score);
        const auto at = static_cast<std::size_t>(std::min<std::int64_t>(model.level[node], model.n_levels - 1));
        for (std::size_t c = 0; c < scratch.score.child.size(); ++c) {
            const float p = product[k] * scratch.score.score[c];
            if (!(p >= least)) continue;
            nodes.push_back(model.tree.first_child[node] + scratch.score.child[c]);
            product.push_back(p);
            child_logs.assign(logs.begin() + static_cast<std::ptrdiff_t>(k * width),
                              logs.begin() + static_cast<std::ptrdiff_t>((k + 1) * width));
            child_logs[at] += std::log(scratch.score.score[c]);
            logs.insert(logs.end(), child_logs.begin(), child_logs.end());
        }
    }
}

}  // namespace ramify
