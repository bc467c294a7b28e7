"""`ramify train`: from a data file to a model directory."""

from __future__ import annotations

import time
from contextlib import nullcontext
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
    "ramify train notes.jsonl --model notes-model --label-names codes.tsv --hierarchy parents.tsv",
    "ramify train papers.csv --model papers --text-column title --text-column abstract --label-column subjects",
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
    "feature_names", "hierarchy", "test", "seed", "threads", "json", "text_column", "label_column", "label_separator",
    "encoding", "delimiter", "cluster", "checkpoint", "mapped",
}  # fmt: skip

_TABLES = ("csv", "tsv")

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
    text_column: options.TextColumn = None,
    label_column: options.LabelColumn = None,
    label_separator: options.LabelSeparator = None,
    encoding: options.Encoding = None,
    delimiter: options.Delimiter = None,
    label_names: Annotated[
        Path | None, typer.Option(metavar="FILE", help="One name per line in column order, or label<tab>name.")
    ] = None,
    feature_names: Annotated[
        Path | None, typer.Option(metavar="FILE", help="One name per line in column order; not for texts.")
    ] = None,
    hierarchy: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Lines label<tab>parent: no label gets less than one below it."),
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
    mapped: Annotated[
        Path | None,
        typer.Option("--mapped", metavar="DIR", help="XMC larger than the memory: keep the rows in files here."),
    ] = None,
    seed: options.Seed = 0,
    threads: Threads = None,
    json: AsJson = False,
) -> None:
    """Train a model on a data file, or with --cluster on many.

    A flag that is left out keeps the classifier's default; one that the classifier does not have is refused.
    """
    from ramify.cli.classifiers import new_classifier, online_name
    from ramify.cli.data import read_for, read_journal, read_labelled
    from ramify.cli.evaluation import evaluate_model, print_report
    from ramify.cli.models import claim_target, learns_one_class, save_portable, training_facts, training_in_words
    from ramify.cli.names import read_names_for
    from ramify.cli.sources import is_stream
    from ramify.common import progress
    from ramify.data.load import find_format

    claim_target(model, context)
    name = online_name(classifier.value) if is_online else classifier.value
    flags = {given: v for given, v in options.given_flags(context).items() if given not in _NOT_OF_CLASSIFIER}
    trained = new_classifier(name, flags, settings, seed=seed, threads=threads)
    needed_by = "--multiclass" if multiclass else f"--classifier {name}"
    multiclass = multiclass or learns_one_class(trained)
    columns = options.columns_of(text_column, label_column, label_separator, None, encoding, delimiter)
    if test is not None and not is_stream(test):
        find_format(test, columns)  # fails if the file does not exist
    counter = progress.RowCounter()
    with progress.shown(output.is_watched()) as phases:
        start = time.perf_counter()
        if cluster is not None:
            if mapped is not None:
                raise ValueError("--mapped is not for --cluster, whose workers keep the rows")
            if hierarchy is not None:
                raise ValueError("--hierarchy is not for --cluster; give hierarchy= to the classifier in Python")
            how = {"multiclass": multiclass, "columns": columns, "format": None if format is None else format.value}
            rows, n_rows = _on_cluster(cluster, trained, data, checkpoint, threads, how)
            names = read_names_for(rows, label_names, feature_names)
        else:
            file = _one_file(data)
            with progress.phase(f"reading {file.name}"):
                sizes: dict[str, Any] = {"threads": n_jobs(threads), "counter": counter}
                if mapped is not None:
                    rows = _mapped_rows(file, format, mapped, n_jobs(threads))
                else:
                    rows = read_journal(file) if journal else read_labelled(file, format, columns, **sizes)
            names = read_names_for(rows, label_names, feature_names)
            if hierarchy is not None:
                _set_hierarchy(trained, name, hierarchy, rows)
            start = time.perf_counter()
            with progress.phase(f"reading {file.name}", counter) if rows.is_text else nullcontext():
                trained.fit(rows.X, rows.targets(multiclass, needed_by))
            n_rows = rows.n_rows
        took = time.perf_counter() - start
        names.give_to(trained)
        trained.source_format_ = _source_format(rows)
        trained.source_columns_ = options.columns_to_know(columns) if rows.is_text else {}
        with progress.phase("saving"):
            save_portable(trained, model)
        report: dict[str, Any] | None = None
        if test is not None:
            with progress.phase(f"evaluating on {test.name}"):
                report = evaluate_model(trained, read_for(trained, test, None, columns), ks=[1, 3, 5])
    facts = training_facts(trained, n_rows, took, phases.seconds.get("building the tree", 0.0), model)
    if json:
        output.print_json(facts | ({} if report is None else {"test": report}))
        return
    print(training_in_words(facts))
    if report is not None:
        print_report(report)
    if not multiclass and cluster is None and rows.has_one_label_each:
        output.print_hint("each row has exactly one label; with --multiclass their probabilities sum to one")
    if not multiclass and label_separator is None and rows.format in _TABLES and max(rows.labels_per_row) <= 1:
        separator = _likely_separator(rows.Y)
        if separator is not None:
            output.print_hint(f"many labels contain {separator!r}: if it separates labels, give --label-separator")


def _likely_separator(labels: list[tuple[str, ...]]) -> str | None:
    """A character in many labels of a table that has at most one label in each cell: there may be several."""
    seen = [row[0] for row in labels[:10_000] if row]
    return next((sign for sign in "|,\t/" if 3 * sum(sign in label for label in seen) > len(seen)), None)


def _set_hierarchy(classifier: Any, name: str, path: Path, rows: LabelledRows) -> None:
    """Give a classifier the hierarchy of a file; labels are words, or column numbers where rows have a 0/1 array."""
    from ramify.data.hierarchy import Hierarchy
    from ramify.data.hierarchy_file import read_hierarchy

    if "hierarchy" not in classifier.get_params():
        raise ValueError(f"--hierarchy is not for --classifier {name}: it predicts one class a row")
    given = read_hierarchy(path, are_numbers=not (rows.is_text or isinstance(rows.Y, list)))
    Hierarchy.from_mapping(given)  # a cycle is refused before the training
    classifier.set_params(hierarchy=given)


def _one_file(files: list[Path]) -> Path:
    if len(files) > 1:
        raise ValueError(f"got {len(files)} data files; train on one, or on all of them with --cluster auto")
    return files[0]


def _mapped_rows(file: Path, format: Any, directory: Path, threads: int) -> LabelledRows:
    """The rows of an XMC file, kept in files."""
    from ramify.cli.data import LabelledRows
    from ramify.data.load import find_format
    from ramify.data.mapped import map_xmc

    kind = find_format(file) if format is None else format.value
    if kind != "xmc":
        raise ValueError(f"--mapped needs XMC text, got {kind}: convert it first with `ramify convert`")
    data = map_xmc(file, directory, n_jobs=threads)
    return LabelledRows(file, data.X, data.Y, format=kind)


def _on_cluster(
    address: str, trained: Any, files: list[Path], checkpoint: Path | None, n_workers: int | None, how: dict[str, Any]
) -> tuple[LabelledRows, int]:
    """Train on Ray. The rows stay there: returned are their form, for names, and their number."""
    from scipy.sparse import csr_array

    from ramify.cli.data import LabelledRows
    from ramify.cluster.fitting import check_fit, fit_with
    from ramify.cluster.workers import ray_workers
    from ramify.data.load import find_format

    kinds = [find_format(file, how["columns"]) for file in files]  # fails here if a file does not exist
    check_fit(trained)
    with ray_workers(address, n_workers) as workers:
        n_rows = fit_with(workers, trained, [file.resolve() for file in files], checkpoint, **how)
    is_text = trained.schema_.vectorizer is not None
    X: Any = [] if is_text else csr_array((0, trained.n_features_in_))
    return LabelledRows(files[0], X, csr_array((0, trained.n_labels_)), format=how["format"] or kinds[0]), n_rows


def _source_format(rows: LabelledRows) -> str | None:
    """How the rows are written, so that later files are read alike and `ramify stream` can continue; None for npz."""
    from ramify.data import DataError, load_libsvm

    if rows.format == "libsvm":
        try:
            load_libsvm(rows.path if rows.source is None else rows.source.path, zero_based=False)
        except DataError:
            return "libsvm-zero-based"
    return None if rows.format in ("npz", "journal") else rows.format
