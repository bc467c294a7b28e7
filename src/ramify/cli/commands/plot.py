"""`ramify plot`: the field's pictures, from data and models."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

import typer

from ramify.cli import output
from ramify.cli.commands.tune import CList, Empty, EmptyOption, Objective, ObjectiveOption, parse_cs, read_estimates
from ramify.cli.options import AsJson, DataFile, FormatOption, ModelDirectory, Threads, examples, n_jobs

app = typer.Typer(
    help="Draw pictures of data and models.\n\nAs PNG or SVG; needs the extra ramify[plots].",
    epilog=examples(
        "ramify plot frequency train.txt --out frequency.png",
        "ramify plot reliability test.txt --model model --out reliability.svg",
        "ramify plot tree --model model --out tree.png",
        "ramify stream test.txt --model online-model --test-first --window 20 --report run.json",
        "ramify plot progressive run.json --out run.png",
        "ramify plot fmeasure train.txt test.txt --model model --out fmeasure.png",
        "ramify plot cover train.txt --out cover.png",
        "ramify tune train.txt --model model --objective latency --lam 0,1,2 --out fast --curve curve.json",
        "ramify plot pareto curve.json --out pareto.png",
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


@app.command(epilog=examples("ramify plot progressive run.json --out run.png"))
def progressive(
    runs: Annotated[
        list[Path], typer.Argument(metavar="RUN…", help="What `stream --report` wrote.", show_default=False)
    ],
    out: Picture,
    metric: Annotated[str, typer.Option(help="entropy_reduction, accuracy, or P@k as in P@5.")] = "entropy_reduction",
    by_window: Annotated[bool, typer.Option("--by-window", help="Each window alone, not all examples so far.")] = False,
    json: AsJson = False,
) -> None:
    """How a stream was learned: test-then-train scores against examples."""
    from ramify import plots

    named = {path.stem: read_run(path) for path in runs}
    if len(named) != len(runs):
        raise ValueError("two files have the same name: runs are told apart by it")
    save_plot(lambda path: plots.progressive(named, path, metric=metric, cumulative=not by_window), out)
    _done(out, json)


@app.command(epilog=examples("ramify plot fmeasure train.txt test.txt --model model --out fmeasure.png"))
def fmeasure(
    validation: Annotated[Path, typer.Argument(metavar="VALIDATION", help="Rows to tune on.", show_default=False)],
    test: Annotated[Path, typer.Argument(metavar="TEST", help="Rows to measure on.", show_default=False)],
    model: ModelDirectory,
    out: Picture,
    objective: ObjectiveOption = Objective.macro_f1,
    empty: EmptyOption = Empty.zero,
    c: CList = None,
    format: FormatOption = None,
    threads: Threads = None,
    json: AsJson = False,
) -> None:
    """An F measure against 1/c for each way to tune thresholds, on the rows tuned on and on others."""
    from ramify import plots
    from ramify.cli.models import load_model
    from ramify.decide import f_measure_curves

    tried = parse_cs(c)
    loaded = load_model(model, threads)
    tuned_on, others = (read_estimates(loaded, data, format, threads, tried) for data in (validation, test))
    curves = f_measure_curves(*tuned_on, *others, objective=objective.value, c=tried, empty=empty.value)
    save_plot(lambda path: plots.f_measure(curves, path, objective=objective.value), out)
    _done(out, json)


@app.command(epilog=examples("ramify plot pareto curve.json --out pareto.png"))
def pareto(
    curves: Annotated[
        list[Path],
        typer.Argument(metavar="CURVE…", help="What `tune --objective latency --curve` wrote.", show_default=False),
    ],
    out: Picture,
    json: AsJson = False,
) -> None:
    """Precision against depth and time, a point for each tree that was tried."""
    from json import loads

    from ramify import plots
    from ramify.data import DataError
    from ramify.data.files import read_bytes
    from ramify.models.plt.pareto import ParetoCurve

    named = {}
    for path in curves:
        try:
            named[path.stem] = ParetoCurve.from_dict(loads(read_bytes(path)))
        except DataError:
            raise
        except ValueError as error:
            hint = "see ramify tune --objective latency --curve"
            raise DataError(f"not a curve ({error})", path, hint=hint) from None
    if len(named) != len(curves):
        raise ValueError("two files have the same name: curves are told apart by it")
    save_plot(lambda path: plots.pareto(named, path), out)
    _done(out, json)


@app.command(epilog=examples("ramify plot cover train.txt --out cover.png"))
def cover(data: DataFile, out: Picture, format: FormatOption = None, json: AsJson = False) -> None:
    """How few labels hold one, three or all labels of most rows."""
    from ramify import plots
    from ramify.cli.labelled import read_labelled
    from ramify.data.labels import encode_labels

    rows = read_labelled(data, format)
    indicator = encode_labels(rows.Y).indicator if isinstance(rows.Y, list) else rows.Y
    save_plot(lambda path: plots.label_cover(indicator, path), out)
    _done(out, json)


def read_run(path: Path) -> Any:
    """A run of `ramify stream --test-first`, as its report tells it."""
    from json import loads

    from ramify.data import DataError
    from ramify.data.files import read_bytes
    from ramify.progressive import ProgressiveResult

    try:
        run = ProgressiveResult.from_dict(loads(read_bytes(path)))
    except DataError:
        raise
    except ValueError as error:
        raise DataError(f"not a report of a run ({error})", path, hint="see ramify stream --report") from None
    if not run.windows:
        raise DataError("the run has no windows, so there is nothing to draw", path)
    return run


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
