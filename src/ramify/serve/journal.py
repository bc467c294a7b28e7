"""The journal: every example that was acknowledged, in order, in an SQLite database.

The model is a fold of the journal. A commit is on the disk before the client gets its answer (WAL, synchronous=FULL).
Each example has a sequence number from 1 on and a checksum. A request is a batch: it is committed as a whole, and
learned as one piece, so that a replay gives the same bits.
"""

from __future__ import annotations

import hashlib
import json
import os
import sqlite3
import time
import uuid
import zlib
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from ramify.files.directory import sync_directory
from ramify.serve.journal_log import read_log

SCHEMA_VERSION = 1
# Retried requests are recognised for this long.
KEY_SECONDS = 7 * 24 * 3600
_READ_AT_ONCE = 2000
_HEADER = 100  # bytes of an SQLite file
_ATTEMPTS = 3

Label = str | int
Content = Mapping[str, Any]  # "text" or "features", and "labels"

_TABLES = """
CREATE TABLE facts(name TEXT PRIMARY KEY, value TEXT NOT NULL);
CREATE TABLE batches(batch INTEGER PRIMARY KEY, first INTEGER NOT NULL, size INTEGER NOT NULL, time REAL NOT NULL,
                     key TEXT UNIQUE, digest BLOB NOT NULL);
CREATE TABLE examples(sequence INTEGER PRIMARY KEY, batch INTEGER NOT NULL, content TEXT NOT NULL,
                      crc INTEGER NOT NULL);
CREATE TABLE label_counts(label PRIMARY KEY, n INTEGER NOT NULL) WITHOUT ROWID;
CREATE INDEX by_count ON label_counts(n);
"""


class JournalError(ValueError):
    """The journal cannot be used; says what is wrong and what to do."""


class Batch(NamedTuple):
    """The examples of one request, its idempotency key, and a digest of the request."""

    examples: Sequence[Content]
    key: str | None = None

    @property
    def digest(self) -> bytes:
        text = json.dumps(self.examples, sort_keys=True, ensure_ascii=True)
        return hashlib.sha256(text.encode()).digest()


class Receipt(NamedTuple):
    """What was committed: the last sequence number, and whether an earlier request had committed it already.

    `is_conflict`: the key was used for other examples, and nothing was committed.
    """

    last: int
    size: int
    is_duplicate: bool = False
    is_conflict: bool = False


class Piece(NamedTuple):
    """A committed batch to learn."""

    first: int
    last: int
    examples: list[Content]


def _check_files(path: Path) -> None:
    """Refuse a damaged journal before SQLite opens it: that would drop what follows the damage in its log."""
    if path.stat().st_size < _HEADER:
        raise JournalError(_damaged(path, "its beginning is missing"))
    n_lost = 0
    for attempt in range(_ATTEMPTS):  # while a service writes to the log, a look at it may be wrong
        time.sleep(0.05 * attempt)
        log = read_log(path)
        n_lost = 0 if log is None else log.n_lost_commits
        if not n_lost:
            return
    raise JournalError(_damaged(path, f"its log is, with {n_lost:,} complete commits behind the damage"))


class Journal:
    """The database of a served model; one thread at a time may use an instance."""

    def __init__(self, path: Path) -> None:
        """Open the journal at this path, or create an empty one."""
        self.path = path
        with self._clear_errors():
            if not path.exists():
                _create(path)
            _check_files(path)
            self._db = sqlite3.connect(path, isolation_level=None, check_same_thread=False, timeout=30)
            self._db.execute("PRAGMA journal_mode=WAL")
            self._db.execute("PRAGMA synchronous=FULL")
            facts = dict(self._db.execute("SELECT name, value FROM facts"))
        if facts.get("version") != str(SCHEMA_VERSION):
            raise JournalError(
                f"{path} has journal version {facts.get('version')!r}, not {SCHEMA_VERSION} as this ramify: upgrade it"
            )
        self.facts: dict[str, Any] = {name: json.loads(value) for name, value in facts.items()}
        self.id: str = self.facts["id"]
        with self._clear_errors():
            self._next_batch, self.last = self._ends()

    def _ends(self) -> tuple[int, int]:
        batch, last = self._db.execute("SELECT max(batch), max(first + size - 1) FROM batches").fetchone()
        of_examples = self._db.execute("SELECT max(sequence) FROM examples").fetchone()[0]
        return (batch or 0) + 1, max(last or 0, of_examples or 0, int(self.facts["start"]))

    def set_facts(self, **facts: Any) -> None:
        """Store JSON values by name, all of them or none."""
        with self._transaction():
            self._db.executemany(
                "INSERT OR REPLACE INTO facts VALUES (?, ?)", [(name, json.dumps(facts[name])) for name in facts]
            )
        self.facts |= facts

    def begin_again(self) -> None:
        """Take a new identity; only for a journal without examples, whose model was replaced."""
        assert self.last == 0
        self.set_facts(id=uuid.uuid4().hex)
        self.id = self.facts["id"]
        with self._transaction():
            self._db.execute("DELETE FROM facts WHERE name IN ('new', 'base')")
        for name in ("new", "base"):
            self.facts.pop(name, None)

    def continues(self, manifest: Mapping[str, Any], notes: Mapping[str, Any]) -> bool:
        """Whether a model is the one that this journal began with, or was saved by a service with this journal."""
        return notes.get("journal") == self.id or manifest.get("checksum") == self.facts.get("base")

    # --- writing --------------------------------------------------------------------------------------------------

    def append(self, batches: Sequence[Batch]) -> list[Receipt]:
        """Commit batches together; on return they are on the disk. If it raises, none of them is."""
        next_batch, last = self._next_batch, self.last
        try:
            with self._transaction():
                receipts = [self._append(batch) for batch in batches]
        except BaseException:
            self._next_batch, self.last = next_batch, last
            raise
        return receipts

    def _append(self, batch: Batch) -> Receipt:
        digest = batch.digest
        if batch.key is not None:
            known = self._db.execute("SELECT first, size, digest FROM batches WHERE key = ?", (batch.key,)).fetchone()
            if known is not None:
                first, size, known_digest = known
                return Receipt(first + size - 1, size, is_duplicate=True, is_conflict=known_digest != digest)
        number, first = self._next_batch, self.last + 1
        rows = []
        for sequence, content in enumerate(batch.examples, first):
            text = json.dumps(content, ensure_ascii=False)
            rows.append((sequence, number, text, checksum(sequence, text)))
        self._db.execute(
            "INSERT INTO batches VALUES (?, ?, ?, ?, ?, ?)", (number, first, len(rows), time.time(), batch.key, digest)
        )
        self._db.executemany("INSERT INTO examples VALUES (?, ?, ?, ?)", rows)
        counts = Counter(label for content in batch.examples for label in content["labels"])
        self._db.executemany(
            "INSERT INTO label_counts VALUES (?, ?) ON CONFLICT(label) DO UPDATE SET n = n + excluded.n", counts.items()
        )
        self._next_batch += 1
        self.last += len(rows)
        return Receipt(self.last, len(rows))

    def skip_to(self, sequence: int) -> None:
        """Give the next example this number: those before it are lost."""
        self.last = max(self.last, sequence - 1)

    def start_from(self, sequence: int) -> None:
        """Number the next example after this one: a restored model may be ahead of its journal."""
        if sequence > self.last:
            self.set_facts(start=sequence)
            self.last = sequence

    def prune(self, keep: int, learned: int) -> int:
        """Remove learned examples except the last `keep`, and old idempotency keys; return the number removed."""
        with self._transaction():
            until = min(self.last - keep, learned)
            removed = self._db.execute("DELETE FROM examples WHERE sequence <= ?", (until,)).rowcount
            self._db.execute(
                "DELETE FROM batches WHERE first + size - 1 <= ? AND time < ?", (until, time.time() - KEY_SECONDS)
            )
        return removed

    # --- reading --------------------------------------------------------------------------------------------------

    def after(self, sequence: int) -> Iterator[Piece]:
        """The committed batches with examples after this one, in order; complete when none is left."""
        held: list[tuple[int, int, str, int]] = []
        while True:
            last = held[-1][0] if held else sequence
            with self._clear_errors():
                rows = self._db.execute(
                    "SELECT sequence, batch, content, crc FROM examples WHERE sequence > ? ORDER BY sequence LIMIT ?",
                    (last, _READ_AT_ONCE),
                ).fetchall()
            for row in rows:
                if held and held[0][1] != row[1]:
                    yield _piece(self.path, held)
                    held = []
                held.append(row)
            if len(rows) < _READ_AT_ONCE:
                break
        if held:
            yield _piece(self.path, held)

    def first(self) -> int:
        """The sequence number of the oldest example that is kept; one after the last if none is."""
        found = self._db.execute("SELECT min(sequence) FROM examples").fetchone()[0]
        return self.last + 1 if found is None else int(found)

    def has_labels(self) -> bool:
        return self._db.execute("SELECT 1 FROM label_counts LIMIT 1").fetchone() is not None

    def counts(self, labels: Sequence[Label]) -> list[int]:
        """In how many examples each label was taught."""
        counts = []
        for label in labels:
            row = self._db.execute("SELECT n FROM label_counts WHERE label = ?", (label,)).fetchone()
            counts.append(0 if row is None else int(row[0]))
        return counts

    def most_frequent(self, limit: int, offset: int = 0) -> list[tuple[Label, int]]:
        """Labels by the number of examples, the most frequent first."""
        return self._db.execute(
            "SELECT label, n FROM label_counts ORDER BY n DESC, label LIMIT ? OFFSET ?", (limit, offset)
        ).fetchall()

    def check(self) -> None:
        """Read the whole database; raise a JournalError if a part of it is damaged."""
        with self._clear_errors():
            found = self._db.execute("PRAGMA quick_check(1)").fetchone()[0]
        if found != "ok":
            raise JournalError(_damaged(self.path, found))

    def backup(self, path: Path) -> None:
        """Copy the journal, also while another process writes to it."""
        with self._clear_errors():
            target = sqlite3.connect(path)
            try:
                self._db.backup(target)
            finally:
                target.close()

    def close(self) -> None:
        self._db.close()

    # --- errors ---------------------------------------------------------------------------------------------------

    @contextmanager
    def _transaction(self) -> Iterator[None]:
        self._db.execute("BEGIN IMMEDIATE")
        try:
            yield
            self._db.execute("COMMIT")
        except BaseException:
            if self._db.in_transaction:
                self._db.execute("ROLLBACK")
            raise

    @contextmanager
    def _clear_errors(self) -> Iterator[None]:
        try:
            yield
        except sqlite3.DatabaseError as error:
            if "malformed" in str(error) or "not a database" in str(error) or "no such table" in str(error):
                raise JournalError(_damaged(self.path, str(error))) from None
            raise JournalError(f"{self.path} cannot be used: {error}") from None


def _create(path: Path) -> None:
    """Put an empty journal at a path, complete or not at all, however soon the process is killed."""
    log = Path(f"{path}-wal")
    if log.exists() and log.stat().st_size:
        raise JournalError(
            f"{path} is missing, but its last examples are in {log}\nhint: restore {path}, or move {log} away"
        )
    facts = {"version": SCHEMA_VERSION, "id": uuid.uuid4().hex, "start": 0}
    new = path.with_name(f"{path.name}.new")
    new.unlink(missing_ok=True)
    database = sqlite3.connect(new)
    try:
        database.executescript(_TABLES)
        database.executemany("INSERT INTO facts VALUES (?, ?)", [(k, json.dumps(v)) for k, v in facts.items()])
        database.commit()
    finally:
        database.close()
    os.replace(new, path)
    for folder in (path.parent, path.parent.parent):
        sync_directory(folder)


def checksum(sequence: int, text: str) -> int:
    """The checksum of a stored example."""
    return zlib.crc32(f"{sequence} {text}".encode("utf-8", "surrogatepass"))


def _damaged(path: Path, why: str) -> str:
    return (
        f"the journal {path} is damaged ({why}); nothing was changed"
        f"\nhint: restore a backup, or keep every example that can be read:  ramify journal repair {path}"
    )


def _piece(path: Path, rows: list[tuple[int, int, str, int]]) -> Piece:
    examples = []
    for sequence, _, text, crc in rows:
        if checksum(sequence, text) != crc:
            raise JournalError(_damaged(path, f"the checksum of example {sequence} differs"))
        examples.append(json.loads(text))
    return Piece(rows[0][0], rows[-1][0], examples)
