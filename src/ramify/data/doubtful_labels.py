"""Labels that were probably not meant: empty, different only invisibly, missing values, or lists that are one text."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable

# How programs write a missing value. "NA" and "None" are labels, too: Namibia, a finding.
_MISSING = frozenset({"nan", "NaN", "NAN", "<NA>", "NaT", "null", "NULL", "#N/A", "N/A", "n/a"})
_LIST_STARTS = ("['", '["')


def doubts_about(labels: Iterable[str]) -> list[str]:
    """What is odd about these different labels, one sentence for each kind.

    >>> doubts_about(["Bein", "Bein "])
    ["the labels 'Bein' and 'Bein ' differ only in spaces, invisible characters or Unicode forms: write them alike"]
    >>> doubts_about(["Bein", "bein", "Übelkeit"])
    []
    """
    labels = set(labels)
    doubts = []
    if "" in labels:
        doubts.append("one label is the empty text: leave it out where a row has no label")
    alike = _first_look_alikes(labels)
    if alike is not None:
        one, other = sorted(alike, key=lambda label: (len(label), label))
        doubts.append(
            f"the labels {_shown(one)} and {_shown(other)} differ only in spaces, invisible characters or Unicode "
            "forms: write them alike"
        )
    missing = min(labels & _MISSING, default=None)
    if missing is not None:
        doubts.append(f"the label {missing!r} looks like a missing value: leave it out where a row has no label")
    unsplit = min((label for label in labels if label.startswith(_LIST_STARTS)), default=None)
    if unsplit is not None:
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
