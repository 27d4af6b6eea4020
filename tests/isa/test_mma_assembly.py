"""Every dense matrix instruction through ptxas: taken by exactly the targets that its row's `needs` admits."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from isa_emission import assemble, compile_ptx, kernel

from bench.isa import DENSE
from warpjit.isa.row import Row
from warpjit.isa.target import Target

pytestmark = pytest.mark.nvcc

WRITTEN_FOR = "sm_90a"
"""A target that has all rows. What nvcc writes for it is assembled for the others as well."""
TARGETS = ("sm_75", "sm_80", "sm_86", "sm_89", "sm_90", "sm_90a", "sm_100a", "sm_103a", "sm_120", "sm_120a")


@pytest.fixture(scope="module")
def ptx(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Each row in a kernel of its own."""
    text = "".join(kernel(row, f"k{index}", {}) for index, row in enumerate(DENSE))
    return compile_ptx(text, WRITTEN_FOR, tmp_path_factory.mktemp("dense")).read_text()


def refused(ptx: str, target: str, folder: Path) -> set[Row]:
    """The rows that ptxas does not take."""
    file = folder / "rows.ptx"
    file.write_text(ptx.replace(f".target {WRITTEN_FOR}", f".target {target}"))
    entry, found = 0, set()
    said = {int(number) for number in re.findall(r"line (\d+); error", assemble(file, target, folder / "rows.cubin"))}
    for number, line in enumerate(ptx.splitlines(), 1):
        named = re.search(r"\.entry k(\d+)", line)
        entry = int(named[1]) if named else entry
        if number in said:
            found.add(DENSE[entry])
    return found


@pytest.mark.parametrize("name", TARGETS)
def test_needs_are_what_the_assembler_takes(ptx: str, name: str, tmp_path: Path) -> None:
    target = Target.parse(name)
    without = {row for row in DENSE if not row.needs.holds(target)}
    assert {row.text for row in refused(ptx, name, tmp_path)} == {row.text for row in without}
    assert len(without) == {75: 63, 80: 19, 86: 19, 89: 3}.get(target.arch, 0)
