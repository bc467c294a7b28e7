"""A small saved model, and helpers that change its files and keep the checksums right."""

from __future__ import annotations

import json
from unittest import mock

import numpy as np

from ramify.base import save_load
from ramify.files import directory as model_directory

X = np.arange(12.0).reshape(6, 2)
Y = [["a"], ["b, c"], [], ["ü"], ["a", "ü"], ["a"]]


def data_file(directory):
    (path,) = directory.glob("arrays-*.safetensors")
    return path


def write_manifest(directory, manifest):
    """With a right checksum."""
    manifest["checksum"] = model_directory._manifest_checksum(manifest)
    (directory / "manifest.json").write_text(json.dumps(manifest))


def load_from_memory(manifest, arrays):
    """What `load` makes of files with this content and right checksums, which would take most of an attack's time.

    As in a memory map, arrays cannot be written to; but each lies alone: a sanitizer sees who reads beyond it.
    """
    alone = {name: array if is_alone(array) else alone_in_memory(array) for name, array in arrays.items()}
    with mock.patch.object(save_load, "read_model", return_value=(manifest, alone)):
        return save_load.load("memory")


def is_alone(array):
    return isinstance(array.base, np.ndarray) and isinstance(array.base.base, bytes)


def alone_in_memory(array):
    return np.frombuffer(array.tobytes(), dtype=array.dtype).reshape(array.shape)
