"""What is removed when the entries take too much room: those that were not used for longest.

A use is stamped as the file's time of change, by the store itself (access times are switched off on many systems). What
was written or used within an hour stays, whatever it takes: somebody may be about to read it. So do locks, and whatever
has a name that no store gives. Versions of warpjit that share a directory share the room.
"""

from __future__ import annotations

import contextlib
import math
import os
import re
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from warpjit.store import log
from warpjit.store.files import TEMPORARY, discard

YOUNG = 3600.0
"""Seconds within which an entry counts as in use."""
_FOLDER = re.compile(r"v[0-9]{1,9}")
_OWN = re.compile(
    r"(cubin|index|tuning)/[0-9a-f]{2}/(\.?[0-9a-f]{64}\.(wjk|json)(\.[0-9]+\.[0-9a-f]+)?)|locks/[a-z-]*[0-9a-f]{2}\.lock"
)
"""The names, below a schema's folder, that a store gives to files: entries, unpublished entries, locks."""


@dataclass(frozen=True)
class Found:
    """A file of a store: its bytes, and when it was last written or used (seconds since the epoch)."""

    path: Path
    size: int
    used: float

    @property
    def temporary(self) -> bool:
        return self.path.name.startswith(TEMPORARY)


def age(used: float, now: float) -> float:
    """Seconds since a use. A time that lies ahead of all that clocks differ by says nothing: infinity."""
    return now - used if used - now < YOUNG else math.inf


def stamp(path: Path, now: float | None = None) -> None:
    """Note that an entry is used; once an hour is enough. Where that cannot be written it is not noted."""
    now = time.time() if now is None else now
    try:
        if abs(now - os.stat(path).st_mtime) > YOUNG / 2:
            os.utime(path, (now, now))
    except OSError:
        return


def folders(root: Path) -> list[Path]:
    """The folders of the schemas. (A link is none: it could lead anywhere.)"""
    with contextlib.suppress(OSError), os.scandir(root) as entries:
        return [
            Path(each.path) for each in entries if _FOLDER.fullmatch(each.name) and each.is_dir(follow_symlinks=False)
        ]
    return []


def own_files(root: Path) -> Iterator[Found]:
    """The files of the store in `root`, of all schemas, in no order."""
    for folder in folders(root):
        begin = len(str(folder)) + 1
        for found in files_under(folder):
            if _OWN.fullmatch(str(found.path)[begin:].replace(os.sep, "/")):
                yield found


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


def evict(root: Path, limit: int, now: float | None = None) -> list[Path]:
    """Remove the least recently used entries until `limit` bytes are left, and what crashed writers left behind."""
    now = time.time() if now is None else now
    found = [(age(each.used, now), each) for each in own_files(root)]
    old = [pair for pair in found if pair[0] > YOUNG and pair[1].path.suffix != ".lock"]
    total = sum(each.size for _, each in found)
    removed = []
    for _, each in sorted(old, key=lambda pair: -pair[0]):
        if (each.temporary or total > limit) and discard(each.path):
            total -= each.size
            removed.append(each.path)
    if removed:
        log.CACHE.info("evicted %d files, %d bytes are left", len(removed), total)
    return removed
