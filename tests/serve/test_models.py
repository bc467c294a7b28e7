"""Every online classifier learns everything that was acknowledged, from every form of rows and labels."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse

import ramify
from shared.application import application

N_ROWS, N_LABELS = 40, 6
COLUMNS = [sorted({row % N_LABELS, (row * row) % N_LABELS}) for row in range(N_ROWS)]
WORDS = ["chest", "pain", "kidney", "stone", "cough", "fever"]
ROWS = {
    "texts": [f"{WORDS[row % 6]} {WORDS[row // 6 % 6]}" for row in range(N_ROWS)],
    "features": sparse.random(N_ROWS, 30, 0.3, "csr", dtype=np.float32, random_state=0),
}
LABELS = {
    "columns": sparse.csr_array(np.array([[j in row for j in range(N_LABELS)] for row in COLUMNS], dtype=np.int8)),
    "numbers": COLUMNS,
    "names": [[f"l{column}" for column in row] for row in COLUMNS],
    "classes": np.array([f"l{row % N_LABELS}" for row in range(N_ROWS)]),
}


def online():
    return ramify.OnlinePLTClassifier(random_state=0)


MODELS = {
    "online-plt": online,
    "memory-tree": lambda: ramify.MemoryTreeClassifier(random_state=0),
    "spectral": lambda: ramify.SpectralTreeClassifier(random_state=0),
    "thresholds": lambda: ramify.ThresholdClassifier(online()),
    "lomtree": lambda: ramify.LOMTreeClassifier(random_state=0),
    "filter-tree": lambda: ramify.FilterTreeClassifier(random_state=0),
}


def example(rows, labels):
    return {"text": "chest pain", "labels": labels} if rows == "texts" else {"features": {"1": 1.0}, "labels": labels}


ONE_CLASS = ("lomtree", "filter-tree")


@pytest.mark.parametrize("rows", ROWS)
@pytest.mark.parametrize(
    ("name", "labels"),
    [(name, labels) for name in MODELS for labels in LABELS if labels == "classes" or name not in ONE_CLASS],
)
def test_what_is_acknowledged_is_learned_by_every_model(tmp_path, name, rows, labels):
    classifier = MODELS[name]()
    (classifier.fit if name == "spectral" else classifier.partial_fit)(ROWS[rows], LABELS[labels])
    classifier.save(tmp_path / "live")
    is_number = labels in ("columns", "numbers")
    with application(tmp_path / "live") as client:
        before = client.get("/v1/progress").json()["n_examples"]
        asked = [[3 if is_number else "l3"], [9 if is_number else "new"]]
        asked += [[]] if labels != "classes" else []
        answers = [client.post("/v1/learn", json={"examples": [example(rows, one)] * 2}) for one in asked]
        n_learned = 2 * sum(answer.status_code == 200 for answer in answers)
        question = {"texts": ["chest pain"]} if rows == "texts" else {"features": [{"1": 1.0, "900": 1.0}]}
        assert client.post("/v1/predict", json=question | {"fresh": True}).json()["version"] == n_learned
        progress = client.get("/v1/progress").json()
    assert answers[0].status_code == 200
    assert [answer.status_code for answer in answers[1:]] == [422 if name == "filter-tree" else 200] * len(asked[1:])
    assert progress["n_rejected"] == 0
    assert progress["n_learned"] == progress["n_examples"] == before + n_learned


@pytest.mark.parametrize(
    ("features", "where"),
    [({"1": 3.5e38}, "examples[0].features.1"), ({"2147483646": 1.0}, "examples[0].features"), ({"9" * 5000: 1}, None)],
)
def test_what_no_model_can_learn_is_not_acknowledged(tmp_path, features, where):
    with application(tmp_path / "live", is_new=True) as client:
        assert client.post("/v1/learn", json={"examples": [example("features", ["a"])]}).status_code == 200
        refused = client.post("/v1/learn", json={"examples": [{"features": features, "labels": ["a"]}]})
        assert refused.status_code == 422
        assert where is None or refused.json()["where"] == where
        assert client.get("/v1/progress").json()["n_examples"] == 1


def test_a_label_cannot_add_a_billion_columns(tmp_path):
    online().partial_fit(ROWS["features"], LABELS["columns"]).save(tmp_path / "live")
    with application(tmp_path / "live") as client:
        refused = client.post("/v1/learn", json={"examples": [example("features", [2_000_000_000])]})
        assert refused.status_code == 422
        assert "labels are columns" in refused.json()["detail"]
