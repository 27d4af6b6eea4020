"""The places of the package that make an error, read from its syntax; and which of them a running program comes by.

A site is a call of a class of the `WarpjitError` family, of `Finding`, or of a function that only makes or raises one
(its annotation says so), or of a function that notes one of the simulator's findings. It is known by its file, the
function that it stands in and the call's text, which stay what they are when lines move.
"""

from __future__ import annotations

import ast
import bisect
import functools
import itertools
import re
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

from warpjit.errors import Finding, WarpjitError
from warpjit.frontend.addresses import NeedsStatic

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = ROOT / "warpjit"
RECORDED: tuple[type, ...] = (WarpjitError, Finding, NeedsStatic)
NOTING = ("add", "add_warps")
"""Methods of the simulator's `findings`."""
FAMILY_METHODS = ("at", "collect")

Position = tuple[int, int, int, int]


@dataclass(frozen=True)
class Site:
    """A call that makes an error. `text` is its source, shortened."""

    file: str
    function: str
    text: str
    line: int = field(default=0, compare=False)

    def __str__(self) -> str:
        return f"{self.file}: {self.function}: {self.text}"


@dataclass(frozen=True)
class Names:
    """Which names make an error when they are called."""

    classes: frozenset[str]
    makers: frozenset[str]

    def hold(self, call: ast.Call) -> bool:
        function = call.func
        if isinstance(function, ast.Name):
            return function.id in self.classes or function.id in self.makers
        if not isinstance(function, ast.Attribute):
            return False
        owner = function.value
        if function.attr in FAMILY_METHODS:
            return isinstance(owner, ast.Name) and owner.id in self.classes
        if function.attr in NOTING:
            return ast.unparse(owner).endswith("findings")
        return function.attr in self.classes or function.attr in self.makers


@functools.cache
def texts() -> dict[str, str]:
    """The package's files."""
    return {str(path.relative_to(ROOT)): path.read_text(encoding="utf-8") for path in sorted(PACKAGE.rglob("*.py"))}


@functools.cache
def trees() -> dict[str, ast.Module]:
    return {file: ast.parse(text) for file, text in texts().items()}


@functools.cache
def names() -> Names:
    """The classes of the family, and the functions whose annotation says that they make, or raise, one of it."""
    outer = [node for tree in trees().values() for node in tree.body]
    nodes = outer + [node for each in outer if isinstance(each, ast.ClassDef) for node in each.body]
    bases = {node.name: {ast.unparse(base) for base in node.bases} for node in nodes if isinstance(node, ast.ClassDef)}
    classes = {each.__name__ for each in RECORDED}
    while more := {name for name, of in bases.items() if of & classes} - classes:
        classes |= more
    made = {*classes, "Reject", "NoReturn"}
    gives = [
        (node.name, node.returns is not None and ast.unparse(node.returns) in made)
        for node in nodes
        if isinstance(node, ast.FunctionDef)
    ]
    makers = {name for name, error in gives if error} - {name for name, error in gives if not error}
    return Names(frozenset(classes), frozenset(makers - {"__call__", "error", *FAMILY_METHODS}))


def _calls(file: str, node: ast.AST, function: str, lines: Sequence[int]) -> Iterator[tuple[Position, Site]]:
    """The sites inside a node; `lines`, in order, are those on which one can stand: most of a file is left out."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.stmt | ast.expr):
            following = bisect.bisect_left(lines, child.lineno)
            if following == len(lines) or lines[following] > (child.end_lineno or 0):
                continue
        inner = function
        if isinstance(child, ast.FunctionDef | ast.ClassDef):
            inner = f"{function}.{child.name}".lstrip(".")
        if isinstance(child, ast.Call) and names().hold(child):
            where = (child.lineno, child.end_lineno or 0, child.col_offset, child.end_col_offset or 0)
            yield where, Site(file, function or "the module", ast.unparse(child)[:110], child.lineno)
        yield from _calls(file, child, inner, lines)


@functools.cache
def sites() -> dict[tuple[str, Position], Site]:
    """Every site of the package, by its place."""
    named = re.compile(rf"\b({'|'.join(sorted(names().classes | names().makers | set(NOTING)))})\b")
    found = {}
    for file, text in texts().items():
        lines = [number for number, line in enumerate(text.splitlines(), 1) if named.search(line)]
        found |= {(file, where): site for where, site in _calls(file, trees()[file], "", lines)}
    return found


@functools.cache
def _file_of(code: CodeType) -> str | None:
    """The package's file that a piece of code is from; None for others."""
    path = Path(code.co_filename)
    return str(path.relative_to(ROOT)) if path.is_relative_to(PACKAGE) else None


def _place(frame: FrameType) -> Position | None:
    """Which call a frame is at."""
    where = next(itertools.islice(frame.f_code.co_positions(), frame.f_lasti // 2, None), None)
    if where is None or None in where:
        return None
    line, end_line, column, end_column = where
    return line or 0, end_line or 0, column or 0, end_column or 0


class Recorder:
    """While it is entered, notes each error that is made, and the sites that it is made by."""

    def __init__(self) -> None:
        self.made: list[tuple[str, list[Site]]] = []
        self._plain: dict[type, Callable[..., None]] = {}

    def __enter__(self) -> Recorder:
        for kind in RECORDED:
            self._plain[kind] = kind.__init__
            kind.__init__ = self._noting(kind.__init__)  # type: ignore[misc]
        return self

    def __exit__(self, *_: object) -> None:
        for kind, plain in self._plain.items():
            kind.__init__ = plain  # type: ignore[misc]

    def heard(self, said: str) -> frozenset[Site]:
        """The sites of what stands in `said`, the text that reached the user."""
        return frozenset(site for message, found in self.made if message.split("\n")[0] in said for site in found)

    def _noting(self, plain: Callable[..., None]) -> Callable[..., None]:
        def init(self_: Any, *args: Any, **kwargs: Any) -> None:
            plain(self_, *args, **kwargs)
            said = self_.message if isinstance(self_, Finding) else str(self_)
            self.made.append((said, list(_on_stack(sys._getframe(1)))))

        return init


def _on_stack(frame: FrameType | None) -> Iterator[Site]:
    known = sites()
    while frame is not None:
        file = _file_of(frame.f_code)
        where = _place(frame) if file is not None else None
        if file is not None and where is not None and (file, where) in known:
            yield known[file, where]
        frame = frame.f_back
