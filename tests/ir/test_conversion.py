"""Conversions against exact fractions, and the NaNs and borders that an H200 returned."""

from __future__ import annotations

import itertools
import math
import warnings
import zlib
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from exact_floats import FLOATS, bits_of, exact, is_nan, nearest, random_bits, typed

from warpjit.errors import TraceError
from warpjit.ir.dtypes import DTYPES, DType, dtype
from warpjit.ir.numerics import bitcast, canonical_nan, convert, pack, unpack

Array = np.ndarray[Any, Any]

INTEGERS = tuple(name for name, each in DTYPES.items() if each.is_int)
COUNT = 1000


def seeded(*names: str) -> np.random.Generator:
    return np.random.default_rng(zlib.crc32(" ".join(names).encode()))


def integers_of(values: Array) -> list[int]:
    return [int(each) for each in values.ravel()]


def as_integers(bits: Array, name: str) -> Array:
    kind = dtype(name)
    return convert(bits.astype(np.uint8), kind) if kind.bits == 4 else typed(bits, name)


@pytest.fixture(autouse=True)
def no_numpy_warnings() -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        yield


@pytest.mark.parametrize(("source", "target"), [each for each in itertools.product(FLOATS, FLOATS) if len({*each}) > 1])
def test_float_to_float_is_nearest_even(source: str, target: str) -> None:
    codes = random_bits(seeded(source, target), source, COUNT) if dtype(source).bits > 8 else np.arange(256)
    got = convert(typed(codes, source), dtype(target))
    assert got.dtype == dtype(target).numpy
    for code, result in zip(codes.tolist(), bits_of(got), strict=True):
        value = exact(code, source)
        if isinstance(value, Fraction):
            assert result == nearest(value, target, negative_zero=code > 0), (hex(code), hex(result))
        elif math.isinf(value) and not target.startswith("float8"):
            assert exact(result, target) == value
        elif math.isinf(value):
            assert exact(result, target) == math.copysign(1, value) * exact(nearest(10**9, target), target)
        else:
            assert is_nan(result, target)


@pytest.mark.parametrize(
    ("source", "code", "target", "wanted"),
    [
        ("float32", 0x7F800001, "float16", 0x7FFF),
        ("float32", 0xFFC00000, "bfloat16", 0x7FFF),
        ("float32", 0xFFFFFFFF, "float8_e4m3fn", 0x7F),
        ("float32", 0xFFFFFFFF, "float8_e5m2", 0x7F),
        ("float16", 0xFE01, "float32", 0x7FFFFFFF),
        ("float16", 0xFE01, "bfloat16", 0x7FFF),
        ("bfloat16", 0xFF81, "float16", 0x7FFF),
        ("bfloat16", 0xFF81, "float32", 0xFF810000),
        ("bfloat16", 0x7F81, "float64", 0x7FF8200000000000),
        ("float16", 0xFEA1, "float64", 0xFFFA840000000000),
        ("float32", 0x7F800001, "float64", 0x7FF8000020000000),
        ("float64", 0xFFF0000000000001, "float32", 0xFFC00000),
        ("float64", 0x7FFFFFFFFFFFFFFF, "float32", 0x7FFFFFFF),
        ("float64", 0xFFF0000000000001, "float16", 0xFE00),
        ("float64", 0xFFF8000000000000, "bfloat16", 0xFFC0),
        ("float8_e4m3fn", 0xFF, "float16", 0x7FFF),
        ("float8_e5m2", 0xFD, "float16", 0x7FFF),
    ],
)
def test_nans_are_those_of_an_h200(source: str, code: int, target: str, wanted: int) -> None:
    got = convert(typed(np.array([code, 0], np.uint64), source), dtype(target))
    assert [hex(each) for each in bits_of(got)] == [hex(wanted), "0x0"]


@pytest.mark.parametrize(("source", "target"), list(itertools.product(FLOATS, INTEGERS)))
def test_float_to_int_cuts_and_saturates(source: str, target: str) -> None:
    kind = dtype(target)
    codes = random_bits(seeded(source, target), source, COUNT) if dtype(source).bits > 8 else np.arange(256)
    got = convert(typed(codes, source), kind)
    assert got.dtype == kind.numpy
    for code, result in zip(codes.tolist(), integers_of(got), strict=True):
        value = exact(code, source)
        if value != value:
            top = kind.min or 1 << kind.bits - 1
            assert result == (top if source == "float64" or kind.bits == 64 else 0)
        elif isinstance(value, float):
            assert result == (kind.max if value > 0 else kind.min)
        else:
            assert result == min(max(math.trunc(value), kind.min), kind.max), hex(code)


@pytest.mark.parametrize("target", INTEGERS)
def test_float_to_int_at_the_borders(target: str) -> None:
    kind = dtype(target)
    for border in (kind.max + 1, kind.max, kind.min, kind.min - 1):
        for step in (-math.inf, 0.0, math.inf):
            value = np.nextafter(float(border), step) if step else float(border)
            (got,) = integers_of(convert(np.array([value]), kind))
            assert got == min(max(math.trunc(Fraction(float(value))), kind.min), kind.max)


@pytest.mark.parametrize(("source", "target"), list(itertools.product(INTEGERS, FLOATS)))
def test_int_to_float_is_nearest_even(source: str, target: str) -> None:
    values = as_integers(random_bits(seeded(source, target), source, 300), source)
    for value, result in zip(integers_of(values), bits_of(convert(values, dtype(target))), strict=True):
        assert result == nearest(value, target), value


@pytest.mark.parametrize("source", ["int64", "uint64"])
@pytest.mark.parametrize("target", ["float16", "bfloat16", "float32", "float64"])
def test_wide_integers_are_not_rounded_twice(source: str, target: str) -> None:
    """A tie of the target plus a last place that float64 does not hold."""
    places = {"float16": 11, "bfloat16": 8, "float32": 24, "float64": 53}[target]
    tie = (1 << places) + 1 << 63 - 1 - places
    values = np.array([tie + extra for extra in (-1, 0, 1)], source)
    assert bits_of(convert(values, dtype(target))) == [nearest(int(each), target) for each in values]


@pytest.mark.parametrize(("source", "target"), list(itertools.product(INTEGERS, INTEGERS)))
def test_int_to_int_wraps(source: str, target: str) -> None:
    kind = dtype(target)
    values = as_integers(random_bits(seeded(source, target), source, 300), source)
    got = convert(values, kind)
    assert got.dtype == kind.numpy
    for value, result in zip(integers_of(values), integers_of(got), strict=True):
        assert kind.min <= result <= kind.max and (result - value) % (1 << kind.bits) == 0


@pytest.mark.parametrize("name", [*FLOATS, *INTEGERS])
def test_bool_is_whether_it_is_not_zero(name: str) -> None:
    kind = dtype(name)
    back = convert(np.array([True, False]), kind)
    assert back.dtype == kind.numpy
    assert [float(each) for each in back] == [1.0, 0.0]
    assert convert(back, dtype("bool")).tolist() == [True, False]
    if kind.is_float:
        codes = np.array([0, 1 << kind.bits - 1, 1, (1 << kind.bits) - 1], np.uint64)  # 0, -0, the smallest, a NaN
        assert convert(typed(codes, name), dtype("bool")).tolist() == [False, False, True, True]


@pytest.mark.parametrize("name", ["mbarrier", "float16x2"])
def test_barriers_and_pairs_do_not_convert(name: str) -> None:
    with pytest.raises(TraceError, match=f"there is no conversion from int32 to {name}"):
        convert(np.zeros(1, np.int32), dtype(name))


def test_shapes_survive() -> None:
    for shape in ((), (0,), (2, 3, 4)):
        for target in DTYPES.values():
            if target.kind not in ("barrier", "pair"):
                assert convert(np.ones(shape, np.float32), target).shape == shape


@pytest.mark.parametrize("name", ["float16", "bfloat16", "float32", "float64"])
def test_canonical_nan_touches_nans_only(name: str) -> None:
    codes = random_bits(seeded(name), name, COUNT)
    nan = {"float32": 0x7FFFFFFF, "float64": 0xFFF8000000000000}.get(name, 0x7FFF)
    wanted = [nan if is_nan(code, name) else code for code in codes.tolist()]
    assert bits_of(canonical_nan(typed(codes, name))) == wanted


# Words --------------------------------------------------------------------------------------------------------------

PLAIN = [each for each in DTYPES.values() if each.kind not in ("bool", "barrier", "pair")]


@pytest.mark.parametrize(("source", "target"), [(a, b) for a in PLAIN for b in PLAIN if a.bits == b.bits >= 8])
def test_bitcast_keeps_the_bits(source: DType, target: DType) -> None:
    codes = np.random.default_rng(3).integers(0, 1 << 64, 50, dtype=np.uint64)
    values = typed(codes, source.name)
    got = bitcast(values, target)
    assert got.dtype == target.numpy
    assert bits_of(got) == bits_of(values)


def test_bitcast_of_nibbles_and_bools() -> None:
    nibbles = convert(np.arange(-8, 8, dtype=np.int8), dtype("int4"))
    assert integers_of(bitcast(nibbles, dtype("uint4"))) == [each % 16 for each in range(-8, 8)]
    assert integers_of(bitcast(bitcast(nibbles, dtype("uint4")), dtype("int4"))) == list(range(-8, 8))
    assert bitcast(np.array([True, False]), dtype("uint8")).tolist() == [1, 0]
    assert bitcast(np.array([2, 0, 1], np.int8), dtype("bool")).tolist() == [True, False, True]
    assert bitcast(typed(np.array([0x80, 0]), "float8_e5m2"), dtype("bool")).tolist() == [True, False]


def test_bitcast_refuses_another_width() -> None:
    with pytest.raises(TraceError, match="float16 has 16 bits and cannot be read as float32 of 32 bits"):
        bitcast(np.zeros(1, np.float16), dtype("float32"))


@pytest.mark.parametrize("word", [each for each in PLAIN if each.bits >= 8])
@pytest.mark.parametrize("element", PLAIN)
def test_pack_and_unpack_are_little_end_first(word: DType, element: DType) -> None:
    if element.bits > word.bits:
        with pytest.raises(TraceError, match="does not fill"):
            unpack(np.zeros(2, word.numpy), element)
        return
    count = word.bits // element.bits
    codes = np.random.default_rng(4).integers(0, 1 << element.bits, (3, 5, count), dtype=np.uint64)
    elements = as_integers(codes, element.name) if element.is_int else typed(codes, element.name)
    words = pack(elements, word)
    assert words.shape == (3, 5) and words.dtype == word.numpy
    wanted = [sum(code << element.bits * i for i, code in enumerate(row)) for row in codes.reshape(15, count).tolist()]
    assert bits_of(words) == wanted
    again = unpack(words, element)
    assert again.shape == elements.shape and again.dtype == elements.dtype
    assert bits_of(again) == bits_of(elements)


def test_pack_refuses_the_wrong_number_of_elements() -> None:
    with pytest.raises(TraceError, match=r"a uint32 holds 2 elements of float16 but got shape \(3,\)"):
        pack(np.zeros(3, np.float16), dtype("uint32"))
