"""The hierarchical spectral method: a tree finds a few candidate labels, a classifier decides among them."""

from __future__ import annotations

import time
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse
from sklearn.utils.metaestimators import available_if

from ramify import _core
from ramify.base.classifier import TrainingData
from ramify.base.input_checks import check_as_many_rows, weighted_rows
from ramify.common.progress import phase, shown
from ramify.common.validation import check_jobs
from ramify.data.csr import csr_parts, label_parts
from ramify.models.spectral import BaseClassifier, CandidateTree, grow_candidate_tree, learn_space, scaled_rows
from ramify.models.spectral.answers import SpectralAnswers
from ramify.models.spectral.base_classifier import old_slots
from ramify.models.spectral.candidate_scores import trained_base
from ramify.models.spectral.candidate_tree import depth_recalls
from ramify.models.spectral.frequency import frequency_recall, most_frequent_labels
from ramify.models.spectral.parameters import check_parameters, tree_settings

# With depth="auto": the deepest tree that is looked at.
DEEPEST = 14


def _learns_in_pieces(model: SpectralTreeClassifier) -> bool:
    return model.base is None or hasattr(model.base, "partial_fit")


class SpectralTreeClassifier(SpectralAnswers):
    """A tree of eigen-splits maps a row to a few candidate labels; a classifier then scores only those.

    Rows take both ways in fractions while the tree grows, one of them by chance each time the classifier meets them,
    and the likelier one, or the likeliest of several, at prediction.
    Paper: hierarchical-spectral (F is the tree, H the classifier).

    Parameters
    ----------
    depth : int or "auto"
        Deepest leaf; "auto" chooses the depth whose candidates have the best recall on held-out rows that go one way.
    n_candidates : int
        Labels of a leaf (k in the paper). More are better and slower.
    ways : int
        Leaves that a row comes to at prediction, the likeliest ones; the `n_candidates` likeliest labels of all of them
        are looked at. 1, as in the paper, goes down one way; so do all rows of a tree that was grown with `noise=0`.
    space : "features" or "learned"
        Where rows are split: among their features, or in the space of low rank in which a logistic regression over all
        labels sees them, at unit length. That is trained first; weights of low rank, shared by the leaves, begin with
        what it has learned. For many labels of few rows each, "learned" with `deviation="within"` and several ways
        finds far more of them, and takes longer to train.
    sampled_labels : int
        Labels that a row is trained against while a space is learned: if there are far more, a random part of them.
    recall : float
        A node whose candidates cover this share of its training labels is a leaf (phi in the paper).
    noise : float
        Multiplies the deviation of the routing; 0 sends every row one way while growing.
    deviation : "eigenvalue" or "within"
        How far a row like the one at hand may lie from it: the eigenvalue over the importance, as in the paper, or the
        root of the variance that the labels leave unexplained, which is of the rows' own scale.
    min_path : float
        A row does not follow ways through the tree that are less probable than this.
    prune : float
        Weights of a node below this share of its largest are dropped.
    solver : "randomised" or "power"
        Eigenvectors by randomised PCA (eight directions at once) or by power iteration.
    max_iterations, tolerance
        The solver stops after so many steps, or when the eigenvalue grows by less than this share of it. A direction
        that is nearly the best recalls no less of new rows.
    cg_iterations : int
        Steps of conjugate gradients for the hat matrix, where rows have several labels.
    head : int
        So many of the most frequent labels are candidates in every leaf, on top, and have no say in the splits.
    base : classifier of the library or None
        What decides among the candidates, any that can score named labels. None: logistic regression with the
        parameters below, trained on sampled ways: softmax for one class a row, else a logistic link for each label.
    weights : "low_rank", "full" or "hashed"
        Of the logistic regression: `rank` for each label in a space that all share, one for each label and feature, or
        these hashed into 2**hash_bits.
    rank, hash_bits : int
    output_weights : "shared" or "leaf"
        Low rank: a label's weights are the same in all leaves, or each leaf has its own.
    leaf_bias : bool
        Each leaf has its own bias for each of its candidates.
    learning_rate, eps
        AdaGrad's step size, and what it adds to the root of the summed squares.
    passes, shuffle
        How often the rows are gone over, and whether in random order.
    sampled_paths : bool
        Rows take a way by chance while the classifier learns; otherwise the one that prediction takes.
    scaling : "unit", "hellinger" or None
        Rows are scaled to unit length, or become roots of their shares (for counts of words); None leaves them.
    held_out : float
        Share of the rows that is held out to choose the depth.
    vectorizer : None, TfidfVectorizer or HashingVectorizer
        For X given as texts.
    n_jobs : int or None
        Nodes split, and rows answered, at the same time; the result does not depend on it.
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
        ways: int = 1,
        space: str = "features",
        sampled_labels: int = 10_000,
        recall: float = 0.999,
        noise: float = 1.0,
        deviation: str = "eigenvalue",
        min_path: float = 0.05,
        prune: float = 0.0,
        solver: str = "randomised",
        max_iterations: int = 6,
        tolerance: float = 0.01,
        cg_iterations: int = 8,
        head: int = 0,
        base: Any = None,
        weights: str = "low_rank",
        rank: int = 64,
        hash_bits: int = 22,
        output_weights: str = "shared",
        leaf_bias: bool = True,
        learning_rate: float = 0.3,
        eps: float = 1e-3,
        passes: int = 10,
        shuffle: bool = True,
        sampled_paths: bool = True,
        scaling: str | None = "unit",
        held_out: float = 0.1,
        vectorizer: Any = None,
        n_jobs: int | None = None,
        random_state: Any = None,
        verbose: bool = False,
    ) -> None:
        self.depth = depth
        self.n_candidates = n_candidates
        self.ways = ways
        self.space = space
        self.sampled_labels = sampled_labels
        self.recall = recall
        self.noise = noise
        self.deviation = deviation
        self.min_path = min_path
        self.prune = prune
        self.solver = solver
        self.max_iterations = max_iterations
        self.tolerance = tolerance
        self.cg_iterations = cg_iterations
        self.head = head
        self.base = base
        self.weights = weights
        self.rank = rank
        self.hash_bits = hash_bits
        self.output_weights = output_weights
        self.leaf_bias = leaf_bias
        self.learning_rate = learning_rate
        self.eps = eps
        self.passes = passes
        self.shuffle = shuffle
        self.sampled_paths = sampled_paths
        self.scaling = scaling
        self.held_out = held_out
        self.vectorizer = vectorizer
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose

    def _check_parameters(self) -> None:
        check_parameters(self)

    # --- training -------------------------------------------------------------------------------------------------

    def _fit(self, data: TrainingData) -> None:
        X = scaled_rows(data.X, self.scaling)
        depth, recalls = self._resolve_depth(data, X)
        space = self._learn_space(data, X)
        start = time.perf_counter()
        with phase("growing the tree", progress := _core.Progress()):
            self.filter_ = self._grow(data, X, depth, space, progress)
        self.training_report_ = {**self.filter_.report(), "tree_seconds": round(time.perf_counter() - start, 3)}
        self.training_report_["frequency_recall"] = frequency_recall(data.Y, self.n_candidates + self.head)
        if recalls:
            self.training_report_ |= {"held_out_recall": recalls[depth], "held_out_recall_by_depth": recalls}
        self.n_updates_ = 0
        self._forget_core()
        if self.base is not None:
            self.base_ = BaseClassifier.none(data.X.shape[1], self.n_labels_, self._n_slots())
            self.scorer_ = trained_base(self, data)
            _ = self._core_model  # made now, so that questions change nothing
            return
        self.scorer_ = None
        self.base_ = self._new_base(data, space)
        with phase("training the classifier", progress := _core.Progress()):
            self._descend(X, data.Y, data.sample_weight, self.passes, True, data.seed, progress)

    def _new_base(self, data: TrainingData, space: BaseClassifier | None) -> BaseClassifier:
        """A classifier that has learned nothing, or, of the same kind of weights, what has learned the space."""
        if space is not None and self.weights == "low_rank" and self.output_weights == "shared":
            return space.with_slots(self._n_slots())
        return BaseClassifier.begin(
            weights=self.weights,
            rank=self.rank,
            hash_bits=self.hash_bits,
            has_slot_weights=self.output_weights == "leaf",
            n_features=data.X.shape[1],
            n_labels=self.n_labels_,
            n_slots=self._n_slots(),
            seed=data.seed,
        )

    def _learn_space(self, data: TrainingData, X: sparse.csr_array) -> BaseClassifier | None:
        if self.space == "features":
            return None
        with phase("learning the space", progress := _core.Progress()):
            return learn_space(
                X,
                data.Y,
                rank=self.rank,
                group_size=self.sampled_labels,
                is_multiclass=self.is_multiclass_,
                normalize=self._normalizes(),
                sample_weight=data.sample_weight,
                learning_rate=self.learning_rate,
                eps=self.eps,
                passes=self.passes,
                shuffle=self.shuffle,
                seed=data.seed,
                n_threads=data.n_threads,
                progress=progress,
            )

    def _resolve_depth(self, data: TrainingData, X: sparse.csr_array) -> tuple[int, list[float]]:
        """The depth as given, or the one of the best recall on held-out rows, with the recalls of all depths."""
        n = X.shape[0]
        if not isinstance(self.depth, str):
            return int(self.depth), []
        n_held_out = min(max(1, round(n * self.held_out)), n - 1)
        if n_held_out == 0:
            return DEEPEST, []
        order = np.random.default_rng(data.seed).permutation(n)
        held_out, rest = order[:n_held_out], np.sort(order[n_held_out:])
        space = self._learn_space(data.part(rest), X[rest])
        with phase("choosing the depth", progress := _core.Progress()):
            tree = self._grow(data.part(rest), X[rest], DEEPEST, space, progress, keeps_inner=True)
            arrays = tree.core_arrays()
            none = BaseClassifier.none(X.shape[1], self.n_labels_, len(arrays["label"]))
            core = none.core(arrays, self.n_labels_, self.n_candidates, self._normalizes(), self.is_multiclass_)
            recalls = depth_recalls(tree, core, X[held_out], data.Y[held_out], data.n_threads)
        return int(np.argmax(recalls)), recalls  # of equals the least

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
            space=None if space is None else space.arrays["input"].copy(),
            normalize=self._normalizes(),
            keeps_inner=keeps_inner,
            seed=data.seed,
            n_threads=data.n_threads,
            progress=progress,
        )

    def _descend(
        self,
        X: sparse.csr_array,
        Y: sparse.csr_array,
        weight: NDArray[np.float32] | None,
        passes: int,
        decays: bool,
        seed: int,
        progress: _core.Progress | None = None,
    ) -> None:
        self._core_model.train(
            self.base_.arrays,
            *csr_parts(X),
            *label_parts(Y),
            weight,
            learning_rate=self.learning_rate,
            eps=self.eps,
            has_slot_bias=self.leaf_bias,
            passes=passes,
            is_shuffled=self.shuffle,
            is_sampled=self.sampled_paths,
            decays=decays,
            seed=seed,
            n_threads=self._n_threads(),
            progress=progress,
        )

    @available_if(_learns_in_pieces)  # type: ignore[untyped-decorator]
    def partial_fit(
        self, X: Any, y: Any, classes: ArrayLike | None = None, sample_weight: ArrayLike | None = None
    ) -> SpectralTreeClassifier:
        """Learn these rows on top of what is known: the leaves count their labels, the classifier goes over them once.

        The tree stays as it is. A label that has become frequent enough in a leaf, a new one too, becomes a candidate
        there. The first call grows the tree from its rows, as `fit` does; `classes` may then name labels in advance.
        A refused piece leaves the model as it was.
        """
        with shown(self.verbose is True):
            self._check_parameters()
            check_jobs(self.n_jobs)
            if "filter_" not in self.__dict__:
                with self._unchanged_on_failure():
                    self._fit(self._check_training_data(X, y, sample_weight, classes))
                return self
            with self.label_encoding_.unchanged_on_failure():
                rows = self._check_rows(X)
                indicator = self.label_encoding_.extend(y)
                check_as_many_rows(rows.shape[0], indicator)
                prepared = scaled_rows(rows, self.scaling)
                kept, indicator, weight = weighted_rows(prepared, indicator, sample_weight)
                if self.scorer_ is not None:
                    self.scorer_.partial_fit(rows, y, sample_weight=sample_weight)
            if kept.shape[0]:
                self._learn_piece(kept, indicator, weight)
        return self

    def _learn_piece(self, X: sparse.csr_array, Y: sparse.csr_array, weight: NDArray[np.float32] | None) -> None:
        shares = self._leaf_shares(X)
        counted = np.ones(X.shape[0], dtype=np.float32) if weight is None else weight
        tree = self.filter_.with_rows(shares, Y, counted)
        before, after = self.filter_.core_arrays(), tree.core_arrays()
        base = self.base_.widened(Y.shape[1], after["label"], old_slots(before, after, Y.shape[1])).writable()
        # Only now, as nothing can fail any more, does the model change.
        self.filter_, self.base_ = tree, base
        self._forget_core()
        self._widen_labels(Y.shape[1])
        self.n_updates_ += 1
        self.training_report_ = {**self.training_report_, **tree.report()}
        if self.scorer_ is None:
            seed = (self.seed_ + 7919 * self.n_updates_) % 2**63
            self._descend(X, Y, weight, 1, False, seed)
        _ = self._core_model

    def _check_piece(self, indicator: sparse.csr_array) -> None:
        """Any label can be learned; asked by classifiers that look at a piece before they pass it on."""

    def _widen_labels(self, n_labels: int) -> None:
        self.n_labels_ = n_labels
        names = self.__dict__.get("label_names_")
        if names is not None:
            self.label_names_ = names.widened(n_labels)
