"""Named barriers, fences, and arrivals at mbarriers that follow cp.async."""

from __future__ import annotations

import pytest
import torch

from warpjit import SimulationError, T, warpjit

COPY = T.ptx["cp.async.ca.shared.global"]
FULL, EMPTY = 1, 2


@warpjit
def handed_over(A: T.Tensor((6, 64), "float32"), Out: T.Tensor((6, 64), "float32"), *, fault=""):
    """Warp 0 writes tiles, which warps 1 and 2 read: who gives something arrives, who needs it waits."""
    T.device_entry(launch=T.cuda.LaunchConfig(grid=1, block=96))
    lane, warp = T.cuda.lane_id(), T.cuda.warp_id()
    box = T.alloc_shared((64,), "float32")
    for tile in range(6):
        if warp == 0:
            if fault != "early":
                T.cuda.named_barrier_sync(EMPTY, 96)
            box[lane] = A[tile, lane]
            box[32 + lane] = A[tile, 32 + lane]
            T.cuda.fence(sc=True)
            T.cuda.named_barrier_arrive(FULL, 64 if fault == "count" else 96)
        else:
            if fault != "early":
                T.cuda.named_barrier_arrive(EMPTY, 96)
            if fault != "late":
                T.cuda.named_barrier_sync(FULL, 96)
            Out[tile, 32 * (warp - 1) + lane] = 2.0 * box[32 * (warp - 1) + lane]


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_who_arrives_goes_on_and_who_waits_sees_it(seed):
    a, out = torch.randn(6, 64), torch.zeros(6, 64)
    handed_over.simulate(a, out, seed=seed)
    assert torch.equal(out, 2 * a)


def test_named_barriers_on_both(device, run):
    a = torch.randn(6, 64).to(device)
    out = torch.zeros_like(a)
    run(handed_over, a, out)
    assert torch.equal(out, 2 * a)


@pytest.mark.parametrize(
    ("fault", "sentence"),
    [
        ("late", "race"),
        ("early", "race"),
        ("count", "divergent barrier: it waits for 64 threads, other warps at the same barrier for 96"),
    ],
)
def test_what_the_simulator_finds(fault, sentence):
    with pytest.raises(SimulationError, match=sentence):
        handed_over(torch.randn(6, 64), torch.zeros(6, 64), fault=fault)


def test_warps_that_never_come_are_named():
    @warpjit
    def kernel():
        T.device_entry(launch=T.cuda.LaunchConfig(grid=1, block=96))
        if T.cuda.warp_id() == 0:
            T.cuda.named_barrier_sync(3, 96)
        elif T.cuda.warp_id() == 1:
            T.cuda.named_barrier_arrive(3, 96)

    with pytest.raises(SimulationError) as caught:
        kernel.simulate()
    assert "warp 0 waits at barrier 3 (bar.sync) for 96 threads; 2 warps have come" in str(caught.value)


# ---- cp.async and mbarriers --------------------------------------------------------------------------------


@warpjit
def announced(A: T.Tensor((4, 32), "int32"), Out: T.Tensor((4, 32), "int32"), *, noinc, fault=""):
    """Warp 0 copies rows, whose arrival an mbarrier tells warp 1."""
    T.device_entry(launch=T.cuda.LaunchConfig(grid=1, block=64))
    lane, warp = T.cuda.lane_id(), T.cuda.warp_id()
    box = T.alloc_shared((4, 32), "int32")
    full = T.alloc_shared((4,), "mbarrier")
    if warp == 0 and lane < 4:
        T.ptx["mbarrier.init.shared::cta.b64"](full.ptr(lane), 32)
    T.cuda.cta_sync()
    if warp == 0:
        for row in range(4):
            COPY(box.ptr(row, lane), A.ptr(row, lane), 4)
            T.ptx[f"cp.async.mbarrier.arrive{'.noinc' if noinc else ''}.shared::cta.b64"](full.ptr(row))
            if not noinc and fault != "count":
                T.ptx["mbarrier.arrive.shared::cta.b64"](full.ptr(row))
    else:
        for row in range(4):
            if fault != "wait":
                T.cuda.mbarrier_wait(full.ptr(row), 0)
            Out[row, lane] = box[row, 31 - lane]


@pytest.mark.parametrize("noinc", [True, False])
def test_an_mbarrier_tells_that_copies_are_done(device, run, noinc):
    a = torch.arange(128, dtype=torch.int32).reshape(4, 32).to(device)
    out = torch.zeros_like(a)
    run(announced, a, out, noinc=noinc)
    assert torch.equal(out, a.flip(1))


@pytest.mark.parametrize(
    ("fault", "noinc", "sentence"),
    [("wait", True, "use of a pending copy|race"), ("count", False, "deadlock: no warp can go on")],
)
def test_copies_that_nobody_waits_for(fault, noinc, sentence):
    a = torch.arange(128, dtype=torch.int32).reshape(4, 32)
    with pytest.raises(SimulationError, match=sentence):
        announced(a, torch.zeros_like(a), noinc=noinc, fault=fault)
