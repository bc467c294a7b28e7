/// Mixing of integers: seeds that differ everywhere, orders by chance, and slots of a shared table.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace ramify {

inline std::uint64_t mix(std::uint64_t z) {
    z = (z + 0x9e3779b97f4a7c15ull) * 0xbf58476d1ce4e5b9ull;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
    return z ^ (z >> 31);
}

/// An order by chance, the same wherever it is made.
template <class T>
void shuffle(std::vector<T>& values, std::uint64_t seed) {
    for (std::size_t i = values.size(); i > 1; --i) std::swap(values[i - 1], values[static_cast<std::size_t>(mix(seed ^ mix(i)) % i)]);
}

/// The weights of one tile of one node for one feature, in a table that all nodes share: `stride` floats from here.
struct HashedTile {
    std::uint64_t seed;
    std::size_t n_slots;

    HashedTile(std::int64_t node, std::int64_t tile, int stride, std::size_t table_size)
        : seed(mix(static_cast<std::uint64_t>(node) << 20 | static_cast<std::uint64_t>(tile))), n_slots(table_size / stride) {}

    std::uint32_t slot(std::uint32_t feature) const {
        std::uint64_t z = (feature + seed) * 0xbf58476d1ce4e5b9ull;
        z = (z ^ (z >> 32)) * 0x94d049bb133111ebull;
        return static_cast<std::uint32_t>(((z >> 32) * n_slots) >> 32);
    }
};

/// Floats that a tile of so many columns takes per feature.
inline int hashed_stride(int n_columns) { return (n_columns + 7) / 8 * 8; }

}  // namespace ramify
