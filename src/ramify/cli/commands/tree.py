"""`ramify tree`: the label tree of a model, or the candidate tree of a spectral model."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Annotated, Any

import typer

from ramify.cli import output
from ramify.cli.options import AsJson, ModelDirectory, examples

EXAMPLES = examples(
    "ramify tree --model model",
    "ramify tree --model model --depth 3 --children 4",
    "ramify tree --model model --cost",
    "ramify tree --model model --out tree.txt --plot tree.png",
)
# A long line is cut at the edge of a terminal.
CUT: dict[str, Any] = {"overflow": "ellipsis", "no_wrap": True, "crop": True}


def tree(
    model: ModelDirectory,
    depth: Annotated[int, typer.Option(min=0, help="Levels to show.")] = 2,
    children: Annotated[int, typer.Option(min=1, help="Children to show of each node.")] = 6,
    number: Annotated[int, typer.Option("--tree", min=1, help="Number of the tree in an ensemble.")] = 1,
    out: Annotated[
        Path | None, typer.Option("--out", "-o", metavar="FILE", help="Write the tree as text, for `train --tree`.")
    ] = None,
    plot: Annotated[Path | None, typer.Option(metavar="FILE", help="Draw its shape as PNG or SVG.")] = None,
    cost: Annotated[bool, typer.Option("--cost", help="Show which labels are cheap or expensive to find.")] = False,
    top: Annotated[
        int | None, typer.Option(min=1, help="Candidate trees: most frequent labels to show of each node.")
    ] = None,
    json: AsJson = False,
) -> None:
    """Show the label tree of a model, or the candidate tree of a spectral model."""
    from ramify.cli.models import load_model, trees_of

    loaded = load_model(model)
    if hasattr(loaded, "filter_"):
        if out is not None or plot is not None:
            raise ValueError("--out and --plot are for label trees; the leaves of this model hold candidates")
        nodes = _candidate_nodes(loaded, depth=depth, top=top or 10)
        return output.print_json(nodes) if json else _print_candidate_nodes(loaded, nodes)
    if top is not None:
        raise ValueError("--top is for the candidate trees of spectral models: leave it out")
    trees = trees_of(loaded)
    if not trees:
        raise ValueError(f"a {type(loaded).__name__} has no label tree to show")
    if number > len(trees):
        raise ValueError(f"--tree {number}: the model has {output.count(len(trees), 'tree')}")
    label_tree = trees[number - 1]
    written = []
    if out is not None:
        from ramify.data.files import replaced_when_complete

        with replaced_when_complete(out) as stream:
            stream.write(label_tree.to_text().encode())
        written.append(str(out))
    if plot is not None:
        from ramify.plots import tree_shape

        output.save_plot(lambda path: tree_shape(label_tree, path), plot)
        written.append(str(plot))
    facts = _facts(label_tree)
    costs = _costs(loaded, label_tree) if cost else {}
    if json:
        output.print_json(facts | costs | {"trees": len(trees), "written": written})
        return
    print(
        f"{output.count(facts['labels'], 'label')} below {output.count(facts['inner_nodes'], 'inner node')}, "
        f"depth {facts['depth']} (mean {facts['mean_depth']:.2f}), {facts['mean_children']:.1f} children on average"
    )
    if cost:
        _print_costs(costs)
    else:
        _print_tree(loaded, label_tree, depth, children)
    for path in written:
        print(f"wrote {path}")


# --- label trees -----------------------------------------------------------------------------------------------------


def _facts(label_tree: Any) -> dict[str, Any]:
    is_leaf = label_tree.label >= 0
    inner = label_tree.n_children[~is_leaf]
    return {
        "labels": int(is_leaf.sum()),
        "inner_nodes": len(inner),
        "depth": label_tree.height,
        "mean_depth": float(label_tree.depth[is_leaf].mean()),
        "mean_children": float(inner.mean()) if len(inner) else 0.0,
        "nodes_per_depth": label_tree.nodes_per_depth.tolist(),
    }


def _print_tree(model: Any, label_tree: Any, depth: int, children: int) -> None:
    from ramify.cli.models import VisibleTitles

    for line in label_tree.render(VisibleTitles(model), max_depth=depth, max_children=children).split("\n"):
        output.show(_with_examples(line, model, label_tree), **CUT)


def _with_examples(line: str, model: Any, label_tree: Any) -> str:
    """The line of a node whose children are not shown, with some of the labels below it."""
    found = re.search(r"node (\d+): [\d,]+ labels? …$", line)
    if found is None:
        return line
    from ramify.explain.label_path import node_examples

    labels = ", ".join(node_examples(model.schema_, label_tree, int(found[1])))
    return f"{line.removesuffix(' …')}: {output.visible(labels)}, …"


def _costs(model: Any, label_tree: Any, n_shown: int = 10) -> dict[str, Any]:
    """The cheapest and the most expensive labels, and the number of labels found after each number of blocks."""
    import numpy as np

    from ramify.cli.models import LabelTitles
    from ramify.trees.costs import label_costs

    costs, titles = label_costs(label_tree), LabelTitles(model)
    order, has_names = costs.order(), 0 in titles

    def cost_of(label: int) -> dict[str, Any]:
        return {
            "column": label,
            "label": titles[label] if has_names else f"label {label}",
            "blocks": int(costs.blocks[label]),
            "products": int(costs.products[label]),
        }

    n_shown = min(n_shown, (len(order) + 1) // 2)
    return {
        "labels_by_blocks": np.bincount(costs.blocks[order]).tolist(),
        "cheap": [cost_of(label) for label in order[:n_shown].tolist()],
        "expensive": [cost_of(label) for label in order[::-1][:n_shown].tolist()],
    }


def _print_costs(costs: dict[str, Any]) -> None:
    shares = [f"{n:,} in {blocks}" for blocks, n in enumerate(costs["labels_by_blocks"]) if n]
    print(f"labels by the number of blocks on their path: {', '.join(shares)}")
    for kind, words in (("cheap", "cheapest"), ("expensive", "most expensive")):
        print(f"{words} labels (blocks, inner products):")
        for one in costs[kind]:
            label = output.visible(one["label"])
            output.show(f"  {one['blocks']:3d} {one['products']:6,d}  {label}", **CUT)


# --- candidate trees: table 2 of Mineiro and Karampatziakis 2015 -----------------------------------------------------


def _candidate_nodes(model: Any, *, depth: int, top: int) -> list[dict[str, Any]]:
    """The nodes down to a depth with their most frequent labels: parents before children, left before right."""
    from ramify.cli.models import LabelTitles

    frequent, titles = model.filter_.most_frequent(top), LabelTitles(model)
    child, mass = model.filter_.arrays["child"], model.filter_.arrays["mass"]
    nodes: list[dict[str, Any]] = []
    waiting = [(0, 0)]
    while waiting:
        node, level = waiting.pop()
        labels = [{"label": titles[column] or str(column), "rows": rows} for column, rows in frequent[node]]
        is_leaf = bool(child[node] < 0)
        nodes.append(
            {"node": node, "depth": level, "rows": float(mass[node]), "is_leaf": is_leaf, "most_frequent": labels}
        )
        if not is_leaf and level < depth:
            waiting += [(int(child[node]) + 1, level + 1), (int(child[node]), level + 1)]
    return nodes


def _print_candidate_nodes(model: Any, nodes: list[dict[str, Any]]) -> None:
    report = model.training_report_
    print(
        f"{output.count(model.n_labels_, 'label')}, {output.count(report['leaves'], 'leaf', 'leaves')}, "
        f"depth {report['depth']} (mean {report['mean_depth']:.2f}), {report['mean_candidates']:.1f} candidates per row"
    )
    for node in nodes:
        kind = "leaf" if node["is_leaf"] else "node"
        labels = output.visible(", ".join(str(entry["label"]) for entry in node["most_frequent"]))
        output.show(f"{'  ' * node['depth']}{kind} {node['node']}: {node['rows']:,.0f} rows: {labels}")
