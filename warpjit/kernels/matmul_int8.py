"""Products of int8 matrices: exact sums in int32, scaled and rounded, or as they are.

What is called; the kernel is in `gemm`, the choice of its tile in `products`.

Left out: batches; a type of 8 bits for the result.
"""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from warpjit.arguments import outside_of_graphs
from warpjit.errors import ArgumentError
from warpjit.frontend.specialize import brief
from warpjit.kernel import Kernel, cpu_target
from warpjit.kernels.device import limits
from warpjit.kernels.facts import Facts, check_disjoint
from warpjit.kernels.gemm import Case, Tile, gemm
from warpjit.kernels.products import WIDEST, Stored, default_tile, multiples

SCALED = ("torch.float16", "torch.bfloat16", "torch.float32")
RESULTS = (*SCALED, "torch.int32")
CHUNK = 16
"""Elements in the widest access."""


@outside_of_graphs
def matmul_int8(
    a: Any,
    b: Any,
    scale_a: Any = None,
    scale_b: Any = None,
    *,
    out_dtype: Any = None,
    out: Any = None,
    tile: Tile | None = None,
) -> Any:
    """a @ b of int8, the sums exact in int32, then float32(sum) * scale_a * scale_b; on CPU tensors simulated.

    a          (m, k) int8. Best with k contiguous: an operand in another order is copied first
    b          (k, n) int8. Best with k contiguous: w.T of a w of (n, k)
    scale_a    a number, or float32 of one element, (m,) or (m, 1); None: 1
    scale_b    a number, or float32 of one element, (n,) or (1, n); None: 1
    out_dtype  float16, bfloat16 or float32, rounded once more from float32; without scales also int32: the sums.
               None: int32 without scales, float32 with
    out        (m, n), rows contiguous; None: a new tensor. It must not overlap the others
    tile       the tiles to use; None: a choice by the shape

    Any sizes; rows that are multiples of 16 bytes are fastest. Sums are exact for every a and b while k < 131,072
    (2**31 / 128**2), and wrap modulo 2**32 where they do not fit int32; float32 holds those below 2**24 exactly.
    Raises ArgumentError: other types or shapes, tensors on several devices.
    """
    import torch  # noqa: PLC0415  heavy

    if not isinstance(tile, Tile | None):
        raise ArgumentError(f"tile: expected a Tile or None but got {brief(tile)}")
    if not isinstance(out_dtype, torch.dtype | None):
        raise ArgumentError(f"out_dtype: expected a torch.dtype or None but got {brief(out_dtype)}")
    left, right = Facts.of("a", a), Facts.of("b", b)
    m, n = _shape(left, right)
    fresh = out is None
    if fresh:
        plain = scale_a is None and scale_b is None
        out = torch.empty((m, n), dtype=out_dtype or (torch.int32 if plain else torch.float32), device=a.device)
    elif out_dtype not in (None, getattr(out, "dtype", None)):
        raise ArgumentError(
            f"out: expected {out_dtype}, as out_dtype says, but got {getattr(out, 'dtype', brief(out))}"
        )
    scales = _scales(scale_a, scale_b, (m, n))
    place = a.device if a.is_cuda else cpu_target()
    vectors = tuple(not isinstance(scale, float) for scale in scales)
    plan = _plan(left, right, Facts.of("out", out), vectors, tile, place)
    if not fresh:
        check_disjoint(out, a=a, b=b, scale_a=scale_a, scale_b=scale_b)
    plan.kernel(plan.left.of(a, (m, n)), plan.right.of(b.mT, (m, n)), out, scales, epilogue=plan.epilogue)
    return out


@dataclass(frozen=True)
class Plan:
    """The kernel of a product, and how it takes a and b."""

    kernel: Kernel
    left: Stored
    right: Stored
    epilogue: Callable[..., Any] | None


@functools.cache
def scaled(rows: bool, columns: bool) -> Callable[..., Any]:
    """The epilogue: whether the scale of a is a vector, and that of b; else they are numbers."""

    # Annotations would be warpjit's: it is traced.
    def epilogue(value, row, column, scale_a, scale_b):  # type: ignore[no-untyped-def]
        left = scale_a[row] if rows else scale_a
        right = scale_b[column] if columns else scale_b
        return value * left * right

    return epilogue


def _scales(scale_a: Any, scale_b: Any, shape: tuple[int, int]) -> tuple[Any, ...]:
    """The operands of an epilogue of `scaled`; none where there are no scales. Raises ArgumentError."""
    if scale_a is None and scale_b is None:
        return ()
    named = (("scale_a", scale_a, shape[0], (shape[0], 1)), ("scale_b", scale_b, shape[1], (1, shape[1])))
    return tuple(_vector(*each) for each in named)


def _vector(name: str, scale: Any, length: int, matrix: tuple[int, int]) -> Any:
    if scale is None:
        return 1.0
    if isinstance(scale, float) or (type(scale) is int and abs(scale) <= sys.float_info.max):
        return float(scale)
    if not hasattr(scale, "data_ptr"):
        raise ArgumentError(f"{name}: expected a number or a tensor but got {brief(scale)}")
    if str(scale.dtype) == "torch.float32":
        if scale.numel() == 1:
            return scale.reshape(1).expand(length)
        if tuple(scale.shape) in ((length,), matrix):
            return scale.reshape(length)
    raise ArgumentError(
        f"{name}: expected float32 of one element, of shape {(length,)} or {matrix}, but got shape "
        f"{tuple(scale.shape)} of {scale.dtype}"
    )


@functools.lru_cache(maxsize=4096)
def _shape(a: Facts, b: Facts) -> tuple[int, int]:
    """Of the result. ArgumentError: no product."""
    for name, each in (("a", a), ("b", b)):
        if len(each.shape) != 2 or str(each.dtype) != "torch.int8":
            raise ArgumentError(f"{name}: expected a matrix of int8 but got shape {tuple(each.shape)} of {each.dtype}")
    if a.shape[1] != b.shape[0]:
        raise ArgumentError(
            f"b: expected shape ({a.shape[1]}, n) but got {tuple(b.shape)}, for a of shape {tuple(a.shape)}"
        )
    return a.shape[0], b.shape[1]


@functools.lru_cache(maxsize=4096)
def _plan(a: Facts, b: Facts, out: Facts, scales: tuple[bool, ...], tile: Tile | None, place: Any) -> Plan:
    """`scales`: whether they are vectors, if there are any. `place`: a CUDA device, or the CPU's target."""
    (m, n), k = _shape(a, b), a.shape[1]
    types = SCALED if scales else RESULTS
    if str(out.dtype) not in types or tuple(out.shape) != (m, n) or (n > 1 and out.strides[-1] != 1):
        names = ", ".join(each.removeprefix("torch.") for each in types)
        raise ArgumentError(
            f"out: expected a tensor of shape {(m, n)} with contiguous rows, of one of {names}, but got shape "
            f"{tuple(out.shape)}, strides {tuple(out.strides)} of {out.dtype}"
        )
    out.check_apart("out")
    left, right = Stored.best(a, turns=False), Stored.best(b.transposed, turns=False)
    widths = left.facts.width, right.facts.width, out.width
    chosen = tile or default_tile(m, n, 1, widths[:2] == WIDEST, *limits(place))
    promised = multiples((m, n, k), (chosen.m, chosen.n, 2 * chosen.k), (False, True, True), CHUNK)
    case = Case(chosen, promised, widths=widths, operands=(False,) * len(scales), size=1)
    return Plan(gemm(case), left, right, scaled(*scales) if scales else None)
