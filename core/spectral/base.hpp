/// The classifier behind a candidate tree (Mineiro and Karampatziakis 2015, section 3.5): scores of a leaf's
/// candidates, softmax among them or a logistic link each, and stochastic gradient descent that sees nothing but
/// candidates.
///
/// A slot is a candidate in a leaf; slots are numbered through the leaves. A score is the product of the label's
/// weights with the row, plus a bias of the label, plus a bias of the slot: the leaf's own correction.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

#include "base/hashing.hpp"
#include "kernels/kernels.hpp"
#include "spectral/tree_space.hpp"

namespace ramify {

enum class WeightKind { full, hashed, low_rank };

/// F is float while learning, const float afterwards.
template <class F>
struct BaseParameters {
    WeightKind kind = WeightKind::low_rank;
    std::int64_t n_features = 0, n_labels = 0, n_slots = 0;
    std::int64_t rank = 0;          ///< low rank: multiple of 8
    bool has_slot_weights = false;  ///< low rank: output weights a slot instead of a label; hashed: in addition
    std::span<F> input;             ///< low rank: rank weights a feature, shared by all
    std::span<F>
        output;  ///< low rank: rank weights a label or slot; full: a weight a label and feature; hashed: the table
    std::span<F> label_bias, slot_bias;

    std::int64_t n_outputs() const { return has_slot_weights ? n_slots : n_labels; }
    /// Hashed: a leaf's own weights, beside those that it shares (multi-task hashing).
    bool has_own_weights(std::int64_t slot) const {
        return kind == WeightKind::hashed && has_slot_weights && slot >= 0;
    }

    void check() const {
        if (rank < 0 || rank % 8 != 0 || (kind == WeightKind::low_rank) != (rank > 0)) fail("rank");
        if (has_slot_weights && kind == WeightKind::full) fail("only low-rank and hashed weights can be per leaf");
        check_size(input, kind == WeightKind::low_rank ? n_features * rank : 0, "input");
        if (kind == WeightKind::hashed) {
            if (output.empty() || (output.size() & (output.size() - 1)) != 0)
                fail("the table's size must be a power of two");
        } else {
            check_size(output, kind == WeightKind::low_rank ? n_outputs() * rank : n_labels * n_features, "output");
        }
        check_size(label_bias, n_labels, "label_bias");
        check_size(slot_bias, n_slots, "slot_bias");
    }

    static void check_size(std::span<const float> values, std::int64_t size, const char* name) {
        if (static_cast<std::int64_t>(values.size()) != size) fail(name);
    }

    [[noreturn]] static void fail(const std::string& what) {
        throw std::invalid_argument("the classifier's arrays are inconsistent: " + what);
    }

    static std::uint64_t label_seed(std::int32_t label) { return mix(static_cast<std::uint64_t>(label)); }
    static std::uint64_t slot_seed(std::int64_t slot) { return mix(static_cast<std::uint64_t>(slot) | 1ull << 63); }
    std::size_t hashed(std::uint64_t seed, std::uint32_t feature) const {
        return static_cast<std::size_t>(slot_round(feature + seed)) & (output.size() - 1);
    }

    /// The row in the shared space of low rank; without one, nothing.
    void project(std::span<const Entry> x, std::vector<float>& hidden) const {
        hidden.resize(static_cast<std::size_t>(rank));
        if (kind == WeightKind::low_rank) ramify::project(x, input.data(), rank, hidden.data());
    }

    float score(std::span<const Entry> x, const std::vector<float>& hidden, std::int32_t label,
                std::int64_t slot) const {
        const float bias = label_bias[label] + (slot < 0 ? 0.0f : slot_bias[slot]);
        switch (kind) {
            case WeightKind::low_rank:
                return bias + dot(output.data() + (has_slot_weights ? slot : label) * rank, hidden.data(), rank);
            case WeightKind::full: {
                const float* w = output.data() + static_cast<std::size_t>(label) * n_features;
                float sum = 0;
                for (const Entry& e : x) sum += w[e.feature] * e.value;
                return bias + sum;
            }
            case WeightKind::hashed: {
                const std::uint64_t seed = label_seed(label);
                float sum = 0;
                for (const Entry& e : x) sum += output[hashed(seed, e.feature)] * e.value;
                if (has_own_weights(slot)) {
                    const std::uint64_t own = slot_seed(slot);
                    for (const Entry& e : x) sum += output[hashed(own, e.feature)] * e.value;
                }
                return bias + sum;
            }
        }
        return bias;
    }

    /// What a feature's value is multiplied with in the score of a slot.
    float weight(std::uint32_t feature, std::int32_t label, std::int64_t slot) const {
        switch (kind) {
            case WeightKind::low_rank:
                return dot(output.data() + (has_slot_weights ? slot : label) * rank,
                           input.data() + static_cast<std::size_t>(feature) * rank, rank);
            case WeightKind::full: return output[static_cast<std::size_t>(label) * n_features + feature];
            case WeightKind::hashed:
                return output[hashed(label_seed(label), feature)] +
                       (has_own_weights(slot) ? output[hashed(slot_seed(slot), feature)] : 0.0f);
        }
        return 0;
    }

    static float dot(const float* a, const float* b, std::int64_t n) {
        float sum[8] = {};
        for (std::int64_t i = 0; i < n; i += 8)
            for (int j = 0; j < 8; ++j) sum[j] += a[i + j] * b[i + j];
        return ((sum[0] + sum[4]) + (sum[2] + sum[6])) + ((sum[1] + sum[5]) + (sum[3] + sum[7]));
    }
    static void add_scaled(float* to, const float* from, float scale, std::int64_t n) {
        for (std::int64_t i = 0; i < n; ++i) to[i] += scale * from[i];
    }
};

/// Scores to probabilities, in place: of one class a row, or of labels each for itself.
inline void to_candidate_probabilities(std::span<float> score, bool is_multiclass) {
    if (!is_multiclass) {
        for (float& s : score) s = 1.0f / (1.0f + std::exp(-s));
        return;
    }
    if (score.empty()) return;
    const float largest = *std::ranges::max_element(score);
    float total = 0;
    for (float& s : score) total += s = std::exp(s - largest);
    for (float& s : score) s /= total;
}

struct DescentSettings {
    float learning_rate = 0.3f;
    float eps = 1e-3f;  ///< added to the root of the summed squares
    bool is_multiclass = false;
    bool has_slot_bias = true;
};

/// AdaGrad on the parameters; a row of weights of low rank shares one sum, the mean of its squared gradients.
class BaseDescent {
public:
    BaseParameters<float> parameters;
    std::span<float> input_sum, output_sum, label_bias_sum, slot_bias_sum;
    DescentSettings settings;

    void check() const {
        parameters.check();
        const bool is_low_rank = parameters.kind == WeightKind::low_rank;
        parameters.check_size(input_sum, is_low_rank ? parameters.n_features : 0, "input_sum");
        parameters.check_size(
            output_sum, is_low_rank ? parameters.n_outputs() : static_cast<std::int64_t>(parameters.output.size()),
            "output_sum");
        parameters.check_size(label_bias_sum, parameters.n_labels, "label_bias_sum");
        parameters.check_size(slot_bias_sum, parameters.n_slots, "slot_bias_sum");
    }

    /// One example in the leaf with these slots: `labels` of the slots and `positive` labels of the row, both rising.
    /// Without slots (-1) they are no leaf's but a group of all labels, parted into groups as many as `log_groups` is
    /// the logarithm of: each that is not positive stands for as many, so that its odds are raised.
    void step(std::span<const Entry> x, std::int64_t first_slot, std::span<const std::int32_t> labels,
              std::span<const std::int32_t> positive, float weight, float rate, float log_groups = 0.0f) {
        const auto slot = [&](std::size_t k) {
            return first_slot < 0 ? std::int64_t{-1} : first_slot + static_cast<std::int64_t>(k);
        };
        is_positive_.assign(labels.size(), 0);
        bool has_positive = false;
        for (std::size_t k = 0, at = 0; k < labels.size() && at < positive.size();) {
            if (labels[k] == positive[at]) is_positive_[k] = has_positive = true;
            labels[k] < positive[at] ? ++k : ++at;
        }
        // Among classes that are all wrong there is nothing to learn.
        if (labels.empty() || (settings.is_multiclass && !has_positive)) return;
        BaseParameters<float>& p = parameters;
        p.project(x, hidden_);
        gradient_.resize(labels.size());
        for (std::size_t k = 0; k < labels.size(); ++k) gradient_[k] = p.score(x, hidden_, labels[k], slot(k));
        if (log_groups != 0.0f)
            for (std::size_t k = 0; k < labels.size(); ++k)
                if (!settings.is_multiclass || !is_positive_[k]) gradient_[k] += log_groups;
        to_candidate_probabilities(gradient_, settings.is_multiclass);
        for (std::size_t k = 0; k < labels.size(); ++k) gradient_[k] = (gradient_[k] - is_positive_[k]) * weight;
        if (p.kind == WeightKind::low_rank) {
            back_.assign(static_cast<std::size_t>(p.rank), 0.0f);
            squared_hidden_ =
                BaseParameters<float>::dot(hidden_.data(), hidden_.data(), p.rank) / static_cast<float>(p.rank);
        }
        for (std::size_t k = 0; k < labels.size(); ++k) descend(x, slot(k), labels[k], gradient_[k], rate);
        if (p.kind != WeightKind::low_rank) return;
        const float squared_back =
            BaseParameters<float>::dot(back_.data(), back_.data(), p.rank) / static_cast<float>(p.rank);
        for (const Entry& e : x) {
            float& sum = input_sum[e.feature];
            sum += e.value * e.value * squared_back;
            p.add_scaled(p.input.data() + static_cast<std::size_t>(e.feature) * p.rank, back_.data(),
                         -along(rate, sum) * e.value, p.rank);
        }
    }

private:
    /// Gradients this small have no visible effect, and there are very many of them.
    static constexpr float least_gradient = 1e-5f;

    float along(float rate, float sum) const { return rate / (std::sqrt(sum) + settings.eps); }

    void descend(std::span<const Entry> x, std::int64_t slot, std::int32_t label, float gradient, float rate) {
        if (std::abs(gradient) < least_gradient) return;
        BaseParameters<float>& p = parameters;
        move(p.label_bias[label], label_bias_sum[label], gradient, rate);
        if (settings.has_slot_bias && slot >= 0) move(p.slot_bias[slot], slot_bias_sum[slot], gradient, rate);
        if (p.kind == WeightKind::low_rank) {
            const auto row = static_cast<std::size_t>(p.has_slot_weights ? slot : label);
            float* w = p.output.data() + row * p.rank;
            p.add_scaled(back_.data(), w, gradient, p.rank);
            float& sum = output_sum[row];
            sum += gradient * gradient * squared_hidden_;
            p.add_scaled(w, hidden_.data(), -along(rate, sum) * gradient, p.rank);
        } else {
            const std::uint64_t seed = p.label_seed(label);
            for (const Entry& e : x) {
                const std::size_t at = p.kind == WeightKind::hashed
                                           ? p.hashed(seed, e.feature)
                                           : static_cast<std::size_t>(label) * p.n_features + e.feature;
                move(p.output[at], output_sum[at], gradient * e.value, rate);
            }
            if (p.has_own_weights(slot)) {
                const std::uint64_t own = p.slot_seed(slot);
                for (const Entry& e : x) {
                    const std::size_t at = p.hashed(own, e.feature);
                    move(p.output[at], output_sum[at], gradient * e.value, rate);
                }
            }
        }
    }

    void move(float& value, float& sum, float gradient, float rate) {
        sum += gradient * gradient;
        value -= along(rate, sum) * gradient;
    }

    std::vector<float> hidden_, gradient_, back_;
    std::vector<std::uint8_t> is_positive_;
    float squared_hidden_ = 0;
};

}  // namespace ramify
