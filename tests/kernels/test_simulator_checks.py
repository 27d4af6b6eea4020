"""What only a run can find: a C that nobody wrote, and a barrier that is missing between two warps."""

from __future__ import annotations

import pytest
import torch

from warpjit import SimulationError, T, warpjit

MMA = "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32"


@warpjit
def unwritten_accumulator(Out):
    T.device_entry(launch=T.cuda.LaunchConfig(grid=1, block=32))
    mma = T.ptx[MMA]
    a, b = T.cuda.fragments(mma, "A", fill=0), T.cuda.fragments(mma, "B", fill=0)
    d = T.cuda.fragments(mma, "D")
    T.cuda.tile.apply(mma, d, a, b, d)
    Out[T.cuda.lane_id()] = d.storage.view("float32")[0]


def test_an_unwritten_c_is_found():
    with pytest.raises(SimulationError) as caught:
        unwritten_accumulator(torch.zeros(32))
    (finding,) = caught.value.findings
    assert finding.message == (
        f"use of an unwritten value as operand C of {MMA}; CTA (0, 0, 0), warp 0, lane 0 (and 31 more threads)"
    )
    assert finding.loc.frames[-1].text.strip() == "T.cuda.tile.apply(mma, d, a, b, d)"
    (note,) = finding.notes
    assert note.message == "the registers of `d` are allocated, unwritten"
    assert note.loc.frames[-1].text.strip() == 'd = T.cuda.fragments(mma, "D")'


@warpjit
def exchange(Out, *, writer):
    """Warp `writer` writes what the other reads: a barrier is missing in between."""
    T.device_entry(launch=T.cuda.LaunchConfig(grid=1, block=64))
    lane, warp = T.cuda.lane_id(), T.cuda.warp_id()
    box = T.alloc_shared((32,), "int32")
    if warp == writer:
        box[lane] = lane
    else:
        Out[lane] = box[lane]


@warpjit
def exchange_in_order(Out, *, writer):
    T.device_entry(launch=T.cuda.LaunchConfig(grid=1, block=64))
    lane, warp = T.cuda.lane_id(), T.cuda.warp_id()
    box = T.alloc_shared((32,), "int32")
    if warp == writer:
        box[lane] = lane
    T.cuda.cta_sync()
    if warp != writer:
        Out[lane] = box[lane]


@pytest.mark.parametrize("writer", [0, 1])
def test_a_missing_barrier_is_found_whichever_warp_comes_first(writer):
    reader = f"CTA (0, 0, 0), warp {1 - writer}, lane 0 (and 31 more threads)"
    race = (
        f"race: the read of box[0] and a write of the same bytes by warp {writer}, without a barrier between; {reader}",
        ["box[lane] = lane"],
    )
    too_early = (
        f"use of an unwritten value: it is stored to Out[0] in global memory; {reader}",
        ["Out[lane] = box[lane]"],
    )
    found = []
    for seed in range(8):
        out = torch.full((32,), -1, dtype=torch.int32)
        with pytest.raises(SimulationError) as caught:
            exchange.simulate(out, writer=writer, seed=seed)
        (finding,) = caught.value.findings
        assert finding.loc.frames[-1].text.strip() == "Out[lane] = box[lane]"
        found.append((finding.message, [note.loc.frames[-1].text.strip() for note in finding.notes]))
        assert (out == -1).all()
    assert race in found and too_early in found
    assert all(each in (race, too_early) for each in found)


@pytest.mark.parametrize("writer", [0, 1])
def test_the_barrier_makes_it_right(device, run, writer):
    out = torch.full((32,), -1, dtype=torch.int32, device=device)
    run(exchange_in_order, out, writer=writer)
    assert out.cpu().tolist() == list(range(32))
