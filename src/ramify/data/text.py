"""Turn texts into features, and save vectorizers as JSON and plain arrays, so that loading runs no code."""

from __future__ import annotations

import inspect
import json
import re
import warnings
from collections.abc import Iterable
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from ramify.data.dataset import as_features
from ramify.data.names import NameTable
from ramify.data.ngrams import WordNgramVectorizer
from ramify.data.patterns import check_vectorizer
from ramify.text import HashingTextVectorizer, StreamTextVectorizer, TextVectorizer, UnionTextVectorizer

# One of the library's own, or scikit-learn's TfidfVectorizer or HashingVectorizer, which has no types.
Vectorizer: TypeAlias = Any

_OWN: dict[str, Any] = {
    cls.__name__: cls
    for cls in (
        TextVectorizer,
        StreamTextVectorizer,
        HashingTextVectorizer,
        UnionTextVectorizer,
        WordNgramVectorizer,
    )
}
_OF_SCIKIT_LEARN = ("TfidfVectorizer", "HashingVectorizer")
_MAY_BE_CALLABLE = ("analyzer", "preprocessor", "tokenizer", "strip_accents")
_DTYPES = ("float32", "float64")
LARGEST_IDF = 1e30  # larger ones would overflow in the rows


TOKEN_PATTERN = r"(?u)\b\w+\b"


def default_vectorizer() -> Vectorizer:
    """Return a TF-IDF vectorizer for extreme classification: logarithmic counts, unit rows, float32.

    It keeps one-letter words ("vitamin C", "type 1"), unlike scikit-learn's default. It uses single words: pairs of
    words gain a point of P@1 on ICD-10-CM terms, lose one on short forum questions, and need five times the features.
    """
    return TextVectorizer(sublinear_tf=True, token_pattern=TOKEN_PATTERN)


def default_stream_vectorizer() -> Vectorizer:
    """Return a vectorizer for streams: the same as `default_vectorizer`, with a vocabulary that grows."""
    return StreamTextVectorizer(sublinear_tf=True, token_pattern=TOKEN_PATTERN)


def fit_vectorize(vectorizer: Vectorizer, texts: Iterable[str]) -> csr_array:
    """Fit the vectorizer and return the features of the texts as a float32 csr_array with sorted indices."""
    return as_features(vectorizer.fit_transform(texts))


def vectorize(vectorizer: Vectorizer, texts: Iterable[str]) -> csr_array:
    """Return the features of the texts as a float32 csr_array with sorted indices."""
    return as_features(vectorizer.transform(texts))


def is_fitted(vectorizer: Vectorizer) -> bool:
    """Return whether the vectorizer is fitted; one that hashes always is."""
    if hasattr(vectorizer, "__sklearn_is_fitted__"):
        return bool(vectorizer.__sklearn_is_fitted__())
    from sklearn.exceptions import NotFittedError
    from sklearn.feature_extraction.text import HashingVectorizer
    from sklearn.utils.validation import check_is_fitted

    if isinstance(vectorizer, HashingVectorizer):
        return True
    try:
        check_is_fitted(vectorizer)
    except NotFittedError:
        return False
    return True


def _class_of_scikit_learn(name: str) -> Any:
    from sklearn.feature_extraction import text

    return getattr(text, name)


def vectorizer_state(vectorizer: Vectorizer) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
    """Return the state of a vectorizer of the library or of scikit-learn: a dict for JSON, and arrays.

    >>> vectorizer = default_vectorizer().fit(["acute chest pain", "chest wall"])
    >>> meta, arrays = vectorizer_state(vectorizer)
    >>> sorted(arrays)
    ['idf', 'term_bytes', 'term_offsets']
    >>> again = vectorizer_from_state(meta, arrays)
    >>> bool((again.transform(["chest pain"]) != vectorizer.transform(["chest pain"])).nnz)
    False
    """
    name = type(vectorizer).__name__
    is_own = _OWN.get(name) is type(vectorizer)
    if not is_own and (name not in _OF_SCIKIT_LEARN or type(vectorizer) is not _class_of_scikit_learn(name)):
        raise ValueError(
            f"a {name} cannot be saved, because loading it would run its code; "
            f"use a TextVectorizer, or scikit-learn's {' or '.join(_OF_SCIKIT_LEARN)}"
        )
    if not is_fitted(vectorizer):
        raise ValueError(f"the {name} is not fitted; call fit first")
    if is_own:
        state: tuple[dict[str, Any], dict[str, NDArray[Any]]] = vectorizer.state()
        return state
    params = {name: _plain(name, value) for name, value in vectorizer.get_params(deep=False).items()}
    meta: dict[str, Any] = {"class": name, "params": params}
    if name == "HashingVectorizer":
        return meta, {}
    meta["has_fixed_vocabulary"] = params.pop("vocabulary") is not None
    vocabulary: dict[str, int] = vectorizer.vocabulary_
    terms: list[str] = [""] * len(vocabulary)
    for term, column in vocabulary.items():
        terms[column] = term
    table = NameTable.from_names(terms)
    arrays: dict[str, NDArray[Any]] = {"term_bytes": table.text, "term_offsets": table.offsets}
    if vectorizer.use_idf:
        arrays["idf"] = np.asarray(vectorizer.idf_)
    return meta, arrays


def vectorizer_from_state(meta: dict[str, Any], arrays: dict[str, NDArray[Any]]) -> Vectorizer:
    """Restore a vectorizer from `vectorizer_state`; its `transform` returns the same bits.

    A state that is damaged or of another class raises ValueError.
    """
    if not (isinstance(meta, dict) and isinstance(meta.get("class"), str) and isinstance(meta.get("params"), dict)):
        raise ValueError("not the state of a vectorizer")
    if meta["class"] in _OWN:
        for part in [meta, *_parts_of(meta)]:
            if "ngram_range" in part["params"]:
                if not _is_ngram_range(part["params"]["ngram_range"]):
                    raise ValueError(f"the saved {part.get('class')} has no ngram_range")
                check_vectorizer(part["params"].get("token_pattern"), tuple(part["params"]["ngram_range"]))
        return _OWN[meta["class"]].from_state(meta, arrays)
    if meta["class"] not in _OF_SCIKIT_LEARN:
        raise ValueError(f"not the state of a vectorizer; known classes are {', '.join([*_OWN, *_OF_SCIKIT_LEARN])}")
    cls = _class_of_scikit_learn(meta["class"])
    params = dict(meta["params"])
    unknown = set(params) - (set(inspect.signature(cls).parameters) - {"vocabulary"})
    if unknown:
        raise ValueError(f"the saved {meta['class']} has unknown parameters: {', '.join(sorted(unknown))}")
    if params.get("dtype") not in _DTYPES or params.get("input") != "content":
        raise ValueError(f"the saved {meta['class']} must have a dtype of {' or '.join(_DTYPES)} and read text")
    params["dtype"] = np.dtype(params["dtype"]).type
    if not _is_ngram_range(params.get("ngram_range")):
        raise ValueError(f"the saved {meta['class']} has no ngram_range")
    params["ngram_range"] = tuple(params["ngram_range"])
    check_vectorizer(params.get("token_pattern"), params["ngram_range"])
    if meta["class"] == "HashingVectorizer":
        return _usable(cls(**params))
    for name in ("term_bytes", "term_offsets", *(("idf",) if params.get("use_idf", True) else ())):
        if name not in arrays:
            raise ValueError(f"the saved TfidfVectorizer has no array {name}")
    terms = NameTable(arrays["term_bytes"], arrays["term_offsets"]).tolist()
    vocabulary = dict(zip(terms, range(len(terms)), strict=True))
    if not terms or len(vocabulary) != len(terms):
        raise ValueError("the saved TfidfVectorizer has no terms, or duplicate terms")
    is_fixed = bool(meta.get("has_fixed_vocabulary"))
    vectorizer = cls(**params, vocabulary=vocabulary if is_fixed else None)
    vectorizer.vocabulary_, vectorizer.fixed_vocabulary_ = vocabulary, is_fixed
    # Setting idf_ also initialises the rest. A fit would process every term again, and take most of the loading time.
    if not vectorizer.use_idf:
        return _usable(_without_idf(vectorizer))
    idf = np.asarray(arrays["idf"])
    if idf.shape != (len(terms),) or str(idf.dtype) not in _DTYPES:
        raise ValueError(f"the saved TfidfVectorizer needs {len(terms)} idf values")
    if not (np.abs(idf) <= LARGEST_IDF).all():
        raise ValueError("the saved TfidfVectorizer: idf values must be finite")
    vectorizer.idf_ = idf
    return _usable(vectorizer)


def _usable(vectorizer: Vectorizer) -> Vectorizer:
    """The vectorizer, if it can read a text: wrong parameters are found when it is loaded, not when it is used."""
    try:
        vectorizer._validate_params()
        vectorizer.transform([""])
    except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError, re.error) as error:
        raise ValueError(f"the saved {type(vectorizer).__name__} does not work: {error}") from error
    return vectorizer


def _parts_of(meta: dict[str, Any]) -> list[dict[str, Any]]:
    """The vectorizers inside a union; what is no vectorizer is left for `from_state` to reject."""
    parts = meta.get("parts", [])
    found = parts if isinstance(parts, list) else []
    return [part for part in found if isinstance(part, dict) and isinstance(part.get("params"), dict)]


def _is_ngram_range(given: Any) -> bool:
    return (
        isinstance(given, list) and len(given) == 2 and all(type(n) is int for n in given) and 1 <= given[0] <= given[1]
    )


def _without_idf(vectorizer: Vectorizer) -> Vectorizer:
    """Initialise the vectorizer by fitting it on an empty text, without repeating warnings about its terms."""
    is_fixed, given = vectorizer.fixed_vocabulary_, vectorizer.vocabulary
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        vectorizer.set_params(vocabulary=vectorizer.vocabulary_).fit([""])
    vectorizer.set_params(vocabulary=given)
    vectorizer.fixed_vocabulary_ = is_fixed
    return vectorizer


def _plain(name: str, value: Any) -> Any:
    """Convert a parameter to a JSON value, or raise."""
    if callable(value) and name in _MAY_BE_CALLABLE:
        raise ValueError(
            f"the vectorizer's {name} is a function, which cannot be saved; "
            f"apply it to the texts first and use a built-in {name}"
        )
    if name == "dtype":
        if np.dtype(value).name not in _DTYPES:
            raise ValueError(f"the vectorizer's dtype must be {' or '.join(_DTYPES)}, got {value!r}")
        return np.dtype(value).name
    if name == "input" and value != "content":
        raise ValueError(f'the vectorizer\'s input must be "content", so that it takes texts, got {value!r}')
    if name == "vocabulary":
        return value if value is None else "fixed"  # the terms themselves are in the arrays
    if isinstance(value, (tuple, np.ndarray)):
        value = list(value)
    elif isinstance(value, np.generic):
        value = value.item()
    try:
        return json.loads(json.dumps(value))
    except (TypeError, ValueError):
        raise ValueError(f"the vectorizer's {name}={value!r} cannot be written as JSON") from None
