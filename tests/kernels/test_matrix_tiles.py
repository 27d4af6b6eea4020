"""`ldmatrix` and `stmatrix` on (fragment, matrix in shared memory): every operand, form and layout of the matrix.

Registers are compared with plain reads of the elements that `each()` names, memory with where its layout puts them; all
bits are random. What is refused is in `test_matrix_tile_errors`.
"""

from __future__ import annotations

import pytest
import torch
from both import assert_same_bits

from warpjit import T, warpjit
from warpjit.layout import S, TileLayout, laneid, mma_shared_layout

K16 = "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32"
K8 = "mma.sync.aligned.m16n8k8.row.col.f32.bf16.bf16.f32"
ONE_WARP = T.cuda.LaunchConfig(grid=1, block=32)
FOUR_WARPS = T.cuda.LaunchConfig(grid=1, block=128)


def codes(shape: tuple[int, ...], device: str) -> torch.Tensor:
    """Any bit pattern at all: nothing may look at the values."""
    return torch.randint(-(2**15), 2**15, shape, dtype=torch.int16).view(torch.float16).to(device)


def fragment_of(text, operand, repeats):
    """A fragment of 16-bit elements: the words of A and B, or a D that became halves."""
    M, N, K = repeats
    whole = T.cuda.fragments(T.ptx[text], operand, M=M, N=N, K=K, fill=0)
    return whole.cast("float16") if operand == "D" else whole


def window_of(ring, stage, row, column, box, turned):
    """The matrix that begins at (row, column) of a stage; `turned`: it lies there as its transpose."""
    rows, columns = box
    if turned:
        return ring.sub[stage, column : column + columns, row : row + rows].permute(1, 0)
    return ring.sub[stage, row : row + rows, column : column + columns]


# ---- every fragment, form and layout --------------------------------------------------------------------------


@warpjit
def read(In, Read, Plain, stage: T.int32, row: T.int32, column: T.int32, *, fragment, layout, trans, steps):
    """Read[n]: a matrix of a stage by ldmatrix, one, two and four blocks at a time; Plain: element by element."""
    T.device_entry(launch=FOUR_WARPS)
    ring = T.alloc_shared(In.shape, "float16", layout=layout)
    T.copy(ring, In)
    T.cuda.cta_sync()
    text, operand, repeats, box = fragment
    tile = window_of(ring, stage, steps[0] * row, steps[1] * column, box, trans == ".trans")
    if T.cuda.warp_id() == 0:
        for n in T.unroll(3):
            registers = fragment_of(text, operand, repeats)
            T.cuda.tile.apply(T.ptx[f"ldmatrix.sync.aligned.m8n8.x{2**n}{trans}.shared.b16"], registers, tile)
            words = registers.view("uint32")
            for register, i, j in words.each():
                Read[n, i, j] = words.regs[register]
        halves = registers.view("float16")
        for register, i, j in halves.each():
            Plain[0, i, j] = tile[i, j]
            Plain[1, i, j] = halves.regs[register]


@warpjit
def write(In, Ring, Out, stage: T.int32, row: T.int32, column: T.int32, *, fragment, layout, trans, steps):
    """Out[n]: Ring, of which one matrix is overwritten by stmatrix, one, two and four blocks at a time."""
    T.device_entry(launch=FOUR_WARPS)
    ring = T.alloc_shared(Ring.shape, "float16", layout=layout)
    text, operand, repeats, box = fragment
    registers = fragment_of(text, operand, repeats)
    words = registers.view("uint32")
    for register, i, j in words.each():
        words.regs[register] = In[i, j]
    tile = window_of(ring, stage, steps[0] * row, steps[1] * column, box, trans == ".trans")
    for n in T.unroll(3):
        T.copy(ring, Ring)
        T.cuda.cta_sync()
        if T.cuda.warp_id() == n:
            T.cuda.tile.apply(T.ptx[f"stmatrix.sync.aligned.m8n8.x{2**n}{trans}.shared.b16"], tile, registers)
        T.cuda.cta_sync()
        T.copy(Out.sub[n], ring)
        T.cuda.cta_sync()


SHAPE = (2, 32, 128)
LAYOUTS = {"plain": "default", "padded": TileLayout(S[SHAPE : (32 * 136, 136, 1)])}
LAYOUTS |= {f"{mode} bytes": mma_shared_layout(16, mode, SHAPE) for mode in (32, 64, 128)}
FRAGMENTS = {
    "A, down": (K16, "A", (2, 1, 1), (32, 16)),
    "A, across": (K16, "A", (1, 1, 2), (16, 32)),
    "A of 8 columns": (K8, "A", (1, 1, 4), (16, 32)),
    "B, down": (K16, "B", (1, 4, 1), (32, 16)),
    "B, across": (K16, "B", (1, 2, 2), (16, 32)),
    "D": (K16, "D", (2, 2, 1), (32, 16)),
}
BOTH_WAYS = [
    (name, layout, ("", ".trans")[(i + j) % 2]) for i, name in enumerate(FRAGMENTS) for j, layout in enumerate(LAYOUTS)
]


def starts(box: tuple[int, int], trans: str) -> tuple[int, int]:
    """The last windows of their size, in steps of it."""
    _, down, across = SHAPE
    rows, columns = (across, down) if trans else (down, across)
    return rows // box[0] - 1, columns // box[1] - 1


def seen(ring: torch.Tensor, box: tuple[int, int], stage: int, row: int, column: int, trans: str) -> torch.Tensor:
    """The matrix in a ring, as a view."""
    whole = ring[stage].mT if trans else ring[stage]
    return whole[row : row + box[0], column : column + box[1]]


@pytest.mark.parametrize(("name", "layout", "trans"), BOTH_WAYS)
def test_ldmatrix_gives_the_elements_that_each_names(device, run, name, layout, trans):
    box = FRAGMENTS[name][3]
    row, column = starts(box, trans)
    check_read(device, run, FRAGMENTS[name], LAYOUTS[layout], trans, box, (1, row, column))


def check_read(device, run, fragment, layout, trans, steps, where):
    box = fragment[3]
    ring = codes(SHAPE, device)
    words = torch.zeros((3, box[0], box[1] // 2), dtype=torch.int32, device=device)
    plain = torch.zeros((2, *box), dtype=torch.float16, device=device)
    run(read, ring, words, plain, *where, fragment=fragment, layout=layout, trans=trans, steps=steps)
    expected = seen(ring, box, where[0], steps[0] * where[1], steps[1] * where[2], trans)
    for each in (*plain, *words.view(torch.float16)):
        assert_same_bits(expected, each)


@pytest.mark.parametrize(("name", "layout", "trans"), BOTH_WAYS[1::2])
def test_stmatrix_writes_the_elements_that_each_names(device, run, name, layout, trans):
    box = FRAGMENTS[name][3]
    row, column = starts(box, trans)
    given, ring = codes(box, device), codes(SHAPE, device)
    out = torch.zeros((3, *SHAPE), dtype=torch.float16, device=device)
    constants = {"fragment": FRAGMENTS[name], "layout": LAYOUTS[layout], "trans": trans, "steps": box}
    run(write, given.view(torch.int32), ring, out, 1, row, column, **constants)
    expected = ring.clone()
    seen(expected, box, 1, box[0] * row, box[1] * column, trans)[:] = given
    for each in out:
        assert_same_bits(expected, each)


@pytest.mark.parametrize("trans", ["", ".trans"])
@pytest.mark.parametrize("layout", ["plain", "padded"])
def test_windows_start_anywhere_that_is_aligned(device, run, layout, trans):
    """Of axes of one stride: at any line, and at multiples of 8 elements of it."""
    steps, where = ((8, 1), (0, 7, 13)) if trans else ((1, 8), (0, 13, 7))
    check_read(device, run, FRAGMENTS["B, down" if trans else "B, across"], LAYOUTS[layout], trans, steps, where)


# ---- windows of fragments, tiles inside of others ----------------------------------------------------------------


@warpjit
def in_parts(In, Loaded, Stored):
    """A fragment loaded column by column, then stored row by row; its windows' registers have gaps between them."""
    T.device_entry(launch=ONE_WARP)
    arena = T.alloc_shared((2 * 32 * 64 + 512,), "float16")
    swizzled = T.cuda.layout.mma_shared_layout("float16", 128, (32, 64))
    first = arena[0 : 32 * 64].view(32, 64, layout=swizzled)
    second = arena[32 * 64 + 512 :].view(64, 32)
    T.copy(first, In)
    T.cuda.warp_sync()
    a = T.cuda.fragments(T.ptx[K16], "A", M=2, K=3)
    for k in T.unroll(3):
        T.cuda.tile.apply(T.ptx[LOAD4], a[:, k : k + 1], first[:, 8:56][:, 16 * k : 16 * k + 16])
    words = a.view("uint32")
    for register, i, j in words.each():
        Loaded[i, j] = words.regs[register]
    for m in T.unroll(2):
        T.cuda.tile.apply(T.ptx[STORE4T], second[8:56, 16 * m : 16 * m + 16].permute(1, 0), a[m : m + 1])
        T.cuda.tile.apply(T.ptx[STORE1], second[0:8, 16 * m : 16 * m + 16].permute(1, 0), a[m : m + 1, 0:1, :, 0:4])
        T.cuda.tile.apply(T.ptx[STORE2], second[56:64, 16 * m : 16 * m + 16].permute(1, 0), a[m : m + 1, 2:3, :, 4:8])
    T.cuda.warp_sync()
    T.copy(Stored, second)


LOAD4 = "ldmatrix.sync.aligned.m8n8.x4.shared.b16"
STORE4T = "stmatrix.sync.aligned.m8n8.x4.trans.shared.b16"
STORE1 = "stmatrix.sync.aligned.m8n8.x1.trans.shared.b16"
STORE2 = "stmatrix.sync.aligned.m8n8.x2.trans.shared.b16"


def test_windows_of_a_fragment_keep_their_registers(device, run):
    given = codes((32, 64), device)
    loaded = torch.zeros((32, 24), dtype=torch.int32, device=device)
    stored = codes((64, 32), device)
    run(in_parts, given, loaded, stored)
    assert_same_bits(given[:, 8:56], loaded.view(torch.float16))
    assert_same_bits(torch.cat([given[:, 8:16], given[:, 8:56], given[:, 48:56]], dim=1).mT, stored)


@warpjit
def by_hand(In, Out, *, shape, layout, count, dtype, num):
    """Registers under a layout by hand, loaded from a tile and stored into another."""
    T.device_entry(launch=ONE_WARP)
    first = T.alloc_shared(In.shape, "float16", align=128)
    second = T.alloc_shared(In.shape, "float16", align=128)
    T.copy(first, In)
    T.cuda.warp_sync()
    registers = T.alloc_local((count,), dtype).view(*shape, layout=layout)
    T.cuda.tile.apply(T.ptx[f"ldmatrix.sync.aligned.m8n8.x{num}.shared.b16"], registers, first)
    T.cuda.tile.apply(T.ptx[f"stmatrix.sync.aligned.m8n8.x{num}.shared.b16"], second, registers)
    T.cuda.warp_sync()
    T.copy(Out.sub[0], second)
    halves = registers.view("float16")
    for register, i, j in halves.each():
        Out[1, i, j] = halves.regs[register]


BY_HAND = {
    "blocks down first": ((16, 8), TileLayout(S[(2, 8, 2, 4) : (1, 4 @ laneid, 2, 1 @ laneid)]), "uint32"),
    "blocks across first": ((16, 8), TileLayout(S[(2, 8, 2, 4) : (2, 4 @ laneid, 1, 1 @ laneid)]), "uint32"),
    "in halves": ((16, 16), TileLayout(S[(2, 8, 2, 4, 2) : (2, 4 @ laneid, 4, 1 @ laneid, 1)]), "bfloat16"),
    "a row of blocks": ((8, 32), TileLayout(S[(8, 8, 4) : (4 @ laneid, 1, 1 @ laneid)]), "int32"),
    "a column of blocks": ((64, 8), TileLayout(S[(8, 8, 4, 2) : (2, 4 @ laneid, 1 @ laneid, 1)]), "float16"),
    "gaps": ((16, 8), TileLayout(S[(2, 8, 2, 4) : (3, 4 @ laneid, 7, 1 @ laneid)] + 2), "float32"),
    "four axes": ((2, 2, 8, 4), TileLayout(S[(2, 2, 8, 4) : (1, 2, 4 @ laneid, 1 @ laneid)]), "uint32"),
}


@pytest.mark.parametrize("num", [1, 2, 4])
@pytest.mark.parametrize("name", BY_HAND)
def test_registers_under_layouts_by_hand(device, run, name, num):
    shape, layout, dtype = BY_HAND[name]
    rows, columns = (shape[0], shape[1]) if len(shape) == 2 else (shape[0] * shape[2], shape[1] * shape[3])
    given = codes((rows, columns * (2 if dtype.endswith("32") else 1)), device)
    out = torch.zeros((2, *given.shape), dtype=torch.float16, device=device)
    count = layout.span("m")
    run(by_hand, given, out, shape=shape, layout=layout, count=count, dtype=dtype, num=num)
    for each in out:
        assert_same_bits(given, each)


@warpjit
def turned(In, Out, *, axes):
    """A fragment that holds the transpose: turned, like the tile, it is loaded with .trans."""
    T.device_entry(launch=ONE_WARP)
    tile = T.alloc_shared(In.shape, "float16")
    T.copy(tile, In)
    T.cuda.warp_sync()
    a = T.cuda.fragments(T.ptx[K16], "A", M=2).view("float16")
    held = a.permute(1, 0, 3, 2) if axes == 4 else a.rearrange("i j row column -> (j column) (i row)")
    back = held.permute(1, 0, 3, 2) if axes == 4 else held.permute(1, 0)
    T.cuda.tile.apply(T.ptx[LOAD4.replace(".x4", ".x4.trans")], back, tile.permute(1, 0))
    for register, i, j in held.each():
        Out[i, j] = held.regs[register]


@pytest.mark.parametrize("axes", [2, 4])
def test_a_fragment_that_holds_the_transpose(device, run, axes):
    """As the refusal advises."""
    given = codes((16, 32), device)
    out = torch.zeros_like(given)
    run(turned, given, out, axes=axes)
    assert_same_bits(given, out)
