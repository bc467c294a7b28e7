"""`ramify explain`: why a model predicts a label."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ramify.cli import options, output
from ramify.cli.options import AsJson, ModelDirectory, RowFormatOption, examples

EXAMPLES = examples(
    'ramify explain --model notes-model --text "acute chest pain"',
    'ramify explain --model notes-model --text "acute chest pain" --label R07.9',
    "ramify explain test.txt --model model --row 3 --top-k 2",
)


def explain(
    model: ModelDirectory,
    data: Annotated[Path | None, typer.Argument(metavar="[DATA]", help="A file with rows.", show_default=False)] = None,
    text: Annotated[str | None, typer.Option("--text", "-t", help="A text.", show_default=False)] = None,
    row: Annotated[int, typer.Option(min=1, help="Number of the row in the file, from 1.")] = 1,
    label: Annotated[list[str] | None, typer.Option("--label", "-l", help="A label to explain; repeatable.")] = None,
    top_k: Annotated[
        int, typer.Option("--top-k", "-k", min=1, help="Without --label: explain this many of the best labels.")
    ] = 1,
    features: Annotated[int, typer.Option(min=1, help="Features to show at each node.")] = 5,
    format: RowFormatOption = None,
    text_column: options.TextColumn = None,
    encoding: options.Encoding = None,
    delimiter: options.Delimiter = None,
    json: AsJson = False,
) -> None:
    """Show why a model predicts a label for a row.

    Prints the path to the label: each node's probability, and the features that moved it up (+) or down (-).
    In a terminal, the words of a text that support the label are marked.
    """
    from ramify.cli.models import known_columns, load_to_query, parse_label
    from ramify.cli.rows import check_takes_text, one_row

    if (data is None) == (text is None):
        raise ValueError("explain takes one row: give --text, or a file with --row")
    loaded = load_to_query(model)
    if data is not None:
        columns = options.columns_of(text_column, encoding=encoding, delimiter=delimiter)
        x = one_row(loaded, data, row, format, known_columns(columns, loaded, data))
    else:
        check_takes_text(loaded, "--text")
        x = text
    labels = [parse_label(loaded, given) for given in label or []]
    if not labels:
        labels = [found for found, _ in loaded.predict_one(x, top_k=top_k)]
    explanations = [loaded.explain(x, wanted, top=features) for wanted in labels]
    if json:
        output.print_json([explanation.to_dict() for explanation in explanations])
        return
    if not explanations:
        print("no label is possible for this row")
    for explanation in explanations:
        if isinstance(x, str) and explanation.spans:
            output.show(output.marked(x, explanation.spans))
        output.show(explanation)
