"""Products with weights of 4 bits, and of int8, beside torch's.

Few rows of x: rates count the bytes of weights (with scales and zeros) once, beside a copy, which reads and writes;
each launch takes another copy of the weights, all together more than the L2 cache holds. Many rows, and int8: work,
beside torch's product of 16-bit floats of the same size and torch._int_mm. Results are poisoned before, and checked
against float64 (int8: equal to it) on some rows.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from itertools import cycle

import torch

from bench import beside
from bench.beside import Case, Entrant
from bench.harness import Bench, Record, Settings
from warpjit.kernels.matmul_int8 import matmul_int8
from warpjit.kernels.w4a16 import matmul, pack

OURS, TORCH, INT_MM, COPY = "warpjit", "torch, 16 bits", "torch._int_mm", "copy"
FEW, MANY = (1, 16), (64, 256, 4096)
WEIGHTS = ((8192, 8192), (4096, 4096), (28672, 4096))
SQUARES = (8192, 4096)
AWAY = 256 * 2**20
"""Bytes of all copies of some weights: several times an H200's L2 cache, 50 MB."""
COPIED = 2**30
CHECKED_ROWS = 16
LARGEST_ERROR = {torch.bfloat16: 2.0**-7, torch.float16: 2.0**-10}
"""As a part of the mean magnitude of results and of the result itself."""


def w4a16(m: int, n: int, k: int, dtype: torch.dtype, seed: int) -> Case:
    """x of (m, k) with weights of (n, k)."""
    generator = torch.Generator("cuda").manual_seed(seed)
    x, weight = (torch.randn((rows, k), generator=generator, device="cuda", dtype=dtype) for rows in (m, n))
    packed = pack(weight)
    words, whole = packed.nbytes, weight.nbytes
    few = m in FEW
    some = torch.randint(0, m, (min(m, CHECKED_ROWS),), generator=generator, device="cuda")
    out, other = (torch.full((m, n), torch.nan, device="cuda", dtype=dtype) for _ in range(2))
    close = partial(_close, some=some, exact=x[some].double() @ packed.dequantize().double().T)
    plain = partial(_close, some=some, exact=x[some].double() @ weight.double().T)
    fours = cycle(
        [replace(packed, words=packed.words.clone(), factors=packed.factors.clone()) for _ in range(_count(words))]
    )
    halves = cycle([weight.clone() for _ in range(_count(whole))])
    work = 2 * m * n * k / 1e12
    entrants = {
        OURS: Entrant(lambda: matmul(x, next(fours), out=out), words / 1e9 if few else work, close),
        TORCH: Entrant(lambda: torch.mm(x, next(halves).T, out=other), whole / 1e9 if few else work, plain),
    }
    if few:
        source = torch.randn(COPIED // 4, generator=generator, device="cuda")
        target = torch.empty_like(source)
        entrants[COPY] = Entrant(lambda: target.copy_(source), 2 * COPIED / 1e9)
    name = f"w4a16 {m}x{n}x{k} {str(dtype).removeprefix('torch.')}"
    return Case(name, "GB/s" if few else "TFLOP/s", entrants, COPY if few else TORCH)


def _count(size: int) -> int:
    """How many copies of `size` bytes the L2 cache holds next to nothing of: at least 2."""
    return max(2, -(-AWAY // size))


def _close(result: torch.Tensor, some: torch.Tensor, exact: torch.Tensor) -> str | None:
    error = float(((result[some].double() - exact).abs() / (exact.abs() + exact.abs().mean())).max())
    return None if error <= LARGEST_ERROR[result.dtype] else f"an error of {error:.3g}"


def int8(size: int, seed: int) -> Case:
    """Square matrices, b with k contiguous; the sums as they are."""
    generator = torch.Generator("cuda").manual_seed(seed)
    a, w = (
        torch.randint(-128, 128, (size, size), generator=generator, device="cuda", dtype=torch.int8) for _ in range(2)
    )
    out = torch.full((size, size), -(2**31), device="cuda", dtype=torch.int32)
    halves = [each.to(torch.bfloat16) for each in (a, w)]
    exact = a[:CHECKED_ROWS].double() @ w.double().T

    def check(result: torch.Tensor) -> str | None:
        wrong = int((result[:CHECKED_ROWS].double() != exact).sum())
        return f"{wrong} sums are wrong" if wrong or int((result == -(2**31)).sum()) else None

    work = 2 * size**3 / 1e12
    entrants = {
        OURS: Entrant(lambda: matmul_int8(a, w.T, out=out), work, check),
        INT_MM: Entrant(lambda: torch._int_mm(a, w.T), work, check),
        TORCH: Entrant(lambda: torch.mm(halves[0], halves[1].T), work),
    }
    return Case(f"int8 {size}x{size}x{size}", "TOP/s", entrants, INT_MM)


def cases_of(settings: Settings) -> Sequence[Callable[[], Case]]:
    """What is measured: all, or with `quick` the first of each kind."""
    (first, *others), half, brain = WEIGHTS, torch.float16, torch.bfloat16
    made = [partial(w4a16, m, *first, half, settings.seed) for m in FEW]
    if settings.quick:
        return [*made, partial(int8, SQUARES[-1], settings.seed)]
    made += [partial(w4a16, m, *first, brain, settings.seed) for m in (*FEW, *MANY)]
    made += [partial(w4a16, m, *shape, brain, settings.seed) for shape in others for m in FEW]
    return [*made, *(partial(int8, size, settings.seed) for size in SQUARES)]


def run(settings: Settings, record: Record) -> None:
    """Each case, and who is right in it."""
    beside.run(cases_of(settings), settings, record)


BENCH = Bench(
    "quant",
    "products with weights of 4 bits and of int8, beside torch's and a copy",
    True,
    run,
    beside.tables,
    beside.draw,
    (OURS, TORCH, INT_MM, COPY),
)
