"""Figure 2 of "Online probabilistic label trees" from the JSON lines of run.py: progressive entropy reduction.

python -m benchmarks.online_plt.figure benchmarks/work/online.jsonl benchmarks/online_plt/few-shot.png
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np

from benchmarks.online_plt import tables


def draw(results: Path, target: Path) -> None:
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    rows = [row for row in tables.read(results) if "curve" in row and row["seed"] == 0 and not row["parameters"]]
    sets = list(dict.fromkeys(row["set"] for row in rows))
    if not sets:
        hint = "hint: first run python -m benchmarks.online_plt.run few-shot --data FOLDER"
        raise SystemExit(f"error: {results} holds no progressive run\n{hint}")
    colours: dict[str, str] = {}
    figure, axes = pyplot.subplots(1, len(sets), figsize=(5 * len(sets), 4), squeeze=False, layout="constrained")
    for name, axis in zip(sets, axes[0], strict=True):
        own = [row for row in rows if row["set"] == name]
        # the constant predictor is the same for all; ramify's runs carry it
        base = next((row for row in own if "constant" in row), None)
        if base is None:
            raise SystemExit(
                f"error: {results} holds no run of ramify on {name}; its constant predictor is the baseline"
            )
        at = np.array(base["curve"])[:, 0]
        for row in own:
            examples, accuracy = np.array(row["curve"]).T
            # Where every class is as rare, the constant predictor may never be right: count one answer as right.
            constant = np.maximum(np.interp(examples, at, base["constant"]), 1 / examples)
            with np.errstate(divide="ignore", invalid="ignore"):
                reduction = np.log2(accuracy) - np.log2(constant)
            shown = np.isfinite(reduction)
            learner = f"{row['system']} {row['setting']}".replace("vowpal_wabbit", "VW").replace("-one-label", "")
            axis.plot(
                examples[shown], reduction[shown], label=learner, color=colours.setdefault(learner, f"C{len(colours)}")
            )
        axis.set(title=name, xlabel="examples", ylabel="entropy reduction (bits)")
        axis.legend(fontsize="x-small")
    figure.savefig(target, dpi=100)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("results", type=Path)
    parser.add_argument("target", type=Path)
    arguments = parser.parse_args()
    draw(arguments.results, arguments.target)


if __name__ == "__main__":
    main()
