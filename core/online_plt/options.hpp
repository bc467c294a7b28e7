/// The options of an online learner under their Python names, checked.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <map>
#include <stdexcept>
#include <string>

#include "online_plt/policy.hpp"
#include "online_plt/update.hpp"

namespace ramify {

template <class Value>
Value choose_named(const std::map<std::string, Value>& names, const std::string& name, const char* what) {
    const auto at = names.find(name);
    if (at == names.end()) throw std::invalid_argument(std::string(what) + " '" + name + "' is unknown");
    return at->second;
}

struct LearnerOptions {
    OnlineSettings settings;
    GrowthSettings growth;
    PolicySettings policy;
};

inline LearnerOptions learner_options(const std::string& rule, float learning_rate, float eps, bool eps_in_root,
                                      float decay, float l2, bool normalize, float bias, bool is_multiclass,
                                      std::size_t buffer_entries, std::size_t memory_budget, const std::string& policy,
                                      double alpha, double fair_share, int arity, int pre_leaf_arity,
                                      std::uint64_t seed) {
    const bool is_finite = std::isfinite(learning_rate) && std::isfinite(eps) && std::isfinite(decay) &&
                           std::isfinite(l2) && std::isfinite(bias) && std::isfinite(alpha);
    if (!is_finite || !(learning_rate > 0) || eps < 0 || decay < 0 || l2 < 0)
        throw std::invalid_argument("learning_rate must be above 0, eps, decay and l2 not negative, all finite");
    if (!(fair_share >= 1)) throw std::invalid_argument("fair_share must be at least 1");
    if (arity < 2 || pre_leaf_arity < arity)
        throw std::invalid_argument("arity must be at least 2, and pre_leaf_arity at least arity");
    LearnerOptions o;
    o.settings.rule =
        choose_named<UpdateRule>({{"adagrad", UpdateRule::adagrad}, {"fobos", UpdateRule::fobos}}, rule, "learner");
    o.settings.learning_rate = learning_rate;
    o.settings.eps = eps;
    o.settings.eps_in_root = eps_in_root;
    o.settings.decay = decay;
    o.settings.l2 = l2;
    o.settings.normalize = normalize;
    o.settings.bias = bias;
    o.settings.is_multiclass = is_multiclass;
    o.settings.buffer_entries = std::max<std::size_t>(1, buffer_entries);
    o.settings.memory_budget = memory_budget;
    o.policy.policy = choose_named<Policy>({{"none", Policy::none},
                                            {"best", Policy::best},
                                            {"balanced", Policy::balanced},
                                            {"random", Policy::random},
                                            {"fair", Policy::fair},
                                            {"cpt", Policy::cpt},
                                            {"callable", Policy::callable}},
                                           policy, "policy");
    o.policy.alpha = alpha;
    o.policy.fair_share = fair_share;
    o.policy.seed = seed;
    o.growth.arity = arity;
    o.growth.pre_leaf_arity = pre_leaf_arity;
    using Theta = GrowthSettings::Theta;
    o.growth.theta = o.policy.policy == Policy::none       ? Theta::nowhere
                     : o.policy.policy == Policy::cpt      ? Theta::leaves
                     : o.policy.policy == Policy::callable ? Theta::everywhere
                                                           : Theta::pre_leaves;
    return o;
}

}  // namespace ramify
