"""Probabilistic label trees, trained in batch."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ramify.models.plt.solver import PLTSolver

__all__ = ["PLTSolver"]


def __getattr__(name: str) -> Any:  # a saved model is queried without scikit-learn, which the solver's class needs
    if name == "PLTSolver":
        from ramify.models.plt.solver import PLTSolver

        return PLTSolver
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
