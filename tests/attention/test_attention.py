"""`attention` against float64: lengths, groups, types, strides, rows without keys, NaN, infinities, what it refuses."""

from __future__ import annotations

import itertools
import math
from typing import Any

import pytest
import torch
from scores import Inputs, assert_attention

from warpjit import ArgumentError
from warpjit.kernels.attention import attention
from warpjit.kernels.flash import Tile

SMALL = Tile(32, 16, 2)
HELD = Tile(32, 16, 1, stages=3, held=1)
DIM = 32
"""Of most cases: small kernels are traced fast."""


def made(shape: tuple[int, ...], dtype: torch.dtype, device: str, tokens_first: bool = False) -> torch.Tensor:
    """Random numbers, (batch, heads, tokens, dim); `tokens_first`: stored as (batch, tokens, heads, dim)."""
    if tokens_first:
        batch, heads, tokens, dim = shape
        return torch.randn(batch, tokens, heads, dim, device=device).to(dtype).transpose(1, 2)
    return torch.randn(*shape, device=device).to(dtype)


def inputs(
    lengths: tuple[int, int],
    dim: int,
    device: str,
    *,
    dtype: torch.dtype = torch.float16,
    heads: tuple[int, int] = (2, 1),
    batch: int = 1,
    tokens_first: bool = False,
    **how: Any,
) -> Inputs:
    m, n = lengths
    q = made((batch, heads[0], m, dim), dtype, device, tokens_first)
    k, v = (made((batch, heads[1], n, dim), dtype, device, tokens_first) for _ in range(2))
    return Inputs(q, k, v, **how)


def attended(given: Inputs, **how: Any) -> tuple[torch.Tensor, torch.Tensor]:
    out = torch.full_like(given.q, math.nan)
    result, lse = attention(given.q, given.k, given.v, given.causal, given.scale, return_lse=True, out=out, **how)
    assert result is out
    return out, lse


def check(given: Inputs, **how: Any) -> None:
    assert_attention(given, *attended(given, **how))


# (m, n): each ragged in its own way against tiles of 32 x 16; m above, below and equal to n.
LENGTHS = {False: ((1, 1), (31, 32), (2, 49)), True: ((1, 33), (34, 34), (36, 30))}


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize(("tile", "dtype"), [(SMALL, torch.float16), (HELD, torch.bfloat16)], ids=["small", "held"])
def test_lengths(device: str, tile: Tile, dtype: torch.dtype, causal: bool) -> None:
    for lengths in LENGTHS[causal] if (tile is HELD) is causal or device == "cuda" else LENGTHS[causal][-1:]:
        check(inputs(lengths, DIM, device, dtype=dtype, causal=causal), tile=tile)


@pytest.mark.parametrize("dim", [16, 64, 80, 128])
def test_head_dimensions(device: str, dim: int) -> None:
    check(inputs((16, 20), dim, device, dtype=torch.bfloat16, causal=True), tile=Tile(16, 16, 1))


@pytest.mark.parametrize("heads", [(1, 1), (6, 2), (3, 3)])
def test_batches_and_groups(device: str, heads: tuple[int, int]) -> None:
    check(inputs((19, 25), DIM, device, heads=heads, batch=3, tokens_first=heads[0] > 1), tile=SMALL)


@pytest.mark.gpu
@pytest.mark.parametrize(("dim", "dtype"), [(64, torch.float16), (128, torch.bfloat16)])
def test_the_default_tiles(dim: int, dtype: torch.dtype) -> None:
    lengths = (*itertools.product((63, 128, 257, 1000), repeat=2), (4096, 4096))
    for causal, each in itertools.product((False, True), lengths):
        check(inputs(each, dim, "cuda", dtype=dtype, heads=(4, 2), batch=2, causal=causal))


@pytest.mark.gpu
def test_every_head_dimension_with_its_default_tile() -> None:
    for dim in range(16, 129, 16):
        check(inputs((200, 300), dim, "cuda", dtype=torch.bfloat16, causal=True))


# ---- what is stored how -----------------------------------------------------------------------------------------


def test_views(device: str) -> None:
    """Rows apart, parts of one tensor, one head for all, the same keys for every batch."""
    packed = made((2, 3, 20, 3 * DIM), torch.float16, device)
    check(Inputs(*packed.split(DIM, dim=-1)), tile=SMALL)
    one = made((1, 1, 20, DIM), torch.float16, device)
    check(Inputs(packed[..., :DIM], one.expand(2, 3, 20, DIM), packed[..., DIM : 2 * DIM]), tile=SMALL)


def test_what_is_copied(device: str) -> None:
    """An odd start, an odd step from row to row, columns in the place of rows."""
    odd = made((1 + 2 * 24 * DIM,), torch.float16, device)[1:].view(1, 2, 24, DIM)
    apart = made((1, 2, 24, DIM + 3), torch.float16, device)[..., :DIM]
    turned = made((1, 2, DIM, 24), torch.float16, device).mT
    for q, k, v in ((odd, apart, turned), (turned, odd, apart)):
        given = Inputs(q, k, v)
        assert_attention(given, attention(q, k, v, tile=SMALL))


def test_results_apart(device: str) -> None:
    given = inputs((21, 21), DIM, device)
    for start, step in ((8, 48), (3, 39)):  # with and without the alignment of wide stores
        wide = torch.zeros(1, 21, 2, step, dtype=torch.float16, device=device)
        out = wide[..., start : start + DIM].transpose(1, 2)
        attention(given.q, given.k, given.v, out=out, tile=SMALL)
        assert_attention(given, out)
        assert not wide[..., :start].any() and not wide[..., start + DIM :].any()


def test_as_torch_where_lengths_are_equal(device: str) -> None:
    given = inputs((20, 20), DIM, device, heads=(2, 2), causal=True)
    theirs = torch.nn.functional.scaled_dot_product_attention(
        given.q.double(), given.k.double(), given.v.double(), is_causal=True
    )
    assert (attention(given.q, given.k, given.v, True, tile=SMALL).double() - theirs).abs().max() < 2e-3


# ---- rows without keys, NaN, infinities -------------------------------------------------------------------------


def test_rows_that_see_no_key(device: str) -> None:
    given = inputs((50, 20), DIM, device, causal=True)
    out, lse = attended(given, tile=SMALL)
    assert_attention(given, out, lse)
    assert not out[:, :, :30].any() and (lse[:, :, :30] == -math.inf).all() and lse[:, :, 30:].isfinite().all()
    out, lse = attended(inputs((20, 0), DIM, device), tile=SMALL)
    assert not out.any() and (lse == -math.inf).all()


def test_nothing_to_do(device: str) -> None:
    for shape in ((0, 2, 8, DIM), (1, 2, 0, DIM)):
        empty = torch.empty(shape, dtype=torch.float16, device=device)
        out, lse = attention(empty, empty, empty, return_lse=True, tile=SMALL)
        assert out.shape == shape and lse.shape == shape[:3]


@pytest.mark.parametrize("causal", [False, True])
def test_nan_reaches_its_rows(device: str, causal: bool) -> None:
    """Of a query, of a key, of a value: the rows that see it, and no others but where `attention` says so."""
    given = inputs((48, 48), DIM, device, causal=causal)
    seen = ~given.hidden[:, 40]
    given.q[0, 0, 5, 3] = math.nan
    out, lse = attended(given, tile=SMALL)
    assert out.isnan().any(-1).nonzero().tolist() == [[0, 0, 5]] == lse.isnan().nonzero().tolist()
    given.q[0, 0, 5, 3] = 0.0
    given.k[0, 0, 40, 7] = math.nan
    out, lse = attended(given, tile=SMALL)
    assert torch.equal(out.isnan().all(-1), seen.expand(1, 2, 48)) and torch.equal(lse.isnan(), seen.expand(1, 2, 48))
    assert torch.equal(out.isnan().any(-1), seen.expand(1, 2, 48))
    given.k[0, 0, 40, 7] = 0.0
    given.v[0, 0, 40, 9] = math.nan
    out, lse = attended(given, tile=SMALL)
    others = out.index_fill(-1, torch.tensor(9, device=device), 0.0)
    assert out[..., seen, 9].isnan().all() and lse.isfinite().all() and others.isfinite().all()
    assert not causal or out[..., :32, :].isfinite().all()  # rows whose tile ends before the block of the key


def test_infinite_scores(device: str) -> None:
    """Keys of score -inf have no weight; where all have it there is no weight at all; +inf leaves no number."""
    given = inputs((20, 40), DIM, device)
    given.q[..., 0] = 1.0
    given.k[:, :, 10:, 0] = -math.inf
    out, lse = attended(given, tile=SMALL)
    assert_attention(Inputs(given.q, given.k[:, :, :10], given.v[:, :, :10]), out, lse)
    given.k[..., 0] = -math.inf
    out, lse = attended(given, tile=SMALL)
    assert not out.any() and (lse == -math.inf).all()
    given.k[:, :, 20, 0] = math.inf
    assert attended(given, tile=SMALL)[0].isnan().all()


def test_large_and_small_scores(device: str) -> None:
    """Where one key has all the weight, and where all have the same; scores in the thousands."""
    for scale in (30.0, 1e-6):
        check(inputs((20, 40), DIM, device, dtype=torch.bfloat16, scale=scale), tile=SMALL)
    given = inputs((20, 40), DIM, device)
    given.k[:, :, 1:] = given.k[:, :, :1]
    check(given, tile=SMALL)


# ---- what it refuses ------------------------------------------------------------------------------------------


def of(*shape: int, dtype: torch.dtype = torch.float16) -> torch.Tensor:
    return torch.zeros(shape, dtype=dtype)


Q = of(2, 4, 8, 64)
WRONG: list[tuple[dict[str, Any], str]] = [
    ({"q": 3}, "q: expected a tensor but got 3"),
    ({"q": of(4, 8, 64)}, r"q: expected a tensor \(batch, heads, tokens, dim\) .* but got shape \(4, 8, 64\)"),
    ({"q": of(2, 4, 8, 64, dtype=torch.float32)}, "q: expected .* of float16 or bfloat16 but got .*float32"),
    ({"q": of(2, 4, 8, 72)}, "q: expected a head dimension that is a multiple of 16 up to 128 but got 72"),
    ({"k": of(2, 3, 8, 64)}, r"k: expected .* shape \(2, a divisor of 4, tokens, 64\) but got .*\(2, 3, 8, 64\)"),
    ({"k": of(2, 0, 8, 64)}, "k: expected"),
    ({"k": of(1, 4, 8, 64)}, "k: expected"),
    ({"k": of(2, 4, 8, 64, dtype=torch.bfloat16)}, "k: expected torch.float16 .* but got torch.bfloat16"),
    ({"v": of(2, 4, 9, 64)}, r"v: expected k's type and shape, .*\(2, 4, 8, 64\), but got .*\(2, 4, 9, 64\)"),
    ({"causal": 1}, "causal: expected a bool but got 1"),
    ({"scale": 0.0}, "scale: expected a positive number or None but got 0.0"),
    ({"scale": math.nan}, "scale: expected a positive number"),
    ({"scale": "1"}, "scale: expected a positive number"),
    ({"tile": 3}, 'tile: expected a Tile, "tune" or None but got 3'),
    ({"out": of(2, 4, 8, 65)[..., 1:].mT.contiguous().mT}, "out: expected .* contiguous rows"),
    ({"out": of(2, 4, 9, 64)}, r"out: expected torch.float16 of shape \(2, 4, 8, 64\)"),
    ({"out": of(1, 4, 8, 64).expand(2, 4, 8, 64)}, "out: expected .* a place in memory for each element"),
    ({"out": of(2, 4, 8, 64, dtype=torch.float32)}, "out: expected torch.float16"),
]


@pytest.mark.parametrize(
    ("given", "message"), WRONG, ids=[f"{next(iter(given))} {i}" for i, (given, _) in enumerate(WRONG)]
)
def test_refusals(given: dict[str, Any], message: str) -> None:
    with pytest.raises(ArgumentError, match=message):
        attention(**{"q": Q, "k": Q, "v": Q, **given})


@pytest.mark.gpu
def test_tensors_on_several_devices() -> None:
    with pytest.raises(ArgumentError):
        attention(Q.cuda(), Q, Q.cuda())


@pytest.mark.parametrize(
    "wrong", [(0, 32, 1), (32, 32, 0), (24, 32, 1), (32, 24, 1), (32, 32, 1, 1), (32, 32, 1, 2, -1), (32, 32.0, 1)]
)
def test_tiles_that_cannot_be(wrong: tuple[Any, ...]) -> None:
    with pytest.raises(ArgumentError, match="expected"):
        Tile(*wrong)
