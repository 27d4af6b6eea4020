"""Machine code as text and as data: where nvdisasm is found, what a line says, where the loops are."""

from __future__ import annotations

from pathlib import Path

import pytest

from warpjit import config as config_module
from warpjit.config import Config
from warpjit.cuda import disassemble
from warpjit.cuda.disassemble import Instruction, Loop, count, find_nvdisasm, instructions, loops, sass
from warpjit.cuda.prelude import PRELUDE
from warpjit.cuda.toolchain import compile_cubin
from warpjit.errors import CompileError
from warpjit.isa.target import Target

CONFIG = config_module.read()
NESTED = (
    PRELUDE
    + """
extern "C" __global__ void nested(float* p, int n, int m) {
  #pragma unroll 1
  for (int i = 0; i < n; i++) {
    float sum = 0;
    #pragma unroll 1
    for (int j = 0; j < m; j++) { sum += p[j]; asm volatile("bar.sync 0;" ::: "memory"); }
    p[i] = sum;
  }
}
extern "C" __global__ void straight(float* p) { p[threadIdx.x] = 1.0f; }
"""
)

TEXT = """
\t.section\t.text.k,"ax",@progbits
        .global         k
k:
.text.k:
        /*0000*/                   LDC R1, c[0x0][0x28] ;
.L_x_1:
.L_x_2:
        /*0010*/              @!P0 LDG.E.64 R2, desc[UR4][R2.64+0x4] ;
        /*0020*/                   BSSY B0, `(.L_x_3) ;
        /*0030*/             @UP1  UIADD3 UR4, UR4, 0x1, URZ ;
        /*0040*/               @P0 BRA `(.L_x_1) ;
.L_x_3:
        /*0050*/                   EXIT ;
.L_x_0:
        /*0060*/                   BRA `(.L_x_0);
        /*0070*/                   NOP;
.text.other:
.L_x_1:
        /*0000*/                   BRA `(.L_x_1);
"""


@pytest.fixture(scope="module", params=["sm_80", "sm_90a", "sm_120a"])
def nested(request: pytest.FixtureRequest) -> list[Instruction]:
    cubin = compile_cubin(NESTED, Target.parse(request.param), config=CONFIG).cubin
    return instructions(sass(cubin, CONFIG))


def test_every_part_of_a_line_is_read() -> None:
    first, load, bssy, uniform, branch, leave, trap, nop, other = instructions(TEXT)
    assert first == Instruction("k", 0, "", "LDC", "R1, c[0x0][0x28]", ())
    assert load == Instruction("k", 16, "@!P0", "LDG.E.64", "R2, desc[UR4][R2.64+0x4]", (".L_x_1", ".L_x_2"))
    assert load.mnemonic == "LDG"
    assert (bssy.target, bssy.jumps) == (0x50, False)
    assert (uniform.predicate, uniform.opcode) == ("@UP1", "UIADD3")
    assert (branch.predicate, branch.target, branch.jumps) == ("@P0", 0x10, True)
    assert (leave.opcode, leave.operands, leave.labels) == ("EXIT", "", (".L_x_3",))
    assert (trap.address, trap.target) == (0x60, 0x60)
    assert nop.opcode == "NOP"
    assert (other.function, other.target) == ("other", 0)


def test_the_jump_to_itself_at_a_kernels_end_is_no_loop() -> None:
    assert loops(instructions(TEXT)) == [Loop("k", 0x10, 0x40)]


def test_count_takes_an_opcode_with_or_without_modifiers() -> None:
    code = instructions(TEXT)
    assert (count(code, "LDG"), count(code, "LDG.E"), count(code, "LDG.E.6"), count(code, "LD")) == (1, 1, 0, 0)
    assert count(code, "BRA") == 3


@pytest.mark.nvcc
def test_real_code_is_read_whole(nested: list[Instruction]) -> None:
    for kernel in ("nested", "straight"):
        code = [instruction for instruction in nested if instruction.function == kernel]
        assert [instruction.address for instruction in code] == list(range(0, 16 * len(code), 16))
        assert count(code, "EXIT") >= 1
    assert {instruction.function for instruction in nested} == {"nested", "straight"}
    assert count([i for i in nested if i.function == "straight"], "STG") == 1


@pytest.mark.nvcc
def test_nested_loops_are_found_inner_first(nested: list[Instruction]) -> None:
    inner, outer = loops(nested)
    assert inner.function == outer.function == "nested"
    assert outer.start <= inner.start < inner.end < outer.end
    assert count(filter(inner.holds, nested), "BAR") == 1
    assert count(filter(inner.holds, nested), "STG") == 0
    assert count(filter(outer.holds, nested), "STG") == 1


def test_the_toolkit_comes_before_path_and_path_before_the_package(tmp_path: Path) -> None:
    for folder in ("home/bin", "path"):
        (tmp_path / folder).mkdir(parents=True)
        (tmp_path / folder / "nvdisasm").write_text("#!/bin/sh\necho no such cubin\nexit 1\n")
        (tmp_path / folder / "nvdisasm").chmod(0o755)
    home, path = str(tmp_path / "home"), str(tmp_path / "path")
    assert find_nvdisasm(Config(cuda_home=home, path=path)) == f"{home}/bin/nvdisasm"
    assert find_nvdisasm(Config(cuda_home=str(tmp_path), path=path)) == f"{path}/nvdisasm"
    assert Path(find_nvdisasm(Config())).parent.name == "bin"
    with pytest.raises(CompileError, match="no such cubin"):
        sass(b"", Config(path=path))


def test_without_nvdisasm_the_error_says_how_to_get_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(disassemble, "_PACKAGES", ("no-such-package-of-warpjit",))
    with pytest.raises(CompileError, match="pip install nvidia-cuda-nvdisasm"):
        sass(b"", Config())


def test_what_is_no_cubin_is_refused_with_nvdisasms_words(tmp_path: Path) -> None:
    with pytest.raises(CompileError, match=r"nvdisasm refused the cubin: .*nvdisasm"):
        sass(b"not a cubin", CONFIG)
    broken = tmp_path / "nvdisasm"
    broken.write_bytes(b"\0")
    broken.chmod(0o755)
    with pytest.raises(CompileError, match="could not be run"):
        sass(b"", Config(path=str(tmp_path)))
