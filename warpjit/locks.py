"""A lock that no fork leaves locked for ever.

A forked child has one thread: what another one held stays held, and whoever asks for it hangs. A server that forks its
workers while a thread warms up could never call that kernel in them. So a child gets another lock in place of each that
a lost thread held. What these locks guard must be whole at every moment, since that thread may have been anywhere: it
is stored by one assignment, when it is finished.

Left out: Python's own locks of modules that are being imported.
"""

from __future__ import annotations

import os
import threading
import weakref

_all: weakref.WeakSet[Lock] = weakref.WeakSet()


class Lock:
    """For `with`. Its thread may take it again: a finalizer or signal handler may call what is being made."""

    def __init__(self) -> None:
        self._lock = threading.RLock()
        _all.add(self)

    def __enter__(self) -> None:
        self._lock.acquire()

    def __exit__(self, *raised: object) -> None:
        self._lock.release()

    def renew(self) -> None:
        """Of the forking thread, which goes on as the child's, a lock stays."""
        if self._lock.acquire(blocking=False):
            self._lock.release()
        else:
            self._lock = threading.RLock()


def _renew() -> None:
    for lock in list(_all):
        lock.renew()


os.register_at_fork(after_in_child=_renew)
