"""Sparse products, and all that only newer targets have, through ptxas: taken by exactly the targets of `needs`."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from isa_emission import assemble, compile_ptx, kernel
from test_isa_assembly import Use, immediates

from warpjit.isa import matrix_move_bytes, mma_scaled, mma_sparse
from warpjit.isa.target import Target

pytestmark = pytest.mark.nvcc

WRITTEN_FOR = "sm_120a"
"""A target that has all rows. What nvcc writes for it is assembled for the others as well."""
TARGETS = ("sm_75", "sm_80", "sm_89", "sm_90a", "sm_100", "sm_100a", "sm_103f", "sm_110a")
TARGETS += ("sm_120", "sm_120a", "sm_120f", "sm_121a")
USES: list[Use] = [
    (row, params, frozenset())
    for row in (*mma_sparse.ROWS, *matrix_move_bytes.ROWS, *mma_scaled.ROWS)
    for params in immediates(row)
]


@pytest.fixture(scope="module")
def ptx(tmp_path_factory: pytest.TempPathFactory) -> str:
    text = "".join(kernel(row, f"k{index}", params) for index, (row, params, _) in enumerate(USES))
    return compile_ptx(text, WRITTEN_FOR, tmp_path_factory.mktemp("newer")).read_text()


@pytest.mark.parametrize("name", TARGETS)
def test_needs_are_what_the_assembler_takes(ptx: str, name: str, tmp_path: Path) -> None:
    file = tmp_path / "rows.ptx"
    file.write_text(ptx.replace(f".target {WRITTEN_FOR}", f".target {name}"))
    said = assemble(file, name, tmp_path / "rows.cubin")
    lines = {int(number) for number in re.findall(r"line (\d+); error", said)}
    refused, entry = set(), -1
    for number, line in enumerate(ptx.splitlines(), 1):
        named = re.search(r"\.entry k(\d+)", line)
        entry = int(named[1]) if named else entry
        if number in lines:
            refused.add(entry)
    without = {index for index, (row, _, _) in enumerate(USES) if not row.needs.holds(Target.parse(name))}
    assert {USES[index][0].text for index in refused ^ without} == set()
    assert (len(without) > 0) == (name not in ("sm_120a", "sm_121a"))
