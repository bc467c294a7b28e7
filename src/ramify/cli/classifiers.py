"""Classifiers from the flags of `ramify train` and `ramify stream`."""

from __future__ import annotations

from typing import Any

from ramify import registry
from ramify.cli.options import flag, n_jobs, parse_assignments

# === Constructor parameters ==========================================================================================
# The one place of the command line that knows them: for each class, flag -> parameter; "solver__C" is the parameter C
# of the component that is given as `solver`.

_TREE = {"tree": "tree", "arity": "arity", "max_leaf": "max_leaf", "tree_option": "tree_options"}
_EPOCHS = {"n_epochs": "n_epochs", "shuffle": "shuffle"}
_STEPS = {"learning_rate": "optimizer__learning_rate", "eps": "optimizer__eps"}
_OPTIMIZER = {"optimizer": "optimizer", **_STEPS}
PARAMETERS: dict[str, dict[str, str]] = {
    "PLTClassifier": _TREE
    | {"n_trees": "n_trees", "loss": "solver__loss", "C": "solver__C", "prune": "solver__prune"}
    | {"n_epochs": "solver__n_epochs", "hash_bits": "hash_bits", "slack": "slack"},
    "OnlinePLTClassifier": {"tree": "tree", "policy": "policy", "arity": "arity", "max_leaf": "max_leaf"}
    | {"alpha": "alpha", "fair_share": "fair_share", "memory_budget": "memory_budget"}
    | {**_EPOCHS, **_OPTIMIZER, "decay": "optimizer__decay", "l2": "optimizer__l2"},
    "TreeSoftmaxClassifier": _TREE
    | {"dim": "dim", "learning_rate": "learning_rate", **_EPOCHS}
    | {"storage": "storage", "hogwild": "hogwild", "ngrams": "vectorizer__word_ngrams"},
    "FastXMLClassifier": {"n_trees": "n_trees", "max_leaf": "max_leaf", "C": "C"},
    "SpectralTreeClassifier": {"n_epochs": "estimator__n_epochs", "shuffle": "estimator__shuffle"},
    "LOMTreeClassifier": {**_EPOCHS, **_OPTIMIZER},
    "FilterTreeClassifier": {**_EPOCHS, **_OPTIMIZER},
    "MemoryTreeClassifier": {**_EPOCHS, **_STEPS},
}


def flags_of(class_name: str) -> dict[str, str]:
    """The flags of a classifier; one without an entry has only --set."""
    return PARAMETERS.get(class_name, {})


def constructor_arguments(class_name: str, flags: dict[str, Any]) -> dict[str, Any]:
    """The arguments of a classifier's constructor for the flags that it takes."""
    names = flags_of(class_name)
    arguments: dict[str, Any] = {}
    of_components: dict[str, dict[str, Any]] = {}
    for name, value in flags.items():
        parameter, _, nested = names[name].partition("__")
        if nested:
            of_components.setdefault(parameter, {})[nested] = value
        else:
            arguments[parameter] = value
    for parameter, settings in of_components.items():
        component = new_component(parameter, arguments.get(parameter))
        for name in settings:
            if name not in component.get_params():
                raise ValueError(f"{flag(name)} is not for --{parameter} {arguments[parameter]}")
        arguments[parameter] = component.set_params(**settings)
    return arguments


def new_component(parameter: str, kind: Any = None) -> Any:
    """A component with its defaults, as a parameter takes it; `kind` is the optimizer's name."""
    if parameter == "optimizer":
        return registry.load_class({None: "AdaGrad", "adagrad": "AdaGrad", "fobos": "FOBOS", "sgd": "SGD"}[kind])()
    if parameter == "vectorizer":
        from ramify.data import WordNgramVectorizer

        return WordNgramVectorizer()
    return registry.load_class({"solver": "PLTSolver", "estimator": "CandidateScorer"}[parameter])()


def flag_value(classifier: Any, name: str) -> Any:
    """The value that a flag has, or would have, in a classifier; None if it is left to the classifier."""
    parameter = "random_state" if name == "seed" else flags_of(type(classifier).__name__)[name]
    value = classifier.get_params().get(parameter)
    return value.name if name == "optimizer" and not isinstance(value, str) else value


# === End of the constructor parameters ===============================================================================

# Flags that describe texts; every classifier takes them.
_TEXT = ("vectorizer", "ngrams")
# Parameters that have flags for every classifier, or make no sense on a command line.
_NOT_SET = {"vectorizer", "n_jobs", "random_state", "verbose", "solver", "estimator", "optimizer"}


def new_classifier(
    name: str, flags: dict[str, Any], settings: list[str] | None = None, *, seed: int, threads: int | None
) -> Any:
    """Create a classifier by its short name. `flags` are those given on the command line, `settings` those of --set.

    A flag or a setting that the classifier does not take is refused.
    """
    class_name = registry.class_name_of(name)
    if name not in registry.summaries():
        raise ValueError(f"--classifier {name} cannot be trained here: choose one of {', '.join(registry.summaries())}")
    _refuse_flags(name, class_name, [given for given in flags if given not in _TEXT])
    flags = {given: _value(given, value) for given, value in flags.items()}
    own = {given: value for given, value in flags.items() if given in flags_of(class_name)}
    arguments = constructor_arguments(class_name, own)
    is_online = hasattr(registry.load_class(class_name), "partial_fit")
    if "vectorizer" in flags or "ngrams" not in flags_of(class_name):
        arguments["vectorizer"] = text_vectorizer(flags.get("vectorizer"), flags.get("ngrams", 1), is_online)
    classifier = registry.make_classifier(name, **arguments, n_jobs=n_jobs(threads), random_state=seed)
    _set_parameters(classifier, parse_assignments(settings, "--set", "n_candidates=50"), arguments)
    classifier._check_parameters()  # before a large file is read
    return classifier


def online_name(name: str) -> str:
    """The online version of a classifier, for --online.

    >>> online_name("plt"), online_name("oaa")
    ('online-plt', 'online-oaa')
    """
    known = registry.summaries()
    for found in (name, f"online-{name}"):
        if found.startswith("online-") and found in known:
            return found
    raise ValueError(f"--online is not for --classifier {name}: leave one of them out")


def text_vectorizer(kind: str | None, ngrams: int, is_online: bool) -> Any:
    """How texts become features; None is the classifier's default.

    A classifier that learns online has a vocabulary that grows, unless another vectorizer is asked for.
    """
    from ramify.data.text import TOKEN_PATTERN, default_stream_vectorizer, default_vectorizer

    if kind == "hashing":
        from ramify.text import HashingTextVectorizer

        return HashingTextVectorizer(
            token_pattern=TOKEN_PATTERN,
            ngram_range=(1, ngrams),
            n_features=2**22 if is_online else 2**20,
            alternate_sign=False,
        )
    if kind is None and ngrams == 1:
        return None
    new = default_stream_vectorizer if kind is None and is_online else default_vectorizer
    return new().set_params(ngram_range=(1, ngrams))


def _refuse_flags(name: str, class_name: str, given: list[str]) -> None:
    for one in given:
        if one not in flags_of(class_name):
            takers = [registry.CLASSIFIERS[other].name for other, names in PARAMETERS.items() if one in names]
            raise ValueError(f"{flag(one)} is not for --classifier {name}\nhint: it is for {', '.join(takers)}")


def _set_parameters(classifier: Any, settings: dict[str, Any], arguments: dict[str, Any]) -> None:
    for parameter in ("solver", "estimator", "optimizer"):
        if any(name.startswith(f"{parameter}__") for name in settings):
            given = getattr(classifier, parameter, None)
            if given is None or isinstance(given, str):
                classifier.set_params(**{parameter: new_component(parameter, given)})
    allowed = sorted(set(classifier.get_params()) - _NOT_SET)
    for name in settings:
        if name.partition("__")[0] in arguments:
            raise ValueError(f"--set {name}: this parameter also has a flag on the command line; give one of them")
        if name not in allowed:
            class_name = type(classifier).__name__
            hint = f"\nhint: use its flag, {flag(name)}" if name in flags_of(class_name) else ""
            raise ValueError(f"--set {name}: {class_name} has no such parameter; it has {', '.join(allowed)}{hint}")
    classifier.set_params(**settings)


def _value(name: str, value: Any) -> Any:
    if name == "tree":
        return _tree(value)
    return parse_assignments(value, "--tree-option", "lam=0.5") if name == "tree_option" else value


def _tree(given: str) -> Any:
    """A builder's name, or the tree of a file."""
    from pathlib import Path

    from ramify.trees.label_tree import LabelTree
    from ramify.trees.resolving import BUILDERS

    if given in BUILDERS:
        return given
    if Path(given).is_file():
        return LabelTree.load(given)
    raise ValueError(f"--tree must be a file or one of {', '.join(BUILDERS)}; got {given!r}")
