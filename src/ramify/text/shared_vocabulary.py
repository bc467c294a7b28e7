"""One vocabulary from texts in several places: terms are counted where the texts are, and the counts are merged."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ramify.text.vectorizer import TextVectorizer, _arrays_of


@dataclass(frozen=True)
class TermCounts:
    """For each term of some texts, in order: the texts that have it, and its occurrences."""

    terms: list[str]
    rows_with: NDArray[np.int64]
    occurrences: NDArray[np.int64]
    n_rows: int

    def n_occurrences(self) -> NDArray[np.int64]:
        return self.occurrences


def can_share(vectorizer: object) -> bool:
    """Whether a vectorizer learns its vocabulary from counts: the library's own with the core's reading."""
    return type(vectorizer) is TextVectorizer and vectorizer._is_native and vectorizer.vocabulary is None


def count_terms(vectorizer: TextVectorizer, texts: list[str]) -> TermCounts:
    """The terms of some of the texts."""
    vectorizer.check_parameters()
    reader = vectorizer._new_reader()
    counted = reader.new_corpus(1)
    reader.count(counted, vectorizer._texts(texts))
    counted.finish()
    reader.adopt(counted, np.arange(counted.n_terms))
    return TermCounts(reader.terms(), counted.n_rows_with(), counted.n_occurrences(), counted.n_rows)


def learn_terms(vectorizer: TextVectorizer, counts: Sequence[TermCounts]) -> None:
    """Fit a vectorizer as `fit` would on all the texts together.

    >>> texts = ["red apple", "green pear", "red cherry"]
    >>> shared = TextVectorizer()
    >>> learn_terms(shared, [count_terms(shared, texts[:2]), count_terms(shared, texts[2:])])
    >>> bool((shared.transform(texts) != TextVectorizer().fit_transform(texts)).nnz)
    False
    """
    merged = _merged(counts)
    if not merged.terms:
        raise ValueError("empty vocabulary; perhaps the documents only contain stop words")
    kept = vectorizer._kept(merged.rows_with, merged)
    reader = vectorizer._new_reader()
    reader.set_vocabulary(*_arrays_of([merged.terms[rank] for rank in kept]))
    vectorizer._adopt(reader, vectorizer._idf_of(merged.rows_with[kept], merged.n_rows), is_fixed=False)


def _merged(counts: Sequence[TermCounts]) -> TermCounts:
    terms = sorted(set().union(*(part.terms for part in counts)))
    rank = {term: k for k, term in enumerate(terms)}
    rows_with, occurrences = np.zeros(len(terms), np.int64), np.zeros(len(terms), np.int64)
    for part in counts:
        places = np.fromiter((rank[term] for term in part.terms), np.int64, len(part.terms))
        rows_with[places] += part.rows_with
        occurrences[places] += part.occurrences
    return TermCounts(terms, rows_with, occurrences, sum(part.n_rows for part in counts))
