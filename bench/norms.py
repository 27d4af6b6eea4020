"""Softmax, RMSNorm and LayerNorm along rows, beside torch's and beside a copy of the same bytes.

Rates count the input once and the output once. Results are poisoned before, and checked against float64 on some rows.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import torch
import torch.nn.functional as F

from bench import beside
from bench.beside import Case, Entrant
from bench.harness import Bench, Record, Settings
from warpjit.kernels.layernorm import layernorm
from warpjit.kernels.rmsnorm import rmsnorm
from warpjit.kernels.softmax import softmax

Function = Callable[[torch.Tensor, torch.Tensor, torch.Tensor], torch.Tensor]
"""(x, weight, bias) -> a new tensor."""

EPS = 1e-5
COPY, OURS, TORCH = "copy", "warpjit", "torch"
OPERATIONS: dict[str, tuple[Callable[..., torch.Tensor], Function]] = {
    "softmax": (lambda x, w, b, out: softmax(x, out=out), lambda x, w, b: x.softmax(-1)),
    "rmsnorm": (
        lambda x, w, b, out: rmsnorm(x, w, EPS, out=out),
        lambda x, w, b: F.rms_norm(x, w.shape, w, EPS),
    ),
    "layernorm": (
        lambda x, w, b, out: layernorm(x, w, b, EPS, out=out),
        lambda x, w, b: F.layer_norm(x, w.shape, w, b, EPS),
    ),
}
SHAPES = (
    (8192, 8192, torch.bfloat16),
    (8192, 8192, torch.float32),
    (65536, 1024, torch.bfloat16),
    (4096, 16384, torch.float16),
    (1048576, 64, torch.bfloat16),
    (2048, 100_000, torch.bfloat16),
    (8192, 8191, torch.bfloat16),
)
QUICK_SHAPES = SHAPES[:1]
LARGEST_ERROR = {torch.bfloat16: 2.0**-7, torch.float16: 2.0**-10, torch.float32: 2.0**-18}
CHECKED_ROWS = 16


def case_of(operation: str, rows: int, columns: int, dtype: torch.dtype, seed: int) -> Case:
    """One operation on one shape."""
    ours, torchs = OPERATIONS[operation]
    generator = torch.Generator("cuda").manual_seed(seed)
    x = torch.randn((rows, columns), generator=generator, device="cuda", dtype=dtype)
    weight, bias = torch.randn((2, columns), generator=generator, device="cuda", dtype=dtype)
    out, copied = torch.full_like(x, torch.nan), torch.empty_like(x)
    some = torch.randint(0, rows, (CHECKED_ROWS,), generator=generator, device="cuda")
    exact = torchs(x[some].double(), weight.double(), bias.double())

    def check(result: torch.Tensor) -> str | None:
        error = float(((result[some].double() - exact).abs() / exact.abs().clamp_min(exact.abs().mean())).max())
        return None if error <= LARGEST_ERROR[dtype] else f"a relative error of {error:.3g}"

    size = 2 * x.numel() * x.element_size() / 1e9
    entrants = {
        OURS: Entrant(lambda: ours(x, weight, bias, out), size, check),
        TORCH: Entrant(lambda: torchs(x, weight, bias), size, check),
        COPY: Entrant(lambda: copied.copy_(x), size),
    }
    return Case(f"{operation} {rows}x{columns} {str(dtype).removeprefix('torch.')}", "GB/s", entrants, COPY)


def run(settings: Settings, record: Record) -> None:
    """Each operation on each shape."""
    shapes = QUICK_SHAPES if settings.quick else SHAPES
    cases = [partial(case_of, name, *shape, settings.seed) for shape in shapes for name in OPERATIONS]
    beside.run(cases, settings, record)


BENCH = Bench(
    "norms",
    "softmax, RMSNorm and LayerNorm along rows, beside torch's and a copy",
    True,
    run,
    beside.tables,
    beside.draw,
    (OURS, TORCH, COPY),
)
