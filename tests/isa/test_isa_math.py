"""The meanings of the mathematical rows against long doubles, and what the compiler makes of their code."""

from __future__ import annotations

import re

import float_errors
import numpy as np
import pytest
from float_errors import arguments, exact, rounded, ulps
from isa_emission import kernel
from isa_values import same

from warpjit import config
from warpjit.cuda import disassemble, toolchain
from warpjit.cuda.disassemble import Instruction
from warpjit.cuda.prelude import FUNCTIONS, prelude
from warpjit.ir.dtypes import DType, dtype, float32
from warpjit.isa.row import Array, Row
from warpjit.isa.scalar_math import APPROXIMATE, ERRORS, MATH, ROWS, evaluate
from warpjit.isa.scalar_text import FLOATS, HALVES
from warpjit.isa.table import lookup
from warpjit.isa.target import Target

SHORT = (*HALVES, float32)
INF, NAN = np.inf, np.nan


def computed(row: Row, values: Array) -> Array:
    assert row.meaning is not None
    got = np.asarray(row.meaning(values))
    assert (got.dtype, got.shape) == (values.dtype, values.shape)
    return got


def test_the_tables_are_complete() -> None:
    assert set(MATH) == {(name, of.name) for name in float_errors.ACCURATE for of in FLOATS}
    assert set(APPROXIMATE) == {(name, of.name) for name in float_errors.FAST for of in SHORT}
    assert {name: (error.single, error.double) for name, error in ERRORS.items()} == float_errors.ACCURATE
    assert len(ROWS) == 2 * 8 - 1
    assert all(row.pure and row.notes for row in (*MATH.values(), *APPROXIMATE.values(), *ROWS))
    assert lookup("ex2.ftz.approx.f32") in ROWS and lookup("tanh.approx.f32") is APPROXIMATE["tanh", "float32"]


@pytest.mark.parametrize("name", float_errors.ACCURATE)
def test_accurate_functions_are_within_their_bounds(name: str) -> None:
    for of in (float32, dtype("float64")):
        x = arguments(of, 4096)
        got = computed(MATH[name, of.name], x)
        wrong = ~float_errors.accurate(name, x, got)
        assert not wrong.any(), (of, x[wrong][:5], got[wrong][:5])
        # The simulator is no worse than a correct rounding of what numpy computes in float64.
        assert of != float32 or (ulps(got, rounded(exact(name, x), of)) <= 1).all()


@pytest.mark.parametrize("of", HALVES, ids=repr)
def test_16_bit_floats_round_once_more(of: DType) -> None:
    x = np.arange(1 << 16, dtype=np.uint16).view(of.numpy)
    for name in float_errors.ACCURATE:
        got = computed(MATH[name, of.name], x)
        single = computed(MATH[name, "float32"], x.astype(np.float32))
        with np.errstate(all="ignore"):
            assert same(got, single.astype(of.numpy)).all(), name
        assert float_errors.accurate(name, x, got).all(), name


def test_fast_functions_are_within_their_bounds() -> None:
    x = arguments(float32, 8192)
    for name in float_errors.FAST:
        got = computed(APPROXIMATE[name, "float32"], x)
        wrong = ~float_errors.fast(name, x, got)
        assert not wrong.any(), (name, x[wrong][:5], got[wrong][:5])
        for of in HALVES:
            with np.errstate(all="ignore"):
                narrow = x.astype(of.numpy)
                single = computed(APPROXIMATE[name, "float32"], narrow.astype(np.float32))
                assert same(computed(APPROXIMATE[name, of.name], narrow), single.astype(of.numpy)).all(), name


def test_the_products_of_fast_functions_are_the_device_s() -> None:
    x = np.array([10000.0, 80.0, -60.3], np.float32)
    turns = np.float64(x[0]) * np.float64(np.float32(1 / (2 * np.pi)))
    cut = (np.float32(turns).view(np.uint32) - (np.float32(turns) > turns)).view(np.float32)
    angle = np.float64(cut) % 1 * 2 * np.pi
    assert computed(APPROXIMATE["sin", "float32"], x)[0] == np.float32(np.sin(angle)) != np.float32(np.sin(1e4))
    power = np.float64(x[1] * np.float32(np.log2(np.e)))
    assert computed(APPROXIMATE["exp", "float32"], x)[1] == np.float32(np.exp2(power)) != np.float32(np.exp(80.0))
    logarithm = np.float32(np.log2(np.float64(x[1]))) * np.float32(np.log(2))
    assert computed(APPROXIMATE["log", "float32"], x)[1] == logarithm


SPECIAL: dict[str, list[tuple[float, float]]] = {
    "exp": [(-INF, 0.0), (INF, INF), (0.0, 1.0), (-0.0, 1.0), (89.0, INF), (-104.0, 0.0), (-103.0, 2.0**-149)],
    "exp2": [
        (-INF, 0.0),
        (INF, INF),
        (-0.0, 1.0),
        (128.0, INF),
        (-149.0, 2.0**-149),
        (-140.0, 2.0**-140),
        (-151.0, 0.0),
    ],
    "log": [(0.0, -INF), (-0.0, -INF), (-1.0, NAN), (-INF, NAN), (INF, INF), (1.0, 0.0)],
    "log2": [(0.0, -INF), (-0.0, -INF), (-1.0, NAN), (-INF, NAN), (INF, INF), (1.0, 0.0), (2.0**-149, -149.0)],
    "sin": [(0.0, 0.0), (-0.0, -0.0), (INF, NAN), (-INF, NAN)],
    "cos": [(0.0, 1.0), (-0.0, 1.0), (INF, NAN), (-INF, NAN)],
    "tanh": [(0.0, 0.0), (-0.0, -0.0), (INF, 1.0), (-INF, -1.0), (2.0**-149, 2.0**-149)],
    "erf": [(0.0, 0.0), (-0.0, -0.0), (INF, 1.0), (-INF, -1.0)],
    "rsqrt": [(0.0, INF), (-0.0, -INF), (INF, 0.0), (-1.0, NAN), (-INF, NAN), (0.25, 2.0), (2.0**-148, 2.0**74)],
    "rcp": [(0.0, INF), (-0.0, -INF), (INF, 0.0), (-INF, -0.0), (2.0**127, 2.0**-127), (2.0**-149, INF), (-4.0, -0.25)],
    "sqrt": [(0.0, 0.0), (-0.0, -0.0), (INF, INF), (-1.0, NAN), (-INF, NAN), (2.0**-148, 2.0**-74)],
    "floor": [(-0.0, -0.0), (0.5, 0.0), (-0.5, -1.0), (INF, INF), (-INF, -INF), (2.0**-149, 0.0), (-(2.0**-149), -1.0)],
    "ceil": [(-0.0, -0.0), (0.5, 1.0), (-0.5, -0.0), (INF, INF), (-INF, -INF), (2.0**-149, 1.0)],
    "round": [
        (-0.0, -0.0),
        (0.5, 0.0),
        (1.5, 2.0),
        (2.5, 2.0),
        (-0.5, -0.0),
        (-1.5, -2.0),
        (8388607.5, 8388608.0),
        (-INF, -INF),
    ],
    "trunc": [(-0.0, -0.0), (1.9, 1.0), (-1.9, -1.0), (-0.9, -0.0), (INF, INF)],
}


@pytest.mark.parametrize("name", SPECIAL)
def test_special_values(name: str) -> None:
    x, want = np.array([*SPECIAL[name], (NAN, NAN)], np.float32).T.copy()
    for table in (MATH, APPROXIMATE):
        if (name, "float32") in table:
            got = computed(table[name, "float32"], x)
            assert same(got, want).all(), (x, got, want)
            assert got[-1:].view(np.uint32) == 0x7FFFFFFF
    with np.errstate(over="ignore"):
        known = np.array([evaluate(name, number) for number, _ in SPECIAL[name]]).astype(np.float32)
    assert same(known, want[:-1]).all()


def test_float64_keeps_the_payload_of_a_nan() -> None:
    nan = np.array([0xFFF8000000001234], np.uint64).view(np.float64)
    assert computed(MATH["exp", "float64"], nan).view(np.uint64) == 0xFFF8000000001234
    assert computed(MATH["log", "float64"], np.array([-1.0])).view(np.uint64) == 0xFFF8000000000000


FLUSHED = {
    "ex2": [(-126.0, 2.0**-126), (-126.5, 0.0), (2.0**-149, 1.0)],
    "lg2": [(2.0**-126, -126.0), (2.0**-127, -INF), (-(2.0**-127), -INF)],
    "sin": [(-(2.0**-130), -0.0)],
    "cos": [(2.0**-130, 1.0)],
    "rcp": [(2.0**-127, INF), (-(2.0**-127), -INF), (-(2.0**127), -0.0), (2.0**126, 2.0**-126)],
    "rsqrt": [(2.0**-127, INF), (-(2.0**-127), -INF)],
    "sqrt": [(2.0**-127, 0.0), (-(2.0**-127), -0.0)],
}


@pytest.mark.parametrize("instruction", FLUSHED)
def test_flushing_forms_take_and_give_zeros(instruction: str) -> None:
    row = lookup(f"{instruction}.approx.ftz.f32")
    x, want = np.array(FLUSHED[instruction], np.float32).T.copy()
    assert same(computed(row, x), want).all()
    ordinary = np.array([0.75, 1.0, 3.5, -2.0], np.float32)
    assert same(computed(row, ordinary), computed(lookup(f"{instruction}.approx.f32"), ordinary)).all()


# ---- machine code ----------------------------------------------------------------------------------------

UNITS = {
    "exp2": "EX2",
    "exp": "EX2",
    "log2": "LG2",
    "log": "LG2",
    "sin": "SIN",
    "cos": "COS",
    "tanh": "TANH",
    "rcp": "RCP",
    "rsqrt": "RSQ",
    "sqrt": "SQRT",
}
# Slow paths that ptxas writes as subroutines.
CALLING = {("rcp", of.name) for of in FLOATS} | {(name, "float64") for name in ("rsqrt", "sin", "cos")}


def machine_code(rows: list[Row], target: str) -> list[list[Instruction]]:
    """The instructions of one kernel for each row."""
    text = "".join(kernel(row, f"k{index}", {}) for index, row in enumerate(rows))
    called = set(re.findall(r"\w+(?=\()", text)) & set(FUNCTIONS)
    built = toolchain.compile_cubin(prelude(called) + text, Target.parse(target), config=config.read())
    found = disassemble.instructions(disassemble.sass(built.cubin, config.read()))
    by_name: dict[str, list[Instruction]] = {f"k{index}": [] for index in range(len(rows))}
    for instruction in found:
        by_name[instruction.function].append(instruction)
    return list(by_name.values())


@pytest.mark.nvcc
@pytest.mark.parametrize("target", ["sm_80", "sm_90a", "sm_120"])
def test_accurate_functions_are_inlined(target: str) -> None:
    for key, code in zip(MATH, machine_code(list(MATH.values()), target), strict=True):
        mnemonics = {instruction.mnemonic for instruction in code}
        assert ("CALL" in mnemonics) == (key in CALLING), key
        # sin and cos may keep digits of pi in an array.
        assert key[0] in ("sin", "cos") or not mnemonics & {"LDL", "STL"}, key
        if key[0] in ("floor", "ceil", "round", "trunc"):
            assert sum(instruction.mnemonic == "FRND" for instruction in code) == 1


@pytest.mark.nvcc
@pytest.mark.parametrize("target", ["sm_80", "sm_90a", "sm_120"])
def test_fast_functions_are_one_special_instruction(target: str) -> None:
    for (name, of), code in zip(APPROXIMATE, machine_code(list(APPROXIMATE.values()), target), strict=True):
        assert [each.opcode for each in code if each.mnemonic == "MUFU"] == [f"MUFU.{UNITS[name]}"], (name, of)
        assert not {each.mnemonic for each in code} & {"CALL", "LDL", "STL"}, (name, of)
    lean = machine_code(list(ROWS), target)
    for row, code in zip(ROWS, lean, strict=True):
        if ".ftz." in row.text and not row.text.startswith(("sin", "cos")):
            assert not [each for each in code if each.mnemonic in ("FMUL", "FSETP", "FSEL", "FFMA")], row
