"""XMC files in chunks: the same rows and the same complaints as in one piece."""

from __future__ import annotations

import gzip

import pytest
from scipy.sparse import vstack

from ramify.data import DataError, load_xmc, save_xmc
from ramify.data.libsvm import save_libsvm
from ramify.data.load import load_data
from ramify.data.streaming import iter_xmc
from ramify.data.synthetic import make_multilabel


@pytest.mark.parametrize("rows_at_once", [1, 7, 49, 50, 1000])
@pytest.mark.parametrize("name", ["data.txt", "data.txt.gz"])
def test_chunks_put_together_are_the_file(tmp_path, rows_at_once, name):
    data = make_multilabel(50, 20, 60, empty_share=0.2, random_state=0)
    save_xmc(tmp_path / name, data.X, data.Y)
    chunks = list(iter_xmc(tmp_path / name, rows_at_once))
    assert [chunk.n_rows for chunk in chunks][:-1] == [rows_at_once] * (len(chunks) - 1)
    assert (vstack([chunk.X for chunk in chunks]) != data.X).nnz == 0
    assert (vstack([chunk.Y for chunk in chunks]) != data.Y).nnz == 0


@pytest.mark.parametrize(
    "content",
    [
        "4 3 2\n0 0:1\n1 1:1\n0 2:1\n1 1:x\n",
        "4 3 2\n0 0:1\n1 1:1\n0 2:1\n5 1:1\n",
        "4 3 2\n0 0:1\n1 1:1\n0 2:1\n1 3:1\n",
        "4 3 2\n0 0:1\n1 1:1\n0 2:1\n0 0:1\n1 1:1\n",
        "4 3\n0 0:1\n",
        "a b c\n0 0:1\n",
        "",
    ],
)
def test_mistakes_are_told_with_the_place_that_reading_in_one_piece_tells(tmp_path, content):
    path = tmp_path / "bad.txt"
    path.write_text(content)
    with pytest.raises(DataError) as whole:
        load_xmc(path)
    with pytest.raises(DataError) as chunked:
        list(iter_xmc(path, 2))
    places = [(error.value.message, error.value.line, error.value.column or 1) for error in (whole, chunked)]
    assert places[0] == places[1]


def test_a_file_that_ends_too_early_is_refused_at_its_end(tmp_path):
    path = tmp_path / "short.txt.gz"
    path.write_bytes(gzip.compress(b"5 3 2\n0 0:1\n1 1:1\n0 2:1\n"))
    rows = iter_xmc(path, 2)
    assert next(rows).n_rows == 2
    assert next(rows).n_rows == 1
    with pytest.raises(DataError, match="ends after 3 rows, but the header announces 5"):
        next(rows)


def test_blank_lines_are_rows_within_and_nothing_at_the_end(tmp_path):
    path = tmp_path / "blank.txt"
    path.write_text("3 3 2\n0 0:1\n\n1 1:1\n\n\n")
    assert [chunk.n_rows for chunk in iter_xmc(path, 2)] == [2, 1]


def test_libsvm_files_are_read_back_as_written(tmp_path):
    data = make_multilabel(50, 20, 60, random_state=0)
    save_libsvm(tmp_path / "data.svm", data.X, data.Y)
    again = load_data(tmp_path / "data.svm", n_features=60, n_labels=20)
    assert (again.X != data.X).nnz == 0
    assert (again.Y != data.Y).nnz == 0


def test_a_row_that_libsvm_cannot_say_is_refused(tmp_path):
    with pytest.raises(DataError, match="row 1 has neither labels nor features"):
        save_libsvm(tmp_path / "data.svm", [[1.0], [0.0]], [[1], [0]])
    assert not list(tmp_path.iterdir())
