"""Probabilistic label trees, trained in batch."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from numpy.typing import ArrayLike
from sklearn.base import clone

from ramify import _core, trees
from ramify.base.classifier import ExtremeClassifier
from ramify.base.model import NO_OPTIONS
from ramify.base.row_length import typical_length
from ramify.base.training import TrainingData
from ramify.common.progress import phase
from ramify.common.validation import check_flag, check_integer, check_number
from ramify.data.remote_rows import RemoteRows
from ramify.models.plt.block_trainer import block_trainer, with_known_rates
from ramify.models.plt.calibration import TOP_FROM
from ramify.models.plt.dense_choice import TreeSize, plan_for
from ramify.models.plt.fit_report import FitReport, Setting
from ramify.models.plt.held_out_paths import HeldOutPaths
from ramify.models.plt.model import PLTModel
from ramify.models.plt.search_report import SearchReport
from ramify.models.plt.solver import PLTSolver
from ramify.models.plt.solver_choice import choose_solver
from ramify.models.plt.trained_tree import TrainedTree
from ramify.trees.label_tree import LabelTree

# Chosen on parts of the training rows of eight sets. Where exactly one label of a row is true, siblings share a
# softmax, which is better among few; but dense rows tell many siblings apart.
USUAL_SIZE, ONE_CLASS_SIZE = TreeSize(arity=32, max_leaf=200), TreeSize(arity=64, max_leaf=64)


class PLTClassifier(ExtremeClassifier):
    """Probabilistic label tree: a label's probability is the product of the conditional ones on its path.

    The children of a node are solved together by dual coordinate descent; prediction is an exact best-first search.
    Papers: Jasinska et al., "Extreme F-Measure Maximization using Sparse Probability Estimates", section 5;
    Jasinska-Kobus et al., "Online probabilistic label trees", section 3.

    Parameters
    ----------
    tree : "auto", the name of a builder ("kmeans", "one_level", ...), a LabelTree, or a builder
        The tree, or how it is built from X and Y: "kmeans", "interpolated", "random", "complete", "huffman", "fano", or
        "one_level", which is one-against-all. "auto" is "kmeans", but for dense rows whose labels do not cluster
        "one_level": that is decided on held-out rows.
    arity, max_leaf : int or None
        Children of an inner node, and most labels below a node whose children are leaves, for builders that use them.
        None: 32 and 200; for one class a row, unless rows are dense, 64 and 64.
    tree_options : dict or None
        Further options of the builder, such as {"lam": 0.5} for "interpolated".
    n_trees : int
        Trees in the ensemble, each from its own seed; probabilities are averaged.
    solver : PLTSolver or None
        The solver of the node classifiers, with its loss and cost; None: `PLTSolver()`.
    hash_bits : int or None
        Keep all weights in one table of 2**hash_bits floats that the nodes share by feature hashing: bounded memory, at
        some loss. Not pruned, trained on one thread.
    calibrate : bool
        Fit the map from scores to probabilities on held-out rows; without it, scores are taken as logits.
    normalize, bias
        Scale rows to unit length; value of the constant feature (0: none). Without `normalize`, all rows are divided by
        their typical length, so that C, tol, prune and the bias mean the same whatever the unit of the features.
    standardize : "auto" or bool
        Give every column mean 0 and deviation 1 first; "auto": for dense rows, if that clearly helps held-out ones.
    beam : int or None
        Nodes kept per level while searching; None searches exactly. Either way a search ends when nothing more can
        enter the best k.
    slack : float
        Between 0 (exact) and 1: searches for the best k leave out paths whose probability, less this share of it, does
        not reach the k-th answer so far. `search_report` returns what was missed.
    vectorizer : None, TextVectorizer or HashingTextVectorizer
        For X given as texts.
    hierarchy : dict or None
        Label -> parent or parents: no label is answered with less than a label below it (docs/hierarchy.md).
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

    _row_lengths = (0.0, float("inf"))  # rows are divided by it

    def __init__(
        self,
        *,
        tree: str | LabelTree | Callable[..., LabelTree] = "auto",
        arity: int | None = None,
        max_leaf: int | None = None,
        tree_options: dict[str, Any] | None = None,
        n_trees: int = 1,
        solver: PLTSolver | None = None,
        hash_bits: int | None = None,
        calibrate: bool = True,
        normalize: bool = True,
        bias: float = 0.5,
        standardize: bool | str = "auto",
        beam: int | None = None,
        slack: float = 0.0,
        vectorizer: Any = None,
        hierarchy: Mapping[Any, Any] | None = None,
        n_jobs: int | None = None,
        random_state: Any = None,
        verbose: bool = False,
    ) -> None:
        self.tree = tree
        self.arity = arity
        self.max_leaf = max_leaf
        self.tree_options = tree_options
        self.n_trees = n_trees
        self.solver = solver
        self.hash_bits = hash_bits
        self.calibrate = calibrate
        self.normalize = normalize
        self.bias = bias
        self.standardize = standardize
        self.beam = beam
        self.slack = slack
        self.vectorizer = vectorizer
        self.hierarchy = hierarchy
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose

    def _check_parameters(self) -> None:
        if self.arity is not None:
            check_integer("arity", self.arity, at_least=2)
        if self.max_leaf is not None:
            check_integer("max_leaf", self.max_leaf, at_least=1)
        if self.tree_options is not None and not isinstance(self.tree_options, dict):
            raise ValueError(f"tree_options must be a dict from option to value, got {self.tree_options!r}")
        check_integer("n_trees", self.n_trees, at_least=1)
        self._solver().check_parameters()
        if self.hash_bits is not None:
            check_integer("hash_bits", self.hash_bits, at_least=5, at_most=32)
        check_flag("calibrate", self.calibrate)
        if self._solver().optimizer is not None and (self.hash_bits is None or self.calibrate):
            raise ValueError(
                "a solver with optimizer=FOBOS(...) needs hash_bits=… and calibrate=False; without hashing, use "
                "OnlinePLTClassifier(tree=…, policy=None, optimizer=FOBOS(...))"
            )
        check_flag("normalize", self.normalize)
        check_number("bias", self.bias, at_least=0)
        if self.standardize != "auto":
            check_flag("standardize", self.standardize)
        self._search_options()
        check_flag("verbose", self.verbose)

    def _solver(self) -> PLTSolver:
        if self.solver is None:
            return PLTSolver()
        if not isinstance(self.solver, PLTSolver):
            raise ValueError(f"solver must be None or a PLTSolver, such as PLTSolver(C=1.0), got {self.solver!r}")
        return self.solver

    def _search_options(self) -> Mapping[str, Any]:
        if self.beam is None and self.slack == 0:
            return NO_OPTIONS
        if self.beam is not None:
            check_integer("beam", self.beam, at_least=1, at_most=2**31 - 1)
        if not 0 <= check_number("slack", self.slack) < 1:
            raise ValueError(f"slack must be a number of at least 0 and below 1, got {self.slack!r}")
        return {"beam": self.beam, "slack": self.slack}

    # --- training -------------------------------------------------------------------------------------------------

    def _train(self, data: TrainingData) -> PLTModel:
        plan = plan_for(self, data)
        if plan.columns is not None:
            data = replace(data, X=plan.columns.rows(data.X))
        trained = [self._train_tree(data, data.seed % 2**32, plan.solver, plan.tree, plan.size, plan.normalize)]
        # What suits the first tree suits the others; only their maps to probabilities are their own.
        first = trained[0]
        chosen: PLTSolver = clone(self._solver()).set_params(**first.setting._asdict())
        for k in range(1, self.n_trees):
            seed = (data.seed + 7919 * k) % 2**32
            trained.append(
                self._train_tree(data, seed, chosen, plan.tree, plan.size, plan.normalize, levels=first.levels)
            )
        return PLTModel(trained, plan.columns, plan.choices)

    def _tree_size(self, is_multiclass: bool, is_dense: bool) -> TreeSize:
        """As given, or else what served most sets (benchmarks/plt/README.md)."""
        usual = ONE_CLASS_SIZE if is_multiclass and not is_dense else USUAL_SIZE
        return TreeSize(self.arity or usual.arity, self.max_leaf or usual.max_leaf)

    def _takes_options(self, shape: Any) -> bool:
        """Whether `tree_options` are meant for this shape, and not for another one that is only compared with it."""
        given = "kmeans" if isinstance(self.tree, str) and self.tree == "auto" else self.tree
        return shape is given or (isinstance(shape, str) and isinstance(given, str) and shape == given)

    def _train_tree(
        self,
        data: TrainingData,
        seed: int,
        given: PLTSolver,
        shape: Any,
        size: TreeSize,
        normalize: bool,
        levels: tuple[Setting, ...] = (),
    ) -> TrainedTree:
        with phase("building the tree"):
            tree = self._tree_of(data, seed, shape, size)
        scale = 1.0 if normalize else 1 / typical_length(data.X)
        features = _core.FeatureSettings(data.n_features, normalize, self.bias, scale)
        trainer = block_trainer(data, tree, features, seed)
        with phase("choosing the solver's settings"):
            choice = choose_solver(
                trainer,
                given,
                is_multiclass=data.is_multiclass,
                calibrate=self.calibrate,
                levels=levels,
                shares_weights=self.hash_bits is not None,
                paths=HeldOutPaths(data, tree, features, seed),
            )
        progress = _core.Progress()
        with phase("training", progress):
            if self.hash_bits is None:
                blocks = trainer.train_levels(choice.solvers, progress)
            else:
                blocks = trainer.train_hashed(choice.solvers[0], self.hash_bits, progress)
        return TrainedTree(
            tree=tree,
            blocks=with_known_rates(blocks, tree, choice.rates),
            link=choice.link,
            n_features=data.n_features,
            normalize=normalize,
            bias=self.bias,
            is_multiclass=data.is_multiclass,
            setting=choice.chosen.setting,
            trials=tuple(choice.trials),
            levels=choice.levels,
            scale=scale,
            claims=choice.claims,
            top_from=TOP_FROM if choice.claims is not None else 1.0,
        )

    def _tree_of(self, data: TrainingData, seed: int, shape: Any, size: TreeSize) -> LabelTree:
        def build() -> LabelTree:
            return trees.resolve(
                shape,
                data.X,
                data.Y,
                arity=size.arity,
                max_leaf=size.max_leaf,
                random_state=seed,
                n_jobs=data.n_threads,
                context_weight=data.sample_weight,
                options=self.tree_options if self._takes_options(shape) else None,
            )

        return data.X.kept_tree(seed, build) if isinstance(data.X, RemoteRows) else build()

    # --- the trained model ----------------------------------------------------------------------------------------

    @property
    def trees_(self) -> list[TrainedTree]:
        """The trained trees of the ensemble."""
        trained: list[TrainedTree] = self.model_.trees
        return trained

    @property
    def tree_(self) -> LabelTree:
        """The label tree, of an ensemble the first one."""
        return self.trees_[0].tree

    @property
    def C_(self) -> float:
        """The cost of errors that was used: as given, or as chosen on held-out rows."""
        return self.trees_[0].setting.C

    @property
    def positive_weight_(self) -> float:
        """The weight of positive examples that was used."""
        return self.trees_[0].setting.positive_weight

    @property
    def fit_report_(self) -> FitReport:
        """The settings that were used, and all that were tried with their losses on held-out rows."""
        first = self.trees_[0]
        return FitReport(first.setting, first.trials, self.model_.choices, first.levels)

    def search_report(self, X: Any, top_k: int | None = 5, threshold: float | ArrayLike | None = None) -> SearchReport:
        """The answer of `predict_proba` with its cost: blocks scored for each row, and what was missed."""
        fitted = self._answering()
        report: SearchReport = fitted.model.report(fitted.schema.rows(X), fitted.query(top_k, threshold))  # type: ignore[attr-defined]
        return report
