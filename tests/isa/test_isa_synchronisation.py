"""Barriers, fences, waits and asynchronous copies: what their rows say."""

from __future__ import annotations

import numpy as np

from warpjit.isa import async_copy, barriers
from warpjit.isa.row import (
    BarrierSync,
    Commit,
    CompleteBytes,
    Completion,
    Elect,
    Fence,
    Kind,
    Mode,
    Participants,
    WaitGroup,
    WaitUntil,
)
from warpjit.isa.table import lookup
from warpjit.isa.target import Target


def test_everything_here_touches_memory_or_synchronises() -> None:
    for row in (*barriers.ROWS, *async_copy.ROWS):
        assert row.memory and not row.pure


def test_barriers() -> None:
    for text in ("bar.sync", "barrier.sync", "barrier.cta.sync.aligned"):
        row = lookup(text)
        assert isinstance(row.effect, BarrierSync) and row.participants is Participants.CTA
        assert [(operand.name, operand.optional) for operand in row.operands] == [("id", False), ("count", True)]
    warp = lookup("bar.warp.sync")
    assert isinstance(warp.effect, BarrierSync) and warp.participants is Participants.WARP
    assert isinstance(lookup("elect.sync").effect, Elect)


def test_fences() -> None:
    what = {row.text: row.effect.what for row in barriers.FENCES if isinstance(row.effect, Fence)}
    assert what["membar.gl"] == what["fence.acq_rel.gpu"] == "gpu"
    assert what["fence.proxy.async.shared::cta"] == "proxy.async.shared::cta"
    assert what["fence.mbarrier_init.release.cluster"] == "mbarrier_init"
    assert lookup("fence.release.cluster.mbarrier_init").text == "fence.mbarrier_init.release.cluster"


def test_the_blocking_wait() -> None:
    wait = lookup("mbarrier_wait")
    assert isinstance(wait.effect, WaitUntil)
    fresh = barriers.mbarrier_state.init(np.array([1, 1]))
    assert wait.effect.ready(fresh, np.array([0, 1])).tolist() == [False, True]
    assert not wait.needs.holds(Target.parse("sm_80"))


def test_arrivals_of_more_than_one_need_sm_90() -> None:
    row = lookup("mbarrier.arrive.shared::cta.b64")
    count = row.operand("count")
    assert row.needs.holds(Target.parse("sm_80"))
    assert count.optional and count.needs is not None and not count.needs.holds(Target.parse("sm_80"))


def test_cp_async_zero_fills() -> None:
    row = lookup("cp.async.cg.shared.global")
    src = np.random.default_rng(1).integers(1, 256, (2, 32, 16)).astype(np.uint8)
    assert row.meaning is not None
    assert (row.meaning(src, None, size=16) == src).all()
    size = np.arange(32) % 17
    copied = row.meaning(src, np.broadcast_to(size, (2, 32)), size=16)
    for lane in range(32):
        assert (copied[:, lane, : size[lane]] == src[:, lane, : size[lane]]).all()
        assert not copied[:, lane, size[lane] :].any()


def test_cp_async_rows() -> None:
    assert lookup("cp.async.ca.shared.global").operand("size").choices == (4, 8, 16)
    row = lookup("cp.async.cg.shared.global.L2::128B")
    assert row.operand("size").choices == (16,)
    assert row.completion is Completion.CP_ASYNC_GROUP
    dst, src = row.operand("dst"), row.operand("src")
    assert (dst.mode, dst.space, dst.busy, dst.proxy, dst.align) == (Mode.WRITE, "shared", "completion", "generic", 16)
    assert (src.mode, src.space, src.bytes) == (Mode.READ, "global", 0)
    assert isinstance(lookup("cp.async.commit_group").effect, Commit)
    wait, everything = lookup("cp.async.wait_group"), lookup("cp.async.wait_all")
    assert isinstance(wait.effect, WaitGroup) and not wait.effect.all_groups
    assert wait.operands[0].kind is Kind.IMMEDIATE
    assert isinstance(everything.effect, WaitGroup) and everything.effect.all_groups


def test_bulk_copies() -> None:
    for shared in ("shared::cluster", "shared::cta"):
        row = lookup(f"cp.async.bulk.{shared}.global.mbarrier::complete_tx::bytes")
        assert [operand.name for operand in row.operands] == ["dst", "src", "size", "bar"]
        assert row.completion is Completion.MBARRIER_BYTES and isinstance(row.effect, CompleteBytes)
        assert row.participants is Participants.THREAD
        for name in ("dst", "src"):
            operand = row.operand(name)
            assert (operand.align, operand.proxy, operand.busy) == (16, "async", "completion")
        assert row.operand("bar").kind is Kind.BARRIER and row.operand("bar").align == 8
