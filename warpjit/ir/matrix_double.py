"""Matrix products of float64 with the bits of `mma.sync` on sm_90: a chain of fused multiply-adds in order of k.

Found on one H200, and met by 75 264 fresh results without a mismatch; the PTX manual leaves the order open. A NaN
operand comes out quiet, with its payload; which one, where several differ, was not measured: it is as `fma` has it.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from warpjit.ir.fma import fma
from warpjit.ir.nans import canonical_nan

Array = np.ndarray[Any, Any]


def double_sum(a: Array, b: Array, c: Array) -> Array:
    """d = a @ b.T + c of one instruction: a (*batch, M, K), b (*batch, N, K), c (*batch, M, N), all float64.

    Batches broadcast. Each result starts as c, and becomes a[k] * b[k] + itself, rounded once, for k = 0, 1, ...
    """
    total = c
    for k in range(a.shape[-1]):
        total = fma(a[..., :, None, k], b[..., None, :, k], total)
    return total


def double_fast(a: Array, b: Array, c: Array) -> Array:
    """As `double_sum`, in one product of the host's, which rounds otherwise; K may be of any length."""
    with np.errstate(all="ignore"):
        return canonical_nan(np.asarray(a @ b.swapaxes(-1, -2) + c))
