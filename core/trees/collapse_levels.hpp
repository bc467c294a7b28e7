/// Which nodes of a tree to take out, so that nodes have more children and the expected depth is as small as can be.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

namespace ramify {

/// The expected depth is the mass of all inner nodes that stay: every query for a label below one passes through it. A
/// node taken out gives its places in the block above it to its children. `cost(v, s)` is the least mass of inner nodes
/// that stay at and below v when v has at most s places: with one place v stays, with more it may go, and its two
/// children share them. A node that does not have two children (a pre-leaf node has many) goes only if all of its
/// children get one place each. Nodes are numbered breadth first; the answer says which ones stay.
class LevelCollapse {
public:
    LevelCollapse(std::span<const std::int32_t> first_child, std::span<const std::int32_t> n_children,
                  std::span<const double> mass, int arity)
        : first_(first_child),
          n_children_(n_children),
          mass_(mass),
          arity_(arity),
          begin_(first_child.size() + 1, 0),
          stays_(first_child.size(), 1) {}

    std::vector<std::uint8_t> solve() {
        const auto n = static_cast<std::int64_t>(first_.size());
        // Below a node with few labels more places than labels are of no use: small subtrees have short tables.
        std::vector<std::int32_t> n_places(n, 1);
        for (std::int64_t v = n - 1; v >= 0; --v) {
            std::int64_t below = 0;
            for (std::int32_t c = 0; c < n_children_[v]; ++c) below += n_places[first_[v] + c];
            if (n_children_[v] > 0) n_places[v] = static_cast<std::int32_t>(std::min<std::int64_t>(arity_, below));
        }
        for (std::int64_t v = 0; v < n; ++v) begin_[v + 1] = begin_[v] + n_places[v];
        cost_.assign(begin_[n], 0.0);
        for (std::int64_t v = n - 1; v >= 0; --v)
            if (n_children_[v] > 0) fill(v);
        if (n > 0 && n_children_[0] > 0) open_.push_back(0);
        while (!open_.empty()) {
            const std::int64_t v = open_.back();
            open_.pop_back();
            share_out(v, std::max<std::int64_t>(arity_, n_children_[v]));
        }
        return std::move(stays_);
    }

private:
    double cost(std::int64_t v, std::int64_t places) const {
        return cost_[begin_[v] + std::min(places, begin_[v + 1] - begin_[v]) - 1];
    }

    /// The least cost of the children with this many places, and how many of them the first of two gets.
    std::pair<double, std::int64_t> of_children(std::int64_t v, std::int64_t places) const {
        const std::int32_t first = first_[v], n = n_children_[v];
        if (n != 2) {
            double sum = 0;
            for (std::int32_t c = 0; c < n; ++c) sum += cost(first + c, 1);
            return {sum, 1};
        }
        std::pair<double, std::int64_t> best{cost(first, 1) + cost(first + 1, places - 1), 1};
        for (std::int64_t left = 2; left < places; ++left) {
            const double sum = cost(first, left) + cost(first + 1, places - left);
            if (sum < best.first) best = {sum, left};
        }
        return best;
    }

    void fill(std::int64_t v) {
        double* table = cost_.data() + begin_[v];
        const std::int64_t n_places = begin_[v + 1] - begin_[v];
        table[0] = mass_[v] + of_children(v, std::max<std::int64_t>(arity_, n_children_[v])).first;
        for (std::int64_t places = 2; places <= n_places; ++places)
            table[places - 1] = places < n_children_[v] ? table[0] : std::min(table[0], of_children(v, places).first);
    }

    /// The nodes that stay below a node that gave its children this many places.
    void share_out(std::int64_t v, std::int64_t places) {
        const std::int64_t left = of_children(v, places).second;
        for (std::int32_t c = 0; c < n_children_[v]; ++c) {
            const std::int64_t child = first_[v] + c;
            if (n_children_[child] == 0) continue;
            const std::int64_t of_child = n_children_[v] != 2 ? 1 : c == 0 ? left : places - left;
            if (of_child < n_children_[child] || of_child == 1 || cost(child, of_child) >= cost(child, 1)) {
                open_.push_back(child);
                continue;
            }
            stays_[child] = 0;
            share_out(child, of_child);
        }
    }

    std::span<const std::int32_t> first_, n_children_;
    std::span<const double> mass_;
    std::int64_t arity_;
    std::vector<std::int64_t> begin_;  // into cost_, per node
    std::vector<double> cost_;
    std::vector<std::int64_t> open_;
    std::vector<std::uint8_t> stays_;
};

}  // namespace ramify
