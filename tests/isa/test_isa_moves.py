"""movmatrix, and ldmatrix and stmatrix of bytes and smaller elements: each lane's registers by the manual's figures."""

from __future__ import annotations

import numpy as np
import pytest

from warpjit.isa import matrix_move_bytes
from warpjit.isa.row import Array, Row
from warpjit.isa.table import lookup

MOVMATRIX = "movmatrix.sync.aligned.m8n8.trans.b16"


def run(row: Row, *inputs: Array) -> Array:
    assert row.meaning is not None
    result: Array = row.meaning(*inputs)
    return result


def test_movmatrix_transposes_halves() -> None:
    row = lookup(MOVMATRIX)
    registers = np.random.default_rng(1).integers(0, 2**32, (3, 32, 1)).astype(np.uint32)
    result = run(row, registers)
    halves = registers.view(np.uint16)  # lane l holds row l // 4, columns 2 * (l % 4) and the next
    for batch in range(3):
        matrix = halves[batch].reshape(8, 8)
        for lane in range(32):
            low, high = matrix[2 * (lane % 4), lane // 4], matrix[2 * (lane % 4) + 1, lane // 4]
            assert result[batch, lane, 0] == int(low) | int(high) << 16
    assert (run(row, result) == registers).all()
    assert row.pure and row.moves and row.tile and not row.memory


def elements(octets: Array, bits: int) -> list[int]:
    """Sixteen elements of `bits` bits from the low end of 16 bytes."""
    number = int.from_bytes(octets.tobytes(), "little")
    return [number >> bits * index & (1 << bits) - 1 for index in range(16)]


FORMATS = {"b8x16.b6x16_p32": 6, "b8x16.b4x16_p64": 4, "b8": 8}


@pytest.mark.parametrize("row", matrix_move_bytes.ROWS, ids=lambda row: row.text)
def test_lane_maps_by_the_figures(row: Row) -> None:
    name, _, _, shape, count, *_ = row.text.split(".")
    num = int(count[1:])
    rng = np.random.default_rng(2)
    if name == "stmatrix":
        registers = rng.integers(0, 2**32, (2, 32, num)).astype(np.uint32)
        octets = run(row, registers)
        assert octets.shape == (2, 32, 16)
        for batch, mat, lane, byte in np.ndindex(2, num, 32, 4):
            line, column = 2 * (lane % 4) + byte % 2, lane // 4 + 8 * (byte // 2)
            assert octets[batch, 8 * mat + line, column] == registers[batch, lane, mat] >> 8 * byte & 255
        assert (octets == octets[:, np.arange(32) % (8 * num)]).all()  # lanes beyond the rows repeat them
        return
    bits = next(bits for ending, bits in FORMATS.items() if row.text.endswith("." + ending))
    octets = rng.integers(0, 256, (2, 32, 16)).astype(np.uint8)
    result = run(row, octets)
    per = 2 if shape == "m16n16" else 1
    assert result.shape == (2, 32, per * num) and result.dtype == np.uint32
    height = 8 * per
    for batch, mat, half, lane, byte in np.ndindex(2, num, per, 32, 4):
        if shape == "m8n16":
            line, column = lane // 4, 4 * (lane % 4) + byte
        else:
            line, column = 4 * (lane % 4) + byte, lane // 4 + 8 * half
        want = elements(octets[batch, height * mat + line], bits)[column]
        assert result[batch, lane, per * mat + half] >> 8 * byte & 255 == want


def test_what_the_byte_forms_say() -> None:
    assert len(matrix_move_bytes.ROWS) == 2 * (3 * 2 + 2 * 3 + 3)
    assert all(row.unverified and not row.tile for row in matrix_move_bytes.ROWS)
    assert lookup("ldmatrix.sync.aligned.m16n16.x2.trans.shared.b8").operand("d").registers == 4
    assert lookup("stmatrix.sync.aligned.m16n8.x4.trans.shared.b8").operand("a").registers == 4
