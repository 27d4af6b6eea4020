"""Proofs of fragment operands: what they accept, what they answer, and the sentence about what they refuse."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from warpjit.errors import InstructionError
from warpjit.ir.dtypes import DType, bfloat16, float16, float32, float64, int32, uint16, uint32
from warpjit.isa.operands import Group, operand_layout, operand_shape
from warpjit.isa.proof import Placement, prove
from warpjit.isa.row import Kind, Operand, Row
from warpjit.isa.table import lookup, rows
from warpjit.layout import ComposeLayout, Layout, R, S, TileLayout, laneid, tid_in_wg, tx, warpid, wgid, wid_in_wg

MMA = lookup("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32")
LOAD = lookup("ldmatrix.sync.aligned.m8n8.x4.shared.b16")
ONE = Group()
A = TileLayout(S[(2, 8, 2, 4) : (1, 4 @ laneid, 2, 1 @ laneid)])


def refusal(
    name: str,
    layout: Layout,
    shape: tuple[int, ...],
    dtype: DType = uint32,
    registers: int = 64,
    group: Group = ONE,
) -> str:
    with pytest.raises(InstructionError) as caught:
        prove(MMA, name, layout, shape, dtype, registers, group)
    said = str(caught.value)
    assert said.startswith(f"{MMA.text}: operand {name}: ")
    return said


FRAGMENTS = [(row, operand) for row in rows() for operand in row.operands if operand.kind is Kind.FRAGMENT]
ALIKE = {replace(operand, name=""): (row, operand) for row, operand in FRAGMENTS}
"""One of the operands that differ in their names only: what is proven depends on nothing else of a row."""
VIEWS = [
    (element, batch, group)
    for element in (False, True)
    for batch in ((), (2,), (2, 3))
    for group in (ONE, Group("warpgroup"), Group("cta", 8))
]


def check_own_layout(row: Row, operand: Operand, element: bool, batch: tuple[int, ...], group: Group) -> None:
    counts = {"M": 2, "N": 3, "K": 2}
    repeats = (*batch, *(counts[axis] for axis in operand.repeats))
    shape = operand_shape(row, operand.name, batch=batch, element=element, group=group, **counts)
    layout = operand_layout(row, operand.name, batch=batch, element=element, group=group, **counts)
    dtype = (operand.element if element else None) or operand.dtype
    assert dtype is not None
    count = operand.registers * int(np.prod(repeats, dtype=int))
    found = prove(row, operand.name, layout, shape, dtype, count, group)
    assert found.repeats == repeats
    assert found.slots.tolist() == np.arange(count).reshape(-1, operand.registers).tolist()


@pytest.mark.parametrize(("row", "operand"), ALIKE.values(), ids=lambda part: getattr(part, "text", None) or part.name)
def test_an_own_layout_is_proven_in_every_view(row: Row, operand: Operand) -> None:
    for view in VIEWS:
        check_own_layout(row, operand, *view)


def test_every_own_layout_is_proven() -> None:
    for number, (row, operand) in enumerate(FRAGMENTS):
        for element in (False, True):
            _, *view = VIEWS[number % len(VIEWS)]
            check_own_layout(row, operand, element, *view)


def test_repeat_axes_may_be_missing() -> None:
    found = prove(MMA, "A", A, (16, 8), uint32, 4, ONE)
    assert found.repeats == (1, 1)
    assert found.slots.tolist() == [[0, 1, 2, 3]]
    assert prove(LOAD, "d", operand_layout(LOAD, "d"), (4, 8, 4), uint32, 4, ONE).repeats == ()
    assert "(*batch, M, K, 16, 8), but got (1, 16, 8)" in refusal("A", A, (1, 16, 8))


def test_slots_follow_the_layout() -> None:
    # Registers of A in another order, from slot 3 on, and K outermost.
    layout = TileLayout(S[(2, 2, 2, 8, 2, 4) : (4, 8, 2, 4 @ laneid, 1, 1 @ laneid)] + 3)
    found = prove(MMA, "A", layout, (2, 2, 16, 8), uint32, 19, ONE)
    assert found.slots.tolist() == [[3, 5, 4, 6], [11, 13, 12, 14], [7, 9, 8, 10], [15, 17, 16, 18]]
    assert not found.slots.flags.writeable


def test_answers_are_remembered() -> None:
    def again() -> Placement:
        layout = TileLayout(S[(1, 1, 2, 8, 2, 4) : (4, 4, 1, 4 @ laneid, 2, 1 @ laneid)])
        return prove(MMA, "A", layout, (1, 1, 16, 8), uint32, 4, ONE)

    assert again() is again()


def test_reading_operands_may_share_slots_but_written_ones_may_not() -> None:
    shared = TileLayout(S[(2, 2, 8, 2, 4) : (0, 1, 4 @ laneid, 2, 1 @ laneid)])
    assert prove(MMA, "A", shared, (2, 1, 16, 8), uint32, 4, ONE).slots.tolist() == [[0, 1, 2, 3]] * 2
    twice = TileLayout(S[(2, 2, 8, 4, 2) : (0, 2, 4 @ laneid, 1 @ laneid, 1)])
    said = refusal("D", twice, (2, 1, 16, 8), float32)
    assert "register 0 would be written twice: as register 0 of issue 0 and as register 0 of issue 1" in said


def test_a_wrong_lane_is_shown_on_one_element() -> None:
    said = refusal("A", TileLayout(S[(2, 8, 8) : (8, 4 @ laneid, 1)]), (16, 8))
    assert (
        "element (0, 1) is in lane 0, register 1 of the view, but the instruction reads it in lane 1, register 0"
        in said
    )
    assert f"own layout for shape (16, 8) is {operand_layout(MMA, 'A')!r}" in said
    said = refusal("D", TileLayout(S[(2, 8, 2, 4) : (2, 4 @ laneid, 1, 1 @ laneid)]), (16, 8), float32)
    assert "the instruction writes it in lane 0, register 1" in said


def test_registers_may_be_swizzled_and_lanes_split() -> None:
    swizzled = ComposeLayout(0, 1, 2, TileLayout(S[(2, 8, 2, 4) : (4, 4 @ laneid, 1, 1 @ laneid)]))
    assert prove(MMA, "A", swizzled, (16, 8), uint32, 8, ONE).slots.tolist() == [[0, 5, 1, 4]]
    lanes = TileLayout(S[(2, 2, 4, 2, 4) : (1, 16 @ laneid, 4 @ laneid, 2, 1 @ laneid)])
    assert prove(MMA, "A", lanes, (16, 8), uint32, 4, ONE).slots.tolist() == [[0, 1, 2, 3]]


def test_two_elements_of_a_register_must_be_neighbours() -> None:
    packed = TileLayout(S[(2, 8, 2, 4, 2) : (2, 4 @ laneid, 4, 1 @ laneid, 1)])
    assert prove(MMA, "A", packed, (16, 16), float16, 4, ONE).slots.tolist() == [[0, 1, 2, 3]]
    apart = TileLayout(S[(2, 8, 2, 4, 2) : (1, 4 @ laneid, 2, 1 @ laneid, 4)])
    said = refusal("A", apart, (16, 16), float16)
    assert "element (0, 1) is element 4 of its lane's registers, so number 0 within its register, but the" in said
    odd = TileLayout(S[(2, 8, 2, 4, 2) : (2, 4 @ laneid, 4, 1 @ laneid, 1)] + 1)
    assert "so number 1 within its register, but the instruction wants it as number 0" in refusal(
        "A", odd, (16, 16), float16
    )
    split = TileLayout(S[(2, 8, 2, 4, 2) : (2, 4 @ laneid, 4, 1 @ laneid, 3)])
    assert "takes both from one register (its number 0), the same in all lanes" in refusal(
        "A", split, (16, 16), float16
    )


def test_types() -> None:
    assert prove(MMA, "A", A, (16, 8), int32, 4, ONE).repeats == (1, 1)
    own = operand_layout(MMA, "A", element=True)
    assert prove(MMA, "A", own, (1, 1, 16, 16), float16, 4, ONE).repeats == (1, 1)
    said = refusal("A", own, (1, 1, 16, 16), bfloat16)
    assert "expected 32-bit registers, or float16 elements, but got a view of bfloat16" in said
    assert "expected 32-bit registers, but got a view of float64" in refusal("D", A, (16, 8), float64)
    # ldmatrix moves any 16-bit elements.
    for dtype in (float16, bfloat16, uint16):
        layout, shape = operand_layout(LOAD, "d", element=True), operand_shape(LOAD, "d", element=True)
        assert prove(LOAD, "d", layout, shape, dtype, 4, ONE).slots.tolist() == [[0, 1, 2, 3]]


def test_replicas_sizes_and_allocations_are_checked() -> None:
    assert "has replicas" in refusal(
        "A", TileLayout(S[(2, 8, 2, 4) : (1, 4 @ laneid, 2, 1 @ laneid)] + R[2:4]), (16, 8)
    )
    assert "has 64 elements, but the shape (16, 8) has 128" in refusal("A", TileLayout(S[64:1]), (16, 8))
    said = refusal("A", A, (16, 8), registers=3)
    assert "register 3 of issue 0 is slot 3 of the view, but the allocation has 3 registers" in said
    with pytest.raises(InstructionError, match="operand src is of kind address, not a fragment"):
        prove(LOAD, "src", A, (4, 8, 4), uint32, 4, ONE)


@pytest.mark.parametrize(
    ("group", "layout"),
    [
        (Group("warpgroup"), S[(4, 2, 8, 2, 4) : (1 @ wid_in_wg, 1, 4 @ laneid, 2, 1 @ laneid)]),
        (Group("warpgroup"), S[(4, 2, 8, 2, 4) : (1 @ warpid, 1, 4 @ laneid, 2, 1 @ laneid)]),
        (Group("warpgroup"), S[(4, 2, 8, 2, 4) : (32 @ tid_in_wg, 1, 4 @ tid_in_wg, 2, 1 @ tid_in_wg)]),
        (Group("cta", 4), S[(4, 2, 8, 2, 4) : (1 @ warpid, 1, 4 @ laneid, 2, 1 @ laneid)]),
        (Group("cta", 4), S[(4, 2, 8, 2, 4) : (32 @ tx, 1, 4 @ tx, 2, 1 @ tx)]),
        (Group("cta", 8), S[(2, 4, 2, 8, 2, 4) : (1 @ wgid, 1 @ wid_in_wg, 1, 4 @ laneid, 2, 1 @ laneid)]),
    ],
)
def test_group_axes_bind_warps(group: Group, layout: object) -> None:
    found = prove(MMA, "A", TileLayout(layout), (*group.extents, 16, 8), uint32, 4, group)  # type: ignore[arg-type]
    assert found.slots.tolist() == [[0, 1, 2, 3]]
    assert found.repeats == (1, 1)


def test_wrong_warps_are_shown() -> None:
    backwards = TileLayout(S[(2, 2, 2, 8, 2, 4) : (1 @ warpid, 2 @ warpid, 1, 4 @ laneid, 2, 1 @ laneid)])
    said = refusal("A", backwards, (4, 16, 8), group=Group("cta", 4))
    assert "element (1, 0, 0) is in warp 2 of the view, but belongs to warp 1 of the cta" in said
    said = refusal("A", TileLayout(S[(2, 8, 2, 4) : (1, 4 @ laneid, 2, 1 @ laneid)] + 1 @ warpid), (16, 8))
    assert "is in warp 1 of the view, but belongs to warp 0 (a single warp executes the instruction)" in said
    with pytest.raises(InstructionError, match="scope 'thread' does not hold whole warps"):
        Group("thread")
    assert "expected a view of shape (4, *batch, M, K, 16, 8)" in refusal("A", A, (16, 8), group=Group("warpgroup"))


@settings(max_examples=60, deadline=None)
@given(st.data())
def test_only_the_right_lane_map_passes(data: st.DataObject) -> None:
    """Exchanging two strides of the atom's layout keeps its size; the proof accepts it iff the lane map is the same."""
    name = data.draw(st.sampled_from("DABC"))
    own = operand_layout(MMA, name)
    strides = [(each.stride, each.axis) for each in own.shard]
    i, j = (data.draw(st.integers(2, len(strides) - 1)) for _ in range(2))
    strides[i], strides[j] = strides[j], strides[i]
    layout = TileLayout(S[own.extents : tuple(stride @ axis for stride, axis in strides)])
    shape, dtype = operand_shape(MMA, name), MMA.operand(name).dtype
    assert dtype is not None
    owners = [each.enumerate(shape)["laneid"] for each in (layout, own)]
    if (owners[0] == owners[1]).all():
        slots = prove(MMA, name, layout, shape, dtype, 64, ONE).slots
        assert sorted(slots.ravel().tolist()) == list(range(MMA.operand(name).registers))
    else:
        first = tuple(int(each) for each in np.argwhere(owners[0] != owners[1])[0])
        assert f"element {first} is in lane {owners[0][first]}, " in refusal(name, layout, shape, dtype)


def test_repeats_must_be_counts() -> None:
    with pytest.raises(InstructionError, match="repeats are at least 1, but got M=0, K=1"):
        operand_layout(MMA, "A", M=0)
