"""Requests made from the OpenAPI document, good and bad ones: no answer is an internal error."""

from __future__ import annotations

import json

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from shared.application import application

# Values that the document allows, values that it does not, and values near its limits.
SCALARS = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(2**40), 2**40),
    st.floats(),
    st.text(max_size=20),
    st.sampled_from(["", "a", "\x00", "\u2028", "a" * 1001, "<b>", "1", "-1", "1e999"]),
)
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=6,
)
TEXTS = st.lists(st.text(max_size=30), max_size=3)
LABELS = st.lists(st.text(max_size=10) | st.integers(0, 5), max_size=3)
FEATURES = st.dictionaries(st.text(max_size=5) | st.integers(0, 9).map(str), st.floats(-5, 5), max_size=3)
EXAMPLE = st.fixed_dictionaries({"text": st.text(max_size=9), "labels": LABELS})
BODIES = {
    "/v1/predict": {
        "texts": TEXTS,
        "features": st.lists(FEATURES, max_size=2),
        "top_k": st.integers(-1, 9),
        "threshold": st.floats(-1, 2),
        "labels": LABELS,
        "fresh": st.booleans(),
    },
    "/v1/explain": {
        "text": st.text(max_size=30),
        "features": FEATURES,
        "label": st.text(max_size=5),
        "top": st.integers(),
        "fresh": st.booleans(),
    },
    "/v1/learn": {"examples": st.lists(EXAMPLE, max_size=3)},
    "/v1/projects/live/suggest-batch": {"documents": st.lists(st.fixed_dictionaries({"text": st.text(max_size=9)}))},
}


@pytest.fixture(scope="module", params=["empty", "taught"])
def client(request, tmp_path_factory):
    with application(tmp_path_factory.mktemp("schema") / "live", is_new=True) as client:
        if request.param == "taught":
            assert client.learn(("kidney stone", ["a", "b"]), ("cough", ["c"])).status_code == 200
        yield client


@pytest.mark.parametrize("path", BODIES)
def test_no_body_is_an_internal_error(client, path):
    fields = BODIES[path]

    @settings(max_examples=60, suppress_health_check=list(HealthCheck))
    @given(st.fixed_dictionaries({}, optional={name: values | VALUES for name, values in fields.items()}) | VALUES)
    def check(body):
        answer = client.post(path, content=json.dumps(body).encode(), headers={"content-type": "application/json"})
        assert answer.status_code < 500, (body, answer.text)

    check()


@pytest.mark.parametrize("path", ["/v1/labels", "/v1/tree", "/v1/projects/x", "/page/x", "/nothing"])
def test_no_parameter_is_an_internal_error(client, path):
    @settings(max_examples=30, suppress_health_check=list(HealthCheck))
    @given(st.dictionaries(st.sampled_from(["search", "sort", "limit", "offset", "node", "tree"]), SCALARS.map(str)))
    def check(parameters):
        assert client.get(path, params=parameters).status_code < 500

    check()


@pytest.mark.parametrize("path", ["/v1/bulk/predict", "/v1/bulk/learn", "/v1/projects/live/suggest", "/v1/predict"])
def test_no_bytes_are_an_internal_error(client, path):
    @settings(max_examples=40, suppress_health_check=list(HealthCheck))
    @given(st.binary(max_size=60) | st.lists(VALUES.map(json.dumps), max_size=3).map("\n".join).map(str.encode))
    def check(body):
        assert client.post(path, content=body).status_code < 500

    check()
