"""Going on with a checkpoint: what it was learned from, and how, must be what comes next."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from ramify.cli.online import FLAGS
from ramify.data import DataError
from ramify.data.live import in_words

if TYPE_CHECKING:
    from ramify.cli.stream.run import Settings

_ANOTHER = "or begin anew with --new, or in another directory"


def resumed(asked: Any, settings: Settings) -> Any:
    """The model of the checkpoint, if it is one that the command line may go on with."""
    from ramify.files.save_load import load
    from ramify.models.online_plt.classifier import OnlinePLTClassifier

    loaded = load(settings.model)
    if not isinstance(loaded, OnlinePLTClassifier):
        hint = "choose another directory, or replace the model with --new"
        raise DataError(f"this is a {type(loaded).__name__}, which cannot go on learning", settings.model, hint=hint)
    for name, flag in FLAGS.items():
        parameter = "seed" if name == "random_state" else name
        if parameter in settings.given and getattr(asked, name) != getattr(loaded, name):
            known = getattr(loaded, name)
            begun = f"without {flag}" if known is None else f"with {flag} {known}"
            message = f"the model was begun {begun}, which cannot become {getattr(asked, name)}"
            raise DataError(message, settings.model, hint=f"leave {flag} out, {_ANOTHER}")
    if settings.multiclass and not loaded.is_multiclass_:
        message = "the model was begun without --multiclass: its rows have any number of labels"
        raise DataError(message, settings.model, hint=f"leave --multiclass out, {_ANOTHER}")
    if "ngrams" in settings.given:
        _check_ngrams(asked, loaded, settings)
    return loaded.set_params(n_jobs=asked.n_jobs)


def _check_ngrams(asked: Any, loaded: Any, settings: Settings) -> None:
    vectorizer = getattr(loaded, "vectorizer_", None)
    known = None if vectorizer is None else vectorizer.ngram_range[1]
    wanted = 1 if asked.vectorizer is None else asked.vectorizer.ngram_range[1]
    if known is not None and known != wanted:
        message = f"the model makes features of runs of up to {known} words, not {wanted}"
        raise DataError(message, settings.model, hint=f"leave --ngrams out, {_ANOTHER}")


def check_same_source(model: Any, format: str, path: Path) -> None:
    """Refuse rows that are written otherwise than those that the model has learned."""
    known, is_text = model.source_format_, hasattr(model, "vectorizer_")
    if is_text != (format == "jsonl"):
        was, now = ("texts", "numbers") if is_text else ("numbers", "texts")
        raise DataError(f"the model was learned from {was}, and these are {now}", path, hint=_ANOTHER[3:])
    if known is not None and known != format:
        message = f"the model was learned from {in_words(known)}, and this is {in_words(format)}"
        raise DataError(message, path, hint=f"a feature may have another number there: convert it, {_ANOTHER}")
    name = model.label_encoding_.names([0])[0]
    if isinstance(name, str) != is_text:
        was, now = ("numbers", "words") if is_text else ("words", "numbers")
        raise DataError(f"the model's labels are {was}, and these are {now}", path, hint=_ANOTHER[3:])
