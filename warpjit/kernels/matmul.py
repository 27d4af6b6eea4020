"""Matrix products of float16 and bfloat16: `matmul(a, b, out=None, *, epilogue=None, operands=())`.

What is called; the kernel is in `gemm`.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

from warpjit.arguments import outside_of_graphs
from warpjit.cuda.driver import present_target
from warpjit.errors import ArgumentError
from warpjit.frontend.specialize import brief
from warpjit.isa.target import Target
from warpjit.kernel import Kernel, cpu_target
from warpjit.kernels.gemm import Case, Tile, gemm
from warpjit.kernels.tiles import TunedTiles


@dataclass(frozen=True)
class Choice:
    """A tile that a shape may get, and how fast a multiprocessor is with it, as a part of the largest tile's rate:
    with one CTA `alone`, and with several `together`. (Measured on an H200; what counts are ratios.)"""

    tile: Tile
    alone: float
    together: float


CHOICES = (
    Choice(Tile(128, 256, 64, 64, 64, 4), 1.0, 1.0),
    Choice(Tile(128, 128, 64, 64, 64, 3), 0.97, 0.97),
    Choice(Tile(128, 64, 64, 64, 32, 4), 0.76, 0.80),
    Choice(Tile(64, 64, 64, 32, 32, 4), 0.56, 0.66),
    Choice(Tile(16, 128, 64, 16, 32, 4), 0.27, 0.34),
)
TRIED_SIZES = ((128, 256), (256, 128), (128, 128), (128, 64), (64, 128), (64, 64), (32, 128), (16, 128))
TRIED_WARPS = ((64, 64), (64, 32), (32, 64), (32, 32), (16, 32))
TUNE = "tune"
MULTIPROCESSORS = 132
"""Of the device that tiles are chosen for where there is none."""
WIDEST = (16, 16)
ELEMENTS = ("torch.float16", "torch.bfloat16")
RESULTS = (*ELEMENTS, "torch.float32")


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
    if out is None:
        out = torch.empty(_shape(left, right), dtype=a.dtype, device=a.device)
    leads = tuple([each.shape[0] if getattr(each, "ndim", 0) == 3 else None for each in operands])
    place = a.device if a.is_cuda else cpu_target()
    facts = (left, right, Facts.of("out", out), leads)
    if tile == TUNE:
        tile = _tuned(facts, place, a, b, out, operands, epilogue)
    plan = plan_of(*facts, tile, place)
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


class Facts(NamedTuple):
    """What of a tensor decides how it is multiplied."""

    dtype: Any
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    size: int
    aligned: bool

    @classmethod
    def of(cls, name: str, x: Any) -> Facts:
        """ArgumentError: no tensor, or one without strides or memory of its own (sparse, inside of a vmap)."""
        if not hasattr(x, "data_ptr"):
            raise ArgumentError(f"{name}: expected a tensor but got {brief(x)}")
        try:
            return cls(x.dtype, x.shape, x.stride(), x.element_size(), x.data_ptr() % 16 == 0)
        except RuntimeError as error:
            raise ArgumentError(f"{name}: expected a dense tensor in memory, but {error}") from None

    @property
    def transposed(self) -> Facts:
        swap = (*range(len(self.shape) - 2), -1, -2)
        shape, strides = (tuple(each[i] for i in swap) for each in (self.shape, self.strides))
        return self._replace(shape=shape, strides=strides)

    def expanded(self, batch: tuple[int, ...]) -> Facts:
        """As a matrix for each batch."""
        lead = len(batch) - (len(self.shape) - 2)
        return self._replace(shape=(*batch, *self.shape[-2:]), strides=(*(0,) * lead, *self.strides))

    @property
    def packed(self) -> bool:
        steps = zip(self.shape, self.strides, range(len(self.shape)), strict=True)
        return all(n == 1 or stride == math.prod(self.shape[axis + 1 :]) for n, stride, axis in steps)

    @property
    def overlaps(self) -> bool:
        """Whether two elements may be one place in memory."""
        reach = 0
        for step, extent in sorted((step, extent) for extent, step in zip(self.shape, self.strides, strict=True)):
            if extent > 1 and step <= reach:
                return 0 not in self.shape
            reach += step * (extent - 1)
        return False

    @property
    def width(self) -> int:
        """Bytes of the widest access along the rows that the kernel can prove to be aligned."""
        outer = zip(self.shape[:-1], self.strides[:-1], strict=True)
        steps = [self.shape[-1], *(stride for extent, stride in outer if extent > 1)]
        if self.aligned and all(step * self.size % 16 == 0 for step in steps):
            return 16
        return 4 if self.aligned and self.packed and self.shape[-1] * self.size % 4 == 0 else self.size


@dataclass(frozen=True)
class Stored:
    """How a matrix comes to the kernel: as it is, turned (the last index but one is contiguous), or copied."""

    facts: Facts
    turned: bool = False
    copied: bool = False

    @classmethod
    def best(cls, facts: Facts, turns: bool = True) -> Stored:
        """`turns`: whether the kernel takes it turned."""
        rows, columns = facts.shape[-2:]
        if facts.strides[-1] == 1 or columns == 1:
            return cls(facts)
        if turns and (facts.strides[-2] == 1 or rows == 1):
            return cls(facts.transposed, turned=True)
        packed = tuple(math.prod(facts.shape[axis + 1 :]) for axis in range(len(facts.shape)))
        return cls(facts._replace(strides=packed, aligned=True), copied=True)

    def of(self, x: Any, shape: tuple[int, ...]) -> Any:
        """The tensor that the kernel takes, of a product of this shape."""
        if x.ndim < len(shape):
            x = x.expand(shape[0], *x.shape)
        if self.copied:
            return x.contiguous()
        return x.mT if self.turned else x


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
    if out.overlaps:
        raise ArgumentError(
            f"out: expected a place in memory for each element but got shape {shape} with strides {tuple(out.strides)}"
        )
    left = Stored.best(a.expanded(tuple(batch)))
    right = Stored.best(b.transposed.expanded(tuple(batch)))
    widths = left.facts.width, right.facts.width, out.width
    wide = widths[:2] == WIDEST
    chosen = tile or default_tile(m, n, math.prod(batch), wide, *limits(place))
    rows = (left.turned, True, not (left.turned and right.turned))
    turned = (left.turned, right.turned)
    each_batch = tuple(bool(batch) and lead is not None for lead in leads)
    case = Case(
        chosen, multiples((m, n, k), (chosen.m, chosen.n, chosen.k), rows), turned, widths, bool(batch), each_batch
    )
    return Plan(chosen, wide, gemm(case), shape, left, right)


def multiples(
    size: tuple[int, ...], tile: tuple[int, ...], rows: tuple[bool, ...], chunk: int = 8
) -> tuple[int, int, int]:
    """What is promised of m, n and k: the tile's size, or, of one that is a row's length somewhere, its alignment.

    chunk  elements of 16 bytes
    """
    halves = tuple(chunk >> step for step in range(chunk.bit_length() - 1))
    m, n, k = (
        next(each for each in (own, *(halves if row else ()), 1) if length % each == 0)
        for length, own, row in zip(size, tile, rows, strict=True)
    )
    return m, n, k


def limits(place: Any) -> tuple[int, int]:
    """(multiprocessors, shared bytes of a CTA) of what the kernel will run on: a CUDA device, or the CPU's target."""
    if isinstance(place, Target):
        return MULTIPROCESSORS, place.max_shared
    import torch  # noqa: PLC0415  heavy

    target = present_target(place.index) or cpu_target()
    return int(torch.cuda.get_device_properties(place).multi_processor_count), target.max_shared


def default_tile(m: int, n: int, batch: int, aligned: bool, multiprocessors: int, shared: int) -> Tile:
    """The tile with which the multiprocessor that has most to do is done first.

    Where A or B is not aligned, slices go through registers, which leaves fewer for sums: small warps' parts only.
    """

    def time(choice: Choice) -> float:
        tile = choice.tile
        ctas = -(-m // tile.m) * -(-n // tile.n) * batch
        most = -(-ctas // multiprocessors)
        return most * tile.m * tile.n / (choice.alone if most == 1 else choice.together)

    fits = [each for each in CHOICES if each.tile.shared_bytes <= shared and (aligned or is_small(each.tile))]
    return min(fits, key=time).tile


def is_small(tile: Tile) -> bool:
    """Whether a warp's part leaves registers for slices on their way."""
    return tile.warp_m * tile.warp_n <= 32 * 32


def candidates(first: Tile, aligned: bool, shared: int) -> list[Tile]:
    """The tiles that "tune" tries, `first` before the others."""
    every = (
        Tile(m, n, 64, warp_m, warp_n, stages)
        for m, n in TRIED_SIZES
        for warp_m, warp_n in TRIED_WARPS
        for stages in (3, 4)
        if m % warp_m == n % warp_n == 0 and 4 <= m // warp_m * (n // warp_n) <= 16
    )
    return [
        first,
        *(tile for tile in every if tile != first and tile.shared_bytes <= shared and (aligned or is_small(tile))),
    ]
