"""API keys: stored as hashes in a file, compared in constant time, changed without a restart.

A key is `ramify_<id>_<secret>`. The secret has 256 random bits, so one SHA-256 is enough.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import logging
import os
import re
import secrets
import tempfile
from pathlib import Path
from typing import Any, NamedTuple

log = logging.getLogger("ramify.serve")

SCOPES = ("ask", "teach", "administer")
_FORM = re.compile(r"ramify_([0-9a-f]{12})_([A-Za-z0-9_-]{43})")
_NO_HASH = "0" * 64


class KeyFileError(ValueError):
    """A file of keys cannot be used; says what is wrong and what to do."""


class Key(NamedTuple):
    """A stored key: its id, the name of its owner, what it may do, and the hash of its secret."""

    id: str
    name: str
    scopes: frozenset[str]
    hash: str


def read_keys(path: Path) -> dict[str, Key]:
    """The keys of a file by id."""
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
        keys = [
            Key(str(one["id"]), str(one["name"]), frozenset(map(str, one["scopes"])), str(one["sha256"]))
            for one in content["keys"]
        ]
    except FileNotFoundError:
        raise KeyFileError(f"there is no file of keys at {path}\nhint: make one:  ramify keys add NAME") from None
    except (ValueError, KeyError, TypeError) as error:
        raise KeyFileError(f"{path} is not a file of keys ({error!r})\nhint: make one:  ramify keys add NAME") from None
    return {key.id: key for key in keys}


def add_key(path: Path, name: str, scopes: list[str]) -> str:
    """Add a key to a file, which is created if needed, and return it; it cannot be shown again."""
    for scope in scopes:
        if scope not in SCOPES:
            raise KeyFileError(f"a scope is one of {', '.join(SCOPES)}; got {scope!r}")
    keys = read_keys(path) if path.exists() else {}
    identity, secret = secrets.token_hex(6), secrets.token_urlsafe(32)
    keys[identity] = Key(identity, name, frozenset(scopes), _hash(secret))
    _write(path, keys)
    return f"ramify_{identity}_{secret}"


def remove_key(path: Path, identity: str) -> Key:
    """Remove a key by its id."""
    keys = read_keys(path)
    if identity not in keys:
        raise KeyFileError(f"{path} has no key {identity!r}; it has {', '.join(keys) or 'none'}")
    removed = keys.pop(identity)
    _write(path, keys)
    return removed


class Keys:
    """The keys of a file, read again whenever the file changes."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._seen: tuple[int, int, int] | None = None
        self._keys: dict[str, Key] = {}
        self._refresh()

    def find(self, given: str) -> Key | None:
        """The key that was given, if it is one of the file."""
        self._refresh()
        form = _FORM.fullmatch(given)
        identity, secret = (form[1], form[2]) if form else ("", "")
        key = self._keys.get(identity)
        # An unknown id takes as long as a wrong secret.
        is_right = hmac.compare_digest(_hash(secret), _NO_HASH if key is None else key.hash)
        return key if key is not None and is_right else None

    def _refresh(self) -> None:
        try:
            status = os.stat(self.path)
        except FileNotFoundError:
            if self._seen is None:
                raise KeyFileError(f"there is no file of keys at {self.path}\nhint: ramify keys add NAME") from None
            self._keys, self._seen = {}, (0, 0, 0)  # removed: no key is valid
            return
        seen = (status.st_ino, status.st_mtime_ns, status.st_size)
        if seen != self._seen:
            try:
                self._keys = read_keys(self.path)
            except KeyFileError as error:
                if self._seen is None:
                    raise
                log.error("the file of keys is damaged, so the keys stay as they were", extra={"why": str(error)})
            self._seen = seen


def _hash(secret: str) -> str:
    return hashlib.sha256(secret.encode()).hexdigest()


def _write(path: Path, keys: dict[str, Key]) -> None:
    content: dict[str, Any] = {
        "keys": [{"id": k.id, "name": k.name, "scopes": sorted(k.scopes), "sha256": k.hash} for k in keys.values()]
    }
    path.parent.mkdir(parents=True, exist_ok=True)
    descriptor, temporary = tempfile.mkstemp(dir=path.parent, prefix=".keys-")  # readable by its owner only
    with open(descriptor, "w", encoding="utf-8") as file:
        json.dump(content, file, indent=1)
        file.flush()
        os.fsync(file.fileno())
    os.replace(temporary, path)
