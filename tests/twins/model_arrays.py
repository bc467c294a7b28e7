"""Models of every kind of index as plain arrays, to be damaged and asked."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np

from ramify import _core
from twins.blocks import DTYPES, PANEL_FIELDS
from twins.models import block_trainer, random_labels, random_model, random_rows, random_tree, solver_settings

N_LABELS, N_FEATURES = 40, 70
TREE_ARRAYS = ("parent", "first_child", "n_children", "label")


def make_arrays(index):
    """Everything that LabelTreeModel is built from, by name."""
    rng = np.random.default_rng(1)
    tree = random_tree(rng, N_LABELS)
    model = random_model(rng, tree, n_features=N_FEATURES, gate=True, calibrated=True, absent=0.0)
    blocks = model.trained.blocks
    if index != "bitmap":
        X, Y = random_rows(rng, 40, N_FEATURES, density=0.1), random_labels(rng, 40, N_LABELS, some_for_every_row=False)
        trainer = block_trainer(X, Y, tree)
        blocks = (
            trainer.train(solver_settings(prune=0.6))
            if index == "bucket"
            else trainer.train_hashed(solver_settings(), 9)
        )
        if index == "bucket":
            assert (blocks["panels"][:, PANEL_FIELDS.index("bucket_bits")] >= 0).any()
    return (
        dict(blocks)
        | {name: getattr(tree, name) for name in TREE_ARRAYS}
        | {
            "link": model.link.logits,
            "link_slopes": model.link.slope_table(),
            "claims": np.stack([model.link.logits, model.link.slope_table()]),
        }
    )


ARRAYS = {index: make_arrays(index) for index in ("bitmap", "bucket", "hashed")}
ROWS = random_rows(np.random.default_rng(2), 6, N_FEATURES, density=0.5)


def build(
    arrays,
    *,
    n_labels=N_LABELS,
    low=-1.0,
    step=0.5,
    is_multiclass=False,
    n_features=N_FEATURES,
    bias=0.5,
    top_from=0.05,
):
    return _core.LabelTreeModel(
        {name: arrays[name] for name in DTYPES if name in arrays},
        SimpleNamespace(**{name: arrays[name] for name in TREE_ARRAYS}, n_labels=n_labels),
        _core.FeatureSettings(n_features, True, bias),
        arrays["link"],
        arrays["link_slopes"],
        low,
        step,
        is_multiclass,
        arrays["claims"] if is_multiclass else None,
        top_from,
    )
