/// Online learning of a label tree: examples wait in a buffer and are learned together, when the model is
/// queried or the buffer is full. Paper: Jasinska-Kobus et al., "Online probabilistic label trees", algorithms 1 to 7.
#pragma once

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <span>
#include <stdexcept>
#include <vector>

#include "base/sparse_rows.hpp"
#include "online_plt/level_pass.hpp"
#include "online_plt/policy.hpp"
#include "online_plt/tree.hpp"
#include "online_plt/update.hpp"

namespace ramify {

class OnlineLearner {
public:
    /// The bias is a feature like any other, under a number that no column of X can have.
    static constexpr std::uint32_t bias_feature = 0xfffffffeu;
    /// Larger values and weights are clipped to this, so that sums of squares stay finite.
    static constexpr float largest_input = 1e7f;

    OnlineLearner(const OnlineSettings& settings, const GrowthSettings& growth, const PolicySettings& policy)
        : settings_(settings),
          growth_(growth),
          policy_(policy, growth),
          blocks_(settings),
          tree_(bare_tree()),
          level_pass_(tree_, policy_, blocks_) {}
    OnlineLearner(const OnlineLearner&) = delete;  // level_pass_ refers to other members
    OnlineLearner& operator=(const OnlineLearner&) = delete;

    OnlineTree& tree() { return tree_; }
    const OnlineTree& tree() const { return tree_; }
    /// An untrained tree with this learner's settings.
    OnlineTree bare_tree() const {
        return OnlineTree(growth_, {settings_.rule == UpdateRule::adagrad, settings_.adagrad_steps()},
                          !settings_.is_multiclass);
    }
    const TreePolicy& policy() const { return policy_; }
    const OnlineSettings& settings() const { return settings_; }

    std::uint64_t n_updates = 0;            ///< of single classifiers, theta's included
    std::uint64_t n_evicted_rows = 0;       ///< evicted for the memory budget
    std::uint64_t n_unchecked_entries = 0;  ///< learned since the budget was last looked at
    /// Memory of classifiers and waiting rows, which the budget bounds, and of nodes and labels, which are never
    /// dropped.
    std::size_t weight_bytes() const { return tree_.block_bytes() + buffer_.entries.size() * sizeof(Entry); }
    std::size_t shape_bytes() const { return tree_.shape_bytes() + level_pass_.bytes(); }
    /// Examples learned so far, those that wait included.
    std::uint64_t n_examples() const { return buffer_.first_example + buffer_.size(); }
    void set_n_examples(std::uint64_t n) { buffer_.first_example = n; }

    /// A row as the classifiers see it, appended to `out`.
    void prepare(std::span<const std::int32_t> indices, std::span<const float> values, std::vector<Entry>& out) const {
        const FeatureSettings features{bias_feature / 2, settings_.normalize, 0.0f};
        const std::size_t before = out.size();
        features.append(indices, values, out);
        if (!settings_.normalize)
            for (std::size_t k = before; k < out.size(); ++k)
                out[k].value = std::clamp(out[k].value, -largest_input, largest_input);
        if (settings_.bias != 0.0f) out.push_back({bias_feature, settings_.bias});
    }

    /// One example. Labels are distinct and not negative. `own` decides for new labels if the policy is a callable.
    void learn(std::span<const std::int32_t> indices, std::span<const float> values,
               std::span<const std::int32_t> labels, float weight, int n_threads, const OwnPolicy& own = {}) {
        if (level_pass_.is_under_way()) apply_all(n_threads);
        if (policy_.kind() == Policy::callable) extend(labels, n_threads, own);
        const std::size_t before = buffer_.entries.size();
        prepare(indices, values, buffer_.entries);
        buffer_.labels.insert(buffer_.labels.end(), labels.begin(), labels.end());
        buffer_.begin.push_back(buffer_.entries.size());
        buffer_.label_begin.push_back(buffer_.labels.size());
        buffer_.weight.push_back(std::min(weight, largest_input));
        // When the budget is looked at depends on the stream alone, not on the questions that empty the buffer in
        // between.
        if (settings_.memory_budget > 0) n_unchecked_entries += buffer_.entries.size() - before;
        if (buffer_.entries.size() >= settings_.buffer_entries || n_unchecked_entries >= settings_.buffer_entries) {
            apply_all(n_threads);
            keep_within_budget();
            n_unchecked_entries = 0;
        }
    }

    /// Whether `apply_all` has anything to do, or to reject.
    bool has_waiting_rows() const { return buffer_.size() > 0 || level_pass_.is_broken(); }

    /// Learns what waits in the buffer.
    void apply_all(int n_threads) {
        if (level_pass_.is_broken())
            throw std::runtime_error(
                "this model ran out of memory while it was learning and is not sound any more: load the last one "
                "saved");
        if (buffer_.size() == 0) return;
        n_updates += level_pass_.run(buffer_, n_threads);
        buffer_.clear();
    }

    /// Conditional probabilities of the block's columns for x.
    std::span<const float> probabilities(const OnlineBlock& block, std::span<const Entry> x, OnlineScratch& s) const {
        return blocks_.probabilities(block, x, s);
    }

private:
    /// A user's policy is asked where the new labels of an example go, which it may look at the whole model for.
    void extend(std::span<const std::int32_t> labels, int n_threads, const OwnPolicy& own) {
        for (std::int32_t label : labels) {
            if (tree_.leaf(label) >= 0) continue;
            apply_all(n_threads);
            if (!tree_.has_labels()) {
                tree_.label_root(label);
                continue;
            }
            const Extension chosen = own(label);
            if (chosen.insert) tree_.insert_node(chosen.node);
            tree_.add_leaf(label, chosen.node);
            for (int a = chosen.node; a >= 0; a = tree_.parent(a)) tree_.add_leaves(a, 1);
        }
    }

    /// Evicts the rows of least weight in the whole tree once the budget is exceeded; a tenth of it is then free again.
    /// Sizes are what stored rows may come to, not what their memory happens to be, so that a model that was saved and
    /// loaded continues identically.
    void keep_within_budget() {
        if (settings_.memory_budget == 0) return;
        // In the order of the tree: node numbers depend on when nodes were made, and so on the buffer.
        std::vector<std::int32_t> order{OnlineTree::root};
        for (std::size_t k = 0; k < order.size(); ++k)
            if (const OnlineBlock* block = tree_.block(order[k]))
                for (std::int32_t c : block->child)
                    if (c >= 0) order.push_back(c);
        auto for_each_block = [&](auto&& work) {
            for (std::int32_t v : order)
                if (OnlineBlock* block = tree_.block(v)) work(*block);
            if (tree_.gate()) work(*tree_.gate());
        };
        for_each_block([](OnlineBlock& block) { block.trim(); });
        auto used = static_cast<double>(settings_.buffer_entries * sizeof(Entry));
        for_each_block([&](const OnlineBlock& block) {
            used += sizeof block;
            for (const auto& r : block.rows_in_order()) used += block.bytes_of_row(r.place);
        });
        const auto budget = static_cast<double>(settings_.memory_budget);
        if (used <= budget) return;
        // Bytes of rows by the largest weight's exponent and first three bits: a histogram instead of a sort.
        constexpr int n_bins = 1 << 11;
        std::vector<float> scratch;
        auto importance = [&](const OnlineBlock& block, OnlineBlock::Place place) {
            float largest = 0;
            const float* w = block.weights(place, scratch);
            for (int c = 0; c < block.n_columns(); ++c)
                if (block.child[c] != vacant_column) largest = std::max(largest, std::abs(w[c]));
            return static_cast<int>(std::bit_cast<std::uint32_t>(largest * block.scale) >> 20) & (n_bins - 1);
        };
        std::vector<double> bytes(n_bins, 0.0);
        for_each_block([&](const OnlineBlock& block) {
            for (const auto& r : block.rows_in_order())
                bytes[importance(block, r.place)] += block.bytes_of_row(r.place);
        });
        double excess = used - 0.9 * budget;
        int last = 0;  // of this bin only as many as are needed, the oldest first
        for (; last < n_bins && bytes[last] <= excess; ++last) excess -= bytes[last];
        for_each_block([&](OnlineBlock& block) {
            const std::vector<OnlineBlock::FeaturePlace> rows = block.rows_in_order();
            std::vector<bool> is_kept(rows.size());
            for (std::size_t k = 0; k < rows.size(); ++k) {
                const int bin = importance(block, rows[k].place);
                is_kept[k] = bin >= last;
                if (bin != last || excess <= 0) continue;
                excess -= block.bytes_of_row(rows[k].place);
                is_kept[k] = false;
            }
            const auto n_dropped = static_cast<std::uint64_t>(std::ranges::count(is_kept, false));
            n_evicted_rows += n_dropped;
            if (n_dropped > 0) block.retain(rows, is_kept);
        });
    }

    OnlineSettings settings_;
    GrowthSettings growth_;
    TreePolicy policy_;
    BlockLearner blocks_;
    OnlineTree tree_;
    ExampleBuffer buffer_;
    LevelPass level_pass_;
};

}  // namespace ramify
