"""What explanations of all methods share: a label with its probability, and the parts of a score."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from rich.text import Text
    from rich.tree import Tree


class Naming(Protocol):
    """The part of a schema that explanations need."""

    n_features: int

    def label_of(self, column: int) -> Any: ...
    def labels_of(self, columns: Sequence[int] | NDArray[np.integer]) -> list[Any]: ...
    def label_name(self, column: int) -> str: ...
    def feature_names_of(self, columns: NDArray[np.integer]) -> list[str]: ...


@dataclass(frozen=True)
class Wording:
    """How a raw explanation is put into words: names from the schema, the row's own terms, features shown per step."""

    schema: Naming
    terms: Mapping[int, str]
    top: int

    def score_parts(self, features: NDArray[np.int32], added: NDArray[np.float32]) -> dict[str, Any]:
        """A step's `score`, `bias`, `contributions` (the largest first) and `rest`, the sum of the others.

        The bias is any feature outside of the schema's columns.
        """
        is_bias = (features < 0) | (features >= self.schema.n_features)
        bias = float(added[is_bias].sum(dtype=np.float64))
        features, of_features = features[~is_bias], added[~is_bias].astype(np.float64)
        order = np.argsort(-np.abs(of_features), kind="stable")[: self.top]
        known = self.schema.feature_names_of(features[order])
        names = [self.terms.get(int(f)) or name for f, name in zip(features[order], known, strict=True)]
        total = float(of_features.sum())
        return {
            "score": total + bias,
            "bias": bias,
            "contributions": [Contribution(*pair) for pair in zip(names, of_features[order].tolist(), strict=True)],
            "rest": total - float(of_features[order].sum()),
        }

    def head(self, column: int, probability: float) -> dict[str, Any]:
        """What every explanation starts with."""
        return {
            "label": self.schema.label_of(column),
            "name": self.schema.label_name(column),
            "probability": probability,
        }


class Span(NamedTuple):
    """A place in a text, in characters: from `start` to before `end`.

    `weight` says how much it supports the label: by how much the label's log-odds would fall without its term. Below
    zero it speaks against the label.
    """

    start: int
    end: int
    weight: float


class RaisedBy(NamedTuple):
    """A label below in the hierarchy whose probability is larger, and what the raised label had on its own."""

    label: Any
    name: str
    own_probability: float


@dataclass(frozen=True)
class ExplainedLabel:
    """What every explanation starts with: a label, its name, and its probability for the row.

    If the row was a text, `text` is that text and `spans` are the places for and against the label, in its order; a
    notebook shows them marked. `raised_by` says that the hierarchy gave the label the probability of one below it; the
    rest explains what the label has on its own.
    """

    label: Any
    name: str
    probability: float
    text: str = field(default="", kw_only=True, repr=False)
    spans: list[Span] = field(default_factory=list, kw_only=True)
    raised_by: RaisedBy | None = field(default=None, kw_only=True)

    def _headline(self) -> str:
        head = f"{title(self.label, self.name)}: probability {self.probability:.4f}"
        return head if self.raised_by is None else f"{head}, {self._raise()}"

    def _raise(self) -> str:
        assert self.raised_by is not None
        label, name, own = self.raised_by
        return f"raised from {own:.4f} by {title(label, name)}, which is below it"

    def _rich_root(self) -> Tree:
        from rich.text import Text
        from rich.tree import Tree

        head = Text.assemble(
            (f"{self.probability:.1%}", "bold cyan"), "  ", (str(self.label), "bold"), f"  {self.name}"
        )
        if self.raised_by is not None:
            head.append(f"  {self._raise()}", style="italic")
        return Tree(head, guide_style="dim")

    def _plain_head(self) -> dict[str, Any]:
        head: dict[str, Any] = {"label": self.label, "name": self.name, "probability": self.probability}
        if self.raised_by is not None:
            head["raised_by"] = self.raised_by._asdict()
        return head | ({"spans": [span._asdict() for span in self.spans]} if self.spans else {})

    def to_dict(self) -> dict[str, Any]:
        """Plain values, ready for JSON."""
        return self._plain_head()

    def __str__(self) -> str:
        return self._headline()

    def __rich__(self) -> Tree:
        return self._rich_root()

    def _repr_pretty_(self, printer: Any, cycle: bool) -> None:
        """What a notebook shows: the text that `print` writes."""
        printer.text(str(self))

    def _repr_html_(self) -> str | None:
        """What a notebook shows of a text, instead of the words alone."""
        if not self.spans:
            return None
        from ramify.explain.html import explanation_html

        headline, _, details = str(self).partition("\n")
        return explanation_html(headline, self.text, self.spans, details)


class RawExplanation(Protocol):
    """What `Model.explain` returns: columns and numbers, which `describe` puts into words."""

    def describe(self, wording: Wording, column: int) -> ExplainedLabel: ...


class Contribution(NamedTuple):
    """What a feature of the row added to a node's score."""

    feature: str
    value: float


def title(label: Any, name: str) -> str:
    """A label with its name, if it has one."""
    return f"{label} {name}".rstrip()


def format_parts(step: Any) -> str:
    """A step's contributions in a line."""
    parts = [f"{feature} {value:+.2f}" for feature, value in step.contributions]
    if abs(step.rest) >= 0.005:
        parts.append(f"others {step.rest:+.2f}")
    if step.bias:
        parts.append(f"bias {step.bias:+.2f}")
    return ", ".join(parts) if parts else "no feature of the row is known here"


def coloured(step: Any) -> Text:
    """The same line for a terminal: contributions above zero in green, below zero in red."""
    from rich.text import Text

    text = Text(style="dim") if not step.contributions else Text()
    for place, part in enumerate(format_parts(step).split(", ")):
        sign = part.rpartition(" ")[2][:1]
        text.append("  " * (place > 0))
        # No-break spaces keep a feature and its number on one line.
        text.append(part.replace(" ", "\u00a0"), style={"+": "green", "-": "red"}.get(sign, ""))
    return text


def plain(step: Any) -> dict[str, Any]:
    """A step as plain values, ready for JSON."""
    return asdict(step) | {"contributions": [contribution._asdict() for contribution in step.contributions]}
