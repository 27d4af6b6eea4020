"""The meanings of scalar rows against exact references, and that the tables are complete."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable

import numpy as np
import pytest
from isa_values import extremes, same, values

from warpjit.errors import TraceError
from warpjit.ir.dtypes import DTYPES, DType, dtype, float32
from warpjit.isa.row import Array, Row
from warpjit.isa.scalar import (
    ARITHMETIC,
    BITCAST,
    COMPARE,
    CONVERT,
    EXTRACT,
    INSERT,
    MOVE,
    PACK64,
    ROWS,
    SELECT,
    SPECIAL,
    UNPACK64,
)
from warpjit.isa.scalar_float8 import FLOAT8
from warpjit.isa.scalar_text import FLOATS, INTEGERS, STORED, VALUES

COUNT = 400


def meaning(row: Row, *arrays: Array, **params: int) -> Array:
    assert row.meaning is not None
    return np.asarray(row.meaning(*arrays, **params))


def wrapped(value: int, of: DType) -> int:
    value &= (1 << of.bits) - 1
    return value - (1 << of.bits) if of.signed and value >> (of.bits - 1) else value


def shifted(x: int, count: int, of: DType, left: bool) -> int:
    """A count outside of the width moves every bit out."""
    count = count if 0 <= count < of.bits else of.bits
    return x << count if left else x >> count


INTEGER_REFERENCES: dict[str, Callable[..., int]] = {
    "add": lambda x, y, of: x + y,
    "sub": lambda x, y, of: x - y,
    "mul": lambda x, y, of: x * y,
    "floordiv": lambda x, y, of: x // y,
    "mod": lambda x, y, of: x % y,
    "min": lambda x, y, of: min(x, y),
    "max": lambda x, y, of: max(x, y),
    "and": lambda x, y, of: x & y,
    "or": lambda x, y, of: x | y,
    "xor": lambda x, y, of: x ^ y,
    "shl": lambda x, y, of: shifted(x, y, of, left=True),
    "shr": lambda x, y, of: shifted(x, y, of, left=False),
    "neg": lambda x, of: -x,
    "abs": lambda x, of: abs(x),
    "not": lambda x, of: ~x,
}


@pytest.mark.parametrize("operation", INTEGER_REFERENCES)
def test_integers_are_exact_and_wrap(operation: str) -> None:
    reference = INTEGER_REFERENCES[operation]
    for of in INTEGERS:
        row = ARITHMETIC[operation, of.name]
        unary = len(row.operands) == 2
        x = np.concatenate([np.repeat(extremes(of), extremes(of).size), values(of, COUNT, 1)])
        y = np.concatenate([np.tile(extremes(of), extremes(of).size), values(of, COUNT, 2)])
        if operation in ("floordiv", "mod"):
            x, y = x[y != 0], y[y != 0]
        got = meaning(row, x) if unary else meaning(row, x, y)
        arguments = [x.tolist()] if unary else [x.tolist(), y.tolist()]
        want = [wrapped(reference(*each, of), of) for each in zip(*arguments, strict=True)]
        assert got.dtype == of.numpy
        assert got.tolist() == want, row


@pytest.mark.parametrize("operation", ["add", "sub", "mul", "div"])
@pytest.mark.parametrize("of", FLOATS, ids=repr)
def test_floats_round_once(operation: str, of: DType) -> None:
    python = {"add": operator.add, "sub": operator.sub, "mul": operator.mul, "div": operator.truediv}[operation]
    x, y = (values(of, 2000, seed) for seed in (3, 4))
    # Twice the digits and two more make a second rounding harmless: float32 serves 16 bits, float64 serves float32.
    wide = {16: np.float32, 32: np.float64, 64: np.longdouble}[of.bits]
    with np.errstate(all="ignore"):
        want = python(x.astype(wide), y.astype(wide)).astype(of.numpy)
        if of.bits == 64:
            want = python(x, y)
    assert same(meaning(ARITHMETIC[operation, of.name], x, y), want).all()


def test_float_division_by_python_floors() -> None:
    for name in ("float32", "float64"):
        of = dtype(name)
        x, y = (values(of, 3000, seed) for seed in (5, 6))
        keep = np.isfinite(x) & np.isfinite(y) & (y != 0)
        x, y = x[keep], y[keep]
        quotient, remainder = (meaning(ARITHMETIC[operation, name], x, y) for operation in ("floordiv", "mod"))
        with np.errstate(all="ignore"):
            for each in zip(x.tolist(), y.tolist(), quotient.tolist(), remainder.tolist(), strict=True):
                a, b, q, r = each
                exact = of.numpy.type(a % b)
                assert r == exact, each
                assert math.copysign(1, r) == math.copysign(1, b), each
                if name == "float64":
                    assert q == a // b, each


def test_fma_rounds_once() -> None:
    a = np.float32(1 + 2**-12)
    product = np.array([a]), np.array([a]), np.array([-(a * a)], np.float32)
    exact = float(a) * float(a) - float(np.float32(a * a))
    assert exact != 0
    assert meaning(ARITHMETIC["fma", "float32"], *product)[0] == np.float32(exact)


@pytest.mark.parametrize("of", VALUES, ids=repr)
def test_comparisons(of: DType) -> None:
    x = np.repeat(extremes(of), extremes(of).size)
    y = np.tile(extremes(of), extremes(of).size)
    for operation in ("eq", "ne", "lt", "le", "gt", "ge"):
        got = meaning(COMPARE[operation, of.name], x, y)
        want = [getattr(operator, operation)(a, b) for a, b in zip(x.tolist(), y.tolist(), strict=True)]
        assert got.dtype == np.bool_
        assert got.tolist() == want


def test_select_and_move_keep_bits() -> None:
    condition = values(dtype("bool"), COUNT, 7)
    for of in STORED:
        bits = values(of if of in VALUES else of.unsigned_word, COUNT, 8)
        a = bits if bits.dtype == of.numpy else bits.view(of.numpy)
        b = a[::-1].copy()
        chosen = meaning(SELECT[of.name], condition, a, b)
        assert chosen.tobytes() == np.array([p if c else q for c, p, q in zip(condition, a, b, strict=True)]).tobytes()
        assert meaning(MOVE[of.name], a).tobytes() == a.tobytes()


def test_every_pair_converts() -> None:
    assert set(CONVERT) == {(to.name, of.name) for to in VALUES for of in VALUES} | set(FLOAT8)
    for (to, of), row in CONVERT.items():
        got = meaning(row, np.array([0, 1], dtype(of).numpy))
        assert got.dtype == dtype(to).numpy
        assert got.tolist() == [0, 1]


@pytest.mark.parametrize("of", FLOATS, ids=repr)
def test_float_to_integer_goes_toward_zero_and_saturates(of: DType) -> None:
    source = values(of, 1500, 9)
    with np.errstate(invalid="ignore"):
        source = source[~np.isnan(source.astype(np.float64))]
    for to in INTEGERS:
        want = [max(to.min, min(to.max, math.trunc(x) if math.isfinite(x) else (to.max if x > 0 else to.min)))
                for x in source.astype(np.float64).tolist()]  # fmt: skip
        assert meaning(CONVERT[to.name, of.name], source).tolist() == want


def test_integers_to_16_bit_floats_round_once() -> None:
    # 2049 * 2**30 + 1 lies just above the middle between two float16 or bfloat16 neighbours of its size: rounding to
    # float32 first would lose the 1.
    above, middle = (1 << 40) + (1 << 32) + 1, (1 << 40) + (1 << 32)
    got = meaning(CONVERT["bfloat16", "int64"], np.array([above, middle]))
    assert got.tolist() == [float((1 << 40) + (1 << 33)), float(1 << 40)]


def test_bitcasts_and_elements() -> None:
    assert meaning(BITCAST["uint32", "float32"], np.array([1.0], np.float32)).tolist() == [0x3F800000]
    assert {(to, of) for to, of in BITCAST} == {(a.name, b.name) for a in STORED for b in STORED if a.bits == b.bits}
    word = np.array([0x44332211], np.uint32)
    assert [int(meaning(EXTRACT[8], word, index=index)[0]) for index in range(4)] == [0x11, 0x22, 0x33, 0x44]
    assert int(meaning(EXTRACT[16], word, index=1)[0]) == 0x4433
    inserted = meaning(INSERT[8], word, np.array([0xAB], np.uint8), index=2)
    assert inserted.dtype == np.uint32 and int(inserted[0]) == 0x44AB2211
    assert int(meaning(INSERT[16], word, np.array([0xBEEF], np.uint16), index=0)[0]) == 0x4433BEEF
    assert UNPACK64.meaning is not None
    low, high = UNPACK64.meaning(np.array([0x1122334455667788], np.uint64))
    assert (int(low[0]), int(high[0])) == (0x55667788, 0x11223344)
    assert int(meaning(PACK64, low, high)[0]) == 0x1122334455667788


def test_flags_change_no_result() -> None:
    x, y = np.array([7, 100], np.int32), np.array([3, 9], np.int32)
    for operation, flags in (("add", ["nowrap"]), ("floordiv", ["nonnegative"]), ("shl", ["nowrap", "bounded"])):
        row = ARITHMETIC[operation, "int32"]
        plain = meaning(row, x, y).tolist()
        for flag in flags:
            assert meaning(row, x, y, **{flag: 1}).tolist() == plain
            assert row.written({flag: 1}).text != row.written({}).text


def test_rows_are_well_formed() -> None:
    for row in ROWS:
        assert row.pure and not row.memory and not row.tile
        assert row.operands[0].writes
    assert {"laneid", "tid", "warp", "tid.x", "ctaid.z", "ntid.y", "nctaid.x", "cluster_ctarank"} <= set(SPECIAL)


def test_special_registers_use_what_is_known_of_the_block() -> None:
    warp = SPECIAL["warp"]
    assert "threadIdx.x / 32" in warp.written({"ntid_x": 128, "ntid_y": 1, "ntid_z": 1}).text
    assert "32 * threadIdx.y" in warp.written({"ntid_x": 32, "ntid_y": 4, "ntid_z": 1}).text
    assert "blockDim.y * threadIdx.z" in warp.written({}).text


def test_types_without_arithmetic_are_refused_by_the_meaning() -> None:
    with pytest.raises(TraceError, match="no arithmetic"):
        meaning(ARITHMETIC["add", "int32"], np.zeros(2, np.bool_), np.zeros(2, np.bool_))
    assert float32.name in {name for _, name in ARITHMETIC}
    assert not {("add", each) for each in DTYPES if each.startswith("float8")} & set(ARITHMETIC)
