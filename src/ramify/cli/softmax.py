"""Options of the tree softmax, described once for the commands that train it."""

from __future__ import annotations

from enum import Enum
from typing import Annotated, Any

import typer


class Storage(str, Enum):
    float32 = "float32"
    int8 = "int8"


Dim = Annotated[int | None, typer.Option("--dim", help="tree-softmax: numbers in an embedding.")]
Epochs = Annotated[int | None, typer.Option("--epochs", help="tree-softmax: times the rows are gone over.")]
StorageOption = Annotated[
    Storage, typer.Option("--storage", help="tree-softmax: int8 makes the model four times smaller.")
]
Hogwild = Annotated[bool, typer.Option("--hogwild", help="tree-softmax: threads learn without waiting for each other.")]

# What a tree softmax has no use for, and what only it has.
UNUSED = ("n_trees", "loss", "C", "prune", "hash_bits")
OWN = ("dim", "epochs", "storage", "hogwild")


def refuse_options(given: set[str], *, is_softmax: bool, is_online: bool) -> None:
    """Refuse what would be ignored."""
    if is_softmax and is_online:
        raise ValueError("--online is not for --classifier tree-softmax: leave one of them out")
    for name in UNUSED if is_softmax else OWN:
        if name in given:
            only = "not for --classifier tree-softmax" if is_softmax else "for --classifier tree-softmax only"
            raise ValueError(f"--{name.replace('_', '-')} is {only}: leave it out")


def tree_softmax(given: set[str], **settings: Any) -> Any:
    """The classifier; what nobody has written is left to its own defaults."""
    from ramify.models.softmax.classifier import TreeSoftmaxClassifier

    names = {"tree", "arity", "max_leaf", "learning_rate", *OWN}
    chosen = {
        name: getattr(value, "value", value)
        for name, value in settings.items()
        if name not in names or (name in given and value is not None)
    }
    return TreeSoftmaxClassifier(**chosen)
