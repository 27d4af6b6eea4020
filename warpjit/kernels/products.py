"""What callers of `gemm` share: how a matrix comes to the kernel, and which tile a shape gets."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from warpjit.kernels.facts import Facts
from warpjit.kernels.gemm import Tile

WIDEST = (16, 16)
"""Bytes of an access to A and B where both are aligned."""


# ---- matrices -------------------------------------------------------------------------------------------------


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


# ---- tiles ----------------------------------------------------------------------------------------------------


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
