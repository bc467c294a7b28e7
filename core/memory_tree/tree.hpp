/// The contextual memory tree: examples in the leaves of a binary tree whose routers learn where a query finds those
/// with its labels.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <map>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "base/feature_index.hpp"
#include "base/hashing.hpp"
#include "base/sparse_rows.hpp"
#include "memory_tree/one_against_rest.hpp"
#include "memory_tree/parts.hpp"
#include "memory_tree/scorer.hpp"
#include "memory_tree/sparse_logistic.hpp"
#include "memory_tree/split.hpp"
#include "memory_tree/store.hpp"

namespace ramify {

class MemoryTree {
public:
    explicit MemoryTree(const MemoryTreeSettings& settings) : settings_(settings) { nodes_.emplace_back(); }

    static constexpr std::int32_t no_node = -1;

    // --- queries -----------------------------------------------------------------------------------------------------

    /// The row as the tree knows it; features that no example had are left out, but count for the row's length.
    void prepare(std::span<const std::int32_t> indices, std::span<const float> values, std::vector<Entry>& out) const {
        if (!prepare_row(indices, values, settings_.normalize, out, [&](std::uint32_t f) { return features_.find(f); }))
            refuse_changed_rows();
    }

    /// Neighbours of x among the examples of the leaves that are most probable, best first, and the labels that they
    /// vote for.
    void query(std::span<const Entry> x, MemoryScratch& s) const {
        s.make_room(features_.size());
        s.neighbours.clear();
        s.candidates.clear();
        if (store_.size() == 0) return;
        scorer_.scatter(x, s.scaled.data());
        s.open.assign(1, {0.0, 0, root_});
        std::uint32_t n_opened = 0;
        const auto later = [](const OpenNode& a, const OpenNode& b) { return a > b; };
        for (int seen = 0; seen < settings_.n_leaves && !s.open.empty(); ++seen) {
            std::ranges::pop_heap(s.open, later);
            auto [cost, order, node] = s.open.back();
            s.open.pop_back();
            for (++s.n_nodes; !nodes_[node].is_leaf(); ++s.n_nodes) {
                const MemoryNode& v = nodes_[node];
                const double m = v.router->score(x);
                const bool right = m > 0;
                // What the other side costs beyond the better one: the log of their odds.
                s.open.push_back({cost + std::abs(m), ++n_opened, right ? v.left : v.right});
                std::ranges::push_heap(s.open, later);
                node = right ? v.right : v.left;
            }
            score_leaf(node, s);
        }
        scorer_.clear(x, s.scaled.data());
        const std::size_t wanted = settings_.n_neighbours == 0
                                       ? s.neighbours.size()
                                       : std::min<std::size_t>(settings_.n_neighbours, s.neighbours.size());
        std::ranges::partial_sort(
            s.neighbours, s.neighbours.begin() + wanted, [&](const Neighbour& a, const Neighbour& b) {
                return a.score != b.score ? a.score > b.score : store_[a.slot].arrival < store_[b.slot].arrival;
            });
        s.neighbours.resize(wanted);
        scorer_.vote(s.neighbours, store_);
        gather_candidates(x, s);
    }

    // --- learning ----------------------------------------------------------------------------------------------------

    /// Learns one example: updates the scorer by its neighbours, trains the routers, stores it, then reroutes some
    /// others.
    void learn(std::span<const std::int32_t> indices, std::span<const float> values,
               std::span<const std::int32_t> labels, float weight, MemoryScratch& s) {
        learn(indices, values, labels, weight, s, [](const MemoryScratch&) {});
    }

    /// The same; calls seen(scratch) with what the query found, before learning.
    template <class Seen>
    void learn(std::span<const std::int32_t> indices, std::span<const float> values,
               std::span<const std::int32_t> labels, float weight, MemoryScratch& s, Seen&& seen) {
        s.x.clear();
        const bool is_sound = weight == 0.0f || prepare_row(indices, values, settings_.normalize, s.x,
                                                            [&](std::uint32_t f) { return features_.find_or_add(f); });
        scorer_.make_room(features_.size());
        if (!is_sound) refuse_changed_rows();
        ++n_learned_;
        if (weight == 0.0f) return;
        query(s.x, s);
        seen(s);
        const std::uint32_t twin = same_among_neighbours(s.x, labels, s);
        learn_from_neighbours(s.x, labels, weight, s);
        if (twin != MemoryStore::none) {
            // Stored already: count it twice.
            store_[twin].weight = std::min(store_[twin].weight + weight, std::numeric_limits<float>::max());
            if (keeps_order()) by_arrival_.erase(store_[twin].arrival);
            store_[twin].arrival = n_learned_;
            if (keeps_order()) by_arrival_[n_learned_] = twin;
            reroute(twin, s);
        } else {
            StoredExample example;
            example.x = s.x;
            example.labels.assign(labels.begin(), labels.end());
            example.weight = weight;
            example.arrival = n_learned_;
            train_routers(s.x, labels, MemoryStore::none, s);
            const std::uint32_t slot = store_.add(std::move(example));
            if (keeps_order()) by_arrival_[n_learned_] = slot;
            insert(slot);
        }
        for (int d = 0; d < settings_.reroutes && store_.size() > 1; ++d) reroute(draw(store_.size()), s);
        while (settings_.max_examples > 0 && store_.size() > settings_.max_examples) forget_one();
    }

    /// Learns a stored example again, for further epochs.
    void revisit(std::uint32_t slot, MemoryScratch& s) {
        if (store_.size() < 2) return;
        take_from_leaf(slot);
        query(store_[slot].x, s);
        learn_from_neighbours(store_[slot].x, store_[slot].labels, store_[slot].weight, s);
        train_routers(store_[slot].x, store_[slot].labels, slot, s);
        insert(slot);
    }

    std::size_t leaf_capacity() const {
        const double n = static_cast<double>(std::max<std::size_t>(2, store_.size()));
        return std::max<std::size_t>(2, static_cast<std::size_t>(settings_.leaf_multiplier * std::log2(n)));
    }

    // --- access ------------------------------------------------------------------------------------------------------

    const MemoryTreeSettings& settings() const { return settings_; }
    const FeatureIndex& features() const { return features_; }
    const MemoryStore& store() const { return store_; }
    const MemoryScorer& scorer() const { return scorer_; }
    const OneAgainstRest& one_against_rest() const { return one_against_rest_; }
    const MemoryNode& node(std::int32_t v) const { return nodes_[v]; }
    std::int32_t root() const { return root_; }
    std::size_t n_node_slots() const { return nodes_.size(); }
    std::uint64_t n_learned() const { return n_learned_; }
    std::uint64_t n_drawn() const { return n_drawn_; }
    std::uint64_t n_forgotten() const { return n_forgotten_; }

    std::size_t bytes() const {
        std::size_t total = features_.bytes() + store_.bytes() + scorer_.bytes() + one_against_rest_.bytes() +
                            nodes_.capacity() * sizeof(MemoryNode);
        for (const MemoryNode& v : nodes_)
            total += v.examples.capacity() * sizeof(std::uint32_t) +
                     (v.router ? sizeof(SparseLogistic) + v.router->bytes() : 0);
        return total;
    }

    friend struct MemoryState;

private:
    void score_leaf(std::int32_t leaf, MemoryScratch& s) const {
        const auto& slots = nodes_[leaf].examples;
        for (std::size_t k = 0; k < slots.size(); ++k) {
            if (k + 4 < slots.size()) __builtin_prefetch(store_[slots[k + 4]].x.data());
            if (k + 8 < slots.size()) __builtin_prefetch(&store_[slots[k + 8]]);
            s.neighbours.push_back({MemoryScorer::score(store_[slots[k]].x, s.scaled.data()), slots[k]});
        }
        s.n_examples += std::ssize(slots);
    }

    void gather_candidates(std::span<const Entry> x, MemoryScratch& s) const {
        for (const Neighbour& n : s.neighbours)
            for (std::int32_t label : store_[n.slot].labels) s.candidates.push_back({label, n.share, 0.0});
        // Stable, so that shares are added in the neighbours' order.
        std::ranges::stable_sort(s.candidates, {}, &Candidate::label);
        std::size_t n = 0;
        for (std::size_t k = 0; k < s.candidates.size(); ++k) {
            if (n > 0 && s.candidates[n - 1].label == s.candidates[k].label)
                s.candidates[n - 1].vote += s.candidates[k].vote;
            else
                s.candidates[n++] = s.candidates[k];
        }
        s.candidates.resize(n);
        if (settings_.has_one_against_rest)
            set_by_log_odds(x, s.candidates);
        else
            for (Candidate& c : s.candidates) c.probability = std::min(c.vote, 1.0);
        if (!settings_.is_multiclass) return;
        double total = 0.0;
        for (const Candidate& c : s.candidates) total += c.probability;
        if (total > 0)
            for (Candidate& c : s.candidates) c.probability /= total;
    }

    void set_by_log_odds(std::span<const Entry> x, std::span<Candidate> candidates) const {
        double best = -std::numeric_limits<double>::infinity();
        for (Candidate& c : candidates) {
            c.probability = one_against_rest_.log_odds(x, c.label, c.vote);
            best = std::max(best, c.probability);
        }
        // Long rows have odds whose probabilities are all zero in double. The shares of one class follow from their
        // differences: so far down, the logistic function is the exponential one.
        const bool by_difference = settings_.is_multiclass && best < -30.0;
        for (Candidate& c : candidates)
            c.probability = by_difference ? std::exp(c.probability - best) : logistic(c.probability);
    }

    std::uint32_t same_among_neighbours(std::span<const Entry> x, std::span<const std::int32_t> labels,
                                        const MemoryScratch& s) const {
        for (const Neighbour& n : s.neighbours) {
            const StoredExample& e = store_[n.slot];
            if (std::ranges::equal(e.labels, labels) && std::ranges::equal(e.x, x, [](const Entry& a, const Entry& b) {
                    return a.feature == b.feature && a.value == b.value;
                }))
                return n.slot;
        }
        return MemoryStore::none;
    }

    void learn_from_neighbours(std::span<const Entry> x, std::span<const std::int32_t> labels, float weight,
                               MemoryScratch& s) {
        if (!s.neighbours.empty()) {
            s.reward.clear();
            for (const Neighbour& n : s.neighbours) s.reward.push_back(label_similarity(store_[n.slot].labels, labels));
            // Don't penalise an example retrieved with zero similarity.
            if (s.neighbours.front().score > 0)
                store_[s.neighbours.front().slot].use += static_cast<float>(2.0 * s.reward.front() - 1.0);
            scorer_.learn(x, s.neighbours, s.reward, store_, s.pull.data(), settings_.scorer_step);
        }
        if (settings_.has_one_against_rest)
            one_against_rest_.learn(x, s.candidates, labels, weight, settings_.rest_step);
    }

    /// The logarithm of left's over right's size: the balance term against left.
    double imbalance(const MemoryNode& v) const {
        return std::log(static_cast<double>(nodes_[v.left].n)) - std::log(static_cast<double>(nodes_[v.right].n));
    }

    /// Trains the routers above a stored example with the same label to send x there.
    void train_routers(std::span<const Entry> x, std::span<const std::int32_t> labels, std::uint32_t self,
                       MemoryScratch& s) {
        if (labels.empty()) return;
        const std::uint32_t partner = find_partner(x, labels, self, s);
        if (partner == MemoryStore::none) return;
        s.path.clear();
        for (std::int32_t v = store_[partner].leaf; v != no_node; v = nodes_[v].parent) s.path.push_back(v);
        for (std::size_t k = s.path.size() - 1; k > 0; --k) {
            MemoryNode& v = nodes_[s.path[k]];
            const double y =
                (1 - settings_.alpha) * (s.path[k - 1] == v.right ? 1.0 : -1.0) + settings_.alpha * imbalance(v);
            v.router->learn(x, v.router->score(x), y > 0, std::abs(y), settings_.step);
        }
    }

    /// Among some stored examples with one of these labels, the most similar to x.
    std::uint32_t find_partner(std::span<const Entry> x, std::span<const std::int32_t> labels, std::uint32_t self,
                               MemoryScratch& s) {
        constexpr std::size_t n_tries = 8;
        const std::int32_t label = labels[labels.size() == 1 ? 0 : draw(labels.size())];
        const auto with_label = store_.with_label(label);
        const std::size_t n = with_label.size();
        std::uint32_t best = MemoryStore::none;
        double best_score = 0.0;
        scorer_.scatter(x, s.scaled.data());
        for (std::size_t k = 0; k < std::min(n, n_tries); ++k) {
            const std::uint32_t slot = with_label[n <= n_tries ? k : draw(n)];
            if (slot == self) continue;
            const double score = MemoryScorer::score(store_[slot].x, s.scaled.data());
            if (best == MemoryStore::none || score > best_score) {
                best = slot;
                best_score = score;
            }
        }
        scorer_.clear(x, s.scaled.data());
        return best;
    }

    /// From the root to a leaf: each router decides, with a term for balance, and learns its decision.
    void insert(std::uint32_t slot) {
        std::int32_t node = root_;
        const std::span<const Entry> x = store_[slot].x;
        while (!nodes_[node].is_leaf()) {
            MemoryNode& v = nodes_[node];
            const double m = v.router->score(x);
            const double y = (1 - settings_.alpha) * (2 * logistic(m) - 1) + settings_.alpha * imbalance(v);
            v.router->learn(x, m, y > 0, std::abs(y), settings_.step);
            ++v.n;
            node = y > 0 ? v.right : v.left;
        }
        put_into_leaf(slot, node);
        ++nodes_[node].n;
        if (nodes_[node].examples.size() > leaf_capacity()) split(node);
    }

    void put_into_leaf(std::uint32_t slot, std::int32_t leaf) {
        store_[slot].leaf = leaf;
        store_[slot].place_in_leaf = static_cast<std::uint32_t>(nodes_[leaf].examples.size());
        nodes_[leaf].examples.push_back(slot);
    }

    void split(std::int32_t node) {
        const std::vector<std::uint32_t> slots = std::move(nodes_[node].examples);
        nodes_[node].examples = {};
        auto router = std::make_unique<SparseLogistic>();
        const std::vector<bool> goes_right =
            halve(slots, store_, features_.size(), draw(slots.size()), settings_.step, *router, split_scratch_);
        const std::int32_t left = new_node(node), right = new_node(node);
        nodes_[node].left = left;
        nodes_[node].right = right;
        nodes_[node].router = std::move(router);
        for (std::size_t k = 0; k < slots.size(); ++k) {
            const std::int32_t leaf = goes_right[k] ? right : left;
            put_into_leaf(slots[k], leaf);
            ++nodes_[leaf].n;
        }
    }

    /// Removes an example from its leaf, not from the store. An empty leaf is removed; its sibling replaces their
    /// parent.
    void take_from_leaf(std::uint32_t slot) {
        const std::int32_t leaf = store_[slot].leaf;
        auto& list = nodes_[leaf].examples;
        const std::uint32_t place = store_[slot].place_in_leaf;
        list[place] = list.back();
        store_[list[place]].place_in_leaf = place;
        list.pop_back();
        store_[slot].leaf = no_node;
        for (std::int32_t v = leaf; v != no_node; v = nodes_[v].parent) --nodes_[v].n;
        if (!list.empty() || leaf == root_) return;
        const std::int32_t parent = nodes_[leaf].parent, above = nodes_[parent].parent;
        const std::int32_t sibling = nodes_[parent].left == leaf ? nodes_[parent].right : nodes_[parent].left;
        nodes_[sibling].parent = above;
        if (above == no_node)
            root_ = sibling;
        else
            (nodes_[above].left == parent ? nodes_[above].left : nodes_[above].right) = sibling;
        free_node(leaf);
        free_node(parent);
    }

    void reroute(std::uint32_t slot, MemoryScratch& s) {
        if (store_.size() < 2) return;
        take_from_leaf(slot);
        train_routers(store_[slot].x, store_[slot].labels, slot, s);
        insert(slot);
    }

    void forget_one() {
        std::uint32_t worst = MemoryStore::none;
        if (settings_.forget == Forget::oldest) {
            worst = by_arrival_.begin()->second;
        } else {
            constexpr int n_tries = 16;
            for (int k = 0; k < n_tries; ++k) {
                const std::uint32_t slot = draw(store_.size());
                if (worst == MemoryStore::none || std::pair(store_[slot].use, store_[slot].arrival) <
                                                      std::pair(store_[worst].use, store_[worst].arrival))
                    worst = slot;
            }
        }
        take_from_leaf(worst);
        if (keeps_order()) by_arrival_.erase(store_[worst].arrival);
        const std::uint32_t moved = store_.remove(worst);
        if (moved != worst) {
            nodes_[store_[worst].leaf].examples[store_[worst].place_in_leaf] = worst;
            if (keeps_order()) by_arrival_[store_[worst].arrival] = worst;
        }
        ++n_forgotten_;
    }

    /// Arrival order is only needed by a bounded memory that forgets the oldest.
    bool keeps_order() const { return settings_.max_examples > 0 && settings_.forget == Forget::oldest; }

    std::int32_t new_node(std::int32_t parent) {
        std::int32_t node;
        if (free_.empty()) {
            node = static_cast<std::int32_t>(nodes_.size());
            nodes_.emplace_back();
        } else {
            node = free_.back();
            free_.pop_back();
        }
        nodes_[node].parent = parent;
        return node;
    }
    void free_node(std::int32_t node) {
        nodes_[node] = MemoryNode{};
        free_.push_back(node);
    }

    std::uint32_t draw(std::size_t n) {
        return static_cast<std::uint32_t>(((mix(settings_.seed ^ mix(++n_drawn_)) >> 32) * n) >> 32);
    }

    MemoryTreeSettings settings_;
    FeatureIndex features_;
    MemoryStore store_;
    MemoryScorer scorer_;
    OneAgainstRest one_against_rest_;
    std::vector<MemoryNode> nodes_;
    std::vector<std::int32_t> free_;
    std::int32_t root_ = 0;
    std::uint64_t n_learned_ = 0, n_drawn_ = 0, n_forgotten_ = 0;
    std::map<std::uint64_t, std::uint32_t> by_arrival_;  ///< slots, if keeps_order()
    SplitScratch split_scratch_;
};

}  // namespace ramify
