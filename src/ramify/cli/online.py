"""Options of online learners, described once for the commands that train them."""

from __future__ import annotations

from enum import Enum
from typing import Annotated, Any

import typer


class Policy(str, Enum):
    fair = "fair"
    best = "best"
    balanced = "balanced"
    random = "random"
    cpt = "cpt"


class Learner(str, Enum):
    adagrad = "adagrad"
    fobos = "fobos"


PolicyOption = Annotated[
    Policy,
    typer.Option(
        "--policy",
        help="Where new labels go: fair keeps the tree shallow, best and random are OPLT's, balanced napkinXC's.",
    ),
]
Arity = Annotated[int | None, typer.Option("--b", help="Most children of an inner node.")]
PreLeafArity = Annotated[int | None, typer.Option("--b-max", help="Most children of a node whose children are labels.")]
Alpha = Annotated[float | None, typer.Option("--alpha", help="Weight of balance against fit, 0 to 1.")]
FairShare = Annotated[
    float | None, typer.Option("--fair-share", help="fair: times the average labels that a child may have.")
]
LearnerOption = Annotated[Learner, typer.Option("--learner", help="Update rule of the nodes' classifiers.")]
LearningRate = Annotated[float | None, typer.Option("--learning-rate", help="Step size.")]
Eps = Annotated[float | None, typer.Option("--eps", help="adagrad: added to the root of the summed squares.")]
Decay = Annotated[float | None, typer.Option("--decay", help="adagrad: above 0, steps shrink faster later on.")]
L2 = Annotated[float | None, typer.Option("--l2", help="fobos: strength of the regulariser.")]
MemoryBudget = Annotated[
    int | None, typer.Option("--memory-budget", metavar="BYTES", help="Near it, features of least weight are given up.")
]
Ngrams = Annotated[int, typer.Option("--ngrams", min=1, max=5, help="Texts: longest run of words that is a feature.")]
Seed = Annotated[int, typer.Option("--seed", min=0, max=2**32 - 1, help="The same seed gives the same model.")]

# What is not given is left to the estimator, which knows what suits the policy.
# Command-line name of each parameter of the estimator.
FLAGS = {
    "policy": "--policy",
    "b": "--b",
    "b_max": "--b-max",
    "alpha": "--alpha",
    "fair_share": "--fair-share",
    "learner": "--learner",
    "learning_rate": "--learning-rate",
    "eps": "--eps",
    "decay": "--decay",
    "l2": "--l2",
    "memory_budget": "--memory-budget",
    "random_state": "--seed",
}


def settings(context: typer.Context) -> dict[str, Any]:
    """The estimator's parameters among the options, where they have a value."""
    values = {name: context.params[name] for name in FLAGS if name in context.params}
    return {name: getattr(value, "value", value) for name, value in values.items() if value is not None}


def stream_vectorizer(ngrams: int) -> Any:
    """How texts of a stream become features: hashed words, or runs of them; None is the model's own default."""
    if ngrams == 1:
        return None
    from ramify.data.text import default_stream_vectorizer

    return default_stream_vectorizer().set_params(ngram_range=(1, ngrams))


def given_on_command_line(context: typer.Context) -> set[str]:
    """The parameters that somebody has written, rather than left to their defaults."""
    sources = {name: context.get_parameter_source(name) for name in context.params}
    return {name for name, source in sources.items() if source is not None and source.name == "COMMANDLINE"}


def refuse_options(given: set[str], unfit: tuple[str, ...], is_online: bool) -> None:
    """Refuse what would be ignored."""
    for name in unfit:
        if name in given:
            flag = f"--{name.replace('_', '-')}"
            raise ValueError(f"{flag} is {'not for --online' if is_online else 'for --online only'}: leave it out")
