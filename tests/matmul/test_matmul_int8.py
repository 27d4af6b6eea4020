"""`matmul_int8` against integers: every order, size and alignment, scales, extremes, what it refuses."""

from __future__ import annotations

import itertools
from typing import Any

import pytest
import torch

from warpjit import ArgumentError, T
from warpjit.kernels.gemm import Case, Tile, gemm
from warpjit.kernels.matmul_int8 import matmul_int8
from warpjit.kernels.products import CHOICES

SMALL = Tile(32, 32, 32, 16, 16, 3)
EXACT = 2**17 - 1
"""The largest k for which no sum of products of int8 leaves int32."""


def integers(shape: tuple[int, int], device: str, turned: bool = False) -> torch.Tensor:
    if turned:
        return integers((shape[1], shape[0]), device).mT
    return torch.randint(-128, 128, shape, dtype=torch.int8, device=device)


def poisoned(shape: tuple[int, int], dtype: torch.dtype, device: str) -> torch.Tensor:
    return torch.full(shape, float("nan") if dtype.is_floating_point else -(2**31), dtype=dtype, device=device)


def sums(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    """a @ b, exact: float64 holds integers up to 2**53."""
    return a.double() @ b.double()


def check(size: tuple[int, int, int], order: tuple[bool, bool], device: str, **how: Any) -> None:
    m, n, k = size
    a, b = integers((m, k), device, order[0]), integers((k, n), device, order[1])
    out = poisoned((m, n), torch.int32, device)
    assert matmul_int8(a, b, out=out, **how) is out
    assert torch.equal(out.double(), sums(a, b)), size


SOME = [
    ((1, 1, 1), (False, True)),
    ((32, 32, 128), (False, True)),
    ((1, 40, 64), (True, True)),
    ((33, 1, 80), (False, False)),
    ((40, 24, 52), (True, False)),
    ((31, 37, 77), (False, True)),
    ((64, 65, 16), (False, False)),
]


@pytest.mark.parametrize(("size", "order"), SOME)
def test_sums_are_exact(device: str, size: tuple[int, int, int], order: tuple[bool, bool]) -> None:
    check(size, order, device, tile=SMALL)


LARGER = ((1, 1, 1), (1, 1000, 4096), (1000, 129, 1), (129, 64, 1000), (64, 1000, 257), (1000, 1000, 64))


@pytest.mark.gpu
def test_sizes_orders_and_tiles_on_the_device() -> None:
    for size in LARGER:
        check(size, (False, True), "cuda", tile=SMALL)
    for order in itertools.product((False, True), repeat=2):
        check((200, 264, 136), order, "cuda")
    for choice in CHOICES:
        check((384, 512, 256), (False, True), "cuda", tile=choice.tile)


@pytest.mark.gpu
def test_the_longest_sums() -> None:
    """The last that are exact for all int8, and the first that wraps."""
    a = torch.full((1, EXACT + 1), -128, dtype=torch.int8, device="cuda")
    assert matmul_int8(a[:, 1:], a[:, 1:].mT).item() == EXACT * 2**14 == 2**31 - 2**14
    assert matmul_int8(a, a.mT).item() == -(2**31)
    assert matmul_int8(a, a.mT, 2.0).item() == -(2.0**32)


def test_extremes(device: str) -> None:
    a = torch.full((16, 96), -128, dtype=torch.int8, device=device)
    assert matmul_int8(a, a.mT, tile=SMALL).eq(96 * 2**14).all()
    assert matmul_int8(a, -1 - a.mT, tile=SMALL).eq(-96 * 128 * 127).all()


def test_scales(device: str) -> None:
    """float32(sum) * scale_a * scale_b, rounded at each step: bit for bit."""
    m, n, k = 33, 40, 96
    a, b = integers((m, k), device), integers((k, n), device, turned=True)
    rows, columns, one = (torch.rand(length, device=device) / 4096 for length in (m, n, 1))
    plain = sums(a, b).float()
    for scale_a, scale_b, dtype, expected in (
        (rows, columns, torch.float32, plain * rows[:, None] * columns),
        (rows[:, None], 0.125, torch.float16, plain * rows[:, None] * 0.125),
        (one, columns[None], torch.bfloat16, plain * one * columns),
        (None, one[0], torch.float32, plain * one),
        (3, None, torch.float16, plain * 3.0),
    ):
        out = poisoned((m, n), dtype, device)
        matmul_int8(a, b, scale_a, scale_b, out=out, tile=SMALL)
        assert torch.equal(out, expected.to(dtype))
        assert torch.equal(matmul_int8(a, b, scale_a, scale_b, out_dtype=dtype, tile=SMALL), out)


def test_scales_that_are_not_finite(device: str) -> None:
    a, b = torch.ones(2, 16, dtype=torch.int8, device=device), torch.ones(16, 2, dtype=torch.int8, device=device)
    b[:, 1] = 0
    scales = torch.tensor([float("inf"), float("nan")], device=device)
    out = matmul_int8(a, b, scales, tile=SMALL).cpu()
    assert out[0, 0] == float("inf") and out[0, 1].isnan() and out[1].isnan().all()


def test_types_of_the_result(device: str) -> None:
    a, b = integers((33, 96), device), integers((96, 40), device, turned=True)
    assert matmul_int8(a, b, tile=SMALL).dtype == torch.int32
    assert matmul_int8(a, b, 1.0, tile=SMALL).dtype == torch.float32
    for dtype in (torch.float32, torch.float16):
        plain = matmul_int8(a, b, out_dtype=dtype, tile=SMALL)
        assert torch.equal(plain, sums(a, b).to(dtype))


def test_views(device: str) -> None:
    """Rows apart, an odd start, a step along the rows; rows of the result apart."""
    base = integers((32, 136), device)
    b = integers((64, 16), device)
    odd = integers((1, 32 * 64 + 1), device)[0, 1:].view(32, 64)
    for a in (base[:, 16:80], base[:, 3:67], odd, base[:, ::2][:, :64]):
        assert torch.equal(matmul_int8(a, b, tile=SMALL).double(), sums(a, b))
    wide = torch.zeros(32, 32, dtype=torch.int32, device=device)
    matmul_int8(odd, b, out=wide[:, 8:24], tile=SMALL)
    assert torch.equal(wide[:, 8:24].double(), sums(odd, b)) and not wide[:, :8].any() and not wide[:, 24:].any()


def test_nothing_to_do(device: str) -> None:
    a = torch.ones(16, 8, dtype=torch.int8, device=device)
    assert matmul_int8(a[:0], a.mT, tile=SMALL).shape == (0, 16)
    assert not matmul_int8(a[:, :0], a.mT[:0], tile=SMALL).any()


def test_wide_copies_and_the_instruction_of_bytes() -> None:
    operand = T.Tensor(None, "int8"), T.Tensor(None, "int8"), T.Tensor(None, "int32"), ()
    text = gemm(Case(SMALL, (32, 32, 64), size=1)).source(*operand, epilogue=None, target="sm_90a")
    assert text.count("mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32") == 4
    assert "cp.async.cg.shared.global" in text and "cp.async.ca" not in text


def refusal(*args: Any, **how: Any) -> str:
    with pytest.raises(ArgumentError) as caught:
        matmul_int8(*args, **how)
    return str(caught.value)


def test_refusals() -> None:
    a, b = torch.zeros(4, 8, dtype=torch.int8), torch.zeros(8, 2, dtype=torch.int8)
    assert refusal(a.half(), b) == "a: expected a matrix of int8 but got shape (4, 8) of torch.float16"
    assert refusal(a, b[None]) == "b: expected a matrix of int8 but got shape (1, 8, 2) of torch.int8"
    assert refusal(a, a) == "b: expected shape (8, n) but got (4, 8), for a of shape (4, 8)"
    assert refusal(a, [1]) == "b: expected a tensor but got [1]"
    assert refusal(a, b, "x") == "scale_a: expected a number or a tensor but got 'x'"
    assert refusal(a, b, None, torch.zeros(4)) == (
        "scale_b: expected float32 of one element, of shape (2,) or (1, 2), but got shape (4,) of torch.float32"
    )
    assert refusal(a, b, torch.zeros(4).half()).endswith("but got shape (4,) of torch.float16")
    assert refusal(a, b, 1.0, out=torch.zeros(4, 2, dtype=torch.int32)) == (
        "out: expected a tensor of shape (4, 2) with contiguous rows, of one of float16, bfloat16, float32, but got "
        "shape (4, 2), strides (2, 1) of torch.int32"
    )
    assert refusal(a, b, out=torch.zeros(4, 2), out_dtype=torch.float16) == (
        "out: expected torch.float16, as out_dtype says, but got torch.float32"
    )
    assert refusal(a, b, out=torch.zeros(2).expand(4, 2)).startswith("out: expected a place in memory for each element")
    assert refusal(a, b, tile=32) == "tile: expected a Tile or None but got 32"
