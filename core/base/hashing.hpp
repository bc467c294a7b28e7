/// Mixing of integers: seeds, random orders, and slots of shared weight tables.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace ramify {

// Always inlined: the kernels are compiled for several instruction sets, and the linker must not keep the copy of a
// wide one for all.
#define RAMIFY_MIXER [[gnu::always_inline]] inline constexpr std::uint64_t

inline constexpr std::uint64_t golden_ratio = 0x9e3779b97f4a7c15ull;

/// The two rounds of splitmix64; its upper half is well mixed.
RAMIFY_MIXER splitmix_rounds(std::uint64_t z) {
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
    return (z ^ (z >> 27)) * 0x94d049bb133111ebull;
}

RAMIFY_MIXER splitmix64(std::uint64_t x) {
    const std::uint64_t z = splitmix_rounds(x + golden_ratio);
    return z ^ (z >> 31);
}

/// splitmix64 without its first shift: enough for seeds and counters.
RAMIFY_MIXER mix(std::uint64_t z) {
    z = (z + golden_ratio) * 0xbf58476d1ce4e5b9ull;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
    return z ^ (z >> 31);
}

/// For slots of weight tables: one round, cheap enough for every feature of every node. Its lower half is well mixed.
RAMIFY_MIXER slot_round(std::uint64_t z) {
    z *= 0xbf58476d1ce4e5b9ull;
    return z ^ (z >> 32);
}

#undef RAMIFY_MIXER

/// A random order, the same on every platform.
template <class T>
void shuffle(std::vector<T>& values, std::uint64_t seed) {
    for (std::size_t i = values.size(); i > 1; --i)
        std::swap(values[i - 1], values[static_cast<std::size_t>(mix(seed ^ mix(i)) % i)]);
}

/// The weights of one tile of one node for one feature, in a table that all nodes share: `stride` floats from here.
struct HashedTile {
    std::uint64_t seed;
    std::size_t n_slots;

    HashedTile(std::int64_t node, std::int64_t tile, int stride, std::size_t table_size)
        : seed(mix(static_cast<std::uint64_t>(node) << 20 | static_cast<std::uint64_t>(tile))),
          n_slots(table_size / stride) {}

    std::uint32_t slot(std::uint32_t feature) const {
        const std::uint64_t z = slot_round(feature + seed) * 0x94d049bb133111ebull;
        return static_cast<std::uint32_t>(((z >> 32) * n_slots) >> 32);
    }
};

/// Floats that a tile of this many columns takes per feature.
inline int hashed_stride(int n_columns) { return (n_columns + 7) / 8 * 8; }

}  // namespace ramify
