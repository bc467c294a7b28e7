"""Every benchmark explains itself, and says what it needs when it gets no data."""

from __future__ import annotations

import argparse
import importlib
import shlex
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SCRIPTS = sorted(
    ".".join(path.relative_to(ROOT).with_suffix("").parts)
    for path in [*(ROOT / "benchmarks").glob("*.py"), *(ROOT / "benchmarks").glob("*/*.py")]
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
    "benchmarks.plt.one_row": WORK,
    "benchmarks.plt.run": WORK,
    "benchmarks.reproduce": ["jasinska-2016"],
    "benchmarks.softmax.run": WORK,
    "benchmarks.spectral.run": ["purity"],
    "benchmarks.text": [],
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


@pytest.fixture
def benchmarks(monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT))
    return importlib.import_module


def test_every_plan_of_streams_has_only_settings_that_exist(benchmarks):
    plans, learners = benchmarks("benchmarks.online_plt.plans"), benchmarks("benchmarks.learners")
    for plan in plans.PLANS:
        for job in plans.jobs(plan, None, ["*"], 1):
            assert job.setting in learners.module(job.system).SETTINGS, (plan, job)


def parsed_by(module, arguments, monkeypatch):
    """The arguments of a script as it reads them; its work is not done."""

    class Read(Exception):
        pass

    def stop(parser, *given):
        raise Read(original(parser, *given))

    original = argparse.ArgumentParser.parse_args
    monkeypatch.setattr(argparse.ArgumentParser, "parse_args", stop)
    monkeypatch.setattr(sys, "argv", [module.__name__, *arguments])
    with pytest.raises(Read) as read:
        module.main()
    monkeypatch.undo()
    return read.value.args[0]


def test_the_commands_of_every_table_and_figure_are_ones_that_the_scripts_take(benchmarks, monkeypatch, tmp_path):
    reproduce, papers = benchmarks("benchmarks.reproduce"), benchmarks("benchmarks.papers").PAPERS
    assert len(papers) == 5
    for paper, (title, items) in papers.items():
        assert "(" in title  # title and authors
        for name, item in items.items():
            assert item.verdict.endswith("."), (paper, name)
            for quick in (False, True):
                given = argparse.Namespace(quick=quick, sets=None)
                for step in item.steps:
                    if quick and step.quick == "":
                        continue  # not part of --quick
                    command = reproduce.arguments(step, given, tmp_path, tmp_path)
                    assert "{" not in command
                    parsed_by(importlib.import_module(step.module), shlex.split(command), monkeypatch)
                    monkeypatch.syspath_prepend(str(ROOT))


def test_no_table_or_figure_needs_another_package(benchmarks, monkeypatch, tmp_path):
    """Peers are installed from the network on first use; `reproduce` downloads nothing."""
    reproduce, plans = benchmarks("benchmarks.reproduce"), benchmarks("benchmarks.online_plt.plans")
    checked = set()
    for _, items in benchmarks("benchmarks.papers").PAPERS.values():
        for step in (step for item in items.values() for step in item.steps):
            command = reproduce.arguments(step, argparse.Namespace(quick=False, sets=None), tmp_path, tmp_path)
            given = parsed_by(importlib.import_module(step.module), shlex.split(command), monkeypatch)
            monkeypatch.syspath_prepend(str(ROOT))
            if step.module == "benchmarks.online_plt.run":
                jobs = plans.jobs(given.plan, ["any"], given.settings, 1)
                assert {job.system for job in jobs} == {"ramify"}, command
            elif step.module == "benchmarks.softmax.run":
                assert given.alone, command
            elif step.module == "benchmarks.lomtree.run" and given.what == "table":
                assert not any(system.startswith("vw:") for system in given.systems), command
            checked.add(step.module)
    assert {"benchmarks.online_plt.run", "benchmarks.softmax.run", "benchmarks.lomtree.run"} <= checked


def test_reproduce_lists_its_items_and_says_what_a_paper_does_not_have(run, benchmarks, capsys, monkeypatch):
    reproduce = benchmarks("benchmarks.reproduce")
    monkeypatch.setattr(sys, "argv", ["reproduce"])
    reproduce.main()
    said = capsys.readouterr().out
    assert "Online probabilistic label trees" in said
    assert "table 2" in said
    message = run("benchmarks.reproduce", ["choromanska-2015", "--table", "9", "--quick"])
    assert message.startswith("error: choromanska-2015 has no table 9 here\nhint: it has table 1, table 2")


def test_a_quick_run_makes_its_sets_and_shows_both_numbers(benchmarks, tmp_path, capfd, monkeypatch):
    reproduce = benchmarks("benchmarks.reproduce")
    monkeypatch.setattr(reproduce, "QUICK", {"quick": (300, 12, 60), "quick-classes": (300, 12, 60)})
    arguments = ["reproduce", "jasinska-2016", "--table", "1", "--quick", "--work", str(tmp_path)]
    monkeypatch.setattr(sys, "argv", arguments)
    reproduce.main()
    said, progress = capfd.readouterr()
    assert "90.46/72.40/51.86" in said  # the paper's
    assert "| quick | PLT of the paper | P@1/3/5" in said  # ours
    assert "1/1" in progress


def test_the_scorer_of_streams_has_the_propensity_scored_precision_of_the_library(benchmarks):
    import numpy as np

    from ramify import metrics
    from ramify.data.synthetic import make_multilabel

    scoring = benchmarks("benchmarks.scoring")
    data = make_multilabel(300, 40, 100, random_state=0)
    P = np.random.default_rng(0).random((100, 40)).astype(np.float32) + data.Y[200:].toarray()
    labels = np.argsort(-P, axis=1)[:, :5]
    found = scoring.propensity_scored(labels, data.Y[200:], data.Y[:200])
    propensity = metrics.propensities(data.Y[:200])
    for k in (1, 3, 5):
        assert found[f"psp{k}"] == pytest.approx(100 * metrics.psp_at_k(data.Y[200:], P, propensity, k), abs=0.01)
