"""ldmatrix, stmatrix and mma.sync: lane maps by the manual's formulas, and what the instructions compute."""

from __future__ import annotations

import numpy as np
import pytest

from warpjit.ir.dtypes import DTYPES, float32
from warpjit.isa import matrix_move, mma_floats
from warpjit.isa.operands import operand_layout, operand_shape
from warpjit.isa.row import Array, Operand, Row
from warpjit.isa.table import lookup
from warpjit.layout import S, TileLayout, laneid

K16 = "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32"
K8 = "mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32"


def holder(operand: Operand, *coordinates: int) -> tuple[int, int]:
    """(lane, register) of an element by the operand's layout."""
    assert operand.layout is not None
    place = operand.layout.apply(*coordinates, shape=operand.shape)
    return place.get("laneid", 0), place.get("m", 0)


def manual_a(lane: int, i: int) -> tuple[int, int]:
    """Row and column of a_i (PTX manual, "Matrix Fragments for mma.m16n8k16 with floating point type")."""
    group, thread = lane >> 2, lane % 4
    row = group if 0 <= i < 2 or 4 <= i < 6 else group + 8
    return row, thread * 2 + (i & 1) + (8 if i >= 4 else 0)


def manual_b(lane: int, i: int) -> tuple[int, int]:
    """Row (k) and column (n) of b_i."""
    group, thread = lane >> 2, lane % 4
    return thread * 2 + (i & 1) + (8 if i >= 2 else 0), group


def manual_c(lane: int, i: int) -> tuple[int, int]:
    """Row and column of c_i."""
    group, thread = lane >> 2, lane % 4
    return (group if i < 2 else group + 8), thread * 2 + (i & 1)


@pytest.mark.parametrize("text", [K16, K8, K16.replace("f16", "bf16"), K8.replace("f16", "bf16")])
def test_mma_lane_maps_are_the_manuals(text: str) -> None:
    row = lookup(text)
    k = 16 if "k16" in text else 8
    for lane in range(32):
        for i in range(k // 2):
            line, column = manual_a(lane, i)
            assert holder(row.operand("A"), line, column // 2) == (lane, i // 2)
        for i in range(k // 4):
            depth, column = manual_b(lane, i)
            assert holder(row.operand("B"), column, depth // 2) == (lane, i // 2)
        for i in range(4):
            for name in "DC":
                assert holder(row.operand(name), *manual_c(lane, i)) == (lane, i)


def test_operand_layouts_are_those_of_the_guide() -> None:
    """The five layouts that a user of the notation writes by hand for one instruction, and those with repeats."""
    row = lookup(K16)
    x4, x2 = (lookup(f"ldmatrix.sync.aligned.m8n8.x{num}.shared.b16") for num in (4, 2))
    by_hand = {
        operand_layout(x4, "d"): TileLayout(S[(4, 8, 4) : (1, 4 @ laneid, 1 @ laneid)]),
        operand_layout(x2, "d"): TileLayout(S[(2, 8, 4) : (1, 4 @ laneid, 1 @ laneid)]),
        operand_layout(row, "A"): TileLayout(S[(1, 1, 2, 8, 2, 4) : (4, 4, 1, 4 @ laneid, 2, 1 @ laneid)]),
        operand_layout(row, "B"): TileLayout(S[(1, 1, 8, 2, 4) : (2, 2, 4 @ laneid, 1, 1 @ laneid)]),
        operand_layout(row, "D"): TileLayout(S[(1, 1, 2, 8, 4, 2) : (4, 4, 2, 4 @ laneid, 1 @ laneid, 1)]),
    }
    for own, wanted in by_hand.items():
        assert own.equivalent(wanted)
    M, N, K = 3, 2, 5
    repeated = {
        "A": TileLayout(S[(M, K, 2, 8, 2, 4) : (4 * K, 4, 1, 4 @ laneid, 2, 1 @ laneid)]),
        "B": TileLayout(S[(N, K, 8, 2, 4) : (2 * K, 2, 4 @ laneid, 1, 1 @ laneid)]),
        "D": TileLayout(S[(M, N, 2, 8, 4, 2) : (4 * N, 4, 2, 4 @ laneid, 1 @ laneid, 1)]),
    }
    for name, wanted in repeated.items():
        assert operand_layout(row, name, M=M, N=N, K=K).equivalent(wanted)
    short = lookup(K8)
    assert operand_layout(short, "A", M=M, K=K).equivalent(
        TileLayout(S[(M, K, 2, 8, 4) : (2 * K, 2, 1, 4 @ laneid, 1 @ laneid)])
    )
    assert operand_layout(short, "B", N=N, K=K).equivalent(TileLayout(S[(N, K, 8, 4) : (K, 1, 4 @ laneid, 1 @ laneid)]))


def test_element_layouts_put_two_neighbours_into_one_register() -> None:
    row = lookup(K16)
    shape = operand_shape(row, "A", M=2, K=3, element=True)
    assert shape == (2, 3, 16, 16)
    words = operand_layout(row, "A", M=2, K=3).enumerate((2, 3, 16, 8))
    elements = operand_layout(row, "A", M=2, K=3, element=True).enumerate(shape)
    for half in range(2):
        assert (elements["laneid"][..., half::2] == words["laneid"]).all()
        assert (elements["m"][..., half::2] == 2 * words["m"] + half).all()


def in_fragment(operand: Operand, matrix: Array) -> Array:
    """A matrix of registers spread over lanes by the layout: (32, registers)."""
    registers = np.zeros((32, operand.registers), matrix.dtype)
    for where in np.ndindex(*operand.shape):
        registers[holder(operand, *where)] = matrix[where]
    return registers


@pytest.mark.parametrize("row", mma_floats.ROWS[:4], ids=lambda row: row.text)
def test_mma_computes_a_product(row: Row) -> None:
    rng = np.random.default_rng(11)
    inputs = row.operand("A").element
    assert inputs is not None
    k = 2 * row.operand("A").shape[1]
    batch = 3
    left, right = rng.standard_normal((batch, 16, k)), rng.standard_normal((batch, 8, k))
    start = rng.standard_normal((batch, 16, 8)).astype(np.float32)
    a, b = left.astype(inputs.numpy), right.astype(inputs.numpy)
    fragments = [
        np.stack([in_fragment(row.operand("A"), each.view(np.uint32)) for each in a]),
        np.stack([in_fragment(row.operand("B"), each.view(np.uint32)) for each in b]),
        np.stack([in_fragment(row.operand("C"), each) for each in start]),
    ]
    assert row.meaning is not None
    result = row.meaning(*fragments)
    assert result.shape == (batch, 32, 4) and result.dtype == float32.numpy
    exact = a.astype(np.float64) @ b.astype(np.float64).swapaxes(-1, -2) + start
    want = np.stack([in_fragment(row.operand("D"), each) for each in exact])
    assert np.abs(result - want).max() < 2e-5
    # Integers up to 2**24 have no rounding.
    small = [np.where(each > 0, 1, 2).astype(inputs.numpy) for each in (a[0], b[0])]
    exact = small[0].astype(np.float64) @ small[1].astype(np.float64).T
    words = [in_fragment(row.operand(name), each.view(np.uint32)) for name, each in zip("AB", small, strict=True)]
    assert (row.meaning(*words, np.zeros((32, 4), np.float32)) == in_fragment(row.operand("D"), exact)).all()


def halves_of(rows: Array) -> Array:
    """Bytes (32, 16) that lanes address to matrices (4, 8, 8) of 16-bit elements, by the manual: row 8 * mat + row."""
    return np.array([[rows[8 * mat + line].view(np.uint16) for line in range(8)] for mat in range(4)])


@pytest.mark.parametrize("trans", [False, True])
@pytest.mark.parametrize("num", [1, 2, 4])
def test_ldmatrix_by_the_manual(num: int, trans: bool) -> None:
    row = lookup(f"ldmatrix.sync.aligned.m8n8.x{num}{'.trans' if trans else ''}.shared.b16")
    rng = np.random.default_rng(12)
    octets = rng.integers(0, 256, (2, 32, 16)).astype(np.uint8)
    assert row.meaning is not None
    loaded = row.meaning(octets)
    assert loaded.shape == (2, 32, num) and loaded.dtype == np.uint32
    for batch in range(2):
        matrices = halves_of(octets[batch])
        for lane in range(32):
            for mat in range(num):
                matrix = matrices[mat].T if trans else matrices[mat]
                low, high = matrix[lane // 4, 2 * (lane % 4) : 2 * (lane % 4) + 2]
                assert loaded[batch, lane, mat] == int(low) | int(high) << 16


@pytest.mark.parametrize("trans", [False, True])
@pytest.mark.parametrize("num", [1, 2, 4])
def test_stmatrix_is_the_inverse(num: int, trans: bool) -> None:
    ending = f"m8n8.x{num}{'.trans' if trans else ''}.shared.b16"
    load, store = lookup(f"ldmatrix.sync.aligned.{ending}"), lookup(f"stmatrix.sync.aligned.{ending}")
    registers = np.random.default_rng(13).integers(0, 2**32, (5, 32, num)).astype(np.uint32)
    assert store.meaning is not None and load.meaning is not None
    octets = store.meaning(registers)
    assert octets.shape == (5, 32, 16)
    assert (load.meaning(octets) == registers).all()
    for lane in range(32):  # lanes beyond the rows repeat them
        assert (octets[:, lane] == octets[:, lane // 8 % num * 8 + lane % 8]).all()


def test_the_x4_load_puts_registers_where_mma_wants_them() -> None:
    """Matrices in the order (k half, row half) fill the registers of A."""
    load, multiply = lookup("ldmatrix.sync.aligned.m8n8.x4.shared.b16").operand("d"), lookup(K16).operand("A")
    for half, line, word in np.ndindex(2, 8, 8):
        matrix = word // 4 * 2 + half
        assert holder(load, matrix, line, word % 4) == holder(multiply, 8 * half + line, word)


def test_rows_are_as_the_manual_orders_them() -> None:
    assert len(matrix_move.ROWS) == 2 * 3 * 2 * 2 + 1
    store = lookup("stmatrix.sync.aligned.m8n8.x2.trans.shared.b16")
    assert [operand.name for operand in store.operands] == ["dst", "a"]
    assert store.memory and not store.pure and store.tile
    row = lookup(K16)
    assert [operand.name for operand in row.operands] == ["D", "A", "B", "C"]
    assert [operand.repeats for operand in row.operands] == [("M", "N"), ("M", "K"), ("N", "K"), ("M", "N")]
    assert row.pure and not row.memory
    assert row.operand("B").element == DTYPES["float16"]
