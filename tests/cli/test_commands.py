"""What each command answers, in process: the numbers are those of the library, the files are whole."""

from __future__ import annotations

import gzip
import io
import json
import sys

import numpy as np
import pytest

import ramify
from cli_workspace import N_FEATURES, N_LABELS, N_TEST, NAMES, NOTES, fresh_copy
from ramify import metrics
from ramify.cli.main import run
from ramify.data import load_data, load_npz
from ramify.trees.label_tree import LabelTree


@pytest.fixture(autouse=True)
def in_workspace(tmp_path, monkeypatch):
    monkeypatch.chdir(fresh_copy(tmp_path))


@pytest.fixture
def answer(capsys):
    """Run a command that must succeed, and its stdout."""

    def ask(*arguments):
        capsys.readouterr()
        code = run([str(argument) for argument in arguments])
        captured = capsys.readouterr()
        assert code == 0, captured.err
        return captured.out

    return ask


def test_train_says_what_it_did_in_one_line(answer):
    said = answer("train", "train.txt", "--model", "new", "--arity", 4, "--max-leaf", 8)
    assert said.startswith(f"Trained 300 rows x {N_LABELS} labels in ")
    assert "(tree " in said
    assert " blocks, depth " in said
    assert "Saved to new/ (" in said
    assert said.count("\n") == 1


def test_training_twice_with_one_seed_gives_the_same_answers_whatever_the_threads(answer):
    answer("train", "train.txt", "--model", "one", "--threads", 1)
    answer("train", "train.txt", "--model", "two", "--threads", 2)
    test = load_data("test.txt").X
    one, two = (ramify.load(name).predict_proba(test, top_k=5) for name in ("one", "two"))
    assert (one != two).nnz == 0


def test_a_model_does_not_remember_the_threads_of_the_machine_it_was_trained_on(answer):
    answer("train", "train.txt", "--model", "new", "--threads", 2)
    assert ramify.load("new").n_jobs is None


def test_train_with_test_data_reports_as_evaluate_does(answer):
    facts = json.loads(answer("train", "train.txt", "--model", "new", "--test", "test.txt", "--json"))
    assert facts["test"] == json.loads(answer("evaluate", "test.txt", "--model", "new", "--json"))
    assert (facts["rows"], facts["labels"], facts["features"]) == (300, N_LABELS, N_FEATURES)


@pytest.mark.parametrize(
    ("options", "parameters"),
    [
        (["--tree", "huffman"], {"tree": "huffman"}),
        (["--n-trees", "2"], {"n_trees": 2}),
        (["--loss", "logistic", "--C", "1"], {"solver__loss": "logistic", "solver__C": 1.0}),
        (["--hash-bits", "14"], {"hash_bits": 14}),
        (["--prune", "0", "--seed", "7"], {"solver__prune": 0.0, "random_state": 7}),
    ],
)
def test_options_of_train_reach_the_classifier(answer, options, parameters):
    answer("train", "train.txt", "--model", "new", *options)
    assert parameters.items() <= ramify.load("new").get_params().items()


def test_features_named_at_training_are_known_by_name_later(answer, tmp_path):
    (tmp_path / "features.txt").write_text("".join(f"word{i}\n" for i in range(N_FEATURES)))
    answer("train", "train.txt", "--model", "new", "--feature-names", "features.txt")
    model = ramify.load("new")
    assert model.predict_one({"word1": 1.0}) == model.predict_one({1: 1.0})
    assert "word" in answer("explain", "test.txt", "--model", "new")


def test_a_tree_written_by_the_tree_command_is_the_tree_of_a_new_model(answer):
    answer("tree", "--model", "model", "--out", "tree.txt")
    answer("train", "train.txt", "--model", "new", "--tree", "tree.txt")
    assert ramify.load("new").tree_ == LabelTree.load("tree.txt") == ramify.load("model").tree_


def test_multiclass_training_gives_probabilities_that_sum_to_one(answer, tmp_path):
    rows = [f"{k % 5} {k % 5}:1 {5 + k % 3}:0.5" for k in range(60)]
    (tmp_path / "classes.txt").write_text("\n".join(["60 8 5", *rows]) + "\n")
    answer("train", "classes.txt", "--model", "new", "--multiclass", "--max-leaf", 2, "--arity", 2)
    lines = answer("predict", "classes.txt", "--model", "new", "--top-k", 5, "--json").splitlines()
    sums = [sum(found["probability"] for found in json.loads(line)["labels"]) for line in lines]
    assert np.allclose(sums, 1, atol=1e-4)
    assert json.loads(answer("evaluate", "classes.txt", "--model", "new", "--json"))["accuracy"] == 1.0


def test_one_label_in_each_row_brings_a_hint_about_multiclass(capsys, tmp_path):
    (tmp_path / "classes.txt").write_text("4 2 2\n0 0:1\n1 1:1\n0 0:2\n1 1:2\n")
    assert run(["train", "classes.txt", "--model", "new"]) == 0
    assert "--multiclass" in capsys.readouterr().err


@pytest.mark.parametrize("vectorizer", [["--vectorizer", "hashing"], ["--ngrams", "2"]])
def test_texts_are_vectorised_as_asked_and_explained_in_words(answer, vectorizer):
    answer("train", "notes.jsonl", "--model", "new", *vectorizer)
    (explained,) = json.loads(answer("explain", "--model", "new", "--text", "chest pain", "--label", "R07.9", "--json"))
    features = {c["feature"] for step in explained["paths"][0] for c in step["contributions"]}
    assert "chest" in features
    assert ("chest pain" in features) == ("--ngrams" in vectorizer)


# --- predict ---


def test_predict_names_the_labels_that_the_library_names(answer):
    model, test = ramify.load("model"), load_data("test.txt")
    expected = model.predict_labels(test.X, top_k=3)
    lines = [
        json.loads(line) for line in answer("predict", "test.txt", "--model", "model", "-k", 3, "--json").splitlines()
    ]
    assert [line["row"] for line in lines] == list(range(1, N_TEST + 1))
    for line, pairs in zip(lines, expected, strict=True):
        assert [(found["label"], found["probability"]) for found in line["labels"]] == pairs
        assert all(found["name"] == f"topic {found['label']}" for found in line["labels"])


def test_a_file_is_answered_the_same_in_chunks(answer, monkeypatch):
    whole = answer("predict", "test.txt", "--model", "model", "--json")
    monkeypatch.setattr("ramify.cli.rows.CHUNK", 7)
    assert answer("predict", "test.txt", "--model", "model", "--json") == whole


@pytest.mark.parametrize("suffix", ["npz", "svm", "txt.gz"])
def test_every_format_gives_the_same_answers(answer, suffix):
    answer("convert", "test.txt", f"other.{suffix}")
    expected = answer("predict", "test.txt", "--model", "model", "--json")
    assert answer("predict", f"other.{suffix}", "--model", "model", "--json") == expected


def test_texts_come_from_options_files_and_stdin_alike(answer, monkeypatch):
    from_file = answer("predict", "texts.txt", "--model", "notes-model", "--json")
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"pain in the chest\nnosebleed")))
    assert answer("predict", "--model", "notes-model", "--json") == from_file
    asked = ["--text", "pain in the chest", "--text", "nosebleed"]
    assert answer("predict", "--model", "notes-model", *asked, "--json") == from_file
    assert json.loads(from_file.splitlines()[1])["labels"][0]["label"] == "R04.0"


def test_predict_reads_texts_without_labels(answer, tmp_path):
    (tmp_path / "asked.jsonl").write_text('{"text": "nosebleed"}\n')
    assert "R04.0  Epistaxis" in answer("predict", "asked.jsonl", "--model", "notes-model")


def test_threshold_alone_gives_all_labels_above_it_and_top_k_limits_them(answer):
    model, test = ramify.load("model"), load_data("test.txt")
    rows = answer("predict", "test.txt", "--model", "model", "--threshold", 0.2, "--output", "tsv").splitlines()
    assert rows[0] == "row\tlabel\tprobability\tname"
    assert len(rows) - 1 == model.predict_proba(test.X, threshold=0.2).nnz
    limited = answer("predict", "test.txt", "--model", "model", "--threshold", 0.2, "-k", 1, "--output", "tsv")
    assert len(limited.splitlines()) - 1 == model.predict_proba(test.X, threshold=0.2, top_k=1).nnz


def test_predict_writes_a_file_that_equals_its_output(answer, tmp_path):
    expected = answer("predict", "test.txt", "--model", "model", "--json")
    assert answer("predict", "test.txt", "--model", "model", "--json", "--out", "answers.jsonl.gz") == ""
    assert gzip.decompress((tmp_path / "answers.jsonl.gz").read_bytes()).decode() == expected


def test_long_names_are_cut_to_the_terminal_and_rows_without_labels_say_so(answer, monkeypatch):
    monkeypatch.setenv("COLUMNS", "24")
    said = answer("predict", "--model", "notes-model", "--text", "acute chest pain")
    assert max(map(len, said.splitlines()[1:])) == 24
    assert "…" in said
    assert "no label" in answer("predict", "--model", "notes-model", "--text", "pain", "--threshold", 1.0)


# --- evaluate ---


def test_evaluate_gives_the_metrics_of_the_library(answer):
    model, test, train = ramify.load("model"), load_data("test.txt"), load_data("train.txt")
    P = model.predict_proba(test.X, top_k=100)
    arguments = ["evaluate", "test.txt", "--model", "model", "--train", "train.txt", "--k", "1,2", "--json"]
    report = json.loads(answer(*arguments))
    expected = metrics.evaluate(test.Y, P, ks=[1, 2], propensity=metrics.propensities(train.Y))
    for name, value in expected.items():
        assert report[name] == pytest.approx(value, rel=1e-12), name
    decided = model.predict(test.X)
    assert report["macro_f1_empty_0"] == pytest.approx(metrics.macro_f1(test.Y, decided, empty=0.0))
    assert report["macro_f1_empty_1"] == pytest.approx(metrics.macro_f1(test.Y, decided, empty=1.0))


def test_evaluate_prints_a_table_with_every_metric(answer):
    said = answer("evaluate", "test.txt", "--model", "model", "--train", "train.txt")
    for word in ("@1", "@5", "P ", "R ", "nDCG", "PSP", "log loss", "Brier", "ECE", "macro F"):
        assert word in said


def test_labels_unknown_to_the_model_count_as_never_found(answer, tmp_path):
    lines = ['{"text": "nosebleed", "labels": ["R04.0"]}', '{"text": "nosebleed", "labels": ["R04.0", "Z99", "Z98"]}']
    (tmp_path / "strange.jsonl").write_text("\n".join(lines))
    report = json.loads(answer("evaluate", "strange.jsonl", "--model", "notes-model", "--json"))
    assert report["unknown_labels"] == 2
    assert report["R@5"] == pytest.approx((1 + 1 / 3) / 2)
    assert "2 labels unknown to the model" in answer("evaluate", "strange.jsonl", "--model", "notes-model")


# --- explain, tree, convert, plot ---


def test_explain_shows_path_probabilities_and_words(answer):
    said = answer("explain", "--model", "notes-model", "--text", "acute chest pain", "--label", "R07.9")
    assert "R07.9" in said
    assert NAMES["R07.9"] in said
    assert "acute" in said.replace("\u00a0", " ")
    (explained,) = json.loads(
        answer("explain", "--model", "notes-model", "--text", "acute chest pain", "--label", "R07.9", "--json")
    )
    steps = explained["paths"][0]
    assert np.prod([step["probability"] for step in steps]) == pytest.approx(explained["probability"], rel=1e-5)


def test_explain_takes_a_row_of_a_file_and_its_best_labels(answer):
    expected = ramify.load("model").predict_labels(load_data("test.txt").X[[2]], top_k=2)[0]
    arguments = ["explain", "test.txt", "--model", "model", "--row", 3, "--top-k", 2, "--json"]
    explained = json.loads(answer(*arguments))
    assert [(e["label"], pytest.approx(e["probability"])) for e in explained] == expected


def test_tree_shows_shape_and_names(answer):
    said = answer("tree", "--model", "notes-model", "--depth", 9)
    assert said.startswith("6 labels below ")
    assert all(f"{label} {name}" in said for label, name in NAMES.items())
    facts = json.loads(answer("tree", "--model", "model", "--json"))
    assert facts["labels"] == N_LABELS
    assert sum(facts["nodes_per_depth"]) == ramify.load("model").tree_.n_nodes


def test_convert_keeps_every_number_and_name(answer, tmp_path):
    answer("convert", "train.txt", "train.npz")
    answer("convert", "train.npz", "train.svm.gz")
    answer("convert", "train.svm.gz", "again.xmc")
    assert "libsvm" in answer("convert", "train.txt", "x", "--to", "libsvm", "--json")
    first, second = load_data("train.txt"), load_data("again.xmc")
    width = second.X.shape[1]  # libsvm does not tell of features and labels behind the last one used
    assert (first.X[:, :width] != second.X).nnz == 0
    assert (first.Y[:, : second.Y.shape[1]] != second.Y).nnz == 0


def test_convert_vectorises_texts_and_writes_names_beside(answer, tmp_path):
    answer("convert", "notes.jsonl", "notes.xmc")
    labels = (tmp_path / "notes.xmc.labels.txt").read_text().splitlines()
    data = load_data("notes.xmc", label_names="notes.xmc.labels.txt", feature_names="notes.xmc.features.txt")
    assert labels == data.label_names
    assert set(labels) == set(NAMES)


def test_convert_with_a_model_numbers_words_and_labels_as_the_model_does(answer):
    answer("convert", "notes.jsonl", "notes.npz", "--model", "notes-model")
    model, data = ramify.load("notes-model"), load_npz("notes.npz")
    assert data.label_names == model.classes_.tolist()
    texts = [text for text, _ in NOTES]
    assert (model.vectorizer_.transform(texts) != data.X).nnz == 0


@pytest.mark.parametrize(
    "arguments",
    [
        ["plot", "frequency", "train.txt"],
        ["plot", "frequency", "notes.jsonl"],
        ["plot", "reliability", "test.txt", "--model", "model"],
        ["plot", "tree", "--model", "model"],
    ],
)
@pytest.mark.parametrize("name", ["picture.png", "picture.svg"])
def test_plot_writes_a_picture_and_nothing_else(answer, arguments, name, tmp_path):
    before = set(tmp_path.iterdir())
    answer(*arguments, "--out", name)
    assert set(tmp_path.iterdir()) - before == {tmp_path / name}
    assert (tmp_path / name).read_bytes()[:5] in (b"\x89PNG\r", b"<?xml")


def test_a_tree_gets_its_own_options(tmp_path, capsys):
    arguments = ["train", "train.txt", "--model", "fast", "--tree", "interpolated", "--json"]
    assert run([*arguments, "--tree-option", "lam=2", "--tree-option", "frequency=greedy"]) == 0
    assert ramify.load(tmp_path / "fast").tree_options == {"lam": 2, "frequency": "greedy"}
    capsys.readouterr()
    assert run([*arguments, "--tree-option", "lam"]) == 2
    assert "--tree-option takes NAME=VALUE" in capsys.readouterr().err
    assert run([*arguments, "--tree-option", "depth=3"]) == 2
    assert "has no option 'depth'" in capsys.readouterr().err
