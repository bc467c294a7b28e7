"""Probabilistic label trees that learn from a stream."""
