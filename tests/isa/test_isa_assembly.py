"""Every row's code through nvcc and ptxas: taken by the targets that its `needs` admits, refused by the others.

nvcc writes the PTX of a row once, for the first target that takes it; ptxas is asked for each: newer ones take all PTX
that was written for an older one, but for the row itself.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest
from isa_emission import assemble, compile_ptx, entries, kernel, together

from warpjit.isa import matrix_move_bytes, mma_scaled, mma_sparse
from warpjit.isa.row import Kind, Row
from warpjit.isa.table import lookup, rows
from warpjit.isa.target import Target

pytestmark = pytest.mark.nvcc

TARGETS = ("sm_80", "sm_89", "sm_90a", "sm_120")
PARSED = {name: Target.parse(name) for name in ("sm_75", *TARGETS)}
TOGETHER = 16
"""Rows of one kernel."""

Use = tuple[Row, Mapping[str, int], frozenset[str]]


def uses() -> Iterator[tuple[Use, frozenset[str]]]:
    """Each way to write a row: every immediate's first and last choice, with and without optional operands; and which
    targets take it."""
    for row in rows():
        optional = [operand for operand in row.operands if operand.optional]
        for given in {frozenset(), frozenset(operand.name for operand in optional)}:
            needs = [row.needs, *(each.needs for each in optional if each.name in given and each.needs is not None)]
            takers = frozenset(name for name, target in PARSED.items() if all(each.holds(target) for each in needs))
            for params in immediates(row):
                yield (row, params, given), takers


def immediates(row: Row) -> list[Mapping[str, int]]:
    numbers = [operand for operand in row.operands if operand.kind is Kind.IMMEDIATE]
    ends = [{operand.name: (operand.choices or (0,))[end] for operand in numbers} for end in (0, -1)]
    return [ends[0]] if ends[0] == ends[1] else list(ends)


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> dict[str, tuple[list[Use], str]]:
    """By the first of TARGETS that takes them: uses, and the PTX of kernels of `TOGETHER` of them."""
    chosen: dict[str, list[Use]] = {}
    for use, takers in uses():
        first = next((name for name in TARGETS if name in takers), None)
        if first is not None:
            assert takers.issuperset(TARGETS[TARGETS.index(first) :]), "what an older target takes, newer ones take"
            chosen.setdefault(first, []).append(use)
    found = {}
    for name, members in chosen.items():
        parts = (members[start : start + TOGETHER] for start in range(0, len(members), TOGETHER))
        text = "".join(together(part, f"rows_{number}") for number, part in enumerate(parts))
        found[name] = members, compile_ptx(text, name, tmp_path_factory.mktemp("written")).read_text()
    return found


@pytest.mark.parametrize("name", TARGETS)
def test_admitted_rows_assemble(written: dict[str, tuple[list[Use], str]], name: str, tmp_path: Path) -> None:
    asked = 0
    for first, (members, ptx) in written.items():
        if TARGETS.index(first) > TARGETS.index(name):
            continue
        file = tmp_path / "rows.ptx"
        file.write_text(ptx.replace(f".target {first}", f".target {name}"))
        assert assemble(file, name, tmp_path / "rows.cubin") == ""
        asked += len(members)
    assert asked == sum(name in takers for _, takers in uses()) > 600


@pytest.fixture(scope="module")
def alone(tmp_path_factory: pytest.TempPathFactory) -> tuple[list[frozenset[str]], str]:
    """The PTX of a kernel each of all uses that an sm_75 does not take, and which targets take them. Those of
    `test_mma_newer_assembly` are left to it."""
    left = {*mma_sparse.ROWS, *matrix_move_bytes.ROWS, *mma_scaled.ROWS}
    chosen = [(use, takers) for use, takers in uses() if "sm_75" not in takers and use[0] not in left]
    text = "".join(kernel(row, f"k{index}", params, given) for index, ((row, params, given), _) in enumerate(chosen))
    return [takers for _, takers in chosen], compile_ptx(text, "sm_75", tmp_path_factory.mktemp("alone")).read_text()


@pytest.mark.parametrize("name", ["sm_75", "sm_80", "sm_89"])
def test_other_rows_are_refused(alone: tuple[list[frozenset[str]], str], name: str, tmp_path: Path) -> None:
    every, ptx = alone
    head, kernels = entries(ptx)
    chosen = {f"k{index}" for index, takers in enumerate(every) if name not in takers}
    assert len(chosen) > 30
    text = "".join([head, *(kernels[each] for each in chosen)]).replace(".target sm_75", f".target {name}")
    file = tmp_path / "rows.ptx"
    file.write_text(text)
    said = assemble(file, name, tmp_path / "rows.cubin")
    entry, entry_of = "", {}
    for number, line in enumerate(text.splitlines(), 1):
        found = re.search(r"\.entry (k\d+)", line)
        entry = found[1] if found else entry
        entry_of[number] = entry
    assert chosen - {entry_of[int(number)] for number in re.findall(r"line (\d+); error", said)} == set()


def test_copies_of_the_waiting_loop_assemble_in_one_function(tmp_path: Path) -> None:
    wait = lookup("mbarrier_wait")
    twice = kernel(wait, "twice", {})
    statement = next(line for line in twice.splitlines() if line.strip().startswith("asm volatile"))
    text = twice.replace(statement, f"{statement}\n  for (int j = 0; j < 3; ++j) {{\n{statement}\n }}\n{statement}")
    assert text.count("try_wait") == 3
    assert assemble(compile_ptx(text, "sm_90a", tmp_path), "sm_90a", tmp_path / "twice.cubin") == ""
