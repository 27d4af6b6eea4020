"""File operations that fail, or end the process, at a chosen moment."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

OPERATIONS = ("open", "read", "write", "fsync", "fstat", "replace", "mkdir", "stat", "scandir", "utime", "unlink")
"""Functions of `os` by which the store reaches the disk."""


@dataclass
class Faults:
    """Counts the operations on files under `root`, and lets one of them do something else.

    at      which operation, counting from 0; None: none
    act     what happens in its place, for instance raising an OSError
    log     the names of all operations so far
    """

    root: Path
    at: int | None = None
    act: Callable[[], Any] | None = None
    log: list[str] = field(default_factory=list)
    _ours: set[int] = field(default_factory=set)

    def wrap(self, name: str) -> Callable[..., Any]:
        real = getattr(os, name)

        def call(target: Any = ".", *args: Any, **how: Any) -> Any:
            ours = target in self._ours if isinstance(target, int) else str(target).startswith(str(self.root))
            if ours:
                self.log.append(name)
                if self.act is not None and len(self.log) - 1 == self.at:
                    self.act()
            result = real(target, *args, **how)
            if ours and name == "open":
                self._ours.add(result)
            return result

        return call


@contextmanager
def faults(root: Path, at: int | None = None, act: Callable[[], Any] | None = None) -> Iterator[Faults]:
    watched = Faults(root, at, act)
    real = {name: getattr(os, name) for name in OPERATIONS}
    try:
        for name in OPERATIONS:
            setattr(os, name, watched.wrap(name))
        yield watched
    finally:
        for name, operation in real.items():
            setattr(os, name, operation)


def failing(number: int) -> Callable[[], Any]:
    def fail() -> None:
        raise OSError(number, os.strerror(number))

    return fail
