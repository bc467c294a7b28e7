"""Classifiers that `ramify train` knows by name, beside the label trees that have options of their own."""

from __future__ import annotations

import inspect
import json
from enum import Enum
from importlib import import_module
from typing import Annotated, Any

import typer

# Name on the command line, module, class. Each takes n_jobs, random_state and vectorizer.
KINDS = {
    "memory-tree": ("ramify.models.memory_tree", "MemoryTreeClassifier"),
}


class Kind(str, Enum):
    label_tree = "label-tree"
    memory_tree = "memory-tree"


KindOption = Annotated[
    Kind,
    typer.Option("--classifier", help="What is trained; the others than label-tree take their parameters by --set."),
]
Parameters = Annotated[
    list[str] | None,
    typer.Option("--set", metavar="NAME=VALUE", help="A parameter of --classifier; may be given several times."),
]

# Options that every classifier has a use for; passes and shuffle only those that go over rows repeatedly.
SHARED = frozenset(
    ("data", "model", "kind", "parameter", "multiclass", "format", "label_names", "feature_names", "test")
    + ("vectorizer", "ngrams", "seed", "threads", "json")
)
REPEATED = ("passes", "shuffle")


def refuse(given: list[str] | None) -> None:
    if given:
        raise ValueError("--set is for --classifier: a label tree has options of its own, see --help")


def make(kind: str, given: set[str], context: typer.Context, vectorizer: Any, n_jobs: int) -> Any:
    """The classifier of this name, with the parameters that were set."""
    module, name = KINDS[kind]
    classifier = getattr(import_module(module), name)
    known = list(inspect.signature(classifier).parameters)
    repeated = [option for option in REPEATED if option in known]
    unfit = next(iter(sorted(given - SHARED - set(repeated))), "").removeprefix("is_")
    if unfit:
        raise ValueError(
            f"--{unfit.replace('_', '-')} is for label trees: leave it out, or say --set {unfit}=... "
            f"if {kind} has such a parameter ({', '.join(known)})"
        )
    chosen = parse(context.params["parameter"])
    for parameter in chosen:
        if parameter not in known:
            raise ValueError(f"--set {parameter}: a {kind} has no such parameter; it has {', '.join(known)}")
    repeats = {option: context.params[option] for option in repeated if option in given}
    return classifier(
        **{"n_jobs": n_jobs, "random_state": context.params["seed"], "vectorizer": vectorizer, **repeats, **chosen}
    )


def parse(given: list[str] | None) -> dict[str, Any]:
    """
    >>> parse(["alpha=0.5", "forget=oldest", "max_examples=null"])
    {'alpha': 0.5, 'forget': 'oldest', 'max_examples': None}
    """
    found: dict[str, Any] = {}
    for text in given or []:
        name, equals, value = text.partition("=")
        if not (name and equals and value):
            raise ValueError(f"--set takes NAME=VALUE, such as alpha=0.5; got {text!r}")
        try:
            found[name] = json.loads(value)
        except ValueError:
            found[name] = value
    return found
