"""The hierarchical spectral method: a tree finds a few candidate labels, a classifier decides among them."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse
from sklearn.utils.metaestimators import available_if

from ramify import _core
from ramify.base.classifier import ExtremeClassifier
from ramify.base.nested import Nested, train_inside
from ramify.base.schema import check_as_many_rows
from ramify.base.training import TrainingData, weighted_rows
from ramify.common.progress import phase, shown
from ramify.common.validation import check_integer, check_jobs
from ramify.models.spectral.base_classifier import BaseClassifier, old_slots
from ramify.models.spectral.candidate_scorer import CandidateScorer
from ramify.models.spectral.candidate_tree import CandidateTree, depth_recalls, grow_candidate_tree
from ramify.models.spectral.frequency import frequency_recall, most_frequent_labels
from ramify.models.spectral.learned_space import given_space, learn_space
from ramify.models.spectral.model import SpectralModel
from ramify.models.spectral.parameters import MAX_LEAVES, check_parameters, read_tree_options, tree_settings
from ramify.models.spectral.scaling import Normalization, scaled_rows

# With depth="auto": the deepest tree that is tried.
DEEPEST = 14


def _learns_in_pieces(classifier: SpectralTreeClassifier) -> bool:
    given = classifier.estimator
    return given is None or isinstance(given, CandidateScorer) or hasattr(given, "partial_fit")


class SpectralTreeClassifier(ExtremeClassifier):
    """A tree of eigen-splits maps a row to a few candidate labels; a classifier then scores only those.

    Rows take both ways in fractions while the tree grows, one of them at random each time the classifier sees them, and
    the likelier one, or the likeliest few, at prediction. Paper: Mineiro and Karampatziakis, "A Hierarchical Spectral
    Method for Extreme Classification" (F is the tree, H the classifier).

    Parameters
    ----------
    depth : int or "auto"
        Deepest leaf; "auto" chooses the depth whose candidates have the best recall on held-out rows that go one way.
    n_candidates : int
        Labels of a leaf (k in the paper). More are better and slower.
    n_leaves : int
        Leaves that a row reaches at prediction, the likeliest ones; the `n_candidates` likeliest labels of all of them
        are scored. 1 follows one path, as in the paper; so do all rows of a tree that was grown with noise 0.
    space : "features", "learned" or array of shape (n_features, n_dimensions)
        Where rows are split: in their features, or in the low-rank space of a logistic regression over all labels, at
        unit length. That is trained first; shared low-rank weights start with what it has learned. For many labels with
        few rows each, "learned" with `tree_options={"deviation": "within"}` and several leaves finds far more of them,
        and takes longer to train. An array maps rows to the space in which the tree splits them, such as a layer of
        another network (the paper's section 6); the classifier sees the features.
    sampled_labels : int
        Labels that a row is trained against while a space is learned: a random part of them if there are far more.
    head : int
        This many of the most frequent labels are candidates in every leaf, and do not affect the splits.
    tree_options : dict or None
        How the tree is grown, such as {"noise": 0.5}: see `ramify.models.spectral.parameters.TreeOptions`.
    estimator : CandidateScorer, classifier of the library, or None
        What decides among the candidates; None: `CandidateScorer()`, a logistic regression that sees only them.
    normalize : bool or "hellinger"
        Scale rows to unit length, or take roots of their shares (for word counts).
    vectorizer : None, TextVectorizer or HashingTextVectorizer
        For X given as texts.
    n_jobs : int or None
        Threads; the result does not depend on it.
    hierarchy : dict or None
        Label -> parent or parents: no label is answered with less than a label below it (docs/hierarchy.md).
    verbose : bool
        Show progress on stderr while training.

    Examples
    --------
    >>> from ramify import SpectralTreeClassifier
    >>> texts = ["red apple", "green apple", "red cherry", "green pear"] * 5
    >>> tags = [["red", "apple"], ["green", "apple"], ["red", "cherry"], ["green", "pear"]] * 5
    >>> clf = SpectralTreeClassifier(n_candidates=3, random_state=0).fit(texts, tags)
    >>> sorted(label for label, _ in clf.predict_one("red apple", top_k=2))
    ['apple', 'red']
    >>> clf.training_report_["leaves"], round(clf.training_report_["training_recall"], 2)
    (4, 1.0)
    """

    def __init__(
        self,
        *,
        depth: int | str = 12,
        n_candidates: int = 100,
        n_leaves: int = 1,
        space: str | NDArray[Any] = "features",
        sampled_labels: int = 10_000,
        head: int = 0,
        tree_options: dict[str, Any] | None = None,
        estimator: Any = None,
        normalize: Normalization = True,
        vectorizer: Any = None,
        hierarchy: Mapping[Any, Any] | None = None,
        n_jobs: int | None = None,
        random_state: Any = None,
        verbose: bool = False,
    ) -> None:
        self.depth = depth
        self.n_candidates = n_candidates
        self.n_leaves = n_leaves
        self.space = space
        self.sampled_labels = sampled_labels
        self.head = head
        self.tree_options = tree_options
        self.estimator = estimator
        self.normalize = normalize
        self.vectorizer = vectorizer
        self.hierarchy = hierarchy
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose

    def _check_parameters(self) -> None:
        check_parameters(self)

    def _search_options(self) -> Mapping[str, Any]:
        return {"n_leaves": check_integer("n_leaves", self.n_leaves, at_least=1, at_most=MAX_LEAVES)}

    def _scorer(self) -> CandidateScorer:
        return self.estimator if isinstance(self.estimator, CandidateScorer) else CandidateScorer()

    def _has_own_estimator(self) -> bool:
        return self.estimator is not None and not isinstance(self.estimator, CandidateScorer)

    # --- training -------------------------------------------------------------------------------------------------

    def _train(self, data: TrainingData) -> SpectralModel:
        X = scaled_rows(data.X, self.normalize)
        depth, recalls = self._resolve_depth(data, X)
        space = self._learn_space(data, X)
        start = time.perf_counter()
        with phase("growing the tree", progress := _core.Progress()):
            tree = self._grow(data, X, depth, space, progress)
        report = {**tree.report(), "tree_seconds": round(time.perf_counter() - start, 3)}
        report["frequency_recall"] = frequency_recall(data.Y, self.n_candidates + self.head)
        if recalls:
            report |= {"held_out_recall": recalls[depth], "held_out_recall_by_depth": recalls}
        estimator: Nested | None = None
        n_slots = len(tree.core_arrays()["label"])
        if self._has_own_estimator():
            base = BaseClassifier.none(data.n_features, data.n_labels, n_slots)
            estimator = train_inside(self.estimator, self.n_jobs, data)
        else:
            base = self._new_base(data, space, n_slots)
        model = SpectralModel(
            tree,
            base,
            normalize=self.normalize,
            is_multiclass=data.is_multiclass,
            estimator=estimator,
            n_learned=data.X.shape[0],
            report=report,
        )
        if estimator is None:
            with phase("training the classifier", progress := _core.Progress()):
                n_epochs = self._scorer().n_epochs
                self._descend(model, X, data.Y, data.sample_weight, n_epochs, True, data.seed, progress)
        return model

    def _new_base(self, data: TrainingData, space: BaseClassifier | None, n_slots: int) -> BaseClassifier:
        """A scorer that has learned nothing, or, with weights of the same kind, the one that has learned the space."""
        scorer = self._scorer()
        if space is not None and scorer.weights == "low_rank" and scorer.output_weights == "shared":
            return space.with_slots(n_slots)
        return BaseClassifier.begin(
            weights=scorer.weights,
            rank=scorer.rank,
            hash_bits=scorer.hash_bits,
            has_slot_weights=scorer.output_weights == "leaf",
            n_features=data.n_features,
            n_labels=data.n_labels,
            n_slots=n_slots,
            seed=data.seed,
        )

    def _learn_space(self, data: TrainingData, X: sparse.csr_array) -> BaseClassifier | None:
        if not isinstance(self.space, str) or self.space == "features":
            return None
        scorer = self._scorer()
        with phase("learning the space", progress := _core.Progress()):
            return learn_space(
                X,
                data.Y,
                rank=scorer.rank,
                group_size=self.sampled_labels,
                is_multiclass=data.is_multiclass,
                normalize=self.normalize is True,
                sample_weight=data.sample_weight,
                **scorer.steps(),
                n_epochs=scorer.n_epochs,
                shuffle=scorer.shuffle,
                seed=data.seed,
                n_threads=data.n_threads,
                progress=progress,
            )

    def _resolve_depth(self, data: TrainingData, X: sparse.csr_array) -> tuple[int, list[float]]:
        """The depth as given, or the one with the best recall on held-out rows, with the recalls of all depths."""
        n = X.shape[0]
        if not isinstance(self.depth, str):
            return int(self.depth), []
        n_held_out = min(max(1, round(n * read_tree_options(self.tree_options).held_out)), n - 1)
        if n_held_out == 0:
            return DEEPEST, []
        order = np.random.default_rng(data.seed).permutation(n)
        held_out, rest = order[:n_held_out], np.sort(order[n_held_out:])
        space = self._learn_space(data.part(rest), X[rest])
        with phase("choosing the depth", progress := _core.Progress()):
            tree = self._grow(data.part(rest), X[rest], DEEPEST, space, progress, keeps_inner=True)
            arrays = tree.core_arrays()
            none = BaseClassifier.none(X.shape[1], data.n_labels, len(arrays["label"]))
            core = none.core(arrays, data.n_labels, self.n_candidates, self.normalize is True, data.is_multiclass)
            recalls = depth_recalls(tree, core, X[held_out], data.Y[held_out], data.n_threads)
        return int(np.argmax(recalls)), recalls  # the least of equals

    def _grow(
        self,
        data: TrainingData,
        X: sparse.csr_array,
        depth: int,
        space: BaseClassifier | None,
        progress: _core.Progress,
        keeps_inner: bool = False,
    ) -> CandidateTree:
        return grow_candidate_tree(
            X,
            data.Y,
            tree_settings(self, depth),
            sample_weight=data.sample_weight,
            head=most_frequent_labels(data.Y, self.head),
            space=self._map_of_rows(space, data.n_features),
            normalize=self.normalize is True,
            keeps_inner=keeps_inner,
            seed=data.seed,
            n_threads=data.n_threads,
            progress=progress,
        )

    def _map_of_rows(self, learned: BaseClassifier | None, n_features: int) -> NDArray[np.float32] | None:
        """Where the tree splits rows, if not among their features."""
        if isinstance(self.space, np.ndarray):
            return given_space(self.space, n_features)
        return None if learned is None else learned.arrays["input"].copy()

    def _descend(
        self,
        model: SpectralModel,
        X: sparse.csr_array,
        Y: sparse.csr_array,
        weight: NDArray[np.float32] | None,
        n_epochs: int,
        decays: bool,
        seed: int,
        progress: _core.Progress | None = None,
    ) -> None:
        scorer = self._scorer()
        steps = scorer.steps()
        model.core.train(
            model.base.arrays,
            X,
            Y,
            weight,
            learning_rate=steps["learning_rate"],
            eps=steps["eps"],
            has_slot_bias=scorer.leaf_bias,
            passes=n_epochs,
            is_shuffled=scorer.shuffle,
            is_sampled=scorer.sampled_paths,
            decays=decays,
            seed=seed,
            n_threads=self._n_threads(),
            progress=progress,
        )

    @available_if(_learns_in_pieces)  # type: ignore[untyped-decorator]
    def partial_fit(
        self, X: Any, y: Any, classes: ArrayLike | None = None, sample_weight: ArrayLike | None = None
    ) -> SpectralTreeClassifier:
        """Learn these rows on top of what is known: leaves count their labels, the classifier passes over them once.

        The tree stays as it is. A label that has become frequent enough in a leaf, a new one too, becomes a candidate
        there. The first call grows the tree from its rows, as `fit` does; `classes` may then name labels in advance.
        A rejected or interrupted piece leaves the model as it was.
        """
        with shown(self.verbose is True), self._lock():
            self._check_parameters()
            check_jobs(self.n_jobs)
            if "fitted_" not in self.__dict__:
                self._set_fitted(self._fitted_on(X, y, sample_weight, classes))
                return self
            fitted = self.fitted_
            schema, model = fitted.schema, fitted.model
            assert isinstance(model, SpectralModel)
            with schema.labels.unchanged_on_failure():
                rows = schema.rows(X)
                indicator = schema.labels.extend(y)
                check_as_many_rows(rows.shape[0], indicator)
                prepared = scaled_rows(rows, self.normalize)
                kept, indicator, weight = weighted_rows(prepared, indicator, sample_weight)
                if kept.shape[0] or indicator.shape[1] > model.n_labels:
                    learned = self._learned(model, kept, indicator, weight)
                    if model.estimator is not None:
                        inner = model.estimator.classifier(self.estimator, self.n_jobs)
                        inner.partial_fit(rows, y, sample_weight=sample_weight)
                    fitted.model = learned
                if schema.label_names is not None:
                    schema.label_names = schema.label_names.widened(schema.n_labels)
        return self

    def _learned(
        self, model: SpectralModel, X: sparse.csr_array, Y: sparse.csr_array, weight: NDArray[np.float32] | None
    ) -> SpectralModel:
        """A new model that has counted and learned these rows."""
        min_path = read_tree_options(self.tree_options).min_path
        shares = model.leaf_shares(X, min_path, self._n_threads())
        counted = np.ones(X.shape[0], dtype=np.float32) if weight is None else weight
        tree = model.tree.with_rows(shares, Y, counted)
        before, after = model.tree.core_arrays(), tree.core_arrays()
        base = model.base.widened(Y.shape[1], after["label"], old_slots(before, after, Y.shape[1])).writable()
        n_updates = model.n_updates + 1
        learned = SpectralModel(
            tree,
            base,
            normalize=model.normalize,
            is_multiclass=model.is_multiclass,
            estimator=model.estimator,
            n_updates=n_updates,
            n_learned=None if model.n_learned is None else model.n_learned + X.shape[0],
            report={**model.report, **tree.report()},
        )
        if model.estimator is None:
            seed = (self.seed_ + 7919 * n_updates) % 2**63
            self._descend(learned, X, Y, weight, 1, False, seed)
        _ = learned.core
        return learned

    # --- the trained model ----------------------------------------------------------------------------------------

    @property
    def filter_(self) -> CandidateTree:
        """The candidate tree."""
        tree: CandidateTree = self.model_.tree
        return tree

    @property
    def estimator_(self) -> Any:
        """The trained classifier behind the tree, if one was given."""
        nested: Nested | None = self.model_.estimator
        if nested is None:
            raise AttributeError("the candidates are scored by a CandidateScorer, so there is no estimator_")
        return nested.classifier(self.estimator, self.n_jobs)

    @property
    def training_report_(self) -> dict[str, Any]:
        """Leaves, depth, candidates and recall of the tree on the training rows."""
        report: dict[str, Any] = self.model_.report
        return report

    @property
    def n_updates_(self) -> int:
        """Calls of `partial_fit` after the first."""
        n: int = self.model_.n_updates
        return n

    def candidates(self, X: Any) -> sparse.csr_array:
        """The candidates of each row, with their share of the training rows in its leaves.

        `ramify.metrics.filter_recall` takes them.
        """
        fitted = self._answering()
        assert isinstance(fitted.model, SpectralModel)
        return fitted.model.candidates(fitted.schema.rows(X), fitted.query())
