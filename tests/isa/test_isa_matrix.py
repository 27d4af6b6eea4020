"""ldmatrix, stmatrix: lane maps by the manual and what they do; operands of mma.sync with repeats and in elements."""

from __future__ import annotations

import numpy as np
import pytest

from warpjit.ir.dtypes import DTYPES
from warpjit.isa import matrix_move
from warpjit.isa.operands import operand_layout, operand_shape
from warpjit.isa.row import Array, Operand
from warpjit.isa.table import lookup
from warpjit.layout import S, TileLayout, laneid

K16 = "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32"
K8 = "mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32"


def holder(operand: Operand, *coordinates: int) -> tuple[int, int]:
    """(lane, register) of an element by the operand's layout."""
    assert operand.layout is not None
    place = operand.layout.apply(*coordinates, shape=operand.shape)
    return place.get("laneid", 0), place.get("m", 0)


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
