/// Several label trees over the same labels whose probabilities are averaged.
///
/// Every tree proposes its best labels; the mean is taken of all that any tree proposed. Blocks that a tree opened for
/// its proposals are not scored again for those of the others, and bound what lies below them: most labels drop out
/// before they are scored in every tree.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "plt/label_lookup.hpp"
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
        std::int32_t label, tree;
        float probability;
        friend bool operator<(const Proposal& a, const Proposal& b) {
            return a.label != b.label ? a.label < b.label : a.tree < b.tree;
        }
    };
    /// A proposed label.
    struct Candidate {
        std::int32_t label;
        std::size_t first;  ///< of its probabilities, one per tree
        double most;        ///< that they may sum up to
        friend bool operator<(const Candidate& a, const Candidate& b) {
            return a.most != b.most ? a.most > b.most : a.label < b.label;
        }
    };
    struct OfTree {
        SearchScratch search;
        BatchScratch batch;
        OpenedBlocks opened;
        LabelLookup lookup;
        float rest = 1;  ///< the most that a label may have that this tree did not propose
    };
    std::vector<OfTree> tree;
    std::vector<Entry> x;
    std::vector<Proposal> proposal;
    std::vector<Candidate> candidate;
    std::vector<float> probability;      ///< of candidates, per tree
    std::vector<std::uint8_t> is_exact;  ///< beside them; otherwise they are upper bounds
    std::vector<double> best;            ///< a heap of the k largest sums so far, the least on top
    std::vector<Found> found;            ///< the answer, best first

    explicit EnsembleScratch(std::size_t n_trees) : tree(n_trees) {
        for (OfTree& t : tree) t.batch.keeps_opened = true;
    }
};

class TreeEnsemble {
public:
    std::vector<const LabelTreeModel*> trees;

    /// One row, already prepared in s.x; `settings` are those of each tree's search.
    void search(std::span<const SearchSettings> settings, const EnsembleQuery& query, EnsembleScratch& s) const {
        s.proposal.clear();
        for (std::size_t t = 0; t < trees.size(); ++t) {
            EnsembleScratch::OfTree& of = s.tree[t];
            trees[t]->search(s.x, settings[t], of.search, &of.opened);
            propose(t, of.search.found, of.search.given_up, settings[t], s);
            of.lookup.open(*trees[t], s.x, of.opened);
        }
        average(query, s);
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
            s.proposal.clear();
            for (std::size_t t = 0; t < trees.size(); ++t) {
                BatchScratch& batch = s.tree[t].batch;
                propose(t, batch.search[i].found, batch.search[i].given_up(settings[t]), settings[t], s);
                s.tree[t].lookup.open(*trees[t], first.row(i), batch.opened[i]);
            }
            average(query, s);
            answer(i);
        }
    }

private:
    /// `found` is sorted, best first.
    static void propose(std::size_t t, const std::vector<Found>& found, float given_up, const SearchSettings& settings,
                        EnsembleScratch& s) {
        float rest = 1.0f;  // a beam, or thresholds of nodes: nothing is known of the other labels
        if (settings.beam == 0 && settings.node_threshold.empty()) {
            const bool is_full = std::ssize(found) >= settings.top_k && !found.empty();
            rest = std::max({given_up, settings.threshold, is_full ? found.back().probability : 0.0f});
        }
        s.tree[t].rest = rest;
        for (const Found& f : found) s.proposal.push_back({f.label, static_cast<std::int32_t>(t), f.probability});
    }

    /// What is known of each proposed label without scoring another block.
    void collect(EnsembleScratch& s) const {
        std::sort(s.proposal.begin(), s.proposal.end());
        s.candidate.clear(), s.probability.clear(), s.is_exact.clear();
        for (std::size_t k = 0; k < s.proposal.size();) {
            EnsembleScratch::Candidate c{s.proposal[k].label, s.probability.size(), 0.0};
            for (std::size_t t = 0; t < trees.size(); ++t) {
                LabelLookup::Known known{};
                if (k < s.proposal.size() && s.proposal[k].label == c.label &&
                    s.proposal[k].tree == static_cast<std::int32_t>(t)) {
                    known = {s.proposal[k++].probability, true};
                } else {
                    known = s.tree[t].lookup.known(c.label);
                    if (!known.is_exact) known.probability = std::min(known.probability, s.tree[t].rest);
                }
                c.most += static_cast<double>(known.probability);
                s.probability.push_back(known.probability);
                s.is_exact.push_back(known.is_exact);
            }
            s.candidate.push_back(c);
        }
    }

    /// The mean of the proposed labels over all trees; those that fit the query are s.found, best first. The most
    /// promising are completed first, until no other can be among the k largest.
    void average(const EnsembleQuery& query, EnsembleScratch& s) const {
        collect(s);
        const auto n_trees = static_cast<double>(trees.size());
        const double rounding = 1e-6 * n_trees;  // more than that of sums, and of means to floats
        std::sort(s.candidate.begin(), s.candidate.end());
        s.found.clear(), s.best.clear();
        for (EnsembleScratch::Candidate& c : s.candidate) {
            double needed = n_trees * static_cast<double>(query.needed(c.label)) - rounding;
            if (std::ssize(s.best) >= query.top_k) {
                if (s.best.empty() || c.most < s.best.front() - rounding) break;
                needed = std::max(needed, s.best.front() - rounding);
            }
            const double sum = completed(c, needed, s);
            if (sum < needed) continue;
            s.found.push_back({static_cast<float>(sum / n_trees), c.label});
            s.best.push_back(sum);
            std::ranges::push_heap(s.best, std::greater{});
            if (std::ssize(s.best) > query.top_k) {
                std::ranges::pop_heap(s.best, std::greater{});
                s.best.pop_back();
            }
        }
        for (EnsembleScratch::OfTree& of : s.tree) of.lookup.close();
        const auto k = static_cast<std::size_t>(std::clamp<std::int64_t>(query.top_k, 0, std::ssize(s.found)));
        std::partial_sort(s.found.begin(), s.found.begin() + static_cast<std::ptrdiff_t>(k), s.found.end());
        s.found.resize(k);
        std::erase_if(s.found, [&](const Found& f) { return !(f.probability >= query.needed(f.label)); });
    }

    /// The sum of a label's probabilities; something less than `needed` as soon as it is known to be less.
    double completed(EnsembleScratch::Candidate& c, double needed, EnsembleScratch& s) const {
        float* probability = s.probability.data() + c.first;
        for (std::size_t t = 0; t < trees.size(); ++t) {
            if (c.most < needed) return c.most;
            if (s.is_exact[c.first + t]) continue;
            c.most -= static_cast<double>(probability[t]);
            probability[t] = s.tree[t].lookup.scored(c.label, s.tree[t].search.score);
            c.most += static_cast<double>(probability[t]);
        }
        double sum = 0;  // in the order of the trees: the same bits whatever was known before
        for (std::size_t t = 0; t < trees.size(); ++t) sum += static_cast<double>(probability[t]);
        return sum;
    }
};

}  // namespace ramify
