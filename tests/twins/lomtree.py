"""LOMtree in plain Python: algorithm 1 with the corrections that core/lomtree/lom_tree.hpp lists."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np


@dataclass
class Node:
    parent: int = -1
    left: int = -1
    right: int = -1
    size: float = 0.0
    score: float = 0.0
    trained: float = 0.0
    reached: dict = field(default_factory=dict)
    scores: dict = field(default_factory=dict)
    counts: dict = field(default_factory=dict)
    weights: dict = field(default_factory=dict)
    recycled: int = 0


class PlainLomTree:
    """Plain gradient descent on the squared error, rows as they are, a bias feature."""

    def __init__(self, *, max_nodes, swap_resistance, learning_rate, bias, forgetting=0.0):
        self.nodes = [Node()]
        self.max_nodes, self.swap_resistance = max_nodes, swap_resistance
        self.rate, self.bias, self.keep = learning_rate, bias, 1 - forgetting
        self.n_swaps = 0

    def score(self, node, x):
        return sum(value * node.weights.get(feature, 0.0) for feature, value in x.items())

    def learn(self, row, label):
        x = {-1: self.bias, **{i: float(v) for i, v in enumerate(row) if v}}
        v = 0
        while True:
            node = self.nodes[v]
            node.reached[label] = node.reached.get(label, 0) + 1
            if node.left < 0 and not self.split(v):
                break
            node = self.nodes[v]
            h = self.score(node, x)
            mean = node.score / node.trained if node.trained else 0.0
            expected = node.scores[label] / node.counts[label] if node.counts.get(label) else h
            target = -1.0 if mean > expected else 1.0
            reach = self.rate * sum(value * value for value in x.values())
            share = -math.expm1(-reach) / reach
            for feature, value in x.items():
                node.weights[feature] = node.weights.get(feature, 0.0) - share * (h - target) * self.rate * value
            h -= share * reach * (h - target)
            node.scores[label] = self.keep * (node.scores.get(label, 0.0) + h)
            node.counts[label] = self.keep * (node.counts.get(label, 0.0) + 1)
            node.score = self.keep * (node.score + h)
            node.trained = self.keep * (node.trained + 1)
            v = node.right if h > 0 else node.left
        self.nodes[v].size += 1
        self.update_sizes(v)

    def split(self, v):
        node = self.nodes[v]
        if len(node.reached) < 2:
            return False
        if len(self.nodes) // 2 < self.max_nodes:
            left, right = len(self.nodes), len(self.nodes) + 1
            self.nodes += [Node(), Node()]
        else:
            root = self.nodes[0]
            if not node.size - max(node.reached.values()) > self.swap_resistance * (root.size + 1):
                return False
            left = self.orphan()
            if left in (-1, v):
                return False
            right = self.nodes[left].parent
            self.detach(left)
            self.n_swaps += 1
        node.left, node.right = left, right
        node.weights = {}
        self.nodes[left].parent = self.nodes[right].parent = v
        self.nodes[left].size = math.floor(node.size / 2)
        self.nodes[right].size = node.size - self.nodes[left].size
        self.update_sizes(left)
        return True

    def orphan(self):
        """The leftmost smallest leaf that has a grandparent."""
        found = [v for v in self.leaves(0) if self.nodes[v].size == self.nodes[0].size and self.nodes[v].parent > 0]
        return found[0] if found else -1

    def leaves(self, v):
        node = self.nodes[v]
        return [v] if node.left < 0 else self.leaves(node.left) + self.leaves(node.right)

    def detach(self, leaf):
        parent = self.nodes[leaf].parent
        above = self.nodes[parent].parent
        sibling = self.nodes[parent].right if self.nodes[parent].left == leaf else self.nodes[parent].left
        if self.nodes[above].left == parent:
            self.nodes[above].left = sibling
        else:
            self.nodes[above].right = sibling
        self.nodes[sibling].parent = above
        self.update_sizes(sibling)
        for v in (leaf, parent):
            self.nodes[v] = Node(recycled=self.nodes[v].recycled + 1)

    def update_sizes(self, v):
        while (v := self.nodes[v].parent) >= 0:
            node = self.nodes[v]
            node.size = min(self.nodes[node.left].size, self.nodes[node.right].size)

    def array(self, name):
        return np.array([getattr(node, name) for node in self.nodes])
