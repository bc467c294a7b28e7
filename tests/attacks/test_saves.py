"""Saves that are cut off, run out of space, are killed or meet another save: the last whole model stays, and loads."""

from __future__ import annotations

import os
import random
import resource
import signal
import tempfile
import time
from collections import Counter
from pathlib import Path

import pytest

import ramify
from attacks.driver import n_inputs, report
from attacks.test_forks import in_a_child
from attacks.test_threads import CLASSES, MAKE, X
from contract.small_data import same
from ramify.files.directory import ModelFileError


def contents(folder):
    return {file.name: file.read_bytes() for file in folder.iterdir() if file.is_file()}


@pytest.mark.parametrize("name", MAKE)
def test_a_model_cut_off_anywhere_is_rejected(name, tmp_path):
    """At every length of both files for the first class, at some for the others."""
    MAKE[name]().fit(X[:8], CLASSES[:8]).save(tmp_path)
    step = 1 if name == "plt" else 97
    for file, content in ((file, file.read_bytes()) for file in list(tmp_path.iterdir())):
        for length in range(0, len(content), step):
            file.write_bytes(content[:length])
            with pytest.raises(ModelFileError):
                ramify.load(tmp_path)
        file.write_bytes(content)
    ramify.load(tmp_path)


def test_a_full_disk_leaves_the_model_that_was_there(tmp_path):
    ramify.NearestRowsClassifier().fit(X[:20], CLASSES[:20]).save(tmp_path)
    before = contents(tmp_path)
    clf = ramify.NearestRowsClassifier().fit(X, CLASSES)
    clf.save(tmp_path / "other")
    sizes = sorted(len(content) for content in contents(tmp_path / "other").values())

    def save_with_little_space():
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        for limit in (0, 1, sizes[0] - 1, sizes[0], sizes[1] - 1):
            resource.setrlimit(resource.RLIMIT_FSIZE, (limit, sizes[1]))
            with pytest.raises(OSError, match="File too large; what was saved there before is unchanged"):
                clf.save(tmp_path)
        resource.setrlimit(resource.RLIMIT_FSIZE, (sizes[1], sizes[1]))
        clf.save(tmp_path / "other")
        return 0

    assert in_a_child(save_with_little_space) == "answers"
    assert contents(tmp_path) == before


def attack_saves_with_kills(count, seed):
    """Kill `count` processes in the middle of saving; the model that is there always loads and answers as before."""
    chance, found = random.Random(seed), Counter()
    with tempfile.TemporaryDirectory(prefix="ramify-saves-") as name:
        clf = ramify.PLTClassifier(random_state=0).fit(X, CLASSES)
        clf.save(name)
        expected = clf.predict_proba(X, top_k=3)
        for _ in range(count):
            child = os.fork()
            if child == 0:
                try:
                    while True:
                        clf.save(name)
                finally:
                    os._exit(1)
            time.sleep(chance.random() * 0.02)
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)
            assert same(ramify.load(name, verify=True).predict_proba(X, top_k=3), expected)
            found["whole" if len(list(Path(name).iterdir())) == 2 else "whole, with leftovers"] += 1
        clf.save(name)
        assert len(list(Path(name).iterdir())) == 2
    return found


def test_a_save_that_is_killed_leaves_a_whole_model():
    report("kill -9 of save", attack_saves_with_kills(min(n_inputs(20), 300), 3))


def test_processes_that_save_to_one_directory_take_turns(tmp_path):
    models = [MAKE[name]().fit(X, CLASSES) for name in ("plt", "online plt")]
    models[0].save(tmp_path)
    children = []
    for clf in models * 2:
        children.append(os.fork())
        if children[-1] == 0:
            try:
                for _ in range(10):
                    clf.save(tmp_path)
                os._exit(0)
            finally:
                os._exit(1)
    running, n_loaded = set(children), 0
    while running:
        ramify.load(tmp_path, verify=True).predict_labels(X[:2])
        n_loaded += 1
        for child in list(running):
            pid, status = os.waitpid(child, os.WNOHANG)
            if pid:
                running.remove(child)
                assert status == 0
    assert n_loaded > 0
    assert len(list(tmp_path.iterdir())) == 2


def test_a_linked_directory_stays_a_link(tmp_path):
    clf = MAKE["plt"]().fit(X, CLASSES)
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to("real")
    for _ in range(2):
        clf.save(tmp_path / "link")
        assert (tmp_path / "link").is_symlink()
        assert len(list((tmp_path / "real").iterdir())) == 2
    assert same(ramify.load(tmp_path / "link").predict_proba(X), clf.predict_proba(X))


def test_an_empty_path_is_not_the_current_directory(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ModelFileError, match="the path to save to is empty"):
        MAKE["plt"]().fit(X, CLASSES).save("")
    assert not list(tmp_path.iterdir())
