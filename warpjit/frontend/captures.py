"""What a traced kernel took from outside its source and arguments, and how a change of it is noticed.

A call compares by identity (`unchanged`): globals, closure cells, attributes of modules, classes and objects, and
the code of helpers. What could change without its identity changing is refused (`check_captured`).
"""

from __future__ import annotations

import enum
import sys
import types
from collections.abc import Callable, Container, Iterable, Iterator
from dataclasses import dataclass, fields, is_dataclass
from typing import Any, TypeAlias

import numpy as np

from warpjit.errors import TraceError

MISSING = object()
LONGEST = 80
"""Characters of a value that are shown."""


@dataclass(frozen=True, eq=False)
class Capture:
    """A value that a kernel took from outside: `read(holder, name)` gives what stands there now."""

    name: str
    holder: Any
    value: Any
    read: Callable[[Any, str], Any]


Captures: TypeAlias = dict[tuple[int, str], Capture]
"""By the holder's identity and the name."""


def unchanged(captures: Iterable[Capture]) -> bool:
    """Whether what a trace took from outside is still what stands there."""
    for capture in captures:
        if capture.read(capture.holder, capture.name) is not capture.value:
            return False
    return True


def of_cell(cell: Any, name: str) -> Any:
    """What a closure cell holds, MISSING where nothing yet."""
    try:
        return cell.cell_contents
    except ValueError:
        return MISSING


def of_globals(names: Any, name: str) -> Any:
    return names.get(name, MISSING)


def of_object(owner: Any, name: str) -> Any:
    return getattr(owner, name, MISSING)


REFUSED = (list, dict, set, bytearray)


def check_captured(name: str, value: Any) -> None:
    """TraceError: a value whose changes could not be noticed, or a tensor."""
    if isinstance(value, REFUSED):
        what = type(value).__name__
        raise TraceError(f"{name} is a captured {what}: it may change unnoticed. Use a tuple, or pass it as a constant")
    if (
        type(value).__module__.partition(".")[0] in ("torch", "numpy")
        and hasattr(value, "shape")
        and hasattr(value, "dtype")
        and not isinstance(value, np.generic)
    ):
        raise TraceError(f"{name} is a captured tensor: pass it as an argument of the kernel")
    if isinstance(value, tuple | frozenset):
        for item in value:
            check_captured(name, item)
    if is_dataclass(value) and not isinstance(value, type):
        if not value.__dataclass_params__.frozen:  # type: ignore[attr-defined]
            raise TraceError(f"{name} is a captured {type(value).__name__}: only frozen dataclasses can be captured")
        for item in fields(value):
            check_captured(f"{name}.{item.name}", getattr(value, item.name))


def can_change(owner: Any) -> bool:
    """Whether attributes of a static object are looked at again at each call: those of modules, of classes, and of
    objects that are no values of Python, of warpjit or of numpy and torch."""
    if isinstance(owner, types.ModuleType):
        return not owner.__name__.startswith("warpjit.")
    kind = owner if isinstance(owner, type) else type(owner)
    package = kind.__module__.partition(".")[0]
    if package in ("builtins", "warpjit", "numpy", "torch") or issubclass(kind, enum.Enum):
        return False
    return isinstance(owner, type) or not is_dataclass(owner)


def settled(value: Any, held: Container[int]) -> bool:
    """Whether a constant that is the same object is the same constant: nothing in it can change, or what the program
    took from it is looked at again (`held`: the ids of the captures' holders). A function that only equals the one
    that was traced is neither: what it closes over may change."""
    if id(value) in held:
        return True
    if isinstance(value, tuple | frozenset):
        return all(settled(item, held) for item in value)
    if isinstance(value, types.FunctionType) or can_change(value):
        return False
    inside = fields(value) if is_dataclass(value) and not isinstance(value, type) else ()
    return all(settled(getattr(value, each.name), held) for each in inside)


def shown(captures: Iterable[Capture]) -> Iterator[tuple[str, str]]:
    """(name, value) of each capture as a person reads them, short."""
    for capture in captures:
        inside = getattr(capture.holder, "__qualname__", None)
        name = capture.name if inside is None else f"{inside}.{capture.name}"
        value = capture.value
        if isinstance(value, types.FunctionType | type):
            yield name, value.__qualname__
        elif isinstance(value, types.ModuleType):
            yield name, f"module {value.__name__}"
        elif value is not MISSING and not isinstance(value, types.CodeType):
            text = repr(value)
            yield name, text if len(text) <= LONGEST else f"{text[:LONGEST]}…"


# ---- functions ------------------------------------------------------------------------------------------------

PARTS = ("__code__", "__defaults__", "__kwdefaults__")


def note_function(captures: Captures, function: types.FunctionType) -> None:
    """A helper is inlined: a change of its body or defaults is noticed."""
    for part in PARTS:
        captures.setdefault((id(function), part), Capture(part, function, getattr(function, part), of_object))


def note_reads(captures: Captures, function: Callable[..., Any]) -> None:
    """A helper is called by Python: what it and the user's functions that it calls read from outside is noticed.

    What its names reach is taken from its code. Functions of the standard library and of torch and numpy are trusted.
    """
    waiting, seen = [function], set[int]()
    while waiting:
        current = waiting.pop()
        if not isinstance(current, types.FunctionType) or id(current) in seen or trusted(current):
            continue
        seen.add(id(current))
        note_function(captures, current)
        for capture in reads(current):
            captures.setdefault((id(capture.holder), capture.name), capture)
            waiting.append(capture.value)


def trusted(function: types.FunctionType | type) -> bool:
    """Whether a function or class is of the standard library, of torch, numpy or warpjit: nobody changes it."""
    package = (function.__module__ or "").partition(".")[0]
    return package in sys.stdlib_module_names - {"__main__"} or package in ("torch", "numpy", "ml_dtypes", "warpjit")


def reads(function: types.FunctionType) -> Iterator[Capture]:
    """What a function's names reach outside of it: closure cells, globals, and attributes of what can change."""
    names, seen = set(_names(function.__code__)), set[int]()
    for name, cell in zip(function.__code__.co_freevars, function.__closure__ or (), strict=True):
        value = of_cell(cell, name)
        yield Capture(name, cell, value, of_cell)
        yield from _attributes(value, names, seen)
    for name in sorted(names & function.__globals__.keys()):
        value = function.__globals__[name]
        yield Capture(name, function.__globals__, value, of_globals)
        yield from _attributes(value, names, seen)


def _attributes(owner: Any, names: set[str], seen: set[int]) -> Iterator[Capture]:
    """The attributes of a module, class or object that have one of these names, and those of what is found there."""
    if id(owner) in seen or owner is MISSING or not can_change(owner):
        return
    seen.add(id(owner))
    for name in sorted(names & _own(owner)):
        value = of_object(owner, name)
        if of_object(owner, name) is value:  # not made anew at each look
            yield Capture(name, owner, value, of_object)
            yield from _attributes(value, names, seen)
    yield from _attributes(type(owner), names, seen)


def _own(owner: Any) -> set[str]:
    """The attributes that stand in an object, or in a class and those above it."""
    if isinstance(owner, type):
        return {name for kind in owner.__mro__ if not trusted(kind) for name in vars(kind)}
    return set(getattr(owner, "__dict__", ()))


def _names(code: types.CodeType) -> Iterator[str]:
    yield from code.co_names
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            yield from _names(constant)
