"""`matmul` against float64: every order, type, size and alignment, epilogues, batches, what it refuses."""

from __future__ import annotations

import functools
import itertools
from typing import Any

import pytest
import torch
from products import assert_product, operand, poisoned

from warpjit import ArgumentError, T
from warpjit.kernels import matmul as matmuls
from warpjit.kernels.gemm import Case, Tile, gemm
from warpjit.kernels.matmul import matmul
from warpjit.kernels.products import CHOICES, default_tile

SIZES = (1, 7, 16, 65, 128, 129, 257, 1000, 4096)
BOTH = (torch.float16, torch.bfloat16)
ORDERS = tuple(itertools.product((False, True), repeat=2))
SMALL = Tile(32, 32, 32, 16, 16, 3)


def check(size: tuple[int, int, int], dtype: torch.dtype, order: tuple[bool, bool], device: str, **how: Any) -> None:
    m, n, k = size
    a, b = operand((m, k), dtype, device, order[0]), operand((k, n), dtype, device, order[1])
    out = poisoned((m, n), how.pop("result", dtype), device)
    assert matmul(a, b, out=out, **how) is out
    assert_product(a, b, out)


@pytest.mark.gpu
@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("dtype", BOTH)
def test_every_size_and_order(dtype: torch.dtype, order: tuple[bool, bool]) -> None:
    """One test an order, and not one a size: sizes share kernels, which are traced once a process."""
    for size in itertools.product(SIZES, repeat=3):
        check(size, dtype, order, "cuda")


# Each value of m, n and k at least once, each order three times, both types.
SOME = [
    ((1, 7, 16), torch.float16, (False, False)),
    ((7, 1, 65), torch.bfloat16, (False, True)),
    ((16, 16, 1), torch.float16, (True, False)),
    ((65, 64, 128), torch.bfloat16, (True, True)),
    ((128, 72, 129), torch.float16, (False, False)),
    ((129, 128, 7), torch.bfloat16, (False, True)),
    ((64, 65, 80), torch.float16, (True, False)),
    ((128, 129, 64), torch.bfloat16, (True, True)),
    ((1, 257, 128), torch.float16, (False, True)),
    ((257, 8, 16), torch.bfloat16, (False, False)),
    ((40, 24, 1000), torch.float16, (True, True)),
    ((64, 64, 192), torch.bfloat16, (True, False)),
]


@pytest.mark.parametrize(("size", "dtype", "order"), SOME)
def test_some_sizes_in_the_simulator(size: tuple[int, int, int], dtype: torch.dtype, order: tuple[bool, bool]) -> None:
    check(size, dtype, order, "cpu", tile=SMALL)


def test_steps_in_the_simulator() -> None:
    """One step is one operation of a group of warps, whatever the CTAs."""
    a = torch.randn(256, 256).half()
    out = poisoned((256, 256), torch.float16, "cpu")
    case = Case(default_tile(256, 256, 1, True, 132, 227 * 1024), (256, 256, 256))
    report = gemm(case).simulate(a, a.T.contiguous(), out, (), epilogue=None)
    assert_product(a, a, out)
    assert report.steps <= 3000


@pytest.mark.parametrize("result", [torch.float32, torch.float16, torch.bfloat16])
def test_types_of_the_result(device: str, result: torch.dtype) -> None:
    for size in ((48, 40, 64), (33, 31, 32), (20, 28, 36), (12, 18, 20)):
        check(size, torch.float16, (False, False), device, result=result, tile=SMALL)


def test_the_same_bits_in_any_tiles(device: str) -> None:
    """Sums run along k, sixteen at a time, whatever the tiles."""
    a, b = (operand((96, 96), torch.bfloat16, device, False) for _ in range(2))
    others = Tile(64, 64, 64, 32, 32, 2), Tile(48, 32, 96, 48, 32, 4), Tile(48, 48, 96, 16, 48, 2)
    results = [matmul(a, b, tile=tile) for tile in (SMALL, *others)]
    assert all(torch.equal(results[0], each) for each in results[1:])


@pytest.mark.gpu
def test_every_tile_on_the_device() -> None:
    for choice in CHOICES:
        check((384, 512, 256), torch.bfloat16, (False, True), "cuda", tile=choice.tile)
        check((200, 264, 136), torch.float16, (True, False), "cuda", tile=choice.tile)


# ---- batches and views ------------------------------------------------------------------------------------------


def test_batches(device: str) -> None:
    a, b = operand((3, 33, 40), torch.float16, device, False), operand((3, 40, 24), torch.float16, device, True)
    assert_product(a, b, matmul(a, b, tile=SMALL))
    one = operand((40, 24), torch.float16, device, False)
    assert_product(a, one.expand(3, 40, 24), matmul(a, one, tile=SMALL))
    assert_product(a[0].expand(3, 33, 40), b, matmul(a[0], b, tile=SMALL))


def test_views(device: str) -> None:
    """Rows apart, an odd start, overlapping rows, a step along the rows."""
    base = operand((64, 136), torch.float16, device, False)
    b = operand((64, 32), torch.float16, device, False)
    odd = operand((1 + 64 * 64,), torch.float16, device, False)[1:].view(64, 64)
    for a in (base[:, 8:72], base[:, 3:67], odd, base.as_strided((64, 64), (1, 1)), base[:, ::2][:, :64]):
        assert_product(a, b, matmul(a, b, tile=SMALL))


def test_rows_of_the_result_apart(device: str) -> None:
    a, b = (operand((32, 32), torch.float16, device, False) for _ in range(2))
    wide = torch.zeros(32, 48, dtype=torch.float16, device=device)
    matmul(a, b, out=wide[:, 8:40], tile=SMALL)
    assert_product(a, b, wide[:, 8:40])
    assert not wide[:, :8].any() and not wide[:, 40:].any()


def test_nothing_to_do(device: str) -> None:
    empty = torch.empty(0, 16, dtype=torch.float16, device=device)
    other = torch.ones(16, 8, dtype=torch.float16, device=device)
    assert matmul(empty, other, tile=SMALL).shape == (0, 8)
    assert not matmul(other[:, :0], other[:0], tile=SMALL).any()
    assert matmul(other[:, :0], other[:0], tile=SMALL).shape == (16, 8)


# ---- epilogues --------------------------------------------------------------------------------------------------


def bias_relu(value, row, column, bias, scale):
    return T.max(value + bias[column], 0.0) * scale


def gelu(value, row, column):
    return 0.5 * value * (1.0 + T.erf(value * 0.7071067811865476))


def silu(value, row, column):
    return value / (1.0 + T.exp(-value))


def residual(value, row, column, other):
    return value + other[row, column]


@pytest.mark.parametrize("size", [(32, 32, 32), (37, 45, 24)])
def test_epilogues(device: str, size: tuple[int, int, int]) -> None:
    m, n, k = size
    a, b = operand((m, k), torch.float16, device, False), operand((k, n), torch.float16, device, False)
    bias, other = torch.randn(n, device=device), torch.randn(m, n, device=device).half()
    plain = a.double() @ b.double()
    cases: list[tuple[Any, tuple[Any, ...], torch.Tensor]] = [
        (bias_relu, (bias, 0.25), (plain + bias).clamp(min=0) * 0.25),
        (gelu, (), torch.nn.functional.gelu(plain)),
        (silu, (), torch.nn.functional.silu(plain)),
        (residual, (other,), plain + other),
        (lambda value, row, column: value * (row + 2 * column) * 0.0078125, (), plain * _ramp(m, n, device)),
    ]
    for epilogue, operands, expected in cases:
        out = poisoned((m, n), torch.float32, device)
        matmul(a, b, out=out, epilogue=epilogue, operands=operands, tile=SMALL)
        torch.testing.assert_close(out.double(), expected, rtol=2e-6, atol=2e-5)


def _ramp(m: int, n: int, device: str) -> torch.Tensor:
    return (torch.arange(m, device=device)[:, None] + 2 * torch.arange(n, device=device)[None, :]) / 128


def test_an_epilogue_of_each_batch(device: str) -> None:
    a, b = operand((2, 20, 16), torch.float16, device, False), operand((16, 24), torch.float16, device, False)
    other = torch.randn(2, 20, 24, device=device)
    out = poisoned((2, 20, 24), torch.float32, device)
    matmul(a, b, out=out, epilogue=residual, operands=(other,), tile=SMALL)
    torch.testing.assert_close(out.double(), a.double() @ b.double() + other, rtol=2e-6, atol=2e-5)


def test_a_residual_in_place(device: str) -> None:
    """The result may be an operand: each element is read before it is written."""
    a, b = (operand((32, 32), torch.float16, device, False) for _ in range(2))
    out = torch.randn(32, 32, device=device)
    expected = a.double() @ b.double() + out
    matmul(a, b, out=out, epilogue=residual, operands=(out,), tile=SMALL)
    torch.testing.assert_close(out.double(), expected, rtol=2e-6, atol=2e-5)


def test_a_lambda_in_a_loop_is_one_kernel() -> None:
    a = torch.randn(16, 16).half()
    kernel = gemm(Case(SMALL, (1, 8, 8), turned=(False, True)))
    before = len(kernel._programs)
    for _ in range(2):
        matmul(a, a, epilogue=lambda value, row, column: value + 1.0, tile=SMALL)
        assert len(kernel._programs) == before + 1


# ---- choices and refusals ---------------------------------------------------------------------------------------


def test_the_choice_of_tiles() -> None:
    """The fastest of those measured, where the shape leaves no doubt."""
    hopper, ada = 227 * 1024, 99 * 1024
    fastest = {(8192, 8192): (128, 256), (512, 4096): (128, 128), (1024, 1024): (128, 64), (128, 4096): (64, 64)}
    for (m, n), expected in fastest.items():
        tile = default_tile(m, n, 1, True, 132, hopper)
        assert (tile.m, tile.n) == expected
    assert default_tile(1, 65536, 1, True, 132, hopper).m == 16
    for m, n in itertools.product(SIZES, repeat=2):
        assert default_tile(m, n, 1, True, 132, ada).shared_bytes <= ada
        assert default_tile(m, n, 1, False, 132, ada).warp_n == 32


def test_the_choice_follows_the_target_of_the_simulator(monkeypatch: pytest.MonkeyPatch) -> None:
    a = torch.zeros(4096, 4096).half()
    chosen: list[Tile] = []

    def noted(case: Case) -> Any:
        chosen.append(case.tile)
        return lambda *args, epilogue: None

    monkeypatch.setattr(matmuls, "gemm", noted)
    monkeypatch.setattr(matmuls, "plan_of", functools.lru_cache(matmuls.plan_of.__wrapped__))
    for target in ("sm_90a", "sm_89"):
        monkeypatch.setenv("WARPJIT_TARGET", target)
        matmul(a, a)
    large, small = chosen
    assert large.shared_bytes > 99 * 1024 >= small.shared_bytes


def test_tiles_that_make_no_sense() -> None:
    with pytest.raises(ArgumentError, match="expected m and n that the warps' parts divide"):
        Tile(32, 32, 32, 16, 24, 3)
    with pytest.raises(ArgumentError, match="expected m and n"):
        Tile(32, 32, 32, 16, 16, 1)
    for sizes in ((0, 32, 32, 16, 16, 3), (32, 32, 32, 0, 16, 3), (-32, 32, 32, 16, 16, 3), (32, 32, 0, 16, 16, 3)):
        with pytest.raises(ArgumentError, match="expected positive ints"):
            Tile(*sizes)
    with pytest.raises(ArgumentError, match="expected positive ints"):
        Tile(32, 32, 32, 16, 16, 3, group=-1)


def refusal(*args: Any, **how: Any) -> str:
    with pytest.raises(ArgumentError) as caught:
        matmul(*args, **how)
    return str(caught.value)


def test_refusals() -> None:
    a, b, out = torch.zeros(4, 8).half(), torch.zeros(8, 2).half(), torch.zeros(4, 2)
    assert refusal(a.float(), b) == (
        "a: expected a tensor of 2 or 3 axes of float16 or bfloat16 but got shape (4, 8) of torch.float32"
    )
    assert refusal(a, [1]) == "b: expected a tensor but got [1]"
    assert refusal(a[0], b).endswith("float16 or bfloat16 but got shape (8,) of torch.float16")
    assert refusal(a, a) == (
        "b: expected torch.float16 of shape (…, 8, n) and a's batch but got torch.float16 of shape (4, 8), for a of "
        "shape (4, 8)"
    )
    assert refusal(a, b.bfloat16()).startswith("b: expected torch.float16 of shape")
    assert refusal(a.expand(2, 4, 8), b.expand(3, 8, 2)).endswith("of shape (3, 8, 2), for a of shape (2, 4, 8)")
    assert refusal(a, b, out=torch.zeros(2, 4).half()) == (
        "out: expected a tensor of shape (4, 2) with contiguous rows, of float16, bfloat16 or float32, but got shape "
        "(2, 4), strides (4, 1) of torch.float16"
    )
    assert refusal(a.to_sparse(), b).startswith("a: expected a dense tensor in memory, but ")
    assert refusal(a, b, tile=(32, 32)) == 'tile: expected a Tile, "tune" or None but got (32, 32)'
    assert refusal(a, b, epilogue=residual, operands=out) == (
        "operands: expected a tuple, (x,) for one operand, but got a Tensor"
    )
    assert refusal(a.expand(3, 4, 8), b, epilogue=residual, operands=(1, torch.zeros(2, 4, 2))) == (
        "operands[1]: expected 3 matrices, one for each batch, but got 2"
    )
    assert refusal(a, b, operands=(1.0,)) == "matmul: operands are arguments of an epilogue, but there is none"


def test_tensors_without_memory_of_their_own() -> None:
    a, expected = torch.randn(4, 4).half(), "a: expected a dense tensor in memory, but"
    for other in (a.to_sparse(), a.float().to_mkldnn()):
        assert refusal(other, a).startswith(expected)
    for caller in (torch.vmap(lambda x: matmul(x, a)), torch.func.grad(lambda x: matmul(x, a).sum())):
        with pytest.raises(ArgumentError, match=expected):
            caller(a.expand(3, 4, 4))


@pytest.mark.parametrize("strides", [(0, 1), (3, 1)])
def test_results_that_would_be_written_over_one_another(strides: tuple[int, int]) -> None:
    a, place = torch.ones(4, 4).half(), torch.zeros(64).half()
    sentence = f"out: expected a place in memory for each element but got shape (4, 4) with strides {strides}"
    assert refusal(a, a, out=place.as_strided((4, 4), strides)) == sentence
    assert not place.any()
    batches = place.as_strided((2, 4, 4), (4, 8, 1))  # rows of two results in turn are as good as any
    assert matmul(a.expand(2, 4, 4), a, out=batches, tile=SMALL).eq(4).all()
    assert matmul(a[:0], a, out=place.as_strided((0, 4), (0, 1)), tile=SMALL).shape == (0, 4)
