"""`ramify plot`: the field's pictures, from data and models."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

import typer

from ramify.cli import output
from ramify.cli.options import AsJson, DataFile, FormatOption, ModelDirectory, Threads, examples, n_jobs

app = typer.Typer(
    help="Draw pictures of data and models.\n\nAs PNG or SVG; needs the extra ramify[plots].",
    epilog=examples(
        "ramify plot frequency train.txt --out frequency.png",
        "ramify plot reliability test.txt --model model --out reliability.svg",
        "ramify plot tree --model model --out tree.png",
    ),
    rich_markup_mode=None,
)
Picture = Annotated[Path, typer.Option("--out", "-o", metavar="FILE", help="Ends in .png or .svg.", show_default=False)]


@app.command(epilog=examples("ramify plot frequency train.txt --out frequency.png"))
def frequency(data: DataFile, out: Picture, format: FormatOption = None, json: AsJson = False) -> None:
    """How unequal the labels of a data file are."""
    import numpy as np

    from ramify import plots
    from ramify.cli.labelled import read_labelled
    from ramify.data.labels import encode_labels

    rows = read_labelled(data, format)
    indicator = encode_labels(rows.Y).indicator if isinstance(rows.Y, list) else rows.Y
    indicator = indicator.astype(np.float32)
    save_plot(lambda path: plots.label_frequency(indicator, path), out)
    _done(out, json)


@app.command(epilog=examples("ramify plot reliability test.txt --model model --out reliability.svg"))
def reliability(
    data: DataFile,
    model: ModelDirectory,
    out: Picture,
    bins: Annotated[int, typer.Option(min=1, help="Bins of equal width.")] = 10,
    format: FormatOption = None,
    threads: Threads = None,
    json: AsJson = False,
) -> None:
    """Whether a model's probabilities come true on labelled rows."""
    from ramify import plots
    from ramify.cli.evaluation import DEPTH
    from ramify.cli.labelled import as_wide_as, read_for, truth_for
    from ramify.cli.models import load_model

    loaded = load_model(model, threads)
    rows = read_for(loaded, data, format, n_jobs(threads))
    truth, _ = truth_for(loaded, rows)
    answer = as_wide_as(loaded.predict_proba(rows.X, top_k=DEPTH), max(truth.shape[1], loaded.n_labels_))
    truth = as_wide_as(truth, answer.shape[1])
    save_plot(lambda path: plots.reliability_diagram(truth, {model.name: answer}, path, n_bins=bins), out)
    _done(out, json)


@app.command(epilog=examples("ramify plot tree --model model --out tree.png"))
def tree(model: ModelDirectory, out: Picture, json: AsJson = False) -> None:
    """The shape of a model's tree."""
    from ramify import plots
    from ramify.cli.models import load_model

    loaded = load_model(model)
    save_plot(lambda path: plots.tree_shape(loaded.tree_, path), out)
    _done(out, json)


def save_plot(draw: Callable[[Path], Any], out: Path) -> None:
    """Draw to a neighbour that takes the file's name at the end, so that nobody finds half a picture."""
    if out.suffix.lower() not in (".png", ".svg"):
        raise ValueError(f"cannot save a plot as {str(out)!r}: the name must end in .png or .svg")
    if not out.parent.is_dir():
        raise ValueError(f"{out}: its directory does not exist\nhint: create {out.parent} first")
    with tempfile.TemporaryDirectory(prefix=f".{out.name}.", dir=out.parent) as folder:
        drawn = Path(folder) / out.name
        draw(drawn)
        os.replace(drawn, out)


def _done(out: Path, json: bool) -> None:
    if json:
        output.print_json({"written": [str(out)]})
    else:
        print(f"Wrote {out} ({output.size_in_words(out.stat().st_size)}).")
