"""One broken kernel for each kind of finding: what is said, where, and that no argument changes."""

from __future__ import annotations

import numpy as np
import pytest
from sim_kernels import Hand, const

from warpjit.errors import SimulationError
from warpjit.ir.dtypes import float32, int32, uint32
from warpjit.ir.nodes import Address, Fragment, Slot, Tile
from warpjit.isa.memory import LOAD, STORE
from warpjit.isa.scalar import ARITHMETIC, MOVE
from warpjit.isa.table import lookup

LDMATRIX = "ldmatrix.sync.aligned.m8n8.x{}.shared.b16"
WAIT, COMMIT, COPY = "cp.async.wait_group", "cp.async.commit_group", "cp.async.cg.shared.global"


def only(error: SimulationError) -> tuple[str, int, list[tuple[str, int]]]:
    """The one finding: its sentence, its line and its notes."""
    (finding,) = error.findings
    return finding.message, finding.loc.line, [(note.message, note.loc.line) for note in finding.notes]


# ---- out of bounds ------------------------------------------------------------------------------------


def test_an_element_outside_of_a_global_tensor():
    h = Hand()
    a, out = h.tensor("A", (16, 16)), h.tensor("Out", (32,))
    row = h.arith("add", h.arith("mul", h.compare_int("ge", h.lane(), 5), 16), 0)
    value = h.load(a, row, 3)
    line = h.lines
    h.store(out, value, h.lane())
    message, at, _ = only(h.fails(np.zeros((16, 16), np.int32), np.zeros(32, np.int32)))
    assert message == (
        "out of bounds: A[16, 3] but A has shape (16, 16); CTA (0, 0, 0), warp 0, lane 5 (and 26 more threads)"
    )
    assert at == line


def test_an_element_outside_of_its_row_but_inside_of_the_bytes():
    h = Hand()
    out = h.tensor("Out", (4, 8))
    h.store(out, 1, 0, h.lane())
    message, _, _ = only(h.fails(np.zeros((4, 8), np.int32)))
    assert message.startswith("out of bounds: Out[0, 8] but Out has shape (4, 8)")


def test_a_negative_index():
    h = Hand()
    s = h.alloc("s", (32,))
    h.store(s, 1, h.arith("sub", h.lane(), 1))
    message, _, _ = only(h.fails())
    assert message == "out of bounds: s[-1] but s has shape (32,); CTA (0, 0, 0), warp 0, lane 0"


def test_a_wide_access_past_the_end_of_the_bytes():
    h = Hand()
    a, s = h.tensor("A", (6,)), h.alloc("s", (8,))
    h.op(COPY, h.at(s, 0), h.at(a, 4), None, params=(("size", 16),), predicate=h.compare("eq", h.lane(), 0))
    message, _, _ = only(h.fails(np.zeros(6, np.int32)))
    assert message == "out of bounds: A[4] is bytes 16 to 31, outside of the tensor; CTA (0, 0, 0), warp 0, lane 0"


def test_a_raw_address_outside_of_shared_memory():
    h = Hand(block=(64, 1, 1))
    s = h.alloc("s", (32,))
    h.op(STORE["shared", "int32"], h.at(s, h.thread(), checked=False), const(1))
    message, _, _ = only(h.fails())
    assert message == (
        "out of bounds: byte 128 of s is bytes 128 to 131, outside of shared memory of 128 bytes; "
        "CTA (0, 0, 0), warp 1, lane 0 (and 31 more threads)"
    )


def test_a_masked_access_may_form_any_address():
    h = Hand()
    out = h.tensor("Out", (8,))
    lane = h.lane()
    with h.if_(h.compare("lt", lane, 8)):
        h.store(out, lane, lane)
    h.store(out, 5, h.arith("sub", lane, 1), predicate=h.compare("eq", lane, 1))
    result = np.zeros(8, np.int32)
    h.run(result)
    np.testing.assert_array_equal(result, [5, 1, 2, 3, 4, 5, 6, 7])


# ---- alignment ----------------------------------------------------------------------------------------


def test_a_misaligned_row_of_a_matrix():
    h = Hand()
    s, r = h.alloc("s", (64, 10), "uint16"), h.registers("r", "uint32", 1)
    h.op(LDMATRIX.format(1), Fragment(((Slot(r, 0),),)), Tile((h.at(s, h.lane(), 0),)))
    message, _, _ = only(h.fails())
    assert message == (
        "misaligned: s[1, 0] lies 4 bytes past a multiple of 16, which ldmatrix.sync.aligned.m8n8.x1.shared.b16 needs; "
        "CTA (0, 0, 0), warp 0, lane 1 (and 5 more threads)"
    )


def test_a_misaligned_global_address():
    h = Hand()
    a = h.tensor("A", (64,), "uint8")
    h.op(LOAD["global", "int32"], h.fresh(int32), h.at(a, h.lane()))
    message, _, _ = only(h.fails(np.zeros(64, np.uint8)))
    assert "misaligned: A[" in message and "which load.global.s32 needs" in message


# ---- unwritten values ---------------------------------------------------------------------------------


def test_unwritten_shared_memory_is_found_where_it_is_used():
    h = Hand()
    s, out = h.alloc("s", (32,)), h.tensor("Out", (32,))
    lane = h.lane()
    with h.if_(h.compare("ne", lane, 7)):
        h.store(s, lane, lane)
    value = h.load(s, lane)
    loaded = h.lines
    moved = h.value(MOVE["int32"], value)
    total = h.arith("add", moved, 1)
    used = h.lines
    h.store(out, total, lane)
    message, at, notes = only(h.fails(np.zeros(32, np.int32)))
    assert message == "use of an unwritten value as operand a of add.s32; CTA (0, 0, 0), warp 0, lane 7"
    assert at == used
    assert notes == [("loaded from bytes that nothing has written, of shared `s`", loaded)]


def test_unwritten_registers_in_a_product():
    h = Hand()
    a, b = h.registers("a", "uint32", 4), h.registers("b", "uint32", 2)
    allocated = h.lines - 1
    d = h.registers("d", "float32", 4)
    for i in range(2):
        h.op(MOVE["uint32"], Slot(b, i), const(0, uint32))
    for i in range(3):
        h.op(MOVE["uint32"], Slot(a, i), const(0, uint32))
    h.op("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32", *mma_operands(d, a, b))
    message, _, notes = only(h.fails())
    assert message == (
        "use of an unwritten value as operand A of mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32; "
        "CTA (0, 0, 0), warp 0, lane 0 (and 31 more threads)"
    )
    assert notes == [("the registers of `a` are allocated, unwritten", allocated)]


def mma_operands(d, a, b):
    slots = [Fragment((tuple(Slot(r, i) for i in range(r.count)),)) for r in (d, a, b)]
    return (*slots, const(0.0, float32))


def test_unwritten_values_in_a_branch_an_address_a_predicate_and_a_global_store():
    cases = {
        "in a condition": lambda h, s, out, value: use_in_branch(h, value),
        "in an address": lambda h, s, out, value: h.load(s, value),
        "as a predicate": lambda h, s, out, value: h.store(s, 1, 0, predicate=h.value("bitcast.pred.u8", value)),
        "it is stored to Out[0] in global memory": lambda h, s, out, value: h.store(out, value, h.lane()),
    }
    for sentence, use in cases.items():
        h = Hand()
        kind = "uint8" if "predicate" in sentence else "bool" if "condition" in sentence else "int32"
        s, out = h.alloc("s", (32,)), h.tensor("Out", (32,))
        raw = h.alloc("raw", (32,), kind)
        value = h.load(raw, h.lane())
        if "address" in sentence:
            offset = h.fresh(int32)
            h.op(MOVE["int32"], offset, value)
            h.op(LOAD["shared", "int32"], h.fresh(int32), Address(s, offset))
        else:
            use(h, s, out, value)
        (finding,) = h.fails(np.zeros(32, np.int32)).findings
        assert "use of an unwritten value" in finding.message and sentence in finding.message, sentence


def use_in_branch(h, value):
    with h.if_(value):
        h.lane()


def test_half_of_a_packed_register_may_be_unwritten():
    h = Hand()
    r, out = h.registers("r", "uint32", 1), h.tensor("Out", (32,), "uint16")
    h.op("insert.b16", Slot(r, 0), Slot(r, 0), const(7, lookup("insert.b16").operands[2].dtype), params=(("index", 0),))
    low = h.value("extract.b16", Slot(r, 0), params=(("index", 0),))
    h.store(out, low, h.lane())
    result = np.zeros(32, np.uint16)
    h.run(result)
    assert (result == 7).all()
    high = h.value("extract.b16", Slot(r, 0), params=(("index", 1),))
    h.store(out, high, h.lane())
    message, _, _ = only(h.fails(np.zeros(32, np.uint16)))
    assert "use of an unwritten value: it is stored to Out[0] in global memory" in message


def test_a_matrix_load_carries_the_marks_of_single_rows():
    h = Hand()
    s, r, out = h.alloc("s", (16, 8), "uint16"), h.registers("r", "uint32", 2), h.tensor("Out", (2, 32), "uint32")
    lane = h.lane()
    with h.if_(h.compare("lt", lane, 8)):
        for column in range(8):
            h.store(s, column, lane, column)
    h.warp_sync()
    items = Fragment(((Slot(r, 0), Slot(r, 1)),))
    h.op(LDMATRIX.format(2), items, Tile((h.at(s, h.arith("mod", lane, 16), 0),)))
    h.store(out, Slot(r, 0), 0, lane)
    h.run(np.zeros((2, 32), np.uint32))
    h.store(out, Slot(r, 1), 1, lane)
    message, _, notes = only(h.fails(np.zeros((2, 32), np.uint32)))
    assert "it is stored to Out[1, 0]" in message and "(and 31 more threads)" in message
    assert notes[0][0] == "loaded from bytes that nothing has written, of shared `s`"


def test_a_declared_local_without_a_value():
    h = Hand()
    out = h.tensor("Out", (32,))
    x = h.variable("x", 0)
    h.nodes.pop()  # the assignment
    h.store(out, x, h.lane())
    message, _, notes = only(h.fails(np.zeros(32, np.int32)))
    assert "use of an unwritten value" in message
    assert notes == [("`x` comes into being without a value", 1)]


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
    h.op(COPY, h.at(s, thread, 0), h.at(a, thread, 0), None, params=(("size", 16),))
    h.mark("copy")
    h.op(COMMIT)
    for word in after.split():
        if word == "sync":
            h.sync()
        elif word == "commit":
            h.op(COMMIT)
        elif word.startswith("wait"):
            h.op(WAIT, params=(("n", int(word[4:])),))
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
    h.op("cp.async.ca.shared.global", h.at(s, lane, 0), source, size, params=(("size", 16),))
    h.op("cp.async.wait_all")
    for column in range(4):
        h.store(out, h.load(s, lane, column), lane, column)
    result = np.full((32, 4), -1, np.int32)
    h.run(np.arange(1, 6, dtype=np.int32), result)
    expected = np.zeros(128, np.int32)
    expected[:5] = np.arange(1, 6)
    np.testing.assert_array_equal(result.ravel(), expected)


# ---- arithmetic and promises --------------------------------------------------------------------------


@pytest.mark.parametrize("operation", ["floordiv", "mod"])
def test_integer_division_by_zero(operation):
    h = Hand()
    h.arith(operation, const(7), h.arith("sub", h.lane(), 4))
    message, _, _ = only(h.fails())
    assert message == f"integer division by zero in {operation}.s32; CTA (0, 0, 0), warp 0, lane 4"


def test_division_by_zero_in_lanes_that_are_not_active_and_in_floats():
    h = Hand()
    lane = h.lane()
    with h.if_(h.compare("ne", lane, 0)):
        h.arith("floordiv", const(7), lane)
    h.value(ARITHMETIC["div", "float32"], const(1.0, float32), const(0.0, float32))
    h.run()


def test_a_false_assumption():
    h = Hand(grid=(4, 1, 1))
    x = h.special("ctaid.x")
    h.assume(h.compare("lt", x, 3))
    message, at, _ = only(h.fails())
    assert message == "T.assume: the condition is false here; CTA (3, 0, 0), warp 0, lane 0 (and 31 more threads)"
    assert at == h.lines


def test_all_findings_of_an_operation_come_at_once():
    h = Hand()
    s, r = h.alloc("s", (16, 10), "uint16"), h.registers("r", "uint32", 1)
    rows = h.arith("mul", h.lane(), 3)
    h.op(LDMATRIX.format(1), Fragment(((Slot(r, 0),),)), Tile((Address(s, h.arith("mul", rows, 20)),)))
    assert len(h.fails().findings) == 2
