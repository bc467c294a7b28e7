"""Lines that come one after another: what is a row, what is none, and what is told of the bad ones."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ramify.data import DataError, load_xmc
from ramify.data.live import LineParser, iter_batches


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


def test_a_file_gives_the_rows_that_load_xmc_gives(tmp_path):
    path = tmp_path / "tiny.txt"
    path.write_text("3 4 6\n5,2 0:0.5 3:1\n\n 1:2\n")
    wanted = load_xmc(path)
    batches = list(iter_batches(path, "xmc", 2))
    assert [labels for batch in batches for labels in batch.labels] == [(2, 5), (), ()]
    assert [batch.X.shape[1] for batch in batches] == [4, 4]
    assert sum(batch.X.sum() for batch in batches) == wanted.X.sum()


def test_libsvm_counts_from_one_unless_told_and_knows_comments():
    assert rows_of([b"1 1:5 # five", b"# nothing", b"2 2:1"], "libsvm") == [
        ((1,), [5.0, 0.0], 1),
        ((2,), [0.0, 1.0], 3),
    ]
    with pytest.raises(DataError, match="zero-based"):
        rows_of([b"1 0:5"], "libsvm")
    assert rows_of([b"1 0:5"], "libsvm", zero_based=True) == [((1,), [5.0], 1)]


def test_rows_before_a_bad_line_are_given_before_it_is_raised():
    parser = LineParser("xmc", "stdin")
    batches = parser.parse([b"1 0:1", b"2 0:1", b"x 0:1", b"3 0:1"])
    assert next(batches).labels == [(1,), (2,)]
    with pytest.raises(DataError) as told:
        next(batches)
    assert (told.value.path, told.value.line, told.value.column) == ("stdin", 3, 1)


BAD = {"xmc": b"1 0:abc", "libsvm": b"1,, 3:1", "jsonl": b'{"text": 3}'}
GOOD = {"xmc": b"4 0:1", "libsvm": b"4 1:1", "jsonl": b'{"text": "a", "labels": ["x"]}'}


@pytest.mark.parametrize("format", sorted(BAD))
@given(is_good=st.lists(st.booleans(), max_size=30), cut=st.integers(1, 7))
def test_bad_lines_are_told_by_number_and_all_others_are_kept(format, is_good, cut):
    told = []
    parser = LineParser(format, "stdin", on_bad_line=told.append)
    lines = [(GOOD if good else BAD)[format] for good in is_good]
    found = [number for start in range(0, len(lines), cut) for batch in parser.parse(lines[start : start + cut])
             for number in batch.lines]  # fmt: skip
    assert found == [number for number, good in enumerate(is_good, 1) if good]
    assert [error.line for error in told] == [number for number, good in enumerate(is_good, 1) if not good]
    assert parser.n_bad_lines == len(told)


def test_a_row_with_two_classes_is_a_bad_line():
    told = []
    parser = LineParser("xmc", "stdin", one_label=True, on_bad_line=told.append)
    assert [batch.labels for batch in parser.parse([b"1 0:1", b"1,2 0:1", b"3 0:1"])] == [[(1,)], [(3,)]]
    assert told[0].line == 2


def test_what_is_not_utf8_is_told_with_its_column():
    with pytest.raises(DataError, match="0xff") as told:
        list(LineParser("jsonl", "stdin").parse([b'{"text": "\xc3\xbc\xff"}']))
    assert (told.value.line, told.value.column) == (1, 12)


def test_a_byte_order_mark_is_dropped():
    assert rows_of([b"\xef\xbb\xbf1 0:1"])[0][0] == (1,)
