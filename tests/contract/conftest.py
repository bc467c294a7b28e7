"""Small data with structure, and the classifiers to run on it."""

from __future__ import annotations

import functools
import pickle
from types import SimpleNamespace

import numpy as np
import pytest
from scipy import sparse

from contract.classifiers import CLASSIFIERS, learns_one_class

N_ROWS, N_FEATURES, N_LABELS = 120, 40, 12


@pytest.fixture(params=sorted(CLASSIFIERS))
def make(request):
    """Makes a classifier: make(n_jobs=2)."""
    return CLASSIFIERS[request.param]


# One classifier for each path of input through the shared code: rows at once, rows of a stream, one class
# a row, and thresholds over each of the first two. Tests of what that code refuses need no more than these.
PATHS = ["plt", "online plt, fair", "lomtree", "ofo", "ofo, online plt"]
once_per_path = pytest.mark.parametrize("make", PATHS, indirect=True)


@pytest.fixture(params=sorted(name for name in CLASSIFIERS if not learns_one_class(name)))
def make_multilabel(request):
    """Makes a classifier that takes rows with any number of labels."""
    return CLASSIFIERS[request.param]


@pytest.fixture(params=sorted(filter(learns_one_class, CLASSIFIERS)))
def make_one_class(request):
    """Makes a classifier that learns one class a row."""
    return CLASSIFIERS[request.param]


def make_data(one_class=False):
    """Rows about topics: a topic's features, and a few labels that go with it; every seventh row has no label.

    With `one_class` each row has one of its labels.
    """
    generator = np.random.default_rng(7)
    topic = generator.integers(0, 4, N_ROWS)
    X = (generator.random((N_ROWS, N_FEATURES)) < 0.1) * generator.random((N_ROWS, N_FEATURES))
    X[np.arange(N_ROWS), topic * 10] += 1.0
    Y = np.zeros((N_ROWS, N_LABELS), dtype=int)
    Y[np.arange(N_ROWS), topic] = 1
    Y[np.arange(N_ROWS), 4 + topic * 2 + generator.integers(0, 2, N_ROWS)] = 1
    Y[::7] = 0
    if one_class:
        Y[:] = 0
        Y[np.arange(N_ROWS), np.where(generator.random(N_ROWS) < 0.5, topic, 4 + topic * 2 + np.arange(N_ROWS) % 2)] = 1
    names = np.array([f"Thema {column}, größer" for column in range(N_LABELS)], dtype=object)
    return SimpleNamespace(
        X=sparse.csr_array(X.astype(np.float32)),
        Y=sparse.csr_array(Y),
        names=names,
        collections=[[names[column] for column in np.flatnonzero(row)] for row in Y],
        y=topic,
        texts=[" ".join(f"wort{feature}" for feature in np.flatnonzero(row)) for row in X],
    )


@functools.cache
def pickled_data(one_class):
    return pickle.dumps(make_data(one_class))


def data_for(name):
    return pickle.loads(pickled_data(name is not None and learns_one_class(name)))


@pytest.fixture
def data(request):
    """Small data as the classifier at hand takes them; the test may change them."""
    return data_for(request.node.callspec.params.get("make") if hasattr(request.node, "callspec") else None)


@functools.cache
def fitted_once(name, labels, rows):
    data = data_for(name)
    return CLASSIFIERS[name]().fit(getattr(data, rows), getattr(data, labels))


@pytest.fixture
def fitted(make, request):
    """Gives the classifier at hand fitted to the small data: fitted("collections", "texts"); not to be changed.

    Each is fitted once in a test run (of a process). A test that changes it takes a copy.
    """
    name = request.node.callspec.params["make"]
    return lambda labels="Y", rows="X": fitted_once(name, labels, rows)


def same(one, other):
    """Equal bit for bit."""
    if sparse.issparse(one):
        return (
            one.shape == other.shape
            and one.dtype == other.dtype
            and np.array_equal(one.indptr, other.indptr)
            and np.array_equal(one.indices, other.indices)
            and np.array_equal(one.data, other.data)
        )
    return np.array_equal(one, other)
