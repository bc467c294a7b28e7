import numpy as np
from numpy.typing import NDArray

class Progress:
    def __init__(self) -> None: ...
    @property
    def done(self) -> int: ...
    @property
    def total(self) -> int: ...

def instruction_set() -> str: ...

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
