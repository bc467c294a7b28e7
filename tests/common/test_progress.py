"""Progress: phases are timed, and shown only on request."""

from __future__ import annotations

import io
import sys
import time

import pytest

from ramify import PLTClassifier
from ramify.common import progress
from ramify.data.synthetic import make_multilabel


@pytest.fixture(scope="module")
def data():
    return make_multilabel(200, 30, 100, random_state=0)


class Terminal(io.StringIO):
    def isatty(self):
        return True


def test_training_reports_its_phases(data):
    with progress.shown(False) as phases:
        PLTClassifier(n_trees=2, random_state=0).fit(data.X, data.Y)
    assert list(phases.seconds) == ["building the tree", "choosing the solver's settings", "training"]
    assert all(seconds > 0 for seconds in phases.seconds.values())


def test_phases_with_the_same_name_add_up_and_nested_calls_join_the_outer():
    with progress.shown(False) as outer:
        for _ in range(2):
            with progress.shown(True) as inner, progress.phase("waiting"):
                time.sleep(0.02)
            assert inner is outer
    assert outer.seconds["waiting"] >= 0.04


def test_a_block_whose_end_an_interrupt_skipped_does_not_swallow_later_ones():
    skipped = []

    def interrupted():
        skipped.append(progress.shown(False))
        skipped[0].__enter__()
        with progress.phase("before"):
            pass

    interrupted()
    with progress.shown(False) as phases, progress.phase("later"):
        pass
    assert list(phases.seconds) == ["later"]
    skipped[0].__exit__(None, None, None)


def test_nothing_is_written_by_default(data, capsys):
    PLTClassifier(random_state=0).fit(data.X, data.Y)
    with progress.phase("alone"):
        pass
    captured = capsys.readouterr()
    assert captured.out == captured.err == ""


def test_verbose_shows_phases_on_a_terminal_and_removes_them(data, monkeypatch):
    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    monkeypatch.setenv("TERM", "xterm")
    PLTClassifier(random_state=0, verbose=True).fit(data.X, data.Y)
    text = terminal.getvalue()
    assert "training" in text or "choosing C" in text or "building the tree" in text
    assert text.endswith("\x1b[?25h") or "\x1b[?25h" in text[-20:]  # the cursor is visible again


def test_a_counter_moves_the_bar(monkeypatch):
    class Half:
        done, total = 21, 42

    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    monkeypatch.setenv("TERM", "xterm")
    with progress.shown(True) as phases, progress.phase("counting", Half()):
        task = phases._display.tasks[0]
        phases._display.refresh()
        assert (task.completed, task.total) == (21, 42)


def test_an_error_inside_removes_the_display(monkeypatch):
    monkeypatch.setattr(sys, "stderr", Terminal())
    with pytest.raises(RuntimeError, match="broke"), progress.shown(True), progress.phase("breaking"):
        raise RuntimeError("broke")
    with progress.shown(False) as phases:
        assert phases._display is None


def test_a_bad_verbose_is_rejected(data):
    with pytest.raises(ValueError, match="verbose must be True or False"):
        PLTClassifier(verbose="loud").fit(data.X, data.Y)


def test_phases_in_steps_are_one_bar_that_only_rises(monkeypatch):
    terminal, done = Terminal(), []
    monkeypatch.setattr(sys, "stderr", terminal)
    monkeypatch.setenv("TERM", "xterm")
    steps = progress.Steps([("reading", 1), ("never", 1), ("tree", 2), ("training", 4), ("tree", 2), ("training", 4)])
    with progress.shown(True) as phases, phases.in_steps(steps):
        for name in ("reading", "unexpected", "tree", "training", "tree", "training"):
            counter = progress.RowCounter(total=2)
            inside = "detail" if name == "unexpected" else "tree"  # a phase inside a step is no step of its own
            with progress.phase(name, counter), progress.phase(inside):
                assert len(phases._display.tasks) == 1
                done.append(steps.done)
                counter.done = 1
                done.append(steps.done)
    assert done == sorted(done)
    assert done[4:6] == [143, 214]  # of 14 shares: reading and what never came, then half of the tree
    assert steps.done == steps.total


def test_a_notebook_without_widgets_gets_a_bar_instead_of_warnings(monkeypatch):
    monkeypatch.setattr("rich.console._is_jupyter", lambda: True)
    monkeypatch.setattr(progress, "find_spec", lambda name: None)
    assert not progress._display().console.is_jupyter
