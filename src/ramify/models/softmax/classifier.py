"""Hierarchical softmax over any label tree, on bags of embeddings: the fastText of this library."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ramify import _core, trees
from ramify.base.classifier import ExtremeClassifier
from ramify.base.training import TrainingData
from ramify.common.progress import phase
from ramify.common.validation import check_choice, check_flag, check_integer, check_number
from ramify.data.ngrams import WordNgramVectorizer
from ramify.models.softmax.model import STORAGES, SoftmaxModel
from ramify.trees.label_tree import LabelTree


class TreeSoftmaxClassifier(ExtremeClassifier):
    """A row is the mean of its features' embeddings, and every decision in a label tree is logistic in it.

    One class a row: hierarchical softmax, children of a node sharing its probability. Several labels: a probabilistic
    label tree, each child deciding for itself. Prediction is an exact best-first search.
    Papers: Baharav et al., "Enabling Efficiency-Precision Trade-offs for Label Trees in Extreme Classification",
    sections 1 and 5.2 (fastText on other trees than Huffman's); Joulin et
    al. 2016; Jasinska-Kobus et al. 2020 (extremeText's loss).

    Parameters
    ----------
    tree : "huffman", "interpolated", "kmeans", "random", "complete", "fano", "one_level", a LabelTree, or a builder
        The tree, or how it is built from X and Y. On texts, builders see TF-IDF weights of the words.
    arity : int or None
        Children of an inner node, for builders that use it; None is 2 for softmax, as in fastText, and 16 for plt.
    max_leaf : int
        The most labels below a node whose children are leaves, for builders that use it.
    tree_options : dict or None
        Further options of the builder, such as {"lam": 0.5} for "interpolated".
    dim : int
        Numbers in an embedding.
    n_epochs : int
        Passes over the rows.
    learning_rate : float
        Of the first step; falls linearly to zero.
    loss : "auto", "softmax" or "plt"
        "auto" is softmax for one class per row and plt for several labels. "softmax" on several labels draws one of
        them at each visit, as fastText does; probabilities of a row then sum to one.
    batch_size : int
        Rows whose gradients are taken side by side, with the same weights, then added in order; as many threads can
        help. 1 is fastText's descent, 4 as good everywhere; 16 is too much for few rows and long steps.
    shuffle : bool
        Go over the rows in a new order in every epoch.
    hogwild : bool
        Let threads write into the embeddings without waiting for each other. The result then depends on chance.
    storage : "float32" or "int8"
        "int8" keeps the trained model in bytes, a quarter of the size; `quantize()` does so later.
    normalize : bool
        Divide the sum of embeddings by the sum of the features' absolute values, so that it is a mean.
    bias : float
        Value of the constant feature (0: none), as the end of a line is a word to fastText.
    vectorizer : None, WordNgramVectorizer, TextVectorizer or HashingTextVectorizer
        For X given as texts; None: `ramify.data.WordNgramVectorizer()`, words without n-grams.
    n_jobs : int or None
        Threads; without hogwild the result does not depend on it, and they help only from 32 rows a step on.
    hierarchy : dict or None
        Label -> parent or parents: no label is answered with less than a label below it (docs/hierarchy.md).
    verbose : bool
        Show progress on stderr while training.

    Examples
    --------
    >>> from ramify import TreeSoftmaxClassifier
    >>> texts = ["red apple", "green apple", "red cherry", "green pear"] * 25
    >>> tags = [["red", "apple"], ["green", "apple"], ["red", "cherry"], ["green", "pear"]] * 25
    >>> clf = TreeSoftmaxClassifier(dim=10, random_state=0).fit(texts, tags)
    >>> sorted(label for label, _ in clf.predict_one("red apple", top_k=2))
    ['apple', 'red']
    """

    def __init__(
        self,
        *,
        tree: str | LabelTree | Callable[..., LabelTree] = "huffman",
        arity: int | None = None,
        max_leaf: int = 1,
        tree_options: dict[str, Any] | None = None,
        dim: int = 100,
        n_epochs: int = 25,
        learning_rate: float = 0.5,
        loss: str = "auto",
        batch_size: int = 4,
        shuffle: bool = True,
        hogwild: bool = False,
        storage: str = "float32",
        normalize: bool = True,
        bias: float = 1.0,
        vectorizer: Any = None,
        hierarchy: Mapping[Any, Any] | None = None,
        n_jobs: int | None = None,
        random_state: Any = None,
        verbose: bool = False,
    ) -> None:
        self.tree = tree
        self.arity = arity
        self.max_leaf = max_leaf
        self.tree_options = tree_options
        self.dim = dim
        self.n_epochs = n_epochs
        self.learning_rate = learning_rate
        self.loss = loss
        self.batch_size = batch_size
        self.shuffle = shuffle
        self.hogwild = hogwild
        self.storage = storage
        self.normalize = normalize
        self.bias = bias
        self.vectorizer = vectorizer
        self.hierarchy = hierarchy
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose

    def _check_parameters(self) -> None:
        if self.arity is not None:
            check_integer("arity", self.arity, at_least=2)
        check_integer("max_leaf", self.max_leaf, at_least=1)
        if self.tree_options is not None and not isinstance(self.tree_options, dict):
            raise ValueError(f"tree_options must be a dict from option to value, got {self.tree_options!r}")
        check_integer("dim", self.dim, at_least=1, at_most=65536)
        check_integer("n_epochs", self.n_epochs, at_least=1, at_most=2**31 - 1)
        check_number("learning_rate", self.learning_rate, above=0)
        check_choice("loss", self.loss, ["auto", "softmax", "plt"])
        check_integer("batch_size", self.batch_size, at_least=1, at_most=65536)
        check_choice("storage", self.storage, STORAGES)
        check_number("bias", self.bias, at_least=0)
        for name in ("shuffle", "hogwild", "normalize", "verbose"):
            check_flag(name, getattr(self, name))
        if isinstance(self.vectorizer, WordNgramVectorizer):
            self.vectorizer.check_parameters()

    def _default_vectorizer(self) -> WordNgramVectorizer:
        return WordNgramVectorizer()

    def _train(self, data: TrainingData) -> SoftmaxModel:
        if self.loss == "plt" and data.is_multiclass:
            raise ValueError(
                "loss='plt' is for several labels a row; with one class a row their probabilities must sum to one: "
                "use 'softmax' or 'auto', or give y as label collections"
            )
        is_plt = self.loss == "plt" or (self.loss == "auto" and not data.is_multiclass)
        tree = self._build_tree(data, (16 if is_plt else 2) if self.arity is None else self.arity)
        progress = _core.Progress()
        with phase("training", progress):
            arrays = _core.train_softmax(
                data.X,
                data.Y,
                tree,
                is_plt,
                data.sample_weight,
                _core.FeatureSettings(data.n_features, self.normalize, self.bias),
                _core.SoftmaxSettings(
                    dim=self.dim,
                    epochs=self.n_epochs,
                    learning_rate=self.learning_rate,
                    batch=self.batch_size,
                    shuffle=self.shuffle,
                    hogwild=self.hogwild,
                ),
                data.seed,
                data.n_threads,
                progress,
            )
        return SoftmaxModel(
            tree=tree,
            arrays=arrays,
            n_features=data.n_features,
            is_multiclass=data.is_multiclass,
            dim=self.dim,
            is_plt=is_plt,
            normalize=self.normalize,
            bias=self.bias,
        ).stored_as(self.storage)

    def _build_tree(self, data: TrainingData, arity: int) -> LabelTree:
        with phase("building the tree"):
            X, vectorizer = data.X, data.schema.vectorizer
            if isinstance(vectorizer, WordNgramVectorizer) and not isinstance(self.tree, LabelTree):
                X = vectorizer.tfidf(X)  # counts say little about what labels have in common: every text has its "the"
            return trees.resolve(
                self.tree,
                X,
                data.Y,
                options=self.tree_options,
                arity=arity,
                max_leaf=self.max_leaf,
                random_state=data.seed,
                n_jobs=data.n_threads,
            )

    # --- the trained model ----------------------------------------------------------------------------------------

    @property
    def tree_(self) -> LabelTree:
        """The label tree."""
        tree: LabelTree = self.model_.tree
        return tree

    @property
    def embeddings_(self) -> NDArray[np.float32]:
        """The features' embeddings, a row each; zero for a feature that no training row had."""
        model: SoftmaxModel = self.model_
        rows, column = model.rows("embedding"), model.arrays["column"]
        every = np.zeros((model.n_features, model.dim), dtype=np.float32)
        every[column] = rows[: len(column)]
        return every

    def embed(self, X: Any) -> NDArray[np.float32]:
        """The rows as vectors: the mean of their features' embeddings."""
        fitted = self._fitted()
        assert isinstance(fitted.model, SoftmaxModel)
        return fitted.model.embed(fitted.schema.rows(X), self._n_threads())

    def quantize(self, storage: str = "int8") -> TreeSoftmaxClassifier:
        """Make the fitted model small, for good; answers hardly change."""
        fitted = self._fitted()
        assert isinstance(fitted.model, SoftmaxModel)
        fitted.model = fitted.model.stored_as(check_choice("storage", storage, STORAGES))
        return self
