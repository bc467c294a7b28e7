"""Labels that were probably not meant: empty, different only invisibly, missing values, or lists that are one text."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable

# How programs write a missing value. "NA" and "None" are labels, too: Namibia, a finding.
_MISSING = frozenset({"nan", "NaN", "NAN", "<NA>", "NaT", "null", "NULL", "#N/A", "N/A", "n/a"})
_LIST_STARTS = ("['", '["')
_BETWEEN = "\x1f"  # not printable, so in no tidy label


def doubts_about(labels: Iterable[str]) -> list[str]:
    """What is odd about these different labels, one sentence for each kind.

    >>> doubts_about(["Bein", "Bein "])
    ["the labels 'Bein' and 'Bein ' differ only in spaces, invisible characters or Unicode forms: write them alike"]
    >>> doubts_about(["Bein", "bein", "Übelkeit"])
    []
    """
    labels = set(labels)
    together = _BETWEEN.join(["", *labels, ""])  # faster to search than a million labels one by one
    doubts = []
    if "" in labels:
        doubts.append("one label is the empty text: leave it out where a row has no label")
    alike = None if _are_tidy(together, len(labels)) else _first_look_alikes(labels)
    if alike is not None:
        one, other = sorted(alike, key=lambda label: (len(label), label))
        doubts.append(
            f"the labels {_shown(one)} and {_shown(other)} differ only in spaces, invisible characters or Unicode "
            "forms: write them alike"
        )
    missing = min(labels & _MISSING, default=None)
    if missing is not None:
        doubts.append(f"the label {missing!r} looks like a missing value: leave it out where a row has no label")
    if any(f"{_BETWEEN}{start}" in together for start in _LIST_STARTS):
        unsplit = min(label for part in labels for label in part.split(_BETWEEN) if label.startswith(_LIST_STARTS))
        doubts.append(f"the label {unsplit!r:.60} looks like a list that was written as text: give its parts")
    return doubts


def _first_look_alikes(labels: set[str]) -> tuple[str, str] | None:
    """The first two, in alphabetic order, that become equal by tidying; most labels are tidy already."""
    seen: dict[str, str] = {}
    for label in sorted(label for label in labels if not _is_tidy(label)):
        tidied = _tidied(label)
        other = tidied if tidied in labels and tidied != label else seen.get(tidied)
        if other is not None:
            return label, other
        seen[tidied] = label
    return None


def _are_tidy(together: str, n_labels: int) -> bool:
    """Whether each of the labels that are joined here is tidy."""
    return (
        together.count(_BETWEEN) == n_labels + 1
        and together.replace(_BETWEEN, "").isprintable()
        and not any(odd in together for odd in ("  ", f" {_BETWEEN}", f"{_BETWEEN} "))
        and unicodedata.is_normalized("NFC", together)
    )


def _is_tidy(label: str) -> bool:
    return (
        label.isprintable() and label == label.strip() and "  " not in label and unicodedata.is_normalized("NFC", label)
    )


def _tidied(label: str) -> str:
    composed = unicodedata.normalize("NFC", label)
    return " ".join("".join(sign for sign in composed if unicodedata.category(sign) != "Cf").split())


def _shown(label: str) -> str:
    """The label, or its code points where it looks like another."""
    return repr(label) if label.isascii() else ascii(label)
