"""Random models to search, with what enumeration of the whole tree finds."""

from __future__ import annotations

import numpy as np
from hypothesis import strategies as st
from scipy import sparse

from twins.models import random_model, random_rows, random_tree
from twins.search import node_probabilities, prepared

N_ROWS = 4


@st.composite
def searches(draw, **fixed):
    """A random model, rows for it, the twin's probabilities and those that the core gives to every label."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    n_labels = draw(st.sampled_from([1, 2, 3, 5, 12, 40]))
    tree = random_tree(rng, n_labels, draw(st.sampled_from([None, max(1, n_labels - 1)])))
    choices = {
        "coarse": st.booleans(),
        "index": st.sampled_from(["bitmap", "bucket"]),
        "gate": st.booleans(),
        "calibrated": st.booleans(),
        "is_multiclass": st.booleans(),
        "normalize": st.booleans(),
        "bias": st.sampled_from([0.0, 0.5]),
        "absent": st.sampled_from([0.0, 0.2]),
        "top_from": st.sampled_from([None, 0.02, 0.3]),
    }
    options = {name: draw(strategy) for name, strategy in choices.items()} | fixed
    model = random_model(rng, tree, **options)
    X = random_rows(rng, N_ROWS, 6, coarse=options["coarse"])
    x = prepared(X.toarray(), options["normalize"], options["bias"])
    model.X = X
    claims = model.trained.claims
    model.claims = None if claims is None else model.link._replace(logits=claims[0], slopes=claims[1])
    model.expected_nodes = np.array(
        [
            node_probabilities(
                tree, model.nodes, row, model.link, model.is_multiclass, model.claims, model.trained.top_from
            )
            for row in x
        ]
    )
    model.products = np.array(
        [node_probabilities(tree, model.nodes, row, model.link, model.is_multiclass) for row in x]
    )
    model.expected = np.where(tree.leaf_of >= 0, model.expected_nodes[:, tree.leaf_of], 0.0)
    every = sparse.csr_array(np.ones((N_ROWS, n_labels), np.float32))
    model.all = model.trained.named(X, every).reshape(N_ROWS, n_labels)
    return model


def answer_rows(answer):
    """(label, probability) pairs of each row, best first; the answer itself is sorted by label."""
    assert (
        np.diff(answer.indices)[np.diff(np.repeat(np.arange(answer.shape[0]), np.diff(answer.indptr))) == 0] > 0
    ).all()
    rows = []
    for start, stop in zip(answer.indptr[:-1], answer.indptr[1:], strict=True):
        pairs = zip(answer.indices[start:stop].tolist(), answer.data[start:stop], strict=True)
        rows.append(sorted(pairs, key=lambda pair: (-pair[1], pair[0])))
    return rows
