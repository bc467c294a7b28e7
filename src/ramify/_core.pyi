import collections.abc
from typing import Any

import numpy as np
from numpy.typing import NDArray

class Progress:
    def __init__(self) -> None: ...
    @property
    def done(self) -> int: ...
    @property
    def total(self) -> int: ...

def instruction_set() -> str: ...

# data
class TextError(ValueError):
    args: tuple[str, int, int, str]

def parse_xmc(
    text: bytes, *, n_threads: int = 1
) -> tuple[
    int,
    int,
    NDArray[np.int64],
    NDArray[np.int32],
    NDArray[np.float32],
    NDArray[np.int64],
    NDArray[np.int32],
]: ...
def parse_libsvm(
    text: bytes, *, first_feature: int = 0, n_features: int = -1, n_labels: int = -1, n_threads: int = 1
) -> tuple[
    int,
    int,
    NDArray[np.int64],
    NDArray[np.int32],
    NDArray[np.float32],
    NDArray[np.int64],
    NDArray[np.int32],
]: ...
def format_xmc_rows(
    feature_ptr: NDArray[np.int64],
    features: NDArray[np.int32],
    values: NDArray[np.float32],
    label_ptr: NDArray[np.int64],
    labels: NDArray[np.int32],
) -> bytes: ...

# decide
def online_f_pass(
    indptr: NDArray[np.int64],
    indices: NDArray[np.int32],
    data: NDArray[np.float32],
    true_indptr: NDArray[np.int64],
    true_labels: NDArray[np.int32],
    n_labels: int,
    a: NDArray[np.float64],
    b: NDArray[np.float64],
    bound: NDArray[np.float32] | None,
    positives: NDArray[np.int64] | None,
    n_seen: int,
) -> None: ...
def ascend_budget(
    measure: str,
    k: int,
    indptr: NDArray[np.int64],
    indices: NDArray[np.int32],
    data: NDArray[np.float32],
    order: NDArray[np.int64],
    hits: NDArray[np.float64],
    predicted: NDArray[np.float64],
    positive: NDArray[np.float64],
    n_rows: float,
    is_chosen: NDArray[np.uint8],
) -> int: ...

# trees
def breadth_first(parent: NDArray[np.int32], root: int) -> NDArray[np.int32]: ...
def node_depths(parent: NDArray[np.int32]) -> NDArray[np.int32]: ...
def subtree_minimum(parent: NDArray[np.int32], values: NDArray[np.float64]) -> NDArray[np.float64]: ...
def subtree_sum(parent: NDArray[np.int32], values: NDArray[np.int64]) -> NDArray[np.int64]: ...
def huffman_parents(frequency: NDArray[np.float64], arity: int) -> NDArray[np.int32]: ...
def label_vectors(
    x_start: NDArray[np.int64],
    x_column: NDArray[np.int32],
    x_value: NDArray[np.float32],
    n_features: int,
    label_start: NDArray[np.int64],
    label_rows: NDArray[np.int32],
    prune: float,
    n_threads: int,
) -> tuple[NDArray[np.int64], NDArray[np.int32], NDArray[np.float32]]: ...
def split_labels(
    start: NDArray[np.int64],
    column: NDArray[np.int32],
    value: NDArray[np.float32],
    n_features: int,
    order: NDArray[np.int32],
    starts: NDArray[np.int64],
    cuts: NDArray[np.int64],
    stops: NDArray[np.int64],
    eps: float,
    max_iterations: int,
    seed: int,
    n_threads: int,
) -> None: ...

# interpolated trees
def split_by_objective(
    start: NDArray[np.int64],
    column: NDArray[np.int32],
    value: NDArray[np.float32],
    n_features: int,
    order: NDArray[np.int32],
    weight: NDArray[np.float64],
    starts: NDArray[np.int64],
    stops: NDArray[np.int64],
    *,
    similarity: float,
    frequency: float,
    eps: float,
    max_iterations: int,
    seed: int,
    n_threads: int,
) -> NDArray[np.int64]: ...
def alternating_maximisation(
    start: NDArray[np.int64],
    column: NDArray[np.int32],
    value: NDArray[np.float32],
    n_features: int,
    weight: NDArray[np.float64],
    *,
    similarity: float,
    frequency: float,
    eps: float,
    max_iterations: int,
    seed: int,
    rounds: bool,
) -> tuple[NDArray[np.float32], NDArray[np.float64]]: ...
def collapse_levels(
    parent: NDArray[np.int32],
    first_child: NDArray[np.int32],
    n_children: NDArray[np.int32],
    label: NDArray[np.int32],
    n_labels: int,
    mass: NDArray[np.float64],
    arity: int,
) -> NDArray[np.uint8]: ...
def greedy_frequency(
    row_start: NDArray[np.int64],
    labels_of_rows: NDArray[np.int32],
    column_start: NDArray[np.int64],
    rows_of_labels: NDArray[np.int32],
    weight: NDArray[np.float64],
) -> NDArray[np.float64]: ...

# blocks
HISTOGRAM_LOW: float
HISTOGRAM_WIDTH: float
SOFTMAX_SLOPES: list[float]

class FeatureSettings:
    def __init__(self, n_features: int, normalize: bool, bias: float) -> None: ...
    @property
    def n_features(self) -> int: ...
    @property
    def normalize(self) -> bool: ...
    @property
    def bias(self) -> float: ...

class SolverSettings:
    def __init__(
        self, *, loss: str, C: float, positive_weight: float, max_epochs: int, eps: float, prune: float
    ) -> None: ...
    @property
    def C(self) -> float: ...
    @property
    def positive_weight(self) -> float: ...

class BlockTrainer:
    def __init__(
        self,
        x_indptr: NDArray[np.int64],
        x_indices: NDArray[np.int32],
        x_data: NDArray[np.float32],
        y_indptr: NDArray[np.int64],
        y_indices: NDArray[np.int32],
        parent: NDArray[np.int32],
        first_child: NDArray[np.int32],
        n_children: NDArray[np.int32],
        label: NDArray[np.int32],
        n_labels: int,
        sample_weight: NDArray[np.float32] | None,
        features: FeatureSettings,
        seed: int,
        n_threads: int,
    ) -> None: ...
    @property
    def total_work(self) -> float: ...
    def train(self, solver: SolverSettings, progress: Progress | None = None) -> dict[str, NDArray[Any]]: ...
    def train_hashed(
        self, solver: SolverSettings, bits: int, progress: Progress | None = None
    ) -> dict[str, NDArray[Any]]: ...
    def held_out(
        self, solvers: collections.abc.Sequence[SolverSettings], share: float, max_rows: int, one_of: bool = False
    ) -> tuple[
        list[tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]],
        NDArray[np.float64],
    ]: ...

def is_plain_row(indices: NDArray[np.int32], values: NDArray[np.float32], n_features: int) -> bool: ...

class LabelTreeModel:
    def __init__(
        self,
        blocks: dict[str, NDArray[Any]],
        parent: NDArray[np.int32],
        first_child: NDArray[np.int32],
        n_children: NDArray[np.int32],
        label: NDArray[np.int32],
        n_labels: int,
        features: FeatureSettings,
        link: NDArray[np.float32],
        link_low: float,
        link_step: float,
        one_of: bool,
    ) -> None: ...
    def search(
        self,
        indptr: NDArray[np.int64],
        indices: NDArray[np.int32],
        data: NDArray[np.float32],
        top_k: int | None,
        threshold: float,
        node_threshold: NDArray[np.float32] | None,
        beam: int,
        n_threads: int,
        bound: float = 0.0,
    ) -> tuple[NDArray[np.int64], NDArray[np.int32], NDArray[np.float32], int]: ...
    def trace(
        self,
        indptr: NDArray[np.int64],
        indices: NDArray[np.int32],
        data: NDArray[np.float32],
        top_k: int | None,
        threshold: float,
        node_threshold: NDArray[np.float32] | None,
        beam: int,
        n_threads: int,
        bound: float = 0.0,
    ) -> tuple[
        NDArray[np.int64], NDArray[np.int32], NDArray[np.float32], int, NDArray[np.int32], NDArray[np.float32]
    ]: ...
    def search_row(
        self,
        indices: NDArray[np.int32],
        values: NDArray[np.float32],
        top_k: int,
        threshold: float,
        beam: int = 0,
        bound: float = 0.0,
    ) -> tuple[NDArray[np.int32], NDArray[np.float32]]: ...
    def named(
        self,
        indptr: NDArray[np.int64],
        indices: NDArray[np.int32],
        data: NDArray[np.float32],
        label_indptr: NDArray[np.int64],
        labels: NDArray[np.int32],
        n_threads: int,
    ) -> NDArray[np.float32]: ...
    def explain(
        self, indices: NDArray[np.int32], values: NDArray[np.float32], label: int
    ) -> list[tuple[int, float, NDArray[np.int32], NDArray[np.float32]]]: ...

class MemoryTree:
    """Stored examples in the leaves of a tree whose routers and scorer learn, example by example."""

    def __init__(
        self,
        *,
        leaf_multiplier: float,
        alpha: float,
        reroutes: int,
        n_leaves: int,
        n_neighbours: int,
        learning_rate: float,
        eps: float,
        scorer_rate: float,
        normalize: bool,
        one_of: bool,
        has_label_rest: bool,
        max_examples: int,
        forget: str,
        seed: int,
    ) -> None: ...
    def learn(
        self,
        x_indptr: NDArray[np.int64],
        x_indices: NDArray[np.int32],
        x_data: NDArray[np.float32],
        y_indptr: NDArray[np.int64],
        y_indices: NDArray[np.int32],
        sample_weight: NDArray[np.float32] | None,
        order: NDArray[np.int64] | None,
        progress: Progress | None,
    ) -> None: ...
    def test_then_learn(
        self,
        x_indptr: NDArray[np.int64],
        x_indices: NDArray[np.int32],
        x_data: NDArray[np.float32],
        y_indptr: NDArray[np.int64],
        y_indices: NDArray[np.int32],
        top_k: int,
    ) -> tuple[NDArray[np.int64], NDArray[np.int32]]: ...
    def revisit(self, order: NDArray[np.int64], progress: Progress | None) -> None: ...
    def query(
        self,
        indptr: NDArray[np.int64],
        indices: NDArray[np.int32],
        data: NDArray[np.float32],
        n_labels: int,
        top_k: int | None,
        threshold: float,
        label_threshold: NDArray[np.float32] | None,
        n_threads: int,
    ) -> tuple[NDArray[np.int64], NDArray[np.int32], NDArray[np.float32], int, int]: ...
    def query_row(
        self,
        indices: NDArray[np.int32],
        values: NDArray[np.float32],
        n_labels: int,
        top_k: int | None,
        threshold: float,
    ) -> tuple[NDArray[np.int32], NDArray[np.float32]]: ...
    def named(
        self,
        indptr: NDArray[np.int64],
        indices: NDArray[np.int32],
        data: NDArray[np.float32],
        n_labels: int,
        labels: NDArray[np.int32],
        n_threads: int,
    ) -> NDArray[np.float32]: ...
    def neighbours(self, indices: NDArray[np.int32], values: NDArray[np.float32]) -> list[Any]: ...
    def route(self, indices: NDArray[np.int32], values: NDArray[np.float32], slot: int, label: int) -> list[Any]: ...
    def state(self) -> dict[str, NDArray[Any]]: ...
    def restore(self, arrays: dict[str, NDArray[Any]], n_labels: int) -> None: ...
    @property
    def n_learned(self) -> int: ...
    @property
    def n_examples(self) -> int: ...
    @property
    def n_forgotten(self) -> int: ...
    @property
    def leaf_capacity(self) -> int: ...
    @property
    def sharpness(self) -> float: ...
    @property
    def memory(self) -> int: ...

# words and n-grams
def count_words(
    text: bytes, offsets: NDArray[np.int64], by_whitespace: bool
) -> tuple[NDArray[np.uint8], NDArray[np.int64], NDArray[np.int64]]: ...
def word_hash(word: bytes) -> int: ...

class NgramReader:
    def __init__(
        self,
        words: bytes,
        offsets: NDArray[np.int64],
        *,
        by_whitespace: bool,
        word_ngrams: int,
        min_chars: int,
        max_chars: int,
        n_buckets: int,
    ) -> None: ...
    def transform(
        self, text: bytes, offsets: NDArray[np.int64], n_threads: int
    ) -> tuple[NDArray[np.int64], NDArray[np.int32], NDArray[np.float32]]: ...
    def terms(self, text: bytes) -> list[tuple[int, bytes]]: ...
    @property
    def n_columns(self) -> int: ...

# tree softmax
class SoftmaxSettings:
    def __init__(
        self, *, dim: int, epochs: int, learning_rate: float, batch: int, shuffle: bool, hogwild: bool
    ) -> None: ...

def train_softmax(
    x_indptr: NDArray[np.int64],
    x_indices: NDArray[np.int32],
    x_data: NDArray[np.float32],
    y_indptr: NDArray[np.int64],
    y_indices: NDArray[np.int32],
    parent: NDArray[np.int32],
    first_child: NDArray[np.int32],
    n_children: NDArray[np.int32],
    label: NDArray[np.int32],
    n_labels: int,
    is_plt: bool,
    sample_weight: NDArray[np.float32] | None,
    features: FeatureSettings,
    settings: SoftmaxSettings,
    seed: int,
    n_threads: int,
    progress: Progress | None = None,
) -> dict[str, NDArray[Any]]: ...

class TreeSoftmax:
    def __init__(
        self,
        arrays: dict[str, NDArray[Any]],
        parent: NDArray[np.int32],
        first_child: NDArray[np.int32],
        n_children: NDArray[np.int32],
        label: NDArray[np.int32],
        n_labels: int,
        is_plt: bool,
        features: FeatureSettings,
        dim: int,
    ) -> None: ...
    def search(
        self,
        indptr: NDArray[np.int64],
        indices: NDArray[np.int32],
        data: NDArray[np.float32],
        top_k: int | None,
        threshold: float,
        node_threshold: NDArray[np.float32] | None,
        n_threads: int,
    ) -> tuple[NDArray[np.int64], NDArray[np.int32], NDArray[np.float32], int]: ...
    def search_row(
        self, indices: NDArray[np.int32], values: NDArray[np.float32], top_k: int, threshold: float
    ) -> tuple[NDArray[np.int32], NDArray[np.float32]]: ...
    def named(
        self,
        indptr: NDArray[np.int64],
        indices: NDArray[np.int32],
        data: NDArray[np.float32],
        labels: NDArray[np.int32],
        n_threads: int,
    ) -> NDArray[np.float32]: ...
    def hidden(
        self, indptr: NDArray[np.int64], indices: NDArray[np.int32], data: NDArray[np.float32], n_threads: int
    ) -> NDArray[np.float32]: ...
    def explain(
        self, indices: NDArray[np.int32], values: NDArray[np.float32], label: int
    ) -> list[tuple[int, float, NDArray[np.int32], NDArray[np.float32]]]: ...

class OnlineLearner:
    def __init__(
        self,
        *,
        rule: str,
        learning_rate: float,
        eps: float,
        decay: float,
        l2: float,
        normalize: bool,
        bias: float,
        one_of: bool,
        buffer_entries: int,
        memory_budget: int,
        policy: str,
        alpha: float,
        fair_share: float,
        arity: int,
        pre_leaf_arity: int,
        seed: int,
    ) -> None: ...
    def adopt(
        self,
        parent: NDArray[np.int32],
        first_child: NDArray[np.int32],
        n_children: NDArray[np.int32],
        label: NDArray[np.int32],
        n_labels: int,
    ) -> None: ...
    def learn(
        self,
        x_indptr: NDArray[np.int64],
        x_indices: NDArray[np.int32],
        x_data: NDArray[np.float32],
        y_indptr: NDArray[np.int64],
        y_indices: NDArray[np.int32],
        sample_weight: NDArray[np.float32] | None,
        order: NDArray[np.int64] | None,
        n_threads: int,
        own_policy: object | None,
        progress: Progress | None,
    ) -> None: ...
    def test_then_learn(
        self,
        x_indptr: NDArray[np.int64],
        x_indices: NDArray[np.int32],
        x_data: NDArray[np.float32],
        y_indptr: NDArray[np.int64],
        y_indices: NDArray[np.int32],
        top_k: int,
        n_threads: int,
        own_policy: object | None,
    ) -> tuple[NDArray[np.int64], NDArray[np.int32]]: ...
    def apply_all(self, n_threads: int) -> None: ...
    def search(
        self,
        indptr: NDArray[np.int64],
        indices: NDArray[np.int32],
        data: NDArray[np.float32],
        top_k: int | None,
        threshold: float,
        label_threshold: NDArray[np.float32] | None,
        n_threads: int,
    ) -> tuple[NDArray[np.int64], NDArray[np.int32], NDArray[np.float32], int]: ...
    def search_row(
        self, indices: NDArray[np.int32], values: NDArray[np.float32], top_k: int, threshold: float
    ) -> tuple[NDArray[np.int32], NDArray[np.float32]]: ...
    def named(
        self,
        indptr: NDArray[np.int64],
        indices: NDArray[np.int32],
        data: NDArray[np.float32],
        label_indptr: NDArray[np.int64],
        labels: NDArray[np.int32],
        n_threads: int,
    ) -> NDArray[np.float32]: ...
    def explain(
        self, indices: NDArray[np.int32], values: NDArray[np.float32], label: int
    ) -> list[tuple[int, float, NDArray[np.int32], NDArray[np.float32]]]: ...
    def tree(self) -> tuple[NDArray[np.int32], NDArray[np.int32]]: ...
    def freeze(self, n_features: int, prune: float, n_threads: int) -> dict[str, NDArray[Any]]: ...
    def state(self, n_threads: int) -> dict[str, NDArray[Any]]: ...
    def restore(self, arrays: dict[str, NDArray[Any]], n_labels: int) -> None: ...
    def first_without_leaf(self, labels: NDArray[np.int32]) -> int: ...
    def children(self, node: int) -> list[int]: ...
    def is_leaf(self, node: int) -> bool: ...
    def n_leaves(self, node: int) -> int: ...
    def probabilities(self, node: int, indices: NDArray[np.int32], values: NDArray[np.float32]) -> list[float]: ...
    @property
    def n_examples(self) -> int: ...
    @property
    def n_updates(self) -> int: ...
    @property
    def n_evicted_rows(self) -> int: ...
    @property
    def memory(self) -> int: ...
    @property
    def has_labels(self) -> bool: ...

# fastxml
class ForestSettings:
    def __init__(
        self,
        *,
        n_trees: int,
        max_leaf: float,
        labels_per_leaf: int,
        max_iterations: int,
        C: float,
        eps: float,
        max_newton: int,
    ) -> None: ...

def grow_forest(
    x_indptr: NDArray[np.int64],
    x_indices: NDArray[np.int32],
    x_data: NDArray[np.float32],
    y_indptr: NDArray[np.int64],
    y_indices: NDArray[np.int32],
    n_labels: int,
    label_gain: NDArray[np.float32] | None,
    sample_weight: NDArray[np.float32] | None,
    features: FeatureSettings,
    settings: ForestSettings,
    seed: int,
    n_threads: int,
    progress: Progress | None = None,
) -> dict[str, NDArray[Any]]: ...
def l1_logistic(
    indptr: NDArray[np.int64],
    indices: NDArray[np.int32],
    data: NDArray[np.float32],
    n_features: int,
    is_positive: NDArray[np.int8],
    cost: NDArray[np.float32],
    eps: float,
    max_newton: int,
    seed: int,
) -> NDArray[np.float64]: ...
def split_by_ranking(
    y_indptr: NDArray[np.int64],
    y_indices: NDArray[np.int32],
    n_labels: int,
    label_gain: NDArray[np.float32] | None,
    sample_weight: NDArray[np.float32] | None,
    start: NDArray[np.int8],
    max_iterations: int,
) -> tuple[NDArray[np.int8], NDArray[np.float64]]: ...

class InstanceForest:
    def __init__(self, arrays: dict[str, NDArray[Any]], n_labels: int, features: FeatureSettings) -> None: ...
    def predict(
        self,
        indptr: NDArray[np.int64],
        indices: NDArray[np.int32],
        data: NDArray[np.float32],
        top_k: int | None,
        threshold: float,
        label_threshold: NDArray[np.float32] | None,
        n_threads: int,
    ) -> tuple[NDArray[np.int64], NDArray[np.int32], NDArray[np.float32], int]: ...
    def predict_row(
        self, indices: NDArray[np.int32], values: NDArray[np.float32], top_k: int, threshold: float
    ) -> tuple[NDArray[np.int32], NDArray[np.float32]]: ...
    def named(
        self,
        indptr: NDArray[np.int64],
        indices: NDArray[np.int32],
        data: NDArray[np.float32],
        labels: NDArray[np.int32],
        n_threads: int,
    ) -> NDArray[np.float32]: ...
    def leaves(
        self, indptr: NDArray[np.int64], indices: NDArray[np.int32], data: NDArray[np.float32], n_threads: int
    ) -> NDArray[np.int32]: ...
    def route(
        self, indices: NDArray[np.int32], values: NDArray[np.float32], tree: int
    ) -> list[tuple[int, float, NDArray[np.int32], NDArray[np.float32]]]: ...

# spectral
class CandidateTreeSettings:
    def __init__(
        self,
        *,
        max_depth: int,
        n_candidates: int,
        recall: float,
        noise: float,
        deviation: str,
        min_path: float,
        prune: float,
        keeps_inner: bool,
        solver: str,
        max_iterations: int,
        tolerance: float,
        cg_iterations: int,
    ) -> None: ...

def grow_candidate_tree(
    x_indptr: NDArray[np.int64],
    x_indices: NDArray[np.int32],
    x_data: NDArray[np.float32],
    y_indptr: NDArray[np.int64],
    y_indices: NDArray[np.int32],
    n_labels: int,
    head: NDArray[np.int32],
    sample_weight: NDArray[np.float32] | None,
    features: FeatureSettings,
    space: NDArray[np.float32],
    settings: CandidateTreeSettings,
    seed: int,
    n_threads: int,
    progress: Progress | None = None,
) -> dict[str, NDArray[Any]]: ...
def split_direction(
    x_indptr: NDArray[np.int64],
    x_indices: NDArray[np.int32],
    x_data: NDArray[np.float32],
    y_indptr: NDArray[np.int64],
    y_indices: NDArray[np.int32],
    n_features: int,
    n_labels: int,
    importance: NDArray[np.float64],
    solver: str,
    max_iterations: int,
    tolerance: float,
    cg_iterations: int,
    seed: int,
    n_threads: int,
) -> tuple[NDArray[np.float32], float]: ...
def least_squares_labels(
    y_indptr: NDArray[np.int64],
    y_indices: NDArray[np.int32],
    n_labels: int,
    importance: NDArray[np.float64],
    target: NDArray[np.float32],
    cg_iterations: int,
) -> NDArray[np.float32]: ...
def weighted_median(values: NDArray[np.float64], importance: NDArray[np.float64]) -> float: ...
def train_against_groups(
    base: dict[str, NDArray[np.float32]],
    x_indptr: NDArray[np.int64],
    x_indices: NDArray[np.int32],
    x_data: NDArray[np.float32],
    y_indptr: NDArray[np.int64],
    y_indices: NDArray[np.int32],
    sample_weight: NDArray[np.float32] | None,
    features: FeatureSettings,
    *,
    is_multiclass: bool,
    n_labels: int,
    rank: int,
    learning_rate: float,
    eps: float,
    group_size: int,
    passes: int,
    is_shuffled: bool,
    seed: int,
    n_threads: int,
    progress: Progress | None = None,
) -> None: ...

class SpectralModel:
    def __init__(
        self,
        tree: dict[str, NDArray[Any]],
        base: dict[str, NDArray[Any]],
        n_labels: int,
        n_candidates: int,
        features: FeatureSettings,
        is_multiclass: bool,
        weights: str,
        rank: int,
        has_slot_weights: bool,
    ) -> None: ...
    def predict(
        self,
        indptr: NDArray[np.int64],
        indices: NDArray[np.int32],
        data: NDArray[np.float32],
        top_k: int | None,
        threshold: float,
        label_threshold: NDArray[np.float32] | None,
        ways: int,
        n_threads: int,
    ) -> tuple[NDArray[np.int64], NDArray[np.int32], NDArray[np.float32], int]: ...
    def predict_row(
        self, indices: NDArray[np.int32], values: NDArray[np.float32], top_k: int, threshold: float, ways: int
    ) -> tuple[NDArray[np.int32], NDArray[np.float32]]: ...
    def named(
        self,
        indptr: NDArray[np.int64],
        indices: NDArray[np.int32],
        data: NDArray[np.float32],
        labels: NDArray[np.int32],
        ways: int,
        n_threads: int,
    ) -> NDArray[np.float32]: ...
    def candidates(
        self,
        indptr: NDArray[np.int64],
        indices: NDArray[np.int32],
        data: NDArray[np.float32],
        ways: int,
        n_threads: int,
    ) -> tuple[NDArray[np.int64], NDArray[np.int32], NDArray[np.float32], int]: ...
    def leaves(
        self,
        indptr: NDArray[np.int64],
        indices: NDArray[np.int32],
        data: NDArray[np.float32],
        seed: int | None,
        n_threads: int,
    ) -> NDArray[np.int32]: ...
    def fractions(
        self,
        indptr: NDArray[np.int64],
        indices: NDArray[np.int32],
        data: NDArray[np.float32],
        min_path: float,
        n_threads: int,
    ) -> tuple[NDArray[np.int64], NDArray[np.int32], NDArray[np.float32]]: ...
    def route(
        self, indices: NDArray[np.int32], values: NDArray[np.float32]
    ) -> list[tuple[int, float, NDArray[np.int32], NDArray[np.float32]]]: ...
    def candidate_parts(
        self, indices: NDArray[np.int32], values: NDArray[np.float32], label: int, ways: int
    ) -> tuple[NDArray[np.int32], NDArray[np.float32]] | None: ...
    def train(
        self,
        base: dict[str, NDArray[np.float32]],
        x_indptr: NDArray[np.int64],
        x_indices: NDArray[np.int32],
        x_data: NDArray[np.float32],
        y_indptr: NDArray[np.int64],
        y_indices: NDArray[np.int32],
        sample_weight: NDArray[np.float32] | None,
        *,
        learning_rate: float,
        eps: float,
        has_slot_bias: bool,
        passes: int,
        is_shuffled: bool,
        is_sampled: bool,
        decays: bool,
        seed: int,
        n_threads: int,
        progress: Progress | None = None,
    ) -> None: ...

class RegressorSettings:
    def __init__(
        self, *, is_logistic: bool, is_adaptive: bool, learning_rate: float, eps: float, normalize: bool, bias: float
    ) -> None: ...

class LomTree:
    def __init__(
        self,
        *,
        regressor: RegressorSettings,
        max_nodes: int,
        nodes_per_class: float,
        swap_resistance: float,
        forgetting: float,
    ) -> None: ...
    def learn(
        self,
        indptr: NDArray[np.int64],
        indices: NDArray[np.int32],
        data: NDArray[np.float32],
        labels: NDArray[np.int32],
        sample_weight: NDArray[np.float32] | None = None,
        order: NDArray[np.int64] | None = None,
        progress: Progress | None = None,
    ) -> None: ...
    def test_then_learn(
        self,
        indptr: NDArray[np.int64],
        indices: NDArray[np.int32],
        data: NDArray[np.float32],
        labels: NDArray[np.int32],
        top_k: int,
    ) -> tuple[NDArray[np.int64], NDArray[np.int32]]: ...
    def predict(
        self,
        indptr: NDArray[np.int64],
        indices: NDArray[np.int32],
        data: NDArray[np.float32],
        n_labels: int,
        top_k: int | None,
        threshold: float,
        label_threshold: NDArray[np.float32] | None,
        n_threads: int,
    ) -> tuple[NDArray[np.int64], NDArray[np.int32], NDArray[np.float32]]: ...
    def predict_row(
        self,
        indices: NDArray[np.int32],
        values: NDArray[np.float32],
        n_labels: int,
        top_k: int,
        threshold: float,
    ) -> tuple[NDArray[np.int32], NDArray[np.float32]]: ...
    def named(
        self,
        indptr: NDArray[np.int64],
        indices: NDArray[np.int32],
        data: NDArray[np.float32],
        labels: NDArray[np.int32],
        n_threads: int,
    ) -> NDArray[np.float32]: ...
    def leaves(
        self, indptr: NDArray[np.int64], indices: NDArray[np.int32], data: NDArray[np.float32], n_threads: int
    ) -> NDArray[np.int32]: ...
    def route(
        self, indices: NDArray[np.int32], values: NDArray[np.float32], label: int
    ) -> list[tuple[int, float, float, float, NDArray[np.int32], NDArray[np.float32]]]: ...
    def state(self) -> dict[str, NDArray[Any]]: ...
    def restore(self, arrays: dict[str, NDArray[Any]], n_labels: int) -> None: ...
    @property
    def n_examples(self) -> int: ...
    @property
    def n_swaps(self) -> int: ...
    @property
    def n_inner(self) -> int: ...
    @property
    def memory(self) -> int: ...

class FilterTree:
    def __init__(self, regressor: RegressorSettings, order: NDArray[np.int32]) -> None: ...
    def learn(
        self,
        indptr: NDArray[np.int64],
        indices: NDArray[np.int32],
        data: NDArray[np.float32],
        labels: NDArray[np.int32],
        sample_weight: NDArray[np.float32] | None,
        order: NDArray[np.int64] | None,
        progress: Progress | None,
    ) -> float: ...
    def winners(
        self, indptr: NDArray[np.int64], indices: NDArray[np.int32], data: NDArray[np.float32], n_threads: int
    ) -> NDArray[np.int32]: ...
    def state(self) -> dict[str, NDArray[Any]]: ...
    def restore(self, arrays: dict[str, NDArray[Any]]) -> None: ...
