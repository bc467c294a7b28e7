"""Rows read line by line: what is a row, how bad lines are reported, and XMC files in chunks."""

from __future__ import annotations

import gzip

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.sparse import vstack

from ramify.data import DataError, load_xmc, save_xmc
from ramify.data.lines import LineParser, iter_batches, iter_xmc
from ramify.data.synthetic import make_multilabel


def rows_of(lines, format="xmc", **options):
    parser = LineParser(format, "stdin", **options)
    return [(labels, batch.X[[row]].toarray()[0].tolist(), batch.lines[row])
            for batch in parser.parse(lines) for row, labels in enumerate(batch.labels)]  # fmt: skip


def test_xmc_lines_need_no_header_and_may_have_one_anywhere():
    bare = [b"3,1 0:1", b"2 1:0.5"]
    assert [row[:2] for row in rows_of(bare)] == [((1, 3), [1.0, 0.0]), ((2,), [0.0, 0.5])]
    joined = [b"2 5 9", *bare, b"2 5 9", *bare]
    assert [row[0] for row in rows_of(joined)] == [(1, 3), (2,)] * 2
    assert [row[2] for row in rows_of(joined)] == [2, 3, 5, 6]
    assert len(rows_of(joined)[0][1]) == 5


def test_blank_lines_are_rows_only_where_a_header_says_so():
    assert [row[0] for row in rows_of([b"", b"1 0:1", b"", b" 0:2"])] == [(1,), ()]
    assert [row[0] for row in rows_of([b"3 1 1", b"", b"1 0:1", b"", b"", b"2 0:1"])] == [(), (1,), (), (2,)]


def test_a_file_has_the_rows_of_load_xmc(tmp_path):
    path = tmp_path / "tiny.txt"
    path.write_text("3 4 6\n5,2 0:0.5 3:1\n\n 1:2\n")
    wanted = load_xmc(path)
    batches = list(iter_batches(path, "xmc", 2))
    assert [labels for batch in batches for labels in batch.labels] == [(2, 5), (), ()]
    assert [batch.X.shape[1] for batch in batches] == [4, 4]
    assert sum(batch.X.sum() for batch in batches) == wanted.X.sum()


def test_libsvm_counts_from_1_by_default_and_skips_comments():
    assert rows_of([b"1 1:5 # five", b"# nothing", b"2 2:1"], "libsvm") == [
        ((1,), [5.0, 0.0], 1),
        ((2,), [0.0, 1.0], 3),
    ]
    with pytest.raises(DataError, match="zero-based"):
        rows_of([b"1 0:5"], "libsvm")
    assert rows_of([b"1 0:5"], "libsvm", zero_based=True) == [((1,), [5.0], 1)]


def test_rows_before_a_bad_line_are_yielded_before_it_raises():
    parser = LineParser("xmc", "stdin")
    batches = parser.parse([b"1 0:1", b"2 0:1", b"x 0:1", b"3 0:1"])
    assert next(batches).labels == [(1,), (2,)]
    with pytest.raises(DataError) as caught:
        next(batches)
    assert (caught.value.path, caught.value.line, caught.value.column) == ("stdin", 3, 1)


BAD = {"xmc": b"1 0:abc", "libsvm": b"1,, 3:1", "jsonl": b'{"text": 3}'}
GOOD = {"xmc": b"4 0:1", "libsvm": b"4 1:1", "jsonl": b'{"text": "a", "labels": ["x"]}'}


@pytest.mark.parametrize("format", sorted(BAD))
@given(is_good=st.lists(st.booleans(), max_size=30), cut=st.integers(1, 7))
def test_bad_lines_are_reported_by_number_and_all_others_are_kept(format, is_good, cut):
    errors = []
    parser = LineParser(format, "stdin", on_bad_line=errors.append)
    lines = [(GOOD if good else BAD)[format] for good in is_good]
    found = [number for start in range(0, len(lines), cut) for batch in parser.parse(lines[start : start + cut])
             for number in batch.lines]  # fmt: skip
    assert found == [number for number, good in enumerate(is_good, 1) if good]
    assert [error.line for error in errors] == [number for number, good in enumerate(is_good, 1) if not good]
    assert parser.n_bad_lines == len(errors)


def test_a_row_with_two_classes_is_a_bad_line():
    errors = []
    parser = LineParser("xmc", "stdin", one_label=True, on_bad_line=errors.append)
    assert [batch.labels for batch in parser.parse([b"1 0:1", b"1,2 0:1", b"3 0:1"])] == [[(1,)], [(3,)]]
    assert errors[0].line == 2
    assert "the row has 2 labels instead of one" in str(errors[0])


def test_invalid_utf8_is_reported_with_its_column():
    with pytest.raises(DataError, match="0xff") as caught:
        list(LineParser("jsonl", "stdin").parse([b'{"text": "\xc3\xbc\xff"}']))
    assert (caught.value.line, caught.value.column) == (1, 12)


def test_a_byte_order_mark_in_the_middle_is_a_bad_line():
    skipped = []
    parser = LineParser("libsvm", "stream", on_bad_line=skipped.append)
    lines = [b"1 1:1", b"\xef\xbb\xbf", b"\xef\xbb\xbf2 1:1", b"3 2:1"]
    rows = [batch for line in lines for batch in parser.parse([line])]  # each the first of what is read at once
    assert [labels for batch in rows for labels in batch.labels] == [(1,), (3,)]
    assert [error.line for error in skipped] == [2, 3]


def test_a_byte_order_mark_is_dropped():
    assert rows_of([b"\xef\xbb\xbf1 0:1"])[0][0] == (1,)


# XMC files in chunks


@pytest.mark.parametrize("rows_at_once", [1, 7, 49, 50, 1000])
@pytest.mark.parametrize("name", ["data.txt", "data.txt.gz"])
def test_concatenated_chunks_equal_the_file(tmp_path, rows_at_once, name):
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
def test_errors_have_the_same_position_as_when_reading_the_whole_file(tmp_path, content):
    path = tmp_path / "bad.txt"
    path.write_text(content)
    with pytest.raises(DataError) as whole:
        load_xmc(path)
    with pytest.raises(DataError) as chunked:
        list(iter_xmc(path, 2))
    places = [(error.value.message, error.value.line, error.value.column or 1) for error in (whole, chunked)]
    assert places[0] == places[1]


def test_a_file_with_too_few_rows_is_rejected_at_its_end(tmp_path):
    path = tmp_path / "short.txt.gz"
    path.write_bytes(gzip.compress(b"5 3 2\n0 0:1\n1 1:1\n0 2:1\n"))
    rows = iter_xmc(path, 2)
    assert next(rows).n_rows == 2
    assert next(rows).n_rows == 1
    with pytest.raises(DataError, match="ends after 3 rows, but the header announces 5"):
        next(rows)


def test_blank_lines_are_rows_except_at_the_end(tmp_path):
    path = tmp_path / "blank.txt"
    path.write_text("3 3 2\n0 0:1\n\n1 1:1\n\n\n")
    assert [chunk.n_rows for chunk in iter_xmc(path, 2)] == [2, 1]
