"""Products of elements of 8, 6 and 4 bits, with and without scales for blocks of k, as `mma.sync` of sm_120 has them.

None of this was compared with a device. The manual defines the numbers (section "Alternate Floating-Point Data
Formats") and the sum of scaled products (section "Block Scaling for mma.sync"); how sums are rounded it leaves open.
Here they are one sum by the rule that `matrix_numerics` measured for other types on sm_90: each term is cut to a
multiple of 2**(E - 25), E the largest exponent, a float32 result is cut toward zero, float16 goes to nearest even.

Codes of 8-bit containers: e4m3 and e5m2 fill them, e3m2 and e2m3 stand in the low 6 bits, e2m1 in bits 2 to 5. Without
containers (4 bits each) e2m1 fills its own. Scales: ue8m0 is 2**(code - 127), 255 NaN; ue4m3 is e4m3 without its sign.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from warpjit.ir.dtypes import DType, float8_e4m3fn, float8_e5m2, float16
from warpjit.ir.matrix_numerics import KEPT_FRACTION_BITS, LOWEST_SUM_EXPONENT, mma_fast, mma_sum
from warpjit.ir.nans import canonical_nan
from warpjit.ir.rounding import float64_to_float32_toward_zero

Array = np.ndarray[Any, Any]


def _small(exponent_bits: int, fraction_bits: int) -> Array:
    """The numbers of every code of a float without infinities and NaN."""
    codes = np.arange(1 << 1 + exponent_bits + fraction_bits)
    field = codes >> fraction_bits & (1 << exponent_bits) - 1
    fraction = codes & (1 << fraction_bits) - 1
    significand = np.where(field > 0, fraction + (1 << fraction_bits), fraction)
    bias = (1 << exponent_bits - 1) - 1
    values: Array = np.ldexp(significand.astype(np.float64), np.maximum(field, 1) - bias - fraction_bits)
    values[len(values) // 2 :] *= -1
    return values


def _wide(kind: DType) -> Array:
    with np.errstate(all="ignore"):
        return np.arange(256, dtype=np.uint8).view(kind.numpy).astype(np.float64)


NIBBLES: Array = _small(2, 1)
"""float64 (16): e2m1."""
_BYTES = np.arange(256)
CONTAINERS: dict[str, Array] = {
    "e4m3": _wide(float8_e4m3fn),
    "e5m2": _wide(float8_e5m2),
    "e3m2": _small(3, 2)[_BYTES & 63],
    "e2m3": _small(2, 3)[_BYTES & 63],
    "e2m1": NIBBLES[_BYTES >> 2 & 15],
}
"""float64 (256): the number in a byte, by the type's name in PTX."""
SCALES: dict[str, Array] = {
    "ue8m0": np.where(_BYTES == 255, np.nan, np.ldexp(1.0, np.minimum(_BYTES, 254) - 127)),
    "ue4m3": CONTAINERS["e4m3"][_BYTES & 127],
}
"""float64 (256): the scale of a code, by the type's name in PTX."""


def container_sum(a: Array, b: Array, c: Array, left: str, right: str, result: DType, fast: bool = False) -> Array:
    """d = a @ b.T + c without scales: a (*batch, M, K) and b (*batch, N, K) bytes, c and d (*batch, M, N) of `result`.

    Every one of these numbers is a float16, so the sum is that of float16 operands.
    """
    summed = mma_fast if fast else mma_sum
    rows, columns = (CONTAINERS[kind][codes].astype(np.float16) for codes, kind in ((a, left), (b, right)))
    return summed(rows, columns, c, float16, float16, result)


def scaled_sum(a: Array, b: Array, c: Array, fast: bool = False) -> Array:
    """d = a @ b.T + c in float32, for scaled numbers.

    a  (*batch, M, K) and b (*batch, N, K) float64: numbers times their scales; a product of two is exact
    c  (*batch, M, N) float32; batches broadcast
    """
    with np.errstate(all="ignore"):
        if fast:
            return canonical_nan((a @ np.swapaxes(b, -1, -2) + c).astype(np.float32))
        products = a[..., :, None, :] * b[..., None, :, :]
        terms = np.concatenate([products, np.broadcast_to(c, products.shape[:-1]).astype(np.float64)[..., None]], -1)
        finite = np.where(np.isfinite(terms), terms, 0.0)
        exponents = np.where(finite != 0, np.frexp(finite)[1] - 1, LOWEST_SUM_EXPONENT)
        places = KEPT_FRACTION_BITS - np.maximum(exponents.max(axis=-1), LOWEST_SUM_EXPONENT)
        exact = np.ldexp(np.trunc(np.ldexp(finite, places[..., None])).sum(axis=-1), -places)
        total = float64_to_float32_toward_zero(exact) + np.float32(0)  # -0 becomes +0
        special = terms.sum(axis=-1)
        return np.where(np.isfinite(terms).all(axis=-1), total, canonical_nan(special.astype(np.float32)))
