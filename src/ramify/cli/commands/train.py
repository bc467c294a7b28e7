"""`ramify train`: from a data file to a model directory."""

from __future__ import annotations

import time
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ramify import registry
from ramify.cli import options, output
from ramify.cli.options import AsJson, DataFiles, FormatOption, Threads, examples, n_jobs

if TYPE_CHECKING:
    from ramify.cli.data import LabelledRows

EXAMPLES = examples(
    "ramify train train.txt --model model",
    "ramify train train.txt --model model --test test.txt --tree huffman",
    "ramify train notes.jsonl --model notes-model --label-names codes.tsv",
    "ramify train train.txt --model model --n-trees 3 --max-leaf 100 --threads 2",
    "ramify train train.txt --model model --tree interpolated --tree-option lam=0.5",
    "ramify train train.txt --model model --online --n-epochs 3",
    "ramify train notes.jsonl --model notes-model --classifier tree-softmax --ngrams 2 --storage int8",
    "ramify train train.txt --model model --classifier spectral --set n_candidates=50 --set depth=auto",
    "ramify train train.txt --model model --classifier memory-tree --set alpha=0.5",
    "ramify train shards/*.jsonl --model model --cluster auto --checkpoint run",
)

# Parameters of `train` that do not belong to the classifier.
_NOT_OF_CLASSIFIER = {
    "data", "journal", "model", "classifier", "settings", "is_online", "multiclass", "format", "label_names",
    "feature_names", "test", "seed", "threads", "json", "cluster", "checkpoint",
}  # fmt: skip

Kind = Enum("Kind", {name.replace("-", "_"): name for name in registry.summaries()}, type=str)  # type: ignore[misc]
PLT = Kind("plt")


class Loss(str, Enum):
    squared_hinge = "squared_hinge"
    logistic = "logistic"


class Vectorizer(str, Enum):
    tfidf = "tfidf"
    hashing = "hashing"


class Storage(str, Enum):
    float32 = "float32"
    int8 = "int8"


def train(
    context: typer.Context,
    data: DataFiles,
    model: Annotated[
        Path, typer.Option("--model", "-m", metavar="DIR", help="Directory to save to.", show_default=False)
    ],
    journal: Annotated[
        bool, typer.Option("--journal", help="DATA is a directory of `ramify serve`: learn what it was taught.")
    ] = False,
    classifier: Annotated[
        Kind,
        typer.Option(
            "--classifier",
            metavar="NAME",
            help="; ".join(f"{name}: {summary}" for name, summary in registry.summaries().items()) + ".",
        ),
    ] = PLT,
    settings: Annotated[
        list[str] | None,
        typer.Option(
            "--set", metavar="NAME=VALUE", help="A parameter of the classifier, such as n_candidates=50; repeatable."
        ),
    ] = None,
    is_online: Annotated[
        bool, typer.Option("--online", help="Same as --classifier online-plt: `ramify stream` can continue the model.")
    ] = False,
    tree: Annotated[
        str | None,
        typer.Option(
            help="kmeans (default of plt), huffman (of tree-softmax), interpolated, random, complete, fano, one_level, "
            "or a file that `ramify tree --out` wrote. Online: the initial tree, none by default."
        ),
    ] = None,
    tree_option: Annotated[
        list[str] | None,
        typer.Option("--tree-option", metavar="NAME=VALUE", help="An option of the tree's builder; repeatable."),
    ] = None,
    arity: options.Arity = None,
    max_leaf: options.MaxLeaf = None,
    n_trees: Annotated[int | None, typer.Option(help="Trees in the ensemble.")] = None,
    loss: Annotated[Loss | None, typer.Option(help="Loss of the nodes' classifiers.")] = None,
    C: Annotated[float | None, typer.Option("--C", help="Cost of errors; plt chooses it on held-out rows.")] = None,
    prune: Annotated[float | None, typer.Option(help="Drop weights of at most this size.")] = None,
    hash_bits: Annotated[
        int | None, typer.Option(help="Hash all weights into 2^bits slots, which bounds the memory.")
    ] = None,
    slack: Annotated[
        float | None, typer.Option(help="Probability that a search may miss: 0 is exact, more is faster.")
    ] = None,
    n_epochs: Annotated[int | None, typer.Option(min=1, help="Passes over the rows.")] = None,
    shuffle: Annotated[bool | None, typer.Option("--shuffle/--no-shuffle", help="Order of the rows.")] = None,
    policy: options.PolicyOption = None,
    alpha: options.Alpha = None,
    fair_share: options.FairShare = None,
    optimizer: options.OptimizerOption = None,
    learning_rate: options.LearningRate = None,
    eps: options.Eps = None,
    decay: options.Decay = None,
    l2: options.L2 = None,
    memory_budget: options.MemoryBudget = None,
    dim: Annotated[int | None, typer.Option("--dim", help="tree-softmax: size of an embedding.")] = None,
    storage: Annotated[
        Storage | None, typer.Option(help="tree-softmax: int8 makes the model four times smaller.")
    ] = None,
    hogwild: Annotated[
        bool, typer.Option("--hogwild", help="tree-softmax: threads learn without waiting for each other.")
    ] = False,
    multiclass: options.Multiclass = False,
    format: FormatOption = None,
    label_names: Annotated[
        Path | None, typer.Option(metavar="FILE", help="One name per line in column order, or label<tab>name.")
    ] = None,
    feature_names: Annotated[
        Path | None, typer.Option(metavar="FILE", help="One name per line in column order; not for texts.")
    ] = None,
    vectorizer: Annotated[
        Vectorizer | None, typer.Option(help="Texts: tfidf by default; hashing bounds the memory of a stream.")
    ] = None,
    ngrams: options.Ngrams = 1,
    test: Annotated[Path | None, typer.Option(metavar="FILE", help="Data to evaluate the model on.")] = None,
    cluster: options.Cluster = None,
    checkpoint: Annotated[
        Path | None,
        typer.Option("--checkpoint", metavar="DIR", help="--cluster: keep finished parts here; a failed run goes on."),
    ] = None,
    seed: options.Seed = 0,
    threads: Threads = None,
    json: AsJson = False,
) -> None:
    """Train a model on a data file, or with --cluster on many.

    A flag that is left out keeps the classifier's default; one that the classifier does not have is refused.
    """
    from ramify.cli.classifiers import new_classifier, online_name
    from ramify.cli.data import read_for, read_journal, read_labelled, read_names_for
    from ramify.cli.evaluation import evaluate_model, print_report
    from ramify.cli.models import check_target, learns_one_class, save_portable, training_facts, training_in_words
    from ramify.common import progress
    from ramify.data.load import find_format

    check_target(model)
    name = online_name(classifier.value) if is_online else classifier.value
    flags = {given: v for given, v in options.given_flags(context).items() if given not in _NOT_OF_CLASSIFIER}
    trained = new_classifier(name, flags, settings, seed=seed, threads=threads)
    needed_by = "--multiclass" if multiclass else f"--classifier {name}"
    multiclass = multiclass or learns_one_class(trained)
    if test is not None:
        find_format(test)  # fails if the file does not exist
    with progress.shown(output.is_watched()) as phases:
        start = time.perf_counter()
        if cluster is not None:
            rows, n_rows = _on_cluster(cluster, trained, data, checkpoint, multiclass, n_workers=threads)
            names = read_names_for(rows, label_names, feature_names)
        else:
            file = _one_file(data)
            with progress.phase(f"reading {file.name}"):
                rows = read_journal(file) if journal else read_labelled(file, format, threads=n_jobs(threads))
            n_rows = rows.n_rows
            names = read_names_for(rows, label_names, feature_names)
            start = time.perf_counter()
            trained.fit(rows.X, rows.classes(needed_by) if multiclass else rows.Y)
        took = time.perf_counter() - start
        names.give_to(trained)
        trained.source_format_ = _source_format(rows)
        with progress.phase("saving"):
            save_portable(trained, model)
        report: dict[str, Any] | None = None
        if test is not None:
            with progress.phase(f"evaluating on {test.name}"):
                report = evaluate_model(trained, read_for(trained, test, format), ks=[1, 3, 5])
    facts = training_facts(trained, n_rows, took, phases.seconds.get("building the tree", 0.0), model)
    if json:
        output.print_json(facts | ({} if report is None else {"test": report}))
        return
    print(training_in_words(facts))
    if report is not None:
        print_report(report)
    if not multiclass and n_rows == rows.n_rows and rows.has_one_label_each:
        output.print_hint("each row has exactly one label; with --multiclass their probabilities sum to one")


def _one_file(files: list[Path]) -> Path:
    if len(files) > 1:
        raise ValueError(f"got {len(files)} data files; train on one, or on all of them with --cluster auto")
    return files[0]


def _on_cluster(
    address: str, trained: Any, files: list[Path], checkpoint: Path | None, multiclass: bool, n_workers: int | None
) -> tuple[LabelledRows, int]:
    """Train on Ray. The rows stay there: returned are their form, for names, and their number."""
    from scipy.sparse import csr_array

    from ramify.cli.data import LabelledRows
    from ramify.cluster.fitting import check_fit, fit_with
    from ramify.cluster.workers import ray_workers
    from ramify.data.load import find_format

    kinds = [find_format(file) for file in files]  # fails here if a file does not exist
    check_fit(trained)
    with ray_workers(address, n_workers) as workers:
        n_rows = fit_with(workers, trained, [file.resolve() for file in files], checkpoint, multiclass=multiclass)
    is_text = trained.schema_.vectorizer is not None
    X: Any = [] if is_text else csr_array((0, trained.n_features_in_))
    return LabelledRows(files[0], X, csr_array((0, trained.n_labels_)), format=kinds[0]), n_rows


def _source_format(rows: LabelledRows) -> str | None:
    """How the rows are written, so that later files are read alike and `ramify stream` can continue; None for npz."""
    from ramify.data import DataError, load_libsvm

    if rows.format == "libsvm":
        try:
            load_libsvm(rows.path, zero_based=False)
        except DataError:
            return "libsvm-zero-based"
    return None if rows.format in ("npz", "journal") else rows.format
