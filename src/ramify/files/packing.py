"""Values of a manifest: anything that a model file holds, as JSON that refers to arrays by name."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ramify import registry
from ramify.data.hierarchy import Hierarchy
from ramify.data.names import NameTable
from ramify.files.directory import ModelFileError
from ramify.trees.label_tree import LabelTree

_MANY = 64


def pack_parameters(model: Any, where: str, arrays: dict[str, NDArray[Any]]) -> dict[str, Any]:
    packed = {}
    for name, value in model.get_params(deep=False).items():
        if name == "vectorizer" and hasattr(value, "fit_transform"):
            packed[name] = {"$fitted": name}  # its unfitted twin
            continue
        if name == "hierarchy" and value is not None:  # labels may be numbers, which are no keys of JSON
            pairs = [list(pair) for pair in Hierarchy.from_mapping(value).to_mapping().items()]
            packed[name] = {"$dict": pack(pairs, f"{where}.{name}", arrays)}
            continue
        try:
            packed[name] = pack(value, f"{where}.{name}", arrays)
        except ModelFileError:
            # What the parameter led to says as much: a tree for the function that built it, a seed for its generator.
            led_to = getattr(model, "seed_" if name == "random_state" else f"{name}_", None)
            if led_to is None:
                raise
            packed[name] = pack(led_to, f"{where}.{name}", arrays)
    return packed


def pack(value: Any, where: str, arrays: dict[str, NDArray[Any]]) -> Any:
    """A value as JSON; arrays and long lists of strings go to `arrays`, and the JSON says where they are.

    >>> pack({"alpha": float("inf"), "rates": (1, 0.5)}, "parameters", {})
    {'alpha': {'$float': 'inf'}, 'rates': {'$tuple': [1, 0.5]}}
    """
    if value is None or isinstance(value, bool | int | str):
        return str(value) if isinstance(value, str) else value
    if isinstance(value, np.bool_ | np.integer):
        return value.item()
    if isinstance(value, float | np.floating):
        return float(value) if math.isfinite(value) else {"$float": str(float(value))}
    if isinstance(value, list) and len(value) > _MANY and all(type(item) is str for item in value):
        return {"$list": _pack_names(NameTable.from_names(value), where, arrays)}
    if isinstance(value, list | tuple):
        items = [pack(item, f"{where}.{position}", arrays) for position, item in enumerate(value)]
        return items if isinstance(value, list) else {"$tuple": items}
    if isinstance(value, Mapping) and all(type(key) is str and not key.startswith("$") for key in value):
        return {key: pack(item, f"{where}.{key}", arrays) for key, item in value.items()}
    if isinstance(value, NameTable):
        return {"$names": _pack_names(value, where, arrays)}
    if isinstance(value, LabelTree):
        arrays[f"{where}.parent"], arrays[f"{where}.label"] = value.parent, value.label
        return {"$tree": where, "n_labels": int(value.n_labels)}
    if isinstance(value, np.ndarray):
        return _pack_array(value, where, arrays)
    if registry.is_registered(type(value)):
        return {"$model": type(value).__name__, "parameters": pack_parameters(value, where, arrays)}
    raise ModelFileError(
        f"{where} is a {type(value).__name__} ({repr(value)[:60]}), which a model file cannot hold: "
        "give numbers, strings, arrays, a LabelTree, or the name of one of the library's own functions"
    )


def _pack_names(table: NameTable, where: str, arrays: dict[str, NDArray[Any]]) -> str:
    arrays[f"{where}.text"], arrays[f"{where}.offsets"] = table.text, table.offsets
    return where


def _pack_array(value: NDArray[Any], where: str, arrays: dict[str, NDArray[Any]]) -> dict[str, Any]:
    if value.dtype.kind == "U" or (value.dtype.kind == "O" and all(isinstance(item, str) for item in value.flat)):
        if value.ndim != 1:
            raise ModelFileError(f"{where} is a {value.ndim}-D array of strings; a model file holds 1-D ones")
        dtype = "O" if value.dtype.kind == "O" else f"<U{value.dtype.itemsize // 4}"
        return {"$strings": _pack_names(NameTable.from_names(value.tolist()), where, arrays), "dtype": dtype}
    if value.dtype.kind not in "biuf" or value.dtype.itemsize > 8:
        raise ModelFileError(
            f"{where} is an array of {value.dtype}, which a model file cannot hold: use numbers or strings"
        )
    arrays[where] = value
    return {"$array": where}


def unpack(value: Any, arrays: Mapping[str, NDArray[Any]], vectorizer: Any = None) -> Any:
    """The value that `pack` was given; a parameter that is the model's vectorizer becomes an unfitted copy of it."""
    if isinstance(value, list):
        return [unpack(item, arrays, vectorizer) for item in value]
    if not isinstance(value, dict):
        return value
    mark = next((key for key in value if key.startswith("$")), None)
    if mark is None:
        return {key: unpack(item, arrays, vectorizer) for key, item in value.items()}
    content = value[mark]
    if mark == "$float":
        return float(content)
    if mark == "$tuple":
        return tuple(unpack(item, arrays) for item in content)
    if mark == "$dict":
        return dict(unpack(content, arrays))
    if mark == "$array":
        return arrays[content]
    if mark == "$names":
        return _unpack_names(content, arrays)
    if mark == "$list":
        return _unpack_names(content, arrays).tolist()
    if mark == "$strings":
        table = _unpack_names(content, arrays)
        dtype = np.dtype(object) if value["dtype"] == "O" else table.string_dtype(value["dtype"])
        array = np.empty(len(table), dtype=dtype)
        array[:] = table.tolist()
        return array
    if mark == "$tree":
        return LabelTree(arrays[f"{content}.parent"], arrays[f"{content}.label"], value["n_labels"])
    if mark == "$model":
        return registry.load_class(content)(**unpack(value["parameters"], arrays, vectorizer))
    if mark == "$fitted":
        return None if vectorizer is None else _unfitted(vectorizer)
    raise ModelFileError(f"the manifest has the unknown mark {mark!r}: it was saved by a newer library; upgrade ramify")


def _unfitted(vectorizer: Any) -> Any:
    from sklearn.base import clone

    return clone(vectorizer)


def _unpack_names(where: str, arrays: Mapping[str, NDArray[Any]]) -> NameTable:
    return NameTable(arrays[f"{where}.text"], arrays[f"{where}.offsets"])
