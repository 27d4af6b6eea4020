"""Broken kernels: missing lanes, divergent barriers, deadlocks, races and pending copies."""

from __future__ import annotations

import numpy as np
import pytest
from sim_kernels import Hand, const, only

from warpjit.ir.nodes import Address, Fragment, Slot, Tile

LDMATRIX = "ldmatrix.sync.aligned.m8n8.x{}.shared.b16"
WAIT, COMMIT, COPY = "cp.async.wait_group", "cp.async.commit_group", "cp.async.cg.shared.global"


# ---- collectives and barriers -------------------------------------------------------------------------


def test_a_collective_without_all_of_its_lanes():
    h = Hand()
    s, r = h.alloc("s", (8, 8), "uint16"), h.registers("r", "uint32", 1)
    lane = h.lane()
    with h.if_(h.compare("lt", lane, 16)):
        h.op(LDMATRIX.format(1), Fragment(((Slot(r, 0),),)), Tile((h.at(s, lane, 0),)))
    message, _, _ = only(h.fails())
    assert message == (
        "missing lanes: ldmatrix.sync.aligned.m8n8.x1.shared.b16 needs all 32 lanes of the warp, "
        "but lanes 16-31 are not active here; CTA (0, 0, 0), warp 0"
    )


def test_a_block_that_fills_its_last_warp_in_part():
    h = Hand(block=(48, 1, 1))
    h.warp_sync()
    message, _, _ = only(h.fails())
    assert message == (
        "missing lanes: bar.warp.sync needs the lanes of its membermask, but lanes 16-31 do not exist: "
        "a block of 48 threads fills its last warp in part; CTA (0, 0, 0), warp 1"
    )


def test_lanes_that_have_returned():
    h = Hand()
    with h.if_(h.compare("eq", h.lane(), 3)):
        h.return_()
    h.warp_sync()
    message, _, _ = only(h.fails())
    assert "but lane 3 has returned from the kernel" in message


def test_a_membermask_may_name_the_active_lanes():
    h = Hand()
    with h.if_(h.compare("lt", h.lane(), 4)):
        h.warp_sync(0xF)
    h.run()
    with h.if_(h.compare("lt", h.lane(), 4)):
        h.warp_sync(0x7)
    message, _, _ = only(h.fails())
    assert message.startswith("missing lanes: bar.warp.sync is executed by a lane that its membermask does not name")


def test_a_barrier_under_a_divergent_branch():
    h = Hand(block=(64, 1, 1))
    with h.if_(h.compare("lt", h.thread(), 40)):
        h.sync()
        line = h.lines
    message, at, _ = only(h.fails())
    assert message == (
        "divergent barrier: bar.sync is reached by lanes 0-7 of the warp, but not by lanes 8-31; CTA (0, 0, 0), warp 1"
    )
    assert at == line


def test_warps_at_different_barriers():
    h = Hand(block=(64, 1, 1))
    with h.if_(h.compare("eq", h.warp(), 0)):
        h.sync()
        first = h.lines
    with h.else_():
        h.sync()
        second = h.lines
    message, at, notes = only(h.fails())
    assert message.startswith("divergent barrier: warps of one CTA wait for each other at different barriers")
    assert {at, notes[0][1]} == {first, second}


def test_named_barriers_with_different_counts():
    h = Hand(block=(96, 1, 1))
    warp = h.warp()
    with h.if_(h.compare("eq", warp, 0)):
        h.op("bar.sync", const(1), const(64))
    with h.else_():
        h.op("bar.sync", const(1), const(96))
    message, _, _ = only(h.fails())
    assert message.startswith("divergent barrier: it waits for 64 threads, other warps at the same barrier for 96")


def test_a_barrier_that_too_few_warps_reach():
    h = Hand(block=(96, 1, 1), grid=(3, 1, 1))
    with h.if_(h.compare("ne", h.warp(), 2)):
        h.op("bar.sync", const(1), const(96))
        line = h.lines
    message, at, notes = only(h.fails())
    assert message == "deadlock: no warp can go on in CTA (0, 0, 0) (and in 2 more CTAs)"
    assert at == line
    assert notes == [
        ("warp 0 waits at barrier 1 (bar.sync) for 96 threads; 2 warps have come", line),
        ("warp 1 waits at barrier 1 (bar.sync) for 96 threads; 2 warps have come", line),
        ("warps that have returned: 2", 0),
    ]


def test_returned_warps_do_not_hold_up_the_others():
    h = Hand(block=(96, 1, 1))
    out = h.tensor("Out", (96,))
    with h.if_(h.compare("eq", h.warp(), 1)):
        h.return_()
    h.sync()
    h.store(out, 1, h.thread())
    result = np.zeros(96, np.int32)
    h.run(result)
    np.testing.assert_array_equal(result, np.repeat([1, 0, 1], 32))


# ---- races --------------------------------------------------------------------------------------------


def race(*statements: str) -> Hand:
    """Warp 0 and warp 1 touch the same element: "w0" is a write by warp 0, "sync" a barrier."""
    h = Hand(block=(64, 1, 1))
    s, warp, lane = h.alloc("s", (32,)), h.warp(), h.lane()
    with h.if_(h.compare("eq", warp, 1)):
        h.store(s, 3, lane)
    h.sync()
    for statement in statements:
        if statement == "sync":
            h.sync()
            continue
        with h.if_(h.compare("eq", warp, int(statement[1]))):
            if statement[0] == "w":
                h.store(s, 5, lane)
            else:
                h.load(s, lane)
    return h


@pytest.mark.parametrize(
    ("order", "kinds"),
    [(("w0", "r1"), ("read", "write")), (("r0", "w1"), ("write", "read")), (("w0", "w1"), ("write", "write"))],
)
@pytest.mark.parametrize("flipped", [False, True])
@pytest.mark.parametrize("seed", [0, 1, 2])
def test_a_missing_barrier_between_two_warps(order, kinds, flipped, seed):
    if flipped:
        order = tuple(statement[0] + str(1 - int(statement[1])) for statement in order)
    message, _, notes = only(race(*order).fails(seed=seed))
    assert message.startswith("race: the ")
    assert {message.split()[2], notes[0][0].split()[1]} == set(kinds)
    assert "of s[0] and a " in message and "without a barrier between" in message
    race(order[0], "sync", order[1]).run(seed=seed)


def test_two_warps_that_write_one_element_in_the_same_step():
    h = Hand(block=(64, 1, 1))
    s = h.alloc("s", (32,))
    h.store(s, 1, h.lane())
    message, at, notes = only(h.fails())
    assert message.startswith("race: the write of s[0] and a write of the same bytes by warp 1, without a barrier")
    assert notes == [("the write by warp 1", at)]


def test_accesses_of_one_warp_are_ordered():
    race("w0", "r0", "w0").run()


# ---- asynchronous copies ------------------------------------------------------------------------------


def copying(after: str, threads: int = 32):
    """Each thread copies 16 bytes; `after`: what happens between that and reading them in the same thread."""
    h = Hand(block=(threads, 1, 1))
    a, s, out = h.tensor("A", (threads, 4)), h.alloc("s", (threads, 4)), h.tensor("Out", (threads,))
    thread = h.thread()
    h.op(COPY, h.at(s, thread, 0), h.at(a, thread, 0), None, None, params=(("size", 16),))
    h.mark("copy")
    h.op(COMMIT)
    for word in after.split():
        if word == "sync":
            h.sync()
        elif word == "commit":
            h.op(COMMIT)
        elif word.startswith("wait"):
            h.op(WAIT, None, params=(("n", int(word[4:])),))
    return h, a, s, out, thread


def test_a_copy_that_is_read_without_waiting():
    for after in ("", "sync", "wait1"):
        h, _, s, out, thread = copying(after)
        h.store(out, h.load(s, thread, 2), thread)
        message, _, notes = only(h.fails(np.zeros((32, 4), np.int32), np.zeros(32, np.int32)))
        assert message == (
            "use of a pending copy: s[0, 2] is read before its thread has waited for it with cp.async.wait_group; "
            "CTA (0, 0, 0), warp 0, lane 0 (and 31 more threads)"
        ), after
        assert notes == [("the asynchronous copy is issued here", h.marked["copy"] - 1)]


def test_a_copy_that_is_overwritten_early():
    h, _, s, _, thread = copying("")
    h.store(s, 1, thread, 0)
    message, _, _ = only(h.fails(np.zeros((32, 4), np.int32), np.zeros(32, np.int32)))
    assert message.startswith("use of a pending copy: s[0, 0] is overwritten before its thread has waited")


def test_a_copy_that_was_waited_for():
    for after in ("wait0", "commit wait1"):
        h, _, s, out, thread = copying(after)
        h.store(out, h.load(s, thread, 2), thread)
        source, result = np.arange(128, dtype=np.int32).reshape(32, 4), np.zeros(32, np.int32)
        h.run(source, result)
        np.testing.assert_array_equal(result, source[:, 2])


def test_a_copy_of_another_warp_needs_a_barrier_after_the_wait():
    source = np.arange(256, dtype=np.int32).reshape(64, 4)
    for after, good in (("wait0", False), ("sync wait0", False), ("wait0 sync", True)):
        h, _, s, out, thread = copying(after, threads=64)
        h.store(out, h.load(s, h.arith("sub", const(63), thread), 1), thread)
        if good:
            result = np.zeros(64, np.int32)
            h.run(source, result)
            np.testing.assert_array_equal(result, source[::-1, 1])
        else:
            message, _, _ = only(h.fails(source, np.zeros(64, np.int32)))
            assert message.startswith("race: the read of s["), after


def test_a_copy_of_fewer_bytes_reads_no_more_and_fills_with_zeros():
    h = Hand()
    a, s, out = h.tensor("A", (5,)), h.alloc("s", (32, 4)), h.tensor("Out", (32, 4))
    lane = h.lane()
    first = h.arith("mul", lane, 4)
    left = h.arith("mul", h.arith("sub", const(5), first), 4)
    size = h.arith("max", h.arith("min", left, 16), 0)
    source = Address(a, h.arith("mul", first, 4))
    h.op("cp.async.ca.shared.global", h.at(s, lane, 0), source, None, size, params=(("size", 16),))
    h.op("cp.async.wait_all")
    for column in range(4):
        h.store(out, h.load(s, lane, column), lane, column)
    result = np.full((32, 4), -1, np.int32)
    h.run(np.arange(1, 6, dtype=np.int32), result)
    expected = np.zeros(128, np.int32)
    expected[:5] = np.arange(1, 6)
    np.testing.assert_array_equal(result.ravel(), expected)
