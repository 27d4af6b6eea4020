"""The thread scopes that a layout's axes span, and whether they fit together.

A warp's lane, a CTA's warp and so on are links (outer scope -> inner scope); the links of a layout must form one chain,
and no owner may lie outside its axis. Overlap is another question: see `injectivity`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import combinations

from warpjit.layout.axis import SCOPES, Axis, Scope

_RANK: dict[Scope | None, int] = {scope: rank for rank, scope in enumerate(SCOPES)}


def scope_of(axes: Sequence[Axis]) -> tuple[Scope, Scope] | None:
    """(innermost, outermost) scope of the thread axes; None where there is none."""
    links = [(axis.inner, axis.outer) for axis in axes if axis.inner and axis.outer]
    if not links:
        return None
    inner, outer = (scope for scope, _ in links), (scope for _, scope in links)
    return min(inner, key=_RANK.__getitem__), max(outer, key=_RANK.__getitem__)


def ill_formed(axes: Sequence[Axis], last: Callable[[Axis], int]) -> list[str]:
    """What is wrong with owners on `axes`, a sentence each; `last` gives the largest value that an axis takes."""
    threads = sorted((axis for axis in axes if axis.kind == "thread"), key=lambda axis: _RANK[axis.inner])
    return [*_conflicts(threads), *_gaps(threads), *_outside(axes, last)]


def _conflicts(threads: Sequence[Axis]) -> list[str]:
    return [
        f"{one.name} and {two.name} both count {_PLURAL[one.inner]}, but {one.name} counts them in a {one.outer} "
        f"and {two.name} in a {two.outer}"
        for one, two in combinations(threads, 2)
        if one.inner == two.inner and one.outer != two.outer
    ]


def _gaps(threads: Sequence[Axis]) -> list[str]:
    links = {axis.inner: axis for axis in threads}
    return [
        f"{inside.name} counts {_PLURAL[inside.inner]} in a {inside.outer} and {outside.name} counts "
        f"{_PLURAL[outside.inner]} in a {outside.outer}: no axis connects the {inside.outer} to the {outside.inner}"
        for inside, outside in zip(links.values(), list(links.values())[1:], strict=False)
        if inside.outer != outside.inner
    ]


def _outside(axes: Sequence[Axis], last: Callable[[Axis], int]) -> list[str]:
    return [
        f"{axis.name}: expected at most {axis.extent - 1} but got {last(axis)}"
        for axis in axes
        if axis.extent is not None and last(axis) >= axis.extent
    ]


_PLURAL: dict[Scope | None, str] = {"thread": "threads", "warp": "warps", "warpgroup": "warpgroups", "cta": "CTAs"}
