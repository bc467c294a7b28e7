/// Dense numbers for features in the order in which they come up, so that arrays can be indexed by them whatever the features are.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <stdexcept>
#include <vector>

#include "base/hashing.hpp"

namespace ramify {

class FeatureNumbers {
public:
    static constexpr std::uint32_t unknown = 0xffffffffu;

    std::size_t size() const { return feature_.size(); }
    std::span<const std::uint32_t> features() const { return feature_; }
    std::uint32_t feature(std::uint32_t number) const { return feature_[number]; }
    std::size_t bytes() const { return feature_.capacity() * sizeof(std::uint32_t) + slots_.capacity() * sizeof(std::uint32_t); }

    std::uint32_t find(std::uint32_t feature) const { return slots_.empty() ? unknown : slots_[slot_of(feature)]; }

    /// The feature's number, a new one if it has none yet.
    std::uint32_t number(std::uint32_t feature) {
        if (2 * (feature_.size() + 1) > slots_.size()) grow();
        std::uint32_t& slot = slots_[slot_of(feature)];
        if (slot == unknown) {
            slot = static_cast<std::uint32_t>(feature_.size());
            feature_.push_back(feature);
        }
        return slot;
    }

    /// Takes back what features() gave.
    void assign(std::span<const std::uint32_t> features) {
        for (std::size_t n = 0; n < features.size(); ++n)
            if (number(features[n]) != n || feature_.size() != n + 1) throw std::invalid_argument("a feature of the memory tree is listed twice");
    }

private:
    /// Where the feature is, or would be put: the table is never more than half full.
    std::size_t slot_of(std::uint32_t feature) const {
        std::size_t at = mix(feature) & (slots_.size() - 1);
        while (slots_[at] != unknown && feature_[slots_[at]] != feature) at = (at + 1) & (slots_.size() - 1);
        return at;
    }

    void grow() {
        slots_.assign(slots_.empty() ? 64 : 2 * slots_.size(), unknown);
        for (std::uint32_t n = 0; n < feature_.size(); ++n) slots_[slot_of(feature_[n])] = n;
    }

    std::vector<std::uint32_t> feature_;
    std::vector<std::uint32_t> slots_;
};

}  // namespace ramify
