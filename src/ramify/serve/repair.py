"""Rescue a damaged journal: every example that can be read and whose checksum is right, in order."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import sqlite3
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from ramify.serve.journal import Batch, Journal, checksum
from ramify.serve.journal_log import mend_log

_AT_ONCE = 1000
_HEADER = 100  # of an SQLite file
_MAX_SIZE = 2**40
_LEAST_EXAMPLE = 50  # bytes


def repair(path: Path) -> tuple[int, int, Path]:
    """Replace a journal by one of its sound examples; (kept, lost, where the damaged file is now)."""
    scratch = path.with_name(f"{path.name}.scratch")
    _copy_padded(path, scratch)
    mend_log(scratch)
    database = sqlite3.connect(scratch)
    facts = _facts(database)
    rows = list(_readable(database, scratch.stat().st_size // _LEAST_EXAMPLE))
    keys = _keys(database)
    database.close()
    _remove(scratch)
    new_path = path.with_name(f"{path.name}.repaired")
    _remove(new_path)
    kept, lost = _write(new_path, facts, rows, keys)
    old = path.with_name(f"{path.name}.damaged-{time.strftime('%Y%m%d-%H%M%S')}")
    for suffix in ("", "-wal", "-shm"):
        with contextlib.suppress(FileNotFoundError):
            os.replace(f"{path}{suffix}", f"{old}{suffix}")
    os.replace(new_path, path)
    _remove(new_path)
    return kept, lost, old


def _copy_padded(path: Path, scratch: Path) -> None:
    """Copy a journal; if its end is missing, put empty pages there, so that SQLite reads the pages before it."""
    _remove(scratch)
    for suffix in ("", "-wal"):
        if Path(f"{path}{suffix}").exists():
            shutil.copyfile(f"{path}{suffix}", f"{scratch}{suffix}")
    with open(scratch, "r+b") as file:
        header = file.read(_HEADER)
        page_size, n_pages = int.from_bytes(header[16:18], "big"), int.from_bytes(header[28:32], "big")
        size = (65536 if page_size == 1 else page_size) * n_pages
        if len(header) == _HEADER and os.path.getsize(scratch) < size < _MAX_SIZE:
            file.truncate(size)


def _write(
    path: Path, facts: dict[str, Any], rows: list[tuple[int, int, str]], keys: dict[int, str]
) -> tuple[int, int]:
    journal = Journal(path)
    journal.set_facts(**facts)
    journal.id = facts.get("id", journal.id)
    lost, position, start = 0, 0, int(facts.get("start", 0))
    while position < len(rows):
        first, batch, _ = rows[position]
        size = 1
        while position + size < len(rows) and rows[position + size][:2] == (first + size, batch):
            size += 1
        before = max(journal.last, start)
        if first > before + 1 and journal.last > start:
            lost += first - before - 1
        journal.skip_to(first)
        journal.append([Batch([json.loads(text) for _, _, text in rows[position : position + size]], keys.get(batch))])
        keys.pop(batch, None)
        position += size
    journal.close()
    _checkpoint(path)
    return len(rows), lost


def _checkpoint(path: Path) -> None:
    """Bring everything into the main file, which is then renamed."""
    database = sqlite3.connect(path)
    database.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    database.close()


def _readable(database: sqlite3.Connection, most: int) -> Iterator[tuple[int, int, str]]:
    first = _number(database, "SELECT min(sequence) FROM examples") or 1
    last = (
        _number(database, "SELECT max(sequence) FROM examples")
        or _number(database, "SELECT max(first + size - 1) FROM batches")
        or first + most
    )
    for start in range(first, last + 1, _AT_ONCE):
        yield from _readable_between(database, start, min(start + _AT_ONCE, last + 1))


def _number(database: sqlite3.Connection, query: str) -> int | None:
    with contextlib.suppress(sqlite3.DatabaseError):
        return database.execute(query).fetchone()[0]  # type: ignore[no-any-return]
    return None


def _readable_between(database: sqlite3.Connection, start: int, stop: int) -> Iterator[tuple[int, int, str]]:
    """Halve a range that cannot be read, until only what is damaged is left out."""
    query = "SELECT sequence, batch, content, crc FROM examples WHERE sequence >= ? AND sequence < ? ORDER BY sequence"
    try:
        found = database.execute(query, (start, stop)).fetchall()
    except (sqlite3.DatabaseError, UnicodeDecodeError):
        if stop - start > 1:
            middle = (start + stop) // 2
            yield from _readable_between(database, start, middle)
            yield from _readable_between(database, middle, stop)
        return
    for sequence, batch, text, crc in found:
        if isinstance(text, str) and checksum(sequence, text) == crc:
            yield sequence, batch, text


def _facts(database: sqlite3.Connection) -> dict[str, Any]:
    with contextlib.suppress(sqlite3.DatabaseError, ValueError):
        return {name: json.loads(value) for name, value in database.execute("SELECT name, value FROM facts")}
    return {}


def _keys(database: sqlite3.Connection) -> dict[int, str]:
    """Idempotency keys by batch, as far as they can be read."""
    keys: dict[int, str] = {}
    with contextlib.suppress(sqlite3.DatabaseError):
        for batch, key in database.execute("SELECT batch, key FROM batches WHERE key IS NOT NULL"):
            keys[batch] = key
    return keys


def _remove(path: Path) -> None:
    for suffix in ("", "-wal", "-shm"):
        Path(f"{path}{suffix}").unlink(missing_ok=True)
