"""Every row's code through nvcc and ptxas: taken by the targets that its `needs` admits, refused by the others."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest
from isa_emission import assemble, compile_ptx, kernel, together

from warpjit.isa.row import Kind, Row
from warpjit.isa.table import lookup, rows
from warpjit.isa.target import Target

pytestmark = pytest.mark.nvcc

TARGETS = ("sm_80", "sm_89", "sm_90a", "sm_120")

Use = tuple[Row, Mapping[str, int], frozenset[str]]


def uses(target: Target) -> Iterator[tuple[Use, bool]]:
    """Each way to write a row: every immediate's first and last choice, with and without optional operands; and
    whether the target takes it."""
    for row in rows():
        optional = [operand for operand in row.operands if operand.optional]
        for given in {frozenset(), frozenset(operand.name for operand in optional)}:
            needs = [row.needs, *(each.needs for each in optional if each.name in given and each.needs is not None)]
            for params in immediates(row):
                yield (row, params, given), all(each.holds(target) for each in needs)


def immediates(row: Row) -> list[Mapping[str, int]]:
    numbers = [operand for operand in row.operands if operand.kind is Kind.IMMEDIATE]
    ends = [{operand.name: (operand.choices or (0,))[end] for operand in numbers} for end in (0, -1)]
    return [ends[0]] if ends[0] == ends[1] else list(ends)


@pytest.mark.parametrize("name", TARGETS)
def test_admitted_rows_assemble(name: str, tmp_path: Path) -> None:
    chosen = [use for use, admitted in uses(Target.parse(name)) if admitted]
    assert len(chosen) > 600
    kernels = (together(chosen[start : start + 16], f"rows_{start}") for start in range(0, len(chosen), 16))
    said = assemble(compile_ptx("".join(kernels), name, tmp_path), name, tmp_path / "rows.cubin")
    assert said == ""


@pytest.mark.parametrize("name", ["sm_75", "sm_80", "sm_89"])
def test_other_rows_are_refused(name: str, tmp_path: Path) -> None:
    chosen = [use for use, admitted in uses(Target.parse(name)) if not admitted]
    assert len(chosen) > 30
    kernels = (kernel(row, f"k{index}", params, given) for index, (row, params, given) in enumerate(chosen))
    ptx = compile_ptx("".join(kernels), name, tmp_path)
    said = assemble(ptx, name, tmp_path / "rows.cubin")
    entry, entries = "", {}
    for number, line in enumerate(ptx.read_text().splitlines(), 1):
        found = re.search(r"\.entry (k\d+)", line)
        entry = found[1] if found else entry
        entries[number] = entry
    refused = {entries[int(number)] for number in re.findall(r"line (\d+); error", said)}
    taken = [chosen[index][0] for index in range(len(chosen)) if f"k{index}" not in refused]
    assert not taken


def test_copies_of_the_waiting_loop_assemble_in_one_function(tmp_path: Path) -> None:
    wait = lookup("mbarrier_wait")
    twice = kernel(wait, "twice", {})
    statement = next(line for line in twice.splitlines() if line.strip().startswith("asm volatile"))
    text = twice.replace(statement, f"{statement}\n  for (int j = 0; j < 3; ++j) {{\n{statement}\n }}\n{statement}")
    assert text.count("try_wait") == 3
    assert assemble(compile_ptx(text, "sm_90a", tmp_path), "sm_90a", tmp_path / "twice.cubin") == ""
