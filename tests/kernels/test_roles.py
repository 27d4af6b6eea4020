"""Warps with roles: a producer that fills a ring by bulk copies, and consumers, joined by mbarriers only."""

from __future__ import annotations

import pytest
import torch
from both import assert_same_bits

from warpjit import SimulationError, T, warpjit

BULK = "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes"
STAGES = 3


@warpjit
def ring(A, Out, *, fault="", tiled=False):
    """Out[tile] = 2 · A[tile] + tile: warp 0 copies tiles of 512 bytes, warps 1 and 2 each compute half of a tile."""
    T.device_entry(launch=T.cuda.LaunchConfig(grid=A.shape[0], block=96))
    tiles = A.shape[1]
    lane, warp, cta = T.cuda.lane_id(), T.cuda.warp_id(), T.cuda.block_idx()
    buffer = T.alloc_shared((STAGES, 128), "float32", align=128)
    full = T.alloc_shared((STAGES,), "mbarrier")
    empty = T.alloc_shared((STAGES,), "mbarrier")
    if warp == 0:
        if lane == 0:
            for stage in range(STAGES):
                T.ptx["mbarrier.init.shared::cta.b64"](full.ptr(stage), 2 if fault == "count" else 1)
                if fault != "init":
                    T.ptx["mbarrier.init.shared::cta.b64"](empty.ptr(stage), 2)
            T.ptx["fence.mbarrier_init.release.cluster"]()
    T.cuda.cta_sync()
    if warp == 0:
        if lane == 0:
            for tile in range(tiles):
                stage = tile % STAGES
                T.cuda.mbarrier_wait(empty.ptr(stage), (tile // STAGES + 1) % 2)
                expected = 1024 if fault == "bytes" else 512
                T.ptx["mbarrier.arrive.expect_tx.shared::cta.b64"](full.ptr(stage), expected)
                if tiled:
                    T.cuda.tile.apply(T.ptx[BULK], buffer.sub[stage], A.sub[cta, tile], mbar=full.ptr(stage))
                else:
                    T.ptx[BULK](buffer.ptr(stage, 0), A.ptr(cta, tile, 0), 512, full.ptr(stage))
    else:
        for tile in range(tiles):
            stage = tile % STAGES
            T.cuda.mbarrier_wait(full.ptr(stage), (tile // STAGES + (1 if fault == "parity" else 0)) % 2)
            for i in range(2):
                at = 64 * (warp - 1) + 32 * i + lane
                Out[cta, tile, at] = 2.0 * buffer[stage, at] + T.float32(tile)
            T.cuda.warp_sync()
            if fault != "release":
                if lane == 0:
                    T.ptx["mbarrier.arrive.shared::cta.b64"](empty.ptr(stage))


def check(a: torch.Tensor, out: torch.Tensor) -> None:
    index = torch.arange(a.shape[1], device=a.device, dtype=torch.float32)
    assert_same_bits(2.0 * a + index[None, :, None], out)


@pytest.mark.parametrize("tiled", [False, True])
def test_the_ring_is_right(device, run, tiled):
    a = torch.randint(-64, 64, (3, 10, 128)).float().to(device)
    out = torch.full_like(a, float("nan"))
    run(ring, a, out, tiled=tiled)
    check(a, out)


@pytest.mark.parametrize("seed", range(1, 6))
def test_the_ring_is_right_in_any_order_of_warps(seed):
    a = torch.randint(-64, 64, (2, 8, 128)).float()
    out = torch.full_like(a, float("nan"))
    ring.simulate(a, out, seed=seed)
    check(a, out)


STUCK = {"release": ("empty", "in lane 0"), "bytes": ("full", "in lanes 0-31"), "count": ("full", "in lanes 0-31")}


@pytest.mark.parametrize("seed", [0, 1])
@pytest.mark.parametrize("fault", STUCK)
def test_a_barrier_that_never_completes_is_a_deadlock(fault, seed):
    a = torch.ones(1, 8, 128)
    out = torch.zeros_like(a)
    with pytest.raises(SimulationError) as caught:
        ring.simulate(a, out, fault=fault, seed=seed)
    finding = caught.value.findings[0]
    assert finding.message == "deadlock: no warp can go on in CTA (0, 0, 0)"
    barrier, lanes = STUCK[fault]
    waiting = [note for note in finding.notes if f"T.cuda.mbarrier_wait({barrier}.ptr" in note.loc.frames[-1].text]
    warps = [0] if barrier == "empty" else [1, 2]
    assert [note.message for note in waiting] == [
        f"warp {warp} waits at mbarrier_wait {lanes}, whose condition never becomes true" for warp in warps
    ]
    assert not out.any()


def test_a_wait_for_the_wrong_phase_reads_too_early():
    a = torch.ones(1, 8, 128)
    with pytest.raises(SimulationError) as caught:
        ring(a, torch.zeros_like(a), fault="parity")
    finding = caught.value.findings[0]
    assert finding.message == (
        "use of a pending copy: buffer[0, 0] is read before the copy has completed a phase of its mbarrier and this "
        "warp has waited for it; CTA (0, 0, 0), warp 1, lane 0 (and 63 more threads)"
    )
    assert finding.loc.frames[-1].text.strip().startswith("Out[cta, tile, at] = 2.0 * buffer[stage, at]")


def test_a_barrier_that_nobody_initialised():
    a = torch.ones(1, 8, 128)
    with pytest.raises(SimulationError) as caught:
        ring(a, torch.zeros_like(a), fault="init")
    finding = caught.value.findings[0]
    assert finding.message == (
        "mbarrier misuse: empty[0] is used before mbarrier.init (or after mbarrier.inval); CTA (0, 0, 0), warp 0, "
        "lane 0"
    )
    assert finding.loc.frames[-1].text.strip().startswith("T.cuda.mbarrier_wait(empty.ptr(stage)")


@warpjit
def elected(Out):
    """One lane of each warp writes; the others do not."""
    T.device_entry(launch=T.cuda.LaunchConfig(grid=1, block=64))
    warp = T.cuda.warp_id()
    if T.cuda.elect_sync():
        Out[warp] = warp + 1


def test_elect_sync_chooses_one_lane(device, run):
    out = torch.zeros(2, dtype=torch.int32, device=device)
    run(elected, out)
    assert out.cpu().tolist() == [1, 2]


@warpjit
def polled(Out):
    """try_wait answers at once: False before the phase completes, True after."""
    T.device_entry(launch=T.cuda.LaunchConfig(grid=1, block=32))
    lane = T.cuda.lane_id()
    bar = T.alloc_shared((1,), "mbarrier")
    if lane == 0:
        T.ptx["mbarrier.init.shared::cta.b64"](bar.ptr(0), 32)
        Out[0] = T.ptx["mbarrier.test_wait.parity.shared::cta.b64"](bar.ptr(0), 0)
        Out[1] = T.ptx["mbarrier.test_wait.parity.shared::cta.b64"](bar.ptr(0), 1)
    T.cuda.warp_sync()
    T.ptx["mbarrier.arrive.shared::cta.b64"](bar.ptr(0))
    T.cuda.mbarrier_wait(bar.ptr(0), 0)
    if lane == 31:
        Out[2] = T.ptx["mbarrier.try_wait.parity.shared::cta.b64"](bar.ptr(0), 0)


def test_polling_a_phase(device, run):
    out = torch.zeros(3, dtype=torch.bool, device=device)
    run(polled, out)
    assert out.cpu().tolist() == [False, True, True]


@warpjit
def refilled(A, Out):
    """Generic stores, a fence, and a bulk copy by one elected lane over half of what was stored; all lanes wait."""
    T.device_entry(launch=T.cuda.LaunchConfig(grid=1, block=32))
    lane = T.cuda.lane_id()
    buffer = T.alloc_shared((64,), "float32")
    bar = T.alloc_shared((1,), "mbarrier")
    if lane == 0:
        T.ptx["mbarrier.init.shared::cta.b64"](bar.ptr(), 1)
        T.ptx["fence.mbarrier_init.release.cluster"]()
    buffer[lane] = -1.0
    buffer[lane + 32] = -2.0
    T.ptx["fence.proxy.async.shared::cta"]()
    T.cuda.warp_sync()
    if T.cuda.elect_sync():
        T.ptx["mbarrier.arrive.expect_tx.shared::cta.b64"](bar.ptr(), 128)
        T.cuda.tile.apply(T.ptx[BULK], buffer[16:48], A[0:32], size=64, mbar=bar.ptr())
    T.cuda.mbarrier_wait(bar.ptr(), 0)
    Out[lane] = buffer[lane]
    Out[lane + 32] = buffer[lane + 32]


def test_a_bulk_copy_over_what_was_stored(device, run):
    a = torch.randn(32, device=device)
    out = torch.full((64,), float("nan"), device=device)
    run(refilled, a, out)
    sides = [torch.full((16,), value, device=device) for value in (-1.0, -2.0)]
    assert_same_bits(torch.cat([sides[0], a, sides[1]]), out)
    assert refilled.source(a, out).count("cp.async.bulk") == 2
