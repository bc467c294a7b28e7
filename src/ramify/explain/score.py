"""What explanations of all kinds of trees share: a label with its probability, and what a score is made of."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ramify.base.naming import feature_names

if TYPE_CHECKING:
    from rich.tree import Tree


@dataclass(frozen=True)
class ExplainedLabel:
    """What every explanation begins with: a label, what it is called, and its probability for the row."""

    label: Any
    name: str
    probability: float

    def _headline(self) -> str:
        return f"{title(self.label, self.name)}: probability {self.probability:.4f}"

    def _rich_root(self) -> Tree:
        from rich.text import Text
        from rich.tree import Tree

        head = Text.assemble(
            (f"{self.probability:.1%}", "bold cyan"), "  ", (str(self.label), "bold"), f"  {self.name}"
        )
        return Tree(head, guide_style="dim")

    def _plain_head(self) -> dict[str, Any]:
        return {"label": self.label, "name": self.name, "probability": self.probability}


class Contribution(NamedTuple):
    """What a feature of the row added to a node's score."""

    feature: str
    value: float


def made_of(
    model: Any, features: NDArray[np.int32], added: NDArray[np.float32], top: int, terms: Mapping[int, str]
) -> dict[str, Any]:
    """A step's `score`, `bias`, `contributions` (the largest first) and `rest`, what the others added."""
    is_bias = features >= model.n_features_in_
    bias = float(added[is_bias].sum(dtype=np.float64))
    features, of_features = features[~is_bias], added[~is_bias].astype(np.float64)
    order = np.argsort(-np.abs(of_features), kind="stable")[:top]
    names = [
        terms.get(int(f)) or name
        for f, name in zip(features[order], feature_names(model, features[order]), strict=True)
    ]
    total = float(of_features.sum())
    return {
        "score": total + bias,
        "bias": bias,
        "contributions": [Contribution(*pair) for pair in zip(names, of_features[order].tolist(), strict=True)],
        "rest": total - float(of_features[order].sum()),
    }


def title(label: Any, name: str) -> str:
    """A label with its name, if it has one."""
    return f"{label} {name}".rstrip()


def words(step: Any) -> str:
    """A step's contributions in a line."""
    parts = [f"{feature} {value:+.2f}" for feature, value in step.contributions]
    if abs(step.rest) >= 0.005:
        parts.append(f"others {step.rest:+.2f}")
    if step.bias:
        parts.append(f"bias {step.bias:+.2f}")
    return ", ".join(parts) if parts else "no feature of the row is known here"


def coloured(step: Any) -> Any:
    """The same line for a terminal: what pushed up is green, what pulled down is red."""
    from rich.text import Text

    text = Text(style="dim") if not step.contributions else Text()
    for place, part in enumerate(words(step).split(", ")):
        sign = part.rpartition(" ")[2][:1]
        text.append("  " * (place > 0))
        # No-break spaces keep a feature and its number on one line.
        text.append(part.replace(" ", "\u00a0"), style={"+": "green", "-": "red"}.get(sign, ""))
    return text


def plain(step: Any) -> dict[str, Any]:
    """A step as plain values, ready for JSON."""
    return asdict(step) | {"contributions": [contribution._asdict() for contribution in step.contributions]}
