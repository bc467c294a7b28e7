"""Which cost of errors, weight of positives and degree of convergence suit the data: tried on held-out rows.

A sample of the nodes is trained without a fifth of their rows, which are then scored. The choice starts from the usual
values and moves to a neighbour as long as that clearly lowers the Brier score: a step on one of the three axes, or a
lower cost with a higher weight of positives or the reverse, which keeps the cost of a missed positive. Then each level
of the tree takes the tried setting that serves it best: near the root rows are many, at the leaves a label may have
two. The axes are wide enough for both: benchmarks/robustness.py measures what the choice misses.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

from ramify import _core
from ramify.models.plt.block_trainer import BlockTrainer
from ramify.models.plt.calibration import (
    IDENTITY,
    LOGIT_SHARES,
    N_RATES,
    Link,
    RateCurves,
    best_softening,
    fit_link,
    fit_rate_curves,
    knot_shares,
)
from ramify.models.plt.fit_report import Setting, Trial
from ramify.models.plt.held_out_paths import HeldOutPaths
from ramify.models.plt.solver import PLTSolver

# Values to choose from; the search starts from the middle C, the coarsest convergence and the weight of START_WEIGHT.
COSTS = {"squared_hinge": (0.1, 0.3, 1.0, 4.0, 16.0), "logistic": (1.0, 3.0, 10.0, 30.0, 100.0)}
POSITIVE_WEIGHTS = {"squared_hinge": (0.7, 1.2, 2.0), "logistic": (1.0, 1.4, 2.0)}
# Shares of the first epoch's duality gap that end the work, within MOST_EPOCHS; and, where weights are shared so that a
# node's gap cannot be measured, numbers of epochs.
GAPS, MOST_EPOCHS, SHARED_EPOCHS = (0.05, 0.005), 40, (5, 20)
# Where exactly one label is true, positives are few and weigh more.
START_WEIGHT = {False: 0, True: 2}
# A setting is tried on this share of each level's work, more where the data are small; and on at most MAX_ROWS rows
# and MAX_COLUMNS children of a node, more where positives are few: fewer children cost less and, unlike fewer rows,
# leave their problems as they are.
# The map of the chosen one is fitted on more: nodes differ, and on fewer rows scores come out smaller. On a fifth of
# each level's work at most, unless all of it is little, and on no less than a twentieth, however much that is.
TRIAL_SHARE, TRIAL_WORK, MAX_ROWS, MAX_COLUMNS = 0.02, 2.5e5, 12_288, 32
CALIBRATION_SHARES, CALIBRATION_WORK, MAX_CALIBRATION_ROWS = (0.05, 0.2), (4e6, 3e7), 100_000
# How much lower the loss of another setting must be: below that the sample cannot tell. Of a single level it tells
# less, and less the fewer positives were held out there: the second number over their square root, if that is more.
MARGIN, LEVEL_MARGIN = 0.005, (0.01, 0.5)


Convergence = tuple[int, float]  # most epochs, and the gap that ends them
Axes = tuple[tuple[float, ...], tuple[float, ...], tuple[Convergence, ...]]


class SolverChoice(NamedTuple):
    """The chosen settings as the core takes them, their map from scores to probabilities, and all trials.

    `levels` has the settings of each level where they differ from the `chosen` one; empty if none does.
    """

    solvers: list[_core.SolverSettings]
    link: Link
    rates: NDArray[np.float64]  # least and highest log rate of a child for which the map was fitted, by level
    chosen: Trial
    levels: tuple[Setting, ...]
    trials: list[Trial]
    claims: NDArray[np.float32] | None = None  # see TrainedTree; of classes, where the tree has more than one level


class _HeldOut(NamedTuple):
    """What held-out rows say about a setting: its Brier score by level, its scores, and its softmax losses."""

    losses: NDArray[np.float64]
    positive: NDArray[np.float64]
    negative: NDArray[np.float64]
    softmax: NDArray[np.float64]

    def on_levels(self, used: list[bool]) -> _HeldOut:
        """With the losses of some levels only."""
        return self._replace(losses=self.losses * used)

    def has_both_kinds(self) -> bool:
        """Whether some scores are of true labels and some of others: else they cannot tell settings apart."""
        return bool(self.positive.any() and self.negative.any())


def choose_solver(
    trainer: BlockTrainer,
    given: PLTSolver,
    *,
    is_multiclass: bool,
    calibrate: bool,
    levels: tuple[Setting, ...] = (),
    shares_weights: bool = False,
    paths: HeldOutPaths | None = None,
) -> SolverChoice:
    """Solver settings as given, or else those of the least Brier score on held-out rows.

    With `paths`, the maps of labels have the exponents of their levels.

    `levels`, settings that served another tree of the same data, replace the given ones if there are as many levels.
    If nodes share their weights, all levels take the same, and epochs are counted.
    """
    axes = (
        COSTS[given.loss] if given.C is None else (float(given.C),),
        POSITIVE_WEIGHTS[given.loss] if given.positive_weight is None else (float(given.positive_weight),),
        _convergences(given, shares_weights),
    )
    start = (len(axes[0]) // 2, min(START_WEIGHT[is_multiclass], len(axes[1]) - 1), 0)
    if given.optimizer is not None:  # it takes neither C nor weights, and its epochs are of another kind
        axes = tuple((values[place],) for values, place in zip(axes, start, strict=True))  # type: ignore[assignment]
        start = (0, 0, 0)
    share = min(1.0, max(TRIAL_SHARE, TRIAL_WORK / max(trainer.total_work, 1)))
    tried: dict[Setting, _HeldOut] = {}

    def try_out(settings: list[Setting]) -> dict[Setting, _HeldOut]:
        # Together, so that each node is prepared once and threads have enough to do.
        cores = [_core_settings(given, setting) for setting in settings]
        found, stands_for = trainer.held_out(cores, share, MAX_ROWS, max_columns=MAX_COLUMNS)
        return {setting: _held_out(*of, stands_for) for setting, of in zip(settings, found, strict=True)}

    best = _setting(axes, start)
    levels = levels if not shares_weights and len(levels) == trainer.n_levels else ()
    has_choice = max(map(len, axes)) > 1
    if has_choice:
        best = _search(axes, start, tried, try_out)
        levels = () if shares_weights or not tried[best].has_both_kinds() else _best_by_level(best, tried)
    of_level = levels or (best,) * trainer.n_levels
    link, rates, claims = IDENTITY, np.zeros((trainer.n_levels, 2)), None
    if calibrate:
        own, curves, found = _calibrate(
            trainer, [_core_settings(given, setting) for setting in of_level], is_multiclass, paths
        )
        link, rates = curves.link(), curves.rates
        if is_multiclass and trainer.n_levels > 2:
            each = own.link()
            claims = np.stack([each.logits, each.slope_table()])
        if not tried:  # each was tried on its own levels
            tried = {used: found.on_levels([used == of for of in of_level]) for used in dict.fromkeys(of_level)}
    trials = [Trial(setting, float(of.losses.sum())) for setting, of in tried.items()]
    loss = float(tried[best].losses.sum()) if best in tried else float("nan")
    solvers = [_core_settings(given, setting) for setting in (levels or (best,))]
    return SolverChoice(solvers, link, rates, Trial(best, loss), levels, trials, claims)


def _calibrate(
    trainer: BlockTrainer, solvers: list[_core.SolverSettings], is_multiclass: bool, paths: HeldOutPaths | None
) -> tuple[RateCurves, RateCurves, _HeldOut]:
    """Maps from scores to probabilities for the solvers of the levels, and what they were fitted on.

    The first is that of each child for itself, the second suits how siblings are normalised.
    """
    least, most = (work / max(trainer.total_work, 1) for work in CALIBRATION_WORK)
    share = min(1.0, max(least, CALIBRATION_SHARES[0], min(CALIBRATION_SHARES[1], most)))
    # The first level is the gate's; of a single level besides, there is nothing to combine.
    combines = paths is not None and not is_multiclass and trainer.n_levels > 2

    def ask(n_rates: int = 1, links: NDArray[np.float32] | None = None) -> _HeldOut:
        keeps_scores = is_multiclass and links is None  # the same scores are counted twice
        found, stands_for = trainer.held_out(
            solvers,
            share,
            MAX_CALIBRATION_ROWS,
            n_rates,
            links,
            by_level=True,
            keeps_scores=keeps_scores,
            of_paths=combines,
        )
        return _held_out(*found[0], stands_for)

    held_out = ask(N_RATES)
    own = curves = fit_rate_curves(held_out.positive, held_out.negative)
    if is_multiclass:
        losses = ask(links=_softmax_candidates(curves)[None]).softmax
        curves = own.softened(*best_softening(losses))
    if combines and paths is not None:
        curves = own.raised(paths.exponents(trainer, own, share))
    return own, curves, held_out


def _search(
    axes: Axes,
    start: tuple[int, ...],
    tried: dict[Setting, _HeldOut],
    try_out: Callable[[list[Setting]], dict[Setting, _HeldOut]],
) -> Setting:
    """Go to the neighbour of the least loss until none is clearly better; everything seen is added to `tried`.

    Very few rows may have nothing held out, or one row that is of one kind: then the start is kept.
    """
    place = start

    def loss_at(place: tuple[int, ...]) -> float:
        return float(tried[_setting(axes, place)].losses.sum())

    while True:
        seen = [place, *_neighbours(axes, place)]
        new = [setting for at in seen if (setting := _setting(axes, at)) not in tried]
        tried.update(try_out(new) if new else {})
        if not tried[_setting(axes, place)].has_both_kinds():
            return _setting(axes, place)
        least = min(seen, key=loss_at)
        if not loss_at(least) < loss_at(place) * (1 - MARGIN):
            return _setting(axes, place)
        place = least


def _best_by_level(best: Setting, tried: dict[Setting, _HeldOut]) -> tuple[Setting, ...]:
    """The setting of the least loss for each level, `best` where no other is clearly better; empty if that is all."""
    chosen = []
    for level, loss in enumerate(tried[best].losses):
        least = min(tried, key=lambda setting: tried[setting].losses[level])
        positives = max(1.0, float(tried[best].positive[level].sum()))
        margin = max(LEVEL_MARGIN[0], LEVEL_MARGIN[1] / positives**0.5)
        chosen.append(least if tried[least].losses[level] < loss * (1 - margin) else best)
    return tuple(chosen) if set(chosen) != {best} else ()


def _softmax_candidates(curves: RateCurves) -> NDArray[np.float32]:
    """Maps of which the softmax is tried (shares of the logit x levels x 2 x knots)."""
    ones = np.ones(len(curves.rates))
    links = [curves.softened(share * ones, ones).link() for share in LOGIT_SHARES]
    return np.stack([np.stack([link.logits, link.slope_table()], axis=1) for link in links])


def _convergences(given: PLTSolver, shares_weights: bool) -> tuple[Convergence, ...]:
    if given.n_epochs is not None:
        return ((given.n_epochs, 0.0 if given.gap is None or shares_weights else float(given.gap)),)
    if shares_weights:
        return tuple((n_epochs, 0.0) for n_epochs in SHARED_EPOCHS)
    return tuple((MOST_EPOCHS, gap) for gap in (GAPS if given.gap is None else (float(given.gap),)))


def _setting(axes: Axes, place: tuple[int, ...]) -> Setting:
    return Setting(axes[0][place[0]], axes[1][place[1]], *axes[2][place[2]])


def _neighbours(axes: Axes, place: tuple[int, ...]) -> list[tuple[int, ...]]:
    """The places one step away on an axis, and on those of cost and weight in opposite directions."""
    steps = ((-1, 0, 0), (1, 0, 0), (0, -1, 0), (0, 1, 0), (0, 0, -1), (0, 0, 1), (-1, 1, 0), (1, -1, 0))
    moved = [tuple(at + step for at, step in zip(place, steps_, strict=True)) for steps_ in steps]
    return [other for other in moved if all(0 <= at < len(axis) for at, axis in zip(other, axes, strict=True))]


def _core_settings(given: PLTSolver, setting: Setting) -> _core.SolverSettings:
    return _core.SolverSettings(
        loss=given.loss,
        C=setting.C,
        positive_weight=setting.positive_weight,
        max_epochs=setting.n_epochs,
        gap=setting.gap,
        eps=given.tol,
        prune=given.prune,
        packs=given.packed,
        **given.steps(),
    )


def _held_out(
    positive: NDArray[np.float64],
    negative: NDArray[np.float64],
    softmax: NDArray[np.float64],
    stands_for: NDArray[np.float64],
) -> _HeldOut:
    by_score = positive.sum(axis=1), negative.sum(axis=1)
    return _HeldOut(held_out_brier(*by_score, stands_for, fit_link(*by_score)), positive, negative, softmax)


def held_out_brier(
    positive: NDArray[np.float64], negative: NDArray[np.float64], stands_for: NDArray[np.float64], link: Link
) -> NDArray[np.float64]:
    """Sums of squared errors of the calibrated probabilities of held-out scores (levels x bins), by level.

    Levels are sampled at unequal shares: each counts as if it had been held out whole.
    """
    shares = knot_shares(np.arange(positive.shape[1]))
    losses = np.zeros(len(positive))
    for level, logits in enumerate(link.logits):
        p = expit(shares @ logits)
        losses[level] = stands_for[level] * (positive[level] @ (1 - p) ** 2 + negative[level] @ p**2)
    return losses
