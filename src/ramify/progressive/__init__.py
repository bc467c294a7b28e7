"""Progressive validation: every example is a test first and a lesson after it."""

from ramify.progressive.evaluation import Evaluation, evaluate
from ramify.progressive.result import ProgressiveResult, Score, Window

__all__ = ["Evaluation", "ProgressiveResult", "Score", "Window", "evaluate"]
