"""The parts of the emitter that need no compiler: names, literals, casts and templates."""

from __future__ import annotations

import struct

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from warpjit.cuda.names import RESERVED, Namer, identifier
from warpjit.cuda.scalars import asm_dtype, c_type, constraint, literal, recast
from warpjit.cuda.templates import Hole, fill, parse, predicated, quoted, single_result
from warpjit.errors import InstructionError
from warpjit.ir.dtypes import (
    DTYPES,
    bfloat16,
    bool_,
    dtype,
    float16,
    float32,
    float64,
    int4,
    int8,
    int32,
    uint8,
    uint32,
)
from warpjit.ir.nodes import Const

# ---- names -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "name", ["int", "and", "threadIdx", "sqrtf", "__mulhi", "smem", "dim3", "linux", "asm", "uint3"]
)
def test_reserved_names_are_never_given_out(name: str) -> None:
    assert name in RESERVED
    assert identifier(name) not in RESERVED
    assert Namer().name("local", name) not in RESERVED


@pytest.mark.parametrize("name", ["x", "ar_0", "tile", "v"])
def test_other_names_stay(name: str) -> None:
    assert identifier(name) == name


@given(st.text(max_size=8))
def test_every_text_becomes_an_identifier(name: str) -> None:
    found = identifier(name)
    assert found.isidentifier() and found.isascii()
    assert "__" not in found and not found.startswith("wj_") and found not in RESERVED


def test_names_of_different_things_differ() -> None:
    namer = Namer()
    given_out = [
        namer.name("local", "ar_1"),
        namer.group("registers", "ar", ("_0", "_1")) + "_1",
        namer.name("buffer", "int"),
        namer.name("local", "int"),
        namer.name("local", "int_"),
    ]
    assert len(set(given_out)) == len(given_out)
    assert namer.name("buffer", "int") == given_out[2]


def test_names_follow_from_the_order_of_asking_alone() -> None:
    def run() -> list[str]:
        namer = Namer()
        return [namer.name("local", name) for name in ("int", "int_", "x", "int", "é")]

    assert run() == run()


# ---- literals and casts ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("value", "of", "text"),
    [
        (True, bool_, "true"),
        (7, int32, "7"),
        (-7, int32, "(-7)"),
        (-(2**31), int32, "(-2147483647 - 1)"),
        (2**32 - 1, uint32, "4294967295u"),
        (-(2**63), dtype("int64"), "(-9223372036854775807ll - 1)"),
        (2**64 - 1, dtype("uint64"), "18446744073709551615ull"),
        (-128, int8, "((signed char)-128)"),
        (0.5, float32, "0.5f"),
        (-0.0, float32, "(-0.0f)"),
        (float("inf"), float32, "__int_as_float(0x7f800000)"),
        (float("-inf"), float64, "__longlong_as_double(0xfff0000000000000)"),
        (1.5, float16, "(unsigned short)0x3e00"),
        (-2.0, bfloat16, "(unsigned short)0xc000"),
    ],
)
def test_literals(value: float, of: object, text: str) -> None:
    assert literal(Const(value, of)) == text  # type: ignore[arg-type]


@given(st.floats(width=32, allow_nan=False, allow_infinity=False))
def test_a_float32_literal_names_its_number_even_by_way_of_a_double(value: float) -> None:
    digits = literal(Const(value, float32)).strip("()").removesuffix("f")
    assert struct.pack("<f", np.float32(float(digits))) == struct.pack("<f", value)


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_a_float64_literal_names_its_number(value: float) -> None:
    assert struct.pack("<d", float(literal(Const(value, float64)).strip("()"))) == struct.pack("<d", value)


def test_every_type_that_stands_alone_has_a_variable_and_a_constraint_of_its_width() -> None:
    bytes_of = {"r": 4, "h": 2, "l": 8, "f": 4, "d": 8}
    for each in DTYPES.values():
        if each.bits >= 8:
            carrier = asm_dtype(each)
            assert bytes_of[constraint(carrier)] == max(each.bytes, 4 if each.bytes == 1 else 0)
            assert c_type(each)
    with pytest.raises(InstructionError, match="packed"):
        c_type(int4)


def test_casts_keep_bits_or_are_refused() -> None:
    assert recast("x", uint32, float32) == "__uint_as_float(x)"
    assert recast("x", float64, dtype("uint64")) == "__double_as_longlong(x)"
    assert recast("x", int32, uint32) == "(unsigned int)x"
    assert recast("x", uint32, bool_) == "(x != 0)"
    assert recast("x", float16, bfloat16) == "x"
    for have, want in ((float32, float64), (uint8, float32), (float32, int8), (int32, dtype("int64"))):
        with pytest.raises(InstructionError, match="expected a"):
            recast("x", have, want)


# ---- templates ---------------------------------------------------------------------------------------


def test_templates_tell_braces_from_holes() -> None:
    assert parse("mov.b64 {{{low}, {high}}}, {a[3]};") == (
        "mov.b64 {",
        Hole("low"),
        ", ",
        Hole("high"),
        "}, ",
        Hole("a", 3),
        ";",
    )
    with pytest.raises(InstructionError, match="single brace"):
        parse("{ mov {a}; }")


def test_percent_signs_are_doubled_once() -> None:
    assert quoted("mov %tid.x") == quoted("mov %%tid.x") == "mov %%tid.x"


def test_a_single_assignment_is_recognised() -> None:
    assert single_result(parse("{d} = {a} + 1;")) == (Hole("d"), ("", Hole("a"), " + 1"))
    assert single_result(parse("{d} = {a};")) == (Hole("d"), ("", Hole("a"), ""))
    for other in ("{d} = {d} + {a};", "{d} = 1; {e} = 2;", "{{ {d} = 1; }}", "{d} += {a};", "{d} == {a};"):
        assert single_result(parse(other)) is None, other


def _guarded(text: str) -> str | None:
    found = predicated(parse(text), "@p ")
    return None if found is None else fill(found, lambda hole: f"<{hole.name}>")


def test_a_guard_stands_before_each_instruction_and_no_directive() -> None:
    assert _guarded("cp.async [{dst}], [{src}], 16;") == "@p cp.async [<dst>], [<src>], 16;"
    assert (
        _guarded("{{ .reg .f32 x; mov.b32 x, {{0, {a}}}; add.f32 {d}, x, x; }}")
        == "{ .reg .f32 x; @p mov.b32 x, {0, <a>}; @p add.f32 <d>, x, x; }"
    )


def test_what_has_a_guard_or_a_label_cannot_get_another() -> None:
    assert _guarded("{{ L: bra L; }}") is None
    assert _guarded("mov.u32 {d}, 1; @q mov.u32 {d}, 0;") is None
