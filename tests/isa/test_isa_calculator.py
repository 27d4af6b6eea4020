"""The calculator: its answers against the manual's formulas, each function against its inverse, and its refusals."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from math import prod

import numpy as np
import pytest

import warpjit
from warpjit import isa
from warpjit.isa.calculator import Place, has_rows
from warpjit.isa.row import Kind, Operand, Row
from warpjit.isa.sparse_metadata import Metadata
from warpjit.isa.table import rows

HALVES = "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32"
LOAD = "ldmatrix.sync.aligned.m8n8.x4.shared.b16"


# ---- the manual's formulas, "Matrix Fragments for mma.m16n8k16 with floating point type" --------------------------


def manual_a(lane: int, i: int) -> tuple[int, int]:
    group, thread = lane >> 2, lane % 4
    row = group if i < 2 or 4 <= i < 6 else group + 8
    return row, thread * 2 + (i & 1) + (8 if i >= 4 else 0)


def manual_b(lane: int, i: int) -> tuple[int, int]:
    """(n, k): the manual's column and row."""
    return lane >> 2, lane % 4 * 2 + (i & 1) + (8 if i >= 2 else 0)


def manual_c(lane: int, i: int) -> tuple[int, int]:
    return (lane >> 2) + (8 if i >= 2 else 0), lane % 4 * 2 + (i & 1)


@pytest.mark.parametrize(
    ("operand", "formula", "elements", "bits"),
    [("A", manual_a, 8, 16), ("B", manual_b, 4, 16), ("C", manual_c, 4, 32), ("D", manual_c, 4, 32)],
)
def test_the_answers_are_the_manuals(operand, formula, elements, bits):
    packed = 32 // bits
    for lane, i in product(range(32), range(elements)):
        low = i % packed * bits
        assert isa.where(HALVES, operand, *formula(lane, i)) == Place(
            lane, i // packed, (low, low + bits - 1), formula(lane, i)
        )


def test_coordinates_may_be_named_in_any_order():
    assert isa.where(HALVES, "B", k=9, n=3) == isa.where(HALVES, "B", 3, 9)
    assert isa.giver(LOAD, "src", row=3, matrix=1) == isa.giver(LOAD, "src", 1, 3)


def test_modifiers_may_stand_in_any_order_and_a_row_stands_for_its_text():
    shuffled = "mma.sync.m16n8k16.aligned.row.col.f32.f16.f16.f32"
    assert isa.where(shuffled, "A", 5, 9) == isa.where(isa.lookup(HALVES), "A", 5, 9) == isa.where(HALVES, "A", 5, 9)


# ---- metadata: "Matrix Fragments for sparse mma.m16n8k32 with .f16 and .bf16 types" and its neighbours -------------


def manual_halves(row: int, group: int) -> tuple[int, int]:
    """Lane and lowest bit with selector 0: four groups of row i, then of row i + 8, in each of two lanes."""
    return 4 * (row % 8) + group // 4, 16 * (row // 8) + 4 * (group % 4)


def manual_bytes(row: int, group: int) -> tuple[int, int]:
    """m16n8k64: eight groups a lane; row i in the even lanes of a quad, row i + 8 in the odd ones."""
    return 4 * (row % 8) + 2 * (group // 8) + row // 8, 4 * (group % 8)


@pytest.mark.parametrize(
    ("text", "formula", "groups", "copies"),
    [
        ("mma.sp.sync.aligned.m16n8k32.row.col.f32.f16.f16.f32", manual_halves, 8, {0: 0, 1: 2}),
        ("mma.sp.sync.aligned.m16n8k16.row.col.f32.tf32.tf32.f32", manual_halves, 8, {0: 0, 1: 2}),
        ("mma.sp.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32", manual_halves, 4, {0: 0, 1: 1, 2: 2, 3: 3}),
        ("mma.sp.sync.aligned.m16n8k64.row.col.s32.s8.s8.s32", manual_bytes, 16, {0: 0}),
        ("mma.sp.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32", manual_bytes, 8, {0: 0, 1: 2}),
    ],
)
def test_a_group_of_metadata_is_where_the_manual_has_it(text, formula, groups, copies):
    for row, group in product(range(16), range(groups)):
        first = isa.where(text, "E", row, group)
        lane, bit = formula(row, group)
        found = {each.selector: (each.lane, each.bits) for each in (first, *first.others)}
        assert found == {selector: (lane + step, (bit, bit + 3)) for selector, step in copies.items()}
    with pytest.raises(warpjit.InstructionError, match=f"expected m in 0 to 15, group in 0 to {groups - 1}"):
        isa.where(text, "E", 0, groups)


def test_metadata_of_each_row_says_the_same_as_the_packed_words():
    """Every mma.sp: setting the bits of one group in zeros is seen by the row's own reading as that group's codes."""
    for row in isa.listed():
        if not row.text.startswith("mma.sp"):
            continue
        a = row.operand("A")
        metadata = Metadata.of(a.element or a.dtype, a.shape[-1])
        for element in ((0, 0), (7, 1), (8, metadata.stored // 2 - 1), (15, 2)):
            first = isa.where(row, "E", *element)
            for place in (first, *first.others):
                words = np.zeros((32, 1), np.uint32)
                words[place.lane] = 0b1110 << place.bits[0]
                codes = metadata.codes(words.reshape(8, 4), place.selector)
                assert [tuple(each) for each in np.argwhere(codes)] == [
                    (element[0], 2 * element[1]), (element[0], 2 * element[1] + 1)
                ]  # fmt: skip


# ---- each function and its inverse, over the whole table ---------------------------------------------------


def distinct(kind: Kind) -> Iterator[tuple[Row, Operand]]:
    """One operand of each sort: rows of a family share layouts."""
    seen = set()
    for row in rows():
        for operand in row.operands:
            sort = (operand.shape, operand.layout, operand.dtype, operand.element)
            if operand.kind is kind and operand.layout is not None and sort not in seen:
                seen.add(sort)
                yield row, operand


def named(pair: tuple[Row, Operand]) -> str:
    return f"{pair[0].text}-{pair[1].name}"


@pytest.mark.parametrize("pair", list(distinct(Kind.FRAGMENT)), ids=named)
def test_what_a_register_holds_is_where_it_is(pair):
    row, operand = pair
    seen = 0
    for lane, register in product(range(32), range(operand.registers)):
        held = isa.holds(row, operand.name, lane, register)
        for place in held:
            found = isa.where(row, operand.name, *place.element)
            everywhere = {(each.lane, each.register, each.bits) for each in (found, *found.others)}
            assert (lane, register, place.bits) in everywhere
            assert (place.lane, place.register) == (lane, register)
        assert [each.bits for each in held] == sorted(each.bits for each in held)
        seen += len(held)
    copies = len(isa.where(row, operand.name, *(0 for _ in operand.held.shape)).others) + 1
    assert seen == prod(operand.held.shape) * copies


@pytest.mark.parametrize("pair", list(distinct(Kind.ADDRESS)), ids=named)
def test_the_row_that_a_lane_gives_is_given_by_it(pair):
    row, operand = pair
    assert has_rows(operand)
    shape = operand.shape[:-1]
    for line in product(*map(range, shape)):
        address = isa.giver(row, operand.name, *line)
        assert address.row == line
        assert address in isa.given(row, operand.name, address.lane)
    assert sum(len(isa.given(row, operand.name, lane)) for lane in range(32)) == prod(shape)


def test_lanes_give_addresses_in_the_manuals_order():
    # Section "ldmatrix": threads 0-7 give the rows of the first matrix, 8-15 those of the second, and so on.
    assert [isa.given(LOAD, "src", lane)[0].row for lane in range(32)] == [(lane // 8, lane % 8) for lane in range(32)]
    assert isa.given("ldmatrix.sync.aligned.m8n8.x2.shared.b16", "src", 16) == ()


# ---- the list ------------------------------------------------------------------------------------------------


def test_the_list_is_filtered_by_target_and_type():
    everything = isa.listed()
    assert isa.lookup(HALVES) in everything
    assert not [row.text for row in everything if row.text.startswith(("store.", "load."))], "those are assignments"
    old = isa.listed("sm_75")
    assert isa.lookup(HALVES) not in old
    assert isa.lookup("mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32") in old
    brain = isa.listed(dtype="bf16")
    assert brain == isa.listed(dtype="bfloat16") != ()
    assert all("bf16" in row.text for row in brain if row.text.startswith("mma"))
    assert isa.listed("sm_75", "bf16") == tuple(row for row in brain if row in old)


def test_every_type_of_the_manual_is_known():
    tf32 = isa.listed(dtype="tf32")
    assert tf32
    assert all("tf32.tf32" in row.text for row in tf32)
    assert isa.listed(dtype="b1") == isa.listed(dtype="uint1") != ()
    assert all(".popc" in row.text for row in isa.listed(dtype="b1"))
    assert isa.lookup(LOAD) in isa.listed(dtype="b16")
    assert {"e2m1" in row.text.split(".") for row in isa.listed(dtype="e2m1")} == {True}
    assert isa.listed(dtype="e4m3") == isa.listed(dtype="float8_e4m3fn")
    assert isa.listed(dtype="s16") == ()  # a type that no instruction of the table has


def test_the_names_of_axes():
    sparse = next(row for row in isa.listed() if row.text.startswith("mma.sp"))
    assert (sparse.operand("E").axes, sparse.operand("E").held.names) == (("quad", "word"), ("m", "group"))
    load = isa.lookup(LOAD)
    assert load.operand("d").axes == ("matrix", "row", "column")
    assert [operand.axes for operand in isa.lookup(HALVES).operands] == [
        ("m", "n"), ("m", "k"), ("n", "k"), ("m", "n")
    ]  # fmt: skip


# ---- refusals --------------------------------------------------------------------------------------------------

REFUSED = {
    "outside": (lambda: isa.where(HALVES, "A", 16, 0), "operand A: expected m in 0 to 15, k in 0 to 15 but got 16, 0"),
    "negative": (lambda: isa.where(HALVES, "A", 0, -1), "expected m in 0 to 15, k in 0 to 15 but got 0, -1"),
    "too few": (lambda: isa.where(HALVES, "B", 3), "expected n in 0 to 7, k in 0 to 15 but got 3"),
    "none": (lambda: isa.where(HALVES, "B"), "but got nothing"),
    "mixed": (lambda: isa.where(HALVES, "B", 3, k=3), "but got 3, k=3"),
    "a parameter's name": (lambda: isa.where(HALVES, "B", operand=3, instr=3), "but got operand=3, instr=3"),
    "other name": (lambda: isa.where(HALVES, "B", n=3, column=3), "but got n=3, column=3"),
    "no int": (lambda: isa.where(HALVES, "B", 3, 1.0), "but got 3, 1.0"),
    "bool": (lambda: isa.where(HALVES, "B", 3, True), "but got 3, True"),
    "operand": (lambda: isa.where(HALVES, "E", 0, 0), "has no operand 'E'; its operands are D, A, B, C"),
    "text": (lambda: isa.where("mma.sync.aligned.m16n8k17", "A", 0, 0), "has no modifier '.m16n8k17'"),
    "no fragment": (lambda: isa.where(LOAD, "src", 0, 0, 0), "src is of kind address, not a fragment"),
    "lane": (lambda: isa.holds(HALVES, "A", 32, 0), "expected a lane in 0 to 31 but got 32"),
    "register": (lambda: isa.holds(HALVES, "A", 0, 4), "expected a register in 0 to 3 but got 4"),
    "no rows": (
        lambda: isa.giver(HALVES, "A", 0),
        "A is of kind fragment and has no rows that lanes give addresses of",
    ),
    "row": (lambda: isa.giver(LOAD, "src", 4, 0), "expected matrix in 0 to 3, row in 0 to 7 but got 4, 0"),
    "giving lane": (lambda: isa.given(LOAD, "src", -1), "expected a lane in 0 to 31 but got -1"),
    "type": (lambda: isa.listed(dtype="f17"), "expected a data type such as bf16 but got 'f17'"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_does_not_exist_is_refused_with_a_sentence(case):
    ask, sentence = REFUSED[case]
    with pytest.raises(warpjit.InstructionError) as error:
        ask()
    assert sentence in str(error.value)


def test_an_unknown_target_is_refused():
    with pytest.raises(warpjit.TargetError, match="expected a target of the form"):
        isa.listed("sm90")


def test_an_unknown_name_of_the_package_is_an_attribute_error():
    with pytest.raises(AttributeError, match="no attribute 'wheer'"):
        isa.wheer  # noqa: B018
    assert {"where", "holds", "listed"} <= set(dir(isa))
