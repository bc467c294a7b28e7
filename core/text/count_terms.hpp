/// The first pass over training texts: all their terms, how many texts have each, and the terms of every text.
/// Every thread has a vocabulary of its own; they are joined at the end, sorted by term, so that the result does not
/// depend on the number of threads.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "base/parallel.hpp"
#include "text/analyzer.hpp"
#include "text/term_rows.hpp"

namespace ramify {

class CountedTerms {
public:
    CountedTerms(const AnalyzerSettings& settings, const TermTable& stop_words, int n_threads)
        : n_threads_(usable_threads(n_threads)) {
        for (int k = 0; k < n_threads_; ++k) workers_.emplace_back(settings, stop_words);
    }

    /// Counts more texts.
    void add(std::span<const TextView> texts, const CharacterTable* table) {
        const std::size_t before = pieces_.size();
        const std::size_t n_pieces = (texts.size() + piece_size - 1) / piece_size;
        pieces_.resize(before + n_pieces);
        parallel_for(n_pieces, n_threads_, [&](std::size_t task, int worker_number) {
            Worker& worker = workers_[static_cast<std::size_t>(worker_number)];
            Piece& piece = pieces_[before + task];
            piece.worker = worker_number;
            const std::size_t end = std::min(texts.size(), (task + 1) * piece_size);
            for (std::size_t i = task * piece_size; i < end; ++i)
                worker.count(texts[i], table, static_cast<std::int32_t>(n_rows_ + i), piece.lengths);
            piece.found.assign(worker.found.begin(), worker.found.end());
            worker.found.clear();
        });
        n_rows_ += texts.size();
    }

    /// Once all texts are counted: joins and sorts the vocabularies.
    void finish() {
        if (is_finished_) return;
        is_finished_ = true;
        std::vector<std::vector<std::int32_t>> in_first(
            workers_.size());  // the number in the first worker's vocabulary
        Worker& first = workers_[0];
        for (std::size_t w = 1; w < workers_.size(); ++w) {
            const Worker& other = workers_[w];
            in_first[w].reserve(other.terms.size());
            std::array<Term, 512> terms;
            for (std::size_t k = 0; k < other.terms.size();) {
                std::size_t n = 0;
                for (; n < terms.size() && k + n < other.terms.size(); ++n) terms[n] = other.terms.term(k + n);
                first.terms.find_or_add_all(std::span<const Term>(terms.data(), n), [&](std::int32_t number) {
                    if (static_cast<std::size_t>(number) == first.counts.size()) first.counts.emplace_back();
                    first.counts[static_cast<std::size_t>(number)].rows += other.counts[k++].rows;
                    in_first[w].push_back(number);
                });
            }
        }
        order_ = first.terms.sorted(n_threads_);
        std::vector<std::int32_t> rank(order_.size());
        for (std::size_t k = 0; k < order_.size(); ++k)
            rank[static_cast<std::size_t>(order_[k])] = static_cast<std::int32_t>(k);
        for (std::size_t w = 1; w < workers_.size(); ++w) {
            for (std::int32_t& number : in_first[w]) number = rank[static_cast<std::size_t>(number)];
            workers_[w].rank = std::move(in_first[w]);
        }
        first.rank = std::move(rank);
    }

    bool is_finished() const { return is_finished_; }
    int n_threads() const { return n_threads_; }
    std::size_t n_rows() const { return n_rows_; }
    std::size_t n_terms() const { return order_.size(); }
    std::size_t n_bytes() const { return workers_[0].terms.n_bytes(); }  ///< of all terms

    /// By rank, the place of the term in the sorted vocabulary.
    Term term(std::size_t rank) const { return workers_[0].terms.term(static_cast<std::size_t>(order_[rank])); }

    /// All terms, numbered by rank.
    TermTable vocabulary() const { return workers_[0].terms.renumbered(order_, n_threads_); }

    /// How many texts have each term, by rank.
    std::vector<std::int64_t> n_rows_with() const {
        std::vector<std::int64_t> counts(n_terms());
        for (std::size_t rank = 0; rank < counts.size(); ++rank)
            counts[rank] = workers_[0].counts[static_cast<std::size_t>(order_[rank])].rows;
        return counts;
    }

    /// How often each term occurs, by rank.
    std::vector<std::int64_t> n_occurrences() const {
        std::vector<std::int64_t> counts(n_terms(), 0);
        for (const Piece& piece : pieces_) {
            const std::vector<std::int32_t>& rank = workers_[static_cast<std::size_t>(piece.worker)].rank;
            for (const Found& found : piece.found) counts[static_cast<std::size_t>(rank[found.term])] += found.count;
        }
        return counts;
    }

    /// The rows of all texts, in pieces; column_of[rank] is a term's column, or -1 for none.
    std::vector<TermRows> rows(std::span<const std::int32_t> column_of, const Weighting& weighting,
                               std::size_t n_columns) const {
        std::vector<std::vector<std::int32_t>> columns(workers_.size());
        for (std::size_t w = 0; w < workers_.size(); ++w) {
            columns[w].reserve(workers_[w].rank.size());
            for (std::int32_t rank : workers_[w].rank) columns[w].push_back(column_of[static_cast<std::size_t>(rank)]);
        }
        struct Scratch {
            ColumnCounts counts;
            RowBuilder builder;
        };
        std::vector<TermRows> parts(pieces_.size());
        const int n_threads = usable_threads(n_threads_, parts.size());
        std::vector<Scratch> scratch(static_cast<std::size_t>(n_threads), Scratch{ColumnCounts(n_columns), {}});
        parallel_for(pieces_.size(), n_threads, [&](std::size_t task, int worker) {
            const Piece& piece = pieces_[task];
            const std::vector<std::int32_t>& column_of_term = columns[static_cast<std::size_t>(piece.worker)];
            Scratch& own = scratch[static_cast<std::size_t>(worker)];
            TermRows& rows = parts[task];
            rows.reserve(piece.lengths.size(), piece.found.size());
            const Found* found = piece.found.data();
            for (std::uint32_t length : piece.lengths) {
                for (const Found* end = found + length; found < end; ++found) {
                    const std::int32_t column = column_of_term[found->term];
                    if (column >= 0) own.counts.add(static_cast<std::uint32_t>(column), found->count);
                }
                own.builder.finish(rows, weighting, own.counts);
            }
        });
        return parts;
    }

private:
    static constexpr std::size_t piece_size = 128;

    /// A term of a text, by its worker's number, and how often it occurs there.
    struct Found {
        std::uint32_t term;
        std::uint32_t count;
    };

    struct Count {
        std::int32_t last_row = -1;
        std::uint32_t place = 0;  ///< among what was found, for the last row
        std::int32_t rows = 0;
    };

    struct Worker {
        Analyzer analyzer;
        TermTable terms;
        std::vector<Count> counts;
        std::vector<Found> found;        ///< in the present piece
        std::vector<std::int32_t> rank;  ///< of each term, in the end

        Worker(const AnalyzerSettings& settings, const TermTable& stop_words) : analyzer(settings, stop_words) {}

        void count(const TextView& text, const CharacterTable* table, std::int32_t row,
                   std::vector<std::uint32_t>& lengths) {
            const std::size_t begin = found.size();
            analyzer.read(text, table, [&](std::span<const Term> some) {
                terms.find_or_add_all(some, [&](std::int32_t number) {
                    if (static_cast<std::size_t>(number) == counts.size()) counts.emplace_back();
                    Count& count = counts[static_cast<std::size_t>(number)];
                    if (count.last_row != row) {
                        count = {row, static_cast<std::uint32_t>(found.size()), count.rows + 1};
                        found.push_back({static_cast<std::uint32_t>(number), 0});
                    }
                    ++found[count.place].count;
                });
            });
            lengths.push_back(static_cast<std::uint32_t>(found.size() - begin));
        }
    };

    /// The terms of consecutive texts, each once a text.
    struct Piece {
        int worker = 0;
        std::vector<Found> found;
        std::vector<std::uint32_t> lengths;
    };

    int n_threads_;
    std::size_t n_rows_ = 0;
    std::vector<Worker> workers_;
    std::vector<Piece> pieces_;
    std::vector<std::int32_t> order_;
    bool is_finished_ = false;
};

}  // namespace ramify
