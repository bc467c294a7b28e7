"""Vectorize texts as counts of words and hashed n-grams, as fastText does."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from ramify import _core
from ramify.common.validation import check_choice, check_flag, check_integer, number_of_threads
from ramify.data.csr import csr_rows
from ramify.data.names import NameTable
from ramify.text.parameters import Parameters, not_fitted

# Accept lone surrogates: they count as letters, like every character outside ASCII.
_ERRORS = "surrogatepass"


class WordNgramVectorizer(Parameters):
    """Count words of a vocabulary, and n-grams of words and characters hashed into buckets.

    Columns: the words by decreasing frequency, then the buckets, with the hashes of fastText. Words not seen in `fit`
    are ignored, but their n-grams are not.
    Paper: Joulin et al. 2016, "Bag of tricks for efficient text classification".

    Parameters
    ----------
    word_ngrams : int
        Longest n-gram of words; 1 means no n-grams.
    char_ngrams : None or (int, int)
        Shortest and longest n-gram of the characters of `<word>`.
    n_buckets : int
        Number of columns shared by all n-grams.
    min_count : int
        Words that occur less often are not in the vocabulary.
    tokens : "words" or "whitespace"
        "words" drops ASCII punctuation; "whitespace" splits only at white space, as fastText does.
    lowercase : bool
        Convert texts to lower case first.
    n_jobs : int or None
        Number of threads; the result does not depend on it.

    >>> vectorizer = WordNgramVectorizer(word_ngrams=2, n_buckets=100).fit(["Red apple, green pear", "red cherry"])
    >>> sorted(vectorizer.vocabulary_, key=vectorizer.vocabulary_.get)
    ['red', 'apple', 'green', 'pear', 'cherry']
    >>> row = vectorizer.transform(["red pear!"])
    >>> row.shape, [term for column, term in sorted(vectorizer.terms_of("red pear!").items())]
    ((1, 105), ['red', 'pear', 'red pear', 'pear </s>'])
    """

    vocabulary_: dict[str, int]

    def __init__(
        self,
        *,
        word_ngrams: int = 1,
        char_ngrams: tuple[int, int] | None = None,
        n_buckets: int = 2_000_000,
        min_count: int = 1,
        tokens: str = "words",
        lowercase: bool = True,
        n_jobs: int | None = None,
    ) -> None:
        self.word_ngrams = word_ngrams
        self.char_ngrams = char_ngrams
        self.n_buckets = n_buckets
        self.min_count = min_count
        self.tokens = tokens
        self.lowercase = lowercase
        self.n_jobs = n_jobs

    def check_parameters(self) -> None:
        """Raise ValueError for a bad parameter."""
        check_integer("word_ngrams", self.word_ngrams, at_least=1, at_most=20)
        if self.char_ngrams is not None:
            if not isinstance(self.char_ngrams, tuple | list) or len(self.char_ngrams) != 2:
                raise ValueError(f"char_ngrams must be None or two lengths like (3, 6), got {self.char_ngrams!r}")
            shortest = check_integer("char_ngrams' first", self.char_ngrams[0], at_least=1)
            check_integer("char_ngrams' second", self.char_ngrams[1], at_least=shortest, at_most=1000)
        check_integer("n_buckets", self.n_buckets, at_least=1, at_most=2**30)
        check_integer("min_count", self.min_count, at_least=1)
        check_choice("tokens", self.tokens, ["words", "whitespace"])
        check_flag("lowercase", self.lowercase)

    def fit(self, texts: Iterable[str], y: Any = None) -> WordNgramVectorizer:
        """Learn the vocabulary; y is ignored."""
        self.check_parameters()
        self._learn(self._pieces(texts))
        return self

    def fit_transform(self, texts: Iterable[str], y: Any = None) -> sparse.csr_array:
        """Learn the vocabulary and return the counts of the texts."""
        self.check_parameters()
        pieces = self._pieces(texts)
        self._learn(pieces)
        return self._counts(pieces)

    def transform(self, texts: Iterable[str]) -> sparse.csr_array:
        """Return the counts of each text as a float32 csr_array with sorted indices."""
        self._check_fitted()
        return self._counts(self._pieces(texts))

    def terms_of(self, text: str) -> dict[int, str]:
        """Return the term of each column that is not zero for this text; n-grams in one bucket are joined by `|`."""
        self._check_fitted()
        terms: dict[int, list[str]] = {}
        for column, term in self._reader.terms(self._encoded(text)):
            found = terms.setdefault(column, [])
            if (decoded := term.decode("utf-8", "replace")) not in found:
                found.append(decoded)
        return {column: " | ".join(found) for column, found in terms.items()}

    @property
    def n_columns(self) -> int:
        """The number of columns: words and buckets."""
        self._check_fitted()
        return self._reader.n_columns

    def tfidf(self, counts: sparse.csr_array) -> sparse.csr_array:
        """Return the TF-IDF of the words among the counts, from which trees are built.

        >>> vectorizer = WordNgramVectorizer()
        >>> vectorizer.tfidf(vectorizer.fit_transform(["a a b", "a c"])).toarray().astype(float).round(2).tolist()
        [[1.69, 1.41, 0.0], [1.0, 0.0, 1.41]]
        """
        words = sparse.csr_array(counts[:, : len(self.vocabulary_)])
        n_rows_with = np.bincount(words.indices, minlength=words.shape[1])
        idf = (1 + np.log((1 + words.shape[0]) / (1 + n_rows_with))).astype(np.float32)
        values = (1 + np.log(words.data)) * idf[words.indices]
        return csr_rows(values.astype(np.float32), words.indices, words.indptr, words.shape)

    # --- model files ----------------------------------------------------------------------------------------------

    def state(self) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
        """Return the fitted vectorizer as a dict for JSON and plain arrays."""
        self._check_fitted()
        params = self.get_params(deep=False)
        params["char_ngrams"] = None if self.char_ngrams is None else list(self.char_ngrams)
        meta = {"class": type(self).__name__, "params": params}
        return meta, {"term_bytes": self._table.text, "term_offsets": self._table.offsets}

    @classmethod
    def from_state(cls, meta: dict[str, Any], arrays: dict[str, NDArray[Any]]) -> WordNgramVectorizer:
        """Restore a vectorizer from `state`; a damaged state raises ValueError."""
        params = dict(meta["params"])
        if unknown := set(params) - set(cls._get_param_names()):
            raise ValueError(f"the saved {cls.__name__} has unknown parameters: {', '.join(sorted(unknown))}")
        if isinstance(params.get("char_ngrams"), list):
            params["char_ngrams"] = tuple(params["char_ngrams"])
        vectorizer = cls(**params)
        vectorizer.check_parameters()
        for name in ("term_bytes", "term_offsets"):
            if name not in arrays:
                raise ValueError(f"the saved {cls.__name__} has no array {name}")
        vectorizer._adopt(NameTable(arrays["term_bytes"], arrays["term_offsets"]))
        return vectorizer

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in self.__dict__.items() if name != "_reader"}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        if "_table" in self.__dict__:
            self._adopt(self._table)

    # --- internals ------------------------------------------------------------------------------------------------

    def __sklearn_is_fitted__(self) -> bool:
        return "_reader" in self.__dict__

    def _check_fitted(self) -> None:
        if "_reader" not in self.__dict__:
            raise not_fitted(type(self).__name__)

    def _encoded(self, text: str) -> bytes:
        return (text.lower() if self.lowercase else text).encode("utf-8", _ERRORS)

    def _packed(self, texts: Iterable[str]) -> tuple[bytes, NDArray[np.int64]]:
        if isinstance(texts, str | bytes) or not isinstance(texts, Iterable):
            raise ValueError(f"texts must be a list or another iterable of strings, got {texts!r:.60}")
        encoded = []
        for row, text in enumerate(texts):
            if not isinstance(text, str):
                raise ValueError(f"text {row} is {text!r:.60}, not a string; write '' for an empty text")
            encoded.append(self._encoded(text))
        offsets = np.zeros(len(encoded) + 1, dtype=np.int64)
        np.cumsum(np.fromiter(map(len, encoded), dtype=np.int64, count=len(encoded)), out=offsets[1:])
        return b"".join(encoded), offsets

    def _pieces(self, texts: Iterable[str]) -> Iterable[tuple[bytes, NDArray[np.int64]]]:
        """The encoded texts: those of a file chunk by chunk, read again for each use, others at once."""
        return _PackedChunks(self, texts) if hasattr(texts, "text_chunks") else [self._packed(texts)]

    def _learn(self, pieces: Iterable[tuple[bytes, NDArray[np.int64]]]) -> None:
        counted = [_core.count_words(*piece, self.tokens == "whitespace") for piece in pieces]
        word_bytes, ends, counts = counted[0] if len(counted) == 1 else _merged(counted)
        order = np.argsort(-counts, kind="stable")
        order = order[counts[order] >= self.min_count]
        self._adopt(_taken(NameTable(word_bytes, ends), order))

    def _adopt(self, words: NameTable) -> None:
        shortest, longest = self.char_ngrams or (0, 0)
        self._reader = _core.NgramReader(
            words.text.tobytes(),
            words.offsets,
            by_whitespace=self.tokens == "whitespace",
            word_ngrams=self.word_ngrams,
            min_chars=shortest,
            max_chars=longest,
            n_buckets=self.n_buckets,
        )
        if self._reader.n_columns == 0:
            raise ValueError("the texts have no words: they are empty, or contain only punctuation and rare words")
        self._table = words
        self.vocabulary_ = {word: column for column, word in enumerate(words.tolist())}

    def _counts(self, pieces: Iterable[tuple[bytes, NDArray[np.int64]]]) -> sparse.csr_array:
        n_threads = number_of_threads(self.n_jobs)
        parts = [self._reader.transform(text, offsets, n_threads) for text, offsets in pieces]
        if len(parts) == 1:
            indptr, indices, counts = parts[0]
        else:
            indptr = np.cumsum(np.concatenate([[0], *(np.diff(part[0]) for part in parts)]))
            indices, counts = (np.concatenate([part[place] for part in parts]) for place in (1, 2))
        return csr_rows(counts, indices, indptr, (len(indptr) - 1, self._reader.n_columns))


class _PackedChunks:
    """The chunks of a file's texts, encoded; every iteration reads the file."""

    def __init__(self, vectorizer: WordNgramVectorizer, texts: Any) -> None:
        self._vectorizer, self._texts = vectorizer, texts

    def __iter__(self) -> Iterator[tuple[bytes, NDArray[np.int64]]]:
        for chunk in self._texts.text_chunks():
            yield self._vectorizer._packed(chunk)


def _merged(counted: list[Any]) -> tuple[NDArray[np.uint8], NDArray[np.int64], NDArray[np.int64]]:
    """The words of all chunks in order of appearance, and their counts."""
    total: dict[bytes, int] = {}
    for word_bytes, ends, counts in counted:
        text = word_bytes.tobytes()
        for (start, stop), count in zip(itertools.pairwise(ends.tolist()), counts.tolist(), strict=True):
            word = text[start:stop]
            total[word] = total.get(word, 0) + count
    ends = np.concatenate([[0], np.cumsum(np.fromiter(map(len, total), np.int64, len(total)))]).astype(np.int64)
    numbers = np.fromiter(total.values(), np.int64, len(total))
    return np.frombuffer(b"".join(total), dtype=np.uint8), ends, numbers


def _taken(table: NameTable, positions: NDArray[np.integer]) -> NameTable:
    """Return a table of the names at these positions."""
    lengths = np.diff(table.offsets)[positions]
    offsets = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
    source = np.repeat(table.offsets[:-1][positions] - offsets[:-1], lengths) + np.arange(offsets[-1])
    return NameTable(table.text[source], offsets)
