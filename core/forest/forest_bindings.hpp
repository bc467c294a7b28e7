/// Shared by the bindings of FastXML and of the spectral method: a forest over saved arrays, and a row's path through a
/// tree.
#pragma once

#include <nanobind/nanobind.h>

#include <cstdint>
#include <utility>
#include <vector>

#include "bindings/arrays.hpp"
#include "bindings/checks.hpp"
#include "bindings/saved_arrays.hpp"
#include "forest/instance_forest.hpp"

namespace ramify {

inline InstanceForest attached_forest(const SavedArrays& saved, std::int64_t n_labels,
                                      const FeatureSettings& features) {
    check_label_count(n_labels);
    InstanceForest forest;
    saved.take_all(forest);
    forest.features = features;
    forest.n_labels = n_labels;
    forest.attach();
    return forest;
}

/// The caller clears the scratch afterwards.
inline ForestRow placed_row(const InstanceForest& forest, const Ints& indices, const Floats& values, ForestScratch& s) {
    check_row(indices, values, forest.features.n_features);
    return forest.place({view(indices), view(values)}, s);
}

/// Nodes from the root to the leaf, each with its score, features, and what each of them added to the score.
inline PathSteps forest_route(const InstanceForest& forest, std::int64_t tree, const ForestRow& row) {
    nb::list steps;
    for (std::int64_t v = forest.tree_begin[tree];;) {
        std::vector<std::int32_t> feature;
        std::vector<float> contribution;
        for (std::int64_t k = forest.weight_begin[v]; k < forest.weight_begin[v + 1]; ++k) {
            const std::int32_t f = forest.weight_feature[k];
            if (row.dense[f] == 0.0f) continue;
            feature.push_back(f);
            contribution.push_back(row.dense[f] * forest.weight[k]);
        }
        const double score = forest.score(v, row);
        steps.append(nb::make_tuple(v, score, to_numpy(std::move(feature)), to_numpy(std::move(contribution))));
        if (forest.child[v] < 0) return steps;
        v = forest.child[v] + (score > 0);
    }
}

}  // namespace ramify
