"""The HTTP API: shapes, errors, limits, bulk streams."""

from __future__ import annotations

import json
import threading
import time

import pytest

from ramify import OnlinePLTClassifier, PLTClassifier
from ramify.serve import teaching
from shared.application import application

NOTES = [("acute chest pain", ["R07", "R"]), ("kidney stone", ["N20", "N"]), ("cough", ["R05", "R"])] * 10


@pytest.fixture(scope="module")
def client(tmp_path_factory):
    with application(tmp_path_factory.mktemp("api") / "live", is_new=True, publish_seconds=0.01) as client:
        assert client.learn(*NOTES).status_code == 200
        wait_for_version(client, len(NOTES))
        yield client


def wait_for_version(client, version):
    deadline = time.monotonic() + 30
    while client.post("/v1/predict", json={"texts": ["x"]}).json()["version"] < version:
        assert time.monotonic() < deadline
        time.sleep(0.01)


@pytest.fixture(scope="module")
def batch(tmp_path_factory):
    folder = tmp_path_factory.mktemp("batch") / "model"
    texts, labels = zip(*NOTES, strict=True)
    classifier = PLTClassifier(random_state=0).fit(list(texts), list(labels))
    classifier.set_names(labels={"R07": "Pain in throat and chest"}).save(folder)
    with application(folder) as client:
        yield client


# --- predict and explain ---------------------------------------------------------------------------------------------


def test_predict_has_the_promised_shape(client):
    answer = client.post("/v1/predict", json={"texts": ["chest pain", "stone"], "top_k": 2}).json()
    assert list(answer) == ["results", "version"]
    assert answer["version"] >= len(NOTES)
    for result in answer["results"]:
        assert list(result) == ["labels"]
        assert [list(label) for label in result["labels"]] == [["label", "probability"]] * 2
        assert all(0 <= label["probability"] <= 1 for label in result["labels"])
    assert {label["label"] for label in answer["results"][1]["labels"]} == {"N20", "N"}


def test_threshold_and_labels_restrict_the_answer(client):
    asked = {"texts": ["kidney stone", "cough"], "threshold": 0.5}
    for result in client.post("/v1/predict", json=asked).json()["results"]:
        assert result["labels"]
        assert all(label["probability"] >= 0.5 for label in result["labels"])
    asked = {"texts": ["kidney stone", "cough"], "labels": ["R05", "N20"]}
    results = client.post("/v1/predict", json=asked).json()["results"]
    assert [[label["label"] for label in result["labels"]] for result in results] == [["N20", "R05"], ["R05", "N20"]]


def test_a_fresh_answer_knows_what_was_acknowledged_just_before(client):
    for number in range(5):
        version = client.learn((f"zebra {number}", [f"animal {number}"])).json()["version"]
        answer = client.post("/v1/predict", json={"texts": [f"zebra {number}"], "fresh": True}).json()
        assert answer["version"] >= version
        assert f"animal {number}" in [label["label"] for label in answer["results"][0]["labels"]]


def test_explain_names_the_words_and_the_path(client):
    answer = client.post("/v1/explain", json={"text": "Kidney STONE there", "label": "N20"}).json()
    assert answer["explanation"]["label"] == "N20"
    assert answer["explanation"]["paths"][0]
    marked = {"Kidney STONE there"[span["start"] : span["end"]]: span["weight"] for span in answer["spans"]}
    assert marked["STONE"] > 0
    assert "there" not in marked


def test_features_are_predicted_and_learned(tmp_path):
    with application(tmp_path / "live", is_new=True, publish_seconds=0.01) as client:
        examples = [
            {"features": {"red": 1, "round": 1}, "labels": ["apple"]},
            {"features": {"long": 2}, "labels": ["pea"]},
        ]
        assert client.post("/v1/learn", json={"examples": examples * 5}).status_code == 200
        asked = {"features": [{"long": 1}, {"red": 1, "new": 1}], "top_k": 1, "fresh": True}
        results = client.post("/v1/predict", json=asked).json()["results"]
        assert [result["labels"][0]["label"] for result in results] == ["pea", "apple"]
        refused = client.post("/v1/predict", json={"texts": ["red"], "fresh": True})
        assert refused.status_code == 422
        assert "named features" in refused.json()["detail"]


# --- learn -----------------------------------------------------------------------------------------------------------


def test_an_example_is_learned_until_the_model_is_as_sure_as_asked(tmp_path):
    with application(tmp_path / "live", is_new=True) as client:
        client.learn(*[(f"word{number} thing", [f"label {number}"]) for number in range(300)])

        def taught(text, **more):
            example = {"text": text, "labels": [f"new {text}", "second"], **more}
            assert client.post("/v1/learn", json={"examples": [example]}).status_code == 200
            answer = client.post("/v1/predict", json={"texts": [text], "labels": example["labels"], "fresh": True})
            return min(label["probability"] for label in answer.json()["results"][0]["labels"])

        assert taught("plain zebra") < 0.5
        assert taught("sure giraffe", sure=0.5) >= 0.5
        assert taught("doubted giraffe", sure=0.01) < 0.5
        assert client.get("/v1/progress").json()["n_examples"] == 303
        for sure in (0, 1, "0.5"):
            refused = client.post("/v1/learn", json={"examples": [{"text": "a", "labels": ["a"], "sure": sure}]})
            assert (refused.status_code, refused.json()["where"]) == (422, "examples[0].sure")


def test_features_are_learned_until_the_model_is_sure(tmp_path):
    with application(tmp_path / "live", is_new=True) as client:
        rows = [{"features": {f"f{number}": 1.0}, "labels": [f"label {number}"]} for number in range(300)]
        assert client.post("/v1/learn", json={"examples": rows}).status_code == 200
        new = {"features": {"g": 2.0}, "labels": ["new"], "sure": 0.8}
        assert client.post("/v1/learn", json={"examples": [new]}).status_code == 200
        answer = client.post("/v1/predict", json={"features": [{"g": 2.0}], "fresh": True}).json()["results"][0]
        assert answer["labels"][0]["label"] == "new"
        assert answer["labels"][0]["probability"] >= 0.8


def test_a_retry_with_the_same_key_counts_once(client):
    before = client.get("/v1/progress").json()["n_examples"]
    first = client.learn(("a retry", ["once"]), key="retry-1").json()
    again = client.learn(("a retry", ["once"]), key="retry-1").json()
    assert (first["duplicate"], again["duplicate"]) == (False, True)
    assert again["version"] == first["version"]
    assert client.get("/v1/progress").json()["n_examples"] == before + 1


def test_a_key_that_was_used_for_other_examples_is_a_conflict(client):
    client.learn(("one", ["a"]), key="conflict")
    answer = client.learn(("another", ["a"]), key="conflict")
    assert answer.status_code == 409
    assert answer.json()["where"] == "Idempotency-Key"


def test_progress_counts_and_measures_before_learning(client):
    wait_for_version(client, client.get("/v1/progress").json()["n_examples"])  # acknowledged is not yet learned
    progress = client.get("/v1/progress").json()
    assert progress["n_examples"] == progress["n_learned"] >= len(NOTES)
    assert progress["n_labels"] >= 5
    assert 0 <= progress["precision"]["1"] <= 1
    assert progress["windows"][-1]["n_examples"] == progress["n_learned"]


def test_a_batch_model_answers_and_says_why_it_cannot_learn(batch):
    answer = batch.post("/v1/predict", json={"texts": ["chest pain"], "top_k": 2}).json()
    assert {label["label"]: label["name"] for label in answer["results"][0]["labels"]}["R07"].startswith("Pain in")
    refused = batch.learn(("text", ["label"]))
    assert refused.status_code == 409
    assert "--new" in refused.json()["detail"]
    assert batch.get("/v1/progress").json()["n_labels"] == 5
    assert batch.get("/readyz").status_code == 200


def test_an_online_model_that_was_trained_before_goes_on_learning(tmp_path):
    texts, labels = zip(*NOTES, strict=True)
    OnlinePLTClassifier(random_state=0).partial_fit(list(texts), list(labels)).save(tmp_path / "model")
    with application(tmp_path / "model") as client:
        assert client.get("/v1/progress").json()["n_examples"] == len(NOTES)
        assert client.learn(("lightning", ["weather"])).status_code == 200
        assert client.get("/v1/progress").json()["n_examples"] == len(NOTES) + 1


def test_a_multiclass_model_takes_one_label_per_example(tmp_path):
    with application(tmp_path / "live", is_new=True, is_multiclass=True) as client:
        assert client.learn(("red", ["apple"]), ("green", ["pear"])).status_code == 200
        refused = client.learn(("red", ["apple", "fruit"]))
        assert refused.status_code == 422
        assert refused.json()["where"] == "examples[0].labels"
        answer = client.post("/v1/predict", json={"texts": ["red"], "fresh": True}).json()
        assert sum(label["probability"] for label in answer["results"][0]["labels"]) == pytest.approx(1, abs=1e-5)


def test_an_empty_model_answers_with_no_labels_and_needs_one_to_start(tmp_path):
    with application(tmp_path / "live", is_new=True) as client:
        assert client.post("/v1/predict", json={"texts": ["x"]}).json() == {"results": [{"labels": []}], "version": 0}
        refused = client.learn(("unclear", []))
        assert refused.status_code == 422
        assert "first example" in refused.json()["detail"]
        assert client.learn(("clear", ["a"]), ("unclear", [])).status_code == 200


# --- labels and tree -------------------------------------------------------------------------------------------------


def test_labels_are_found_by_words_and_by_frequency(client, batch):
    found = client.get("/v1/labels", params={"search": "n"}).json()
    assert found["labels"][0]["label"] == "N"
    assert found["labels"][0]["n_examples"] >= 10
    frequent = client.get("/v1/labels", params={"sort": "frequency", "limit": 2}).json()["labels"]
    assert (frequent[0]["label"], frequent[0]["n_examples"]) == ("R", 20)
    by_name = batch.get("/v1/labels", params={"search": "THROAT pain"}).json()["labels"]
    assert [(one["label"], one["n_examples"]) for one in by_name] == [("R07", None)]
    assert len(batch.get("/v1/labels", params={"limit": 2, "offset": 4}).json()["labels"]) == 1


def test_the_tree_can_be_walked_to_every_label(client):
    seen, waiting = set(), [0]
    while waiting:
        node = client.get("/v1/tree", params={"node": waiting.pop()}).json()
        for child in node["children"]:
            if "label" in child:
                seen.add(child["label"])
            else:
                waiting.append(child["node"])
    assert {"R07", "R", "N20", "N", "R05"} <= seen
    assert client.get("/v1/tree", params={"node": 10**6}).status_code == 404


# --- errors ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("path", "body", "status", "where"),
    [
        ("/v1/predict", b"{", 400, "body"),
        ("/v1/predict", b'{"texts": "not a list"}', 422, "texts"),
        ("/v1/predict", b'{"texts": ["a", 3]}', 422, "texts[1]"),
        ("/v1/predict", b"{}", 422, "body"),
        ("/v1/predict", b'{"texts": ["a"], "features": [{}]}', 422, "body"),
        ("/v1/predict", b'{"texts": ["a"], "top_k": 0}', 422, "top_k"),
        ("/v1/predict", b'{"texts": ["a"], "topk": 3}', 422, "topk"),
        ("/v1/predict", b'{"texts": ["a"], "top_k": "3"}', 422, "top_k"),
        ("/v1/predict", b'{"texts": ["a"], "top_k": true}', 422, "top_k"),
        ("/v1/predict", b'{"texts": ["a"], "fresh": "yes"}', 422, "fresh"),
        ("/v1/predict", b'{"features": [{"a": "1"}]}', 422, "features[0].a"),
        ("/v1/predict", b'{"texts": ["a"], "labels": ["unknown"]}', 422, None),
        ("/v1/predict", b'{"texts": ["\\ud800"]}', 400, "body"),
        ("/v1/explain", b'{"text": "a", "label": "unknown"}', 422, "label"),
        ("/v1/explain", b'{"features": {}}', 422, "features"),
        ("/v1/predict", b'{"features": [{"a": 1}]}', 422, "features"),
        ("/v1/learn", b'{"examples": []}', 422, "examples"),
        ("/v1/learn", b'{"examples": [{"text": "a", "labels": [""]}]}', 422, "examples[0].labels[0]"),
        ("/v1/learn", b'{"examples": [{"text": "a", "labels": [7]}]}', 422, "examples[0].labels"),
        ("/v1/learn", b'{"examples": [{"labels": ["a"]}]}', 422, "examples[0]"),
        ("/v1/learn", b'{"examples": [{"features": {"a": 1}, "labels": ["a"]}]}', 422, "examples[0]"),
    ],
)
def test_bad_requests_say_what_and_where(client, path, body, status, where):
    answer = client.post(path, content=body, headers={"content-type": "application/json"})
    assert answer.status_code == status, answer.text
    assert answer.headers["content-type"] == "application/problem+json"
    problem = answer.json()
    assert problem["status"] == status
    assert problem["detail"]
    assert problem.get("where") == where


def test_limits_are_enforced(tmp_path):
    limits = {"max_body": 5000, "max_rows": 3, "max_text": 50, "rate": 5.0}
    with application(tmp_path / "live", is_new=True, **limits) as client:
        assert client.post("/v1/predict", json={"texts": ["a"] * 4}).status_code == 413
        assert client.post("/v1/predict", json={"texts": ["a" * 51]}).status_code == 413
        assert client.post("/v1/predict", json={"texts": ["a" * 6000]}).status_code == 413

        async def chunks():
            for _ in range(10):
                yield b" " * 1000

        assert client.post("/v1/predict", content=chunks()).status_code == 413
        answers = [client.get("/healthz") for _ in range(20)]
        refused = [answer for answer in answers if answer.status_code == 429]
        assert refused
        assert int(refused[0].headers["retry-after"]) >= 1


def test_an_answer_has_a_bounded_number_of_labels(client):
    texts, labels = ["kidney"] * 101, ["N20"] * 1000
    assert client.post("/v1/predict", json={"texts": texts[:100], "top_k": 1000}).status_code == 200
    for request in ({"texts": texts, "top_k": 1000}, {"texts": texts, "labels": labels}):
        refused = client.post("/v1/predict", json=request)
        assert refused.status_code == 413
        assert "send fewer rows, or ask for fewer labels" in refused.json()["detail"]


def test_a_long_answer_is_that_of_its_rows(client):
    texts = [f"{'kidney' if row % 3 else 'cough'} {row}" for row in range(230)]
    long = client.post("/v1/predict", json={"texts": texts, "top_k": 2}).json()
    assert len(long["results"]) == len(texts)
    for start in range(0, len(texts), 40):
        part = client.post("/v1/predict", json={"texts": texts[start : start + 40], "top_k": 2}).json()
        assert part["results"] == long["results"][start : start + 40]
        assert part["version"] == long["version"]


def test_too_many_waiting_examples_are_refused_with_a_time_to_retry(tmp_path, monkeypatch):
    may_learn = threading.Event()
    learn = teaching.learn
    monkeypatch.setattr(teaching, "learn", lambda *args, **kwargs: may_learn.wait(30) and learn(*args, **kwargs))
    with application(tmp_path / "live", is_new=True, max_behind=10) as client:
        assert client.learn(*[("a", ["a"])] * 8).status_code == 200
        refused = client.learn(*[("b", ["b"])] * 5)
        may_learn.set()
    assert refused.status_code == 503
    assert int(refused.headers["retry-after"]) >= 1


def test_a_slow_answer_is_cut_off(tmp_path, monkeypatch):
    with application(tmp_path / "live", is_new=True, timeout=0.2) as client:
        client.learn(("a", ["a"]))
        monkeypatch.setattr("ramify.serve.service.INLINE_CHARACTERS", -1)
        may_answer = threading.Event()
        monkeypatch.setattr("ramify.serve.answering.Answering.predict", lambda *_: may_answer.wait(60))
        answer = client.post("/v1/predict", json={"texts": ["a"]})
        may_answer.set()
    assert answer.status_code == 503
    assert "0.2 s" in answer.json()["detail"]


# --- bulk ------------------------------------------------------------------------------------------------------------


def test_bulk_predict_answers_line_by_line(client):
    lines = "\n".join(json.dumps({"text": text}) for text, _ in NOTES * 10)
    answer = client.post("/v1/bulk/predict", params={"top_k": 1}, content=lines.encode())
    assert answer.headers["content-type"] == "application/x-ndjson"
    rows = [json.loads(line) for line in answer.text.splitlines()]
    assert len(rows) == 10 * len(NOTES)
    assert rows[1]["labels"][0]["label"] in ("N", "N20")


def test_bulk_learn_counts_a_repeated_stream_once_and_names_a_bad_line(client):
    lines = [json.dumps({"text": f"bulk {n}", "labels": ["bulk"]}) for n in range(250)]
    before = client.get("/v1/progress").json()["n_examples"]
    for _ in range(2):
        answer = client.post("/v1/bulk/learn", content="\n".join(lines).encode(), headers={"Idempotency-Key": "bulk"})
        receipts = [json.loads(line) for line in answer.text.splitlines()]
        assert [receipt["lines"] for receipt in receipts] == [100, 200, 250]
    assert client.get("/v1/progress").json()["n_examples"] == before + 250
    bad = "\n".join([*lines[:3], '{"text": 5}'])
    problem = json.loads(client.post("/v1/bulk/learn", content=bad.encode()).text)["problem"]
    assert problem["where"] == "line 4, text"


# --- documentation ---------------------------------------------------------------------------------------------------


def test_openapi_describes_every_route_with_examples(client):
    document = client.get("/v1/openapi.json").json()
    for path in ("predict", "explain", "learn", "labels", "tree", "progress", "bulk/predict", "bulk/learn"):
        assert f"/v1/{path}" in document["paths"], path
    schemas = document["components"]["schemas"]
    for name in ("PredictRequest", "LearnRequest", "ExplainRequest"):
        assert schemas[name]["examples"]
    text = json.dumps(document)
    for reference in {part.split('"')[0] for part in text.split('"#/components/schemas/')[1:]}:
        assert reference in schemas, reference


def test_metrics_count_requests_and_examples(client):
    client.get("/v1/progress")
    text = client.get("/metrics").text
    assert 'ramify_requests_total{route="/v1/progress",status="200"}' in text
    assert "ramify_examples_learned " in text
    assert "ramify_progressive_precision_at_1 " in text
