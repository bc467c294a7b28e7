"""Answers of a model as plain values for JSON: predictions, explanations, labels and the tree."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from scipy import sparse

from ramify.base.answers import one_row
from ramify.base.fitted import FittedModel
from ramify.explain.label_path import node_examples
from ramify.serve.problems import Problem
from ramify.serve.teaching import check_numbered, feature_row, input_of
from ramify.trees.label_tree import LabelTree

EXAMPLES_OF_A_NODE = 5


class Answering:
    """Queries of one model as of one version; None is a model that knows nothing yet."""

    def __init__(self, fitted: FittedModel | None, version: int) -> None:
        self.fitted = fitted
        self.version = version

    # --- predictions ----------------------------------------------------------------------------------------------

    def predict(self, request: Mapping[str, Any]) -> dict[str, Any]:
        """The answer to a checked request: `texts` or `features`, `top_k`, `threshold`, `labels`."""
        rows = self._rows(request)
        if self.fitted is None:
            return {"results": [{"labels": []} for _ in rows], "version": self.version}
        try:
            answers = self._answers(rows, request.get("top_k"), request.get("threshold"), request.get("labels"))
        except ValueError as error:
            raise Problem(422, str(error)) from None
        return {"results": [{"labels": self._named(answer)} for answer in answers], "version": self.version}

    def _answers(self, rows: Sequence[Any], top_k: Any, threshold: Any, labels: Any) -> list[list[tuple[Any, float]]]:
        fitted = self.fitted
        assert fitted is not None
        if not rows:
            return []
        if labels is None:
            if len(rows) == 1:
                return [fitted.predict_one(rows[0], top_k, threshold)]
            if isinstance(rows[0], str):
                return fitted.predict_labels(list(rows), top_k, threshold)
            return [fitted.predict_one(row, top_k, threshold) for row in rows]
        X = rows if isinstance(rows[0], str) else self._array(rows)
        answer = fitted.predict_proba(X, top_k, threshold, labels)
        found = []
        for start, stop in zip(answer.indptr[:-1], answer.indptr[1:], strict=True):
            order = start + np.argsort(-answer.data[start:stop], kind="stable")
            names = fitted.schema.labels_of(answer.indices[order])
            found.append(list(zip(names, answer.data[order].tolist(), strict=True)))
        return found

    def _rows(self, request: Mapping[str, Any]) -> list[Any]:
        texts, features = request.get("texts"), request.get("features")
        if self.fitted is None:
            return list(texts if texts is not None else features or [])
        takes = input_of(self.fitted.schema)
        if texts is not None:
            if takes != "texts":
                raise Problem(422, f"the model takes {takes}, not texts: give `features`", where="texts")
            return list(texts)
        if takes == "texts":
            raise Problem(422, "the model takes texts, not features: give `texts`", where="features")
        if takes == "numbered features":
            for position, row in enumerate(features or []):
                check_numbered(row, f"features[{position}]")
        return [feature_row(row, takes != "numbered features") for row in features or []]

    def _array(self, rows: Sequence[Any]) -> sparse.csr_array:
        assert self.fitted is not None
        n_features = self.fitted.schema.n_features
        return sparse.csr_array(
            sparse.vstack([one_row(*self.fitted.schema.row(row), n_features) for row in rows], format="csr")
        )

    def _named(self, answer: Sequence[tuple[Any, float]]) -> list[dict[str, Any]]:
        schema = None if self.fitted is None else self.fitted.schema
        if schema is None or schema.label_names is None or not answer:
            return [{"label": label, "probability": probability} for label, probability in answer]
        names = schema.label_names.take(schema.labels.columns([label for label, _ in answer]))
        return [
            {"label": label, "probability": probability, "name": name}
            for (label, probability), name in zip(answer, names, strict=True)
        ]

    # --- explanations ---------------------------------------------------------------------------------------------

    def explain(self, request: Mapping[str, Any]) -> dict[str, Any]:
        """Why a label has its probability: `text` or `features`, `label` (the best one if None), `top`."""
        if self.fitted is None:
            raise Problem(409, "the model has not learned any label yet: teach it first")
        text = request.get("text")
        features = request.get("features")
        rows = self._rows(
            {"texts": None if text is None else [text], "features": None if features is None else [features]}
        )
        try:
            explained = self.fitted.explain(rows[0], request.get("label"), top=request.get("top") or 5).to_dict()
        except ValueError as error:
            raise Problem(422, str(error), where="label") from None
        return {
            "explanation": explained,
            "spans": explained.pop("spans", []),
            "version": self.version,
        }

    # --- the tree -------------------------------------------------------------------------------------------------

    def tree(self, node: int, number: int, limit: int, offset: int) -> dict[str, Any]:
        """A node of a label tree and its children."""
        trees = [] if self.fitted is None else label_trees(self.fitted.model)
        if not trees:
            what = "the model has not learned any label yet" if self.fitted is None else "this model has no label tree"
            raise Problem(404, f"{what}, so there is no tree to browse")
        if number > len(trees):
            raise Problem(404, f"the model has {len(trees)} trees, got number {number}", where="tree")
        tree = trees[number - 1]
        if node >= tree.n_nodes:
            raise Problem(404, f"the tree has the nodes 0 to {tree.n_nodes - 1}, got {node}", where="node")
        children = tree.children(node)[offset : offset + limit]
        path, above = [], node
        while above >= 0:
            path.append(above)
            above = int(tree.parent[above])
        return {
            "tree": number,
            "n_trees": len(trees),
            **self._node(tree, node),
            "path": path[::-1],
            "children": [self._node(tree, child) for child in children],
            "version": self.version,
        }

    def _node(self, tree: LabelTree, node: int) -> dict[str, Any]:
        assert self.fitted is not None
        schema, column = self.fitted.schema, int(tree.label[node])
        described: dict[str, Any] = {
            "node": node,
            "parent": None if node == 0 else int(tree.parent[node]),
            "depth": int(tree.depth[node]),
            "n_labels": int(tree.n_labels_below[node]),
            "n_children": int(tree.n_children[node]),
        }
        if column >= 0:
            return described | {"label": schema.label_of(column), "name": schema.label_name(column)}
        return described | {"examples": node_examples(schema, tree, node, count=EXAMPLES_OF_A_NODE)}


def label_trees(model: Any) -> list[LabelTree]:
    """The label trees of a model; none if its leaves are no labels."""
    trained = getattr(model, "trees", None)
    if trained is not None:
        return [part.tree for part in trained]
    tree = getattr(model, "tree", None)
    return [tree] if isinstance(tree, LabelTree) else []
