"""What is removed when the entries take too much room: those that were not used for longest.

A use is stamped as the file's time of change, by the store itself (access times are switched off on many systems). What
was written or used within an hour stays, whatever it takes: somebody may be about to read it. Locks stay as well.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from warpjit.store import log
from warpjit.store.files import TEMPORARY, discard

YOUNG = 3600.0
"""Seconds within which an entry counts as in use."""


@dataclass(frozen=True)
class Found:
    """A file of a store: its bytes, and when it was last written or used (seconds since the epoch)."""

    path: Path
    size: int
    used: float

    @property
    def temporary(self) -> bool:
        return self.path.name.startswith(TEMPORARY)


def stamp(path: Path, now: float | None = None) -> None:
    """Note that an entry is used; once an hour is enough. Where that cannot be written it is not noted."""
    now = time.time() if now is None else now
    try:
        if now - os.stat(path).st_mtime > YOUNG / 2:
            os.utime(path, (now, now))
    except OSError:
        return


def files_under(folder: Path) -> Iterator[Found]:
    """All files, in no order. What vanishes or cannot be seen meanwhile is left out."""
    try:
        with os.scandir(folder) as entries:
            children = list(entries)
    except OSError:
        return
    for child in children:
        try:
            if child.is_dir(follow_symlinks=False):
                yield from files_under(Path(child.path))
            else:
                facts = child.stat(follow_symlinks=False)
                yield Found(Path(child.path), facts.st_size, facts.st_mtime)
        except OSError:
            continue


def evict(folder: Path, limit: int, now: float | None = None) -> list[Path]:
    """Remove the least recently used entries until `limit` bytes are left, and what crashed writers left behind."""
    now = time.time() if now is None else now
    found = sorted(files_under(folder), key=lambda each: each.used)
    old = [each for each in found if now - each.used > YOUNG and each.path.suffix != ".lock"]
    total = sum(each.size for each in found)
    removed = []
    for each in old:
        if (each.temporary or total > limit) and discard(each.path):
            total -= each.size
            removed.append(each.path)
    if removed:
        log.CACHE.info("evicted %d files, %d bytes are left", len(removed), total)
    return removed
