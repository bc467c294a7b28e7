/// The terms of a text: words, n-grams of words, or n-grams of characters, as scikit-learn's vectorizers define them.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "text/normalize.hpp"
#include "text/term_table.hpp"

namespace ramify {

enum class TermKind { words, characters, characters_of_words };

struct AnalyzerSettings {
    TermKind kind = TermKind::words;
    TokenClass token = TokenClass::word;
    int min_length = 1;  ///< of a token, in characters: 1 or 2
    bool lowers = true;
    int min_n = 1, max_n = 1;
};

inline bool is_inside_character(char byte) { return (static_cast<unsigned char>(byte) & 0xC0) == 0x80; }

/// Reads texts one after the other, and calls emit(term) for every occurrence of a term. The bytes of the terms stay
/// where they are until the next text.
class Analyzer {
public:
    Analyzer(const AnalyzerSettings& settings, const TermTable& stop_words)
        : settings_(settings), stop_words_(stop_words) {}

    void keep_origin() {
        text_.keep_origin(true);
        keeps_origin_ = true;
    }

    template <class Emit>
    void read(const TextView& text, const CharacterTable* table, Emit&& emit) {
        const bool by_words = settings_.kind == TermKind::words;
        text_.read(text, table, settings_.lowers, by_words ? settings_.token : TokenClass::not_space);
        if (by_words && settings_.max_n == 1)
            for_every_token([&](std::size_t begin, std::size_t end) {
                place_ = {begin, end, true};
                emit(Term{text_.bytes() + begin, end - begin});
            });
        else if (by_words)
            read_word_ngrams(emit);
        else if (settings_.kind == TermKind::characters)
            read_characters(emit);
        else
            read_characters_of_words(emit);
    }

    /// Where the term that was emitted last stands: its first character and the one after its last. -1: only padding.
    std::pair<std::int64_t, std::int64_t> origin() const {
        std::size_t begin = place_.begin, end = place_.end;
        if (!place_.is_text) {
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

    struct Place {
        std::size_t begin, end;  ///< in the normalised text, or in the buffer of n-grams
        bool is_text;
    };

    template <class Take>
    void for_every_token(Take&& take) {
        const char* bytes = text_.bytes();
        text_.for_every_run([&](std::size_t begin, std::size_t end) {
            if (settings_.min_length > 1 && is_one_character(bytes, begin, end)) return;
            if (stop_words_.size() && stop_words_.find({bytes + begin, end - begin}) >= 0) return;
            take(begin, end);
        });
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

    void pad() { joined_.resize(joined_.size() + NormalizedText::padding, ' '); }

    template <class Emit>
    void emit_piece(std::size_t begin, std::size_t end, Emit&& emit) {
        place_ = {begin, end, false};
        emit(Term{joined_.data() + begin, end - begin});
    }

    template <class Emit>
    void read_word_ngrams(Emit&& emit) {
        clear();
        for_every_token([&](std::size_t begin, std::size_t end) {
            begins_.push_back(joined_.size());
            copy(begin, end);
            add_space();
        });
        const std::size_t n_tokens = begins_.size();
        begins_.push_back(joined_.size());
        pad();
        for (auto n = static_cast<std::size_t>(settings_.min_n);
             n <= std::min(static_cast<std::size_t>(settings_.max_n), n_tokens); ++n)
            for (std::size_t i = 0; i + n <= n_tokens; ++i) emit_piece(begins_[i], begins_[i + n] - 1, emit);
    }

    /// Where the characters of the buffer from `begin` to `end` start, and the end.
    void find_characters(std::size_t begin, std::size_t end) {
        begins_.clear();
        for (std::size_t k = begin; k < end; ++k)
            if (!is_inside_character(joined_[k])) begins_.push_back(k);
        begins_.push_back(end);
    }

    /// N-grams of all characters; white space of two characters or more is one space.
    template <class Emit>
    void read_characters(Emit&& emit) {
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
            for (std::size_t i = 0; i + n <= n_characters; ++i) emit_piece(begins_[i], begins_[i + n], emit);
    }

    /// N-grams of the characters of " word "; a word that is shorter than n counts once, for the smallest such n.
    template <class Emit>
    void read_characters_of_words(Emit&& emit) {
        clear();
        words_.clear();
        text_.for_every_run([&](std::size_t begin, std::size_t end) {
            words_.push_back(joined_.size());
            add_space();
            copy(begin, end);
            add_space();
        });
        words_.push_back(joined_.size());
        pad();  // from here on the buffer stays where it is
        for (std::size_t w = 0; w + 1 < words_.size(); ++w) {
            find_characters(words_[w], words_[w + 1]);
            const std::size_t n_characters = begins_.size() - 1;
            for (auto n = static_cast<std::size_t>(settings_.min_n); n <= static_cast<std::size_t>(settings_.max_n);
                 ++n) {
                if (n >= n_characters) {
                    emit_piece(begins_[0], begins_[n_characters], emit);
                    break;
                }
                for (std::size_t i = 0; i + n <= n_characters; ++i) emit_piece(begins_[i], begins_[i + n], emit);
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
    Place place_{};
};

}  // namespace ramify
