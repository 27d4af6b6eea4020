"""Lists and dictionaries while tracing: structure that Python computes, which may hold values of the device.

A list is changed at once, as Python does, so it can be changed only where the change is sure to happen once: in the
control flow that the list was made in. In a static `range` that means that the loop is expanded; under a branch or in
another device loop it is an error. Lists from outside of the kernel are never changed.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from warpjit.errors import Finding, Loc, Note, TraceError, WarpjitError
from warpjit.frontend.addresses import NeedsStatic
from warpjit.frontend.literals import describe
from warpjit.frontend.tracer import Reject, Tracer
from warpjit.frontend.values import Value, is_kernel_value


class KernelList(list[Any]):
    """A list that the kernel made: in which block of the program, and at which line."""

    region: int
    loc: Loc


class KernelDict(dict[Any, Any]):
    """A dictionary that the kernel made."""

    region: int
    loc: Loc


KINDS: dict[type, type[KernelList] | type[KernelDict]] = {list: KernelList, dict: KernelDict}


def made(tracer: Tracer, value: Value) -> Value:
    """A new list or dictionary as one that was made here; any other value as it is."""
    kind = KINDS.get(type(value))
    if kind is None:
        return value
    result = kind(value)
    result.region, result.loc = tracer.builder.block.region, tracer.builder.loc
    return result


def check_mutable(tracer: Tracer, owner: Value, what: str) -> None:
    """Refuse a change of `owner` unless it happens exactly where the program comes by. NeedsStatic: in a loop that can
    be expanded."""
    if not isinstance(owner, KernelList | KernelDict):
        kind = type(owner).__name__
        raise TraceError(f"{what}: this {kind} was not made in the kernel: change a copy, {kind}(...), instead")
    blocks = tracer.builder.blocks
    home = next((depth for depth, block in enumerate(blocks) if owner.region in block.regions), None)
    if home == len(blocks) - 1:
        return
    loops = frozenset(block.loop for block in blocks[home + 1 :]) if home is not None else frozenset()
    if loops and loops <= tracer.attempts:
        raise NeedsStatic(loops, f"{what} must happen while tracing")
    kind = "list" if isinstance(owner, list) else "dictionary"
    message = (
        f"{what} would change a {kind} inside of a loop or branch of the device: a {kind} exists while tracing only, "
        "so it can be changed where it was made, or in loops that are expanded"
    )
    raise Reject(Finding(message, tracer.builder.loc, (Note(f"the {kind} was made here", owner.loc),)))


# ---- methods ----------------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class ContainerMethod:
    """`owner.name` of a list, dictionary or tuple before it is called."""

    owner: Value
    name: str


CHANGING = {
    list: ("append", "extend", "insert", "pop", "clear", "reverse"),
    dict: ("update", "setdefault", "pop", "clear"),
}
READING = {
    list: ("copy",),
    dict: ("get", "items", "keys", "values", "copy"),
}
COMPARING = {list: ("index", "count"), tuple: ("index", "count")}
"""They look for an equal item: of device values that is not known while tracing."""


def method(owner: Value, name: str) -> ContainerMethod | None:
    """The method of a container; None where `owner` is none, or has no such method."""
    kind = next((kind for kind in (list, dict, tuple) if isinstance(owner, kind)), None)
    if (
        kind is None
        or name in getattr(owner, "_fields", ())
        or not any(name in table.get(kind, ()) for table in (CHANGING, READING, COMPARING))
    ):
        return None
    return ContainerMethod(owner, name)


def call_method(tracer: Tracer, function: ContainerMethod, args: list[Value], kwargs: dict[str, Value]) -> Value:
    """Call a method of a container: what it stores may be values of the device."""
    owner, name = function.owner, function.name
    if any(isinstance(owner, kind) and name in names for kind, names in CHANGING.items()):
        check_mutable(tracer, owner, name)
    elif any(isinstance(owner, kind) and name in names for kind, names in COMPARING.items()):
        if is_kernel_value(owner) or is_kernel_value(args):
            raise TraceError(f"{name} looks for an equal item, which is not known while tracing: compare the items")
    return made(tracer, python(getattr(owner, name), *args, **kwargs))


def set_item(tracer: Tracer, owner: Value, index: Value, value: Value) -> None:
    """`owner[index] = value` of a list or dictionary."""
    check_mutable(tracer, owner, "an assignment to an item")
    if is_kernel_value(index):
        kind = "list" if isinstance(owner, list) else "dictionary"
        raise TraceError(f"an index of a {kind} must be known while tracing, not {describe(index)}")
    python(owner.__class__.__setitem__, owner, index, value)


def python(function: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """Python's own operation; what it raises is an error of the program."""
    try:
        return function(*args, **kwargs)
    except WarpjitError:
        raise
    except Exception as error:
        raise TraceError(f"{type(error).__name__}: {error}") from error
