"""Tensors in kernels: element types in every memory, views, slices with runtime starts, storage, strides."""

from __future__ import annotations

import inspect

import pytest
import torch
from both import assert_same_bits
from refusals import refused

from warpjit import T, TraceError, warpjit
from warpjit.layout import S, TileLayout, mma_shared_layout

DTYPES = "float16 bfloat16 float32 float64 int8 int16 int32 int64 uint8 uint16 uint32 uint64 bool".split()


def values(dtype: str, shape: tuple[int, ...], device: str) -> torch.Tensor:
    """Random elements over the type's whole range."""
    kind = getattr(torch, dtype)
    if dtype == "bool":
        return torch.rand(shape).gt(0.5).to(device)
    if kind.is_floating_point:
        return (torch.randn(shape, dtype=torch.float64) * 100).to(kind).to(device)
    size = torch.empty(0, dtype=kind).element_size()
    raw = torch.randint(0, 256, (*shape, size), dtype=torch.uint8)
    return raw.view(kind).reshape(shape).to(device)


@warpjit
def through_all_memories(A, Out):
    """global → registers → shared → registers (packed, in another order) → global."""
    T.device_entry(launch=T.cuda.LaunchConfig(grid=1, block=32))
    lane = T.cuda.lane_id()
    box = T.alloc_shared((32, 4), A.dtype)
    mine = T.alloc_local((4,), A.dtype)
    for i in range(4):
        mine[i] = A[lane, i]
    for i in range(4):
        box[31 - lane, 3 - i] = mine[i]
    T.cuda.warp_sync()
    for i in range(4):
        mine[3 - i] = box[31 - lane, i]
    for i in range(4):
        Out[lane, i] = mine[i]


@pytest.mark.parametrize("dtype", DTYPES)
def test_elements_of_every_type_in_every_memory(device, run, dtype):
    a = values(dtype, (32, 4), device)
    out = torch.zeros_like(a)
    run(through_all_memories, a, out)
    assert_same_bits(a, out)


@warpjit
def registers_as_other_types(A, Out):
    """The registers of 64-bit elements seen as 8-, 16- and 32-bit ones, written and read through the views."""
    T.device_entry(launch=T.cuda.LaunchConfig(grid=1, block=32))
    lane = T.cuda.lane_id()
    wide = T.alloc_local((2,), "uint64")
    narrow = T.alloc_local((4,), "uint16")
    for i in range(2):
        wide[i] = A[lane, i]
    words, halves, octets = wide.view("uint32"), wide.view("uint16"), wide.view("uint8")
    for i in range(4):
        narrow[i] = halves[i + 4]
    octets[0] = octets[15]
    words[3] = words[1] ^ words[2]
    halves[1] = narrow[0]
    pair = narrow.view("uint64")
    Out[lane, 0] = wide[0]
    Out[lane, 1] = wide[1]
    Out[lane, 2] = pair[0]


def test_registers_under_other_types(device, run):
    a = values("int64", (32, 2), "cpu").view(torch.uint64)
    out = torch.zeros((32, 3), dtype=torch.uint64, device=device)
    run(registers_as_other_types, a.to(device), out)
    for lane in range(32):
        raw = bytearray(a[lane].numpy().tobytes())
        narrow = raw[8:16]
        raw[0] = raw[15]
        raw[12:16] = bytes(x ^ y for x, y in zip(raw[4:8], raw[8:12], strict=True))
        raw[2:4] = narrow[0:2]
        assert out[lane].cpu().numpy().tobytes() == bytes(raw) + bytes(narrow)


@warpjit
def stages(A, Out, first: T.int32, *, swizzle):
    """Tiles of a ring of stages written and read through runtime slices, with and without a swizzle."""
    T.device_entry(launch=T.cuda.LaunchConfig(grid=1, block=32))
    lane = T.cuda.lane_id()
    count, rows, columns = A.shape
    layout = mma_shared_layout("float16", swizzle, (count, rows, columns)) if swizzle else "default"
    ring = T.alloc_shared((count, rows, columns), "float16", layout=layout)
    for stage in range(count):
        tile = ring[stage : stage + 1].view(rows, columns) if not swizzle else ring.sub[stage]
        for row in range(rows):
            for part in range(columns // 32):
                tile[row, 32 * part + lane] = A[stage, row, 32 * part + lane]
    T.cuda.cta_sync()
    stage = first % count
    for step in range(count):
        block = ring.sub[stage].sub[8 * (step % (rows // 8)) : 8 * (step % (rows // 8)) + 8, 32:64]
        for row in range(8):
            Out[step, row, lane] = block[row, lane]
        stage = stage + 1 if stage + 1 < count else 0


@pytest.mark.parametrize("swizzle", [None, 32, 64, 128])
@pytest.mark.parametrize("first", [0, 2])
def test_runtime_stages_and_blocks(device, run, swizzle, first):
    a = torch.randn(3, 16, 64).half().to(device)
    out = torch.full((3, 8, 32), float("nan"), dtype=torch.float16, device=device)
    run(stages, a, out, first, swizzle=swizzle)
    expected = torch.stack([a[(first + step) % 3, 8 * (step % 2) : 8 * (step % 2) + 8, 32:64] for step in range(3)])
    assert_same_bits(expected, out)


@warpjit
def rearranged(A, Out):
    """Every way to look at the same global and shared elements."""
    T.device_entry(launch=T.cuda.LaunchConfig(grid=1, block=32))
    lane = T.cuda.lane_id()
    box = T.alloc_shared((8, 4, 32), "float32")
    flat = A.view(8, 4, 32)
    for i in range(8):
        for j in range(4):
            box.permute(1, 2, 0)[j, lane, i] = flat[i, j, lane]
    T.cuda.cta_sync()
    odd = box.rearrange("(pair two) j lane -> two (pair j) lane", two=2)
    column = A.rearrange("row (a b) -> (b row) a", a=2)
    for k in range(16):
        Out[0, k, lane] = odd[1, k, lane]
    for k in range(16):
        Out[1, k, lane] = column[lane + 32 * k, 1]


def test_permute_rearrange_and_view(device, run):
    a = torch.randn(8, 128, device=device)
    out = torch.full((2, 16, 32), float("nan"), device=device)
    run(rearranged, a, out)
    assert_same_bits(a.view(4, 2, 4, 32)[:, 1].reshape(16, 32), out[0])
    assert_same_bits(a.view(8, 2, 64)[:, 1].T.reshape(16, 32), out[1])


@warpjit
def reused(A, Out):
    """Shared bytes first as float32, then as two int16 tensors."""
    T.device_entry(launch=T.cuda.LaunchConfig(grid=1, block=32))
    lane = T.cuda.lane_id()
    box = T.alloc_shared((64,), "float32")
    box[lane] = A[lane]
    box[lane + 32] = A[lane] * 2.0
    T.cuda.cta_sync()
    Out[lane] = box[63 - lane]
    T.cuda.cta_sync()
    halves = box.storage.view("int16").view(2, 64)
    halves[0, lane] = T.int16(lane)
    halves[1, lane + 32] = T.int16(-lane)
    T.cuda.cta_sync()
    Out[lane + 32] = T.float32(halves[0, 31 - lane] + halves[1, 63 - lane])


def test_storage_is_reused(device, run):
    a = torch.arange(32, dtype=torch.float32, device=device)
    out = torch.full((64,), float("nan"), device=device)
    run(reused, a, out)
    expected = torch.cat([2.0 * a.flip(0), torch.zeros(32, device=device)])
    assert_same_bits(expected, out)


M, N = T.dynamic("M"), T.dynamic("N")


@warpjit
def copied(A: T.Tensor((M, N)), Out: T.Tensor((M, N))):
    """Any strides, any sizes."""
    T.device_entry(launch=T.cuda.LaunchConfig(grid=T.cdiv(M, 4), block=32))
    lane = T.cuda.lane_id()
    for i in range(4):
        row = T.cuda.block_idx() * 4 + i
        if row < M:
            for column in range(lane, N, 32):
                Out[row, column] = A[row, column]


STRIDED = {
    "packed": lambda a: a,
    "transposed": lambda a: a.T.contiguous().T,
    "sliced": lambda a: torch.cat([a, a], dim=1)[:, : a.shape[1]],
    "every other": lambda a: a.repeat_interleave(2, dim=1)[:, ::2],
    "offset": lambda a: torch.cat([a[:1], a])[1:],
}


@pytest.mark.parametrize("form", [*STRIDED, "expanded"])
@pytest.mark.parametrize("shape", [(7, 45), (1, 33), (5, 1), (0, 4), (4, 0)])
def test_strides_and_sizes(device, run, form, shape):
    a = torch.randn(shape, device=device)
    given = a[:1].expand(shape) if form == "expanded" and shape[0] else STRIDED.get(form, STRIDED["packed"])(a)
    out = torch.full(shape, float("nan"), device=device)
    run(copied, given, out)
    assert_same_bits(given.contiguous(), out)


P, Q = T.dynamic("P", multiple_of=4), T.dynamic("Q", multiple_of=8)


@warpjit
def runtime_views(A: T.Tensor((P, Q), "int32"), Out):
    """Windows onto a tensor of runtime sizes: halves of words, split and permuted axes, boxes with runtime starts."""
    T.device_entry(launch=T.cuda.LaunchConfig(grid=P // 4, block=32))
    lane, block = T.cuda.lane_id(), T.cuda.block_idx()
    halves = A.view("int16")
    split = A.rearrange("(block row) (part column) -> part block column row", row=4, part=2)
    back = A.view("int16").view("int64")
    for column in range(lane, Q // 2, 32):
        for row in range(4):
            Out[0, 4 * block + row, column] = split[1, block, column, row]
            Out[1, 4 * block + row, column] = A[4 * block : 4 * block + 4].permute(1, 0)[column, row]
            Out[2, 4 * block + row, column] = T.int32(halves[4 * block + row, 2 * column])
            Out[3, 4 * block + row, column] = T.int32(back.sub[4 * block : 4 * block + 4, :][row, column // 2])


@pytest.mark.parametrize("extra", [0, 8])
@pytest.mark.parametrize("shape", [(8, 80), (4, 8), (0, 16)])
def test_views_of_runtime_sizes(device, run, shape, extra):
    rows, columns = shape
    a = values("int32", (rows, columns + extra), device)[:, :columns]
    half = columns // 2
    out = torch.zeros((4, rows, half), dtype=torch.int32, device=device)
    run(runtime_views, a, out)
    low = (a[:, :half] << 16) >> 16
    pairs = a[:, :half].view(rows, half // 2, 2)[:, :, :1].expand(rows, half // 2, 2).reshape(rows, half)
    for index, expected in enumerate((a[:, half:], a[:, :half], low, pairs)):
        assert_same_bits(expected, out[index])


def test_mistakes_with_views_of_runtime_sizes():
    def kernel(Out, A: T.Tensor((T.dynamic("R"), T.dynamic("C", multiple_of=2)), "float16")):
        T.device_entry(launch=T.cuda.LaunchConfig(grid=1, block=32))
        A.view("float64")
        A.view(-1)
        A.rearrange("(a b) c -> a b c", b=2)
        A.rearrange("a b -> (b a)")
        A.permute(0, 0)
        A.storage  # noqa: B018
        A[0 : A.shape[0] // 2, 0].view("float32")
        A.rearrange("a (b two) -> b a two", two=2)[0:1, 0:4, 1].view("uint32")

    kernel_ = warpjit(kernel)
    with pytest.raises(TraceError) as caught:
        kernel_.source(torch.empty(64, device="meta"), torch.empty((6, 6), dtype=torch.float16, device="meta"))
    assert [each.message for each in caught.value.findings] == [
        "view(float64) of A: expected a last axis that is a multiple of 4 but got shape (R, C)",
        "view of A: expected sizes known while tracing but got shape (R, C): use rearrange",
        "rearrange '(a b) c -> a b c': axis 0 of A, shape (R, C), does not split into (a b) with b=2",
        "rearrange of A: expected (b a) to be evenly strided, to be one axis",
        "permute: expected each axis of A, shape (R, C), once but got (0, 0)",
        "storage: expected a shared or local tensor, but A is a parameter",
        "the slice of axis 0 of A: expected a length known while tracing (stop = start + a constant)",
        "view(uint32) of A: expected a last axis of stride 1",
    ]
    _, first = inspect.getsourcelines(kernel)
    assert [each.loc.line - first for each in caught.value.findings] == list(range(2, 10))


def test_mistakes_with_slices():
    def kernel(Out):
        T.device_entry(launch=T.cuda.LaunchConfig(grid=1, block=32))
        tile = T.alloc_shared((4, 8), "float32")
        tile[2:2, 0].ptr(0)
        tile[0, 6:3].ptr(0)
        tile[3:5, 0].ptr(0)
        tile[-2:, 0].ptr(0)
        tile[0, ::2].ptr(0)

    assert [message for message, _ in refused(kernel)] == [
        "tile: expected a slice of at least one element of axis 0 but got 0",
        "tile: expected a slice of at least one element of axis 1 but got -3",
        "the slice of axis 0 of tile: expected it within shape (4, 8) but got 2 elements from 3",
        "index 0 of tile: expected 0 or more, for indices count from the start, but got -2",
        "tile: expected a slice without a step: split the axis with rearrange",
    ]


def test_mistakes_with_tensors():
    def kernel(Out):
        T.device_entry(launch=T.cuda.LaunchConfig(grid=1, block=32))
        lane = T.cuda.lane_id()
        tile = T.alloc_shared((4, 8), "float32")
        registers = T.alloc_local((4,), "float32")
        tile[4, 0] = 0.0
        tile[lane + 4, 0] = 0.0
        tile[0] = 0.0
        tile[-1, 0] = 0.0
        registers[lane] = 0.0
        tile.view("float16", 4)
        tile.view(5, 8)
        tile.rearrange("(a b) c -> a c", a=2)
        tile.rearrange("(a b) c -> a b c", a=3)
        tile.rearrange("(a b) c -> a b c")
        tile[0:lane, 0] = 0.0
        tile.size  # noqa: B018
        registers.ptr(0)
        T.alloc_shared((0, 4))
        T.alloc_shared((4,), layout=TileLayout(S[8]))

    assert [message for message, _ in refused(kernel)] == [
        "index 0 of tile: expected one within shape (4, 8) but got 4",
        "index 0 of tile: expected one within shape (4, 8) but got 4 to 35",
        "tile: expected 2 indices, one for each axis of shape (4, 8), but got 1",
        "index 0 of tile: expected 0 or more, for indices count from the start, but got -1",
        "the register index of registers must be known while tracing, but it is computed on the device (different from "
        "lane to lane)",
        "view: expected a dtype alone, or a shape with or without a layout, but got both: call it twice",
        "view of tile: expected a shape of 32 elements, as (4, 8) has, but got (5, 8), of 40",
        "rearrange '(a b) c -> a c': expected b on both sides",
        "rearrange '(a b) c -> a b c': axis 0 of tile, shape (4, 8), does not split into (a b) with a=3",
        "rearrange '(a b) c -> a b c': expected the size of a or b",
        "a slice of tile cannot be assigned: store element by element, or use an instruction",
        "a tensor has no attribute 'size'; it has as_operand, cast, convert, dtype, each, fill, layout, ndim, permute, "
        "ptr, rearrange, regs, shape, storage, sub, view",
        "registers is in registers: it has no address",
        "T.alloc_shared: expected positive extents but got (0, 4)",
        "T.alloc_shared: layout: expected one of the 4 elements of shape (4,) but got TileLayout(S[8 : 1]), of 8",
    ]
