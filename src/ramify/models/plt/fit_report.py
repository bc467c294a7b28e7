"""What a label tree's training chose, and from which values."""

from __future__ import annotations

from typing import Any, NamedTuple

from ramify.common.validation import check_flag, check_integer, check_number


class Trial(NamedTuple):
    """A setting that was tried, with its loss on held-out rows (nan: there was nothing to choose)."""

    C: float
    positive_weight: float
    n_epochs: int
    loss: float

    @classmethod
    def checked(cls, stored: Any) -> Trial:
        """Take back what was stored in a model file, or raise ValueError."""
        if not isinstance(stored, list) or len(stored) != 4:
            raise ValueError(f"a trial of the solver must hold four numbers, got {stored!r}")
        C, positive_weight, n_epochs, loss = stored
        return cls(
            check_number("C", C, above=0),
            check_number("positive_weight", positive_weight, above=0),
            check_integer("n_epochs", n_epochs, at_least=1),
            check_number("loss", loss),
        )


class Tried(NamedTuple):
    """A change for dense rows: the share of held-out rows whose best label is true, without it and with it."""

    what: str
    before: float
    after: float
    is_taken: bool

    def __str__(self) -> str:
        verb = "used" if self.is_taken else "not used"
        return f"{self.what}: {verb}; {self.after:.1%} of held-out rows right with it, {self.before:.1%} without"

    @classmethod
    def checked(cls, stored: Any) -> Tried:
        """Take back what was stored in a model file, or raise ValueError."""
        if not isinstance(stored, list) or len(stored) != 4 or not isinstance(stored[0], str):
            raise ValueError(f"a choice for dense rows must hold a text, two shares and a flag, got {stored!r}")
        before, after = (check_number("a share of held-out rows", share) for share in stored[1:3])
        return cls(stored[0], before, after, check_flag("is_taken", stored[3]))


class FitReport(NamedTuple):
    """The solver's settings, and every setting that was tried with its loss on held-out rows, in text the lowest first.

    >>> print(FitReport(1.0, 2.0, 20, (Trial(1.0, 2.0, 5, 80.0), Trial(1.0, 2.0, 20, 76.0))))
    C = 1, positive_weight = 2, n_epochs = 20, chosen on held-out rows from 2 settings:
      C = 1      positive_weight = 2    n_epochs = 20   loss 100.0 %
      C = 1      positive_weight = 2    n_epochs = 5    loss 105.3 %
    """

    C: float
    positive_weight: float
    n_epochs: int
    trials: tuple[Trial, ...]
    choices: tuple[Tried, ...] = ()

    def __str__(self) -> str:
        return "\n".join([*map(str, self.choices), self._solver()])

    def _solver(self) -> str:
        used = f"C = {self.C:g}, positive_weight = {self.positive_weight:g}, n_epochs = {self.n_epochs}"
        if len(self.trials) < 2:
            return f"{used}, as given"
        ranked = sorted(self.trials, key=lambda trial: trial.loss)
        lines = [
            f"  C = {trial.C:<6g} positive_weight = {trial.positive_weight:<4g} n_epochs = {trial.n_epochs:<4} "
            f"loss {100 * trial.loss / ranked[0].loss if ranked[0].loss else 100:.1f} %"
            for trial in ranked
        ]
        return "\n".join([f"{used}, chosen on held-out rows from {len(ranked)} settings:", *lines])
