"""Products with weights of 4 bits: `matmul(x, packed)`, `pack(weight)`, `pack_quantized(q, scales, zeros)`.

What is called; the kernel is in `w4a16_product`, the order in which weights are packed in `w4a16_pack`.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass, replace
from typing import Any

from warpjit.arguments import outside_of_graphs
from warpjit.errors import ArgumentError
from warpjit.frontend.specialize import brief
from warpjit.kernel import cpu_target
from warpjit.kernels.device import limits
from warpjit.kernels.facts import RESULTS, Facts, check_disjoint
from warpjit.kernels.w4a16_pack import PANEL, Packed, pack, pack_quantized
from warpjit.kernels.w4a16_product import Case, Tile, add_splits, product

__all__ = ["Packed", "Tile", "matmul", "pack", "pack_quantized"]


@outside_of_graphs
def matmul(x: Any, packed: Packed, *, out: Any = None, tile: Tile | None = None) -> Any:
    """x @ W.T for the weights W = packed.dequantize() of (n, k), summed in float32; on CPU tensors simulated.

    x       (…, m, k), of packed.dtype. Copied first where its rows are not contiguous and 16 bytes aligned
    packed  what `pack` and `pack_quantized` give, on x's device
    out     (…, m, n), packed: float16, bfloat16 or float32; None: a new tensor of x's type. It must not overlap x
            or packed's
    tile    the tile to use; None: a choice by the shape

    Any m; fastest up to 32 rows of x, where reading the weights takes the time. The same bits each time. No gradient
    is recorded. Raises ArgumentError: other types or shapes, tensors on several devices.
    """
    import torch  # noqa: PLC0415  heavy

    if not isinstance(packed, Packed):
        raise ArgumentError(f"packed: expected what `pack` gives but got {brief(packed)}")
    if not isinstance(tile, Tile | None):
        raise ArgumentError(f"tile: expected a Tile or None but got {tile!r}")
    given, (n, k) = Facts.of("x", x), packed.shape
    if len(given.shape) < 2 or given.shape[-1] != k or given.dtype != packed.dtype:
        raise ArgumentError(
            f"x: expected {packed.dtype} of shape (…, m, {k}) but got shape {tuple(given.shape)} of {given.dtype}"
        )
    shape = (*given.shape[:-1], n)
    fresh = out is None
    if fresh:
        out = torch.empty(shape, dtype=x.dtype, device=x.device)
    facts = Facts.of("out", out)
    if str(facts.dtype) not in RESULTS or tuple(facts.shape) != shape or not (facts.packed or 0 in shape):
        raise ArgumentError(
            f"out: expected a contiguous tensor of shape {shape}, of float16, bfloat16 or float32, but got shape "
            f"{tuple(facts.shape)}, strides {tuple(facts.strides)} of {facts.dtype}"
        )
    if not fresh:
        check_disjoint(out, x=x, packed=packed.words)
        check_disjoint(out, packed=packed.factors)
    rows = _rows(x, k)
    m = rows.shape[0]
    chosen = tile or _default(m, n, k, x.device if x.is_cuda else cpu_target())
    kernel = product(Case(chosen, packed.group, packed.half, next(each for each in (PANEL, 4, 1) if n % each == 0)))
    if chosen.splits == 1:
        kernel(rows, packed.words, packed.factors, out.view(1, m, n))
    else:
        parts = torch.empty((chosen.splits, m, n), dtype=torch.float32, device=x.device)
        kernel(rows, packed.words, packed.factors, parts)
        add_splits(parts.view(chosen.splits, m * n), out.view(m * n))
    return out


def _rows(x: Any, k: int) -> Any:
    """x as (m, k) as the kernel reads it: rows of multiples of 16 bytes."""
    import torch  # noqa: PLC0415  heavy

    rows = x.reshape(-1, k)
    if k % 8:
        return torch.nn.functional.pad(rows, (0, -k % 8))
    aligned = rows.stride(1) == 1 and (rows.shape[0] == 1 or rows.stride(0) % 8 == 0) and rows.data_ptr() % 16 == 0
    return rows if aligned else rows.clone(memory_format=torch.contiguous_format)


@functools.lru_cache(maxsize=4096)
def _default(m: int, n: int, k: int, place: Any) -> Tile:
    """`place`: a CUDA device, or the CPU's target."""
    return default_tile(m, n, k, *limits(place))


@dataclass(frozen=True)
class Choice:
    """A tile that a shape may get, and how fast a multiprocessor is with it, as a part of the largest tile's rate.

    (Measured on an H200; what counts are ratios.)
    """

    tile: Tile
    rate: float


CHOICES = (
    Choice(Tile(8, 2, 1, 8, 3), 0.22),
    Choice(Tile(16, 2, 1, 8, 2), 0.37),
    Choice(Tile(32, 2, 2, 4, 2), 0.55),
    Choice(Tile(64, 2, 2, 4, 2), 0.72),
    Choice(Tile(64, 2, 4, 2, 2), 0.9),
    Choice(Tile(64, 2, 8, 1, 2), 1.0),
)
SECOND_KERNEL, A_PART = 300 * 8192, 3
"""What `add_splits` costs to start, and for each number that it reads, in products that a multiprocessor does meanwhile
at the largest tile's rate."""


def default_tile(m: int, n: int, k: int, multiprocessors: int, shared: int) -> Tile:
    """The tile with which the multiprocessor that has most to do is done first.

    Where there are fewer CTAs than multiprocessors, several share the columns, each with two turns of its ring or more.
    """

    def split(tile: Tile) -> Tile:
        ctas = -(-m // tile.m) * -(-n // tile.n)
        return replace(tile, splits=max(1, min(multiprocessors // max(ctas, 1), k // tile.k // 2)))

    def time(choice: Choice) -> float:
        tile = split(choice.tile)
        most = -(-(-(-m // tile.m) * -(-n // tile.n) * tile.splits) // multiprocessors)
        adding = SECOND_KERNEL + A_PART * tile.splits * m * n if tile.splits > 1 else 0
        return most * tile.m * tile.n * k / tile.splits / choice.rate + adding

    return split(min((each for each in CHOICES if each.tile.shared_bytes <= shared), key=time).tile)
