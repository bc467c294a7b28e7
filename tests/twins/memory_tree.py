"""The contextual memory tree in plain Python, one number after the other: the core does the same arithmetic."""

from __future__ import annotations

import math
import sys

import numpy as np

from ramify import _core

SETTINGS = {
    "leaf_multiplier": 1.0,
    "alpha": 0.5,
    "reroutes": 1,
    "n_leaves": 2,
    "n_neighbours": 5,
    "learning_rate": 2.0,
    "eps": 0.05,
    "scorer_rate": 0.1,
    "normalize": True,
    "is_multiclass": False,
    "has_one_against_rest": True,
    "max_examples": 0,
    "forget": "oldest",
    "seed": 3,
}
BIAS = 0.2
REST_EPS = 0.2


def core_tree(**changes):
    return _core.MemoryTree(**{**SETTINGS, **changes})


def learn(core, X, Y, weight=None):
    core.learn(X, Y, weight, None, None)
    return core


def single(value):
    return float(np.float32(value))


def mix(z):
    mask = 2**64 - 1
    z = (z + 0x9E3779B97F4A7C15) * 0xBF58476D1CE4E5B9 & mask
    z = (z ^ (z >> 27)) * 0x94D049BB133111EB & mask
    return z ^ (z >> 31)


def logistic(s):
    return 1 / (1 + math.exp(-s)) if s >= 0 else math.exp(s) / (1 + math.exp(s))


class Weight:
    """A number that AdaGrad moves."""

    def __init__(self, value=0.0):
        self.value, self.sum = value, 0.0

    def step(self, gradient, rate, eps):
        gradient = min(max(gradient, -1e15), 1e15)
        self.sum = single(self.sum + gradient * gradient)
        self.value = single(self.value - rate * gradient / (math.sqrt(self.sum) + eps))


class Classifier:
    def __init__(self):
        self.weight, self.bias = {}, Weight()

    def score(self, x):
        s = self.bias.value * BIAS
        for feature, value in x:
            if feature in self.weight:
                s += self.weight[feature].value * value
        return s

    def learn(self, x, score, is_positive, importance, rate, eps):
        slope = (logistic(score) - (1.0 if is_positive else 0.0)) * importance
        if slope == 0.0:
            return
        self.bias.step(slope * BIAS, rate, eps)
        for feature, value in x:
            self.weight.setdefault(feature, Weight()).step(slope * value, rate, eps)


class Example:
    def __init__(self, x, labels, weight, arrival):
        self.x, self.labels, self.weight, self.arrival = x, labels, weight, arrival
        self.leaf, self.use = None, 0.0


class Node:
    def __init__(self, parent=None):
        self.parent, self.left, self.right, self.router = parent, None, None, None
        self.n, self.examples = 0, []


class MemoryTwin:
    def __init__(self, **changes):
        self.__dict__.update({**SETTINGS, **changes})
        self.root, self.store, self.with_label = Node(), [], {}
        self.similarity, self.log_sharpness = {}, Weight(2.5)
        self.rest, self.trust, self.offset = {}, Weight(1.0), Weight(0.0)
        self.n_learned = self.n_drawn = 0

    def draw(self, n):
        self.n_drawn += 1
        return ((mix(self.seed ^ mix(self.n_drawn)) >> 32) * n) >> 32

    # --- questions ---

    def prepare(self, row):
        scale = 1.0
        if self.normalize:
            squared = 0.0
            for value in row.data:
                squared += float(value) * float(value)
            scale = 1.0 / math.sqrt(squared) if squared > 0 else 1.0
        pairs = zip(row.indices.tolist(), row.data.tolist(), strict=True)
        return [(feature, single(value * scale)) for feature, value in pairs if value != 0]

    def alike(self, x, z):
        scaled = {f: (self.similarity[f].value if f in self.similarity else 1.0) * value for f, value in x}
        s = 0.0
        for feature, value in z:
            s += scaled.get(feature, 0.0) * value
        return s

    def query(self, x):
        """(example, score, share) best first, and (label, vote, probability) by label."""
        if not self.store:
            return [], []
        found, waiting, order = [], [(0.0, 0, self.root)], 0
        for _ in range(self.n_leaves):
            if not waiting:
                break
            cost, _, node = waiting.pop(min(range(len(waiting)), key=lambda i: waiting[i][:2]))
            while node.router is not None:
                margin = node.router.score(x)
                other, node = (node.left, node.right) if margin > 0 else (node.right, node.left)
                order += 1
                waiting.append((cost + abs(margin), order, other))
            found += [(example, self.alike(x, example.x)) for example in node.examples]
        found.sort(key=lambda pair: (-pair[1], pair[0].arrival))
        found = found[: self.n_neighbours or None]
        beta = math.exp(self.log_sharpness.value)
        shares = [example.weight * math.exp(beta * (score - found[0][1])) for example, score in found]
        total = 0.0
        for share in shares:
            total += share
        neighbours = [(*pair, share / total) for pair, share in zip(found, shares, strict=True)]
        votes = {}
        for example, _, share in neighbours:
            for label in example.labels:
                votes[label] = votes.get(label, 0.0) + share
        return neighbours, self.probabilities(x, sorted(votes.items()))

    def probabilities(self, x, votes):
        if self.has_one_against_rest:
            odds = [self.log_odds(x, label, vote) for label, vote in votes]
            best = max(odds, default=0.0)
            far_down = self.is_multiclass and best < -30
            values = [math.exp(one - best) if far_down else logistic(one) for one in odds]
        else:
            values = [min(vote, 1.0) for _, vote in votes]
        answer = [[label, vote, p] for (label, vote), p in zip(votes, values, strict=True)]
        if self.is_multiclass and answer:
            total = 0.0
            for _, _, p in answer:
                total += p
            for one in answer:
                one[2] /= total
        return [tuple(one) for one in answer]

    @staticmethod
    def vote_odds(vote):
        v = min(max(vote, 1e-3), 1 - 1e-3)
        return math.log(v / (1 - v))

    def log_odds(self, x, label, vote):
        own = self.rest[label].score(x) if label in self.rest else 0.0
        return own + self.trust.value * self.vote_odds(vote) + self.offset.value

    # --- learning ---

    def learn(self, row, labels, weight=1.0):
        self.n_learned += 1
        if weight == 0:
            return
        x = self.prepare(row)
        neighbours, candidates = self.query(x)
        same = [example for example, _, _ in neighbours if example.x == x and example.labels == labels]
        self.learn_from(x, labels, weight, neighbours, candidates)
        if same:
            same[0].weight = single(same[0].weight + weight)
            same[0].arrival = self.n_learned
            self.reroute(same[0])
        else:
            example = Example(x, labels, weight, self.n_learned)
            self.train_routers(example)
            self.add(example)
            self.insert(example)
        for _ in range(self.reroutes):
            if len(self.store) > 1:
                self.reroute(self.store[self.draw(len(self.store))])
        while self.max_examples and len(self.store) > self.max_examples:
            self.forget_one()

    def add(self, example):
        self.store.append(example)
        for label in example.labels:
            self.with_label.setdefault(label, []).append(example)

    def learn_from(self, x, labels, weight, neighbours, candidates):
        if neighbours:
            rewards = [self.reward(example.labels, labels) for example, _, _ in neighbours]
            best, score, _ = neighbours[0]
            if score > 0:
                best.use = single(best.use + single(2 * rewards[0] - 1))
            self.learn_similarity(x, neighbours, rewards)
        if self.has_one_against_rest:
            self.learn_rest(x, labels, weight, candidates)

    @staticmethod
    def reward(one, other):
        either = len(set(one) | set(other))
        return len(set(one) & set(other)) / either if either else 1.0

    def learn_similarity(self, x, neighbours, rewards):
        right = 0.0
        for (_, _, share), reward in zip(neighbours, rewards, strict=True):
            right += share * reward
        if not right >= sys.float_info.min:
            return
        beta, of_sharpness, pull = math.exp(self.log_sharpness.value), 0.0, {}
        for (example, score, share), reward in zip(neighbours, rewards, strict=True):
            slope = beta * share * (1 - reward / right)
            of_sharpness += slope * score
            for feature, value in example.x if slope else ():
                pull[feature] = pull.get(feature, 0.0) + slope * value
        self.log_sharpness.step(of_sharpness, self.scorer_rate, 0.1)
        self.log_sharpness.value = min(max(self.log_sharpness.value, -5.0), 7.0)
        for feature, value in x:
            if pull.get(feature, 0.0) != 0.0:
                weight = self.similarity.setdefault(feature, Weight(1.0))
                weight.step(pull[feature] * value, self.scorer_rate, 0.1)

    def learn_rest(self, x, labels, weight, candidates):
        votes = {label: vote for label, vote, _ in candidates}
        of_trust = of_offset = 0.0
        for label in sorted(set(votes) | set(labels)):
            odds = self.log_odds(x, label, votes.get(label, 0.0))
            classifier = self.rest.setdefault(label, Classifier())
            classifier.learn(x, odds, label in labels, weight, self.learning_rate, REST_EPS)
            if label in votes:
                slope = (logistic(odds) - (label in labels)) * weight
                of_trust += slope * self.vote_odds(votes[label])
                of_offset += slope
        self.trust.step(of_trust, 0.05 * self.learning_rate, 1.0)
        self.offset.step(of_offset, 0.05 * self.learning_rate, 1.0)

    @staticmethod
    def imbalance(node):
        return math.log(node.left.n) - math.log(node.right.n)

    def train_routers(self, example):
        partner = self.find_partner(example)
        path, node = [], partner and partner.leaf
        while node is not None:
            path.append(node)
            node = node.parent
        for node, child in zip(path[:0:-1], path[-2::-1], strict=True):
            y = (1 - self.alpha) * (1.0 if child is node.right else -1.0) + self.alpha * self.imbalance(node)
            node.router.learn(example.x, node.router.score(example.x), y > 0, abs(y), self.learning_rate, self.eps)

    def find_partner(self, example):
        if not example.labels:
            return None
        label = example.labels[0 if len(example.labels) == 1 else self.draw(len(example.labels))]
        known, best, best_score = self.with_label.get(label, []), None, 0.0
        for k in range(min(len(known), 8)):
            one = known[k if len(known) <= 8 else self.draw(len(known))]
            if one is example:
                continue
            score = self.alike(example.x, one.x)
            if best is None or score > best_score:
                best, best_score = one, score
        return best

    def insert(self, example):
        node = self.root
        while node.router is not None:
            margin = node.router.score(example.x)
            y = (1 - self.alpha) * (2 * logistic(margin) - 1) + self.alpha * self.imbalance(node)
            node.router.learn(example.x, margin, y > 0, abs(y), self.learning_rate, self.eps)
            node.n += 1
            node = node.right if y > 0 else node.left
        node.n += 1
        node.examples.append(example)
        example.leaf = node
        if len(node.examples) > max(2, int(self.leaf_multiplier * math.log2(max(2, len(self.store))))):
            self.split(node)

    def split(self, node):
        examples, node.examples = node.examples, []
        first = self.draw(len(examples))
        router = Classifier()
        goes_right = halve([e.x for e in examples], [e.labels for e in examples], first, router, self)
        node.left, node.right, node.router = Node(node), Node(node), router
        for example, right in zip(examples, goes_right, strict=True):
            example.leaf = node.right if right else node.left
            example.leaf.examples.append(example)
            example.leaf.n += 1

    def take_out(self, example):
        leaf, example.leaf = example.leaf, None
        place = leaf.examples.index(example)
        leaf.examples[place] = leaf.examples[-1]
        leaf.examples.pop()
        node = leaf
        while node is not None:
            node.n -= 1
            node = node.parent
        if leaf.examples or leaf is self.root:
            return
        parent, above = leaf.parent, leaf.parent.parent
        sibling = parent.right if parent.left is leaf else parent.left
        sibling.parent = above
        if above is None:
            self.root = sibling
        elif above.left is parent:
            above.left = sibling
        else:
            above.right = sibling

    def reroute(self, example):
        if len(self.store) < 2:
            return
        self.take_out(example)
        self.train_routers(example)
        self.insert(example)

    def forget_one(self):
        if self.forget == "oldest":
            gone = min(self.store, key=lambda e: e.arrival)
        else:
            gone = min((self.store[self.draw(len(self.store))] for _ in range(16)), key=lambda e: (e.use, e.arrival))
        self.take_out(gone)
        for known in (self.store, *(self.with_label[label] for label in gone.labels)):
            known[known.index(gone)] = known[-1]
            known.pop()


def halve(rows, labels, first, router, settings):
    """Balanced 2-means over groups of one label, then a router that learns the halves."""
    n = len(rows)
    group = list(range(n))
    if all(len(one) == 1 for one in labels) and len({one[0] for one in labels}) > 1:
        group = [next(j for j in range(n) if labels[j] == labels[k]) for k in range(n)]
    direction = {}

    def along(x):
        s = 0.0
        for feature, value in x:
            s += direction.get(feature, 0.0) * value
        return s

    def add(x, factor):
        for feature, value in x:
            direction[feature] = direction.get(feature, 0.0) + factor * value

    add(rows[first], 1.0)
    farthest = min((k for k in range(n) if k != first), key=lambda k: along(rows[k]))
    add(rows[farthest], -1.0)
    order, size = sorted(set(group)), [group.count(k) for k in range(n)]
    goes_right = None
    for _ in range(4):
        score = [0.0] * n
        for k in range(n):
            score[group[k]] += along(rows[k])
        for g in order:
            score[g] /= size[g]
        order.sort(key=lambda g: (-score[g], g))
        chosen, n_right = set(), 0
        for place, g in enumerate(order[:-1]):
            if place > 0 and 2 * n_right + size[g] > n:
                break
            chosen.add(g)
            n_right += size[g]
        before, goes_right = goes_right, [group[k] in chosen for k in range(n)]
        if goes_right == before:
            break
        direction.clear()
        for k in range(n):
            add(rows[k], 1.0 / n_right if goes_right[k] else -1.0 / (n - n_right))
    for _ in range(3):
        for x, right in zip(rows, goes_right, strict=True):
            router.learn(x, router.score(x), right, 1.0, settings.learning_rate, settings.eps)
    sent = [router.score(x) > 0 for x in rows]
    return sent if 4 * min(sum(sent), n - sum(sent)) >= n else goes_right
