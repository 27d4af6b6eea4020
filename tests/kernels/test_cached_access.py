"""cache= of T.load, T.store and T.copy, T.prefetch, and pointers that move by bytes. Refusals: `tests/errors`."""

from __future__ import annotations

import re

import pytest
import torch

from warpjit import SimulationError, T, warpjit
from warpjit.isa.cached_memory import LOADS, STORES
from warpjit.isa.table import lookup
from warpjit.isa.target import Target

ONE_WARP = T.cuda.LaunchConfig(grid=1, block=32)


@warpjit
def through(A: T.Tensor((64, "C"), "uint8", noalias=True), Out: T.Tensor((64, "C"), "uint8"), *, loads, stores, width):
    """Row i by the i-th way of loading, some more rows by each way of storing."""
    T.device_entry(launch=ONE_WARP)
    lane = T.cuda.lane_id()
    for i in T.unroll(len(loads)):
        mine = T.load(A.sub[i], width=width, cache=loads[i], where=lane == i % 32)
        T.store(Out.sub[i], mine, width=width, where=lane == i % 32)
    for i in T.unroll(len(stores)):
        mine = T.load(A.sub[len(loads) + i], width=width)
        T.store(Out.sub[len(loads) + i], mine, width=width, cache=stores[i], where=lane == i)


@pytest.mark.parametrize("width", [1, 2, 4, 8, 16])
def test_every_way_of_caching_moves_the_same_bytes(device, run, width):
    a = torch.randint(0, 256, (64, width), dtype=torch.uint8).to(device)
    out = torch.zeros_like(a)
    run(through, a, out, loads=LOADS, stores=STORES, width=width)
    rows = len(LOADS) + len(STORES)
    assert torch.equal(a[:rows], out[:rows])


def test_the_instruction_is_the_one_that_was_asked_for():
    text = through.source(
        *[T.Tensor((64, 16), "uint8")] * 2,
        loads=("nc.L1::no_allocate.L2::128B", "L2::64B.nc", "cs"),
        stores=("cs", "wt"),
        width=16,
    )
    assert re.findall(r"(?:ld|st)\.global\.[\w.:]*", text) == [
        "ld.global.nc.L1::no_allocate.L2::128B.v4.b32",
        "st.global.v4.b32",
        "ld.global.nc.L2::64B.v4.b32",
        "st.global.v4.b32",
        "ld.global.cs.v4.b32",
        "st.global.v4.b32",
        "ld.global.v4.b32",
        "st.global.cs.v4.b32",
        "ld.global.v4.b32",
        "st.global.wt.v4.b32",
    ]
    lines = [line for line in text.splitlines() if "ld.global.nc" in line]
    assert ['"memory"' in line for line in lines] == [False, False]


@warpjit
def copied(A: T.Tensor((8, 64), "float32"), Out: T.Tensor((8, 64), "float32", noalias=True)):
    T.device_entry(launch=ONE_WARP)
    lane = T.cuda.lane_id()
    box = T.alloc_shared((8, 64), "float32")
    T.prefetch(A.sub[0:4], level="L2::evict_last", where=lane == 0)
    T.prefetch(A.sub[lane, 0:64], level="L1")
    T.copy(box, A, cache="nc.L1::evict_first")
    T.cuda.cta_sync()
    T.copy(Out.sub[0:4], box.sub[0:4], cache="cs")
    T.copy(Out.sub[4:8], A.sub[4:8], cache=("nc", "L1::no_allocate"))


def test_copies_and_prefetches(device, run):
    a = torch.randn(8, 64).to(device)
    out = torch.zeros_like(a)
    run(copied, a, out)
    assert torch.equal(a, out)
    text = copied.source()
    assert len(re.findall(r"prefetch\.global\.L2::evict_last", text)) == 8
    assert len(re.findall(r"prefetch\.global\.L1", text)) == 2
    assert len(re.findall(r"ld\.global\.nc\.L1::evict_first\.v4", text)) == 4
    assert (
        len(re.findall(r"st\.global\.cs\.v4", text)) == 2 == len(re.findall(r"st\.global\.L1::no_allocate\.v4", text))
    )


def test_the_largest_prefetch_is_not_on_sm_75():
    sm_75 = Target.parse("sm_75")
    assert not lookup("ld.global.nc.L2::256B.v4.b32").needs.holds(sm_75)
    assert lookup("ld.global.L2::128B.nc.v4.b32").needs.holds(sm_75)


# ---- pointers ----------------------------------------------------------------------------------------------


@warpjit
def moved(A: T.Tensor((128,), "int32"), Out: T.Tensor((6, 32), "uint32"), n: T.int32, far: T.int64):
    T.device_entry(launch=ONE_WARP)
    T.assume(n % 8 == 0)
    T.assume(far % 4 == 0)
    lane = T.cuda.lane_id()
    box = T.alloc_shared((128,), "int32")
    T.copy(box, A)
    T.cuda.cta_sync()
    p, q = A.ptr(lane), 8 + box.ptr(2 * lane) + 8
    for i, place in enumerate((p + 128, p + far - 4, lane * 4 + A.ptr(1))):
        Out[i, lane] = T.ptx["ld.global.cs.b32"](place)
    for i, place in enumerate((q - 8, q - n, q + (lane * 8 - 8))):
        Out[3 + i, lane] = T.ptx["ld.shared.v2.b32"](place)[0]


def test_pointers_move_by_bytes(device, run):
    a = torch.arange(128, dtype=torch.int32, device=device)
    out = torch.zeros(6, 32, dtype=torch.uint32, device=device)
    run(moved, a, out, 16, 12)
    lane = torch.arange(32)
    wanted = [lane + 32, lane + 2, lane + 1, 2 * lane + 2, 2 * lane, 4 * lane + 2]
    assert out.cpu().tolist() == torch.stack(wanted).tolist()


def test_the_simulator_checks_where_a_moved_pointer_points():
    a, out = torch.zeros(128, dtype=torch.int32), torch.zeros(6, 32, dtype=torch.uint32)
    message = "out of bounds: byte 512 of A is bytes 512 to 515, outside of the tensor"
    with pytest.raises(SimulationError, match=message):
        moved(a, out, 16, 516)
