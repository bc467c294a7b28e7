"""`ramify tune`: the thresholds of a model's decisions, or its tree for speed."""

from __future__ import annotations

from enum import Enum
from pathlib import Path
from typing import Annotated, Any

import typer

from ramify.cli import options, output
from ramify.cli.options import (
    AsJson,
    CList,
    DataFile,
    Empty,
    EmptyOption,
    FormatOption,
    ModelDirectory,
    Threads,
    examples,
    n_jobs,
    parse_cs,
    parse_lams,
)

EXAMPLES = examples(
    "ramify tune test.txt --model model --objective macro_f1 --method ofo",
    "ramify tune test.txt --model model --method fta --common --out tuned",
    "ramify tune test.txt --model model --method sto --c 100,20,5 --json",
    "ramify tune train.txt --model model --objective latency --out fast --curve curve.json",
)
RULE = "P@1 loss at most 0.1"


class Method(str, Enum):
    """How thresholds are tuned."""

    ofo = "ofo"
    fta = "fta"
    sto = "sto"


class TuneObjective(str, Enum):
    """A measure of decisions, or time."""

    macro_f1 = "macro_f1"
    macro_f2 = "macro_f2"
    macro_f05 = "macro_f0.5"
    macro_jaccard = "macro_jaccard"
    macro_g_mean = "macro_g_mean"
    micro_f1 = "micro_f1"
    example_f1 = "example_f1"
    latency = "latency"


def tune(
    context: typer.Context,
    data: DataFile,
    model: ModelDirectory,
    objective: Annotated[
        TuneObjective, typer.Option(help="Measure to maximise, or latency to choose a faster tree.")
    ] = TuneObjective.macro_f1,
    method: Annotated[
        Method, typer.Option(help="ofo: online; fta: fixed thresholds; sto: sorted probabilities.")
    ] = Method.ofo,
    c: CList = None,
    common: Annotated[bool, typer.Option("--common", help="fta: one threshold for all labels.")] = False,
    empty: EmptyOption = Empty.zero,
    folds: Annotated[int, typer.Option(min=1, help="Folds of the rows, to choose c on rows not tuned on.")] = 2,
    lam: Annotated[
        str | None,
        typer.Option("--lam", metavar="L,L,…", help="latency: trees to try, from 0 (similarity) to 2 (frequency)."),
    ] = None,
    rule: Annotated[
        str, typer.Option("--rule", help="latency: the tree to choose, such as 'microseconds at most 30'.")
    ] = RULE,
    curve: Annotated[
        Path | None, typer.Option("--curve", metavar="FILE", help="latency: write all measurements as JSON.")
    ] = None,
    k: Annotated[int, typer.Option(min=1, help="latency: labels to predict.")] = 1,
    validation: Annotated[float, typer.Option(help="latency: share of the rows to measure on.")] = 0.2,
    out: Annotated[
        Path | None, typer.Option(metavar="DIR", help="Directory of the tuned model; replaces the model by default.")
    ] = None,
    format: FormatOption = None,
    text_column: options.TextColumn = None,
    label_column: options.LabelColumn = None,
    label_separator: options.LabelSeparator = None,
    encoding: options.Encoding = None,
    delimiter: options.Delimiter = None,
    threads: Threads = None,
    json: AsJson = False,
) -> None:
    """Tune a model's thresholds on labelled rows that it was not trained on, and save them with the model.

    From then on `evaluate` and the library predict a label if its probability reaches its threshold.

    With --objective latency: train trees between similarity and frequency on most of the rows, measure them on the
    rest, and train the one that the rule chooses on all rows. The model's other settings stay as they are.
    """
    from ramify.cli.models import claim_target

    columns = options.columns_of(text_column, label_column, label_separator, None, encoding, delimiter)
    target = model if out is None else out
    claim_target(target, context)
    if objective is TuneObjective.latency:
        lams = None if lam is None else parse_lams(lam)
        report, words = _tune_latency(
            data, model, target, format, columns, threads, lams=lams, rule=rule, k=k, validation=validation
        )
        if curve is not None:
            from ramify.data.files import replaced_when_complete

            with replaced_when_complete(curve) as stream:
                stream.write((output.json_line(report) + "\n").encode())
    else:
        tried = parse_cs(c)
        choice = {"method": method.value, "objective": objective.value, "common": common, "empty": empty.value}
        report, words = _tune_thresholds(
            data, model, target, format, columns, threads, tried=tried, folds=folds, **choice
        )
    if json:
        output.print_json(report)
    else:
        print(words)


def _tune_thresholds(
    data: Path,
    model: Path,
    target: Path,
    format: Any,
    columns: Any,
    threads: int | None,
    *,
    tried: tuple[float, ...],
    folds: int,
    **choice: Any,
) -> tuple[dict[str, Any], str]:
    """Tune thresholds and save them with the model. Returns a report, and the same in words."""
    from ramify.cli.evaluation import read_estimates
    from ramify.cli.models import known_columns, load_model, save_portable
    from ramify.common import progress
    from ramify.decide import choose_thresholds
    from ramify.decide.decisions import value_of
    from ramify.decide.estimates import EMPTY, estimates

    with progress.shown(output.is_watched()):
        with progress.phase("reading", counter := progress.RowCounter()):
            loaded = load_model(model, threads)
            columns = known_columns(columns, loaded, data)
            answer, truth = read_estimates(loaded, data, format, columns, threads, tried, counter)
        with progress.phase("tuning"):
            found = estimates(answer, truth)
            chosen = choose_thresholds(found, None, c=tried, folds=min(folds, found.n_rows), **choice)
            loaded.set_thresholds(chosen.thresholds)
            save_portable(loaded, target)
    report = {
        "rows": found.n_rows,
        "labels": found.n_labels,
        "objective": choice["objective"],
        "method": choice["method"],
        "c": chosen.c,
        "validated": chosen.values[chosen.c],
        "at_half": value_of(found, 0.5, choice["objective"], EMPTY[choice["empty"]]),
        "model": str(target),
    }
    words = (
        f"Tuned {output.count(found.n_labels, 'threshold')} by {report['method']} on "
        f"{output.count(found.n_rows, 'row')}: {report['objective']} {100 * report['validated']:.2f} with "
        f"c = {chosen.c:g}, where p >= 0.5 has {100 * report['at_half']:.2f}. Saved to {target}."
    )
    return report, words


def _tune_latency(
    data: Path,
    model: Path,
    target: Path,
    format: Any,
    columns: Any,
    threads: int | None,
    *,
    lams: tuple[float, ...] | None,
    rule: str,
    k: int,
    validation: float,
) -> tuple[dict[str, Any], str]:
    """Try trees, choose one, train it on all rows and save it. Returns the curve as a report, and as a table."""
    from ramify.cli.data import read_for
    from ramify.cli.models import known_columns, load_model, save_portable
    from ramify.common import progress
    from ramify.models.plt.classifier import PLTClassifier
    from ramify.models.plt.pareto import LAMS, pareto_curve, parse_rule, with_lam

    parse_rule(rule)
    with progress.shown(output.is_watched()):
        loaded = load_model(model, threads)
        if not isinstance(loaded, PLTClassifier):
            raise ValueError(f"only a PLTClassifier has a tree to choose, this is a {type(loaded).__name__}")
        columns = known_columns(columns, loaded, data)
        rows = read_for(loaded, data, format, columns, threads=n_jobs(threads))
        X, y = rows.X, rows.classes() if loaded.is_multiclass_ else rows.Y
        settings: dict[str, Any] = {"k": k, "rule": rule, "validation": validation, "random_state": loaded.seed_}
        curve = pareto_curve(loaded, X, y, lams=LAMS if lams is None else lams, **settings)
        with progress.phase("training on all rows"):
            chosen = with_lam(loaded, curve.chosen.lam).fit(X, y)
        _copy_names(loaded, chosen)
        save_portable(chosen, target)
    report = curve.to_dict() | {"rows": rows.n_rows, "model": str(target)}
    lines = [f"lambda     P@{curve.k}  depth  blocks  us a row  us in batch"]
    for point in curve.points:
        mark = "  <- chosen" if point.lam == curve.chosen.lam else ""
        lines.append(
            f"{point.lam:<6g} {100 * point.precision:7.2f} {point.expected_depth:6.2f} {point.blocks:7.1f} "
            f"{point.microseconds:9.1f} {point.batch_microseconds:12.1f}{mark}"
        )
    lines.append(f"Took lambda {curve.chosen.lam:g} by the rule '{rule}'. Saved to {target}.")
    return report, "\n".join(lines)


def _copy_names(old: Any, new: Any) -> None:
    """Give the names of labels and features to a model that was trained again."""
    schema = old.schema_
    if schema.label_names is not None:
        known = set(new.classes_.tolist())
        names = zip(old.classes_.tolist(), schema.label_names.tolist(), strict=True)
        labels = {label: name for label, name in names if label in known}
        if labels:
            new.set_names(labels=labels)
    if schema.column_names is not None and new.n_features_in_ == old.n_features_in_:
        new.set_names(features=schema.column_names.tolist())
