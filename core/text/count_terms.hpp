/// The first pass over training texts: all their terms, how many texts have each, and the terms of every text in order.
/// Every thread has a vocabulary of its own; they are joined at the end, sorted by term, so that the result does not
/// depend on the number of threads.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <list>
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
            for (std::size_t i = task * piece_size; i < end; ++i) {
                const std::size_t begin = piece.terms.size();
                const auto row = static_cast<std::int32_t>(n_rows_ + i);
                const auto count_term = [&](Term term, std::uint64_t key) {
                    const std::int32_t number = worker.terms.find_or_add(term, key);
                    if (static_cast<std::size_t>(number) == worker.counts.size()) worker.counts.emplace_back();
                    Count& count = worker.counts[static_cast<std::size_t>(number)];
                    ++count.occurrences;
                    if (count.last_row != row) {
                        count.last_row = row;
                        ++count.rows;
                    }
                    piece.terms.push_back(static_cast<std::uint32_t>(number));
                };
                worker.analyzer.read(texts[i], table,
                                     [&](Term term) { worker.waiting.push(term, worker.terms, count_term); });
                worker.waiting.flush(count_term);
                piece.lengths.push_back(static_cast<std::uint32_t>(piece.terms.size() - begin));
            }
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
            for (std::size_t k = 0; k < other.terms.size(); ++k) {
                const std::int32_t number = first.terms.find_or_add(other.terms.term(k));
                if (static_cast<std::size_t>(number) == first.counts.size()) first.counts.emplace_back();
                first.counts[static_cast<std::size_t>(number)].rows += other.counts[k].rows;
                first.counts[static_cast<std::size_t>(number)].occurrences += other.counts[k].occurrences;
                in_first[w].push_back(number);
            }
        }
        order_ = first.terms.sorted();
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
    std::size_t n_rows() const { return n_rows_; }
    std::size_t n_terms() const { return order_.size(); }

    /// By rank, the place of the term in the sorted vocabulary.
    Term term(std::size_t rank) const { return workers_[0].terms.term(static_cast<std::size_t>(order_[rank])); }
    std::int64_t n_rows_with(std::size_t rank) const { return count(rank).rows; }
    std::int64_t n_occurrences(std::size_t rank) const { return count(rank).occurrences; }

    /// The rows of all texts; column_of[rank] is a term's column, or -1 for none. `take(rows)` gets them piece by
    /// piece.
    void rows(std::span<const std::int32_t> column_of, const Weighting& weighting, std::int64_t n_columns,
              const std::function<void(const TermRows&)>& take) const {
        std::vector<std::vector<std::int32_t>> columns(workers_.size());
        for (std::size_t w = 0; w < workers_.size(); ++w)
            for (std::int32_t rank : workers_[w].rank) columns[w].push_back(column_of[static_cast<std::size_t>(rank)]);
        std::vector<TermRows> parts(pieces_.size());
        std::vector<RowBuilder> builders(static_cast<std::size_t>(n_threads_));
        parallel_for(pieces_.size(), n_threads_, [&](std::size_t task, int worker) {
            const Piece& piece = pieces_[task];
            const std::vector<std::int32_t>& column_of_number = columns[static_cast<std::size_t>(piece.worker)];
            RowBuilder& builder = builders[static_cast<std::size_t>(worker)];
            const std::uint32_t* term = piece.terms.data();
            for (std::uint32_t length : piece.lengths) {
                for (const std::uint32_t* end = term + length; term < end; ++term) {
                    const std::int32_t column = column_of_number[*term];
                    if (column >= 0) builder.found.push_back(static_cast<std::uint32_t>(column));
                }
                builder.finish(parts[task], weighting, n_columns, false);
            }
        });
        for (TermRows& part : parts) {
            take(part);
            part = TermRows();  // otherwise the peak is twice the result
        }
    }

private:
    static constexpr std::size_t piece_size = 128;

    struct Count {
        std::int32_t last_row = -1;
        std::int32_t rows = 0;
        std::int64_t occurrences = 0;
    };

    struct Worker {
        Analyzer analyzer;
        TermTable terms;
        WaitingTerms waiting;
        std::vector<Count> counts;
        std::vector<std::int32_t> rank;  ///< of each term, in the end

        Worker(const AnalyzerSettings& settings, const TermTable& stop_words) : analyzer(settings, stop_words) {}
    };

    /// The terms of consecutive texts, numbered by the worker that read them.
    struct Piece {
        int worker = 0;
        std::vector<std::uint32_t> terms;
        std::vector<std::uint32_t> lengths;
    };

    const Count& count(std::size_t rank) const { return workers_[0].counts[static_cast<std::size_t>(order_[rank])]; }

    int n_threads_;
    std::size_t n_rows_ = 0;
    std::vector<Worker> workers_;
    std::vector<Piece> pieces_;
    std::vector<std::int32_t> order_;
    bool is_finished_ = false;
};

}  // namespace ramify
