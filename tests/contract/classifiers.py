"""Every classifier of the library, small and quick: add one here and it gets the whole suite."""

from __future__ import annotations

from ramify import (
    FastXMLClassifier,
    FilterTreeClassifier,
    LOMTreeClassifier,
    MemoryTreeClassifier,
    MixtureClassifier,
    NearestRowsClassifier,
    OnlinePLTClassifier,
    PLTClassifier,
    SpectralTreeClassifier,
    ThresholdClassifier,
    TreeSoftmaxClassifier,
)
from ramify.models.plt import PLTSolver
from ramify.models.spectral import CandidateScorer
from ramify.optimizers import FOBOS, SGD, AdaGrad


def online(**given):
    return lambda **settings: OnlinePLTClassifier(**{"random_state": 0, **given, **settings})


def tuned(estimator, inner=(), **given):
    """A ThresholdClassifier; settings that it does not have itself are the estimator's."""

    def make(**settings):
        own = {name: value for name, value in settings.items() if name in ("n_jobs", "random_state")}
        rest = {name: value for name, value in settings.items() if name not in own}
        return ThresholdClassifier(estimator(**{**dict(inner), **rest}), **{"random_state": 0, **given, **own})

    return make


SMALL_TREE = {"arity": 2, "max_leaf": 3}

CLASSIFIERS = {
    "plt": lambda **settings: PLTClassifier(**{"arity": 2, "max_leaf": 3, "random_state": 0, **settings}),
    "tree softmax": lambda **settings: TreeSoftmaxClassifier(
        **{"dim": 8, "n_epochs": 40, "random_state": 0, **settings}
    ),
    "tree softmax, int8": lambda **settings: TreeSoftmaxClassifier(
        **{"tree": "kmeans", "arity": 3, "dim": 5, "n_epochs": 40, "storage": "int8", "random_state": 0, **settings}
    ),
    "plt ensemble": lambda **settings: PLTClassifier(
        **{"arity": 3, "max_leaf": 2, "n_trees": 2, "solver": PLTSolver(loss="logistic"), "random_state": 0, **settings}
    ),
    "plt one-against-all": lambda **settings: PLTClassifier(
        **{"tree": "one_level", "solver": PLTSolver(C=1.0), "calibrate": False, "random_state": 0, **settings}
    ),
    "online plt, fair": online(arity=2, max_leaf=3),
    "online plt, best": online(policy="best", max_leaf=3),
    "online plt, random": online(policy="random", max_leaf=3, optimizer="fobos"),
    "online plt, cpt": online(policy="cpt"),
    "incremental plt": online(policy=None, tree="complete", arity=2, max_leaf=3, n_epochs=2),
    "online one-against-all": online(tree="one_level"),
    "ofo": tuned(PLTClassifier, SMALL_TREE),
    "fta": tuned(PLTClassifier, SMALL_TREE, method="fta", objective="example_f1"),
    "ofo, online plt": tuned(OnlinePLTClassifier, c=20),
    "sto, online plt": tuned(OnlinePLTClassifier, method="sto", empty="one"),
    "fastxml": lambda **settings: FastXMLClassifier(**{"n_trees": 5, "max_leaf": 5, "random_state": 0, **settings}),
    "fastxml, propensities": lambda **settings: FastXMLClassifier(
        **{"n_trees": 3, "max_leaf": 3, "C": 4.0, "propensity": (0.55, 1.5), "random_state": 0, **settings}
    ),
    "lomtree": lambda **settings: LOMTreeClassifier(
        **{"optimizer": AdaGrad(learning_rate=1.0), "random_state": 0, **settings}
    ),
    "lomtree that swaps": lambda **settings: LOMTreeClassifier(
        **{"max_nodes": 4, "loss": "logistic", "n_epochs": 3, "random_state": 0, **settings}
    ),
    "filter tree": lambda **settings: FilterTreeClassifier(**{"n_epochs": 5, "random_state": 0, **settings}),
    "spectral": lambda **settings: SpectralTreeClassifier(
        **{"n_candidates": 6, "estimator": CandidateScorer(rank=8), "random_state": 0, **settings}
    ),
    "spectral, learned space": lambda **settings: SpectralTreeClassifier(
        **{
            "n_candidates": 6,
            "estimator": CandidateScorer(rank=8),
            "space": "learned",
            "n_leaves": 3,
            "random_state": 0,
            **settings,
        }
    ),
    "spectral, plt behind it": lambda **settings: SpectralTreeClassifier(
        **{"n_candidates": 5, "head": 1, "estimator": PLTClassifier(**SMALL_TREE), "random_state": 0, **settings}
    ),
    "memory tree": lambda **settings: MemoryTreeClassifier(
        **{"leaf_multiplier": 1.0, "n_leaves": 3, "random_state": 0, **settings}
    ),
    "memory tree, bounded": lambda **settings: MemoryTreeClassifier(
        **{
            "leaf_multiplier": 2.0,
            "label_scorer": "votes",
            "max_examples": 100,
            "forgetting": "least_useful",
            "n_epochs": 2,
            "random_state": 0,
            **settings,
        }
    ),
    "nearest rows": lambda **settings: NearestRowsClassifier(**{"random_state": 0, **settings}),
    "mixture": lambda **settings: MixtureClassifier(
        **{"parts": [PLTClassifier(**SMALL_TREE), NearestRowsClassifier(k=10)], "random_state": 0, **settings}
    ),
    "mixture, online": lambda **settings: MixtureClassifier(
        **{
            "parts": [("tree", OnlinePLTClassifier(arity=2, max_leaf=3)), ("memory", MemoryTreeClassifier())],
            "held_out": 0.2,
            "random_state": 0,
            **settings,
        }
    ),
}

# Models that learn exactly one class a row: they get such rows in the suite, and refuse others.
ONE_CLASS = {"LOMTreeClassifier", "FilterTreeClassifier"}


def learns_one_class(name):
    return type(CLASSIFIERS[name]()).__name__ in ONE_CLASS


# Settings under which training comes to the optimum and looks at nothing but rows and their weights.
CONVERGED = {
    # Small steps from the same start: two of them are nearly one that is twice as long.
    "TreeSoftmaxClassifier": {
        "tree": "complete",
        "n_epochs": 300,
        "learning_rate": 0.004,
        "batch_size": 1,
        "shuffle": False,
        "storage": "float32",
    },
    "PLTClassifier": {
        "tree": "complete",
        "solver": PLTSolver(loss="logistic", C=1.0, positive_weight=1.0, tol=0.0, n_epochs=300, prune=0.0),
        "calibrate": False,
    },
    # Small steps, none of them scaled by the steps before: two of them are nearly one that is twice as long.
    "OnlinePLTClassifier": {
        "optimizer": FOBOS(learning_rate=0.005, l2=0.0),
        "n_epochs": 60,
        "shuffle": False,
    },
    # One leaf, and everything in it votes by its weight.
    "MemoryTreeClassifier": {
        "leaf_multiplier": 1000.0,
        "label_scorer": "votes",
        "n_neighbours": None,
        "scorer_rate": 0.0,
        "max_examples": None,
    },
    # Weights are given, as which rows are held out has no weights; nearest rows count them exactly.
    "MixtureClassifier": {"parts": [NearestRowsClassifier(k=5), NearestRowsClassifier()], "weights": [1, 2]},
    # Without inner nodes nothing is left but counts of classes.
    "LOMTreeClassifier": {"max_nodes": 0},
    # Small steps, which nothing scales; what a tournament's winner is given depends on the weights won.
    "FilterTreeClassifier": {"optimizer": SGD(learning_rate=0.0001), "shuffle": False, "n_epochs": 40},
    # Sides start from what a row holds: a weight is as good as a repetition but for how far separators are solved.
    "FastXMLClassifier": {"tol": 1e-6},
    # Small steps again, as eps outweighs what AdaGrad sums up; and the ways of prediction, as chance has no weights.
    "SpectralTreeClassifier": {
        "estimator": CandidateScorer(
            rank=8,
            optimizer=AdaGrad(learning_rate=1e3, eps=1e6),
            n_epochs=100,
            shuffle=False,
            sampled_paths=False,
        ),
        "tree_options": {"tol": 0.0, "max_iterations": 100},
    },
    # The space, too, is learned in small steps: rows in it differ in the fourth digit, and every level multiplies that.
    # In a tree of twelve levels a row changes its leaf in a third of all draws of weights, in three levels in none.
    "SpectralTreeClassifier, learned space": {"depth": 3},
}


def converged_settings(classifier):
    """Settings with which a weight of two is a row given twice."""
    trained = classifier.estimator if isinstance(classifier, ThresholdClassifier) else classifier
    name = type(trained).__name__
    in_space = getattr(trained, "space", None) == "learned"
    return {**CONVERGED.get(name, {}), **(CONVERGED[f"{name}, learned space"] if in_space else {})}


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
ONE_STEP_A_ROW = (
    "a row is one step, and a weight makes it longer: a weight of two is a row given twice only for small steps, which "
    "test_a_weight_of_two_is_a_row_given_twice looks at"
)
ONE_MEMORY_A_ROW = (
    "a row that is found again is one memory of more weight, routed and learned from once: a weight of two is a row "
    "given twice for the vote, which test_a_weight_of_two_is_a_row_given_twice looks at"
)
ANY_WIDTH = (
    "features may come up at any time, in rows to be learned and in rows to be answered; "
    "test_a_wrong_number_of_features_is_refused says what is answered instead"
)
WIDER_QUESTIONS = f"{ANY_WIDTH}; what else it checks, test_separable_classes_are_learned does"
# Models whose rows may have any number of features, and whose texts are hashed, so that new words can come.
TAKES_ANY_WIDTH = dict.fromkeys(["LOMTreeClassifier", "MemoryTreeClassifier", "OnlinePLTClassifier"], ANY_WIDTH)


def takes_any_width(classifier):
    """Whether the classifier, or each part of a mixture, takes rows of any width."""
    if isinstance(classifier, MixtureClassifier):
        return hasattr(classifier, "partial_fit")
    return type(classifier).__name__ in TAKES_ANY_WIDTH


def weighted(reason):
    """The checks that a weight of two is a row given twice."""
    return dict.fromkeys([f"check_sample_weight_equivalence_on_{kind}_data" for kind in ("dense", "sparse")], reason)


# Thresholds over an online model take rows of any width, as it does.
OVER_ONLINE = {
    "check_n_features_in_after_fitting": ANY_WIDTH,
    "check_estimators_partial_fit_n_features": ANY_WIDTH,
}
ONLINE = {
    **OVER_ONLINE,
    "check_classifiers_train": WIDER_QUESTIONS,
    "check_classifiers_train(readonly_memmap=True)": WIDER_QUESTIONS,
    "check_classifiers_train(readonly_memmap=True,X_dtype=float32)": WIDER_QUESTIONS,
}
OWN_DEVIATIONS = {
    "PLTClassifier": weighted(APPROXIMATE_WEIGHTS),
    "ThresholdClassifier": weighted(APPROXIMATE_WEIGHTS),
    "MixtureClassifier": weighted(APPROXIMATE_WEIGHTS),
    "TreeSoftmaxClassifier": weighted(ONE_STEP_A_ROW),
    "SpectralTreeClassifier": weighted(ONE_STEP_A_ROW),
    "FilterTreeClassifier": weighted(ONE_STEP_A_ROW),
    "MemoryTreeClassifier": weighted(ONE_MEMORY_A_ROW) | ONLINE,
    "OnlinePLTClassifier": weighted(ONE_STEP_A_ROW) | ONLINE,
    "LOMTreeClassifier": weighted(ONE_STEP_A_ROW) | ONLINE,
}


def expected_failures(estimator):
    learns_on = hasattr(estimator, "partial_fit")
    is_mixture = isinstance(estimator, MixtureClassifier)
    over_online = learns_on and (is_mixture or isinstance(getattr(estimator, "estimator", None), OnlinePLTClassifier))
    own = OWN_DEVIATIONS.get(type(estimator).__name__, {})
    return {**DEVIATIONS, **own, **((ONLINE if is_mixture else OVER_ONLINE) if over_online else {})}
