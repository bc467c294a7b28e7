"""Explanations: why a label has its probability."""
