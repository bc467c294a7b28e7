"""The directory of a served model: open the model and its journal, or say why they do not fit together."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Any, NamedTuple

from ramify.files.directory import MANIFEST, read_model
from ramify.serve.journal import Journal, JournalError
from ramify.serve.settings import Settings, check_target
from ramify.serve.snapshots import NOTES
from ramify.serve.teaching import is_online

log = logging.getLogger("ramify.serve")


class Store(NamedTuple):
    """A classifier that learns, and the journal that continues it; neither for a batch model."""

    classifier: Any
    journal: Journal | None

    @property
    def learns(self) -> bool:
        return self.journal is not None


def open_store(settings: Settings) -> Store:
    """The model of a directory with its journal, which is created if the model can learn."""
    model, journal_path = settings.model, settings.journal_path
    check_target(settings)
    if (model / MANIFEST).exists():
        from ramify import registry
        from ramify.base.save_load import load

        name = read_model(model, verify=False)[0].get("class")
        if name in registry.CLASSIFIERS and not is_online(registry.load_class(name)):
            return Store(None, None)  # workers load it
        classifier = load(model)
        if not is_online(classifier):
            return Store(None, None)
        journal = _journal_of(classifier, settings)
    else:
        model.mkdir(parents=True, exist_ok=True)
        journal = Journal(journal_path)
        if "new" not in journal.facts:
            if journal.last:
                raise JournalError(
                    f"{journal_path} continues a model that is not in {model} any more"
                    "\nhint: restore the model's files, or use the examples:  ramify train --journal"
                )
            new = {"ngrams": settings.ngrams, "seed": settings.seed, "is_multiclass": settings.is_multiclass}
            journal.set_facts(new=new, is_multiclass=settings.is_multiclass, n_base=0)
        elif journal.first() > 1:
            log.warning("the first examples of the journal are gone", extra={"first": journal.first()})
        classifier = _new_classifier(journal.facts["new"])
    classifier.set_params(n_jobs=None if settings.threads == 1 else settings.threads)
    return Store(classifier, journal)


def _journal_of(classifier: Any, settings: Settings) -> Journal:
    journal = Journal(settings.journal_path)
    manifest = read_model(settings.model, verify=False)[0]
    notes, checksum = manifest.get(NOTES, {}), manifest["checksum"]
    is_foreign = not journal.continues(manifest, notes)
    if is_foreign and journal.last == 0 and ("base" in journal.facts or "new" in journal.facts):
        log.warning("the model was replaced before anything was taught", extra={"model": str(settings.model)})
        journal.begin_again()
    if "base" not in journal.facts and "new" not in journal.facts:
        n_base = int(getattr(classifier, "n_examples_", 0))
        journal.set_facts(base=checksum, n_base=n_base, is_multiclass=bool(classifier.is_multiclass_))
    elif is_foreign:
        raise JournalError(
            f"{settings.journal_path} holds {journal.last:,} examples taught to another model than the one in "
            f"{settings.model}: the model was replaced\nhint: move the journal away to start a new one (its examples "
            "stay usable: `ramify train --journal`), or restore the model"
        )
    position = int(notes.get("sequence", 0))
    if journal.first() > position + 1 and journal.first() <= journal.last:
        raise JournalError(
            f"{settings.journal_path} starts at example {journal.first()}, but the model has learned only "
            f"{position}\nhint: restore a newer copy of the model: its journal was pruned since"
        )
    if position > journal.last:
        log.warning("the model is ahead of its journal", extra={"model": position, "journal": journal.last})
        journal.start_from(position)
    return journal


def _new_classifier(new: dict[str, Any]) -> Any:
    from ramify import registry
    from ramify.data.text import default_stream_vectorizer

    n = int(new["ngrams"])
    vectorizer = None if n == 1 else default_stream_vectorizer().set_params(ngram_range=(1, n))
    return registry.make_classifier("online-plt", vectorizer=vectorizer, random_state=int(new["seed"]))


def journal_at(path: Path) -> Path:
    """The journal file of a path on the command line: the file itself, or the one in a model's directory."""
    from ramify.serve.settings import JOURNAL

    found = path / JOURNAL if path.is_dir() else path
    if not found.is_file():
        raise JournalError(f"there is no journal at {found}\nhint: give the directory that `ramify serve` serves")
    return found
