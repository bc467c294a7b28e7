"""Probabilistic label trees, trained in batch."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse

from ramify import _core, trees
from ramify.base.answers import Threshold, keep_best, same_columns
from ramify.base.classifier import ExtremeClassifier, Query, TrainingData
from ramify.common.progress import phase
from ramify.common.validation import check_choice, check_flag, check_integer, check_number
from ramify.data.csr import csr_parts, label_parts
from ramify.models.plt.search_report import SearchReport
from ramify.models.plt.solver_choice import choose_solver
from ramify.models.plt.trained_tree import Search, TrainedTree
from ramify.trees.label_tree import LabelTree


class PLTClassifier(ExtremeClassifier):
    """Probabilistic label tree: a label's probability is the product of the conditional ones on its path.

    The children of a node are solved together by dual coordinate descent; prediction is an exact best-first
    search. Papers: extreme-f-measure, section 5; online-plt, section 3 (its batch baseline is this on a k-means tree).

    Parameters
    ----------
    tree : "kmeans", "interpolated", "random", "complete", "huffman", "fano", "one_level", a LabelTree, or a builder
        The tree, or how it is built from X and Y. "one_level" is one-against-all.
    arity, max_leaf : int
        Children of an inner node, and the most labels below a node whose children are leaves, for builders that ask.
    tree_options : dict or None
        More for the builder, such as {"lam": 0.5} for "interpolated".
    n_trees : int
        Trees in the ensemble, each from its own seed; probabilities are averaged.
    loss : "squared_hinge" or "logistic"
    C : float or None
        Cost of errors; None chooses by the Brier score of held-out rows.
    positive_weight : float or None
        Multiplies C for positive examples; None chooses along with C.
    eps, max_epochs
        Dual steps below eps are not taken; the solver stops after max_epochs, or sooner when nothing moves.
    prune : float
        Weights of at most this size are dropped.
    hash_bits : int or None
        Keep all weights in one table of 2**hash_bits floats that the nodes share by feature hashing: memory is bounded
        whatever the data, at some loss. Not pruned, trained on one thread.
    calibrate : bool
        Fit the map from scores to probabilities on held-out rows; without it, scores are taken as logits.
    normalize, bias
        Scale rows to unit length; value of the constant feature (0: none).
    beam : int or None
        Nodes kept per level while searching; None searches exactly. Either way a search ends when nothing more can
        enter the best k.
    bound : float
        Between 0 (exact) and 1: searches for the best k leave out paths whose probability, less this share of it, does
        not reach the k-th answer so far. `search_report` says what was given up.
    vectorizer : None, TfidfVectorizer or HashingVectorizer
        For X given as texts.
    verbose : bool
        Show progress on stderr while training.

    Examples
    --------
    >>> from ramify import PLTClassifier
    >>> texts = ["red apple", "green apple", "red cherry", "green pear"] * 5
    >>> tags = [["red", "apple"], ["green", "apple"], ["red", "cherry"], ["green", "pear"]] * 5
    >>> clf = PLTClassifier(random_state=0).fit(texts, tags)
    >>> sorted(label for label, _ in clf.predict_one("red apple", top_k=2))
    ['apple', 'red']
    """

    trees_: list[TrainedTree]

    def __init__(
        self,
        *,
        tree: str | LabelTree | Callable[..., LabelTree] = "kmeans",
        arity: int = 32,
        max_leaf: int = 200,
        tree_options: dict[str, Any] | None = None,
        n_trees: int = 1,
        loss: str = "squared_hinge",
        C: float | None = None,
        positive_weight: float | None = None,
        eps: float = 0.01,
        max_epochs: int = 5,
        prune: float = 0.1,
        hash_bits: int | None = None,
        calibrate: bool = True,
        normalize: bool = True,
        bias: float = 0.5,
        beam: int | None = None,
        bound: float = 0.0,
        vectorizer: Any = None,
        n_jobs: int | None = None,
        random_state: Any = None,
        verbose: bool = False,
    ) -> None:
        self.tree = tree
        self.arity = arity
        self.max_leaf = max_leaf
        self.tree_options = tree_options
        self.n_trees = n_trees
        self.loss = loss
        self.C = C
        self.positive_weight = positive_weight
        self.eps = eps
        self.max_epochs = max_epochs
        self.prune = prune
        self.hash_bits = hash_bits
        self.calibrate = calibrate
        self.normalize = normalize
        self.bias = bias
        self.beam = beam
        self.bound = bound
        self.vectorizer = vectorizer
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose

    def _check_parameters(self) -> None:
        check_integer("arity", self.arity, at_least=2)
        check_integer("max_leaf", self.max_leaf, at_least=1)
        if self.tree_options is not None and not isinstance(self.tree_options, dict):
            raise ValueError(f"tree_options must be a dict from option to value, got {self.tree_options!r}")
        check_integer("n_trees", self.n_trees, at_least=1)
        check_choice("loss", self.loss, ["squared_hinge", "logistic"])
        for name in ("C", "positive_weight"):
            if getattr(self, name) is not None:
                check_number(name, getattr(self, name), above=0)
        check_number("eps", self.eps, at_least=0)
        check_integer("max_epochs", self.max_epochs, at_least=1)
        check_number("prune", self.prune, at_least=0)
        if self.hash_bits is not None:
            check_integer("hash_bits", self.hash_bits, at_least=5, at_most=32)
        check_flag("calibrate", self.calibrate)
        check_flag("normalize", self.normalize)
        check_number("bias", self.bias, at_least=0)
        self._checked_beam()
        self._checked_bound()
        check_flag("verbose", self.verbose)

    def _fit(self, data: TrainingData) -> None:
        self.trees_ = [self._train_tree(data, (data.seed + 7919 * k) % 2**32) for k in range(self.n_trees)]

    def _train_tree(self, data: TrainingData, seed: int) -> TrainedTree:
        with phase("building the tree"):
            tree = trees.resolve(
                self.tree,
                data.X,
                data.Y,
                arity=self.arity,
                max_leaf=self.max_leaf,
                random_state=seed,
                n_jobs=data.n_threads,
                context_weight=data.sample_weight,
                options=self.tree_options,
            )
        features = _core.FeatureSettings(data.X.shape[1], self.normalize, self.bias)
        trainer = _core.BlockTrainer(
            *csr_parts(data.X),
            *label_parts(data.Y),
            tree.parent,
            tree.first_child,
            tree.n_children,
            tree.label,
            tree.n_labels,
            data.sample_weight,
            features,
            seed,
            data.n_threads,
        )
        with phase("choosing C, calibrating"):
            solver, link = choose_solver(
                trainer,
                is_multiclass=self.is_multiclass_,
                loss=self.loss,
                C=self.C,
                positive_weight=self.positive_weight,
                calibrate=self.calibrate,
                max_epochs=self.max_epochs,
                eps=self.eps,
                prune=self.prune,
            )
        progress = _core.Progress()
        with phase("training", progress):
            if self.hash_bits is None:
                blocks = trainer.train(solver, progress)
            else:
                blocks = trainer.train_hashed(solver, self.hash_bits, progress)
        return TrainedTree(
            tree=tree,
            blocks=blocks,
            link=link,
            n_features=data.X.shape[1],
            normalize=self.normalize,
            bias=self.bias,
            is_multiclass=self.is_multiclass_,
            C=solver.C,
            positive_weight=solver.positive_weight,
        )

    @property
    def tree_(self) -> LabelTree:
        """The label tree, of an ensemble the first one."""
        return self.trees_[0].tree

    @property
    def C_(self) -> float:
        """The cost of errors that was used: as given, or as chosen on held-out rows."""
        return self.trees_[0].C

    @property
    def positive_weight_(self) -> float:
        """The weight of positive examples that was used."""
        return self.trees_[0].positive_weight

    def _sparse_probabilities(self, X: sparse.csr_array, query: Query) -> sparse.csr_array:
        if query.labels is not None:
            every_row = np.ones((X.shape[0], len(query.labels)), dtype=np.float32)
            return self._mean(X, same_columns(every_row, query.labels, self.n_labels_))
        # Of several trees' best k none may be left out for missing the threshold in its tree: its mean may reach it.
        per_tree = 0.0 if query.top_k is not None and len(self.trees_) > 1 else query.threshold
        how = self._search(query.top_k, per_tree)
        found = [tree.search(X, **how) for tree in self.trees_]
        if len(found) == 1:
            return found[0]
        # A mean of at least the threshold needs one tree at least at the threshold: no such label is missed.
        candidates = sum(found[1:], start=found[0])
        return keep_best(self._mean(X, sparse.csr_array(candidates)), query.top_k, query.threshold)

    def search_report(self, X: Any, top_k: int | None = 5, threshold: float | ArrayLike | None = None) -> SearchReport:
        """The answer of `predict_proba` with its price: blocks scored for each row, and what was given up for it."""
        rows = self._check_rows(X)
        query = self._check_query(top_k, threshold, None)
        blocks, given_up = np.zeros(rows.shape[0], np.int64), np.zeros(rows.shape[0], np.float32)
        how = self._search(query.top_k, query.threshold)
        for tree in self.trees_:
            of_tree = tree.trace(rows, **how)
            blocks += of_tree[0]
            given_up = np.maximum(given_up, of_tree[1])
        return SearchReport(self._answer(rows, query), blocks, given_up)

    def _search(self, top_k: int | None, threshold: Threshold) -> Search:
        return {
            "top_k": top_k,
            "threshold": threshold,
            "beam": self._checked_beam(),
            "bound": self._checked_bound(),
            "n_threads": self._n_threads(),
        }

    def _checked_beam(self) -> int | None:
        return None if self.beam is None else check_integer("beam", self.beam, at_least=1)

    def _checked_bound(self) -> float:
        if not 0 <= check_number("bound", self.bound) < 1:
            raise ValueError(f"bound must be a number of at least 0 and below 1, got {self.bound!r}")
        return self.bound

    def _n_inner_products(self, X: sparse.csr_array, query: Query) -> int:
        """What an answer costs, without the mean of several trees."""
        how: Search = {"top_k": query.top_k, "threshold": query.threshold, "beam": self._checked_beam()}
        return sum(tree.n_inner_products(X, **how) for tree in self.trees_)

    def _mean(self, X: sparse.csr_array, candidates: sparse.csr_array) -> sparse.csr_array:
        """Mean probability over the trees of every entry of `candidates`."""
        candidates.sort_indices()
        threads = self._n_threads()
        total = sum(tree.named(X, candidates, threads).astype(np.float64) for tree in self.trees_)
        mean = np.asarray(total / len(self.trees_), dtype=np.float32)
        return sparse.csr_array((mean, candidates.indices, candidates.indptr), shape=candidates.shape)

    def _predict_row(
        self, indices: NDArray[np.int32], values: NDArray[np.float32], top_k: int | None, threshold: float
    ) -> tuple[NDArray[np.int32], NDArray[np.float32]]:
        if len(self.trees_) == 1:
            at_most = self.n_labels_ if top_k is None else top_k
            beam = self._checked_beam() or 0
            return self.trees_[0].core.search_row(indices, values, at_most, threshold, beam, self.bound)
        if top_k is not None:
            return self._predict_row_by_many(indices, values, top_k, threshold)
        X = sparse.csr_array((values, indices, [0, len(indices)]), shape=(1, self.n_features_in_))
        answer = self._sparse_probabilities(X, Query(top_k, threshold))
        order = np.lexsort((answer.indices, -answer.data))
        return answer.indices[order], answer.data[order]

    def _predict_row_by_many(
        self, indices: NDArray[np.int32], values: NDArray[np.float32], top_k: int, threshold: float
    ) -> tuple[NDArray[np.int32], NDArray[np.float32]]:
        """The same answer as for a batch of one row, without building sparse arrays on the way."""
        beam = self._checked_beam() or 0
        found = [tree.core.search_row(indices, values, top_k, 0.0, beam, self.bound)[0] for tree in self.trees_]
        candidates = np.unique(np.concatenate(found))
        row, named = np.array([0, len(indices)]), np.array([0, len(candidates)])
        total = sum(
            tree.core.named(row, indices, values, named, candidates, 1).astype(np.float64) for tree in self.trees_
        )
        mean = np.asarray(total / len(self.trees_), dtype=np.float32)
        best = np.argsort(-mean, kind="stable")[:top_k]
        best = best[mean[best] >= np.float32(threshold)]
        return candidates[best], mean[best]

    def _explain_row(
        self, indices: NDArray[np.int32], values: NDArray[np.float32], column: int
    ) -> list[tuple[LabelTree, list[Any]]]:
        return [(tree.tree, tree.core.explain(indices, values, column)) for tree in self.trees_]

    def _state(self) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
        metadata: list[dict[str, Any]] = []
        arrays: dict[str, NDArray[Any]] = {}
        for k, tree in enumerate(self.trees_):
            values, of_tree = tree.state()
            metadata.append(values)
            arrays |= {f"{k}/{name}": array for name, array in of_tree.items()}
        return {"trees": metadata}, arrays

    def _restore(self, metadata: dict[str, Any], arrays: dict[str, NDArray[Any]]) -> None:
        self.trees_ = [
            TrainedTree.from_state(
                values, {n.partition("/")[2]: array for n, array in arrays.items() if n.startswith(f"{k}/")}
            )
            for k, values in enumerate(metadata["trees"])
        ]
        for tree in self.trees_:
            _ = tree.core  # checks the arrays now, not at the first question
