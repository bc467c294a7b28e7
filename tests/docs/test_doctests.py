"""The examples in the docstrings of every module of the installed package run and are right."""

from __future__ import annotations

import doctest
import importlib
import pkgutil

import pytest

import ramify

MODULES = sorted(module.name for module in pkgutil.walk_packages(ramify.__path__, "ramify."))


@pytest.mark.parametrize("name", ["ramify", *MODULES])
def test_the_examples_of_the_module_run(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)  # an example that writes a file leaves nothing behind
    results = doctest.testmod(importlib.import_module(name), optionflags=doctest.NORMALIZE_WHITESPACE)
    assert results.failed == 0, (
        f"{results.failed} of {results.attempted} examples of {name} failed; see the output above"
    )


def test_examples_are_found():
    finder = doctest.DocTestFinder()
    examples = sum(len(found.examples) for name in MODULES for found in finder.find(importlib.import_module(name)))
    assert examples > 10
