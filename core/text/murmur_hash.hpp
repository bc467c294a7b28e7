/// MurmurHash3 (Appleby), the 32-bit variant with seed 0, as a signed number: the hash of scikit-learn's hashers.
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "text/term_table.hpp"

namespace ramify {

namespace murmur {

inline std::uint32_t scramble(std::uint32_t k) { return std::rotl(k * 0xcc9e2d51u, 15) * 0x1b873593u; }
inline std::uint32_t add_block(std::uint32_t h, std::uint32_t k) {
    return std::rotl(h ^ scramble(k), 13) * 5 + 0xe6546b64u;
}
inline std::int32_t finish(std::uint32_t h, std::size_t size) {
    h ^= static_cast<std::uint32_t>(size);
    h = (h ^ h >> 16) * 0x85ebca6bu;
    h = (h ^ h >> 13) * 0xc2b2ae35u;
    return static_cast<std::int32_t>(h ^ h >> 16);
}

}  // namespace murmur

inline std::int32_t murmur_hash(Term term) {
    const auto block = [](std::uint64_t word, int half) { return static_cast<std::uint32_t>(word >> 32 * half); };
    if (term.size < term_bytes::max_short) {
        // All four blocks of any term, and the right state of them: sizes are not predictable, so that a loop is
        // slower.
        const TermKey key = TermTable::key_of(term);
        const std::array<std::uint32_t, 4> blocks{block(key.low, 0), block(key.low, 1), block(key.high, 0),
                                                  block(key.high, 1)};
        std::array<std::uint32_t, 4> states{};
        for (std::size_t k = 1; k < 4; ++k) states[k] = murmur::add_block(states[k - 1], blocks[k - 1]);
        const std::size_t n_whole = term.size / 4;
        return murmur::finish(states[n_whole] ^ murmur::scramble(blocks[n_whole]), term.size);
    }
    std::uint32_t h = 0;
    std::size_t at = 0;
    for (; at + 4 <= term.size; at += 4) {
        std::uint32_t k;
        std::memcpy(&k, term.data + at, 4);
        h = murmur::add_block(h, k);
    }
    std::uint32_t tail = 0;
    for (std::size_t k = term.size; k > at; --k) tail = tail << 8 | static_cast<unsigned char>(term.data[k - 1]);
    return murmur::finish(h ^ murmur::scramble(tail), term.size);
}

}  // namespace ramify
