"""The fastText format: labels among the words."""

from __future__ import annotations

import gzip

import pytest

from ramify.data import DataError, iter_fasttext, load_data, load_fasttext
from ramify.data.load import find_format

LINES = "__label__sauce __label__a,b how much\tstarch?\n\nno label here\n__label__ü eggs __label__sauce\r\n"
EXPECTED = (["how much starch?", "no label here", "eggs"], [["sauce", "a,b"], [], ["ü", "sauce"]])


@pytest.mark.parametrize("name", ["a.txt", "a.txt.gz", "a"])
def test_labels_are_taken_from_anywhere_in_a_line(tmp_path, name):
    content = LINES.encode()
    (tmp_path / name).write_bytes(gzip.compress(content) if name.endswith("gz") else content)
    assert load_fasttext(tmp_path / name) == EXPECTED
    assert find_format(tmp_path / name) == "fasttext"
    assert next(iter_fasttext(tmp_path / name)).labels == ["sauce", "a,b"]


def test_load_data_vectorises_the_texts(tmp_path):
    (tmp_path / "a.txt").write_text("\ufeff" + LINES)
    data = load_data(tmp_path / "a.txt")
    assert data.texts == EXPECTED[0]
    assert data.label_names == ["sauce", "a,b", "ü"]
    assert data.Y.toarray().tolist() == [[1, 1, 0], [0, 0, 0], [1, 0, 1]]
    assert load_data(tmp_path / "a.txt", "fasttext").X.shape == data.X.shape


def test_a_label_without_a_name_is_rejected_with_its_position(tmp_path):
    (tmp_path / "a.txt").write_text("__label__a fine\nnot __label__ fine\n")
    with pytest.raises(DataError, match=r"line 2, column 5: a label has no name after __label__"):
        load_fasttext(tmp_path / "a.txt")


def test_other_files_are_rejected(tmp_path):
    (tmp_path / "a.txt").write_bytes(b"__label__a \xff\n")
    with pytest.raises(DataError, match="not UTF-8"):
        load_fasttext(tmp_path / "a.txt")
    (tmp_path / "b.txt").write_bytes(b"")
    with pytest.raises(DataError, match="empty"):
        load_fasttext(tmp_path / "b.txt")
    (tmp_path / "c.txt").write_text("\n\n")
    with pytest.raises(DataError, match="no rows"):
        load_data(tmp_path / "c.txt", "fasttext")
