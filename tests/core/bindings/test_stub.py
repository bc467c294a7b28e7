"""The committed stub of the compiled module is the one that nanobind generates from it."""

from __future__ import annotations

import ast
from importlib.resources import files
from pathlib import Path

from nanobind.stubgen import StubGen, load_pattern_file

from ramify import _core

PATTERNS = Path(__file__).parents[3] / "core" / "stub_patterns.txt"


def test_the_stub_is_up_to_date():
    generator = StubGen(_core, include_docstrings=False, patterns=load_pattern_file(str(PATTERNS)))
    generator.put(_core)
    committed = files("ramify").joinpath("_core.pyi").read_text(encoding="utf-8")
    assert ast.unparse(ast.parse(generator.get())) == ast.unparse(ast.parse(committed)), "run `make stubs`"
