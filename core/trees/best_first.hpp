/// Best-first search for the most probable labels of one row, one opened node at a time.
///
/// The probability of a node is the product of the conditional probabilities on its path (Jasinska-Kobus et al.,
/// "Online probabilistic label trees", equation 2), so it never exceeds its parent's: the search may stop as soon as no
/// open node can still enter the answer. The caller scores the nodes, and may do so for many rows side by side: a row's
/// answer depends only on the row.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <span>
#include <tuple>
#include <utility>
#include <vector>

namespace ramify {

struct Found {
    float probability;
    std::int32_t label;
    /// The order of answers: more probable first, then the lower label.
    friend bool operator<(const Found& a, const Found& b) {
        return a.probability != b.probability ? a.probability > b.probability : a.label < b.label;
    }
};

struct SearchSettings {
    std::int64_t top_k = std::numeric_limits<std::int64_t>::max();
    float threshold = 0.0f;                      ///< labels below it are left out; 0 leaves out impossible ones only
    std::span<const float> node_threshold = {};  ///< per node: the least threshold below it; a leaf's own
    std::int64_t beam = 0;                       ///< nodes kept per level; 0: exact
    float at_stake = 1.0f;  ///< a node is opened only if this share of its probability is not beaten; 1: exact
    float eager = 1.0f;     ///< nodes of at least this share of the best one's probability are opened in its round

    bool admits(float p, std::int32_t node) const {
        return p > 0.0f && p >= (node_threshold.empty() ? threshold : std::max(threshold, node_threshold[node]));
    }
};

class BestFirst {
public:
    std::vector<Found> found;  ///< a heap, the worst answer on top; `finish` sorts it, best first

    void clear() {
        near_.clear();
        far_.clear();
        least_near_ = std::numeric_limits<float>::infinity();
        best_far_ = 0;
        found.clear();
        n_opened = 0;
        passed_over_ = 0;
    }

    std::int32_t n_opened = 0;  ///< blocks scored, counted by the caller

    /// Nodes less probable than this need not be reached.
    float cutoff(const SearchSettings& settings) const { return is_full(settings) ? found.front().probability : 0.0f; }

    /// A node has this probability: a leaf may enter the answer by its label, an inner node (label -1) may be opened
    /// later.
    void reach(const SearchSettings& settings, float p, std::int32_t node, std::int32_t label) {
        if (is_beaten(p, settings) || !settings.admits(p, node)) return;
        if (label < 0) {
            if (is_left_out(p, settings)) return pass_over(p);
            if (p < least_near_) {
                best_far_ = std::max(best_far_, p);
                far_.emplace_back(p, node);
                return;
            }
            near_.emplace_back(p, node);
            std::ranges::push_heap(near_, Worse{});
            return;
        }
        enter(settings, p, label);
    }

    /// A label that is not beaten enters the answer.
    void enter(const SearchSettings& settings, float p, std::int32_t label) {
        const Found f{p, label};
        if (is_full(settings)) {
            if (!(f < found.front())) return;
            std::pop_heap(found.begin(), found.end());
            found.back() = f;
        } else {
            found.push_back(f);
        }
        std::push_heap(found.begin(), found.end());
    }

    /// Pops the node to open next; false if the answer is complete.
    bool next(const SearchSettings& settings, float& p, std::int32_t& node) {
        if (!has_open(settings)) return false;
        if (is_left_out(near_.front().first, settings)) {
            pass_over(near_.front().first);
            return false;
        }
        std::tie(p, node) = near_.front();
        std::ranges::pop_heap(near_, Worse{});
        near_.pop_back();
        return true;
    }

    /// Calls open(probability, node) for the nodes of the next round, best first; none if the answer is complete.
    ///
    /// Opening more than the best one costs blocks that the answer may turn out not to need, but rounds are few, so
    /// that many rows meet at a node. An exact answer does not depend on the order.
    template <class Open>
    void next_round(const SearchSettings& settings, Open&& open) {
        float p, least = -1;
        for (std::int32_t node; has_open(settings) && near_.front().first >= least && next(settings, p, node);)
            if (open(p, node) && least < 0) least = settings.eager * p;
    }

    void finish() { std::sort(found.begin(), found.end()); }

    /// As probable as the worst answer is not beaten yet: the lower label would win.
    bool is_beaten(float p, const SearchSettings& settings) const {
        return is_full(settings) && p < found.front().probability;
    }

    /// Whether a node need not be opened: no label below it can enter the answer, or none within the slack.
    bool is_left_out(float p, const SearchSettings& settings) const {
        return is_full(settings) && p * settings.at_stake < found.front().probability;
    }

    /// A node of this probability is not opened.
    void pass_over(float p) { passed_over_ = std::max(passed_over_, p); }

    /// After `finish`: no label that is missing from the answer is more probable than this; 0 if the answer is exact.
    float given_up(const SearchSettings& settings) const {
        return !found.empty() && is_full(settings) && passed_over_ < found.back().probability ? 0.0f : passed_over_;
    }

private:
    using Open = std::pair<float, std::int32_t>;
    struct Worse {
        bool operator()(const Open& a, const Open& b) const {
            return a.first != b.first ? a.first < b.first : a.second > b.second;
        }
    };

    /// Whether near_ holds the most probable open node; false if there is none. Most nodes are never opened: they are
    /// not put in order before all better ones are.
    bool has_open(const SearchSettings& settings) {
        if (!near_.empty() || far_.empty()) return !near_.empty();
        least_near_ = best_far_ / 8;
        best_far_ = 0;
        std::size_t n_far = 0;
        for (const Open& node : far_) {
            if (node.first >= least_near_) {
                near_.push_back(node);
            } else if (is_left_out(node.first, settings)) {
                pass_over(node.first);
            } else {
                best_far_ = std::max(best_far_, node.first);
                far_[n_far++] = node;
            }
        }
        far_.resize(n_far);
        std::ranges::make_heap(near_, Worse{});
        return true;
    }

    bool is_full(const SearchSettings& settings) const {
        return static_cast<std::int64_t>(found.size()) >= settings.top_k;
    }

    float passed_over_ = 0;
    std::vector<Open> near_;  ///< a heap of open nodes, the most probable on top; ties by the lower node
    std::vector<Open> far_;   ///< open nodes that are less probable than those of near_ may be
    float least_near_ = std::numeric_limits<float>::infinity(), best_far_ = 0;
};

}  // namespace ramify
