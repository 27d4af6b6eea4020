"""How far results of mathematical functions are from what they should be, and the bounds that CUDA's documents state.

Bounds are written down here anew, from the CUDA C++ Programming Guide, "Mathematical Functions", and the PTX manual's
sections on single instructions: the package's own figures are compared with them.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import torch

from warpjit.ir.dtypes import DType, dtype_of
from warpjit.isa.row import Array

LEAST = 2.0**-149
"""The smallest positive float32: no relative bound is below it."""


def _erf(x: Array) -> Array:
    return torch.special.erf(torch.from_numpy(np.asarray(x, np.float64))).numpy().astype(np.longdouble)


EXACT: dict[str, Callable[[Array], Array]] = {
    "exp": np.exp,
    "exp2": np.exp2,
    "log": np.log,
    "log2": np.log2,
    "sin": np.sin,
    "cos": np.cos,
    "tanh": np.tanh,
    "erf": _erf,
    "rsqrt": lambda x: 1 / np.sqrt(x),
    "rcp": lambda x: 1 / x,
    "sqrt": np.sqrt,
    "floor": np.floor,
    "ceil": np.ceil,
    "round": np.rint,
    "trunc": np.trunc,
}
"""Over arrays of long doubles (erf: float64)."""


def exact(function: str, x: Array) -> Array:
    """The values of a function at x (any float type), as long doubles."""
    with np.errstate(all="ignore"):
        return np.asarray(EXACT[function](x.astype(np.longdouble)))


def rounded(values: Array, kind: DType) -> Array:
    """Long doubles as a float type; 16-bit ones by way of float32, where they compute."""
    with np.errstate(all="ignore"):
        return values.astype(np.float32 if kind.bits == 16 else kind.numpy).astype(kind.numpy)


def ulps(got: Array, want: Array) -> Array:
    """How many steps from float to float lie between two arrays: 0 only for the same bits, or for two NaNs.

    A NaN is infinitely far from every number, and a zero from the other zero.
    """
    kind = dtype_of(got)
    assert got.dtype == want.dtype
    steps = []
    for each in (got, want):
        bits = np.ascontiguousarray(each).view(kind.unsigned_word.numpy).astype(object)
        magnitude = bits & ((1 << kind.bits - 1) - 1)
        steps.append(np.where(bits >> (kind.bits - 1) == 1, -magnitude, magnitude))
    nan = np.isnan(got.astype(np.float64)), np.isnan(want.astype(np.float64))
    other_zero = (steps[0] == 0) & (steps[1] == 0) & (np.signbit(got) != np.signbit(want))
    apart = np.abs(steps[0] - steps[1]).astype(np.float64)
    return np.where(nan[0] & nan[1], 0.0, np.where(nan[0] | nan[1] | other_zero, np.inf, apart))


ACCURATE: dict[str, tuple[int, int]] = {
    "exp": (2, 1),
    "exp2": (2, 1),
    "log": (1, 1),
    "log2": (1, 1),
    "sin": (2, 2),
    "cos": (2, 2),
    "tanh": (2, 1),
    "erf": (2, 2),
    "rsqrt": (0, 1),
    "rcp": (0, 0),
    "floor": (0, 0),
    "ceil": (0, 0),
    "round": (0, 0),
    "trunc": (0, 0),
}
"""Largest errors in ulp: of float32 and of float64."""


def accurate(function: str, x: Array, got: Array) -> Array:
    """Where results of an accurate function are as near as they must be."""
    kind = dtype_of(x)
    single, double = ACCURATE[function]
    # A result of 16 bits is rounded from a float32 that may lie on the other side of a middle.
    allowed = double if kind.bits == 64 else single if kind.bits == 32 else min(single, 1)
    if function == "erf" and kind.bits == 64:
        allowed += 1  # what the reference is known to
    return np.asarray(ulps(got, rounded(exact(function, x), kind)) <= allowed)


def _apart(got: Array, want: Array, bound: Array | float) -> Array:
    """Where float32 results are within `bound` of finite values, and equal to the others."""
    narrow = rounded(want, dtype_of(got))
    with np.errstate(invalid="ignore"):
        near = np.abs(got.astype(np.longdouble) - want) <= bound + LEAST
    return np.where(np.isfinite(narrow) & np.isfinite(got) & (want != 0), near, ulps(got, narrow) == 0)


def _relative(bits: float) -> Callable[[Array, Array, Array], Array]:
    return lambda x, got, want: _apart(got, want, np.abs(want) * 2.0**-bits)


def _in_ulp(most: Callable[[Array], Array | float]) -> Callable[[Array, Array, Array], Array]:
    def holds(x: Array, got: Array, want: Array) -> Array:
        with np.errstate(invalid="ignore"):
            return ulps(got, rounded(want, dtype_of(got))) <= most(x)

    return holds


def _angle(x: Array, got: Array, want: Array) -> Array:
    with np.errstate(invalid="ignore"):
        turns = np.abs(x.astype(np.float64)) / (2 * np.pi)
    bound = np.where(turns <= 1, 2.0**-20.5, np.where(turns <= 50, 2.0**-14.7, 2.0))
    return _apart(got, want, bound)


def _near_one(absolute: float, ends: bool, beyond: Callable[[Array, Array, Array], Array]):
    """An absolute bound of 2**-absolute between 0.5 and 2 (with or without these), another bound elsewhere."""

    def holds(x: Array, got: Array, want: Array) -> Array:
        inside = (x >= 0.5) & (x <= 2) if ends else (x > 0.5) & (x < 2)
        return np.where(inside, _apart(got, want, 2.0**-absolute), beyond(x, got, want))

    return holds


FAST: dict[str, Callable[[Array, Array, Array], Array]] = {
    "exp2": _in_ulp(lambda x: 2),
    "exp": _in_ulp(lambda x: 2 + np.floor(1.173 * np.abs(np.where(np.isfinite(x), x, 0).astype(np.float64)))),
    "log2": _near_one(22, False, _relative(22)),
    "log": _near_one(21.41, True, _in_ulp(lambda x: 3)),
    "sin": _angle,
    "cos": _angle,
    "tanh": _relative(11),
    "rcp": _in_ulp(lambda x: 1),
    "rsqrt": _relative(22.9),
    "sqrt": _relative(23),
}
"""Of float32: where results are within the bound, from arguments, results and exact values."""


def fast(function: str, x: Array, got: Array) -> Array:
    """Where float32 results of a fast function are as near as they must be."""
    return np.asarray(FAST[function](x, got, exact(function, x)))


def arguments(kind: DType, count: int, seed: int = 0) -> Array:
    """`count` values: special ones, where functions turn, overflow or meet a half; random bits; middling ones."""
    rng = np.random.default_rng(seed)
    ends = np.array(
        [0.0, 1.0, 2.0, 3.0, 0.1, 100.0, 255.0, 65504.0, 3e38, 2.0**31, 2.0**63, 1e-30, 6e-8, np.inf, np.nan]
    )
    tiny = 2.0 ** -np.array([1074, 1022, 149, 140, 133, 126, 24, 14])
    turning = np.array([0.5, 1.5, 2.5, 0.49999997, np.pi, np.pi / 2, 2 * np.pi, 314.0, 88.72, 88.73, 103.9, 104.0])
    powers = np.array([126.0, 127.0, 127.99, 128.0, 149.0, 150.0, 2.0**22 + 0.5, 2.0**23 - 0.5, 9.01, 3.9])
    special = np.concatenate([ends, tiny, turning, powers])
    with np.errstate(all="ignore"):
        special = np.concatenate([special, -special]).astype(kind.numpy)
        middling = (rng.standard_normal(count) * 2.0 ** rng.integers(-12, 8, count)).astype(kind.numpy)
    bits = rng.integers(0, 2**64, count, dtype=np.uint64) >> np.uint64(64 - kind.bits)
    wild = bits.astype(kind.unsigned_word.numpy).view(kind.numpy)
    rest = np.where(rng.integers(0, 3, count) == 0, wild, middling)
    return np.concatenate([special, rest])[:count]
