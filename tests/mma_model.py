"""One matrix instruction in plain integers, as the rules of sm_90 say it, and inputs that reach every rule.

Written for exactness, one result at a time: numbers are integers in units of 2**-300. `modelled_product` is what
`mma_sum` has to meet; `make` yields seeded bit patterns. No tests here.
"""

from __future__ import annotations

import functools
import zlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]

# The model ----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Layout:
    """Bits of exponent and fraction, and how many low bits of a stored element are not part of the number."""

    exponent: int
    fraction: int
    ignored: int = 0

    @property
    def top(self) -> int:
        return (1 << self.exponent) - 1

    @property
    def bias(self) -> int:
        return self.top >> 1

    @property
    def width(self) -> int:
        return 1 + self.exponent + self.fraction + self.ignored

    def stored(self, code: int) -> int:
        return code << self.ignored

    @property
    def infinity(self) -> int:
        return self.stored(self.top << self.fraction)

    @property
    def sign(self) -> int:
        return 1 << self.width - 1


LAYOUTS = {"f16": Layout(5, 10), "bf16": Layout(8, 7), "tf32": Layout(8, 10, 13), "f32": Layout(8, 23)}
NAN = {"f16": 0x7FFF, "f32": 0x7FFFFFFF}
ONE = 300  # the model's numbers are integers in units of 2**-ONE


@dataclass(frozen=True)
class Number:
    """`kind`: "finite" | "infinite" | "nan"; a finite one is its magnitude in units of 2**(exponent - places)."""

    kind: str
    negative: bool
    exponent: int = 0
    magnitude: int = 0
    places: int = 0


@functools.lru_cache(maxsize=1 << 16)
def read(code: int, layout: Layout) -> Number:
    code >>= layout.ignored
    fraction = code % (1 << layout.fraction)
    biased = code >> layout.fraction & layout.top
    negative = bool(code >> layout.fraction + layout.exponent)
    if biased == layout.top:
        return Number("nan" if fraction else "infinite", negative)
    hidden = 1 << layout.fraction if biased else 0
    return Number("finite", negative, (biased or 1) - layout.bias, hidden + fraction, layout.fraction)


def times(x: Number, y: Number) -> Number:
    kinds = {x.kind, y.kind}
    negative = x.negative != y.negative
    if "nan" in kinds or ("infinite" in kinds and any(each.kind == "finite" and not each.magnitude for each in (x, y))):
        return Number("nan", False)
    if "infinite" in kinds:
        return Number("infinite", negative)
    return Number("finite", negative, x.exponent + y.exponent, x.magnitude * y.magnitude, x.places + y.places)


def modelled(a_row: list[Number], b_row: list[Number], c: Number, result: str) -> int:
    """The code of one result of one instruction."""
    terms = [*map(times, a_row, b_row), c]
    kinds = {each.kind for each in terms}
    infinite_signs = {each.negative for each in terms if each.kind == "infinite"}
    layout = LAYOUTS[result]
    if "nan" in kinds or len(infinite_signs) == 2:
        return NAN[result]
    if infinite_signs:
        return layout.infinity | (layout.sign if infinite_signs == {True} else 0)
    largest = max((each.exponent for each in terms if each.magnitude), default=-133)
    grid = ONE + max(largest, -133) - 25
    total = 0
    for each in terms:
        fixed = each.magnitude << ONE + each.exponent - each.places
        fixed = fixed >> grid << grid
        total += -fixed if each.negative else fixed
    return encoded(total, layout, nearest=result == "f16")


def encoded(total: int, layout: Layout, nearest: bool) -> int:
    """A number in units of 2**-ONE as a code: to nearest even, or toward zero; never -0."""
    magnitude = abs(total)
    lowest = ONE + 1 - layout.bias - layout.fraction  # position of the last place of a subnormal
    last = max(magnitude.bit_length() - 1 - layout.fraction, lowest)
    whole, rest = divmod(magnitude, 1 << last)
    if nearest and (2 * rest, whole % 2) > (1 << last, 0):
        whole += 1
    if whole == 2 << layout.fraction:
        whole, last = whole // 2, last + 1
    if whole == 0:
        return 0
    biased = last - lowest + 1 if whole >> layout.fraction else 0
    code = min((biased << layout.fraction) + whole % (1 << layout.fraction), layout.top << layout.fraction)
    return code | (layout.sign if total < 0 else 0)


def modelled_product(a: Array, b: Array, c: Array, operand: str, result: str) -> Array:
    """Codes for a (P, M, K), b (P, N, K), c (P, M, N) of codes."""

    def numbers(codes: Array, name: str) -> Any:
        return [[[read(x, LAYOUTS[name]) for x in row] for row in matrix] for matrix in codes.tolist()]

    groups = zip(numbers(a, operand), numbers(b, operand), numbers(c, result), strict=True)
    codes = [
        [
            [modelled(row, column, c_rows[i][j], result) for j, column in enumerate(b_rows)]
            for i, row in enumerate(a_rows)
        ]
        for a_rows, b_rows, c_rows in groups
    ]
    return np.array(codes, dtype=word(result))


# Inputs -------------------------------------------------------------------------------------------------------------


def word(name: str) -> type[Any]:
    return np.uint16 if LAYOUTS[name].width == 16 else np.uint32


def with_exponents(rng: np.random.Generator, shape: tuple[int, ...], name: str, low: int, high: int) -> Array:
    """Random signs and fractions, exponents in [low, high] moved into the normal range."""
    layout = LAYOUTS[name]
    low, high = (min(max(each, 1 - layout.bias), layout.bias) for each in (low, high))
    bits = rng.integers(0, 1 << layout.width, shape, dtype=np.uint64)
    exponents = rng.integers(low, high + 1, shape) + layout.bias
    place = layout.fraction + layout.ignored
    cleared = bits & np.uint64(~(layout.infinity) & (1 << layout.width) - 1)
    return (cleared | exponents.astype(np.uint64) << np.uint64(place)).astype(word(name))


def normal(rng: np.random.Generator, shape: tuple[int, ...], name: str) -> Array:
    values = rng.standard_normal(shape).astype(np.float32)
    if name == "f16":
        return values.astype(np.float16).view(np.uint16)
    return (values.view(np.uint32) >> (16 if name == "bf16" else 0)).astype(word(name))


def spread(rng: np.random.Generator, shape: tuple[int, ...], name: str) -> Array:
    return with_exponents(rng, shape, name, -12, 12)


def every_pattern(rng: np.random.Generator, shape: tuple[int, ...], name: str) -> Array:
    return rng.integers(0, 1 << LAYOUTS[name].width, shape, dtype=np.uint64).astype(word(name))


def specials(rng: np.random.Generator, shape: tuple[int, ...], name: str) -> Array:
    layout = LAYOUTS[name]
    unit = layout.stored(1)
    magnitudes = [0, unit, layout.infinity, layout.infinity - unit, layout.infinity + unit, layout.sign - 1]
    chosen = np.array([x | sign for x in magnitudes for sign in (0, layout.sign)], dtype=np.uint64)
    codes = np.where(rng.random(shape) < 0.05, chosen[rng.integers(0, len(chosen), shape)], normal(rng, shape, name))
    return codes.astype(word(name))


def subnormal(rng: np.random.Generator, shape: tuple[int, ...], name: str) -> Array:
    layout = LAYOUTS[name]
    tiny = every_pattern(rng, shape, name) & word(name)(layout.sign | layout.stored((1 << layout.fraction) - 1))
    other = spread(rng, shape, name)
    return np.where(rng.random(shape) < 0.7, tiny, other).astype(word(name))


def lowest(rng: np.random.Generator, shape: tuple[int, ...], name: str) -> Array:
    """Exponents whose products come near 2**-133, E's lower end, or lie far below it."""
    return with_exponents(rng, shape, name, -86, -56)


def zeros_beside_large(rng: np.random.Generator, shape: tuple[int, ...], name: str) -> Array:
    large = with_exponents(rng, shape, name, LAYOUTS[name].bias - 27, LAYOUTS[name].bias)
    small = with_exponents(rng, shape, name, -8, 2)
    codes = np.where(np.arange(shape[-1]) % 3 == 0, large, small)
    return codes.astype(word(name))


def zero_where_large(rng: np.random.Generator, shape: tuple[int, ...], name: str) -> Array:
    """The other factor of `zeros_beside_large`."""
    codes = with_exponents(rng, shape, name, -8, 2)
    codes[..., ::3] &= word(name)(LAYOUTS[name].sign)
    return codes


Maker = Callable[[np.random.Generator, tuple[int, ...], str], Array]


@dataclass(frozen=True)
class Inputs:
    a: Maker
    b: Maker
    c: Maker
    cancel: bool = False  # the second half of K takes away what the first half adds, but for the last place of some


INPUTS = {
    "normal": Inputs(normal, normal, normal),
    "spread": Inputs(spread, spread, spread),
    "every pattern": Inputs(every_pattern, every_pattern, every_pattern),
    "specials": Inputs(specials, specials, specials),
    "subnormal": Inputs(subnormal, subnormal, subnormal),
    "cancelling": Inputs(spread, spread, spread, cancel=True),
    "zeros beside large factors": Inputs(zeros_beside_large, zero_where_large, normal),
    "near the lowest exponent": Inputs(lowest, lowest, subnormal),
}
FORMS = [("f16", "f32"), ("f16", "f16"), ("bf16", "f32"), ("tf32", "f32")]


def make(kind: str, operand: str, result: str, shape: tuple[int, int, int, int]) -> tuple[Array, Array, Array]:
    batch, rows, columns, depth = shape
    rng = np.random.default_rng(zlib.crc32(f"{kind} {operand} {result} {shape}".encode()))
    inputs = INPUTS[kind]
    a, b = inputs.a(rng, (batch, rows, depth), operand), inputs.b(rng, (batch, columns, depth), operand)
    c = inputs.c(rng, (batch, rows, columns), result)
    if inputs.cancel:
        half = depth // 2
        last_place = word(operand)(LAYOUTS[operand].stored(1))
        a[..., half:] = a[..., :half] ^ word(operand)(LAYOUTS[operand].sign)
        b[..., half:] = b[..., :half] ^ np.where(rng.random(b[..., :half].shape) < 0.2, last_place, word(operand)(0))
        c = np.where(rng.random(c.shape) < 0.5, c & word(result)(LAYOUTS[result].sign), c)
    return a, b, c
