/// One step of online learning on a sibling block: scores, gradients of the logistic loss, AdaGrad or FOBOS.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include "online_plt/block.hpp"

namespace ramify {

enum class UpdateRule { adagrad, fobos };

struct OnlineSettings {
    UpdateRule rule = UpdateRule::adagrad;
    float learning_rate = 1.0f;
    float eps = 0.01f;         ///< AdaGrad: added to the root of the sums
    bool eps_in_root = false;  ///< AdaGrad: eps is added to the sums instead, before the root, as napkinXC does
    float decay =
        0.0f;  ///< AdaGrad: times the sums, added too, so that steps shrink faster once much was seen; the paper has 0
    float l2 = 0.0f;  ///< FOBOS: strength of the regulariser
    bool normalize = true;
    float bias = 1.0f;
    bool is_multiclass = false;             ///< multi-class: each example has one label
    std::size_t buffer_entries = 1u << 20;  ///< features of examples that wait, until they are learned together
    std::size_t memory_budget = 0;          ///< bytes; 0: no bound
    std::int64_t beam = 0;                  ///< nodes that a search keeps per level; 0: exact

    AdaGradSteps adagrad_steps() const {
        return {.rate = learning_rate,
                .eps = eps_in_root ? 0.0f : eps,
                .eps_in_root = eps_in_root ? eps : 0.0f,
                .decay = decay};
    }
};

/// Scratch space of one thread.
struct OnlineScratch {
    std::vector<OnlineBlock::Place> place[2];
    std::vector<std::uint32_t> row;     ///< stored rows that take a step
    std::vector<const float*> weights;  ///< of the features that have a row
    std::vector<float*> stepped;
    std::vector<float> value, score, sign, replayed;
};

class BlockLearner {
public:
    explicit BlockLearner(const OnlineSettings& settings) : settings_(settings) {}

    /// The places of x's features in the block; the rows are fetched on the way.
    static void look_up(const OnlineBlock& block, std::span<const Entry> x, std::vector<OnlineBlock::Place>& place) {
        place.resize(x.size());
        constexpr std::size_t ahead = 8;
        for (std::size_t k = 0; k < std::min(ahead, x.size()); ++k) block.prefetch_slot(x[k].feature);
        for (std::size_t k = 0; k < x.size(); ++k) {
            if (k + ahead < x.size()) block.prefetch_slot(x[k + ahead].feature);
            place[k] = block.find(x[k].feature);
            if (place[k] != OnlineBlock::none) block.prefetch_row(place[k]);
        }
    }

    /// Targets of a block's columns if none of its children is positive: -1, theta +1, a vacant one 0.
    static void signs(const OnlineBlock& block, std::vector<float>& sign) {
        sign.assign(round_to_lanes(block.n_columns()), 0.0f);
        for (int c = 0; c < block.n_columns(); ++c)
            sign[c] = block.child[c] == theta_column ? 1.0f : block.child[c] == vacant_column ? 0.0f : -1.0f;
    }

    /// One step for all columns of a block, towards s.sign. The places may be those before the last step: rows that
    /// were stored stay where they are, the others are looked up again.
    void update(OnlineBlock& block, std::span<const Entry> x, std::vector<OnlineBlock::Place>& place, float weight,
                OnlineScratch& s) const {
        const OnlineKernels& kernel = kernels().online;
        const int n_columns = padded_columns(block.n_columns());
        store_full_grown(block, x, place);
        s.score.resize(s.sign.size());
        gather(block, x, place, s);
        kernel.score(s.weights.data(), s.value.data(), static_cast<int>(s.weights.size()), n_columns, s.score.data());
        kernel.gradient(s.sign.data(), block.scale, weight, static_cast<int>(s.sign.size()), s.score.data());
        // FOBOS: a gradient step, then the regulariser's shrinking; weights are scale times what is stored.
        const bool is_adagrad = settings_.rule == UpdateRule::adagrad;
        const double decay = static_cast<double>(settings_.learning_rate) * settings_.l2;
        const auto rate =
            static_cast<float>(settings_.learning_rate / (1.0 + decay * static_cast<double>(block.n_updates)));
        const float step_rate = is_adagrad ? 1.0f : rate / block.scale;
        add_steps(block, x, place, step_rate, s);
        const int n = static_cast<int>(s.row.size());
        s.stepped.resize(s.row.size());
        for (int k = 0; k < n; ++k) s.stepped[k] = block.row(s.row[k]);
        if (is_adagrad) {
            kernel.adagrad(s.stepped.data(), block.stride(), s.value.data(), n, n_columns, s.score.data(),
                           settings_.adagrad_steps());
        } else {
            kernel.descend(s.stepped.data(), s.value.data(), n, n_columns, s.score.data(), step_rate);
            block.scale /= 1.0f + rate * settings_.l2;
            if (block.scale < 1e-4f) block.absorb_scale();
        }
        ++block.n_updates;
    }

    /// Conditional probabilities of a block's columns for x.
    std::span<const float> probabilities(const OnlineBlock& block, std::span<const Entry> x, OnlineScratch& s) const {
        score(block, x, s);
        const int n = block.n_columns();
        if (settings_.is_multiclass && n > 0)
            normalise(block, s.score.data());
        else
            kernels().to_probabilities(s.score.data(), n);
        return {s.score.data(), static_cast<std::size_t>(n)};
    }

private:
    /// Looks the rows up again that may have changed, and stores those that have had enough steps.
    static void store_full_grown(OnlineBlock& block, std::span<const Entry> x, std::vector<OnlineBlock::Place>& place) {
        std::size_t n_full_grown = 0;
        for (std::size_t k = 0; k < x.size(); ++k) {
            if (OnlineBlock::is_stored(place[k])) continue;
            place[k] = block.find(x[k].feature);
            n_full_grown += block.is_full_grown(place[k]);
        }
        if (n_full_grown == 0) return;
        block.reserve_rows(n_full_grown);
        for (std::size_t k = 0; k < x.size(); ++k)
            if (block.is_full_grown(place[k])) place[k] = block.store(x[k].feature);
    }

    /// Weights and values of the features that have a row.
    static void gather(const OnlineBlock& block, std::span<const Entry> x, std::span<const OnlineBlock::Place> place,
                       OnlineScratch& s) {
        std::size_t n_replayed = 0;
        for (OnlineBlock::Place p : place) {
            if (p == OnlineBlock::none || OnlineBlock::is_stored(p)) continue;
            if (n_replayed++ < 8) block.prefetch_gradients(p);
        }
        if (s.replayed.size() < n_replayed * block.row_size()) s.replayed.resize(n_replayed * block.row_size());
        s.weights.clear();
        s.value.clear();
        float* replayed = s.replayed.data();
        for (std::size_t k = 0; k < x.size(); ++k) {
            if (place[k] == OnlineBlock::none) continue;
            if (OnlineBlock::is_stored(place[k])) {
                s.weights.push_back(block.row(place[k]));
            } else {
                s.weights.push_back(block.replay(place[k], replayed));
                replayed += block.row_size();
            }
            s.value.push_back(x[k].value);
        }
    }

    /// Steps of rows that are not stored are only noted; s.row and s.value are what is left to do.
    static void add_steps(OnlineBlock& block, std::span<const Entry> x, std::span<const OnlineBlock::Place> place,
                          float rate, OnlineScratch& s) {
        block.reserve_features(x.size());
        s.row.clear();
        s.value.clear();
        std::uint32_t gradient = OnlineBlock::none;
        for (std::size_t k = 0; k < x.size(); ++k) {
            OnlineBlock::Place stored = place[k];
            if (!OnlineBlock::is_stored(stored)) {
                if (gradient == OnlineBlock::none) gradient = block.add_gradient(s.score);
                stored = block.add_step(x[k].feature, {gradient, x[k].value * rate});
            }
            if (stored == OnlineBlock::none) continue;
            s.row.push_back(stored);
            s.value.push_back(x[k].value);
        }
    }

    static void score(const OnlineBlock& block, std::span<const Entry> x, OnlineScratch& s) {
        const int n_columns = padded_columns(block.n_columns());
        s.score.resize(round_to_lanes(n_columns));
        look_up(block, x, s.place[0]);
        gather(block, x, s.place[0], s);
        kernels().online.score(s.weights.data(), s.value.data(), static_cast<int>(s.weights.size()), n_columns,
                               s.score.data());
        if (block.scale != 1.0f)
            for (int c = 0; c < n_columns; ++c) s.score[c] *= block.scale;
    }

    /// Exactly one child is true: probabilities proportional to their odds.
    static void normalise(const OnlineBlock& block, float* score) {
        float largest = -std::numeric_limits<float>::infinity();
        for (int c = 0; c < block.n_columns(); ++c)
            if (block.child[c] >= 0) largest = std::max(largest, score[c]);
        double sum = 0;
        for (int c = 0; c < block.n_columns(); ++c)
            sum += score[c] = block.child[c] >= 0 ? std::exp(score[c] - largest) : 0.0f;
        const auto scale = static_cast<float>(1.0 / sum);
        for (int c = 0; c < block.n_columns(); ++c) score[c] *= scale;
    }

    OnlineSettings settings_;
};

}  // namespace ramify
