"""`ramify predict`: the most probable labels of each row."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from enum import Enum
from pathlib import Path
from typing import Annotated, Any

import typer

from ramify.cli import output
from ramify.cli.options import AsJson, ModelDirectory, RowFormatOption, Threads, examples, n_jobs

EXAMPLES = examples(
    'ramify predict --model notes-model --text "acute chest pain"',
    "ramify predict test.txt --model model --top-k 3",
    "ramify predict test.txt --model model --threshold 0.5 --output tsv --out answers.tsv",
    "cat texts.txt | ramify predict --model notes-model --json",
)


class Output(str, Enum):
    table = "table"
    tsv = "tsv"
    jsonl = "jsonl"


def predict(
    model: ModelDirectory,
    data: Annotated[
        Path | None,
        typer.Argument(metavar="[DATA]", help="A data file, or texts one a line; - is stdin.", show_default=False),
    ] = None,
    text: Annotated[
        list[str] | None, typer.Option("--text", "-t", help="A text; may be given several times.", show_default=False)
    ] = None,
    top_k: Annotated[
        int | None, typer.Option("--top-k", "-k", min=1, help="At most this many labels a row. [default: 5]")
    ] = None,
    threshold: Annotated[
        float | None, typer.Option(help="Only labels at least this probable; alone, all of them.")
    ] = None,
    format: RowFormatOption = None,
    as_: Annotated[Output, typer.Option("--output", help="How answers are written.")] = Output.table,
    out: Annotated[Path | None, typer.Option("--out", "-o", metavar="FILE", help="Write here, not to stdout.")] = None,
    threads: Threads = None,
    json: AsJson = False,
) -> None:
    """Name the most probable labels of rows or texts.

    Large files are read and answered piece by piece.
    """
    from ramify.cli.models import load_model
    from ramify.cli.rows import rows_to_ask

    loaded = load_model(model, threads)
    if top_k is None and threshold is None:
        top_k = 5
    if json:
        as_ = Output.jsonl
    chunks = rows_to_ask(loaded, data, text, format, n_jobs(threads))
    with _writer(out) as write:
        if as_ is Output.tsv:
            write("row\tlabel\tprobability\tname\n")
        number = 0
        for chunk in chunks:
            answers = loaded.predict_labels(chunk.X, top_k, threshold)
            for position, answer in enumerate(answers):
                number += 1
                asked = None if chunk.texts is None else chunk.texts[position]
                _FORMATS[as_](write, number, asked, with_names(loaded, answer))


@contextmanager
def _writer(out: Path | None) -> Iterator[Callable[[str], Any]]:
    if out is None:
        yield sys.stdout.write
        sys.stdout.flush()
        return
    from ramify.data.files import replaced_when_complete

    with replaced_when_complete(out) as stream:
        yield lambda text: stream.write(text.encode("utf-8", "backslashreplace"))


def with_names(model: Any, answer: list[tuple[Any, float]]) -> list[tuple[Any, float, str]]:
    if "label_names_" not in model.__dict__ or not answer:
        return [(label, probability, "") for label, probability in answer]
    columns = model.label_encoding_.columns([label for label, _ in answer])
    names = model.label_names_.take(columns)
    return [(label, probability, name) for (label, probability), name in zip(answer, names, strict=True)]


Labelled = list[tuple[Any, float, str]]


def _write_table(write: Callable[[str], Any], number: int, asked: str | None, answer: Labelled) -> None:
    title = f"row {number}" if asked is None else asked
    write(f"{title_line(title)}\n{answer_lines(answer)}")


def title_line(title: str) -> str:
    return f"\x1b[1m{title}\x1b[0m" if output.is_coloured() else title


def answer_lines(answer: Labelled, width: int | None = None) -> str:
    """Labels with probabilities and names, a line each, cut to the terminal's width."""
    if not answer:
        return "  no label\n"
    width = output.console().width if width is None else width
    widest = min(max(len(str(label)) for label, _, _ in answer), 40)
    lines = []
    for label, probability, name in answer:
        line = f"  {probability:6.1%}  {label!s:<{widest}}  {name}".rstrip()
        line = line if len(line) <= width else line[: width - 1] + "…"
        lines.append(f"\x1b[36m{line[:8]}\x1b[0m{line[8:]}" if output.is_coloured() else line)
    return "\n".join(lines) + "\n"


def _write_tsv(write: Callable[[str], Any], number: int, asked: str | None, answer: Labelled) -> None:
    for label, probability, name in answer:
        write(f"{number}\t{_one_cell(label)}\t{probability:.6g}\t{_one_cell(name)}\n")


def _one_cell(value: Any) -> str:
    return " ".join(str(value).split())


def _write_jsonl(write: Callable[[str], Any], number: int, asked: str | None, answer: Labelled) -> None:
    record: dict[str, Any] = {"row": number}
    if asked is not None:
        record["text"] = asked
    record["labels"] = [
        {"label": label, "probability": probability} | ({"name": name} if name else {})
        for label, probability, name in answer
    ]
    write(output.json_line(record) + "\n")


_FORMATS = {Output.table: _write_table, Output.tsv: _write_tsv, Output.jsonl: _write_jsonl}
