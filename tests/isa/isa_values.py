"""Inputs for tests of scalar rows: extremes of each type, and random values."""

from __future__ import annotations

import numpy as np

from warpjit.ir.dtypes import DType
from warpjit.isa.row import Array

_ODD_FLOATS = (
    0.0,
    1.0,
    1.5,
    2.5,
    3.0,
    0.1,
    100.0,
    127.0,
    255.0,
    65504.0,
    2.0**31,
    2.0**63,
    1e-30,
    6e-8,
    np.inf,
    np.nan,
)


def extremes(dtype: DType) -> Array:
    """Every value that is likely to be got wrong."""
    if dtype.is_bool:
        return np.array([False, True])
    if dtype.is_float:
        with np.errstate(over="ignore"):
            return np.array([sign * value for value in _ODD_FLOATS for sign in (1.0, -1.0)]).astype(dtype.numpy)
    near = [0, 1, 2, 3, 5, 7, 31, 32, 63, 64, dtype.max, dtype.max - 1, dtype.max // 2, dtype.max // 3]
    both = [sign * each for each in near for sign in (1, -1)] if dtype.signed else near
    return np.array([*both, dtype.min], object).astype(dtype.numpy)


def values(dtype: DType, count: int, seed: int) -> Array:
    """`count` values: small ones, random bits, and `extremes` in random places."""
    rng = np.random.default_rng(seed)
    bits = rng.integers(0, 2**64, count, dtype=np.uint64)
    if dtype.is_bool:
        return (bits & np.uint64(1)).astype(np.bool_)
    words = (bits >> np.uint64(64 - dtype.bits)).astype(dtype.unsigned_word.numpy).view(dtype.numpy)
    small = rng.integers(-100 if dtype.signed else 0, 100, count).astype(dtype.numpy)
    choice = rng.integers(0, 3, count)
    return np.asarray(np.where(choice == 0, words, np.where(choice == 1, small, rng.choice(extremes(dtype), count))))


def same(got: Array, want: Array) -> Array:
    """Where two arrays agree: bit by bit, except that one NaN is as good as another."""
    assert got.dtype == want.dtype, (got.dtype, want.dtype)
    if got.dtype == np.bool_:
        return np.asarray(got == want)
    word = np.dtype(f"u{got.dtype.itemsize}")
    equal = np.ascontiguousarray(got).view(word) == np.ascontiguousarray(want).view(word)
    if got.dtype.kind not in "fV":
        return np.asarray(equal)
    with np.errstate(invalid="ignore"):
        return np.asarray(equal | (np.isnan(got) & np.isnan(want)))
