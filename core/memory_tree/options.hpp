/// The options of a memory tree under their Python names, checked.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <string>

#include "memory_tree/parts.hpp"

namespace ramify {

inline MemoryTreeSettings memory_tree_settings(double leaf_multiplier, double alpha, int reroutes, int n_leaves,
                                               int n_neighbours, double learning_rate, double eps, double scorer_rate,
                                               bool normalize, bool is_multiclass, bool has_one_against_rest,
                                               std::size_t max_examples, const std::string& forget,
                                               std::uint64_t seed) {
    if (!(leaf_multiplier > 0) || !std::isfinite(leaf_multiplier))
        throw std::invalid_argument("leaf_multiplier must be above 0");
    if (!(alpha > 0) || !(alpha <= 1)) throw std::invalid_argument("alpha must be above 0 and at most 1");
    if (reroutes < 0 || n_leaves < 1 || n_neighbours < 0)
        throw std::invalid_argument("reroutes and n_neighbours must not be negative, n_leaves at least 1");
    if (!(learning_rate > 0) || !(eps > 0) || !(scorer_rate >= 0) || !std::isfinite(learning_rate) ||
        !std::isfinite(eps) || !std::isfinite(scorer_rate))
        throw std::invalid_argument("learning_rate and eps must be above 0, scorer_rate not negative, all finite");
    if (forget != "oldest" && forget != "least_useful")
        throw std::invalid_argument("forget must be 'oldest' or 'least_useful'");
    MemoryTreeSettings s;
    s.leaf_multiplier = std::min(leaf_multiplier, 1e15);  // as a number of examples it must fit into an integer
    s.alpha = alpha;
    s.reroutes = reroutes;
    s.n_leaves = n_leaves;
    s.n_neighbours = n_neighbours;
    s.step = {learning_rate, eps};
    s.rest_step.learning_rate = learning_rate;
    s.scorer_step.learning_rate = scorer_rate;
    s.normalize = normalize;
    s.is_multiclass = is_multiclass;
    s.has_one_against_rest = has_one_against_rest;
    s.max_examples = max_examples;
    s.forget = forget == "oldest" ? Forget::oldest : Forget::least_useful;
    s.seed = seed;
    return s;
}

}  // namespace ramify
