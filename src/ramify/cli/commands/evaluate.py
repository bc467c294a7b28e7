"""`ramify evaluate`: metrics of a model on labelled rows."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ramify.cli import options, output
from ramify.cli.options import AsJson, DataFile, FormatOption, Ks, ModelDirectory, Threads, examples, n_jobs, parse_ks

EXAMPLES = examples(
    "ramify evaluate test.txt --model model",
    "ramify evaluate test.txt --model model --train train.txt --k 1,5,10",
    "ramify evaluate test.txt --model model --json",
    "ramify evaluate test.csv --model papers --text-column title --label-column subjects",
)


def evaluate(
    data: DataFile,
    model: ModelDirectory,
    train: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Training data: adds the propensity-scored PSP and PSnDCG.")
    ] = None,
    k: Ks = "1,3,5",
    depth: Annotated[int, typer.Option(min=1, help="Labels of each row whose probabilities are measured.")] = 100,
    format: FormatOption = None,
    text_column: options.TextColumn = None,
    label_column: options.LabelColumn = None,
    label_separator: options.LabelSeparator = None,
    encoding: options.Encoding = None,
    delimiter: options.Delimiter = None,
    threads: Threads = None,
    json: AsJson = False,
) -> None:
    """Measure a model on labelled rows.

    Ranking (P, R, nDCG, PSP at k), probabilities (log loss, Brier score, calibration error), decisions (F measures).
    """
    from ramify.cli.data import read_for
    from ramify.cli.evaluation import evaluate_model, print_report
    from ramify.cli.models import known_columns, load_model
    from ramify.common import progress

    ks = parse_ks(k)
    columns = options.columns_of(text_column, label_column, label_separator, None, encoding, delimiter)
    counter = progress.RowCounter()
    with progress.shown(output.is_watched()):
        with progress.phase("reading"):
            loaded = load_model(model, threads)
            here = known_columns(columns, loaded, data)
            rows = read_for(loaded, data, format, here, threads=n_jobs(threads), counter=counter)
            there = known_columns(columns, loaded, train)
            seen = None if train is None else read_for(loaded, train, None, there, threads=n_jobs(threads))
        with progress.phase("evaluating", counter if rows.is_text else None):
            report = evaluate_model(loaded, rows, ks=ks, depth=depth, train=seen)
    if not any(rows.labels_per_row):
        raise rows.no_label()
    if json:
        output.print_json(report)
    else:
        print_report(report, f"{output.count(rows.n_rows, 'row')}, {report['labels_per_row']:.2f} labels per row")
