"""Root mean square normalisation of rows: `rmsnorm(x, weight, eps=...)`."""

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
def rmsnorm(x: Any, weight: Any = None, eps: float | None = None, *, out: Any = None) -> Any:
    """x / sqrt(mean(x * x) + eps) * weight along the last axis; on CPU tensors simulated.

    x       (..., n): float16, bfloat16, float32 or float64. Fastest where 16 bytes divide rows and their distances
    weight  (n,), of any of these types; None: 1
    eps     None: the step of 1 in x's type (`torch.finfo(x.dtype).eps`), as torch has it
    out     a tensor of the shape and type of x, which may be x itself; None: a new one. It must not overlap x
            otherwise, or weight

    float16 to float32 are computed in float32, float64 in its own. The error of an element is at most
    (u + (n / 64 + 16) 2^-24) |ref|, with u half a step of the type (relative; float64: 2^-53 for 2^-24), but for
    results that are subnormal in it. A NaN spreads over its row.
    No gradient is recorded. Raises ArgumentError: no floats, another shape of `weight`, of another shape or type `out`.
    """
    import torch  # noqa: PLC0415  heavy

    rows.checked("x", x)
    eps = torch.finfo(x.dtype).eps if eps is None else rows.number("eps", eps)
    return rows.run(kernel, x, out, eps, weight=rows.vector("weight", weight, x))


@functools.cache
def kernel(case: rows.Case) -> Kernel:
    """Y = X / sqrt(mean(X * X) + eps) * weight of each row."""
    M, N = T.dynamic("rows"), T.dynamic("columns", multiple_of=case.items)

    @warpjit
    def rmsnorm(X: T.Tensor((M, N)), weight: T.Tensor((N,)), eps: T.float64, Y: T.Tensor((M, N))):
        T.device_entry(launch=T.cuda.LaunchConfig(grid=T.cdiv(M, case.rows), block=case.block))
        row, first, scratch = rows.start(case, X)
        kind = rows.compute_type(X.dtype)
        held = rows.hold(case, X, row, first)

        squares = rows.fold(case, X, row, first, held, 0.0, lambda total, x: total + x * x)
        squares = rows.reduce(case, squares, scratch, T.cuda.warp_sum, T.cuda.cta_sum)
        scale = T.rsqrt(squares / kind(N) + kind(eps))

        def result(piece, i):
            factor = rows.load_vector(case, weight, i, X)
            for j in T.unroll(case.items):
                piece[j] = piece[j] * scale if weight is None else piece[j] * scale * factor[j]
            return piece

        rows.store(case, X, Y, row, first, held, result)

    return rmsnorm
