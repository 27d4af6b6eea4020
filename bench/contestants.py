"""Who multiplies matrices in `gemm`. Each makes, for one problem, an `Entrant`: a launch, and a check of what it left.

All launch on torch's current stream. A contestant that cannot take part raises, and the figure notes why.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch

from bench.loop import Loop, options
from bench.native import Native, function
from bench.products import Check, Problem
from bench.regimes import GpuTimer, Runner, duration

GENERATED, PINNED = "generated", "pinned"
REFERENCE, AGAIN = "reference", "reference again"
LOOP, CUBLAS, TRITON = "register-only", "cuBLAS", "Triton"


@dataclass(frozen=True)
class Entrant:
    """One kernel on one problem.

    launch  issues one launch
    flop    its operations
    check   whether what the latest launches left is right
    poison  makes what they left unusable
    note    what a reader of the figure should know
    clock   MHz as the latest launch measured it, where it does
    """

    launch: Callable[[], object]
    flop: int
    check: Callable[[], Check]
    poison: Callable[[], object]
    note: str = ""
    clock: Callable[[], float | None] = lambda: None


@dataclass(frozen=True)
class Contestant:
    """A name, what stands behind it, and how it enters. `prepare` raises where it cannot."""

    name: str
    what: str
    prepare: Callable[[Problem, int], Entrant]


Multiply = Callable[[torch.Tensor, torch.Tensor, torch.Tensor], object]
"""(a, w, out) -> None: out = a @ w.T, for a (M, K), w (N, K), out (M, N)."""


def _product(problem: Problem, multiply: Multiply, note: str = "") -> Entrant:
    out = problem.poisoned()
    return Entrant(
        launch=lambda: multiply(problem.a, problem.w, out),
        flop=problem.size.flop,
        check=lambda: problem.check(out),
        poison=lambda: out.fill_(torch.nan),
        note=note,
    )


BM, BN, BK, STAGES, THREADS = 128, 256, 64, 4, 256
"""The reference's tiles."""
REFERENCE_SHARED = STAGES * (BM + BN) * BK * 2


# ---- generated ------------------------------------------------------------------------------------------------


def generated(problem: Problem, seed: int) -> Entrant:
    """warpjit's ready-made product, as a user calls it."""
    from warpjit.kernels.matmul import matmul  # noqa: PLC0415  it brings kernels that only this figure needs

    return _product(problem, lambda a, w, out: matmul(a, w.t(), out=out))


def pinned(problem: Problem, seed: int) -> Entrant:
    """warpjit's kernel with the reference's tiles."""
    from bench.generated import pinned as multiply  # noqa: PLC0415  as above

    return _product(problem, multiply)


# ---- others' --------------------------------------------------------------------------------------------------


def reference(problem: Problem, seed: int) -> Entrant:
    """The hand-written kernel. ValueError: its tiles do not divide the size."""
    size = problem.size
    if size.m % BM or size.n % BN or size.k % BK:
        raise ValueError(f"expected a size that {BM}x{BN}x{BK} divides but got {size}")
    kernel = function("gemm_cp_async.cu", "gemm", *options(problem.case.dtype))
    out = problem.poisoned()
    native = Native(
        kernel,
        ["Q", "Q", "Q", "i", "i", "i"],
        [problem.a.data_ptr(), problem.w.data_ptr(), out.data_ptr(), size.m, size.n, size.k],
        grid=(size.m // BM) * (size.n // BN),
        block=THREADS,
        shared=REFERENCE_SHARED,
    )
    return Entrant(native.launch, size.flop, lambda: problem.check(out), lambda: out.fill_(torch.nan))


def register_only(problem: Problem, seed: int) -> Entrant:
    """The loop of mma.sync without memory, in the problem's type."""
    loop = Loop(problem.case.dtype, seed)

    def check() -> Check:
        error = loop.error()
        wrong = f"a warp's sum is wrong by {error:.3g} of its magnitude" if not error <= 2.0**-12 else None
        return Check(error * 2.0**12, error, 0.0, wrong)

    return Entrant(loop.launch, loop.flop, check, lambda: loop.sums.fill_(torch.nan), clock=loop.clock)


def cublas(problem: Problem, seed: int) -> Entrant:
    """cuBLAS through torch."""
    return _product(problem, lambda a, w, out: torch.mm(a, w.t(), out=out))


@dataclass(frozen=True)
class TritonTiles:
    """A configuration of Triton's kernel."""

    m: int
    n: int
    k: int
    warps: int
    stages: int

    def __str__(self) -> str:
        return f"{self.m}x{self.n}x{self.k}, {self.warps} warps, {self.stages} stages"


TRITON_TILES = (
    TritonTiles(256, 128, 64, 8, 3),
    TritonTiles(128, 256, 64, 8, 3),
    TritonTiles(256, 128, 64, 8, 4),
    TritonTiles(128, 128, 64, 4, 4),
    TritonTiles(64, 128, 64, 4, 4),
)
TRITON_GROUP = 8


def triton(problem: Problem, seed: int) -> Entrant:
    """Triton's kernel with the fastest of five configurations in a short burst."""
    from bench import triton_kernels  # noqa: PLC0415  an optional package

    def multiply(tiles: TritonTiles) -> Multiply:
        return lambda a, w, out: _triton_launch(triton_kernels.matmul, tiles, a, w, out)

    entrants = {tiles: _product(problem, multiply(tiles), str(tiles)) for tiles in TRITON_TILES}
    best, why = math.inf, ""
    for tiles, entrant in entrants.items():
        try:
            took = duration(Runner(str(tiles), entrant.launch), GpuTimer(), 5)
        except Exception as error:
            why = str(error)
            continue
        if took < best:
            best, fastest = took, entrant
    if best == math.inf:
        raise RuntimeError(f"no configuration of Triton's kernel ran: {why}")
    return fastest


def _triton_launch(kernel: Any, tiles: TritonTiles, a: torch.Tensor, w: torch.Tensor, out: torch.Tensor) -> None:
    (m, k), n = a.shape, w.shape[0]
    grid = (-(-m // tiles.m) * -(-n // tiles.n),)
    kernel[grid](
        *(a, w, out, m, n, k, a.stride(0), w.stride(0), out.stride(0)),
        BLOCK_M=tiles.m,
        BLOCK_N=tiles.n,
        BLOCK_K=tiles.k,
        GROUP=TRITON_GROUP,
        num_warps=tiles.warps,
        num_stages=tiles.stages,
    )


CONTESTANTS = (
    Contestant(GENERATED, "warpjit.kernels.matmul.matmul(a, w.t(), out=out)", generated),
    Contestant(PINNED, "warpjit, 128x256x64, 4 stages, 8 warps", pinned),
    Contestant(REFERENCE, "hand-written CUDA C++, cp.async and mma.sync, 128x256x64, 4 stages, 8 warps", reference),
    Contestant(AGAIN, "the same kernel a second time: the spread of a ratio of equals", reference),
    Contestant(LOOP, "mma.sync on registers alone, no memory", register_only),
    Contestant(CUBLAS, "torch.mm(a, w.t(), out=out)", cublas),
    Contestant(TRITON, "a plain Triton kernel, the best of five configurations", triton),
)

RATIOS = (
    (GENERATED, REFERENCE),
    (PINNED, REFERENCE),
    (AGAIN, REFERENCE),
    (REFERENCE, LOOP),
    (GENERATED, LOOP),
    (PINNED, LOOP),
    (GENERATED, CUBLAS),
    (PINNED, CUBLAS),
    (REFERENCE, CUBLAS),
    (GENERATED, TRITON),
    (PINNED, TRITON),
)
"""Which rates are divided by which."""
