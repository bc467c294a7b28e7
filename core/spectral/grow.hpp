/// Growing a candidate tree level by level (Mineiro and Karampatziakis, "A Hierarchical Spectral Method for Extreme
/// Classification", sections 3.3 and 3.4): rows go to both children of a node in fractions, by the probability that a
/// row like them would, and a leaf remembers the expected counts of its labels.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <numbers>
#include <span>
#include <utility>
#include <vector>

#include "base/hashing.hpp"
#include "base/parallel.hpp"
#include "base/sparse_rows.hpp"
#include "spectral/eigen.hpp"
#include "spectral/problem.hpp"

namespace ramify {

struct CandidateTreeSettings {
    int max_depth = 12;
    std::int64_t n_candidates = 25;  ///< labels of a leaf
    double recall = 0.999;           ///< a node whose candidates reach this is a leaf
    double noise = 1.0;              ///< multiplies the deviation of the routing; 0 sends every row one way
    bool is_within =
        false;  ///< the deviation is that of rows around what their labels predict, not the eigenvalue over the mass
    double min_path = 0.05;    ///< a row goes no way that is less probable than this
    double prune = 0.0;        ///< weights below this share of a node's largest are dropped
    bool keeps_inner = false;  ///< counts of inner nodes, too
    EigenSettings eigen;
};

/// Labels beyond the candidates whose counts a leaf remembers: they may become candidates when more rows come.
inline constexpr std::int64_t waiting_share = 2;

struct LabelCount {
    std::int32_t label;
    float count;
};

/// The tree in the form of instance_forest.hpp without its leaves' labels, and what those are made of.
struct CandidateTreeStorage {
    std::vector<std::int32_t> child, depth;
    std::vector<float> mass, label_mass, covered,
        sigma;  ///< importance of rows, of their labels, of those among the candidates
    std::vector<std::int64_t> weight_begin{0};
    std::vector<std::int32_t> weight_feature;
    std::vector<float> weight;
    std::vector<std::int64_t> count_begin{0};  ///< per node: its labels by decreasing expected count, candidates first
    std::vector<std::int32_t> count_label;
    std::vector<float> count;
    std::vector<float> head_count;  ///< per node, n_head each
};

template <class Work>
void for_each_array(CandidateTreeStorage& a, Work&& work) {
    work("child", a.child);
    work("depth", a.depth);
    work("mass", a.mass);
    work("label_mass", a.label_mass);
    work("covered", a.covered);
    work("sigma", a.sigma);
    work("weight_begin", a.weight_begin);
    work("weight_feature", a.weight_feature);
    work("weight", a.weight);
    work("count_begin", a.count_begin);
    work("count_label", a.count_label);
    work("count", a.count);
    work("head_count", a.head_count);
}

inline double normal_cdf(double x) { return 0.5 * std::erfc(-x / std::numbers::sqrt2); }

/// The probability that a row goes right at a node of this score; one whose score is no number goes left.
inline double right_share(double score, double sigma) {
    const double share = sigma > 0 ? normal_cdf(score / sigma) : score > 0 ? 1.0 : 0.0;
    return share > 0 ? share : 0.0;
}

/// How much of a row goes left and right at a node of this score.
struct RowShares {
    double left, right;
};
inline RowShares shared_row(double path, double score, double sigma, double min_path) {
    double right = path * right_share(score, sigma);
    double left = path - right;
    // What is cut off on one side is added to the other: the shares of a row sum to one.
    if (right < min_path || left < min_path) {
        const bool goes_right = right == left ? score > 0 : right > left;
        return {goes_right ? 0.0 : path, goes_right ? path : 0.0};
    }
    return {left, right};
}

class CandidateTreeGrower {
public:
    CandidateTreeGrower(const PreparedRows& X, std::span<const std::int64_t> y_begin,
                        std::span<const std::int32_t> y_label, std::int64_t n_labels, std::span<const float> row_weight,
                        std::span<const std::int32_t> head, std::int64_t n_features,
                        const CandidateTreeSettings& settings, std::uint64_t seed, int n_threads)
        : X_(X),
          y_begin_(y_begin),
          y_label_(y_label),
          n_labels_(n_labels),
          row_weight_(row_weight),
          head_(head),
          n_features_(n_features),
          settings_(settings),
          seed_(seed),
          n_threads_(n_threads) {
        if (!head.empty()) {
            is_head_.assign(static_cast<std::size_t>(n_labels), 0);
            for (std::int32_t l : head) is_head_[l] = 1;
        }
    }

    CandidateTreeStorage grow(Progress* progress) {
        const auto n_rows = static_cast<std::int64_t>(X_.squared_norm.size());
        std::vector<Node> level(1);
        level[0].rows.resize(n_rows);
        for (std::int64_t i = 0; i < n_rows; ++i) level[0].rows[i] = static_cast<std::int32_t>(i);
        level[0].path.assign(n_rows, 1.0f);
        if (progress) progress->total = static_cast<std::size_t>(settings_.max_depth) + 1;
        for (int depth = 0; !level.empty(); ++depth) {
            const std::size_t first = tree_.child.size();
            std::vector<Split> splits(level.size());
            // A level of fewer nodes than threads is worked on by all of them, a node after the other.
            const bool is_wide = level.size() >= static_cast<std::size_t>(std::max(n_threads_, 1));
            std::vector<Scratch> scratch(is_wide ? usable_threads(n_threads_, level.size()) : 1);
            parallel_for(level.size(), is_wide ? n_threads_ : 1, [&](std::size_t k, int worker) {
                splits[k] = split(level[k], depth, first + k, is_wide ? 1 : n_threads_, scratch[worker]);
                level[k] = Node();
            });
            std::vector<Node> next;
            for (Split& s : splits) {
                append(s, depth, next.size() + first + splits.size());
                if (!s.is_split) continue;
                next.push_back(std::move(s.left));
                next.push_back(std::move(s.right));
            }
            level = std::move(next);
            if (progress) ++progress->done;
        }
        return std::move(tree_);
    }

private:
    struct Node {
        std::vector<std::int32_t> rows;
        std::vector<float> path;  ///< the probability that the row comes here
    };
    struct Split {
        bool is_split = false;
        double mass = 0, label_mass = 0, covered = 0, sigma = 0;
        std::vector<std::int32_t> feature;
        std::vector<float> weight;
        std::vector<LabelCount> counts;
        std::vector<float> head_count;
        Node left, right;
    };
    struct Scratch {
        LocalNumbers features, labels;
        std::vector<float> sums;
        std::vector<double> count;     ///< by label, zero between two nodes
        std::vector<float> direction;  ///< by feature, zero between two nodes
    };

    Split split(const Node& node, int depth, std::size_t number, int n_threads, Scratch& s) const {
        Split result;
        std::vector<double> importance(node.rows.size());
        for (std::size_t k = 0; k < node.rows.size(); ++k) {
            importance[k] = static_cast<double>(node.path[k]) * (row_weight_.empty() ? 1.0 : row_weight_[node.rows[k]]);
            result.mass += importance[k];
        }
        count_labels(node, importance, s, result);
        const double wanted = settings_.recall * result.label_mass;
        if (depth < settings_.max_depth && result.label_mass > 0 && result.covered < wanted)
            route(node, importance, number, n_threads, s, result);
        if (result.is_split && !settings_.keeps_inner) {
            std::vector<LabelCount>().swap(result.counts);
            std::vector<float>().swap(result.head_count);
        }
        return result;
    }

    void count_labels(const Node& node, std::span<const double> importance, Scratch& s, Split& result) const {
        s.count.resize(static_cast<std::size_t>(n_labels_), 0.0);
        std::vector<std::int32_t> touched;
        for (std::size_t k = 0; k < node.rows.size(); ++k)
            for (std::int64_t at = y_begin_[node.rows[k]]; at < y_begin_[node.rows[k] + 1]; ++at) {
                const std::int32_t l = y_label_[at];
                if (s.count[l] == 0) touched.push_back(l);
                s.count[l] += importance[k];
            }
        result.head_count.reserve(head_.size());
        for (std::int32_t l : head_) result.head_count.push_back(static_cast<float>(s.count[l]));
        for (std::int32_t l : touched) {
            if (is_head_.empty() || !is_head_[l]) {
                result.counts.push_back({l, static_cast<float>(s.count[l])});
                result.label_mass += s.count[l];
            }
            s.count[l] = 0;
        }
        const auto is_before = [](const LabelCount& a, const LabelCount& b) {
            return a.count != b.count ? a.count > b.count : a.label < b.label;
        };
        const auto kept = static_cast<std::size_t>(settings_.n_candidates * (1 + waiting_share));
        if (result.counts.size() > kept) {
            std::ranges::nth_element(result.counts, result.counts.begin() + static_cast<std::ptrdiff_t>(kept),
                                     is_before);
            result.counts.resize(kept);
        }
        std::ranges::sort(result.counts, is_before);
        const std::size_t n = std::min(result.counts.size(), static_cast<std::size_t>(settings_.n_candidates));
        for (std::size_t k = 0; k < n; ++k) result.covered += result.counts[k].count;
        if (n == result.counts.size())
            result.covered = result.label_mass;  // all of them: no rounding may say otherwise
    }

    /// Finds the direction and sends the rows on; leaves `result` a leaf if no direction separates them.
    void route(const Node& node, const std::vector<double>& importance, std::size_t number, int n_threads, Scratch& s,
               Split& result) const {
        s.features.resize(static_cast<std::size_t>(n_features_));
        s.labels.resize(static_cast<std::size_t>(n_labels_));
        const SplitRows view{X_,        y_begin_,  y_label_, is_head_, static_cast<std::uint32_t>(n_features_),
                             node.rows, importance};
        TopDirection top;
        std::vector<std::uint32_t> feature;
        {
            SplitProblem problem(view, s.features, s.labels, s.sums, settings_.eigen.squares_frequency, n_threads);
            top = top_direction(problem, settings_.eigen, mix(seed_ + mix(number)), n_threads);
            feature = std::move(problem.feature);
        }
        if (top.w.empty()) return;
        const double length = prune(top.w);
        s.direction.resize(static_cast<std::size_t>(n_features_), 0.0f);
        for (std::size_t f = 0; f < feature.size(); ++f)
            if (top.w[f] != 0.0f) s.direction[feature[f]] = top.w[f] = static_cast<float>(top.w[f] / length);
        std::vector<double> z(node.rows.size());
        constexpr std::size_t chunk = 4096;
        parallel_for((z.size() + chunk - 1) / chunk, n_threads, [&](std::size_t task, int) {
            for (std::size_t k = task * chunk; k < std::min(z.size(), (task + 1) * chunk); ++k)
                for (const Entry& e : view.features(k)) z[k] += static_cast<double>(s.direction[e.feature]) * e.value;
        });
        for (std::uint32_t f : feature) s.direction[f] = 0;
        if (!std::ranges::all_of(z, [](double v) { return std::isfinite(v); })) return;  // values too large to compare
        const auto bias = static_cast<float>(-weighted_median(z, importance));
        const double sigma = static_cast<float>(settings_.noise * deviation(z, importance, top.value, result.mass));
        send(node, z, bias, sigma, result);
        if (result.left.rows.empty() || result.right.rows.empty()) {
            result.left = result.right = Node();
            return;
        }
        result.is_split = true;
        result.sigma = sigma;
        for (std::size_t f = 0; f < feature.size(); ++f)
            if (top.w[f] != 0.0f) {
                result.feature.push_back(static_cast<std::int32_t>(feature[f]));
                result.weight.push_back(top.w[f]);
            }
        result.feature.push_back(static_cast<std::int32_t>(n_features_));
        result.weight.push_back(bias);
    }

    /// The standard deviation of similar rows along the direction. The paper takes the eigenvalue over the mass, which
    /// is the variance of what the labels predict; the other choice is the root of the variance that they do not. The
    /// mean of z is zero by balance.
    double deviation(std::span<const double> z, std::span<const double> importance, double eigenvalue,
                     double mass) const {
        if (!settings_.is_within) return eigenvalue / mass;
        double squared = 0;
        for (std::size_t k = 0; k < z.size(); ++k) squared += importance[k] * z[k] * z[k];
        return std::sqrt(std::max(0.0, squared - eigenvalue) / mass);
    }

    void send(const Node& node, std::span<const double> z, float bias, double sigma, Split& result) const {
        for (std::size_t k = 0; k < z.size(); ++k) {
            const auto [left, right] = shared_row(node.path[k], z[k] + bias, sigma, settings_.min_path);
            auto add = [&](Node& to, double share) {
                if (!(share > 0)) return;
                to.rows.push_back(node.rows[k]);
                to.path.push_back(static_cast<float>(share));
            };
            add(result.left, left);
            add(result.right, right);
        }
    }

    /// Drops the smallest weights; the length of what is left.
    double prune(std::vector<float>& w) const {
        float largest = 0;
        for (float v : w) largest = std::max(largest, std::abs(v));
        const auto least = static_cast<float>(settings_.prune * largest);
        double squared = 0;
        for (float& v : w) {
            if (std::abs(v) < least) v = 0;
            squared += static_cast<double>(v) * v;
        }
        return std::sqrt(squared);
    }

    void append(const Split& s, int depth, std::size_t child) {
        tree_.child.push_back(s.is_split ? static_cast<std::int32_t>(child) : -1);
        tree_.depth.push_back(depth);
        tree_.mass.push_back(static_cast<float>(s.mass));
        tree_.label_mass.push_back(static_cast<float>(s.label_mass));
        tree_.covered.push_back(static_cast<float>(s.covered));
        tree_.sigma.push_back(static_cast<float>(s.sigma));
        tree_.weight_feature.insert(tree_.weight_feature.end(), s.feature.begin(), s.feature.end());
        tree_.weight.insert(tree_.weight.end(), s.weight.begin(), s.weight.end());
        tree_.weight_begin.push_back(static_cast<std::int64_t>(tree_.weight.size()));
        for (const LabelCount& c : s.counts) {
            tree_.count_label.push_back(c.label);
            tree_.count.push_back(c.count);
        }
        tree_.count_begin.push_back(static_cast<std::int64_t>(tree_.count.size()));
        std::vector<float> head(head_.size(), 0.0f);
        std::ranges::copy(s.head_count, head.begin());
        tree_.head_count.insert(tree_.head_count.end(), head.begin(), head.end());
    }

    const PreparedRows& X_;
    std::span<const std::int64_t> y_begin_;
    std::span<const std::int32_t> y_label_;
    const std::int64_t n_labels_;
    std::span<const float> row_weight_;
    std::span<const std::int32_t> head_;
    const std::int64_t n_features_;
    const CandidateTreeSettings& settings_;
    const std::uint64_t seed_;
    const int n_threads_;
    std::vector<std::uint8_t> is_head_;
    CandidateTreeStorage tree_;
};

}  // namespace ramify
