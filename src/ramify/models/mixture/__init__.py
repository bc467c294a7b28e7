"""Weighted means of several classifiers' probabilities."""
