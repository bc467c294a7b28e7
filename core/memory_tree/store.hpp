/// The examples that a memory tree holds, each with its place in the tree, and for each label the examples that have
/// it.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "kernels/kernels.hpp"

namespace ramify {

struct StoredExample {
    std::vector<Entry> x;              ///< prepared, features by their dense numbers
    std::vector<std::int32_t> labels;  ///< rising
    std::vector<std::uint32_t> place;  ///< of this example among those with each label
    float weight = 1.0f;
    float use = 0.0f;           ///< correct retrievals minus wrong ones
    std::uint64_t arrival = 0;  ///< its number in the order of learning
    std::int32_t leaf = -1;
    std::uint32_t place_in_leaf = 0;
};

/// The Jaccard similarity of two sorted label sets.
inline double label_similarity(std::span<const std::int32_t> one, std::span<const std::int32_t> other) {
    std::size_t both = 0;
    for (auto a = one.begin(), b = other.begin(); a != one.end() && b != other.end();) {
        if (*a == *b)
            ++both, ++a, ++b;
        else if (*a < *b)
            ++a;
        else
            ++b;
    }
    const std::size_t either = one.size() + other.size() - both;
    return either == 0 ? 1.0 : static_cast<double>(both) / static_cast<double>(either);
}

/// Slots without gaps: the last example moves into the slot of one that leaves.
class MemoryStore {
public:
    static constexpr std::uint32_t none = 0xffffffffu;

    std::size_t size() const { return examples_.size(); }
    StoredExample& operator[](std::uint32_t slot) { return examples_[slot]; }
    const StoredExample& operator[](std::uint32_t slot) const { return examples_[slot]; }

    std::uint32_t add(StoredExample example) {
        const auto slot = static_cast<std::uint32_t>(examples_.size());
        example.place.clear();
        for (std::int32_t label : example.labels) {
            if (static_cast<std::size_t>(label) >= with_label_.size()) with_label_.resize(label + 1);
            example.place.push_back(static_cast<std::uint32_t>(with_label_[label].size()));
            with_label_[label].push_back(slot);
        }
        examples_.push_back(std::move(example));
        return slot;
    }

    std::span<const std::uint32_t> with_label(std::int32_t label) const {
        if (static_cast<std::size_t>(label) >= with_label_.size()) return {};
        return with_label_[label];
    }

    /// Removes an example. The last one moves into its slot: returns where that one was (maybe the same slot).
    std::uint32_t remove(std::uint32_t slot) {
        const StoredExample& gone = examples_[slot];
        for (std::size_t k = 0; k < gone.labels.size(); ++k) {
            auto& list = with_label_[gone.labels[k]];
            const std::uint32_t moved = list.back();
            list[gone.place[k]] = moved;
            place_for(examples_[moved], gone.labels[k]) = gone.place[k];
            list.pop_back();
        }
        const auto last = static_cast<std::uint32_t>(examples_.size() - 1);
        if (slot != last) {
            const StoredExample& moved = examples_[last];
            for (std::size_t k = 0; k < moved.labels.size(); ++k) with_label_[moved.labels[k]][moved.place[k]] = slot;
            examples_[slot] = std::move(examples_[last]);
        }
        examples_.pop_back();
        return last;
    }

    /// Restores the order of each label's examples, which decides what a random draw finds.
    bool restore_places(std::span<const std::uint32_t> places) {
        std::size_t k = 0;
        for (auto& list : with_label_) std::ranges::fill(list, none);
        for (std::uint32_t slot = 0; slot < examples_.size(); ++slot)
            for (std::size_t i = 0; i < examples_[slot].labels.size(); ++i, ++k) {
                auto& list = with_label_[examples_[slot].labels[i]];
                if (k >= places.size() || places[k] >= list.size() || list[places[k]] != none) return false;
                list[places[k]] = slot;
                examples_[slot].place[i] = places[k];
            }
        return k == places.size();
    }

    std::size_t bytes() const {
        std::size_t total = examples_.capacity() * sizeof(StoredExample);
        for (const StoredExample& e : examples_)
            total += e.x.capacity() * sizeof(Entry) + (e.labels.capacity() + e.place.capacity()) * sizeof(std::int32_t);
        for (const auto& list : with_label_) total += sizeof(list) + list.capacity() * sizeof(std::uint32_t);
        return total;
    }

private:
    static std::uint32_t& place_for(StoredExample& example, std::int32_t label) {
        const auto at = std::ranges::lower_bound(example.labels, label);
        return example.place[at - example.labels.begin()];
    }

    std::vector<StoredExample> examples_;
    std::vector<std::vector<std::uint32_t>> with_label_;
};

}  // namespace ramify
