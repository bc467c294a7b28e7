/// The similarity of two examples: a weight per shared feature, learned so that neighbours have the right labels.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include "kernels/kernels.hpp"
#include "memory_tree/sparse_logistic.hpp"
#include "memory_tree/store.hpp"

namespace ramify {

struct Neighbour {
    double score;
    std::uint32_t slot;
    double share = 0.0;  ///< of the vote
};

/// f(x, z) = sum of w_i x_i z_i, cosine while all weights are one. Shares of the vote are softmax(sharpness * f), times
/// the examples' weights.
class MemoryScorer {
public:
    static constexpr float first_log_sharpness = 2.5f;

    void make_room(std::size_t n_features) {
        if (n_features > weight_.size()) {
            weight_.resize(n_features, 1.0f);
            sum_.resize(n_features, 0.0f);
        }
    }

    /// Writes w_i x_i to `scaled`, which is indexed by feature.
    void scatter(std::span<const Entry> x, double* scaled) const {
        for (const Entry& e : x) scaled[e.feature] = static_cast<double>(weight_[e.feature]) * e.value;
    }
    static void clear(std::span<const Entry> x, double* scaled) {
        for (const Entry& e : x) scaled[e.feature] = 0.0;
    }

    static double score(std::span<const Entry> z, const double* scaled) {
        double s = 0.0;
        for (const Entry& e : z) s += scaled[e.feature] * e.value;
        return s;
    }

    double sharpness() const { return std::exp(static_cast<double>(log_sharpness_)); }

    /// Gives each neighbour, best first, its share of the vote.
    void vote(std::span<Neighbour> neighbours, const MemoryStore& store) const {
        const double beta = sharpness();
        double total = 0.0;
        for (Neighbour& n : neighbours) {
            n.share = store[n.slot].weight * std::exp(beta * (n.score - neighbours.front().score));
            total += n.share;
        }
        for (Neighbour& n : neighbours) n.share /= total;
    }

    /// One step of neighbourhood components analysis: raises the share of neighbours with a reward (0 to 1).
    /// `pull` is zero, indexed by feature, and is left so.
    void learn(std::span<const Entry> x, std::span<const Neighbour> neighbours, std::span<const double> reward,
               const MemoryStore& store, double* pull, const StepSettings& step) {
        double right = 0.0;
        for (std::size_t k = 0; k < neighbours.size(); ++k) right += neighbours[k].share * reward[k];
        // No neighbour is right: the routers must learn that, not the scorer. Smaller shares have no inverse in double.
        if (!(right >= std::numeric_limits<double>::min())) return;
        const double beta = sharpness();
        double of_sharpness = 0.0;
        for (std::size_t k = 0; k < neighbours.size(); ++k) {
            const double slope = beta * neighbours[k].share * (1.0 - reward[k] / right);
            of_sharpness += slope * neighbours[k].score;
            if (slope == 0.0) continue;
            for (const Entry& e : store[neighbours[k].slot].x) pull[e.feature] += slope * e.value;
        }
        adagrad_step(log_sharpness_, log_sharpness_sum_, of_sharpness, step);
        log_sharpness_ = std::clamp(log_sharpness_, -5.0f, 7.0f);
        for (const Entry& e : x)
            if (pull[e.feature] != 0.0)
                adagrad_step(weight_[e.feature], sum_[e.feature], pull[e.feature] * e.value, step);
        for (const Neighbour& n : neighbours) clear(store[n.slot].x, pull);
    }

    float weight(std::uint32_t feature) const { return weight_[feature]; }
    const std::vector<float>& weights() const { return weight_; }
    const std::vector<float>& sums() const { return sum_; }
    float log_sharpness() const { return log_sharpness_; }
    float log_sharpness_sum() const { return log_sharpness_sum_; }
    std::size_t bytes() const { return (weight_.capacity() + sum_.capacity()) * sizeof(float); }

    void restore(std::span<const float> weight, std::span<const float> sum, float log_sharpness,
                 float log_sharpness_sum) {
        weight_.assign(weight.begin(), weight.end());
        sum_.assign(sum.begin(), sum.end());
        log_sharpness_ = log_sharpness;
        log_sharpness_sum_ = log_sharpness_sum;
    }

private:
    std::vector<float> weight_, sum_;
    float log_sharpness_ = first_log_sharpness;
    float log_sharpness_sum_ = 0.0f;
};

}  // namespace ramify
