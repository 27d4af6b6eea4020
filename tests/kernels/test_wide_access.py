"""T.load, T.store and T.copy: element types, widths, windows, masks, ragged edges, scopes, and the instructions."""

from __future__ import annotations

import re

import pytest
import torch
from both import assert_same_bits

from warpjit import T, warpjit
from warpjit.cuda import disassemble
from warpjit.layout import S, TileLayout

BYTES = {"float16": 2, "bfloat16": 2, "float32": 4, "float64": 8, "int8": 1, "uint8": 1, "int64": 8, "bool": 1}
WIDTHS = [(dtype, width) for dtype, size in BYTES.items() for width in (None, 1, 2, 4, 8, 16) if (width or 16) >= size]
M, N, K = T.dynamic("M"), T.dynamic("N"), T.dynamic("K", multiple_of=8)


def values(dtype: str, shape: tuple[int, ...], device: str) -> torch.Tensor:
    """Random elements over the type's whole range."""
    kind = getattr(torch, dtype)
    if dtype == "bool":
        return torch.rand(shape).gt(0.5).to(device)
    if kind.is_floating_point:
        return (torch.randn(shape, dtype=torch.float64) * 100).to(kind).to(device)
    raw = torch.randint(0, 256, (*shape, BYTES[dtype]), dtype=torch.uint8)
    return raw.view(kind).reshape(shape).to(device)


def poison(like: torch.Tensor) -> torch.Tensor:
    """A tensor of the same shape and type that no test expects anywhere."""
    octets = torch.full((*like.shape, like.element_size()), 1 if like.dtype is torch.bool else 0x7F, dtype=torch.uint8)
    return octets.view(like.dtype)[..., 0].to(like.device)


def accesses(text: str) -> list[str]:
    """The accesses of several words in CUDA text, in order: "ld.global.v4" for instance."""
    return re.findall(r"\b((?:ld|st)\.\w+\.v\d)\.b32", text)


# ---- element types and widths ---------------------------------------------------------------------------


@warpjit
def through_registers(A, Out, *, width):
    """global → registers → shared → registers → global, each lane a row."""
    T.device_entry(launch=T.cuda.LaunchConfig(grid=1, block=32))
    lane = T.cuda.lane_id()
    rows, columns = A.shape
    box = T.alloc_shared((rows, columns), A.dtype)
    mine = T.load(A.sub[lane], width=width)
    T.store(box.sub[31 - lane], mine, width=width)
    T.cuda.warp_sync()
    back = T.load(box.sub[lane], width=width)
    T.store(Out.sub[31 - lane], back, width=width)


@pytest.mark.parametrize(("dtype", "width"), WIDTHS)
def test_elements_of_every_type_in_accesses_of_every_width(device, run, dtype, width):
    a = values(dtype, (32, 16), device)
    out = poison(a)
    run(through_registers, a, out, width=width)
    assert_same_bits(a, out)
    count = 16 * BYTES[dtype] // (width or 16)
    words = (width or 16) // 4
    wanted = [f"{access}.v{words}" for access in ("ld.global", "st.shared", "ld.shared", "st.global")]
    assert accesses(through_registers.source(a, out, width=width)) == [
        access for access in wanted if words > 1 for _ in range(count)
    ]


@warpjit
def elements(A, Out):
    """Three halves a lane, in registers of two: what is loaded is indexed, viewed and stored in parts."""
    T.device_entry(launch=T.cuda.LaunchConfig(grid=1, block=32))
    lane = T.cuda.lane_id()
    mine = T.load(A.sub[lane])
    back = T.alloc_local((6,), "float16")
    for i in range(6):
        back[i] = mine[5 - i]
    T.store(Out.sub[lane, 0:2], back[0:2])
    T.store(Out.sub[lane, 2:6], back[2:6])
    T.store(Out.sub[lane, 6:8], back[1:3])
    T.store(Out.sub[lane, 8:11].view(3, 1), back[3:6].view(3, 1))


def test_registers_are_the_elements_in_order(device, run):
    a = values("float16", (32, 6), device)
    out = poison(values("float16", (32, 11), device))
    run(elements, a, out)
    turned = a.flip(1)
    assert_same_bits(torch.cat([turned, turned[:, 1:3], turned[:, 3:6]], dim=1), out)


@warpjit
def of_wider_registers(A, Out):
    """The registers of 64-bit elements stored as 16-bit and 32-bit ones."""
    T.device_entry(launch=T.cuda.LaunchConfig(grid=1, block=32))
    lane = T.cuda.lane_id()
    mine = T.load(A.sub[lane])
    halves = mine.view("uint16")
    T.store(Out.view("uint16").sub[lane, 0:4], halves[4:8])
    T.store(Out.view("uint32").sub[lane, 2:4], mine.view("uint32")[0:2], width=4)


def test_views_of_wider_registers_are_stored(device, run):
    a = values("int64", (32, 2), device)
    out = poison(a)
    run(of_wider_registers, a, out)
    assert_same_bits(a.flip(1), out)


# ---- windows ---------------------------------------------------------------------------------------------


@warpjit
def with_runtime_starts(A: T.Tensor((M, K), "float16"), Out, first: T.int32, *, known):
    """Boxes of 2 x 16 halves whose first column is known to be a multiple of `known`."""
    T.device_entry(launch=T.cuda.LaunchConfig(grid=1, block=32))
    lane = T.cuda.lane_id()
    T.assume(first % known == 0)
    box = T.load(A[2 * lane : 2 * lane + 2, first : first + 16])
    T.store(Out.sub[lane], box)


@pytest.mark.parametrize("known", [1, 2, 4, 8])
def test_what_is_assumed_of_a_start_decides_the_width(device, run, known):
    a = values("float16", (64, 40), device)
    out = poison(values("float16", (32, 2, 16), device))
    run(with_runtime_starts, a, out, known, known=known)
    assert_same_bits(a[:, known : known + 16].reshape(32, 2, 16), out)
    loads = [each for each in accesses(with_runtime_starts.source(a, out, known, known=known)) if "ld" in each]
    assert loads == {1: [], 2: [], 4: ["ld.global.v2"] * 8, 8: ["ld.global.v4"] * 4}[known]


@warpjit
def staged(A: T.Tensor((M, K), "float16"), Out, *, swizzle):
    """Out = A's tiles of 32 x 64, through a ring of swizzled stages."""
    T.device_entry(launch=T.cuda.LaunchConfig(grid=1, block=64))
    layout = T.cuda.layout.mma_shared_layout("float16", swizzle, (2, 32, 64)) if swizzle else "default"
    ring = T.alloc_shared((2, 32, 64), "float16", layout=layout)
    for tile in range(K // 64):
        T.copy(ring.sub[tile % 2], A[0:32, 64 * tile : 64 * tile + 64])
        T.cuda.cta_sync()
        for row in range(32):
            Out[tile, row, T.cuda.thread_idx()] = ring[tile % 2, row, T.cuda.thread_idx()]


@pytest.mark.parametrize("swizzle", [None, 32, 64, 128])
def test_stages_of_every_swizzle(device, run, swizzle):
    a = values("float16", (32, 5 * 64), device)
    out = poison(values("float16", (5, 32, 64), device))
    run(staged, a, out, swizzle=swizzle)
    assert_same_bits(a.view(32, 5, 64).transpose(0, 1), out)
    assert accesses(staged.source(a, out, swizzle=swizzle)) == ["ld.global.v4"] * 4 + ["st.shared.v4"] * 4


# ---- masks ----------------------------------------------------------------------------------------------


@warpjit
def masked(A: T.Tensor((M, 4), "float32"), Out, *, width):
    """Rows of the last CTA that do not exist are zeros, and are not stored in the first column's half."""
    T.device_entry(launch=T.cuda.LaunchConfig(grid=T.cdiv(M, 32), block=32))
    row = 32 * T.cuda.block_idx() + T.cuda.lane_id()
    mine = T.load(A.sub[row], width=width, where=row < M)
    T.store(Out.sub[row, 0:4], mine, width=width)
    T.store(Out.sub[row, 4:8], mine, width=width, where=row < M)


@pytest.mark.parametrize("width", [4, 8, 16])
def test_lanes_that_are_masked_read_zeros_and_write_nothing(device, run, width):
    a = values("float32", (50, 4), device)
    out = poison(values("float32", (64, 8), device))
    expected = out.clone()
    expected[:, :4] = 0
    expected[:50] = torch.cat([a, a], dim=1)
    run(masked, a, out, width=width)
    assert_same_bits(expected, out)


@warpjit
def masked_narrow(A, Out, count: T.int32, *, always):
    """Masks of one and two bytes, and masks that are known while tracing."""
    T.device_entry(launch=T.cuda.LaunchConfig(grid=1, block=32))
    lane = T.cuda.lane_id()
    mine = T.load(A.sub[lane], width=2, where=lane < count)
    T.store(Out.sub[lane, 0:6], mine, width=1, where=lane >= 3)
    none = T.load(A.sub[lane], where=always)
    T.store(Out.sub[lane, 6:12], none, where=True)
    T.store(Out.sub[lane, 6:12], mine, where=False)


@pytest.mark.parametrize("always", [False, True])
def test_masks_of_narrow_accesses(device, run, always):
    a = values("int8", (32, 6), device)
    out = poison(values("int8", (32, 12), device))
    expected = out.clone()
    expected[:, :6], expected[:, 6:] = a, a * always
    expected[20:, :6] = 0
    expected[:3, :6] = out[:3, :6]
    run(masked_narrow, a, out, 20, always=always)
    assert_same_bits(expected, out)


# ---- sharing --------------------------------------------------------------------------------------------


@warpjit
def shared_out(A, Out, *, block, scope, width):
    """Each group of threads copies its own tile of three axes: global → shared → shared → global."""
    T.device_entry(launch=T.cuda.LaunchConfig(grid=1, block=block))
    groups, depth, rows, columns = A.shape
    first = T.alloc_shared((groups, depth, rows, columns), A.dtype)
    second = T.alloc_shared((groups, depth, rows, columns), A.dtype)
    thread = 32 * T.cuda.warp_id() + T.cuda.lane_id()
    group = thread * groups // (block[0] * block[1])
    T.copy(first.sub[group], A.sub[group], scope=scope, width=width)
    T.cuda.cta_sync()
    T.copy(second.sub[group], first.sub[group], scope=scope, width=width)
    T.cuda.cta_sync()
    T.copy(Out.sub[group], second.sub[group], scope=scope)


SHARED = [("thread", (32, 1), 32), ("warp", (96, 1), 3), ("warp", (16, 6), 3), ("warpgroup", (256, 1), 2)]
SHARED += [("warpgroup", (32, 8), 2), ("cta", (96, 1), 1), ("cta", (48, 1), 1)]
SHARED += [("cta", (10, 7), 1), ("cta", (1024, 1), 1)]


@pytest.mark.parametrize(("scope", "block", "groups"), SHARED)
@pytest.mark.parametrize("width", [None, 2, 4])
def test_the_threads_of_a_scope_share_the_chunks(device, run, scope, block, groups, width):
    a = values("float16", (groups, 2, 3, 24), device)
    out = poison(a)
    run(shared_out, a, out, block=block, scope=scope, width=width)
    assert_same_bits(a, out)


@warpjit
def one_axis(A, Out, *, scope):
    """Global to global, one axis."""
    T.device_entry(launch=T.cuda.LaunchConfig(grid=1, block=32))
    T.copy(Out, A, scope=scope)


@pytest.mark.parametrize("dtype", BYTES)
def test_global_to_global(device, run, dtype):
    a = values(dtype, (48,), device)
    out = poison(a)
    run(one_axis, a, out, scope="cta")
    assert_same_bits(a, out)


def test_a_thread_has_at_most_64_registers_in_flight():
    a = torch.zeros(160)
    found = accesses(one_axis.source(a, a.clone(), scope="thread"))
    assert found == ["ld.global.v4"] * 16 + ["st.global.v4"] * 16 + (
        ["ld.global.v4"] * 16 + ["st.global.v4"] * 16 + ["ld.global.v4"] * 8 + ["st.global.v4"] * 8
    )


# ---- ragged edges ---------------------------------------------------------------------------------------


@warpjit
def ragged(
    A: T.Tensor((M, N), "float16"),
    B: T.Tensor((M, N), "float16"),
    Tiles,
    *,
    block,
    width,
    swizzle,
    step,
):
    """B = A by tiles of 16 x 32; Tiles has every tile as it lay in shared memory."""
    T.device_entry(launch=T.cuda.LaunchConfig(grid=(T.cdiv(M, 16), T.cdiv(N, 32)), block=block))
    T.assume(N % step == 0)
    i, j = T.cuda.block_idx("x"), T.cuda.block_idx("y")
    layout = T.cuda.layout.mma_shared_layout("float16", swizzle, (16, 32)) if swizzle else "default"
    tile = T.alloc_shared((16, 32), "float16", layout=layout)
    row, column = 16 * i, 32 * j
    valid = (M - row, N - column)
    T.copy(tile, A[row : row + 16, column : column + 32], width=width, valid=valid)
    T.cuda.cta_sync()
    T.copy(Tiles.sub[i, j], tile)
    T.copy(B[row : row + 16, column : column + 32], tile, width=width, valid=valid)


RAGGED = [(48, 80, 8), (33, 72, 8), (1, 8, 8), (17, 36, 4), (30, 37, 1), (15, 31, 1)]


@pytest.mark.parametrize(("m", "n", "step"), RAGGED)
@pytest.mark.parametrize("block", [64, 96])
@pytest.mark.parametrize("swizzle", [None, 64])
def test_ragged_edges_in_both_directions(device, run, m, n, step, block, swizzle):
    pad = 8
    whole = values("float16", (m, n + pad), device)
    a = whole[:, :n]
    around = poison(whole)
    b = around[:, :n]
    across = -(-m // 16), -(-n // 32)
    tiles = poison(values("float16", (*across, 16, 32), device))
    run(ragged, a, b, tiles, block=block, width=None, swizzle=swizzle, step=step)
    assert_same_bits(a, b)
    assert_same_bits(poison(whole)[:, n:], around[:, n:])
    expected = torch.zeros((across[0] * 16, across[1] * 32), dtype=torch.float16)
    expected[:m, :n] = a.cpu()
    expected = expected.view(across[0], 16, across[1], 32).transpose(1, 2)
    assert_same_bits(expected, tiles)


def test_a_limit_narrows_the_chunks_where_no_width_is_given():
    a = torch.zeros(30, 36).half()
    tiles = torch.zeros(2, 2, 16, 32).half()
    text = ragged.source(a, a.clone(), tiles, block=64, width=None, swizzle=None, step=4)
    assert set(accesses(text)) == {"ld.global.v2", "st.shared.v2", "ld.shared.v2", "st.global.v2"} | {
        "ld.shared.v4",
        "st.global.v4",
    }


@warpjit
def limited(A, Out, rows: T.int32, *, columns):
    """Limits of single axes, from shared to shared memory: what does not exist is zero; and to global memory."""
    T.device_entry(launch=T.cuda.LaunchConfig(grid=1, block=32))
    tile = T.alloc_shared((2, 8, 16), "int8")
    part = T.alloc_shared((2, 8, 16), "int8")
    T.copy(tile, A)
    T.cuda.warp_sync()
    T.copy(part, tile, valid=(None, rows, columns))
    T.cuda.warp_sync()
    T.copy(Out.sub[0], part)
    T.copy(Out.sub[1], tile, valid=(1, None, columns))


@pytest.mark.parametrize(("rows", "columns"), [(3, 8), (0, 16), (-5, 4), (100, 1), (8, 0), (5, None), (8, 99)])
def test_limits_of_single_axes(device, run, rows, columns):
    a = values("int8", (2, 8, 16), device)
    out = poison(values("int8", (2, 2, 8, 16), device))
    expected = out.clone()
    expected[0] = 0
    expected[0, :, : max(rows, 0), :columns] = a[:, : max(rows, 0), :columns]
    expected[1, :1, :, :columns] = a[:1, :, :columns]
    run(limited, a, out, rows, columns=columns)
    assert_same_bits(expected, out)


# ---- instructions ---------------------------------------------------------------------------------------


@warpjit
def raw_words(A, Out, count: T.int32):
    """The rows by themselves, with and without a predicate."""
    T.device_entry(launch=T.cuda.LaunchConfig(grid=1, block=32))
    lane = T.cuda.lane_id()
    box = T.alloc_shared((32, 4), "uint32")
    a, b, c, d = T.ptx["ld.global.v4.b32"](A.ptr(lane, 0))
    T.ptx["st.shared.v2.b32"](box.ptr(lane, 0), c, d)
    T.ptx["st.shared.v4.b32"](box.ptr(lane, 0), a, b, c, d, pred=lane < count)
    x, y = T.ptx["ld.shared.v2.b32"](box.ptr(lane, 0))
    T.ptx["st.global.v2.b32"](Out.ptr(lane, 2), x, y)


def test_the_rows_by_themselves(device, run):
    a = values("int64", (32, 2), "cpu").view(torch.uint32).to(device)
    out = torch.zeros_like(a)
    run(raw_words, a, out, 11)
    expected = torch.zeros_like(a)
    expected[:11, 2:], expected[11:, 2:] = a[:11, :2], a[11:, 2:]
    assert_same_bits(expected, out)


@pytest.mark.nvcc
def test_a_copy_of_16_bytes_is_one_instruction_a_side():
    a = torch.zeros(32, 128).half()
    out = torch.zeros(2, 32, 64).half()
    found = disassemble.instructions(staged.sass(a, out, target="sm_90a", swizzle=128))
    moved = sorted(each.opcode for each in found if each.mnemonic in ("LDG", "STS"))
    assert moved == ["LDG.E.128"] * 4 + ["STS.128"] * 4


@warpjit
def fragment_order(A, Out):
    """A local tensor under another layout is stored as its elements are counted."""
    T.device_entry(launch=T.cuda.LaunchConfig(grid=1, block=32))
    mine = T.load(A.sub[T.cuda.lane_id()])
    T.store(Out.sub[T.cuda.lane_id()], mine.view(2, 4, layout=TileLayout(S[(2, 4) : (4, 1)])).view(8))


def test_a_view_in_the_same_order_is_stored(device, run):
    a = values("bfloat16", (32, 8), device)
    out = poison(a)
    run(fragment_order, a, out)
    assert_same_bits(a, out)
