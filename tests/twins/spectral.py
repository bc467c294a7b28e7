"""The hierarchical spectral method in plain numpy, as the paper writes it: dense, slow, and easy to check."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from scipy import stats


def label_least_squares(Y, target, importance):
    """argmin |Y v - target|^2, rows by importance; the least of all solutions (equation 3)."""
    root = np.sqrt(importance)[:, None]
    return np.linalg.lstsq(root * Y, root[:, 0] * target, rcond=None)[0]


def exact_split(X, Y, importance):
    """Top eigenvector and eigenvalue of the projected X^' P X^ (equation 2)."""
    X = X.astype(np.float64)
    root = np.sqrt(importance)[:, None]
    predicted = (root * Y) @ np.linalg.lstsq(root * Y, root * X, rcond=None)[0]
    balance = importance @ X
    length = np.linalg.norm(balance)
    projection = np.eye(X.shape[1]) - (np.outer(balance, balance) / length**2 if length > 0 else 0)
    values, vectors = np.linalg.eigh(projection @ predicted.T @ predicted @ projection)
    direction = vectors[:, -1]
    return direction * np.sign(direction[np.argmax(np.abs(direction))]), values[-1]


def plain_median(z, importance):
    order = np.argsort(z, kind="stable")
    values, reached = z[order], np.cumsum(importance[order])
    boundary = values[0]
    for k in range(len(values) - 1):
        if values[k + 1] == values[k]:
            continue
        boundary = (values[k] + values[k + 1]) / 2
        if reached[k] >= reached[-1] / 2 * (1 - 1e-9):
            break
    return boundary


@dataclass
class TwinNode:
    mass: float
    child: int = -1
    sigma: float = 0.0
    candidates: list = field(default_factory=list)


def plain_tree(X, Y, settings):
    """The tree breadth first; rows are scaled to unit length."""
    X = X / np.linalg.norm(X, axis=1, keepdims=True)
    nodes, level = [], [(np.arange(len(X)), np.ones(len(X)))]
    for depth in range(settings.depth + 1):
        first, following = len(nodes) + len(level), []
        for rows, path in level:
            count = path @ Y[rows]
            ranked = np.lexsort((np.arange(len(count)), -count))
            best = [int(label) for label in ranked[: settings.n_candidates] if count[label] > 0]
            node = TwinNode(mass=path.sum(), candidates=best)
            nodes.append(node)
            if depth == settings.depth or count[best].sum() >= settings.recall * count.sum():
                continue
            direction, value = exact_split(X[rows], Y[rows], path)
            z = X[rows] @ direction
            score = z - plain_median(z, path)
            node.sigma = settings.noise * value / path.sum()
            share = stats.norm.cdf(score / node.sigma) if node.sigma > 0 else (score > 0).astype(float)
            right, left = path * share, path * (1 - share)
            small = (right < settings.min_path) | (left < settings.min_path)
            goes_right = right > left
            right = np.where(small, np.where(goes_right, path, 0), right)
            left = np.where(small, np.where(goes_right, 0, path), left)
            node.child = first + len(following)
            following += [(rows[left > 0], left[left > 0]), (rows[right > 0], right[right > 0])]
        level = following
    return nodes


def plain_leaf(arrays, row):
    """The leaf of a prepared row."""
    x, v = np.append(row, 1.0), 0
    while arrays["child"][v] >= 0:
        part = slice(arrays["weight_begin"][v], arrays["weight_begin"][v + 1])
        v = int(arrays["child"][v]) + int(x[arrays["weight_feature"][part]] @ arrays["weight"][part] > 0)
    return v
