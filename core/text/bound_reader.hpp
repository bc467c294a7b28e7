/// A text vectorizer as Python sees it: how texts become terms, terms columns, and counts weights.
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/shared_ptr.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>
#include <mutex>
#include <optional>
#include <shared_mutex>
#include <stdexcept>
#include <string>
#include <vector>

#include "base/parallel.hpp"
#include "bindings/arrays.hpp"
#include "text/count_terms.hpp"
#include "text/growth.hpp"
#include "text/python_texts.hpp"
#include "text/row_arrays.hpp"
#include "text/text_columns.hpp"

namespace ramify {

using SparseRow = Tuple<Array<std::int32_t>, Array<float>>;
/// Column, first character, the one after the last, and the term.
using Occurrences = List<Tuple<std::int32_t, std::int64_t, std::int64_t, nb::str>>;
using NameArrays = Tuple<Array<std::uint8_t>, Array<std::int64_t>>;

/// Characters that are collected under the GIL before the threads read them: enough for threads, little memory.
inline constexpr std::size_t batch_characters = std::size_t{1} << 25;

struct Counted {
    CountedTerms terms;
};

class BoundReader {
public:
    BoundReader(const std::string& kind, const std::string& token, int min_length, bool lowercase,
                const std::string& strip_accents, int min_n, int max_n, const nb::list& stop_words, bool stems)
        : strip_accents_(strip_accents) {
        if (kind != "word" && kind != "char" && kind != "char_wb")
            throw nb::value_error("kind must be 'word', 'char' or 'char_wb'");
        if (token != "word" && token != "not_space") throw nb::value_error("token must be 'word' or 'not_space'");
        if (strip_accents != "" && strip_accents != "ascii" && strip_accents != "unicode")
            throw nb::value_error("strip_accents must be '', 'ascii' or 'unicode'");
        if (min_length < 1 || min_length > 2) throw nb::value_error("min_length must be 1 or 2");
        if (min_n < 1 || max_n < min_n) throw nb::value_error("min_n must be at least 1, and max_n at least min_n");
        settings_.kind = kind == "word"   ? TermKind::words
                         : kind == "char" ? TermKind::characters
                                          : TermKind::characters_of_words;
        settings_.token = token == "word" ? TokenClass::word : TokenClass::not_space;
        settings_.min_length = min_length;
        settings_.lowers = lowercase;
        settings_.stems = stems;
        settings_.min_n = min_n;
        settings_.max_n = max_n;
        for (nb::handle word : stop_words) find_or_add(stop_words_, to_utf8(word));
    }
    BoundReader(const BoundReader&) = delete;

    // --- columns and weights ----------------------------------------------------------------------------------------

    void set_vocabulary(const Input<std::uint8_t>& bytes, const Longs& offsets) {
        const auto ends = view(offsets);
        const auto text = view(bytes);
        if (ends.empty() || ends.front() != 0 || ends.back() != static_cast<std::int64_t>(text.size()))
            throw nb::value_error("offsets do not fit the terms");
        TermTable vocabulary;
        {
            const nb::gil_scoped_release release;
            std::string padded(reinterpret_cast<const char*>(text.data()), text.size());
            padded.resize(text.size() + 16);
            vocabulary.reserve(ends.size() - 1, text.size());
            for (std::size_t k = 0; k + 1 < ends.size(); ++k) {
                if (ends[k + 1] < ends[k] || ends[k + 1] > ends.back())
                    throw std::invalid_argument("offsets must not decrease");
                const Term term{padded.data() + ends[k], static_cast<std::size_t>(ends[k + 1] - ends[k])};
                if (static_cast<std::size_t>(vocabulary.find_or_add(term)) != k)
                    throw std::invalid_argument("duplicate terms in the vocabulary");
            }
        }
        replace([&] { columns_.vocabulary = std::move(vocabulary); });
    }

    void set_hashing(std::int64_t n_buckets, bool alternate_sign) {
        if (n_buckets < 1 || n_buckets > std::numeric_limits<std::int32_t>::max())
            throw nb::value_error("n_buckets must be at least 1 and below 2**31");
        replace([&] {
            columns_.n_buckets = n_buckets;
            columns_.alternate_sign = alternate_sign;
        });
    }

    void set_weights(bool binary, bool sublinear, const std::string& norm, const std::optional<Doubles>& idf) {
        if (norm != "" && norm != "l1" && norm != "l2") throw nb::value_error("norm must be '', 'l1' or 'l2'");
        Weighting weighting;
        weighting.binary = binary;
        weighting.sublinear = sublinear;
        weighting.norm = norm == "" ? Norm::none : norm == "l1" ? Norm::l1 : Norm::l2;
        if (idf) {
            if (static_cast<std::int64_t>(idf->size()) != columns_.size())
                throw nb::value_error("idf needs one value for each term");
            for (double value : view(*idf))  // NaN is refused too; larger ones would overflow in the rows
                if (!(std::abs(value) <= 1e30)) throw nb::value_error("idf values must be finite");
            weighting.idf.assign(view(*idf).begin(), view(*idf).end());
        }
        replace([&] { weighting_ = std::move(weighting); });
    }

    std::int64_t n_columns() const {
        nb::gil_scoped_release release;
        std::shared_lock lock(mutex_);
        return columns_.size();
    }

    List<nb::str> terms() const {
        std::vector<std::string> terms;
        {
            nb::gil_scoped_release release;
            std::shared_lock lock(mutex_);
            for (std::size_t k = 0; k < columns_.vocabulary.size(); ++k)
                terms.emplace_back(columns_.vocabulary.term(k).view());
        }
        nb::list answer;
        for (const std::string& term : terms) answer.append(to_str({term.data(), term.size()}));
        return answer;
    }

    NameArrays term_arrays() const {
        std::vector<std::uint8_t> bytes;
        std::vector<std::int64_t> offsets{0};
        {
            nb::gil_scoped_release release;
            std::shared_lock lock(mutex_);
            for (std::size_t k = 0; k < columns_.vocabulary.size(); ++k) {
                const std::string_view term = columns_.vocabulary.term(k).view();
                bytes.insert(bytes.end(), term.begin(), term.end());
                offsets.push_back(std::ssize(bytes));
            }
        }
        return nb::make_tuple(to_numpy(std::move(bytes)), to_numpy(std::move(offsets)));
    }

    nb::str term(std::int64_t column) const {
        std::string bytes;
        {
            nb::gil_scoped_release release;
            std::shared_lock lock(mutex_);
            if (column < 0 || column >= static_cast<std::int64_t>(columns_.vocabulary.size()))
                throw std::out_of_range("there is no term of this column");
            bytes = columns_.vocabulary.term(static_cast<std::size_t>(column)).view();
        }
        return nb::borrow<nb::str>(to_str({bytes.data(), bytes.size()}));
    }

    // --- training texts ---------------------------------------------------------------------------------------------

    /// A corpus that `count` adds texts to, until `finish`.
    std::unique_ptr<Counted> new_corpus(int n_threads) const {
        return std::make_unique<Counted>(Counted{{settings_, stop_words_, n_threads}});
    }

    void count(Counted& counted, const nb::list& texts) const {
        if (counted.terms.is_finished()) throw nb::value_error("the terms are sorted already: count all texts first");
        for_every_batch(texts, [&](std::span<const TextView> views, const CharacterTable* table) {
            counted.terms.add(views, table);
        });
    }

    /// Takes the terms of these ranks as vocabulary, in this order.
    void adopt(const Counted& counted, const Longs& ranks) {
        TermTable vocabulary;
        if (is_all_in_order(view(ranks), counted.terms.n_terms())) {
            {
                const nb::gil_scoped_release release;
                vocabulary = counted.terms.vocabulary();
            }
            return replace([&] { columns_.vocabulary = std::move(vocabulary); });
        }
        vocabulary.reserve(ranks.size(), counted.terms.n_bytes());
        for (std::int64_t rank : view(ranks)) {
            if (rank < 0 || rank >= static_cast<std::int64_t>(counted.terms.n_terms()))
                throw nb::value_error("there is no term of this rank");
            vocabulary.find_or_add(counted.terms.term(static_cast<std::size_t>(rank)));
        }
        if (vocabulary.size() != ranks.size()) throw nb::value_error("a rank is given twice");
        replace([&] { columns_.vocabulary = std::move(vocabulary); });
    }

    /// The rows of the counted texts; `ranks` as `adopt` took them.
    CsrArrays counted_rows(const Counted& counted, const Longs& ranks) const {
        if (!counted.terms.is_finished()) throw nb::value_error("finish the counting first");
        std::vector<std::int32_t> column_of(counted.terms.n_terms(), -1);
        std::int32_t column = 0;
        for (std::int64_t rank : view(ranks)) {
            if (rank < 0 || rank >= static_cast<std::int64_t>(column_of.size()) || column >= columns_.size())
                throw nb::value_error("there is no term of this rank");
            column_of[static_cast<std::size_t>(rank)] = column++;
        }
        RowArrays arrays;
        {
            nb::gil_scoped_release release;
            std::shared_lock lock(mutex_);
            arrays.add(counted.terms.rows(column_of, weighting_, static_cast<std::size_t>(columns_.size())));
            arrays.join(counted.terms.n_threads());
        }
        return std::move(arrays).to_tuple();
    }

    // --- a vocabulary that grows ------------------------------------------------------------------------------------

    /// From now on `grow` may be called: after this many texts, of which so many had each term. A term's idf is
    /// log((n_texts + smoothing) / (n_texts_with + smoothing)) + 1 until `settles_at` texts had it, then fixed.
    void set_growth(std::int64_t n_texts, const Longs& n_texts_with, bool uses_idf, double smoothing,
                    std::int64_t settles_at) {
        if (columns_.n_buckets) throw nb::value_error("hashed columns do not grow");
        if (n_texts < 0 || n_texts > std::int64_t{1} << 62)  // learning goes on counting from it
            throw nb::value_error("n_texts must be between 0 and 2**62");
        if (n_texts_with.size() != columns_.vocabulary.size())
            throw nb::value_error("n_texts_with needs one count for each term");
        if (uses_idf && weighting_.idf.size() != columns_.vocabulary.size())
            throw nb::value_error("idf needs one value for each term");
        for (std::int64_t count : view(n_texts_with))
            if (count < 0 || count > n_texts) throw nb::value_error("n_texts_with must be between 0 and n_texts");
        replace([&] {
            growth_ = {
                n_texts, {view(n_texts_with).begin(), view(n_texts_with).end()}, uses_idf, smoothing, settles_at};
        });
    }

    /// Rows of texts one after the other; new terms get the next columns. An error changes nothing, and if
    /// `keeps_undo`, `undo_growth` takes it back.
    CsrArrays grow(const nb::list& texts, bool keeps_undo) {
        RowArrays arrays;
        Analyzer analyzer(settings_, stop_words_);
        RowBuilder builder;
        replace([&] { undo_ = {columns_.vocabulary.size(), growth_.n_texts, {}}; });
        try {
            for_every_batch(texts, [&](std::span<const TextView> views, const CharacterTable* table) {
                std::unique_lock lock(mutex_);
                TermRows rows;
                for (const TextView& text : views) append_growing_row(analyzer, builder, text, table, rows, keeps_undo);
                arrays.add(std::move(rows));
            });
        } catch (...) {
            if (keeps_undo) undo_growth();
            throw;
        }
        arrays.join(1);
        return std::move(arrays).to_tuple();
    }

    void undo_growth() {
        replace([&] {
            for (auto change = undo_.changes.rbegin(); change != undo_.changes.rend(); ++change) {
                --growth_.n_texts_with[change->column];
                if (growth_.uses_idf) weighting_.idf[change->column] = change->idf;
            }
            columns_.vocabulary.shrink(undo_.n_terms);
            growth_.n_texts_with.resize(undo_.n_terms);
            if (growth_.uses_idf) weighting_.idf.resize(undo_.n_terms);
            growth_.n_texts = undo_.n_texts;
            undo_ = {undo_.n_terms, undo_.n_texts, {}};
        });
    }

    /// Texts so far, how many had each term, and the terms' idf.
    Tuple<std::int64_t, Array<std::int64_t>, Array<double>> growth() const {
        VocabularyGrowth now;
        std::vector<double> idf;
        {
            nb::gil_scoped_release release;
            std::shared_lock lock(mutex_);
            now = growth_;
            idf = weighting_.idf;
        }
        return nb::make_tuple(now.n_texts, to_numpy(std::move(now.n_texts_with)), to_numpy(std::move(idf)));
    }

    // --- texts as rows ----------------------------------------------------------------------------------------------

    CsrArrays transform(const nb::list& texts, int n_threads) const {
        RowArrays arrays;
        for_every_batch(texts, [&](std::span<const TextView> views, const CharacterTable* table) {
            constexpr std::size_t piece_size = 128;
            std::vector<TermRows> parts((views.size() + piece_size - 1) / piece_size);
            std::vector<std::unique_ptr<TextRows>> readers(
                static_cast<std::size_t>(usable_threads(n_threads, parts.size())));
            const bool is_batch = views.size() >= piece_size;
            std::shared_lock lock(mutex_);
            parallel_for(parts.size(), n_threads, [&](std::size_t task, int worker) {
                auto& own = readers[static_cast<std::size_t>(worker)];
                if (!own) own = std::make_unique<TextRows>(settings_, stop_words_, columns_, weighting_, is_batch);
                for (std::size_t i = task * piece_size; i < std::min(views.size(), (task + 1) * piece_size); ++i)
                    own->append(views[i], table, parts[task]);
            });
            arrays.add(std::move(parts));
        });
        {
            nb::gil_scoped_release release;
            arrays.join(n_threads);
        }
        return std::move(arrays).to_tuple();
    }

    SparseRow row(const nb::str& text) const {
        PythonTexts texts;
        texts.add(text, 0);
        const auto table = table_for(texts);
        TermRows rows;
        {
            nb::gil_scoped_release release;
            std::shared_lock lock(mutex_);
            TextRows(settings_, stop_words_, columns_, weighting_, false).append(texts.views()[0], table.get(), rows);
        }
        return nb::make_tuple(to_numpy(std::move(rows.columns)), to_numpy(std::move(rows.values)));
    }

    Occurrences occurrences(const nb::str& text) const {
        struct Occurrence {
            std::int32_t column;
            std::int64_t begin, end;
            std::string term;
        };
        PythonTexts texts;
        texts.add(text, 0);
        const auto table = table_for(texts);
        std::vector<Occurrence> found;
        {
            nb::gil_scoped_release release;
            std::shared_lock lock(mutex_);
            Analyzer analyzer(settings_, stop_words_);
            analyzer.keep_origin();
            analyzer.read(texts.views()[0], table.get(), [&](std::span<const Term> terms) {
                const Term* term = terms.data();
                columns_.find_all(
                    terms, analyzer.has_wide_characters(), [](std::uint32_t) {},
                    [&](std::int64_t column) {
                        const auto [begin, end] = analyzer.origin(*term);
                        if (column >= 0)
                            found.push_back({static_cast<std::int32_t>(column >> columns_.has_signs()), begin, end,
                                             std::string(term->view())});
                        ++term;
                    });
            });
        }
        nb::list answer;
        for (const Occurrence& o : found)
            answer.append(nb::make_tuple(o.column, o.begin, o.end, to_str({o.term.data(), o.term.size()})));
        return answer;
    }

private:
    static bool is_all_in_order(std::span<const std::int64_t> ranks, std::size_t n_terms) {
        if (ranks.size() != n_terms) return false;
        for (std::size_t k = 0; k < n_terms; ++k)
            if (ranks[k] != static_cast<std::int64_t>(k)) return false;
        return true;
    }

    void append_growing_row(Analyzer& analyzer, RowBuilder& builder, const TextView& text, const CharacterTable* table,
                            TermRows& rows, bool keeps_undo) {
        analyzer.read(text, table, [&](std::span<const Term> terms) {
            columns_.vocabulary.find_or_add_all(
                terms, [&](std::int32_t column) { builder.found.push_back(static_cast<std::uint32_t>(column)); });
        });
        ++growth_.n_texts;
        growth_.n_texts_with.resize(columns_.vocabulary.size(), 0);
        if (growth_.uses_idf) weighting_.idf.resize(columns_.vocabulary.size(), 0.0);
        builder.for_every_column(columns_.size(), [&](std::size_t column) {
            if (keeps_undo) undo_.changes.push_back({column, growth_.uses_idf ? weighting_.idf[column] : 0.0});
            growth_.count(column, weighting_.idf);
        });
        builder.finish(rows, weighting_, columns_.size(), false);
    }

    /// Python's tables of characters, if some text needs them.
    std::shared_ptr<CharacterTable> table_for(const PythonTexts& texts) const {
        if (texts.is_ascii()) return nullptr;
        if (!table_) {
            nb::object load = nb::module_::import_("ramify.text.characters").attr("character_table");
            table_ = nb::cast<std::shared_ptr<CharacterTable>>(load(settings_.lowers, strip_accents_));
        }
        return table_;
    }

    /// Calls work(texts, table) without the GIL, for as many texts at once as fit into a batch.
    template <class Work>
    void for_every_batch(const nb::list& texts, Work&& work) const {
        for (std::size_t i = 0; i < texts.size();) {
            PythonTexts batch;
            for (; i < texts.size() && batch.n_characters() < batch_characters; ++i) {
                prefetch_item(texts, i + items_ahead);
                batch.add(texts[i], i);
            }
            const auto table = table_for(batch);
            nb::gil_scoped_release release;
            work(batch.views(), table.get());
        }
    }

    /// Changes what readers use. Never wait for the lock while holding the GIL.
    template <class Change>
    void replace(Change&& change) {
        nb::gil_scoped_release release;
        std::unique_lock lock(mutex_);
        change();
    }

    AnalyzerSettings settings_;
    TermTable stop_words_;
    std::string strip_accents_;
    TextColumns columns_;
    Weighting weighting_;
    VocabularyGrowth growth_;
    GrowthUndo undo_;
    mutable std::shared_mutex mutex_;                ///< of columns and weights, which may grow
    mutable std::shared_ptr<CharacterTable> table_;  ///< guarded by the GIL
};

}  // namespace ramify
