"""What a label tree's training chose, and from which values."""

from __future__ import annotations

from typing import Any, NamedTuple

from ramify.common.validation import check_flag, check_integer, check_number


class Setting(NamedTuple):
    """Cost of errors, weight of positives, most epochs, and the share of the duality gap that ends them (0: none)."""

    C: float
    positive_weight: float
    n_epochs: int
    gap: float = 0.0

    @classmethod
    def checked(cls, stored: Any) -> Setting:
        """Take back what was stored in a model file, or raise ValueError."""
        if not isinstance(stored, list) or len(stored) not in (3, 4):  # older files have no gap
            raise ValueError(f"a setting of the solver must hold four numbers, got {stored!r}")
        C, positive_weight, n_epochs, gap = [*stored, 0.0][:4]
        return cls(
            check_number("C", C, above=0),
            check_number("positive_weight", positive_weight, above=0),
            check_integer("n_epochs", n_epochs, at_least=1),
            check_number("gap", gap, at_least=0),
        )

    def __str__(self) -> str:
        return f"C = {self.C:g}, positive_weight = {self.positive_weight:g}, {self.convergence}"

    @property
    def convergence(self) -> str:
        """What ends the work: the gap, or else the number of epochs."""
        return f"gap = {self.gap:g}" if self.gap else f"n_epochs = {self.n_epochs}"


# Of trees that were not trained here, and of old files.
UNKNOWN = Setting(1.0, 1.0, 1)


class Trial(NamedTuple):
    """A setting that was tried, with its loss on held-out rows (nan: there was nothing to choose)."""

    setting: Setting
    loss: float

    @classmethod
    def checked(cls, stored: Any) -> Trial:
        """Take back what `stored` gave, or raise ValueError."""
        if not isinstance(stored, list) or len(stored) not in (4, 5):
            raise ValueError(f"a trial of the solver must hold five numbers, got {stored!r}")
        return cls(Setting.checked(stored[:-1]), check_number("loss", stored[-1]))

    def stored(self) -> list[float]:
        """For a model file."""
        return [*self.setting, self.loss]


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

    >>> fine, coarse = Setting(1.0, 2.0, 40, 0.005), Setting(1.0, 2.0, 40, 0.05)
    >>> print(FitReport(fine, (Trial(coarse, 80.0), Trial(fine, 76.0))))
    C = 1, positive_weight = 2, gap = 0.005, chosen on held-out rows from 2 settings:
      C = 1      positive_weight = 2    gap = 0.005    loss 100.0 %
      C = 1      positive_weight = 2    gap = 0.05     loss 105.3 %
    """

    setting: Setting
    trials: tuple[Trial, ...]
    choices: tuple[Tried, ...] = ()
    levels: tuple[Setting, ...] = ()  # of the gate, the root's children and so on, where they differ

    @property
    def C(self) -> float:
        """Cost of errors."""
        return self.setting.C

    @property
    def positive_weight(self) -> float:
        """What multiplies the cost for positive examples."""
        return self.setting.positive_weight

    @property
    def gap(self) -> float:
        """The share of the first epoch's duality gap that ended the work; 0 if it was not measured."""
        return self.setting.gap

    @property
    def n_epochs(self) -> int:
        """Most epochs."""
        return self.setting.n_epochs

    def __str__(self) -> str:
        return "\n".join([*map(str, self.choices), self._solver()])

    def _repr_pretty_(self, printer: Any, cycle: bool) -> None:
        """What a notebook shows: the text that `print` writes."""
        printer.text(str(self))

    def _solver(self) -> str:
        if len(self.trials) < 2:
            return f"{self.setting}, as given"
        ranked = sorted(self.trials, key=lambda trial: trial.loss)
        lines = [
            f"  C = {tried.C:<6g} positive_weight = {tried.positive_weight:<4g} {tried.convergence:<14} "
            f"loss {100 * loss / ranked[0].loss if ranked[0].loss else 100:.1f} %"
            for tried, loss in ranked
        ]
        other = [f"  level {level}: {of}" for level, of in enumerate(self.levels) if of != self.setting]
        return "\n".join([f"{self.setting}, chosen on held-out rows from {len(ranked)} settings:", *lines, *other])
