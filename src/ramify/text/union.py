"""Several vectorizers side by side, such as words and parts of words."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ramify.common.validation import check_number
from ramify.text.parameters import Parameters, not_fitted
from ramify.text.vectorizer import TextVectorizer

if TYPE_CHECKING:
    from scipy import sparse
    from typing_extensions import Self


class UnionTextVectorizer(Parameters):
    """The columns of several TextVectorizers, one after the other.

    Parameters
    ----------
    vectorizers : list of TextVectorizer
        What reads the texts.
    weights : list of float or None
        Factors for their values; None: 1.
    n_jobs : int or None
        Number of threads; the result does not depend on it.

    >>> words, parts = TextVectorizer(), TextVectorizer(analyzer="char_wb", ngram_range=(3, 3))
    >>> union = UnionTextVectorizer([words, parts]).fit(["red", "redder"])
    >>> union.get_feature_names_out().tolist()
    ['red', 'redder', ' re', 'dde', 'der', 'ed ', 'edd', 'er ', 'red']
    """

    def __init__(
        self,
        vectorizers: Sequence[TextVectorizer],
        *,
        weights: Sequence[float] | None = None,
        n_jobs: int | None = None,
    ) -> None:
        self.vectorizers = vectorizers
        self.weights = weights
        self.n_jobs = n_jobs

    def set_params(self, **params: Any) -> Self:
        """Change parameters; they take effect with the next `fit`, `n_jobs` at once."""
        super().set_params(**params)
        for part in self.__dict__.get("parts_", []):
            part.set_params(n_jobs=self.n_jobs)
        return self

    # --- learning and reading -------------------------------------------------------------------------------------

    def fit(self, texts: Iterable[str], y: Any = None) -> Self:
        """Learn the vocabularies; y is ignored."""
        self.fit_transform(texts)
        return self

    def fit_transform(self, texts: Iterable[str], y: Any = None) -> sparse.csr_array:
        """Learn the vocabularies and return the rows of the texts."""
        parts, weights = self._new_parts()
        rows = texts if isinstance(texts, list) or hasattr(texts, "text_chunks") else list(texts)
        pieces = [part.fit_transform(rows) for part in parts]
        self.parts_, self._factors = parts, weights
        self._starts = _starts([piece.shape[1] for piece in pieces])
        return self._side_by_side(pieces)

    def transform(self, texts: Iterable[str]) -> sparse.csr_array:
        """Return a row for each text: a float32 csr_array with sorted indices."""
        rows = texts if isinstance(texts, list | str) or hasattr(texts, "text_chunks") else list(texts)
        return self._side_by_side([part.transform(rows) for part in self._parts()])

    def transform_one(self, text: str) -> tuple[NDArray[np.int32], NDArray[np.float32]]:
        """Return the columns and values of one text."""
        found = [part.transform_one(text) for part in self._parts()]
        columns = [columns + start for (columns, _), start in zip(found, self._starts, strict=False)]
        values = [values * factor for (_, values), factor in zip(found, self._factors, strict=True)]
        return np.concatenate(columns).astype(np.int32), np.concatenate(values).astype(np.float32)

    def occurrences(self, text: str) -> list[tuple[int, int, int, str]]:
        """Return every occurrence of a known term: column, first character, the one after the last, and the term."""
        return [
            (column + int(start), first, end, term)
            for part, start in zip(self._parts(), self._starts, strict=False)
            for column, first, end, term in part.occurrences(text)
        ]

    def get_feature_names_out(self, input_features: Any = None) -> NDArray[np.object_]:
        """Return the terms in order of columns; the same term may be in several vectorizers."""
        return np.concatenate([part.get_feature_names_out() for part in self._parts()])

    def term_at(self, column: int) -> str:
        """Return the term of a column."""
        parts = self._parts()
        place = int(np.searchsorted(self._starts, column, side="right")) - 1
        return parts[place].term_at(column - int(self._starts[place]))

    def __sklearn_is_fitted__(self) -> bool:
        return "parts_" in self.__dict__

    # --- internals ------------------------------------------------------------------------------------------------

    def _new_parts(self) -> tuple[list[TextVectorizer], list[float]]:
        given = self.vectorizers
        if not isinstance(given, list | tuple) or not given or not all(type(v) is TextVectorizer for v in given):
            raise ValueError(f"vectorizers must be a list of TextVectorizer(), got {given!r:.80}")
        weights = [1.0] * len(given) if self.weights is None else self.weights
        if not isinstance(weights, list | tuple) or len(weights) != len(given):
            raise ValueError(f"weights must be a list of {len(given)} numbers, one per vectorizer, got {weights!r:.80}")
        factors = [check_number(f"weights[{place}]", weight) for place, weight in enumerate(weights)]
        if min(factors) <= 0:
            raise ValueError(f"weights must be above 0, got {weights!r:.80}")
        return [TextVectorizer(**v.get_params()).set_params(n_jobs=self.n_jobs) for v in given], factors

    def _parts(self) -> list[TextVectorizer]:
        if "parts_" not in self.__dict__:
            raise not_fitted(type(self).__name__)
        return self.parts_

    def _side_by_side(self, pieces: list[Any]) -> sparse.csr_array:
        from scipy import sparse

        scaled = [piece * np.float32(factor) for piece, factor in zip(pieces, self._factors, strict=True)]
        return sparse.csr_array(sparse.hstack(scaled, format="csr", dtype=np.float32))

    # --- model files ----------------------------------------------------------------------------------------------

    def state(self) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
        """Return the fitted vectorizer as a dict for JSON and plain arrays."""
        states = [part.state() for part in self._parts()]
        meta = {
            "class": type(self).__name__,
            "params": {"weights": [float(factor) for factor in self._factors]},
            "parts": [part for part, _ in states],
        }
        arrays = {f"{k}_{name}": array for k, (_, arrays) in enumerate(states) for name, array in arrays.items()}
        return meta, arrays

    @classmethod
    def from_state(cls, meta: dict[str, Any], arrays: dict[str, NDArray[Any]]) -> Self:
        """Restore a vectorizer from `state`; a damaged state raises ValueError."""
        metas = meta.get("parts")
        if not isinstance(metas, list) or not all(isinstance(part, dict) for part in metas):
            raise ValueError(f"the saved {cls.__name__} has no parts")
        if any(part.get("class") != "TextVectorizer" or not isinstance(part.get("params"), dict) for part in metas):
            raise ValueError(f"the parts of a saved {cls.__name__} must be TextVectorizers")
        own = [
            {name.removeprefix(f"{k}_"): array for name, array in arrays.items() if name.startswith(f"{k}_")}
            for k in range(len(metas))
        ]
        parts = [TextVectorizer.from_state(part, found) for part, found in zip(metas, own, strict=True)]
        union = cls(parts, weights=meta["params"].get("weights"))
        try:
            _, union._factors = union._new_parts()
        except ValueError as error:
            raise ValueError(f"the saved {cls.__name__} does not work: {error}") from error
        union.parts_ = parts
        union._starts = _starts([part._reader.n_columns for part in parts])
        return union


def _starts(widths: list[int]) -> NDArray[np.int64]:
    """The first column of each vectorizer, and the number of all columns."""
    return np.concatenate([[0], np.cumsum(widths)]).astype(np.int64)
