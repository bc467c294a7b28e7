/// One linear classifier that learns online: logistic loss, AdaGrad, weights only for features that it has met.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "base/hash_map.hpp"
#include "kernels/kernels.hpp"

namespace ramify {

struct StepSettings {
    double learning_rate = 2.0;
    double eps = 0.2;
};

/// 1 / (1 + exp(-s)), for any s.
inline double logistic(double s) { return s >= 0 ? 1 / (1 + std::exp(-s)) : std::exp(s) / (1 + std::exp(s)); }

/// Squares of larger ones would leave float's range: rows of any finite values must leave finite weights.
inline constexpr double largest_gradient = 1e15;

/// AdaGrad's step for one weight; sums and weights are floats, everything between is double, so that no vector unit
/// changes a bit.
inline void adagrad_step(float& weight, float& sum, double gradient, const StepSettings& step) {
    gradient = std::clamp(gradient, -largest_gradient, largest_gradient);
    sum = static_cast<float>(sum + gradient * gradient);
    weight =
        static_cast<float>(weight - step.learning_rate * gradient / (std::sqrt(static_cast<double>(sum)) + step.eps));
}

class SparseLogistic {
public:
    struct Weight {
        float weight = 0.0f;
        float sum = 0.0f;  ///< of squared gradients
    };
    using Weights = HashMap<Weight, 50>;
    static constexpr double bias_value = 0.2;  ///< of the constant feature

    double score(std::span<const Entry> x) const {
        double s = bias_.weight * bias_value;
        for (const Entry& e : x)
            if (const Weight* w = weights_.find(e.feature)) s += static_cast<double>(w->weight) * e.value;
        return s;
    }

    /// One step towards `is_positive`, from the score that x has now.
    void learn(std::span<const Entry> x, double score, bool is_positive, double importance, const StepSettings& step) {
        const double slope = (logistic(score) - (is_positive ? 1.0 : 0.0)) * importance;
        if (slope == 0.0) return;
        adagrad_step(bias_.weight, bias_.sum, slope * bias_value, step);
        weights_.reserve_more(x.size());
        for (const Entry& e : x) {
            Weight& w = weights_.find_or_add(e.feature).first;
            adagrad_step(w.weight, w.sum, slope * e.value, step);
        }
    }

    float weight(std::uint32_t feature) const {
        const Weight* w = weights_.find(feature);
        return w ? w->weight : 0.0f;
    }
    const Weight& bias() const { return bias_; }
    const Weights& weights() const { return weights_; }
    std::size_t bytes() const { return weights_.bytes(); }

    /// Features must be distinct.
    void restore(std::span<const Weights::Slot> weights, const Weight& bias) {
        bias_ = bias;
        weights_ = {};
        weights_.reserve_more(weights.size());
        for (const auto& [feature, weight] : weights) weights_.add(feature, weight);
    }

private:
    Weights weights_;  ///< by feature
    Weight bias_;
};

}  // namespace ramify
