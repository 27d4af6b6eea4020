"""Matrix products of float16 and bfloat16: `matmul(a, b, out=None, *, epilogue=None, operands=())`.

What is called; the kernel is in `gemm`.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import Any

from warpjit.cuda.driver import present_target
from warpjit.errors import ArgumentError
from warpjit.kernel import cpu_target
from warpjit.kernels.gemm import Case, Tile, gemm

TILES = (
    (Tile(128, 256, 64, 64, 64, 4), 1.0),
    (Tile(128, 128, 64, 64, 64, 3), 0.98),
    (Tile(128, 64, 64, 64, 32, 4), 0.82),
    (Tile(64, 64, 64, 32, 32, 4), 0.65),
    (Tile(16, 128, 64, 16, 32, 4), 0.33),
)
"""The tiles that a shape may get, and how fast each is on a full device beside the first."""
RESERVED = 1024
"""Bytes of shared memory that the system takes of each CTA (CUDA C++ Programming Guide, "Shared Memory")."""
MULTIPROCESSORS = 132
"""Of the device that tiles are chosen for where there is none."""
WIDEST = (16, 16)
ELEMENTS = ("torch.float16", "torch.bfloat16")
RESULTS = (*ELEMENTS, "torch.float32")


def matmul(
    a: Any,
    b: Any,
    out: Any = None,
    *,
    epilogue: Callable[..., Any] | None = None,
    operands: tuple[Any, ...] = (),
    tile: Tile | None = None,
) -> Any:
    """a @ b, summed in float32 and rounded once; on CPU tensors simulated.

    a         (m, k), or (batch, m, k): float16 or bfloat16. Rows or columns are contiguous (others are copied)
    b         (k, n), or (batch, k, n), of the same type; a matrix serves every batch of the other side
    out       (m, n), or (batch, m, n): float16, bfloat16 or float32, rows contiguous; None: a new tensor of a's type.
              It must not overlap a or b
    epilogue  a function (value, row, column, *operands) in the language, inlined: what it returns is stored in place
              of the float32 sum. It may be called for existing elements only
    operands  its further arguments: tensors (one with a leading batch is passed as the matrix of the batch), numbers
    tile      the tiles to use; None: a choice by the shape

    Any sizes; sizes and rows that are multiples of 16 bytes are fastest. No gradient is recorded.
    Raises ArgumentError: other types or shapes, tensors on several devices, operands without an epilogue.
    """
    import torch  # noqa: PLC0415  heavy

    if operands and epilogue is None:
        raise ArgumentError("matmul: operands are arguments of an epilogue, but there is none")
    batch, m, n, k = _sizes(a, b)
    if out is None:
        out = torch.empty((*batch, m, n), dtype=a.dtype, device=a.device)
    elif str(out.dtype) not in RESULTS or tuple(out.shape) != (*batch, m, n) or (n > 1 and out.stride(-1) != 1):
        raise ArgumentError(
            f"out: expected a tensor of shape {(*batch, m, n)} with contiguous rows, of float16, bfloat16 or float32, "
            f"but got shape {tuple(out.shape)}, strides {tuple(out.stride())} of {out.dtype}"
        )
    left, a_turned = _stored(a, batch)
    right, b_turned = _stored(b.mT, batch)
    widths = _width(left), _width(right), _width(out)
    chosen = tile or default_tile(
        m, n, batch[0] if batch else 1, widths[:2] == WIDEST, *_device(a.device.type, a.device.index or 0)
    )
    case = Case(
        chosen,
        _multiples((m, n, k), chosen, (a_turned, True, not (a_turned and b_turned))),
        (a_turned, b_turned),
        widths,
        bool(batch),
        tuple(bool(batch) and getattr(each, "ndim", 0) == 3 for each in operands),
    )
    gemm(case)(left, right, out, tuple(operands), epilogue=epilogue)
    return out


def _sizes(a: Any, b: Any) -> tuple[tuple[int, ...], int, int, int]:
    """(batch or none), m, n, k. ArgumentError: no product."""
    for name, each in (("a", a), ("b", b)):
        if getattr(each, "ndim", None) not in (2, 3) or str(each.dtype) not in ELEMENTS:
            got = f"shape {tuple(each.shape)} of {each.dtype}" if hasattr(each, "ndim") else repr(each)
            raise ArgumentError(f"{name}: expected a tensor of 2 or 3 axes of float16 or bfloat16 but got {got}")
    batches = [each.shape[0] for each in (a, b) if each.ndim == 3]
    if a.dtype != b.dtype or a.shape[-1] != b.shape[-2] or len(set(batches)) > 1:
        raise ArgumentError(
            f"b: expected {a.dtype} of shape (…, {a.shape[-1]}, n) and a's batch but got {b.dtype} of shape "
            f"{tuple(b.shape)}, for a of shape {tuple(a.shape)}"
        )
    return tuple(batches[:1]), a.shape[-2], b.shape[-1], a.shape[-1]


def _stored(x: Any, batch: tuple[int, ...]) -> tuple[Any, bool]:
    """The matrix in the order in which it lies in memory, and whether that is not its own."""
    if batch and x.ndim == 2:
        x = x.expand(*batch, *x.shape)
    if x.stride(-1) == 1 or x.shape[-1] == 1:
        return x, False
    if x.stride(-2) == 1 or x.shape[-2] == 1:
        return x.mT, True
    return x.contiguous(), False


def _width(x: Any) -> int:
    """Bytes of the widest access along the rows that the kernel can prove to be aligned."""
    size = int(x.element_size())
    steps = [x.shape[-1], *(stride for extent, stride in zip(x.shape[:-1], x.stride()[:-1], strict=True) if extent > 1)]
    if x.data_ptr() % 16 == 0:
        if all(step * size % 16 == 0 for step in steps):
            return 16
        if x.is_contiguous() and x.shape[-1] * size % 4 == 0:
            return 4
    return size


def _multiples(size: tuple[int, ...], tile: Tile, rows: tuple[bool, ...]) -> tuple[int, int, int]:
    """What is promised of m, n and k: the tile's size, or, of one that is a row's length somewhere, its alignment."""
    m, n, k = (
        next(each for each in (own, *((8, 2) if row else ()), 1) if length % each == 0)
        for length, own, row in zip(size, (tile.m, tile.n, tile.k), rows, strict=True)
    )
    return m, n, k


@functools.cache
def _device(kind: str, index: int) -> tuple[int, int]:
    """(multiprocessors, shared bytes of a CTA) of what the kernel will run on."""
    if kind != "cuda":
        return MULTIPROCESSORS, cpu_target().max_shared
    import torch  # noqa: PLC0415  heavy

    target = present_target(index) or cpu_target()
    return int(torch.cuda.get_device_properties(index).multi_processor_count), target.max_shared


@functools.lru_cache(maxsize=4096)
def default_tile(m: int, n: int, batch: int, aligned: bool, multiprocessors: int, shared: int) -> Tile:
    """The tile with which the device is busy for the shortest time, where a CTA takes as long as its part of a wave.

    Where A or B is not aligned, slices go through registers, which leaves fewer for sums: small warps' parts only.
    """
    best, least = TILES[-1][0], math.inf
    for tile, rate in TILES:
        if tile.shared_bytes > shared or not (aligned or tile.warp_m * tile.warp_n <= 32 * 32):
            continue
        together = multiprocessors * max((shared + RESERVED) // (tile.shared_bytes + RESERVED), 1)
        ctas = -(-m // tile.m) * -(-n // tile.n) * batch
        time = -(-ctas // together) * together * tile.m * tile.n / rate
        if time < least:
            best, least = tile, time
    return best
