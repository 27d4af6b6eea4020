"""The register-only loop of mma.sync: the roof of every kernel that multiplies with it, and the GPU's clock.

Its text and what it does stand in `reference/mma_loop.cu`; here are its data, its count of operations, and the check
that it really added what it was given.
"""

from __future__ import annotations

import torch

from bench.clocks import megahertz
from bench.native import Native, function
from bench.products import DTYPES
from warpjit.cuda.driver import Function

FILE = "mma_loop.cu"
BLOCK, WARPS = 256, 8
SETS, UNROLL = 2, 4
TILES, FLOP_OF_MMA = 32, 2 * 16 * 8 * 16
ITERATIONS = 3000
"""About 2.6 ms at 640 TFLOP/s."""
CHECKED_ITERATIONS = 2
SPIN_NS = 100_000


def options(dtype: str) -> tuple[str, ...]:
    """How the reference kernels are built for a type."""
    return ("-DBF16",) if dtype == "bfloat16" else ()


def flop(blocks: int, iterations: int) -> int:
    """Operations of one launch."""
    return blocks * WARPS * iterations * UNROLL * TILES * FLOP_OF_MMA


def warp_sums(operands: torch.Tensor, iterations: int) -> tuple[torch.Tensor, torch.Tensor]:
    """What the accumulators of each warp add up to, and the sum of the products' magnitudes; float64 (warps,).

    `operands` (SETS, 32, threads, 2) are the kernel's, as numbers: A's 16 words, then B's; a word has two neighbours
    along K. Words of A: tile, then (rows 0-7, k 0-7), (rows 8-15, k 0-7), (0-7, 8-15), (8-15, 8-15); of B: tile, then k
    0-7, k 8-15. Lane l has k = 2 (l % 4) and the next (PTX ISA, "Matrix fragments for mma.m16n8k16").
    The sum over all rows and columns is a sum over K of A's column sums times B's.
    """
    numbers = operands.double().unflatten(2, (-1, 8, 4)).unflatten(1, (2, 16))
    a, b = numbers[:, 0].unflatten(1, (4, 2, 2)), numbers[:, 1].unflatten(1, (8, 2))
    # a: set, tile, half of K, half of the rows, warp, row, quarter, pair; b: set, tile, half of K, warp, column, ...
    repeats = iterations * UNROLL // SETS
    exact = torch.einsum("sthrwgqp,suhwcqp->w", a, b)
    size = torch.einsum("sthrwgqp,suhwcqp->w", a.abs(), b.abs())
    return exact * repeats, size * repeats


class Loop:
    """The loop on the present GPU, one block a multiprocessor, on random numbers."""

    def __init__(self, dtype: str, seed: int) -> None:
        properties = torch.cuda.get_device_properties(torch.cuda.current_device())
        self.blocks = properties.multi_processor_count
        threads = self.blocks * BLOCK
        generator = torch.Generator("cuda").manual_seed(seed)
        shape = (SETS, 32, threads, 2)
        self.operands = torch.randn(shape, generator=generator, device="cuda", dtype=DTYPES[dtype])
        self.sums = torch.full((threads,), torch.nan, device="cuda")
        self.clocks = torch.zeros((self.blocks, 2), dtype=torch.int64, device="cuda")
        self._kernel = function(FILE, "mma_loop", *options(dtype))
        self.launch = self._native(ITERATIONS).launch
        self.flop = flop(self.blocks, ITERATIONS)

    def _native(self, iterations: int) -> Native:
        pointers = [each.data_ptr() for each in (self.operands, self.sums, self.clocks)]
        return Native(self._kernel, ["Q", "Q", "Q", "i"], [*pointers, iterations], grid=self.blocks, block=BLOCK)

    def error(self) -> float:
        """The largest error of a warp's sum after a few iterations, as a part of the sum of the magnitudes.

        2^-12 is generous: each of the additions loses at most 2^-23.
        """
        self.sums.fill_(torch.nan)
        self._native(CHECKED_ITERATIONS).launch()
        torch.cuda.synchronize()
        exact, size = warp_sums(self.operands, CHECKED_ITERATIONS)
        found = self.sums.double().view(-1, 32).sum(1)
        return float(((found - exact).abs() / size).nan_to_num(nan=float("inf")).max())

    def clock(self) -> float | None:
        """MHz in the latest launch, which has been waited for."""
        return megahertz(self.clocks)


class Probe:
    """Reads the clock right behind other work on torch's current stream. Reads nothing where it cannot be built."""

    def __init__(self) -> None:
        self._readings: dict[str, list[torch.Tensor]] = {}
        self._kernel: Function | None = None
        try:
            self._kernel = function(FILE, "clock_now", *options("bfloat16"))
        except Exception:
            return

    def __call__(self, name: str) -> None:
        """Issue a reading, under a name."""
        if self._kernel is None:
            return
        clocks = torch.zeros((1, 2), dtype=torch.int64, device="cuda")
        Native(self._kernel, ["Q", "i"], [clocks.data_ptr(), SPIN_NS], grid=1, block=32).launch()
        self._readings.setdefault(name, []).append(clocks)

    def clock(self, name: str) -> float | None:
        """MHz, the median of the readings under a name; all work has been waited for."""
        return megahertz(torch.cat(self._readings[name])) if name in self._readings else None
