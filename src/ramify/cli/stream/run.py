"""A run of `ramify stream`: read lines, learn, save checkpoints."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np

from ramify.base.stream_schema import StreamSchema
from ramify.cli import output
from ramify.cli.models import (
    check_target,
    known_columns,
    labels_are_columns,
    learns_one_class,
    rows_learned,
    save_portable,
    takes_text,
)
from ramify.cli.options import columns_to_know
from ramify.cli.stream.input import Stopped, StopSignal, blocks_of, opened
from ramify.cli.stream.resume import check_same_source, resumed
from ramify.cli.stream.screen import Screen, screen_for
from ramify.data import Columns, DataError
from ramify.data.encodings import utf8_blocks
from ramify.data.files import beginning, check_is_text, replaced_when_complete, split_lines
from ramify.data.label_forms import indicator_of
from ramify.data.lines import LabelledBatch, LineParser, TableRows, not_one_label
from ramify.data.load import ARROW_MAGIC, BY_SUFFIX, find_text_format
from ramify.data.text_file import ARROW_FORMATS, TEXT_FORMATS, TextFile
from ramify.files.directory import MANIFEST
from ramify.progressive import Evaluation
from ramify.progressive.rows import joined

# Rows that are learned between updates of the screen.
_AT_ONCE = 1024


@dataclass(frozen=True)
class Settings:
    """The command line."""

    model: Path
    data: Path | None
    stdin: Any
    is_new: bool
    save_every: int
    tests_first: bool
    window: int
    block: int
    ks: list[int]
    report: Path | None
    format: str | None
    columns: Columns
    zero_based: bool
    multiclass: bool
    skips_bad_lines: bool
    skips_seen: bool
    as_json: bool
    given: set[str]


class StreamRun:
    """Learns the lines of a source; saves the model at intervals, at the end, and when asked to stop."""

    def __init__(self, classifier: Any, settings: Settings) -> None:
        self.settings = settings
        check_target(settings.model)
        self.is_resumed = not settings.is_new and (settings.model / MANIFEST).exists()
        self._n_learned = 0
        self.classifier = resumed(classifier, settings) if self.is_resumed else classifier
        self.is_multiclass = self.classifier.is_multiclass_ if self.is_resumed else settings.multiclass
        self.n_before = self.n_examples
        self.n_saved = self.n_before if self.is_resumed else -1
        self.n_to_skip = self.n_before if settings.skips_seen else 0
        self.evaluation: Evaluation | None = None
        if settings.tests_first:
            name = settings.model.name
            self.evaluation = Evaluation(
                self.classifier, block=settings.block, window=settings.window, k=settings.ks, name=name
            )
        self.screen: Screen = screen_for(None if self.evaluation is None else self.evaluation.result, settings.as_json)
        self.parser: LineParser | TableRows | None = None
        self.source_format, self.zero_based = self.classifier.source_format_, False
        self.columns = known_columns(settings.columns, self.classifier, settings.data)
        self._held: LabelledBatch | None = None

    def run(self) -> int:
        """Learn until the lines end; return the exit code."""
        self.started = time.perf_counter()
        with StopSignal() as stop, opened(self.settings.data, self.settings.stdin) as (name, descriptor), self.screen:
            try:
                blocks = utf8_blocks(blocks_of(name, descriptor, stop), self.columns.encoding, name)
                with suppress(Stopped):
                    for batch in self._batches(name, blocks, stop):
                        self._learn(batch)
                self._check_anything_learned(name, stop)
                self._finish_windows()
            except Exception:  # whatever it is, rows that were learned are kept
                self._save_quietly()
                raise
            self._save()
            self._write_report()
            facts = self._facts() | {
                "new_examples": self.n_examples - self.n_before,
                "skipped_lines": 0 if self.parser is None else self.parser.n_bad_lines,
                "seconds": round(time.perf_counter() - self.started, 3),
                "stopped_by": None if stop.received is None else stop.received.name,
            }
            self.screen.done(facts)
        return 0 if stop.received is None else 128 + stop.received

    # --- rows -----------------------------------------------------------------------------------------------------

    def _batches(self, name: str, blocks: Iterator[bytes], stop: StopSignal) -> Iterator[LabelledBatch]:
        """The rows after those to skip."""
        for batch in self._all_batches(name, blocks, stop):
            skipped = min(self.n_to_skip, len(batch))
            self.n_to_skip -= skipped
            if skipped < len(batch):
                yield batch.part(skipped, len(batch)) if skipped else batch

    def _all_batches(self, name: str, blocks: Iterator[bytes], stop: StopSignal) -> Iterator[LabelledBatch]:
        """Rows as the parser reads them, once the first line has shown their format."""
        start = beginning(blocks, whole_line=True)
        if not start:
            return
        if not start.startswith(ARROW_MAGIC):
            check_is_text(start[:4096], name)
        format = self._find_format(start)
        if format in ARROW_FORMATS:
            yield from self._arrow_batches(format, stop)
            return
        blocks = chain([start], blocks)
        on_bad_line = self.screen.bad_line if self.settings.skips_bad_lines else None
        one_label = self.is_multiclass or learns_one_class(self.classifier)
        if format in ("csv", "tsv"):
            table = self.parser = TableRows(format, name, self.columns, one_label=one_label, on_bad_line=on_bad_line)
            for block in blocks:
                yield from table.parse(block)
            yield from table.parse(b"", is_last=True)
            return
        lines = self.parser = LineParser(
            format,
            name,
            zero_based=self.zero_based,
            one_label=one_label,
            max_features=None if self._takes_new_features else self.classifier.n_features_in_,
            columns=self.columns,
            on_bad_line=on_bad_line,
        )
        for some in split_lines(blocks):
            yield from lines.parse(some)

    def _arrow_batches(self, format: str, stop: StopSignal) -> Iterator[LabelledBatch]:
        path = self.settings.data
        if path is None or not path.is_file():
            raise DataError("Parquet and Arrow need a file, not a pipe", path or "stdin", hint="write a file first")
        for chunk in TextFile(path, format, self.columns).chunks(_AT_ONCE):
            stop.check()
            one_label = self.is_multiclass or learns_one_class(self.classifier)
            bad = next((place for place, row in enumerate(chunk.labels) if one_label and len(row) != 1), None)
            if bad is not None:
                raise not_one_label(len(chunk.labels[bad]), path, chunk.lines[bad])
            yield LabelledBatch(chunk.texts, chunk.labels, chunk.lines)

    @property
    def _takes_new_features(self) -> bool:
        return not self.is_resumed or takes_text(self.classifier) or isinstance(self.classifier.schema_, StreamSchema)

    def _find_format(self, start: bytes) -> Any:
        """The format by command line, model, file name or first line, in this order."""
        settings, known = self.settings, self.classifier.source_format_
        format: Any = settings.format
        named = None
        if settings.data is not None:
            named = BY_SUFFIX.get(Path(settings.data.name.removesuffix(".gz")).suffix.lower())
        looks_like = named if named in TEXT_FORMATS else find_text_format(start, self.columns)
        if format is None and known is not None:
            # Rows without a header look like libsvm, so the first line only decides between texts and numbers.
            before = known.removesuffix("-zero-based")
            format = looks_like if looks_like in TEXT_FORMATS or before in TEXT_FORMATS else before
        format = format or named or looks_like
        if format == "npz":
            raise DataError("an npz file has no lines to stream", settings.data, hint="convert it: see ramify convert")
        self.zero_based = settings.zero_based or known == "libsvm-zero-based"
        self.source_format = f"{format}-zero-based" if format == "libsvm" and self.zero_based else str(format)
        if self.is_resumed:
            check_same_source(self.classifier, self.source_format, settings.model)
        return format

    # --- learning --------------------------------------------------------------------------------------------------

    def _learn(self, batch: LabelledBatch) -> None:
        if self._held is not None:
            X, labels = joined(self._held.X, batch.X), self._held.labels + batch.labels
            batch = LabelledBatch(X, labels, [*self._held.lines, *batch.lines])
            self._held = None
        start = 0
        while start < len(batch):
            until_save = self.settings.save_every - self.n_examples % self.settings.save_every
            stop = min(len(batch), start + until_save, start + _AT_ONCE)
            piece = batch.part(start, stop)
            if not hasattr(self.classifier, "classes_") and not any(piece.labels):
                # A model needs a label to start; hold the rows before the first one and learn them with it.
                self._held = batch.part(start, len(batch))
                return
            self._learn_piece(piece)
            start = stop
            self.screen.learning(self.n_examples, self.classifier.n_labels_)
            if self.n_examples % self.settings.save_every == 0:
                self._save()

    def _learn_piece(self, piece: LabelledBatch) -> None:
        y = self._labels(piece.labels)
        if self.evaluation is None:
            self.classifier.partial_fit(piece.X, y)
        else:
            for window in self.evaluation.update(piece.X, y):
                self.screen.window(window)
        self._n_learned += len(piece)

    def _labels(self, labels: list[tuple[Any, ...]]) -> Any:
        if self.is_multiclass:
            return [row[0] for row in labels]
        if not self.is_resumed or not labels_are_columns(self.classifier):
            return labels
        # The model was trained on an array: labels are its columns.
        sizes = np.fromiter(map(len, labels), np.int64, len(labels))
        columns = np.fromiter(chain.from_iterable(labels), np.int32, int(sizes.sum()))
        n_labels = max(self.classifier.n_labels_, int(columns.max()) + 1 if len(columns) else 0)
        return indicator_of(columns, np.concatenate([[0], np.cumsum(sizes)]), n_labels)

    def _finish_windows(self) -> None:
        if self.evaluation is None:
            return
        done = len(self.evaluation.result.windows)
        for window in self.evaluation.finish().windows[done:]:
            self.screen.window(window)

    # --- checkpoints ----------------------------------------------------------------------------------------------

    @property
    def n_examples(self) -> int:
        """Rows that the model has learned; of those of this run, if it does not say."""
        n = rows_learned(self.classifier)
        return self._n_learned if n is None else n

    def _save(self) -> None:
        """Save the model if it has changed; report it only when it is on the disk."""
        if self.n_examples == self.n_saved:
            return
        began = time.perf_counter()
        self.classifier.source_format_ = self.source_format
        self.classifier.source_columns_ = self.classifier.source_columns_ | columns_to_know(self.settings.columns)
        save_portable(self.classifier, self.settings.model)
        self.n_saved = self.n_examples
        self.screen.saved(self._facts() | {"save_seconds": round(time.perf_counter() - began, 3)})

    def _save_quietly(self) -> None:
        """Keep what was learned before an error; the reader of the output may be gone."""
        if self.n_examples:
            with suppress(BrokenPipeError):
                self._save()

    def _facts(self) -> dict[str, Any]:
        return {
            "examples": self.n_examples,
            "labels": self.classifier.n_labels_,
            "features": self.classifier.n_features_in_,
            "model": str(self.settings.model),
            "bytes": output.directory_size(self.settings.model),
        }

    def _check_anything_learned(self, name: str, stop: StopSignal) -> None:
        if self._held is not None:
            message = f"none of the {output.count(len(self._held), 'row')} has a label, so there is nothing to learn"
            raise DataError(message, name, hint="labels come before the features, as in: 3,17 5:0.25")
        if self.n_examples == 0:
            ended = "" if stop.received is None else f" before {stop.received.name}"
            raise DataError(f"no rows arrived{ended}, so there is nothing to learn", name, hint="check the input")

    def _write_report(self) -> None:
        if self.settings.report is not None and self.evaluation is not None:
            with replaced_when_complete(self.settings.report) as stream:
                stream.write(self.evaluation.result.to_json().encode() + b"\n")
