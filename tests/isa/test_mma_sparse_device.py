"""Every sparse matrix instruction of the GPU against the simulator, bit for bit; and the code that does it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

from bench import isa, isa_sparse
from bench.isa_inputs import kinds
from warpjit.isa.row import Row
from warpjit.isa.target import Target

SM_90A = Target.parse("sm_90a")
GROUPS = isa.groups(isa_sparse.sparse_rows(SM_90A))
FEW = 128


def named(group: tuple[Row, ...]) -> str:
    return f"{group[0].text.replace('.sync.aligned', '')} and {len(group) - 1}"


@pytest.mark.gpu
@pytest.mark.parametrize("group", GROUPS, ids=named)
def test_the_device_is_the_simulator(group: tuple[Row, ...]) -> None:
    target = Target.of_capability(*torch.cuda.get_device_capability())
    here = [row for row in group if row.needs.holds(target)]
    found = isa.sparse_outcomes(here, isa.RESULTS_A_KIND)
    assert [each for each in found if each.mismatches] == []
    assert len(found) == len(here) and all(each.results >= 10_000 for each in found)


@pytest.mark.parametrize("group", GROUPS, ids=named)
def test_the_kernel_computes_the_rows(group: tuple[Row, ...], run: Any, device: str) -> None:
    """On the simulator the kernel gives what the rows' meanings say, so the device is compared with those."""
    given = isa_sparse.cases(group, FEW, seed=1)
    for case, got in zip(given, isa_sparse.run_group(given, device, run), strict=True):
        assert case.row.meaning is not None
        types = [operand.dtype.numpy for operand in case.row.operands[1:] if operand.dtype is not None]
        words = (each.view(kind) for each, kind in zip(case.words, types, strict=True))
        with np.errstate(all="ignore"):
            want = case.row.meaning(*words, selector=case.selector)
        found = isa.compare(case, got, np.ascontiguousarray(want).view(got.dtype))
        assert found.mismatches == 0, found.first
        assert found.results >= FEW * len(kinds(case.row))


def test_every_row_is_in_one_group() -> None:
    together = [row.text for group in GROUPS for row in group]
    assert len(together) == len(set(together)) == 88


def test_metadata_differs_and_selectors_occur() -> None:
    given = [case for group in GROUPS for case in isa_sparse.cases(group, FEW, seed=2)]
    assert {case.selector for case in given} == {0, 1, 2, 3}
    for case in given:
        assert len(np.unique(case.words[3])) > 8
