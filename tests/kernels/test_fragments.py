"""What a fragment offers: `regs`, `fill`, `each` and `cast`, of whole fragments, of windows, and of layouts by hand.

Which element a register holds is taken from the layout, element by element, not from its strides. `as_operand` and the
refusals are in `test_fragment_operands`.
"""

from __future__ import annotations

import numpy as np
import pytest
import torch
from both import assert_same_bits

from warpjit import T, warpjit
from warpjit.isa.operands import operand_layout, operand_shape
from warpjit.isa.table import lookup
from warpjit.layout import S, TileLayout, laneid

K16 = "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32"
K8 = "mma.sync.aligned.m16n8k8.row.col.f32.bf16.bf16.f32"
ONE_WARP = T.cuda.LaunchConfig(grid=1, block=32)


# ---- which element a register holds ---------------------------------------------------------------------------


@warpjit
def walk(Where, Held, *, text, operand, repeats, window):
    """Where[lane, n]: what each() says of register n of a window; Held: all registers, in which the window's say it."""
    T.device_entry(launch=ONE_WARP)
    lane = T.cuda.lane_id()
    M, N, K = repeats
    whole = T.cuda.fragments(T.ptx[text], operand, M=M, N=N, K=K)
    whole.fill(5)
    (i, di), (j, dj), (r, dr), (c, dc) = window
    part = whole[i : i + di, j : j + dj, r : r + dr, c : c + dc]
    for register, row, column in part.each():
        Where[lane, register, 0] = row
        Where[lane, register, 1] = column
        part.regs[register] = 1000 * row + column
    words = whole.storage.view(whole.dtype)
    for register in T.unroll(Held.shape[1]):
        Held[lane, register] = T.int32(words[register])


ALL = (0, None)
WHOLE = (ALL, ALL, ALL, ALL)
WALKS = [
    (K16, "D", (1, 1, 1), WHOLE),
    (K16, "D", (2, 3, 1), WHOLE),
    (K16, "A", (3, 1, 2), WHOLE),
    (K16, "B", (1, 2, 3), WHOLE),
    (K8, "D", (1, 4, 1), WHOLE),
    (K8, "A", (2, 1, 2), WHOLE),
    (K8, "B", (1, 3, 2), WHOLE),
    (K16, "D", (2, 3, 1), ((1, 1), ALL, ALL, ALL)),
    (K16, "D", (2, 3, 1), (ALL, (1, 1), ALL, ALL)),  # registers with gaps between them
    (K16, "D", (3, 4, 1), ((1, 2), (1, 2), ALL, ALL)),
    (K16, "D", (2, 2, 1), (ALL, ALL, (8, 8), ALL)),  # the lower halves of the atoms
    (K16, "A", (2, 1, 2), (ALL, (1, 1), ALL, (4, 4))),
    (K16, "A", (2, 1, 2), ((1, 1), (1, 1), (8, 8), (0, 4))),  # a single register
    (K8, "B", (1, 3, 2), (ALL, (1, 1), ALL, ALL)),
]


def held(layout: TileLayout, shape: tuple[int, ...], box: tuple[tuple[int, int], ...]) -> np.ndarray:
    """(32, registers, 1 + axes): place among all registers, and coordinates in a box of what each lane holds of it."""
    places = layout.enumerate(shape)
    ranges = tuple(slice(start, start + extent) for start, extent in box)
    registers = places["m"][ranges]
    where = np.moveaxis(np.indices(registers.shape), 0, -1)
    found = []
    for lane in range(32):
        own = places["laneid"][ranges] == lane if "laneid" in places else np.ones_like(registers, dtype=bool)
        found.append(sorted((int(p), *map(int, c)) for p, c in zip(registers[own], where[own], strict=True)))
    return np.array(found, np.int32)


@pytest.mark.parametrize(("text", "operand", "repeats", "window"), WALKS)
def test_each_register_and_the_element_that_it_holds(device, run, text, operand, repeats, window):
    counts = dict(zip("MNK", repeats, strict=True))
    layout, shape = operand_layout(lookup(text), operand, **counts), operand_shape(lookup(text), operand, **counts)
    box = tuple((start, extent or whole) for (start, extent), whole in zip(window, shape, strict=True))
    expected = held(layout, shape, box)
    matrix = expected[:, :, 1:3] * [box[2][1], box[3][1]] + expected[:, :, 3:]
    where = torch.full((32, expected.shape[1], 2), -1, dtype=torch.int32, device=device)
    registers = torch.full((32, layout.span("m")), -1, dtype=torch.int32, device=device)
    run(walk, where, registers, text=text, operand=operand, repeats=repeats, window=box)
    assert_same_bits(torch.from_numpy(matrix.astype(np.int32)), where)
    words = np.full(registers.shape, 5, np.int32)
    np.put_along_axis(words, expected[:, :, 0].astype(np.int64), matrix @ np.array([1000, 1]), 1)
    assert_same_bits(torch.from_numpy(words), registers)


@warpjit
def walk_by_hand(Where, *, shape, layout, count, dtype):
    """Where[lane, n] = the coordinates of register n of a view."""
    T.device_entry(launch=ONE_WARP)
    lane = T.cuda.lane_id()
    for entry in T.alloc_local((count,), dtype).view(*shape, layout=layout).each():
        for axis in T.unroll(len(shape)):
            Where[lane, entry[0], axis] = entry[1 + axis]


BITS = (1 @ laneid, 1, 8 @ laneid, 2 @ laneid, 4 @ laneid, 16 @ laneid)
BY_HAND = {
    "a lane, a row": ((32, 3), TileLayout(S[(32, 3) : (1 @ laneid, 1)])),
    "a lane, a column": ((4, 32), TileLayout(S[(4, 32) : (1, 1 @ laneid)])),
    "lanes in both axes": ((16, 8), TileLayout(S[(2, 8, 4, 2) : (2, 4 @ laneid, 1 @ laneid, 1)])),
    "lanes turned": ((8, 16), TileLayout(S[(4, 2, 2, 8) : (1 @ laneid, 1, 2, 4 @ laneid)])),
    "lanes in bits of both": ((8, 8), TileLayout(S[(2,) * 6 : BITS])),
    "one axis": ((96,), TileLayout(S[(3, 32) : (1, 1 @ laneid)])),
    "one axis, lanes outermost": ((64,), TileLayout(S[(32, 2) : (1 @ laneid, 1)])),
    "three axes": ((2, 16, 4), TileLayout(S[(2, 16, 2, 2) : (2, 2 @ laneid, 1, 1 @ laneid)])),
    "strides with gaps": ((32, 2, 2), TileLayout(S[(32, 2, 2) : (1 @ laneid, 8, 3)])),
    "an offset": ((32, 2), TileLayout(S[(32, 2) : (1 @ laneid, 1)] + 5)),
    "axes of one": ((1, 32, 2), TileLayout(S[(1, 32, 1, 2) : (7, 1 @ laneid, 9, 1)])),
    "no lanes: each thread its own": ((3, 2), TileLayout(S[(3, 2) : (1, 3)])),
    "a single element": ((1,), TileLayout(S[1])),
}


@pytest.mark.parametrize("dtype", ["float32", "float16", "int64"])
@pytest.mark.parametrize("name", BY_HAND)
def test_each_of_layouts_by_hand(device, run, name, dtype):
    shape, layout = BY_HAND[name]
    expected = held(layout, shape, tuple((0, extent) for extent in shape))[:, :, 1:]
    where = torch.full(expected.shape, -1, dtype=torch.int32, device=device)
    run(walk_by_hand, where, shape=shape, layout=layout, count=layout.span("m"), dtype=dtype)
    assert_same_bits(torch.from_numpy(np.ascontiguousarray(expected)), where)


# ---- fill -----------------------------------------------------------------------------------------------------


@warpjit
def filled(Out, value: T.float32, *, dtype):
    """Whole fragments, windows, and half words; with numbers of every kind."""
    T.device_entry(launch=ONE_WARP)
    lane = T.cuda.lane_id()
    local = T.alloc_local((9,), dtype)
    local.fill(7)
    local[2:7].fill(value)
    local[3:4].fill(-1.5 if local.dtype != T.int32 else -1)
    local[8:9].fill(lane)
    for i in range(9):
        Out[lane, i] = local[i]


@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16", "float64", "int32"])
def test_fill_reaches_exactly_its_window(device, run, dtype):
    out = torch.full((32, 9), 99, dtype=getattr(torch, dtype), device=device)
    run(filled, out, 3.25, dtype=dtype)
    row = torch.tensor([7, 7, 3.25, -1.5, 3.25, 3.25, 3.25, 7, 0], dtype=torch.float64).to(out.dtype)
    expected = row.repeat(32, 1)
    expected[:, 8] = torch.arange(32)
    assert_same_bits(expected, out)


# ---- cast -----------------------------------------------------------------------------------------------------


@warpjit
def cast_registers(In, Out, *, dtype, start, count):
    """Each lane's registers from `start` on in another type."""
    T.device_entry(launch=ONE_WARP)
    lane = T.cuda.lane_id()
    local = T.alloc_local((In.shape[1],), In.dtype)
    for i in range(In.shape[1]):
        local[i] = In[lane, i]
    result = local[start : start + count].cast(dtype)
    for i in range(count):
        Out[lane, i] = result.regs[i]


def numbers(device: str) -> torch.Tensor:
    """(32, 12) float32: ties and near ties of both 16-bit types, their limits, subnormals, NaN, infinities, zeros."""
    parts = [1.0, 2.0**-14, 2.0**-24, 2.0**-126, 2.0**-133, 65504.0, 3.3895314e38]
    ulps = [0.0, 0.5, 0.5 + 2**-10, 0.5 - 2**-10, 1.0, 1.5, 2.5, 0.25]
    near = [x * (1 + u * e) for x in parts for u in ulps for e in (2.0**-10, 2.0**-7)]
    tiny = [k * 2.0**-26 for k in range(16)] + [k * 2.0**-135 for k in range(16)]
    special = [float("nan"), float("inf"), 0.0, 65519.996, 65520.0, 65536.0, 3.4e38, 1e-45]
    positive = torch.tensor(near + tiny + special, dtype=torch.float64).to(torch.float32)
    every = torch.cat([positive, -positive])
    patterns = torch.randint(-(2**31), 2**31 - 1, (384 - len(every),), dtype=torch.int32).view(torch.float32)
    return torch.cat([every, patterns]).view(32, 12)[:, torch.randperm(12)].contiguous().to(device)


def rounded(x: torch.Tensor, dtype: torch.dtype) -> torch.Tensor:
    """In a 16-bit float type; NaN is the canonical one (PTX manual, cvt)."""
    result = x.cpu().to(dtype)
    result.view(torch.int16)[x.cpu().isnan()] = 0x7FFF
    return result


@pytest.mark.parametrize(("start", "count"), [(0, 12), (0, 2), (0, 1), (0, 11), (1, 4), (3, 5), (2, 10)])
@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_floats_become_halves(device, both, dtype, start, count):
    x = numbers(device)
    out = torch.full((32, count), 0x1234, dtype=torch.int16, device=device).view(getattr(torch, dtype))
    both(cast_registers, x, out, dtype=dtype, start=start, count=count)
    assert_same_bits(rounded(x[:, start : start + count], out.dtype), out)
    kind = {"float16": "f16", "bfloat16": "bf16"}[dtype]
    pairs = cast_registers.source(x, out, dtype=dtype, start=start, count=count).count(f"cvt.rn.{kind}x2.f32")
    assert pairs == (0 if count % 2 else count // 2)


@pytest.mark.parametrize(("start", "count"), [(0, 12), (1, 7), (5, 2), (11, 1)])
@pytest.mark.parametrize("source", ["float16", "bfloat16"])
def test_halves_become_floats(device, both, source, start, count):
    x = torch.randint(-(2**15), 2**15, (32, 12), dtype=torch.int16).view(getattr(torch, source))
    x = torch.where(x.isnan(), 1.5, x).to(x.dtype).to(device)
    x[0, :6] = torch.tensor([float("inf"), -float("inf"), 0.0, -0.0, 6e-8, -6e-8])
    out = torch.full((32, count), 99.0, device=device)
    both(cast_registers, x, out, dtype="float32", start=start, count=count)
    assert_same_bits(x[:, start : start + count].float(), out)


CASTS = [("int32", "float32"), ("int32", "float16"), ("float32", "int32"), ("float32", "float64"), ("int8", "int32")]
CASTS += [("float16", "bfloat16"), ("int64", "float32"), ("float32", "float32"), ("uint8", "float16")]


@pytest.mark.parametrize(("source", "dtype"), CASTS)
@pytest.mark.parametrize(("start", "count"), [(0, 6), (1, 5)])
def test_casts_between_other_types(device, both, source, dtype, start, count):
    x = torch.randint(0 if source == "uint8" else -100, 100, (32, 6)).to(getattr(torch, source)).to(device)
    if source in ("int32", "int64"):
        x[:, 1] = 2**24 + 1 + 2 * torch.arange(32, device=device)  # rounds to even
    out = torch.full((32, count), 99, dtype=getattr(torch, dtype), device=device)
    both(cast_registers, x, out, dtype=dtype, start=start, count=count)
    assert_same_bits(x[:, start : start + count].cpu().to(out.dtype), out)


@warpjit
def cast_window(Out, Rest, *, repeats, window):
    """A window of a fragment becomes halves: Out[row, column] = the number that names the element."""
    T.device_entry(launch=ONE_WARP)
    M, N = repeats
    d = T.cuda.fragments(T.ptx[K16], "D", M=M, N=N)
    for register, row, column in d.each():
        d.regs[register] = 64 * row + column
    (i, di), (j, dj) = window
    half = d[i : i + di, j : j + dj].cast("float16")
    d.fill(-1.0)
    for register, row, column in half.each():
        Out[row, column] = half.regs[register]
    words = half.view("uint32")
    for register, row, column in words.each():
        Rest[row, column] = words.regs[register]


@pytest.mark.parametrize("window", [((0, 2), (0, 4)), ((1, 1), (0, 4)), ((0, 2), (1, 2)), ((0, 2), (3, 1))])
def test_a_window_becomes_a_fragment_of_its_own(device, run, window):
    (i, di), (j, dj) = window
    out = torch.full((16 * di, 8 * dj), -7.0, dtype=torch.float16, device=device)
    words = torch.full((16 * di, 4 * dj), -7, dtype=torch.int32, device=device)
    run(cast_window, out, words, repeats=(2, 4), window=window)
    named = (64 * torch.arange(32)[:, None] + torch.arange(32)).half()
    expected = named[16 * i : 16 * (i + di), 8 * j : 8 * (j + dj)]
    assert_same_bits(expected, out)
    assert_same_bits(expected.contiguous().view(torch.int32), words)
    text = cast_window.source(out, words, repeats=(2, 4), window=window)
    assert text.count("cvt.rn.f16x2.f32") == 2 * di * dj
