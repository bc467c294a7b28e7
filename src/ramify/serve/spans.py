"""The parts of a text that support a label, to be marked on the page."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Mapping
from typing import Any

_WORD = re.compile(r"\w+")


def marked_spans(text: str, explanation: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Where the features that an explanation names occur in the text, with what they add along the path.

    >>> path = [{"contributions": [{"feature": "chest", "value": 0.5}, {"feature": "cold", "value": -0.2}]}]
    >>> marked_spans("Chest pain, cold", {"paths": [path]})
    [{'start': 0, 'end': 5, 'value': 0.5}, {'start': 12, 'end': 16, 'value': -0.2}]
    """
    weights: dict[str, float] = defaultdict(float)
    for path in explanation.get("paths", []):
        for step in path:
            for contribution in step["contributions"]:
                weights[contribution["feature"]] += contribution["value"]
    words = [(found.start(), found.end(), found[0].lower()) for found in _WORD.finditer(text)]
    spans = []
    for feature, value in weights.items():
        for term in feature.split(" | "):  # words that share a hash
            parts = [part.lower() for part in _WORD.findall(term)]
            if not parts or not value:
                continue
            for place in range(len(words) - len(parts) + 1):
                if [word for _, _, word in words[place : place + len(parts)]] == parts:
                    spans.append({"start": words[place][0], "end": words[place + len(parts) - 1][1], "value": value})
    return sorted(spans, key=lambda span: (span["start"], -span["end"]))
