"""Which lane and register holds an element, for every dense mma.sync row, by the manual's published formulas.

Each formula stands in the words of its section "Matrix Fragments for mma.…" of the PTX manual: of register element i in
a lane with group = lane >> 2 and thread = lane % 4. They share nothing with the rows' layouts.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

import pytest

from bench.isa import DENSE
from warpjit.isa.operands import accepts, operand_layout, operand_shape
from warpjit.isa.row import Operand, Row

Formula = Callable[[int, int, int], tuple[int, int]]
"""(group, thread, i) to (row, column) of A and C, or (k, n) of B."""


@dataclass(frozen=True)
class Fragments:
    """The formulas of one section, and how many elements a lane has."""

    a: Formula
    b: Formula
    counts: tuple[int, int]


def _packed(of_a: Formula, of_b: Formula, a: int, b: int) -> Fragments:
    return Fragments(of_a, of_b, (a, b))


def small(n: int) -> Fragments:
    """m8n8k16 (n = 4), m8n8k32 (8) and m8n8k128 (32): one register each."""
    return _packed(
        lambda group, thread, i: (group, thread * n + i % n), lambda group, thread, i: (thread * n + i % n, group), n, n
    )


def half_deep(n: int) -> Fragments:
    """m16n8k16 of 8 bits (n = 4), m16n8k32 of 4 (8), m16n8k128 of 1 (32); m16n8k8 of 16 (2): two registers of A."""
    return _packed(
        lambda group, thread, i: (group if i < n else group + 8, thread * n + i % n),
        lambda group, thread, i: (thread * n + i % n, group),
        2 * n,
        n,
    )


def deep(n: int) -> Fragments:
    """m16n8k32 of 8 bits (n = 4), m16n8k64 of 4 (8), m16n8k256 of 1 (32), m16n8k16 of 16 (2)."""
    return _packed(
        lambda group, thread, i: (
            group if i < n or 2 * n <= i < 3 * n else group + 8,
            thread * n + i % n + (4 * n if i >= 2 * n else 0),
        ),
        lambda group, thread, i: (thread * n + i % n + (4 * n if i >= n else 0), group),
        4 * n,
        2 * n,
    )


DOUBLE_16 = _packed(
    # "row = groupID for ai where i % 2 = 0, groupID + 8 otherwise; col = i / 2 * 4 + threadID_in_group"
    lambda group, thread, i: (group if i % 2 == 0 else group + 8, i // 2 * 4 + thread),
    lambda group, thread, i: (thread + i * 4, group),
    8,
    4,
)

SECTIONS: dict[tuple[str, str], Fragments] = {
    **{("m16n8k16", kind): deep(2) for kind in ("f16", "bf16")},
    **{("m16n8k8", kind): half_deep(2) for kind in ("f16", "bf16")},
    ("m16n8k4", "tf32"): half_deep(1),
    ("m16n8k8", "tf32"): deep(1),
    ("m8n8k4", "f64"): small(1),
    ("m16n8k4", "f64"): half_deep(1),
    ("m16n8k8", "f64"): deep(1),
    ("m16n8k16", "f64"): DOUBLE_16,
    **{
        key: section
        for kind, n, sizes in (("8", 4, (16, 16, 32)), ("4", 8, (32, 32, 64)), ("1", 32, (128, 128, 256)))
        for sign in ("b" if kind == "1" else "su")
        for key, section in (
            ((f"m8n8k{sizes[0]}", sign + kind), small(n)),
            ((f"m16n8k{sizes[1]}", sign + kind), half_deep(n)),
            ((f"m16n8k{sizes[2]}", sign + kind), deep(n)),
        )
    },
    **{("m16n8k16", kind): half_deep(4) for kind in ("e4m3", "e5m2")},
    **{("m16n8k32", kind): deep(4) for kind in ("e4m3", "e5m2")},
}

BITS = {"f16": 16, "bf16": 16, "tf32": 32, "f64": 64, "e4m3": 8, "e5m2": 8, "f32": 32, "s32": 32}


def bits_of(kind: str) -> int:
    return BITS.get(kind) or int(kind[1:])


def of_sums(group: int, thread: int, i: int) -> tuple[int, int]:
    """c_i of every shape: two neighbours of a row, then those of the row 8 below."""
    return (group if i < 2 else group + 8), thread * 2 + (i & 1)


def of_row(row: Row) -> tuple[str, str, str]:
    """Shape, type of A and type of D in the text."""
    found = re.search(r"\.(m\d+n8k\d+)\.row\.col(?:\.satfinite)?\.(\w+)\.(\w+)\.", row.text)
    assert found is not None
    return found[1], found[3], found[2]


def held(operand: Operand, kind: str, formula: Callable[[int, int], tuple[int, int]], count: int) -> None:
    """Element (row, column) of the operand, as it stands in its matrix, is register element i of the lane."""
    layout = operand.layout
    assert layout is not None and operand.dtype is not None
    packed = operand.dtype.bits // bits_of(kind)
    assert operand.registers * packed == count
    seen = set()
    for lane in range(32):
        for i in range(count):
            row, column = formula(lane, i)
            place = layout.apply(row, column // packed, shape=operand.shape)
            assert (place.get("laneid", 0), place.get("m", 0)) == (lane, i // packed), (operand.name, row, column)
            # Neighbours in a register count upwards from the low bits.
            assert column % packed == i % packed
            seen.add((row, column))
    assert len(seen) == operand.shape[0] * operand.shape[1] * packed == 32 * count


@pytest.mark.parametrize("row", DENSE, ids=lambda row: row.text.removeprefix("mma.sync.aligned."))
def test_lane_maps_are_the_manuals(row: Row) -> None:
    shape, inputs, result = of_row(row)
    section = SECTIONS[shape, inputs]
    held(row.operand("A"), inputs, lambda lane, i: section.a(lane >> 2, lane % 4, i), section.counts[0])
    # B stands as (n, k); the manual speaks of (k, n).
    held(row.operand("B"), inputs, lambda lane, i: section.b(lane >> 2, lane % 4, i)[::-1], section.counts[1])
    for name in "DC":
        held(row.operand(name), result, lambda lane, i: of_sums(lane >> 2, lane % 4, i), 4 if "m16" in shape else 2)


@pytest.mark.parametrize("row", DENSE, ids=lambda row: row.text.removeprefix("mma.sync.aligned."))
def test_operands_in_elements(row: Row) -> None:
    """Types and shapes in the text are those of the operands in elements; element layouts refine those of words."""
    shape, left, result = of_row(row)
    right = row.text.removesuffix(".and.popc").removesuffix(".xor.popc").split(".")[-2]
    m, k = (int(each) for each in re.fullmatch(r"m(\d+)n8k(\d+)", shape).groups())  # type: ignore[union-attr]
    for name, kind, sizes in (("D", result, (m, 8)), ("A", left, (m, k)), ("B", right, (8, k)), ("C", result, (m, 8))):
        operand = row.operand(name)
        assert operand.dtype is not None
        element = operand.element or operand.dtype
        assert element.ptx == kind
        assert accepts(operand, element) and accepts(operand, operand.dtype)
        assert operand_shape(row, name, element=True) == (*(1,) * len(operand.repeats), *sizes)
        packed = operand.packed
        own = operand_layout(row, name, M=2, N=3, K=2, element=True)
        places = own.enumerate(operand_shape(row, name, M=2, N=3, K=2, element=True))
        words = operand_layout(row, name, M=2, N=3, K=2).enumerate(operand_shape(row, name, M=2, N=3, K=2))
        for part in range(packed):
            assert (places["laneid"][..., part::packed] == words["laneid"]).all()
            assert (places["m"][..., part::packed] == packed * words["m"] + part).all()


def test_there_is_a_row_for_everything_dense() -> None:
    assert len(DENSE) == 82
    by_type: dict[str, int] = {}
    for row in DENSE:
        kind = of_row(row)[1]
        by_type[kind] = by_type.get(kind, 0) + 1
    integers = {"s8": 12, "u8": 12, "s4": 12, "u4": 12, "b1": 6}
    assert by_type == {"f16": 4, "bf16": 2, "tf32": 2, "f64": 4, "e4m3": 8, "e5m2": 8, **integers}


@pytest.mark.parametrize("kind", ["s4", "u4", "e4m3", "e5m2", "xor"])
def test_what_sm_90_replaces_says_so(kind: str) -> None:
    found = [row for row in DENSE if f".{kind}." in row.text]
    assert found and all(re.match(r"on sm_90( and \w+)? the compiler replaces it by", row.notes) for row in found)
