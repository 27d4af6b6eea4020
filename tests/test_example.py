"""The example: right on every device, in both spellings, and three matrix instructions in its machine code."""

from __future__ import annotations

import pytest
import torch
from warp_matmul import warp_matmul

import warpjit
from warpjit.cuda import disassemble


def inputs(device: str) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    a = torch.randn((16, 16), dtype=torch.float16, device=device)
    b = torch.randn((8, 16), dtype=torch.float16, device=device)
    return a, b, torch.full((16, 8), float("nan"), device=device)


def check(a: torch.Tensor, b: torch.Tensor, out: torch.Tensor) -> None:
    torch.testing.assert_close(out, a.float() @ b.float().T, rtol=2e-4, atol=2e-4)


def test_direct_call(device, run):
    a, b, out = inputs(device)
    run(warp_matmul, a, b, out)
    check(a, b, out)


@pytest.mark.nvcc
def test_compile_needs_no_specs(device):
    compiled = warpjit.compile(warp_matmul, target="cuda")
    a, b, out = inputs(device)
    compiled(a, b, out)
    check(a, b, out)
    assert compiled.resources.stack_bytes == 0


@pytest.mark.nvcc
def test_compile_through_the_decorator_and_with_a_target():
    compiled = warpjit.warpjit.compile(warp_matmul, target="sm_80")
    assert compiled.target.name == "sm_80"
    assert compiled.cubin[:4] == b"\x7fELF"


@pytest.mark.nvcc
@pytest.mark.parametrize("target", ["sm_80", "sm_89", "sm_90a", "sm_120"])
def test_machine_code_holds_one_of_each_matrix_instruction(target):
    code = disassemble.instructions(warp_matmul.sass(target=target))
    kinds = [line.opcode for line in code if line.mnemonic in ("HMMA", "LDSM")]
    assert sorted(kinds) == ["HMMA.16816.F32", "LDSM.16.M88.2", "LDSM.16.M88.4"]


@pytest.mark.nvcc
def test_resources_count_what_the_system_reserves():
    resources = warp_matmul.resources(target="sm_90a")
    assert resources.shared_bytes == 16 * 16 * 2 + 8 * 16 * 2 + 1024
    assert resources.registers <= 40
