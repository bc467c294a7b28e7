"""`ramify predict`: the most probable labels of each row."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from enum import Enum
from pathlib import Path
from typing import Annotated, Any

import typer

from ramify.cli import output
from ramify.cli.options import AsJson, Cluster, ModelDirectory, RowFormatOption, Threads, examples, n_jobs

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
    parquet = "parquet"


def predict(
    model: ModelDirectory,
    data: Annotated[
        list[Path] | None,
        typer.Argument(metavar="[DATA]", help="A data file, or one text per line; - is stdin.", show_default=False),
    ] = None,
    text: Annotated[
        list[str] | None, typer.Option("--text", "-t", help="A text; repeatable.", show_default=False)
    ] = None,
    top_k: Annotated[
        int | None,
        typer.Option("--top-k", "-k", min=1, help="Most labels per row. [default: 5, or as tuned]"),
    ] = None,
    threshold: Annotated[
        float | None, typer.Option(help="Minimum probability; without --top-k, all labels that reach it.")
    ] = None,
    format: RowFormatOption = None,
    as_: Annotated[Output, typer.Option("--output", help="Format of the answers.")] = Output.table,
    out: Annotated[
        Path | None, typer.Option("--out", "-o", metavar="FILE", help="Write to this file instead of stdout.")
    ] = None,
    cluster: Cluster = None,
    threads: Threads = None,
    json: AsJson = False,
) -> None:
    """Predict the most probable labels of rows or texts.

    After `ramify tune`, these are the labels that reach their thresholds, unless --top-k or --threshold is given.
    Large files are read and answered in chunks. Tables and TSV show control characters as escapes; JSON is exact.
    With --cluster, DATA may be many files, and --out is a directory: a file of answers for each, JSONL or Parquet.
    """
    from ramify.cli.data import rows_to_predict
    from ramify.cli.models import load_to_query, tuned_thresholds, with_names

    loaded = load_to_query(model, 1 if text else threads)
    limit: Any = threshold
    if top_k is None and threshold is None:
        limit = tuned_thresholds(loaded)
        top_k = 5 if limit is None else None
    if json:
        as_ = Output.jsonl
    if cluster is not None:
        _on_cluster(cluster, model, data, out, top_k, limit, as_, threads)
        return
    if as_ is Output.parquet:
        raise ValueError("--output parquet needs --cluster; without it, answers are a table, TSV or JSONL")
    chunks = rows_to_predict(loaded, _one_file(data), text, format, n_jobs(threads))
    with _writer(out) as write:
        if as_ is Output.tsv:
            write("row\tlabel\tprobability\tname\n")
        number = 0
        for chunk in chunks:
            answers = loaded.predict_labels(chunk.X, top_k, limit)
            for position, answer in enumerate(answers):
                number += 1
                asked = None if chunk.texts is None else chunk.texts[position]
                write(_FORMATS[as_](number, asked, with_names(loaded, answer)))
            if out is None:
                sys.stdout.flush()  # whoever types or pipes one line at a time waits for the answer


def _one_file(files: list[Path] | None) -> Path | None:
    if files and len(files) > 1:
        raise ValueError(f"got {len(files)} data files; predict one, or all of them with --cluster auto")
    return files[0] if files else None


def _on_cluster(
    address: str,
    model: Path,
    files: list[Path] | None,
    out: Path | None,
    top_k: int | None,
    limit: Any,
    as_: Output,
    threads: int | None,
) -> None:
    from ramify import cluster

    if not files or out is None:
        raise ValueError("--cluster needs data files, and a directory for the answers: --out DIR")
    format = "parquet" if as_ is Output.parquet else "jsonl"
    how: dict[str, Any] = {"top_k": top_k, "threshold": limit, "format": format, "verbose": output.is_watched()}
    written = cluster.predict(model, files, out, address=address, n_workers=threads, **how)
    print(f"Answered {output.count(len(files), 'file')}: {written[0]} to {written[-1].name}.")


@contextmanager
def _writer(out: Path | None) -> Iterator[Callable[[str], Any]]:
    if out is None:
        yield sys.stdout.write
        sys.stdout.flush()
        return
    from ramify.data.files import replaced_when_complete

    with replaced_when_complete(out) as stream:
        yield lambda text: stream.write(text.encode("utf-8", "backslashreplace"))


def _table(number: int, asked: str | None, answer: Sequence[output.LabelRow]) -> str:
    return f"{output.title_line(f'row {number}' if asked is None else asked)}\n{output.label_lines(answer)}"


def _tsv(number: int, asked: str | None, answer: Sequence[output.LabelRow]) -> str:
    return "".join(
        f"{number}\t{_cell(label)}\t{probability:.6g}\t{_cell(name)}\n" for label, probability, name in answer
    )


def _cell(value: Any) -> str:
    return output.visible(" ".join(str(value).split()))


def _jsonl(number: int, asked: str | None, answer: Sequence[output.LabelRow]) -> str:
    labels = [
        {"label": label, "probability": probability} | ({"name": name} if name else {})
        for label, probability, name in answer
    ]
    text = {} if asked is None else {"text": asked}
    return output.json_line({"row": number, **text, "labels": labels}) + "\n"


_FORMATS = {Output.table: _table, Output.tsv: _tsv, Output.jsonl: _jsonl}
