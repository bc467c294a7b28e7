/// Python bindings of words and n-grams: counting words, and texts as columns.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/string.h>

#include <limits>
#include <memory>
#include <string>

#include "base/parallel.hpp"
#include "bindings/arrays.hpp"
#include "text/word_ngrams.hpp"

namespace nb = nanobind;
using namespace nb::literals;
using namespace ramify;

namespace {

/// Texts one after the other in one string of bytes.
struct Texts {
    std::string_view bytes;
    std::span<const std::int64_t> offsets;

    Texts(const nb::bytes& text, const Longs& ends) : bytes(text.c_str(), text.size()), offsets(view(ends)) {
        if (offsets.empty() || offsets.front() != 0 || offsets.back() != static_cast<std::int64_t>(bytes.size()))
            throw nb::value_error("offsets do not fit the text");
        for (std::size_t i = 1; i < offsets.size(); ++i)
            if (offsets[i] < offsets[i - 1]) throw nb::value_error("offsets must not decrease");
    }
    std::size_t size() const { return offsets.size() - 1; }
    std::string_view operator[](std::size_t i) const {
        return bytes.substr(static_cast<std::size_t>(offsets[i]),
                            static_cast<std::size_t>(offsets[i + 1] - offsets[i]));
    }
};

Tuple<Array<std::uint8_t>, Array<std::int64_t>, Array<std::int64_t>> count_words(const nb::bytes& text,
                                                                                 const Longs& offsets,
                                                                                 bool by_whitespace) {
    const Texts texts(text, offsets);
    std::vector<std::uint8_t> bytes;
    std::vector<std::int64_t> ends{0}, count;
    {
        nb::gil_scoped_release release;
        WordTable table;
        for (std::size_t i = 0; i < texts.size(); ++i)
            for_every_word(texts[i], by_whitespace, [&](std::string_view word) {
                const auto number = static_cast<std::size_t>(table.find_or_add(word, word_hash(word)));
                if (number == count.size()) count.push_back(0);
                ++count[number];
            });
        for (std::size_t w = 0; w < table.size(); ++w) {
            bytes.insert(bytes.end(), table.word(w).begin(), table.word(w).end());
            ends.push_back(static_cast<std::int64_t>(bytes.size()));
        }
    }
    return nb::make_tuple(to_numpy(std::move(bytes)), to_numpy(std::move(ends)), to_numpy(std::move(count)));
}

/// A vocabulary, and texts in terms of it.
class BoundReader {
public:
    BoundReader(const nb::bytes& words, const Longs& offsets, bool by_whitespace, int word_ngrams, int min_chars,
                int max_chars, std::int64_t n_buckets)
        : text_(words.c_str(), words.size()) {
        const Texts given(words, offsets);
        if (word_ngrams < 1 || min_chars < 0 || max_chars < 0 ||
            (max_chars > 0 && (min_chars < 1 || min_chars > max_chars)))
            throw nb::value_error("word_ngrams must be at least 1, and min_chars between 1 and max_chars");
        if (n_buckets < 0 ||
            n_buckets + static_cast<std::int64_t>(given.size()) > std::numeric_limits<std::int32_t>::max())
            throw nb::value_error("there are too many columns");
        reader_.settings = {by_whitespace, word_ngrams, min_chars, max_chars, n_buckets};
        if (reader_.settings.has_buckets() && n_buckets < 1) throw nb::value_error("n-grams need at least one bucket");
        for (std::size_t i = 0; i < given.size(); ++i) {
            const std::string_view word =
                std::string_view(text_).substr(static_cast<std::size_t>(given.offsets[i]), given[i].size());
            if (static_cast<std::size_t>(reader_.words.find_or_add(word, word_hash(word))) != i)
                throw nb::value_error("a word is in the vocabulary twice");
        }
    }
    BoundReader(const BoundReader&) = delete;  // its words point into its text

    CsrArrays transform(const nb::bytes& text, const Longs& offsets, int n_threads) const {
        const Texts texts(text, offsets);
        std::vector<std::int64_t> indptr(texts.size() + 1, 0);
        std::vector<std::int32_t> indices;
        std::vector<float> counts;
        {
            nb::gil_scoped_release release;
            constexpr std::size_t chunk = 512;
            struct Part {
                std::vector<std::int32_t> columns;
                std::vector<float> counts;
            };
            std::vector<Part> parts((texts.size() + chunk - 1) / chunk);
            parallel_for(parts.size(), n_threads, [&](std::size_t task, int) {
                NgramReader::Scratch s;
                std::vector<std::int32_t> found;
                Part& part = parts[task];
                for (std::size_t i = task * chunk; i < std::min(texts.size(), (task + 1) * chunk); ++i) {
                    found.clear();
                    reader_.read(texts[i], s, [&](std::int32_t column, auto&&) { found.push_back(column); });
                    std::ranges::sort(found);
                    const std::size_t before = part.columns.size();
                    for (std::int32_t column : found) {
                        if (part.columns.size() > before && part.columns.back() == column) {
                            part.counts.back() += 1.0f;
                        } else {
                            part.columns.push_back(column);
                            part.counts.push_back(1.0f);
                        }
                    }
                    indptr[i + 1] = static_cast<std::int64_t>(part.columns.size() - before);
                }
            });
            for (std::size_t i = 0; i < texts.size(); ++i) indptr[i + 1] += indptr[i];
            indices.reserve(static_cast<std::size_t>(indptr.back()));
            counts.reserve(indices.capacity());
            for (const Part& part : parts) {
                indices.insert(indices.end(), part.columns.begin(), part.columns.end());
                counts.insert(counts.end(), part.counts.begin(), part.counts.end());
            }
        }
        return nb::make_tuple(to_numpy(std::move(indptr)), to_numpy(std::move(indices)), to_numpy(std::move(counts)));
    }

    List<Tuple<std::int32_t, nb::bytes>> terms(const nb::bytes& text) const {
        NgramReader::Scratch s;
        nb::list answer;
        reader_.read({text.c_str(), text.size()}, s, [&](std::int32_t column, auto&& term) {
            const std::string said = term();
            answer.append(nb::make_tuple(column, nb::bytes(said.data(), said.size())));
        });
        return answer;
    }

    std::int64_t n_columns() const { return reader_.n_columns(); }

private:
    std::string text_;
    NgramReader reader_;
};

}  // namespace

void bind_ngrams(nb::module_& m) {
    m.def("count_words", &count_words, "text"_a, "offsets"_a, "by_whitespace"_a,
          "The distinct words of some texts in order of appearance (bytes, offsets) and their counts.");
    m.def(
        "word_hash", [](const nb::bytes& word) { return word_hash({word.c_str(), word.size()}); }, "word"_a,
        "fastText's hash of a word.");
    nb::class_<BoundReader>(m, "NgramReader", "A vocabulary, and texts as columns: words, then buckets of n-grams.")
        .def(nb::init<const nb::bytes&, const Longs&, bool, int, int, int, std::int64_t>(), "words"_a, "offsets"_a,
             nb::kw_only(), "by_whitespace"_a, "word_ngrams"_a, "min_chars"_a, "max_chars"_a, "n_buckets"_a)
        .def("transform", &BoundReader::transform, "text"_a, "offsets"_a, "n_threads"_a,
             "CSR parts of the texts' counts.")
        .def("terms", &BoundReader::terms, "text"_a,
             "Every occurrence in one text: column, and the bytes of what it stands for.")
        .def_prop_ro("n_columns", &BoundReader::n_columns);
}
