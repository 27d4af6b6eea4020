"""The emitter: what it writes for kernels built by hand, and what nvcc makes of that."""

from __future__ import annotations

import re
import subprocess
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from golden import check_golden
from hand_built import MMA, Hand, const, kernel, seed, slots, tensor

from warpjit import config as config_module
from warpjit.cuda.codegen import Emitted, emit
from warpjit.cuda.disassemble import Instruction, count, instructions, sass
from warpjit.cuda.toolchain import compile_cubin, compile_ptx, find_nvcc, option_flags
from warpjit.errors import NOWHERE, CompileError, Frame, InstructionError, Loc, TraceError
from warpjit.ir.dtypes import bool_, dtype, float32, float64, int32, uint32
from warpjit.ir.nodes import (
    Address,
    Assign,
    Assume,
    Break,
    Const,
    Continue,
    Declare,
    For,
    Fragment,
    If,
    Kernel,
    Launch,
    Local,
    Return,
    SharedBuffer,
    Slot,
    While,
)
from warpjit.isa.memory import LOAD
from warpjit.isa.needs import EVERYWHERE
from warpjit.isa.row import Asm, Cxx, Row
from warpjit.isa.scalar import ARITHMETIC, COMPARE
from warpjit.isa.table import lookup
from warpjit.isa.target import Target
from warpjit.passes.plan import plan

CONFIG = config_module.read()
SM_90A = Target.parse("sm_90a")
SM_80 = Target.parse("sm_80")
DATA = tensor("data", "float32", 0)
N = Local("n", int32)
SYNC = (lookup("bar.sync"), const(0), None)


def emitted(of: Kernel, target: Target = SM_90A, lineinfo: bool = False) -> Emitted:
    return emit(of, plan(of, target.max_shared), target, lineinfo=lineinfo)


def body(of: Kernel) -> list[str]:
    """The lines between the kernel's braces, without their indentation."""
    lines = emitted(of).text.splitlines()
    start = next(index for index, line in enumerate(lines) if line.startswith(f"{of.name}("))
    return [line.strip() for line in lines[start + 1 : -1]]


def built(of: Kernel, target: Target = SM_90A) -> list[Instruction]:
    """The machine code."""
    text = emitted(of, target)
    return instructions(sass(compile_cubin(text.text, target, config=CONFIG, locate=text.place).cubin, CONFIG))


def place(line: int) -> Loc:
    return Loc((Frame("/home/user/kernels.py", "kernel", line, 4, 9, "    secret = source"),))


# ---- the seed's program ------------------------------------------------------------------------------


def test_the_seed_is_written_as_it_was_read() -> None:
    check_golden("hand_built_seed", emitted(seed()).text)


@pytest.mark.parametrize("target", [SM_80, SM_90A], ids=str)
def test_the_seed_has_one_of_each_matrix_instruction(target: Target) -> None:
    code = built(seed(), target)
    assert [each.opcode for each in code if each.mnemonic == "HMMA"] == ["HMMA.16816.F32"]
    assert sorted(each.opcode for each in code if each.mnemonic == "LDSM") == ["LDSM.16.M88.2", "LDSM.16.M88.4"]
    # The zero that C starts from, the barrier's number and the offsets of 24 copies cost no instruction.
    assert "RZ" in next(each.operands for each in code if each.mnemonic == "HMMA")
    assert count(code, "BAR") == 1 and count(code, "STS") == 12 and count(code, "STG") == 4
    assert count(code, "LDL") == count(code, "STL") == 0


# ---- the text ----------------------------------------------------------------------------------------


def test_equal_kernels_have_equal_text_wherever_they_stand() -> None:
    def at(line: int) -> Kernel:
        hand = Hand(loc=place(line))
        hand.store(Address(DATA, hand.arith("mul", hand.special("laneid"), 4)), const(1.0, float32))
        return replace(kernel("k", (DATA,), hand), loc=place(line))

    first, second = emitted(at(10)), emitted(at(99))
    assert first.text == second.text
    assert "kernels.py" not in first.text and "secret" not in first.text
    assert first.lines != second.lines


def test_each_line_knows_its_place() -> None:
    hand = Hand(loc=place(3))
    lane = hand.special("laneid")
    hand.loc = place(4)
    hand.store(Address(DATA, lane), const(1.0, float32))
    found = emitted(kernel("k", (DATA,), hand))
    lines = found.text.splitlines()
    assert len(lines) == len(found.lines)
    places = {text.strip().split(" ")[0]: found.place(number) for number, text in enumerate(lines, 1)}
    assert places["int"] == place(3) and places["*(float*)(data"] == place(4)
    assert found.place(0) == found.place(len(lines) + 1) == found.place(1) == NOWHERE


@pytest.mark.parametrize("code", [Cxx("no_such_name;"), Asm("fence.acq_rel.cluster;")], ids=["front end", "ptxas"])
def test_what_the_compiler_refuses_is_shown_at_the_users_line(code: Asm | Cxx) -> None:
    hand = Hand(loc=place(7))
    hand.op(Row("wrong", (), code, None, EVERYWHERE, memory=True))
    text = emitted(kernel("k", (DATA,), hand))
    with pytest.raises(CompileError) as caught:
        compile_cubin(text.text, SM_80, config=CONFIG, locate=text.place)
    assert [finding.loc for finding in caught.value.findings] == [place(7)]


def test_line_marks_lead_profilers_to_the_users_file() -> None:
    hand = Hand(loc=place(41))
    lane = hand.special("laneid")
    inner = Hand(count=hand.count, loc=place(43))
    inner.store(Address(DATA, lane), const(1.0, float32))
    inner.op(*SYNC)
    hand.nodes.append(For(Local("i", int32), const(0), N, 1, tuple(inner.nodes), loc=place(42)))
    text = emitted(kernel("k", (DATA, N), hand), lineinfo=True)
    lines = text.text.splitlines()
    assert '#line 41 "/home/user/kernels.py"' in lines
    assert len(lines) == len(text.lines)
    ptx = compile_ptx(text.text, SM_90A, options=option_flags(lineinfo=True), config=CONFIG)
    (number,) = re.findall(r'\.file\s+(\d+) "/home/user/kernels.py"', ptx)
    assert {"41", "42", "43"} <= set(re.findall(rf"\.loc\s+{number} (\d+)", ptx))


def test_names_that_cpp_or_cuda_own_are_replaced() -> None:
    words, volatile = tensor("int", "float32", 0), Local("volatile", int32)
    hand = Hand()
    hand.op(ARITHMETIC["add", "int32"], Local("threadIdx", int32), volatile, const(1))
    hand.store(Address(words, Local("threadIdx", int32)), const(1.0, float32))
    of = kernel("while", (words, volatile), hand)
    text = emitted(of)
    assert text.entry == "while_"
    assert compile_cubin(text.text, SM_90A, config=CONFIG).cubin


def test_with_nvccs_own_headers_the_text_gives_the_same_code(tmp_path: Path) -> None:
    text = emitted(seed()).text
    source, cubin = tmp_path / "seed.cu", tmp_path / "seed.cubin"
    source.write_text(text)
    subprocess.run([find_nvcc(CONFIG), "-cubin", "-gencode", SM_90A.gencode, "-o", str(cubin), str(source)], check=True)
    assert instructions(sass(cubin.read_bytes(), CONFIG)) == built(seed())


# ---- the kernel's head -------------------------------------------------------------------------------


def _head(launch: Launch, target: Target = SM_90A) -> str:
    text = emitted(kernel("k", (DATA, N), Hand(), launch=launch), target)
    assert compile_cubin(text.text, target, config=CONFIG).cubin
    return next(line for line in text.text.splitlines() if line.startswith('extern "C"'))


GRID = (1, 1, 1)


def test_launch_attributes() -> None:
    assert "__launch_bounds__(96)" in _head(Launch(GRID, (32, 3, 1)))
    assert "__launch_bounds__(64, 4)" in _head(Launch(GRID, (64, 1, 1), min_blocks_per_sm=4))
    assert "__cluster_dims__(2, 1, 1)" in _head(Launch(GRID, (64, 1, 1), cluster=(2, 1, 1)))
    # nvcc refuses launch bounds beside a limit of registers.
    limited = _head(Launch(GRID, (64, 1, 1), max_registers=64))
    assert "maxnreg(64)" in limited and "__launch_bounds__" not in limited


def test_launch_attributes_that_exclude_each_other_are_refused() -> None:
    with pytest.raises(TraceError, match="max_registers or min_blocks_per_sm but got both"):
        _head(Launch(GRID, (64, 1, 1), max_registers=64, min_blocks_per_sm=2))
    with pytest.raises(TraceError, match="sm_80 has no clusters"):
        _head(Launch(GRID, (64, 1, 1), cluster=(2, 1, 1)), SM_80)


def test_parameters_have_their_types() -> None:
    scalars = tuple(
        Local(f"p{index}", dtype(name)) for index, name in enumerate(("bool", "int64", "float16", "float64"))
    )
    text = emitted(kernel("k", (tensor("a", "int8", 0), tensor("b", "int8", 1, noalias=True), *scalars), Hand())).text
    assert (
        "k(unsigned char* a, unsigned char* __restrict__ b, bool p0, long long p1, unsigned short p2, double p3) {"
        in text
    )


def test_a_tensor_that_nothing_else_reaches_is_read_through_the_read_only_path() -> None:
    def code(noalias: bool) -> list[Instruction]:
        source = tensor("source", "float32", 0, noalias=noalias)
        target = tensor("target", "float32", 1, noalias=noalias)
        hand = Hand()
        offset = hand.arith("mul", hand.special("laneid"), 4)
        hand.store(Address(target, offset), hand.load(Address(source, offset), "float32"))
        return built(kernel("k", (source, target), hand))

    assert count(code(True), "LDG.E.CONSTANT") == 1
    assert count(code(False), "LDG.E.CONSTANT") == 0


# ---- control -----------------------------------------------------------------------------------------


def test_control_statements() -> None:
    total, flag, index = Local("total", int32), Local("flag", bool_), Local("i", int32)
    hand = Hand()
    hand.nodes += [Declare(total), Assign(total, const(0))]
    stop = hand.inner()
    stop.op(COMPARE["gt", "int32"], flag, index, const(5))
    stop.nodes.append(If(flag, (Break(),), (Continue(),)))
    hand.nodes.append(For(index, N, const(0), -2, tuple(stop.nodes)))
    head = hand.inner()
    condition = head.compare("lt", total, N)
    hand.nodes.append(While(tuple(head.nodes), condition, (Assign(total, N), Return())))
    assert body(kernel("k", (DATA, N), hand)) == [
        "int total;",
        "total = 0;",
        "for (int i = n; i > 0; i -= 2) {",
        "bool flag = i > 5;",
        "if (flag) {",
        "break;",
        "} else {",
        "continue;",
        "}",
        "}",
        "for (;;) {",
        "bool c1 = total < n;",
        "if (!c1) break;",
        "total = n;",
        "return;",
        "}",
    ]


def test_the_end_of_a_range_is_evaluated_once() -> None:
    end, index = Local("end", int32), Local("i", int32)
    hand = Hand()
    hand.nodes += [Declare(end), Assign(end, N)]
    hand.nodes.append(For(index, const(0), end, 1, (If(const(True, bool_), (Assign(end, const(0)),)),)))
    assert "for (int i = 0, i_stop = end; i < i_stop; i += 1) {" in body(kernel("k", (DATA, N), hand))


def test_a_local_is_declared_where_it_is_first_defined() -> None:
    carried = Local("carried", int32)
    hand = Hand()
    hand.nodes.append(Declare(carried))
    inner = hand.inner()
    value = inner.arith("add", N, 1)
    inner.nodes.append(Assign(carried, value))
    hand.op(ARITHMETIC["add", "int32"], carried, N, const(2), params=(("nowrap", 1),))
    hand.nodes.append(If(const(True, bool_), tuple(inner.nodes)))
    assert body(kernel("k", (DATA, N), hand)) == [
        "int carried;",
        "carried = n + 2;",
        "if (true) {",
        "int t1 = n + 1;",
        "carried = t1;",
        "}",
    ]


def test_assumptions_reach_the_compiler() -> None:
    hand = Hand()
    hand.nodes += [Assume(hand.compare("lt", N, 10)), Assume(const(True, bool_))]
    big = hand.compare("gt", N, 20)
    hand.nodes.append(If(big, (Return(),)))
    hand.store(Address(DATA), const(1.0, float32))
    of = kernel("k", (DATA, N), hand)
    assert body(of).count("__builtin_assume(c1);") == 1
    assert count(built(of), "ISETP") == 0


def _loop(stop: Const | Local, *, waits: bool) -> list[Instruction]:
    hand = Hand()
    offset = hand.arith("mul", hand.special("laneid"), 4)
    inner = hand.inner()
    index = Local("i", int32)
    if waits:
        inner.op(*SYNC)
    moved = inner.arith("add", offset, inner.arith("mul", index, 512))
    inner.store(Address(DATA, moved), inner.load(Address(DATA, moved, 2048), "float32"))
    hand.nodes.append(For(index, const(0), stop, 1, tuple(inner.nodes)))
    return built(kernel("k", (DATA, N), hand))


def test_only_loops_that_wait_for_an_unknown_time_are_kept_from_unrolling() -> None:
    assert count(_loop(N, waits=True), "BAR") == 1
    assert count(_loop(const(3), waits=True), "BAR") == 3
    assert count(_loop(N, waits=False), "LDG") > 1


# ---- operands ----------------------------------------------------------------------------------------


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


def test_a_predicated_wait_becomes_a_branch() -> None:
    s = SharedBuffer("s", 8, 8)
    hand = Hand()
    p = hand.compare("lt", hand.special("laneid"), N)
    hand.op(lookup("mbarrier_wait"), Address(s), const(0), predicate=p)
    of = kernel("k", (DATA, N), hand, shared=(s,))
    assert body(of)[-1].startswith(f"if ({p.name}) asm volatile(")
    assert count(built(of), "SYNCS") >= 1


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


@pytest.mark.parametrize("name", ["int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64"])
def test_integer_literals_arrive_bit_for_bit(name: str) -> None:
    of = dtype(name)
    values = [of.min, of.max, 0, 1, of.max // 3, of.min // 5, of.max - 1, of.min + 1]
    assert _stored_words([Const(value, of) for value in values]) == [value & ((1 << of.bits) - 1) for value in values]
