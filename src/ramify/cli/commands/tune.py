"""`ramify tune`: from which probability on a model gives each label, or how fast it answers."""

from __future__ import annotations

from enum import Enum
from pathlib import Path
from typing import Annotated, Any

import typer

from ramify.cli import latency, output
from ramify.cli.options import AsJson, DataFile, FormatOption, ModelDirectory, Threads, examples, n_jobs

EXAMPLES = examples(
    "ramify tune test.txt --model model --objective macro_f1 --method ofo",
    "ramify tune test.txt --model model --method fta --common --out tuned",
    "ramify tune test.txt --model model --method sto --c 100,20,5 --json",
    "ramify tune train.txt --model model --objective latency --out fast --curve curve.json",
)


class Method(str, Enum):
    """How thresholds are tuned."""

    ofo = "ofo"
    fta = "fta"
    sto = "sto"


class Objective(str, Enum):
    """What they are tuned for."""

    macro_f1 = "macro_f1"
    micro_f1 = "micro_f1"
    example_f1 = "example_f1"


class TuneObjective(str, Enum):
    """An F measure, or time."""

    macro_f1 = "macro_f1"
    micro_f1 = "micro_f1"
    example_f1 = "example_f1"
    latency = "latency"


class Empty(str, Enum):
    """What a label counts that is neither true nor given."""

    zero = "zero"
    one = "one"


ObjectiveOption = Annotated[Objective, typer.Option(help="F measure to be raised.")]
EmptyOption = Annotated[Empty, typer.Option(help="What a label counts that is neither true nor given.")]
CList = Annotated[
    str | None, typer.Option("--c", metavar="C,C,…", help="Cuts (1/c) or starts of thresholds; by default the paper's.")
]


def tune(
    data: DataFile,
    model: ModelDirectory,
    objective: Annotated[
        TuneObjective, typer.Option(help="F measure to be raised, or time to be saved by another tree.")
    ] = TuneObjective.macro_f1,
    method: Annotated[Method, typer.Option(help="Online, by fixed thresholds, or by sorting.")] = Method.ofo,
    c: CList = None,
    common: Annotated[bool, typer.Option("--common", help="fta: one threshold for all labels.")] = False,
    empty: EmptyOption = Empty.zero,
    folds: Annotated[int, typer.Option(min=1, help="Parts of the rows, for choosing c on rows not tuned on.")] = 2,
    lam: latency.Lams = None,
    rule: latency.RuleOption = latency.RULE,
    curve: latency.CurveFile = None,
    k: Annotated[int, typer.Option(min=1, help="latency: labels asked for.")] = 1,
    validation: Annotated[float, typer.Option(help="latency: share of the rows to measure on.")] = 0.2,
    out: Annotated[
        Path | None, typer.Option(metavar="DIR", help="Where the tuned model goes; by default it stays in its place.")
    ] = None,
    format: FormatOption = None,
    threads: Threads = None,
    json: AsJson = False,
) -> None:
    """Tune a model's decisions on labelled rows that it was not trained on, and write the thresholds into it.

    From then on predict, evaluate and the library give a label where its probability reaches its threshold.

    With --objective latency: train trees between similarity and frequency on most of the rows, measure them on the
    rest, and train the one that the rule chooses on all rows; the model's other settings stay as they are.
    """
    from ramify.cli.models import check_target, load_model, save_without_machine
    from ramify.common import progress
    from ramify.decide import choose_thresholds
    from ramify.decide.decisions import value_of
    from ramify.decide.estimates import EMPTY, estimates

    if objective is TuneObjective.latency:
        settings = latency.Settings(lam, rule, k, validation, curve)
        return latency.tune_latency(data, model, out, settings, format, threads, json)
    tried = parse_cs(c)
    target = model if out is None else out
    check_target(target)
    with progress.shown(output.is_watched()):
        with progress.phase("reading"):
            loaded = load_model(model, threads)
            answer, truth = read_estimates(loaded, data, format, threads, tried)
        with progress.phase("tuning"):
            found = estimates(answer, truth)
            choice = choose_thresholds(
                found,
                None,
                method=method.value,
                objective=objective.value,
                c=tried,
                common=common,
                empty=empty.value,
                folds=min(folds, found.n_rows),
            )
            loaded.set_thresholds(choice.thresholds)
            save_without_machine(loaded, target)
    report = {
        "rows": found.n_rows,
        "labels": found.n_labels,
        "objective": objective.value,
        "method": method.value,
        "c": choice.c,
        "validated": choice.values[choice.c],
        "at_half": value_of(found, 0.5, objective.value, EMPTY[empty.value]),
        "model": str(target),
    }
    if json:
        output.print_json(report)
        return
    print(
        f"Tuned {output.count(found.n_labels, 'threshold')} by {method.value} on {output.count(found.n_rows, 'row')}: "
        f"{objective.value} {100 * report['validated']:.2f} with c = {choice.c:g}, "
        f"where p >= 0.5 has {100 * report['at_half']:.2f}. Saved to {target}."
    )


def read_estimates(
    model: Any, data: Path, format: Any, threads: int | None, tried: tuple[float, ...]
) -> tuple[Any, Any]:
    """Estimates down to the smallest cut, and the truth, of the rows of a file; unknown labels are left out."""
    from ramify.cli.labelled import as_wide_as, read_for, truth_for
    from ramify.decide.choice import CANDIDATES

    if model.is_multiclass_:
        raise ValueError("the model gives one class a row, the most probable one: there are no thresholds to tune")
    rows = read_for(model, data, format, n_jobs(threads))
    truth, _ = truth_for(model, rows)
    if truth.shape[1] > model.n_labels_:
        truth = truth[:, : model.n_labels_]
    answer = model.predict_proba(rows.X, top_k=CANDIDATES, threshold=1 / max(tried))
    return answer, as_wide_as(truth, model.n_labels_)


def parse_cs(text: str | None) -> tuple[float, ...]:
    """
    >>> parse_cs("100,20")
    (100.0, 20.0)
    """
    from ramify.decide import C

    if text is None:
        return tuple(float(one) for one in C)
    try:
        values = tuple(float(part) for part in text.split(","))
    except ValueError:
        values = ()
    if not values or not all(1 <= one < float("inf") for one in values):
        raise ValueError(f"--c takes numbers of at least 1 with commas between them, such as 100,20,5; got {text!r}")
    return values
