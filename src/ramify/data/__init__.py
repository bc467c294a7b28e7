"""Data in and out: XMC text, libsvm, JSONL texts, fastText's format, npz, synthetic sets, the ICD-10-CM demo set."""

from typing import TYPE_CHECKING, Any

from ramify.data.dataset import Dataset
from ramify.data.errors import DataError
from ramify.data.fasttext import iter_fasttext, load_fasttext
from ramify.data.files import read_names
from ramify.data.jsonl import iter_jsonl, load_jsonl
from ramify.data.load import load_data
from ramify.data.npz import load_npz, save_npz
from ramify.data.xmc import load_libsvm, load_xmc, save_xmc

if TYPE_CHECKING:
    from ramify.data.ngrams import WordNgramVectorizer

__all__ = [
    "DataError",
    "Dataset",
    "WordNgramVectorizer",
    "iter_fasttext",
    "iter_jsonl",
    "load_data",
    "load_fasttext",
    "load_jsonl",
    "load_libsvm",
    "load_npz",
    "load_xmc",
    "read_names",
    "save_npz",
    "save_xmc",
]


def __getattr__(name: str) -> Any:
    if name == "WordNgramVectorizer":  # scikit-learn takes a while to import, and numeric files do not need it
        from ramify.data.ngrams import WordNgramVectorizer

        return WordNgramVectorizer
    raise AttributeError(f"module 'ramify.data' has no attribute {name!r}")
