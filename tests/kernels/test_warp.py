"""Shuffles, votes, matches, sums and scans of a warp and of a CTA, on the simulator and on the GPU, bit for bit."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from refusals import ONE_WARP, refused

from warpjit import SimulationError, T, warpjit

BLOCK = 96


def numbers(dtype, count=BLOCK, seed=0):
    generator = torch.Generator().manual_seed(seed)
    if dtype.is_floating_point:
        return torch.randn(count, generator=generator, dtype=torch.float64).to(dtype)
    if dtype is torch.bool:
        return torch.rand(count, generator=generator) < 0.5
    info = torch.iinfo(dtype)
    low, high = max(info.min, -(2**62)), min(info.max, 2**62)
    return torch.randint(low, high, (count,), generator=generator, dtype=torch.int64).to(dtype)


@warpjit
def moved(A, Out):
    T.device_entry(launch=T.cuda.LaunchConfig(grid=1, block=BLOCK))
    i = T.cuda.thread_idx()
    x = A[i]
    Out[0, i] = T.cuda.shuffle(x, 5)
    Out[1, i] = T.cuda.shuffle(x, i * 7 + 3)
    Out[2, i] = T.cuda.shuffle(x, i + 1, width=8)
    Out[3, i] = T.cuda.shuffle_up(x, 3)
    Out[4, i] = T.cuda.shuffle_down(x, 2, width=16)
    Out[5, i] = T.cuda.shuffle_xor(x, 9)
    Out[6, i] = T.cuda.shuffle_up(x, i % 4, width=4)


TYPES = [torch.bool, torch.uint8, torch.int8, torch.int16, torch.float16, torch.bfloat16]
TYPES += [torch.int32, torch.float32, torch.int64, torch.float64]


def expected(x):
    """The rows of `moved`, by torch's indexing."""
    lane = torch.arange(BLOCK) % 32
    first = torch.arange(BLOCK) - lane
    sources = [
        torch.full((BLOCK,), 5),
        (torch.arange(BLOCK) * 7 + 3) % 32,
        lane // 8 * 8 + (torch.arange(BLOCK) + 1) % 8,
        torch.where(lane >= 3, lane - 3, lane),
        torch.where(lane % 16 + 2 < 16, lane + 2, lane),
        lane ^ 9,
        torch.where(lane % 4 >= torch.arange(BLOCK) % 4, lane - torch.arange(BLOCK) % 4, lane),
    ]
    return torch.stack([x[first + source] for source in sources])


@pytest.mark.parametrize("dtype", TYPES, ids=str)
def test_shuffles_move_any_type(device, both, dtype):
    x = numbers(dtype)
    out = torch.zeros((7, BLOCK), dtype=dtype, device=device)
    both(moved, x.to(device), out)
    assert torch.equal(out.cpu(), expected(x))


@warpjit
def voted(A, Out):
    T.device_entry(launch=T.cuda.LaunchConfig(grid=1, block=BLOCK))
    i = T.cuda.thread_idx()
    x = A[i]
    Out[0, i] = T.cuda.all(x >= 0)
    Out[1, i] = T.cuda.any(x == 3)
    Out[2, i] = T.int32(T.cuda.ballot(x > 1))
    Out[3, i] = T.int32(T.cuda.match_any(x))
    Out[4, i] = T.cuda.match_all(x // 4)
    Out[5, i] = T.int32(T.cuda.match_any(T.int64(x) << 40))
    Out[6, i] = T.popc(T.cuda.ballot(x))
    if T.cuda.any(x == 3):  # the same for a whole warp: barriers and collectives may stand here
        Out[7, i] = T.cuda.shuffle(x, 31)
    else:
        Out[7, i] = -1


def test_votes_and_matches(device, both):
    x = torch.cat([torch.arange(32) % 4, torch.full((32,), 2), torch.arange(32) - 5]).int()
    x[64:] = torch.where(x[64:] == 3, 4, x[64:])
    out = torch.zeros((8, BLOCK), dtype=torch.int32, device=device)
    both(voted, x.to(device), out)
    got = out.cpu().numpy().reshape(8, 3, 32)
    assert got[0, :, 0].tolist() == [1, 1, 0] and got[1, :, 0].tolist() == [1, 0, 0]
    warps = x.numpy().reshape(3, 32)
    bits = np.uint32(1) << np.arange(32, dtype=np.uint32)
    assert got[2].view(np.uint32)[:, 9].tolist() == [int(bits[warp > 1].sum()) for warp in warps]
    for warp, masks, wide in zip(warps, got[3].view(np.uint32), got[5].view(np.uint32), strict=True):
        want = [int(bits[warp == value].sum()) for value in warp]
        assert masks.tolist() == wide.tolist() == want
    assert got[4, :, 0].tolist() == [1, 1, 0] and got[6, :, 0].tolist() == [24, 32, 31]
    assert (got[7, 0] == 3).all() and (got[7, 1:] == -1).all()


@warpjit
def summed(A, Out, Total):
    T.device_entry(launch=T.cuda.LaunchConfig(grid=1, block=BLOCK))
    i = T.cuda.thread_idx()
    scratch = T.alloc_shared((4,), A.dtype)
    x = A[i]
    Out[0, i] = T.cuda.warp_sum(x)
    Out[1, i] = T.cuda.warp_max(x)
    Out[2, i] = T.cuda.warp_min(x)
    Out[3, i] = T.cuda.warp_sum(x, 8)
    Out[4, i] = T.cuda.warp_max(x, width=4)
    Out[5, i] = T.cuda.warp_scan(x)
    Out[6, i] = T.cuda.warp_scan(x, exclusive=True)
    Total[0, i] = T.cuda.cta_sum(x, scratch)
    Total[1, i] = T.cuda.cta_max(x, scratch)
    Total[2, i] = T.cuda.cta_min(x, scratch)


SUMMED = [torch.int32, torch.uint32, torch.int64, torch.float16, torch.bfloat16, torch.float32, torch.float64]


@pytest.mark.parametrize("dtype", SUMMED, ids=str)
def test_sums_extremes_and_scans(device, both, dtype):
    x = (numbers(torch.float64) * 8).round().to(torch.int64)
    x = (x.abs() if dtype is torch.uint32 else x).to(dtype)
    out = torch.zeros((7, BLOCK), dtype=dtype, device=device)
    total = torch.zeros((3, BLOCK), dtype=dtype, device=device)
    both(summed, x.to(device), out, total)
    whole = x.double().reshape(3, 32)  # small integers: every sum is exact in every type
    got = out.cpu().double().reshape(7, 3, 32)
    assert torch.equal(got[0], whole.sum(1, keepdim=True).expand(3, 32))
    assert torch.equal(got[1], whole.amax(1, keepdim=True).expand(3, 32))
    assert torch.equal(got[2], whole.amin(1, keepdim=True).expand(3, 32))
    assert torch.equal(got[3], whole.reshape(3, 4, 8).sum(2).repeat_interleave(8, 1))
    assert torch.equal(got[4], whole.reshape(3, 8, 4).amax(2).repeat_interleave(4, 1))
    assert torch.equal(got[5], whole.cumsum(1)) and torch.equal(got[6], whole.cumsum(1) - whole)
    flat = whole.reshape(-1)
    want = torch.stack([flat.sum(), flat.max(), flat.min()])[:, None].expand(3, BLOCK)
    assert torch.equal(total.cpu().double(), want)


@warpjit
def product_sum(A, B, Out):
    T.device_entry(launch=T.cuda.LaunchConfig(grid=1, block=BLOCK))
    i = T.cuda.thread_idx()
    total = T.cuda.warp_sum(A[i] * B[i])
    scan = T.cuda.warp_scan(A[i] * B[i])
    if total > 0.0:
        total = T.cuda.shuffle(total, 0)  # legal, since every lane has the same sum
    Out[0, i] = total
    Out[1, i] = scan


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.float16], ids=str)
def test_sums_of_products_have_the_same_bits_in_all_lanes(device, both, dtype):
    """The product must not become part of a fused multiply-add on one side of a pair only."""
    a, b = numbers(dtype, seed=1), numbers(dtype, seed=2)
    out = torch.zeros((2, BLOCK), dtype=dtype, device=device)
    both(product_sum, a.to(device), b.to(device), out)
    sums = out[0].cpu().reshape(3, 32)
    assert torch.equal(sums, sums[:, :1].expand(3, 32))
    exact = (a.double() * b.double()).reshape(3, 32).sum(1)
    assert torch.allclose(sums[:, 0].double(), exact, rtol=0, atol=0.05 if dtype is torch.float16 else 1e-4)


@warpjit
def by_name(A, Out):
    T.device_entry(launch=ONE_WARP)
    lane = T.cuda.lane_id()
    x = A[lane]
    value, found = T.ptx["shfl.sync.down.b32.p"](x, 4, 31, 0xFFFFFFFF)
    Out[0, lane] = value
    Out[1, lane] = found
    Out[2, lane] = T.ptx["vote.sync.uni.pred"](x > 100, 0xFFFFFFFF)
    Out[3, lane] = T.ptx["redux.sync.xor.b32"](x, 0xFFFFFFFF)
    if T.ptx["vote.sync.any.pred"](x > 5, 0xFFFFFFFF):
        T.cuda.warp_sync()
        Out[4, lane] = T.ptx["activemask.b32"]()


def test_the_instructions_by_their_names(device, both):
    x = torch.arange(32, dtype=torch.int32)
    out = torch.zeros((5, 32), dtype=torch.int32, device=device)
    both(by_name, x.to(device), out)
    rows = out.cpu()
    assert rows[0].tolist() == [*range(4, 32), *range(28, 32)] and rows[1].tolist() == [1] * 28 + [0] * 4
    assert (rows[2] == 1).all() and (rows[3] == 0).all() and (rows[4] == -1).all()


def test_integer_sums_are_one_instruction_where_it_exists():
    x, out = torch.zeros(32, dtype=torch.int32), torch.zeros(32, dtype=torch.int32)

    @warpjit
    def total(A, Out):
        T.device_entry(launch=ONE_WARP)
        Out[T.cuda.lane_id()] = T.cuda.warp_sum(A[T.cuda.lane_id()])

    assert total.source(x, out, target="sm_80").count("redux.sync.add.s32") == 1
    assert total.source(x, out, target="sm_75").count("shfl.sync.bfly") == 5


# ---- refusals ------------------------------------------------------------------------------------------


def in_part(Out):
    T.device_entry(launch=ONE_WARP)
    lane = T.cuda.lane_id()
    if lane < 8:
        Out[lane] = T.cuda.shuffle(lane, 0)


def half_a_warp(Out):
    T.device_entry(launch=T.cuda.LaunchConfig(grid=1, block=48))
    Out[0] = T.cuda.warp_sum(T.cuda.lane_id())


def one_warp_of_the_cta(Out):
    T.device_entry(launch=T.cuda.LaunchConfig(grid=1, block=64))
    scratch = T.alloc_shared((2,), "int32")
    if T.cuda.warp_id() == 0:
        Out[0] = T.cuda.cta_sum(T.cuda.lane_id(), scratch)


BAR = "bar.sync must be executed by the whole CTA together, but it stands under control flow that is "


@pytest.mark.parametrize(
    ("body", "sentence"),
    [
        (
            in_part,
            "shfl.sync.idx.b32 must be executed by a whole warp together, but it stands under control flow that is "
            "different from lane to lane: not all of its threads get there",
        ),
        (
            half_a_warp,
            "redux.sync.add.s32: all 32 lanes must be active, but the block's 48 threads leave the last warp partly "
            "empty",
        ),
        (one_warp_of_the_cta, BAR + "the same for a whole warp: not all of its threads get there"),
    ],
)
def test_collectives_need_all_their_threads(body, sentence):
    assert sentence in [message for message, _ in refused(body)]


def asked(expression):
    """A kernel that evaluates one expression of `lane`, `scratch` (float32, 1 element) and Out."""

    def body(Out):
        T.device_entry(launch=T.cuda.LaunchConfig(grid=1, block=64))
        expression(T.cuda.lane_id(), T.alloc_shared((1,), "float32"), Out)

    return body


WRONG = [
    (lambda lane, scratch, Out: T.cuda.shuffle(lane, 32), "T.cuda.shuffle: expected lane to be 0 to 31 but got 32"),
    (
        lambda lane, scratch, Out: T.cuda.shuffle_xor(lane, -1),
        "T.cuda.shuffle_xor: expected n to be 0 to 31 but got -1",
    ),
    (
        lambda lane, scratch, Out: T.cuda.shuffle_up(lane, 8, width=8),
        "T.cuda.shuffle_up: expected n to be 0 to 7 but got 8",
    ),
    (
        lambda lane, scratch, Out: T.cuda.shuffle_down(lane, 1, width=12),
        "T.cuda.shuffle_down: expected width to be 2, 4, 8, 16 or 32 but got 12",
    ),
    (
        lambda lane, scratch, Out: T.cuda.shuffle(lane, lane * 0.5),
        "T.cuda.shuffle: expected lane to be an integer but got a scalar of type float32",
    ),
    (lambda lane, scratch, Out: T.cuda.shuffle(Out, 1), "T.cuda.shuffle: expected a number but got the tensor Out"),
    (lambda lane, scratch, Out: T.cuda.any(None), "T.cuda.any: expected a number but got None"),
    (
        lambda lane, scratch, Out: T.cuda.warp_sum(lane < 3),
        "T.cuda.warp_sum: expected a float, or an integer of 32 or 64 bits, but got a scalar of type bool: convert it "
        "first",
    ),
    (
        lambda lane, scratch, Out: T.cuda.warp_scan(lane, exclusive=1),
        "T.cuda.warp_scan: expected exclusive to be True or False but got int 1",
    ),
    (
        lambda lane, scratch, Out: T.cuda.cta_sum(lane, scratch),
        "T.cuda.cta_sum: expected scratch to hold int32, as x, but shared holds float32",
    ),
    (
        lambda lane, scratch, Out: T.cuda.cta_max(lane * 0.5, scratch),
        "T.cuda.cta_max: expected scratch to have one axis of at least 2 elements, one a warp, but shared has shape "
        "(1,)",
    ),
    (
        lambda lane, scratch, Out: T.cuda.cta_min(lane * 0.5, Out),
        "T.cuda.cta_min: expected scratch to be a shared tensor but got the tensor Out",
    ),
]


@pytest.mark.parametrize(("expression", "sentence"), WRONG, ids=[sentence.split(":")[0] for _, sentence in WRONG])
def test_wrong_arguments(expression, sentence):
    assert [message for message, _ in refused(asked(expression))] == [sentence]


@warpjit
def unwritten_lane(Out):
    T.device_entry(launch=ONE_WARP)
    lane = T.cuda.lane_id()
    value = T.alloc_local((1,), "int32")
    if lane != 4:
        value[0] = lane
    other = T.cuda.shuffle_xor(value[0], 1)
    if lane < 4:
        Out[lane] = other
    if lane == 5:
        Out[lane] = other


def test_a_lane_that_reads_what_another_never_wrote_is_found():
    with pytest.raises(SimulationError, match=r"use of an unwritten value.*lane 5"):
        unwritten_lane(torch.zeros(32, dtype=torch.int32))
