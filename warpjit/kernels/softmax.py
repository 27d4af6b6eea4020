"""Softmax along rows: `softmax(x, dim=-1)`."""

# A tensor's annotation is a call, and what a helper takes is known when it is traced.
# mypy: disable-error-code="valid-type, no-untyped-def, no-untyped-call, assignment"

from __future__ import annotations

import functools
import math
from typing import Any

from warpjit.arguments import outside_of_graphs
from warpjit.decorator import warpjit
from warpjit.errors import ArgumentError
from warpjit.frontend import language as T
from warpjit.kernel import Kernel
from warpjit.kernels import rows

LOG2E = math.log2(math.e)


@outside_of_graphs
def softmax(x: Any, dim: int = -1, *, out: Any = None) -> Any:
    """exp(x) / sum(exp(x)) along an axis; on CPU tensors simulated.

    x    any shape with at least one axis: float16, bfloat16, float32 or float64. Fastest where `dim` is contiguous and
         16 bytes divide its vectors and the distances between them
    dim  the axis
    out  a tensor of the shape and type of x, which may be x itself; None: a new one. It must not overlap x otherwise

    float16 to float32 are computed in float32, float64 in its own. Of each element the error is at most
    u |ref| + (|x - peak| + n / 32 + 32) 2^-23 |ref| + s, with u half a step of the type (relative), peak the largest of
    the n elements, and s the type's smallest number. A vector with a NaN or +inf, or of -inf only, becomes NaN,
    as torch's.
    No gradient is recorded. Raises ArgumentError: no floats, no such axis, another shape or type of `out`.
    """
    rows.checked("x", x)
    if type(dim) is not int or not -x.ndim <= dim < x.ndim:
        raise ArgumentError(f"dim: expected an axis of shape {tuple(x.shape)} but got {dim!r}")
    if dim in (-1, x.ndim - 1):
        return rows.run(kernel, x, out)
    result = rows.run(kernel, x.movedim(dim, -1), None if out is None else rows.checked("out", out, x).movedim(dim, -1))
    return result.movedim(-1, dim) if out is None else out


@functools.cache
def kernel(case: rows.Case) -> Kernel:
    """Y = exp(X - peak) / sum(exp(X - peak)) of each row, peak its largest element."""
    M, N = T.dynamic("rows"), T.dynamic("columns", multiple_of=case.items)

    @warpjit
    def softmax(X: T.Tensor((M, N)), Y: T.Tensor((M, N))):
        T.device_entry(launch=T.cuda.LaunchConfig(grid=T.cdiv(M, case.rows), block=case.block))
        row, first, scratch = rows.start(case, X)
        held = rows.hold(case, X, row, first)
        exp2 = T.exp2 if X.dtype == T.float64 else T.approx.exp2

        peak = rows.fold(case, X, row, first, held, -math.inf, T.max)
        peak = rows.reduce(case, peak, scratch, T.cuda.warp_max, T.cuda.cta_max)

        def power(x):
            return exp2((x - peak) * LOG2E)

        # What is held becomes its powers; what is read again, again.
        rows.replace(case, held, power)
        once = (lambda x: x) if held else power
        total = rows.fold(case, X, row, first, held, 0.0, lambda total, x: total + once(x))
        inverse = 1.0 / rows.reduce(case, total, scratch, T.cuda.warp_sum, T.cuda.cta_sum)

        def result(piece, i):
            for j in T.unroll(case.items):
                piece[j] = once(piece[j]) * inverse
            return piece

        rows.store(case, X, Y, row, first, held, result)

    return softmax
