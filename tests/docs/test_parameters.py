"""docs/parameters.md lists every parameter of every classifier as the code has it."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest

import ramify

ROOT = Path(__file__).parents[2]
CLASSIFIERS = [name for name in ramify.__all__ if name.endswith("Classifier")]


@pytest.fixture(scope="module")
def script():
    spec = importlib.util.spec_from_file_location("parameters", ROOT / "docs" / "parameters.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_page_is_current(script):
    assert script.PAGE.read_text(encoding="utf-8") == script.page(), "run: python docs/parameters.py"


@pytest.mark.parametrize("name", CLASSIFIERS)
def test_every_parameter_has_a_row_with_its_default_and_a_meaning(script, name):
    column = list(script.classifiers().values()).index(getattr(ramify, name))
    rows = [line.strip("| ").split(" | ") for line in script.page().splitlines() if line.startswith("| `")]
    table = {row[0].strip("`"): row for row in rows if len(row) == len(CLASSIFIERS) + 2}
    for parameter, default in script.defaults(getattr(ramify, name)).items():
        assert table[parameter][column + 1] == script.shown(default)
        assert table[parameter][-1].strip(), f"{name} does not describe {parameter}"


def test_a_parameter_that_classifiers_describe_differently_has_a_line_for_each(script):
    class One:
        """
        Parameters
        ----------
        size, depth : int
            How large. And more.
        """

        def __init__(self, size=1, depth=2):
            pass

    class Other:
        """
        Parameters
        ----------
        size : "small" or "large"
        """

        def __init__(self, size="small"):
            pass

    assert script.described(One) == {"size": "How large.", "depth": "How large."}
    lines = script.table({"one": One, "other": Other}, "parameter")
    assert lines[2:] == [
        "| `depth` | `2` |  | How large. |",
        '| `size` | `1` | `"small"` | *one*: How large.<br>*other*: "small" or "large". |',
    ]
