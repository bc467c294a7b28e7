"""Extreme multi-label and multi-class classification with trees."""

__version__ = "0.1.0"
