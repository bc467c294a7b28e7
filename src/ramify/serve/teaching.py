"""What a model can be taught: check examples before they are committed, and learn them afterwards."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import chain
from typing import Any

import numpy as np
from scipy import sparse

from ramify.base.rows import row_from_dict
from ramify.base.schema import Schema
from ramify.base.stream_schema import MAX_FEATURES, StreamSchema
from ramify.data.label_forms import indicator_of
from ramify.serve.journal import Content
from ramify.serve.problems import Problem

_MAX_DIGITS = len(str(MAX_FEATURES))
# A model of 0/1 arrays has a column for every number up to its largest label, so one label may not add more than this.
_MAX_NEW_COLUMNS = 1_000_000
# One step is little against what a large model has learned before, above all for a new label. An example that says how
# sure the model shall be is learned at most this often.
MAX_STEPS = 30
_OTHERS = 10  # labels that may be more probable than those of such an example


def is_online(classifier: Any) -> bool:
    """Whether a classifier, or a loaded model, can learn more examples."""
    return hasattr(classifier, "partial_fit")


def input_of(schema: Schema) -> str:
    """What the rows of a model are: "texts", or "features" by name or by number."""
    if schema.vectorizer is not None:
        return "texts"
    return "named features" if schema.feature_index is not None else "numbered features"


def feature_row(features: Mapping[str, float], is_named: bool) -> dict[Any, float]:
    """A row as the model takes it; JSON has no numbers as keys."""
    return dict(features) if is_named else {int(name): value for name, value in features.items()}


def check_numbered(features: Mapping[str, Any], where: str) -> None:
    """Reject names where the model's features are numbers."""
    for name in features:
        if not (name.isascii() and name.isdigit() and len(name) <= _MAX_DIGITS):
            raise Problem(422, f"the model's features are numbered, so {name[:60]!r} is no feature", where=where)
        if int(name) >= MAX_FEATURES:
            raise Problem(422, f"feature numbers are below {MAX_FEATURES}, got {name}", where=where)


class Lesson:
    """What the examples of a model must look like; the first example of an empty model settles it."""

    def __init__(self, classifier: Any, *, is_multiclass: bool) -> None:
        from sklearn.utils import get_tags

        self.input: str | None = None
        self.labels_are_text: bool | None = None
        self.has_labels = False
        self.known: set[Any] | None = None  # where no label can be added
        self.n_columns: int | None = None  # where labels are columns of a 0/1 array
        self.has_one_label = is_multiclass or not get_tags(classifier).classifier_tags.multi_label
        if hasattr(classifier, "fitted_"):
            schema = classifier.schema_
            self.input = input_of(schema)
            self.has_labels = schema.n_labels > 0
            self.has_one_label = self.has_one_label or schema.is_multiclass
            if self.has_labels:
                self.labels_are_text = isinstance(schema.label_of(0), str)
            if schema.labels.kind == "indicator":
                self.n_columns = schema.n_labels
            if getattr(classifier, "policy", "") is None or not getattr(classifier, "learns_new_labels", True):
                self.known = set(classifier.classes_.tolist())

    def check(self, examples: Sequence[Content]) -> None:
        """Raise a Problem if the model cannot learn these examples; otherwise later ones must be like them."""
        found = self.input, self.labels_are_text, self.has_labels
        try:
            for position, example in enumerate(examples):
                self._check_input(example, f"examples[{position}]")
                self._check_labels(example["labels"], f"examples[{position}].labels")
        except Problem:
            self.input, self.labels_are_text, self.has_labels = found
            raise

    def _check_input(self, example: Content, where: str) -> None:
        features = example.get("features")
        given = "texts"
        if features is not None:
            is_named = self.input == "named features" if self.input else not all(map(str.isdigit, features))
            given = "named features" if is_named else "numbered features"
        if self.input is None:
            self.input = given
        if given != self.input:
            raise Problem(422, f"the model learns from {self.input}, but this example has {given}", where=where)
        if features is not None and given == "numbered features":
            check_numbered(features, f"{where}.features")

    def _check_labels(self, labels: Sequence[Any], where: str) -> None:
        if self.has_one_label and len(set(labels)) != 1:
            raise Problem(422, f"each example has exactly one label in this model, got {len(set(labels))}", where=where)
        for label in labels:
            is_text = isinstance(label, str)
            if self.labels_are_text is None:
                self.labels_are_text = is_text
            if is_text != self.labels_are_text:
                kind = "strings" if self.labels_are_text else "numbers"
                raise Problem(422, f"the model's labels are {kind}, got {str(label)[:60]!r}", where=where)
            if self.known is not None and label not in self.known:
                raise Problem(422, f"the model cannot add labels, and {str(label)[:60]!r} is new", where=where)
            if self.n_columns is not None and label >= self.n_columns + _MAX_NEW_COLUMNS:
                most = self.n_columns + _MAX_NEW_COLUMNS - 1
                raise Problem(
                    422, f"labels are columns, of which the model has {self.n_columns}: use at most {most}", where=where
                )
            self.has_labels = True
        if not self.has_labels:
            raise Problem(422, "the first example of an empty model needs a label: add one", where=where)


def learn(classifier: Any, examples: Sequence[Content], *, is_multiclass: bool) -> None:
    """Learn one piece of the journal, all of it or nothing."""
    _learn_once(classifier, examples, is_multiclass)
    for example in examples:
        steps = 1
        while example.get("sure") and steps < MAX_STEPS and not _is_sure(classifier, example):
            _learn_once(classifier, [example], is_multiclass)
            steps += 1


def _is_sure(classifier: Any, example: Content) -> bool:
    """Whether each label of an example is as probable as it says."""
    labels = set(example["labels"])
    [answer] = answers_of(classifier, [example], len(labels) + _OTHERS)
    return labels <= {label for label, probability in answer if probability >= example["sure"]}


def _learn_once(classifier: Any, examples: Sequence[Content], is_multiclass: bool) -> None:
    labels = _labels(classifier, [example["labels"] for example in examples], is_multiclass)
    if "text" in examples[0]:
        classifier.partial_fit([example["text"] for example in examples], labels)
        return
    schema: Schema | None = classifier.schema_ if hasattr(classifier, "fitted_") else None
    names = [name for example in examples for name in example["features"]]
    is_named = not all(map(str.isdigit, names)) if schema is None else schema.feature_index is not None
    rows = [feature_row(example["features"], is_named) for example in examples]
    if not is_named:
        classifier.partial_fit(_numbered_rows(rows, schema), labels)
        return
    for row, example in zip(rows, examples, strict=True):
        classifier.learn_one(row, example["labels"][0] if is_multiclass else tuple(example["labels"]))


def _numbered_rows(rows: Sequence[Mapping[int, float]], schema: Schema | None) -> sparse.csr_array:
    """Rows of a piece; features beyond a width that cannot grow are left out, as in a prediction."""
    n_features = 1 if schema is None else schema.n_features
    grows = schema is None or isinstance(schema, StreamSchema)
    parts = [row_from_dict(row, None, MAX_FEATURES if grows else n_features) for row in rows]
    indices = np.concatenate([part for part, _ in parts])
    ends = np.cumsum([0, *(len(part) for part, _ in parts)])
    width = max(n_features, int(indices.max(initial=-1)) + 1)
    return sparse.csr_array((np.concatenate([values for _, values in parts]), indices, ends), (len(rows), width))


def _labels(classifier: Any, labels: list[Sequence[Any]], is_multiclass: bool) -> Any:
    if is_multiclass:
        return [row[0] for row in labels]
    if not hasattr(classifier, "fitted_") or classifier.schema_.labels.kind != "indicator":
        return [tuple(row) for row in labels]
    # The model was trained on a 0/1 array: labels are its columns.
    sizes = np.fromiter(map(len, labels), np.int64, len(labels))
    columns = np.fromiter(chain.from_iterable(labels), np.int32, int(sizes.sum()))
    n_labels = max(classifier.n_labels_, int(columns.max()) + 1 if len(columns) else 0)
    return indicator_of(columns, np.concatenate([[0], np.cumsum(sizes)]), n_labels)


def answers_of(classifier: Any, examples: Sequence[Content], top_k: int) -> list[list[tuple[Any, float]]]:
    """What the model answers for these examples; a model that knows nothing has no answers."""
    if not hasattr(classifier, "fitted_"):
        return []
    if "text" in examples[0]:
        answers: list[list[tuple[Any, float]]] = classifier.predict_labels([e["text"] for e in examples], top_k=top_k)
        return answers
    is_named = classifier.schema_.feature_index is not None
    return [classifier.predict_one(feature_row(e["features"], is_named), top_k=top_k) for e in examples]
