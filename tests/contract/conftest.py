"""Small data with structure, and the classifiers to run on it."""

from __future__ import annotations

import functools
import pickle

import pytest

from contract.classifiers import CLASSIFIERS, learns_one_class
from contract.small_data import make_data


@pytest.fixture(params=sorted(CLASSIFIERS))
def make(request):
    """Makes a classifier: make(n_jobs=2)."""
    return CLASSIFIERS[request.param]


@pytest.fixture(params=sorted(name for name in CLASSIFIERS if not learns_one_class(name)))
def make_multilabel(request):
    """Makes a classifier that takes rows with any number of labels."""
    return CLASSIFIERS[request.param]


@pytest.fixture(params=sorted(filter(learns_one_class, CLASSIFIERS)))
def make_one_class(request):
    """Makes a classifier that learns one class a row."""
    return CLASSIFIERS[request.param]


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
