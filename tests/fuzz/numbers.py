"""One number of the language, computed by Python: `Number`, and the functions on numbers.

Integers are Python's, wrapped at their width; float32 and float64 are numpy's scalars; the 16-bit floats compute in
float32 and are rounded once an operation; conversions and fma are rounded from the exact value. What a literal becomes
depends on its neighbour, and that of a name bound to a literal on whether a loop carries it: such a name is `loose`
(an int32, or a static number), and meets only types with which both readings agree. What is not defined, or not the
same in both readings, raises `Invalid`.
"""

from __future__ import annotations

import functools
import math
import operator
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np

from .types import BITS, DIGITS, FLOATS, INTS, LARGEST, LOWEST, SIGNED, greatest, least, promoted

Operation = Callable[[Any, Any], Any]
LOOSE = "loose"
LITERAL, REAL = "literal", "real"
"""A static int, and a static float, that stand in an expression: Python's own numbers between two operations."""


class Invalid(Exception):
    """The program is not well defined, or leaves what this comparison covers."""


class Number:
    """A value and its type: int for integers, bool, float64, else numpy's float32 (of 16-bit floats as well)."""

    __slots__ = ("type", "value")

    def __init__(self, value: Any, type: str):
        self.value, self.type = value, type

    def __repr__(self) -> str:
        return f"{self.type}({self.value})"

    def __bool__(self) -> bool:
        return bool(self.value != 0)

    def __index__(self) -> int:
        if self.type in FLOATS or self.type == "bool":
            raise Invalid(f"an index that is a {self.type}")
        return int(self.value)

    def __pow__(self, exponent: Any) -> Number:
        result = self
        for _ in range(operator.index(exponent) - 1):
            result = result * self
        return result

    def __neg__(self) -> Number:
        if self.type in FLOATS:
            return Number(-self.value, self.type)
        number = _unbool(self)
        return Number(wrapped(-number.value, number.type), number.type)

    def __invert__(self) -> Number:
        number = _unbool(self)
        if number.type in FLOATS:
            raise Invalid("the bits of a float")
        return Number(wrapped(~number.value, number.type), number.type)

    def __abs__(self) -> Number:
        if self.type in FLOATS:
            return Number(abs(self.value), self.type)
        number = _unbool(self)
        return Number(wrapped(abs(number.value), number.type), number.type)


# ---- types meet ----------------------------------------------------------------------------------------


def lifted(x: Any) -> Number:
    """A number, or a static one in the type `literal`, `real` or bool."""
    if isinstance(x, Number):
        return x
    if isinstance(x, bool):
        return Number(x, "bool")
    if isinstance(x, int):
        return Number(x, LITERAL)
    if isinstance(x, float):
        return Number(x, REAL)
    raise Invalid(f"not a number: {x!r}")


def _unbool(x: Number) -> Number:
    return Number(int(x.value), "int32") if x.type == "bool" else x


def meet(a: Number, b: Number) -> tuple[str, Any, Any]:
    """The type in which two numbers meet, and their values in it."""
    if a.type == b.type:
        if a.type == LITERAL or a.type == REAL:
            raise Invalid("two static numbers")
        return a.type, a.value, b.value
    for one, other, back in ((a, b, False), (b, a, True)):
        if one.type in (LITERAL, REAL, LOOSE):
            kind = _beside_static(one, other)
            x, y = cast(one, kind, literal=True).value, cast(other, kind).value
            return (kind, y, x) if back else (kind, x, y)
    kind = promoted(a.type, b.type) or ""
    if not kind:
        raise Invalid(f"{a.type} with {b.type}")
    return kind, cast(a, kind).value, cast(b, kind).value


def _beside_static(static: Number, other: Number) -> str:
    """The type of a static number, or a loose one, beside another."""
    if other.type in (LITERAL, REAL, LOOSE):
        if REAL in (static.type, other.type):
            raise Invalid("a static float beside a static int")
        return LOOSE
    if static.type == LOOSE and other.type not in ("int32", "int64", "bool", *FLOATS):
        raise Invalid(f"{other.type} with an int32 that may be static")
    if other.type in FLOATS:
        return other.type
    if static.type == REAL:
        return "float32"
    return "int32" if other.type == "bool" else other.type


def wrapped(value: int, kind: str) -> int:
    if kind in (LOOSE, LITERAL):
        if not -(2**31) <= value < 2**31:
            raise Invalid("an int32 that may be static overflows")
        return value
    bits = BITS[kind]
    value &= (1 << bits) - 1
    return value - (1 << bits) if kind in SIGNED and value >> bits - 1 else value


# ---- rounding and conversion ---------------------------------------------------------------------------


def rounded(value: Any, kind: str) -> Any:
    """A float32 result in the type that it is of."""
    if kind == "float16":
        return np.float32(np.float16(value))
    if kind == "bfloat16":
        if np.isnan(value):
            return value
        word = int(np.float32(value).view(np.uint32))
        word += 0x7FFF + (word >> 16 & 1)
        return np.uint32(word & 0xFFFF0000).view(np.float32)
    return value


WHOLE: dict[str, Callable[[Any], int]] = {"nearest": round, "zero": math.trunc, "down": math.floor, "up": math.ceil}
"""A Fraction or float as an integer, by the directions of `T.cast`."""


def rounded_exactly(value: Fraction, kind: str, rounding: str = "nearest") -> Any:
    """A number that is not 0, once, to nearest even or as said."""
    magnitude = abs(value)
    exponent = magnitude.numerator.bit_length() - magnitude.denominator.bit_length()
    if Fraction(2) ** exponent > magnitude:
        exponent -= 1
    place = max(exponent - DIGITS[kind] + 1, LOWEST[kind])
    whole = abs(WHOLE[rounding](value / Fraction(2) ** place))
    try:
        result = math.ldexp(whole, place)
    except OverflowError:
        result = math.inf
    if result > LARGEST.get(kind, math.inf):
        inward = rounding == "zero" or rounding == ("up" if value < 0 else "down")
        result = LARGEST[kind] if inward else math.inf
    result = -result if value < 0 else result
    return np.float64(result) if kind == "float64" else np.float32(result)


def cast(x: Any, kind: str, literal: bool = False) -> Number:
    """A number in another type, as the device converts it; a literal must fit."""
    number = lifted(x)
    if number.type == kind:
        return number
    if kind == "bool":
        return Number(bool(number.value != 0), kind)
    if number.type in FLOATS or number.type == REAL:
        if kind in FLOATS:
            return Number(_float_as_float(number.value, kind), kind)
        if number.type == REAL:
            raise Invalid("a static float as an integer")
        return Number(_float_as_int(number, kind), kind)
    value = int(number.value)
    if kind in FLOATS:
        zero = np.float64(0) if kind == "float64" else np.float32(0)
        return Number(rounded_exactly(Fraction(value), kind) if value else zero, kind)
    if number.type in (LITERAL, LOOSE) and kind in INTS and not least(kind) <= value <= greatest(kind):
        if literal or number.type == LITERAL or kind != "int32":
            raise Invalid(f"{value} does not fit {kind}")
    return Number(value if kind == LOOSE else wrapped(value, kind), kind)


def cast_as_said(x: Any, kind: str, rounding: str, saturate: bool | None) -> Number:
    """`T.cast` with a direction, or with or without saturation."""
    number = lifted(x)
    if number.type not in (*INTS, *FLOATS) or kind == "bool":
        raise Invalid("a conversion of a literal, or of bools")
    if kind in INTS:
        if number.type in INTS:
            held = min(max(number.value, least(kind)), greatest(kind))
            return Number(held if saturate else wrapped(number.value, kind), kind)
        if np.isfinite(number.value):
            number = Number(np.float64(WHOLE[rounding or "zero"](float(number.value))), number.type)
        return Number(_float_as_int(number, kind), kind)
    value = float(number.value) if number.type in FLOATS else number.value
    if isinstance(value, int) or (math.isfinite(value) and value != 0):
        zero = np.float64(0) if kind == "float64" else np.float32(0)
        result = rounded_exactly(Fraction(value), kind, rounding or "nearest") if value else zero
    else:
        result = np.float64(value) if kind == "float64" else np.float32(value)
    if saturate and np.isinf(result):
        largest = LARGEST.get(kind, float(np.finfo(np.float64).max))
        result = type(result)(largest if result > 0 else -largest)
    return Number(result, kind)


def _float_as_float(value: Any, kind: str) -> Any:
    wide = np.float64(value)
    if kind == "float64":
        return wide
    if kind == "float32":
        return np.float32(wide)
    if kind == "float16":
        return np.float32(np.float16(wide))
    return rounded_exactly(Fraction(float(wide)), kind) if np.isfinite(wide) and wide != 0 else np.float32(wide)


def _float_as_int(number: Number, kind: str) -> int:
    value = float(number.value)
    if math.isnan(value):
        if BITS[kind] < 64 and number.type != "float64":
            return 0
        return least(kind) or 1 << BITS[kind] - 1
    if math.isinf(value):
        return greatest(kind) if value > 0 else least(kind)
    return min(max(math.trunc(value), least(kind)), greatest(kind))


# ---- operators -----------------------------------------------------------------------------------------


def _divides(function: Operation) -> Operation:
    def run(a: int, b: int) -> int:
        if b == 0:
            raise Invalid("division by zero")
        return int(function(a, b))

    return run


def _float_mod(a: Any, b: Any) -> Any:
    rest = np.fmod(a, b)
    if rest != 0 and (rest < 0) != (b < 0):
        return rest + b
    return np.copysign(rest, b) if rest == 0 else rest


def _float_floordiv(a: Any, b: Any) -> Any:
    if b == 0:
        return a / b
    rest = np.fmod(a, b)
    near = (a - rest) / b
    if rest != 0 and (rest < 0) != (b < 0):
        near = near - type(near)(1)
    if near == 0:
        return np.copysign(type(near)(0), a / b)
    low = np.floor(near)
    return low + type(near)(1) if near - low > 0.5 else low


INTEGER: dict[str, Operation] = {
    **{name: getattr(operator, name) for name in ("add", "sub", "mul", "xor")},
    "and": operator.and_,
    "or": operator.or_,
    "floordiv": _divides(operator.floordiv),
    "mod": _divides(operator.mod),
}
FLOAT: dict[str, Operation] = {
    **{name: getattr(operator, name) for name in ("add", "sub", "mul", "truediv")},
    "floordiv": _float_floordiv,
    "mod": _float_mod,
}


def binary(name: str, a: Any, b: Any) -> Number:
    left, right = lifted(a), lifted(b)
    if left.type == right.type == "bool" and name in ("and", "or", "xor"):
        return Number(INTEGER[name](left.value, right.value), "bool")
    if left.type == "bool" and right.type == "bool":
        left, right = _unbool(left), _unbool(right)
    kind, x, y = meet(left, right)
    if name == "truediv" and kind not in FLOATS:
        kind, x, y = "float32", *(cast(Number(each, kind), "float32").value for each in (x, y))
    if kind in FLOATS:
        if name not in FLOAT:
            raise Invalid("the bits of a float")
        return Number(rounded(FLOAT[name](x, y), kind), kind)
    return Number(wrapped(INTEGER[name](x, y), kind), kind)


def shift(name: str, a: Any, b: Any) -> Number:
    left, count = _unbool(lifted(a)), operator.index(_unbool(lifted(b)))
    if left.type in (LITERAL, LOOSE):
        left = cast(left, "int32")
    if left.type not in INTS or count < 0:
        raise Invalid("a shift of a float, or by less than 0")
    bits = BITS[left.type]
    if name == "lshift":
        return Number(wrapped(left.value << min(count, bits), left.type), left.type)
    return Number(left.value >> min(count, bits), left.type)


def compared(name: str, a: Any, b: Any) -> Number:
    left, right = lifted(a), lifted(b)
    _, x, y = meet(left, right)
    return Number(bool(getattr(operator, name)(x, y)), "bool")


def _install(name: str, function: Callable[[str, Any, Any], Number], reflected: bool) -> None:
    setattr(Number, f"__{name}__", lambda self, other: function(name, self, other))
    if reflected:
        setattr(Number, f"__r{name}__", lambda self, other: function(name, other, self))


for _name in ("add", "sub", "mul", "truediv", "floordiv", "mod", "and", "or", "xor"):
    _install(_name, binary, True)
for _name in ("lshift", "rshift"):
    _install(_name, shift, True)
for _name in ("lt", "le", "eq", "ne", "gt", "ge"):
    _install(_name, compared, False)


# ---- functions -----------------------------------------------------------------------------------------


def extreme(least_one: bool, a: Any, b: Any) -> Number:
    """The smaller or the larger: a NaN loses, and -0 is below +0."""
    if not isinstance(a, Number) and not isinstance(b, Number):
        raise Invalid("two static numbers")
    left, right = lifted(a), lifted(b)
    if left.type == right.type == "bool":
        left, right = _unbool(left), _unbool(right)
    kind, x, y = meet(left, right)
    if kind in FLOATS and (x != x or y != y):
        return Number(y if x != x else x, kind)
    if x == y and kind in FLOATS:
        first = bool(np.signbit(x))
        return Number(x if first == least_one else y, kind)
    return Number(x if (x < y) == least_one else y, kind)


def extreme_or_nan(least_one: bool, a: Any, b: Any) -> Number:
    """A NaN where one is."""
    kind, x, y = meet(lifted(a), lifted(b))
    if kind in FLOATS and (x != x or y != y):
        return Number(x if x != x else y, kind)
    return extreme(least_one, a, b)


def _of_all(least_one: bool) -> Callable[..., Any]:
    def run(*values: Any, nan: bool = False) -> Any:
        items = list(values[0]) if len(values) == 1 else list(values)
        if all(isinstance(item, int) for item in items):
            return min(items) if least_one else max(items)
        step = extreme_or_nan if nan else extreme
        return functools.reduce(functools.partial(step, least_one), items)

    return run


least_of, greatest_of = _of_all(True), _of_all(False)


def fma(a: Any, b: Any, c: Any) -> Number:
    numbers = [lifted(each) for each in (a, b, c)]
    kind = ""
    for number in numbers:
        if number.type not in (LITERAL, REAL, LOOSE):
            kind = (promoted(kind, number.type) or "") if kind else number.type
    if kind not in FLOATS:
        raise Invalid("fma of integers")
    x, y, z = (cast(number, kind).value for number in numbers)
    if not (np.isfinite(x) and np.isfinite(y) and np.isfinite(z)):
        return Number(z if np.isfinite(x) and np.isfinite(y) else rounded(x * y + z, kind), kind)
    exact = Fraction(float(x)) * Fraction(float(y)) + Fraction(float(z))
    if exact:
        return Number(rounded_exactly(exact, kind), kind)
    of_zeros = x * y + z if x == 0 or y == 0 else type(x)(0)
    return Number(of_zeros, kind)


def of_float(function: Callable[[Any], Any]) -> Callable[[Any], Number]:
    """A function of one float, rounded once."""

    def run(a: Any) -> Number:
        number = lifted(a)
        if number.type not in FLOATS:
            raise Invalid("not a float")
        return Number(rounded(function(number.value), number.type), number.type)

    return run


sqrt, rcp = of_float(np.sqrt), of_float(lambda x: type(x)(1) / x)
floor, ceil, trunc, nearest = (of_float(each) for each in (np.floor, np.ceil, np.trunc, np.rint))
