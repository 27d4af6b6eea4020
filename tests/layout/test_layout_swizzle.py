"""Swizzles and the standard shared-memory layouts, against worked values and the atom's definition."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

from warpjit.layout import ComposeLayout, S, SwizzleMode, TileLayout, mma_atom_layout, mma_atom_shape, mma_shared_layout


def test_worked_values() -> None:
    assert {"m": 11} == ComposeLayout(0, 2, 3, TileLayout(S[8, 8])).apply(1, 2)
    layout = ComposeLayout(3, 3, 3, TileLayout(S[(8, 64) : (64, 1)]))
    assert [8, 64, 152, 208, 296, 352, 440, 496] == [layout.apply(row, 8)["m"] for row in range(8)]
    outer = ComposeLayout(0, 2, 3, TileLayout(S[8, 8]), swizzle_inner=False)
    assert {"m": 10 ^ (2 << 3)} == outer.apply(1, 2)
    assert (512, 512, 512) == (layout.size(), layout.span(), layout.period)


def test_addresses_beyond_a_period_keep_their_high_part() -> None:
    layout = ComposeLayout(1, 2, 2, TileLayout(S[4 * 32]))
    values = layout.enumerate()["m"].reshape(4, 32)
    assert 32 == layout.period
    assert (values == values[0] + 32 * np.arange(4)[:, None]).all()


def test_a_swizzle_that_leaves_the_tile_widens_the_span() -> None:
    layout = ComposeLayout(0, 3, 3, TileLayout(S[9]))
    assert 9 == max(layout.enumerate()["m"])
    assert 10 == layout.span() == layout.span("m")
    assert 1 == layout.span("laneid")
    assert 9 == layout.size()
    lowered = ComposeLayout(0, 2, 2, TileLayout(S[2:14]))
    assert [0, 13] == lowered.enumerate()["m"].tolist()
    assert 15 == lowered.span()


def test_a_swizzle_that_moves_nothing_is_trivial() -> None:
    assert ComposeLayout(3, 0, 3, TileLayout(S[8, 64])).is_trivial()
    assert ComposeLayout(3, 3, 3, TileLayout(S[64])).is_trivial()
    assert not ComposeLayout(3, 3, 3, TileLayout(S[65])).is_trivial()
    assert ComposeLayout(0, 0, 0, TileLayout(S[8] + 3)).is_contiguous()
    assert not ComposeLayout(3, 3, 3, TileLayout(S[8, 64])).is_contiguous()
    assert TileLayout(S[64]).equivalent(ComposeLayout(3, 3, 3, TileLayout(S[64])))
    assert TileLayout(S[()]).equivalent(ComposeLayout(3, 3, 3, TileLayout(S[1])))


@dataclass(frozen=True)
class Dtype:
    bits: int


ATOMS = [
    (8, 1, 32), (8, 2, 64), (8, 3, 128),
    (16, 1, 16), (16, 2, 32), (16, 3, 64),
    (32, 1, 8), (32, 2, 16), (32, 3, 32),
]  # fmt: skip


@pytest.mark.parametrize(("bits", "mode", "columns"), ATOMS)
def test_atoms_move_16_byte_units_by_their_row(bits: int, mode: int, columns: int) -> None:
    unit = 128 // bits
    assert (8, columns) == mma_atom_shape(bits, mode)
    layout = mma_atom_layout(bits, mode)
    assert ComposeLayout(unit.bit_length() - 1, mode, 3, TileLayout(S[8, columns])) == layout
    units_in_row = columns // unit
    for row in range(8):
        for column in range(columns):
            # Narrower atoms put several rows in 128 bytes; those share a shift.
            shift = row * units_in_row // 8
            expected = row * columns + (column // unit ^ shift) * unit + column % unit
            assert expected == layout.apply(row, column)["m"]


@pytest.mark.parametrize(("bits", "mode", "columns"), ATOMS)
def test_shared_layouts_tile_the_atom_rows_first(bits: int, mode: int, columns: int) -> None:
    shape = (3, 32, 2 * columns)
    layout = mma_shared_layout(bits, mode, shape)
    atom = mma_atom_layout(bits, mode)
    panel = atom.tile_to((1, 32, columns), (1, 8, columns))
    assert panel.tile_to(shape, (1, 32, columns)).equivalent(layout)
    assert layout.is_bijective(("m",))


def test_one_panel_has_one_iter_a_dim() -> None:
    assert ComposeLayout(3, 3, 3, TileLayout(S[128, 64])) == mma_shared_layout("float16", 128, (128, 64))
    expected = ComposeLayout(3, 2, 3, TileLayout(S[(2, 16, 2, 32) : (1024, 32, 512, 1)]))
    assert expected == mma_shared_layout("bfloat16", SwizzleMode.B64, (2, 16, 64))


def test_without_swizzle_16_byte_columns_follow_one_another() -> None:
    layout = mma_shared_layout("float16", 0, (24, 32))
    for row in range(24):
        for k in range(32):
            assert 8 * row + 24 * 8 * (k // 8) + k % 8 == layout.apply(row, k, shape=(24, 32))["m"]
    assert TileLayout(S[24, 20]) == mma_shared_layout("float16", SwizzleMode.NONE, (24, 20))
    assert TileLayout(S[8, 8]) == mma_atom_layout("float16", 0)


@pytest.mark.parametrize(
    ("dtype", "bits"),
    [
        ("float16", 16),
        ("bfloat16", 16),
        ("tf32", 32),
        ("uint8", 8),
        ("int32", 32),
        ("float8_e4m3fn", 8),
        ("bool", 8),
        ("float4_e2m1fn", 4),
        ("float64", 64),
        (16, 16),
        (Dtype(8), 8),
    ],
)
def test_element_types(dtype: Any, bits: int) -> None:
    assert (8, 1024 // bits) == mma_atom_shape(dtype, 128)


def test_modes() -> None:
    assert [SwizzleMode.NONE, SwizzleMode.B32, SwizzleMode.B64, SwizzleMode.B128] == [SwizzleMode(k) for k in range(4)]
    assert [SwizzleMode.B32, SwizzleMode.B64, SwizzleMode.B128] == [SwizzleMode(n) for n in (32, 64, 128)]
    assert [16, 32, 64, 128] == [mode.row_bytes for mode in SwizzleMode]


def test_layouts_import_without_torch() -> None:
    code = "import sys, warpjit.layout; raise SystemExit('torch' in sys.modules)"
    assert 0 == subprocess.run([sys.executable, "-c", code], check=False).returncode
