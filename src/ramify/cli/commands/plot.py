"""`ramify plot`: pictures of data, models and runs."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from ramify.cli import output
from ramify.cli.options import (
    AsJson,
    CList,
    DataFile,
    Empty,
    EmptyOption,
    FormatOption,
    ModelDirectory,
    Objective,
    ObjectiveOption,
    Threads,
    examples,
    n_jobs,
    parse_cs,
)
from ramify.cli.output import save_plot

app = typer.Typer(
    help="Draw data, models and runs.\n\nWrites PNG or SVG; needs the extra ramify[plots].",
    epilog=examples(
        "ramify plot frequency train.txt --out frequency.png",
        "ramify plot reliability test.txt --model model --out reliability.svg",
        "ramify plot tree --model model --out tree.png",
        "ramify stream test.txt --model online-model --test-first --window 20 --report run.json",
        "ramify plot progressive run.json --out run.png",
        "ramify plot fmeasure valid.txt test.txt --model model --out fmeasure.png",
        "ramify plot cover train.txt --out cover.png",
        "ramify tune train.txt --model model --objective latency --lam 0,1,2 --out fast --curve curve.json",
        "ramify plot pareto curve.json --out pareto.png",
    ),
    rich_markup_mode=None,
)
Picture = Annotated[
    Path, typer.Option("--out", "-o", metavar="FILE", help="File to write, .png or .svg.", show_default=False)
]


@app.command(epilog=examples("ramify plot frequency train.txt --out frequency.png"))
def frequency(data: DataFile, out: Picture, format: FormatOption = None, json: AsJson = False) -> None:
    """Frequencies of the labels of a data file."""
    import numpy as np

    from ramify import plots

    indicator = _indicator(data, format).astype(np.float32)
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
    """Reliability of a model's probabilities on labelled rows."""
    from ramify import plots
    from ramify.cli.data import read_for, stacked, truth_for, widen
    from ramify.cli.evaluation import DEPTH
    from ramify.cli.models import load_model

    loaded = load_model(model, threads)
    rows = read_for(loaded, data, format, threads=n_jobs(threads))
    answer = stacked([loaded.predict_proba(X, top_k=DEPTH) for X in rows.chunks()])
    truth, _ = truth_for(loaded, rows)
    answer = widen(answer, max(truth.shape[1], loaded.n_labels_))
    truth = widen(truth, answer.shape[1])
    save_plot(lambda path: plots.reliability_diagram(truth, {model.name: answer}, path, n_bins=bins), out)
    _done(out, json)


@app.command(epilog=examples("ramify plot tree --model model --out tree.png"))
def tree(model: ModelDirectory, out: Picture, json: AsJson = False) -> None:
    """Shape of a model's tree."""
    from ramify import plots
    from ramify.cli.models import load_model, trees_of

    loaded = load_model(model)
    trees = trees_of(loaded)
    if not trees:
        raise ValueError(f"a {type(loaded).__name__} has no label tree to draw")
    save_plot(lambda path: plots.tree_shape(trees[0], path), out)
    _done(out, json)


@app.command(epilog=examples("ramify plot progressive run.json --out run.png"))
def progressive(
    runs: Annotated[
        list[Path], typer.Argument(metavar="RUN…", help="Files that `stream --report` wrote.", show_default=False)
    ],
    out: Picture,
    metric: Annotated[str, typer.Option(help="entropy_reduction, accuracy, or P@k as in P@5.")] = "entropy_reduction",
    by_window: Annotated[
        bool, typer.Option("--by-window", help="Score each window by itself, not all examples so far.")
    ] = False,
    json: AsJson = False,
) -> None:
    """Test-then-train scores of a stream against the number of examples."""
    from ramify import plots

    named = {path.stem: _read_run(path) for path in runs}
    if len(named) != len(runs):
        raise ValueError("two files have the same name, which labels the run: rename one")
    save_plot(lambda path: plots.progressive(named, path, metric=metric, cumulative=not by_window), out)
    _done(out, json)


@app.command(epilog=examples("ramify plot fmeasure valid.txt test.txt --model model --out fmeasure.png"))
def fmeasure(
    validation: Annotated[
        Path,
        typer.Argument(metavar="VALIDATION", help="Rows to tune on, not those of the training.", show_default=False),
    ],
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
    """An F measure against 1/c for each tuning method, on the rows it was tuned on and on others."""
    from ramify import plots
    from ramify.cli.evaluation import read_estimates
    from ramify.cli.models import load_model
    from ramify.decide import f_measure_curves

    tried = parse_cs(c)
    loaded = load_model(model, threads)
    tuned_on, others = (read_estimates(loaded, data, format, None, threads, tried) for data in (validation, test))
    curves = f_measure_curves(*tuned_on, *others, objective=objective.value, c=tried, empty=empty.value)
    save_plot(lambda path: plots.f_measure(curves, path, objective=objective.value), out)
    _done(out, json)


@app.command(epilog=examples("ramify plot pareto curve.json --out pareto.png"))
def pareto(
    curves: Annotated[
        list[Path],
        typer.Argument(
            metavar="CURVE…", help="Files that `tune --objective latency --curve` wrote.", show_default=False
        ),
    ],
    out: Picture,
    json: AsJson = False,
) -> None:
    """Precision against depth and time, one point for each tree tried."""
    from ramify import plots
    from ramify.models.plt.pareto import ParetoCurve

    named = {
        path.stem: _read_report(path, ParetoCurve, "a curve", "ramify tune --objective latency --curve")
        for path in curves
    }
    if len(named) != len(curves):
        raise ValueError("two files have the same name, which labels the curve: rename one")
    save_plot(lambda path: plots.pareto(named, path), out)
    _done(out, json)


@app.command(epilog=examples("ramify plot cover train.txt --out cover.png"))
def cover(data: DataFile, out: Picture, format: FormatOption = None, json: AsJson = False) -> None:
    """Share of rows covered by the most frequent labels: one, three or all labels of a row."""
    from ramify import plots

    indicator = _indicator(data, format)
    save_plot(lambda path: plots.label_cover(indicator, path), out)
    _done(out, json)


def _indicator(data: Path, format: Any) -> Any:
    """The labels of a data file as a 0/1 array."""
    from ramify.cli.data import read_labelled
    from ramify.data.labels import encode_labels

    rows = read_labelled(data, format)
    return encode_labels(rows.Y).indicator if isinstance(rows.Y, list) else rows.Y


def _read_run(path: Path) -> Any:
    from ramify.data import DataError
    from ramify.progressive import ProgressiveResult

    run = _read_report(path, ProgressiveResult, "a report of a run", "ramify stream --report")
    if not run.windows:
        raise DataError("the run has no windows, so there is nothing to draw", path)
    return run


def _read_report(path: Path, kind: Any, name: str, written_by: str) -> Any:
    """What another command wrote as JSON."""
    from json import loads

    from ramify.data import DataError
    from ramify.data.files import read_bytes

    content = read_bytes(path)
    try:
        return kind.from_dict(loads(content))
    except ValueError as error:
        raise DataError(f"not {name} ({error})", path, hint=f"see {written_by}") from None


def _done(out: Path, json: bool) -> None:
    if json:
        output.print_json({"written": [str(out)]})
    else:
        print(f"Wrote {out} ({output.size_in_words(out.stat().st_size)}).")
