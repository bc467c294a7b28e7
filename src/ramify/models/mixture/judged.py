"""What the parts of a mixture say about rows that they have not learned, beside the truth."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from ramify.base.stream_schema import Piece
from ramify.data.csr import csr_rows
from ramify.models.mixture.entries import places, union
from ramify.models.mixture.model import FIRST_CANDIDATES, MixtureModel
from ramify.models.mixture.stacking import Judged


class JudgedEntries(NamedTuple):
    """Each part's estimates of the labels that a part proposes or a row has, and whether the row has them."""

    candidates: sparse.csr_array
    is_proposed: NDArray[np.bool_]
    P: NDArray[np.float64]  # (entries, parts)
    y: NDArray[np.float64]
    row_weight: NDArray[np.float64] | None

    @property
    def entry_weight(self) -> NDArray[np.float64] | None:
        return None if self.row_weight is None else np.repeat(self.row_weight, np.diff(self.candidates.indptr))

    def proposals(self, means: NDArray[np.float64]) -> tuple[Judged, NDArray[np.float64]]:
        """The labels that parts propose, of rows that have any, and their means."""
        kept = self.is_proposed
        n_kept = np.diff(np.concatenate([[0], np.cumsum(kept)])[self.candidates.indptr])
        begin = np.concatenate([[0], np.cumsum(n_kept[n_kept > 0])])
        row_weight = np.ones(len(n_kept)) if self.row_weight is None else self.row_weight
        columns = self.candidates.indices[kept].astype(np.int64)
        return Judged(begin, columns, self.P[kept], self.y[kept], row_weight[n_kept > 0]), means[kept]


def judged_entries(model: MixtureModel, piece: Piece, n_threads: int) -> JudgedEntries:
    X, Y, weight = piece
    Y = csr_rows(np.ones(Y.nnz, np.float32), Y.indices, Y.indptr, (Y.shape[0], model.n_labels))
    answers = model.answers(X, FIRST_CANDIDATES, n_threads)
    candidates = union([answers.candidates, Y], model.n_labels)
    return JudgedEntries(
        candidates,
        places(candidates, answers.candidates) >= 0,
        model.estimates(X, candidates, answers, n_threads),
        (places(candidates, Y) >= 0).astype(np.float64),
        None if weight is None else weight.astype(np.float64),
    )
