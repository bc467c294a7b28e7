"""How texts become terms: the parameters that all text vectorizers share, and what the core can read of them."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ramify import _core
from ramify.common.validation import check_choice, check_flag, check_integer
from ramify.text.parameters import Parameters

if TYPE_CHECKING:
    from scipy import sparse

# Patterns that the core knows: what a token is made of, and its least length.
_PATTERNS = {r"\b\w\w+\b": ("word", 2), r"\w\w+": ("word", 2), r"\b\w+\b": ("word", 1), r"\w+": ("word", 1)}
_PATTERNS |= {r"\S+": ("not_space", 1), r"[^\s]+": ("not_space", 1)}
_MAX_N = 1000


class TextAnalysis(Parameters):
    """The parameters from texts to terms, with the names and meanings of scikit-learn's vectorizers."""

    input: str
    encoding: str
    decode_error: str
    strip_accents: Any
    lowercase: bool
    preprocessor: Callable[[str], str] | None
    tokenizer: Callable[[str], list[str]] | None
    analyzer: Any
    stop_words: Any
    token_pattern: str | None
    ngram_range: tuple[int, int]
    binary: bool
    norm: str | None
    stemmer: str | None
    n_jobs: int | None

    def check_parameters(self) -> None:
        """Raise ValueError for a bad parameter."""
        check_choice("input", self.input, ["content", "file", "filename"])
        check_choice("decode_error", self.decode_error, ["strict", "ignore", "replace"])
        if not callable(self.strip_accents) and self.strip_accents is not None:
            check_choice("strip_accents", self.strip_accents, ["ascii", "unicode"])
        check_flag("lowercase", self.lowercase)
        if not callable(self.analyzer):
            check_choice("analyzer", self.analyzer, ["word", "char", "char_wb"])
        if not isinstance(self.ngram_range, tuple | list) or len(self.ngram_range) != 2:
            raise ValueError(f"ngram_range must be two lengths like (1, 2), got {self.ngram_range!r}")
        shortest = check_integer("ngram_range's first", self.ngram_range[0], at_least=1)
        check_integer("ngram_range's second", self.ngram_range[1], at_least=shortest, at_most=_MAX_N)
        for name in ("preprocessor", "tokenizer"):
            if getattr(self, name) is not None and not callable(getattr(self, name)):
                raise ValueError(f"{name} must be None or a function, got {getattr(self, name)!r}")
        if self.token_pattern is not None and not isinstance(self.token_pattern, str):
            raise ValueError(f"token_pattern must be a regular expression, got {self.token_pattern!r}")
        check_flag("binary", self.binary)
        if self.norm is not None:
            check_choice("norm", self.norm, ["l1", "l2"])
        if self.stemmer is not None:
            check_choice("stemmer", self.stemmer, ["english"])
            if self.analyzer != "word" or not self._is_native:
                raise ValueError(
                    f"stemmer={self.stemmer!r} needs words that the core reads: analyzer='word' with a pattern such as "
                    r"'\w+', and no functions"
                )
        self._stop_words()

    def _stop_words(self) -> list[str]:
        words = self.stop_words
        if words is None or self.analyzer != "word":
            return []
        if words == "english":
            try:
                from sklearn.feature_extraction.text import ENGLISH_STOP_WORDS
            except ImportError as error:
                raise ImportError("stop_words='english' is scikit-learn's list: pip install scikit-learn") from error
            return sorted(ENGLISH_STOP_WORDS)
        if isinstance(words, str) or not isinstance(words, Iterable) or not all(isinstance(w, str) for w in words):
            raise ValueError(f"stop_words must be None, 'english' or a list of words, got {words!r:.60}")
        return list(dict.fromkeys(words))

    @property
    def _is_native(self) -> bool:
        """Whether the core reads the texts itself."""
        if callable(self.analyzer) or callable(self.strip_accents) or self.preprocessor is not None:
            return False
        return self.analyzer != "word" or (self.tokenizer is None and self._token() is not None)

    def _token(self) -> tuple[str, int] | None:
        pattern = self.token_pattern
        return None if pattern is None else _PATTERNS.get(pattern.removeprefix("(?u)"))

    def _new_reader(self) -> _core.TextReader:
        """A reader without columns. Where texts are not for the core, it only keeps the vocabulary."""
        is_native = self._is_native
        token, min_length = (self._token() if is_native and self.analyzer == "word" else None) or ("word", 1)
        return _core.TextReader(
            kind=self.analyzer if is_native else "word",
            token=token,
            min_length=min_length,
            lowercase=self.lowercase,
            strip_accents=(self.strip_accents or "") if is_native else "",
            min_n=self.ngram_range[0],
            max_n=self.ngram_range[1],
            stop_words=self._stop_words(),
            stems=self.stemmer is not None,
        )

    def _analysis(self) -> dict[str, Any]:
        """The parameters that scikit-learn's vectorizers share with these."""
        names = ["input", "encoding", "decode_error", "strip_accents", "lowercase", "preprocessor", "tokenizer"]
        names += ["analyzer", "stop_words", "token_pattern", "ngram_range", "binary", "norm"]
        params = {name: getattr(self, name) for name in names} | {"dtype": np.float32}
        return params | {"ngram_range": tuple(self.ngram_range)}

    def _texts(self, texts: Iterable[Any]) -> Any:
        """The texts as a list; those of a file, which come in chunks, as they are: see `chunks_of`."""
        if hasattr(texts, "text_chunks") and self.input == "content":
            return texts
        if isinstance(texts, str | bytes) or not isinstance(texts, Iterable):
            raise ValueError(f"texts must be a list or another iterable of strings, got {texts!r:.60}; wrap it: [text]")
        rows = texts if type(texts) is list else list(texts)
        if self.input == "content" and (_core.holds_only_str(rows) or bytes not in set(map(type, rows))):
            return rows
        return [self._decoded(row) for row in rows]

    def _decoded(self, row: Any) -> Any:
        if self.input == "filename":
            with open(row, "rb") as file:
                row = file.read()
        elif self.input == "file":
            row = row.read()
        return row.decode(self.encoding, self.decode_error) if isinstance(row, bytes) else row

    def _saved_params(self) -> dict[str, Any]:
        """The parameters as JSON values; functions cannot be saved."""
        params = self.get_params()
        for name in ("analyzer", "preprocessor", "tokenizer", "strip_accents"):
            if callable(params.get(name)):
                raise ValueError(
                    f"the vectorizer's {name} is a function, which cannot be saved; "
                    f"apply it to the texts first and use a built-in {name}"
                )
        if params["input"] != "content":
            raise ValueError(f'the vectorizer\'s input must be "content", so that it takes texts, got {self.input!r}')
        if params["stop_words"] is not None and params["stop_words"] != "english":
            params["stop_words"] = list(params["stop_words"])
        for name, value in params.items():
            params[name] = value.item() if isinstance(value, np.generic) else value
        return params | {"ngram_range": list(self.ngram_range), "n_jobs": None}

    @classmethod
    def _from_saved_params(cls, params: dict[str, Any]) -> Any:
        params = dict(params)
        if unknown := set(params) - set(cls._get_param_names()):
            raise ValueError(f"the saved {cls.__name__} has unknown parameters: {', '.join(sorted(unknown))}")
        if params.get("input", "content") != "content":
            raise ValueError(f"the saved {cls.__name__} must read text")
        if isinstance(params.get("ngram_range"), list):
            params["ngram_range"] = tuple(params["ngram_range"])
        vectorizer = cls(**params)
        vectorizer.check_parameters()
        if vectorizer.token_pattern is not None:
            try:
                re.compile(vectorizer.token_pattern)
            except re.error as error:
                raise ValueError(f"the saved token_pattern is no regular expression: {error}") from None
        return vectorizer


def check_terms(owner: str, text: NDArray[Any], offsets: NDArray[Any]) -> None:
    """Reject the terms of a damaged model file."""
    if text.dtype != np.uint8 or offsets.dtype != np.int64 or text.ndim != 1 or offsets.ndim != 1:
        raise ValueError(f"the saved {owner} needs terms as a 1-D uint8 array and their offsets as a 1-D int64 array")
    try:
        text.tobytes().decode("utf-8", "surrogatepass")
    except UnicodeDecodeError as error:
        raise ValueError(f"the terms of the saved {owner} are damaged ({error}); copy the file again") from None


def chunks_of(texts: Any) -> Iterator[list[Any]]:
    """The texts as lists: those of a file (`text_chunks`) as they are read, so that not all are in memory."""
    if hasattr(texts, "text_chunks"):
        yield from texts.text_chunks()
    else:
        yield texts


def rows_in_chunks(
    texts: Any, read: Callable[[list[Any]], tuple[NDArray[Any], NDArray[Any], NDArray[Any]]]
) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any]]:
    """The core's rows of all texts, chunk by chunk."""
    if not hasattr(texts, "text_chunks"):
        return read(texts)
    lengths, indices, values = [np.zeros(1, np.int64)], [np.zeros(0, np.int32)], [np.zeros(0, np.float32)]
    for chunk in texts.text_chunks():
        indptr, columns, found = read(chunk)
        lengths.append(np.diff(indptr))
        indices.append(columns)
        values.append(found)
    return np.cumsum(np.concatenate(lengths)), _joined(indices), _joined(values)


def _joined(parts: list[NDArray[Any]]) -> NDArray[Any]:
    """All parts in one array; each part is freed as soon as it is copied."""
    whole = np.empty(sum(map(len, parts)), dtype=parts[0].dtype)
    end = len(whole)
    while parts:
        part = parts.pop()
        whole[end - len(part) : end] = part
        end -= len(part)
    return whole


def rows_of(parts: tuple[NDArray[Any], NDArray[Any], NDArray[Any]], n_columns: int) -> sparse.csr_array:
    """The core's rows as a csr_array."""
    from scipy import sparse  # not needed for single texts, and slow to import

    indptr, indices, values = parts
    shape: tuple[int, int] = len(indptr) - 1, n_columns
    if len(indices) <= np.iinfo(np.int32).max:
        return sparse.csr_array((values, indices, indptr.astype(np.int32)), shape=shape)
    rows = sparse.csr_array(shape, dtype=values.dtype)
    rows.data, rows.indices, rows.indptr = values, indices, indptr
    return rows


def sorted_rows(rows: Any) -> sparse.csr_array:
    """The rows of scikit-learn's vectorizers as ours are: a float32 csr_array with sorted indices."""
    from scipy import sparse

    found = sparse.csr_array(rows).astype(np.float32, copy=False)
    found.sort_indices()
    return found
