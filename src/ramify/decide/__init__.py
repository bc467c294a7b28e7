"""Turn sparse probability estimates into labels: thresholds, their tuners, and decisions with a budget."""

from ramify.decide.budget import BudgetDecision, OnlineBudget, decide_budget, expected_value
from ramify.decide.choice import C, Choice, choose_thresholds
from ramify.decide.curves import Curve, f_measure_curves
from ramify.decide.decisions import apply_thresholds
from ramify.decide.fta import GRID, FixedThresholds, tune_fta
from ramify.decide.ofo import OnlineF, tune_ofo
from ramify.decide.sto import tune_sto

__all__ = [
    "GRID",
    "BudgetDecision",
    "C",
    "Choice",
    "Curve",
    "FixedThresholds",
    "OnlineBudget",
    "OnlineF",
    "apply_thresholds",
    "choose_thresholds",
    "decide_budget",
    "expected_value",
    "f_measure_curves",
    "tune_fta",
    "tune_ofo",
    "tune_sto",
]
