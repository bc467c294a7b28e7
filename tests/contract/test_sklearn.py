"""scikit-learn's own checks; what fails on purpose is listed with its reason in classifiers.py."""

from __future__ import annotations

from sklearn.utils.estimator_checks import parametrize_with_checks

from contract.classifiers import CLASSIFIERS, expected_failures


@parametrize_with_checks(
    [CLASSIFIERS[name]() for name in sorted(CLASSIFIERS)], expected_failed_checks=expected_failures
)
def test_scikit_learn(estimator, check):
    check(estimator)
