"""Attention, forward: warpjit's beside torch's backends flash and cuDNN, and the roof of mma.sync.

    python -m bench attention --contestants generated,flash

On the same random bfloat16 tensors of 16,384 tokens in all and 2,048 channels in heads. Rates count 4 · tokens² · dim
operations a head, half of them where it is causal. flash is FlashAttention-2, made of the same instructions; cuDNN's
kernels use Hopper's wgmma: information, not a rival.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.nn.functional import scaled_dot_product_attention

from bench import beside
from bench.beside import Entrant
from bench.harness import Bench, Record, Settings
from bench.loop import Loop

GENERATED, FLASH, CUDNN, ROOF = "generated", "flash", "cuDNN", "register-only"
TOKENS, CHANNELS = 16384, 2048
CHECKED_ROWS = 64
UNIT = 2.0**-8
"""Of bfloat16: half a unit in the last place of 1."""


@dataclass(frozen=True)
class Size:
    """`tokens` of each sequence, the head dimension, and whether queries see earlier keys only."""

    tokens: int
    dim: int
    causal: bool

    def __str__(self) -> str:
        return f"{self.tokens} tokens, dim {self.dim}{', causal' if self.causal else ''}"

    @property
    def shape(self) -> tuple[int, int, int, int]:
        return TOKENS // self.tokens, CHANNELS // self.dim, self.tokens, self.dim

    @property
    def flop(self) -> int:
        return 4 * TOKENS * CHANNELS * self.tokens // (2 if self.causal else 1)


SIZES = tuple(
    Size(tokens, dim, causal) for dim in (128, 64) for causal in (False, True) for tokens in (16384, 4096, 1024)
)
QUICK_SIZES = (Size(1024, 128, False),)


class Problem:
    """Random q, k and v, and what must come of them."""

    def __init__(self, shape: tuple[int, int, int, int], causal: bool, device: str, seed: int) -> None:
        generator = torch.Generator(device).manual_seed(seed)
        self.causal = causal
        self.q, self.k, self.v = (
            torch.randn(shape, generator=generator, device=device, dtype=torch.bfloat16) for _ in range(3)
        )

    @functools.cached_property
    def rows(self) -> torch.Tensor:
        """Of the last head: the first, the last and some between."""
        tokens = self.q.shape[2]
        return torch.linspace(0, tokens - 1, min(tokens, CHECKED_ROWS), device=self.q.device).long()

    @functools.cached_property
    def exact(self) -> tuple[torch.Tensor, torch.Tensor]:
        """`rows` in float64, and Σ w|v|."""
        q, k, v = (each[-1, -1].double() for each in (self.q, self.k, self.v))
        scores = q[self.rows] @ k.T / math.sqrt(q.shape[-1])
        if self.causal:
            hidden = torch.arange(k.shape[0], device=k.device)[None, :] > self.rows[:, None]
            scores = scores.masked_fill(hidden, -math.inf)
        weights = torch.softmax(scores, -1)
        return weights @ v, weights @ v.abs()

    @functools.cached_property
    def by_torch(self) -> torch.Tensor:
        return scaled_dot_product_attention(self.q, self.k, self.v, is_causal=self.causal)

    def error(self, out: torch.Tensor) -> str | None:
        """What is wrong: rows against float64, all against torch's."""
        if bool(out.isnan().any()):
            return "elements are NaN, or were not written"
        exact, magnitude = self.exact
        # Results and weights are rounded to bfloat16; all else is float32.
        allowed = UNIT * exact.abs() + (UNIT + 2.0**-14) * magnitude
        part = float(((out[-1, -1, self.rows].double() - exact).abs() / allowed).max())
        apart = float((out.float() - self.by_torch.float()).abs().max())
        if part <= 1 and apart <= 4 * UNIT * float(self.v.abs().max()):
            return None
        return f"{part:.3g} of the allowed error from float64, {apart:.3g} from torch's"


def generated(problem: Problem) -> Callable[[], torch.Tensor]:
    """warpjit's, as a user calls it; what an earlier call left is overwritten."""
    from warpjit.kernels.attention import attention  # noqa: PLC0415  it brings kernels that only this figure needs

    out = torch.full_like(problem.q, math.nan)

    def call() -> torch.Tensor:
        attention(problem.q, problem.k, problem.v, problem.causal, out=out)
        return out

    return call


def of_torch(problem: Problem, backend: SDPBackend) -> Callable[[], torch.Tensor]:
    """torch's with one backend. Its call raises where that cannot take the problem."""

    def call() -> torch.Tensor:
        with sdpa_kernel(backend):
            return scaled_dot_product_attention(problem.q, problem.k, problem.v, is_causal=problem.causal)

    return call


def roof(seed: int) -> Entrant:
    loop = Loop("bfloat16", seed)

    def error(result: object) -> str | None:
        return None if loop.error() * 2.0**12 <= 1 else "a warp's sum is wrong"

    return Entrant(loop.launch, loop.flop / 1e12, error)


def case_of(size: Size, seed: int) -> beside.Case:
    """All contestants on one problem."""
    problem = Problem(size.shape, size.causal, "cuda", seed)
    calls = {
        GENERATED: generated(problem),
        FLASH: of_torch(problem, SDPBackend.FLASH_ATTENTION),
        CUDNN: of_torch(problem, SDPBackend.CUDNN_ATTENTION),
    }
    entrants = {name: Entrant(call, size.flop / 1e12, problem.error) for name, call in calls.items()}
    return beside.Case(str(size), "TFLOP/s", {**entrants, ROOF: roof(seed)}, FLASH)


def run(settings: Settings, record: Record) -> None:
    """Measure each size."""
    sizes = QUICK_SIZES if settings.quick else SIZES
    beside.run([functools.partial(case_of, size, settings.seed) for size in sizes], settings, record)


BENCH = Bench(
    "attention",
    "attention, beside torch's flash and cuDNN backends",
    True,
    run,
    beside.tables,
    beside.draw,
    (GENERATED, FLASH, CUDNN, ROOF),
)
