/// Online learning of a label tree: examples are queued at the blocks that they reach, and a block applies its queue when
/// somebody looks at it or when the buffer is full.
///
/// A block's state depends only on the ordered list of examples that reached it, so this gives the weights of one-by-one
/// processing, bit for bit, while the work stays in cache and blocks run in parallel. Paper: online-plt, algorithms 1 to 7.
#pragma once

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "online_policy.hpp"
#include "online_tree.hpp"
#include "parallel.hpp"
#include "sparse_rows.hpp"

namespace ramify {

enum class UpdateRule { adagrad, fobos };

struct OnlineSettings {
    UpdateRule rule = UpdateRule::adagrad;
    float learning_rate = 1.0f;
    float eps = 0.01f;  ///< AdaGrad: added to the root of the sums
    float l2 = 0.0f;    ///< FOBOS: strength of the regulariser
    bool normalize = true;
    float bias = 1.0f;
    bool one_of = false;                       ///< multi-class: each example has one label
    std::size_t buffer_entries = 1u << 22;     ///< features of queued examples, until all blocks apply their queues
    std::size_t memory_budget = 0;             ///< bytes; 0: no bound
};

/// Scratch space of one thread.
struct OnlineScratch {
    std::vector<std::uint32_t> row[2];
    std::vector<float> value, score, sign;
    std::vector<Entry> x;
};

class OnlineLearner {
public:
    /// The bias is a feature like any other, under a number that no column of X can have.
    static constexpr std::uint32_t bias_feature = 0xfffffffeu;
    /// Values and weights beyond it count as this: sums of the squares of what they make together stay within a float.
    static constexpr float largest_input = 1e7f;

    OnlineLearner(const OnlineSettings& settings, const GrowthSettings& growth, const PolicySettings& policy)
        : settings_(settings), growth_(growth), policy_(policy, growth), tree_(growth, settings.rule == UpdateRule::adagrad, !settings.one_of) {}

    OnlineTree& tree() { return tree_; }
    const OnlineTree& tree() const { return tree_; }
    /// A tree of this learner's kind that knows nothing yet.
    OnlineTree bare_tree() const { return OnlineTree(growth_, settings_.rule == UpdateRule::adagrad, !settings_.one_of); }
    TreePolicy& policy() { return policy_; }
    const TreePolicy& policy() const { return policy_; }
    const OnlineSettings& settings() const { return settings_; }

    std::uint64_t n_examples = 0;       ///< learned so far
    std::uint64_t n_updates = 0;        ///< of single classifiers, theta's included
    std::uint64_t n_evicted_rows = 0;   ///< given up for the memory budget
    std::uint64_t n_unchecked_entries = 0;  ///< learned since the budget was last looked at
    std::uint64_t n_buffer_entries() const { return entries_.size(); }

    /// A row as the classifiers see it, appended to `out`.
    void prepare(std::span<const std::int32_t> indices, std::span<const float> values, std::vector<Entry>& out) const {
        const FeatureSettings features{0, settings_.normalize, 0.0f};
        const std::size_t before = out.size();
        features.append(indices, values, out);
        if (!settings_.normalize)
            for (std::size_t k = before; k < out.size(); ++k) out[k].value = std::clamp(out[k].value, -largest_input, largest_input);
        if (settings_.bias != 0.0f) out.push_back({bias_feature, settings_.bias});
    }

    /// Algorithm 3 for one example. Labels are distinct and not negative. `own` decides for new labels if the policy is a callable.
    void learn(std::span<const std::int32_t> indices, std::span<const float> values, std::span<const std::int32_t> labels, float weight, int n_threads,
               const OwnPolicy& own = {}) {
        const auto example = static_cast<std::uint32_t>(begin_.size() - 1);
        prepare(indices, values, entries_);
        begin_.push_back(entries_.size());
        weight_.push_back(std::min(weight, largest_input));
        try {
            extend(row(example), labels, own);
        } catch (...) {  // a user's policy may fail: the example is not learned
            entries_.resize(begin_[example]);
            begin_.pop_back();
            weight_.pop_back();
            throw;
        }
        enqueue(example, labels);
        ++n_examples;
        // When the budget is looked at depends on the stream alone, not on the questions that empty the buffer in between.
        if (settings_.memory_budget > 0) n_unchecked_entries += begin_[example + 1] - begin_[example];
        if (entries_.size() >= settings_.buffer_entries || n_unchecked_entries >= settings_.buffer_entries) {
            apply_all(n_threads);
            keep_within_budget();
            n_unchecked_entries = 0;
        }
    }

    /// Brings a block up to date.
    void apply(OnlineBlock& block) { n_updates += apply(block, scratch_); }

    /// Brings every block up to date and empties the buffer.
    void apply_all(int n_threads) {
        std::vector<std::pair<std::size_t, OnlineBlock*>> work;
        auto add = [&](OnlineBlock* block) {
            if (block && !block->queue.empty()) work.emplace_back(block->queue.size() * static_cast<std::size_t>(block->stride()), block);
        };
        std::ranges::sort(pending_);  // a block that was looked at in between is listed twice
        pending_.erase(std::ranges::unique(pending_).begin(), pending_.end());
        for (std::int32_t v : pending_) add(tree_.block(v));
        add(tree_.gate());
        std::ranges::stable_sort(work, [](const auto& a, const auto& b) { return a.first > b.first; });  // the longest first
        const int n_workers = usable_threads(n_threads, work.size());
        std::vector<OnlineScratch> scratch(n_workers);
        std::vector<std::uint64_t> updates(n_workers, 0);
        parallel_for(work.size(), n_threads, [&](std::size_t task, int worker) { updates[worker] += apply(*work[task].second, scratch[worker]); });
        for (std::uint64_t n : updates) n_updates += n;
        pending_.clear();
        entries_.clear();
        begin_.assign(1, 0);
        weight_.clear();
        if (entries_.capacity() > 2 * settings_.buffer_entries) entries_.shrink_to_fit();
    }

    /// Conditional probabilities of the block's columns for x. The block must be up to date.
    std::span<const float> probabilities(const OnlineBlock& block, std::span<const Entry> x, OnlineScratch& s) const {
        score(block, x, s);
        const int n = block.n_columns();
        if (settings_.one_of && n > 0)
            normalise(block, s.score.data());
        else
            kernels().to_probabilities(s.score.data(), n);
        return {s.score.data(), static_cast<std::size_t>(n)};
    }

    OnlineScratch& scratch() { return scratch_; }

private:
    std::span<const Entry> row(std::uint32_t example) const { return {entries_.data() + begin_[example], begin_[example + 1] - begin_[example]}; }

    /// Algorithm 4.
    void extend(std::span<const Entry> x, std::span<const std::int32_t> labels, const OwnPolicy& own) {
        if (labels.empty() && !tree_.gate() && !settings_.one_of) {
            apply(*tree_.block(OnlineTree::root));
            tree_.open_gate();
        }
        policy_.begin_example();
        const ChildProbabilities probabilities_of = [&](int v) {
            apply(*tree_.block(v));
            return probabilities(*tree_.block(v), x, scratch_);
        };
        for (std::int32_t label : labels) {
            if (tree_.leaf(label) >= 0) continue;
            if (!tree_.has_labels()) {
                tree_.label_root(label);
                continue;
            }
            const Extension chosen = policy_.kind() == Policy::callable ? own(label) : policy_.select(tree_, probabilities_of);
            if (OnlineBlock* block = tree_.block(chosen.node)) apply(*block);
            if (chosen.insert) tree_.insert_node(chosen.node);
            tree_.add_leaf(label, chosen.node);
        }
    }

    /// AssignToNodes: the positive nodes are the labels' leaves and their ancestors; each has its block learn the example.
    void enqueue(std::uint32_t example, std::span<const std::int32_t> labels) {
        if (is_positive_.size() < static_cast<std::size_t>(tree_.n_nodes())) is_positive_.resize(tree_.n_nodes() + tree_.n_nodes() / 2, 0);
        positive_.clear();
        for (std::int32_t label : labels)
            for (std::int32_t v = tree_.leaf(label); v >= 0 && !is_positive_[v]; v = tree_.parent(v)) {
                is_positive_[v] = 1;
                positive_.push_back(v);
            }
        edges_.clear();
        for (std::int32_t v : positive_) {
            is_positive_[v] = 0;
            if (tree_.is_leaf(v) && tree_.block(v)) queue(v, example, {});  // theta alone
            if (v != OnlineTree::root) edges_.emplace_back(tree_.parent(v), tree_.column(v));
        }
        std::ranges::sort(edges_);
        for (std::size_t k = 0; k < edges_.size();) {
            const std::int32_t v = edges_[k].first;
            columns_.clear();
            for (; k < edges_.size() && edges_[k].first == v; ++k) columns_.push_back(static_cast<std::uint32_t>(edges_[k].second));
            queue(v, example, columns_);
        }
        if (OnlineBlock* gate = tree_.gate()) {
            columns_.assign(labels.empty() ? 0 : 1, 0u);
            append(*gate, example, columns_);
        }
    }

    void queue(std::int32_t v, std::uint32_t example, std::span<const std::uint32_t> columns) {
        OnlineBlock& block = *tree_.block(v);
        if (block.queue.empty()) pending_.push_back(v);
        append(block, example, columns);
    }

    static void append(OnlineBlock& block, std::uint32_t example, std::span<const std::uint32_t> columns) {
        block.queue.push_back(example);
        block.queue.push_back(static_cast<std::uint32_t>(columns.size()));
        block.queue.insert(block.queue.end(), columns.begin(), columns.end());
    }

    /// Applies a block's queue in order. Rows of the next example are looked up, and fetched, while this one is learned.
    std::uint64_t apply(OnlineBlock& block, OnlineScratch& s) const {
        if (block.queue.empty()) return 0;
        const int n_columns = round_to_lanes(block.n_columns());
        s.sign.assign(n_columns, 0.0f);
        std::uint64_t n_classifiers = 0;
        for (int c = 0; c < block.n_columns(); ++c) {
            s.sign[c] = block.child[c] == theta_column ? 1.0f : block.child[c] == vacant_column ? 0.0f : -1.0f;
            n_classifiers += block.child[c] != vacant_column;
        }
        s.score.resize(n_columns);
        std::uint64_t n_applied = 0;
        std::size_t at = 0;
        std::vector<std::uint32_t>& queue = block.queue;
        try {
            look_up(block, row(queue[0]), s.row[0]);
            while (at < queue.size()) apply_next(block, n_columns, n_applied, at, s);
        } catch (...) {  // no memory for more rows: what is learned must not be learned again
            queue.erase(queue.begin(), queue.begin() + static_cast<std::ptrdiff_t>(at));
            throw;
        }
        std::vector<std::uint32_t>().swap(queue);
        return n_applied * n_classifiers;
    }

    void apply_next(OnlineBlock& block, int n_columns, std::uint64_t& n_applied, std::size_t& at, OnlineScratch& s) const {
        const std::vector<std::uint32_t>& queue = block.queue;
        const std::span<const std::uint32_t> positive(queue.data() + at + 2, queue[at + 1]);
        const std::size_t next = at + 2 + positive.size();
        if (next < queue.size()) look_up(block, row(queue[next]), s.row[(n_applied + 1) % 2]);
        for (std::uint32_t c : positive) s.sign[c] = 1.0f;
        update(block, row(queue[at]), s.row[n_applied % 2], weight_[queue[at]], n_columns, s);
        for (std::uint32_t c : positive) s.sign[c] = -1.0f;
        ++n_applied;
        at = next;
    }

    /// The rows of x's features, made where they are new.
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

    /// One step of the online learner for all columns of a block.
    void update(OnlineBlock& block, std::span<const Entry> x, const std::vector<std::uint32_t>& rows, float weight, int n_columns, OnlineScratch& s) const {
        const OnlineKernels& k = kernels().online;
        const int n = static_cast<int>(x.size());
        s.value.resize(x.size());
        for (int i = 0; i < n; ++i) s.value[i] = x[i].value;
        float* score = s.score.data();
        k.score(block.rows(), block.row_size(), rows.data(), s.value.data(), n, n_columns, score);
        k.gradient(s.sign.data(), block.scale, weight, n_columns, score);
        if (settings_.rule == UpdateRule::adagrad) {
            k.adagrad(block.rows(), block.row_size(), rows.data(), s.value.data(), n, n_columns, score, settings_.learning_rate, settings_.eps);
        } else {
            // FOBOS: a gradient step, then the regulariser's shrinking; weights are scale times what is stored.
            const double decay = static_cast<double>(settings_.learning_rate) * settings_.l2;
            const auto rate = static_cast<float>(settings_.learning_rate / (1.0 + decay * static_cast<double>(block.n_updates)));
            k.descend(block.rows(), block.row_size(), rows.data(), s.value.data(), n, n_columns, score, rate / block.scale);
            block.scale /= 1.0f + rate * settings_.l2;
            if (block.scale < 1e-4f) block.absorb_scale();
        }
        ++block.n_updates;
    }

    void score(const OnlineBlock& block, std::span<const Entry> x, OnlineScratch& s) const {
        const int n_columns = round_to_lanes(block.n_columns());
        s.score.resize(n_columns);
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
        kernels().online.score(block.rows(), block.row_size(), rows.data(), s.value.data(), n, n_columns, s.score.data());
        if (block.scale != 1.0f)
            for (int c = 0; c < n_columns; ++c) s.score[c] *= block.scale;
    }

    /// Exactly one child is true: chances in proportion to their odds.
    static void normalise(const OnlineBlock& block, float* score) {
        float largest = -std::numeric_limits<float>::infinity();
        for (int c = 0; c < block.n_columns(); ++c)
            if (block.child[c] >= 0) largest = std::max(largest, score[c]);
        double sum = 0;
        for (int c = 0; c < block.n_columns(); ++c) sum += score[c] = block.child[c] >= 0 ? std::exp(score[c] - largest) : 0.0f;
        const auto scale = static_cast<float>(1.0 / sum);
        for (int c = 0; c < block.n_columns(); ++c) score[c] *= scale;
    }

    /// Gives up the rows of least weight, wherever they are, once the budget is passed; a tenth of it is then free again.
    /// Sizes are those of what is stored, without room to grow, so that a model that was saved and loaded goes on alike.
    void keep_within_budget() {
        if (settings_.memory_budget == 0) return;
        auto for_each_block = [&](auto&& work) {
            for (int v = 0; v < tree_.n_nodes(); ++v)
                if (OnlineBlock* block = tree_.block(v)) work(*block);
            if (tree_.gate()) work(*tree_.gate());
        };
        auto used = static_cast<double>(settings_.buffer_entries * sizeof(Entry));
        for_each_block([&](const OnlineBlock& block) { used += sizeof block + block.n_rows() * block.bytes_of_row(); });
        if (used <= static_cast<double>(settings_.memory_budget)) return;
        // Bytes of rows by the largest weight's exponent and first three bits: a histogram instead of a sort.
        constexpr int n_bins = 1 << 11;
        auto importance = [](const OnlineBlock& block, std::uint32_t r) {
            float largest = 0;
            const float* w = block.row(r);
            for (int c = 0; c < block.n_columns(); ++c)
                if (block.child[c] != vacant_column) largest = std::max(largest, std::abs(w[c]));
            return static_cast<int>(std::bit_cast<std::uint32_t>(largest * block.scale) >> 20) & (n_bins - 1);
        };
        std::vector<double> bytes(n_bins, 0.0);
        for_each_block([&](const OnlineBlock& block) {
            for (std::uint32_t r = 0; r < block.n_rows(); ++r) bytes[importance(block, r)] += block.bytes_of_row();
        });
        double excess = used - 0.9 * static_cast<double>(settings_.memory_budget);
        int last = 0;  // of this bin only as many as are needed, the oldest first
        for (; last < n_bins && bytes[last] <= excess; ++last) excess -= bytes[last];
        for_each_block([&](OnlineBlock& block) {
            const double per_row = block.bytes_of_row();
            n_evicted_rows += block.retain([&](std::uint32_t r) {
                const int bin = importance(block, r);
                if (bin != last || excess <= 0) return bin >= last;
                excess -= per_row;
                return false;
            });
        });
    }

    OnlineSettings settings_;
    GrowthSettings growth_;
    TreePolicy policy_;
    OnlineTree tree_;
    // Examples that some block has not applied yet.
    std::vector<Entry> entries_;
    std::vector<std::size_t> begin_{0};
    std::vector<float> weight_;
    std::vector<std::int32_t> pending_;  ///< nodes whose blocks may have a queue
    // Scratch of enqueue.
    std::vector<std::uint8_t> is_positive_;
    std::vector<std::int32_t> positive_;
    std::vector<std::pair<std::int32_t, std::int32_t>> edges_;
    std::vector<std::uint32_t> columns_;
    OnlineScratch scratch_;
};

}  // namespace ramify
