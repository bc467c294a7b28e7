"""Progress: phases are timed, shown when asked, and never in the way."""

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


def test_training_goes_through_its_phases(data):
    with progress.shown(False) as phases:
        PLTClassifier(n_trees=2, random_state=0).fit(data.X, data.Y)
    assert list(phases.seconds) == ["building the tree", "choosing C, calibrating", "training"]
    assert all(seconds > 0 for seconds in phases.seconds.values())


def test_phases_of_one_name_add_up_and_inner_work_joins_the_outer():
    with progress.shown(False) as outer:
        for _ in range(2):
            with progress.shown(True) as inner, progress.phase("waiting"):
                time.sleep(0.02)
            assert inner is outer
    assert 0.04 <= outer.seconds["waiting"] < 10


def test_nothing_is_written_unless_asked(data, capsys):
    PLTClassifier(random_state=0).fit(data.X, data.Y)
    with progress.phase("alone"):
        pass
    captured = capsys.readouterr()
    assert captured.out == captured.err == ""


def test_verbose_shows_phases_on_a_terminal_and_takes_them_away(data, monkeypatch):
    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    monkeypatch.setenv("TERM", "xterm")
    PLTClassifier(random_state=0, verbose=True).fit(data.X, data.Y)
    said = terminal.getvalue()
    assert "training" in said or "choosing C" in said or "building the tree" in said
    assert said.endswith("\x1b[?25h") or "\x1b[?25h" in said[-20:]  # the cursor is back


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


def test_a_failure_inside_leaves_no_display_behind(monkeypatch):
    monkeypatch.setattr(sys, "stderr", Terminal())
    with pytest.raises(RuntimeError, match="broke"), progress.shown(True), progress.phase("breaking"):
        raise RuntimeError("broke")
    with progress.shown(False) as phases:
        assert phases._display is None


def test_verbose_is_checked_like_any_parameter(data):
    with pytest.raises(ValueError, match="verbose must be True or False"):
        PLTClassifier(verbose="loud").fit(data.X, data.Y)
