"""A small saved model, and helpers that change its files and keep the checksums right."""

from __future__ import annotations

import json

import numpy as np

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
