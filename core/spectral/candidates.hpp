/// The candidates of a row: those of the leaf that it comes to, or, so that one wrong turn does not lose its labels,
/// the likeliest of those of several leaves. Beyond Mineiro and Karampatziakis 2015, which goes one way at prediction.
#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "base/label_query.hpp"
#include "forest/instance_forest.hpp"
#include "spectral/grow.hpp"

namespace ramify {

struct LeafShare {
    std::int32_t leaf;
    float share;
};

/// Labels, rising, with the share of the leaves' training rows that have them.
struct RowCandidates {
    std::span<const std::int32_t> label;
    std::span<const float> share;
    std::int64_t first_slot = -1;  ///< of one leaf: its slots are side by side; -1: of several
    std::span<const float>
        own_bias;  ///< of several: the mean of the biases of a label's slots, by how likely their leaves are

    std::int64_t slot(std::size_t k) const { return first_slot < 0 ? -1 : first_slot + static_cast<std::int64_t>(k); }
    float mean_bias(std::size_t k) const { return first_slot < 0 ? own_bias[k] : 0.0f; }
};

class CandidateSearch {
public:
    /// The `n_leaves` likeliest leaves, the likeliest first.
    void find_leaves(const InstanceForest& forest, std::span<const float> sigma, const ForestRow& row,
                     std::int64_t n_leaves, std::int64_t& n_products) {
        leaves_.clear();
        open_.assign(1, {1.0, 0});
        while (!open_.empty() && static_cast<std::int64_t>(leaves_.size()) < n_leaves) {
            std::ranges::pop_heap(open_, is_after);
            const auto [path, v] = open_.back();
            open_.pop_back();
            if (forest.child[v] < 0) {
                leaves_.push_back({v, static_cast<float>(path)});
                continue;
            }
            const double score = forest.score(v, row);
            ++n_products;
            const double right = path * right_share(score, sigma[v]);
            open(forest.child[v], path - right);
            open(forest.child[v] + 1, right);
        }
    }

    /// The candidates of these leaves, likely ones first in line for the `n_most` places; `is_head` labels have places
    /// of their own.
    RowCandidates merge(const InstanceForest& forest, std::span<const float> slot_bias, std::int64_t n_most,
                        std::span<const std::uint8_t> is_head) {
        const auto n_labels = static_cast<std::size_t>(forest.n_labels);
        // Never shorter: models of different sizes take turns, and what is added again would be zeroed again.
        if (sums_.size() < n_labels) sums_.resize(n_labels);
        if (chosen_.size() < (n_labels + 63) / 64) chosen_.resize((n_labels + 63) / 64, 0);
        add_up(forest, slot_bias);
        const std::size_t n = choose(n_most, is_head);
        label_.resize(n);
        share_.resize(n);
        bias_.resize(n);
        for (std::size_t word = 0, at = 0; at < n; ++word)
            for (std::uint64_t bits = std::exchange(chosen_[word], 0); bits; bits &= bits - 1, ++at) {
                const auto l = static_cast<std::int32_t>(word * 64 + static_cast<std::size_t>(std::countr_zero(bits)));
                label_[at] = l;
                share_[at] = std::min(sums_[l].share, 1.0f);
                bias_[at] = sums_[l].bias / sums_[l].path;
            }
        for (std::int32_t l : touched_) sums_[l] = {};
        return {label_, share_, -1, bias_};
    }

private:
    static constexpr float least_path = 1e-6f;  ///< leaves that are less likely than this beside the others add nothing

    struct Open {
        double path;
        std::int32_t node;
    };
    struct Sums {
        float path = 0, share = 0, bias = 0;
    };

    static bool is_after(const Open& a, const Open& b) { return a.path != b.path ? a.path < b.path : a.node > b.node; }

    void open(std::int32_t node, double path) {
        if (!(path > 0)) return;
        open_.push_back({path, node});
        std::ranges::push_heap(open_, is_after);
    }

    /// The labels of all leaves into touched_, and what the leaves say of them into sums_.
    void add_up(const InstanceForest& forest, std::span<const float> slot_bias) {
        double total = 0;
        std::size_t most = 0;
        for (const LeafShare& l : leaves_) {
            total += l.share;
            most += static_cast<std::size_t>(forest.label_begin[l.leaf + 1] - forest.label_begin[l.leaf]);
        }
        touched_.resize(most + 1);  // one more: the place behind the last is written to, too
        std::size_t n = 0;
        for (const LeafShare& l : leaves_) {
            const auto path = static_cast<float>(l.share / total);
            if (path < least_path) continue;
            for (std::int64_t k = forest.label_begin[l.leaf]; k < forest.label_begin[l.leaf + 1]; ++k) {
                Sums& s = sums_[forest.label[k]];
                touched_[n] = forest.label[k];
                n += s.path == 0;  // unpredictable: no branch
                s.path += path;
                s.share += path * forest.probability[k];
                s.bias += path * slot_bias[k];
            }
        }
        touched_.resize(n);
    }

    /// Marks the labels of the largest shares, and the head, and counts them; of equals the smaller labels.
    std::size_t choose(std::int64_t n_most, std::span<const std::uint8_t> is_head) {
        const auto mark = [&](std::int32_t l) { chosen_[static_cast<std::size_t>(l) / 64] |= 1ull << (l % 64); };
        std::size_t n_chosen = 0;
        in_line_.clear();
        for (std::int32_t l : touched_) {
            if (!is_head.empty() && is_head[l]) {
                mark(l);
                ++n_chosen;
            } else {
                in_line_.push_back({l, sums_[l].share});
            }
        }
        keep_best(in_line_, static_cast<std::size_t>(n_most));
        for (const LabelProbability& l : in_line_) mark(l.label);
        return n_chosen + in_line_.size();
    }

    std::vector<LeafShare> leaves_;
    std::vector<Open> open_;
    std::vector<Sums> sums_;  // by label, zero between two rows
    std::vector<std::int32_t> touched_;
    std::vector<LabelProbability> in_line_;
    std::vector<std::uint64_t> chosen_;  // a bit a label, zero between two rows
    std::vector<std::int32_t> label_;
    std::vector<float> share_, bias_;
};

}  // namespace ramify
