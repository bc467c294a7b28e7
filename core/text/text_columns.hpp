/// The columns of terms: by a vocabulary or by hashing.
#pragma once

#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <string_view>
#include <vector>

#include "text/analyzer.hpp"
#include "text/term_rows.hpp"

namespace ramify {

/// Columns by a vocabulary, or, if n_buckets is above zero, by hashing.
struct TextColumns {
    TermTable vocabulary;
    std::int64_t n_buckets = 0;
    bool alternate_sign = false;

    std::int64_t size() const { return n_buckets ? n_buckets : static_cast<std::int64_t>(vocabulary.size()); }
    bool has_signs() const { return n_buckets && alternate_sign; }

    /// The column of a term, doubled and maybe 1 more if terms have signs; -1: none.
    std::int64_t find(Term term) const {
        if (!n_buckets) return vocabulary.find(term);
        check_hashable(term);
        const std::int32_t hash = murmur_hash(term.view());
        const std::int64_t bucket = (hash < 0 ? -std::int64_t{hash} : std::int64_t{hash}) % n_buckets;
        return alternate_sign ? bucket * 2 + (hash < 0) : bucket;
    }

private:
    /// UTF-8 has no lone surrogates, and the hash is one of UTF-8.
    static void check_hashable(Term term) {
        const std::string_view bytes = term.view();
        for (std::size_t k = bytes.find('\xED'); k != bytes.npos; k = bytes.find('\xED', k + 1))
            if (static_cast<unsigned char>(bytes[k + 1]) >= 0xA0)
                throw std::invalid_argument(
                    "a text has a lone surrogate, which cannot be hashed; drop it: "
                    "text.encode('utf-8', 'ignore').decode()");
    }
};

/// Appends the row of one text.
inline void append_row(Analyzer& analyzer, RowBuilder& builder, const TextColumns& columns, const Weighting& weighting,
                       const TextView& text, const CharacterTable* table, TermRows& rows) {
    if (columns.n_buckets) {
        analyzer.read(text, table,
                      [&](Term term) { builder.found.push_back(static_cast<std::uint32_t>(columns.find(term))); });
    } else {
        WaitingTerms waiting;
        const auto find = [&](Term term, std::uint64_t key) {
            const std::int32_t column = columns.vocabulary.find(term, key);
            if (column >= 0) builder.found.push_back(static_cast<std::uint32_t>(column));
        };
        analyzer.read(text, table, [&](Term term) { waiting.push(term, columns.vocabulary, find); });
        waiting.flush(find);
    }
    builder.finish(rows, weighting, columns.size(), columns.has_signs());
}

}  // namespace ramify
