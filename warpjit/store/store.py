"""The store: entries on disk, or, where the disk cannot be used, in memory.

Whatever goes wrong with a file is a miss, and the next `put` mends it. Nothing here ever fails a launch: where the disk
cannot be used the store says so once, on the logger "warpjit.store", and keeps its entries in memory.

Left out: what goes into a key (its callers know).
"""

from __future__ import annotations

import functools
import json
import logging
import os
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

from warpjit.config import Config
from warpjit.store import compare, eviction, files, log, place
from warpjit.store import entry as format_of
from warpjit.store.entry import CUBIN, INDEX, SCHEMA, SUFFIX, TUNING, DamagedEntryError, Entry
from warpjit.store.locks import Locks

LIMIT = 2 << 30
"""Bytes that entries may take before the least recently used are removed."""
PATIENCE = 60.0
"""Seconds that a process waits for another that compiles the same kernel."""
TUNING_PATIENCE = 600.0
"""Seconds that a process waits for another that tunes the same kernel."""
MERGE_PATIENCE = 5.0
"""Seconds that a process waits for another that adds to the same entry of the index: that takes milliseconds."""
EVICT_EVERY = 32
"""Entries that a process writes between two looks at how much room they take; the first is before the first."""
_log = logging.getLogger("warpjit.store")


Facts: TypeAlias = Callable[[], Mapping[str, Any]]
"""What an entry is made from, made when it is asked for."""


@dataclass
class Counts:
    """What a store was asked for since the process began: entries found, not found, and made."""

    hits: int = 0
    misses: int = 0
    made: int = 0


class Store:
    """Entries under `root`, or in memory alone if `root` is None.

    `root` must belong to the user, and nobody else may write in it: a cubin from somebody else's directory would run
    with the user's rights. It is looked at on the first access, and created (mode 0700) by the first `put`. Safe for
    threads and processes, without locks.
    """

    def __init__(self, root: str | os.PathLike[str] | None, *, limit: int = LIMIT, patience: float = PATIENCE) -> None:
        self._root = Path(root) if root is not None else None
        self._limit, self._patience = limit, patience
        self._memory: dict[tuple[str, str], bytes] = {}
        self._locks: Locks | None = None
        self._said: set[str] = set()
        self._trusted = False
        self._heads: tuple[compare.Head, ...] = ()
        self._writes = 0
        self.counts = Counts()

    @property
    def root(self) -> Path | None:
        """Where the entries are; None once the store runs from memory."""
        return self._root

    @property
    def folder(self) -> Path | None:
        """The folder of this schema's entries, if `root` may be used."""
        root = self._usable_root()
        return None if root is None else root / f"v{SCHEMA}"

    # ---- cubins ----------------------------------------------------------------------------------

    def get(self, key: str, facts: Facts | None = None) -> Entry | None:
        """The cubin stored under `key`; None if there is none or it cannot be trusted.

        `facts` gives what the header of a new entry would say: a log tells how the nearest one differs.
        """
        found = self._read(CUBIN, key, functools.partial(format_of.unpack, CUBIN))
        self.counts.hits += found is not None
        self.counts.misses += found is None
        if log.on():
            if found is not None:
                self._tell("hit", key, found.header)
            else:
                log.CACHE.info("miss %s: %s", log.short(key), self._why_missing(key, facts))
        return found

    def find(self, facts: Mapping[str, Any]) -> Entry | None:
        """A cubin of whose header all of `facts` are true, whatever else it was made from; the last used of them.

        For where there is no compiler, whose identity is part of every key. The heads of all entries are read once; and
        again where none of those known is as wanted.
        """
        folder = self.folder
        if folder is None:
            return None
        for known in (True, False):
            if not known:
                self._heads = compare.heads(folder.parent)
            for head in self._heads:
                found = self.get(head.key) if facts.items() <= head.facts.items() else None
                if found is not None:
                    return found
        return None

    def put(self, key: str, header: Mapping[str, Any], cubin: bytes) -> None:
        """Keep `cubin` under `key` with `header`, the JSON-able facts that it was made from. Never raises OSError."""
        self._write(CUBIN, key, format_of.pack(CUBIN, key, header, cubin))

    def obtain(
        self,
        key: str,
        make: Callable[[], tuple[Mapping[str, Any], bytes]],
        facts: Facts | None = None,
    ) -> bytes:
        """The cubin stored under `key`, else what `make` gives, (header, cubin), which is kept.

        Of several processes that ask at once, one makes it and the others wait, for a while. What `make` raises is
        raised, and nothing is kept. `facts` as for `get`.
        """
        found = self.get(key, facts)
        if found is not None:
            return found.cubin
        folder = self.folder
        if folder is None:
            return self._make(key, make)
        at = _place(folder, CUBIN, key)
        with self._locks_of(folder).alone(key, lambda: os.path.exists(at)):
            found = self._read(CUBIN, key, functools.partial(format_of.unpack, CUBIN))
            return found.cubin if found is not None else self._make(key, make)

    def _locks_of(self, folder: Path) -> Locks:
        if self._locks is None:
            self._locks = Locks(folder / "locks", self._patience)
        return self._locks

    def _make(self, key: str, make: Callable[[], tuple[Mapping[str, Any], bytes]]) -> bytes:
        begin = time.perf_counter()
        header, cubin = make()
        self.counts.made += 1
        if log.on():
            self._tell("compiled", key, header, f" in {time.perf_counter() - begin:.2f} s, {len(cubin):,} bytes")
        self.put(key, header, cubin)
        return cubin

    def _why_missing(self, key: str, facts: Facts | None) -> str:
        if facts is None or self._root is None:
            return "no entry"
        return compare.why_missing(self._root, key, facts())

    def _tell(self, what: str, key: str, header: Mapping[str, Any], more: str = "") -> None:
        """On the log, what happened to a cubin."""
        words = (what, str(header.get("kernel", "")), str(header.get("target", "")), log.short(key))
        log.CACHE.info("%s%s", " ".join(filter(None, words)), more)

    # ---- JSON ------------------------------------------------------------------------------------

    def get_index(self, key: str) -> dict[str, Any] | None:
        """The JSON object stored under a source-level `key`, or None."""
        found = self._read(INDEX, key, functools.partial(format_of.unpack, INDEX))
        try:
            value = json.loads(found.cubin) if found is not None else None
        except ValueError:
            return None
        return value if isinstance(value, dict) else None

    def put_index(self, key: str, value: Mapping[str, Any]) -> None:
        """Keep a JSON-able object, e.g. a cubin's key with its launch plan, under `key`. Never raises OSError."""
        self._write(INDEX, key, format_of.pack(INDEX, key, {}, json.dumps(dict(value), sort_keys=True).encode()))

    def change_index(self, key: str, change: Callable[[dict[str, Any]], Mapping[str, Any]]) -> bool:
        """Put `change(object)` in place of the object under `key` (of {} where there is none); whether it is another.

        Processes that change one object at once take turns where locks work; where not, the last one stays. `change`
        should take no time. Never raises OSError.
        """
        with self.turn(INDEX, key):
            old = self.get_index(key) or {}
            value = dict(change(old))
            if value != old:
                self.put_index(key, value)
        return value != old

    def get_tuning(self, key: str) -> dict[str, Any] | None:
        """The JSON object that tuning left under `key`, or None."""
        found = self._read(TUNING, key, _record)
        return None if found is None else dict(found.header)

    def put_tuning(self, key: str, value: Mapping[str, Any]) -> None:
        """Keep a JSON-able object under `key`, in a file for people to read. Never raises OSError."""
        self._write(TUNING, key, format_of.pack_json(key, value))

    def change_tuning(self, key: str, change: Callable[[dict[str, Any]], Mapping[str, Any]]) -> dict[str, Any]:
        """Put `change(object)` in place of the object under `key` (of {} where there is none); the new object.

        Processes that change one object at once wait for each other where locks work; where not, the last one stays.
        """
        with self.turn(TUNING, key):
            value = dict(change(self.get_tuning(key) or {}))
            self.put_tuning(key, value)
        return value

    @contextmanager
    def turn(self, kind: str, key: str) -> Iterator[None]:
        """Run the body, which changes an entry of the index or of tuning, while no other process does.

        A wait is bounded, and there is none where locks do not work.
        """
        folder = self.folder
        if folder is None:
            yield
            return
        # What tunes may compile, in other threads, and wait for a cubin's lock there.
        patience = min(self._patience, MERGE_PATIENCE) if kind == INDEX else max(self._patience, TUNING_PATIENCE)
        prefix, patience = f"{kind}-", patience if self._patience else 0.0
        with self._locks_of(folder).alone(key, lambda: False, prefix=prefix, patience=patience):
            yield

    # ---- all entries -----------------------------------------------------------------------------

    def cubins(self) -> Iterator[Entry]:
        """Every whole cubin entry on disk, in the order of the keys."""
        for key in self.keys(CUBIN):
            found = self._read(CUBIN, key, functools.partial(format_of.unpack, CUBIN))
            if found is not None:
                yield found

    def keys(self, kind: str) -> list[str]:
        """The keys of all files of a kind ("cubin", "index", "tuning") on disk, whole or not, in order."""
        folder = self.folder
        if folder is None:
            return []
        suffix = SUFFIX[kind]
        names = (each.path.name for each in eviction.files_under(folder / kind) if not each.temporary)
        return sorted(name.removesuffix(suffix) for name in names if name.endswith(suffix))

    def path(self, kind: str, key: str) -> Path | None:
        """Where an entry is, or would be; None in memory."""
        folder = self.folder
        return None if folder is None else _place(folder, kind, key)

    def evict(self) -> list[Path]:
        """Remove the least recently used entries, of all schemas, beyond the limit, and what crashed writers left.

        What was removed.
        """
        folder = self.folder
        return [] if folder is None else eviction.evict(folder.parent, self._limit)

    # ---- files -----------------------------------------------------------------------------------

    def _read(self, kind: str, key: str, read: Callable[[bytes], Entry]) -> Entry | None:
        remembered = self._memory.get((kind, key))
        if remembered is not None:
            return read(remembered)
        folder = self.folder
        if folder is None:
            return None
        path = _place(folder, kind, key)
        try:
            found = read(files.owned_bytes(path))
            if found.key != key:
                raise DamagedEntryError("it holds another key")
        except FileNotFoundError:
            return None
        except (OSError, DamagedEntryError) as error:
            self._say("read", f"an entry of the kernel cache is ignored ({path}): {error}")
            log.CACHE.info("%s is damaged: %s", log.short(key), error)
            if isinstance(error, DamagedEntryError):
                files.discard(path)
            return None
        eviction.stamp(path)
        return found

    def _write(self, kind: str, key: str, data: bytes) -> None:
        folder = self.folder
        if folder is not None:
            try:
                files.publish(_place(folder, kind, key), data)
            except OSError as error:
                self._say(
                    "write", f"the kernel cache in {self._root} cannot be written, kernels stay in memory: {error}"
                )
            else:
                self._memory.pop((kind, key), None)
                if self._writes % EVICT_EVERY == 0:
                    self.evict()
                self._writes += 1
                return
        self._memory[kind, key] = data

    def _usable_root(self) -> Path | None:
        """The root if it may be used. A directory that is not there yet may; one of another user never is again."""
        if self._root is None or self._trusted:
            return self._root
        try:
            why = place.distrust(self._root)
        except FileNotFoundError:
            return self._root
        except OSError as error:
            why = f"cannot be used: {error}"
        if why is None:
            self._trusted = True
            return self._root
        self._say("root", f"the kernel cache in {self._root} {why}: kernels stay in memory")
        self._root = None
        return None

    def _say(self, about: str, message: str) -> None:
        if about not in self._said:
            self._said.add(about)
            _log.warning(message)


def _place(folder: Path, kind: str, key: str) -> Path:
    return folder / kind / key[:2] / f"{key}{SUFFIX[kind]}"


def _record(data: bytes) -> Entry:
    key, value = format_of.unpack_json(data)
    return Entry(key, value, b"")


def store_of(config: Config) -> Store:
    """The store that a configuration asks for: one for each place, so that what it has said is the process's."""
    log.follow(config.log)
    return _store(place.default_root(config))


@functools.cache
def _store(root: Path | None) -> Store:
    if root is None:
        _log.warning("there is no directory for the kernel cache, kernels stay in memory: set WARPJIT_CACHE_DIR")
    return Store(root)
