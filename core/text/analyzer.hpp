/// The terms of a text: words, n-grams of words, or n-grams of characters, as scikit-learn's vectorizers define them.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "text/normalize.hpp"
#include "text/porter_stem.hpp"
#include "text/term_table.hpp"

namespace ramify {

enum class TermKind { words, characters, characters_of_words };

struct AnalyzerSettings {
    TermKind kind = TermKind::words;
    TokenClass token = TokenClass::word;
    int min_length = 1;  ///< of a token, in characters: 1 or 2
    bool lowers = true;
    bool stems = false;  ///< English words become their stems, after stop words are left out
    int min_n = 1, max_n = 1;
};

inline bool is_inside_character(char byte) { return (static_cast<unsigned char>(byte) & 0xC0) == 0x80; }

/// Reads texts one after the other, and hands out every occurrence of a term. The bytes of the terms stay where they
/// are until the next text.
class Analyzer {
public:
    Analyzer(const AnalyzerSettings& settings, const TermTable& stop_words)
        : settings_(settings), stop_words_(stop_words) {}

    void keep_origin() {
        text_.keep_origin(true);
        keeps_origin_ = true;
    }

    /// Calls take(terms) for some terms at a time, a span each.
    template <class Take>
    void read(const TextView& text, const CharacterTable* table, Take&& take) {
        const bool by_words = settings_.kind == TermKind::words;
        text_.read(text, table, settings_.lowers, by_words ? settings_.token : TokenClass::not_space);
        if (by_words && settings_.max_n == 1 && !settings_.stems)
            for_every_token(
                [&](std::size_t begin, std::size_t end) { add({text_.bytes() + begin, end - begin}, take); });
        else if (by_words)
            read_word_ngrams(take);
        else if (settings_.kind == TermKind::characters)
            read_characters(take);
        else
            read_characters_of_words(take);
        take(std::span<const Term>(terms_.data(), std::exchange(n_terms_, 0)));
    }

    /// Whether the text that was read last has characters outside of ASCII in its tokens.
    bool has_wide_characters() const { return text_.has_wide_characters(); }

    /// Where a term of the last text stands: its first character and the one after its last. -1: only padding.
    std::pair<std::int64_t, std::int64_t> origin(Term term) const {
        const bool is_text = term.data >= text_.bytes() && term.data < text_.bytes() + text_.size();
        auto begin = static_cast<std::size_t>(term.data - (is_text ? text_.bytes() : joined_.data()));
        std::size_t end = begin + term.size;
        if (!is_text) {
            while (begin < end && source_[begin] == nowhere) ++begin;
            while (end > begin && source_[end - 1] == nowhere) --end;
            if (begin == end) return {-1, -1};
            begin = source_[begin];
            end = source_[end - 1] + 1;
        }
        return {text_.origin(begin).first, text_.origin(end - 1).second};
    }

private:
    static constexpr std::size_t nowhere = ~std::size_t{0};

    template <class Take>
    void add(Term term, Take& take) {
        terms_[n_terms_++] = term;
        if (n_terms_ == terms_.size()) take(std::span<const Term>(terms_.data(), std::exchange(n_terms_, 0)));
    }

    template <class Use>
    void for_every_token(Use&& use) {
        const char* bytes = text_.bytes();
        const std::span<const std::size_t> edges = text_.edges();
        const bool takes_all = settings_.min_length <= 1 && stop_words_.size() == 0;
        for (std::size_t k = 0; k < edges.size(); k += 2)
            if (takes_all || is_taken(bytes, edges[k], edges[k + 1])) use(edges[k], edges[k + 1]);
    }

    bool is_taken(const char* bytes, std::size_t begin, std::size_t end) const {
        if (settings_.min_length > 1 && is_one_character(bytes, begin, end)) return false;
        return stop_words_.size() == 0 || stop_words_.find({bytes + begin, end - begin}) < 0;
    }

    static bool is_one_character(const char* bytes, std::size_t begin, std::size_t end) {
        if (end - begin == 1) return true;
        if (end - begin > 4) return false;
        return std::all_of(bytes + begin + 1, bytes + end, is_inside_character);
    }

    // --- n-grams come from a buffer of their own, in which each is one piece ------------------------------------

    void clear() {
        joined_.clear();
        source_.clear();
        begins_.clear();
    }

    void copy(std::size_t begin, std::size_t end) {
        joined_.insert(joined_.end(), text_.bytes() + begin, text_.bytes() + end);
        if (keeps_origin_)
            for (std::size_t k = begin; k < end; ++k) source_.push_back(k);
    }

    void add_space(std::size_t from = nowhere) {
        joined_.push_back(' ');
        if (keeps_origin_) source_.push_back(from);
    }

    /// Puts the stem in the place of the last word; its last letter stands for all that was cut off.
    void shorten_last() {
        const std::size_t begin = begins_.back();
        const std::size_t length = PorterStemmer::shorten(std::span(joined_).subspan(begin));
        joined_.resize(begin + length);
        if (!keeps_origin_) return;
        const std::size_t end = source_.back();
        source_.resize(begin + length);
        source_.back() = end;
    }

    void pad() { joined_.resize(joined_.size() + NormalizedText::padding, ' '); }

    template <class Take>
    void add_piece(std::size_t begin, std::size_t end, Take& take) {
        add({joined_.data() + begin, end - begin}, take);
    }

    template <class Take>
    void read_word_ngrams(Take& take) {
        clear();
        for_every_token([&](std::size_t begin, std::size_t end) {
            begins_.push_back(joined_.size());
            copy(begin, end);
            if (settings_.stems) shorten_last();
            add_space();
        });
        const std::size_t n_tokens = begins_.size();
        begins_.push_back(joined_.size());
        pad();
        for (auto n = static_cast<std::size_t>(settings_.min_n);
             n <= std::min(static_cast<std::size_t>(settings_.max_n), n_tokens); ++n)
            for (std::size_t i = 0; i + n <= n_tokens; ++i) add_piece(begins_[i], begins_[i + n] - 1, take);
    }

    /// Where the characters of the buffer from `begin` to `end` start, and the end.
    void find_characters(std::size_t begin, std::size_t end) {
        begins_.clear();
        for (std::size_t k = begin; k < end; ++k)
            if (!is_inside_character(joined_[k])) begins_.push_back(k);
        begins_.push_back(end);
    }

    /// N-grams of all characters; white space of two characters or more is one space.
    template <class Take>
    void read_characters(Take& take) {
        clear();
        const char* bytes = text_.bytes();
        for (std::size_t k = 0; k < text_.size();) {
            std::size_t end = k + 1;
            if (text_.is_marked(k)) {
                while (end < text_.size() && text_.is_marked(end)) ++end;
                copy(k, end);
            } else {
                std::size_t n_spaces = 1;
                for (; end < text_.size() && !text_.is_marked(end); ++end) n_spaces += !is_inside_character(bytes[end]);
                if (n_spaces == 1)
                    copy(k, end);
                else
                    add_space(k);
            }
            k = end;
        }
        find_characters(0, joined_.size());
        const std::size_t n_characters = begins_.size() - 1;
        pad();
        for (auto n = static_cast<std::size_t>(settings_.min_n);
             n <= std::min(static_cast<std::size_t>(settings_.max_n), n_characters); ++n)
            for (std::size_t i = 0; i + n <= n_characters; ++i) add_piece(begins_[i], begins_[i + n], take);
    }

    /// N-grams of the characters of " word "; a word that is shorter than n counts once, for the smallest such n.
    template <class Take>
    void read_characters_of_words(Take& take) {
        clear();
        words_.clear();
        const std::span<const std::size_t> edges = text_.edges();
        for (std::size_t k = 0; k < edges.size(); k += 2) {
            words_.push_back(joined_.size());
            add_space();
            copy(edges[k], edges[k + 1]);
            add_space();
        }
        words_.push_back(joined_.size());
        pad();  // from here on the buffer stays where it is
        for (std::size_t w = 0; w + 1 < words_.size(); ++w) {
            find_characters(words_[w], words_[w + 1]);
            const std::size_t n_characters = begins_.size() - 1;
            for (auto n = static_cast<std::size_t>(settings_.min_n); n <= static_cast<std::size_t>(settings_.max_n);
                 ++n) {
                if (n >= n_characters) {
                    add_piece(begins_[0], begins_[n_characters], take);
                    break;
                }
                for (std::size_t i = 0; i + n <= n_characters; ++i) add_piece(begins_[i], begins_[i + n], take);
            }
        }
    }

    AnalyzerSettings settings_;
    const TermTable& stop_words_;
    NormalizedText text_;
    bool keeps_origin_ = false;
    std::vector<char> joined_;
    std::vector<std::size_t> source_;  ///< the byte of the normalised text that each byte of the buffer comes from
    std::vector<std::size_t> begins_;  ///< of tokens or characters in the buffer
    std::vector<std::size_t> words_;   ///< of padded words in the buffer
    std::array<Term, 512> terms_;      ///< that wait to be handed out
    std::size_t n_terms_ = 0;
};

}  // namespace ramify
