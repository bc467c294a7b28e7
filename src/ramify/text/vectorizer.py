"""Texts as weighted terms of a vocabulary: scikit-learn's TfidfVectorizer and CountVectorizer, in the core."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import cached_property
from numbers import Integral
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ramify import _core
from ramify.common.validation import check_flag, check_integer, check_number, number_of_threads
from ramify.text.analysis import TextAnalysis, check_terms, chunks_of, rows_in_chunks, rows_of, sorted_rows
from ramify.text.parameters import not_fitted

if TYPE_CHECKING:
    from scipy import sparse
    from typing_extensions import Self


class TextVectorizer(TextAnalysis):
    r"""TF-IDF of words, n-grams of words, or n-grams of characters.

    The parameters, the vocabulary and the matrix are those of scikit-learn's TfidfVectorizer, for every Unicode text;
    values are float32. With `use_idf=False, norm=None` the matrix is that of CountVectorizer. The core reads the texts,
    unless `preprocessor`, `tokenizer`, `analyzer` or `strip_accents` is a function or `token_pattern` an unusual one:
    then scikit-learn does, at its speed.

    Parameters
    ----------
    input, encoding, decode_error, strip_accents, lowercase, preprocessor, tokenizer, analyzer, stop_words :
        As in scikit-learn's TfidfVectorizer.
    token_pattern : str
        The core reads `\b\w\w+\b`, `\w\w+`, `\b\w+\b`, `\w+`, `\S+` and `[^\s]+`, each also with `(?u)` in front.
    ngram_range, max_df, min_df, max_features, vocabulary, binary, norm, use_idf, smooth_idf, sublinear_tf :
        As in scikit-learn's TfidfVectorizer.
    stemmer : None or "english"
        "english": words become their stems by Porter's algorithm, after stop words are left out.
    n_jobs : int or None
        Number of threads; the result does not depend on it.

    >>> vectorizer = TextVectorizer().fit(["Red apple, green pear", "red cherry"])
    >>> vectorizer.get_feature_names_out().tolist()
    ['apple', 'cherry', 'green', 'pear', 'red']
    >>> vectorizer.transform(["a red, red pear"]).toarray().astype(float).round(2).tolist()
    [[0.0, 0.0, 0.0, 0.57, 0.82]]
    """

    fixed_vocabulary_: bool
    _reader: _core.TextReader
    _idf: NDArray[np.float64]

    def __init__(
        self,
        *,
        input: str = "content",
        encoding: str = "utf-8",
        decode_error: str = "strict",
        strip_accents: str | Callable[[str], str] | None = None,
        lowercase: bool = True,
        preprocessor: Callable[[str], str] | None = None,
        tokenizer: Callable[[str], list[str]] | None = None,
        analyzer: str | Callable[[str], list[str]] = "word",
        stop_words: str | list[str] | None = None,
        token_pattern: str | None = r"(?u)\b\w\w+\b",
        ngram_range: tuple[int, int] = (1, 1),
        max_df: float | int = 1.0,
        min_df: float | int = 1,
        max_features: int | None = None,
        vocabulary: Mapping[str, int] | Iterable[str] | None = None,
        binary: bool = False,
        norm: str | None = "l2",
        use_idf: bool = True,
        smooth_idf: bool = True,
        sublinear_tf: bool = False,
        stemmer: str | None = None,
        n_jobs: int | None = None,
    ) -> None:
        self.input = input
        self.encoding = encoding
        self.decode_error = decode_error
        self.strip_accents = strip_accents
        self.lowercase = lowercase
        self.preprocessor = preprocessor
        self.tokenizer = tokenizer
        self.analyzer = analyzer
        self.stop_words = stop_words
        self.token_pattern = token_pattern
        self.ngram_range = ngram_range
        self.max_df = max_df
        self.min_df = min_df
        self.max_features = max_features
        self.vocabulary = vocabulary
        self.binary = binary
        self.norm = norm
        self.use_idf = use_idf
        self.smooth_idf = smooth_idf
        self.sublinear_tf = sublinear_tf
        self.stemmer = stemmer
        self.n_jobs = n_jobs

    def check_parameters(self) -> None:
        super().check_parameters()
        for name in ("max_df", "min_df"):
            value = getattr(self, name)
            if isinstance(value, Integral) and not isinstance(value, bool):
                check_integer(name, value, at_least=1)
            else:
                check_number(name, value, at_least=0, at_most=1)
        if self.max_features is not None:
            check_integer("max_features", self.max_features, at_least=1)
        for name in ("use_idf", "smooth_idf", "sublinear_tf"):
            check_flag(name, getattr(self, name))

    # --- learning and reading -------------------------------------------------------------------------------------

    def fit(self, texts: Iterable[str], y: Any = None) -> Self:
        """Learn the vocabulary and the document frequencies; y is ignored."""
        self._learn(self._texts(texts), wants_rows=False)
        return self

    def fit_transform(self, texts: Iterable[str], y: Any = None) -> sparse.csr_array:
        """Learn the vocabulary and return the rows of the texts."""
        rows: sparse.csr_array = self._learn(self._texts(texts), wants_rows=True)
        return rows

    def transform(self, texts: Iterable[str]) -> sparse.csr_array:
        """Return a row for each text: a float32 csr_array with sorted indices."""
        reader = self._fitted_reader()
        rows = self._texts(texts)
        if not self._is_native:
            return sorted_rows(self._twin.transform(rows))
        return self._rows(reader, rows)

    def transform_one(self, text: str) -> tuple[NDArray[np.int32], NDArray[np.float32]]:
        """Return the columns and values of one text."""
        if self._is_native and "_reader" in self.__dict__:
            return self._reader.row(text)
        row = self.transform([text])
        return row.indices, row.data

    def occurrences(self, text: str) -> list[tuple[int, int, int, str]]:
        """Return every occurrence of a known term: column, first character, the one after the last, and the term.

        >>> TextVectorizer().fit(["red apple"]).occurrences("A Red one")
        [(1, 2, 5, 'red')]
        """
        return self._fitted_reader().occurrences(text) if self._is_native else []

    def get_feature_names_out(self, input_features: Any = None) -> NDArray[np.object_]:
        """Return the terms in order of columns."""
        return np.array(self._fitted_reader().terms(), dtype=object)

    def term_at(self, column: int) -> str:
        """Return the term of a column."""
        return self._fitted_reader().term(column)

    @cached_property
    def vocabulary_(self) -> dict[str, int]:
        """The column of each term."""
        terms = self._reader.terms()
        return dict(zip(terms, range(len(terms)), strict=True))

    @property
    def idf_(self) -> NDArray[np.float64]:
        """The inverse document frequency of each term."""
        if not self.use_idf or "_idf" not in self.__dict__:
            raise AttributeError(f"this {type(self).__name__} has no idf_: it is not fitted, or use_idf is False")
        return self._idf

    # --- internals ------------------------------------------------------------------------------------------------

    def _rows(self, reader: _core.TextReader, texts: Any) -> sparse.csr_array:
        n_threads = number_of_threads(self.n_jobs)
        return rows_of(rows_in_chunks(texts, lambda chunk: reader.transform(chunk, n_threads)), reader.n_columns)

    def _learn(self, texts: Any, wants_rows: bool) -> Any:
        self.check_parameters()
        terms = self._given_terms()
        if not self._is_native:
            return self._learn_by_twin(texts)
        reader = self._new_reader()
        if terms is not None:
            reader.set_vocabulary(*_arrays_of(terms))
            self._weigh(reader, None)
            counts = self._rows(reader, texts)
            n_rows_with = np.bincount(counts.indices, minlength=len(terms))
            self._adopt(reader, self._idf_of(n_rows_with, counts.shape[0]), is_fixed=True)
            return self._rows(reader, texts) if wants_rows else None
        counted = reader.new_corpus(number_of_threads(self.n_jobs))
        for chunk in chunks_of(texts):
            reader.count(counted, chunk)
        counted.finish()
        if counted.n_terms == 0:
            raise ValueError("empty vocabulary; perhaps the documents only contain stop words")
        n_rows_with = counted.n_rows_with()
        kept = self._kept(n_rows_with, counted)
        reader.adopt(counted, kept)
        self._adopt(reader, self._idf_of(n_rows_with[kept], counted.n_rows), is_fixed=False)
        return rows_of(reader.counted_rows(counted, kept), len(kept)) if wants_rows else None

    def _kept(self, n_rows_with: NDArray[np.int64], counted: Any) -> NDArray[np.int64]:
        """The ranks of the terms within min_df, max_df and max_features."""
        n_rows = counted.n_rows
        most = self.max_df if isinstance(self.max_df, Integral) else self.max_df * n_rows
        least = self.min_df if isinstance(self.min_df, Integral) else self.min_df * n_rows
        if most < least:
            raise ValueError(
                f"max_df={self.max_df!r} means at most {most:g} texts, and min_df={self.min_df!r} at least {least:g}"
            )
        kept = np.flatnonzero((n_rows_with <= most) & (n_rows_with >= least))
        if self.max_features is not None and len(kept) > self.max_features:
            total = n_rows_with if self.binary else counted.n_occurrences()
            # As scikit-learn does it, down to which of equally frequent terms remain.
            kept = np.sort(kept[(-total[kept]).argsort()[: self.max_features]])
        if len(kept) == 0:
            raise ValueError("After pruning, no terms remain. Try a lower min_df or a higher max_df.")
        return kept

    def _given_terms(self) -> list[str] | None:
        given = self.vocabulary
        if given is None:
            return None
        if isinstance(given, Mapping):
            terms = [""] * len(given)
            if set(given.values()) != set(range(len(given))):
                raise ValueError(f"vocabulary must number its {len(given)} terms from 0, without gaps and repetitions")
            for term, column in given.items():
                terms[column] = term
        else:
            terms = sorted(given) if isinstance(given, set) else list(given)
            if len(set(terms)) != len(terms):
                twice = next(term for place, term in enumerate(terms) if term in terms[:place])
                raise ValueError(f"duplicate term in vocabulary: {twice!r}")
        if not terms:
            raise ValueError("the given vocabulary is empty")
        return terms

    def _idf_of(self, n_rows_with: NDArray[np.int64], n_rows: int) -> NDArray[np.float64] | None:
        if not self.use_idf:
            return None
        smooth = int(self.smooth_idf)
        with np.errstate(divide="ignore"):
            return np.log((n_rows + smooth) / (n_rows_with + smooth)) + 1.0

    def _weigh(self, reader: _core.TextReader, idf: NDArray[np.float64] | None) -> None:
        reader.set_weights(binary=self.binary, sublinear=self.sublinear_tf, norm=self.norm or "", idf=idf)

    def _adopt(self, reader: _core.TextReader, idf: NDArray[np.float64] | None, is_fixed: bool) -> None:
        self._weigh(reader, idf)
        self._reader = reader
        self.fixed_vocabulary_ = is_fixed
        for name in ("vocabulary_", "_idf", "_twin"):
            self.__dict__.pop(name, None)
        if idf is not None:
            self._idf = idf

    def _fitted_reader(self) -> _core.TextReader:
        if "_reader" not in self.__dict__:
            terms = self._given_terms()
            if terms is None or self.use_idf:
                raise not_fitted(type(self).__name__)
            self.check_parameters()
            reader = self._new_reader()
            reader.set_vocabulary(*_arrays_of(terms))
            self._adopt(reader, None, is_fixed=True)
        return self._reader

    def __sklearn_is_fitted__(self) -> bool:
        return "_reader" in self.__dict__

    # --- scikit-learn's reading -----------------------------------------------------------------------------------

    def _new_twin(self, vocabulary: Any) -> Any:
        from sklearn.feature_extraction.text import TfidfVectorizer

        names = ("max_df", "min_df", "max_features", "use_idf", "smooth_idf", "sublinear_tf")
        return TfidfVectorizer(**self._analysis(), **{n: getattr(self, n) for n in names}, vocabulary=vocabulary)

    @cached_property
    def _twin(self) -> Any:
        """scikit-learn's vectorizer with the same vocabulary and weights."""
        twin = self._new_twin(self.vocabulary_)
        if not self.use_idf:
            return twin.fit([""])
        twin.idf_ = self._idf.astype(np.float32)
        return twin

    def _learn_by_twin(self, texts: Iterable[Any]) -> Any:
        twin = self._new_twin(self.vocabulary)
        rows = twin.fit_transform(texts)
        reader = self._new_reader()
        reader.set_vocabulary(*_arrays_of(twin.get_feature_names_out().tolist()))
        idf = twin.idf_.astype(np.float64) if self.use_idf else None
        self._adopt(reader, idf, is_fixed=twin.fixed_vocabulary_)
        return sorted_rows(rows)

    # --- model files ----------------------------------------------------------------------------------------------

    def state(self) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
        """Return the fitted vectorizer as a dict for JSON and plain arrays."""
        reader = self._fitted_reader()
        params = self._saved_params()
        del params["vocabulary"]
        meta = {"class": type(self).__name__, "params": params, "has_fixed_vocabulary": self.fixed_vocabulary_}
        text, offsets = reader.term_arrays()
        arrays: dict[str, NDArray[Any]] = {"term_bytes": text, "term_offsets": offsets}
        if self.use_idf:
            arrays["idf"] = self._idf
        return meta, arrays

    @classmethod
    def from_state(cls, meta: dict[str, Any], arrays: dict[str, NDArray[Any]]) -> Self:
        """Restore a vectorizer from `state`; a damaged state raises ValueError."""
        vectorizer: Self = cls._from_saved_params(meta["params"])
        vectorizer._restore(arrays, bool(meta.get("has_fixed_vocabulary")))
        return vectorizer

    def _restore(self, arrays: Mapping[str, NDArray[Any]], is_fixed: bool) -> None:
        for name in ("term_bytes", "term_offsets", *(("idf",) if self.use_idf else ())):
            if name not in arrays:
                raise ValueError(f"the saved {type(self).__name__} has no array {name}")
        check_terms(type(self).__name__, arrays["term_bytes"], arrays["term_offsets"])
        reader = self._new_reader()
        reader.set_vocabulary(arrays["term_bytes"], arrays["term_offsets"])
        n_terms = reader.n_columns
        if n_terms == 0:
            raise ValueError(f"the saved {type(self).__name__} has no terms")
        idf = None
        if self.use_idf:
            idf = np.asarray(arrays["idf"])
            if idf.shape != (n_terms,) or idf.dtype != np.float64:
                raise ValueError(f"the saved {type(self).__name__} needs {n_terms} idf values")
        self._adopt(reader, idf, is_fixed)
        if is_fixed:
            self.vocabulary = self.vocabulary_

    def __getstate__(self) -> dict[str, Any]:
        state = {
            name: value for name, value in self.__dict__.items() if name not in ("_reader", "_twin", "vocabulary_")
        }
        if "_reader" in self.__dict__:
            state["_terms"] = self._reader.term_arrays()
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        terms, idf = state.pop("_terms", None), state.get("_idf")
        self.__dict__.update(state)
        if terms is not None:
            reader = self._new_reader()
            reader.set_vocabulary(*terms)
            self._adopt(reader, idf, self.fixed_vocabulary_)


def _arrays_of(terms: list[str]) -> tuple[NDArray[np.uint8], NDArray[np.int64]]:
    encoded = [term.encode("utf-8", "surrogatepass") for term in terms]
    offsets = np.zeros(len(encoded) + 1, dtype=np.int64)
    np.cumsum(np.fromiter(map(len, encoded), dtype=np.int64, count=len(encoded)), out=offsets[1:])
    return np.frombuffer(b"".join(encoded), dtype=np.uint8), offsets
