"""The nodes of a candidate tree with their most frequent labels, as table 2 of the hierarchical-spectral paper."""

from __future__ import annotations

from typing import Any

from ramify.cli import output
from ramify.cli.models import LabelTitles


def node_lines(model: Any, *, depth: int, top: int) -> list[dict[str, Any]]:
    """Every node down to a depth, parents before their children and left before right, with its labels."""
    tree = model.filter_
    frequent = tree.most_frequent(top)
    titles = LabelTitles(model)
    child, mass = tree.arrays["child"], tree.arrays["mass"]
    lines: list[dict[str, Any]] = []
    waiting = [(0, 0)]
    while waiting:
        node, level = waiting.pop()
        labels = [{"label": titles[column] or str(column), "rows": rows} for column, rows in frequent[node]]
        is_leaf = bool(child[node] < 0)
        lines.append(
            {"node": node, "depth": level, "rows": float(mass[node]), "is_leaf": is_leaf, "most_frequent": labels}
        )
        if not is_leaf and level < depth:
            waiting += [(int(child[node]) + 1, level + 1), (int(child[node]), level + 1)]
    return lines


def print_nodes(model: Any, *, depth: int, top: int) -> None:
    """The same for people."""
    report = model.training_report_
    print(
        f"{output.count(model.n_labels_, 'label')}, {output.count(report['leaves'], 'leaf', 'leaves')}, "
        f"depth {report['depth']} (mean {report['mean_depth']:.2f}), {report['mean_candidates']:.1f} candidates a row"
    )
    console = output.console()
    for line in node_lines(model, depth=depth, top=top):
        kind = "leaf" if line["is_leaf"] else "node"
        labels = ", ".join(str(entry["label"]) for entry in line["most_frequent"])
        console.print(
            f"{'  ' * line['depth']}{kind} {line['node']}: {line['rows']:,.0f} rows: {labels}", highlight=False
        )
