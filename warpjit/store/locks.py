"""One compilation for many processes: a lock that is asked for, and never relied on.

Entries are right without any lock (`files`). This only keeps eight ranks that start together from compiling one kernel
eight times. A holder that dies frees the lock, one that hangs costs a wait that is bounded; on a file system without
locks there is no wait. Keys share a fixed number of lock files, which are never removed by us: a removed one could be
locked by two. Who finds a lock free loads no package for it: filelock is for waiting.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

from warpjit.store import log
from warpjit.store.files import make_private

try:
    import fcntl
except ImportError:  # not on Windows
    fcntl = None  # type: ignore[assignment]

STRIPES = 256
"""Lock files of a store. Keys that share one wait for each other."""
POLL = 0.05
"""Seconds between two looks at whether the other process has published what is waited for."""


class Locks:
    """The locks of a store under `folder`; a wait lasts `patience` seconds at most."""

    def __init__(self, folder: Path, patience: float) -> None:
        self._folder = folder
        self._patience = patience
        self._works = True
        self._useless: set[str] = set()
        self._mine: dict[str, int] = {}

    @contextmanager
    def alone(
        self, key: str, published: Callable[[], bool], *, prefix: str = "", patience: float | None = None
    ) -> Iterator[None]:
        """Run the body while no other process holds the key's lock, or once `published()`, or after the wait.

        Keys with another prefix have locks of their own: whoever holds one may wait for one of the others.
        """
        stripe = f"{prefix}{int(key[:8], 16) % STRIPES:02x}"
        # A finalizer or signal handler may come in the middle of a compilation, in its thread.
        mine = self._mine.get(stripe) == threading.get_ident()
        with ExitStack() as held:
            if self._works and not mine and stripe not in self._useless:
                begin = time.monotonic()
                if self._wait(stripe, published, self._patience if patience is None else patience, held):
                    waited = time.monotonic() - begin
                    log.CACHE.info("%s: waited %.2f s for another process", log.short(key), waited)
            yield

    def _wait(self, stripe: str, published: Callable[[], bool], patience: float, held: ExitStack) -> bool:
        """Have the lock in `held`, or not; whether another process had it."""
        deadline, waited = time.monotonic() + patience, False
        try:
            make_private(self._folder)
            path = self._folder / f"{stripe}.lock"
            descriptor = _take(path)
            if descriptor is not None:
                self._mine[stripe] = threading.get_ident()
                held.callback(_give, descriptor)
                held.callback(self._mine.pop, stripe, None)
                return waited
            import filelock  # noqa: PLC0415  who need not wait does without

            lock: Any = filelock.FileLock(path)
            while True:
                try:
                    lock.acquire(timeout=POLL, poll_interval=POLL)
                except filelock.Timeout:
                    waited = True
                    if published():
                        return waited
                    if time.monotonic() >= deadline:
                        # Whoever hangs there would make the next kernel wait as well.
                        self._useless.add(stripe)
                        return waited
                else:
                    self._mine[stripe] = threading.get_ident()
                    held.callback(_release, lock)
                    held.callback(self._mine.pop, stripe, None)
                    return waited
        except (OSError, NotImplementedError):
            # No locks on this file system (ENOLCK, ENOSYS, ESTALE), or no room for the file: it is compiled at once.
            self._works = False
            return waited


def _take(path: Path) -> int | None:
    """A descriptor that has the lock; None: somebody else has it.

    OSError where the file system has no locks: some versions of filelock take that for a lock that is held.
    """
    if fcntl is None:
        return None
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
    taken = False
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        # Some versions of filelock remove the file of a lock that they release: the lock of such a file is nobody's.
        taken = os.fstat(descriptor).st_nlink > 0
    except BlockingIOError:
        pass
    finally:
        if not taken:
            os.close(descriptor)
    return descriptor if taken else None


def _give(descriptor: int) -> None:
    """Unlocked first: a forked child may have the descriptor as well."""
    try:
        fcntl.flock(descriptor, fcntl.LOCK_UN)
    except OSError:
        pass
    finally:
        os.close(descriptor)


def _release(lock: Any) -> None:
    try:
        lock.release(force=True)
    except OSError:
        return
