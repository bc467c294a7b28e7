"""Plots show the given numbers, are saved in the format of the suffix, and do not use pyplot."""

from __future__ import annotations

import struct
import subprocess
import sys
import xml.etree.ElementTree as ElementTree

import numpy as np
import pytest
from scipy.sparse import csr_array

from ramify import PLTClassifier, metrics, plots
from ramify.trees import LabelTree
from shared.warm_python import warm_python

Y = csr_array(np.array([[1, 0, 1, 0], [1, 0, 0, 0], [1, 1, 0, 0], [1, 0, 1, 0]]))  # counts 4, 1, 2, 0
P = csr_array(np.array([[0.92, 0, 0.31, 0], [0.81, 0.12, 0, 0], [0.85, 0.35, 0, 0.14], [0.96, 0, 0.38, 0]]))
TREE = LabelTree(parent=[-1, 0, 0, 0, 1, 1], label=[-1, -1, 0, 1, 2, 3])


def line(axes, label):
    (found,) = [line for line in axes.lines if str(line.get_label()).startswith(label)]
    return found.get_xydata()


def bars(container):
    return {round(bar.get_x() + bar.get_width() / 2): bar.get_height() for bar in container}


DRAWINGS = {
    "label_frequency": lambda path=None: plots.label_frequency(Y, path),
    "reliability_diagram": lambda path=None: plots.reliability_diagram(Y, P, path),
    "tree_shape": lambda path=None: plots.tree_shape(TREE, path),
}
every_drawing = pytest.mark.parametrize("draw", DRAWINGS.values(), ids=DRAWINGS)


@every_drawing
def test_a_png_is_large_enough_for_print(draw, tmp_path):
    draw(tmp_path / "plot.PNG")
    content = (tmp_path / "plot.PNG").read_bytes()
    assert content.startswith(b"\x89PNG\r\n\x1a\n")
    assert content.endswith(b"IEND\xaeB`\x82")
    width, height = struct.unpack(">II", content[16:24])
    assert width >= 1000
    assert height >= 700


@every_drawing
def test_an_svg_is_valid(draw, tmp_path):
    draw(str(tmp_path / "plot.svg"))
    root = ElementTree.parse(tmp_path / "plot.svg").getroot()
    assert root.tag == "{http://www.w3.org/2000/svg}svg"
    assert len(list(root.iter("{http://www.w3.org/2000/svg}path"))) > 10


@every_drawing
@pytest.mark.parametrize("name", ["plot.pdf", "plot", "png"])
def test_other_suffixes_are_rejected_and_nothing_is_written(draw, name, tmp_path):
    with pytest.raises(ValueError, match=rf"{name}.*must end in \.png or \.svg"):
        draw(tmp_path / name)
    assert list(tmp_path.iterdir()) == []


@every_drawing
def test_texts_of_a_figure_do_not_overlap(draw):
    figure = draw()
    from matplotlib.backends.backend_agg import FigureCanvasAgg

    canvas = FigureCanvasAgg(figure)
    canvas.draw()
    boxes = []
    for axes in figure.axes:
        ticks = [t for a in (axes.xaxis, axes.yaxis) for t in a.get_ticklabels() if inside(t, axes)]
        legend = axes.get_legend().get_texts() if axes.get_legend() else []
        texts = [axes.title, axes.xaxis.label, axes.yaxis.label, *ticks, *legend]
        boxes += [(t.get_text(), t.get_window_extent(canvas.get_renderer())) for t in texts if shown(t)]
    assert len(boxes) > 10
    for i, (first, box) in enumerate(boxes):
        assert box.x0 >= 0
        assert box.x1 <= figure.bbox.width, first
        for second, other in boxes[i + 1 :]:
            assert not box.overlaps(other), (first, second)


def shown(text):
    return text.get_visible() and text.get_text()


def inside(text, axes):
    x, y = text.get_position()
    (left, right), (low, high) = axes.get_xlim(), axes.get_ylim()
    return shown(text) and ((left <= x <= right and y in (0, 1)) or (low <= y <= high and x in (0, 1)))


def test_label_frequency_shows_counts_by_rank_and_the_cumulative_share():
    left, right = plots.label_frequency(Y).axes
    assert left.lines[0].get_xydata().tolist() == [[1, 4], [2, 2], [3, 1]]
    np.testing.assert_allclose(right.lines[0].get_xydata(), [[1, 4 / 7], [2, 6 / 7], [3, 1]])
    assert (left.get_xscale(), left.get_yscale(), right.get_xscale()) == ("log", "log", "log")
    assert left.get_title() == "4 of 4 labels have 5 positives or fewer"
    assert [t.get_text() for t in right.get_legend().get_texts()] == [
        "50% of positives: 1 label (25%)",
        "90% of positives: 3 labels (75%)",
    ]


def test_label_frequency_keeps_every_bend_of_a_long_tail_but_not_every_point():
    counts = np.repeat([500, 40, 3, 1], [1, 10, 1000, 20_000])
    columns = np.repeat(np.arange(counts.size), counts)
    Y = csr_array((np.ones(columns.size), columns, np.arange(columns.size + 1)), shape=(columns.size, counts.size))
    rank, shown = plots.label_frequency(Y).axes[0].lines[0].get_data()
    assert rank.size < 1000
    np.testing.assert_array_equal(shown, counts[rank.astype(int) - 1])
    assert {1, 2, 11, 12, 1011, 1012, 21_011} <= set(rank.tolist())


def test_label_frequency_needs_a_positive():
    with pytest.raises(ValueError, match="Y contains no positives"):
        plots.label_frequency(csr_array((3, 4)))


def test_reliability_diagram_shows_the_reliability_curve_of_every_model():
    models = {"one": P, "two": P * 0.5}
    top, bottom = plots.reliability_diagram(Y, models, n_bins=5).axes
    for (name, estimates), steps in zip(models.items(), bottom.patches, strict=True):
        curve = metrics.reliability_curve(Y, estimates, n_bins=5)
        filled = curve.count > 0
        expected = np.column_stack([curve.mean_probability[filled], curve.frequency[filled]])
        np.testing.assert_allclose(line(top, f"{name} (mean gap"), expected)
        np.testing.assert_array_equal(steps.get_data().values, curve.count)
    assert line(top, "perfectly").tolist() == [[0, 0], [1, 1]]


def test_reliability_intervals_are_wilson_intervals():
    truth = csr_array(np.array([[1], [0], [0], [0]]))
    top, _ = plots.reliability_diagram(truth, csr_array(np.full((4, 1), 0.3))).axes
    (interval,) = [segment for lines in top.collections for segment in lines.get_segments()]
    np.testing.assert_allclose(interval, [[0.3, 0.0456], [0.3, 0.6994]], atol=1e-3)  # 1 of 4, textbook value


def test_a_reliability_diagram_without_estimates_and_its_bad_input():
    top, _ = plots.reliability_diagram(Y, csr_array((4, 4))).axes
    assert line(top, "model (no estimates)").size == 0
    with pytest.raises(ValueError, match="P is empty; pass at least one model"):
        plots.reliability_diagram(Y, {})
    with pytest.raises(ValueError, match="P has 8 models, but a plot can show at most 7"):
        plots.reliability_diagram(Y, {str(i): P for i in range(8)})
    with pytest.raises(ValueError, match="n_bins must be an integer of at least 1"):
        plots.reliability_diagram(Y, P, n_bins=0)


def test_tree_shape_shows_nodes_and_labels_per_depth_and_the_branching():
    left, right = plots.tree_shape(TREE).axes
    inner, labels = left.containers
    assert bars(inner) == {0: 1, 1: 1, 2: 0}
    assert bars(labels) == {0: 0, 1: 2, 2: 2}
    assert right.lines[0].get_xydata().tolist() == [[2, 1], [3, 1]]
    assert left.get_title() == "4 labels at mean depth 1.50, 6 nodes in total"
    assert right.get_title() == "2.5 children on average, at most 3"


def test_tree_shape_of_a_single_leaf(tmp_path):
    left, right = plots.tree_shape(LabelTree([-1], [0]), tmp_path / "leaf.png").axes
    assert bars(left.containers[1]) == {0: 1}
    assert right.get_title() == "a single leaf, no inner nodes"


def test_pyplot_is_never_imported(tmp_path):
    program = (
        "import sys, numpy as np; from ramify import plots; "
        f"plots.label_frequency(np.eye(3), {str(tmp_path / 'plot.png')!r}); "
        "sys.exit('matplotlib.pyplot' in sys.modules)"
    )
    assert subprocess.run([*warm_python(), "-c", program], check=False).returncode == 0
    assert (tmp_path / "plot.png").exists()


@every_drawing
def test_without_matplotlib_the_error_names_the_extra(draw, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    with pytest.raises(ImportError, match=r"pip install 'ramify\[plots\]'"):
        draw()


@pytest.mark.parametrize(
    ("draw", "message"),
    [
        (lambda: plots.tree_shape(PLTClassifier()), "tree must be a ramify.trees.LabelTree .*, got PLTClassifier"),
        (lambda: plots.progressive([0.5, 0.6]), "a run must be a result of ramify.progressive.evaluate, got float"),
        (lambda: plots.progressive({"mine": 0.5}), "a run must be a result of ramify.progressive.evaluate, got float"),
        (lambda: plots.f_measure([PLTClassifier()]), "a curve must be one of ramify.decide.f_measure_curves"),
        (lambda: plots.pareto([1, 2]), "a curve must be one of ramify.models.plt.pareto.pareto_curve, got list"),
    ],
)
def test_objects_of_the_wrong_type_are_rejected(draw, message):
    with pytest.raises(TypeError, match=message):
        draw()
