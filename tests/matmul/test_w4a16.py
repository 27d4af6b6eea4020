"""`w4a16` against float64: packing and back, every size, group and type, tiles, what it refuses."""

from __future__ import annotations

import itertools
from typing import Any

import pytest
import torch

from warpjit import ArgumentError
from warpjit.kernels import w4a16
from warpjit.kernels.w4a16 import Packed, Tile, default_tile, pack, pack_quantized

ROUNDING = {torch.bfloat16: 2.0**-8, torch.float16: 2.0**-11, torch.float32: 2.0**-24}
"""Half a unit in the last place of 1."""
STEP = 2.0**-22
"""What one mma of k = 16, or one fma, may cut off a sum, as a part of the magnitudes that it adds."""
BOTH = (torch.float16, torch.bfloat16)
FEW, MORE, MANY = Tile(8, 1, 1, 2, 2), Tile(16, 2, 1, 2, 2), Tile(64, 1, 2, 1, 2)


def quantized(n: int, k: int, group: int, dtype: torch.dtype, device: str) -> Packed:
    """Weights all of whose nibbles, zeros and scales differ."""
    groups = -(-k // group)
    q, zeros = torch.randint(0, 16, (n, k), device=device), torch.randint(0, 16, (n, groups), device=device)
    scales = (torch.rand(n, groups, device=device) + 0.5).to(dtype) * torch.tensor([-1, 1], device=device)[zeros % 2]
    return pack_quantized(q, scales.to(dtype), zeros, group)


def assert_product(x: torch.Tensor, packed: Packed, out: torch.Tensor) -> None:
    """|out − ref| ≤ u·|ref| + (⌈k/16⌉ + groups + 34)·2⁻²²·Σ|x·w|: an instruction, a group and a warp's sum each cut."""
    weights = packed.dequantize().double()
    expected, magnitude = x.double() @ weights.T, x.double().abs() @ weights.abs().T
    k = packed.shape[1]
    steps = -(-k // 16) + -(-k // packed.group) + 34
    bound = ROUNDING[out.dtype] * (expected.abs() + torch.finfo(out.dtype).smallest_normal) + steps * STEP * magnitude
    wrong = ~((out.double() - expected).abs() <= bound)
    assert not wrong.any(), f"{int(wrong.sum())} of {out.numel()}, the first at {wrong.nonzero()[0].tolist()}"


def check(m: int, packed: Packed, result: torch.dtype | None = None, **how: Any) -> None:
    n, k = packed.shape
    device = packed.words.device
    x = torch.randn(m, k, device=device).to(packed.dtype)
    out = torch.full((m, n), float("nan"), dtype=result or x.dtype, device=device)
    assert w4a16.matmul(x, packed, out=out, **how) is out
    assert_product(x, packed, out)


# ---- packing ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", BOTH)
def test_packing_keeps_everything(device: str, dtype: torch.dtype) -> None:
    for (n, k), group in itertools.product(((1, 1), (16, 128), (70, 200)), (32, 128, 512)):
        groups = -(-k // group)
        q, zeros = torch.randint(0, 16, (n, k), device=device), torch.randint(0, 16, (n, groups), device=device)
        scales = torch.randn(n, groups, device=device).to(dtype)
        packed = pack_quantized(q, scales, zeros, group).to("cpu").to(device)
        assert torch.equal(packed.quantized().long(), q) and torch.equal(packed.zeros.long(), zeros)
        assert torch.equal(packed.scales, scales)
        spread = [each.double().repeat_interleave(group, 1)[:, :k] for each in (scales, zeros)]
        assert torch.equal(packed.dequantize().double(), (q.double() - spread[1]) * spread[0])
        assert packed.words.numel() * 8 == -(-n // 64) * 64 * -(-k // 128) * 128


@pytest.mark.parametrize("dtype", BOTH)
def test_quantising(device: str, dtype: torch.dtype) -> None:
    """No weight moves by more than half a step and what rounding the scale costs; 0 stays 0, a flat group too."""
    weight = torch.randn(40, 300, device=device) + torch.linspace(-3, 3, 40, device=device)[:, None]
    weight[3], weight[4], weight[5, ::2] = 0.0, 2.5, 0.0
    packed = pack(weight, 64, dtype)
    assert packed.shape == (40, 300) and packed.scales.shape == (40, 5)
    steps = packed.scales.float().repeat_interleave(64, 1)[:, :300]
    error = (packed.dequantize() - weight).abs()
    assert (error <= steps * (0.5 + 16 * ROUNDING[dtype])).all()
    assert not packed.dequantize()[weight == 0].any()
    assert pack(weight.to(dtype)).dtype == dtype


def test_packing_refuses() -> None:
    weight, q = torch.randn(4, 64).half(), torch.zeros(4, 64, dtype=torch.int32)
    scales, zeros = torch.ones(4, 2).half(), torch.zeros(4, 2, dtype=torch.uint8)
    for arguments, sentence in (
        ((weight[0],), "weight: expected a float tensor of shape (n, k) but got shape (64,) of torch.float16"),
        ((weight, 48), "group: expected a power of two of at least 32 but got 48"),
        ((weight.float(),), "dtype: expected float16 or bfloat16 but got torch.float32"),
        ((weight / 0,), "weight: expected finite numbers with scales in torch.float16 but got others"),
        ((weight[:0],), "weight: expected a matrix that is not empty but got shape (0, 64)"),
    ):
        with pytest.raises(ArgumentError) as caught:
            pack(*arguments)
        assert str(caught.value) == sentence
    for arguments, sentence in (
        ((q, scales, zeros), "scales: expected shape (4, 1) but got (4, 2)"),
        ((q + 16, scales, zeros, 32), "q: expected integers from 0 to 15 but got others, of torch.int32"),
        ((q, scales, zeros.float(), 32), "zeros: expected integers from 0 to 15 but got others, of torch.float32"),
        ((q, scales.float(), zeros, 32), "scales: expected float16 or bfloat16 but got torch.float32"),
        ((q, scales / 0, zeros, 32), "scales: expected finite numbers but got others"),
        ((q, None, zeros, 32), "scales: expected a tensor of two axes that are not empty but got None"),
    ):
        with pytest.raises(ArgumentError) as caught:
            pack_quantized(*arguments)
        assert str(caught.value) == sentence


# ---- products -----------------------------------------------------------------------------------------------

SOME = [
    (1, (20, 256), 128, torch.float16, FEW),
    (8, (66, 200), 32, torch.bfloat16, FEW),
    (19, (37, 520), 512, torch.float16, MORE),
    (70, (64, 130), 64, torch.bfloat16, MANY),
]


@pytest.mark.parametrize(("m", "shape", "group", "dtype", "tile"), SOME)
def test_products(device: str, m: int, shape: tuple[int, int], group: int, dtype: torch.dtype, tile: Tile) -> None:
    check(m, quantized(*shape, group, dtype, device), tile=tile)


@pytest.mark.gpu
def test_sizes_and_tiles_on_the_device() -> None:
    """Few kernels, each of many sizes: tiles, groups, types and whether n is a multiple of 4 make others."""
    for dtype, group in ((torch.float16, 128), (torch.bfloat16, 32)):
        for shape in ((1, 1), (7, 100), (129, 1000), (1023, 4096)):
            packed = quantized(*shape, group, dtype, "cuda")
            for m, tile in itertools.product((1, 2, 8, 33, 100), (FEW, MORE)):
                check(m, packed, tile=tile)
    packed = quantized(1024, 2048, 256, torch.float16, "cuda")
    for choice in w4a16.CHOICES:
        for m in (16, 200):
            check(m, packed, tile=choice.tile)


@pytest.mark.gpu
def test_tiles_by_choice() -> None:
    packed = quantized(4096, 4096, 128, torch.bfloat16, "cuda")
    for m in (1, 64, 2000):
        check(m, packed)


def test_columns_split_among_ctas(device: str) -> None:
    """Of 5 slices for 3 CTAs the last has one."""
    check(3, quantized(20, 5 * 128, 128, torch.float16, device), torch.float32, tile=Tile(8, 1, 1, 1, 2, 3))


@pytest.mark.gpu
def test_more_ctas_along_the_columns_than_columns() -> None:
    for splits in (2, 3, 7, 8):
        check(3, quantized(20, 384, 128, torch.float16, "cuda"), tile=Tile(8, 1, 1, 2, 2, splits))


def test_shapes_of_x(device: str) -> None:
    """Leading axes, rows apart, an odd start, an order that is copied, nothing at all."""
    packed = quantized(20, 64, 128, torch.float16, device)
    base = torch.randn(2, 3, 160, device=device).half()
    turned = base[0, :, :64].T.contiguous().T
    for x in (base[..., 8:72], base[..., 1:65], base[:, :, ::2][..., :64], turned):
        out = w4a16.matmul(x, packed, tile=FEW)
        assert out.shape == (*x.shape[:-1], 20) and out.dtype == x.dtype
        assert_product(x.reshape(-1, 64), packed, out.view(-1, 20))
    assert w4a16.matmul(base[:0, :, :64], packed, tile=FEW).shape == (0, 3, 20)
    assert w4a16.matmul(base[:, :0, :64], packed, tile=FEW).shape == (2, 0, 20)


def test_exact_where_sums_are(device: str) -> None:
    """Small integers: no rounding anywhere, whatever the tile; each time the same."""
    q = torch.randint(0, 16, (20, 256), device=device)
    scales, zeros = torch.full((20, 2), 0.5, device=device).half(), torch.randint(0, 16, (20, 2), device=device)
    packed = pack_quantized(q, scales, zeros)
    x = torch.randint(-4, 5, (9, 256), device=device).half()
    expected = (x.double() @ packed.dequantize().double().T).half()
    for tile in (FEW, MORE) if device == "cuda" else (FEW,):
        assert torch.equal(w4a16.matmul(x, packed, tile=tile), expected)


@pytest.mark.parametrize("dtype", BOTH)
def test_numbers_that_are_not_finite(device: str, dtype: torch.dtype) -> None:
    """As torch has it with the weights in full: inf and NaN reach their row of x only."""
    packed = quantized(20, 128, 128, dtype, device)
    x = torch.randn(4, 128, device=device).to(dtype)
    x[1, 5], x[2, 70], x[3, 0], x[3, 127] = float("nan"), float("inf"), float("inf"), float("-inf")
    out = w4a16.matmul(x, packed, tile=FEW).double()
    expected = x.double() @ packed.dequantize().double().T
    assert torch.equal(out.isnan(), expected.isnan())
    assert torch.equal(out == float("inf"), expected == float("inf"))
    assert torch.equal(out == float("-inf"), expected == float("-inf"))


def test_refusals() -> None:
    packed = quantized(8, 64, 64, torch.float16, "cpu")
    x = torch.zeros(2, 64).half()
    for arguments, named, sentence in (
        (
            (x[:, :32], packed),
            {},
            "x: expected torch.float16 of shape (…, m, 64) but got shape (2, 32) of torch.float16",
        ),
        (
            (x.bfloat16(), packed),
            {},
            "x: expected torch.float16 of shape (…, m, 64) but got shape (2, 64) of torch.bfloat16",
        ),
        ((x, x), {}, "packed: expected what `pack` gives but got a tensor"),
        ((x, packed), {"tile": 8}, "tile: expected a Tile or None but got 8"),
        (
            (x, packed),
            {"out": torch.zeros(8, 2).T},
            "out: expected a contiguous tensor of shape (2, 8), of float16, bfloat16 or float32, but got shape (2, 8), "
            "strides (1, 2) of torch.float32",
        ),
    ):
        with pytest.raises(ArgumentError) as caught:
            w4a16.matmul(*arguments, **named)
        assert str(caught.value) == sentence
    for sizes in ((12, 1, 1, 1), (8, 3, 1, 1), (8, 1, 1, 33), (40, 1, 1, 1), (8, 1, 1, 1, 1), (8, 0, 1, 1)):
        with pytest.raises(ArgumentError, match="Tile"):
            Tile(*sizes)


def test_the_choice_of_tiles() -> None:
    """The fastest of those measured, where the shape leaves no doubt; always one that fits."""
    hopper, ada = 227 * 1024, 99 * 1024
    fastest = {
        (1, 8192): (8, 32, 1),
        (16, 8192): (16, 32, 1),
        (32, 8192): (32, 64, 1),
        (64, 8192): (64, 256, 4),
        (128, 8192): (64, 128, 1),
        (4096, 8192): (64, 256, 1),
        (1, 1024): (8, 32, 4),
    }
    for (m, n), expected in fastest.items():
        tile = default_tile(m, n, 8192, 132, hopper)
        assert (tile.m, tile.n, tile.splits) == expected
    for m, n, k in itertools.product((0, 1, 9, 33, 4096), (1, 100, 8192), (1, 128, 65536)):
        tile = default_tile(m, n, k, 132, ada)
        assert tile.shared_bytes <= ada
        assert tile.splits == 1 or tile.splits * tile.k * 2 <= k
