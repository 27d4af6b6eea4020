"""T.load, T.store and T.copy: what is refused while tracing, and what the simulator finds."""

from __future__ import annotations

import pytest
import torch
from refusals import MMA, ONE_WARP, refused

from warpjit import SimulationError, T, TraceError, warpjit
from warpjit.layout import ComposeLayout, S, TileLayout


def messages(body) -> list[str]:
    return [message for message, _ in refused(body)]


# ---- refusals --------------------------------------------------------------------------------------------


def test_what_is_no_tile_of_memory():
    def kernel(Out):
        T.device_entry(launch=ONE_WARP)
        mine = T.alloc_local((8,), "float32")
        bars = T.alloc_shared((2,), "mbarrier")
        T.load(3)
        T.load(mine)
        T.load(bars)
        T.load(Out.sub[3])
        T.store(mine, mine)
        T.copy(mine, Out[0:8])
        T.copy(Out[0:8], None)

    assert messages(kernel) == [
        "T.load: tensor: expected a tensor but got int 3",
        "T.load: tensor: expected a global or shared tensor, but mine is in registers",
        "T.load: tensor: bars holds mbarriers: only mbarrier instructions may touch them",
        "T.load: tensor: expected at least one axis, but Out is a single element",
        "T.store: tensor: expected a global or shared tensor, but mine is in registers",
        "T.copy: dst: expected a global or shared tensor, but mine is in registers",
        "T.copy: src: expected a tensor but got None",
    ]


def test_widths_that_are_not_legal():
    def kernel(Out):
        T.device_entry(launch=ONE_WARP)
        lane = T.cuda.lane_id()
        T.load(Out[0:8], width=2)
        T.load(Out[0:8], width=32)
        T.load(Out.view("float64")[0:8], width=lane)
        T.load(Out[0:6], width=16)
        T.copy(Out[0:7], Out[8:15], width=8)

    assert messages(kernel) == [
        "T.load: width: expected one of 4, 8, 16 bytes for elements of float32 but got 2",
        "T.load: width: expected one of 4, 8, 16 bytes for elements of float32 but got 32",
        "T.load: width must be known while tracing, but it is computed on the device (different from lane to lane)",
        "T.load: width: expected a divisor of the 24 bytes of the last axis but got 16",
        "T.copy: width: expected a divisor of the 28 bytes of the last axis but got 8",
    ]


def test_chunks_that_are_not_contiguous_or_not_known_to_be_aligned():
    def kernel(Out):
        T.device_entry(launch=ONE_WARP)
        lane = T.cuda.lane_id()
        turned = T.alloc_shared((8, 8), "float32", layout=TileLayout(S[(8, 8) : (1, 8)]))
        odd = T.alloc_shared((8, 8), "float32", layout=ComposeLayout(1, 2, 3, TileLayout(S[(8, 8)])))
        tile = T.alloc_shared((4, 6), "float32")
        T.load(turned.sub[0], width=16)
        T.load(odd.sub[0], width=16)
        T.load(tile[0:4, 0:4], width=16)
        T.load(Out[2 * lane : 2 * lane + 4], width=16)
        T.store(Out[2 * lane : 2 * lane + 4], T.load(Out[0:4]), width=16)
        T.copy(tile[0:4, 0:4], Out[0:16].view(4, 4), width=8)
        T.copy(tile[0:4, 0:4], Out[0:16].view(4, 4), width=16)

    advice = "align the tensor, or make its strides and the starts of slices multiples of 4 elements of float32"
    assert messages(kernel) == [
        "T.load: tensor: a chunk must be contiguous, but element 1 of the chunk at (0,) of turned lies 8 elements "
        "after its first",
        "T.load: tensor: a chunk must be contiguous, but the swizzle of odd keeps only 2 elements together, not 4",
        "T.load: tensor: the chunk at (1, 0) of tile must begin at a multiple of 16 bytes, but it is known to begin at "
        f"a multiple of 8 only: {advice}",
        "T.load: tensor: the chunk at (0,) of Out must begin at a multiple of 16 bytes, but it is known to begin at a "
        f"multiple of 8 only: {advice}",
        "T.store: tensor: the chunk at (0,) of Out must begin at a multiple of 16 bytes, but it is known to begin at a "
        f"multiple of 8 only: {advice}",
        "T.copy: dst: the chunk at (1, 0) of tile must begin at a multiple of 16 bytes, but it is known to begin at a "
        f"multiple of 8 only: {advice}",
    ]


M, N = T.dynamic("M"), T.dynamic("N")


def test_strides_that_are_not_known():
    @warpjit
    def kernel(A: T.Tensor((M, N), "float16")):
        T.device_entry(launch=ONE_WARP)
        T.load(A[0:2, 0:8], width=16)
        T.load(A.permute(1, 0)[0:2, 0:8], width=4)
        T.load(A, width=2)

    with pytest.raises(TraceError) as caught:
        kernel.source(torch.empty(20, 30, dtype=torch.float16, device="meta"), target="sm_90a")
    assert [each.message for each in caught.value.findings] == [
        "T.load: tensor: the chunk at (1, 0) of A must begin at a multiple of 16 bytes, but it is known to begin at a "
        "multiple of 2 only: align the tensor, or make its strides and the starts of slices multiples of 8 elements of "
        "float16",
        "T.load: tensor: a chunk must be contiguous, but the last axis of A has an unknown stride",
        "T.load: tensor: an extent of A must be known while tracing, but it is computed on the device (the same for "
        "the whole grid)",
    ]


def test_values_that_cannot_be_stored():
    def kernel(Out):
        T.device_entry(launch=ONE_WARP)
        half = T.alloc_local((8,), "float16")
        turned = T.load(Out[0:8]).view(2, 4, layout=TileLayout(S[(2, 4) : (1, 2)]))
        halves = Out.view("float16")
        T.store(Out[0:8], 1.0)
        T.store(Out[0:8], Out[8:16])
        T.store(Out[0:8], half)
        T.store(halves[0:4], half)
        T.store(Out[0:4], T.cuda.fragments(T.ptx[MMA], "D", fill=0)[0, 0, 0, 0:4])
        T.store(Out[0:8].view(2, 4), turned)
        T.store(halves[0:4], half[1:5], width=4)

    assert messages(kernel) == [
        "T.store: value: expected a local tensor but got float 1.0",
        "T.store: value: expected a local tensor, but Out is global",
        "T.store: value: expected a tile like Out of float32, shape (8,), but got half of float16, shape (8,)",
        "T.store: value: expected a tile like Out of float16, shape (4,), but got half of float16, shape (8,)",
        "T.store: value: expected this thread's elements in row-major order, but D is spread over lanes (laneid)",
        "T.store: value: expected this thread's elements in row-major order, but element 1 of turned lies 2 "
        "elements after its first",
        "T.store: value: half begins at element 1 of its registers, which is within a word of 2 elements: "
        "expected a smaller width than 4 bytes",
    ]


def test_masks_that_are_no_bools():
    def kernel(Out):
        T.device_entry(launch=ONE_WARP)
        T.load(Out[0:8], where=T.cuda.lane_id())
        T.store(Out[0:8], T.load(Out[0:8]), where=1)

    assert messages(kernel) == [
        "T.load: where: expected a bool but got a scalar of type int32",
        "T.store: where: expected a bool but got int 1",
    ]


def test_copies_that_cannot_be_shared_out():
    def kernel(Out):
        T.device_entry(launch=T.cuda.LaunchConfig(grid=1, block=96))
        lane = T.cuda.lane_id()
        tile = T.alloc_shared((4, 8), "float32")
        octets = T.alloc_shared((8192,), "uint8")
        box = Out[0:32].view(4, 8)
        T.copy(tile, Out[0:32])
        T.copy(tile, box.view("int32"))
        T.copy(tile, box, scope="grid")
        T.copy(tile, box, scope="warpgroup")
        T.copy(octets[0:4224], octets[0:4224], scope="thread", width=1)
        if lane < 4:
            T.copy(tile, box)
        if T.cuda.warp_id() == 0:
            T.copy(tile, box, scope="warp")
            T.copy(tile, box)

    assert messages(kernel) == [
        "T.copy: expected tiles of one type and shape but got tile of float32, shape (4, 8), and Out of float32, "
        "shape (32,)",
        "T.copy: expected tiles of one type and shape but got tile of float32, shape (4, 8), and Out of int32, "
        "shape (4, 8)",
        "T.copy: expected scope 'thread', 'warp', 'warpgroup', 'cta' but got 'grid'",
        "T.copy: scope 'warpgroup' needs a block of a multiple of 128 threads, but it has 96",
        "T.copy: expected at most 4096 chunks for a thread but got 4224 of 1 bytes: share the tile among more "
        "threads, or copy it part by part",
        "T.copy must be executed by the whole CTA together (scope 'cta'), but it stands under control flow that "
        "is different from lane to lane: not all of its threads get there",
        "T.copy must be executed by the whole CTA together (scope 'cta'), but it stands under control flow that "
        "is the same for a whole warp: not all of its threads get there",
    ]


def test_limits_that_are_not_legal():
    def kernel(Out):
        T.device_entry(launch=ONE_WARP)
        lane = T.cuda.lane_id()
        tile = T.alloc_shared((4, 8), "float32")
        box = Out[0:32].view(4, 8)
        T.copy(tile, box, valid=4)
        T.copy(tile, box, valid=(4,))
        T.copy(tile, box, valid=(4, 2.0))
        T.copy(tile, box, valid=("all", None))
        T.copy(tile, box, valid=(True, None))
        T.copy(tile, box, valid=(lane, 2 * lane), width=16)
        T.copy(tile, box, valid=(lane, 6), width=16)

    assert messages(kernel) == [
        "T.copy: expected valid= to have an entry (None: all exist) for each axis of (4, 8)",
        "T.copy: expected valid= to have an entry (None: all exist) for each axis of (4, 8)",
        "T.copy: valid[1]: expected an integer or None but got float 2.0",
        "T.copy: valid[0]: expected an integer or None but got str 'all'",
        "T.copy: valid[0]: expected an integer or None but got bool True",
        "T.copy: valid[1]: expected a multiple of 4, the elements of a chunk, but got a limit known to be a "
        "multiple of 2 only; with width=4 a chunk is one element",
        "T.copy: valid[1]: expected a multiple of 4, the elements of a chunk, but got a limit known to be a "
        "multiple of 6 only; with width=4 a chunk is one element",
    ]


# ---- findings of the simulator ---------------------------------------------------------------------------


def findings(kernel, *args, **constants):
    with pytest.raises(SimulationError) as caught:
        kernel(*args, **constants)
    return caught.value.findings


@warpjit
def partly_written(Out, *, first, count):
    """Three of four elements are written before a wide load of all."""
    T.device_entry(launch=ONE_WARP)
    lane = T.cuda.lane_id()
    tile = T.alloc_shared((32, 8), "float16")
    for i in range(3):
        tile[lane, i] = 1.0
    mine = T.load(tile[lane, 0:4], width=8)
    T.store(tile[lane, 4:8], mine)
    for i in range(first, first + count):
        Out[lane, i] = mine[i]


def test_a_wide_load_of_unwritten_bytes_moves_marks():
    out = torch.zeros(32, 4).half()
    partly_written(out, first=0, count=3)
    assert out.tolist() == [[1, 1, 1, 0]] * 32
    (finding,) = findings(partly_written, out, first=2, count=2)
    assert finding.message == (
        "use of an unwritten value: it is stored to Out[0, 3] in global memory; CTA (0, 0, 0), warp 0, lane 0 "
        "(and 31 more threads)"
    )
    (note,) = finding.notes
    assert note.message == "loaded from bytes that nothing has written, of shared `tile`"
    assert note.loc.frames[-1].text.strip() == "mine = T.load(tile[lane, 0:4], width=8)"


@warpjit
def stored_unwritten(Out):
    """Bytes that nothing wrote go to global memory."""
    T.device_entry(launch=ONE_WARP)
    tile = T.alloc_shared((32, 8), "float16")
    T.copy(Out, tile)


def test_a_wide_store_of_unwritten_bytes_to_global_memory_is_a_use():
    (finding,) = findings(stored_unwritten, torch.zeros(32, 8).half())
    assert finding.message == (
        "use of an unwritten value: it is stored to Out[0, 0] in global memory; CTA (0, 0, 0), warp 0, lane 0 "
        "(and 31 more threads)"
    )
    assert finding.loc.frames[-1].text.strip() == "T.copy(Out, tile)"


@warpjit
def without_a_barrier(A, Out):
    """The second warp reads what the first one copies."""
    T.device_entry(launch=T.cuda.LaunchConfig(grid=1, block=64))
    tile = T.alloc_shared((64, 8), "float16")
    T.copy(tile, A)
    T.store(Out.sub[T.cuda.thread_idx()], T.load(tile.sub[63 - T.cuda.thread_idx()]))


def test_a_copy_adds_no_barrier():
    (finding,) = findings(without_a_barrier, torch.zeros(64, 8).half(), torch.zeros(64, 8).half())
    assert finding.message == (
        "race: the read of tile[0] and a write of the same bytes by warp 1, without a barrier between; CTA (0, 0, 0), "
        "warp 0, lane 0 (and 63 more threads)"
    )
    assert [note.loc.frames[-1].text.strip() for note in finding.notes] == ["T.copy(tile, A)"]


@warpjit
def without_a_mask(A: T.Tensor((M, 8), "float16"), Out):
    """Rows beyond the tensor are read and written."""
    T.device_entry(launch=ONE_WARP)
    row = T.cuda.lane_id()
    mine = T.load(A[row : row + 1, 0:8])
    T.store(Out.sub[row : row + 1], mine)


def test_accesses_out_of_bounds():
    (finding,) = findings(without_a_mask, torch.zeros(20, 8).half(), torch.zeros(32, 8).half())
    assert finding.message == (
        "out of bounds: A[0, 0] is bytes 320 to 335, outside of the tensor; CTA (0, 0, 0), warp 0, lane 20 "
        "(and 11 more threads)"
    )


@warpjit
def beyond_rows(A: T.Tensor((M, 8), "float16"), B: T.Tensor((M, 8), "float16"), *, reads):
    """A tile of which nothing says that only a part exists."""
    T.device_entry(launch=ONE_WARP)
    tile = T.alloc_shared((32, 8), "float16")
    T.copy(tile, A[0:32, 0:8], valid=None if reads else (M, None))
    T.copy(B[0:32, 0:8], tile)


@pytest.mark.parametrize("reads", [True, False])
def test_copies_out_of_bounds(reads):
    (finding,) = findings(beyond_rows, torch.zeros(20, 8).half(), torch.zeros(20, 8).half(), reads=reads)
    assert finding.message == (
        f"out of bounds: {'A' if reads else 'B'}[20, 0] is bytes 320 to 335, outside of the tensor; CTA (0, 0, 0), "
        "warp 0, lane 20 (and 11 more threads)"
    )
