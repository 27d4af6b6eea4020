"""T.asm: operands of every type, windows of registers and of memory, scopes, escapes. Refusals: `tests/errors`."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from refusals import ONE_WARP

from warpjit import CompileError, SimulationError, T, warpjit

TYPES = {
    "uint8": "mov.b32 %0, %1;",
    "int8": "mov.b32 %0, %1;",
    "bool": "mov.b32 %0, %1;",
    "int16": "mov.b16 %0, %1;",
    "float16": "mov.b16 %0, %1;",
    "bfloat16": "mov.b16 %0, %1;",
    "int32": "mov.b32 %0, %1;",
    "float32": "mov.b32 %0, %1;",
    "int64": "mov.b64 %0, %1;",
    "float64": "mov.b64 %0, %1;",
}


def same(a):
    return a


@warpjit
def moved(A, Out, *, text):
    T.device_entry(launch=ONE_WARP)
    lane = T.cuda.lane_id()
    Out[lane] = T.asm(text, A.dtype, A[lane], meaning=same)


@pytest.mark.parametrize("dtype", TYPES)
def test_a_scalar_of_every_type_goes_in_and_out(device, run, dtype):
    raw = torch.randint(0, 2 if dtype == "bool" else 120, (32, getattr(torch, dtype).itemsize), dtype=torch.uint8)
    a = raw.view(getattr(torch, dtype)).reshape(32).to(device)
    out = torch.zeros_like(a)
    run(moved, a, out, text=TYPES[dtype])
    assert torch.equal(a.view(torch.uint8), out.view(torch.uint8))


def split(a, b):
    total = a.astype(np.uint64) + b
    return total.astype(np.uint32), (total >> 32).astype(np.uint32)


def dot(c, a, b):
    bytes_ = (np.ascontiguousarray(each)[..., None].view(np.int8).astype(np.int32) for each in (a, b))
    return c + np.multiply(*bytes_).sum(-1, dtype=np.int32)


def rotated(words):
    return np.roll(words, 1, axis=-1)


def squared(c):
    return c * c + c


@warpjit
def several(A, B, Out):
    T.device_entry(launch=ONE_WARP)
    lane = T.cuda.lane_id()
    a, b = A[lane], B[lane]
    low, carry = T.asm(
        "add.cc.u32 %0, %2, %3;\naddc.u32 %1, 0, 0;  // 100 %", ("uint32", "uint32"), (a, b), meaning=split
    )
    Out[0, lane], Out[1, lane] = low, carry
    total = T.asm("dp4a.s32.s32 %0, %2, %3, %1;", T.int32, (T.int32(5), a, b), meaning=dot)
    Out[2, lane] = T.reinterpret(total, "uint32")
    words = T.alloc_local((6,), "uint32")
    for i in T.unroll(6):
        words[i] = T.uint32(lane) * 10 + i
    T.asm("mov.b32 %0, %5; mov.b32 %1, %3; mov.b32 %2, %4;", words[0:3], words[3:6], meaning=rotated)
    for i in T.unroll(6):
        Out[3 + i, lane] = words[i]
    accumulators = T.alloc_local((2,), "float32")
    for i in T.unroll(2):
        accumulators[i] = T.float32(lane) + i
    T.asm("fma.rn.f32 %0, %0, %0, %0; fma.rn.f32 %1, %1, %1, %1;", updates=accumulators, meaning=squared)
    Out[9, lane], Out[10, lane] = T.reinterpret(accumulators[0], "uint32"), T.reinterpret(accumulators[1], "uint32")
    halves = T.alloc_local((4,), "float16")
    for i in T.unroll(4):
        halves[i] = T.float16(i) + 1
    T.asm("mov.b32 %0, %2; mov.b32 %1, %2;", halves, halves[0:2], meaning=lane_pairs)
    Out[11, lane] = T.uint32(halves[2] * 10 + halves[3])


def lane_pairs(words):
    return np.repeat(words, 2, axis=-1)


def test_results_updates_and_registers_are_numbered_in_order(device, run):
    torch.manual_seed(1)
    a, b = (torch.randint(0, 2**32, (32,), dtype=torch.int64).to(torch.uint32).to(device) for _ in range(2))
    out = torch.zeros(12, 32, dtype=torch.uint32, device=device)
    run(several, a, b, out)
    out = out.cpu().numpy()
    x, y = a.cpu().numpy(), b.cpu().numpy()
    lane = np.arange(32)
    assert (out[:2] == split(x, y)).all()
    assert (out[2].view(np.int32) == dot(np.int32(5), x, y)).all()
    assert (out[3:9] == np.array([10 * lane + i for i in (5, 3, 4, 3, 4, 5)])).all()
    for i in range(2):
        assert (out[9 + i].view(np.float32) == (lane + i) * (lane + i) + lane + i).all()
    assert (out[11] == 12).all()


# ---- memory ----------------------------------------------------------------------------------------------


def four(a):
    return tuple(a[..., i] for i in range(4))


@warpjit
def streamed(A, Out):
    T.device_entry(launch=ONE_WARP)
    lane = T.cuda.lane_id()
    box = T.alloc_shared((32, 4), "float32")
    quad = T.asm("ld.global.cs.v4.f32 {%0, %1, %2, %3}, [%4];", ("float32",) * 4, A[lane, 0:4], meaning=four)
    T.asm("st.shared.v4.f32 [%0], {%1, %2, %3, %4};", box[lane, 0:4], quad, meaning=gathered)
    T.cuda.warp_sync()
    for i in T.unroll(4):
        T.asm("st.global.cs.f32 [%0], %1;", Out.sub[lane, i], box[31 - lane, i], meaning=one)


def gathered(*parts):
    return np.stack(parts, axis=-1)


def one(value):
    return value[..., None]


def test_windows_of_memory_are_addresses_of_known_length(device, run):
    a = torch.randn(32, 4).to(device)
    out = torch.zeros_like(a)
    run(streamed, a, out)
    assert torch.equal(out, a.flip(0))


def test_the_simulator_checks_what_a_text_reads():
    a, out = torch.zeros(31, 4), torch.zeros(31, 4)
    with pytest.raises(SimulationError, match=r"out of bounds: A\[0\] is bytes 496 to 511, outside of the tensor"):
        streamed(a, out)


# ---- control ---------------------------------------------------------------------------------------------


def reversed_lanes(a):
    return a[..., ::-1]


def doubled_while_small(a):
    value = a.copy()
    while (value < 100).any():
        value = np.where(value < 100, value * 2, value)
    return value


@warpjit
def collective(Out):
    T.device_entry(launch=ONE_WARP)
    lane = T.cuda.lane_id()
    text = "shfl.sync.bfly.b32 %0, %1, 31, 31, 0xffffffff;"
    Out[0, lane] = T.asm(text, "int32", lane, scope="warp", meaning=reversed_lanes)
    loop = """
        .reg .pred p;
        mov.b32 %0, %1;
      AGAIN:
        setp.lt.s32 p, %0, 100;   // labels of copies do not meet
        @p add.s32 %0, %0, %0;
        @p bra AGAIN;
    """
    for i in T.unroll(2):
        Out[1 + i, lane] = T.asm(loop, "int32", lane + 1 + i, meaning=doubled_while_small)
    Out[3, lane] = T.asm("mov.u32 %0, %%laneid;", "int32", volatile=True, meaning=lanes)
    T.asm("", memory=True, meaning=nothing)


def lanes():
    return np.arange(32)


def nothing():
    return None


def test_scopes_labels_and_percent_signs(device, run):
    out = torch.zeros(4, 32, dtype=torch.int32, device=device)
    run(collective, out)
    lane = np.arange(32)
    want = [lane[::-1], doubled_while_small(lane + 1), doubled_while_small(lane + 2), lane]
    assert (out.cpu().numpy() == np.array(want)).all()


def seven_above_five(a):
    return np.where(a > 5, 7, a).astype(np.int32)


@warpjit
def skipping(Out):
    T.device_entry(launch=T.cuda.LaunchConfig(grid=1, block=32))
    lane = T.cuda.lane_id()
    text = """
        .reg .pred p;
        setp.gt.s32 p, %1, 5;
        mov.u32 %0, %1;
        @!p bra DONE;
        mov.u32 %0, 7;
        DONE:
    """
    for i in range(2):
        Out[lane, i] = T.asm(text, "int32", lane, meaning=seven_above_five)


def test_a_label_at_the_end(device, run):
    out = torch.zeros(32, 2, dtype=torch.int32, device=device)
    run(skipping, out)
    expected = torch.arange(32).where(torch.arange(32) <= 5, torch.tensor(7)).int()
    assert torch.equal(out.cpu(), torch.stack((expected, expected), dim=1))


@pytest.mark.nvcc
def test_a_label_at_the_end_is_assembled():
    assert skipping.cubin(torch.zeros(32, 2, dtype=torch.int32), target="sm_90a").startswith(b"\x7fELF")


def test_what_the_compiler_may_do_with_a_text():
    def asm_lines(body):
        text = warpjit(body).source(T.Tensor((32,), "int32"))
        return [line.strip() for line in text.splitlines() if "asm" in line]

    def unused(Out):
        T.device_entry(launch=ONE_WARP)
        T.asm("mov.b32 %0, 7;", "int32")
        T.asm("mov.b32 %0, 8;", "int32", volatile=True)
        T.asm("prefetch.global.L2 [%0];", (), Out.ptr(0))
        T.asm("ld.global.nc.b32 %0, [%1];", "int32", Out.ptr(0), memory=False, volatile=True)

    lines = asm_lines(unused)
    assert [("volatile" in line, '"memory"' in line) for line in lines] == [(True, False), (True, True), (True, False)]
    assert "mov.b32 %0, 8;" in lines[0]


@pytest.mark.nvcc
def test_what_ptxas_refuses_is_shown_at_the_line():
    @warpjit
    def kernel(Out):
        T.device_entry(launch=ONE_WARP)
        Out[0] = T.asm("bad.instruction %0;", "int32")

    with pytest.raises(CompileError) as caught:
        kernel.cubin(T.Tensor((32,), "int32"), target="sm_90a")
    assert 'T.asm("bad.instruction %0;", "int32")' in str(caught.value)
