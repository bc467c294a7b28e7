/// What a node of a LOMtree knows of each class that reached it: the paper's m, l and n, stored for those classes only.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/hash_map.hpp"

namespace ramify {

struct ClassCount {
    std::int32_t label;
    double score = 0;    ///< m: sum of the scores while the node was an inner one
    double reached = 0;  ///< l: examples that came here
    double trained = 0;  ///< n: examples that trained the regressor
};

class ClassCounts {
public:
    double total = 0;        ///< of all `reached`
    std::int32_t best = -1;  ///< the most frequent class; of equals the one with the smaller number
    double best_count = 0;

    std::size_t size() const { return counts_.size(); }
    std::span<const ClassCount> counts() const { return counts_; }
    std::size_t bytes() const { return counts_.capacity() * sizeof(ClassCount) + index_.bytes(); }

    const ClassCount* find(std::int32_t label) const {
        if (counts_.size() > few) {
            const std::uint32_t* at = index_.find(static_cast<std::uint32_t>(label));
            return at ? &counts_[*at] : nullptr;
        }
        for (const ClassCount& c : counts_)
            if (c.label == label) return &c;
        return nullptr;
    }

    /// Counts an example of this class.
    ClassCount& add(std::int32_t label, double weight) {
        const ClassCount* known = find(label);
        ClassCount& c = known ? counts_[known - counts_.data()] : insert({label});
        c.reached += weight;
        total += weight;
        if (c.reached > best_count || (c.reached == best_count && label < best)) {
            best = label;
            best_count = c.reached;
        }
        return c;
    }

    /// Restores the score sums of a known class from a file.
    void set_scores(std::int32_t label, double score, double trained) {
        ClassCount& c = counts_[find(label) - counts_.data()];
        c.score = score;
        c.trained = trained;
    }

private:
    ClassCount& insert(const ClassCount& count) {
        counts_.push_back(count);
        if (counts_.size() > few) {
            index_.reserve_more(counts_.size() - index_.size());
            for (std::size_t i = index_.size(); i < counts_.size(); ++i)
                index_.add(static_cast<std::uint32_t>(counts_[i].label), static_cast<std::uint32_t>(i));
        }
        return counts_.back();
    }

    static constexpr std::size_t few = 12;  ///< up to here a scan is faster than the index

    std::vector<ClassCount> counts_;
    HashMap<std::uint32_t, 50> index_;  ///< from class to its place in counts_, if there are more than a few
};

}  // namespace ramify
