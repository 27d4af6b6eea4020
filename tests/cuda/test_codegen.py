"""The emitter's statements and kernel heads for kernels built by hand, and what nvcc makes of them."""

from __future__ import annotations

import re
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest
from building import CONFIG, DATA, SM_80, SM_90A, SYNC, N, body, built, emitted, place
from golden import check_golden
from hand_built import Hand, const, kernel, seed, tensor

from warpjit.cuda.disassemble import Instruction, count, instructions, sass
from warpjit.cuda.toolchain import compile_cubin, compile_ptx, find_nvcc, option_flags
from warpjit.errors import NOWHERE, CompileError
from warpjit.ir.dtypes import bool_, dtype, float32, int32
from warpjit.ir.nodes import (
    Address,
    Assign,
    Assume,
    Break,
    Const,
    Continue,
    Declare,
    For,
    If,
    Kernel,
    Launch,
    Local,
    Return,
    While,
)
from warpjit.isa.needs import EVERYWHERE
from warpjit.isa.row import Asm, Cxx, Row
from warpjit.isa.scalar import ARITHMETIC, COMPARE
from warpjit.isa.target import Target

# ---- the seed's program ------------------------------------------------------------------------------


def test_the_seed_is_written_as_it_was_read() -> None:
    check_golden("hand_built_seed", emitted(seed()).text)


@pytest.mark.nvcc
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


@pytest.mark.nvcc
@pytest.mark.parametrize("code", [Cxx("no_such_name;"), Asm("fence.acq_rel.cluster;")], ids=["front end", "ptxas"])
def test_what_the_compiler_refuses_is_shown_at_the_users_line(code: Asm | Cxx) -> None:
    hand = Hand(loc=place(7))
    hand.op(Row("wrong", (), code, None, EVERYWHERE, memory=True))
    text = emitted(kernel("k", (DATA,), hand))
    with pytest.raises(CompileError) as caught:
        compile_cubin(text.text, SM_80, config=CONFIG, locate=text.place)
    assert [finding.loc for finding in caught.value.findings] == [place(7)]


@pytest.mark.nvcc
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


@pytest.mark.nvcc
def test_names_that_cpp_or_cuda_own_are_replaced() -> None:
    words, volatile = tensor("int", "float32", 0), Local("volatile", int32)
    hand = Hand()
    hand.op(ARITHMETIC["add", "int32"], Local("threadIdx", int32), volatile, const(1))
    hand.store(Address(words, Local("threadIdx", int32)), const(1.0, float32))
    of = kernel("while", (words, volatile), hand)
    text = emitted(of)
    assert text.entry == "while_"
    assert compile_cubin(text.text, SM_90A, config=CONFIG).cubin


@pytest.mark.nvcc
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


@pytest.mark.nvcc
def test_launch_attributes() -> None:
    assert "__launch_bounds__(96)" in _head(Launch(GRID, (32, 3, 1)))
    assert "__launch_bounds__(64, 4)" in _head(Launch(GRID, (64, 1, 1), min_blocks_per_sm=4))
    assert "__cluster_dims__(2, 1, 1)" in _head(Launch(GRID, (64, 1, 1), cluster=(2, 1, 1)))
    # nvcc refuses launch bounds beside a limit of registers.
    limited = _head(Launch(GRID, (64, 1, 1), max_registers=64))
    assert "maxnreg(64)" in limited and "__launch_bounds__" not in limited


def test_parameters_have_their_types() -> None:
    scalars = tuple(
        Local(f"p{index}", dtype(name)) for index, name in enumerate(("bool", "int64", "float16", "float64"))
    )
    text = emitted(kernel("k", (tensor("a", "int8", 0), tensor("b", "int8", 1, noalias=True), *scalars), Hand())).text
    assert (
        "k(unsigned char* a, unsigned char* __restrict__ b, bool p0, long long p1, unsigned short p2, double p3) {"
        in text
    )


@pytest.mark.nvcc
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


@pytest.mark.nvcc
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


@pytest.mark.nvcc
def test_only_loops_that_wait_for_an_unknown_time_are_kept_from_unrolling() -> None:
    assert count(_loop(N, waits=True), "BAR") == 1
    assert count(_loop(const(3), waits=True), "BAR") == 3
    assert count(_loop(N, waits=False), "LDG") > 1
