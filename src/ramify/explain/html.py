"""An explanation in a notebook: the text with its places marked, and below it how the probability comes about."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from html import escape
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ramify.explain.score import Span

# Red, green, blue of what speaks for the label and of what speaks against it: the two differ for the colour-blind, too.
_FOR, _AGAINST = "0, 130, 200", "230, 120, 0"
_DARKEST = 0.55  # the text stays readable on it, on light and on dark pages


def explanation_html(headline: str, text: str, spans: Sequence[Span], details: str) -> str:
    """The whole explanation; hovering over a mark shows its weight.

    >>> from ramify.explain.score import Span
    >>> print(explanation_html("cooking: probability 0.9", "1 < 2 eggs", [Span(6, 10, 2.0)], "egg +1.2"))
    <div><b>cooking: probability 0.9</b><p style="white-space: pre-wrap">1 &lt; 2 \
<mark style="color: inherit; background: rgba(0, 130, 200, 0.55)" title="+2.00">eggs</mark></p>\
<pre>egg +1.2</pre></div>
    """
    below = f"<pre>{escape(details)}</pre>" if details else ""
    marked = f'<p style="white-space: pre-wrap">{marked_html(text, spans)}</p>'
    return f"<div><b>{escape(headline)}</b>{marked}{below}</div>"


def marked_html(text: str, spans: Sequence[Span]) -> str:
    """The text with each place as dark as its weight; where places overlap, the one of the largest weight counts."""
    most = max((abs(span.weight) for span in spans), default=0.0)
    weights = [0.0] * len(text)
    for span in sorted(spans, key=lambda span: abs(span.weight)):
        weights[span.start : span.end] = [span.weight] * (span.end - span.start)
    pieces = []
    for weight, characters in itertools.groupby(zip(weights, text, strict=True), key=lambda pair: pair[0]):
        piece = escape("".join(character for _, character in characters))
        if weight:
            colour = f"{_FOR if weight > 0 else _AGAINST}, {_DARKEST * abs(weight) / most:.2f}"
            style = f"color: inherit; background: rgba({colour})"
            piece = f'<mark style="{style}" title="{weight:+.2f}">{piece}</mark>'
        pieces.append(piece)
    return "".join(pieces)
