"""Layer normalisation of rows: `layernorm(x, weight, bias, eps=...)`."""

# A tensor's annotation is a call, and what a helper takes is known when it is traced.
# mypy: disable-error-code="valid-type, no-untyped-def, no-untyped-call, assignment"

from __future__ import annotations

import functools
from typing import Any

from warpjit.arguments import outside_of_graphs
from warpjit.decorator import warpjit
from warpjit.frontend import language as T
from warpjit.kernel import Kernel
from warpjit.kernels import rows


@outside_of_graphs
def layernorm(x: Any, weight: Any = None, bias: Any = None, eps: float = 1e-5, *, out: Any = None) -> Any:
    """(x - mean) / sqrt(variance + eps) * weight + bias along the last axis; on CPU tensors simulated.

    x       (..., n): float16, bfloat16, float32 or float64. Fastest where 16 bytes divide rows and their distances
    weight  (n,), of any of these types; None: 1
    bias    (n,), of any of these types; None: 0
    eps     is added to the mean of (x - mean)^2
    out     a tensor of the shape and type of x, which may be x itself; None: a new one. It must not overlap x
            otherwise, weight or bias

    float16 to float32 are computed in float32, float64 in its own; the variance from differences to the mean. With u
    half a step of the type (relative), the error of an element is at most
    u |ref| + (n / 64 + 16) 2^-24 (max|x| / sqrt(variance + eps) |weight| (1 + |normal|) + |bias|), where normal is the
    element before `weight` (float64: 2^-53 for 2^-24). A NaN spreads over its row.
    No gradient is recorded. Raises ArgumentError: no floats, another shape of `weight` or `bias`, of another shape or
    type `out`.
    """
    rows.checked("x", x)
    more = {"weight": rows.vector("weight", weight, x), "bias": rows.vector("bias", bias, x)}
    return rows.run(kernel, x, out, rows.number("eps", eps), **more)


@functools.cache
def kernel(case: rows.Case) -> Kernel:
    """Y = (X - mean) / sqrt(variance + eps) * weight + bias of each row."""
    M, N = T.dynamic("rows"), T.dynamic("columns", multiple_of=case.items)

    @warpjit
    def layernorm(
        X: T.Tensor((M, N)), weight: T.Tensor((N,)), bias: T.Tensor((N,)), eps: T.float64, Y: T.Tensor((M, N))
    ):
        T.device_entry(launch=T.cuda.LaunchConfig(grid=T.cdiv(M, case.rows), block=case.block))
        row, first, scratch = rows.start(case, X)
        kind = rows.compute_type(X.dtype)
        held = rows.hold(case, X, row, first)

        total = rows.fold(case, X, row, first, held, 0.0, lambda total, x: total + x)
        mean = rows.reduce(case, total, scratch, T.cuda.warp_sum, T.cuda.cta_sum) / kind(N)
        squares = rows.fold(case, X, row, first, held, 0.0, lambda total, x: total + (x - mean) * (x - mean))
        variance = rows.reduce(case, squares, scratch, T.cuda.warp_sum, T.cuda.cta_sum) / kind(N)
        scale = T.rsqrt(variance + kind(eps))

        def result(piece, i):
            factor, shift = rows.load_vector(case, weight, i, X), rows.load_vector(case, bias, i, X)
            for j in T.unroll(case.items):
                y = (piece[j] - mean) * scale
                y = y if weight is None else y * factor[j]
                piece[j] = y if bias is None else y + shift[j]
            return piece

        rows.store(case, X, Y, row, first, held, result)

    return layernorm
