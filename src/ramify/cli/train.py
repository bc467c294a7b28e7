"""`ramify train`: from a data file to a model directory."""

from __future__ import annotations

import time
from enum import Enum
from pathlib import Path
from typing import Annotated, Any

import typer

from ramify.cli import output
from ramify.cli.options import AsJson, DataFile, FormatOption, Threads, examples, n_jobs

EXAMPLES = examples(
    "ramify train train.txt --model model",
    "ramify train train.txt --model model --test test.txt --tree huffman",
    "ramify train notes.jsonl --model notes-model --label-names codes.tsv",
    "ramify train train.txt --model model --n-trees 3 --max-leaf 100 --threads 2",
)


class Loss(str, Enum):
    squared_hinge = "squared_hinge"
    logistic = "logistic"


class Vectorizer(str, Enum):
    tfidf = "tfidf"
    hashing = "hashing"


def train(
    data: DataFile,
    model: Annotated[Path, typer.Option("--model", "-m", metavar="DIR", help="Where to save.", show_default=False)],
    tree: Annotated[
        str,
        typer.Option(
            help="kmeans, random, complete, huffman, fano, one_level, or a file that `ramify tree --out` wrote."
        ),
    ] = "kmeans",
    arity: Annotated[int, typer.Option(help="Children of an inner node.")] = 32,
    max_leaf: Annotated[int, typer.Option(help="Most labels below a node whose children are leaves.")] = 200,
    n_trees: Annotated[int, typer.Option(help="Trees in the ensemble.")] = 1,
    loss: Annotated[Loss, typer.Option(help="Loss of the nodes' classifiers.")] = Loss.squared_hinge,
    C: Annotated[float | None, typer.Option("--C", help="Cost of errors; by default chosen on held-out rows.")] = None,
    prune: Annotated[float, typer.Option(help="Weights of at most this size are dropped.")] = 0.1,
    hash_bits: Annotated[
        int | None, typer.Option(help="Hash all weights into 2^bits slots: memory is bounded whatever the data.")
    ] = None,
    multiclass: Annotated[
        bool, typer.Option("--multiclass", help="Each row has exactly one label: probabilities sum to one.")
    ] = False,
    format: FormatOption = None,
    label_names: Annotated[
        Path | None, typer.Option(metavar="FILE", help="A name a line in column order, or label<tab>name.")
    ] = None,
    feature_names: Annotated[
        Path | None, typer.Option(metavar="FILE", help="A name a line in column order; texts need none.")
    ] = None,
    vectorizer: Annotated[Vectorizer, typer.Option(help="How texts become features.")] = Vectorizer.tfidf,
    ngrams: Annotated[int, typer.Option(min=1, max=5, help="Longest run of words that is a feature.")] = 1,
    test: Annotated[Path | None, typer.Option(metavar="FILE", help="Data to evaluate the model on.")] = None,
    seed: Annotated[int, typer.Option(min=0, max=2**32 - 1, help="The same seed gives the same model.")] = 0,
    threads: Threads = None,
    json: AsJson = False,
) -> None:
    """Train a model on a data file."""
    from ramify import progress
    from ramify.cli.evaluation import evaluate_model, print_report
    from ramify.cli.labelled import read_for, read_labelled
    from ramify.cli.models import check_target, read_names_for, save_without_machine
    from ramify.data.load import find_format
    from ramify.models.plt import PLTClassifier

    check_target(model)
    classifier = PLTClassifier(
        tree=_tree(tree),
        arity=arity,
        max_leaf=max_leaf,
        n_trees=n_trees,
        loss=loss.value,
        C=C,
        prune=prune,
        hash_bits=hash_bits,
        vectorizer=_vectorizer(vectorizer, ngrams),
        n_jobs=n_jobs(threads),
        random_state=seed,
    )
    classifier._check_parameters()  # before a large file is read
    if test is not None:
        find_format(test)  # refuses a file that is not there
    with progress.shown(output.is_watched()) as phases:
        with progress.phase(f"reading {data.name}"):
            rows = read_labelled(data, format, threads=n_jobs(threads))
        names = read_names_for(rows, label_names, feature_names)
        start = time.perf_counter()
        classifier.fit(rows.X, rows.classes() if multiclass else rows.Y)
        took = time.perf_counter() - start
        names.give_to(classifier)
        with progress.phase("saving"):
            save_without_machine(classifier, model)
        report: dict[str, Any] | None = None
        if test is not None:
            with progress.phase(f"evaluating on {test.name}"):
                held_out = read_for(classifier, test, format)
                report = evaluate_model(classifier, held_out, ks=[1, 3, 5])
    facts = training_facts(classifier, rows.n_rows, took, phases.seconds.get("building the tree", 0.0), model)
    if json:
        output.print_json(facts | ({} if report is None else {"test": report}))
        return
    print(in_words(facts))
    if report is not None:
        print_report(report)
    if not multiclass and rows.has_one_label_each:
        output.print_hint("each row has exactly one label; with --multiclass their probabilities sum to one")


def training_facts(classifier: Any, n_rows: int, took: float, tree_took: float, path: Path) -> dict[str, Any]:
    trees = [trained.tree for trained in classifier.trees_]
    return {
        "rows": n_rows,
        "features": classifier.n_features_in_,
        "labels": classifier.n_labels_,
        "seconds": round(took, 3),
        "tree_seconds": round(tree_took, 3),
        "trees": len(trees),
        "blocks": sum(int((tree.n_children > 0).sum()) for tree in trees),
        "C": classifier.C_,
        "positive_weight": classifier.positive_weight_,
        "depth": max(tree.height for tree in trees),
        "model": str(path),
        "bytes": output.directory_size(path),
    }


def in_words(facts: dict[str, Any]) -> str:
    trees = "tree" if facts["trees"] == 1 else f"{facts['trees']} trees"
    return (
        f"Trained {output.count(facts['rows'], 'row')} x {output.count(facts['labels'], 'label')} "
        f"in {output.seconds(facts['seconds'])} ({trees} {output.seconds(facts['tree_seconds'])}, "
        f"{output.count(facts['blocks'], 'block')}, depth {facts['depth']}). "
        f"Saved to {facts['model']}/ ({output.size_in_words(facts['bytes'])})."
    )


def _tree(given: str) -> Any:
    from ramify.trees.label_tree import LabelTree
    from ramify.trees.resolving import BUILDERS

    if given in BUILDERS:
        return given
    if Path(given).is_file():
        return LabelTree.load(given)
    raise ValueError(f"--tree must be a file or one of {', '.join(BUILDERS)}; got {given!r}")


def _vectorizer(kind: Vectorizer, ngrams: int) -> Any:
    from ramify.data.text import default_vectorizer

    if kind is Vectorizer.tfidf:
        return None if ngrams == 1 else default_vectorizer().set_params(ngram_range=(1, ngrams))
    from sklearn.feature_extraction.text import HashingVectorizer

    pattern = default_vectorizer().token_pattern
    return HashingVectorizer(token_pattern=pattern, ngram_range=(1, ngrams), alternate_sign=False)
