"""The axes that a layout can place elements on, and the `value @ axis` notation.

An axis is either a coordinate of the threads of a launch (which lane, warp, CTA owns an element) or a coordinate of
memory. The set of axes is closed: a name that is not in the table is an error, since a misspelt owner would otherwise
own nothing. What a layout does with axes lives in `iters` and the files after it.
"""

from __future__ import annotations

import difflib
from dataclasses import dataclass
from typing import Literal, TypeAlias

from warpjit.errors import LayoutError
from warpjit.record import record

Kind: TypeAlias = Literal["thread", "memory"]
Scope: TypeAlias = Literal["thread", "warp", "warpgroup", "cta", "cluster", "kernel"]

LANES = 32
"""Lanes of a warp."""
SCOPES: tuple[Scope, ...] = ("thread", "warp", "warpgroup", "cta", "cluster", "kernel")
"""The thread scopes from the innermost to the outermost."""


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Axis:
    """One axis. Axes are compared by identity: take them from this module or from `Axis.get`.

    name    how the notation spells it
    kind    "thread": an owner coordinate; "memory": a place inside the storage of one owner
    outer   thread axes count `inner` scopes within one `outer` scope (lanes: warp -> thread); None for memory
    inner   see `outer`
    extent  how many values the hardware allows, counted from 0; None where nothing bounds it
    """

    name: str
    kind: Kind
    outer: Scope | None = None
    inner: Scope | None = None
    extent: int | None = None

    @staticmethod
    def get(axis: str | Axis) -> Axis:
        """The axis of that name (an `Axis` is returned as it is). Raises LayoutError for an unknown name."""
        if isinstance(axis, Axis):
            return axis
        found = AXES.get(axis) if isinstance(axis, str) else None
        if found is None:
            raise LayoutError(_unknown_axis(axis))
        return found

    def __rmatmul__(self, value: int) -> AxisSum:
        return AxisSum(((self, as_int(value, f"value @ {self.name}")),))

    def __repr__(self) -> str:
        return self.name

    def __reduce__(self) -> tuple[object, ...]:
        return Axis.get, (self.name,)


@record
class AxisSum:
    """What `4 @ laneid` and `5 @ laneid + 2 @ warpid + 7` mean: one stride (one term), or an offset (any number)."""

    terms: tuple[tuple[Axis, int], ...]

    def __add__(self, other: int | AxisSum) -> AxisSum:
        terms = as_terms(other)
        return NotImplemented if terms is None else AxisSum(self.terms + terms)

    def __radd__(self, other: int) -> AxisSum:
        terms = as_terms(other)
        return NotImplemented if terms is None else AxisSum(terms + self.terms)

    def __repr__(self) -> str:
        return " + ".join(term_text(value, axis) for axis, value in self.terms)


def as_terms(value: object) -> tuple[tuple[Axis, int], ...] | None:
    """The terms of an offset; a bare int goes to `m`. None for anything that is not an offset."""
    if isinstance(value, AxisSum):
        return value.terms
    if isinstance(value, int) and not isinstance(value, bool):
        return ((m, value),)
    return None


def term_text(value: int, axis: Axis) -> str:
    """`value @ axis` as the notation spells it; the axis `m` is not written."""
    return f"{value}" if axis is m else f"{value} @ {axis.name}"


def as_int(value: object, what: str) -> int:
    """`value` as a plain int; anything with `__index__` but bool will do. Else LayoutError, which `what` begins."""
    if type(value) is int:
        return value
    if isinstance(value, bool) or not hasattr(value, "__index__"):
        raise LayoutError(f"{what}: expected an int but got {value!r}")
    return int(value.__index__())


def as_count(value: object, what: str) -> int:
    """`value` as an int of at least 1; `what` begins the LayoutError's sentence."""
    count = as_int(value, what)
    if count < 1:
        raise LayoutError(f"{what}: expected at least 1 but got {count}")
    return count


def _unknown_axis(name: object) -> str:
    close = difflib.get_close_matches(str(name), AXES, n=1)
    hint = f'; did you mean "{close[0]}"?' if close else ""
    return f"expected an axis but got {name!r}; the axes are {', '.join(AXES)}{hint}"


m = Axis("m", "memory")
# Limits: CUDA C++ Programming Guide, "Compute Capabilities" (1024 threads a block, grid limits, 16 CTAs a cluster).
bx = Axis("bx", "thread", "kernel", "cta", 2**31 - 1)
by = Axis("by", "thread", "kernel", "cta", 65535)
bz = Axis("bz", "thread", "kernel", "cta", 65535)
cbx = Axis("cbx", "thread", "cluster", "cta", 16)
cby = Axis("cby", "thread", "cluster", "cta", 16)
cbz = Axis("cbz", "thread", "cluster", "cta", 16)
tx = Axis("tx", "thread", "cta", "thread", 1024)
warpid = Axis("warpid", "thread", "cta", "warp", 32)
laneid = Axis("laneid", "thread", "warp", "thread", LANES)
wgid = Axis("wgid", "thread", "cta", "warpgroup", 8)
tid_in_wg = Axis("tid_in_wg", "thread", "warpgroup", "thread", 128)
wid_in_wg = Axis("wid_in_wg", "thread", "warpgroup", "warp", 4)
# Tensor memory is 128 lanes of 512 columns: PTX ISA, "Tensor Memory Addressing".
TLane = Axis("TLane", "memory", extent=128)
TCol = Axis("TCol", "memory", extent=512)

AXES: dict[str, Axis] = {
    axis.name: axis
    for axis in (m, bx, by, bz, cbx, cby, cbz, tx, warpid, laneid, wgid, tid_in_wg, wid_in_wg, TLane, TCol)
}
"""Every axis by name, in the order in which offsets are printed."""

AXIS_RANK: dict[Axis, int] = {axis: rank for rank, axis in enumerate(AXES.values())}
