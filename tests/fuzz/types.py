"""The scalar types that programs use, and how two of them meet: for the generator and the oracle.

Written from the language's description, not from the package, which these check.
"""

from __future__ import annotations

from collections.abc import Iterator

BITS = {f"{sign}int{bits}": bits for sign in ("", "u") for bits in (8, 16, 32, 64)}
INTS = tuple(BITS)
SIGNED = ("int8", "int16", "int32", "int64")
WORDS = ("int32", "uint32", "int64", "uint64")
FLOATS = ("float16", "bfloat16", "float32", "float64")
DIGITS = {"float16": 11, "bfloat16": 8, "float32": 24, "float64": 53}
"""Binary digits of a significand."""
LOWEST = {"float16": -24, "bfloat16": -133, "float32": -149, "float64": -1074}
"""The exponent of the smallest number above 0."""
LARGEST = {"float16": 65504.0, "bfloat16": 255.0 * 2.0**120, "float32": (2.0**24 - 1) * 2.0**104}
ALL = (*INTS, *FLOATS, "bool")


def least(name: str) -> int:
    return -(1 << BITS[name] - 1) if name in SIGNED else 0


def greatest(name: str) -> int:
    return (1 << BITS[name] - (name in SIGNED)) - 1


def promoted(a: str, b: str) -> str | None:
    """The type in which two types meet; None where the language asks for a cast. Two bools stay one."""
    if a == b:
        return a
    if a in FLOATS and b in FLOATS:
        return "float32" if {a, b} == {"float16", "bfloat16"} else max(a, b, key=lambda name: DIGITS[name])
    for one, other in ((a, b), (b, a)):
        if one in FLOATS or other == "bool":
            return one
    if (a in SIGNED) == (b in SIGNED):
        return a if BITS[a] > BITS[b] else b
    signed, unsigned = (a, b) if a in SIGNED else (b, a)
    if unsigned != "uint8":
        return None
    return "int16" if signed == "int8" else signed


def meeting_in(name: str, among: tuple[str, ...]) -> Iterator[tuple[str, str]]:
    """The pairs of different types that meet in a type."""
    for a in among:
        for b in among:
            if a != b and promoted(a, b) == name:
                yield a, b
