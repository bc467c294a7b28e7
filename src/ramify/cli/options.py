"""Options that several commands have, described once."""

from __future__ import annotations

import json
from enum import Enum
from pathlib import Path
from typing import Annotated, Any

import typer


class DataFormat(str, Enum):
    """What a data file can be."""

    xmc = "xmc"
    libsvm = "libsvm"
    jsonl = "jsonl"
    fasttext = "fasttext"
    npz = "npz"


class RowFormat(str, Enum):
    """What a file with rows to ask about can be: a data file, or one text a line."""

    xmc = "xmc"
    libsvm = "libsvm"
    jsonl = "jsonl"
    fasttext = "fasttext"
    npz = "npz"
    text = "text"


DATA_HELP = "XMC text, libsvm, JSONL with text and labels, fastText's __label__ lines, or npz; gzip or not."

DataFile = Annotated[Path, typer.Argument(metavar="DATA", help=DATA_HELP, show_default=False)]
ModelDirectory = Annotated[
    Path, typer.Option("--model", "-m", metavar="DIR", help="Directory of a trained model.", show_default=False)
]
FormatOption = Annotated[
    DataFormat | None, typer.Option("--format", help="Format of the data; by default its name and content tell.")
]
RowFormatOption = Annotated[
    RowFormat | None, typer.Option("--format", help="Format of the rows; by default name, content and model tell.")
]
Threads = Annotated[int | None, typer.Option("--threads", min=1, help="Threads; by default all cores.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON for machines.")]
TreeOptions = Annotated[
    list[str] | None,
    typer.Option("--tree-option", metavar="NAME=VALUE", help="More for the tree's builder; may be given many times."),
]
Ks = Annotated[str, typer.Option("--k", metavar="K,K,…", help="Where rankings are cut.")]


def examples(*commands: str) -> str:
    """The end of a command's help: commands to copy."""
    return "\n".join(["\b", "Examples:", *(f"  $ {command}" for command in commands)])


def parse_ks(text: str) -> list[int]:
    """
    >>> parse_ks("1,3,5")
    [1, 3, 5]
    """
    try:
        ks = sorted({int(part) for part in text.split(",")})
    except ValueError:
        ks = []
    if not ks or ks[0] < 1:
        raise ValueError(f"--k takes numbers of at least 1 with commas between them, such as 1,3,5; got {text!r}")
    return ks


def parse_tree_options(given: list[str] | None) -> dict[str, Any] | None:
    """
    >>> parse_tree_options(["lam=0.5", "frequency=greedy", "direct=true"])
    {'lam': 0.5, 'frequency': 'greedy', 'direct': True}
    """
    found: dict[str, Any] = {}
    for text in given or []:
        name, equals, value = text.partition("=")
        if not (name and equals and value):
            raise ValueError(f"--tree-option takes NAME=VALUE, such as lam=0.5; got {text!r}")
        try:
            found[name] = json.loads(value)
        except ValueError:
            found[name] = value
    return found or None


def n_jobs(threads: int | None) -> int:
    return -1 if threads is None else threads
