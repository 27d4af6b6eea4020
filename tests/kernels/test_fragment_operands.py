"""Registers that serve as another operand, numerically and by proof; what fragments refuse; `T.cuda.has`.

Which element a register holds is tested in `test_fragments`.
"""

# Names in kernels that are refused are never used.
# ruff: noqa: F841

from __future__ import annotations

import pytest
import torch
from both import assert_same_bits
from refusals import MMA, ONE_WARP, refused

from warpjit import T, warpjit
from warpjit.layout import R, S, TileLayout, laneid, warpid

MMA8 = "mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32"
STORE4 = "stmatrix.sync.aligned.m8n8.x4.shared.b16"


# ---- as another operand -------------------------------------------------------------------------------------------


def loaded(fragment, source, dtype):
    """A fragment of words, its elements read from a matrix."""
    halves = fragment.view(dtype)
    for register, row, column in halves.each():
        halves.regs[register] = source[row, column]
    return fragment


@warpjit
def chained(Q, K, V, Out, *, kind, depth, words):
    """Out = (Q @ K.T, rounded to 16 bits) @ V.T: the sums of the first product are operand A of the second."""
    T.device_entry(launch=ONE_WARP)
    mma = T.ptx[f"mma.sync.aligned.m16n8k16.row.col.f32.{kind}.{kind}.f32"]
    second = T.ptx[f"mma.sync.aligned.m16n8k{depth}.row.col.f32.{kind}.{kind}.f32"]
    rows, keys, columns = Q.shape[0], K.shape[0], V.shape[0]
    q = loaded(T.cuda.fragments(mma, "A", M=rows // 16, K=Q.shape[1] // 16), Q, Q.dtype)
    k = loaded(T.cuda.fragments(mma, "B", N=keys // 8, K=Q.shape[1] // 16), K, Q.dtype)
    v = loaded(T.cuda.fragments(second, "B", N=columns // 8, K=keys // depth), V, Q.dtype)
    scores = T.cuda.fragments(mma, "D", M=rows // 16, N=keys // 8)
    T.cuda.tile.apply(mma, scores, q, k, 0.0)
    rounded = scores.cast(Q.dtype)
    if words:
        rounded = rounded.view("uint32")
    out = T.cuda.fragments(second, "D", M=rows // 16, N=columns // 8)
    T.cuda.tile.apply(second, out, rounded.as_operand(second, "A"), v, 0.0)
    for register, row, column in out.each():
        Out[row, column] = out.regs[register]


@pytest.mark.parametrize(("rows", "keys", "columns", "inner"), [(16, 16, 8, 16), (32, 48, 24, 32)])
@pytest.mark.parametrize("words", [False, True])
@pytest.mark.parametrize("depth", [8, 16])
@pytest.mark.parametrize("kind", ["f16", "bf16"])
def test_sums_are_the_next_products_operand(device, run, kind, depth, words, rows, keys, columns, inner):
    dtype = {"f16": torch.float16, "bf16": torch.bfloat16}[kind]
    q, k, v = (torch.randint(-2, 3, shape).to(dtype) for shape in ((rows, inner), (keys, inner), (columns, keys)))
    scores = q.double() @ k.double().T
    assert torch.equal(scores.to(dtype).double(), scores)
    out = torch.full((rows, columns), float("nan"), device=device)
    run(chained, *(each.to(device) for each in (q, k, v)), out, kind=kind, depth=depth, words=words)
    assert_same_bits((scores @ v.double().T + 0.0).float(), out)


@warpjit
def squared(A, Out):
    """Out = A @ A.T: the registers of an A are those of a B of twice as many repeats."""
    T.device_entry(launch=ONE_WARP)
    mma = T.ptx[MMA]
    a = loaded(T.cuda.fragments(mma, "A", M=A.shape[0] // 16, K=A.shape[1] // 16), A, A.dtype)
    d = T.cuda.fragments(mma, "D", M=A.shape[0] // 16, N=A.shape[0] // 8)
    T.cuda.tile.apply(mma, d, a, a.as_operand(MMA, "B"), 0.0)
    for register, row, column in d.as_operand(mma, "C").each():
        Out[row, column] = d.regs[register]


@pytest.mark.parametrize("shape", [(16, 16), (32, 48)])
def test_an_a_is_a_b(device, run, shape):
    a = torch.randint(-3, 4, shape).half().to(device)
    out = torch.full((shape[0], shape[0]), float("nan"), device=device)
    run(squared, a, out)
    assert_same_bits((a.double() @ a.double().T + 0.0).float(), out)


@warpjit
def columns_of_sums(Q, K, V, Out, *, first):
    """As `chained`, of a window of the sums' columns."""
    T.device_entry(launch=ONE_WARP)
    mma = T.ptx[MMA]
    q = loaded(T.cuda.fragments(mma, "A", M=2), Q, Q.dtype)
    k = loaded(T.cuda.fragments(mma, "B", N=6), K, Q.dtype)
    v = loaded(T.cuda.fragments(mma, "B"), V, Q.dtype)
    scores = T.cuda.fragments(mma, "D", M=2, N=6)
    T.cuda.tile.apply(mma, scores, q, k, 0.0)
    out = T.cuda.fragments(mma, "D", M=2)
    whole = scores.cast("float16")
    T.cuda.tile.apply(mma, out, whole[:, first : first + 2].as_operand(mma, "A"), v, 0.0)
    part = scores[:, first : first + 2].cast("float16")
    T.cuda.tile.apply(mma, out, part.as_operand(mma, "A"), v, out)
    for register, row, column in out.each():
        Out[row, column] = out.regs[register]


@pytest.mark.parametrize("first", [0, 1, 3, 4])
def test_a_window_of_the_sums_as_operand(device, run, first):
    q, k, v = (torch.randint(-2, 3, shape).half().to(device) for shape in ((32, 16), (48, 16), (8, 16)))
    out = torch.full((32, 8), float("nan"), device=device)
    run(columns_of_sums, q, k, v, out, first=first)
    scores = (q.double() @ k.double().T)[:, 8 * first : 8 * first + 16]
    assert_same_bits((2 * scores @ v.double().T + 0.0).float(), out)


# ---- refusals -----------------------------------------------------------------------------------------------------

SUMS = TileLayout(S[(2, 8, 4, 2) : (2, 4 @ laneid, 1 @ laneid, 1)])
HALVES = TileLayout(S[(2, 8, 2, 4, 2) : (2, 4 @ laneid, 4, 1 @ laneid, 1)])
OWN_A = "TileLayout(S[(1, 1, 2, 8, 2, 4) : (4, 4, 1, 4 @ laneid, 2, 1 @ laneid)])"
OWN_HALVES = "TileLayout(S[(1, 1, 2, 8, 2, 4, 2) : (8, 8, 2, 4 @ laneid, 4, 1 @ laneid, 1)])"


def test_operands_that_are_not_in_place():
    def kernel(Out):
        T.device_entry(launch=ONE_WARP)
        T.cuda.fragments(T.ptx[MMA], "D", fill=0.0).as_operand(T.ptx[MMA], "A")
        late = T.alloc_local((9,), "float16")[1:9].view(16, 16, layout=HALVES)
        late.as_operand(T.ptx[MMA], "A")
        wide = T.alloc_local((2,), "float64").view("float32").view(16, 8, layout=SUMS)
        wide.as_operand(T.ptx[MMA], "D")

    assert [message for message, _ in refused(kernel)] == [
        f"{MMA}: operand A: element (0, 0, 0, 1) is in lane 0, register 1 of the view, but the instruction reads it in "
        "lane 1, register 0. With k permuted it fits: let k = 0, 1, 2, … of the instruction be k = 0, 1, 4, 5, 8, 9, "
        "12, 13, 2, 3, 6, 7, 10, 11, 14, 15 of A and of B alike; its layout is then TileLayout(S[(2, 8, 2, 4) : (2, 4 "
        f"@ laneid, 1, 1 @ laneid)]). The instruction's own layout for shape (1, 1, 16, 8) is {OWN_A}",
        f"{MMA}: operand A: element (0, 0, 0, 0) is element 1 of its lane's registers, so number 1 within its "
        "register, but the instruction wants it as number 0. Every element is in its lane, so that its registers can "
        "be put together (t.convert): register 0 is part 1 of 0, part 0 of 1; register 1 is part 1 of 1, part 0 of 2; "
        f"and 2 more. The instruction's own layout for shape (1, 1, 16, 16) is {OWN_HALVES}",
        f"as_operand: operand D of {MMA}: expected 32-bit registers, but wide has 64-bit ones",
    ]


def test_operands_of_another_type_or_shape():
    def kernel(Out):
        T.device_entry(launch=ONE_WARP)
        d = T.cuda.fragments(T.ptx[MMA], "D", M=2, N=2, fill=0.0)
        d[:, 0:1].cast("float16").as_operand(T.ptx[MMA], "A")
        d.cast("bfloat16").as_operand(T.ptx[MMA], "A")
        d.cast("float64").as_operand(T.ptx[MMA], "C")
        d.rearrange("i j row column -> (i row) j column").as_operand(T.ptx[MMA], "C")
        d.as_operand(T.ptx[MMA], "E")
        d.as_operand(3, "A")
        T.alloc_shared((16, 16), "float16").as_operand(T.ptx[MMA], "A")

    assert [message for message, _ in refused(kernel)] == [
        f"as_operand: operand A of {MMA}: expected a multiple of 16 columns, but d_1 has 8",
        f"as_operand: operand A of {MMA}: expected float16, but d_2 holds bfloat16",
        f"as_operand: operand C of {MMA}: expected float32, but d_3 holds float64",
        "as_operand: expected a fragment of 4 axes (row repeats, column repeats, rows, columns) or a matrix of 2, but "
        "d has shape (32, 2, 8): rearrange it",
        f"{MMA} has no operand 'E'; its operands are D, A, B, C",
        'as_operand: expected an instruction, T.ptx["..."], but got int 3',
        "as_operand: expected a tensor in registers, but shared is in shared memory",
    ]


def test_registers_that_are_no_lanes_own():
    def kernel(Out):
        T.device_entry(launch=ONE_WARP)
        shared = T.alloc_shared((4,), "float32")
        a = T.alloc_local((4,), "float32").view(1, 4, 32, layout=OF_WARPS)
        b = T.alloc_local((4,), "float32").view(4, 16, layout=TWICE)
        c = T.alloc_local((4,), "float32").view(2, 2, layout=TileLayout(S[(2, 2) : (0, 3)]))
        d = T.alloc_local((8,), "float32").view(3, 2, layout=TileLayout(S[(3, 2) : (2, 3)]))
        x = Out.regs
        shared.fill(0.0)
        a.cast("float16")
        b.each()
        c.fill(0.0)
        d.cast("float16")

    assert [message for message, _ in refused(kernel)] == [
        "regs: expected a tensor in registers, but Out is in global memory",
        "regs: expected a tensor in registers, but shared is in shared memory",
        "cast: expected registers placed by lanes alone (laneid), once each, but the layout of a is "
        "TileLayout(S[(1, 4, 32) : (1 @ warpid, 1, 1 @ laneid)])",
        "each: expected registers placed by lanes alone (laneid), once each, but the layout of b is "
        "TileLayout(S[(4, 16) : (1, 1 @ laneid)] + R[2 : 16 @ laneid])",
        "regs: expected each register of c to hold one element, and its strides to nest, but its layout is "
        "TileLayout(S[(2, 2) : (0, 3)])",
        "regs: expected each register of d to hold one element, and its strides to nest, but its layout is "
        "TileLayout(S[(3, 2) : (2, 3)])",
    ]


OF_WARPS = TileLayout(S[(1, 4, 32) : (1 @ warpid, 1, 1 @ laneid)])
TWICE = TileLayout(S[(4, 16) : (1, 1 @ laneid)] + R[2 : 16 @ laneid])


def test_layouts_that_each_cannot_invert():
    def kernel(Out):
        T.device_entry(launch=ONE_WARP)
        a = T.alloc_local((2,), "float32").view(8, 2, layout=EIGHT)
        b = T.alloc_local((4,), "float32").view(32, 4, layout=SHARED)
        c = T.alloc_local((2,), "float32").view(16, 2, layout=MOVED)
        d = T.alloc_local((3,), "float32").view(6, 16, layout=TileLayout(S[(32, 3) : (1 @ laneid, 1)]))
        for view in (a, b, c, d):
            each_of(view)

    def each_of(view):
        view.each()

    text = "each: expected every lane and register to hold one element, but the layout of"
    assert [message for message, _ in refused(kernel)] == [
        f"{text} a is {EIGHT!r}",
        f"{text} b is {SHARED!r}",
        f"{text} c is {MOVED!r}",
        "TileLayout(S[(32, 3) : (1 @ laneid, 1)]): group: dim 0 (6) of shape (6, 16) ends inside an iter",
    ]


EIGHT = TileLayout(S[(8, 2) : (1 @ laneid, 1)])  # lanes 8 to 31 hold nothing
SHARED = TileLayout(S[(16, 2, 4) : (1 @ laneid, 8 @ laneid, 1)])  # two elements in one register
MOVED = TileLayout(S[(16, 2) : (1 @ laneid, 1)] + 16 @ laneid)


def test_values_that_do_not_fit():
    def kernel(Out):
        T.device_entry(launch=ONE_WARP)
        small = T.alloc_local((4,), "int8")
        small.fill(300)
        small.fill(1.5)
        small.fill(small)
        small.cast("float19")

    messages = [message for message, _ in refused(kernel)]
    assert messages[:3] == [
        "the literal 300 does not fit int8 (-128 to 127)",
        "the literal 1.5 is not an integer: it cannot become int8",
        "expected a number to store in small but got the tensor small",
    ]
    assert messages[3].startswith("expected the name of a data type but got 'float19'; the names are float16, ")


# ---- what a target has --------------------------------------------------------------------------------------------


@warpjit
def stored(Out, *, by_name):
    """A fragment in memory, by stmatrix where there is one; the other way is not traced."""
    T.device_entry(launch=ONE_WARP)
    words = T.cuda.fragments(T.ptx[MMA], "A")
    halves = words.view("float16")
    for register, row, column in halves.each():
        halves.regs[register] = 16 * row + column
    tile = T.alloc_shared((16, 16), "float16")
    if T.cuda.has(STORE4 if by_name else T.ptx[STORE4]):
        T.cuda.tile.apply(T.ptx[STORE4], tile, words)
    else:
        for register, row, column in halves.each():
            tile[row, column] = halves.regs[register]
    T.cuda.warp_sync()
    for i in range(8):
        Out[2 * i + T.cuda.lane_id() // 16, T.cuda.lane_id() % 16] = tile[
            2 * i + T.cuda.lane_id() // 16, T.cuda.lane_id() % 16
        ]


@pytest.mark.parametrize("by_name", [False, True])
def test_has_chooses_while_tracing(device, run, by_name):
    out = torch.full((16, 16), -1.0, dtype=torch.float16, device=device)
    run(stored, out, by_name=by_name)
    assert_same_bits(torch.arange(256).view(16, 16).half(), out)
    counts = {arch: stored.source(out, by_name=by_name, target=arch).count("stmatrix") for arch in ("sm_80", "sm_90a")}
    assert counts == {"sm_80": 0, "sm_90a": 1}


def test_has_of_what_is_no_instruction():
    def kernel(Out):
        T.device_entry(launch=ONE_WARP)
        a = T.cuda.has("lmatrix.sync")
        b = T.cuda.has(3)

    assert [message for message, _ in refused(kernel)] == [
        "there is no instruction 'lmatrix'; did you mean ldmatrix or stmatrix or movmatrix?",
        'T.cuda.has: expected an instruction, T.ptx["..."], but got int 3',
    ]
