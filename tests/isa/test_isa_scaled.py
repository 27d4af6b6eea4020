"""mma of elements of 8, 6 and 4 bits, plain and with scales: where scales are, and sums against exact ones.

None of these rows can run where the tests run; what is tested is that they do what the manual says of them.
"""

from __future__ import annotations

import functools
import itertools
import re
import struct
import zlib
from fractions import Fraction

import numpy as np
import pytest
from mma_model import LAYOUTS, Number, modelled, read
from sparse_reference import Form, metadata_of, random_places

from warpjit.ir.dtypes import uint4, uint8
from warpjit.isa import mma_scaled
from warpjit.isa.fragments import Gather
from warpjit.isa.row import Array, Row
from warpjit.isa.table import lookup

pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning")
FIELDS = {"e4m3": (4, 3), "e5m2": (5, 2), "e3m2": (3, 2), "e2m3": (2, 3), "e2m1": (2, 1)}
TYPES = re.compile(r"\.(f32|f16)\.(e\dm\d)\.(e\dm\d)\.")


@functools.cache
def number(code: int, kind: str) -> Fraction | None:
    """The value of a code without its container; None for infinities and NaN."""
    exponent_bits, fraction_bits = FIELDS[kind]
    sign, field = code >> exponent_bits + fraction_bits, code >> fraction_bits & (1 << exponent_bits) - 1
    fraction = code & (1 << fraction_bits) - 1
    if (kind == "e5m2" and field == 31) or (kind == "e4m3" and code & 127 == 127):
        return None
    significand = fraction + (1 << fraction_bits if field else 0)
    value = Fraction(significand) * Fraction(2) ** (max(field, 1) - (1 << exponent_bits - 1) + 1 - fraction_bits)
    return -value if sign else value


def kinds_of(row: Row) -> tuple[str, str, str]:
    found = TYPES.search(row.text)
    assert found is not None
    return found[1], found[2], found[3]


def codes(rng: np.random.Generator, shape: tuple[int, ...], kind: str) -> Array:
    """Finite numbers."""
    width = 1 + sum(FIELDS[kind])
    legal = [code for code in range(1 << width) if number(code, kind) is not None]
    return rng.choice(np.array(legal, np.uint8), shape)


def contained(matrix: Array, kind: str, bits: int) -> Array:
    """Codes as they stand in words."""
    if bits == 4:
        matrix = matrix[..., 0::2] | matrix[..., 1::2] << np.uint8(4)
    elif kind == "e2m1":
        matrix = matrix << np.uint8(2)
    return np.ascontiguousarray(matrix).view(np.uint32)


def is_sparse(row: Row) -> bool:
    return row.text.startswith("mma.sp")


def bits_of(row: Row) -> int:
    return 4 if "kind::mxf4" in row.text else 8


def stored_in(row: Row) -> int:
    return 256 // bits_of(row)


def form_of(row: Row) -> Form:
    """Metadata of these rows is that of bytes, or of 4-bit integers."""
    kind = "u8" if bits_of(row) == 8 else "u4"
    return Form(True, 2 * stored_in(row), False, "s32", kind, kind)


def met(row: Row, rng: np.random.Generator, columns: Array) -> tuple[Array, Array | None]:
    """(16, 8, stored) codes of B that each row of A meets, and the words of metadata."""
    if not is_sparse(row):
        return np.broadcast_to(columns, (16, *columns.shape)), None
    places = random_places(form_of(row), rng)
    return np.stack([columns[:, line] for line in places]), metadata_of(
        form_of(row), places, 0, np.zeros(32, np.uint32)
    )


@pytest.mark.parametrize("row", mma_scaled.ROWS, ids=lambda row: row.text)
def test_lane_maps_are_the_manuals(row: Row) -> None:
    """Words of A, B, and D: as for bytes in "Matrix Fragments for mma.m16n8k32", and in its neighbours for 4 bits."""
    gathers = {operand.name: Gather.of(operand) for operand in row.operands if operand.layout is not None}
    for lane, register in itertools.product(range(32), range(4)):
        group, thread = lane >> 2, lane % 4
        line, word = group + 8 * (register % 2), thread + 4 * (register // 2)
        assert (gathers["A"].lane[line, word], gathers["A"].register[line, word]) == (lane, register)
        if register < row.operand("B").registers:
            assert gathers["B"].lane[group, thread + 4 * register] == lane
            assert gathers["B"].register[group, thread + 4 * register] == register
        packed = 2 if kinds_of(row)[0] == "f16" else 1
        sums = (group if register < 2 else group + 8), (2 * thread + register % 2) // packed
        assert (gathers["D"].lane[sums], gathers["D"].register[sums]) == (lane, register // packed)
    for name in {"E", "SFA", "SFB"} & gathers.keys():
        assert (gathers[name].lane == np.arange(32).reshape(8, 4)).all()
    assert row.operand("A").shape == (16, 8) and row.operand("B").shape == (8, 16 if is_sparse(row) else 8)


PLAIN = [row for row in mma_scaled.ROWS if "kind::f8f6f4" in row.text]
SCALED = [row for row in mma_scaled.ROWS if "block_scale" in row.text]


@functools.cache
def as_half(code: int, kind: str) -> Number:
    """The number of a code, as the model reads it from a float16."""
    (half,) = struct.unpack("<H", struct.pack("<e", float(number(code, kind) or 0)))
    return read(half, LAYOUTS["f16"])


@pytest.mark.parametrize("row", PLAIN, ids=lambda row: row.text)
def test_plain_sums(row: Row) -> None:
    result, left, right = kinds_of(row)
    rng = np.random.default_rng(zlib.crc32(row.text.encode()))
    depth = 64 if is_sparse(row) else 32
    a, b = codes(rng, (16, 32), left), codes(rng, (8, depth), right)
    c = rng.standard_normal((16, 8)).astype(np.float16 if result == "f16" else np.float32)
    columns, words = met(row, rng, b)
    kind = {"f16": np.uint16, "f32": np.uint32}[result]
    lines = [[as_half(code, left) for code in line] for line in a.tolist()]
    want = np.zeros((16, 8), kind)
    for i, j in np.ndindex(16, 8):
        others = [as_half(code, right) for code in columns[i, j].tolist()]
        want[i, j] = modelled(lines[i], others, read(int(c.view(kind)[i, j]), LAYOUTS[result]), result)
    gathers = {operand.name: Gather.of(operand) for operand in row.operands[:4]}
    dtype = row.operand("C").dtype
    assert dtype is not None and row.meaning is not None
    inputs = [
        gathers["A"].registers(contained(a, left, 8)),
        gathers["B"].registers(contained(b, right, 8)),
        gathers["C"].registers(c.view(dtype.numpy)),
    ]
    got = row.meaning(*inputs) if words is None else row.meaning(*inputs, words[:, None], selector=0)
    assert (gathers["D"].matrix(got).view(kind) == want).all()


def scale_words(scales: Array, byte: int, lanes: Array) -> Array:
    """Registers (32,) that hold scales (rows, vec) in the given lanes from the given byte on, and 1 elsewhere."""
    octets = np.full((32, 4), 0x38, np.uint8)  # neither 1 of ue8m0 nor harmless: lanes that are not named do not count
    for line, lane in enumerate(lanes.tolist()):
        octets[lane, byte : byte + scales.shape[1]] = scales[line]
    return octets.view(np.uint32)[:, 0]


def scale_value(code: int, kind: str) -> Fraction:
    if kind == "ue8m0":
        return Fraction(2) ** (code - 127)
    value = number(code, "e4m3")
    assert value is not None
    return value


def vector_of(row: Row) -> tuple[int, str]:
    found = re.search(r"scale_vec::(\d)X", row.text)
    assert found is not None
    return int(found[1]), row.text.rsplit(".", 1)[1]


@pytest.mark.parametrize("row", SCALED, ids=lambda row: row.text)
def test_scaled_sums(row: Row) -> None:
    """Within the last places that the sum may lose; exactly where the scales leave small integers."""
    _, left, right = kinds_of(row)
    vec, scale = vector_of(row)
    bits, stored = bits_of(row), stored_in(row)
    rng = np.random.default_rng(zlib.crc32(row.text.encode()))
    a, b = codes(rng, (16, stored), left), codes(rng, (8, stored * (1 + is_sparse(row))), right)
    c = rng.standard_normal((16, 8)).astype(np.float32)
    choices = range(0x30, 0x40) if scale == "ue4m3" else range(124, 131)
    row_scales, column_scales = (rng.choice(list(choices), (count, vec)).astype(np.uint8) for count in (16, 8))
    columns, words = met(row, rng, b)
    gathers = {operand.name: Gather.of(operand) for operand in row.operands[:4]}
    bytes_ = row.operand("byte_a").choices
    quads = np.arange(8) * 4
    for (byte_a, thread_a), (byte_b, thread_b) in zip(
        itertools.product(bytes_, (0, 1)), itertools.product(bytes_[::-1], (3, 0)), strict=True
    ):
        rows_of = np.concatenate([quads + 2 * thread_a, quads + 2 * thread_a + 1])
        metadata = [] if words is None else [words[:, None]]
        assert row.meaning is not None
        got = gathers["D"].matrix(
            row.meaning(
                gathers["A"].registers(contained(a, left, bits)),
                gathers["B"].registers(contained(b, right, bits)),
                gathers["C"].registers(c),
                *metadata,
                scale_words(row_scales, byte_a, rows_of)[:, None],
                scale_words(column_scales, byte_b, quads + thread_b)[:, None],
                **({} if words is None else {"selector": 0}),
                byte_a=byte_a,
                thread_a=thread_a,
                byte_b=byte_b,
                thread_b=thread_b,
            )
        )
        for i, j in ((0, 0), (5, 3), (8, 7), (15, 2)):
            terms = [Fraction(float(c[i, j]))]
            for k in range(stored):
                block = k * vec // stored
                factor = scale_value(int(row_scales[i, block]), scale) * scale_value(
                    int(column_scales[j, block]), scale
                )
                value, other = number(int(a[i, k]), left), number(int(columns[i, j, k]), right)
                assert value is not None and other is not None
                terms.append(value * other * factor)
            exact = sum(terms, Fraction(0))
            largest = max(abs(term) for term in terms)
            bound = largest * (stored + 1) / 2**24 + abs(exact) / 2**22
            assert abs(Fraction(float(got[i, j])) - exact) <= bound


def test_a_nan_scale_makes_the_rows_it_scales_nan() -> None:
    row = lookup("mma.sync.aligned.m16n8k32.row.col.kind::mxf8f6f4.block_scale.scale_vec::1X.f32.e4m3.e4m3.f32.ue8m0")
    ones, zeros = np.full((32, 4), 0x38383838, np.uint32), np.zeros((32, 4), np.float32)
    unit = np.full((32, 1), 0x7F7F7F7F, np.uint32)
    spoiled = unit.copy()
    spoiled[4 * 2 + 1] = 0xFF  # lane 9, byte 0: row 2 + 8
    numbers = {"byte_a": 0, "thread_a": 0, "byte_b": 0, "thread_b": 0}
    assert row.meaning is not None
    got = Gather.of(row.operand("D")).matrix(row.meaning(ones, ones[:, :2], zeros, spoiled, unit, **numbers))
    assert np.isnan(got[10]).all() and (np.delete(got, 10, axis=0) == 32).all()
    assert (row.meaning(ones, ones[:, :2], zeros, unit, unit, **numbers, fast=True) == 32).all()


def test_what_the_rows_say() -> None:
    assert len(mma_scaled.ROWS) == 2 * (50 + 25 + 1 + 2)
    assert all(row.unverified and row.pure and row.tile for row in mma_scaled.ROWS)
    row = lookup("mma.sync.aligned.m16n8k64.row.col.kind::mxf4nvf4.block_scale.scale_vec::4X.f32.e2m1.e2m1.f32.ue4m3")
    names = ["D", "A", "B", "C", "SFA", "byte_a", "thread_a", "SFB", "byte_b", "thread_b"]
    assert [operand.name for operand in row.operands] == names
    assert row.operand("A").element == uint4 and row.operand("A").registers == 4
    assert (row.operand("SFA").repeats, row.operand("SFB").repeats) == (("M", "K"), ("N", "K"))
    plain = lookup("mma.sync.aligned.m16n8k32.row.col.kind::f8f6f4.f32.e2m1.e3m2.f32")
    assert plain.operand("B").element == uint8 and plain.operand("B").registers == 2
