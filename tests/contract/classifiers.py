"""Every classifier of the library, small and quick: add one here and it gets the whole suite."""

from __future__ import annotations

from ramify import PLTClassifier

CLASSIFIERS = {
    "plt": lambda **settings: PLTClassifier(**{"arity": 2, "max_leaf": 3, "random_state": 0, **settings}),
    "plt ensemble": lambda **settings: PLTClassifier(
        **{"arity": 3, "max_leaf": 2, "n_trees": 2, "loss": "logistic", "random_state": 0, **settings}
    ),
    "plt one-against-all": lambda **settings: PLTClassifier(
        **{"tree": "one_level", "C": 1.0, "calibrate": False, "random_state": 0, **settings}
    ),
}

# Settings under which training comes to the optimum and looks at nothing but rows and their weights.
CONVERGED = {
    "PLTClassifier": {
        "tree": "complete",
        "loss": "logistic",
        "C": 1.0,
        "eps": 0.0,
        "max_epochs": 300,
        "prune": 0.0,
        "calibrate": False,
    },
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
APPROXIMATE_WEIGHTS = (
    "a few epochs over rows in random order, and a tree and a cost chosen by looking at the rows: a weight of two is a "
    "row given twice only in the limit, which test_a_weight_of_two_is_a_row_given_twice looks at"
)
OWN_DEVIATIONS = {
    "PLTClassifier": {
        "check_sample_weight_equivalence_on_dense_data": APPROXIMATE_WEIGHTS,
        "check_sample_weight_equivalence_on_sparse_data": APPROXIMATE_WEIGHTS,
    },
}


def expected_failures(estimator):
    return {**DEVIATIONS, **OWN_DEVIATIONS.get(type(estimator).__name__, {})}
