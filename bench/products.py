"""The products that `gemm` times, C = A @ W.T, and whether a result is right.

A is (M, K), W (N, K), both of 16-bit floats from a normal distribution, C (M, N) of their type, added up in float32.
A result is right when, against float64, |C - ref| <= u |ref| + (ceil(K / 16) + 1) 2^-22 sum |a w|: the rounding of
the result, and of each m16n8k16 step's sum.
"""

from __future__ import annotations

import argparse
import math
from dataclasses import dataclass, replace
from functools import cached_property

import torch

from bench.measures import significant

ROUNDING = {torch.bfloat16: 2.0**-8, torch.float16: 2.0**-11}
"""u: half the distance of neighbours, relative."""
FROBENIUS = {torch.bfloat16: 1.8e-3, torch.float16: 3e-4}
"""The relative error of many elements together that is allowed."""
DTYPES = {"bfloat16": torch.bfloat16, "float16": torch.float16}
EXACT_ROWS = 64
STRIP = 1024


@dataclass(frozen=True, order=True)
class Size:
    """M x N x K of a product."""

    m: int
    n: int
    k: int

    @classmethod
    def parse(cls, text: str) -> Size:
        """Read "8192x6144x4096". Raises `argparse.ArgumentTypeError`."""
        parts = text.split("x")
        if len(parts) != 3 or not all(part.isdecimal() and int(part) > 0 for part in parts):
            raise argparse.ArgumentTypeError(f"sizes: expected MxNxK, e.g. 4096x6144x4096, but got {text!r}")
        return cls(*map(int, parts))

    def __str__(self) -> str:
        return f"{self.m}x{self.n}x{self.k}"

    @property
    def flop(self) -> int:
        return 2 * self.m * self.n * self.k


@dataclass(frozen=True)
class Case:
    """A product of one size and type ("bfloat16" or "float16")."""

    size: Size
    dtype: str

    def __str__(self) -> str:
        return f"{self.size} {self.dtype}"


@dataclass(frozen=True)
class Check:
    """How far a result is from right.

    allowed   the largest error of any element as a part of what is allowed: rows against float64, all against cuBLAS
    relative  the Frobenius norm of the rows' error, relative
    equal     the part of all elements that equal cuBLAS's bit for bit
    error     what is wrong; None: nothing
    """

    allowed: float
    relative: float
    equal: float
    error: str | None = None


class Problem:
    """Operands of a case on a device, and what their product must be."""

    def __init__(self, case: Case, device: str, seed: int) -> None:
        self.case, self.size, self.dtype = case, case.size, DTYPES[case.dtype]
        generator = torch.Generator(device).manual_seed(seed)
        m, n, k = case.size.m, case.size.n, case.size.k

        def normal(rows: int) -> torch.Tensor:
            return torch.randn((rows, k), generator=generator, device=device, dtype=self.dtype)

        self.a, self.w = normal(m), normal(n)
        middle = torch.randperm(m, generator=generator, device=device)[:EXACT_ROWS]
        self.rows = torch.cat([middle.new_tensor([0, m - 1]), middle]).unique()

    def poisoned(self) -> torch.Tensor:
        """A result in which nothing is written: (M, N) of NaN."""
        return torch.full((self.size.m, self.size.n), torch.nan, dtype=self.dtype, device=self.a.device)

    @property
    def accumulation(self) -> float:
        """The error that is allowed in proportion to sum |a w|."""
        return float((math.ceil(self.size.k / 16) + 1) * 2.0**-22)

    @cached_property
    def cublas(self) -> torch.Tensor:
        """The product by torch."""
        return torch.mm(self.a, self.w.t())

    @cached_property
    def exact(self) -> torch.Tensor:
        """`rows` of the product in float64."""
        return self.a[self.rows].double() @ self.w.double().t()

    @cached_property
    def magnitude(self) -> torch.Tensor:
        """sum |a w|, in the operands' type: right to a part in 100."""
        return torch.mm(self.a.abs(), self.w.abs().t())

    def check(self, out: torch.Tensor) -> Check:
        """Whether `out`, which was poisoned before, is the product."""
        missing = int(out.isnan().sum())
        if missing:
            return Check(math.inf, math.inf, 0.0, f"{missing} of {out.numel()} elements are NaN, or were not written")
        u = ROUNDING[self.dtype]
        error = (out[self.rows].double() - self.exact).abs()
        bound = u * self.exact.abs() + self.accumulation * self.magnitude[self.rows].double()
        rows = float((error / bound).max())
        relative = float(error.norm() / self.exact.norm())
        whole, equal = self._against_cublas(out)
        found = Check(significant(max(rows, whole)), significant(relative), significant(equal))
        if rows > 1:
            return replace(found, error=f"an element is {rows:.3g} times the allowed error from float64")
        if whole > 1:
            return replace(found, error=f"an element is {whole:.3g} times the allowed error from cuBLAS's")
        if self.exact.numel() >= 4096 and relative > FROBENIUS[self.dtype]:
            return replace(found, error=f"the relative error is {relative:.3g}, more than {FROBENIUS[self.dtype]}")
        return found

    def _against_cublas(self, out: torch.Tensor) -> tuple[float, float]:
        """The largest distance as a part of that which two right results may have; and the part that is equal."""
        worst, equal = 0.0, 0
        for start in range(0, self.size.m, STRIP):
            strip = slice(start, start + STRIP)
            mine, other, magnitude = (each[strip].float() for each in (out, self.cublas, self.magnitude))
            bound = ROUNDING[self.dtype] * (mine.abs() + other.abs()) + 2 * self.accumulation * magnitude
            worst = max(worst, float(((mine - other).abs() / bound).max()))
            equal += int((mine == other).sum())
        return worst, equal / out.numel()
