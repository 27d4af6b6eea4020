"""Floats as fractions and back, one at a time: the exact arithmetic that the vectorised one has to meet. No tests here.

`bits_of` and `typed` go between typed arrays and bit patterns; `random_bits` makes patterns that reach the corners.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, lru_cache
from typing import Any

import numpy as np

from warpjit.ir.dtypes import dtype

Array = np.ndarray[Any, Any]


@dataclass(frozen=True)
class Fields:
    """Bits of exponent and fraction. `infinity` is False where the largest exponent still holds numbers."""

    exponent: int
    fraction: int
    infinity: bool = True

    @cached_property
    def bias(self) -> int:
        return (1 << self.exponent - 1) - 1

    @cached_property
    def sign(self) -> int:
        return 1 << self.exponent + self.fraction

    @cached_property
    def top(self) -> int:
        """The exponent field full of ones, in place."""
        return (1 << self.exponent) - 1 << self.fraction

    @cached_property
    def largest(self) -> int:
        """The largest finite number's bits."""
        return self.top - 1 if self.infinity else self.sign - 2


FIELDS = {
    "float8_e4m3fn": Fields(4, 3, infinity=False),
    "float8_e5m2": Fields(5, 2),
    "float16": Fields(5, 10),
    "bfloat16": Fields(8, 7),
    "float32": Fields(8, 23),
    "float64": Fields(11, 52),
}
FLOATS = tuple(FIELDS)
COMPUTING_FLOATS = ("float16", "bfloat16", "float32", "float64")


def is_nan(bits: int, name: str) -> bool:
    fields = FIELDS[name]
    return bits % fields.sign > (fields.top if fields.infinity else fields.largest)


@lru_cache(maxsize=1 << 16)
def exact(bits: int, name: str) -> Fraction | float:
    """The value of a bit pattern: a fraction, or an infinite or NaN float."""
    fields = FIELDS[name]
    sign, magnitude = (-1 if bits & fields.sign else 1), bits % fields.sign
    if is_nan(bits, name):
        return float("nan")
    if fields.infinity and magnitude == fields.top:
        return sign * float("inf")
    field, fraction = divmod(magnitude, 1 << fields.fraction)
    whole = fraction + (1 << fields.fraction if field else 0)
    places = fields.bias + fields.fraction - (field or 1)
    return Fraction(sign * whole, 1 << places) if places > 0 else Fraction(sign * whole << -places)


def nearest(value: Fraction | int, name: str, negative_zero: bool = False) -> int:
    """The bit pattern nearest to `value`, ties to even, infinity beyond the largest (8-bit floats: the largest)."""
    fields = FIELDS[name]
    magnitude = abs(Fraction(value))
    sign = fields.sign if value < 0 or (value == 0 and negative_zero) else 0
    low, high = 0, fields.largest
    while low < high:  # the largest pattern whose value does not exceed the magnitude
        middle = (low + high + 1) // 2
        low, high = (middle, high) if exact(middle, name) <= magnitude else (low, middle - 1)
    below = exact(low, name)
    assert isinstance(below, Fraction)
    place = below - exact(low - 1, name) if low == fields.largest else exact(low + 1, name) - below
    twice = 2 * (magnitude - below)
    rounded = low + (twice > place or (twice == place and low % 2 == 1))
    if name.startswith("float8"):
        rounded = min(rounded, fields.largest)
    return min(rounded, fields.top if fields.infinity else fields.largest) | sign


def typed(bits: Array, name: str) -> Array:
    kind = dtype(name)
    return bits.astype(kind.unsigned_word.numpy).view(kind.numpy)


def bits_of(values: Array) -> list[int]:
    return np.ascontiguousarray(values).view(f"u{values.dtype.itemsize}").ravel().tolist()


def random_bits(rng: np.random.Generator, name: str, count: int) -> Array:
    """Bit patterns (uint64): of all kinds, of moderate size, near the rounding borders of narrower floats, special."""
    kind = dtype(name)
    mask = np.uint64((1 << kind.bits) - 1)
    anything = rng.integers(0, 1 << 64, count, dtype=np.uint64) & mask
    if not kind.is_float:
        width = rng.integers(0, kind.bits, count).astype(np.uint64)
        edges = np.array([0, 1, -1, kind.min, kind.max, kind.min + 1, kind.max - 1], dtype=object) % (1 << kind.bits)
        chosen = edges[rng.integers(0, len(edges), count)].astype(np.uint64)
        flipped = np.where((rng.random(count) < 0.5) & kind.signed, mask, np.uint64(0))
        return np.where(rng.random(count) < 0.2, chosen, (anything >> width) ^ flipped)
    fields = FIELDS[name]
    moderate = _with_exponents(rng, anything, fields, 12)
    cut = rng.integers(1, fields.fraction, count).astype(np.uint64)
    border = _with_exponents(rng, anything, fields, 30) >> cut << cut | np.uint64(1) << cut - np.uint64(1)
    border += rng.integers(0, 3, count).astype(np.uint64) - np.uint64(1)
    corners = [0, 1, 2, fields.top, fields.largest, fields.largest - 1, fields.sign - 1, 1 << fields.fraction]
    corners += [(1 << fields.fraction) - 1, fields.bias << fields.fraction]
    corners += [fields.top | 1, fields.top | 1 << fields.fraction - 1]
    special = np.array([x | sign for x in corners for sign in (0, fields.sign)], dtype=np.uint64) & mask
    pick = rng.integers(0, 10, count)
    chosen = special[rng.integers(0, len(special), count)]
    return np.select([pick < 4, pick < 6, pick < 9], [anything, moderate, border & mask], chosen)


def _with_exponents(rng: np.random.Generator, bits: Array, fields: Fields, spread: int) -> Array:
    reach = min(spread, fields.bias - 1)
    exponents = (rng.integers(-reach, reach + 1, bits.shape) + fields.bias).astype(np.uint64)
    return bits & np.uint64(fields.sign | (1 << fields.fraction) - 1) | exponents << np.uint64(fields.fraction)
