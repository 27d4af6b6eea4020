"""The emitter's operands: registers, addresses, predicates and literals, and what nvcc makes of them."""

from __future__ import annotations

import re

import numpy as np
import pytest
from building import CONFIG, DATA, SM_90A, N, body, built, emitted, place
from hand_built import MMA, Hand, const, kernel, slots, tensor

from warpjit.cuda.disassemble import Instruction, count
from warpjit.cuda.toolchain import compile_cubin, compile_ptx
from warpjit.errors import InstructionError
from warpjit.ir.dtypes import bool_, dtype, float32, float64, int32, uint32
from warpjit.ir.nodes import (
    Address,
    Const,
    For,
    Fragment,
    Local,
    SharedBuffer,
    Slot,
)
from warpjit.isa.memory import LOAD
from warpjit.isa.scalar import ARITHMETIC
from warpjit.isa.table import lookup

# ---- operands ----------------------------------------------------------------------------------------


@pytest.mark.nvcc
def test_addresses_keep_their_constant_last() -> None:
    first, second = SharedBuffer("first", 256, 16), SharedBuffer("second", 256, 16)
    wide = Local("wide", dtype("int64"))
    hand = Hand()
    ldmatrix = lookup("ldmatrix.sync.aligned.m8n8.x1.shared.b16")
    r = hand.registers("r", uint32, 1)
    for offset, constant in ((N, 0), (N, 16), (wide, -16), (None, 32)):
        hand.op(ldmatrix, Fragment((slots(r),)), Address(second, offset, constant))
        hand.store(Address(second, offset, constant), Slot(r, 0))
        hand.store(Address(DATA, offset, constant), Slot(r, 0))
    of = kernel("k", (DATA, N, wide), hand, shared=(first, second))
    lines = body(of)
    assert "enum { first = 0, second = 256 };  // bytes from the arena's begin; 512 in all" in lines
    assert [re.search(r'"r"\((.*?)\) : "memory"', line)[1] for line in lines if line.startswith("asm")] == [  # type: ignore[index]
        "smem_base + n + second",
        "smem_base + n + (second + 16)",
        "smem_base + (unsigned int)wide + (second - 16)",
        "smem_base + (second + 32)",
    ]
    assert [line.removesuffix(" = r_0;").removeprefix("*(unsigned int*)") for line in lines if line[0] == "*"] == [
        "(smem + n + second)",
        "(data + n)",
        "(smem + n + (second + 16))",
        "(data + n + 16)",
        "(smem + wide + (second - 16))",
        "(data + wide - 16)",
        "(smem + (second + 32))",
        "(data + 32)",
    ]
    assert compile_cubin(emitted(of).text, SM_90A, config=CONFIG).cubin


def test_each_issue_has_its_own_registers_and_the_constant_zero_once() -> None:
    hand = Hand()
    d, a, b = hand.registers("d", float32, 8), hand.registers("a", uint32, 4), hand.registers("b", uint32, 4)
    zero = (const(0.0, float32),) * 4
    items = [slots(d, *range(4 * n, 4 * n + 4)) for n in range(2)]
    hand.op(
        MMA,
        Fragment(tuple(items)),
        Fragment((slots(a), slots(a))),
        Fragment((slots(b, 0, 1), slots(b, 2, 3))),
        Fragment((zero, tuple(items[0]))),
        issues=2,
    )
    first, second = [line for line in body(kernel("k", (DATA,), hand)) if line.startswith("asm")]
    assert '"=f"(d_0)' in first and '"r"(b_0), "r"(b_1), "f"(0.0f)' in first
    assert '"=f"(d_4)' in second and '"r"(b_2), "r"(b_3), "f"(d_0)' in second
    assert "volatile" not in first and "memory" not in first


@pytest.mark.nvcc
def test_registers_of_another_type_are_renamed_for_nothing() -> None:
    def code(words: str, result: str) -> list[Instruction]:
        hand = Hand()
        offset = hand.arith("mul", hand.special("laneid"), 4)
        a, b = hand.registers("a", dtype(words), 4), hand.registers("b", dtype(words), 2)
        d = hand.registers("d", dtype(result), 4)
        for index, slot in enumerate((*slots(a), *slots(b))):
            hand.op(LOAD["global", words], slot, Address(DATA, offset, 128 * index))
        zero = Fragment(((const(0.0, float32),) * 4,))
        hand.op(MMA, Fragment((slots(d),)), Fragment((slots(a),)), Fragment((slots(b),)), zero)
        for index, slot in enumerate(slots(d)):
            hand.store(Address(DATA, offset, 1024 + 128 * index), slot)
        return built(kernel("k", (DATA,), hand))

    plain, renamed = code("uint32", "float32"), code("float32", "int32")
    assert [each.opcode for each in renamed] == [each.opcode for each in plain]


@pytest.mark.nvcc
def test_a_predicate_guards_the_instruction_and_keeps_what_it_would_write() -> None:
    s, a = SharedBuffer("s", 512, 16), tensor("a", "float32", 1)
    hand = Hand()
    lane = hand.special("laneid")
    p, offset = hand.compare("lt", lane, N), hand.arith("mul", lane, 16)
    copy, size = lookup("cp.async.cg.shared.global"), (("size", 16),)
    hand.op(copy, Address(s, offset), Address(a, offset), None, None, params=size, predicate=p)
    d = hand.registers("d", float32, 1)
    hand.op(ARITHMETIC["sqrt", "float32"], Slot(d, 0), Slot(d, 0), predicate=p)
    hand.op(ARITHMETIC["add", "float32"], Slot(d, 0), Slot(d, 0), const(1.0, float32), predicate=p)
    fresh = hand.value(ARITHMETIC["add", "int32"], N, const(1), params=(("nowrap", 1),), predicate=p)
    hand.op(copy, Address(s, offset), Address(a, offset), None, None, params=size, predicate=const(True, bool_))
    hand.op(copy, Address(s, offset), Address(a, offset), None, None, params=size, predicate=const(False, bool_))
    hand.store(Address(a, offset), fresh)
    of = kernel("k", (DATA, a, N), hand, shared=(s,))
    copies = [line for line in body(of) if "cp.async" in line]
    assert len(copies) == 2 and "issue" not in copies[1]
    guard = "{ .reg .pred issue; setp.ne.b32 issue, %2, 0; @issue cp.async.cg.shared.global [%0], [%1], 16; }"
    assert copies[0].startswith(f'asm volatile("{guard}" : :')
    assert copies[0].endswith(f'"r"((int){p.name}) : "memory");')
    lines = body(of)
    assert any("@issue sqrt.rn.f32 %0, %1;" in line and '"+f"(d_0)' in line for line in lines)
    assert f"if ({p.name}) d_0 = d_0 + 1.0f;" in lines
    assert f"int {fresh.name}; if ({p.name}) {fresh.name} = n + 1;" in lines
    assert count(built(of), "LDGSTS") == 2


@pytest.mark.nvcc
def test_a_predicated_wait_becomes_a_branch() -> None:
    s = SharedBuffer("s", 8, 8)
    hand = Hand()
    p = hand.compare("lt", hand.special("laneid"), N)
    hand.op(lookup("mbarrier_wait"), Address(s), const(0), predicate=p)
    of = kernel("k", (DATA, N), hand, shared=(s,))
    assert body(of)[-1].startswith(f"if ({p.name}) asm volatile(")
    assert count(built(of), "SYNCS") >= 1


@pytest.mark.nvcc
def test_the_labels_of_unrolled_waits_do_not_meet() -> None:
    s, index = SharedBuffer("s", 8, 8), Local("i", int32)
    hand = Hand()
    inner = hand.inner()
    inner.op(lookup("mbarrier_wait"), Address(s), inner.arith("mod", index, 2))
    hand.nodes.append(For(index, const(0), const(3), 1, tuple(inner.nodes)))
    assert count(built(kernel("k", (DATA,), hand, shared=(s,))), "SYNCS") >= 3


def test_operands_that_do_not_fit_are_refused() -> None:
    hand = Hand(loc=place(5))
    hand.op(ARITHMETIC["add", "float32"], Local("t", float32), Local("n", int32), const(1.0, float64))
    with pytest.raises(InstructionError, match="expected a 32-bit float32 but got") as caught:
        emitted(kernel("k", (DATA, N), hand))
    assert caught.value.findings[0].loc == place(5)
    hand = Hand()
    hand.op(ARITHMETIC["add", "float32"], Local("t", float32))
    with pytest.raises(InstructionError, match=r"add\.f32 takes 3 operands but got 1"):
        emitted(kernel("k", (DATA,), hand))
    hand = Hand()
    hand.op(ARITHMETIC["add", "float32"], Local("t", float32), Address(DATA), const(1.0, float32))
    with pytest.raises(InstructionError, match="operand 'a' is of kind scalar"):
        emitted(kernel("k", (DATA,), hand))


# ---- literals, through the compiler ------------------------------------------------------------------


def _stored_words(values: list[Const]) -> list[int]:
    """The bits that nvcc stores for each constant."""
    hand = Hand()
    for index, value in enumerate(values):
        hand.store(Address(DATA, None, 8 * index), value)
    ptx = compile_ptx(emitted(kernel("k", (DATA,), hand)).text, SM_90A, config=CONFIG)
    registers: dict[str, int] = {}
    found: dict[int, int] = {}
    for line in ptx.splitlines():
        if moved := re.match(r"\s*mov\.\w+\s+(%\w+), ([^%]\S*);", line):
            text = moved[2]
            registers[moved[1]] = int(text[2:], 16) if text[:2] in ("0f", "0d") else int(text)
        elif stored := re.match(r"\s*st\.global\.[a-z](\d+)\s+\[%rd\d+(?:\+(\d+))?\], (%\w+);", line):
            found[int(stored[2] or 0)] = registers[stored[3]] & ((1 << int(stored[1])) - 1)
    return [found[8 * index] for index in range(len(values))]


@pytest.mark.nvcc
@pytest.mark.parametrize("name", ["float32", "float64", "float16", "bfloat16", "float8_e4m3fn"])
def test_float_literals_arrive_bit_for_bit(name: str) -> None:
    of = dtype(name)
    random = np.random.default_rng(0).integers(0, 1 << of.bits, 60, np.uint64, endpoint=False)
    # Zeros of both signs, the smallest and largest numbers, infinities or NaN.
    ends = [bits << of.bits - 8 | low for bits in (0, 0x7F, 0x80, 0xFF, 0x7E) for low in (0, 1)]
    words = np.unique(np.array([*random.tolist(), *ends], np.uint64)).astype(f"u{of.bytes}")
    numbers = words.view(of.numpy)
    kept = [
        (int(word), float(number)) for word, number in zip(words, numbers, strict=True) if not np.isnan(float(number))
    ]
    assert _stored_words([Const(number, of) for _, number in kept]) == [word for word, _ in kept]


@pytest.mark.nvcc
@pytest.mark.parametrize("name", ["int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64"])
def test_integer_literals_arrive_bit_for_bit(name: str) -> None:
    of = dtype(name)
    values = [of.min, of.max, 0, 1, of.max // 3, of.min // 5, of.max - 1, of.min + 1]
    assert _stored_words([Const(value, of) for value in values]) == [value & ((1 << of.bits) - 1) for value in values]
