"""Model files: `save` and `load`. Loading runs no code: classes come from the registry, values from JSON and arrays."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from numpy.typing import NDArray

import ramify
from ramify import registry
from ramify.base.fitted import FittedModel
from ramify.common.validation import check_jobs
from ramify.data.limits import widest
from ramify.data.patterns import UntrustedVectorizerError, vectorizers_of_files
from ramify.files.directory import ModelFileError, read_model, write_model
from ramify.files.packing import pack, pack_parameters, unpack
from ramify.files.version_2 import upgrade


def save(classifier: Any, path: str | os.PathLike[str]) -> None:
    """Save a fitted classifier to a directory, which is replaced as a whole or, if interrupted, not at all."""
    write_model(path, *packed(classifier))


def packed(classifier: Any) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
    """What `save` writes, for `write_model`: the manifest's content, and the arrays. The classifier may learn on."""
    name = type(classifier).__name__
    if not registry.is_registered(type(classifier)):
        raise ModelFileError(
            f"{type(classifier).__module__}.{name} is not one of the library's own classifiers, "
            "and only those have model files: use pickle or joblib for classes of your own"
        )
    arrays: dict[str, NDArray[Any]] = {}
    with classifier._fitted().lock.reading():  # schema and model must be of the same moment
        fitted: FittedModel = classifier._answering()
        content = {
            "library_version": ramify.__version__,
            "class": name,
            "parameters": pack_parameters(classifier, "parameters", arrays),
            "fitted": pack(fitted.values(), "fitted", arrays),
            "model": pack(fitted.model.state()._asdict(), "model", arrays),
        }
    return content, arrays


def load(path: str | os.PathLike[str], verify: bool | None = None, *, trust_vectorizer: bool = False) -> Any:
    """Load a classifier that `save` has written; its arrays are memory-mapped, so processes share them.

    `verify=True` compares every byte with the checksum; by default this is done for models of up to 64 MB.
    A model whose vectorizer has a regular expression that may take for ever on some texts needs
    `trust_vectorizer=True`: give it only if you trust whoever made the file.

    >>> import tempfile
    >>> from ramify import PLTClassifier
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     PLTClassifier(random_state=0).fit(["red apple", "green pear"] * 5, ["apple", "pear"] * 5).save(folder)
    ...     load(folder).predict(["a green pear"]).tolist()
    ['pear']
    """
    with _reading(path, verify, trust_vectorizer) as (name, manifest, arrays):
        fitted = _fitted_model(name, manifest, arrays)
        parameters = unpack(manifest["parameters"], arrays, fitted.schema.vectorizer)
        classifier = registry.load_class(name)(**parameters)
        for part in (classifier, *parameters.values()):  # check parameters now, not at the next training
            if hasattr(part, "_check_parameters"):
                part._check_parameters()
                check_jobs(part.n_jobs)
                part._hierarchy_of(fitted.schema)
        classifier._set_fitted(fitted)
    return classifier


def load_fitted(
    path: str | os.PathLike[str], verify: bool | None = None, *, trust_vectorizer: bool = False
) -> FittedModel:
    """Load the schema and the model of a classifier, to query them: needs no scikit-learn for rows of numbers.

    >>> import tempfile
    >>> from ramify import PLTClassifier
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     PLTClassifier(random_state=0).fit(["red apple", "green pear"] * 5, ["apple", "pear"] * 5).save(folder)
    ...     load_fitted(folder).predict_one("a green pear", top_k=1)[0][0]
    'pear'
    """
    with _reading(path, verify, trust_vectorizer) as (name, manifest, arrays):
        return _fitted_model(name, manifest, arrays)


@contextmanager
def _reading(
    path: str | os.PathLike[str], verify: bool | None, trust_vectorizer: bool
) -> Iterator[tuple[str, dict[str, Any], dict[str, NDArray[Any]]]]:
    """The class, manifest and arrays of a model; whatever is wrong with them becomes a ModelFileError."""
    manifest, arrays = read_model(path, verify)
    name = manifest.get("class")
    if not isinstance(name, str) or name not in registry.CLASSIFIERS:
        raise ModelFileError(
            f"{path} holds a {str(name)[:60]!r}, which ramify {ramify.__version__} does not have "
            f"(saved by {str(manifest.get('library_version'))[:20]}): upgrade ramify"
        )
    try:
        _check_sizes(manifest, sum(array.nbytes for array in arrays.values()))
        with vectorizers_of_files(is_trusted=trust_vectorizer):
            yield name, upgrade(manifest) if manifest["format_version"] == 2 else manifest, arrays
    except ModelFileError:
        raise
    except UntrustedVectorizerError as error:
        raise ModelFileError(
            f"{path}: the vectorizer's {error}; if you trust whoever made this model, load it with "
            "ramify.load(path, trust_vectorizer=True), or on the command line ramify --trust-vectorizer …"
        ) from error
    except RecursionError:
        raise ModelFileError(
            f"{path} has a manifest that is nested too deeply: it was damaged or made to break loading"
        ) from None
    except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as error:
        raise ModelFileError(
            f"{path} does not hold a sound {name} (saved by ramify {str(manifest.get('library_version'))[:20]}, "
            f"this is {ramify.__version__}): {type(error).__name__}: {error}"
        ) from error


def _check_sizes(part: Any, n_bytes: int) -> None:
    """Reject numbers of labels that are out of proportion to the arrays: models reserve memory for each label."""
    for value in part.values() if isinstance(part, dict) else part:
        if isinstance(value, dict | list):
            _check_sizes(value, n_bytes)
    n_labels = part.get("n_labels") if isinstance(part, dict) else None
    if isinstance(n_labels, int) and n_labels > widest(n_bytes):
        raise ValueError(f"{n_labels:,} labels cannot be in {n_bytes:,} bytes of arrays")


def _fitted_model(name: str, manifest: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]) -> FittedModel:
    model_class = registry.load_model_class(name)
    return FittedModel.restore(name, unpack(manifest["fitted"], arrays), model_class, unpack(manifest["model"], arrays))
