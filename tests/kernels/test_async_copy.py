"""cp.async: sizes, cache hints, zero fill, groups that wait for all but the latest, and what the simulator finds."""

from __future__ import annotations

import pytest
import torch
from both import assert_same_bits
from refusals import refused

from warpjit import SimulationError, T, warpjit

PLAIN = "cp.async.ca.shared.global"


@warpjit
def copy_rows(A, Out, *, text, size):
    """Out = A, 32 chunks of `size` bytes a row, through shared memory."""
    T.device_entry(launch=T.cuda.LaunchConfig(grid=1, block=32))
    rows, width = A.shape
    lane = T.cuda.lane_id()
    tile = T.alloc_shared((rows, width), A.dtype)
    step = width // 32
    copy = T.ptx[text]
    for row in range(rows):
        copy(tile.ptr(row, lane * step), A.ptr(row, lane * step), size)
    T.ptx["cp.async.commit_group"]()
    T.ptx["cp.async.wait_group"](0)
    T.cuda.cta_sync()
    for row in range(rows):
        for i in range(step):
            Out[row, 32 * i + lane] = tile[row, 32 * i + lane]


FORMS = [("ca", size, hint) for size in (4, 8, 16) for hint in ("", ".L2::64B", ".L2::128B", ".L2::256B")]
FORMS += [("cg", 16, hint) for hint in ("", ".L2::64B", ".L2::128B", ".L2::256B")]


@pytest.mark.parametrize(("cache", "size", "hint"), FORMS)
def test_copies_of_every_size_and_hint(device, run, cache, size, hint):
    a = torch.randn(3, 32 * size // 2).half().to(device)
    out = torch.full_like(a, float("nan"))
    run(copy_rows, a, out, text=f"cp.async.{cache}.shared.global{hint}", size=size)
    assert_same_bits(a, out)


@warpjit
def zero_filled(A, Out, length: T.int32):
    """The first `length` bytes of each lane's 16, zeros behind them."""
    T.device_entry(launch=T.cuda.LaunchConfig(grid=1, block=32))
    lane = T.cuda.lane_id()
    tile = T.alloc_shared((32, 16), "uint8")
    T.ptx["cp.async.cg.shared.global"](tile.ptr(lane, 0), A.ptr(lane, 0), 16, src_size=length)
    T.ptx["cp.async.wait_all"]()
    for i in range(16):
        Out[lane, i] = tile[lane, i]


@pytest.mark.parametrize("length", [0, 1, 7, 16])
def test_src_size_fills_with_zeros(device, run, length):
    a = torch.randint(1, 255, (32, 16), dtype=torch.uint8, device=device)
    out = torch.full_like(a, 255)
    run(zero_filled, a, out, length)
    expected = a.clone()
    expected[:, length:] = 0
    assert_same_bits(expected, out)


@warpjit
def masked(A, Out, count: T.int32):
    """Lanes from `count` on do not copy: their rows keep what was stored before."""
    T.device_entry(launch=T.cuda.LaunchConfig(grid=1, block=32))
    lane = T.cuda.lane_id()
    tile = T.alloc_shared((32, 4), "int32")
    for i in range(4):
        tile[lane, i] = -1
    T.ptx[PLAIN](tile.ptr(lane, 0), A.ptr(lane, 0), 16, pred=lane < count)
    T.ptx["cp.async.wait_all"]()
    for i in range(4):
        Out[lane, i] = tile[lane, i]


def test_a_predicate_leaves_lanes_out(device, run):
    a = torch.arange(128, dtype=torch.int32, device=device).reshape(32, 4)
    out = torch.zeros_like(a)
    run(masked, a, out, 20)
    expected = a.clone()
    expected[20:] = -1
    assert_same_bits(expected, out)


@warpjit
def pipelined(A, Out, *, stages, wait):
    """Row sums of tiles, `stages` - 1 of which are on their way."""
    T.device_entry(launch=T.cuda.LaunchConfig(grid=1, block=32))
    tiles = A.shape[0]
    lane = T.cuda.lane_id()
    ring = T.alloc_shared((stages, 32, 4), "float32")
    for stage in T.unroll(stages - 1):
        T.ptx[PLAIN](ring.ptr(stage, lane, 0), A.ptr(stage, lane, 0), 16)
        T.ptx["cp.async.commit_group"]()
    total = 0.0
    stage = 0
    for tile in range(tiles):
        T.ptx["cp.async.wait_group"](wait)
        T.cuda.warp_sync()
        ahead = tile + stages - 1
        if ahead < tiles:
            T.ptx[PLAIN](ring.ptr(ahead % stages, lane, 0), A.ptr(ahead, lane, 0), 16)
        T.ptx["cp.async.commit_group"]()
        for i in range(4):
            total = total + ring[stage, lane, i]
        stage = stage + 1 if stage + 1 < stages else 0
    Out[lane] = total


def test_a_ring_of_stages(device, run):
    a = torch.randint(-8, 8, (9, 32, 4)).float().to(device)
    out = torch.full((32,), float("nan"), device=device)
    run(pipelined, a, out, stages=3, wait=1)
    assert_same_bits(a.sum(dim=(0, 2)), out)


def test_a_pending_copy_is_found():
    with pytest.raises(SimulationError) as caught:
        pipelined(torch.ones(9, 32, 4), torch.zeros(32), stages=3, wait=2)
    finding = caught.value.findings[0]
    assert "pending" in finding.message
    assert "ring[stage, lane, i]" in finding.loc.frames[-1].text


def test_addresses_that_are_not_known_to_be_aligned():
    def kernel(Out):
        T.device_entry(launch=T.cuda.LaunchConfig(grid=1, block=32))
        tile = T.alloc_shared((64,), "float32")
        lane = T.cuda.lane_id()
        T.ptx["cp.async.cg.shared.global"](tile.ptr(4 * (lane // 2)), Out.ptr(lane), 16)
        T.ptx["cp.async.cg.shared.global"](tile.ptr(4 * (lane // 2)), Out.ptr(4 * (lane // 2)), 8)

    findings = refused(kernel)
    assert [message for message, _ in findings] == [
        "cp.async.cg.shared.global: operand src: the address in Out must be a multiple of 16 bytes, but it "
        "is known to be a "
        "multiple of 4 only: align the tensor, or make its strides and the indices multiples of 4 elements of float32",
        "cp.async.cg.shared.global: operand size: expected 16 but got 8",
    ]


M, K = T.dynamic("M"), T.dynamic("K", multiple_of=8)


@warpjit
def runtime_rows(A: T.Tensor((M, 64), "float16"), B: T.Tensor((M, K), "float16"), Out):
    """One chunk of 16 bytes of each row, however many rows there are: the offset's multiple survives a wrapping sum."""
    T.device_entry(launch=T.cuda.LaunchConfig(grid=T.cdiv(M, 32), block=32))
    lane = T.cuda.lane_id()
    row = 32 * T.cuda.block_idx() + lane
    tile = T.alloc_shared((32, 16), "float16")
    if row < M:
        T.ptx["cp.async.cg.shared.global"](tile.ptr(lane, 0), A.ptr(row, 8), 16)
        T.ptx["cp.async.cg.shared.global"](tile.ptr(lane, 8), B[row : row + 1].ptr(0, 8), 16)
    T.ptx["cp.async.wait_all"]()
    for i in range(16):
        if row < M:
            Out[row, i] = tile[lane, i]


@pytest.mark.parametrize("extra", [0, 8])
def test_alignment_of_rows_with_runtime_sizes(device, run, extra):
    a, b = (torch.randn(50, width + extra, device=device).half()[:, :width] for width in (64, 24))
    out = torch.zeros(50, 16, dtype=torch.float16, device=device)
    run(runtime_rows, a, b, out)
    assert_same_bits(torch.cat([a[:, 8:16], b[:, 8:16]], dim=1), out)
