"""Tables and Arrow files of texts: what was written is read, and what cannot be read is rejected with its place."""

from __future__ import annotations

import csv
import gzip
import io
import os
import sys

import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ramify import PLTClassifier
from ramify.data import Columns, DataError, iter_table, load_data, load_table, read_texts
from ramify.data.tables import TableParser, find_delimiter
from ramify.text import HashingTextVectorizer, StreamTextVectorizer, TextVectorizer, UnionTextVectorizer

NAMED = {"text_column": "title", "label_column": "tags"}
ROWS = [("Über Zellen, kurz", "Bein, links;Übelkeit"), ('zwei\nZeilen "x"', ""), ("a;b\tc", "Übelkeit")]
READ = ([text for text, _ in ROWS], [["Bein, links", "Übelkeit"], [], ["Übelkeit"]])


def frame():
    return pd.DataFrame(ROWS, columns=["title", "tags"])


@pytest.mark.parametrize("delimiter", [",", ";", "\t", "|"])
@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-32"])
def test_a_table_that_pandas_wrote_is_read_whatever_its_delimiter_and_byte_order_mark(tmp_path, delimiter, encoding):
    frame().to_csv(tmp_path / "a.csv", sep=delimiter, encoding=encoding, index=False)
    assert load_table(tmp_path / "a.csv", **NAMED) == READ


@pytest.mark.parametrize("encoding", ["cp1252", "latin-1", "utf-16-le"])
def test_other_encodings_are_named_by_the_user(tmp_path, encoding):
    frame().to_csv(tmp_path / "a.csv", sep=";", encoding=encoding, index=False)
    assert load_table(tmp_path / "a.csv", encoding=encoding, **NAMED) == READ


def test_a_wrong_encoding_is_rejected_with_line_column_and_advice(tmp_path):
    frame().to_csv(tmp_path / "a.csv", sep=";", encoding="cp1252", index=False)
    with pytest.raises(DataError, match=r"line 2, column 1: byte 0xdc is not UTF-8\nhint: .*--encoding.*cp1252"):
        load_table(tmp_path / "a.csv", **NAMED)
    with pytest.raises(ValueError, match="there is no encoding 'utf-9'"):
        load_table(tmp_path / "a.csv", encoding="utf-9", **NAMED)


TEXTS = st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), max_size=12)


@given(st.lists(st.tuples(TEXTS, TEXTS), min_size=1, max_size=6), st.sampled_from([",", ";", "\t"]), st.data())
def test_any_table_written_by_csv_is_read_in_blocks_of_any_size(rows, delimiter, data):
    written = io.StringIO(newline="")
    csv.writer(written, delimiter=delimiter).writerows([("text", "other"), *rows])
    content = written.getvalue().encode()
    parser = TableParser("a.csv", Columns(delimiter=delimiter), labels_required=False)
    found, start = [], 0
    while start < len(content):
        size = data.draw(st.integers(1, len(content)))
        found += parser.feed(content[start : start + size])
        start += size
    found += parser.finish()
    assert [tuple(row.fields) for row in found] == rows
    assert [row.text for row in found] == [text for text, _ in rows]


def test_line_numbers_count_line_breaks_inside_fields(tmp_path):
    (tmp_path / "a.csv").write_text('text,labels\n"one\ntwo",a\n\nthree,b\n')
    assert [row.line for row in iter_table(tmp_path / "a.csv")] == [2, 5]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "the file is empty"),
        (b"text,labels\n", "the file has no rows after the header"),
        (b"a,b\nx,y\n", r'line 1: no column is called "text"\nhint: .*\'a\', \'b\': choose with --text-column'),
        (b"text,b\nx,y\n", r'no column is called "labels"\nhint: .*--label-column'),
        (b"text,labels\nx,y\nx,y,z\n", "line 3: the row has 3 fields, but the header has 2: the first too many is 'z'"),
        (b'text,labels\n"x\ny",a\nx\n', "line 4: the row has 1 field, but the header has 2: none for column 'labels'"),
        (b'text,labels\nx,y\n"x,y\n', "line 3: a quote that opens in this row is never closed"),
        (b'text,labels\n"x"y,z\n', "line 2, column 4: a closing quote is followed by more text"),
        (b"text,text,labels\nx,y,z\n", "2 columns are called 'text'"),
        (b"text,labels\nx,\xff\n", "line 2, column 3: byte 0xff is not UTF-8"),
        (b"text\0,labels\n", "a binary file"),
    ],
)
def test_what_cannot_be_read_is_rejected_with_its_place(tmp_path, content, message):
    (tmp_path / "a.csv").write_bytes(content)
    with pytest.raises(DataError, match=message):
        load_table(tmp_path / "a.csv")


def test_a_missing_column_is_rejected_with_the_columns_found(tmp_path):
    frame().to_csv(tmp_path / "a.csv", index=False)
    with pytest.raises(
        DataError, match=r"no column 'titel'\nhint: the columns are 'title', 'tags'; did you mean 'title'"
    ):
        load_table(tmp_path / "a.csv", text_column="titel", label_column="tags")
    with pytest.raises(DataError, match=r"no column 'title, tags'\nhint: .*--text-column may be repeated"):
        load_table(tmp_path / "a.csv", text_column="title, tags", label_column="tags")
    (tmp_path / "a.txt").write_bytes("title\ttags\n".encode("utf-16"))
    with pytest.raises(DataError, match=r"binary file, not text\nhint: .*--encoding utf-16"):
        load_data(tmp_path / "a.txt")
    (tmp_path / "a.xlsx").write_bytes(b"PK\x03\x04")
    with pytest.raises(DataError, match="export the sheet as CSV"):
        load_table(tmp_path / "a.xlsx")


def test_a_huge_field_is_read_and_an_open_quote_does_not_swallow_a_file(tmp_path):
    text = "word, " * 300_000
    pd.DataFrame({"text": [text, "b"], "labels": ["x", "y"]}).to_csv(tmp_path / "a.csv.gz", index=False)
    texts, labels = load_table(tmp_path / "a.csv.gz")
    assert texts == [text, "b"]
    assert labels == [["x"], ["y"]]


def test_one_row_and_one_column_are_enough(tmp_path):
    (tmp_path / "a.csv").write_text("Text\nnur einer")
    assert load_table(tmp_path / "a.csv", labels_required=False) == (["nur einer"], [[]])


def test_labels_are_split_at_the_users_separator_and_lists_of_pandas_are_lists(tmp_path):
    (tmp_path / "a.csv").write_text("text,labels\nx,a|b; c\n")
    assert load_table(tmp_path / "a.csv", label_separator="|")[1] == [["a", "b; c"]]
    pd.DataFrame({"text": ["x"], "labels": [["a;b", "ü, c"]]}).to_csv(tmp_path / "b.csv", index=False)
    assert load_table(tmp_path / "b.csv")[1] == [["a;b", "ü, c"]]


def test_several_text_columns_are_joined(tmp_path):
    (tmp_path / "a.tsv").write_text("a\tb\tlabels\nx\ty\tz\n\ty\tz\n")
    assert load_table(tmp_path / "a.tsv", text_column=["a", "b"])[0] == ["x y", "y"]


def test_the_delimiter_divides_most_rows_equally():
    assert find_delimiter(["a;b,c\n", "x;y\n", "x, y, z;w\n", "x;y\n"]) == ";"


def test_json_lines_have_any_fields_one_label_and_numbers(tmp_path):
    path = tmp_path / "a.jsonl"
    path.write_text('{"t": "x", "u": "y", "code": 7}\n{"t": "z", "code": "a, b"}\n{"t": "z", "code": ["c", 8.0]}\n')
    found = load_table(path, text_column=["t", "u"], label_column="code")
    assert found == (["x y", "z", "z"], [["7"], ["a, b"], ["c", "8"]])
    path.write_text('{"text": "x", "label": "a"}\n{"text": "x", "labels": null}\n')
    assert load_table(path)[1] == [["a"], []]
    path.write_text('{"title": "x"}\n')
    with pytest.raises(DataError, match="the fields are 'title': choose with --text-column"):
        load_table(path)


@pytest.mark.parametrize("name", ["a.parquet", "a.feather", "a.arrow"])
def test_parquet_and_arrow_hold_strings_lists_and_numbers(tmp_path, name):
    pytest.importorskip("pyarrow")
    table = pd.DataFrame({"title": ["x", "ü", None], "tags": [["a", "b"], [], ["ü, c"]], "code": [1, 2, 3]})
    (table.to_parquet if name == "a.parquet" else table.to_feather)(tmp_path / name)
    assert load_table(tmp_path / name, **NAMED) == (["x", "ü", ""], [["a", "b"], [], ["ü, c"]])
    assert load_table(tmp_path / name, text_column="title", label_column="code")[1] == [["1"], ["2"], ["3"]]
    with pytest.raises(DataError, match="column 'code' holds int64, not texts"):
        load_table(tmp_path / name, text_column="code", label_column="tags")
    (tmp_path / name).write_bytes((tmp_path / name).read_bytes()[:60])
    with pytest.raises(DataError, match="cannot be read as"):
        load_table(tmp_path / name, **NAMED)


def test_without_pyarrow_the_error_says_what_to_install(tmp_path, monkeypatch):
    (tmp_path / "a.parquet").write_bytes(b"PAR1")
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(ImportError, match=r"pip install 'ramify\[arrow\]'"):
        load_table(tmp_path / "a.parquet")


# --- training without all texts in memory -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    "vectorizer",
    [
        None,
        TextVectorizer(ngram_range=(1, 2), min_df=2),
        TextVectorizer(vocabulary=["w1", "w2", "w3"]),
        TextVectorizer(token_pattern=r"w\d+"),
        HashingTextVectorizer(n_features=64),
        StreamTextVectorizer(),
        UnionTextVectorizer([TextVectorizer(), TextVectorizer(analyzer="char")]),
    ],
    ids=lambda vectorizer: type(vectorizer).__name__,
)
def test_a_model_trained_from_a_file_equals_one_trained_from_lists(tmp_path, monkeypatch, vectorizer):
    monkeypatch.setattr("ramify.data.text_file.TextFile.chunks", _in_chunks_of_seven())
    texts = [f"w{i % 7} w{i % 5} w{i % 3}" for i in range(60)]
    pd.DataFrame({"text": texts, "labels": [f"l{i % 7};m" for i in range(60)]}).to_csv(tmp_path / "a.csv", index=False)
    file = read_texts(tmp_path / "a.csv")
    streamed = PLTClassifier(vectorizer=vectorizer, random_state=0).fit(file.texts, file.labels)
    listed = PLTClassifier(vectorizer=vectorizer, random_state=0).fit(*load_table(tmp_path / "a.csv"))
    assert streamed.classes_.tolist() == listed.classes_.tolist()
    assert (streamed.predict_proba(texts, top_k=3) != listed.predict_proba(texts, top_k=3)).nnz == 0
    assert (streamed.predict_proba(file.texts, top_k=3) != listed.predict_proba(texts, top_k=3)).nnz == 0


def _in_chunks_of_seven():
    from ramify.data.text_file import TextFile

    whole = TextFile.chunks
    return lambda self, rows_at_once=7: whole(self, 7)


def test_word_ngrams_of_a_file_are_those_of_a_list(tmp_path, monkeypatch):
    from ramify.data import WordNgramVectorizer

    monkeypatch.setattr("ramify.data.text_file.TextFile.chunks", _in_chunks_of_seven())
    texts = [f"w{i % 7} w{i % 5}" for i in range(40)]
    pd.DataFrame({"text": texts}).to_csv(tmp_path / "a.csv", index=False)
    file = read_texts(tmp_path / "a.csv", labels_required=False)
    of_file, of_list = WordNgramVectorizer(word_ngrams=2), WordNgramVectorizer(word_ngrams=2)
    assert (of_file.fit_transform(file.texts) != of_list.fit_transform(texts)).nnz == 0
    assert of_file.vocabulary_ == of_list.vocabulary_


def test_load_data_takes_tables(tmp_path):
    (tmp_path / "a.csv.gz").write_bytes(gzip.compress(frame().to_csv(index=False).encode()))
    data = load_data(tmp_path / "a.csv.gz", columns=Columns(("title",), ("tags",)))
    assert (data.n_rows, data.label_names) == (3, ["Bein, links", "Übelkeit"])


# --- columns of data frames -------------------------------------------------------------------------------------------


def test_columns_of_pandas_polars_and_pyarrow_are_texts_and_labels():
    pa, pl = pytest.importorskip("pyarrow"), pytest.importorskip("polars")
    texts, labels = ["chest pain", "nosebleed"] * 5, [["a", "b"], ["c"]] * 5
    wanted = PLTClassifier(random_state=0).fit(texts, labels).predict_labels(texts)
    arrow = pd.DataFrame({"t": pd.Series(texts, dtype="string[pyarrow]")})
    arrow["l"] = pd.Series(labels, dtype=pd.ArrowDtype(pa.list_(pa.string())))
    for X, Y in [
        (pd.Series(texts), pd.Series(labels)),
        (arrow["t"], arrow["l"]),
        (pl.Series(texts), pl.Series(labels)),
        (pa.array(texts), pa.array(labels)),
        (pa.table({"t": texts})["t"], pa.chunked_array([labels[:4], labels[4:]])),
        (pl.Series(texts), pl.Series(["a;b", "c"] * 5).str.split(";")),
        (pd.Series(texts), pd.Series(["a;b", "c"] * 5).str.split(";")),
    ]:
        model = PLTClassifier(random_state=0).fit(X, Y)
        assert model.predict_labels(X) == wanted
    classes = PLTClassifier(random_state=0).fit(pl.Series(texts), pl.Series(["a", "c"] * 5))
    assert classes.predict(pa.array(["nosebleed"])).tolist() == ["c"]


def test_the_line_that_tells_a_spreadsheet_its_delimiter_is_no_header(tmp_path):
    for first in ("sep=;\r\n", '"sep=;"\n'):
        (tmp_path / "a.csv").write_text(f"{first}text;labels\nred, green;colour\nbad\n")
        with pytest.raises(DataError, match=r"line 4: the row has 1 field"):
            load_table(tmp_path / "a.csv")
        (tmp_path / "a.csv").write_text(f"{first}text;labels\nred, green;colour\n")
        assert load_table(tmp_path / "a.csv") == (["red, green"], [["colour"]])


def test_rows_of_empty_cells_are_no_rows_to_learn(tmp_path):
    (tmp_path / "a.csv").write_text("text;labels\nred;colour\n;\n;\n")
    assert load_table(tmp_path / "a.csv") == (["red"], [["colour"]])
    assert [row.text for row in iter_table(tmp_path / "a.csv", labels_required=False)] == ["red", "", ""]


def test_lists_tuples_and_sets_as_pandas_writes_them_are_several_labels(tmp_path):
    cells = [["a", "b;c"], ("a", "b;c"), ("a",), {"a"}, set(), (), []]
    pd.DataFrame({"text": ["red"] * len(cells), "labels": cells}).to_csv(tmp_path / "a.csv", index=False)
    found = load_table(tmp_path / "a.csv")[1]
    assert list(map(list, found)) == [["a", "b;c"], ["a", "b;c"], ["a"], ["a"], [], [], []]
    (tmp_path / "a.csv").write_text("text,labels\nred,(7)\nred,{a}\n")
    assert list(map(list, load_table(tmp_path / "a.csv")[1])) == [["(7)"], ["{a}"]]


@pytest.mark.parametrize(
    ("name", "content", "chosen", "said"),
    [
        ("a.csv", "text,tags\na b,\nc d,\n", {"label_column": "tags"}, "column 'tags' has no label in any row"),
        ("a.csv", "title,labels\n,x\n?,y\n", {"text_column": "title"}, "column 'title' has no word in any row"),
        ("a.jsonl", '{"text": "a", "labels": []}\n', {}, "column 'labels' has no label in any row"),
    ],
)
def test_columns_without_labels_or_words_are_named_with_their_file(tmp_path, name, content, chosen, said):
    (tmp_path / name).write_text(content)
    rows = read_texts(tmp_path / name, **chosen)
    with pytest.raises(DataError, match=rf"{name}: {said}\nhint: .*column"):
        PLTClassifier().fit(rows.texts, rows.labels)


def test_what_is_no_file_to_read_twice_is_refused_at_once(tmp_path):
    os.mkfifo(tmp_path / "pipe.csv")
    for read in (read_texts, load_data):
        with pytest.raises(DataError, match=r"pipe.csv: this is a pipe or a device.*\nhint: copy it to a file"):
            read(tmp_path / "pipe.csv")
        with pytest.raises(TypeError, match="given by its name, got a DataFrame; tables in memory go to fit"):
            read(frame())
    with pytest.raises(ValueError, match="columns are chosen by name: give one or a list of names, got 0"):
        read_texts(tmp_path / "a.csv", text_column=0)
