"""The XMC and libsvm parsers against a Python twin, and the text they reject."""

from __future__ import annotations

import gzip
import re
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from scipy.sparse import csr_array

from ramify import _core
from ramify.data import DataError, Dataset, load_libsvm, load_xmc

LARGEST = float(np.finfo(np.float32).max)


def nearest_float32(text):
    """Return the float32 nearest to the decimal, ties to even, by exact arithmetic."""
    exact = Fraction(text)
    guess = np.clip(np.float32(float(exact)), -np.float32(LARGEST), np.float32(LARGEST))
    with np.errstate(over="ignore"):
        candidates = [guess, np.nextafter(guess, np.float32(np.inf)), np.nextafter(guess, np.float32(-np.inf))]
    finite = [c for c in candidates if np.isfinite(c)]
    return min(finite, key=lambda c: (abs(Fraction(float(c)) - exact), int(c.view(np.uint32)) & 1))


def twin_row(line):
    labels = []
    tokens = line.split()
    if tokens and line[0] not in " \t" and ":" not in tokens[0]:
        labels = sorted({int(label) for label in tokens.pop(0).split(",")})
    features = {}
    for token in tokens:
        index, value = token.split(":")
        number = nearest_float32(value)
        features[int(index)] = features[int(index)] + number if int(index) in features else number
    return labels, features


def rows_of(data):
    X, Y = data.X, data.Y
    for array in (X, Y):
        assert csr_array((array.data, array.indices, array.indptr), shape=array.shape).has_canonical_format
        assert array.dtype == np.float32
        assert array.indices.dtype == np.int32
    assert np.all(Y.data == 1)
    return [
        (
            Y.indices[Y.indptr[i] : Y.indptr[i + 1]].tolist(),
            dict(zip(*(a[X.indptr[i] : X.indptr[i + 1]].tolist() for a in (X.indices, X.data)), strict=True)),
        )
        for i in range(X.shape[0])
    ]


def read(folder, text, load=load_xmc, **options):
    path = folder / "train.txt"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return load(path, **options)


# Valid files


def test_a_plain_file(tmp_path):
    data = read(tmp_path, "2 4 3\n0,2 1:0.5 3:-2e-1\n1 0:1\n")
    assert rows_of(data) == [([0, 2], {1: 0.5, 3: float(np.float32(-0.2))}), ([1], {0: 1.0})]
    assert (data.X.shape, data.Y.shape) == ((2, 4), (2, 3))


@pytest.mark.parametrize(
    ("line", "row"),
    [
        (" 1:2", ([], {1: 2.0})),
        ("1:2", ([], {1: 2.0})),
        ("\t1:2", ([], {1: 2.0})),
        ("0,2", ([0, 2], {})),
        ("0,2 ", ([0, 2], {})),
        ("", ([], {})),
        (" ", ([], {})),
        ("2,0,2 3:1 0:2\t3:4  ", ([0, 2], {0: 2.0, 3: 5.0})),
        ("1 0:+.5 1:5. 2:1E2 3:0", ([1], {0: 0.5, 1: 5.0, 2: 100.0, 3: 0.0})),
        ("01 002:1", ([1], {2: 1.0})),
    ],
)
@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_rows_of_every_form(tmp_path, line, row, end):
    text = end.join(["3 4 3", "0 0:1", line, "1 1:1", ""])
    assert rows_of(read(tmp_path, text)) == [([0], {0: 1.0}), row, ([1], {1: 1.0})]


@pytest.mark.parametrize(
    "text", ["1 2 1\n0 1:1", "1 2 1\n0 1:1\n\n \r\n\n", "\ufeff1 2 1\r\n0 1:1\r\n", " 1\t2  1 \n0 1:1"]
)
def test_ends_of_files_and_byte_order_marks(tmp_path, text):
    assert rows_of(read(tmp_path, text)) == [([0], {1: 1.0})]


@pytest.mark.parametrize("text", ["0 0 0", "0 5 3\n", "0 0 0\n\n\n"])
def test_a_file_without_rows(tmp_path, text):
    assert read(tmp_path, text).n_rows == 0


def test_gzip_is_detected_by_content_and_can_have_several_members(tmp_path):
    packed = gzip.compress(b"2 2 1\n0 1:1\n") + gzip.compress(b"0 0:1\n")
    assert rows_of(read(tmp_path, packed)) == [([0], {1: 1.0}), ([0], {0: 1.0})]


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("16777217", 16777216.0),  # halfway between two floats: rounds to even
        ("16777219", 16777220.0),
        ("1.00000005960464477539062500001", 1.0000001192092896),  # as a double it would be exactly halfway
        ("1.000000059604644775390625", 1.0),
        ("0.000000000000000000000000000000000000000000001", 1.401298464324817e-45),
        ("1e-46", 0.0),
        ("1e-999999999999999999999", 0.0),
        ("0e999999999999999999999", 0.0),
        ("0." + "0" * 500 + "1e501", 1.0),
        ("1" + "0" * 500 + "e-500", 1.0),
        ("340282356779733661637539395458142568447", LARGEST),
        ("9007199254740993", 9007199254740992.0),
    ],
)
def test_numbers_are_rounded_exactly(text, value):
    for sign in ("", "-"):
        parsed = _core.parse_xmc(f"1 1 0\n 0:{sign}{text}".encode())[4]
        assert parsed.tolist() == [-value if sign else value]


@settings(max_examples=500)
@given(
    st.one_of(
        st.from_regex(r"\A[+-]?([0-9]{1,25}(\.[0-9]{0,25})?|\.[0-9]{1,25})([eE][+-]?[0-9]{1,2})?\Z"),
        st.floats(width=32, allow_nan=False, allow_infinity=False).map(repr),
        st.integers(0, 2**40).map(lambda k: f"{k}.5"),
    )
)
def test_any_decimal_is_rounded_to_the_nearest_float32(text):
    content = f"1 1 0\n 0:{text}".encode()
    if abs(Fraction(text)) >= Fraction(2) ** 128 - Fraction(2) ** 103:
        with pytest.raises(_core.TextError, match="too large for a 32-bit float"):
            _core.parse_xmc(content)
    else:
        assert _core.parse_xmc(content)[4][0] == nearest_float32(text)


decimals = st.one_of(
    st.decimals(-1000, 1000, allow_nan=False, places=5).map(str), st.floats(-1e9, 1e9, width=32).map(repr)
)


@st.composite
def xmc_lines(draw):
    labels = ",".join(map(str, draw(st.lists(st.integers(0, 9), max_size=4))))
    pairs = draw(st.lists(st.tuples(st.integers(0, 19), decimals), max_size=6))
    blanks = draw(st.sampled_from([" ", "  ", "\t", " \t "]))
    features = blanks.join(f"{index}:{value}" for index, value in pairs)
    return labels + blanks + features if labels or draw(st.booleans()) else features


@given(st.lists(xmc_lines(), max_size=30), st.sampled_from(["\n", "\r\n"]), st.booleans())
def test_random_text_is_parsed_as_by_the_python_twin(lines, end, has_last_end):
    if lines and not lines[-1]:
        has_last_end = True  # an empty last row needs its line end
    text = end.join([f"{len(lines)} 20 10", *lines]) + (end if has_last_end else "")
    n_features, n_labels, x_ptr, features, values, y_ptr, labels = _core.parse_xmc(text.encode())
    ones = np.ones(len(labels), np.float32)
    X = csr_array((values, features, x_ptr.astype(np.int32)), shape=(len(lines), n_features))
    Y = csr_array((ones, labels, y_ptr.astype(np.int32)), shape=(len(lines), n_labels))
    assert rows_of(Dataset(X, Y)) == [twin_row(line) for line in lines]


def test_the_result_does_not_depend_on_the_number_of_threads(tmp_path):
    """The text has more than a megabyte, so it is split; repeated features and missing labels leave gaps."""
    rng = np.random.default_rng(0)
    indices, values = rng.integers(0, 99, (40_000, 7)), rng.normal(size=(40_000, 7))
    lines = []
    for i in range(40_000):
        labels = ",".join(map(str, indices[i, : i % 4] // 2))
        features = " ".join(f"{f}:{v:.4g}" for f, v in zip(indices[i], values[i], strict=True))
        lines.append(f"{labels} {features}" if i % 5 else labels)
    text = "\n".join(["40000 99 50", *lines, ""]).encode()
    assert len(text) > 2**21
    one, four = (_core.parse_xmc(text, n_threads=n) for n in (1, 4))
    assert all(np.array_equal(a, b) for a, b in zip(one, four, strict=True))
    assert rows_of(read(tmp_path, text, n_jobs=3))[::97] == [twin_row(line) for line in lines[::97]]


def test_the_first_of_several_errors_is_reported_for_any_number_of_threads():
    lines = ["0 1:0.25 2:0.5"] * 200_000
    for bad in (199_999, 150_000, 70_000):
        lines[bad] = "0 1:x"
        for n in (1, 2, 7):
            with pytest.raises(_core.TextError) as caught:
                _core.parse_xmc("\n".join(["200000 3 1", *lines]).encode(), n_threads=n)
            assert caught.value.args[1:3] == (bad + 2, 3)


# Bad files

BAD_XMC = [
    ("\n", 1, 1, "the header has 0 numbers instead of 3"),
    ("1 2\n0 1:1", 1, 1, "the header has 2 numbers instead of 3"),
    ("1 2 3 4\n0 1:1", 1, 1, "the header has 4 numbers instead of 3"),
    ("0 1:1\n", 1, 3, "the header holds '1:1', which is not a count"),
    ("1 -2 3\n0 1:1", 1, 3, "the header holds '-2', which is not a count"),
    ("1 2 3.0\n0 1:1", 1, 5, "the header holds '3.0', which is not a count"),
    ("1 2147483648 3\n", 1, 3, "the header's number '2147483648' is too large"),
    ("99999999999999999999 2 3\n", 1, 1, "too large"),
    ("3 2 1\n0 1:1\n0 1:1\n", 4, 1, "the file ends after 2 rows, but the header announces 3"),
    ("9000000000000000000 2 1\n0 1:1", 2, 6, "the file ends after 1 rows, but the header announces 90000000"),
    ("1 2 1\n0 1:1\n\n0 1:1\n", 4, 1, "there are more rows than the 1 that the header announces"),
    ("0 2 1\n0 1:1\n", 2, 1, "there are more rows than the 0"),
    ("1 2 1\n0 2:1", 2, 3, "feature 2 is outside the header's number of features, 2"),
    ("1 2 1\n0 0:1 18446744073709551617:1", 2, 7, "feature 18446744073709551617 is outside"),
    ("1 0 1\n0 0:1", 2, 3, "feature 0 is outside the header's number of features, 0"),
    ("1 2 1\n1 0:1", 2, 1, "label 1 is outside the header's number of labels, 1"),
    ("1 2 2\n0,1,18446744073709551616 0:1", 2, 5, "label 18446744073709551616 is outside"),
    ("1 2 1\n-1 0:1", 2, 1, "label -1 is negative"),
    ("1 2 1\n0,-1 0:1", 2, 3, "label -1 is negative"),
    ("1 2 1\nx 0:1", 2, 1, "label 'x' is not a whole number"),
    ("1 2 1\n0.0 0:1", 2, 1, "label '0.0' is not a whole number"),
    ("1 2 1\n0, 0:1", 2, 3, "a label is missing beside a comma"),
    ("1 2 1\n,0 0:1", 2, 1, "a label is missing beside a comma"),
    ("1 2 1\n0,,0 0:1", 2, 3, "a label is missing beside a comma"),
    ("1 2 1\n0,0:1", 2, 3, "label '0:1' is not a whole number"),
    ("1 2 1\n0 -1:1", 2, 3, "feature -1 is negative"),
    ("1 2 1\n0 0 0:1", 2, 3, "feature '0' has no colon"),
    ("1 2 1\n0 :1", 2, 3, "feature ':1' has no number before the colon"),
    ("1 2 1\n0 a:1", 2, 3, "feature 'a' is not a whole number"),
    ("1 2 1\n0 1: 0:2", 2, 3, "feature '1:' has no number after the colon"),
    ("1 2 1\n0 1:\n", 2, 3, "feature '1:' has no number after the colon"),
    ("1 2 1\n0 1:abc", 2, 3, "feature '1:abc' has no number after the colon"),
    ("1 2 1\n0 1:.", 2, 3, "has no number after the colon"),
    ("1 2 1\n0 1:-", 2, 3, "has no number after the colon"),
    ("1 2 1\n0 1:1e", 2, 3, "has no number after the colon"),
    ("1 2 1\n0 1:--1", 2, 3, "has no number after the colon"),
    ("1 2 1\n0 1:0x1", 2, 3, "feature '1:0x1' has 'x1' behind its number"),
    ("1 2 1\n0 1:0,5", 2, 3, "has ',5' behind its number\nhint: decimals have a point"),
    ("1 2 1\n0 1:1:1", 2, 3, "has ':1' behind its number"),
    ("1 2 1\n0 1:nan", 2, 3, "feature '1:nan' is not finite"),
    ("1 2 1\n0 1:-INF", 2, 3, "is not finite"),
    ("1 2 1\n0 1:Infinity", 2, 3, "is not finite"),
    ("1 2 1\n0 1:3.5e38", 2, 3, "too large for a 32-bit float"),
    ("1 2 1\n0 1:-1e999999999999", 2, 3, "too large for a 32-bit float"),
    ("1 2 1\n0 1:3e38 1:3e38", 2, 2, "feature 1 is repeated, and its sum is too large"),
    ("1 2 1\n0\v1:1", 2, 1, r"feature '0\x0b1' is not a whole number"),
    ("2 9 1\n0 1:1\n0 1:1 é 2:ü", 3, 7, r"feature '\xc3\xa9' has no colon"),
    ("2 9 1\n0 1:1\n0 1:é", 3, 3, r"feature '1:\xc3\xa9' has no number after the colon"),
    ("1 9 1\n0 1:" + "é" * 200, 2, 3, "..."),
]


@pytest.mark.parametrize(("text", "line", "column", "message"), BAD_XMC)
def test_errors_are_reported_with_line_and_column(tmp_path, text, line, column, message):
    with pytest.raises(DataError, match=re.escape(message)) as caught:
        read(tmp_path, text)
    error = caught.value
    assert (error.line, error.column) == (line, column)
    assert error.path == str(tmp_path / "train.txt")
    assert error.hint
    assert str(error).startswith(f"{error.path}, line {line}, column {column}: ")


def test_the_full_text_of_an_error(tmp_path):
    with pytest.raises(DataError) as caught:
        read(tmp_path, "1 20 1\n0 1:1 2:1 17:abc 18:3\n")
    assert str(caught.value) == (
        f"{tmp_path / 'train.txt'}, line 2, column 11: feature '17:abc' has no number after the colon\n"
        "hint: values look like 17:0.25; drop the feature if it is absent"
    )


def test_the_column_counts_characters_not_bytes():
    with pytest.raises(_core.TextError) as caught:
        _core.parse_xmc("1 9 1\nü,0 1:1".encode())
    assert caught.value.args[1:3] == (2, 1)
    with pytest.raises(_core.TextError) as caught:
        _core.parse_xmc("ü é 1\n".encode())
    assert caught.value.args[1:3] == (1, 1)
    with pytest.raises(_core.TextError) as caught:
        _core.parse_xmc("\ufeff1 é 1\n".encode())
    assert caught.value.args[1:3] == (1, 4)  # the byte order mark counts as a character


@settings(max_examples=500)
@example(b"1 1 1\n0 0:1e-")
@example(b"1 1 1\n0 0:1\0")
@example(b"\xef\xbb\xbf")
@given(
    st.one_of(
        st.binary(max_size=60),
        st.lists(st.sampled_from(list("0123456789:,.-+e \t\r\n#x")), max_size=60).map(lambda c: "".join(c).encode()),
    )
)
def test_any_bytes_are_parsed_or_rejected_without_a_crash(content):
    for text in (content, b"3 5 4\n" + content):
        for parse in (_core.parse_xmc, _core.parse_libsvm):
            try:
                n_features, n_labels, feature_ptr, features, values, label_ptr, labels = parse(text)
            except _core.TextError as error:
                message, line, column, hint = error.args
                assert message
                assert hint
                assert 1 <= line <= text.count(b"\n") + 1
                assert 1 <= column <= len(text) + 1
            else:
                assert feature_ptr[-1] == len(features) == len(values)
                assert label_ptr[-1] == len(labels)
                assert np.isfinite(values).all()
                assert not len(features) or 0 <= features.min() <= features.max() < n_features
                assert not len(labels) or 0 <= labels.min() <= labels.max() < n_labels


# libsvm


def test_libsvm_skips_blank_lines_and_comments(tmp_path):
    data = read(tmp_path, "# made by hand\n1 1:0.5 3:2 # good\n\n0,2 1:1#x\n 2:1\n   \n", load_libsvm)
    assert rows_of(data) == [([1], {0: 0.5, 2: 2.0}), ([0, 2], {0: 1.0}), ([], {1: 1.0})]
    assert (data.X.shape, data.Y.shape) == ((3, 3), (3, 3))


@pytest.mark.parametrize(
    ("text", "zero_based", "features"),
    [
        ("0 1:1 2:1", "auto", [0, 1]),
        ("0 1:1 2:1\n0 0:1", "auto", [1, 2, 0]),
        ("0 1:1 2:1", True, [1, 2]),
        ("0 1:1 2:1", False, [0, 1]),
        ("0", "auto", []),
    ],
)
def test_libsvm_numbering_of_features(tmp_path, text, zero_based, features):
    assert read(tmp_path, text, load_libsvm, zero_based=zero_based).X.indices.tolist() == features


def test_libsvm_widths_can_be_given(tmp_path):
    data = read(tmp_path, "0 1:1 5:1", load_libsvm, n_features=5, n_labels=3)
    assert (data.X.shape, data.Y.shape) == ((1, 5), (1, 3))


@pytest.mark.parametrize(
    ("text", "options", "line", "column", "message"),
    [
        ("0 1:1\n0 0:1 6:1", {"n_features": 6}, 2, 7, "feature 6 is outside the number of features asked for, 6"),
        ("0 1:1\n0 2:1 7:1", {"n_features": 6}, 2, 7, "numbered from 1 to 6"),
        ("0 1:1\n0 0:1", {"zero_based": False}, 2, 3, "feature 0 in a file whose features are numbered from 1"),
        ("0 1:1\n2 0:1", {"n_labels": 2}, 2, 1, "label 2 is outside the number of labels asked for, 2"),
        ("+1 1:1", {}, 1, 1, "label '+1' is not a whole number"),
        ("-1 1:1", {}, 1, 1, "label -1 is negative\nhint: labels are columns, numbered from 0; write two classes as 0"),
        ("1 qid:3 1:1", {}, 1, 3, "feature 'qid' is not a whole number"),
        ("1 2147483647:1", {}, 1, 3, "feature 2147483647 does not fit a 32-bit index"),
        ("2147483647 1:1", {}, 1, 1, "label 2147483647 does not fit a 32-bit index"),
    ],
)
def test_libsvm_errors(tmp_path, text, options, line, column, message):
    with pytest.raises(DataError) as caught:
        read(tmp_path, text, load_libsvm, **options)
    assert message in str(caught.value)
    assert (caught.value.line, caught.value.column) == (line, column)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"zero_based": "no"}, "zero_based must be"),
        ({"n_features": -1}, "n_features must be"),
        ({"n_jobs": 0}, "n_jobs"),
    ],
)
def test_libsvm_options_are_checked(tmp_path, options, message):
    with pytest.raises(ValueError, match=message):
        read(tmp_path, "0 1:1", load_libsvm, **options)


@pytest.mark.parametrize("options", [{"first_feature": 2}, {"n_features": 2**31}, {"n_labels": 2**31}])
def test_the_core_checks_its_options(options):
    with pytest.raises(ValueError, match="must"):
        _core.parse_libsvm(b"0 1:1", **options)
