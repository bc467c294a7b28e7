"""Arrays of a model, damaged in every way that a file may bring."""

from __future__ import annotations

import numpy as np
from hypothesis import strategies as st

ODD_NUMBERS = [0, 1, -1, 2, 7, 255, 256, 2**31 - 1, -(2**31), 2**32 - 1, 2**62, -(2**62), 2**63 - 1, -(2**63)]


@st.composite
def damages(draw, names):
    """A function that damages an array: some of its values, its length, type, shape or order in memory."""
    name = draw(st.sampled_from(names))
    kind = draw(
        st.sampled_from(["value", "value", "value", "values", "shorter", "longer", "empty", "type", "shape", "strided"])
    )
    seed = draw(st.integers(0, 2**32 - 1))
    odd = draw(st.sampled_from(ODD_NUMBERS))

    def damage(array):
        rng = np.random.default_rng(seed)
        array = np.array(array)
        flat = array.reshape(-1)
        if kind in ("value", "values") and len(flat):
            for _ in range(1 if kind == "value" else 5):
                place = rng.integers(len(flat))
                if array.dtype.kind not in "iu":
                    flat[place] = rng.choice([np.nan, np.inf, -np.inf, 3e38, -3e38, 1e-45, 0.0])
                elif rng.random() < 0.5:
                    with np.errstate(over="ignore"):
                        flat[place] += array.dtype.type(rng.choice([1, 2]))  # off by a little is the harder case
                else:
                    limits = np.iinfo(array.dtype)
                    flat[place] = min(max(odd, limits.min), limits.max)
        elif kind == "shorter":
            array = array[: int(rng.integers(0, len(array) + 1))]
        elif kind == "longer":
            array = np.concatenate([array, array[: int(rng.integers(0, len(array) + 1))]])
        elif kind == "empty":
            array = array[:0]
        elif kind == "type":
            with np.errstate(invalid="ignore"):
                array = array.astype(rng.choice([np.float64, np.int16, np.uint64, np.complex128, np.bool_]))
        elif kind == "shape":
            array = array[None]
        elif kind == "strided":
            array = np.repeat(array, 2, axis=-1)[..., ::2]
        return array

    return name, damage
