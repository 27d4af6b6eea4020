"""Values made of parts: tuples, named tuples and frozen dataclasses.

They exist while tracing; their parts may be numbers of the device. Where control paths meet, parts meet one by one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from warpjit.frontend.values import Value, bundle_fields
from warpjit.record import record


@record
class Pair:
    """One part of two values of one structure; `key` names it: "state.stage", "pair[0]"."""

    key: str
    a: Value
    b: Value


def parts(value: Value) -> list[tuple[str, Value]] | None:
    """The parts of a value with the ends of their keys; None where it has none."""
    if isinstance(value, tuple):
        names = getattr(type(value), "_fields", None)
        if names is not None:
            return [(f".{name}", part) for name, part in zip(names, value, strict=True)]
        return [(f"[{index}]", part) for index, part in enumerate(value)]
    fields = bundle_fields(type(value))
    return None if fields is None else [(f".{name}", getattr(value, name)) for name in fields if hasattr(value, name)]


def rebuilt(value: Value, new: list[Value]) -> Value:
    """A value with other parts; itself where they are the same."""
    old = parts(value)
    assert old is not None
    if all(before is after for (_, before), after in zip(old, new, strict=True)):
        return value
    if isinstance(value, tuple):
        return type(value)(*new) if hasattr(value, "_fields") else tuple(new)
    return bundle(type(value), {key[1:]: part for (key, _), part in zip(old, new, strict=True)})


def bundle(kind: type, fields: dict[str, Value]) -> Any:
    """A frozen dataclass with these fields, without its `__init__`."""
    result: Any = object.__new__(kind)
    for name, part in fields.items():
        object.__setattr__(result, name, part)
    return result


def mapped(key: str, value: Value, change: Callable[[str, Value], Value]) -> Value:
    """The value with each part that has no parts itself changed."""
    inside = parts(value)
    if inside is None:
        return change(key, value)
    return rebuilt(value, [mapped(key + end, part, change) for end, part in inside])


def alike(a: Value, b: Value) -> bool:
    """Whether two values have parts, and of the same names."""
    first, second = parts(a), parts(b)
    if first is None or second is None or type(a) is not type(b):
        return False
    return [end for end, _ in first] == [end for end, _ in second]


def pairs(key: str, a: Value, b: Value) -> Iterator[Pair]:
    """The parts of two values together, down to where the structures differ or end."""
    if not alike(a, b):
        yield Pair(key, a, b)
        return
    for (end, first), (_, second) in zip(parts(a) or (), parts(b) or (), strict=True):
        yield from pairs(key + end, first, second)
