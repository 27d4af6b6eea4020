"""Matrix products of float16 and bfloat16: `matmul(a, b, out=None, *, epilogue=None, operands=())`.

What is called; the kernel is in `gemm`, the choice of its tile in `products`.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from warpjit.arguments import outside_of_graphs
from warpjit.errors import ArgumentError
from warpjit.frontend.specialize import brief
from warpjit.kernel import Kernel, cpu_target
from warpjit.kernels.device import limits
from warpjit.kernels.facts import ELEMENTS, RESULTS, Facts, check_disjoint
from warpjit.kernels.gemm import Case, Tile, gemm
from warpjit.kernels.products import WIDEST, Stored, candidates, default_tile, multiples
from warpjit.kernels.tiles import TUNE, TunedTiles


@outside_of_graphs
def matmul(
    a: Any,
    b: Any,
    out: Any = None,
    *,
    epilogue: Callable[..., Any] | None = None,
    operands: tuple[Any, ...] = (),
    tile: Tile | str | None = None,
) -> Any:
    """a @ b, summed in float32 and rounded once; on CPU tensors simulated.

    a         (m, k), or (batch, m, k): float16 or bfloat16. Rows or columns are contiguous (others are copied)
    b         (k, n), or (batch, k, n), of the same type; a matrix serves every batch of the other side
    out       (m, n), or (batch, m, n): float16, bfloat16 or float32, rows contiguous; None: a new tensor of a's type.
              It must not overlap a or b
    epilogue  a function (value, row, column, *operands) in the language, inlined: what it returns is stored in place
              of the float32 sum. It may be called for existing elements only
    operands  a tuple of its further arguments: numbers and tensors. Of a batched product, one of 3 axes holds a matrix
              for each batch, which is what the epilogue gets. The kernel is compiled for their shapes
    tile      the tiles to use; None: a choice by the shape; "tune": the fastest of `candidates` on the first call of
              these shapes, which takes a minute at most, and is remembered (on CPU tensors: as None)

    Any sizes; sizes and rows that are multiples of 16 bytes are fastest. No gradient is recorded.
    Raises ArgumentError: other types or shapes, tensors on several devices, operands without an epilogue.
    """
    import torch  # noqa: PLC0415  heavy

    if not isinstance(operands, tuple):
        raise ArgumentError(f"operands: expected a tuple, (x,) for one operand, but got a {type(operands).__name__}")
    if operands and epilogue is None:
        raise ArgumentError("matmul: operands are arguments of an epilogue, but there is none")
    if not isinstance(tile, Tile | None) and tile != TUNE:
        raise ArgumentError(f'tile: expected a Tile, "tune" or None but got {brief(tile)}')
    left, right = Facts.of("a", a), Facts.of("b", b)
    fresh = out is None
    if fresh:
        out = torch.empty(_shape(left, right), dtype=a.dtype, device=a.device)
    leads = tuple([each.shape[0] if getattr(each, "ndim", 0) == 3 else None for each in operands])
    place = a.device if a.is_cuda else cpu_target()
    facts = (left, right, Facts.of("out", out), leads)
    if tile == TUNE:
        tile = _tuned(facts, place, a, b, out, operands, epilogue)
    plan = plan_of(*facts, tile, place)
    if not fresh:
        check_disjoint(out, a=a, b=b)
    plan.kernel(plan.left.of(a, plan.shape), plan.right.of(b.mT, plan.shape), out, operands, epilogue=epilogue)
    return out


TILES = TunedTiles("warpjit.kernels.matmul.matmul", Tile)


def _tuned(facts: Any, place: Any, a: Any, b: Any, out: Any, operands: Any, epilogue: Any) -> Tile:
    """The fastest tile for a call of these facts."""
    plan = plan_of(*facts, None, place)
    return TILES.tile(
        (facts, place, epilogue, tuple(map(_of_operand, operands))),
        lambda: candidates(plan.tile, plan.wide, limits(place)[1]),
        lambda tile: plan_of(*facts, tile, place).kernel,
        lambda: ((plan.left.of(a, plan.shape), plan.right.of(b.mT, plan.shape), out, operands), {"epilogue": epilogue}),
    )


def _of_operand(operand: Any) -> Any:
    return Facts.of("operands", operand) if hasattr(operand, "data_ptr") else type(operand)


@dataclass(frozen=True)
class Plan:
    """The kernel of a product, how it takes a and b, and the result's shape.

    wide  whether slices of a and b come by the widest copies
    """

    tile: Tile
    wide: bool
    kernel: Kernel
    shape: tuple[int, ...]
    left: Stored
    right: Stored


@functools.lru_cache(maxsize=4096)
def _shape(a: Facts, b: Facts) -> tuple[int, ...]:
    """Of the result. ArgumentError: no product."""
    for name, each in (("a", a), ("b", b)):
        if len(each.shape) not in (2, 3) or str(each.dtype) not in ELEMENTS:
            raise ArgumentError(
                f"{name}: expected a tensor of 2 or 3 axes of float16 or bfloat16 but got shape {tuple(each.shape)} of "
                f"{each.dtype}"
            )
    batches = {each.shape[0] for each in (a, b) if len(each.shape) == 3}
    if a.dtype != b.dtype or a.shape[-1] != b.shape[-2] or len(batches) > 1:
        raise ArgumentError(
            f"b: expected {a.dtype} of shape (…, {a.shape[-1]}, n) and a's batch but got {b.dtype} of shape "
            f"{tuple(b.shape)}, for a of shape {tuple(a.shape)}"
        )
    return (*batches, a.shape[-2], b.shape[-1])


@functools.lru_cache(maxsize=4096)
def plan_of(a: Facts, b: Facts, out: Facts, leads: tuple[int | None, ...], tile: Tile | None, place: Any) -> Plan:
    """`leads`: of the operands of the epilogue with 3 axes, the first. `place`: a CUDA device, or the CPU's target."""
    shape = _shape(a, b)
    (*batch, m, n), k = shape, a.shape[-1]
    if str(out.dtype) not in RESULTS or tuple(out.shape) != shape or (n > 1 and out.strides[-1] != 1):
        raise ArgumentError(
            f"out: expected a tensor of shape {shape} with contiguous rows, of float16, bfloat16 or float32, "
            f"but got shape {tuple(out.shape)}, strides {tuple(out.strides)} of {out.dtype}"
        )
    for position, lead in enumerate(leads):
        if batch and lead not in (None, *batch):
            raise ArgumentError(
                f"operands[{position}]: expected {batch[0]} matrices, one for each batch, but got {lead}"
            )
    out.check_apart("out")
    left = Stored.best(a.expanded(tuple(batch)))
    right = Stored.best(b.transposed.expanded(tuple(batch)))
    widths = left.facts.width, right.facts.width, out.width
    wide = widths[:2] == WIDEST
    chosen = tile or default_tile(m, n, math.prod(batch), wide, *limits(place))
    turned = (left.turned, right.turned)
    promised = multiples((m, n, k), (chosen.m, chosen.n, chosen.k), (left.turned, True, not all(turned)))
    each_batch = tuple(bool(batch) and lead is not None for lead in leads)
    case = Case(chosen, promised, turned, widths, bool(batch), each_batch)
    return Plan(chosen, wide, gemm(case), shape, left, right)
