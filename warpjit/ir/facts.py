"""What is known about a scalar without running: a range, a multiple, and who agrees on its value.

`Facts` is a value, which joins and meets others; the transfer function of each integer operation is one
function in `TRANSFER`. All arithmetic here is on exact integers: whoever uses a result for a machine type
checks `fits` itself, and asks `wrapped` what is left of it where it does not fit.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Iterable
from enum import IntEnum

from warpjit.ir.dtypes import DType
from warpjit.record import record


class Uniformity(IntEnum):
    """The widest set of threads that is sure to hold the same value; larger numbers know less."""

    STATIC = 0
    GRID = 1
    CLUSTER = 2
    CTA = 3
    WARPGROUP = 4
    WARP = 5
    LANE = 6

    @property
    def phrase(self) -> str:
        """As it stands in a sentence: "the same for a whole warp"."""
        return _PHRASES[self]


_PHRASES = {
    Uniformity.STATIC: "known while tracing",
    Uniformity.GRID: "the same for the whole grid",
    Uniformity.CLUSTER: "the same for a whole cluster",
    Uniformity.CTA: "the same for a whole CTA",
    Uniformity.WARPGROUP: "the same for a whole warpgroup",
    Uniformity.WARP: "the same for a whole warp",
    Uniformity.LANE: "different from lane to lane",
}


@record
class Facts:
    """`lo <= value <= hi` (None: no bound), `value % multiple == 0` (0: the value is 0), and its uniformity."""

    lo: int | None = None
    hi: int | None = None
    multiple: int = 1
    uniformity: Uniformity = Uniformity.LANE

    @property
    def constant(self) -> int | None:
        return self.lo if self.lo is not None and self.lo == self.hi else None

    @property
    def empty(self) -> bool:
        """Whether no value is in the range."""
        return self.lo is not None and self.hi is not None and self.lo > self.hi

    def contradicts(self, other: Facts) -> bool:
        """Whether no value is in both ranges."""
        for low, high in ((self.lo, other.hi), (other.lo, self.hi)):
            if low is not None and high is not None and low > high:
                return True
        return False

    def fits(self, dtype: DType) -> bool:
        """Whether every possible value is one of the integer type's."""
        return self.lo is not None and self.hi is not None and dtype.min <= self.lo and self.hi <= dtype.max

    def at(self, uniformity: Uniformity) -> Facts:
        """The same, known to be no more uniform than `uniformity`."""
        return Facts(self.lo, self.hi, self.multiple, max(self.uniformity, uniformity))

    def join(self, other: Facts) -> Facts:
        """What holds for either of two values."""
        return Facts(
            None if self.lo is None or other.lo is None else min(self.lo, other.lo),
            None if self.hi is None or other.hi is None else max(self.hi, other.hi),
            math.gcd(self.multiple, other.multiple),
            max(self.uniformity, other.uniformity),
        )

    def meet(self, other: Facts) -> Facts:
        """What holds for a value of which both are known. An empty range (dead code) is one point of this one's."""
        lo = other.lo if self.lo is None else self.lo if other.lo is None else max(self.lo, other.lo)
        hi = other.hi if self.hi is None else self.hi if other.hi is None else min(self.hi, other.hi)
        if lo is not None and hi is not None and lo > hi:
            lo = hi = lo if self.hi is None else min(lo, self.hi)
        multiple = math.lcm(self.multiple, other.multiple)
        uniformity = min(self.uniformity, other.uniformity)
        if (lo, hi, multiple, uniformity) == (self.lo, self.hi, self.multiple, self.uniformity):
            return self
        return Facts(lo, hi, multiple, uniformity)


@functools.lru_cache(maxsize=4096)
def of_constant(value: int) -> Facts:
    return Facts(value, value, abs(value), Uniformity.STATIC)


@functools.cache
def of_type(dtype: DType, uniformity: Uniformity = Uniformity.LANE) -> Facts:
    """All that a type says: its range for integers and bool, nothing for floats."""
    if dtype.kind == "bool":
        return Facts(0, 1, 1, uniformity)
    if dtype.is_int:
        return Facts(dtype.min, dtype.max, 1, uniformity)
    return Facts(uniformity=uniformity)


def wrapped(exact: Facts, dtype: DType, op: str) -> Facts:
    """Of a result that may have wrapped, from the facts of the exact one: the type's range; of sums and products also
    how often 2 divides them."""
    known = of_type(dtype, exact.uniformity)
    if op not in ("add", "sub", "mul", "shl"):
        return known
    return Facts(known.lo, known.hi, math.gcd(exact.multiple, 1 << dtype.bits), exact.uniformity)


def _corners(a: Facts, b: Facts, function: Callable[[int, int], int]) -> tuple[int | None, int | None]:
    if a.lo is None or a.hi is None or b.lo is None or b.hi is None:
        return None, None
    values = [function(x, y) for x in (a.lo, a.hi) for y in (b.lo, b.hi)]
    return min(values), max(values)


def _plus(x: int | None, y: int | None) -> int | None:
    return None if x is None or y is None else x + y


def add(a: Facts, b: Facts) -> Facts:
    return Facts(
        _plus(a.lo, b.lo), _plus(a.hi, b.hi), math.gcd(a.multiple, b.multiple), max(a.uniformity, b.uniformity)
    )


def neg(a: Facts) -> Facts:
    return Facts(None if a.hi is None else -a.hi, None if a.lo is None else -a.lo, a.multiple, a.uniformity)


def sub(a: Facts, b: Facts) -> Facts:
    return add(a, neg(b))


def mul(a: Facts, b: Facts) -> Facts:
    uniformity = max(a.uniformity, b.uniformity)
    if a.multiple == 0 or b.multiple == 0:
        return Facts(0, 0, 0, uniformity)
    lo, hi = _corners(a, b, lambda x, y: x * y)
    if lo is None and a.lo is not None and b.lo is not None and a.lo >= 0 and b.lo >= 0:
        lo = a.lo * b.lo
    return Facts(lo, hi, a.multiple * b.multiple, uniformity)


def weighted_sum(constant: int, terms: Iterable[tuple[Facts, int]]) -> Facts:
    """Of constant + Σ coefficient · value, in one walk: sums are what a tracer asks about most."""
    lo: int | None = constant
    hi: int | None = constant
    multiple, uniformity = abs(constant), Uniformity.STATIC
    for facts, coefficient in terms:
        uniformity = max(uniformity, facts.uniformity)
        step = facts.multiple * coefficient
        if step == 0:  # the term is 0
            continue
        multiple = math.gcd(multiple, step)
        low, high = (facts.lo, facts.hi) if coefficient > 0 else (facts.hi, facts.lo)
        lo = None if lo is None or low is None else lo + low * coefficient
        hi = None if hi is None or high is None else hi + high * coefficient
    return Facts(lo, hi, multiple, uniformity)


def floordiv(a: Facts, b: Facts) -> Facts:
    uniformity = max(a.uniformity, b.uniformity)
    d = b.constant
    if d is not None and d > 0:
        multiple = a.multiple // d if a.multiple % d == 0 else 1
        return Facts(None if a.lo is None else a.lo // d, None if a.hi is None else a.hi // d, multiple, uniformity)
    if b.lo is not None and b.lo > 0 and a.lo is not None and a.lo >= 0:
        low = a.lo // b.hi if b.hi is not None else 0
        return Facts(low, None if a.hi is None else a.hi // b.lo, 1, uniformity)
    return Facts(uniformity=uniformity)


def mod(a: Facts, b: Facts) -> Facts:
    uniformity = max(a.uniformity, b.uniformity)
    multiple = math.gcd(a.multiple, b.multiple)
    if b.lo is not None and b.lo > 0:
        if a.lo is not None and a.hi is not None and a.lo >= 0 and a.hi < b.lo:
            return Facts(a.lo, a.hi, a.multiple, uniformity)
        hi = None if b.hi is None else max(b.hi - (multiple or 1), 0)
        if a.lo is not None and a.lo >= 0 and a.hi is not None:
            hi = a.hi if hi is None else min(hi, a.hi)
        return Facts(0, hi, multiple, uniformity)
    return Facts(None, None, multiple or 1, uniformity)


def minimum(a: Facts, b: Facts) -> Facts:
    lo = None if a.lo is None or b.lo is None else min(a.lo, b.lo)
    hi = b.hi if a.hi is None else a.hi if b.hi is None else min(a.hi, b.hi)
    return Facts(lo, hi, math.gcd(a.multiple, b.multiple), max(a.uniformity, b.uniformity))


def maximum(a: Facts, b: Facts) -> Facts:
    return neg(minimum(neg(a), neg(b)))


def absolute(a: Facts) -> Facts:
    return maximum(a, neg(a)) if a.lo is None or a.lo < 0 else a


def _power_of(a: Facts) -> Facts:
    """2**a for a shift count of known range."""
    if a.lo is None or a.hi is None or a.lo < 0 or a.hi > 64:
        return Facts(0, None, 1, a.uniformity)
    return Facts(1 << a.lo, 1 << a.hi, 1 << a.lo, a.uniformity)


def shift_left(a: Facts, b: Facts) -> Facts:
    return mul(a, _power_of(b))


def shift_right(a: Facts, b: Facts) -> Facts:
    power = _power_of(b)
    if power.constant is not None:
        return floordiv(a, power)
    if a.lo is not None and a.lo >= 0:
        return Facts(0, a.hi, 1, max(a.uniformity, b.uniformity))
    return Facts(uniformity=max(a.uniformity, b.uniformity))


def bit_and(a: Facts, b: Facts) -> Facts:
    uniformity = max(a.uniformity, b.uniformity)
    tops = [x.hi for x in (a, b) if x.lo is not None and x.lo >= 0 and x.hi is not None]
    low_zero = max((x.multiple & -x.multiple) or 1 for x in (a, b))
    return Facts(0 if tops else None, min(tops) if tops else None, low_zero, uniformity)


def bit_or(a: Facts, b: Facts) -> Facts:
    """Also the bound of XOR."""
    uniformity = max(a.uniformity, b.uniformity)
    low_zero = min((x.multiple & -x.multiple) or (1 << 62) for x in (a, b))
    if a.lo is None or b.lo is None or a.lo < 0 or b.lo < 0 or a.hi is None or b.hi is None:
        return Facts(None, None, low_zero, uniformity)
    return Facts(0, (1 << max(a.hi.bit_length(), b.hi.bit_length())) - 1, low_zero, uniformity)


TRANSFER: dict[str, Callable[[Facts, Facts], Facts]] = {
    "add": add,
    "sub": sub,
    "mul": mul,
    "floordiv": floordiv,
    "mod": mod,
    "min": minimum,
    "max": maximum,
    "shl": shift_left,
    "shr": shift_right,
    "and": bit_and,
    "or": bit_or,
    "xor": bit_or,
}
