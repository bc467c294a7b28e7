"""Progressive validation: the model is tested on every example before it learns it."""

from ramify.progressive.evaluation import Evaluation, evaluate
from ramify.progressive.result import ProgressiveResult, Score, Window

__all__ = ["Evaluation", "ProgressiveResult", "Score", "Window", "evaluate"]
