"""The machine code of the product's main loop, beside that of the hand-written reference with the same tiles."""

from __future__ import annotations

from collections import Counter

import pytest

from bench.loop import options
from bench.native import cubin
from warpjit import T, config
from warpjit.cuda import disassemble
from warpjit.cuda.disassemble import Instruction
from warpjit.isa.target import Target
from warpjit.kernels.gemm import Case, Tile, gemm

pytestmark = pytest.mark.nvcc

TILE = Tile(128, 256, 64, 64, 64, 4)
TARGET = Target.parse("sm_90a")


def main_loop(sass: str) -> list[Instruction]:
    """From the target of the branch that closes over the products to that branch."""
    code = disassemble.instructions(sass)
    bodies = ([each for each in code if loop.holds(each)] for loop in disassemble.loops(code))
    (found,) = (body for body in bodies if disassemble.count(body, "HMMA") > 0)
    return found


def reference_loop() -> list[Instruction]:
    return main_loop(disassemble.sass(cubin("gemm_cp_async.cu", TARGET, *options("bfloat16")), config.read()))


def generated_loop(multiples: tuple[int, int, int]) -> list[Instruction]:
    kernel = gemm(Case(TILE, multiples))
    operand = T.Tensor(None, "bfloat16")
    arguments = (operand, operand, operand, ())
    resources = kernel.resources(*arguments, epilogue=None, target=TARGET)
    assert resources.stack_bytes == 0
    assert resources.registers <= 255
    return main_loop(kernel.sass(*arguments, epilogue=None, target=TARGET))


@pytest.mark.parametrize(
    ("multiples", "limit"), [((128, 256, 64), 320), ((8, 8, 8), 375)], ids=["whole tiles", "with zero fill"]
)
def test_the_main_loop(multiples: tuple[int, int, int], limit: int, record_property: object) -> None:
    generated, reference = generated_loop(multiples), reference_loop()
    for loop in (generated, reference):
        opcodes = Counter(each.opcode.split(".")[0] for each in loop)
        assert (opcodes["HMMA"], opcodes["LDSM"], opcodes["LDGSTS"]) == (128, 32, 12)
        assert all(".M88.4" in each.opcode for each in loop if each.opcode.startswith("LDSM"))
        assert not {"LDL", "STL"} & opcodes.keys()
    assert len(reference) == 308
    assert len(generated) <= limit
    if multiples == (128, 256, 64):
        assert len(generated) <= len(reference)
