"""`T.popc`, `T.clz`, `T.brev`, `T.lop3`, `T.prmt` and funnel shifts in kernels, and the rows by their names."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from refusals import ONE_WARP, refused

from warpjit import T, compile, config, warpjit
from warpjit.cuda import disassemble
from warpjit.isa.table import lookup

COUNT, BLOCK = 1024, 128


def integers(name, seed):
    info = np.iinfo(name)
    values = np.random.default_rng(seed).integers(info.min, info.max, COUNT, dtype=name)
    values[:8] = [0, 1, info.max, info.min, 2, 3, 31, 32]
    return torch.from_numpy(values)


@warpjit
def counted(A, Counts, Reversed):
    T.device_entry(launch=T.cuda.LaunchConfig(grid=COUNT // BLOCK, block=BLOCK))
    i = T.cuda.block_idx() * BLOCK + T.cuda.thread_idx()
    Counts[0, i] = T.popc(A[i])
    Counts[1, i] = T.clz(A[i])
    Reversed[i] = T.brev(A[i])


@pytest.mark.parametrize("name", ["int32", "uint32", "int64", "uint64"])
def test_counts(device, both, name):
    a = integers(name, 1)
    counts = torch.zeros((2, COUNT), dtype=torch.int32, device=device)
    turned = torch.zeros_like(a).to(device)
    both(counted, a.to(device), counts, turned)
    bits = np.iinfo(name).bits
    words = [x % (1 << bits) for x in a.numpy().tolist()]
    assert counts[0].tolist() == [x.bit_count() for x in words]
    assert counts[1].tolist() == [bits - x.bit_length() for x in words]
    assert [x % (1 << bits) for x in turned.cpu().numpy().tolist()] == [int(f"{x:0{bits}b}"[::-1], 2) for x in words]


@warpjit
def mixed(A, B, C, Out):
    T.device_entry(launch=T.cuda.LaunchConfig(grid=COUNT // BLOCK, block=BLOCK))
    i = T.cuda.block_idx() * BLOCK + T.cuda.thread_idx()
    a, b, c = A[i], B[i], C[i]
    Out[0, i] = T.lop3(a, b, c, 0xF0 & 0xCC ^ 0xAA)
    Out[1, i] = T.lop3(a, 0xFFFF0000, c, 0xCA)
    Out[2, i] = T.prmt(a, b, 0x3715)
    Out[3, i] = T.prmt(a, b, c)
    Out[4, i] = T.funnel_shift_left(a, b, c)
    Out[5, i] = T.funnel_shift_left(a, b, c % 50, clamp=True)
    Out[6, i] = T.funnel_shift_right(a, b, c)
    Out[7, i] = T.funnel_shift_right(a, b, 40, clamp=True)


def computed(a, b, c):
    """The rows of `mixed` for unsigned Python integers."""
    wide, bound = b << 32 | a, min(c % 50, 32)
    octets = [wide >> 8 * i & 255 for i in range(8)]
    digits = [c >> 4 * i & 15 for i in range(4)]
    chosen = [octets[d & 7] if d < 8 else 255 * (octets[d & 7] >> 7) for d in digits]
    return [
        a & b ^ c,
        a & 0xFFFF0000 | ~a & c,
        sum(octets[d] << 8 * i for i, d in enumerate((5, 1, 7, 3))),
        sum(octet << 8 * i for i, octet in enumerate(chosen)),
        (wide << (c & 31)) >> 32 & 0xFFFFFFFF,
        (wide << bound) >> 32 & 0xFFFFFFFF,
        wide >> (c & 31) & 0xFFFFFFFF,
        b,
    ]


@pytest.mark.parametrize("name", ["int32", "uint32"])
def test_several_words(device, both, name):
    a, b, c = (integers(name, seed) for seed in (2, 3, 4))
    c = c.abs() if name == "int32" else c
    c[3] = 77
    out = torch.zeros((8, COUNT), dtype=a.dtype, device=device)
    both(mixed, a.to(device), b.to(device), c.to(device), out)
    words = [[x % (1 << 32) for x in each.numpy().tolist()] for each in (a, b, c)]
    got = [[x % (1 << 32) for x in row] for row in out.cpu().numpy().tolist()]
    assert got == [list(row) for row in zip(*map(computed, *words), strict=True)]


@warpjit
def named(A, B, Out, Wide):
    T.device_entry(launch=T.cuda.LaunchConfig(grid=COUNT // BLOCK, block=BLOCK))
    i = T.cuda.block_idx() * BLOCK + T.cuda.thread_idx()
    a, b = A[i], B[i]
    Out[0, i] = T.ptx["bfe.u32"](a, b, 7)
    Out[1, i] = T.ptx["bfi.b32"](a, b, 5, 11)
    for row, mode in enumerate(("f4e", "b4e", "rc8", "ecl", "ecr", "rc16")):
        Out[2 + row, i] = T.ptx[f"prmt.b32.{mode}"](a, b, i)
    Wide[0, i] = T.ptx["bfe.s64"](T.int64(a) << 20, 25, b & 63)
    Wide[1, i] = T.ptx["bfe.s32"](T.int32(a), b & 31, 9)


def test_the_instructions_by_their_names(device, both):
    a, b = integers("uint32", 5), integers("uint32", 6)
    out = torch.zeros((8, COUNT), dtype=torch.uint32, device=device)
    wide = torch.zeros((2, COUNT), dtype=torch.int64, device=device)
    both(named, a.to(device), b.to(device), out, wide)
    x, y = a.numpy(), b.numpy()
    index = np.arange(COUNT, dtype=np.uint32)
    got = out.cpu().numpy()
    assert (got[0] == lookup("bfe.u32").meaning(x, y, np.uint32(7))).all()
    assert (got[1] == (y & ~np.uint32(0x7FF << 5) | (x & np.uint32(0x7FF)) << np.uint32(5))).all()
    for row, mode in enumerate(("f4e", "b4e", "rc8", "ecl", "ecr", "rc16")):
        assert (got[2 + row] == lookup(f"prmt.b32.{mode}").meaning(x, y, index)).all()


# ---- refusals ------------------------------------------------------------------------------------------


def asked(expression):
    def body(Out):
        T.device_entry(launch=ONE_WARP)
        expression(T.cuda.lane_id())

    return body


WRONG = [
    (
        lambda lane: T.popc(T.int8(lane)),
        "T.popc: expected an integer of 32 or 64 bits but got a scalar of type int8",
    ),
    (lambda lane: T.clz(True), "T.clz: expected an integer of 32 or 64 bits but got bool True"),
    (
        lambda lane: T.lop3(lane, lane, T.int64(lane), 1),
        "T.lop3: expected c to be an integer of 32 bits but got a scalar of type int64",
    ),
    (lambda lane: T.lop3(lane, lane, 1 << 32, 1), "T.lop3: expected c to fit 32 bits but got 4294967296"),
    (lambda lane: T.lop3(lane, lane, lane, 256), "T.lop3: expected table to be 0 to 255 but got 256"),
    (
        lambda lane: T.prmt(lane * 0.5, lane, 0),
        "T.prmt: expected a to be an integer of 32 bits but got a scalar of type float32",
    ),
    (
        lambda lane: T.funnel_shift_left(lane, lane, lane, clamp=1),
        "T.funnel_shift_left: expected clamp to be True or False but got int 1",
    ),
]


@pytest.mark.parametrize(("expression", "sentence"), WRONG, ids=[sentence.split(":")[0] for _, sentence in WRONG])
def test_wrong_arguments(expression, sentence):
    assert [message for message, _ in refused(asked(expression))] == [sentence]


TABLES = (0x9F, 0x96, 0xE8, 0xCA, 0x17, 0x6F, 0x01, 0xFE)


@warpjit
def of_equal_words(A, C, Out):
    """Chains of functions of a word that stands there twice or thrice."""
    T.device_entry(launch=T.cuda.LaunchConfig(grid=COUNT // BLOCK, block=BLOCK))
    i = T.cuda.block_idx() * BLOCK + T.cuda.thread_idx()
    for row, table in enumerate(TABLES):
        a, c = A[i], C[i]
        for _ in range(2):
            a ^= T.lop3(a, a, c, table) ^ 32
            c ^= T.lop3(c, a, c, table)
            a ^= T.lop3(c, a, a, table) ^ T.lop3(a, a, a, table)
        Out[row, i] = a


def chained(a, c, table):
    for _ in range(2):
        a ^= lop3(a, a, c, table) ^ 32
        c ^= lop3(c, a, c, table)
        a ^= lop3(c, a, a, table) ^ lop3(a, a, a, table)
    return a


def lop3(a, b, c, table):
    return sum((table >> ((a >> i & 1) * 4 + (b >> i & 1) * 2 + (c >> i & 1)) & 1) << i for i in range(32))


def test_functions_of_equal_words(device, both):
    a, c = (integers("uint32", seed).to(device) for seed in (4, 5))
    out = torch.zeros((len(TABLES), COUNT), dtype=torch.uint32, device=device)
    both(of_equal_words, a, c, out)
    some = slice(0, 40)
    words = list(zip(a[some].cpu().numpy().tolist(), c[some].cpu().numpy().tolist(), strict=True))
    assert out[:, some].cpu().numpy().tolist() == [[chained(*each, table) for each in words] for table in TABLES]


@warpjit
def branching(A, C, Out):
    """Functions that decide a branch and nothing else, of words, of each other, and of constants; also of a loop."""
    T.device_entry(launch=T.cuda.LaunchConfig(grid=COUNT // BLOCK, block=BLOCK))
    i = T.cuda.block_idx() * BLOCK + T.cuda.thread_idx()
    for row, table in enumerate(TABLES):
        a, c = A[i] & 3, C[i] & 3
        Out[row, i] = 0
        if T.lop3(a, c, i & 1, table):
            Out[row, i] += 1
        if T.lop3(T.lop3(a, c, i & 1, table), c, 1, table) == 0:
            Out[row, i] += 2
        if T.lop3(a, 1, 2, table) == 0:
            Out[row, i] += 4
        while T.lop3(a, c, 0, table & 0xF0):
            Out[row, i] += 8
            a >>= 1


def branched(i, a, c, table):
    a, c = a & 3, c & 3
    found = bool(lop3(a, c, i & 1, table)) + 2 * (lop3(lop3(a, c, i & 1, table), c, 1, table) == 0)
    found += 4 * (lop3(a, 1, 2, table) == 0)
    while lop3(a, c, 0, table & 0xF0):
        found, a = found + 8, a >> 1
    return found


def test_functions_that_decide_branches(device, both):
    a, c = (integers("int32", seed).to(device) for seed in (6, 7))
    out = torch.zeros((len(TABLES), COUNT), dtype=torch.int32, device=device)
    both(branching, a, c, out)
    words = list(zip(range(200), a.tolist(), c.tolist(), strict=False))
    assert out[:, :200].tolist() == [[branched(*each, table) for each in words] for table in TABLES]


@warpjit
def decided(A, Out):
    T.device_entry(launch=T.cuda.LaunchConfig(grid=1, block=32))
    lane = T.cuda.lane_id()
    a, b, c = A[lane], A[lane + 32], A[lane + 64]
    for table in TABLES:
        if T.lop3(a, b, c, table):
            Out[lane] += table


@pytest.mark.nvcc
def test_functions_that_decide_branches_are_instructions() -> None:
    """ptxas loses none, and a function of three words is one instruction."""
    args = torch.zeros(96, dtype=torch.int32), torch.zeros(32, dtype=torch.int32)
    code = disassemble.instructions(disassemble.sass(compile(decided, *args, target="sm_90a").cubin, config.read()))
    assert disassemble.count(code, "LOP3") == len(TABLES)
