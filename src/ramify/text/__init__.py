"""Vectorize texts in the core: TF-IDF, counts and hashing as in scikit-learn, without it and many times as fast."""

from ramify.text.hashing import HashingTextVectorizer
from ramify.text.stream import StreamTextVectorizer
from ramify.text.union import UnionTextVectorizer
from ramify.text.vectorizer import TextVectorizer

__all__ = ["HashingTextVectorizer", "StreamTextVectorizer", "TextVectorizer", "UnionTextVectorizer"]
