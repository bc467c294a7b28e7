"""The write-ahead log of a journal, read before SQLite does: damage in its middle must not pass for its end.

SQLite takes the first page in its log whose checksum is wrong for the end of the log, and overwrites what follows. That
is right after a crash, which leaves at most one commit incomplete, the last one, which was never acknowledged. If whole
commits follow such a page, they were acknowledged, and the log was damaged later.

Format: https://www.sqlite.org/walformat.html
"""

from __future__ import annotations

import struct
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

_HEADER, _FRAME = 32, 24  # bytes before all pages, and before each
_MAGIC, _VERSION = 0x377F0682, 3007000  # the last bit of the magic number: checksums are of big-endian words


class Log(NamedTuple):
    """The pages of a log that belong to it (older ones may follow), each with its head."""

    start: bytes  # magic number, version, page size, number and salt of the log
    word: np.dtype[Any]  # that checksums are made of
    frames: np.ndarray  # of bytes, a row for each page
    is_commit: np.ndarray
    is_intact: np.ndarray
    has_intact_header: bool

    @property
    def n_lost_commits(self) -> int:
        """Commits that SQLite would drop although they were complete."""
        if not self.has_intact_header:
            return int(self.is_commit.sum())
        broken = np.flatnonzero(~self.is_intact)
        behind = 0 if len(broken) == 0 else int(self.is_commit[broken[0] :].sum())
        return max(behind - 1, 0)  # a crash may have left the last one incomplete


def read_log(journal: Path) -> Log | None:
    """The log of a journal; None if it has none, or an empty one."""
    path = Path(f"{journal}-wal")
    content = path.read_bytes() if path.exists() else b""
    if len(content) <= _HEADER or not any(content[:_HEADER]):
        return None
    magic, _, page_size, _ = struct.unpack(">4I", content[:16])
    if page_size not in {2**power for power in range(9, 17)}:  # damaged: the journal says it, too
        page_size = int.from_bytes(journal.read_bytes()[16:18], "big") or 4096
    word = np.dtype(">u4" if magic == _MAGIC | 1 else "<u4")
    size = _FRAME + page_size
    frames = np.frombuffer(content, np.uint8, (len(content) - _HEADER) // size * size, _HEADER).reshape(-1, size)
    start, stored = content[:24], np.frombuffer(content, ">u4", 2, 24)
    header_sums = _sums(np.zeros((1, 2), np.uint32), np.frombuffer(start, np.uint8)[None], word)
    has_intact_header = magic & ~1 == _MAGIC and bool((header_sums[0] == stored).all())
    if len(frames) and not has_intact_header:
        start = struct.pack(">4I", _MAGIC | (word.byteorder == ">"), _VERSION, page_size, 0) + frames[0, 8:16].tobytes()
    # Pages of an earlier use of the file follow those of this one. One in between whose salt is damaged is ours.
    is_ours = (frames[:, 8:16] == np.frombuffer(start, np.uint8, 8, 16)).all(axis=1)
    n = int(np.flatnonzero(is_ours)[-1]) + 1 if is_ours.any() else 0
    frames = frames[:n]
    sums = np.ascontiguousarray(frames[:, 16:24]).view(">u4")
    found = _sums(np.vstack([stored, sums])[:n], np.delete(frames, np.s_[8:_FRAME], axis=1), word)
    is_commit: np.ndarray = np.any(frames[:, 4:8], axis=1)
    is_intact: np.ndarray = np.all(found == sums, axis=1) & is_ours[:n]
    return Log(start, word, frames, is_commit, is_intact, has_intact_header)


def _sums(before: np.ndarray, rows: np.ndarray, word: np.dtype[Any]) -> np.ndarray:
    """The checksum of each row of bytes, from one before it."""
    words = np.ascontiguousarray(np.ascontiguousarray(rows).view(word).astype(np.uint32).T)
    one, two = before[:, 0].astype(np.uint32), before[:, 1].astype(np.uint32)
    for place in range(0, len(words), 2):
        one = one + words[place] + two
        two = two + words[place + 1] + one
    return np.stack([one, two], axis=1)


def mend_log(journal: Path) -> None:
    """Make SQLite read all pages of a copy's damaged log; which of their rows are sound is seen afterwards."""
    log = read_log(journal)
    if log is None:
        return
    sums = _sums(np.zeros((1, 2), np.uint32), np.frombuffer(log.start, np.uint8)[None], log.word)
    mended = [log.start, sums.astype(">u4").tobytes()]
    for frame in log.frames:
        sums = _sums(sums, np.delete(frame, np.s_[8:_FRAME])[None], log.word)
        mended += [frame[:8].tobytes(), log.start[16:24], sums.astype(">u4").tobytes(), frame[_FRAME:].tobytes()]
    Path(f"{journal}-wal").write_bytes(b"".join(mended))
