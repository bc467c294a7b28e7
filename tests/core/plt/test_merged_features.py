"""Features that occur in one row of a node only: the solver sees them as one feature, and the model does not change."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from ramify import PLTClassifier
from ramify.models.plt.solver import PLTSolver

N_ROWS, N_SHARED, N_OWN = 60, 12, 5


def rows(random_state: int = 0) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    """Features that rows share, and some that only one row has; signs differ."""
    rng = np.random.default_rng(random_state)
    shared = np.where(rng.random((N_ROWS, N_SHARED)) < 0.4, rng.normal(size=(N_ROWS, N_SHARED)), 0)
    return shared.astype(np.float32), rng.normal(size=(N_ROWS, N_OWN)).astype(np.float32)


def spread_out(shared: NDArray[np.float32], own: NDArray[np.float32]) -> sp.csr_array:
    """Every row's own features get columns of their own, before and after the shared ones."""
    n, width = own.shape
    columns = sp.block_diag([own[i : i + 1] for i in range(n)], format="csr")
    half = n * width // 2
    return sp.csr_array(sp.hstack([columns[:, :half], shared, columns[:, half:]]), dtype=np.float32)


def fitted(X: sp.csr_array, Y: NDArray[np.int64], loss: str = "squared_hinge") -> PLTClassifier:
    solver = PLTSolver(loss=loss, C=1.0, positive_weight=1.0, n_epochs=20, tol=0.0, prune=0.0)
    return PLTClassifier(
        tree="one_level", solver=solver, calibrate=False, normalize=False, bias=1.0, standardize=False, random_state=0
    ).fit(X, Y)


def test_own_features_learn_what_one_feature_of_their_length_learns() -> None:
    shared, own = rows()
    Y = (np.random.default_rng(1).random((N_ROWS, 6)) < 0.3).astype(np.int64)
    length = np.linalg.norm(own, axis=1, keepdims=True)
    for loss in ("squared_hinge", "logistic"):
        many, one = fitted(spread_out(shared, own), Y, loss), fitted(spread_out(shared, length), Y, loss)
        p_many = many.predict_proba(spread_out(shared, own), top_k=6).toarray()
        p_one = one.predict_proba(spread_out(shared, length), top_k=6).toarray()
        np.testing.assert_allclose(p_many, p_one, atol=0.02)  # weights have eight bits
        assert np.ptp(p_many) > 0.3


def test_a_row_with_some_of_them_gets_their_share_of_the_score() -> None:
    shared, own = rows()
    Y = (np.arange(N_ROWS)[:, None] % 4 == np.arange(4)).astype(np.int64)
    clf = fitted(spread_out(shared, own), Y)
    scale = clf.trees_[0].scale
    bias = sp.csr_array((1, clf.n_features_in_), dtype=np.float32)

    def logit(X: sp.csr_array) -> NDArray[np.float64]:
        p = clf.predict_proba(X, top_k=4).toarray()[0].astype(np.float64)
        return np.log(p / (1 - p)) - base

    base = np.zeros(4)
    base = logit(bias)
    parts = []
    for k in range(N_OWN):
        only = np.zeros_like(own)
        only[7, k] = own[7, k]
        parts.append(logit(spread_out(np.zeros_like(shared), only)[[7]]))
    whole = np.zeros_like(own)
    whole[7] = own[7]
    np.testing.assert_allclose(np.sum(parts, axis=0), logit(spread_out(np.zeros_like(shared), whole)[[7]]), atol=0.05)
    # A weight is the row's value times one number per label, so what a feature adds goes with its square.
    np.testing.assert_allclose(
        np.array(parts) / (own[7] * scale)[:, None] ** 2,
        parts[0] / (own[7, 0] * scale) ** 2 + 0 * np.array(parts),
        rtol=0.3,
    )
