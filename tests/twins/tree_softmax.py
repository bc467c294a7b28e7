"""A plain Python twin of the tree softmax: random numbers, steps and answers, one number after the other."""

from __future__ import annotations

import math

import numpy as np

MASK = 2**64 - 1


def mix(z):
    z = (z + 0x9E3779B97F4A7C15) * 0xBF58476D1CE4E5B9 & MASK
    z = (z ^ (z >> 27)) * 0x94D049BB133111EB & MASK
    return z ^ (z >> 31)


def first_embedding(seed, number, dim):
    """Uniform in -1/dim to 1/dim; number is the column plus one, 0 for the bias."""
    start = mix(seed ^ mix(number))
    return [np.float32((mix(start + c & MASK) >> 11) * (2 / dim / 2**53) - 1 / dim) for c in range(dim)]


def order_of(n_rows, epochs, seed, shuffle):
    """The rows of every epoch; each shuffles the order of the one before."""
    order = list(range(n_rows))
    for epoch in range(epochs):
        if shuffle:
            start = mix(seed + 0x5DEECE66D * (epoch + 1) & MASK)
            for k in range(n_rows, 1, -1):
                j = (mix(start + k & MASK) >> 32) * k >> 32
                order[k - 1], order[j] = order[j], order[k - 1]
        yield list(order)


def sigmoid(x):
    return 1 / (1 + math.exp(-x))


def softmax(scores):
    largest = max(scores)
    powers = [math.exp(s - largest) for s in scores]
    return [p / sum(powers) for p in powers]


class Twin:
    """Tables as dicts of lists: features to embeddings (None: the bias), (node, child place) to rows of the output."""

    def __init__(self, tree, *, is_plt, dim, bias=1.0, normalize=True):
        self.tree, self.is_plt, self.dim, self.bias, self.normalize = tree, is_plt, dim, bias, normalize
        self.embedding, self.output = {}, {}

    # --- decisions ------------------------------------------------------------------------------------------------

    def keys(self, node):
        """The rows that decide among the children of a node."""
        n = int(self.tree.n_children[node])
        if n <= 1:
            return []
        return [(node, 1)] if n == 2 and not self.is_plt else [(node, place) for place in range(n)]

    def row(self, key):
        return self.output.setdefault(key, [0.0] * self.dim)

    def probabilities(self, node, hidden):
        """Of the children of a node, given the node."""
        keys = self.keys(node)
        scores = [dot(self.row(key), hidden) for key in keys]
        if not keys:
            return [1.0]
        if self.is_plt:
            return [sigmoid(s) for s in scores]
        return [sigmoid(-scores[0]), sigmoid(scores[0])] if len(keys) == 1 else softmax(scores)

    def root(self, hidden):
        return sigmoid(dot(self.row((-1, 0)), hidden)) if self.is_plt else 1.0

    def place(self, node):
        return int(node - self.tree.first_child[self.tree.parent[node]])

    def decisions(self, labels):
        """(key, target, probability as a function of hidden) for all that the labels decide."""
        leaves = [int(self.tree.leaf_of[label]) for label in labels]
        if self.is_plt:
            above = set()
            for v in leaves:
                while v >= 0:
                    above.add(v)
                    v = int(self.tree.parent[v])
            yield (-1, 0), float(bool(labels)), self.root
            for node in sorted(above):
                for key in self.keys(node):
                    child = int(self.tree.first_child[node]) + key[1]
                    yield key, float(child in above), lambda h, n=node, k=key: self.probabilities(n, h)[k[1]]
            return
        (v,) = leaves
        while v > 0:
            node, place = int(self.tree.parent[v]), self.place(v)
            for key in self.keys(node):
                yield key, float(key[1] == place), lambda h, n=node, k=key: self.probabilities(n, h)[k[1]]
            v = node

    def loss(self, bag, labels):
        """Minus the log-likelihood of an example: what the steps descend."""
        hidden = self.hidden(bag)
        if self.is_plt:
            return -sum(
                math.log(p(hidden) if target else 1 - p(hidden)) for _, target, p in list(self.decisions(labels))
            )
        total, v = 0.0, int(self.tree.leaf_of[labels[0]])
        while v > 0:
            node = int(self.tree.parent[v])
            total -= math.log(self.probabilities(node, hidden)[self.place(v)])
            v = node
        return total

    # --- rows -----------------------------------------------------------------------------------------------------

    def bag(self, indices, values):
        """(feature, weight) pairs of a row, the bias as feature None; features without an embedding are left out."""
        known = [(int(f), float(v)) for f, v in zip(indices, values, strict=True) if int(f) in self.embedding]
        if self.bias:
            known.append((None, self.bias))
        total = sum(abs(v) for _, v in known) if self.normalize else 1.0
        return [(f, v / total) for f, v in known]

    def hidden(self, bag):
        return [sum(weight * self.embedding[f][c] for f, weight in bag) for c in range(self.dim)]

    # --- training -------------------------------------------------------------------------------------------------

    def start(self, X, seed):
        for feature in sorted(set(X.indices[X.data != 0].tolist())):
            self.embedding[feature] = [float(v) for v in first_embedding(seed, feature + 1, self.dim)]
        if self.bias:
            self.embedding[None] = [float(v) for v in first_embedding(seed, 0, self.dim)]

    def updates(self, bag, labels, rate):
        """What an example adds to the output rows and to its features, from the tables as they are."""
        hidden = self.hidden(bag)
        steps = [(key, rate * (target - p(hidden))) for key, target, p in self.decisions(labels)]
        gradient = [sum(step * self.row(key)[c] for key, step in steps) for c in range(self.dim)]
        moved = math.sqrt(dot(gradient, gradient)) * sum(weight * weight for _, weight in bag)
        if moved > 1:
            gradient = [g / moved for g in gradient]
        of_rows = [(key, [step * h for h in hidden]) for key, step in steps]
        return of_rows, [(f, [weight * g for g in gradient]) for f, weight in bag]

    def train(self, X, Y, *, epochs, learning_rate, batch, shuffle, seed, sample_weight=None):
        n_rows = X.shape[0]
        weight = [1.0] * n_rows if sample_weight is None else [float(w) for w in sample_weight]
        total, done = sum(weight) * epochs, 0.0
        self.start(X, seed)
        bags = [self.bag(*row_of(X, i)) for i in range(n_rows)]
        for epoch, order in enumerate(order_of(n_rows, epochs, seed, shuffle)):
            for first in range(0, n_rows, batch):
                rate = learning_rate * (1 - done / total)
                members = order[first : first + batch]
                found = [
                    self.updates(bags[i], self.labels_of(Y, i, epoch, seed), rate * weight[i])
                    for i in members
                    if self.is_plt or len(row_of(Y, i)[0])
                ]
                done += sum(weight[i] for i in members)
                for of_rows, of_features in found:
                    for key, change in of_rows:
                        self.output[key] = [a + b for a, b in zip(self.row(key), change, strict=True)]
                    for feature, change in of_features:
                        self.embedding[feature] = [a + b for a, b in zip(self.embedding[feature], change, strict=True)]
        return self

    def labels_of(self, Y, i, epoch, seed):
        labels = row_of(Y, i)[0].tolist()
        if self.is_plt or len(labels) == 1:
            return labels
        drawn = mix(mix(seed + epoch & MASK) + i & MASK) >> 32
        return [labels[drawn * len(labels) >> 32]]

    # --- answers --------------------------------------------------------------------------------------------------

    def label_probability(self, bag, label):
        hidden = self.hidden(bag)
        v, p = int(self.tree.leaf_of[label]), 1.0
        while v > 0:
            node = int(self.tree.parent[v])
            p *= self.probabilities(node, hidden)[self.place(v)]
            v = node
        return p * self.root(hidden)

    def output_rows(self):
        """The rows in the order of the core's table."""
        if self.is_plt:
            tree = self.tree
            keys = [(-1, 0)] + [(int(tree.parent[v]), self.place(v)) for v in range(1, tree.n_nodes)]
        else:
            keys = [key for node in range(self.tree.n_nodes) for key in self.keys(node)]
        return np.array([self.row(key) for key in keys]).reshape(-1, self.dim)


def dot(a, b):
    return sum(x * y for x, y in zip(a, b, strict=True))


def row_of(matrix, i):
    part = slice(matrix.indptr[i], matrix.indptr[i + 1])
    return matrix.indices[part], matrix.data[part]


# --- fastText's hashes --------------------------------------------------------------------------------------------


def word_hash(word):
    """32-bit FNV-1a over signed bytes."""
    h = 2166136261
    for byte in word.encode():
        h = ((h ^ (byte if byte < 128 else byte | 0xFFFFFF00)) * 16777619) & 0xFFFFFFFF
    return h


def signed(h):
    return h - 2**32 if h >= 2**31 else h


def columns_of(words, vocabulary, *, word_ngrams=1, char_ngrams=None, n_buckets=1):
    """Every occurrence in a text that is a list of words: columns of words, then of buckets."""
    found = [vocabulary[word] for word in words if word in vocabulary]
    if char_ngrams:
        for word in words:
            bounded = f"<{word}>"
            for i in range(len(bounded)):
                for n in range(char_ngrams[0], char_ngrams[1] + 1):
                    if i + n > len(bounded) or (n == 1 and (i == 0 or i + n == len(bounded))):
                        continue
                    found.append(len(vocabulary) + word_hash(bounded[i : i + n]) % n_buckets)
    if word_ngrams > 1:
        hashes = [signed(word_hash(word)) for word in [*words, "</s>"]]
        for i in range(len(hashes)):
            h = hashes[i] & MASK
            for j in range(i + 1, min(len(hashes), i + word_ngrams)):
                h = (h * 116049371 + (hashes[j] & MASK)) & MASK
                found.append(len(vocabulary) + h % n_buckets)
    return found
