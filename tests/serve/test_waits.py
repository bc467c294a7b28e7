"""Predictions wait for learning no longer than the published bound; learning does not wait for models to be saved."""

from __future__ import annotations

import asyncio
import os
import random
import threading
import time

import pytest

import ramify
from ramify.serve.saver import CAN_FORK, Saver
from ramify.serve.snapshots import Publication
from ramify.serve.waits import BOUND_SECONDS, LearningWaits
from shared.application import application
from shared.serving import served

N_LABELS = 20_000


@pytest.fixture(scope="module")
def large(tmp_path_factory):
    """A model whose snapshot takes much longer to write than a prediction."""
    folder = tmp_path_factory.mktemp("waits") / "large"
    texts = [f"word{n % 997} term{n % 4999} name{n}" for n in range(N_LABELS)]
    labels = [[f"label {n}"] for n in range(N_LABELS)]
    ramify.OnlinePLTClassifier(random_state=0).partial_fit(texts, labels).save(folder)
    return folder


def test_a_prediction_waits_for_learning_at_most_the_published_bound(large):
    with served(large, "--publish-seconds", "0.05", "--publish-examples", "20", new=False) as service:
        stops = threading.Event()

        def ask():
            while not stops.is_set():
                service.predict("word3 term7")

        askers = [threading.Thread(target=ask) for _ in range(2)]
        for asker in askers:
            asker.start()
        versions, number, deadline = set(), 0, time.monotonic() + 60
        while len(versions) < 4:  # several snapshots are mapped meanwhile
            service.learn([(f"new {number} {n}", [f"new label {number % 7}"]) for n in range(10)])
            versions.add(service.predict("word3")["version"])
            number += 1
            assert time.monotonic() < deadline
        stops.set()
        for asker in askers:
            asker.join()
        waited = service.client.get("/v1/progress").json()["learning_wait"]
        metrics = service.client.get("/metrics").text
    assert waited["bound_seconds"] == BOUND_SECONDS
    assert 0 < waited["longest_seconds"] <= BOUND_SECONDS
    assert f"ramify_learning_wait_bound_seconds {BOUND_SECONDS}" in metrics
    assert "ramify_learning_wait_seconds " in metrics


def test_a_wait_for_a_thread_that_holds_the_interpreter_is_measured():
    numbers = [random.random() for _ in range(400_000)]
    reports = []
    waits = LearningWaits(reports.append)
    asyncio.run(waits.during(lambda: sorted(numbers)))  # one call, which does not give way
    assert waits.longest > 0.02
    assert reports[-1] == waits.longest


@pytest.mark.parametrize("path", ["/v1/learn", "/v1/projects/live/learn"])
def test_examples_are_read_by_the_process_that_learns(tmp_path, monkeypatch, path):
    """A large body takes long to parse, so a worker passes it on as it came."""
    received = []

    async def learn_body(kind, key, body):
        received.append(body)
        return {"n_examples": 0, "version": 0, "duplicate": False}

    with application(tmp_path / "live", is_new=True) as client:
        monkeypatch.setattr(client.writer, "learn_body", learn_body)
        answer = client.post(path, content=b"not even JSON", headers={"content-type": "application/json"})
    assert answer.status_code < 300
    assert received == [b"not even JSON"]


# --- saving beside learning ------------------------------------------------------------------------------------------


@pytest.mark.skipif(not CAN_FORK, reason="models are written in the same process here")
def test_a_model_is_saved_as_of_the_moment_while_it_learns_on(tmp_path):
    classifier = ramify.OnlinePLTClassifier(random_state=0).partial_fit(["a b", "c d"] * 20, [["x"], ["y"]] * 20)
    before = classifier.predict_one("a b", top_k=2)
    done, saved = threading.Event(), []
    saver = Saver(forks=True, on_done=done.set)
    begun, goes_on = os.pipe()

    def take():
        os.read(0, 1)  # the other process waits until this one has learned more
        return Publication(classifier, {})

    # The new process closes every descriptor but 0 to 2, so it gets its cue on standard input.
    old = os.dup(0)
    os.dup2(begun, 0)
    try:
        saver.save(take, tmp_path / "model", lambda: saved.append(True), waits=False)
        assert saver.is_busy
        classifier.partial_fit(["a b"] * 50, [["z"]] * 50)
        os.write(goes_on, b"!")
        assert done.wait(60)
    finally:
        os.dup2(old, 0)
        for descriptor in (old, begun, goes_on):
            os.close(descriptor)
        saver.close()
    assert saved == [True]
    assert not saver.is_busy
    assert ramify.load(tmp_path / "model").predict_one("a b", top_k=2) == before
    assert classifier.predict_one("a b", top_k=1)[0][0] == "z"


@pytest.mark.parametrize("forks", [True, False])
def test_a_model_that_cannot_be_written_is_said_and_tried_again(tmp_path, caplog, forks):
    (tmp_path / "file").write_text("in the way")
    classifier = ramify.OnlinePLTClassifier(random_state=0).partial_fit(["a"], [["x"]])
    done, saved = threading.Event(), []
    saver = Saver(forks=forks, on_done=done.set)
    saver.save(lambda: Publication(classifier, {}), tmp_path / "file", lambda: saved.append(True), waits=False)
    assert done.wait(60)
    saver.close()
    assert saved == []
    assert "in the way" in caplog.records[0].why


def test_a_correction_is_in_a_fresh_answer_while_a_snapshot_is_written(large):
    with application(large, publish_seconds=0.01) as client:
        for number in range(5):
            client.learn((f"zebra {number}", [f"animal {number}"]))
            answer = client.post("/v1/predict", json={"texts": [f"zebra {number}"], "fresh": True}).json()
            assert f"animal {number}" in [label["label"] for label in answer["results"][0]["labels"]]
