"""ICD-10-CM, the clinical classification of diagnoses, as a data set: texts of diagnoses and their codes."""

from __future__ import annotations

import re
import zlib
from collections.abc import Iterable
from typing import Any, NamedTuple

_CODE_RANGE = re.compile(r"\s*\([A-Z]\d\w(-[A-Z]\d\w)?\)$")
# A line of a note that refers to another code: "old myocardial infarction (I25.2)", "tobacco dependence (F17.-)".
_REFERENCE = re.compile(r"(.+?)\s*\(([A-Z]\d\w(\.\w{1,4})?)\.?-?\)")

_WITH_ENCOUNTER = 7  # characters


class LabelledTexts(NamedTuple):
    """Texts and their labels."""

    texts: list[str]
    labels: list[list[str]]


class Icd10(NamedTuple):
    """Training and test texts, and the name of each label."""

    train: LabelledTexts
    test: LabelledTexts
    names: dict[str, str]


def load_icd10(*, test_share: float = 0.2) -> Icd10:
    """Return the descriptions and inclusion terms of all codes, labelled with code, category, block and chapter.

    A text that describes several codes is one row with the labels of all. References between codes ("Excludes: old
    myocardial infarction (I25.2)") are further training rows, unless they repeat another row. The test set is a fixed
    sample of the inclusion terms that are not also a description: a fraction `test_share`, chosen by checksum, so it
    hardly changes between editions. Every description is in the training set, so every test label occurs there. Needs
    the package simple-icd-10-cm (the extra "demo").
    """
    if not 0 <= test_share < 1:
        raise ValueError(f"test_share must be at least 0 and below 1, got {test_share}")
    classification = _classification()
    names: dict[str, str] = {}
    upper: dict[str, list[str]] = {"": []}  # labels by the parent of a code
    rows: dict[str, _Row] = {}
    for code in classification.get_all_codes(True):
        description = _title(classification, code)
        label = _label(classification, code)
        names.setdefault(label, description)
        parent = classification.get_parent(code)
        if parent not in upper:
            upper[parent] = _upper_labels(classification, parent)
        labels = [label, *upper[parent]]
        _add(rows, description, labels, may_be_held_out=False)
        for text in classification.get_includes(code):
            _add(rows, text, labels, may_be_held_out=False)
        for text in classification.get_inclusion_term(code):
            _add(rows, text, labels, may_be_held_out=True)
    train, test = LabelledTexts([], []), LabelledTexts([], [])
    for key, row in rows.items():
        is_held_out = row.may_be_held_out and zlib.crc32(key.encode()) < test_share * 2**32
        part = test if is_held_out else train
        part.texts.append(row.text)
        part.labels.append(list(row.labels))
    for reference in _references(classification, names, rows):
        train.texts.append(reference.text)
        train.labels.append(list(reference.labels))
    return Icd10(train, test, names)


def _references(classification: Any, names: dict[str, str], rows: dict[str, _Row]) -> Iterable[_Row]:
    """What the notes of all codes call other codes, where that is no text of `rows`."""
    found: dict[str, _Row] = {}
    for code in classification.get_all_codes(True):
        notes = [*classification.get_excludes1(code), *classification.get_excludes2(code)]
        for get in (
            classification.get_use_additional_code,
            classification.get_code_first,
            classification.get_code_also,
        ):
            notes.extend(get(code).splitlines())
        for note in notes:
            match = _REFERENCE.fullmatch(note.strip())
            if match and match[2] in names and _key(match[1]) not in rows:
                upper = _upper_labels(classification, classification.get_parent(match[2]))
                _add(found, match[1], [match[2], *upper], may_be_held_out=False)
    return found.values()


def code_labels(labels: Iterable[str]) -> set[str]:
    """The labels that are codes: no chapters, blocks and subdivided categories.

    >>> sorted(code_labels(["chapter 1", "A00-A09", "A00", "A00.0", "A00.1", "I10"]))
    ['A00.0', 'A00.1', 'I10']
    """
    every = list(labels)
    subdivided = {label.partition(".")[0] for label in every if "." in label}
    return {
        label for label in every if not label.startswith("chapter ") and "-" not in label and label not in subdivided
    }


def with_codes_only(data: Icd10) -> Icd10:
    """The texts that describe codes, each with its codes alone, without titles of chapters, blocks and the like."""
    codes = code_labels(data.names)

    def only(part: LabelledTexts) -> LabelledTexts:
        kept = [
            (text, [label for label in labels if label in codes])
            for text, labels in zip(part.texts, part.labels, strict=True)
            if codes.intersection(labels)
        ]
        return LabelledTexts([text for text, _ in kept], [labels for _, labels in kept])

    names = {label: name for label, name in data.names.items() if label in codes}
    return Icd10(only(data.train), only(data.test), names)


def with_general_terms(data: Icd10, *, n_most: int = 300) -> Icd10:
    """The same texts, and each title above at most `n_most` codes as a training row with all of them.

    Such a title is a general term: whoever uses it may mean any of these codes. Those above more codes say too little
    about each, and would cost the precise terms. Codes of seven characters are left out, because the last one tells
    only which visit it is of a patient: the first, a later one.
    """
    classification = _classification()
    below: dict[str, list[str]] = {}
    for code in data.names:
        if len(code.replace(".", "")) < _WITH_ENCOUNTER:
            for above in classification.get_ancestors(code):
                below.setdefault(above, []).append(code)
    train = LabelledTexts([*data.train.texts], [*data.train.labels])
    for above, codes in below.items():
        if len(codes) <= n_most:
            train.texts.append(_title(classification, above))
            train.labels.append([*codes, above] if above in data.names else codes)
    return data._replace(train=train)


class _Row:
    __slots__ = ("labels", "may_be_held_out", "text")

    def __init__(self, text: str) -> None:
        self.text = text
        self.labels: dict[str, None] = {}  # an ordered set
        self.may_be_held_out = True


def _key(text: str) -> str:
    """Texts that differ only in case and spaces are the same text and must not be in both parts."""
    return " ".join(text.casefold().split())


def _add(rows: dict[str, _Row], text: str, labels: list[str], *, may_be_held_out: bool) -> None:
    row = rows.setdefault(_key(text), _Row(text.strip()))
    row.labels.update(dict.fromkeys(labels))
    row.may_be_held_out &= may_be_held_out


def _label(classification: Any, code: str) -> str:
    return f"chapter {code}" if classification.is_chapter(code) else code


def _title(classification: Any, code: str) -> str:
    """The description of a code or of what is above it, without the range of codes that follows it."""
    description: str = classification.get_description(code).strip()
    return _CODE_RANGE.sub("", description) if description.endswith(")") else description


def _upper_labels(classification: Any, parent: str) -> list[str]:
    """Return the category, block and chapter of a code, given its parent; subcategories are left out."""
    ancestors = [parent, *classification.get_ancestors(parent)]
    return [_label(classification, code) for code in ancestors if not classification.is_subcategory(code)]


def _classification() -> Any:
    try:
        import simple_icd_10_cm
    except ImportError as error:
        raise ImportError("the ICD-10-CM data set needs simple-icd-10-cm: pip install 'ramify[demo]'") from error
    return simple_icd_10_cm
