/// Texts in lower case and without accents, as UTF-8, with a mark on every byte that is part of a token.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <utility>
#include <vector>

#include "text/characters.hpp"

namespace ramify {

/// A Python string's characters, not owned: 1, 2 or 4 bytes each.
struct TextView {
    const void* data;
    std::size_t size;
    int unit;
    bool is_ascii;
};

/// What is part of a token: letters, digits and _, or anything but white space.
enum class TokenClass { word, not_space };

/// One text after normalisation; its buffers are used again for the next one.
class NormalizedText {
public:
    /// Room after the last byte, so that terms can be read in words of 8 bytes.
    static constexpr std::size_t padding = 128;

    /// `table` may be null if the text is ASCII. `lowers` is for ASCII; the table has its own.
    void read(const TextView& text, const CharacterTable* table, bool lowers, TokenClass token) {
        size_ = 0;
        wide_.clear();
        origin_.clear();
        source_size_ = text.size;
        const auto run = [&]<class Unit>(const Unit* data) {
            lowers ? convert<Unit, true>(data, text.size, table, token)
                   : convert<Unit, false>(data, text.size, table, token);
        };
        if (text.unit == 1)
            run(static_cast<const std::uint8_t*>(text.data));
        else if (text.unit == 2)
            run(static_cast<const std::uint16_t*>(text.data));
        else
            run(static_cast<const std::uint32_t*>(text.data));
        make_room(padding);
        std::memset(bytes_.data() + size_, ' ', padding);
        mark(token);
    }

    /// Whether `origin` is kept: from which character of the text each byte comes.
    void keep_origin(bool kept) { keeps_origin_ = kept; }

    /// Whether there are characters outside of ASCII that are parts of tokens.
    bool has_wide_characters() const { return !wide_.empty(); }

    const char* bytes() const { return bytes_.data(); }
    std::size_t size() const { return size_; }

    /// The first character that byte k comes from, and the end: the next character that left a trace.
    std::pair<std::int64_t, std::int64_t> origin(std::size_t k) const {
        std::size_t next = k;
        while (next < size_ && origin_[next] == origin_[k]) ++next;
        return {origin_[k], next < size_ ? origin_[next] : static_cast<std::int64_t>(source_size_)};
    }

    bool is_marked(std::size_t k) const { return marks_[k / 64] >> k % 64 & 1; }

    /// Where every run of marked bytes begins and ends: begin, end, begin, end, …
    std::span<const std::size_t> edges() {
        std::size_t n = 0;
        std::uint64_t before = 0;
        for (std::size_t w = 0; w < marks_.size(); ++w) {
            if (edges_.size() < n + 64) edges_.resize(2 * n + 1024);
            const std::uint64_t marks = marks_[w];
            std::uint64_t edges = marks ^ (marks << 1 | before);
            before = marks >> 63;
            for (; edges; edges &= edges - 1) edges_[n++] = w * 64 + static_cast<std::size_t>(__builtin_ctzll(edges));
        }
        return {edges_.data(), n};
    }

private:
    static constexpr std::size_t block = 32;

    void make_room(std::size_t more) {
        if (bytes_.size() < size_ + more) bytes_.resize((size_ + more) * 3 / 2 + 256);
    }

    template <class Unit, bool lowers>
    void convert(const Unit* text, std::size_t n, const CharacterTable* table, TokenClass token) {
        std::size_t i = 0;
        while (i < n) {
            make_room(2 * block);
            char* out = bytes_.data() + size_;
            if (i + block <= n) {  // fixed loops without branches: the compiler makes vector code of them
                Unit any = 0;
                for (std::size_t k = 0; k < block; ++k) any |= text[i + k];
                if (any < 0x80) {
                    for (std::size_t k = 0; k < block; ++k) out[k] = to_lower<lowers>(text[i + k]);
                    advance(i, block);
                    i += block;
                    continue;
                }
            }
            std::size_t k = 0;
            const std::size_t end = std::min(block, n - i);
            while (k < end && text[i + k] < 0x80) {
                out[k] = to_lower<lowers>(text[i + k]);
                ++k;
            }
            advance(i, k);
            i += k;
            for (; i < n && text[i] >= 0x80; ++i) convert_wide<Unit, lowers>(text, n, i, *table, token);
        }
    }

    template <bool lowers, class Unit>
    static char to_lower(Unit c) {
        const auto b = static_cast<std::uint8_t>(c);
        if constexpr (!lowers) return static_cast<char>(b);
        return static_cast<char>(b + (static_cast<std::uint8_t>(b - 'A') < 26 ? 32 : 0));
    }

    /// `n_bytes` were written that come from the characters `from` and following, one each.
    void advance(std::size_t from, std::size_t n_bytes) {
        size_ += n_bytes;
        if (keeps_origin_)
            for (std::size_t k = 0; k < n_bytes; ++k) origin_.push_back(static_cast<std::int64_t>(from + k));
    }

    template <class Unit, bool lowers>
    void convert_wide(const Unit* text, std::size_t n, std::size_t i, const CharacterTable& table, TokenClass token) {
        const auto emit = [&](std::uint32_t c) { append(c, i, table, token); };
        const std::uint32_t c = text[i];
        if (lowers && c == capital_sigma) {
            for (std::uint32_t s : is_final_sigma(text, n, i, table) ? table.final_sigma : table.inner_sigma) emit(s);
        } else {
            table.replacements.replace(c, emit);
        }
    }

    /// The Unicode standard's condition Final_Sigma: a cased letter before and none after, skipping what is ignorable.
    template <class Unit>
    static bool is_final_sigma(const Unit* text, std::size_t n, std::size_t i, const CharacterTable& table) {
        std::size_t before = i;
        while (before > 0 && table.ignorable[text[before - 1]]) --before;
        if (before == 0 || !table.cased[text[before - 1]]) return false;
        std::size_t after = i + 1;
        while (after < n && table.ignorable[text[after]]) ++after;
        return after == n || !table.cased[text[after]];
    }

    void append(std::uint32_t c, std::size_t from, const CharacterTable& table, TokenClass token) {
        make_room(8);
        char* out = bytes_.data() + size_;
        const std::size_t begin = size_;
        if (c < 0x80) {
            out[0] = static_cast<char>(c);
            size_ += 1;
        } else if (c < 0x800) {
            out[0] = static_cast<char>(0xC0 | c >> 6);
            out[1] = static_cast<char>(0x80 | (c & 0x3F));
            size_ += 2;
        } else if (c < 0x10000) {
            out[0] = static_cast<char>(0xE0 | c >> 12);
            out[1] = static_cast<char>(0x80 | (c >> 6 & 0x3F));
            out[2] = static_cast<char>(0x80 | (c & 0x3F));
            size_ += 3;
        } else {
            out[0] = static_cast<char>(0xF0 | c >> 18);
            out[1] = static_cast<char>(0x80 | (c >> 12 & 0x3F));
            out[2] = static_cast<char>(0x80 | (c >> 6 & 0x3F));
            out[3] = static_cast<char>(0x80 | (c & 0x3F));
            size_ += 4;
        }
        if (keeps_origin_) origin_.resize(size_, static_cast<std::int64_t>(from));
        if (c >= 0x80 && (token == TokenClass::word ? table.word[c] : !table.space[c])) {
            if (!wide_.empty() && wide_.back().second == begin)
                wide_.back().second = size_;
            else
                wide_.push_back({begin, size_});
        }
    }

    void mark(TokenClass token) {
        marks_.resize(size_ / 64 + 1);
        for (std::size_t w = 0; w < marks_.size(); ++w) {
            std::uint8_t is[64];
            const char* from = bytes_.data() + w * 64;  // the padding is white space
            if (token == TokenClass::word) {
                for (std::size_t k = 0; k < 64; ++k) {
                    const auto c = static_cast<std::uint8_t>(from[k]);
                    is[k] = static_cast<std::uint8_t>((static_cast<std::uint8_t>((c | 0x20) - 'a') < 26) |
                                                      (static_cast<std::uint8_t>(c - '0') < 10) | (c == '_'));
                }
            } else {
                for (std::size_t k = 0; k < 64; ++k) {
                    const auto c = static_cast<std::uint8_t>(from[k]);
                    is[k] = static_cast<std::uint8_t>((c < 0x80) & (c != ' ') & (static_cast<std::uint8_t>(c - 9) > 4) &
                                                      (static_cast<std::uint8_t>(c - 28) > 3));
                }
            }
            std::uint64_t marks = 0;
            for (std::size_t k = 0; k < 64; k += 8) {
                std::uint64_t eight;  // byte k becomes bit k
                std::memcpy(&eight, is + k, 8);
                marks |= (eight * 0x0102040810204080ull >> 56) << k;
            }
            marks_[w] = marks;
        }
        for (auto [begin, end] : wide_)
            for (std::size_t k = begin; k < end; ++k) marks_[k / 64] |= std::uint64_t{1} << k % 64;
    }

    std::vector<char> bytes_;
    std::size_t size_ = 0;
    std::vector<std::uint64_t> marks_;
    std::vector<std::size_t> edges_;
    std::vector<std::pair<std::size_t, std::size_t>> wide_;  ///< marked bytes of characters outside of ASCII
    bool keeps_origin_ = false;
    std::vector<std::int64_t> origin_;
    std::size_t source_size_ = 0;
};

}  // namespace ramify
