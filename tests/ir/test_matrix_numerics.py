"""`mma_sum` against a model of one matrix instruction in plain integers, and against crafted sums with known bits."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest
from mma_model import FORMS, INPUTS, LAYOUTS, NAN, make, modelled, modelled_product, read, spread, word

from warpjit.errors import TraceError
from warpjit.ir.dtypes import dtype
from warpjit.ir.matrix_numerics import mma_fast, mma_sum

Array = np.ndarray[Any, Any]

STORED = {"f16": np.float16, "f32": np.float32}


def assert_same(got: Array, wanted: Array) -> None:
    differ = np.argwhere(got.view(wanted.dtype) != wanted)
    shown = [
        (index.tolist(), hex(got.view(wanted.dtype)[tuple(index)]), hex(wanted[tuple(index)])) for index in differ[:4]
    ]
    assert not len(differ), f"{len(differ)} of {wanted.size} results differ, got and wanted: {shown}"


@pytest.mark.parametrize("depth", [4, 8, 16])
@pytest.mark.parametrize(("operand", "result"), FORMS)
@pytest.mark.parametrize("kind", INPUTS)
def test_meets_the_model_bit_for_bit(kind: str, operand: str, result: str, depth: int) -> None:
    a, b, c = make(kind, operand, result, (9, 8, 8, depth))
    got = mma_sum(a, b, c, operand, operand, result)
    assert got.dtype == STORED[result]
    assert_same(got, modelled_product(a, b, c, operand, result))


@pytest.mark.parametrize(("operand", "result"), FORMS)
def test_inputs_reach_the_rules(operand: str, result: str) -> None:
    """The kinds above are only worth something if they hit NaN, infinities, subnormals and zeros.

    (A float32 sum of float16 products is subnormal only if all of them are zero: too rare to ask for.)
    """
    layout = LAYOUTS[result]
    seen: set[str] = set()
    for kind in INPUTS:
        codes = mma_sum(*make(kind, operand, result, (9, 8, 8, 8)), operand, operand, result).view(word(result))
        magnitude = codes & word(result)(layout.sign - 1)
        for name, hit in (
            ("zero", magnitude == 0),
            ("subnormal", (magnitude > 0) & (magnitude < 1 << layout.fraction)),
            ("infinity", magnitude == layout.infinity),
            ("nan", magnitude > layout.infinity),
        ):
            seen |= {name} if hit.any() else set()
    rare = {"subnormal"} if (operand, result) == ("f16", "f32") else set()
    assert seen | rare == {"zero", "subnormal", "infinity", "nan"}


def test_mixed_operand_types_follow_the_model() -> None:
    rng = np.random.default_rng(5)
    a, b = spread(rng, (2, 4, 8), "f16"), spread(rng, (2, 4, 8), "bf16")
    c = spread(rng, (2, 4, 4), "f32")
    widened = (b.astype(np.uint32) << 16).view(np.float32)
    halves = np.float32(1) * a.view(np.float16).astype(np.float32)
    as_tf32 = mma_sum(halves, widened, c, "tf32", "tf32", "f32")
    assert_same(mma_sum(a, b, c, "f16", "bf16", "f32"), as_tf32.view(np.uint32))


# Crafted sums -------------------------------------------------------------------------------------------------------


def summed(products: dict[int, float], c: float, operand: str = "bf16", depth: int = 16) -> float:
    """c plus the given products (each exact as value * 1) at their places among `depth`."""
    a, b = np.zeros((1, depth), np.float32), np.ones((1, depth), np.float32)
    for place, value in products.items():
        a[0, place] = value
    stored = {"f16": np.dtype(np.float16), "bf16": dtype("bfloat16").numpy, "tf32": np.dtype(np.float32)}[operand]
    left, right = a.astype(stored), b.astype(stored)
    assert np.array_equal(left.astype(np.float32), a)
    return float(mma_sum(left, right, np.full((1, 1), c, np.float32), operand, operand, "f32")[0, 0])


@pytest.mark.parametrize("operand", ["bf16", "tf32"])
def test_terms_keep_25_bits_below_the_largest_exponent(operand: str) -> None:
    for distance in range(1, 46):
        wanted = 2.0 ** (20 - distance) if distance <= 25 else 0.0
        for sign in (1.0, -1.0):
            products = {2: 2.0**20, 5: -(2.0**20), 3: sign * 2.0 ** (20 - distance)}
            assert summed(products, 0.0, operand, depth=8) == sign * wanted


def test_no_term_comes_before_another() -> None:
    for i, j in itertools.permutations(range(16), 2):
        assert summed({i: -(2.0**30), j: 2.0**7}, 2.0**30) == 2.0**7
        assert summed({i: -(2.0**30), j: 1.0}, 2.0**30) == 0.0


def test_products_are_not_normalised() -> None:
    """1.5 * 1.5 counts as exponent 0 although it is 2.25; 1.125 * 2 as 1."""

    def left(factors: tuple[float, float], small: float) -> float:
        a = np.array([[factors[0], -factors[0], small]], np.float16)
        b = np.array([[factors[1], factors[1], 1.0]], np.float16)
        return float(mma_sum(a, b, np.zeros((1, 1), np.float32), "f16", "f16", "f32")[0, 0])

    tiny = 2.0**-24  # kept by exponent 1, but its half would be kept only by exponent 0
    assert left((1.5, 1.5), tiny) == tiny
    assert left((1.125, 2.0), tiny) == tiny
    a, b = np.array([[1.5, -1.5, 2.0**-12]], np.float16), np.array([[1.5, 1.5, 2.0**-13]], np.float16)
    zero = np.zeros((1, 1), np.float32)
    assert mma_sum(a, b, zero, "f16", "f16", "f32")[0, 0] == 2.0**-25
    a[0, :2], b[0, :2] = (1.125, -1.125), (2.0, 2.0)
    assert mma_sum(a, b, zero, "f16", "f16", "f32")[0, 0] == 0.0


def test_float32_results_are_cut_toward_zero() -> None:
    assert summed({0: -(2.0**-25)}, 1.0) == 1.0 - 2.0**-24
    assert summed({0: 1.75 * 2.0**-24}, 1.0) == 1.0
    assert summed({0: -1.75 * 2.0**-24}, -1.0) == -1.0


def test_overflow_is_infinity_from_two_to_the_128() -> None:
    largest = float(np.finfo(np.float32).max)
    assert summed({0: 2.0**103}, largest) == largest
    assert summed({0: 2.0**104}, largest) == np.inf
    assert summed({0: -(2.0**104)}, -largest) == -np.inf
    assert summed({0: 2.0**127, 1: -(2.0**127)}, 2.0**127) == 2.0**127


def test_float16_results_round_once_to_nearest_even() -> None:
    half_place = 2.0**-11
    c = np.array([[1.0]], np.float16)
    ones = np.ones((1, 2), np.float16)
    for extra, wanted in ((0.0, 1.0), (2.0**-24, 1.0 + 2.0**-10)):
        a = np.array([[half_place, extra]], np.float16)
        assert mma_sum(a, ones, c, "f16", "f16", "f16")[0, 0] == wanted
    top = np.array([[65504.0]], np.float16)
    assert mma_sum(np.array([[8.0, 7.5]], np.float16), ones, top, "f16", "f16", "f16")[0, 0] == 65504.0
    assert mma_sum(np.array([[8.0, 8.0]], np.float16), ones, top, "f16", "f16", "f16")[0, 0] == np.inf


def test_zero_results_are_positive() -> None:
    minus = np.full((1, 4), -0.0, np.float16)
    ones = np.ones((1, 4), np.float16)
    for result in (np.float16, np.float32):
        name = "f16" if result is np.float16 else "f32"
        got = mma_sum(minus, ones, np.array([[-0.0]], result), "f16", "f16", name)
        assert not np.signbit(got[0, 0])


def test_tf32_never_looks_at_the_low_13_bits() -> None:
    one = np.array([[0x3F800000]], np.uint32)
    zero = np.zeros((1, 1), np.float32)

    def through(code: int) -> int:
        got = mma_sum(np.array([[code]], np.uint32), one, zero, "tf32", "tf32", "f32")
        return int(got.view(np.uint32)[0, 0])

    assert through(0x3F801FFF) == 0x3F800000
    assert through(0x7F800001) == 0x7F800000
    assert through(0x00001FFF) == 0
    assert through(0x7F802000) == NAN["f32"]


# Shapes -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("shape", [(700, 3, 2, 4), (3, 700, 64, 4), (1, 2, 20000, 4), (2, 1, 1, 8), (0, 16, 8, 16)])
def test_blocks_do_not_show(shape: tuple[int, int, int, int]) -> None:
    """Shapes on both sides of every way to cut the work give what each matrix alone gives."""
    a, b, c = make("spread", "bf16", "f32", shape)
    got = mma_sum(a, b, c, "bf16", "bf16", "f32").view(np.uint32)
    assert got.shape == c.shape
    batch, rows, columns, _ = shape
    rng = np.random.default_rng(1)
    for _ in range(60 if batch else 0):
        p, i, j = rng.integers(0, batch), rng.integers(0, rows), rng.integers(0, columns)
        row, column = ([read(x, LAYOUTS["bf16"]) for x in each.tolist()] for each in (a[p, i], b[p, j]))
        assert got[p, i, j] == modelled(row, column, read(int(c[p, i, j]), LAYOUTS["f32"]), "f32")


def test_batches_broadcast_and_need_not_be_contiguous() -> None:
    a, b, c = make("spread", "f16", "f32", (12, 4, 6, 8))
    shared, stepped = b[:1], np.repeat(a, 2, axis=1)[:, ::2].reshape(3, 4, 4, 8)
    got = mma_sum(stepped, shared, c.reshape(3, 4, 4, 6), "f16", "f16", "f32")
    wanted = mma_sum(a, np.broadcast_to(shared, b.shape), c, "f16", "f16", "f32")
    assert got.shape == (3, 4, 4, 6)
    assert_same(got, wanted.view(np.uint32).reshape(got.shape))


def test_specials_stay_in_their_rows() -> None:
    a, b, c = make("normal", "bf16", "f32", (40, 16, 8, 16))
    before = mma_sum(a, b, c, "bf16", "bf16", "f32").view(np.uint32)
    a[7, 3, 2] = 0x7FC1
    after = mma_sum(a, b, c, "bf16", "bf16", "f32").view(np.uint32)
    assert (after[7, 3] == NAN["f32"]).all()
    after[7, 3] = before[7, 3]
    assert_same(after.view(np.float32), before)


def test_typed_arrays_dtypes_and_codes_are_the_same() -> None:
    a, b, c = make("normal", "bf16", "f32", (2, 4, 4, 8))
    bf16, f32 = dtype("bfloat16"), dtype("float32")
    typed = mma_sum(a.view(bf16.numpy), b.view(bf16.numpy), c.view(np.float32), bf16, bf16, f32)
    assert_same(typed, mma_sum(a, b, c, "bf16", "bf16", "f32").view(np.uint32))


def test_wrong_types_and_shapes_are_refused() -> None:
    a, b, c = make("normal", "bf16", "f32", (1, 4, 4, 8))
    with pytest.raises(TraceError, match="expected an operand type among f16, bf16, tf32 but got s8"):
        mma_sum(a, b, c, "s8", "bf16", "f32")
    with pytest.raises(TraceError, match="expected a result type among f16, f32 but got f64"):
        mma_sum(a, b, c, "bf16", "bf16", "f64")
    with pytest.raises(TraceError, match="expected elements of 4 bytes but got uint16"):
        mma_sum(a, b, c, "tf32", "bf16", "f32")
    with pytest.raises(TraceError, match=r"are no \(M, K\), \(N, K\) and \(M, N\)"):
        mma_sum(a, b[..., :4], c, "bf16", "bf16", "f32")


# The fast way -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("operand", "result"), FORMS)
def test_fast_product_is_close(operand: str, result: str) -> None:
    a, b, c = make("normal", operand, result, (2, 16, 8, 64))
    got = mma_fast(a, b, c, operand, operand, result)
    assert got.dtype == STORED[result]

    def doubles(codes: Array, name: str) -> Array:
        if name == "f16":
            return codes.view(np.float16).astype(np.float64)
        wide = (
            codes.astype(np.uint32) << 16
            if name == "bf16"
            else codes & np.uint32(-1 << LAYOUTS[name].ignored & 0xFFFFFFFF)
        )
        return wide.view(np.float32).astype(np.float64)

    left, right = doubles(a, operand), doubles(b, operand)
    wanted = left @ right.transpose(0, 2, 1) + doubles(c, result)
    room = np.abs(left) @ np.abs(right.transpose(0, 2, 1)) * 2.0**-20 + np.abs(wanted) * (
        2.0**-11 if result == "f16" else 2.0**-24
    )
    assert (np.abs(got.astype(np.float64) - wanted) <= room).all()


def test_fast_product_gives_the_canonical_nan() -> None:
    a = np.array([[np.inf, 1.0]], np.float16)
    b = np.array([[0.0, 1.0]], np.float16)
    got = mma_fast(a, b, np.zeros((1, 1), np.float32), "f16", "f16", "f32")
    assert got.view(np.uint32)[0, 0] == NAN["f32"]
