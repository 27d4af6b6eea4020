"""Fragments moved to other layouts in kernels: `t.convert`, `T.cuda.convert`; fragments in the element's own type."""

from __future__ import annotations

import pytest
import torch
from both import assert_same_bits
from refusals import ONE_WARP, refused

from warpjit import T, warpjit
from warpjit.isa import convert, matrix_layout
from warpjit.layout import S, TileLayout, laneid, mma_shared_layout, warpid, wid_in_wg

F16 = "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32"
F16_K8 = "mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32"
TF32 = "mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32"
S8 = "mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32"


# ---- t.convert ------------------------------------------------------------------------------------------------


@warpjit
def moved(In, Out, *, before, after):
    """Out[row, column] as `after` says it is held, moved from where `before` has it."""
    T.device_entry(launch=ONE_WARP)
    rows, columns = In.shape
    t = T.alloc_local((rows * columns // 32,), In.dtype).view(rows, columns, layout=before)
    for register, row, column in t.each():
        t.regs[register] = In[row, column]
    result = t.convert(after)
    for register, row, column in result.each():
        Out[row, column] = result.regs[register]


def layouts(text: str, operand: str, **repeats: int) -> TileLayout:
    return matrix_layout(text, operand, **repeats)


TRANSPOSED = TileLayout(S[(2, 4, 2, 2, 8) : (2, 1 @ laneid, 1, 4, 4 @ laneid)])
APART = TileLayout(S[(2, 8, 2, 4, 2) : (2, 4 @ laneid, 1, 1 @ laneid, 4)])
PAIRS = {
    "in place": ("float16", layouts(F16, "D", N=2), layouts(F16, "A")),
    "renamed": ("float16", layouts(F16, "A"), layouts(F16, "B", N=2)),
    "together from parts": ("float16", APART, layouts(F16, "A")),
    "parts of bytes": (
        "int8",
        TileLayout(S[(8, 4, 2, 2, 2) : (4 @ laneid, 1 @ laneid, 2, 1, 4)]),
        TileLayout(S[(8, 4, 8) : (4 @ laneid, 1 @ laneid, 1)]),
    ),
    "transposed": ("float16", TRANSPOSED, layouts(F16, "A")),
    "transposed, of bfloat16": ("bfloat16", layouts(F16, "A"), TRANSPOSED),
    "sums to tf32": ("float32", layouts(TF32, "D"), layouts(TF32, "A")),
    "sums to bytes": ("int8", layouts(S8, "D", N=4), layouts(S8, "A")),
    "halves apart": ("float16", layouts(F16, "A"), TileLayout(S[(32, 8) : (1 @ laneid, 1)])),
    "doubles": (
        "float64",
        TileLayout(S[(8, 4, 2) : (4 @ laneid, 1 @ laneid, 1)]),
        TileLayout(S[(8, 2, 4) : (4 @ laneid, 1, 1 @ laneid)]),
    ),
}


def numbered(rows: int, columns: int, dtype: str) -> torch.Tensor:
    """A different value for each element, as far as the type has them."""
    return (torch.arange(rows * columns) % 251 - 120).view(rows, columns).to(getattr(torch, dtype))


@pytest.mark.parametrize("name", PAIRS)
def test_a_fragment_is_moved(device, both, name):
    dtype, source, target = PAIRS[name]
    shape = {64: (8, 8), 128: (16, 8), 256: (16, 16), 512: (16, 32)}[source.size()]
    if name == "parts of bytes":
        shape = (8, 32)
    x = numbered(*shape, dtype).to(device)
    out = torch.zeros_like(x)
    both(moved, x, out, before=source, after=target)
    assert_same_bits(x.cpu(), out)


@warpjit
def row_moved(In, Out, *, before, after):
    """A row of elements from where `before` has them to where `after` has them."""
    T.device_entry(launch=ONE_WARP)
    (count,) = In.shape
    t = T.alloc_local((count // 32,), In.dtype).view(count, layout=before)
    for register, index in t.each():
        t.regs[register] = In[index]
    result = t.convert(after)
    for register, index in result.each():
        Out[index] = result.regs[register]


def test_lanes_may_come_from_anywhere(device, both):
    """Three registers a lane: the lanes that are read from are no sum of digits of the lane that reads."""
    x = torch.arange(96, dtype=torch.int32, device=device)
    out = torch.zeros_like(x)
    by_lane, by_register = TileLayout(S[(32, 3) : (1 @ laneid, 1)]), TileLayout(S[(3, 32) : (1, 1 @ laneid)])
    both(row_moved, x, out, before=by_lane, after=by_register)
    assert_same_bits(x.cpu(), out)


def test_what_is_written():
    """Nothing for what is in place; movmatrix and shuffles as the plan counts them."""
    counts = {}
    for name, (dtype, source, target) in PAIRS.items():
        if source.size() != 256 or dtype != "float16":
            continue
        x = numbered(16, 16, dtype)
        text = moved.source(x, x.clone(), before=source, after=target)
        counts[name] = (text.count("movmatrix.sync"), text.count("shfl.sync.idx"))
    assert counts == {
        "in place": (0, 0),
        "renamed": (0, 0),
        "together from parts": (0, 0),
        "transposed": (4, 0),
        "halves apart": (0, len(convert(*PAIRS["halves apart"][1:], "float16").step.shuffles)),
    }


def test_refused_moves():
    def kernel(Out):
        T.device_entry(launch=T.cuda.LaunchConfig(grid=1, block=64))
        t = T.alloc_local((4,), "float32").view(16, 8, layout=layouts(F16, "D"))
        t.convert(layouts(F16, "D", N=2))
        t.convert(TileLayout(S[(2, 2, 32) : (1 @ warpid, 1, 1 @ laneid)]))
        t.convert("A")
        T.alloc_shared((4,), "float32").convert(layouts(F16, "D"))
        T.cuda.convert(3, F16, "A")
        T.cuda.convert(t, F16, "A")

    said = [message for message, _ in refused(kernel)]
    assert "128" in said[0] and "of 256" in said[0]
    assert "elements leave their warp" in said[1]
    assert said[2] == "convert: expected a layout of lanes and registers but got str 'A'"
    assert said[3].startswith("convert: expected a tensor in registers")
    assert said[4] == "T.cuda.convert: expected a fragment but got int 3"


# ---- through shared memory -----------------------------------------------------------------------------------


@warpjit
def exchanged(In, Out, *, before, after, swizzle):
    """Row i of In and Out is what thread i holds: as `before` says, and as `after` does."""
    T.device_entry(launch=T.cuda.LaunchConfig(grid=1, block=128))
    count = In.shape[1]
    thread = T.cuda.thread_idx()
    scratch = T.alloc_shared((8, 16 * count), In.dtype, layout=swizzle)
    t = T.alloc_local((count,), In.dtype).view(128 * count, layout=before)
    for register in range(count):
        t.regs[register] = In[thread, register]
    result = t.convert(after, scratch=scratch)
    again = result.convert(before, scratch=scratch).convert(after, scratch=scratch)  # it is free after each
    for register in range(count):
        Out[thread, register] = result.regs[register]
        Out[thread, count + register] = again.regs[register]


def held(layout: TileLayout, values: torch.Tensor) -> torch.Tensor:
    """What the threads hold, (128, registers), of the elements by number."""
    places = {axis: torch.from_numpy(place) for axis, place in layout.enumerate().items()}
    warp = sum(places.get(axis, torch.tensor(0)) for axis in ("warpid", "wid_in_wg"))
    found = torch.zeros(128, values.numel() // 128, dtype=values.dtype)
    found[32 * warp + places["laneid"], places["m"]] = values
    return found


BY_ROWS = TileLayout(S[(4, 8, 2, 4, 2) : (1 @ warpid, 4 @ laneid, 2, 1 @ laneid, 1)])
BY_COLUMNS = TileLayout(S[(4, 8, 4, 4) : (1, 1 @ laneid, 1 @ warpid, 8 @ laneid)])
OF_WARPGROUP = TileLayout(S[(2, 4, 4, 2, 8) : (2, 1 @ wid_in_wg, 8 @ laneid, 1, 1 @ laneid)])
EXCHANGES = {
    "halves, swizzled": ("float16", BY_ROWS, BY_COLUMNS, mma_shared_layout("float16", 128, (8, 64))),
    "words": ("float32", BY_COLUMNS, BY_ROWS, "default"),
    "bytes, by warps of a warpgroup": ("uint8", BY_ROWS, OF_WARPGROUP, "default"),
}


@pytest.mark.parametrize("name", EXCHANGES)
def test_elements_leave_their_warp_through_scratch(device, both, name):
    dtype, before, after, swizzle = EXCHANGES[name]
    values = numbered(4, 128, dtype).reshape(-1)
    out = torch.zeros(128, 8, dtype=values.dtype, device=device)
    both(exchanged, held(before, values).to(device), out, before=before, after=after, swizzle=swizzle)
    assert_same_bits(held(after, values).repeat(1, 2), out)


def test_refused_exchanges():
    def kernel(Out):
        T.device_entry(launch=T.cuda.LaunchConfig(grid=1, block=128))
        t = T.alloc_local((4,), "float32").view(512, layout=BY_ROWS)
        t.convert(BY_COLUMNS)
        t.convert(BY_COLUMNS, scratch=Out)
        t.convert(BY_COLUMNS, T.alloc_shared((512,), "int32"))
        t.convert(BY_COLUMNS, T.alloc_shared((256,), "float32"))
        half = T.alloc_local((8,), "float32").view(512, layout=TileLayout(S[(2, 8, 32) : (1 @ warpid, 1, 1 @ laneid)]))
        half.convert(TileLayout(S[(8, 2, 32) : (1, 1 @ warpid, 1 @ laneid)]), scratch=T.alloc_shared((512,), "float32"))

    said = [message for message, _ in refused(kernel)]
    assert said[0].endswith("and load them after a barrier: give a shared tensor as scratch")
    assert said[1].startswith("convert: expected scratch to be a shared tensor but got")
    assert said[2].startswith("convert: expected scratch to hold 512 float32, as t, but")
    assert said[2].endswith("shape (512,), holds int32")
    assert said[3].endswith("shape (256,), holds float32")
    assert "elements in all 4 warps of the CTA, since it synchronises, but that of half is" in said[4]


# ---- T.cuda.convert --------------------------------------------------------------------------------------------


@warpjit
def chained_tf32(Q, K, V, Out):
    """Out = (Q @ K.T) @ V.T in tf32: the sums are moved to where operand A of the second product is."""
    T.device_entry(launch=ONE_WARP)
    mma = T.ptx[TF32]
    q, k = T.cuda.fragments(mma, "A", dtype="float32"), T.cuda.fragments(mma, "B", dtype="float32")
    v = T.cuda.fragments(mma, "B", dtype="float32")
    for fragment, source in ((q, Q), (k, K), (v, V)):
        for register, row, column in fragment.each():
            fragment.regs[register] = source[row, column]
    scores, out = T.cuda.fragments(mma, "D"), T.cuda.fragments(mma, "D")
    T.cuda.tile.apply(mma, scores, q, k, 0.0)
    T.cuda.tile.apply(mma, out, T.cuda.convert(scores, mma, "A"), v, 0.0)
    for register, row, column in out.each():
        Out[row, column] = out.regs[register]


def test_sums_of_tf32_are_moved_to_the_next_product(device, both):
    q, k, v = (torch.randint(-3, 4, shape).float().to(device) for shape in ((16, 8), (8, 8), (8, 8)))
    out = torch.full((16, 8), float("nan"), device=device)
    both(chained_tf32, q, k, v, out)
    assert_same_bits((q.double() @ k.double().T @ v.double().T + 0.0).float(), out)


@warpjit
def chained_bytes(Q, K, V, Out):
    """The same in bytes: 16 x 32 sums, cut to int8, are operand A of the second product."""
    T.device_entry(launch=ONE_WARP)
    mma = T.ptx[S8]
    q, k = T.cuda.fragments(mma, "A", dtype="int8"), T.cuda.fragments(mma, "B", N=4, dtype="element")
    v = T.cuda.fragments(mma, "B", dtype=T.int8)
    for fragment, source in ((q, Q), (k, K), (v, V)):
        for register, row, column in fragment.each():
            fragment.regs[register] = source[row, column]
    scores, out = T.cuda.fragments(mma, "D", N=4), T.cuda.fragments(mma, "D")
    T.cuda.tile.apply(mma, scores, q, k, 0)
    T.cuda.tile.apply(mma, out, T.cuda.convert(scores.cast("int8"), mma, "A"), v, 0)
    for register, row, column in out.each():
        Out[row, column] = out.regs[register]


def test_sums_of_bytes_are_moved_to_the_next_product(device, both):
    q, k, v = (torch.randint(-1, 2, shape).to(torch.int8).to(device) for shape in ((16, 32), (32, 32), (8, 32)))
    out = torch.full((16, 8), -1, dtype=torch.int32, device=device)
    both(chained_bytes, q, k, v, out)
    assert_same_bits((q.long().cpu() @ k.long().cpu().T @ v.long().cpu().T).int(), out)
