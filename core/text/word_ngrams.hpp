/// Words of texts, and n-grams of words and of characters hashed into buckets, with the hashes that fastText uses:
/// 32-bit FNV-1a over signed bytes for a word, multiplied up for n-grams of words (Joulin et al. 2016; Bojanowski et
/// al. 2017).
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/hash_map.hpp"

namespace ramify {

struct NgramSettings {
    bool by_whitespace = false;  ///< words end at white space only; else also at ASCII punctuation, which is dropped
    int word_ngrams = 1;         ///< longest n-gram of words; 1: none
    int min_chars = 0;           ///< shortest and longest n-gram of characters; 0: none
    int max_chars = 0;
    std::int64_t n_buckets = 0;

    bool has_buckets() const { return word_ngrams > 1 || max_chars > 0; }
};

inline std::uint32_t word_hash(std::string_view word) {
    std::uint32_t h = 2166136261u;
    for (char c : word) h = (h ^ static_cast<std::uint32_t>(static_cast<std::int8_t>(c))) * 16777619u;
    return h;
}

/// Calls take(word) for every word of a text.
template <class Take>
void for_every_word(std::string_view text, bool by_whitespace, Take&& take) {
    auto is_part = [&](char c) {
        const auto b = static_cast<unsigned char>(c);
        if (by_whitespace) return !(b == ' ' || (b >= 9 && b <= 13) || b == 0);
        return b >= 0x80 || b == '_' || (b >= '0' && b <= '9') || (b >= 'a' && b <= 'z') || (b >= 'A' && b <= 'Z');
    };
    std::size_t at = 0;
    while (at < text.size()) {
        while (at < text.size() && !is_part(text[at])) ++at;
        const std::size_t begin = at;
        while (at < text.size() && is_part(text[at])) ++at;
        if (at > begin) take(text.substr(begin, at - begin));
    }
}

/// Distinct words, numbered in order of arrival. Views only: the text must outlive the table.
class WordTable {
public:
    std::size_t size() const { return words_.size(); }
    std::string_view word(std::size_t number) const { return words_[number]; }

    std::int32_t find(std::string_view word, std::uint32_t hash) const {
        const std::int32_t* number =
            number_.find(key(hash), [&](std::int32_t n) { return words_[static_cast<std::size_t>(n)] == word; });
        return number ? *number : -1;
    }

    std::int32_t find_or_add(std::string_view word, std::uint32_t hash) {
        const std::int32_t known = find(word, hash);
        if (known >= 0) return known;
        const auto number = static_cast<std::int32_t>(words_.size());
        words_.push_back(word);
        number_.reserve_more(1);
        number_.add(key(hash), number);
        return number;
    }

private:
    using Numbers = HashMap<std::int32_t, 50>;
    static std::uint32_t key(std::uint32_t hash) { return std::min(hash, Numbers::free_key - 1); }

    Numbers number_;  ///< by the words' hashes, which several words may share
    std::vector<std::string_view> words_;
};

/// Columns of a text: its known words, then the buckets of its n-grams.
class NgramReader {
public:
    NgramSettings settings;
    WordTable words;

    std::int64_t n_columns() const {
        return static_cast<std::int64_t>(words.size()) + (settings.has_buckets() ? settings.n_buckets : 0);
    }

    struct Scratch {
        std::vector<std::int64_t> hashes;
        std::vector<std::string_view> tokens;
        std::string bounded;
    };

    /// Calls emit(column, term) for every occurrence; term() is what the column stands for here.
    template <class Emit>
    void read(std::string_view text, Scratch& s, Emit&& emit) const {
        s.hashes.clear();
        s.tokens.clear();
        for_every_word(text, settings.by_whitespace, [&](std::string_view word) {
            const std::uint32_t hash = word_hash(word);
            const std::int32_t number = words.find(word, hash);
            if (number >= 0) emit(static_cast<std::int32_t>(number), [&] { return std::string(word); });
            if (settings.max_chars > 0) read_characters(word, s.bounded, emit);
            if (settings.word_ngrams > 1) {
                s.hashes.push_back(static_cast<std::int32_t>(hash));
                s.tokens.push_back(word);
            }
        });
        if (settings.word_ngrams <= 1) return;
        s.hashes.push_back(static_cast<std::int32_t>(word_hash(end_of_text)));
        s.tokens.push_back(end_of_text);
        const std::size_t longest = static_cast<std::size_t>(settings.word_ngrams);
        for (std::size_t i = 0; i < s.hashes.size(); ++i) {
            auto h = static_cast<std::uint64_t>(s.hashes[i]);
            for (std::size_t j = i + 1; j < s.hashes.size() && j < i + longest; ++j) {
                h = h * 116049371u + static_cast<std::uint64_t>(s.hashes[j]);
                emit(bucket(h), [&] {
                    std::string term(s.tokens[i]);
                    for (std::size_t k = i + 1; k <= j; ++k) term.append(" ").append(s.tokens[k]);
                    return term;
                });
            }
        }
    }

private:
    static constexpr std::string_view end_of_text = "</s>";

    std::int32_t bucket(std::uint64_t hash) const {
        return static_cast<std::int32_t>(
            static_cast<std::int64_t>(words.size()) +
            static_cast<std::int64_t>(hash % static_cast<std::uint64_t>(settings.n_buckets)));
    }

    /// N-grams of the characters of "<word>", characters being UTF-8's; the two bounds alone say nothing.
    template <class Emit>
    void read_characters(std::string_view word, std::string& bounded, Emit&& emit) const {
        bounded.assign(1, '<').append(word).push_back('>');
        auto is_inside = [&](std::size_t at) {
            return at < bounded.size() && (static_cast<unsigned char>(bounded[at]) & 0xc0) == 0x80;
        };
        for (std::size_t i = 0; i < bounded.size(); ++i) {
            if (is_inside(i)) continue;
            std::size_t j = i;
            for (int n = 1; j < bounded.size() && n <= settings.max_chars; ++n) {
                ++j;
                while (is_inside(j)) ++j;
                if (n < settings.min_chars || (n == 1 && (i == 0 || j == bounded.size()))) continue;
                const std::string_view gram = std::string_view(bounded).substr(i, j - i);
                emit(bucket(word_hash(gram)), [&] { return std::string(gram); });
            }
        }
    }
};

}  // namespace ramify
