"""Read and write data: XMC text, libsvm, npz, texts of common files, synthetic data and the ICD-10-CM demo data."""

from typing import TYPE_CHECKING, Any

from ramify.data.columns import Columns
from ramify.data.dataset import Dataset
from ramify.data.errors import DataError
from ramify.data.fasttext import iter_fasttext, load_fasttext
from ramify.data.files import read_names
from ramify.data.jsonl import iter_jsonl, load_jsonl
from ramify.data.limits import max_unpacked
from ramify.data.load import load_data
from ramify.data.npz import load_npz, save_npz
from ramify.data.read_texts import iter_table, load_table, read_texts
from ramify.data.text_file import TextFile
from ramify.data.xmc import load_libsvm, load_xmc, save_xmc

if TYPE_CHECKING:
    from ramify.data.ngrams import WordNgramVectorizer

__all__ = [
    "Columns",
    "DataError",
    "Dataset",
    "FeatureHashing",
    "TextFile",
    "WordNgramVectorizer",
    "iter_fasttext",
    "iter_jsonl",
    "iter_table",
    "load_data",
    "load_fasttext",
    "load_jsonl",
    "load_libsvm",
    "load_npz",
    "load_table",
    "load_xmc",
    "max_unpacked",
    "read_names",
    "read_texts",
    "save_npz",
    "save_xmc",
]


def __getattr__(name: str) -> Any:
    if name == "WordNgramVectorizer":  # imported on demand: scikit-learn is slow to import
        from ramify.data.ngrams import WordNgramVectorizer

        return WordNgramVectorizer
    if name == "FeatureHashing":
        from ramify.data.hashing import FeatureHashing

        return FeatureHashing
    raise AttributeError(f"module 'ramify.data' has no attribute {name!r}")
