"""Three trees over the same labels, and the cost of each: a known hierarchy, k-means, one-against-all.

Run:  python examples/own_tree.py
"""

from __future__ import annotations

import time

from ramify import PLTClassifier, metrics
from ramify.data.synthetic import make_multilabel
from ramify.trees import LabelTree


def main() -> None:
    train = make_multilabel(4000, 400, 4000, random_state=0)
    test = make_multilabel(1000, 400, 4000, split="test", random_state=0)
    # Any nesting of label columns is a tree: here twenty groups of twenty neighbours.
    known = LabelTree.from_nested([list(range(start, start + 20)) for start in range(0, 400, 20)])
    print(f"{'tree':<12}{'depth':>6}{'train s':>9}{'P@1':>7}{'P@5':>7}{'Brier':>7}")
    for name, tree in (("known", known), ("kmeans", "kmeans"), ("one_level", "one_level")):
        start = time.perf_counter()
        clf = PLTClassifier(tree=tree, arity=20, max_leaf=20, n_jobs=-1, random_state=0).fit(train.X, train.Y)
        took = time.perf_counter() - start
        report = metrics.evaluate(test.Y, clf.predict_proba(test.X, top_k=50))
        row = f"{took:>9.2f}{100 * report['P@1']:>7.1f}{100 * report['P@5']:>7.1f}{report['brier']:>7.3f}"
        print(f"{name:<12}{clf.tree_.height:>6}{row}")


if __name__ == "__main__":
    main()
