"""What the truth of a comparison says of the locals in it.

A comparison of integer sums is a bound on their difference; each local of the difference is bounded by the
extremes of the others. `x % d == 0` says that x is a multiple of d.
"""

from __future__ import annotations

from warpjit.frontend.builder import Builder
from warpjit.frontend.values import Linear, Scalar
from warpjit.ir import dtypes
from warpjit.ir.facts import Facts
from warpjit.ir.nodes import Local

Refined = tuple[tuple[Local, Facts], ...]

# comparison -> (upper bound, lower bound) of left - right when it holds, None where there is none
BOUNDS = {"lt": (-1, None), "le": (0, None), "gt": (None, 1), "ge": (None, 0), "eq": (0, 0), "ne": (None, None)}
NEVER: Refined = ((Local("never", dtypes.int32), Facts(1, 0)),)
"""What a comparison says that cannot hold."""
OPPOSITE = {"lt": "ge", "ge": "lt", "gt": "le", "le": "gt", "eq": "ne", "ne": "eq"}


def refinements(builder: Builder, op: str, left: Scalar, right: Scalar) -> tuple[Refined, Refined]:
    """What holds where `left op right` is true, and where it is false."""
    return _holds(builder, op, left, right), _holds(builder, OPPOSITE[op], left, right)


def _holds(builder: Builder, op: str, left: Scalar, right: Scalar) -> Refined:
    assert left.linear is not None and right.linear is not None
    upper, lower = BOUNDS[op]
    if _cannot(op, left.facts, right.facts):
        return NEVER
    difference = left.linear.plus(right.linear, -1)
    found: list[tuple[Local, Facts]] = []
    if upper is not None:
        found += _below(builder, difference, upper)
        found += _named(left, Facts(None, _plus(right.facts.hi, upper)))
        found += _named(right, Facts(_plus(left.facts.lo, -upper), None))
    if lower is not None:
        found += _below(builder, difference.times(-1), -lower)
        found += _named(left, Facts(_plus(right.facts.lo, lower), None))
        found += _named(right, Facts(None, _plus(left.facts.hi, -lower)))
    if op == "eq":
        found += _multiples(builder, difference)
    if op == "ne":
        found += _apart(builder, difference)
        found += _named(left, _beside(left.facts, right.facts.constant))
        found += _named(right, _beside(right.facts, left.facts.constant))
    return tuple(found)


def _cannot(op: str, left: Facts, right: Facts) -> bool:
    """Whether the ranges say that `left op right` is never true."""
    upper, lower = BOUNDS[op]
    if op == "ne":
        return left.constant is not None and left.constant == right.constant
    if upper is not None and left.lo is not None and right.hi is not None and left.lo > right.hi + upper:
        return True
    return lower is not None and left.hi is not None and right.lo is not None and left.hi < right.lo + lower


def _plus(a: int | None, b: int) -> int | None:
    return None if a is None else a + b


def _named(scalar: Scalar, facts: Facts) -> list[tuple[Local, Facts]]:
    """A bound on the local that holds the whole sum."""
    return [(scalar.atom, facts)] if isinstance(scalar.atom, Local) else []


def _below(builder: Builder, linear: Linear, bound: int) -> list[tuple[Local, Facts]]:
    """Bounds on each local of `linear <= bound`."""
    lows = []
    for local, coefficient in linear.terms:
        facts = builder.facts_of(local)
        end = facts.lo if coefficient > 0 else facts.hi
        lows.append(None if end is None else coefficient * end)
    found: list[tuple[Local, Facts]] = []
    for index, (local, coefficient) in enumerate(linear.terms):
        others = lows[:index] + lows[index + 1 :]
        if any(low is None for low in others):
            continue
        room = bound - linear.constant - sum(low for low in others if low is not None)
        if coefficient > 0:
            found.append((local, Facts(None, room // coefficient)))
        else:
            found.append((local, Facts(-(room // -coefficient), None)))
    return found


def _apart(builder: Builder, difference: Linear) -> list[tuple[Local, Facts]]:
    """`x != c` for a single local x: it matters where c is an end of x's range."""
    if len(difference.terms) != 1:
        return []
    local, coefficient = difference.terms[0]
    value, rest = divmod(-difference.constant, coefficient)
    return [] if rest else [(local, _beside(builder.facts_of(local), value))]


def _beside(facts: Facts, excluded: int | None) -> Facts:
    """What a range that ends at `excluded` is without it."""
    lo = excluded + 1 if excluded is not None and excluded == facts.lo else None
    hi = excluded - 1 if excluded is not None and excluded == facts.hi else None
    return Facts(lo, hi)


def _multiples(builder: Builder, difference: Linear) -> list[tuple[Local, Facts]]:
    """`x % d == 0` for x a single local."""
    if len(difference.terms) != 1 or difference.constant:
        return []
    known = builder.moduli.get(difference.terms[0][0].name)
    if known is None:
        return []
    rest, divisor = known
    if len(rest.terms) != 1 or rest.constant or abs(rest.terms[0][1]) != 1:
        return []
    return [(rest.terms[0][0], Facts(None, None, divisor))]
