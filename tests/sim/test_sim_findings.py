"""Broken kernels: accesses out of bounds or misaligned, unwritten values, division by zero, false promises."""

from __future__ import annotations

import numpy as np
import pytest
from sim_kernels import Hand, const, only

from warpjit.ir.dtypes import float32, int32, uint32
from warpjit.ir.nodes import Address, Fragment, Slot, Tile
from warpjit.isa.memory import LOAD, STORE
from warpjit.isa.scalar import ARITHMETIC, MOVE
from warpjit.isa.table import lookup

LDMATRIX = "ldmatrix.sync.aligned.m8n8.x{}.shared.b16"
WAIT, COMMIT, COPY = "cp.async.wait_group", "cp.async.commit_group", "cp.async.cg.shared.global"


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
    h.op(COPY, h.at(s, 0), h.at(a, 4), None, None, params=(("size", 16),), predicate=h.compare("eq", h.lane(), 0))
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
    seven = const(7, lookup("insert.b16").operands[2].dtype)
    h.op("insert.b16", Slot(r, 0), Slot(r, 0), seven, None, params=(("index", 0),))
    low = h.value("extract.b16", Slot(r, 0), None, params=(("index", 0),))
    h.store(out, low, h.lane())
    result = np.zeros(32, np.uint16)
    h.run(result)
    assert (result == 7).all()
    high = h.value("extract.b16", Slot(r, 0), None, params=(("index", 1),))
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
