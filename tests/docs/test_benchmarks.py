"""Every benchmark explains itself, and says what it needs when it gets no data."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SCRIPTS = sorted(
    ".".join(path.relative_to(ROOT).with_suffix("").parts)
    for path in (ROOT / "benchmarks").glob("*/*.py")
    if "parse_args()" in path.read_text(encoding="utf-8")
)
WORK = ["--work", "."]
# Arguments with which a script needs data, or another package.
NEEDY = {
    "benchmarks.decide.budget": WORK,
    "benchmarks.decide.fmeasure": WORK,
    "benchmarks.lomtree.run": ["table"],
    "benchmarks.memory_tree.run": WORK,
    "benchmarks.nearest_rows.run": WORK,
    "benchmarks.online_plt.figure": ["none.jsonl", "none.png"],
    "benchmarks.online_plt.run": ["throughput", *WORK],
    "benchmarks.plt.run": WORK,
    "benchmarks.softmax.run": WORK,
    "benchmarks.spectral.run": ["purity"],
    "benchmarks.trees.run": WORK,
}


@pytest.fixture
def run(monkeypatch, tmp_path):
    """Run a script's main as `python -m` does, in an empty folder; returns what it exits with."""
    monkeypatch.syspath_prepend(str(ROOT))
    monkeypatch.chdir(tmp_path)

    def run(name, arguments):
        module = importlib.import_module(name)
        monkeypatch.setattr(module, "WORK", tmp_path, raising=False)
        monkeypatch.setattr(sys, "argv", [name, *arguments])
        with pytest.raises(SystemExit) as stopped:
            module.main()
        return stopped.value.code

    return run


@pytest.mark.parametrize("name", SCRIPTS)
def test_help_names_the_command(run, name, capsys):
    assert run(name, ["--help"]) in (0, None)
    assert f"python -m {name}" in capsys.readouterr().out


@pytest.mark.parametrize("name", sorted(NEEDY))
def test_a_run_without_data_ends_with_a_message(run, name):
    message = run(name, NEEDY[name])
    assert message.startswith("error: ")
    assert "\nhint: " in message


def test_the_scripts_are_found():
    assert set(NEEDY) < set(SCRIPTS)
