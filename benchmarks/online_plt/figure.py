"""Figure 2 of "Online probabilistic label trees" from the JSON lines of run.py: progressive entropy reduction.

python -m benchmarks.online_plt.figure benchmarks/work/online.jsonl docs/figures/few-shot.svg
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.online_plt import tables
from ramify.plots.drawing import COLOURS, finish, formatter, new_figure, readable_log_ticks

# What is drawn, of all settings that a run may hold; Vowpal Wabbit's if it was run.
LEARNERS = {
    "ramify best-few-shot-papers-steps": "OPLT, best-greedy",
    "ramify random-few-shot-papers-steps": "OPLT, random",
    "ramify fair-one-label": "our default (fair)",
    "ramify memory-tree": "our memory tree",
    "vowpal_wabbit memory-tree-l-1": "memory tree of Vowpal Wabbit",
    "vowpal_wabbit log-multi": "LOMtree of Vowpal Wabbit",
}
STYLES = dict(zip(LEARNERS, ("-", "--", "-.", ":", "-", "--"), strict=True))


def draw(results: Path, target: Path) -> None:
    rows = [row for row in tables.read(results) if "curve" in row and row["seed"] == 0 and not row["parameters"]]
    sets = list(dict.fromkeys(row["set"] for row in rows))
    if not sets:
        hint = "hint: first run python -m benchmarks.online_plt.run few-shot --data FOLDER"
        raise SystemExit(f"error: {results} holds no progressive run\n{hint}")
    figure = new_figure(5.5 * len(sets), 4, target)
    axes = figure.subplots(1, len(sets), squeeze=False)[0]
    for name, axis in zip(sets, axes, strict=True):
        own = {f"{row['system']} {row['setting']}": row for row in rows if row["set"] == name}
        # the constant predictor is the same for all; ramify's runs carry it
        base = next((row for row in own.values() if "constant" in row), None)
        if base is None:
            raise SystemExit(
                f"error: {results} holds no run of ramify on {name}; its constant predictor is the baseline"
            )
        for place, learner in enumerate(LEARNERS):
            if learner in own:
                examples, reduction = entropy_reduction(own[learner], base)
                style: dict[str, Any] = {"color": COLOURS[place], "linestyle": STYLES[learner], "linewidth": 1.8}
                axis.plot(examples, reduction, label=LEARNERS[learner], **style)
        axis.set(title=name, xlabel="examples", ylabel="entropy reduction (bits)", xscale="log")
        readable_log_ticks(axis.xaxis)
        axis.yaxis.set_major_formatter(formatter(lambda value: f"{value:g}"))
        axis.legend()
    finish(figure, target)
    print(f"wrote {target}")


def entropy_reduction(row: dict[str, Any], base: dict[str, Any]) -> tuple[Any, Any]:
    """Examples, and log2 of the accuracy so far over that of the constant predictor, where it is finite."""
    examples, accuracy = np.array(row["curve"]).T
    # Where every class is as rare, the constant predictor may never be right: count one answer as right.
    constant = np.maximum(np.interp(examples, np.array(base["curve"])[:, 0], base["constant"]), 1 / examples)
    with np.errstate(divide="ignore", invalid="ignore"):
        reduction = np.log2(accuracy) - np.log2(constant)
    shown = np.isfinite(reduction)
    return examples[shown], reduction[shown]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("results", type=Path)
    parser.add_argument("target", type=Path)
    arguments = parser.parse_args()
    draw(arguments.results, arguments.target)


if __name__ == "__main__":
    main()
