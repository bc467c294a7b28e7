"""Fitted models as the commands use them: load and save, labels and their names, and a summary of the training."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import typer

from ramify.cli import output
from ramify.cli.options import n_jobs
from ramify.cli.sources import is_stream
from ramify.data import Columns, DataError
from ramify.data.encodings import encoding_like
from ramify.files.directory import MANIFEST


def load_model(path: Path, threads: int | None = None) -> Any:
    """Load a model that predicts with this many threads."""
    from ramify.base.save_load import load

    return load(path).set_params(n_jobs=n_jobs(threads))


class QueriedModel:
    """A model that is only asked: loaded without scikit-learn, with the fitted attributes that commands read."""

    def __init__(self, fitted: Any) -> None:
        self.fitted_ = fitted
        self.schema_ = fitted.schema
        self.predict_labels, self.predict_one, self.explain = fitted.predict_labels, fitted.predict_one, fitted.explain

    @property
    def vectorizer_(self) -> Any:
        if self.schema_.vectorizer is None:
            raise AttributeError("the model was not fitted on texts")
        return self.schema_.vectorizer

    @property
    def n_features_in_(self) -> int:
        return int(self.schema_.n_features)

    @property
    def n_labels_(self) -> int:
        return int(self.schema_.n_labels)

    @property
    def classes_(self) -> Any:
        return self.schema_.labels.classes

    @property
    def source_format_(self) -> str | None:
        return getattr(self.schema_, "source_format", None)

    @property
    def source_columns_(self) -> dict[str, Any]:
        return getattr(self.schema_, "source_columns", {})


def load_to_query(path: Path, threads: int | None = 1) -> QueriedModel:
    """Load a model that answers with this many threads, and learns no more."""
    from ramify.base.save_load import load_fitted
    from ramify.common.validation import number_of_threads

    fitted = load_fitted(path)
    n_threads = number_of_threads(n_jobs(threads))
    if hasattr(fitted.schema.vectorizer, "transform_one"):
        fitted.schema.vectorizer.set_params(n_jobs=n_threads)
    return QueriedModel(fitted.view(n_threads, fitted.options))


def save_portable(classifier: Any, path: Path) -> None:
    """Save a model without this machine's number of threads."""
    threads = classifier.n_jobs
    classifier.set_params(n_jobs=None).save(path)
    classifier.set_params(n_jobs=threads)


def claim_target(path: Path, context: typer.Context) -> None:
    """Check the directory, and hold it while the command runs: no stream or service may write there meanwhile."""
    from ramify.cli.lock import only_writer

    check_target(path)
    context.with_resource(only_writer(path, f"ramify {context.info_name}"))


def check_target(path: Path) -> None:
    """Refuse a directory that the model cannot be saved to, before the training and not after it."""
    from ramify.cli.lock import LOCK

    if path.is_dir():
        if any(entry.name != LOCK for entry in path.iterdir()) and not (path / MANIFEST).exists():
            raise DataError("the directory is not empty and holds no model", path, hint="choose an empty or new one")
        place = path
    elif os.path.lexists(path):
        what = "a file" if path.exists() else "a symbolic link to nothing"
        raise DataError(f"{what} has the name of the model's directory", path, hint="choose another name")
    else:
        place = next(parent for parent in path.absolute().parents if parent.exists())
    if not place.is_dir() or not os.access(place, os.W_OK | os.X_OK):
        raise DataError(f"no permission to write to {place}", path, hint="choose another directory for the model")


# --- what a model takes ----------------------------------------------------------------------------------------------


def takes_text(model: Any) -> bool:
    return hasattr(model, "vectorizer_")


def takes_any_width(model: Any) -> bool:
    """Whether rows may have features that the model has never seen, as for a classifier that learns online."""
    return hasattr(model.schema_, "named_columns") and not takes_text(model)


def learns_one_class(classifier: Any) -> bool:
    """Whether a classifier takes exactly one class per row."""
    from sklearn.utils import get_tags

    return not get_tags(classifier).classifier_tags.multi_label


def rows_learned(model: Any) -> int | None:
    """Rows that a model has learned; 0 before the first, None if it does not say."""
    if not hasattr(model, "model_"):
        return 0
    inner = getattr(model.model_, "inner", model.model_)
    n: int | None = getattr(inner, "n_learned", None)
    return n


def trees_of(model: Any) -> list[Any]:
    """The label trees of a model: those of an ensemble, the one that an online model has grown, or none."""
    trained = getattr(model, "trees_", None)
    if trained is not None:
        return [part.tree for part in trained]
    tree = getattr(model, "tree_", None)
    return [] if tree is None else [tree]


def tuned_thresholds(model: Any) -> Any:
    """The thresholds of `ramify tune`, one per label; None if the model was not tuned."""
    fitted = model.fitted_
    return None if fitted.thresholds is None else fitted.decision_threshold()


def known_columns(columns: Columns, model: Any, path: Path | None, *, reads_labels: bool = True) -> Columns:
    """The choice of columns, with what the model knows of its training data where the command line names none.

    A file that is not UTF-8 is read in the encoding of the training data; a pipe can be read only once, so it is not.
    """
    known = model.source_columns_
    if columns.encoding is None and "encoding" in known and path is not None and not is_stream(path):
        columns = replace(columns, encoding=encoding_like(path, known["encoding"]))
    chosen = replace(columns, known_text=tuple(known.get("text", ())), known_labels=tuple(known.get("labels", ())))
    if not reads_labels or columns.label_separator is not None:  # otherwise the separator is that of answers
        return chosen
    return replace(chosen, label_separator=known.get("label_separator"))


# --- labels and their names ------------------------------------------------------------------------------------------


def labels_are_columns(model: Any) -> bool:
    """Whether the model was trained on a 0/1 array, so that its labels are column numbers."""
    return bool(model.schema_.labels.kind == "indicator")


def labels_at(model: Any, columns: Sequence[int]) -> list[Any]:
    return list(model.schema_.labels.names(columns))


def columns_of(model: Any, labels: Sequence[Any]) -> Any:
    return model.schema_.labels.columns(labels)


def parse_label(model: Any, text: str, path: Path | None = None) -> Any:
    """A label as the model knows it, from its text on the command line or in a file."""
    if not labels_are_columns(model) and model.classes_.dtype.kind not in "iu":
        return text
    try:
        return int(text)
    except ValueError:
        message = f"the model's labels are numbers, got {text!r}"
        raise DataError(message, path) if path is not None else ValueError(message) from None


def with_names(model: Any, answer: Sequence[tuple[Any, float]]) -> list[output.LabelRow]:
    """Predicted labels with their names, "" for a label without one."""
    table = model.schema_.label_names
    if table is None or not answer:
        return [(label, probability, "") for label, probability in answer]
    names = table.take(columns_of(model, [label for label, _ in answer]))
    return [(label, probability, name) for (label, probability), name in zip(answer, names, strict=True)]


class LabelTitles(Mapping[int, str]):
    """Label column -> label and name. Made on demand, because a model may have millions of labels."""

    def __init__(self, model: Any) -> None:
        self._model = model
        self._names = model.schema_.label_names
        self._has_labels = not labels_are_columns(model)

    def __getitem__(self, column: int) -> str:
        label = labels_at(self._model, [column])[0] if self._has_labels else ""
        return f"{label} {'' if self._names is None else self._names[column]}".strip()

    def __contains__(self, column: object) -> bool:
        return self._has_labels or self._names is not None

    def __iter__(self) -> Iterator[int]:
        return iter(range(len(self)))

    def __len__(self) -> int:
        return int(self._model.n_labels_)


class VisibleTitles(LabelTitles):
    """The same for a terminal: control characters are shown, not sent."""

    def __getitem__(self, column: int) -> str:
        return output.visible(super().__getitem__(column))


# --- the training in a few numbers -----------------------------------------------------------------------------------


def training_facts(classifier: Any, n_rows: int, took: float, tree_took: float, path: Path) -> dict[str, Any]:
    """What `train --json` prints about a model that was trained and saved."""
    return {
        "rows": n_rows,
        "features": classifier.n_features_in_,
        "labels": classifier.n_labels_,
        "seconds": round(took, 3),
        **_shape(classifier, tree_took),
        "model": str(path),
        "bytes": output.directory_size(path),
    }


def _shape(classifier: Any, tree_took: float) -> dict[str, Any]:
    """Label trees, nodes, stored examples, or the report of a candidate tree: what the model has."""
    trees = trees_of(classifier)
    if trees:
        chosen = [name for name in ("C", "positive_weight") if hasattr(classifier, f"{name}_")]
        return {
            "tree_seconds": round(tree_took, 3),
            "trees": len(trees),
            "blocks": sum(int((tree.n_children > 0).sum()) for tree in trees),
            **{name: getattr(classifier, f"{name}_") for name in chosen},
            "depth": max(tree.height for tree in trees),
        }
    if hasattr(classifier, "n_nodes_"):
        return {"nodes": classifier.n_nodes_, "depth": classifier.depth_, "swaps": classifier.n_swaps_}
    if hasattr(classifier, "n_examples_"):
        return {"n_examples": classifier.n_examples_}
    return dict(getattr(classifier, "training_report_", {}))


def training_in_words(facts: dict[str, Any]) -> str:
    """The same for people: one line, and one or two more for a candidate tree."""
    details = []
    if facts.get("tree_seconds") and "trees" in facts:
        trees = "tree" if facts["trees"] == 1 else f"{facts['trees']} trees"
        details.append(f"{trees} {output.seconds(facts['tree_seconds'])}")
    if "blocks" in facts:
        details += [output.count(facts["blocks"], "block"), f"depth {facts['depth']}"]
    elif "nodes" in facts:
        details += [output.count(facts["nodes"], "node"), f"depth {facts['depth']}"]
    elif "n_examples" in facts:
        details.append(f"{output.count(facts['n_examples'], 'example')} stored")
    in_brackets = f" ({', '.join(details)})" if details else ""
    lines = [
        f"Trained {output.count(facts['rows'], 'row')} x {output.count(facts['labels'], 'label')} "
        f"in {output.seconds(facts['seconds'])}{in_brackets}. "
        f"Saved to {facts['model']}/ ({output.size_in_words(facts['bytes'])})."
    ]
    if "leaves" in facts:
        lines.append(
            f"{output.count(facts['leaves'], 'leaf', 'leaves')} at depth {facts['mean_depth']:.1f} on average, "
            f"{facts['mean_candidates']:.1f} candidates per row: recall {100 * facts['training_recall']:.2f} % "
            f"of the training labels (the most frequent labels: {100 * facts['frequency_recall']:.2f} %)"
        )
    if "held_out_recall_by_depth" in facts:
        recalls = ", ".join(f"{depth}: {100 * r:.2f}" for depth, r in enumerate(facts["held_out_recall_by_depth"]))
        lines.append(f"depth {facts['depth']} chosen by held-out recall, percent by depth: {recalls}")
    return "\n".join(lines)
