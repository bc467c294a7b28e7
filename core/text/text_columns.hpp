/// The columns of terms: by a vocabulary or by hashing.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <stdexcept>
#include <string_view>
#include <vector>

#include "text/analyzer.hpp"
#include "text/murmur_hash.hpp"
#include "text/term_rows.hpp"

namespace ramify {

/// Columns by a vocabulary, or, if n_buckets is above zero, by hashing.
struct TextColumns {
    TermTable vocabulary;
    std::int64_t n_buckets = 0;
    bool alternate_sign = false;

    std::int64_t size() const { return n_buckets ? n_buckets : static_cast<std::int64_t>(vocabulary.size()); }
    bool has_signs() const { return n_buckets && alternate_sign; }

    /// Calls take(column) for every term: its column, doubled and maybe 1 more if terms have signs; -1: none. If
    /// columns come from hashing, it calls prefetch(column) some time before.
    template <class Prefetch, class Take>
    void find_all(std::span<const Term> terms, bool has_wide_characters, Prefetch&& prefetch, Take&& take) const {
        if (!n_buckets) return vocabulary.find_all(terms, take);
        if (has_wide_characters) check_hashable(terms);
        if (std::has_single_bit(static_cast<std::uint64_t>(n_buckets)))
            hash_all(terms, [mask = n_buckets - 1](std::int64_t size) { return size & mask; }, prefetch, take);
        else
            hash_all(terms, [n = n_buckets](std::int64_t size) { return size % n; }, prefetch, take);
    }

private:
    template <class Bucket, class Prefetch, class Take>
    void hash_all(std::span<const Term> terms, Bucket&& bucket_of, Prefetch&& prefetch, Take&& take) const {
        std::array<std::int64_t, 64> columns;
        for (; !terms.empty(); terms = terms.subspan(std::min(columns.size(), terms.size()))) {
            const std::size_t n = std::min(columns.size(), terms.size());
            for (std::size_t k = 0; k < n; ++k) {
                const std::int32_t hash = murmur_hash(terms[k]);
                const std::int64_t bucket = bucket_of(hash < 0 ? -std::int64_t{hash} : std::int64_t{hash});
                columns[k] = alternate_sign ? bucket * 2 + (hash < 0) : bucket;
                prefetch(static_cast<std::uint32_t>(columns[k]));
            }
            for (std::size_t k = 0; k < n; ++k) take(columns[k]);
        }
    }

    /// UTF-8 has no lone surrogates, and the hash is one of UTF-8.
    static void check_hashable(std::span<const Term> terms) {
        for (Term term : terms) {
            const std::string_view bytes = term.view();
            for (std::size_t k = bytes.find('\xED'); k != bytes.npos; k = bytes.find('\xED', k + 1))
                if (static_cast<unsigned char>(bytes[k + 1]) >= 0xA0)
                    throw std::invalid_argument(
                        "a text has a lone surrogate, which cannot be hashed; drop it: "
                        "text.encode('utf-8', 'ignore').decode()");
        }
    }
};

/// Reads texts into rows, with working space that is used again. The columns of few texts are sorted; those of a batch
/// are counted in an array, if there are not too many.
class TextRows {
public:
    TextRows(const AnalyzerSettings& settings, const TermTable& stop_words, const TextColumns& columns,
             const Weighting& weighting, bool is_batch)
        : analyzer_(settings, stop_words), columns_(columns), weighting_(weighting) {
        if (is_batch && !columns.has_signs() && columns.size() <= max_counted)
            counts_.emplace(static_cast<std::size_t>(columns.size()));
    }

    void append(const TextView& text, const CharacterTable* table, TermRows& rows) {
        if (counts_) {
            read(
                text, table, [&](std::uint32_t column) { counts_->prefetch(column); },
                [&](std::uint32_t column) { counts_->add(column); });
            builder_.finish(rows, weighting_, *counts_);
        } else {
            read(text, table, [](std::uint32_t) {}, [&](std::uint32_t column) { builder_.found.push_back(column); });
            builder_.finish(rows, weighting_, columns_.size(), columns_.has_signs());
        }
    }

private:
    static constexpr std::int64_t max_counted = std::int64_t{1} << 22;

    template <class Prefetch, class Take>
    void read(const TextView& text, const CharacterTable* table, Prefetch&& prefetch, Take&& take) {
        analyzer_.read(text, table, [&](std::span<const Term> terms) {
            columns_.find_all(terms, analyzer_.has_wide_characters(), prefetch, [&](std::int64_t column) {
                if (column >= 0) take(static_cast<std::uint32_t>(column));
            });
        });
    }

    Analyzer analyzer_;
    RowBuilder builder_;
    const TextColumns& columns_;
    const Weighting& weighting_;
    std::optional<ColumnCounts> counts_;
};

}  // namespace ramify
