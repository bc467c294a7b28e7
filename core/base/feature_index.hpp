/// Dense numbers for features in order of arrival: arrays can be indexed by them however large the features are.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <stdexcept>
#include <vector>

#include "base/hash_map.hpp"

namespace ramify {

class FeatureIndex {
public:
    static constexpr std::uint32_t unknown = 0xffffffffu;

    std::size_t size() const { return feature_.size(); }
    std::span<const std::uint32_t> features() const { return feature_; }
    std::uint32_t feature(std::uint32_t number) const { return feature_[number]; }
    std::size_t bytes() const { return feature_.capacity() * sizeof(std::uint32_t) + number_.bytes(); }

    std::uint32_t find(std::uint32_t feature) const {
        const std::uint32_t* number = number_.find(feature);
        return number ? *number : unknown;
    }

    /// The feature's number, a new one if it has none yet.
    std::uint32_t find_or_add(std::uint32_t feature) {
        number_.reserve_more(1);
        const auto [number, is_new] = number_.find_or_add(feature);
        if (is_new) {
            number = static_cast<std::uint32_t>(feature_.size());
            feature_.push_back(feature);
        }
        return number;
    }

    /// Restores what features() returned.
    void assign(std::span<const std::uint32_t> features) {
        for (std::size_t n = 0; n < features.size(); ++n)
            if (find_or_add(features[n]) != n || feature_.size() != n + 1)
                throw std::invalid_argument("a feature of the memory tree is listed twice");
    }

private:
    std::vector<std::uint32_t> feature_;
    HashMap<std::uint32_t, 50> number_;
};

}  // namespace ramify
