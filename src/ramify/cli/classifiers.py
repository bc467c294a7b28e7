"""What `ramify train` trains: classifiers by a short name, those without options of their own with NAME=VALUE."""

from __future__ import annotations

import json
from enum import Enum
from typing import Annotated, Any

import typer

from ramify.cli import output


class Kind(str, Enum):
    """What `ramify train` trains."""

    plt = "plt"
    tree_softmax = "tree-softmax"
    fastxml = "fastxml"
    spectral = "spectral"
    lomtree = "lomtree"
    filter_tree = "filter-tree"
    memory_tree = "memory-tree"
    random_tree = "random-tree"
    oaa = "oaa"
    online_random_tree = "online-random-tree"
    online_oaa = "online-oaa"


# Those whose parameters have options of their own; the others are made by `ramify.registry`.
WITH_OPTIONS = (Kind.plt, Kind.tree_softmax)

KindOption = Annotated[
    Kind,
    typer.Option(
        "--classifier",
        help="plt: linear label tree; tree-softmax: embeddings, as in fastText; fastxml: trees over rows; "
        "spectral: candidates by a tree, then decided; lomtree, filter-tree, memory-tree: one class a row (memory-tree "
        "also several), in logarithmic time; random-tree, oaa: the usual baselines.",
    ),
]
Parameters = Annotated[
    list[str] | None,
    typer.Option(
        "--set", metavar="NAME=VALUE", help="A parameter of --classifier, such as n_candidates=50; may be given often."
    ),
]


# Options that are also parameters of those that go over the rows repeatedly.
REPEATED = ("passes", "shuffle")


def new_classifier(kind: Kind, given: list[str] | None, options: dict[str, Any], **shared: Any) -> Any:
    """A classifier by its short name; options and parameters that it does not have are refused by name."""
    from ramify.registry import class_name_of, load_class, make_classifier

    known: Any = load_class(class_name_of(kind.value))
    name = known.__name__
    parameters = parse_parameters(given)
    allowed = sorted(set(known._get_param_names()) - set(shared) - {"verbose", "base"})
    for option in sorted(options):
        if option not in REPEATED or option not in allowed:
            flag = option.replace("is_", "").replace("_", "-")
            raise ValueError(f"--{flag} is not for --classifier {kind.value}: its parameters are given with --set")
    for parameter in parameters:
        if parameter not in allowed:
            raise ValueError(f"--set {parameter}: a {name} has no such parameter; it has {', '.join(allowed)}")
    return make_classifier(kind.value, **shared, **options, **parameters)


def learns_one_class(classifier: Any) -> bool:
    """Whether a classifier takes nothing but one class a row."""
    return not classifier.__sklearn_tags__().classifier_tags.multi_label


def parse_parameters(given: list[str] | None) -> dict[str, Any]:
    """
    >>> parse_parameters(["depth=auto", "n_candidates=50", "leaf_bias=false"])
    {'depth': 'auto', 'n_candidates': 50, 'leaf_bias': False}
    """
    found: dict[str, Any] = {}
    for text in given or []:
        name, equals, value = text.partition("=")
        if not (name and equals and value):
            raise ValueError(f"--set takes NAME=VALUE, such as n_candidates=50; got {text!r}")
        try:
            found[name] = json.loads(value)
        except ValueError:
            found[name] = value
    return found


def facts_of(classifier: Any) -> dict[str, Any]:
    """What a model without label trees tells about itself: nodes, stored examples, or its filter of candidates."""
    if hasattr(classifier, "n_nodes_"):
        return {"nodes": classifier.n_nodes_, "depth": classifier.depth_, "swaps": classifier.n_swaps_}
    if hasattr(classifier, "n_examples_"):
        return {"n_examples": classifier.n_examples_}
    return dict(getattr(classifier, "training_report_", {}))


def filter_words(facts: dict[str, Any]) -> str:
    """The training report of a filter in a line or two."""
    lines = [
        f"{output.count(facts['leaves'], 'leaf', 'leaves')} at depth {facts['mean_depth']:.1f} on average, "
        f"{facts['mean_candidates']:.1f} candidates a row: recall {100 * facts['training_recall']:.2f} % "
        f"of the training labels (the most frequent labels: {100 * facts['frequency_recall']:.2f} %)"
    ]
    if "held_out_recall_by_depth" in facts:
        recalls = ", ".join(f"{depth}: {100 * r:.2f}" for depth, r in enumerate(facts["held_out_recall_by_depth"]))
        lines.append(f"depth {facts['depth']} chosen by held-out recall, percent by depth: {recalls}")
    return "\n".join(lines)
