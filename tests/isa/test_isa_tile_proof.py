"""Proofs of tiles in memory for ldmatrix and stmatrix."""

from __future__ import annotations

import numpy as np
import pytest

from warpjit.errors import InstructionError
from warpjit.isa.table import lookup
from warpjit.isa.tile_proof import prove_tile
from warpjit.layout import Layout, R, S, TileLayout, laneid, mma_shared_layout

LOAD = lookup("ldmatrix.sync.aligned.m8n8.x4.shared.b16")
STORE = lookup("stmatrix.sync.aligned.m8n8.x4.shared.b16")
PLAIN = TileLayout(S[(4, 8, 4) : (32, 4, 1)])


def refusal(layout: Layout, shape: tuple[int, ...], bits: int = 32, align: int = 16, store: bool = False) -> str:
    row, name = (STORE, "dst") if store else (LOAD, "src")
    with pytest.raises(InstructionError) as caught:
        prove_tile(row, name, layout, shape, bits, align)
    said = str(caught.value)
    assert said.startswith(f"{row.text}: operand {name}: ")
    return said


def test_rows_are_byte_offsets() -> None:
    found = prove_tile(LOAD, "src", PLAIN, (4, 8, 4), 32, 16)
    assert found.repeats == ()
    assert found.rows.tolist() == [list(range(0, 512, 16))]


def test_elements_of_16_bits() -> None:
    layout = TileLayout(S[(4, 8, 8) : (64, 8, 1)])
    assert prove_tile(LOAD, "src", layout, (4, 8, 8), 16, 128).rows.tolist() == [list(range(0, 512, 16))]


def test_padded_interleaved_and_repeated_rows() -> None:
    # A 16 x 16 tile of halves at a pitch of 48 bytes, matrices (k half, row half), two of them.
    layout = TileLayout(S[(2, 2, 2, 8, 4) : (512, 4, 96, 12, 1)])
    found = prove_tile(LOAD, "src", layout, (2, 4, 8, 4), 32, 16)
    want = [
        [
            2048 * issue + 16 * chunk + 48 * (8 * half + line)
            for chunk in range(2)
            for half in range(2)
            for line in range(8)
        ]
        for issue in range(2)
    ]
    assert found.rows.tolist() == want
    assert found.repeats == (2,)


@pytest.mark.parametrize("mode", [1, 2, 3])
def test_swizzled_tiles_keep_rows_whole(mode: int) -> None:
    columns = 16 << (mode - 1)
    layout = mma_shared_layout("float16", mode, (16, columns))
    split = layout.group((2, 8, columns // 8, 8))[0].permute_by_groups((0, 1, 2, 3, 4), (2, 0, 1, 3))
    shape = (columns // 16, 4, 8, 8)
    found = prove_tile(LOAD, "src", split, shape, 16, 1024)
    # The atoms of the hardware: 16-byte units of a row, XORed with the row's bits.
    for issue, row in np.ndindex(found.rows.shape):
        matrix, line = divmod(row, 8)
        unit, half = 2 * issue + matrix // 2, matrix % 2
        linear = (8 * half + line) * columns * 2 + 16 * unit
        assert found.rows[issue, row] == linear ^ ((linear >> 3) & (16 * ((1 << mode) - 1)))


def test_alignment_of_base_and_rows() -> None:
    assert "known to be a multiple of 8 bytes only, but must be one of 16" in refusal(PLAIN, (4, 8, 4), align=8)
    said = refusal(TileLayout(S[(4, 8, 4) : (40, 5, 1)]), (4, 8, 4))
    assert "the row at (0, 1, 0) starts 20 bytes after the origin" in said
    assert "starts 8 bytes after the origin" in refusal(TileLayout(S[(4, 8, 4) : (32, 4, 1)] + 2), (4, 8, 4))


def test_rows_are_contiguous() -> None:
    said = refusal(TileLayout(S[(4, 8, 4) : (64, 8, 2)]), (4, 8, 4))
    assert "element (0, 0, 1) is 2 elements after (0, 0, 0) instead of 1" in said


def test_shapes_owners_and_widths() -> None:
    assert "expected a tile of shape (*batch, 4, 8, 4), but got (2, 8, 4)" in refusal(PLAIN, (2, 8, 4))
    assert "expected a tile of shape (*batch, 4, 8, 8), but got (4, 8, 4)" in refusal(PLAIN, (4, 8, 4), bits=16)
    assert "do" in refusal(PLAIN, (4, 8, 4), bits=64) and "not fill 32-bit words" in refusal(PLAIN, (4, 8, 4), bits=64)
    assert "has 64 elements, but the shape" in refusal(TileLayout(S[64:1]), (4, 8, 4))
    owned = TileLayout(S[(4, 8, 4) : (1, 4 @ laneid, 1 @ laneid)])
    assert "neither owners nor replicas" in refusal(owned, (4, 8, 4))
    assert "neither owners nor replicas" in refusal(TileLayout(S[(4, 8, 4) : (32, 4, 1)] + R[2:128]), (4, 8, 4))
    with pytest.raises(InstructionError, match="no tile can stand for an operand of kind fragment"):
        prove_tile(LOAD, "d", PLAIN, (4, 8, 4), 32, 16)


def test_written_rows_do_not_overlap() -> None:
    same = TileLayout(S[(4, 8, 4) : (0, 4, 1)])
    assert prove_tile(LOAD, "src", same, (4, 8, 4), 32, 16).rows.shape == (1, 32)
    assert "rows 0 and 8 of issue 0 are both written at byte 0" in refusal(same, (4, 8, 4), store=True)
    assert prove_tile(STORE, "dst", PLAIN, (4, 8, 4), 32, 16).rows.shape == (1, 32)
