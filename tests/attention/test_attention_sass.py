"""The machine code of attention's loops: one without masks for whole blocks, one with masks for the last."""

from __future__ import annotations

from collections import Counter

import pytest

from warpjit import T
from warpjit.cuda import disassemble
from warpjit.isa.target import Target
from warpjit.kernels.attention import default_tile
from warpjit.kernels.flash import Case, flash

pytestmark = pytest.mark.nvcc

TARGET = Target.parse("sm_90a")
TENSOR = T.Tensor(None, "bfloat16")
ARGUMENTS = (TENSOR, TENSOR, TENSOR, TENSOR, None, T.float32)


def loops(case: Case) -> list[Counter[str]]:
    """How often each instruction is in the loops with products, in their order."""
    code = disassemble.instructions(flash(case).sass(*ARGUMENTS, target=TARGET))
    bodies = ([each for each in code if loop.holds(each)] for loop in disassemble.loops(code))
    found = [Counter(each.mnemonic for each in body) for body in bodies]
    return [each for each in found if each["HMMA"]]


@pytest.mark.parametrize(("dim", "exponentials", "limit"), [(128, 64, 940), (64, 128, 1160)])
def test_the_loop_of_whole_blocks(dim: int, exponentials: int, limit: int) -> None:
    case = Case(default_tile(dim), dim, causal=False, whole=True)
    (loop,) = loops(case)
    # 256 products take 6 cycles each; what stands beside them has to fit between.
    assert loop["HMMA"] == 256 and loop.total() <= limit
    assert loop["LDSM"] <= 80 and loop["LDGSTS"] == 16 and loop["F2FP"] == exponentials // 2
    # One exponential a score, and four (one a row) where sums are scaled anew: nothing for subnormal numbers.
    assert loop["MUFU"] == exponentials + 4 and loop["FSEL"] <= 8
    assert not {"LDL", "STL"} & loop.keys() and loop["ISETP"] <= 6
    assert flash(case).resources(*ARGUMENTS, target=TARGET).stack_bytes == 0


def test_masks_are_in_a_loop_of_their_own() -> None:
    whole, cut = loops(Case(default_tile(128), 128, causal=True, whole=True))
    assert whole["HMMA"] == cut["HMMA"] == 256
    assert whole["FSEL"] <= 8 and whole["ISETP"] <= 6
    assert cut["FSEL"] >= 64
