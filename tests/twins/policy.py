"""Algorithm 8 of Jasinska-Kobus et al. 2021 and the extension that follows it, on a plain tree of nested nodes."""

from __future__ import annotations

import math
from dataclasses import dataclass, field


@dataclass(eq=False)
class Node:
    """A node of a plain tree; `number` is the learner's, for its probabilities."""

    number: int
    label: int | None = None
    children: list[Node] = field(default_factory=list)

    def labels(self):
        return {self.label} if not self.children else set().union(*(child.labels() for child in self.children))

    def label_sets(self):
        """The labels below every node, as often as there are such nodes."""
        return sorted([tuple(sorted(self.labels())), *(s for child in self.children for s in child.label_sets())])


def plain_tree(learner, tree):
    """The learner's tree, whose nodes it numbers in another order than the LabelTree."""
    numbers, label = [0], tree.label.tolist()
    for number in numbers:
        numbers.extend(learner.children(number))
    nodes = [Node(number, None if label[k] < 0 else label[k]) for k, number in enumerate(numbers)]
    for k in range(1, len(nodes)):
        nodes[tree.parent[k]].children.append(nodes[k])
    return nodes[0]


def score(policy, alpha, p, p_sum, n_leaves, n_siblings_leaves, n_siblings):
    if policy == "best":  # the printed score
        return (1 - alpha) * p + alpha / n_leaves * math.log(n_siblings_leaves / n_siblings)
    if policy in ("balanced", "fair"):
        return (1 - alpha) * p + alpha * math.log(n_siblings_leaves / n_siblings / n_leaves)
    return (1 - alpha) * p / p_sum - alpha * math.log2(n_leaves)  # conditional probability trees


def descend(root, policy, alpha, arity, share, probabilities):
    """The node that a row without a selected node comes to; also the number of decisions on the way."""
    v, n_decisions = root, 0
    while v.children if policy == "cpt" else any(c.children for c in v.children) and len(v.children) >= arity:
        p, n_leaves = probabilities(v.number), [len(c.labels()) for c in v.children]
        best = max(
            (score(policy, alpha, p[k], sum(p), n_leaves[k], sum(n_leaves), len(p)), -k)
            for k in range(len(p))
            if policy != "fair" or n_leaves[k] <= share * sum(n_leaves) / len(p)
        )
        v, n_decisions = v.children[-best[1]], n_decisions + 1
    return v, n_decisions


def extend(root, new_labels, policy, alpha, arity, max_leaf, share, probabilities):
    """Algorithms 4 to 6 for the new labels of one row; how often each of the three variants was used."""
    variants = [0, 0, 0]
    v, n_decisions = descend(root, policy, alpha, arity, share, probabilities)
    for label in new_labels:
        leaves = [child for child in v.children if not child.children]
        if policy != "cpt" and len(leaves) == 1:
            [v] = leaves
        if not v.children:
            v.children, v.label = [Node(-1, v.label)], None
            variants[2] += 1
        elif len(v.children) >= max_leaf:
            v.children = [Node(-1, None, v.children)]
            variants[1] += 1
        else:
            variants[0] += 1
        v.children.append(Node(-1, label))
    return variants, n_decisions
