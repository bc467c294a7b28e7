"""Small data, and a spectral tree fitted to them."""

from __future__ import annotations

import pytest

from ramify.data.synthetic import make_dense, make_multilabel
from shared.spectral_settings import SMALL, spectral


@pytest.fixture(scope="module")
def data():
    return make_multilabel(1500, 80, 400, random_state=1)


@pytest.fixture(scope="module")
def classes():
    return make_dense(2400, 60, 32, random_state=2)


@pytest.fixture(scope="module")
def fitted(data):
    return spectral(**SMALL).fit(data.X[:1000], data.Y[:1000])
