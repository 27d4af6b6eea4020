"""Which warpjit makes the programs: a digest of the package's own source, so that a changed one trusts no older index.

The files are read when one of them has another size or time than those that the store remembers a digest for: also the
time of the file's entry in its folder, since images and archives are often made with all files of one age.
Left out: the command line and the simulator, which no program is made by.
"""

from __future__ import annotations

import functools
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from warpjit.store.keys import key_of
from warpjit.store.store import Store

PACKAGE = Path(__file__).resolve().parents[1]
APART = {"cli", "sim", "__pycache__"}


@dataclass(frozen=True)
class SourceFile:
    """A file of the package: its path in it, with "/", its size in bytes, and the times at which its content and its
    entry were changed."""

    name: str
    size: int
    time_ns: int
    entry_ns: int


@functools.cache
def generator_digest(store: Store, package: Path = PACKAGE) -> str | None:
    """The sha256, in hex, of the package's files and their names; None where they are no files (in a zip archive).

    Found once in a process. It costs one look at each file, and reading all of them where `store` does not know them.
    """
    files = sorted(_files(package, ""), key=lambda each: each.name)
    if not files:
        return None
    listing = "\n".join(f"{each.name} {each.size} {each.time_ns} {each.entry_ns}" for each in files)
    memo = key_of({"kind": "generator", "package": str(package), "files": listing})
    known = (store.get_index(memo) or {}).get("digest")
    if isinstance(known, str):
        return known
    try:
        found = key_of({each.name: (package / each.name).read_bytes() for each in files})
    except OSError:
        return None
    store.put_index(memo, {"digest": found})
    return found


def _files(folder: Path, prefix: str) -> Iterator[SourceFile]:
    try:
        with os.scandir(folder) as entries:
            children = list(entries)
    except OSError:
        return
    for child in children:
        if child.name.endswith(".py"):
            facts = child.stat()
            yield SourceFile(prefix + child.name, facts.st_size, facts.st_mtime_ns, facts.st_ctime_ns)
        elif "." not in child.name and child.name not in APART and child.is_dir():
            yield from _files(folder / child.name, f"{prefix}{child.name}/")
