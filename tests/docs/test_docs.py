"""The examples of README.md and docs/ run, the examples folder runs, and links, paths and names lead somewhere.

A document runs from top to bottom in an empty folder: Python blocks (```pycon) as doctests that share their variables,
shell blocks (```console) command by command if the command is ours or only shows a file. Words and counts of the output
must match, decimals must be close, times and sizes may differ.
"""

from __future__ import annotations

import doctest
import importlib.util
import os
import re
import shlex
import subprocess
from pathlib import Path

import pytest

from shared.warm_python import ramify_command, warm_python

ROOT = Path(__file__).parents[2]
DOCUMENTS = sorted([ROOT / "README.md", ROOT / "CONTRIBUTING.md", *(ROOT / "docs").glob("*.md")])
# Pages without examples to run, but with links and paths.
LINKED = [*DOCUMENTS, ROOT / "CHANGELOG.md", *sorted((ROOT / "benchmarks").rglob("README.md"))]
EXAMPLES = sorted((ROOT / "examples").glob("*.py"))
OPTIONS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
RUN = ("ramify", "cat", "head", "ls")

TIME_OR_SIZE = re.compile(r"\b\d+(\.\d+)? (s|ms|bytes|kB|MB|GB)\b")
DECIMAL = re.compile(r"\d+\.\d+")


class CloseEnough(doctest.OutputChecker):
    """Decimals may differ a little, as vector units round differently; `refresh.py` brings documents up to date."""

    def check_output(self, want, got, optionflags):
        want, got = (TIME_OR_SIZE.sub(r"# \2", text) for text in (want, got))
        if super().check_output(want, got, optionflags):
            return True
        wanted, found = ([float(number) for number in DECIMAL.findall(text)] for text in (want, got))
        without = (DECIMAL.sub("#", text) for text in (want, got))
        if not super().check_output(*without, optionflags) or len(wanted) != len(found):
            return False
        return all(abs(w - f) <= max(0.011, 0.01 * abs(w)) for w, f in zip(wanted, found, strict=True))


BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def blocks(document):
    """(language, first line number, content) of the fenced blocks."""
    text = document.read_text(encoding="utf-8")
    return [(found[1], text.count("\n", 0, found.start()) + 2, found[2]) for found in BLOCK.finditer(text)]


def shell_commands(content):
    """(command, expected output) of a console block."""
    for part in re.split(r"^\$ ", content, flags=re.MULTILINE)[1:]:
        command, _, expected = part.partition("\n")
        yield command, expected


@pytest.fixture(scope="module")
def commands(tmp_path_factory):
    """A folder with the command `ramify`."""
    return make_command(tmp_path_factory.mktemp("bin"))


def make_command(folder):
    (folder / "ramify").write_text(f'#!/bin/sh\nexec {shlex.join(ramify_command())} "$@"\n')
    (folder / "ramify").chmod(0o755)
    return folder


def run_in_shell(command, folder, commands):
    """What a command of a document prints; None for one that is not run here."""
    if not command.startswith(tuple(f"{name} " for name in RUN)):
        return None
    environment = os.environ | {
        "PATH": f"{commands}{os.pathsep}{os.environ['PATH']}",
        "COLUMNS": "100",
        "PYTHONUTF8": "1",
    }
    done = subprocess.run(
        ["bash", "-c", command], cwd=folder, env=environment, capture_output=True, text=True, encoding="utf-8"
    )
    return done.stdout + done.stderr


def check_shell(content, folder, place, commands):
    for command, expected in shell_commands(content):
        got = run_in_shell(command, folder, commands)
        if got is None:
            continue
        # Blank lines at the end of an answer cannot be seen in a document.
        assert CloseEnough().check_output(expected.strip() + "\n", got.strip() + "\n", OPTIONS), (
            f"{place}: $ {command}\nexpected:\n{expected}\ngot:\n{got}"
        )


def check_python(content, variables, place):
    name, line = place
    test = doctest.DocTestParser().get_doctest(content, variables, name, name, line - 1)
    test.globs = variables  # get_doctest copies; later blocks need what this one made
    report: list[str] = []
    failed, _ = doctest.DocTestRunner(checker=CloseEnough(), optionflags=OPTIONS).run(
        test, out=report.append, clear_globs=False
    )
    assert failed == 0, "".join(report)


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda document: document.name)
def test_the_examples_of_the_document_run(document, tmp_path, monkeypatch, commands):
    monkeypatch.chdir(tmp_path)
    variables: dict[str, object] = {"__name__": "document"}
    for language, line, content in blocks(document):
        place = (document.name, line)
        if language == "pycon":
            check_python(content, variables, place)
        elif language == "console":
            check_shell(content, tmp_path, place, commands)
        else:
            assert language in ("text", "json", "python", "cpp"), f"{place}: unknown kind of block {language}"
            if language == "python":
                compile(content, document.name, "exec")


def test_the_comparison_tells_words_and_counts_and_large_differences_apart():
    def same(want, got):
        return CloseEnough().check_output(want, got, OPTIONS)

    assert same("Trained 40 rows in 0.05 s, 96.1%\n", "Trained 40 rows in 13 s, 95.5%\n")
    assert not same("Trained 40 rows\n", "Trained 41 rows\n")
    assert not same("('power', 0.96)\n", "('power', 0.92)\n")
    assert not same("('power', 0.96)\n", "('display', 0.96)\n")


def test_documents_have_examples_of_both_kinds():
    languages = [language for document in DOCUMENTS for language, _, _ in blocks(document)]
    assert languages.count("pycon") >= 5
    assert languages.count("console") >= 5


linked = pytest.mark.parametrize("document", LINKED, ids=lambda document: str(document.relative_to(ROOT)))


@linked
def test_links_lead_somewhere(document):
    text = document.read_text(encoding="utf-8")
    for target, anchor in re.findall(r"\]\(([^)#\s]*)(?:#([^)\s]+))?\)", text):
        if "://" not in target:
            page = (document.parent / target) if target else document
            assert page.exists(), f"{document.name} points to {target}"
            assert not anchor or anchor in anchors(page), f"{document.name} points to {target}#{anchor}"


def anchors(page):
    """The anchors of a page's headings, as GitHub forms them."""
    headings = re.findall(r"^#+ (.*)$", page.read_text(encoding="utf-8"), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


@linked
def test_files_that_are_named_exist(document):
    text = document.read_text(encoding="utf-8")
    for path in re.findall(r"`((?:src/ramify|core|tests|benchmarks|docs|examples)/[\w./-]+)`", text):
        assert path.startswith("benchmarks/work") or (ROOT / path).exists(), f"{document.name} names {path}"


@linked
def test_modules_and_names_that_are_mentioned_exist(document):
    text = document.read_text(encoding="utf-8")
    for name in re.findall(r"-m (benchmarks[\w.]*)", text):
        assert (ROOT / f"{name.replace('.', '/')}.py").exists(), f"{document.name} names {name}"
    for name in re.findall(r"`(ramify(?:\.\w+)+)[(`]", text):
        assert is_defined(name), f"{document.name} names {name}"


def is_defined(name):
    """Whether a dotted name is a module, or an attribute of one."""
    module, _, attribute = name.rpartition(".")
    try:
        if importlib.util.find_spec(name) is not None:
            return True
    except ModuleNotFoundError:
        pass  # its parent is not a package
    return hasattr(importlib.import_module(module), attribute)


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda example: example.name)
def test_the_example_runs(example, tmp_path):
    done = subprocess.run([*warm_python(), str(example)], cwd=tmp_path, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    assert done.stdout


def test_every_command_is_documented():
    said = (ROOT / "docs" / "command-line.md").read_text(encoding="utf-8")
    for command in ("train", "predict", "evaluate", "explain", "tree", "convert", "plot", "demo"):
        assert f"ramify {command}" in said, command


PAPERS = ROOT / "docs" / "papers.md"


def test_the_parameters_that_the_page_of_papers_names_exist():
    import inspect

    import ramify
    from ramify import registry

    text = PAPERS.read_text(encoding="utf-8")
    checked = 0
    for name, arguments in re.findall(r"`(\w+Classifier)\(([^)`]*)\)`", text):
        known = inspect.signature(getattr(ramify, name)).parameters
        for parameter in re.findall(r"(\w+)=", arguments):
            assert parameter in known, f"{name} has no {parameter}"
            checked += 1
    presets = set(re.findall(r"from_paper\(\"([\w-]+)\"\)", text))
    presets |= {
        name for line in re.findall(r"Presets?: (.*?)\.\s+Experiments", text, re.DOTALL) for name in quoted(line)
    }
    assert presets >= set().union(*(registry.presets_of(name) for name in registry.CLASSIFIERS))
    assert presets <= {*registry.PRESETS, "filter-tree"}
    assert checked >= 3


def quoted(text):
    return [name for name in re.findall(r"`([\w-]+)`", text) if name.islower()]


def test_the_page_of_papers_has_the_verdict_of_every_table_and_figure(monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT))
    papers = importlib.import_module("benchmarks.papers").PAPERS
    text = " ".join(PAPERS.read_text(encoding="utf-8").split())
    for paper, (title, items) in papers.items():
        assert title.partition(" (")[0] in text
        assert f"benchmarks.reproduce {paper}" in text
        for name, item in items.items():
            assert f"| {name} | {item.verdict} |" in text, f"{paper}, {name}: the page lacks: {item.verdict}"
