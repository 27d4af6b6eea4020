"""cp.async: sizes, cache hints, zero fill, groups that wait for all but the latest, and what the simulator finds."""

from __future__ import annotations

import pytest
import torch
from both import assert_same_bits
from refusals import refused

from warpjit import SimulationError, T, warpjit
from warpjit.layout import ComposeLayout, S, TileLayout

PLAIN = "cp.async.ca.shared.global"
BULK = "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes"


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
    (finding,) = caught.value.findings
    assert finding.message == (
        "use of a pending copy: ring[0, 0, 0] is read before its thread has waited for it with cp.async.wait_group; "
        "CTA (0, 0, 0), warp 0, lane 0 (and 31 more threads)"
    )
    assert finding.loc.frames[-1].text.strip() == "total = total + ring[stage, lane, i]"
    (note,) = finding.notes
    assert note.message == "the asynchronous copy is issued here"
    assert note.loc.frames[-1].text.strip() == "T.ptx[PLAIN](ring.ptr(stage, lane, 0), A.ptr(stage, lane, 0), 16)"


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


# ---- tiles ------------------------------------------------------------------------------------------------------

CG, CA = T.ptx["cp.async.cg.shared.global"], T.ptx["cp.async.ca.shared.global"]
STAGES = 3


@warpjit
def staged(A: T.Tensor((M, K), "float16"), Out, length: T.int32, *, swizzle):
    """Out = A's tiles of 16 x 32 through a ring of stages; of the last column of tiles `length` elements a chunk."""
    T.device_entry(launch=T.cuda.LaunchConfig(grid=1, block=32))
    lane = T.cuda.lane_id()
    layout = T.cuda.layout.mma_shared_layout("float16", swizzle, (STAGES, 16, 32)) if swizzle else "default"
    ring = T.alloc_shared((STAGES, 16, 32), "float16", layout=layout)
    row, half = lane // 2, 16 * (lane % 2)
    tiles = K // 32
    for ahead in range(STAGES - 1):
        if ahead < tiles:
            load(ring, A, ahead, ahead, row, half, 8)
        T.ptx["cp.async.commit_group"]()
    stage = 0
    for tile in range(tiles):
        T.ptx["cp.async.wait_group"](STAGES - 2)
        T.cuda.warp_sync()
        for r in range(16):
            Out[tile, r, lane] = ring[stage, r, lane]
        ahead = tile + STAGES - 1
        T.cuda.warp_sync()
        if ahead < tiles:
            elements = length if ahead == tiles - 1 else 8
            load(ring, A, ahead, ahead % STAGES, row, half, elements)
        T.ptx["cp.async.commit_group"]()
        stage = stage + 1 if stage + 1 < STAGES else 0


def load(ring, A, tile, stage, row, half, elements):
    start = 32 * tile + half
    T.cuda.tile.apply(
        CG, ring.sub[stage, row, half : half + 16], A[row, start : start + 16], size=16, src_size=2 * elements
    )


@pytest.mark.parametrize("swizzle", [None, 32, 64])
def test_tiles_are_copied_chunk_by_chunk(device, run, swizzle):
    a = torch.randn(16, 7 * 32, device=device).half()
    out = torch.full((7, 16, 32), float("nan"), dtype=torch.float16, device=device)
    run(staged, a, out, 5, swizzle=swizzle)
    expected = a.view(16, 7, 32).permute(1, 0, 2).clone()
    expected[6].view(16, 4, 8)[:, :, 5:] = 0
    assert_same_bits(expected, out)


@warpjit
def box_of_each_thread(A, Out, count: T.int32):
    """Each thread copies a box of 2 x 8 words, in chunks of the whole axis or of 8 bytes, some of them not at all."""
    T.device_entry(launch=T.cuda.LaunchConfig(grid=1, block=32))
    lane = T.cuda.lane_id()
    tile = T.alloc_shared((32, 2, 4), "int32")
    for i in range(4):
        tile[lane, 0, i] = -1
        tile[lane, 1, i] = -1
    T.cuda.tile.apply(CA, tile.sub[lane], A.sub[lane, :, 0:4], scope="thread", pred=lane < count)
    T.cuda.tile.apply(CA, tile.sub[lane, :, 0:2], A.sub[lane, :, 4:6], size=8, pred=lane >= count)
    T.ptx["cp.async.wait_all"]()
    for i in range(4):
        Out[lane, 0, i] = tile[lane, 0, i]
        Out[lane, 1, i] = tile[lane, 1, i]


def test_boxes_under_a_predicate(device, run):
    a = torch.arange(32 * 2 * 8, dtype=torch.int32, device=device).view(32, 2, 8)
    out = torch.zeros(32, 2, 4, dtype=torch.int32, device=device)
    run(box_of_each_thread, a, out, 11)
    expected = a[:, :, :4].clone()
    expected[11:] = -1
    expected[11:, :, :2] = a[11:, :, 4:6]
    assert_same_bits(expected, out)
    assert box_of_each_thread.source(a, out, 11).count("cp.async.ca.shared.global [") == 2 + 2


def test_tiles_that_cannot_be_copied():
    def kernel(Out):
        T.device_entry(launch=T.cuda.LaunchConfig(grid=1, block=32))
        lane = T.cuda.lane_id()
        tile = T.alloc_shared((8, 8), "float32")
        turned = T.alloc_shared((8, 8), "float32", layout=TileLayout(S[(8, 8) : (1, 8)]))
        odd = T.alloc_shared((8, 8), "float32", layout=ComposeLayout(1, 2, 3, TileLayout(S[(8, 8)])))
        T.cuda.tile.apply(CG, tile.sub[0, 0:4], Out[0:4], Out)
        T.cuda.tile.apply(CG, tile.sub[0, 0:4], Out[0:4], scope="cluster")
        T.cuda.tile.apply(CG, Out[0:4], tile.sub[0, 0:4])
        T.cuda.tile.apply(CG, tile.sub[0, 0:4], Out[0:8])
        T.cuda.tile.apply(CG, tile.sub[0, 0:2], Out[0:2])
        T.cuda.tile.apply(CG, tile.sub[0, 0:6], Out[0:6], size=16)
        T.cuda.tile.apply(CG, tile.sub[0, 0:4], Out[0:4], chunk=16)
        T.cuda.tile.apply(CG, tile.sub[0, 0:4], Out[lane : lane + 4])
        T.cuda.tile.apply(CG, tile.sub[1, 2:6], Out[0:4])
        T.cuda.tile.apply(CG, turned.sub[0, 0:4], Out[0:4])
        T.cuda.tile.apply(CG, odd.sub[0, 0:4], Out[0:4])
        T.cuda.tile.apply(T.ptx[BULK], tile.sub[0, 0:4], Out[0:4])
        T.cuda.tile.apply(T.ptx[BULK], tile.sub[0, 0:2], Out[0:2], mbar=T.alloc_shared((1,), "mbarrier").ptr())

    text = "cp.async.cg.shared.global"
    assert [message for message, _ in refused(kernel)] == [
        f"{text}: expected 2 tensors (dst, src) but got 3",
        f"{text}: expected scope 'thread', 'warp', 'warpgroup', 'cta' but got 'cluster'",
        f"{text}: operand dst: expected a shared tensor, but Out is global",
        f"{text}: expected tiles of one type and shape but got tile of float32, shape (4,) and Out of "
        "float32, shape (8,)",
        f"{text}: operand size: expected 16 but got 8",
        f"{text}: operand size: expected a divisor of the 24 bytes of the last axis but got 16",
        f"{text} takes no chunk=; it takes pred=, size=, src_size=, valid=",
        f"{text}: operand src: the chunk at (0,) of Out must begin at a multiple of 16 bytes, but it is known to begin "
        "at a multiple of 4 only: align the tensor, or make its strides and the starts of slices multiples of 4 "
        "elements of float32",
        f"{text}: operand dst: the chunk at (0,) of tile must begin at a multiple of 16 bytes, but it is known to "
        "begin at a multiple of 8 only: align the tensor, or make its strides and the starts of slices multiples of 4 "
        "elements of float32",
        f"{text}: operand dst: a chunk must be contiguous, but element 1 of the chunk at (0,) of turned lies "
        "8 elements "
        "after its first",
        f"{text}: operand dst: a chunk must be contiguous, but the swizzle of odd keeps only 2 elements "
        "together, not 4",
        f"{BULK}: expected mbar=",
        f"{BULK}: operand size: expected a positive multiple of 16 bytes but got 8",
    ]
