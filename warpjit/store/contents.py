"""What stands in a store's directory: looked at, checked, and removed on demand, without ever being trusted.

Unlike `store`, which takes whatever is wrong for a miss and mends it, this names what is wrong and leaves it alone.
Only names that the store itself gives are looked at: other files of the directory are nobody's business here.
"""

from __future__ import annotations

import contextlib
import os
import re
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from warpjit.errors import CacheError
from warpjit.store import entry as format_of
from warpjit.store import eviction, files, place
from warpjit.store.entry import CUBIN, INDEX, SCHEMA, TUNING, DamagedEntryError, Entry

KINDS = (CUBIN, INDEX, TUNING)
HEAD = 1 << 14
"""Bytes that are read of an entry to show it: most headers are shorter."""
SHORTEST = 4
"""Digits that a shortened key has at least."""


@dataclass(frozen=True)
class Item:
    """A file of the store.

    kind    "cubin", "index", "tuning", "lock" or "temporary" (what a writer that ended early left)
    key     of an entry, 64 hex digits; "" for others
    schema  of the folder that it stands in
    used    when it was last written or used, in seconds since the epoch
    """

    path: Path
    kind: str
    key: str
    schema: int
    size: int
    used: float

    @property
    def current(self) -> bool:
        """Whether this version of the store reads it."""
        return self.schema == SCHEMA and self.kind in KINDS


def checked_root(root: Path | None) -> Path:
    """The directory of a store, if it is there and can be trusted. CacheError."""
    if root is None:
        raise CacheError("there is no directory for the kernel cache: set WARPJIT_CACHE_DIR")
    try:
        why = place.distrust(root)
    except FileNotFoundError:
        return root
    except OSError as error:
        why = f"cannot be used: {error}"
    if why is not None:
        raise CacheError(f"expected a directory of this user's own, but the kernel cache in {root} {why}")
    return root


def items(root: Path) -> list[Item]:
    """Every file of the store in `root`, of all schemas, in the order of their paths. None where there is nothing."""
    return sorted((_item(root, each) for each in eviction.own_files(root)), key=lambda each: each.path)


def _item(root: Path, found: eviction.Found) -> Item:
    schema, kind = found.path.relative_to(root).parts[:2]
    key = found.path.name.partition(".")[0]
    if found.temporary:
        kind, key = "temporary", ""
    elif kind == "locks":
        kind, key = "lock", ""
    return Item(found.path, kind, key, int(schema[1:]), found.size, found.used)


def match(entries: Iterable[Item], key: str) -> Item:
    """The one entry whose key begins with `key`. CacheError: none does, or several do."""
    wanted = key.lower()
    found = [each for each in entries if each.current and wanted and each.key.startswith(wanted)]
    if len(found) == 1 and len(wanted) >= SHORTEST:
        return found[0]
    if not re.fullmatch(f"[0-9a-f]{{{SHORTEST},64}}", wanted):
        problem = f"{SHORTEST} or more of its hex digits"
    elif not found:
        problem = "one that `warpjit cache ls` shows"
    else:
        problem = (
            f"more digits, {len(found)} entries begin with these ({', '.join(each.key[:12] for each in found[:4])})"
        )
    raise CacheError(f"expected the key of an entry, {problem}, but got {key!r}")


# ---- reading ----------------------------------------------------------------------------------------------------


def made_from(item: Item) -> Mapping[str, Any]:
    """What an entry says that it was made from, in the clear; of a tuning record, its content.

    Only the head of a cubin's file is read: its checksum is not looked at. Entries of other schemas are read as far as
    they can be. OSError, DamagedEntryError.
    """
    if item.kind == TUNING:
        return format_of.unpack_json(files.owned_bytes(item.path))[1]
    header = format_of.head(files.owned_bytes(item.path, HEAD))
    if header is None:
        header = format_of.head(files.owned_bytes(item.path))
    if header is None:
        raise DamagedEntryError("the header is longer than the entry")
    return header


def whole(item: Item) -> Entry:
    """An entry, read in full and checked. Of an index or a record the header is its object, and `cubin` the file.

    OSError, DamagedEntryError.
    """
    data = files.owned_bytes(item.path)
    if item.kind == TUNING:
        key, value = format_of.unpack_json(data)
        found = Entry(key, value, data)
    else:
        found = format_of.unpack(item.kind, data)
        if item.kind == INDEX:
            found = Entry(found.key, format_of.index_value(found), data)
    if found.key != item.key or item.path.parent.name != item.key[:2]:
        raise DamagedEntryError("it holds another key")
    return found


@dataclass(frozen=True)
class Damage:
    """An entry that cannot be used, and why."""

    item: Item
    why: str


def verify(entries: Iterable[Item]) -> Iterator[Damage]:
    """The damaged ones among the entries of this schema: each is read in full."""
    for item in entries:
        if item.current:
            try:
                whole(item)
            except (OSError, DamagedEntryError) as error:
                yield Damage(item, str(error))


# ---- removing ---------------------------------------------------------------------------------------------------


def remove(chosen: Iterable[Item]) -> list[Item]:
    """Remove files, and give those that were."""
    return [item for item in chosen if files.discard(item.path)]


def older(entries: Iterable[Item], days: float, now: float | None = None) -> list[Item]:
    """What was not used for so many days. Locks stay: a removed one could be held by two."""
    now = time.time() if now is None else now
    return [each for each in entries if each.kind != "lock" and eviction.age(each.used, now) > days * 86400]


def clear(root: Path) -> list[Item]:
    """Remove every file that is the store's own, of all schemas, and folders that are empty then; what was removed."""
    removed = remove(items(root))
    for folder in eviction.folders(root):
        for path, _, _ in os.walk(folder, topdown=False):
            with contextlib.suppress(OSError):
                os.rmdir(path)
    return removed


# ---- counting ---------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Sum:
    """How many files, and their bytes."""

    files: int = 0
    bytes: int = 0


def sums(entries: Iterable[Item], name: Callable[[Item], str]) -> dict[str, Sum]:
    """The sums by name, in the names' order."""
    found: dict[str, Sum] = {}
    for each in entries:
        known = found.get(name(each), Sum())
        found[name(each)] = Sum(known.files + 1, known.bytes + each.size)
    return dict(sorted(found.items()))
