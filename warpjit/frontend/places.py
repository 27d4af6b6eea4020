"""Where the things are that a trace took values from, as steps from the kernel's function: another process goes them.

A path begins at the function, at one of the call's constants, or at a module by its name. Each step is a pair of a kind
and a name or number: JSON. What a value means is `captures`' and `digest`'s.
"""

from __future__ import annotations

import functools
import sys
import types
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import fields, is_dataclass
from typing import Any, TypeAlias

from warpjit.frontend.captures import Capture, of_cell, of_globals, of_object

Step: TypeAlias = tuple[str, Any]
Path: TypeAlias = tuple[Step, ...]

MOST = 5000
"""Objects that are looked at for the way to one: what is farther away is not found."""

READS: dict[str, Callable[[Any, str], Any]] = {"cell": of_cell, "global": of_globals, "attribute": of_object}
"""How a capture is read, by the name that is kept of it."""
NAMES = {read: name for name, read in READS.items()}


def _closure(owner: Any, name: str) -> Any:
    cells = zip(owner.__code__.co_freevars, owner.__closure__ or (), strict=True)
    return dict(cells)[name]


_STEPS: dict[str, Callable[[Any, Any], Any]] = {
    "start": lambda roots, index: roots[index],
    "module": lambda roots, name: sys.modules[name],
    "names": lambda module, name: vars(module),
    "globals": lambda owner, name: owner.__globals__,
    "closure": _closure,
    "item": lambda owner, index: owner[index],
    "class": lambda owner, name: type(owner),
    "member": lambda owner, name: vars(owner)[name],
    **READS,
}


def follow(roots: Sequence[Any], path: Sequence[Any]) -> Any:
    """What stands at the end of a path. Raises whatever a step finds missing: LookupError, AttributeError, …"""
    found: Any = roots
    for kind, name in path:
        found = _STEPS[kind](found, name)
    return found


class Places:
    """The ways from `roots` (the function, then the constants) to what can be reached from them."""

    def __init__(self, roots: Sequence[Any]) -> None:
        self._paths: dict[int, Path] = {}
        self._kept: list[Any] = []  # an id is one object's only while that lives
        self._waiting: deque[Any] = deque()
        for index, root in enumerate(roots):
            self._add(root, (("start", index),))

    def of(self, capture: Capture) -> Path | None:
        """The way to a capture's holder, None where none was found. What was read there is then a place as well."""
        while id(capture.holder) not in self._paths and self._waiting and len(self._paths) < MOST:
            self._look(self._waiting.popleft())
        path = self._paths.get(id(capture.holder)) or _by_name(capture.holder)
        if path is not None:
            self._add(capture.holder, path)
            self._add(capture.value, (*path, (NAMES[capture.read], capture.name)))
        return path

    def _add(self, thing: Any, path: Path) -> None:
        if id(thing) not in self._paths:
            self._paths[id(thing)] = path
            self._kept.append(thing)
            self._waiting.append(thing)

    def _look(self, thing: Any) -> None:
        path = self._paths[id(thing)]
        for step, inside in _inside(thing):
            self._add(inside, (*path, step))


def _by_name(thing: Any) -> Path | None:
    """The way to a function at the top of a module, or to a module's names, that nothing on the kernel's ways leads to:
    what one of warpjit's own modules holds, which are not looked at again."""
    if isinstance(thing, types.FunctionType):
        home, name = thing.__module__, thing.__name__
        if home in sys.modules and getattr(sys.modules[home], name, None) is thing:
            return ("module", home), ("attribute", name)
    if isinstance(thing, dict):
        own = thing.get("__name__")
        if isinstance(own, str) and own in sys.modules and vars(sys.modules[own]) is thing:
            return ("module", own), ("names", "")
    return None


def _inside(thing: Any) -> Iterator[tuple[Step, Any]]:
    """What can be reached from an object by one step, without running code of the user's."""
    for kind, look in _LOOKS:
        if isinstance(thing, kind):
            yield from look(thing)
            return
    if is_dataclass(thing):
        for each in fields(thing):
            yield from _attributes(thing, each.name)
    if type(thing).__module__ != "builtins":
        yield ("class", ""), type(thing)


def _attributes(thing: Any, *names: str) -> Iterator[tuple[Step, Any]]:
    for name in names:
        if hasattr(thing, name):
            yield ("attribute", name), getattr(thing, name)


def _of_function(function: types.FunctionType) -> Iterator[tuple[Step, Any]]:
    yield ("globals", ""), function.__globals__
    for name, cell in zip(function.__code__.co_freevars, function.__closure__ or (), strict=True):
        yield ("closure", name), cell
    yield from _attributes(function, "__defaults__", "__wrapped__")


def _of_class(kind: type) -> Iterator[tuple[Step, Any]]:
    for name, member in vars(kind).items():
        if isinstance(member, types.FunctionType | property | staticmethod | classmethod | type):
            yield ("member", name), member
    yield from _attributes(kind, "__mro__")


def _of_tuple(items: tuple[Any, ...]) -> Iterator[tuple[Step, Any]]:
    for index, item in enumerate(items):
        yield ("item", index), item
    if type(items) is not tuple:
        yield ("class", ""), type(items)


_LOOKS: list[tuple[Any, Callable[[Any], Iterator[tuple[Step, Any]]]]] = [
    (types.FunctionType, _of_function),
    (type, _of_class),
    (tuple, _of_tuple),
    (types.MethodType, lambda method: _attributes(method, "__func__", "__self__")),
    (property, lambda member: _attributes(member, "fget")),
    (staticmethod | classmethod, lambda member: _attributes(member, "__func__")),
    (functools._lru_cache_wrapper, lambda wrapper: _attributes(wrapper, "__wrapped__")),
    (functools.partial, lambda partial: _attributes(partial, "func", "args")),
    (types.ModuleType | dict | str | bytes | int | float, lambda thing: iter(())),
]
