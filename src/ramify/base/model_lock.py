"""The lock of a model, held by whoever changes or saves it; it stays usable after a fork."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from weakref import ref


class ModelLock:
    """A recursive lock. `with lock:` is for changes of the model, `with lock.reading():` for saving and copying it.

    A forked process has only the thread that forked: a lock that another thread held would stay locked for ever. There
    it is free again if that thread was reading, and an error if it was changing the model. The core does the same for
    what it learns (core/base/model_mutex.hpp).
    """

    def __init__(self) -> None:
        self._lock = threading.RLock()
        self._n_changes = 0  # written by the thread that holds the lock
        self._is_cut_off = False
        _locks.add(ref(self, _locks.discard))

    def __enter__(self) -> None:
        self._acquire()
        self._n_changes += 1

    def __exit__(self, *_: object) -> None:
        self._n_changes -= 1
        self._lock.release()

    @contextmanager
    def reading(self) -> Iterator[None]:
        self._acquire()
        try:
            yield
        finally:
            self._lock.release()

    def _acquire(self) -> None:
        if self._is_cut_off:
            raise RuntimeError(
                "this process was forked while another thread changed this model, so its copy here may be half "
                "changed: load the model in the new process, or fork while no thread learns"
            )
        self._lock.acquire()

    def _renew(self) -> None:
        if self._lock.acquire(blocking=False):  # free, or held by the thread that forked
            self._lock.release()
        else:
            self._lock = threading.RLock()
            self._is_cut_off = self._n_changes > 0


# Not a WeakSet: Ctrl-C in its Python code, while a model is being deleted, would be printed and lost.
_locks: set[ref[ModelLock]] = set()


def _renew_all() -> None:
    for lock in [known() for known in list(_locks)]:
        if lock is not None:
            lock._renew()


os.register_at_fork(after_in_child=_renew_all)
