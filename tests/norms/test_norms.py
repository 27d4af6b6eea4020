"""Softmax, RMSNorm and LayerNorm along rows against float64: sizes, types, strides, special values, what is refused."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import pytest
import torch
import torch.nn.functional as F

from warpjit import ArgumentError
from warpjit.kernels import rows
from warpjit.kernels.layernorm import layernorm
from warpjit.kernels.rmsnorm import rmsnorm
from warpjit.kernels.softmax import softmax

TYPES = (torch.float16, torch.bfloat16, torch.float32, torch.float64)
SHAPES = ((1, 1), (5, 64), (3, 7), (2, 3, 1000), (130, 16), (9,), (4, 2), (2, 1, 2056))
LONG = {torch.bfloat16: (2, 8192), torch.float32: (1, 33_000), torch.float16: (2, 4097), torch.float64: (1, 4096)}


def half_step(dtype: torch.dtype) -> float:
    return torch.finfo(dtype).eps / 2


def step(dtype: torch.dtype) -> float:
    """Of the type in which elements are computed."""
    return 2.0**-53 if dtype == torch.float64 else 2.0**-24


def exact(x: torch.Tensor) -> torch.Tensor:
    return x.detach().cpu().double()


def assert_within(out: torch.Tensor, ref: torch.Tensor, bound: torch.Tensor) -> None:
    """|out - ref| <= the bound, that of rounding to a subnormal number added; NaN where ref is."""
    bound = bound + torch.finfo(out.dtype).smallest_normal * torch.finfo(out.dtype).eps
    wrong = ~((exact(out) - ref).abs() <= bound) & ~(ref.isnan() & exact(out).isnan())
    if wrong.any():
        where = tuple(int(i) for i in wrong.nonzero()[0])
        raise AssertionError(
            f"{int(wrong.sum())} elements are wrong, the first at {where}: expected {ref[where].item()} within "
            f"{bound[where].item()} but got {out[where].item()}"
        )


def check_softmax(x: torch.Tensor, out: torch.Tensor, dim: int = -1) -> None:
    wide = exact(x)
    ref = wide.softmax(dim)
    below = (wide.amax(dim, keepdim=True) - wide).nan_to_num(nan=0.0, posinf=0.0)
    bound = (half_step(x.dtype) + (below + x.shape[dim] / 64 + 16) * 2 * step(x.dtype)) * ref
    assert_within(out, ref, bound)


def check_rmsnorm(x: torch.Tensor, weight: torch.Tensor | None, eps: float, out: torch.Tensor) -> None:
    n = x.shape[-1]
    ref = F.rms_norm(exact(x), (n,), None if weight is None else exact(weight), eps)
    assert_within(out, ref, (half_step(x.dtype) + (n / 64 + 16) * step(x.dtype)) * ref.abs())


def check_layernorm(x: torch.Tensor, weight: Any, bias: Any, eps: float, out: torch.Tensor) -> None:
    wide, n = exact(x), x.shape[-1]
    weight, bias = (None if each is None else exact(each) for each in (weight, bias))
    ref = F.layer_norm(wide, (n,), weight, bias, eps)
    scale = (wide.var(-1, correction=0, keepdim=True) + eps).rsqrt()
    normal = (wide - wide.mean(-1, keepdim=True)).abs() * scale
    factor = 1.0 if weight is None else weight.abs()
    size = wide.abs().amax(-1, keepdim=True) * scale * factor * (1 + normal) + (0.0 if bias is None else bias.abs())
    assert_within(out, ref, half_step(x.dtype) * ref.abs() + (n / 64 + 16) * step(x.dtype) * size)


def each(x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor) -> None:
    """All three, into poisoned results."""

    def poisoned() -> torch.Tensor:
        return torch.full_like(x, math.nan)

    check_softmax(x, softmax(x, out=poisoned()))
    check_rmsnorm(x, weight, 1e-6, rmsnorm(x, weight, 1e-6, out=poisoned()))
    check_rmsnorm(x, None, torch.finfo(x.dtype).eps, rmsnorm(x))
    check_layernorm(x, weight, bias, 1e-5, layernorm(x, weight, bias, out=poisoned()))
    check_layernorm(x, None, bias, 1e-3, layernorm(x, None, bias, 1e-3))


@pytest.mark.parametrize("dtype", TYPES)
def test_sizes_and_types(device: str, dtype: torch.dtype) -> None:
    """In the simulator each type has half of the sizes, and each size a type of 16 bits and a wider one."""
    some = SHAPES if device == "cuda" else SHAPES[TYPES.index(dtype) % 2 :: 2]
    for shape in (*some, LONG[dtype]):
        x = (3 * torch.randn(shape, device=device) + 0.5).to(dtype)
        weight, bias = torch.randn((2, shape[-1]), device=device).to(dtype)
        each(x, weight, bias)


@pytest.mark.gpu
@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float32])
def test_longer_rows(dtype: torch.dtype) -> None:
    for n in (2, 33, 70, 257, 1026, 8193, 32_769, 100_001):
        x = torch.randn((37, n), device="cuda").to(dtype)
        each(x, *torch.randn((2, n), device="cuda"))


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float32])
def test_special_values(device: str, dtype: torch.dtype) -> None:
    inf, nan = math.inf, math.nan
    x = torch.randn((8, 40), device=device).to(dtype)
    x[0], x[1, 3], x[2, 5], x[3, 7] = -inf, nan, inf, -inf
    x[4], x[5], x[6, ::2] = 0.0, torch.finfo(dtype).max / 64, -inf
    x[7, 0], x[7, 1:] = 200.0, -200.0
    check_softmax(x, softmax(x))
    rows_of_numbers = x[[4, 7]]
    each(rows_of_numbers, *torch.randn((2, 40), device=device))
    for norm in (rmsnorm, layernorm):
        out = norm(x)
        assert exact(out).isnan()[1].all()
        assert exact(out).isfinite()[[4, 7]].all()


def test_strides_and_places(device: str) -> None:
    wide = torch.randn((6, 4, 48), device=device)
    for x in (
        wide[:, 1],
        wide[::2, :, 8:24],
        wide[..., 1:8],
        wide[..., ::3],
        wide[:, 0].t(),
        wide[0, :1].expand(5, 48),
    ):
        each(x, *torch.randn((2, x.shape[-1]), device=device))
        check_softmax(x, softmax(x, 0), 0)
    middle = softmax(wide, 1)
    check_softmax(wide, middle, 1)
    out = torch.full_like(wide, math.nan)
    assert softmax(wide, 1, out=out) is out
    check_softmax(wide, out, 1)
    turned = torch.full((48, 6), math.nan, device=device).t()
    assert layernorm(wide[:, 1], out=turned) is turned
    check_layernorm(wide[:, 1], None, None, 1e-5, turned)
    inside = torch.full((6, 100), 7.0, device=device)
    rmsnorm(wide[:, 1], out=inside[:, 3:51])
    check_rmsnorm(wide[:, 1], None, torch.finfo(torch.float32).eps, inside[:, 3:51])
    assert (inside[:, :3] == 7).all() and (inside[:, 51:] == 7).all()


@pytest.mark.parametrize("columns", [40, 33_000])
def test_in_place(device: str, columns: int) -> None:
    x = torch.randn((2, columns), device=device)
    for function in (softmax, rmsnorm, layernorm):
        expected = function(x)
        again = x.clone()
        assert function(again, out=again) is again
        assert torch.equal(again, expected)


def test_vectors_of_other_types(device: str) -> None:
    x = torch.randn((3, 64), device=device).half()
    for dtype in TYPES:
        weight, bias = torch.randn((2, 64), device=device).to(dtype)
        check_layernorm(x, weight, bias, 1e-5, layernorm(x, weight, bias))
    every_other = torch.randn(128, device=device)[::2]
    check_rmsnorm(x, every_other, 1e-6, rmsnorm(x, every_other, 1e-6))


def test_nothing_to_do(device: str) -> None:
    for shape in ((0,), (0, 5), (3, 0), (2, 0, 4)):
        x = torch.empty(shape, device=device)
        for function in (softmax, rmsnorm, layernorm):
            assert function(x).shape == shape


@pytest.mark.parametrize("columns", [1, 8, 31, 32, 33, 1000, 8192, 32_768, 32_769, 10**6])
@pytest.mark.parametrize("size", [2, 4, 8])
def test_every_element_has_one_place(columns: int, size: int) -> None:
    case = rows.case_of(columns, size)
    assert columns % case.items == 0 and case.items * size <= 16
    assert case.block in (32, 64, 128, 256, 512, 1024)
    assert case.pieces == 0 or case.pieces * case.span >= columns
    assert case.pieces * case.span <= rows.HELD


X = torch.zeros(2, 4)
REFUSED: list[tuple[Callable[[], object], str]] = [
    (lambda: softmax([1.0]), "x: expected a tensor but got "),
    (lambda: softmax(torch.tensor(1.0)), "x: expected floats with one axis or more but got shape () of torch.float32"),
    (lambda: rmsnorm(X.int()), "x: expected floats with one axis or more but got shape (2, 4) of torch.int32"),
    (lambda: softmax(X, 2), "dim: expected an axis of shape (2, 4) but got 2"),
    (lambda: softmax(X, 0.5), "dim: expected an axis of shape (2, 4) but got 0.5"),  # type: ignore[arg-type]
    (lambda: softmax(X, True), "dim: expected an axis of shape (2, 4) but got True"),
    (
        lambda: softmax(X, out=torch.zeros(4, 2)),
        "out: expected shape (2, 4) of torch.float32 but got shape (4, 2) of torch.float32",
    ),
    (
        lambda: layernorm(X, out=X.double()),
        "out: expected shape (2, 4) of torch.float32 but got shape (2, 4) of torch.float64",
    ),
    (lambda: layernorm(X, torch.zeros(2)), "weight: expected shape (4,) but got shape (2,)"),
    (lambda: layernorm(X, bias=torch.zeros(1, 4)), "bias: expected shape (4,) but got shape (1, 4)"),
]


@pytest.mark.parametrize(("call", "says"), REFUSED)
def test_refused(call: Callable[[], object], says: str) -> None:
    with pytest.raises(ArgumentError) as caught:
        call()
    assert str(caught.value).startswith(says)
    assert (X == 0).all()


def test_results_that_torch_would_not_copy_to(device) -> None:
    """A transposed `out` gets its results by a copy, also where it is a leaf with a gradient or an inference tensor."""
    x = torch.arange(24.0, device=device).view(4, 6)
    with torch.inference_mode():
        inference = torch.empty(6, 4, device=device).T
    leaf = torch.empty(6, 4, device=device, requires_grad=True)
    for out in (inference, leaf.T):
        assert softmax(x, out=out) is out
        check_softmax(x, out.detach())
    assert softmax(x.T, 0, out=leaf) is leaf
    check_softmax(x.T, leaf.detach(), 0)
