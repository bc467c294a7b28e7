"""`ramify tree`: the label tree of a model."""

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


def tree(
    model: ModelDirectory,
    depth: Annotated[int, typer.Option(min=0, help="Levels shown.")] = 2,
    children: Annotated[int, typer.Option(min=1, help="Children shown of a node.")] = 6,
    number: Annotated[int, typer.Option("--tree", min=1, help="Which tree of an ensemble.")] = 1,
    out: Annotated[
        Path | None, typer.Option("--out", "-o", metavar="FILE", help="Write the tree as text, for `train --tree`.")
    ] = None,
    plot: Annotated[Path | None, typer.Option(metavar="FILE", help="Draw its shape as PNG or SVG.")] = None,
    cost: Annotated[bool, typer.Option("--cost", help="Which labels are cheap to find and which are dear.")] = False,
    top: Annotated[
        int | None, typer.Option(min=1, help="Candidate trees: so many of each node's most frequent labels.")
    ] = None,
    json: AsJson = False,
) -> None:
    """Show the label tree of a model, or of a spectral one its candidate tree."""
    from ramify.cli.models import LabelTitles, load_model, trees_of

    loaded = load_model(model)
    if hasattr(loaded, "filter_"):
        from ramify.cli.candidate_nodes import node_lines, print_nodes

        if out is not None or plot is not None:
            raise ValueError("--out and --plot are for label trees; the leaves of this model hold candidates")
        if json:
            output.print_json(node_lines(loaded, depth=depth, top=top or 10))
        else:
            print_nodes(loaded, depth=depth, top=top or 10)
        return
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
        from ramify.cli.commands.plot import save_plot
        from ramify.plots import tree_shape

        save_plot(lambda path: tree_shape(label_tree, path), plot)
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
        return _print_costs(costs)
    console = output.console()
    for line in label_tree.render(LabelTitles(loaded), max_depth=depth, max_children=children).splitlines():
        console.print(_with_examples(line, loaded, label_tree), overflow="ellipsis", no_wrap=True, crop=True)
    for path in written:
        print(f"wrote {path}")


def _costs(model: Any, label_tree: Any, n_shown: int = 10) -> dict[str, Any]:
    """The cheapest and the dearest labels, and how many labels each number of blocks finds."""
    import numpy as np

    from ramify.cli.models import LabelTitles
    from ramify.trees.costs import label_costs

    costs, titles = label_costs(label_tree), LabelTitles(model)
    order, has_names = costs.order(), 0 in titles

    def told(label: int) -> dict[str, Any]:
        return {
            "column": label,
            "label": titles[label] if has_names else f"label {label}",
            "blocks": int(costs.blocks[label]),
            "products": int(costs.products[label]),
        }

    n_shown = min(n_shown, (len(order) + 1) // 2)
    return {
        "labels_by_blocks": np.bincount(costs.blocks[order]).tolist(),
        "cheap": [told(label) for label in order[:n_shown].tolist()],
        "dear": [told(label) for label in order[::-1][:n_shown].tolist()],
    }


def _print_costs(costs: dict[str, Any]) -> None:
    console = output.console()
    shares = [f"{n:,} in {blocks}" for blocks, n in enumerate(costs["labels_by_blocks"]) if n]
    console.print(f"labels by the blocks that their path takes: {', '.join(shares)}", soft_wrap=True)
    for kind, words in (("cheap", "cheapest"), ("dear", "dearest")):
        print(f"{words} labels (blocks, inner products):")
        for one in costs[kind]:
            line = f"  {one['blocks']:3d} {one['products']:6,d}  {one['label']}"
            console.print(line, overflow="ellipsis", no_wrap=True, crop=True, markup=False, highlight=False)


def _with_examples(line: str, model: Any, label_tree: Any) -> str:
    """The line of a node whose children are not shown, with some of the labels below it."""
    found = re.search(r"node (\d+): [\d,]+ labels? …$", line)
    if found is None:
        return line
    from ramify.explain.label_path import node_examples

    return f"{line.removesuffix(' …')}: {', '.join(node_examples(model, label_tree, int(found[1])))}, …"


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
