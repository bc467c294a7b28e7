"""`ramify predict`: the most probable labels of each row."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ramify.cli import options
from ramify.cli import output as terminal
from ramify.cli.options import AsJson, Cluster, ModelDirectory, RowFormatOption, Threads, examples, n_jobs

if TYPE_CHECKING:
    from ramify.data.columns import Columns

EXAMPLES = examples(
    'ramify predict --model notes-model --text "acute chest pain"',
    "ramify predict test.txt --model model --top-k 3",
    "ramify predict test.txt --model model --threshold 0.5 --output tsv --out answers.tsv",
    "ramify predict papers.csv --model papers --text-column title --text-column abstract --output answers.csv",
    "cat texts.txt | ramify predict --model notes-model --json",
)


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
    text_column: options.TextColumn = None,
    label_separator: options.LabelSeparator = None,
    id_column: options.IdColumn = None,
    encoding: options.Encoding = None,
    delimiter: options.Delimiter = None,
    labels_from: Annotated[
        Path | None,
        typer.Option("--labels-from", metavar="FILE", help="Answer only with the labels in this file, one per line."),
    ] = None,
    output: Annotated[
        str | None,
        typer.Option(
            "--output",
            metavar="FORMAT|FILE",
            help="table, tsv or jsonl; or a file (.csv, .tsv, .jsonl, .parquet, .arrow) that keeps your columns.",
        ),
    ] = None,
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
    A text without any known word gets a notice instead of labels.
    With --cluster, DATA may be many files, and --out is a directory: a file of answers for each, JSONL or Parquet.
    """
    from ramify.cli.answers import Output, answer_writer, parse_output
    from ramify.cli.models import known_columns, load_to_query, tuned_thresholds
    from ramify.cli.questions import ask, read_label_set
    from ramify.cli.rows import n_rows, rows_to_predict
    from ramify.common import progress
    from ramify.data.encodings import encoding_of

    if cluster is not None:
        _check_for_cluster(output, labels_from, id_column, format)
        columns = options.columns_of(text_column, None, label_separator, None, encoding, delimiter)
        _on_cluster(cluster, model, data, out, top_k, threshold, output == "parquet", threads, columns)
        return
    form, out = (None, out) if output is None else parse_output(output, out)
    form = Output.jsonl if json else form
    if out is not None and data and form is not None and out.exists() and out.samefile(data[0]):
        raise ValueError(f"{out} is the file to read, and --output {form.value} keeps none of it: write to another one")
    loaded = load_to_query(model, 1 if text else threads)
    columns = options.columns_of(text_column, None, label_separator, id_column, encoding, delimiter)
    columns = known_columns(columns, loaded, data[0] if data else None, reads_labels=False)
    limit: Any = threshold
    if top_k is None and threshold is None:
        limit = tuned_thresholds(loaded)
        top_k = 5 if limit is None else None
    encoding = encoding_of(data[0], columns.encoding) if data else "utf-8"
    only = None if labels_from is None else read_label_set(loaded, labels_from)
    counter = progress.RowCounter()
    chunks = rows_to_predict(loaded, _one_file(data), text, format, columns, threads=n_jobs(threads), counter=counter)
    is_shown = terminal.is_watched() and not text and (out is not None or not sys.stdout.isatty())
    n_silent = 0
    n_answered = 0
    with (
        progress.shown(is_shown),
        progress.phase("predicting", counter),
        answer_writer(form, out, loaded, columns, encoding) as write,
    ):
        for chunk in chunks:
            answers = ask(loaded, chunk, top_k, limit, only)
            write(chunk, answers)
            n_silent += sum(bool(answer.notice) for answer in answers)
            n_answered += n_rows(chunk.X)
            counter.rows = n_answered
    if out is not None and n_silent:
        terminal.print_hint(f"{terminal.count(n_silent, 'text')} had no known word and got no labels")


def _one_file(files: list[Path] | None) -> Path | None:
    if files and len(files) > 1:
        raise ValueError(f"got {len(files)} data files; predict one, or all of them with --cluster auto")
    return files[0] if files else None


def _check_for_cluster(output: str | None, labels_from: Path | None, id_column: str | None, format: Any) -> None:
    if output not in (None, "jsonl", "parquet"):
        raise ValueError(f"with --cluster, --output must be jsonl or parquet, got {output}")
    if labels_from is not None:
        raise ValueError("--labels-from is not for --cluster")
    if id_column is not None:
        raise ValueError("--id-column is not for --cluster: answers have the numbers of rows")
    if format is not None:
        raise ValueError("--format is not for --cluster: name the files by their format, such as .jsonl or .csv")


def _on_cluster(
    address: str,
    model: Path,
    files: list[Path] | None,
    out: Path | None,
    top_k: int | None,
    limit: Any,
    is_parquet: bool,
    threads: int | None,
    columns: Columns,
) -> None:
    from ramify import cluster
    from ramify.cli.models import known_columns, load_to_query, tuned_thresholds
    from ramify.cluster.split import is_split

    if not files or out is None:
        raise ValueError("--cluster needs data files, and a directory for the answers: --out DIR")
    loaded = load_to_query(model / "top" if is_split(model) else model, threads)
    columns = known_columns(columns, loaded, None, reads_labels=False)  # None: each file may have another encoding
    if top_k is None and limit is None:
        limit = tuned_thresholds(loaded)
        top_k = 5 if limit is None else None
    format = "parquet" if is_parquet else "jsonl"
    how: dict[str, Any] = {"top_k": top_k, "threshold": limit, "format": format, "columns": columns}
    shown = terminal.is_watched()
    written = cluster.predict(model, files, out, address=address, n_workers=threads, verbose=shown, **how)
    print(f"Answered {terminal.count(len(files), 'file')}: {written[0]} to {written[-1].name}.")
