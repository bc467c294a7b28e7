/// The stem of an English word: M. F. Porter, "An algorithm for suffix stripping", Program 14(3), 1980.
#pragma once

#include <algorithm>
#include <cstddef>
#include <span>
#include <string_view>

namespace ramify {

/// Shortens a word in place. A stem is never longer than its word, so the word's own bytes hold it at every step.
class PorterStemmer {
public:
    /// Returns the length of the stem. Words of two letters, those that are not all a to z, and what is too long for a
    /// word stay as they are.
    static std::size_t shorten(std::span<char> word) {
        const auto is_letter = [](char c) { return c >= 'a' && c <= 'z'; };
        if (word.size() <= 2 || word.size() > longest_word || !std::ranges::all_of(word, is_letter)) return word.size();
        PorterStemmer stemmer(word);
        stemmer.strip_inflection();
        stemmer.apply(double_suffixes, 0);
        stemmer.apply(adjective_suffixes, 0);
        stemmer.strip_last_suffix();
        stemmer.tidy();
        return stemmer.size_;
    }

private:
    static constexpr std::size_t longest_word = 64;

    struct Rule {
        std::string_view suffix, replacement;
    };

    // In each step only the longest suffix that fits counts, so longer ones come first.
    static constexpr Rule double_suffixes[] = {
        {"ational", "ate"}, {"ization", "ize"}, {"iveness", "ive"}, {"fulness", "ful"}, {"ousness", "ous"},
        {"tional", "tion"}, {"biliti", "ble"},  {"entli", "ent"},   {"ousli", "ous"},   {"ation", "ate"},
        {"alism", "al"},    {"aliti", "al"},    {"iviti", "ive"},   {"enci", "ence"},   {"anci", "ance"},
        {"izer", "ize"},    {"abli", "able"},   {"alli", "al"},     {"ator", "ate"},    {"eli", "e"}};
    static constexpr Rule adjective_suffixes[] = {{"icate", "ic"}, {"ative", ""}, {"alize", "al"}, {"iciti", "ic"},
                                                  {"ical", "ic"},  {"ness", ""},  {"ful", ""}};
    static constexpr std::string_view last_suffixes[] = {"ement", "ance", "ence", "able", "ible", "ment", "ant",
                                                         "ent",   "ion",  "ism",  "ate",  "iti",  "ous",  "ive",
                                                         "ize",   "al",   "er",   "ic",   "ou"};

    explicit PorterStemmer(std::span<char> word) : letters_(word), size_(word.size()) {}

    bool is_consonant(std::size_t k) const {
        if (letters_[k] == 'y') return k == 0 || !is_consonant(k - 1);
        return std::string_view("aeiou").find(letters_[k]) == std::string_view::npos;
    }

    /// The paper's m: how often a vowel is followed by a consonant in the first `size` letters.
    int measure(std::size_t size) const {
        int n = 0;
        for (std::size_t k = 1; k < size; ++k) n += is_consonant(k) && !is_consonant(k - 1);
        return n;
    }

    bool has_vowel(std::size_t size) const {
        for (std::size_t k = 0; k < size; ++k)
            if (!is_consonant(k)) return true;
        return false;
    }

    bool ends_with_double_consonant() const {
        return size_ >= 2 && letters_[size_ - 1] == letters_[size_ - 2] && is_consonant(size_ - 1);
    }

    /// The paper's *o: consonant, vowel, consonant, and the last is not w, x or y.
    bool ends_like_hop(std::size_t size) const {
        return size >= 3 && is_consonant(size - 3) && !is_consonant(size - 2) && is_consonant(size - 1) &&
               std::string_view("wxy").find(letters_[size - 1]) == std::string_view::npos;
    }

    bool ends_with(std::string_view suffix) const { return std::string_view(letters_.data(), size_).ends_with(suffix); }

    void replace(std::size_t stem, std::string_view by) {
        std::ranges::copy(by, letters_.data() + stem);
        size_ = stem + by.size();
    }

    template <std::size_t n>
    void apply(const Rule (&rules)[n], int above) {
        for (const Rule& rule : rules)
            if (ends_with(rule.suffix)) {
                const std::size_t stem = size_ - rule.suffix.size();
                if (measure(stem) > above) replace(stem, rule.replacement);
                return;
            }
    }

    /// Step 1: plurals, past tenses and -ing, and -y.
    void strip_inflection() {
        if (ends_with("sses") || ends_with("ies"))
            size_ -= 2;
        else if (ends_with("s") && !ends_with("ss"))
            size_ -= 1;
        if (ends_with("eed"))
            size_ -= measure(size_ - 3) > 0;
        else if (ends_with("ed") && has_vowel(size_ - 2))
            strip_to(size_ - 2);
        else if (ends_with("ing") && has_vowel(size_ - 3))
            strip_to(size_ - 3);
        if (ends_with("y") && has_vowel(size_ - 1)) letters_[size_ - 1] = 'i';
    }

    /// Without -ed or -ing a word may need its e back, or has a letter twice.
    void strip_to(std::size_t stem) {
        size_ = stem;
        if (ends_with("at") || ends_with("bl") || ends_with("iz"))
            replace(size_, "e");
        else if (ends_with_double_consonant() && !ends_with("l") && !ends_with("s") && !ends_with("z"))
            size_ -= 1;
        else if (measure(size_) == 1 && ends_like_hop(size_))
            replace(size_, "e");
    }

    /// Step 4.
    void strip_last_suffix() {
        for (const std::string_view suffix : last_suffixes)
            if (ends_with(suffix)) {
                const std::size_t stem = size_ - suffix.size();
                const char last = stem > 0 ? letters_[stem - 1] : ' ';
                const bool fits = suffix != "ion" || last == 's' || last == 't';
                if (fits && measure(stem) > 1) size_ = stem;
                return;
            }
    }

    /// Step 5: a last e, and one of two l.
    void tidy() {
        if (ends_with("e")) {
            const int m = measure(size_ - 1);
            if (m > 1 || (m == 1 && !ends_like_hop(size_ - 1))) size_ -= 1;
        }
        if (ends_with("ll") && measure(size_) > 1) size_ -= 1;
    }

    std::span<char> letters_;
    std::size_t size_;
};

}  // namespace ramify
