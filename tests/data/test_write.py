"""Written files are read back bit for bit; damaged npz files are rejected."""

from __future__ import annotations

import io
import zipfile

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.sparse import csr_array
from scipy.sparse import save_npz as scipy_save_npz

from ramify import _core
from ramify.data import DataError, load_data, load_npz, load_xmc, save_npz, save_xmc
from ramify.data.synthetic import make_multilabel
from ramify.data.xmc import save_libsvm


@st.composite
def datasets(draw):
    n, d, m = draw(st.integers(0, 8)), draw(st.integers(1, 6)), draw(st.integers(1, 5))
    value = st.floats(width=32, allow_nan=False, allow_infinity=False)
    rows = [draw(st.dictionaries(st.integers(0, d - 1), value)) for _ in range(n)]
    labels = [draw(st.sets(st.integers(0, m - 1))) for _ in range(n)]

    def csr(entries, width):
        indices = np.array([i for row in entries for i in sorted(row)], dtype=np.int32)
        values = np.array([row[i] for row in entries for i in sorted(row)], dtype=np.float32)
        indptr = np.cumsum([0, *map(len, entries)], dtype=np.int32)
        return csr_array((values, indices, indptr), shape=(n, width))

    return csr(rows, d), csr([dict.fromkeys(row, 1.0) for row in labels], m)


def assert_same(a, b):
    assert a.shape == b.shape
    assert np.array_equal(a.indptr, b.indptr)
    assert np.array_equal(a.indices, b.indices)
    assert a.data.tobytes() == b.data.tobytes()
    assert a.indices.dtype == b.indices.dtype


@pytest.fixture
def tiny():
    return csr_array(np.array([[0.5, 0, 0.1], [0, 0, 2]], np.float32)), csr_array(
        np.array([[1, 0], [1, 1]], np.float32)
    )


@given(datasets(), st.sampled_from(["a.txt", "a.txt.gz", "a.npz"]))
def test_written_files_are_read_back_bit_for_bit(tmp_path_factory, data, name):
    path = tmp_path_factory.mktemp("written") / name
    save, load = (save_npz, load_npz) if name.endswith("npz") else (save_xmc, load_xmc)
    save(path, *data)
    again = load(path)
    assert_same(again.X, data[0])
    assert_same(again.Y, data[1])


def test_many_rows_are_written_in_several_chunks(tmp_path):
    rng = np.random.default_rng(1)
    X, Y = (csr_array(rng.random((40_000, 3)) * (rng.random((40_000, 3)) < 0.4), dtype=np.float32) for _ in range(2))
    Y.data[:] = 1
    save_xmc(tmp_path / "a.txt", X, Y)
    again = load_xmc(tmp_path / "a.txt", n_jobs=2)
    assert_same(again.X, X)
    assert_same(again.Y, Y)


def test_libsvm_files_are_read_back(tmp_path):
    data = make_multilabel(50, 20, 60, random_state=0)
    save_libsvm(tmp_path / "data.svm", data.X, data.Y)
    again = load_data(tmp_path / "data.svm", n_features=60, n_labels=20)
    assert (again.X != data.X).nnz == 0
    assert (again.Y != data.Y).nnz == 0


def test_an_empty_row_cannot_be_written_as_libsvm(tmp_path):
    with pytest.raises(DataError, match="row 1 has neither labels nor features"):
        save_libsvm(tmp_path / "data.svm", [[1.0], [0.0]], [[1], [0]])
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("save", [save_xmc, save_libsvm, save_npz])
@pytest.mark.parametrize(
    ("X", "Y", "message"),
    [
        ([[np.nan]], [[1]], "X must be finite"),
        ([[1e300]], [[1]], "X must be finite and fit 32-bit floats, but row 0, column 0 is inf"),
        ([[1.0]], [[2]], "Y must contain only 0 and 1, got 2"),
        ([[1.0]], [[np.nan]], "Y must contain only 0 and 1, got nan"),
        ([[1.0]], [[1], [1]], "X has 1 rows, but Y has 2; the numbers must be equal"),
        ([1.0], [[1]], "X must have two dimensions, got 1"),
        ([["a"]], [[1]], "X must contain numbers"),
    ],
)
def test_bad_data_is_rejected_before_writing(tmp_path, save, X, Y, message):
    with pytest.raises(ValueError, match=message):
        save(tmp_path / "a", X, Y)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("feature_ptr", "features", "label_ptr", "message"),
    [
        ([0, 2], [0], [0, 0], "feature_ptr must not decrease"),
        ([0, -1], [0], [0, 0], "feature_ptr must not decrease"),
        ([0, 1, 0], [0], [0, 0, 0], "feature_ptr must not decrease"),
        ([0, 1], [0], [0, 1], "label_ptr must not decrease"),
        ([0, 1], [0], [0], "same length"),
        ([], [0], [], "feature_ptr must not decrease"),
        ([0, 0], [], [0, 0], "same length"),
    ],
)
def test_the_core_rejects_pointers_outside_the_arrays(feature_ptr, features, label_ptr, message):
    with pytest.raises(ValueError, match=message):
        _core.format_xmc_rows(
            np.array(feature_ptr, np.int64),
            np.array(features, np.int32),
            np.ones(1, np.float32),
            np.array(label_ptr, np.int64),
            np.array([], np.int32),
        )


def test_the_longest_entries_fit(tmp_path):
    numbers = _core.format_xmc_rows(
        np.array([0, 3], np.int64),
        np.full(3, -(2**31), np.int32),
        np.full(3, -1.1754944e-38, np.float32),
        np.array([0, 2], np.int64),
        np.full(2, -(2**31), np.int32),
    )
    assert numbers == b"-2147483648,-2147483648" + b" -2147483648:-1.1754944e-38" * 3 + b"\n"


def test_writing_does_not_modify_the_given_arrays(tmp_path):
    X = csr_array((np.array([1.0, 2.0, 3.0]), np.array([1, 0, 1]), np.array([0, 3])), shape=(1, 2))
    save_xmc(tmp_path / "a.txt", X, [[1]])
    assert X.indices.tolist() == [1, 0, 1]
    assert (tmp_path / "a.txt").read_text() == "1 2 1\n0 0:2 1:4\n"


def test_npz_files_store_names_and_texts(tmp_path, tiny):
    names = {"label_names": ["a, b", "ü"], "feature_names": ["x", "", "z"], "texts": ["eins", "zwei\nzeilen"]}
    save_npz(tmp_path / "a.npz", *tiny, **names)
    data = load_npz(tmp_path / "a.npz")
    assert {name: getattr(data, name) for name in names} == names
    data.X.data *= 2  # the arrays are writable


def test_a_wrong_number_of_names_is_rejected(tmp_path, tiny):
    with pytest.raises(ValueError, match="label_names must have 2 entries, one per column of Y, got 1"):
        save_npz(tmp_path / "a.npz", *tiny, label_names=["a"])


# Damaged and foreign npz files


@pytest.fixture
def arrays(tmp_path, tiny):
    save_npz(tmp_path / "good.npz", *tiny, label_names=["a", "b"])
    with np.load(tmp_path / "good.npz") as file:
        return dict(file)


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("ramify_dataset", np.array([2]), "unknown format version"),
        ("shape", np.array([2, 3]), "shape"),
        ("shape", np.array([2, 3, -1]), "shape"),
        ("shape", np.array([2, 2, 2]), "x_indices must be between 0 and 1"),
        ("shape", np.array([3, 3, 2]), "x_indptr must have 4 entries that increase"),
        ("x_indptr", np.array([0, 9, 3]), "x_indptr must have 3 entries that increase"),
        ("x_indptr", np.array([0, 2, 4]), "x_indptr must have 3 entries that increase from 0 to 3"),
        ("x_indptr", np.array([0.0, 2, 3]), "x_indptr must be int64, got float64"),
        ("x_indices", np.array([0, -1, 2], np.int32), "x_indices must be between 0 and 2"),
        ("x_indices", np.array([2, 0, 2], np.int32), "x_indices must be sorted"),
        ("x_indices", np.array([2, 2, 2], np.int32), "x_indices must be sorted and unique"),
        ("x_values", np.array([1, np.nan, 1], np.float32), "finite"),
        ("x_values", np.array([1, 1], np.float32), "2 values for 3 indices"),
        ("x_values", np.ones((3, 1), np.float32), "one dimension"),
        ("x_values", np.array([None] * 3), "plain array"),
        ("y_indices", np.array([0, 0, 5], np.int32), "y_indices must be between"),
        ("y_indices", None, "y_indices is missing"),
        ("label_names_offsets", None, "label_names_offsets"),
        ("label_names_offsets", np.array([0, 1, 9]), "offsets"),
        ("label_names_bytes", np.array([255, 254], np.uint8), "utf-8"),
        ("ramify_dataset", None, "not a ramify data set"),
    ],
)
def test_inconsistent_npz_files_are_rejected(tmp_path, arrays, name, value, message):
    del arrays[name]
    if value is not None:
        arrays[name] = value
    np.savez(tmp_path / "bad.npz", **arrays)
    with pytest.raises(DataError, match=message) as caught:
        load_npz(tmp_path / "bad.npz")
    assert caught.value.path == str(tmp_path / "bad.npz")


def test_a_truncated_npz_is_rejected(tmp_path, arrays):
    content = (tmp_path / "good.npz").read_bytes()
    for n in range(0, len(content), 37):
        (tmp_path / "bad.npz").write_bytes(content[:n])
        with pytest.raises(DataError):
            load_npz(tmp_path / "bad.npz")


def test_an_npz_with_a_changed_byte_is_rejected_or_equal(tmp_path, arrays, tiny):
    content = (tmp_path / "good.npz").read_bytes()
    for place in range(0, len(content), 5):
        changed = bytearray(content)
        changed[place] ^= 0x55
        (tmp_path / "bad.npz").write_bytes(changed)
        try:
            data = load_npz(tmp_path / "bad.npz")
        except DataError:
            continue
        assert_same(data.X, tiny[0])  # the byte does not matter: a date, a flag


def test_an_array_that_declares_too_many_bytes_is_rejected_before_allocation(tmp_path, arrays):
    header = io.BytesIO()
    np.lib.format.write_array_header_1_0(header, {"descr": "<f4", "fortran_order": False, "shape": (2**60,)})
    with zipfile.ZipFile(tmp_path / "bad.npz", "w") as archive:
        for name, value in arrays.items():
            buffer = io.BytesIO()
            np.lib.format.write_array(buffer, value)
            archive.writestr(f"{name}.npy", header.getvalue() if name == "x_values" else buffer.getvalue())
    with pytest.raises(DataError, match="declares 4611686018427387904 bytes"):
        load_npz(tmp_path / "bad.npz")


def test_foreign_files_are_rejected(tmp_path, tiny):
    scipy_save_npz(tmp_path / "scipy.npz", tiny[0])
    with pytest.raises(DataError, match=r"not a ramify data set \(it has .*\)\nhint: write the file again"):
        load_npz(tmp_path / "scipy.npz")
    (tmp_path / "text.npz").write_text("1 2 3\n")
    with pytest.raises(DataError, match="not an npz file"):
        load_npz(tmp_path / "text.npz")
