"""`docs/add_an_instruction.md`, executed: its instruction is traced, proven, simulated, emitted and assembled."""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path

import pytest
import torch

import warpjit
from warpjit import T
from warpjit.cuda import disassemble
from warpjit.isa import table
from warpjit.layout import S, TileLayout, laneid

PAGE = Path(__file__).resolve().parents[2] / "docs/add_an_instruction.md"


@pytest.fixture(scope="module")
def page(tmp_path_factory):
    """The page's code as one module."""
    blocks = re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    assert len(blocks) == 4
    file = tmp_path_factory.mktemp("page") / "added_instruction.py"
    file.write_text("\n".join(blocks), encoding="utf-8")
    spec = importlib.util.spec_from_file_location("added_instruction", file)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def matrices(device: str) -> tuple[torch.Tensor, torch.Tensor]:
    return tuple(torch.randint(-128, 128, (rows, 16), dtype=torch.int8, device=device) for rows in (16, 8))


def test_the_kernel_is_right(page, device, run):
    a, b = matrices(device)
    out = torch.full((16, 8), -1, dtype=torch.int32, device=device)
    run(page.byte_matmul, a, b, out)
    assert torch.equal(out.cpu(), a.cpu().int() @ b.cpu().int().T)


def test_its_text_holds_the_instruction(page):
    assert page.byte_matmul.source(target="sm_90a").count(f'"{page.TEXT} ') == 1


@pytest.mark.nvcc
def test_it_is_one_machine_instruction(page):
    code = disassemble.instructions(page.byte_matmul.sass(target="sm_90a"))
    assert [line.opcode for line in code if line.mnemonic == "IMMA"] == ["IMMA.16816.S8.S8"]


def test_a_target_without_it_is_refused(page):
    with pytest.raises(warpjit.TraceError, match="sm_80 or later") as refusal:
        page.byte_matmul.source(target="sm_75")
    assert "sm_75" in str(refusal.value)


def test_registers_in_another_order_are_refused(page):
    imma, RIGHT, SUMS = page.imma, page.RIGHT, page.SUMS
    swapped = TileLayout(S[(2, 8, 4) : (1, 1 @ laneid, 8 @ laneid)])

    @warpjit.jit
    def wrong():
        T.device_entry(launch=T.cuda.LaunchConfig(grid=1, block=32))
        ar = T.alloc_local((2,), "uint32")
        br = T.alloc_local((1,), "uint32")
        dr = T.alloc_local((4,), "int32")
        ar[0] = ar[1] = br[0] = 0
        T.cuda.tile.apply(
            imma, dr.view(16, 8, layout=SUMS), ar.view(16, 4, layout=swapped), br.view(8, 4, layout=RIGHT), 0
        )

    with pytest.raises(warpjit.TraceError, match="operand A") as refusal:
        wrong()
    assert "lane" in str(refusal.value)


def test_in_the_table_it_is_found_in_any_order_of_modifiers(page, monkeypatch):
    monkeypatch.setitem(table.family("mma_integers"), page.TEXT, page.imma)
    table._lookup.cache_clear()
    try:
        assert T.ptx["mma.m16n8k16.sync.aligned.row.col.s32.s8.s8.s32"] is page.imma
    finally:
        table._lookup.cache_clear()
