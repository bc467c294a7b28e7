"""A mixture: what each part says about a label, what it adds to the mean, and why."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

from ramify.explain.score import ExplainedLabel, RawExplanation, Wording

if TYPE_CHECKING:
    from rich.tree import Tree


@dataclass(frozen=True)
class ExplainedPart:
    """A part's probability, its weight, what it adds (see MixtureExplanation), and its own explanation."""

    name: str
    weight: float
    probability: float
    contribution: float
    explanation: ExplainedLabel

    def _line(self, is_score: bool) -> str:
        if is_score:
            return f"{self.name}: {self.probability:.4f}, adds {self.contribution:+.2f} to the score"
        return f"{self.name}: {self.probability:.4f}, adds {self.contribution:.4f} (weight {self.weight:.3f})"


@dataclass(frozen=True)
class MixtureExplanation(ExplainedLabel):
    """A label's probability as the sum of what the parts contribute.

    Where the parts' probabilities are not averaged but stacked, they contribute to the score: the logarithm of the
    probability, or with several labels per row of its odds. It is `base` plus the contributions, each compared with the
    mean of the row's candidates; the label's frequency is a part of `base`.
    """

    parts: list[ExplainedPart]
    base: float | None = None

    def to_dict(self) -> dict[str, Any]:
        """Plain values, ready for JSON."""
        base = {} if self.base is None else {"base": self.base}
        return (
            self._plain_head()
            | base
            | {
                "parts": [
                    {
                        "name": part.name,
                        "weight": part.weight,
                        "probability": part.probability,
                        "contribution": part.contribution,
                        "explanation": part.explanation.to_dict(),
                    }
                    for part in self.parts
                ]
            }
        )

    def __str__(self) -> str:
        lines = [self._headline()]
        for part in self.parts:
            lines.append(part._line(self.base is not None))
            lines += [f"  {line}" for line in str(part.explanation).splitlines()[1:]]
        return "\n".join(lines)

    def __rich__(self) -> Tree:
        from rich.text import Text

        root = self._rich_root()
        for part in self.parts:
            branch = root.add(Text(part._line(self.base is not None), "bold"))
            branch.children.extend(part.explanation.__rich__().children)
        return root


class RawPart(NamedTuple):
    """A part's numbers, and its own raw explanation."""

    name: str
    weight: float
    probability: float
    contribution: float
    raw: RawExplanation


@dataclass(frozen=True)
class RawMixture:
    """The label's probability, and the parts that count."""

    probability: float
    parts: list[RawPart]
    base: float | None = None

    def describe(self, wording: Wording, column: int) -> MixtureExplanation:
        return MixtureExplanation(
            **wording.head(column, self.probability),
            parts=[
                ExplainedPart(
                    part.name,
                    part.weight,
                    part.probability,
                    part.contribution,
                    part.raw.describe(wording, column),
                )
                for part in self.parts
            ],
            base=self.base,
        )
