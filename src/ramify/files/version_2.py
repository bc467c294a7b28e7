"""Model files of format version 2, read as if they were of version 3: names of parameters, schema and model apart.

Version 2 kept what is now the schema beside the model's values, and solvers and optimizers as loose parameters. Only
the manifest's JSON is rewritten; arrays stay as they are.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

Values = dict[str, Any]

_SCHEMA = ("n_features", "labels", "feature_names", "label_names", "feature_column_names", "vectorizer")
_ONLINE = ("OnlinePLTClassifier", "LOMTreeClassifier", "MemoryTreeClassifier")
_SETTINGS = {"one_of": "is_multiclass", "has_label_rest": "has_one_against_rest"}
_DEFAULT_ESTIMATOR: Values = {"$model": "PLTClassifier", "parameters": {"beam": None, "bound": 0.0}}
_TREE_OPTIONS = (
    "recall",
    "noise",
    "deviation",
    "min_path",
    "prune",
    "solver",
    "max_iterations",
    "cg_iterations",
    "held_out",
)
_SCORER = ("weights", "rank", "hash_bits", "output_weights", "leaf_bias", "shuffle", "sampled_paths")


def upgrade(manifest: Values) -> Values:
    """A manifest of version 2 as version 3 writes it."""
    name, old = manifest["class"], manifest["parameters"]
    fitted, model = _upgrade_fitted(name, old, manifest["fitted"], manifest["model"])
    parameters = _upgrade_parameters(name, old)
    if manifest["model"]["metadata"].get("has_vectorizer"):  # of the estimator in a ThresholdClassifier
        parameters["estimator"]["parameters"]["vectorizer"] = {"$fitted": "vectorizer"}
    return {**manifest, "parameters": parameters, "fitted": fitted, "model": model}


# --- parameters ------------------------------------------------------------------------------------------------------


def _upgrade_parameters(name: str, old: Values) -> Values:
    change = _PARAMETERS.get(name)
    new = dict(old)
    if change is not None:
        change(new)
    return new


def _component(name: str, **parameters: Any) -> Values:
    return {"$model": name, "parameters": parameters}


def _plt(p: Values) -> None:
    p["solver"] = _component(
        "PLTSolver",
        loss=p.pop("loss"),
        C=p.pop("C"),
        positive_weight=p.pop("positive_weight"),
        n_epochs=p.pop("max_epochs"),
        tol=p.pop("eps"),
        prune=p.pop("prune"),
    )
    p["slack"] = p.pop("bound")


def _online_plt(p: Values) -> None:
    p["arity"], p["max_leaf"], p["n_epochs"] = p.pop("b"), p.pop("b_max"), p.pop("passes")
    rate, eps, decay, l2 = (p.pop(name) for name in ("learning_rate", "eps", "decay", "l2"))
    if p.pop("learner") == "fobos":
        p["optimizer"] = _component("FOBOS", learning_rate=rate, l2=l2)
    else:
        p["optimizer"] = _component("AdaGrad", learning_rate=rate, eps=eps, decay=decay)


def _one_class(p: Values) -> None:
    p["n_epochs"] = p.pop("passes")
    rate, eps = p.pop("learning_rate"), p.pop("eps")
    if p.pop("learner") == "sgd":
        p["optimizer"] = _component("SGD", learning_rate=rate)
    else:
        p["optimizer"] = _component("AdaGrad", learning_rate=rate, eps=eps)


def _memory_tree(p: Values) -> None:
    p["n_epochs"], p["forgetting"] = p.pop("passes"), p.pop("forget")
    p["optimizer"] = _component("AdaGrad", learning_rate=p.pop("learning_rate"), eps=p.pop("eps"))


def _fastxml(p: Values) -> None:
    p["tol"] = p.pop("eps")


def _softmax(p: Values) -> None:
    p["n_epochs"] = p.pop("epochs")
    for name in ("word_ngrams", "char_ngrams", "n_buckets", "min_count"):
        p.pop(name)
    p["vectorizer"] = {"$fitted": "vectorizer"}  # has them


def _spectral(p: Values) -> None:
    p["n_leaves"] = p.pop("ways", 1)
    p["normalize"] = _normalization(p.pop("scaling"))
    p["tree_options"] = {name: p.pop(name) for name in _TREE_OPTIONS} | {"tol": p.pop("tolerance")}
    scorer = {name: p.pop(name) for name in _SCORER}
    optimizer = _component("AdaGrad", learning_rate=p.pop("learning_rate"), eps=p.pop("eps"))
    scorer = _component("CandidateScorer", **scorer, n_epochs=p.pop("passes"), optimizer=optimizer)
    base = p.pop("base")
    p["estimator"] = scorer if base is None else _upgrade_component(base)


def _threshold(p: Values) -> None:
    if p["estimator"] is not None:
        p["estimator"] = _upgrade_component(p["estimator"])


def _upgrade_component(old: Values) -> Values:
    return {"$model": old["$model"], "parameters": _upgrade_parameters(old["$model"], old["parameters"])}


def _normalization(scaling: str | None) -> bool | str:
    return scaling if scaling == "hellinger" else scaling == "unit"


_PARAMETERS: dict[str, Callable[[Values], None]] = {
    "PLTClassifier": _plt,
    "OnlinePLTClassifier": _online_plt,
    "LOMTreeClassifier": _one_class,
    "FilterTreeClassifier": _one_class,
    "MemoryTreeClassifier": _memory_tree,
    "FastXMLClassifier": _fastxml,
    "TreeSoftmaxClassifier": _softmax,
    "SpectralTreeClassifier": _spectral,
    "ThresholdClassifier": _threshold,
}


# --- schema and model ------------------------------------------------------------------------------------------------


def _upgrade_fitted(name: str, parameters: Values, old: Values, state: Values) -> tuple[Values, Values]:
    values, arrays = dict(state["metadata"]), state["arrays"]
    schema = {key: old[key] for key in _SCHEMA if key in old}
    if name in _ONLINE:
        schema["is_stream"] = True
        values["settings"] = {_SETTINGS.get(key, key): value for key, value in values["settings"].items()}
        columns = values.pop("feature_columns")
        if columns:
            schema["named_columns"] = columns
        if "source_format" in values:
            schema["source_format"] = values.pop("source_format")
    if name == "SpectralTreeClassifier":
        _upgrade_spectral(parameters, values)
    if name == "ThresholdClassifier":
        values = _upgrade_threshold(parameters, values)
        schema = values["estimator"]["fitted"]["schema"] if "online" in values else schema
    elif name != "PLTClassifier":
        labels = old["labels"]
        values |= {
            "n_labels": labels["n_labels"],
            "n_features": old["n_features"],
            "is_multiclass": labels["kind"] == "classes",
        }
    fitted = {"schema": schema, "seed": old["seed"], "options": _options(name, parameters)}
    if "thresholds" in old:
        fitted["thresholds"] = old["thresholds"]
    return fitted, {"values": values, "arrays": arrays}


def _options(name: str, parameters: Values) -> Values:
    if name == "PLTClassifier" and (parameters["beam"] is not None or parameters["bound"]):
        return {"beam": parameters["beam"], "slack": parameters["bound"]}
    return {"n_leaves": parameters.get("ways", 1)} if name == "SpectralTreeClassifier" else {}


def _nested(given: Values, fitted: Values, state: Values) -> Values:
    name = given["$model"]
    new_fitted, model = _upgrade_fitted(name, given["parameters"], fitted, state)
    return {"class": name, "fitted": new_fitted, "model": model}


def _upgrade_spectral(parameters: Values, values: Values) -> None:
    values["normalize"] = _normalization(parameters["scaling"])
    values.setdefault("space_rank", 0)
    if "scorer" in values:
        scorer = values.pop("scorer")
        values["estimator"] = _nested(parameters["base"], scorer["fitted"], scorer["state"])


def _upgrade_threshold(parameters: Values, old: Values) -> Values:
    given = parameters["estimator"] or _DEFAULT_ESTIMATOR
    values = {
        "estimator": _nested(given, old["fitted"], old["state"]),
        "c": old.get("c"),
        "tried": old.get("tried", []),
        "values": old.get("values", []),
    }
    if "online" in old:
        given_c = parameters["c"]
        tried = given_c["$tuple"] if isinstance(given_c, dict) else given_c if isinstance(given_c, list) else [given_c]
        values["online"] = [
            {**counts, "c": c, "first": [min(parameters["a"], c), c], "objective": parameters["objective"]}
            for c, counts in zip(tried, old["online"], strict=True)
        ]
    return values
