/// The filter tree: a tournament of classes, learned from the first round to the final (Beygelzimer et al. 2009;
/// Choromanska and Langford, "Logarithmic Time Online Multiclass prediction", section 1.1).
///
/// A node's regressor predicts which of its two sides holds the winner. It learns from an example only if the example's
/// class lies below and has won every match on the way up, so that the final learns from the matches that it will be
/// asked about.
#pragma once

#include <cstdint>
#include <span>
#include <stdexcept>
#include <vector>

#include "lomtree/node_regressor.hpp"

namespace ramify {

class FilterTree {
public:
    /// `order`: the classes from left to right; halves meet in the final.
    FilterTree(const RegressorSettings& settings, std::span<const std::int32_t> order)
        : settings_(settings), class_at_(order.begin(), order.end()) {
        place_of_.assign(order.size(), -1);
        for (std::size_t i = 0; i < order.size(); ++i) {
            const std::int32_t c = order[i];
            if (c < 0 || c >= std::ssize(order) || place_of_[c] >= 0)
                throw std::invalid_argument("a tournament needs each class once");
            place_of_[c] = static_cast<std::int32_t>(i);
        }
        if (order.empty()) throw std::invalid_argument("a tournament needs at least one class");
        regressors_.resize(order.size() - 1);
    }

    std::int32_t n_classes() const { return static_cast<std::int32_t>(class_at_.size()); }
    std::span<const NodeRegressor> regressors() const { return regressors_; }
    std::span<const std::int32_t> order() const { return class_at_; }
    const RegressorSettings& settings() const { return settings_; }

    /// A match between the classes from `first` to before `last`: those from `middle` on are the right side. A node's
    /// number is that of the last place on its left side, so each number below n_classes - 1 is one node's.
    struct Match {
        std::int32_t first, middle, last;
        std::int32_t node() const { return middle - 1; }
    };
    static Match match(std::int32_t first, std::int32_t last) { return {first, first + (last - first + 1) / 2, last}; }

    /// One step of every match that the class wins, and of the first that it loses; whether it wins them all.
    bool learn(const RegressorRow& x, std::int32_t label, float weight, int dense_width) {
        const std::int32_t place = place_of_[label];
        way_.clear();
        for (std::int32_t first = 0, last = n_classes(); last - first > 1;) {
            const Match m = way_.emplace_back(match(first, last));
            (place >= m.middle ? first : last) = m.middle;
        }
        for (auto m = way_.rbegin(); m != way_.rend(); ++m) {
            NodeRegressor& regressor = regressors_[m->node()];
            if (regressor.dense_width() == 0 && regressor.has_empty_table() && dense_width > 0)
                regressor = NodeRegressor(dense_width);
            const bool is_right = place >= m->middle;
            bool goes_right = false;
            regressor.learn(x, weight, settings_, scratch_, [&](float score) {
                goes_right = score > 0;
                return is_right ? 1.0f : -1.0f;
            });
            if (goes_right != is_right) return false;
        }
        return true;
    }

    /// The winner, found from the final down.
    std::int32_t winner(const RegressorRow& x) const {
        std::int32_t first = 0, last = n_classes();
        while (last - first > 1) {
            const Match m = match(first, last);
            (regressors_[m.node()].score(x) > 0 ? first : last) = m.middle;
        }
        return class_at_[first];
    }

    void restore(std::vector<NodeRegressor>&& regressors) { regressors_ = std::move(regressors); }

private:
    RegressorSettings settings_;
    std::vector<std::int32_t> class_at_, place_of_;
    std::vector<NodeRegressor> regressors_;
    std::vector<Match> way_;
    RegressorScratch scratch_;
};

}  // namespace ramify
