"""The smallest classifier: predicts each label's share of the training rows. Tests check it by hand."""

from frequency_classifier.classifier import FrequencyClassifier

__all__ = ["FrequencyClassifier"]
