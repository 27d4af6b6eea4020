"""What every dense mma.sync row computes, against references that work one result at a time (`mma_references`).

Inputs are the bench's, of every kind; lane maps are tested by themselves, so here matrices go into registers as the
rows' layouts say.
"""

from __future__ import annotations

from typing import Any

import mma_references as reference
import numpy as np
import pytest

from bench.isa import DENSE, several_nan
from bench.isa_inputs import Matrices, element_of, kinds, matrices, registers, results
from warpjit.ir.dtypes import DType
from warpjit.isa.row import Row
from warpjit.isa.table import lookup

Array = np.ndarray[Any, Any]

FAMILIES = {"f16": "floats", "bf16": "floats", "tf32": "floats", "e4m3": "fp8", "e5m2": "fp8", "f64": "doubles"}


def short(row: Row) -> str:
    return row.text.removeprefix("mma.sync.aligned.")


def kinds_of(row: Row) -> tuple[str, str, str]:
    """PTX names of the elements of A, B and D."""
    a, b, d = (element_of(row.operand(name)).ptx for name in "ABD")
    return a, b, d


def reference_of(row: Row) -> reference.Result:
    left, right, result = kinds_of(row)
    family = FAMILIES.get(left)
    if family == "floats":
        assert left == right
        return reference.floats(left, result)
    if family == "fp8":
        return reference.small_floats(left, right, result)
    if family == "doubles":
        return reference.doubles
    if left == "b1":
        return reference.counted("xor" if ".xor." in row.text else "and")
    return reference.integers(left, right, ".satfinite." in row.text)


def computed(row: Row, made: Matrices, **how: bool) -> Array:
    """The row's meaning, as codes (count, m, n)."""
    assert row.meaning is not None
    types = [operand.dtype.numpy for operand in row.operands[1:] if operand.dtype is not None]
    words = (each.view(kind) for each, kind in zip(registers(row, made), types, strict=True))
    return results(row, row.meaning(*words, **how))


def wanted(row: Row, made: Matrices) -> Array:
    return reference_at(row, made, np.indices(made.c.shape).reshape(3, -1)).reshape(made.c.shape)


def reference_at(row: Row, made: Matrices, places: Array) -> Array:
    """The results at some places (matrix, row, column)."""
    of, a, b, c = reference_of(row), made.a.tolist(), made.b.tolist(), made.c.tolist()
    return np.array([of(a[i][m], b[i][n], c[i][m][n]) for i, m, n in zip(*places.tolist(), strict=True)], np.uint64)


def assert_same(row: Row, made: Matrices, one_in: int) -> None:
    """One in so many of the results is looked at, in each row and each column."""
    got = computed(row, made)
    places = np.argwhere(np.indices(got.shape).sum(axis=0) % one_in == 0).T
    found, want = got[tuple(places)].astype(np.uint64), reference_at(row, made, places)
    differ = np.flatnonzero(found != want)
    shown = [(places[:, k].tolist(), hex(found[k]), hex(want[k])) for k in differ[:3]]
    assert not differ.size, f"{row.text}: {differ.size} of {want.size} differ, got and wanted: {shown}"


@pytest.mark.parametrize("row", DENSE, ids=short)
def test_a_row_computes_what_its_reference_says(row: Row) -> None:
    for kind in kinds(row):
        assert_same(row, matrices(row, kind, 2), one_in=2)


@pytest.mark.parametrize("row", [row for row in DENSE if FAMILIES.get(kinds_of(row)[0]) == "fp8"], ids=short)
def test_every_code_of_8_bit_floats(row: Row) -> None:
    """All 256 codes of A, and all of B, each with many partners."""
    rng = np.random.default_rng(5)
    usual = matrices(row, "normal", 4)
    every = [
        rng.permutation(np.resize(np.arange(256, dtype=np.uint8), each.size)).reshape(each.shape)
        for each in (usual.a, usual.b)
    ]
    assert all(set(each.reshape(-1).tolist()) == set(range(256)) for each in every)
    # A NaN spoils its row: each kind of code by itself, beside ordinary numbers.
    for made in (Matrices(every[0], usual.b, usual.c), Matrices(usual.a, every[1], usual.c), Matrices(*every, usual.c)):
        assert_same(row, made, one_in=4)
    for each, other in ((0, 1), (1, 0)):
        lone = [np.zeros_like(usual.a[:1]), np.zeros_like(usual.b[:1])]
        lone[other][...] = 0x38  # 1 in e4m3, 0.5 in e5m2
        lines = lone[each].shape[1]
        for start in range(0, 256, lines):
            lone[each][0, :, 0] = np.arange(start, start + lines)
            got = computed(row, Matrices(*lone, usual.c[:1]))
            # The other operand's lines are alike: one is enough.
            few = (slice(None), slice(None) if each == 0 else [3], [3] if each == 0 else slice(None))
            part = Matrices(lone[0][few[:2]], lone[1][:, few[2]], usual.c[:1][few])
            assert (got[few] == wanted(row, part)).all()


@pytest.mark.parametrize("row", [row for row in DENSE if ".satfinite." in row.text], ids=short)
def test_saturation_is_reached(row: Row) -> None:
    """Sums beyond both ends of int32 (of unsigned numbers: the upper), which the row without .satfinite wraps."""
    wraps = lookup(row.text.replace(".satfinite", ""))
    made = matrices(row, "special", 40)
    got, wrapped = (computed(each, made).view(np.int32) for each in (row, wraps))
    differ = got != wrapped
    a, b, _ = kinds_of(row)
    ends = {np.iinfo(np.int32).max, *([np.iinfo(np.int32).min] if "s" in a[0] + b[0] else [])}
    assert set(got[differ].tolist()) == ends
    for codes, kind in ((made.a, a), (made.b, b)):
        extreme = 1 << int(kind[1:]) - 1 if kind[0] == "s" else (1 << int(kind[1:])) - 1  # -128, 255, -8, 15
        assert (codes == extreme).any()


def test_what_the_references_say_themselves() -> None:
    """The references against results known by hand."""
    assert [reference.half(code, "e4m3") for code in (0x01, 0x38, 0x7E, 0xFF)] == [0x1800, 0x3C00, 0x5F00, 0x7FFF]
    assert [reference.half(code, "e5m2") for code in (0x01, 0x3C, 0x7B, 0xFC)] == [0x0100, 0x3C00, 0x7B00, 0xFC00]
    one, tiny = reference.code_of(1.0), reference.code_of(5e-324)
    assert reference.fused(one, tiny, reference.code_of(-0.0)) == tiny
    assert reference.fused(tiny, tiny, reference.code_of(-0.0)) == 0
    assert reference.fused(one, reference.code_of(-0.0), reference.code_of(-0.0)) == reference.code_of(-0.0)
    assert reference.fused(reference.code_of(float("inf")), 0, one) == reference.MADE
    assert reference.fused(one, 0x7FF0000000000123, one) == 0x7FF8000000000123
    assert reference.integers("s8", "u8", True)([0x80] * 32, [255] * 32, 0x80000000) == 0x80000000


# ---- the fast way -----------------------------------------------------------------------------------------

REAL = {"f16": np.float16, "f32": np.float32, "f64": np.float64}


def values(codes: Array, element: DType) -> Array:
    """What codes stand for, in the widest float there is."""
    if element.ptx == "tf32":
        codes = codes & np.uint32(0xFFFFE000)
    with np.errstate(invalid="ignore"):
        return codes.view(element.numpy).astype(np.float64).astype(np.longdouble)


@pytest.mark.parametrize("kind", ["normal", "spread", "cancelling"])
@pytest.mark.parametrize("row", DENSE, ids=short)
def test_fast_products_are_within_the_bound(row: Row, kind: str) -> None:
    """Within (k + 1) * 2**-23 (float64: 2**-52) of all that is added; float16 is rounded once more; integers exact."""
    made = matrices(row, kind, 4)
    got = computed(row, made, fast=True)
    result = kinds_of(row)[2]
    if result == "s32":
        assert (got == computed(row, made)).all()
        return
    a, b, c = (
        values(codes, element_of(row.operand(name)))
        for name, codes in zip("ABC", (made.a, made.b, made.c), strict=True)
    )
    exact = a @ b.swapaxes(-1, -2) + c
    added = np.abs(a) @ np.abs(b).swapaxes(-1, -2) + np.abs(c)
    room = (a.shape[-1] + 1) * np.longdouble(2.0) ** (-52 if result == "f64" else -23) * added
    inside = np.ones(exact.shape, bool)
    if result == "f16":
        room += np.abs(exact) * 2.0**-11 + 2.0**-25
        inside = np.abs(exact) + room < 65504
        assert inside.sum() > 20
    error = np.abs(got.view(REAL[result]).astype(np.longdouble) - exact)
    assert (error <= room)[inside].all()


def test_fast_products_give_the_canonical_nan() -> None:
    for text, nan in (
        ("m16n8k32.row.col.f16.e4m3.e5m2.f16", 0x7FFF),
        ("m16n8k8.row.col.f32.tf32.tf32.f32", 0x7FFFFFFF),
    ):
        row = lookup(f"mma.sync.aligned.{text}")
        made = matrices(row, "normal", 1)
        made.a[0, 3, 1] = {8: 0x7F, 32: 0x7FC00000}[element_of(row.operand("A")).bits]
        assert (computed(row, made, fast=True)[0, 3] == nan).all()


def test_where_several_nan_may_meet() -> None:
    row = lookup("mma.sync.aligned.m16n8k4.row.col.f64.f64.f64.f64")
    made = matrices(row, "normal", 1)
    assert not several_nan(made).any()
    made.a[0, 2, 1] = 0x7FF8000000000001
    assert not several_nan(made).any()
    made.b[0, 5, 3] = 0x7FF0000000000000
    assert np.argwhere(several_nan(made)).tolist() == [[0, 2, 5]]
    made.c[0, 2, 7] = 0xFFF8000000000003
    assert np.argwhere(several_nan(made)).tolist() == [[0, 2, 5], [0, 2, 7]]
