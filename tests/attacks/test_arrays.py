"""Damaged arrays with right checksums: a model is rejected when it is loaded, or it answers within its bounds."""

from __future__ import annotations

import functools

import numpy as np
import pytest

from attacks.driver import attack, n_inputs, report
from attacks.test_manifests import MODELS, TEXTS, UnusableError, saved
from model_files import alone_in_memory, load_from_memory
from ramify.files.directory import ModelFileError, read_model

INTEGERS = [-(2**63), -(2**31), -2, -1, 0, 1, 2, 127, 255, 65535, 2**30, 2**31 - 1, 2**31, 2**40, 2**63 - 1]
FLOATS = [float("nan"), float("inf"), float("-inf"), 0.0, -0.0, -1.0, 1e-45, 1.5, 65504.0, 1e30, 3e38, -3e38]
DTYPES = ["u1", "i4", "i8", "f4", "f8", "u8"]


def _values(array, generator):
    """Some elements become extreme ones, or those of other places."""
    changed = array.copy()
    flat = changed.reshape(-1)
    for _ in range(generator.choice([1, 1, 2, 8])):
        if not len(flat):
            return changed
        place = generator.randrange(len(flat))
        if generator.random() < 0.3:
            flat[place] = flat[generator.randrange(len(flat))]
        elif array.dtype.kind == "f":
            with np.errstate(all="ignore"):
                flat[place] = generator.choice(FLOATS)
        else:
            value = np.array([generator.choice(INTEGERS)], dtype=np.int64)
            flat[place] = value.astype(array.dtype)[0]
    return changed


def _bits(array, generator):
    content = bytearray(array.tobytes())
    if content:
        content[generator.randrange(len(content))] ^= 1 << generator.randrange(8)
    return np.frombuffer(bytes(content), dtype=array.dtype).reshape(array.shape)


def _length(array, generator):
    if not array.ndim or not len(array):
        return array
    length = generator.choice([0, 1, len(array) - 1, generator.randint(0, len(array))])
    return array[:length] if generator.random() < 0.5 else np.concatenate([array, array[:length]])


def _shape(array, generator):
    return generator.choice([array.reshape(-1), array[None], array.reshape(-1)[::-1], array.T])


def _dtype(array, generator):
    with np.errstate(all="ignore"):
        return array.astype(generator.choice(DTYPES))


def _order(array, generator):
    order = list(range(len(array))) if array.ndim else []
    generator.shuffle(order)
    return array[order] if order else array


CHANGES = (_values, _values, _values, _values, _bits, _bits, _length, _shape, _dtype, _order)


def ask(clf):
    """Query a model whose numbers may be wrong: what it answers must still be labels and probabilities."""
    with np.errstate(all="ignore"):
        for P in (clf.predict_proba(TEXTS[:4], top_k=2), clf.predict_proba(TEXTS[:4], threshold=0.01)):
            if P.nnz and (P.indices.min() < 0 or P.indices.max() >= P.shape[1]):
                raise UnusableError("columns beyond the labels")
            if not (np.isfinite(P.data).all() and (P.data >= 0).all() and (P.data <= 1 + 1e-5).all()):
                raise UnusableError(f"probabilities {P.data}")
        clf.predict_labels(TEXTS[:3])
        clf.predict(TEXTS[:3])
        if hasattr(clf, "partial_fit"):
            known = clf.classes_.tolist()  # names may have changed
            clf.partial_fit(TEXTS[:3], known[:3] if clf.is_multiclass_ else [known[:1], known[1:3], []])
            clf.predict_one(TEXTS[0])


@functools.cache
def arrays_of(name):
    return {key: alone_in_memory(array) for key, array in read_model(saved(name)[0])[1].items()}


def attack_arrays(count, seed, name):
    """Change one array of a model, keep the checksums right, load the model, and query it if it loads."""
    arrays, manifest = arrays_of(name), saved(name)[1]
    names = sorted(arrays)

    def one_input(generator):
        chosen = generator.choice(names)
        array = generator.choice(CHANGES)(arrays[chosen], generator)
        changed = {key: value for key, value in arrays.items() if key != chosen}
        if generator.random() > 0.02:  # else it is missing
            changed[chosen] = array
        clf = load_from_memory(manifest, changed)
        try:
            ask(clf)
        except ValueError as error:
            # Names and sums are read when they are needed, and may be found equal or overflow only there.
            is_late = "damaged" in str(error) or "finite" in str(error) or "labels.classes" in chosen
            if not is_late:
                raise UnusableError(f"{chosen}: {type(error).__name__}: {error}") from error
            return "rejected when it was asked"
        except Exception as error:
            raise UnusableError(f"{chosen}: {type(error).__name__}: {error}") from error
        return "ok"

    return attack(one_input, count, seed, (ModelFileError,))


@pytest.mark.parametrize("name", MODELS)
def test_a_model_with_changed_arrays_is_rejected_or_answers(name):
    outcomes = attack_arrays(n_inputs(100), 5, name)
    report(f"arrays of {name}", outcomes)
    assert outcomes["ModelFileError"]


@pytest.mark.parametrize(
    ("name", "array", "place", "value", "message"),
    [
        ("lomtree", "model.arrays.totals", 1, 2**63 - 1, "totals"),  # learning would count beyond it
        ("lomtree", "model.arrays.n_recycled", 0, 2**31 - 1, "counts"),
        ("lomtree", "model.arrays.class_reached", 0, 1e6, "sum over the classes"),  # more than reached the node
        ("lomtree", "model.arrays.reached", 0, 1.0, "sum over the classes"),
        ("plt", "fitted.schema.vectorizer.1.idf", 3, np.nan, "idf values must be finite"),
        ("plt", "fitted.schema.vectorizer.1.idf", 0, np.inf, "idf values must be finite"),
        ("online_plt", "fitted.schema.vectorizer.1.idf", 3, 1e300, "idf values must be finite"),
        ("mixture of a stream", "model.arrays.target", 0, 3e38, "target between 0 and"),
        ("mixture of a stream", "model.arrays.target", 1, -1.0, "target between 0 and"),
        ("mixture of a stream", "model.arrays.gram", 0, -1.0, "gram of at least 0"),
        ("spectral", "model.arrays.tree/mass", 0, 0.0, "mass"),
        ("spectral", "model.arrays.tree/mass", 0, np.nan, "mass"),
        ("spectral", "model.arrays.tree/mass", 0, -1.0, "mass"),
    ],
)
def test_numbers_that_no_model_has_are_rejected(name, array, place, value, message):
    changed = arrays_of(name)[array].copy()
    changed.reshape(-1)[place] = value
    with pytest.raises(ModelFileError, match=message):
        load_from_memory(saved(name)[1], {**arrays_of(name), array: changed})


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf, 3e38])
@pytest.mark.parametrize("array", ["value", "weight", "frequency"])
def test_nearest_rows_that_are_not_finite_are_rejected_or_answered(array, value):
    """The coarse index cast what it was told to integers: NaN has none."""
    name = f"model.arrays.{array}"
    changed = arrays_of("nearest_rows")[name].copy()
    changed[:2] = value
    try:
        clf = load_from_memory(saved("nearest_rows")[1], {**arrays_of("nearest_rows"), name: changed})
    except ModelFileError:
        return
    ask(clf)
