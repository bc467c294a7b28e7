"""`ramify train`: from a data file to a model directory."""

from __future__ import annotations

import time
from enum import Enum
from pathlib import Path
from typing import Annotated, Any

import typer

from ramify.cli import classifiers, online, output, softmax
from ramify.cli.online import Learner, Policy
from ramify.cli.options import (
    AsJson,
    DataFile,
    FormatOption,
    Threads,
    TreeOptions,
    examples,
    n_jobs,
    parse_tree_options,
)

EXAMPLES = examples(
    "ramify train train.txt --model model",
    "ramify train train.txt --model model --test test.txt --tree huffman",
    "ramify train notes.jsonl --model notes-model --label-names codes.tsv",
    "ramify train train.txt --model model --n-trees 3 --max-leaf 100 --threads 2",
    "ramify train train.txt --model model --tree interpolated --tree-option lam=0.5",
    "ramify train train.txt --model model --online --passes 3",
    "ramify train notes.jsonl --model notes-model --classifier tree-softmax --ngrams 2 --storage int8",
    "ramify train train.txt --model model --classifier spectral --set n_candidates=50 --set depth=auto",
    "ramify train train.txt --model model --classifier memory-tree --set alpha=0.5",
)

# What an online learner has no use for, and what only it has.
BATCH_ONLY = ("tree_option", "arity", "max_leaf", "n_trees", "loss", "C", "prune", "hash_bits")
ONLINE_ONLY = ("passes", "shuffle", *(name for name in online.FLAGS if name != "random_state"))


class Loss(str, Enum):
    squared_hinge = "squared_hinge"
    logistic = "logistic"


class Vectorizer(str, Enum):
    tfidf = "tfidf"
    hashing = "hashing"


def train(
    context: typer.Context,
    data: DataFile,
    model: Annotated[Path, typer.Option("--model", "-m", metavar="DIR", help="Where to save.", show_default=False)],
    classifier: classifiers.KindOption = classifiers.Kind.plt,
    parameter: classifiers.Parameters = None,
    tree: Annotated[
        str,
        typer.Option(
            help="kmeans, interpolated, random, complete, huffman, fano, one_level, or a file that "
            "`ramify tree --out` wrote. "
            "With --online: the tree to begin with, none if it is not given; of tree-softmax: huffman."
        ),
    ] = "kmeans",
    tree_option: TreeOptions = None,
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
    vectorizer: Annotated[
        Vectorizer, typer.Option(help="How texts become features; with --online hashing, unless tfidf is asked for.")
    ] = Vectorizer.tfidf,
    ngrams: online.Ngrams = 1,
    test: Annotated[Path | None, typer.Option(metavar="FILE", help="Data to evaluate the model on.")] = None,
    is_online: Annotated[
        bool, typer.Option("--online", help="An online learner, which `ramify stream` can go on with.")
    ] = False,
    passes: Annotated[int, typer.Option(min=1, help="Online: times the rows are gone over.")] = 1,
    shuffle: Annotated[bool, typer.Option(help="Online: take the rows in random order.")] = True,
    policy: online.PolicyOption = Policy.fair,
    b: online.Arity = None,
    b_max: online.PreLeafArity = None,
    alpha: online.Alpha = None,
    fair_share: online.FairShare = None,
    learner: online.LearnerOption = Learner.adagrad,
    learning_rate: online.LearningRate = None,
    eps: online.Eps = None,
    decay: online.Decay = None,
    l2: online.L2 = None,
    memory_budget: online.MemoryBudget = None,
    dim: softmax.Dim = None,
    epochs: softmax.Epochs = None,
    storage: softmax.StorageOption = softmax.Storage.float32,
    hogwild: softmax.Hogwild = False,
    seed: online.Seed = 0,
    threads: Threads = None,
    json: AsJson = False,
) -> None:
    """Train a model on a data file."""
    from ramify.cli.evaluation import evaluate_model, print_report
    from ramify.cli.labelled import read_for, read_labelled
    from ramify.cli.models import check_target, read_names_for, save_without_machine
    from ramify.common import progress
    from ramify.data.load import find_format
    from ramify.models.online_plt.classifier import OnlinePLTClassifier
    from ramify.models.plt.classifier import PLTClassifier

    check_target(model)
    given = online.given_on_command_line(context)
    is_softmax = classifier is classifiers.Kind.tree_softmax
    has_options = classifier in classifiers.WITH_OPTIONS
    if has_options:
        softmax.refuse_options(given, is_softmax=is_softmax, is_online=is_online)
        online.refuse_options(
            given - {"learning_rate"} if is_softmax else given, BATCH_ONLY if is_online else ONLINE_ONLY, is_online
        )
    shared: dict[str, Any] = {"n_jobs": n_jobs(threads), "random_state": seed}
    asked_by = "--multiclass" if multiclass else f"--classifier {classifier.value}"
    trained: Any
    if not has_options:
        unfit = {"tree", "is_online", *BATCH_ONLY, *ONLINE_ONLY, *softmax.OWN} & given
        trained = classifiers.new_classifier(
            classifier,
            parameter,
            {name: context.params[name] for name in unfit},
            vectorizer=_vectorizer(vectorizer, ngrams),
            **shared,
        )
        if hasattr(trained, "partial_fit"):
            trained.set_params(vectorizer=_online_vectorizer(vectorizer, ngrams, given))
        multiclass = multiclass or classifiers.learns_one_class(trained)
    elif parameter:
        raise ValueError(
            f"--set is not for --classifier {classifier.value}, whose parameters have options of their own"
        )
    elif is_softmax:
        trained = softmax.tree_softmax(
            given,
            tree=_tree(tree),
            arity=arity,
            max_leaf=max_leaf,
            tree_options=parse_tree_options(tree_option),
            dim=dim,
            epochs=epochs,
            learning_rate=learning_rate,
            storage=storage,
            hogwild=hogwild,
            word_ngrams=ngrams,
            vectorizer=_given_vectorizer(vectorizer, ngrams) if "vectorizer" in given else None,
            **shared,
        )
    elif is_online:
        trained = OnlinePLTClassifier(
            tree=_tree(tree) if "tree" in given else None,
            passes=passes,
            shuffle=shuffle,
            vectorizer=_online_vectorizer(vectorizer, ngrams, given),
            **shared,
            **online.settings(context),
        )
    else:
        trained = PLTClassifier(
            tree=_tree(tree),
            arity=arity,
            max_leaf=max_leaf,
            tree_options=parse_tree_options(tree_option),
            n_trees=n_trees,
            loss=loss.value,
            C=C,
            prune=prune,
            hash_bits=hash_bits,
            vectorizer=_vectorizer(vectorizer, ngrams),
            **shared,
        )
    trained._check_parameters()  # before a large file is read
    if test is not None:
        find_format(test)  # refuses a file that is not there
    with progress.shown(output.is_watched()) as phases:
        with progress.phase(f"reading {data.name}"):
            rows = read_labelled(data, format, threads=n_jobs(threads))
        names = read_names_for(rows, label_names, feature_names)
        start = time.perf_counter()
        trained.fit(rows.X, rows.classes(asked_by) if multiclass else rows.Y)
        took = time.perf_counter() - start
        names.give_to(trained)
        if hasattr(type(trained), "source_format_"):
            trained.source_format_ = _source_format(rows)
        with progress.phase("saving"):
            save_without_machine(trained, model)
        report: dict[str, Any] | None = None
        if test is not None:
            with progress.phase(f"evaluating on {test.name}"):
                held_out = read_for(trained, test, format)
                report = evaluate_model(trained, held_out, ks=[1, 3, 5])
    facts = training_facts(trained, rows.n_rows, took, phases.seconds.get("building the tree", 0.0), model)
    if json:
        output.print_json(facts | ({} if report is None else {"test": report}))
        return
    print(in_words(facts))
    if report is not None:
        print_report(report)
    if not multiclass and rows.has_one_label_each:
        output.print_hint("each row has exactly one label; with --multiclass their probabilities sum to one")


def training_facts(classifier: Any, n_rows: int, took: float, tree_took: float, path: Path) -> dict[str, Any]:
    from ramify.cli.models import trees_of

    trees = trees_of(classifier) if hasattr(classifier, "tree_") else []
    if trees:
        fitted = [name for name in ("C", "positive_weight") if hasattr(classifier, f"{name}_")]
        told = {
            "tree_seconds": round(tree_took, 3),
            "trees": len(trees),
            "blocks": sum(int((tree.n_children > 0).sum()) for tree in trees),
            **{name: getattr(classifier, f"{name}_") for name in fitted},
            "depth": max(tree.height for tree in trees),
        }
    else:
        told = classifiers.facts_of(classifier)
    return {
        "rows": n_rows,
        "features": classifier.n_features_in_,
        "labels": classifier.n_labels_,
        "seconds": round(took, 3),
        **told,
        "model": str(path),
        "bytes": output.directory_size(path),
    }


def in_words(facts: dict[str, Any]) -> str:
    told = []
    if facts.get("tree_seconds") and "trees" in facts:
        trees = "tree" if facts["trees"] == 1 else f"{facts['trees']} trees"
        told.append(f"{trees} {output.seconds(facts['tree_seconds'])}")
    if "blocks" in facts:
        told += [output.count(facts["blocks"], "block"), f"depth {facts['depth']}"]
    elif "nodes" in facts:
        told += [output.count(facts["nodes"], "node"), f"depth {facts['depth']}"]
    elif "n_examples" in facts:
        told.append(f"{output.count(facts['n_examples'], 'example')} stored")
    details = f" ({', '.join(told)})" if told else ""
    trained = (
        f"Trained {output.count(facts['rows'], 'row')} x {output.count(facts['labels'], 'label')} "
        f"in {output.seconds(facts['seconds'])}{details}. "
        f"Saved to {facts['model']}/ ({output.size_in_words(facts['bytes'])})."
    )
    return f"{trained}\n{classifiers.filter_words(facts)}" if "leaves" in facts else trained


def _tree(given: str) -> Any:
    from ramify.trees.label_tree import LabelTree
    from ramify.trees.resolving import BUILDERS

    if given in BUILDERS:
        return given
    if Path(given).is_file():
        return LabelTree.load(given)
    raise ValueError(f"--tree must be a file or one of {', '.join(BUILDERS)}; got {given!r}")


def _source_format(rows: Any) -> str | None:
    """How the rows are written, for a stream that goes on with them; an npz file could be any."""
    from ramify.data import DataError, load_libsvm

    if rows.format == "libsvm":
        try:
            load_libsvm(rows.path, zero_based=False)
        except DataError:
            return "libsvm-zero-based"
    return None if rows.format == "npz" else str(rows.format)


def _online_vectorizer(kind: Vectorizer, ngrams: int, given: set[str]) -> Any:
    """For a classifier that learns on: words are hashed, so that new ones can come, unless somebody asks otherwise."""
    from ramify.data.text import default_vectorizer

    if kind is Vectorizer.hashing or "vectorizer" not in given:
        return online.stream_vectorizer(ngrams)
    return default_vectorizer().set_params(ngram_range=(1, ngrams))


def _given_vectorizer(kind: Vectorizer, ngrams: int) -> Any:
    """The same for a classifier whose own default is another."""
    from ramify.data.text import default_vectorizer

    return _vectorizer(kind, ngrams) or default_vectorizer()


def _vectorizer(kind: Vectorizer, ngrams: int) -> Any:
    from ramify.data.text import default_vectorizer

    if kind is Vectorizer.tfidf:
        return None if ngrams == 1 else default_vectorizer().set_params(ngram_range=(1, ngrams))
    from sklearn.feature_extraction.text import HashingVectorizer

    pattern = default_vectorizer().token_pattern
    return HashingVectorizer(token_pattern=pattern, ngram_range=(1, ngrams), alternate_sign=False)
