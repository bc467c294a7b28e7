"""Data in and out: XMC text, libsvm, JSONL texts, npz, synthetic sets, the ICD-10-CM demo set."""

from ramify.data.dataset import Dataset
from ramify.data.errors import DataError
from ramify.data.files import read_names
from ramify.data.jsonl import iter_jsonl, load_jsonl
from ramify.data.load import load_data
from ramify.data.npz import load_npz, save_npz
from ramify.data.xmc import load_libsvm, load_xmc, save_xmc

__all__ = [
    "DataError",
    "Dataset",
    "iter_jsonl",
    "load_data",
    "load_jsonl",
    "load_libsvm",
    "load_npz",
    "load_xmc",
    "read_names",
    "save_npz",
    "save_xmc",
]
