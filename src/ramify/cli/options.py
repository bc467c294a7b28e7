"""Options that several commands share, described once."""

from __future__ import annotations

import io
import json
import sys
from collections.abc import Callable
from contextlib import suppress
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from ramify.data.columns import Columns


class DataFormat(str, Enum):
    """Formats of labelled data."""

    xmc = "xmc"
    libsvm = "libsvm"
    jsonl = "jsonl"
    fasttext = "fasttext"
    npz = "npz"
    csv = "csv"
    tsv = "tsv"
    parquet = "parquet"
    arrow = "arrow"


class RowFormat(str, Enum):
    """Formats of rows to predict: a data file, or one text per line."""

    xmc = "xmc"
    libsvm = "libsvm"
    jsonl = "jsonl"
    fasttext = "fasttext"
    npz = "npz"
    csv = "csv"
    tsv = "tsv"
    parquet = "parquet"
    arrow = "arrow"
    text = "text"


class Policy(str, Enum):
    fair = "fair"
    best = "best"
    balanced = "balanced"
    random = "random"
    cpt = "cpt"


class Optimizer(str, Enum):
    adagrad = "adagrad"
    fobos = "fobos"
    sgd = "sgd"


class Objective(str, Enum):
    """F measures that thresholds are tuned for."""

    macro_f1 = "macro_f1"
    micro_f1 = "micro_f1"
    example_f1 = "example_f1"


class Empty(str, Enum):
    """F of a label that is neither true nor predicted."""

    zero = "zero"
    one = "one"


# --- data and models ---
DATA_HELP = (
    "Texts and labels (CSV, TSV, JSONL, fastText's __label__ lines, Parquet, Arrow), XMC text, libsvm or npz; "
    "gzip is unpacked; - is stdin."
)
DataFile = Annotated[Path, typer.Argument(metavar="DATA", help=DATA_HELP, show_default=False)]
DataFiles = Annotated[list[Path], typer.Argument(metavar="DATA...", help=DATA_HELP, show_default=False)]
Cluster = Annotated[
    str | None,
    typer.Option(
        "--cluster",
        metavar="ADDRESS",
        help="Work on Ray: auto is a running cluster or else this machine, local is this machine.",
        show_default=False,
    ),
]
ModelDirectory = Annotated[
    Path, typer.Option("--model", "-m", metavar="DIR", help="Directory of a trained model.", show_default=False)
]
FormatOption = Annotated[
    DataFormat | None, typer.Option("--format", help="Format of the data; detected from name and content by default.")
]
RowFormatOption = Annotated[
    RowFormat | None,
    typer.Option("--format", help="Format of the rows; detected from name, content and model by default."),
]
TextColumn = Annotated[
    list[str] | None,
    typer.Option("--text-column", metavar="NAME", help="Column of the texts; several are joined. [default: text]"),
]
LabelColumn = Annotated[
    list[str] | None,
    typer.Option("--label-column", metavar="NAME", help="Column of the labels; repeatable. [default: labels]"),
]
LabelSeparator = Annotated[
    str | None,
    typer.Option("--label-separator", metavar="TEXT", help="What separates labels in a cell. [default in tables: ;]"),
]
IdColumn = Annotated[
    str | None, typer.Option("--id-column", metavar="NAME", help="Column that names the rows in answers.")
]
Encoding = Annotated[
    str | None,
    typer.Option("--encoding", metavar="NAME", help="Such as cp1252. [default: by byte order mark, else utf-8]"),
]
Delimiter = Annotated[
    str | None,
    typer.Option("--delimiter", metavar="CHAR", help="Of a table: , or ; or tab; found by the first rows by default."),
]
Threads = Annotated[int | None, typer.Option("--threads", min=1, help="Number of threads; all cores by default.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON for programs.")]
Ks = Annotated[str, typer.Option("--k", metavar="K,K,…", help="Ranks k of the metrics at k.")]

# --- classifiers; a flag that is not given leaves the classifier's own default ---
Arity = Annotated[int | None, typer.Option("--arity", help="Children of an inner node.")]
MaxLeaf = Annotated[int | None, typer.Option("--max-leaf", help="Maximum number of labels below a pre-leaf node.")]
PolicyOption = Annotated[
    Policy | None,
    typer.Option(
        "--policy",
        help="Online: where new labels go. fair (default) keeps the tree shallow; best and random are OPLT's, "
        "balanced is napkinXC's, cpt the conditional probability tree's.",
    ),
]
Alpha = Annotated[float | None, typer.Option("--alpha", help="Online: weight of balance against fit, 0 to 1.")]
FairShare = Annotated[
    float | None,
    typer.Option("--fair-share", help="Policy fair: maximum labels of a child, as a multiple of the average."),
]
OptimizerOption = Annotated[
    Optimizer | None, typer.Option("--optimizer", help="Update rule of the nodes' online classifiers.")
]
LearningRate = Annotated[float | None, typer.Option("--learning-rate", help="Step size of the optimizer.")]
Eps = Annotated[float | None, typer.Option("--eps", help="adagrad: added to the root of the summed squares.")]
Decay = Annotated[float | None, typer.Option("--decay", help="adagrad: above 0, later steps shrink faster.")]
L2 = Annotated[float | None, typer.Option("--l2", help="fobos: strength of the regulariser.")]
MemoryBudget = Annotated[
    int | None,
    typer.Option("--memory-budget", metavar="BYTES", help="Online: drop the features of least weight near this size."),
]
Ngrams = Annotated[
    int, typer.Option("--ngrams", min=1, max=5, help="Texts: maximum number of consecutive words in a feature.")
]
Multiclass = Annotated[
    bool, typer.Option("--multiclass", help="Each row has exactly one label; probabilities sum to one.")
]
Seed = Annotated[int, typer.Option("--seed", min=0, max=2**32 - 1, help="The same seed gives the same model.")]

# --- thresholds ---
ObjectiveOption = Annotated[Objective, typer.Option(help="F measure to maximise.")]
EmptyOption = Annotated[Empty, typer.Option(help="F of a label that is neither true nor predicted.")]
CList = Annotated[
    str | None,
    typer.Option("--c", metavar="C,C,…", help="Candidates c for cuts (1/c) or initial thresholds; see the docs."),
]


def columns_of(
    text_column: list[str] | None = None,
    label_column: list[str] | None = None,
    label_separator: str | None = None,
    id_column: str | None = None,
    encoding: str | None = None,
    delimiter: str | None = None,
) -> Columns:
    r"""The choice of columns on a command line, where a tab may be written as \t or "tab".

    >>> columns_of(["title", "body"], label_separator="|", delimiter="tab").delimiter
    '\t'
    """
    from ramify.data.columns import Columns
    from ramify.data.encodings import check_encoding

    if encoding is not None:
        check_encoding(encoding)
    tabs = {"tab": "\t", "\\t": "\t"}
    return Columns(
        tuple(text_column or ()),
        tuple(label_column or ()),
        None if label_separator is None else label_separator.replace("\\t", "\t"),
        id_column,
        encoding,
        None if delimiter is None else tabs.get(delimiter, delimiter),
    )


def columns_to_know(columns: Columns) -> dict[str, Any]:
    """What a model remembers of a choice of columns."""
    chosen = {
        "text": list(columns.text),
        "labels": list(columns.labels),
        "label_separator": columns.label_separator,
        "encoding": columns.encoding,
    }
    return {name: value for name, value in chosen.items() if value}


def examples(*commands: str) -> str:
    """The end of a command's help: commands to copy."""
    return "\n".join(["\b", "Examples:", *(f"  $ {command}" for command in commands)])


def flag(name: str) -> str:
    """The flag of a parameter of a command.

    >>> flag("n_epochs")
    '--n-epochs'
    """
    return f"--{name.removeprefix('is_').replace('_', '-')}"


def given_flags(context: typer.Context) -> dict[str, Any]:
    """The parameters that the command line sets, with plain values; those left at their defaults are not included."""
    sources = {name: context.get_parameter_source(name) for name in context.params}
    given = [name for name, source in sources.items() if source is not None and source.name == "COMMANDLINE"]
    return {name: getattr(context.params[name], "value", context.params[name]) for name in given}


def n_jobs(threads: int | None) -> int:
    return -1 if threads is None else threads


def open_stdin(is_named: bool, advice: str) -> Any:
    """The bytes of stdin. Refuses one that is closed, and a terminal unless the command line names it with "-"."""
    if sys.stdin is None or sys.stdin.closed:
        raise ValueError(f"no input, stdin is closed: {advice}")
    if not is_named and sys.stdin.isatty():
        raise ValueError(f"no input: {advice}")
    if not sys.stdin.readable():
        raise ValueError(f"no input, stdin is not open for reading: {advice}")
    if hasattr(sys.stdin, "buffer"):
        return sys.stdin.buffer
    return io.BytesIO(sys.stdin.read().encode())  # a program that calls `run` may have replaced it


def parse_ks(text: str) -> list[int]:
    """
    >>> parse_ks("1,3,5")
    [1, 3, 5]
    """
    return sorted(
        set(_numbers(text, int, 1, None, "--k takes numbers of at least 1, separated by commas, such as 1,3,5"))
    )


def parse_cs(text: str | None) -> tuple[float, ...]:
    """
    >>> parse_cs("100,20")
    (100.0, 20.0)
    """
    from ramify.decide import C

    if text is None:
        return tuple(float(one) for one in C)
    return _numbers(text, float, 1, None, "--c takes numbers of at least 1, separated by commas, such as 100,20,5")


def parse_lams(text: str) -> tuple[float, ...]:
    """
    >>> parse_lams("0,0.5,2")
    (0.0, 0.5, 2.0)
    """
    return _numbers(text, float, 0, 2, "--lam takes numbers from 0 to 2, separated by commas, such as 0,0.5,1")


def _numbers(text: str, kind: Callable[[str], Any], least: int, most: int | None, rule: str) -> tuple[Any, ...]:
    try:
        values = tuple(kind(part) for part in text.split(","))
    except ValueError:
        values = ()
    if not values or not all(least <= one < float("inf") and (most is None or one <= most) for one in values):
        raise ValueError(f"{rule}; got {text!r}")
    return values


def parse_assignments(given: list[str] | None, flag: str, example: str) -> dict[str, Any]:
    """Values of a flag that takes NAME=VALUE: JSON where it is JSON, numbers with commas, otherwise text.

    >>> parse_assignments(["lam=0.5", "frequency=greedy", "direct=true"], "--tree-option", "lam=0.5")
    {'lam': 0.5, 'frequency': 'greedy', 'direct': True}
    >>> parse_assignments(["weights=1,0.5", "parts=plt,fastxml"], "--set", "n_candidates=50")
    {'weights': [1, 0.5], 'parts': 'plt,fastxml'}
    """
    found: dict[str, Any] = {}
    for text in given or []:
        name, equals, value = text.partition("=")
        if not (name and equals and value):
            raise ValueError(f"{flag} takes NAME=VALUE, such as {example}; got {text!r}")
        found[name] = _json_or_text(value)
    return found


def _json_or_text(value: str) -> Any:
    """What JSON reads, numbers with commas between them as a list, or else the text itself."""
    for text, kinds in ((value, object), (f"[{value}]", int | float)):
        with suppress(ValueError, RecursionError):
            read = json.loads(text)
            if kinds is object or all(isinstance(one, kinds) for one in read):
                return read
    return value
