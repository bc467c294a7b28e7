"""The same model on every processor (nearly) and with any number of threads (bit for bit)."""

from __future__ import annotations

import numpy as np
import pytest

from ramify import PLTClassifier, _core
from ramify.data.synthetic import make_multiclass, make_multilabel
from ramify.trees import one_level_tree
from shared.warm_python import run
from twins.models import block_trainer, random_labels, random_rows, random_tree, same_arrays, solver_settings

SETS = ["baseline", "avx2", "avx512"]
SCRIPT = """
import sys
import numpy as np
from ramify import PLTClassifier, _core
from ramify.data.synthetic import make_multilabel
from ramify.models.plt import PLTSolver
from twins.blocks import thaw

data = make_multilabel(400, 60, 300, random_state=3)
answers = {"set": np.array(_core.instruction_set())}
for loss in ("squared_hinge", "logistic"):
    solver = PLTSolver(loss=loss, C=1.0, positive_weight=1.0, tol=0.0, prune=0.0)
    model = PLTClassifier(solver=solver, max_leaf=40, random_state=0)
    model.fit(data.X, data.Y)
    answers[loss] = model.predict_proba(data.X, threshold=0.0).toarray()
    answers[loss + "_top"] = model.predict_proba(data.X, top_k=5).toarray()
    for node, (children, weights) in thaw(model.trees_[0].blocks, 301).items():
        answers[f"{loss}_{node}"] = weights[:, np.argsort(children)]
np.savez(sys.argv[1], **answers)
"""


@pytest.fixture(scope="module")
def answers(tmp_path_factory):
    folder = tmp_path_factory.mktemp("sets")
    found = {}
    for name in SETS:
        run(SCRIPT, folder / f"{name}.npz", RAMIFY_INSTRUCTION_SET=name)
        found[name] = dict(np.load(folder / f"{name}.npz"))
    return found


def test_an_instruction_set_can_be_chosen(answers):
    assert answers["baseline"].pop("set") == "baseline"
    widest = SETS.index(_core.instruction_set())  # a processor without the wider ones takes the widest that it has
    for name in SETS[: widest + 1]:
        assert answers[name].get("set", "baseline") == name


@pytest.mark.parametrize("name", SETS[1:])
def test_instruction_sets_agree(answers, name):
    one, other = ({k: v for k, v in answers[n].items() if k != "set"} for n in ("baseline", name))
    assert one.keys() == other.keys()
    for key, expected in one.items():
        # Weights are stored as bytes: one that lies between two may be rounded to either.
        difference = np.abs(other[key] - expected)
        step = np.abs(expected).max(axis=0) / 127
        assert (difference <= (step * 1.05 + 1e-6 if key[-1].isdigit() else 5e-3)).all(), key
        assert difference.mean() < 1e-4, key


TRAINING = {"small": (60, 12, 20), "wide": (120, 300, 30), "tall": (900, 40, 15)}


@pytest.mark.parametrize("size", sorted(TRAINING))
@pytest.mark.parametrize("shape", ["random", "one level"])
def test_threads_change_no_bit_of_training(size, shape):
    """A node wider than a tile is shared out among threads when it is a large part of the work."""
    n_rows, n_labels, n_features = TRAINING[size]
    rng = np.random.default_rng(7)
    X, Y = random_rows(rng, n_rows, n_features), random_labels(rng, n_rows, n_labels, some_for_every_row=False)
    tree = random_tree(rng, n_labels) if shape == "random" else one_level_tree(None, Y)
    one, two, five = (block_trainer(X, Y, tree, n_threads=n) for n in (1, 2, 5))
    for solver in (solver_settings(eps=0.01, prune=0.1), solver_settings(loss="logistic")):
        expected = one.train(solver)
        assert same_arrays(expected, two.train(solver))
        assert same_arrays(expected, five.train(solver))
        solvers = [solver, solver_settings(C=0.1), solver]
        links = np.broadcast_to(np.linspace(-9, 9, 33), (3, 2, one.n_levels, 2, 33)).astype(np.float32)
        first, *others = (trainer.held_out(solvers, 0.5, 100, 3, links) for trainer in (one, two, five))
        assert all(np.array_equal(a, b) for a, b in zip(first[0][0], first[0][2], strict=True))
        for found, stands_for in others:
            assert np.array_equal(stands_for, first[1])
            for parts, expected_parts in zip(found, first[0], strict=True):
                assert all(np.array_equal(a, b) for a, b in zip(parts, expected_parts, strict=True))


@pytest.mark.parametrize("make", [make_multilabel, make_multiclass])
def test_jobs_change_no_bit_of_a_fitted_classifier(make):
    data = make(500, 80, 300, random_state=1)
    Y = data.Y if make is make_multilabel else data.y
    one, two = (PLTClassifier(n_jobs=n, n_trees=2, max_leaf=20, arity=4, random_state=0).fit(data.X, Y) for n in (1, 2))
    for a, b in zip(one.trees_, two.trees_, strict=True):
        assert same_arrays(a.blocks, b.blocks)
        assert np.array_equal(a.link.logits, b.link.logits)
        assert np.array_equal(a.link.slopes, b.link.slopes)
        assert np.array_equal(a.tree.parent, b.tree.parent)
    p, q = (model.predict_proba(data.X, top_k=5) for model in (one, two))
    assert np.array_equal(p.indices, q.indices)
    assert np.array_equal(p.data, q.data)


def test_a_seed_decides_everything_and_another_seed_something_else():
    data = make_multilabel(300, 50, 200, random_state=2)
    first, again, other = (
        PLTClassifier(random_state=seed, max_leaf=20).fit(data.X, data.Y).trees_[0] for seed in (1, 1, 2)
    )
    assert same_arrays(first.blocks, again.blocks)
    assert not same_arrays(first.blocks, other.blocks)


def test_a_trainer_can_be_used_again():
    rng = np.random.default_rng(3)
    trainer = block_trainer(random_rows(rng, 50, 300, density=0.02), random_labels(rng, 50, 20), random_tree(rng, 20))
    first = trainer.train(solver_settings())
    trainer.held_out([solver_settings(C=0.1)], 1.0, 30)
    trainer.train_hashed(solver_settings(), 8)
    assert same_arrays(first, trainer.train(solver_settings()))
