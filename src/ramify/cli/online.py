"""Options of online learners, described once for the commands that train them."""

from __future__ import annotations

from enum import Enum
from typing import Annotated, Any

import typer


class Policy(str, Enum):
    fair = "fair"
    best = "best"
    random = "random"
    cpt = "cpt"


class Learner(str, Enum):
    adagrad = "adagrad"
    fobos = "fobos"


PolicyOption = Annotated[
    Policy,
    typer.Option("--policy", help="Where new labels go: fair keeps the tree shallow, best and random are OPLT's."),
]
Arity = Annotated[int | None, typer.Option("--b", help="Most children of an inner node. [default: 16 if fair, else 2]")]
PreLeafArity = Annotated[int, typer.Option("--b-max", help="Most children of a node whose children are labels.")]
Alpha = Annotated[float, typer.Option("--alpha", help="best, cpt: weight of balance against fit, 0 to 1.")]
FairShare = Annotated[float, typer.Option("--fair-share", help="fair: times the average labels a child may have.")]
LearnerOption = Annotated[Learner, typer.Option("--learner", help="Update rule of the nodes' classifiers.")]
LearningRate = Annotated[float, typer.Option("--learning-rate", help="Step size.")]
Eps = Annotated[float, typer.Option("--eps", help="adagrad: added to the root of the summed squares.")]
L2 = Annotated[float, typer.Option("--l2", help="fobos: strength of the regulariser.")]
MemoryBudget = Annotated[
    int | None, typer.Option("--memory-budget", metavar="BYTES", help="Near it, features of least weight are given up.")
]
Ngrams = Annotated[int, typer.Option("--ngrams", min=1, max=5, help="Texts: longest run of words that is a feature.")]
Seed = Annotated[int, typer.Option("--seed", min=0, max=2**32 - 1, help="The same seed gives the same model.")]

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
    "l2": "--l2",
    "memory_budget": "--memory-budget",
    "random_state": "--seed",
}


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
