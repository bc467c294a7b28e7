/// Several label trees over the same labels whose probabilities are averaged.
///
/// Every tree proposes its best labels; the mean is taken of all that any tree proposed. Blocks that a tree opened for
/// its proposals are not scored again for those of the others. A label that a tree did not propose is at most as
/// probable there as its last proposal, so most labels drop out before they are scored in every tree.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "plt/tree_search.hpp"

namespace ramify {

/// What an answer must reach, after the mean was taken.
struct EnsembleQuery {
    std::int64_t top_k;
    float threshold;
    std::span<const float> label_threshold;  ///< per label; empty: one for all

    float needed(std::int32_t label) const {
        return label_threshold.empty() ? threshold : label_threshold[static_cast<std::size_t>(label)];
    }
};

/// Scratch space of one thread.
struct EnsembleScratch {
    struct Proposal {
        std::int32_t label;
        float probability;
        float excess;  ///< of the probability over the most that a label may have that this tree did not propose
        friend bool operator<(const Proposal& a, const Proposal& b) { return a.label < b.label; }
    };
    struct OfTree {
        SearchScratch search;
        BatchScratch batch;
        OpenedBlocks opened;
    };
    std::vector<OfTree> tree;
    std::vector<Entry> x;
    std::vector<Proposal> proposal;
    std::vector<std::int32_t> label, leaf;
    std::vector<float> probability;
    std::vector<double> total, least, most;  ///< per label
    double not_proposed = 0;   ///< the most that a label may have in all trees together if none proposed it
    std::vector<Found> found;  ///< the answer, best first

    explicit EnsembleScratch(std::size_t n_trees) : tree(n_trees) {
        for (OfTree& t : tree) t.batch.keeps_opened = true;
    }
};

class TreeEnsemble {
public:
    std::vector<const LabelTreeModel*> trees;

    /// One row, already prepared in s.x; `settings` are those of each tree's search.
    void search(std::span<const SearchSettings> settings, const EnsembleQuery& query, EnsembleScratch& s) const {
        begin(s);
        for (std::size_t t = 0; t < trees.size(); ++t) {
            EnsembleScratch::OfTree& of = s.tree[t];
            trees[t]->search(s.x, settings[t], of.search, &of.opened);
            propose(of.search.found, of.search.given_up, settings[t], s);
        }
        average(s.x, query, s, [&](std::size_t t) { return &s.tree[t].opened; });
    }

    /// All rows of the batch in s.tree[0].batch; calls answer(row) with s.found for each in turn.
    template <class Answer>
    void search_batch(std::span<const SearchSettings> settings, const EnsembleQuery& query, EnsembleScratch& s,
                      Watch& watch, Answer&& answer) const {
        const BatchScratch& first = s.tree[0].batch;
        for (std::size_t t = 0; t < trees.size(); ++t) {
            BatchScratch& batch = s.tree[t].batch;
            if (t > 0) {
                batch.entries = first.entries;
                batch.begin = first.begin;
            }
            trees[t]->search_batch(settings[t], batch, s.tree[t].search, watch);
            if (watch.should_stop()) return;
        }
        for (std::size_t i = 0; i < first.n_rows(); ++i) {
            begin(s);
            for (std::size_t t = 0; t < trees.size(); ++t) {
                const BestFirst& search = s.tree[t].batch.search[i];
                propose(search.found, search.given_up(settings[t]), settings[t], s);
            }
            average(first.row(i), query, s, [&](std::size_t t) { return &s.tree[t].batch.opened[i]; });
            answer(i);
        }
    }

private:
    static void begin(EnsembleScratch& s) {
        s.proposal.clear();
        s.not_proposed = 0;
    }

    /// `found` is sorted, best first.
    static void propose(const std::vector<Found>& found, float given_up, const SearchSettings& settings,
                        EnsembleScratch& s) {
        float rest = 1.0f;  // a beam, or a threshold: nothing is known of the other labels
        if (settings.beam == 0 && settings.threshold == 0.0f && settings.node_threshold.empty()) {
            const bool is_full = std::ssize(found) >= settings.top_k;
            rest = std::max(given_up, is_full && !found.empty() ? found.back().probability : 0.0f);
        }
        s.not_proposed += static_cast<double>(rest);
        for (const Found& f : found) s.proposal.push_back({f.label, f.probability, f.probability - rest});
    }

    /// The labels whose mean may be among the k largest, in order.
    static void choose_labels(std::int64_t top_k, EnsembleScratch& s) {
        std::stable_sort(s.proposal.begin(), s.proposal.end());
        s.label.clear(), s.least.clear(), s.most.clear();
        for (const EnsembleScratch::Proposal& p : s.proposal) {
            if (s.label.empty() || s.label.back() != p.label) {
                s.label.push_back(p.label);
                s.least.push_back(0.0);
                s.most.push_back(s.not_proposed);
            }
            s.least.back() += static_cast<double>(p.probability);
            s.most.back() += static_cast<double>(p.excess);
        }
        if (std::ssize(s.label) <= top_k || top_k < 1) return;
        s.total = s.least;
        const auto kth = s.total.begin() + static_cast<std::ptrdiff_t>(top_k - 1);
        std::ranges::nth_element(s.total, kth, std::greater{});
        const double needed = *kth - 1e-6;  // beyond all rounding, of the mean to a float too
        std::size_t n = 0;
        for (std::size_t k = 0; k < s.label.size(); ++k)
            if (s.most[k] >= needed) s.label[n++] = s.label[k];
        s.label.resize(n);
    }

    /// The mean of the proposed labels over all trees; those that fit the query are s.found, best first.
    template <class Opened>
    void average(std::span<const Entry> x, const EnsembleQuery& query, EnsembleScratch& s, Opened&& opened) const {
        choose_labels(query.top_k, s);
        const std::size_t n = s.label.size();
        s.total.assign(n, 0.0);
        s.leaf.resize(n);
        s.probability.resize(n);
        for (std::size_t t = 0; t < trees.size(); ++t) {
            for (std::size_t k = 0; k < n; ++k) s.leaf[k] = trees[t]->leaf(s.label[k]);
            trees[t]->named(x, s.leaf, s.tree[t].search, s.probability.data(), opened(t));
            for (std::size_t k = 0; k < n; ++k) s.total[k] += static_cast<double>(s.probability[k]);
        }
        s.found.clear();
        for (std::size_t k = 0; k < n; ++k)
            s.found.push_back({static_cast<float>(s.total[k] / static_cast<double>(trees.size())), s.label[k]});
        const auto k = static_cast<std::size_t>(std::clamp<std::int64_t>(query.top_k, 0, std::ssize(s.found)));
        std::partial_sort(s.found.begin(), s.found.begin() + static_cast<std::ptrdiff_t>(k), s.found.end());
        s.found.resize(k);
        std::erase_if(s.found, [&](const Found& f) { return !(f.probability >= query.needed(f.label)); });
    }
};

}  // namespace ramify
