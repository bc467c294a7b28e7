/// Python bindings of the text vectorizers: a reader of texts with its vocabulary or hash, and the terms of a corpus.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/unique_ptr.h>

#include "text/bound_reader.hpp"

namespace nb = nanobind;
using namespace nb::literals;
using namespace ramify;

namespace {

std::vector<std::uint32_t> characters_of(const Ints& codes) {
    for (std::int32_t c : view(codes))
        if (c < 0 || c >= static_cast<std::int32_t>(n_characters)) throw nb::value_error("not a character");
    return {view(codes).begin(), view(codes).end()};
}

std::shared_ptr<CharacterTable> make_table(const Ints& word, const Ints& space, const Ints& changed, const Ints& begin,
                                           const Ints& becomes, const Ints& cased, const Ints& ignorable,
                                           const Ints& final_sigma, const Ints& inner_sigma) {
    return std::make_shared<CharacterTable>(CharacterTable{CharacterSet(view(word)), CharacterSet(view(space)),
                                                           Replacements(view(changed), view(begin), view(becomes)),
                                                           CharacterSet(view(cased)), CharacterSet(view(ignorable)),
                                                           characters_of(final_sigma), characters_of(inner_sigma)});
}

}  // namespace

void bind_vectorizer(nb::module_& m) {
    nb::class_<CharacterTable>(m, "CharacterTable", "What Python knows about characters: see ramify.text.characters.");
    m.def("character_table", &make_table, nb::kw_only(), "word"_a, "space"_a, "changed"_a, "begin"_a, "becomes"_a,
          "cased"_a, "ignorable"_a, "final_sigma"_a, "inner_sigma"_a,
          "Tables from runs of characters and replacements.");
    m.def("holds_only_str", &holds_only_str, "items"_a, "Whether all items of a list are of type str itself.");
    nb::class_<Counted>(m, "CountedTerms", "The terms of a corpus in order of their characters, and its texts' terms.")
        .def_prop_ro("n_terms", [](const Counted& c) { return c.terms.n_terms(); })
        .def_prop_ro("n_rows", [](const Counted& c) { return c.terms.n_rows(); })
        .def("n_rows_with", [](const Counted& c) { return to_numpy(c.terms.n_rows_with()); })
        .def(
            "finish", [](Counted& c) { c.terms.finish(); }, nb::call_guard<nb::gil_scoped_release>(),
            "Join and sort the terms, once all texts are counted.")
        .def("n_occurrences", [](const Counted& c) { return to_numpy(c.terms.n_occurrences()); });
    nb::class_<BoundReader>(m, "TextReader",
                            "Texts as sparse rows: an analyzer, columns by vocabulary or hash, and weights.")
        .def(nb::init<const std::string&, const std::string&, int, bool, const std::string&, int, int, const nb::list&,
                      bool>(),
             nb::kw_only(), "kind"_a, "token"_a, "min_length"_a, "lowercase"_a, "strip_accents"_a, "min_n"_a, "max_n"_a,
             "stop_words"_a, "stems"_a = false)
        .def("set_vocabulary", &BoundReader::set_vocabulary, "bytes"_a, "offsets"_a)
        .def("set_hashing", &BoundReader::set_hashing, "n_buckets"_a, "alternate_sign"_a)
        .def("set_weights", &BoundReader::set_weights, nb::kw_only(), "binary"_a, "sublinear"_a, "norm"_a,
             "idf"_a = nb::none())
        .def_prop_ro("n_columns", &BoundReader::n_columns)
        .def("terms", &BoundReader::terms, "The vocabulary in order of columns.")
        .def("term_arrays", &BoundReader::term_arrays, "The vocabulary as UTF-8 and offsets.")
        .def("term", &BoundReader::term, "column"_a, "The term of a column.")
        .def("new_corpus", &BoundReader::new_corpus, "n_threads"_a, "The terms of a corpus without texts so far.")
        .def("count", &BoundReader::count, "counted"_a, "texts"_a, "Add texts to a corpus.")
        .def("adopt", &BoundReader::adopt, "counted"_a, "ranks"_a, "Take these terms of a corpus as the vocabulary.")
        .def("counted_rows", &BoundReader::counted_rows, "counted"_a, "ranks"_a,
             "The rows of the corpus that was counted.")
        .def("set_growth", &BoundReader::set_growth, "n_texts"_a, "n_texts_with"_a, "uses_idf"_a, "smoothing"_a,
             "settles_at"_a)
        .def("grow", &BoundReader::grow, "texts"_a, "keeps_undo"_a,
             "CSR parts of the texts' rows; new terms get the next columns.")
        .def("undo_growth", &BoundReader::undo_growth, "Take the last growth back.")
        .def("growth", &BoundReader::growth, "Texts so far, how many had each term, and the terms' idf.")
        .def("transform", &BoundReader::transform, "texts"_a, "n_threads"_a, "CSR parts of the texts' rows.")
        .def("row", &BoundReader::row, "text"_a, "Columns and values of one text.")
        .def("occurrences", &BoundReader::occurrences, "text"_a,
             "Every occurrence of a known term: column, first character, the one after the last, and the term.");
}
