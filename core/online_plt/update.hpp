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
};

/// Scratch space of one thread.
struct OnlineScratch {
    std::vector<std::uint32_t> row[2];
    std::vector<float> value, score, sign;
};

class BlockLearner {
public:
    explicit BlockLearner(const OnlineSettings& settings) : settings_(settings) {}

    /// The rows of x's features, made where they are new; they are fetched on the way.
    static void look_up(OnlineBlock& block, std::span<const Entry> x, std::vector<std::uint32_t>& rows) {
        block.reserve_rows(x.size());
        rows.resize(x.size());
        constexpr std::size_t ahead = 8;
        for (std::size_t k = 0; k < std::min(ahead, x.size()); ++k) block.prefetch_slot(x[k].feature);
        for (std::size_t k = 0; k < x.size(); ++k) {
            if (k + ahead < x.size()) block.prefetch_slot(x[k + ahead].feature);
            rows[k] = block.find_or_add(x[k].feature);
            block.prefetch_row(rows[k]);
        }
    }

    /// Targets of a block's columns if none of its children is positive: -1, theta +1, a vacant one 0.
    static void signs(const OnlineBlock& block, std::vector<float>& sign) {
        sign.assign(round_to_lanes(block.n_columns()), 0.0f);
        for (int c = 0; c < block.n_columns(); ++c)
            sign[c] = block.child[c] == theta_column ? 1.0f : block.child[c] == vacant_column ? 0.0f : -1.0f;
    }

    /// One step for all columns of a block, towards s.sign.
    void update(OnlineBlock& block, std::span<const Entry> x, const std::vector<std::uint32_t>& rows, float weight,
                OnlineScratch& s) const {
        const OnlineKernels& k = kernels().online;
        const int n = static_cast<int>(x.size()), n_columns = padded_columns(block.n_columns());
        s.score.resize(s.sign.size());
        s.value.resize(x.size());
        for (int i = 0; i < n; ++i) s.value[i] = x[i].value;
        float* score = s.score.data();
        k.score(block.rows(), block.row_size(), rows.data(), s.value.data(), n, n_columns, score);
        k.gradient(s.sign.data(), block.scale, weight, static_cast<int>(s.sign.size()), score);
        if (settings_.rule == UpdateRule::adagrad) {
            k.adagrad(block.rows(), block.row_size(), rows.data(), s.value.data(), n, n_columns, score,
                      {.rate = settings_.learning_rate,
                       .eps = settings_.eps_in_root ? 0.0f : settings_.eps,
                       .eps_in_root = settings_.eps_in_root ? settings_.eps : 0.0f,
                       .decay = settings_.decay});
        } else {
            // FOBOS: a gradient step, then the regulariser's shrinking; weights are scale times what is stored.
            const double decay = static_cast<double>(settings_.learning_rate) * settings_.l2;
            const auto rate =
                static_cast<float>(settings_.learning_rate / (1.0 + decay * static_cast<double>(block.n_updates)));
            k.descend(block.rows(), block.row_size(), rows.data(), s.value.data(), n, n_columns, score,
                      rate / block.scale);
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
    static void score(const OnlineBlock& block, std::span<const Entry> x, OnlineScratch& s) {
        const int n_columns = padded_columns(block.n_columns());
        s.score.resize(round_to_lanes(n_columns));
        std::vector<std::uint32_t>& rows = s.row[0];
        rows.resize(x.size());
        s.value.resize(x.size());
        for (const Entry& e : x) block.prefetch_slot(e.feature);
        int n = 0;
        for (const Entry& e : x) {
            rows[n] = block.find(e.feature);
            s.value[n] = e.value;
            if (rows[n] == OnlineBlock::none) continue;
            block.prefetch_row(rows[n]);
            ++n;
        }
        kernels().online.score(block.rows(), block.row_size(), rows.data(), s.value.data(), n, n_columns,
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
