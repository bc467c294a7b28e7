/// What a node of a LOMtree knows of each class that has come by: the paper's m, l and n, for those classes alone.
#pragma once

#include <bit>
#include <cstdint>
#include <span>
#include <vector>

namespace ramify {

struct ClassCount {
    std::int32_t label;
    double score = 0;    ///< m: sum of the scores while the node was an inner one
    double reached = 0;  ///< l: examples that came here
    double trained = 0;  ///< n: examples that trained the regressor
};

class ClassCounts {
public:
    double total = 0;           ///< of all `reached`
    std::int32_t best = -1;     ///< the most frequent class; of equals the one with the smaller number
    double best_count = 0;

    std::size_t size() const { return counts_.size(); }
    std::span<const ClassCount> counts() const { return counts_; }
    std::size_t bytes() const { return counts_.capacity() * sizeof(ClassCount) + slots_.capacity() * sizeof(std::int32_t); }

    const ClassCount* find(std::int32_t label) const {
        if (slots_.empty()) {
            for (const ClassCount& c : counts_)
                if (c.label == label) return &c;
            return nullptr;
        }
        for (std::size_t at = hash(label);; at = (at + 1) & (slots_.size() - 1)) {
            if (slots_[at] < 0) return nullptr;
            if (counts_[slots_[at]].label == label) return &counts_[slots_[at]];
        }
    }

    /// An example of this class has come.
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

    /// The score sums of a class that has come by, when they are taken back from a file.
    void set_scores(std::int32_t label, double score, double trained) {
        ClassCount& c = counts_[find(label) - counts_.data()];
        c.score = score;
        c.trained = trained;
    }

private:
    ClassCount& insert(const ClassCount& count) {
        counts_.push_back(count);
        if (counts_.size() > few) {
            if (2 * counts_.size() > slots_.size()) {
                slots_.assign(std::bit_ceil(4 * counts_.size()), -1);
                for (std::size_t i = 0; i < counts_.size(); ++i) place(static_cast<std::int32_t>(i));
            } else {
                place(static_cast<std::int32_t>(counts_.size() - 1));
            }
        }
        return counts_.back();
    }

    static constexpr std::size_t few = 12;  // so many are found faster one by one

    std::size_t hash(std::int32_t label) const { return (static_cast<std::uint32_t>(label) * 0x9e3779b97f4a7c15ull >> 32) & (slots_.size() - 1); }
    void place(std::int32_t i) {
        std::size_t at = hash(counts_[i].label);
        while (slots_[at] >= 0) at = (at + 1) & (slots_.size() - 1);
        slots_[at] = i;
    }

    std::vector<ClassCount> counts_;
    std::vector<std::int32_t> slots_;
};

}  // namespace ramify
