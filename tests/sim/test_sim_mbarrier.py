"""mbarriers: producers and consumers, copies that they announce, what they order, and how they are misused."""

from __future__ import annotations

from contextlib import nullcontext

import numpy as np
import pytest
from sim_kernels import Hand, const

from warpjit.ir.nodes import Address
from warpjit.isa.table import lookup

INIT, ARRIVE = "mbarrier.init.shared::cta.b64", "mbarrier.arrive.shared::cta.b64"
EXPECT, TRY = "mbarrier.arrive.expect_tx.shared::cta.b64", "mbarrier.try_wait.parity.shared::cta.b64"
WAIT, INVAL = "mbarrier_wait", "mbarrier.inval.shared::cta.b64"
BULK = "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes"


def first_thread_initialises(h: Hand, *barriers: tuple[Address, int], sync: bool = True) -> None:
    with h.if_(h.compare("eq", h.thread(), 0)):
        for barrier, count in barriers:
            h.op(INIT, barrier, const(count))
    if sync:
        h.sync()


def ring(rounds: int, *, elected: bool, consumers_wait: bool = True, consumers_release: bool = True) -> Hand:
    """Warp 0 fills two stages in turn, warp 1 reads them. `elected`: only lane 0 of each warp waits and arrives."""
    h = Hand(block=(64, 1, 1))
    a, out = h.tensor("A", (rounds, 32)), h.tensor("Out", (rounds, 32))
    s, bars = h.alloc("s", (2, 32)), h.alloc("bars", (4,), "uint64")
    warp, lane = h.warp(), h.lane()
    count = 1 if elected else 32
    first_thread_initialises(h, *((h.at(bars, i), count) for i in range(4)))
    chosen = h.compare("eq", lane, 0)

    def alone():
        return h.if_(chosen) if elected else nullcontext()

    with h.if_(h.compare("eq", warp, 0)):
        with h.for_("i", rounds) as i:
            stage, turn = h.arith("mod", i, 2), h.arith("floordiv", i, 2)
            if consumers_release:
                with alone():
                    h.op(WAIT, h.at(bars, h.arith("add", stage, 2)), h.arith("mod", h.arith("add", turn, 1), 2))
            h.store(s, h.load(a, i, lane), stage, lane)
            h.mark("filled")
            h.warp_sync()
            with alone():
                h.op(ARRIVE, h.at(bars, stage), None)
    with h.else_():
        with h.for_("j", rounds) as j:
            stage, turn = h.arith("mod", j, 2), h.arith("floordiv", j, 2)
            if consumers_wait:
                with alone():
                    h.op(WAIT, h.at(bars, stage), h.arith("mod", turn, 2))
            h.store(out, h.load(s, stage, lane), j, lane)
            h.warp_sync()
            with alone():
                h.op(ARRIVE, h.at(bars, h.arith("add", stage, 2)), None)
    return h


@pytest.mark.parametrize("elected", [False, True])
@pytest.mark.parametrize("seed", [0, 1, 2, 3])
def test_a_producer_and_a_consumer(elected, seed):
    source = np.arange(9 * 32, dtype=np.int32).reshape(9, 32)
    result = np.zeros_like(source)
    ring(9, elected=elected).run(source, result, seed=seed)
    np.testing.assert_array_equal(result, source)


@pytest.mark.parametrize("seed", [0, 1, 2, 3])
@pytest.mark.parametrize("missing", ["consumers_wait", "consumers_release"])
def test_a_missing_wait_is_a_race_or_an_unwritten_value(missing, seed):
    h = ring(5, elected=True, **{missing: False})
    error = h.fails(np.zeros((5, 32), np.int32), np.zeros((5, 32), np.int32), seed=seed)
    assert error.findings[0].message.startswith(("race: ", "use of an unwritten value"))


def test_a_consumer_of_the_wrong_parity_is_a_deadlock():
    h = Hand(block=(64, 1, 1))
    bars = h.alloc("bars", (1,), "uint64")
    bar = h.at(bars, 0)
    first_thread_initialises(h, (bar, 32))
    warp = h.warp()
    with h.if_(h.compare("eq", warp, 0)):
        h.op(ARRIVE, bar, None)
        h.op(WAIT, bar, const(1))
        h.op(WAIT, bar, const(1))
    with h.else_():
        with h.if_(h.compare("eq", h.lane(), 3)):
            h.op(WAIT, bar, const(0))
            h.op(WAIT, bar, const(1))
            line = h.lines
    (finding,) = h.fails().findings
    assert finding.message == "deadlock: no warp can go on in CTA (0, 0, 0)"
    waits = [(note.message, note.loc.line) for note in finding.notes]
    assert ("warp 1 waits at mbarrier_wait in lane 3, whose condition never becomes true", line) in waits


# ---- copies -------------------------------------------------------------------------------------------


def bulk(*, wait: str = "all", expected: int = 512, read_in: int = 1) -> Hand:
    """Thread 0 copies 512 bytes; warp `read_in` waits and reads them."""
    h = Hand(block=(64, 1, 1))
    a, out = h.tensor("A", (128,)), h.tensor("Out", (128,))
    s, bars = h.alloc("s", (128,), align=128), h.alloc("bars", (1,), "uint64")
    bar, thread = h.at(bars, 0), h.thread()
    first_thread_initialises(h, (bar, 1))
    with h.if_(h.compare("eq", thread, 0)):
        h.op(EXPECT, bar, const(expected))
        h.op(BULK, h.at(s, 0), h.at(a, 0), const(512), bar)
        h.mark("after the copy")
    with h.if_(h.compare("eq", h.warp(), read_in)):
        if wait == "all":
            h.op(WAIT, bar, const(0))
        for i in range(4):
            place = h.arith("add", h.lane(), 32 * i)
            h.store(out, h.load(s, place), place)
    return h


@pytest.mark.parametrize("seed", [0, 1, 2])
@pytest.mark.parametrize("reader", [0, 1])
def test_a_bulk_copy(seed, reader):
    source, result = np.arange(128, dtype=np.int32), np.zeros(128, np.int32)
    bulk(read_in=reader).run(source, result, seed=seed)
    np.testing.assert_array_equal(result, source)


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_a_bulk_copy_that_is_read_without_waiting(seed):
    error = bulk(wait="none", read_in=0).fails(np.zeros(128, np.int32), np.zeros(128, np.int32), seed=seed)
    message = error.findings[0].message
    assert message.startswith(
        ("use of a pending copy: s[0] is read before the copy has completed", "race: the read of s[0]")
    )


def test_an_mbarrier_that_expects_too_few_bytes_is_seen_as_a_pending_copy_or_an_early_phase():
    error = bulk(expected=0).fails(np.zeros(128, np.int32), np.zeros(128, np.int32))
    assert error.findings[0].message.startswith("use of a pending copy: s[0] is read before")


def test_an_mbarrier_that_expects_too_many_bytes_is_a_deadlock():
    error = bulk(expected=528).fails(np.zeros(128, np.int32), np.zeros(128, np.int32))
    assert error.findings[0].message.startswith("deadlock: no warp can go on")


def test_a_bulk_copy_from_past_the_end():
    h = Hand()
    a, s, bars = h.tensor("A", (8,)), h.alloc("s", (16,)), h.alloc("bars", (1,), "uint64")
    first_thread_initialises(h, (h.at(bars, 0), 1))
    with h.if_(h.compare("eq", h.lane(), 0)):
        h.op(BULK, h.at(s, 0), h.at(a, 0), const(64), h.at(bars, 0))
    message = h.fails(np.zeros(8, np.int32)).findings[0].message
    assert message == "out of bounds: A[0] is bytes 0 to 63, outside of the tensor; CTA (0, 0, 0), warp 0, lane 0"


# ---- misuse -------------------------------------------------------------------------------------------


def test_an_mbarrier_that_nobody_has_initialised():
    for row, more in ((ARRIVE, (None,)), (WAIT, (const(0),))):
        h = Hand()
        h.op(row, h.at(h.alloc("bars", (2,), "uint64"), 1), *more)
        message = h.fails().findings[0].message
        assert message.startswith("mbarrier misuse: bars[1] is used before mbarrier.init"), row


def test_more_arrivals_than_expected():
    h = Hand()
    bar = h.at(h.alloc("bars", (1,), "uint64"), 0)
    first_thread_initialises(h, (bar, 2))
    h.op(ARRIVE, bar, const(3), predicate=h.compare("eq", h.lane(), 9))
    message = h.fails().findings[0].message
    assert message == (
        "mbarrier misuse: bars[0] gets more arrivals in a phase than it expects; CTA (0, 0, 0), warp 0, lane 9"
    )


def test_the_bytes_of_an_mbarrier_belong_to_it_until_it_is_invalidated():
    h = Hand()
    bars = h.alloc("bars", (1,), "uint64")
    bar = h.at(bars, 0)
    first_thread_initialises(h, (bar, 1))
    only = h.compare("eq", h.lane(), 0)
    h.op(INVAL, bar, predicate=only)
    h.store(bars, 5, 0, predicate=only)
    h.run()
    h.op(INIT, bar, const(1), predicate=only)
    h.store(bars, 5, 0, predicate=only)
    finding = h.fails().findings[0]
    assert finding.message.startswith("mbarrier misuse: bars[0] lies in an initialised mbarrier")
    assert finding.loc.line == h.lines


def test_an_mbarrier_that_other_warps_use_without_a_barrier_after_its_initialisation():
    h = Hand(block=(64, 1, 1))
    bar = h.at(h.alloc("bars", (1,), "uint64"), 0)
    first_thread_initialises(h, (bar, 64), sync=False)
    h.op(ARRIVE, bar, None)
    message = h.fails().findings[0].message
    assert message.startswith("race: the update of bars[0] and a write of the same bytes by warp 0")


# ---- loops that test ----------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", [0, 5])
def test_a_loop_that_tests_lets_the_others_go_on(seed):
    h = Hand(block=(64, 1, 1))
    out, s = h.tensor("Out", (32,)), h.alloc("s", (32,))
    bar = h.at(h.alloc("bars", (1,), "uint64"), 0)
    first_thread_initialises(h, (bar, 32))
    lane = h.lane()
    with h.if_(h.compare("eq", h.warp(), 0)):
        with h.while_true():
            done = h.value(lookup(TRY), bar, const(0))
            with h.if_(done):
                h.break_()
        h.store(out, h.load(s, lane), lane)
    with h.else_():
        with h.for_("i", 50):
            h.lane()
        h.store(s, lane, lane)
        h.op(ARRIVE, bar, None)
    result = np.zeros(32, np.int32)
    h.run(result, seed=seed)
    np.testing.assert_array_equal(result, np.arange(32))


def test_a_loop_that_tests_for_ever(monkeypatch):
    monkeypatch.setattr("warpjit.sim.machine._TESTS", 100)
    h = Hand()
    bar = h.at(h.alloc("bars", (1,), "uint64"), 0)
    first_thread_initialises(h, (bar, 32))
    line = h.lines + 1
    with h.while_true():
        with h.if_(h.value(lookup(TRY), bar, const(0))):
            h.break_()
    (finding,) = h.fails().findings
    assert finding.message == (
        "deadlock: this loop spins for ever on memory that no warp changes; CTA (0, 0, 0), warp 0"
    )
    assert finding.loc.line == line
