/// What Python knows about characters: which are parts of words, which are white space, and what each becomes in lower
/// case or without its accent. The tables come from the running Python, so that every text is read as Python reads it.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <stdexcept>
#include <vector>

namespace ramify {

inline constexpr std::uint32_t n_characters = 0x110000;
inline constexpr std::uint32_t capital_sigma = 0x3A3;

/// A set of characters, given as runs: first, end, first, end, …
class CharacterSet {
public:
    explicit CharacterSet(std::span<const std::int32_t> runs) : bits_(n_characters / 64, 0) {
        if (runs.size() % 2) throw std::invalid_argument("runs of characters come in pairs");
        for (std::size_t k = 0; k < runs.size(); k += 2) {
            if (runs[k] < 0 || runs[k] > runs[k + 1] || runs[k + 1] > static_cast<std::int32_t>(n_characters))
                throw std::invalid_argument("a run of characters is outside of Unicode");
            for (auto c = static_cast<std::uint32_t>(runs[k]); c < static_cast<std::uint32_t>(runs[k + 1]); ++c)
                bits_[c / 64] |= std::uint64_t{1} << c % 64;
        }
    }

    bool operator[](std::uint32_t c) const { return bits_[c / 64] >> c % 64 & 1; }

private:
    std::vector<std::uint64_t> bits_;
};

/// The characters that each character becomes, where that is not itself. Most pages of 256 characters have none.
class Replacements {
public:
    /// Character changed[k] becomes the characters begin[k] to begin[k + 1] of `becomes`.
    Replacements(std::span<const std::int32_t> changed, std::span<const std::int32_t> begin,
                 std::span<const std::int32_t> becomes)
        : page_of_(n_characters / 256, 0), entries_(256, unchanged), pool_(becomes.begin(), becomes.end()) {
        if (begin.size() != changed.size() + 1) throw std::invalid_argument("replacements need a begin for each");
        for (std::size_t k = 0; k < changed.size(); ++k) {
            const auto c = static_cast<std::uint32_t>(changed[k]);
            if (c >= n_characters || begin[k] < 0 || begin[k] > begin[k + 1] ||
                static_cast<std::size_t>(begin[k + 1]) > pool_.size() || begin[k + 1] - begin[k] > 255 ||
                begin[k] >= 1 << 23)
                throw std::invalid_argument("a replacement is outside of its arrays");
            std::uint16_t& page = page_of_[c >> 8];
            if (page == 0) {
                page = static_cast<std::uint16_t>(entries_.size() / 256);
                entries_.resize(entries_.size() + 256, unchanged);
            }
            entries_[std::size_t{page} * 256 + (c & 255)] =
                static_cast<std::uint32_t>(begin[k]) << 8 | static_cast<std::uint32_t>(begin[k + 1] - begin[k]);
        }
        for (std::uint32_t c : pool_)
            if (c >= n_characters) throw std::invalid_argument("a replacement is outside of Unicode");
    }

    /// Calls emit(character) for each character that c becomes.
    template <class Emit>
    void replace(std::uint32_t c, Emit&& emit) const {
        const std::uint32_t entry = entries_[std::size_t{page_of_[c >> 8]} * 256 + (c & 255)];
        if (entry == unchanged) return emit(c);
        for (std::uint32_t k = entry >> 8, end = k + (entry & 255); k < end; ++k) emit(pool_[k]);
    }

private:
    static constexpr std::uint32_t unchanged = 0xffffffffu;
    std::vector<std::uint16_t> page_of_;
    std::vector<std::uint32_t> entries_;  ///< begin and length in the pool
    std::vector<std::uint32_t> pool_;
};

/// All of it, for one choice of lower case and accents.
struct CharacterTable {
    CharacterSet word, space;
    Replacements replacements;
    CharacterSet cased, ignorable;  ///< around a capital sigma: what makes it a final one, and what is skipped
    std::vector<std::uint32_t> final_sigma, inner_sigma;  ///< what a capital sigma becomes at the end of a word, or not
};

}  // namespace ramify
