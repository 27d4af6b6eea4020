"""Attention of float16 and bfloat16: `attention(q, k, v, causal=False, scale=None, return_lse=False, *, out=None)`.

What is called; the kernel is in `flash`.
"""

from __future__ import annotations

import functools
import math
import sys
from dataclasses import dataclass
from typing import Any

from warpjit.arguments import outside_of_graphs
from warpjit.errors import ArgumentError
from warpjit.frontend.specialize import brief
from warpjit.kernel import Kernel, cpu_target
from warpjit.kernels.device import limits
from warpjit.kernels.facts import ELEMENTS, Facts, check_disjoint
from warpjit.kernels.flash import Case, Tile, flash
from warpjit.kernels.tiles import TUNE, TunedTiles

LOG2_E = math.log2(math.e)
WIDEST = 16
DIMS = tuple(range(16, 129, 16))
"""Head dimensions that the tiles are made for."""


@outside_of_graphs
def attention(
    q: Any,
    k: Any,
    v: Any,
    causal: bool = False,
    scale: float | None = None,
    return_lse: bool = False,
    *,
    out: Any = None,
    tile: Tile | str | None = None,
) -> Any:
    """softmax(scale · q @ k.T) @ v for each batch and head, without the scores in memory; on CPU tensors simulated.

    q           (batch, heads, m, dim): float16 or bfloat16, dim a multiple of 16 up to 128 (64 and 128 are fastest)
    k, v        (batch, groups, n, dim) of the same type; groups divide heads: head h reads group h // (heads / groups)
    causal      query i sees the keys up to i + n - m: the last query sees all (as flash-attn from 2.1 on; for m = n
                this is torch's is_causal)
    scale       of the scores, a positive number; None: 1 / sqrt(dim)
    return_lse  also give the natural logarithms of the sums of exp(score), float32 (batch, heads, m)
    out         (batch, heads, m, dim) of q's type; None: a new tensor. It must not overlap q, k or v
    tile        the tiles to use; None: a choice by the head dimension; "tune": the fastest of `candidates` on the first
                call of these shapes, remembered (on CPU tensors: as None)

    Any m, n from 0, and any strides of batches, heads and tokens: (batch, tokens, heads, dim) that is permuted is read
    where it is. Inputs whose rows are not contiguous, or do not begin at multiples of 16 bytes, are copied. A row that
    sees no key gives zeros, and -inf as its logarithm. No gradient is recorded.

    Scores, sums and the softmax are float32; weights are rounded to the type of v before they multiply it.
    With w the exact weights of a row, u half a unit in the last place of 1 (2**-8, 2**-11) and e the largest error of a
    score that the row sees, (⌈dim / 16⌉ + 2) · 2**-22 · scale · Σ|q k|, results are within
    u |result| + (u + 2 e + (⌈n / 16⌉ + 8) 2**-22) Σ w|v|, for float16 plus 2**-25 Σ|v|, of those in float64, and
    logarithms within (e + 2**-19 (1 + |logarithm|)) / 4. On an H200 the largest errors were 0.6 and 0.3 of that.

    A NaN in q, or in a key that a row sees, makes the row NaN. A NaN or infinity in v reaches its column in all rows
    that see it, and may make NaN of it in rows that do not, where one tile holds both (0 times infinity is NaN). A row
    all of whose scores are -inf is one that sees no key.

    Returns out, or (out, logarithms). Raises ArgumentError: other types, shapes, scales, tensors on several devices.
    """
    import torch  # noqa: PLC0415  heavy

    if not isinstance(causal, bool):
        raise ArgumentError(f"causal: expected a bool but got {brief(causal)}")
    if not isinstance(tile, Tile | None) and tile != TUNE:
        raise ArgumentError(f'tile: expected a Tile, "tune" or None but got {brief(tile)}')
    facts = tuple(Facts.of(name, each) for name, each in (("q", q), ("k", k), ("v", v)))
    fresh = out is None
    if fresh:
        out = torch.empty(_shape(*facts), dtype=q.dtype, device=q.device)
    facts = (*facts, Facts.of("out", out))
    plan = _plan(*facts, causal, None if tile == TUNE else tile)
    factor = _scale(scale, facts[0].shape[-1]) * LOG2_E
    if not fresh:
        check_disjoint(out, q=q, k=k, v=v)
    inputs = [_copied(each) if copied else each for each, copied in zip((q, k, v), plan.copied, strict=True)]
    lse = torch.empty(out.shape[:3], dtype=torch.float32, device=q.device) if return_lse else None
    args = (*inputs, out, lse, factor)
    if tile == TUNE:
        plan = _plan(*facts, causal, _tuned(facts, causal, plan, args))
    plan.kernel(*args)
    return (out, lse) if return_lse else out


TILES = TunedTiles("warpjit.kernels.attention.attention", Tile)


def _tuned(facts: tuple[Facts, ...], causal: bool, plan: Plan, args: tuple[Any, ...]) -> Tile:
    """The fastest tile for a call of these facts."""
    shared = limits(args[0].device if args[0].is_cuda else cpu_target())[1]
    return TILES.tile(
        (facts, args[0].device, causal, args[4] is None),
        lambda: candidates(plan.tile, facts[0].shape[3], shared),
        lambda tile: _plan(*facts, causal, tile).kernel,
        lambda: (args, {}),
    )


def candidates(first: Tile, dim: int, shared: int) -> list[Tile]:
    """The tiles that "tune" tries, `first` before the others."""
    every = (
        Tile(rows, keys, warps, stages, held, ctas)
        for rows, warps in ((128, 4), (128, 8), (64, 4))
        for keys in (32, 64, 128)
        for stages in (2, 3)
        for held in sorted({0, 1, dim // 16})
        for ctas in (1, 2)
    )
    return [first, *(tile for tile in every if tile != first and tile.ctas * tile.shared_bytes(dim) <= shared)]


@dataclass(frozen=True)
class Plan:
    """The kernel of a call, and which of q, k and v must be copied for it."""

    tile: Tile
    kernel: Kernel
    copied: tuple[bool, bool, bool]


def _copied(x: Any) -> Any:
    import torch  # noqa: PLC0415  heavy

    return x.clone(memory_format=torch.contiguous_format)


def _scale(scale: Any, dim: int) -> float:
    if scale is None:
        return 1.0 / math.sqrt(dim)
    if isinstance(scale, bool) or not isinstance(scale, int | float) or not 0.0 < scale <= sys.float_info.max:
        raise ArgumentError(f"scale: expected a positive number or None but got {brief(scale)}")
    return float(scale)


@functools.lru_cache(maxsize=4096)
def _shape(q: Facts, k: Facts, v: Facts) -> tuple[int, ...]:
    """Of the result. ArgumentError: no attention."""
    for name, each in (("q", q), ("k", k), ("v", v)):
        if len(each.shape) != 4 or str(each.dtype) not in ELEMENTS:
            raise ArgumentError(
                f"{name}: expected a tensor (batch, heads, tokens, dim) of float16 or bfloat16 but got shape "
                f"{tuple(each.shape)} of {each.dtype}"
            )
    batch, heads, _, dim = q.shape
    if dim not in DIMS:
        raise ArgumentError(f"q: expected a head dimension that is a multiple of 16 up to {DIMS[-1]} but got {dim}")
    groups = k.shape[1]
    if k.dtype != q.dtype or (k.shape[0], k.shape[3]) != (batch, dim) or (heads % groups if groups else heads):
        raise ArgumentError(
            f"k: expected {q.dtype} of shape ({batch}, a divisor of {heads}, tokens, {dim}) but got {k.dtype} of shape "
            f"{tuple(k.shape)}, for q of shape {tuple(q.shape)}"
        )
    if (v.dtype, v.shape) != (k.dtype, k.shape):
        raise ArgumentError(
            f"v: expected k's type and shape, {k.dtype} and {tuple(k.shape)}, but got {v.dtype} of shape "
            f"{tuple(v.shape)}"
        )
    return tuple(q.shape)


@functools.lru_cache(maxsize=4096)
def _plan(q: Facts, k: Facts, v: Facts, out: Facts, causal: bool, tile: Tile | None) -> Plan:
    shape = _shape(q, k, v)
    if out.dtype != q.dtype or tuple(out.shape) != shape or out.strides[-1] != 1 or out.overlaps:
        raise ArgumentError(
            f"out: expected {q.dtype} of shape {shape}, with contiguous rows and a place in memory for each element, "
            f"but got {out.dtype} of shape {tuple(out.shape)}, strides {tuple(out.strides)}"
        )
    dim, keys = shape[3], k.shape[2]
    chosen = tile or default_tile(dim)
    case = Case(chosen, dim, causal, keys % chosen.keys == 0, WIDEST if out.width == WIDEST else out.size)
    first, second, third = (each.strides[-1] != 1 or each.width != WIDEST for each in (q, k, v))
    return Plan(chosen, flash(case), (first, second, third))


def default_tile(dim: int) -> Tile:
    """The fastest on an H200 for long rows."""
    return Tile(128, 64, 4, held=1, ctas=2) if dim > 64 else Tile(128, 128, 4, ctas=2)
