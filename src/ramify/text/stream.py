"""Texts of a stream as weighted terms of a vocabulary that grows."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ramify import _core
from ramify.common.validation import check_flag, number_of_threads
from ramify.text.analysis import TextAnalysis, check_terms, rows_in_chunks, rows_of
from ramify.text.parameters import not_fitted

if TYPE_CHECKING:
    from scipy import sparse
    from typing_extensions import Self

# From this many texts on a term's idf is fixed: an estimate with a standard error of about a quarter.
SETTLES_AT = 16

_NONE_YET = np.zeros(0, dtype=np.int64)


class StreamTextVectorizer(TextAnalysis):
    r"""TF-IDF of terms that are numbered as they arrive, for classifiers that learn online.

    A new term gets the next column, so columns keep their meaning. Its idf is log((n + 1) / (k + 1)) + 1 when k of
    the n texts so far have had it, until it has been in SETTLES_AT texts; from then on it is fixed, because a changing
    idf would change the meaning of the weights that a model has learned for the term. `transform` ignores unknown
    terms and changes nothing.

    Learning texts one by one or in pieces of any size gives the same columns and values, and so does going on after
    saving and loading.

    Parameters
    ----------
    input, encoding, decode_error, strip_accents, lowercase, analyzer, stop_words, token_pattern, ngram_range :
        As in `TextVectorizer`; the core reads the texts, so functions and unusual patterns are rejected.
    binary, norm, use_idf, smooth_idf, sublinear_tf :
        As in `TextVectorizer`. Without `smooth_idf` the idf is log(n / k) + 1.
    stemmer : None or "english"
        "english": words become their stems by Porter's algorithm, after stop words are left out.
    n_jobs : int or None
        Number of threads of `transform`; texts are learned one after the other.

    >>> vectorizer = StreamTextVectorizer(norm=None)
    >>> vectorizer.partial_fit(["red apple"]).partial_fit(["green pear", "red pear"]).get_feature_names_out().tolist()
    ['red', 'apple', 'green', 'pear']
    >>> vectorizer.idf_.round(2).tolist(), vectorizer.document_frequency_.tolist()
    ([1.29, 1.0, 1.41, 1.29], [2, 1, 1, 2])
    """

    preprocessor: Callable[[str], str] | None = None
    tokenizer: Callable[[str], list[str]] | None = None
    _reader: _core.TextReader

    def __init__(
        self,
        *,
        input: str = "content",
        encoding: str = "utf-8",
        decode_error: str = "strict",
        strip_accents: str | None = None,
        lowercase: bool = True,
        analyzer: str = "word",
        stop_words: str | list[str] | None = None,
        token_pattern: str = r"(?u)\b\w\w+\b",
        ngram_range: tuple[int, int] = (1, 1),
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
        self.analyzer = analyzer
        self.stop_words = stop_words
        self.token_pattern = token_pattern
        self.ngram_range = ngram_range
        self.binary = binary
        self.norm = norm
        self.use_idf = use_idf
        self.smooth_idf = smooth_idf
        self.sublinear_tf = sublinear_tf
        self.stemmer = stemmer
        self.n_jobs = n_jobs

    def check_parameters(self) -> None:
        super().check_parameters()
        if not self._is_native:
            raise ValueError(
                f"{type(self).__name__} cannot use analyzer={self.analyzer!r} with token_pattern={self.token_pattern!r}"
                f" and strip_accents={self.strip_accents!r}: give a pattern that the core reads, and apply functions "
                "to the texts first"
            )
        for name in ("use_idf", "smooth_idf", "sublinear_tf"):
            check_flag(name, getattr(self, name))

    # --- learning and reading -------------------------------------------------------------------------------------

    def fit(self, texts: Iterable[str], y: Any = None) -> Self:
        """Forget everything, then learn these texts one after the other."""
        self.fit_transform(texts)
        return self

    def partial_fit(self, texts: Iterable[str], y: Any = None) -> Self:
        """Learn these texts on top of what is known."""
        self.learn(texts)
        return self

    def fit_transform(self, texts: Iterable[str], y: Any = None) -> sparse.csr_array:
        """As `fit`; return the rows of the texts as they were learned."""
        rows = self._texts(texts)
        reader = self._empty_reader()
        learned = rows_in_chunks(rows, lambda chunk: reader.grow(chunk, keeps_undo=False))
        self._reader = reader
        return rows_of(learned, reader.n_columns)

    def learn(self, texts: Iterable[str]) -> sparse.csr_array:
        """As `partial_fit`; return the rows of the texts as they were learned."""
        rows = self._texts(texts)
        if "_reader" not in self.__dict__:
            return self.fit_transform(rows)
        rows = list(rows)  # of a file too: what is learned in one piece can be undone
        return rows_of(self._reader.grow(rows, keeps_undo=True), self._reader.n_columns)

    def learn_one(self, text: str) -> tuple[NDArray[np.int32], NDArray[np.float32]]:
        """As `learn` for one text; return its columns and values."""
        _, columns, values = self._fitted_reader().grow([text], keeps_undo=True)
        return columns, values

    def forget_last(self) -> None:
        """Undo the last `learn` or `learn_one`."""
        self._fitted_reader().undo_growth()

    def transform(self, texts: Iterable[str]) -> sparse.csr_array:
        """Return a row for each text: a float32 csr_array with sorted indices."""
        reader = self._fitted_reader()
        n_threads = number_of_threads(self.n_jobs)
        rows = rows_in_chunks(self._texts(texts), lambda chunk: reader.transform(chunk, n_threads))
        return rows_of(rows, reader.n_columns)

    def transform_one(self, text: str) -> tuple[NDArray[np.int32], NDArray[np.float32]]:
        """Return the columns and values of one text."""
        return self._fitted_reader().row(text)

    def occurrences(self, text: str) -> list[tuple[int, int, int, str]]:
        """Return every occurrence of a known term: column, first character, the one after the last, and the term."""
        return self._fitted_reader().occurrences(text)

    # --- what is known --------------------------------------------------------------------------------------------

    @property
    def n_columns_(self) -> int:
        """The number of terms so far."""
        return self._fitted_reader().n_columns

    @property
    def n_texts_(self) -> int:
        """The number of texts learned so far."""
        return self._fitted_reader().growth()[0]

    @property
    def document_frequency_(self) -> NDArray[np.int64]:
        """The number of texts that had each term."""
        return self._fitted_reader().growth()[1]

    @property
    def idf_(self) -> NDArray[np.float64]:
        """The weight of each term: see the class."""
        if not self.use_idf:
            raise AttributeError(f"this {type(self).__name__} has no idf_: use_idf is False")
        return self._fitted_reader().growth()[2]

    @property
    def vocabulary_(self) -> dict[str, int]:
        """The column of each term so far."""
        terms = self._fitted_reader().terms()
        return dict(zip(terms, range(len(terms)), strict=True))

    def get_feature_names_out(self, input_features: Any = None) -> NDArray[np.object_]:
        """Return the terms in order of columns."""
        return np.array(self._fitted_reader().terms(), dtype=object)

    def term_at(self, column: int) -> str:
        """Return the term of a column."""
        return self._fitted_reader().term(column)

    def __sklearn_is_fitted__(self) -> bool:
        return "_reader" in self.__dict__

    # --- internals ------------------------------------------------------------------------------------------------

    def _fitted_reader(self) -> _core.TextReader:
        if "_reader" not in self.__dict__:
            raise not_fitted(type(self).__name__)
        return self._reader

    def _empty_reader(self) -> _core.TextReader:
        self.check_parameters()
        return self._reader_with(np.zeros(0, np.uint8), np.zeros(1, np.int64), 0, _NONE_YET, np.zeros(0))

    def _reader_with(
        self,
        text: NDArray[np.uint8],
        offsets: NDArray[np.int64],
        n_texts: int,
        n_texts_with: NDArray[np.int64],
        idf: NDArray[np.float64],
    ) -> _core.TextReader:
        reader = self._new_reader()
        reader.set_vocabulary(text, offsets)
        reader.set_weights(
            binary=self.binary,
            sublinear=self.sublinear_tf,
            norm=self.norm or "",
            idf=idf if self.use_idf else None,
        )
        reader.set_growth(n_texts, n_texts_with, self.use_idf, float(self.smooth_idf), SETTLES_AT)
        return reader

    def state(self) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
        """Return the fitted vectorizer as a dict for JSON and plain arrays."""
        reader = self._fitted_reader()
        text, offsets = reader.term_arrays()
        n_texts, n_texts_with, idf = reader.growth()
        meta = {"class": type(self).__name__, "params": self._saved_params(), "n_texts": n_texts}
        arrays: dict[str, NDArray[Any]] = {"term_bytes": text, "term_offsets": offsets}
        arrays["document_frequency"] = n_texts_with
        if self.use_idf:
            arrays["idf"] = idf
        return meta, arrays

    @classmethod
    def from_state(cls, meta: dict[str, Any], arrays: dict[str, NDArray[Any]]) -> Self:
        """Restore a vectorizer from `state`; a damaged state raises ValueError."""
        vectorizer: Self = cls._from_saved_params(meta["params"])
        names = ["term_bytes", "term_offsets", "document_frequency", *(["idf"] if vectorizer.use_idf else [])]
        for name in names:
            if name not in arrays:
                raise ValueError(f"the saved {cls.__name__} has no array {name}")
        n_texts = meta.get("n_texts")
        if type(n_texts) is not int or n_texts < 0:
            raise ValueError(f"the saved {cls.__name__} has learned {n_texts!r} texts")
        idf = np.asarray(arrays["idf"]) if vectorizer.use_idf else np.zeros(0)
        if idf.dtype != np.float64:
            raise ValueError(f"the saved {cls.__name__} needs idf values")
        text, offsets, n_texts_with = (arrays[name] for name in names[:3])
        check_terms(cls.__name__, text, offsets)
        if n_texts_with.dtype != np.int64:
            raise ValueError(f"the saved {cls.__name__} needs document frequencies as int64")
        vectorizer._reader = vectorizer._reader_with(text, offsets, n_texts, n_texts_with, idf)
        return vectorizer

    def __getstate__(self) -> dict[str, Any]:
        state = dict(self.__dict__)
        reader = state.pop("_reader", None)
        if reader is not None:
            state["_learned"] = (*reader.term_arrays(), *reader.growth())
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        learned = state.pop("_learned", None)
        self.__dict__.update(state)
        if learned is not None:
            self._reader = self._reader_with(*learned)
