"""What was acknowledged survives: kill -9, a full disk, a damaged journal; recovery gives the same bits."""

from __future__ import annotations

import json
import shutil
import sqlite3
import subprocess
import threading
from pathlib import Path

import httpx
import numpy as np
import pytest

import ramify
from ramify.cli.main import run
from ramify.serve.backup import back_up
from ramify.serve.journal import Batch, Journal, JournalError
from ramify.serve.repair import repair
from ramify.serve.settings import Settings
from ramify.serve.snapshots import complete_snapshot
from ramify.serve.store import open_store
from ramify.serve.teaching import learn
from shared.application import application
from shared.serving import RAMIFY, served

WORDS = [
    "chest",
    "pain",
    "kidney",
    "stone",
    "cough",
    "fever",
    "fracture",
    "burn",
    "nausea",
    "headache",
    "rash",
    "swelling",
]


def example(number):
    a, b = WORDS[number % 12], WORDS[number // 12 % 12]
    return f"{a} {b} {number}", [a, f"{a} {b}"]


def examples(start, stop):
    return [{"text": text, "labels": labels} for text, labels in map(example, range(start, stop))]


def same_bits(one, other):
    """Whether two classifiers have learned exactly the same."""
    values, arrays = one.model_.state()
    other_values, other_arrays = other.model_.state()
    assert values == other_values
    assert one.classes_.tolist() == other.classes_.tolist()
    assert arrays.keys() == other_arrays.keys()
    for name, array in arrays.items():
        np.testing.assert_array_equal(array, other_arrays[name], err_msg=name)
    return True


def replayed(folder):
    """The model that the journal of a directory describes, learned in one go without any crash."""
    with_model = Settings(model=folder.parent / f"{folder.name}-replayed", is_new=True)
    classifier = open_store(with_model).classifier
    for piece in Journal(folder / "journal.sqlite").after(0):
        learn(classifier, piece.examples, is_multiclass=False)
    return classifier


# --- kill -9 ---------------------------------------------------------------------------------------------------------


def test_nothing_acknowledged_is_lost_or_counted_twice_when_killed(tmp_path):
    model, acknowledged, unclear = tmp_path / "live", set(), set()
    for life in range(3):
        with served(model, "--checkpoint-seconds", "0.3", "--publish-seconds", "0.05") as service:
            # What was sent when the service was killed is sent again, with the same key.
            for number in sorted(unclear):
                assert service.learn([example(number)], key=f"k{number}").status_code == 200
            acknowledged |= unclear
            unclear.clear()
            assert service.client.get("/v1/progress").json()["n_examples"] == len(acknowledged)
            timer = threading.Timer(0.5 + 0.3 * life, service.process.kill)
            timer.start()
            number = max(acknowledged, default=-1)
            try:
                while True:
                    number += 1
                    unclear.add(number)
                    if service.learn([example(number)], key=f"k{number}").status_code != 200:
                        break  # the worker lived a moment longer than the writer
                    acknowledged.add(number)
                    unclear.discard(number)
            except httpx.TransportError:
                pass
            timer.join()
            service.process.wait()
    with served(model) as service:
        for number in unclear:
            service.learn([example(number)], key=f"k{number}")
        acknowledged |= unclear
        progress = service.client.get("/v1/progress").json()
        assert progress["n_examples"] == len(acknowledged) > 10
        assert service.stop() == 0
    texts = [e["text"] for piece in Journal(model / "journal.sqlite").after(0) for e in piece.examples]
    assert sorted(texts) == sorted(example(number)[0] for number in acknowledged)
    assert same_bits(ramify.load(model), replayed(model))


def test_answers_after_a_crash_are_those_from_before(tmp_path):
    with served(tmp_path / "live", "--publish-seconds", "0.05") as service:
        for start in range(0, 100, 10):
            service.learn([example(number) for number in range(start, start + 10)])
        service.wait_for_version(100)
        before = service.predict("chest pain", "cough fever", top_k=10)
        service.kill()
    with served(tmp_path / "live") as service:  # no checkpoint was saved: all of it is replayed
        assert service.predict("chest pain", "cough fever", top_k=10) == before


def test_a_stopped_service_has_saved_everything(tmp_path):
    with served(tmp_path / "live") as service:
        service.learn([example(number) for number in range(50)])
        assert service.stop() == 0
    loaded = ramify.load(tmp_path / "live")
    assert loaded.n_examples_ == 50
    assert same_bits(loaded, replayed(tmp_path / "live"))


def test_checkpoints_and_replay_give_the_same_bits_for_requests_of_any_size(tmp_path):
    sizes = [1, 7, 100, 1, 30, 250, 3]
    with application(tmp_path / "live", is_new=True, checkpoint_seconds=0.01, publish_seconds=0.01) as client:
        start = 0
        for size in sizes:
            taught = examples(start, start + size)
            if size < 10:  # corrections, which are learned in several steps
                taught = [example | {"sure": 0.9} for example in taught]
            client.run(client.writer.learn(taught, None))
            start += size
    with application(tmp_path / "live") as client:
        assert client.get("/v1/progress").json()["n_examples"] == start
        assert same_bits(client.writer.classifier, replayed(tmp_path / "live"))


# --- the directory ---------------------------------------------------------------------------------------------------


def test_a_directory_that_is_served_is_refused(tmp_path):
    with served(tmp_path / "live"):
        command = [*RAMIFY, "serve", "--model", str(tmp_path / "live"), "--port", "0"]
        second = subprocess.run(command, capture_output=True, text=True, timeout=60)
        assert second.returncode == 2
        assert "in use by ramify serve" in second.stderr


def test_a_service_killed_while_it_creates_its_journal_starts_again(tmp_path, monkeypatch):
    def killed(*_):
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr("ramify.serve.journal.os.replace", killed)
        with pytest.raises(KeyboardInterrupt):
            open_store(Settings(model=tmp_path / "live", is_new=True))
    with application(tmp_path / "live", is_new=True) as client:
        assert client.learn(("a", ["a"])).status_code == 200


def test_a_journal_takes_all_facts_of_a_model_or_none(tmp_path):
    journal = Journal(tmp_path / "journal.sqlite")
    with pytest.raises(TypeError):
        journal.set_facts(new={"seed": 0}, n_base=object())
    assert "new" not in Journal(tmp_path / "journal.sqlite").facts


def test_a_write_ahead_log_without_its_journal_is_kept_and_said(tmp_path):
    folder = tmp_path / "live"
    journal = open_store(Settings(model=folder, is_new=True)).journal
    journal.append([Batch(examples(0, 10))])
    log = (folder / "journal.sqlite-wal").read_bytes()
    journal.close()
    (folder / "journal.sqlite").unlink()
    (folder / "journal.sqlite-wal").write_bytes(log)
    with pytest.raises(JournalError, match="is missing"):
        open_store(Settings(model=folder, is_new=True))
    assert (folder / "journal.sqlite-wal").read_bytes() == log


def test_a_directory_without_a_model_is_refused_with_a_hint(tmp_path, capsys):
    assert run(["serve", "--model", str(tmp_path / "none")]) == 2
    assert "--new" in capsys.readouterr().err


def test_new_continues_what_is_there(tmp_path):
    for n in (1, 2):
        with application(tmp_path / "live", is_new=True) as client:
            client.learn(("a", ["a"]))
            assert client.get("/v1/progress").json()["n_examples"] == n


def test_a_model_that_was_replaced_does_not_take_over_the_journal(tmp_path):
    with application(tmp_path / "live", is_new=True) as client:
        client.learn(("a", ["a"]))
    ramify.OnlinePLTClassifier(random_state=0).partial_fit(["b"], [["b"]]).save(tmp_path / "live")
    with pytest.raises(JournalError, match="was replaced"):
        open_store(Settings(model=tmp_path / "live"))
    # Nor do workers answer with the snapshot of the old one until the supervisor has found out.
    assert complete_snapshot(Settings(model=tmp_path / "live")) is None


def test_a_model_that_was_replaced_before_it_was_taught_is_served(tmp_path):
    for label in ("a", "b"):
        ramify.OnlinePLTClassifier(random_state=0).partial_fit([label], [[label]]).save(tmp_path / "live")
        with application(tmp_path / "live") as client:
            assert [
                found["label"]
                for found in client.post("/v1/predict", json={"texts": [label]}).json()["results"][0]["labels"]
            ] == [label]
            assert client.get("/v1/progress").json()["n_examples"] == 1
    with application(tmp_path / "live") as client:
        client.learn(("c", ["c"]))
        assert client.get("/v1/progress").json()["n_examples"] == 2


def test_a_model_ahead_of_its_journal_goes_on(tmp_path):
    with application(tmp_path / "live", is_new=True) as client:
        client.run(client.writer.learn(examples(0, 5), None))
        shutil.copytree(tmp_path / "live", tmp_path / "early")
        client.run(client.writer.learn(examples(5, 10), None))
    for suffix in ("", "-wal", "-shm"):
        Path(f"{tmp_path}/live/journal.sqlite{suffix}").unlink(missing_ok=True)
        if Path(f"{tmp_path}/early/journal.sqlite{suffix}").exists():
            shutil.copy(f"{tmp_path}/early/journal.sqlite{suffix}", f"{tmp_path}/live/journal.sqlite{suffix}")
    with application(tmp_path / "live") as client:
        assert client.learn(("a", ["a"])).json()["version"] == 11


# --- damage ----------------------------------------------------------------------------------------------------------


@pytest.fixture
def taught(tmp_path):
    """A directory with 2,000 examples in its journal."""
    folder = tmp_path / "live"
    folder.mkdir()
    journal = Journal(folder / "journal.sqlite")
    journal.set_facts(new={"ngrams": 1, "seed": 0, "is_multiclass": False}, is_multiclass=False, n_base=0)
    for start in range(0, 2000, 50):
        journal.append([Batch(examples(start, start + 50), f"key {start}")])
    journal.close()
    return folder / "journal.sqlite"


def test_a_truncated_journal_is_refused_unchanged_and_can_be_repaired(taught):
    content = taught.read_bytes()
    taught.write_bytes(content[: len(content) * 2 // 3 // 4096 * 4096])
    damaged = taught.read_bytes()
    with pytest.raises(JournalError, match="ramify journal repair"):
        list(Journal(taught).after(0))
    assert taught.read_bytes() == damaged
    kept, _, old = repair(taught)
    assert 500 < kept < 2000
    assert old.exists()
    found = [e for piece in Journal(taught).after(0) for e in piece.examples]
    assert len(found) == kept
    assert all(e in examples(0, 2000) for e in found)


def test_a_damaged_page_costs_only_its_own_examples(taught):
    content = bytearray(taught.read_bytes())
    place = content.index(b"chest pain 12") - 5 if b"chest pain 12" in content else len(content) // 2
    content[place : place + 40] = b"\xff" * 40
    taught.write_bytes(bytes(content))
    with pytest.raises((JournalError, UnicodeDecodeError)):
        list(Journal(taught).after(0))
    kept, lost, _ = repair(taught)
    assert 1900 < kept < 2000
    assert lost == 2000 - kept or lost < 2000 - kept
    numbers = [int(e["text"].split()[-1]) for piece in Journal(taught).after(0) for e in piece.examples]
    assert numbers == sorted(numbers)


def test_a_changed_example_is_noticed(taught):
    database = sqlite3.connect(taught)
    database.execute("UPDATE examples SET content = replace(content, 'chest', 'CHEST') WHERE sequence = 13")
    database.commit()
    database.close()
    with pytest.raises(JournalError, match="example 13"):
        list(Journal(taught).after(0))
    assert run(["journal", "check", str(taught)]) == 2
    assert run(["journal", "repair", str(taught)]) == 0
    assert run(["journal", "check", str(taught)]) == 0


def test_a_file_that_is_no_journal_is_refused(tmp_path, capsys):
    folder = tmp_path / "live"
    folder.mkdir()
    (folder / "journal.sqlite").write_bytes(b"this is not a database" * 100)
    assert run(["serve", "--model", str(folder), "--port", "0"]) == 2
    assert "is damaged" in capsys.readouterr().err


def test_a_truncated_write_ahead_log_keeps_complete_commits(tmp_path):
    path = tmp_path / "journal.sqlite"
    journal = Journal(path)
    for start in range(0, 100, 10):
        journal.append([Batch(examples(start, start + 10))])
    copy = tmp_path / "copy.sqlite"
    shutil.copy(path, copy)
    log = Path(f"{path}-wal").read_bytes()
    Path(f"{copy}-wal").write_bytes(log[: int(len(log) * 0.6)])
    numbers = [int(e["text"].split()[-1]) for piece in Journal(copy).after(0) for e in piece.examples]
    assert 0 < len(numbers) < 100
    assert numbers == list(range(len(numbers)))
    assert len(numbers) % 10 == 0


@pytest.fixture
def logged(tmp_path):
    """A journal whose 100 examples are still in its log, as after a crash."""
    path = tmp_path / "journal.sqlite"
    journal = Journal(path)
    journal.set_facts(new={"ngrams": 1, "seed": 0, "is_multiclass": False}, is_multiclass=False, n_base=0)
    for start in range(0, 100, 10):
        journal.append([Batch(examples(start, start + 10), f"key {start}")])
    (tmp_path / "crashed").mkdir()
    for file in (path, Path(f"{path}-wal")):
        shutil.copy(file, tmp_path / "crashed" / file.name)
    journal.close()
    return tmp_path / "crashed" / path.name


# The number and salt of the log, a page's salt and checksum, and pages of all kinds.
@pytest.mark.parametrize("place", [0, 9, 13, 17, 25, 42, 50, 2000, 0.3, 0.5, 0.7])
def test_damage_in_the_write_ahead_log_is_no_end_of_it(logged, place):
    log = Path(f"{logged}-wal")
    content = bytearray(log.read_bytes())
    at = place if isinstance(place, int) else int(place * len(content))
    content[at] ^= 0x5A
    log.write_bytes(content)
    with pytest.raises(JournalError, match=r"its log is, with \d+ complete commits behind the damage"):
        Journal(logged)
    assert log.read_bytes() == content  # nothing was dropped
    kept, lost, _ = repair(logged)
    assert kept >= 70  # all but those of a page
    assert kept + lost == 100
    assert sum(len(piece.examples) for piece in Journal(logged).after(0)) == kept


def test_a_commit_that_a_crash_left_incomplete_is_dropped_without_a_word(logged):
    log = Path(f"{logged}-wal")
    content = bytearray(log.read_bytes())
    content[-2000] ^= 0x5A  # of the last commit, which was never acknowledged
    log.write_bytes(content)
    assert Journal(logged).last == 90


@pytest.mark.parametrize("size", [0, 1, 99])
def test_a_journal_without_its_beginning_keeps_its_log(logged, size):
    log = Path(f"{logged}-wal").read_bytes()
    with logged.open("r+b") as file:
        file.truncate(size)
    with pytest.raises(JournalError, match="its beginning is missing"):
        Journal(logged)
    assert logged.stat().st_size == size
    assert Path(f"{logged}-wal").read_bytes() == log  # SQLite would delete it


def test_a_full_disk_is_said_and_nothing_is_half_committed(tmp_path):
    with application(tmp_path / "live", is_new=True) as client:
        assert client.learn(("a", ["a"])).status_code == 200
        database = client.writer.journal._db
        pages = database.execute("PRAGMA page_count").fetchone()[0]
        database.execute(f"PRAGMA max_page_count={pages}")
        big = [("word " * 2000, ["a"])] * 50
        refused = client.learn(*big, key="again")
        assert refused.status_code == 507
        assert "disk is full" in refused.json()["detail"]
        assert client.post("/v1/predict", json={"texts": ["a"], "fresh": True}).json()["version"] == 1
        database.execute("PRAGMA max_page_count=1000000")
        assert client.learn(*big, key="again").json() == {"n_examples": 50, "version": 51, "duplicate": False}


# --- the journal as data ---------------------------------------------------------------------------------------------


def test_a_first_example_that_was_not_kept_settles_nothing(tmp_path, monkeypatch):
    def full(*_):
        raise OSError(28, "No space left on device")

    with application(tmp_path / "live", is_new=True) as client:
        with monkeypatch.context() as patched:
            patched.setattr(client.writer.journal, "append", full)
            assert client.learn(("a text", ["label"])).status_code == 507
        rows = {"examples": [{"features": {"3": 1.0}, "labels": [7]}]}
        assert client.post("/v1/learn", json=rows).status_code == 200


def test_pruning_keeps_the_last_examples_and_the_counts(tmp_path):
    settings = {"keep_examples": 20, "checkpoint_seconds": 0.01}
    with application(tmp_path / "live", is_new=True, **settings) as client:
        for start in range(0, 100, 10):
            client.run(client.writer.learn(examples(start, start + 10), None))
    journal = Journal(tmp_path / "live" / "journal.sqlite")
    assert journal.first() == 81
    assert journal.last == 100
    assert sum(n for _, n in journal.most_frequent(1000)) == 200
    with application(tmp_path / "live", **settings) as client:
        assert client.get("/v1/progress").json()["n_examples"] == 100
        assert client.learn(("a", ["a"])).json()["version"] == 101


def test_a_backup_of_a_running_service_serves_the_same_answers(tmp_path):
    with application(tmp_path / "live", is_new=True, checkpoint_seconds=0.05) as client:
        stops = threading.Event()

        def teach():
            start = 1000
            while not stops.is_set():
                client.run(client.writer.learn(examples(start, start + 20), None))
                start += 20

        client.run(client.writer.learn(examples(0, 100), None))
        thread = threading.Thread(target=teach)
        thread.start()
        copied = [back_up(tmp_path / "live", tmp_path / f"copy{n}") for n in range(3)]
        stops.set()
        thread.join()
    assert copied[0] >= 100
    assert copied == sorted(copied)
    for n in range(3):
        with application(tmp_path / f"copy{n}") as client:
            assert client.get("/v1/progress").json()["n_examples"] == copied[n]
            assert same_bits(client.writer.classifier, replayed(tmp_path / f"copy{n}"))


def test_a_journal_is_data_for_a_batch_model(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    with application(tmp_path / "live", is_new=True) as client:
        client.run(client.writer.learn(examples(0, 200), None))
    assert run(["train", "--journal", "live", "--model", "batch", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["rows"] == 200
    assert ramify.load("batch").predict_one("kidney stone", top_k=1)[0][0].startswith("kidney")
    assert run(["journal", "export", "live"]) == 0
    assert len(capsys.readouterr().out.splitlines()) == 200
