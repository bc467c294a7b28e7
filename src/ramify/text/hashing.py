"""Texts as hashed terms: scikit-learn's HashingVectorizer, in the core. It needs no vocabulary and no more memory."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ramify import _core
from ramify.common.validation import check_flag, check_integer, number_of_threads
from ramify.text.analysis import TextAnalysis, rows_in_chunks, rows_of, sorted_rows

if TYPE_CHECKING:
    from scipy import sparse
    from typing_extensions import Self


class HashingTextVectorizer(TextAnalysis):
    r"""Counts of terms in columns given by their hash, each row scaled to unit length.

    The parameters and the matrix are those of scikit-learn's HashingVectorizer; values are float32. It has nothing to
    learn, so its memory is bounded and a stream may bring any words; terms that share a column are not told apart.

    Parameters
    ----------
    input, encoding, decode_error, strip_accents, lowercase, preprocessor, tokenizer, analyzer, stop_words :
        As in scikit-learn's HashingVectorizer.
    token_pattern : str
        Patterns that the core reads: see `TextVectorizer`.
    ngram_range, n_features, binary, norm, alternate_sign :
        As in scikit-learn's HashingVectorizer.
    stemmer : None or "english"
        "english": words become their stems by Porter's algorithm, after stop words are left out.
    n_jobs : int or None
        Number of threads; the result does not depend on it.

    >>> HashingTextVectorizer(n_features=16, norm=None).transform(["red, red pear"]).toarray().astype(int).tolist()
    [[0, 0, 0, -3, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]]
    """

    _requires_fit = False

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
        stop_words: str | list[str] | None = None,
        token_pattern: str | None = r"(?u)\b\w\w+\b",
        ngram_range: tuple[int, int] = (1, 1),
        analyzer: str | Callable[[str], list[str]] = "word",
        n_features: int = 2**20,
        binary: bool = False,
        norm: str | None = "l2",
        alternate_sign: bool = True,
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
        self.stop_words = stop_words
        self.token_pattern = token_pattern
        self.ngram_range = ngram_range
        self.analyzer = analyzer
        self.n_features = n_features
        self.binary = binary
        self.norm = norm
        self.alternate_sign = alternate_sign
        self.stemmer = stemmer
        self.n_jobs = n_jobs

    def check_parameters(self) -> None:
        super().check_parameters()
        check_integer("n_features", self.n_features, at_least=1, at_most=2**31 - 1)
        check_flag("alternate_sign", self.alternate_sign)

    def fit(self, texts: Any = None, y: Any = None) -> Self:
        """Check the parameters; there is nothing to learn."""
        self.check_parameters()
        self.__dict__.pop("_reader", None)
        return self

    def partial_fit(self, texts: Any = None, y: Any = None) -> Self:
        """The same as `fit`."""
        return self.fit(texts, y)

    def fit_transform(self, texts: Iterable[str], y: Any = None) -> sparse.csr_array:
        """Return a row for each text."""
        return self.fit().transform(texts)

    def transform(self, texts: Iterable[str]) -> sparse.csr_array:
        """Return a row for each text: a float32 csr_array with sorted indices."""
        rows = self._texts(texts)
        if not self._is_native:
            return sorted_rows(self._twin.transform(rows))
        n_threads = number_of_threads(self.n_jobs)
        return rows_of(rows_in_chunks(rows, lambda chunk: self._reader.transform(chunk, n_threads)), self.n_features)

    def transform_one(self, text: str) -> tuple[NDArray[np.int32], NDArray[np.float32]]:
        """Return the columns and values of one text."""
        if self._is_native:
            return self._reader.row(text)
        row = self.transform([text])
        return row.indices, row.data

    def occurrences(self, text: str) -> list[tuple[int, int, int, str]]:
        """Return every occurrence of a term: column, first character, the one after the last, and the term."""
        return self._reader.occurrences(text) if self._is_native else []

    def terms_of(self, text: str) -> dict[int, str]:
        """Return the terms of each column that a text has; terms in one column are joined by `|`."""
        terms: dict[int, list[str]] = {}
        for column, _, _, term in self.occurrences(text):
            if term not in terms.setdefault(column, []):
                terms[column].append(term)
        return {column: " | ".join(found) for column, found in terms.items()}

    def set_params(self, **params: Any) -> Self:
        """Change parameters."""
        self.__dict__.pop("_reader", None)
        self.__dict__.pop("_twin", None)
        return super().set_params(**params)

    @cached_property
    def _reader(self) -> _core.TextReader:
        self.check_parameters()
        reader = self._new_reader()
        reader.set_hashing(self.n_features, self.alternate_sign)
        reader.set_weights(binary=self.binary, sublinear=False, norm=self.norm or "")
        return reader

    @cached_property
    def _twin(self) -> Any:
        """scikit-learn's vectorizer with the same parameters."""
        from sklearn.feature_extraction.text import HashingVectorizer

        self.check_parameters()
        return HashingVectorizer(**self._analysis(), n_features=self.n_features, alternate_sign=self.alternate_sign)

    def __sklearn_is_fitted__(self) -> bool:
        return True

    # --- model files ----------------------------------------------------------------------------------------------

    def state(self) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
        """Return the vectorizer as a dict for JSON and no arrays."""
        return {"class": type(self).__name__, "params": self._saved_params()}, {}

    @classmethod
    def from_state(cls, meta: dict[str, Any], arrays: dict[str, NDArray[Any]]) -> Self:
        """Restore a vectorizer from `state`; a damaged state raises ValueError."""
        vectorizer: Self = cls._from_saved_params(meta["params"])
        return vectorizer

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in self.__dict__.items() if name not in ("_reader", "_twin")}
