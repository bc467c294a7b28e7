"""A mixture: several classifiers, their weights learned on rows that were held out."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse
from sklearn.base import clone
from sklearn.utils import check_random_state
from sklearn.utils.metaestimators import _BaseComposition, available_if

from ramify import registry
from ramify.base.classifier import ExtremeClassifier
from ramify.base.fitted import FittedModel
from ramify.base.nested import check_no_hierarchy, train_inside
from ramify.base.online import OnlineClassifier
from ramify.base.rows import as_one_row
from ramify.base.schema import Schema
from ramify.base.stream_schema import DictRow, Piece, StreamSchema, one_label_row
from ramify.base.training import TrainingData, weighted_rows
from ramify.common.progress import phase, shown
from ramify.common.validation import check_flag, check_integer, check_number
from ramify.models.mixture.judged import judged_entries
from ramify.models.mixture.model import MixtureModel, Part
from ramify.models.mixture.stacking import learn_stacking
from ramify.models.mixture.weights import BrierSums, best_exponent
from ramify.models.nearest_rows.classifier import NearestRowsClassifier
from ramify.models.plt.classifier import PLTClassifier

# More rows than these tell no more about a few numbers.
MOST_HELD_OUT = 5000


def _learns_in_pieces(classifier: MixtureClassifier) -> bool:
    return classifier._is_online()


class MixtureClassifier(_BaseComposition, ExtremeClassifier):  # type: ignore[misc]
    """The weighted mean of several classifiers' probabilities, named for every label that one of them proposes.

    Weights (at least 0, with sum 1) have the least Brier score on rows held out from the parts' training; the parts are
    then trained once more, on all rows. With several labels per row each part's probabilities are also calibrated, by
    a power of them. With one class per row a mean of distributions is one, and is left as it is.

    Parameters
    ----------
    parts : list of classifiers, of (name, classifier) pairs, or of names; None
        What is mixed: classifiers of the library. Names are those of the command line, and may come as one string,
        "plt,nearest-rows". None: `PLTClassifier(n_trees=3)`, `NearestRowsClassifier()`, and as "centroids"
        `NearestRowsClassifier(centroids=True, k=50, power=8.0)`.
    weights : None or one number per part
        None learns them; given weights are scaled to sum 1, and no rows are held out.
    stacking : bool
        Let a logistic model over what the parts say judge the best labels of each part, where it beats the mean on rows
        held out from it. Not for streams.
    held_out : float
        Share of the rows that are held out to learn the weights on, at most 5,000 rows.
    refit : bool
        Train the parts once more, on all rows, when the weights are known.
    block : int
        For `partial_fit`: rows that the parts answer, for the weights, before they learn them.
    vectorizer : None, TfidfVectorizer or HashingVectorizer
        For X given as texts, for all parts: those of the parts are not used.
    n_jobs, random_state
        Given to the parts where not None; random_state also draws the rows that are held out.
    hierarchy : dict or None
        Label -> parent or parents: no label is answered with less than a label below it (docs/hierarchy.md).
    verbose : bool
        Show progress on stderr while training.

    Where all parts learn online, so does the mixture (`partial_fit`, `learn_one`): its weights have the least Brier
    score over all rows as the parts answered them before they learned them.

    Examples
    --------
    >>> from ramify import FastXMLClassifier, MixtureClassifier, PLTClassifier
    >>> from ramify.data.synthetic import make_multilabel
    >>> data = make_multilabel(1000, 50, 500, random_state=0)
    >>> clf = MixtureClassifier([PLTClassifier(), FastXMLClassifier(n_trees=10)], random_state=0).fit(data.X, data.Y)
    >>> sorted(clf.weights_)
    ['fastxml', 'plt']
    """

    def __init__(
        self,
        parts: Any = None,
        *,
        weights: Sequence[float] | None = None,
        stacking: bool = True,
        held_out: float = 0.1,
        refit: bool = True,
        block: int = 256,
        vectorizer: Any = None,
        hierarchy: Mapping[Any, Any] | None = None,
        n_jobs: int | None = None,
        random_state: Any = None,
        verbose: bool = False,
    ) -> None:
        self.parts = parts
        self.weights = weights
        self.stacking = stacking
        self.held_out = held_out
        self.refit = refit
        self.block = block
        self.vectorizer = vectorizer
        self.hierarchy = hierarchy
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """The parameters, with those of named parts as name__parameter."""
        params: dict[str, Any] = self._get_params("parts", deep=deep)
        return params

    def set_params(self, **params: Any) -> MixtureClassifier:
        """Set parameters, of named parts as name__parameter."""
        parts = params.get("parts", self.parts)
        if isinstance(parts, list) and all(isinstance(part, tuple) for part in parts):
            self._set_params("parts", **params)
        else:
            super().set_params(**params)  # scikit-learn takes other lists apart as if they were pairs
        return self

    def _check_parameters(self) -> None:
        n_parts = len(self._given())
        for part in self._given().values():
            check_no_hierarchy(type(self).__name__, part)
        if self.weights is not None:
            try:
                weights = np.asarray(self.weights, dtype=np.float64)
            except (TypeError, ValueError):
                weights = np.zeros(0)
            if weights.shape != (n_parts,) or not (np.isfinite(weights) & (weights >= 0)).all() or not weights.any():
                raise ValueError(
                    f"weights must be None or {n_parts} numbers of at least 0, one per part, got {self.weights!r}"
                )
        if check_number("held_out", self.held_out, above=0, at_most=1) == 1:
            raise ValueError("held_out must leave rows to train on: give a number below 1")
        check_flag("stacking", self.stacking)
        check_flag("refit", self.refit)
        check_integer("block", self.block, at_least=1)
        check_flag("verbose", self.verbose)

    # --- parts ----------------------------------------------------------------------------------------------------

    def _given(self) -> dict[str, ExtremeClassifier]:
        """The parts by name; those without one are called as on the command line."""
        given = self.parts
        if given is None:
            # k and power of the centroids: those that gained most on rows held out from four training sets.
            centroids = NearestRowsClassifier(centroids=True, k=50, power=8.0)
            given = [PLTClassifier(n_trees=3), NearestRowsClassifier(), ("centroids", centroids)]
        elif isinstance(given, str):
            given = [name.strip() for name in given.split(",")]
        if not isinstance(given, list | tuple) or not given:
            raise ValueError(f"parts must be None or a list of classifiers of ramify, got {self.parts!r}")
        parts: dict[str, ExtremeClassifier] = {}
        for item in given:
            name, part = item if isinstance(item, tuple) and len(item) == 2 else (None, item)
            if isinstance(part, str):
                name, part = name or part, registry.make_classifier(part)
            if not isinstance(part, ExtremeClassifier):
                raise ValueError(f"parts must hold classifiers of ramify, got {part!r}")
            name = name or self._free_name(type(part).__name__, parts)
            if not isinstance(name, str) or "__" in name or name in parts:
                raise ValueError(f"names of parts must be distinct strings without '__', got {name!r}")
            parts[name] = part
        return parts

    @staticmethod
    def _free_name(class_name: str, taken: Mapping[str, Any]) -> str:
        entry = registry.CLASSIFIERS.get(class_name)
        name = (entry.name if entry is not None else "") or class_name
        return next(free for n in range(1, len(taken) + 2) if (free := name if n == 1 else f"{name}-{n}") not in taken)

    def _is_online(self) -> bool:
        try:
            return all(isinstance(part, OnlineClassifier) for part in self._given().values())
        except ValueError:
            return False  # `fit` says what is wrong

    @property
    def _schema_class(self) -> type[Schema]:  # type: ignore[override]
        return StreamSchema if self._is_online() else Schema

    def _default_vectorizer(self) -> Any:
        return (
            next(iter(self._given().values()))._default_vectorizer()
            if self._is_online()
            else (super()._default_vectorizer())
        )

    # --- training -------------------------------------------------------------------------------------------------

    def _train(self, data: TrainingData) -> MixtureModel:
        n = data.X.shape[0]
        n_held_out = min(max(1, round(n * self.held_out)), n - 1, MOST_HELD_OUT)
        given, n_parts = self._given(), len(self._given())
        if self.weights is not None or n_parts == 1 or n_held_out == 0:
            weights = np.ones(n_parts) if self.weights is None else np.asarray(self.weights, dtype=np.float64)
            return MixtureModel(self._trained(given, data), weights / weights.sum(), np.ones(n_parts))
        order = check_random_state(data.seed).permutation(n)
        held_out, rest = np.sort(order[:n_held_out]), np.sort(order[n_held_out:])
        model = MixtureModel(self._trained(given, data.part(rest)), np.full(n_parts, 1 / n_parts), np.ones(n_parts))
        with phase("learning weights"):
            part = data.part(held_out)
            judged = judged_entries(model, (part.X, part.Y, part.sample_weight), data.n_threads)
            if not data.is_multiclass:
                model.exponents = np.array([best_exponent(p, judged.y, judged.entry_weight) for p in judged.P.T])
            model.sums = BrierSums.none(n_parts).plus(judged.P**model.exponents, judged.y, judged.entry_weight)
            model.weights = model.sums.weights()
            if self.stacking and not self._is_online():
                # Rows that no part was taught do not count: a true label would have one more than the others.
                label_rows = np.asarray(data.Y[rest].sum(axis=0), dtype=np.float64).ravel()
                rows, means = judged.proposals(model.means(judged.P))
                is_one_of_all = bool((np.diff(data.Y.indptr) == 1).all())
                model.stacking = learn_stacking(rows, means, label_rows, is_one_of_all)
        if self.refit:
            model.parts = self._trained(given, data)
            if model.stacking is not None:
                label_rows = np.asarray(data.Y.sum(axis=0), dtype=np.float64).ravel()
                model.stacking = replace(model.stacking, log_rows=np.log1p(label_rows))
        return model

    def _trained(self, given: Mapping[str, ExtremeClassifier], data: TrainingData) -> list[Part]:
        parts = []
        for name, part in given.items():
            nested = train_inside(part, self.n_jobs, data)
            parts.append(Part(name, nested.class_name, nested.fitted.model, nested.fitted.options))
        return parts

    # --- learning in pieces ---------------------------------------------------------------------------------------

    @available_if(_learns_in_pieces)  # type: ignore[untyped-decorator]
    def partial_fit(
        self, X: Any, y: Any, classes: ArrayLike | None = None, sample_weight: ArrayLike | None = None
    ) -> MixtureClassifier:
        """Learn these rows on top of what is known; the weights follow what the parts answered just before.

        New labels and wider rows are welcome. A rejected piece leaves the model as it was. An interrupt comes after a
        block of `block` rows: `n_examples_` says how many are learned.
        """
        with shown(self.verbose is True), self._lock():
            self._check_parameters()
            if "fitted_" in self.__dict__:
                piece = self._read_piece(X, y, sample_weight)
                self._learn_blocks(piece)
            else:
                schema = StreamSchema(type(self).__name__)
                self._check_vectorizer()
                piece = weighted_rows(*schema.start(X, y, classes, self._new_vectorizer), sample_weight)
                data = TrainingData(*piece, self._draw_seed(), self._n_threads(), schema)
                hierarchy = self._hierarchy_of(schema)
                self._set_fitted(FittedModel(schema, self._new_model(data), seed=data.seed, hierarchy=hierarchy))
                try:
                    self._learn_blocks(piece)
                except BaseException:
                    del self.fitted_
                    raise
        return self

    @available_if(_learns_in_pieces)  # type: ignore[untyped-decorator]
    def learn_one(self, x: Any, y: Any) -> MixtureClassifier:
        """Learn one row: a dict feature -> value, a text, or a one-row array; y as in `OnlineClassifier.learn_one`."""
        kind = self.schema_.labels.kind if "fitted_" in self.__dict__ else None
        row = DictRow(x) if isinstance(x, Mapping) else as_one_row(x)
        fitted: MixtureClassifier = self.partial_fit(row, one_label_row(y, kind))
        return fitted

    def _new_model(self, data: TrainingData) -> MixtureModel:
        parts = []
        for name, given in self._given().items():
            inner: Any = self._with_jobs(given)
            inner._check_parameters()
            model = inner._new_model(data)
            parts.append(Part(name, type(inner).__name__, model, inner._search_options()))
        n = len(parts)
        weights = np.ones(n) if self.weights is None else np.asarray(self.weights, dtype=np.float64)
        return MixtureModel(parts, weights / weights.sum(), np.ones(n), None if self.weights else BrierSums.none(n))

    def _read_piece(self, X: Any, y: Any, sample_weight: Any) -> Piece:
        schema = self.fitted_.schema
        assert isinstance(schema, StreamSchema)
        parts = self.parts_
        for part in parts.values():
            part._unchanged()

        def accept(rows: sparse.csr_array, indicator: sparse.csr_array) -> Piece:
            piece = weighted_rows(rows, indicator, sample_weight)
            for part in parts.values():
                piece = part._accept(piece)
            return piece

        return schema.extend(X, y, accept)

    def _learn_blocks(self, piece: Piece) -> None:
        schema, model = self.fitted_.schema, self.fitted_.model
        assert isinstance(model, MixtureModel)
        X, Y, weight = piece
        knows_nothing = model.n_examples == 0
        parts = self.parts_
        uninterrupted(lambda: model.widen(schema.n_labels, schema.n_features))
        for start in range(0, X.shape[0], self.block):
            rows = slice(start, start + self.block)
            block: Piece = (X[rows], Y[rows], None if weight is None else weight[rows])
            sums = model.sums
            if sums is not None and not (knows_nothing and start == 0):
                judged = judged_entries(model.with_all_parts(), block, self._n_threads())
                sums = sums.plus(judged.P**model.exponents, judged.y, judged.entry_weight)
            weights = model.weights if sums is None else sums.weights()
            learned = [online.n_learned + block[0].shape[0] for online in model.online_parts()]
            uninterrupted(partial(_learn_block, model, parts, block, learned, sums, weights))

    @property
    def n_examples_(self) -> int:
        """The number of rows learned online."""
        model = self._attribute("n_examples_").model
        assert isinstance(model, MixtureModel)
        if not self._is_online():
            raise AttributeError("n_examples_ counts rows learned online, which a part of this mixture does not do")
        return model.n_examples

    # --- the trained model ----------------------------------------------------------------------------------------

    def _with_jobs(self, given: ExtremeClassifier) -> Any:
        inner = clone(given)
        if self.n_jobs is not None:
            inner.n_jobs = self.n_jobs
        return inner

    @property
    def parts_(self) -> dict[str, Any]:
        """The trained parts by name; they take rows of numbers, also where the mixture takes texts."""
        fitted = self._attribute("parts_")
        model = fitted.model
        assert isinstance(model, MixtureModel)
        given, trained = self._given(), {}
        now = [(name, type(part).__name__) for name, part in given.items()]
        before = [(part.name, part.class_name) for part in model.parts]
        if now != before:
            raise ValueError(f"the parts were {before} when learning began and are {now} now: fit a new mixture")
        for part in model.parts:
            inner = self._with_jobs(given[part.name])
            schema = inner._schema_class.sharing(part.class_name, fitted.schema)
            seed = getattr(part.model, "settings", {}).get("seed", fitted.seed)  # a part may have its random_state
            inner._set_fitted(FittedModel(schema, part.model, seed=seed, options=part.options))
            trained[part.name] = inner
        return trained

    @property
    def weights_(self) -> dict[str, float]:
        """The weight of each part; 0: it is not asked."""
        model = self.model_
        return dict(zip([part.name for part in model.parts], model.weights.tolist(), strict=True))

    @property
    def exponents_(self) -> dict[str, float]:
        """The power of each part's probabilities that is mixed; 1: as they are."""
        model = self.model_
        return dict(zip([part.name for part in model.parts], model.exponents.tolist(), strict=True))


def uninterrupted(step: Callable[[], None]) -> None:
    """Run a step to its end, again and again if it is interrupted, and raise the interrupt then."""
    interrupt = None
    while True:
        try:
            step()
            break
        except KeyboardInterrupt as error:
            interrupt = error
    if interrupt is not None:
        raise interrupt


def _learn_block(
    model: MixtureModel,
    parts: Mapping[str, Any],
    block: Piece,
    learned: Sequence[int],
    sums: BrierSums | None,
    weights: NDArray[np.float64],
) -> None:
    """Every part learns the rows of the block that it has not learned yet: none is ever ahead of the others."""
    n_rows = block[0].shape[0]
    for part, online, n_wanted in zip(model.parts, model.online_parts(), learned, strict=True):
        if (n_left := n_wanted - online.n_learned) > 0:
            rest = slice(n_rows - n_left, n_rows)
            X, Y, weight = block
            parts[part.name]._learn(online, (X[rest], Y[rest], None if weight is None else weight[rest]), None)
    model.sums, model.weights = sums, weights
