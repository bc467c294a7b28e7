"""Probabilities of all nodes of a label tree by enumeration, in float64 (Jasinska-Kobus et al. 2021, equation
2)."""

from __future__ import annotations

import numpy as np
from scipy.special import expit, softmax


def prepared(X, normalize, bias):
    """Dense rows as the models see them: unit length, a bias feature at the end."""
    X = np.asarray(X, dtype=np.float64)
    if normalize:
        length = np.sqrt((X**2).sum(axis=1, keepdims=True))
        X = X / np.where(length > 0, length, 1.0)
    return np.hstack([X, np.full((len(X), 1), bias)]) if bias else X


def link_map(scores, logits, low, step):
    """Piecewise linear through the knots; the outer pieces extend to infinity."""
    at = (scores - low) / step
    knot = np.clip(np.floor(at), 0, len(logits) - 2).astype(int)
    return logits[knot] + (at - knot) * (logits[knot + 1] - logits[knot])


def logits_of(tree, node, x, link, weights, rates):
    """Of a node's children that have a classifier."""
    level = 0 if node == tree.n_nodes else int(tree.depth[node]) + 1
    scores = x @ weights
    if len(link.logits):
        level = min(level, len(link.logits) - 1)
        row, slopes = link.logits[level].astype(np.float64), link.slope_table()[level].astype(np.float64)
        rate = rates[0] if rates else np.zeros(len(scores))
        scores = link_map(scores, row, link.low, link.step) + rate * link_map(scores, slopes, link.low, link.step)
    return scores


def conditionals(tree, nodes, x, link, is_multiclass):
    """Of each node the probability that it is positive, given that its parent is; the root's is that of the gate."""
    answer = np.zeros(tree.n_nodes)
    answer[0] = 1.0
    for node, (children, weights, *rates) in nodes.items():
        is_gate = node == tree.n_nodes
        scores = logits_of(tree, node, x, link, weights, rates)
        p = expit(scores)
        if is_multiclass and not is_gate:  # exactly one comes true: chances in proportion to the odds
            p = softmax(scores)
        if is_gate:
            answer[0] = p[0] if len(p) else 0.0
            continue
        if tree.n_children[node] == 1:
            p = np.ones(1)
        answer[tree.first_child[node] + children] = p
    return answer


def node_probabilities(tree, nodes, x, link, is_multiclass, claims=None, top_from=1.0):
    """Products of the conditional probabilities along the paths.

    With claims: nodes whose product is at least top_from are the top. The mass of each but the root is multiplied by
    the sum of its children's claims, and all masses are divided by the sum of those that end the top.
    """
    share = conditionals(tree, nodes, x, link, is_multiclass)
    product = share.copy()
    for node in range(1, tree.n_nodes):
        product[node] *= product[tree.parent[node]]
    if claims is None:
        return product
    is_top = [product[v] >= top_from and tree.label[v] < 0 and v in nodes for v in range(tree.n_nodes)]
    mass, ends = np.full(tree.n_nodes, product[0]), 0.0 if is_top[0] else product[0]
    for node in range(1, tree.n_nodes):
        parent = int(tree.parent[node])
        mass[node] = mass[parent] * share[node]
        if is_top[node] and tree.n_children[node] > 1:
            _, weights, *rates = nodes[node]
            mass[node] *= max(expit(logits_of(tree, node, x, claims, weights, rates)).sum(), 1e-6)
        if is_top[parent] and not is_top[node]:
            ends += mass[node]
    return mass * (product[0] / ends if ends > 0 else 0.0)


def label_probabilities(tree, nodes, x, link, is_multiclass):
    probability = node_probabilities(tree, nodes, x, link, is_multiclass)
    return np.where(tree.leaf_of >= 0, probability[tree.leaf_of], 0.0)


def best(probabilities, top_k, thresholds):
    """(label, probability) pairs in the order of answers: more probable first, then the lower label."""
    wanted = [j for j, p in enumerate(probabilities) if p > 0 and p >= thresholds[j]]
    wanted.sort(key=lambda j: (-probabilities[j], j))
    return [(j, probabilities[j]) for j in wanted[:top_k]]


def beam(tree, probability, width):
    """Labels whose leaves are met when only the `width` most probable inner nodes of each level are opened.

    None where the last node opened and the first one left are so close that rounding decides between them.
    """
    level, labels = [0], []
    while level:
        labels += [int(tree.label[node]) for node in level if tree.label[node] >= 0 and probability[node] > 0]
        inner = [node for node in level if tree.label[node] < 0 and probability[node] > 0]
        ranked = sorted(inner, key=lambda node: (-probability[node], node))
        opened = ranked[:width]
        if len(ranked) > width and np.isclose(
            probability[ranked[width]], probability[ranked[width - 1]], rtol=1e-5, atol=0
        ):
            return None
        level = [child for node in opened for child in tree.children(node)]
    return sorted(labels)
