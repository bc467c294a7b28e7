"""Resume from a checkpoint: refuse flags and rows that differ from those the model was started with."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from ramify.cli.classifiers import PARAMETERS, flag_value, flags_of
from ramify.cli.models import labels_at, rows_learned, takes_text
from ramify.cli.options import flag
from ramify.data import DataError
from ramify.data.lines import format_name
from ramify.data.text_file import TEXT_FORMATS

if TYPE_CHECKING:
    from ramify.cli.stream.run import Settings

_ANOTHER = "start a new model with --new, or use another directory"


def resumed(requested: Any, settings: Settings) -> Any:
    """The model of the checkpoint, if the command line does not contradict it."""
    from ramify.base.save_load import load

    loaded = load(settings.model)
    class_name = type(loaded).__name__
    if not _learns_on(loaded):
        hint = "choose another directory, or replace the model with --new"
        raise DataError(f"a {class_name} cannot continue to learn", settings.model, hint=hint)
    if settings.skips_seen and rows_learned(loaded) is None:
        hint = "leave --skip-seen out, and give only rows that it has not learned"
        raise DataError("the model does not say how many rows it has learned", settings.model, hint=hint)
    for name in settings.given.intersection((*PARAMETERS["OnlinePLTClassifier"], "seed")):
        if name != "seed" and name not in flags_of(class_name):
            hint = f"leave {flag(name)} out, or {_ANOTHER}"
            raise DataError(f"the model is a {class_name}, which has no {flag(name)}", settings.model, hint=hint)
        wanted, known = flag_value(requested, name), flag_value(loaded, name)
        if wanted != known:
            started = f"without {flag(name)}" if known is None else f"with {flag(name)} {known}"
            message = f"the model was started {started}, which cannot change to {wanted}"
            raise DataError(message, settings.model, hint=f"leave {flag(name)} out, or {_ANOTHER}")
    if settings.multiclass and not loaded.is_multiclass_:
        message = "the model was started without --multiclass: its rows have any number of labels"
        raise DataError(message, settings.model, hint=f"leave --multiclass out, or {_ANOTHER}")
    if "ngrams" in settings.given:
        _check_ngrams(requested, loaded, settings)
    return loaded.set_params(n_jobs=requested.n_jobs)


def _learns_on(model: Any) -> bool:
    """Whether `partial_fit` only adds to what was learned; it would replace thresholds that `fit` tuned."""
    return hasattr(model, "partial_fit") and getattr(model.model_, "online", ()) is not None


def _check_ngrams(requested: Any, loaded: Any, settings: Settings) -> None:
    vectorizer = getattr(loaded, "vectorizer_", None)
    known = None if vectorizer is None else getattr(vectorizer, "ngram_range", (1, 1))[1]
    wanted = 1 if requested.vectorizer is None else requested.vectorizer.ngram_range[1]
    if known is not None and known != wanted:
        message = f"the features of the model are up to {known} consecutive words, not {wanted}"
        raise DataError(message, settings.model, hint=f"leave --ngrams out, or {_ANOTHER}")


def check_same_source(model: Any, format: str, path: Path) -> None:
    """Refuse rows in another format than those that the model has learned."""
    known, is_text = model.source_format_, takes_text(model)
    if is_text != (format in TEXT_FORMATS):
        was, now = ("texts", "numbers") if is_text else ("numbers", "texts")
        raise DataError(f"the model has learned {was}, but these are {now}", path, hint=_ANOTHER)
    if known is not None and known != format and not is_text:  # words are the same in all formats
        message = f"the model has learned {format_name(known)}, but this is {format_name(format)}"
        raise DataError(message, path, hint=f"features may be numbered differently: convert the data, or {_ANOTHER}")
    if isinstance(labels_at(model, [0])[0], str) != is_text:
        was, now = ("numbers", "words") if is_text else ("words", "numbers")
        raise DataError(f"the model's labels are {was}, but these are {now}", path, hint=_ANOTHER)
