"""`ramify tune --objective latency`: a model's tree chosen for its time."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import typer

from ramify.cli import output
from ramify.cli.options import n_jobs

RULE = "P@1 loss at most 0.1"

Lams = Annotated[
    str | None,
    typer.Option("--lam", metavar="L,L,…", help="latency: trees tried, from 0 (similarity) to 2 (frequency)."),
]
RuleOption = Annotated[
    str, typer.Option("--rule", help="latency: which tree to take, such as 'microseconds at most 30'.")
]
CurveFile = Annotated[
    Path | None, typer.Option("--curve", metavar="FILE", help="latency: write all that was measured, as JSON.")
]


@dataclass(frozen=True)
class Settings:
    """What is tried, and how it is chosen."""

    lam: str | None
    rule: str
    k: int
    validation: float
    curve: Path | None


def tune_latency(
    data: Path, model: Path, out: Path | None, settings: Settings, format: Any, threads: int | None, as_json: bool
) -> None:
    """Sweep lambda, choose, train on all rows, and save."""
    from ramify.cli.labelled import read_for
    from ramify.cli.models import check_target, load_model, save_without_machine
    from ramify.common import progress
    from ramify.data.files import replaced_when_complete
    from ramify.models.plt.classifier import PLTClassifier
    from ramify.models.plt.pareto import LAMS, pareto_curve, parse_rule, with_lam

    lams = LAMS if settings.lam is None else parse_lams(settings.lam)
    parse_rule(settings.rule)
    target = model if out is None else out
    check_target(target)
    with progress.shown(output.is_watched()):
        loaded = load_model(model, threads)
        if not isinstance(loaded, PLTClassifier):
            raise ValueError(f"only a PLTClassifier has a tree to choose, this is a {type(loaded).__name__}")
        rows = read_for(loaded, data, format, n_jobs(threads))
        y = rows.classes() if loaded.is_multiclass_ else rows.Y
        curve = pareto_curve(
            loaded,
            rows.X,
            y,
            lams=lams,
            k=settings.k,
            rule=settings.rule,
            validation=settings.validation,
            random_state=loaded.seed_,
        )
        with progress.phase("training on all rows"):
            chosen = with_lam(loaded, curve.chosen.lam).fit(rows.X, y)
        for name in ("label_names_", "feature_column_names_", "source_format_"):
            if name in loaded.__dict__ and chosen.n_labels_ == loaded.n_labels_:
                setattr(chosen, name, loaded.__dict__[name])
        save_without_machine(chosen, target)
    report = curve.to_dict() | {"rows": rows.n_rows, "model": str(target)}
    if settings.curve is not None:
        with replaced_when_complete(settings.curve) as stream:
            stream.write((json.dumps(report, indent=1) + "\n").encode())
    if as_json:
        output.print_json(report)
        return
    print(in_words(curve))
    print(f"Took lambda {curve.chosen.lam:g} by the rule '{settings.rule}'. Saved to {target}.")


def in_words(curve: Any) -> str:
    """A line for each tree."""
    lines = [f"lambda     P@{curve.k}  depth  blocks  us a row  us in batch"]
    for point in curve.points:
        mark = "  <- chosen" if point.lam == curve.chosen.lam else ""
        lines.append(
            f"{point.lam:<6g} {100 * point.precision:7.2f} {point.expected_depth:6.2f} {point.blocks:7.1f} "
            f"{point.microseconds:9.1f} {point.batch_microseconds:12.1f}{mark}"
        )
    return "\n".join(lines)


def parse_lams(text: str) -> tuple[float, ...]:
    """
    >>> parse_lams("0,0.5,2")
    (0.0, 0.5, 2.0)
    """
    try:
        values = tuple(float(part) for part in text.split(","))
    except ValueError:
        values = ()
    if not values or not all(0 <= one <= 2 for one in values):
        raise ValueError(f"--lam takes numbers from 0 to 2 with commas between them, such as 0,0.5,1; got {text!r}")
    return values
