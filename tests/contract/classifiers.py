"""Every classifier of the library, small and quick: add one here and it gets the whole suite."""

from __future__ import annotations

from frequency_classifier import FrequencyClassifier

CLASSIFIERS = {
    "frequency": lambda **settings: FrequencyClassifier(**{"random_state": 0, **settings}),
}

# Checks of scikit-learn that a classifier of this library fails on purpose, and why.
SPARSE_ANSWERS = (
    "answers of multi-label models are sparse: a dense array of a million columns would not fit into memory"
)
DEVIATIONS = {
    "check_classifiers_multilabel_output_format_predict": SPARSE_ANSWERS,
    "check_classifiers_multilabel_output_format_predict_proba": SPARSE_ANSWERS,
    "check_classifiers_multilabel_representation_invariance": (
        "compares answers with assert_array_equal, which cannot compare sparse ones; "
        "test_multi_label_indicators_in_any_form_give_the_same_model does what it means to do"
    ),
}
OWN_DEVIATIONS = {
    "FrequencyClassifier": {
        "check_classifiers_train": "it looks at no feature, so its accuracy is that of guessing",
    },
}


def expected_failures(estimator):
    return {**DEVIATIONS, **OWN_DEVIATIONS.get(type(estimator).__name__, {})}
