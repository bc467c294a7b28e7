"""Extreme multi-label and multi-class classification with trees."""

from ramify.models.plt import PLTClassifier
from ramify.persist import load

__version__ = "0.1.0"
__all__ = ["PLTClassifier", "load"]
