"""Every matrix instruction of the GPU against the simulator, bit for bit; and the code that does it, on the simulator.

On a GPU each group of rows is one kernel: `python -m bench isa` writes the same comparison down as a table.
"""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import pytest
import torch

from bench import isa
from bench.isa_inputs import KINDS, Matrices, element_of, kinds, matrices, registers, results
from warpjit.ir.dtypes import float64
from warpjit.ir.nans import FORMATS
from warpjit.isa.row import Row
from warpjit.isa.table import lookup
from warpjit.isa.target import Target

Array = np.ndarray[Any, Any]

SM_90A = Target.parse("sm_90a")
GROUPS = isa.groups(isa.dense_rows(SM_90A))
FEW = 128


def named(group: tuple[Row, ...]) -> str:
    return f"{group[0].text.removeprefix('mma.sync.aligned.')} and {len(group) - 1}"


@pytest.mark.gpu
@pytest.mark.parametrize("group", GROUPS, ids=named)
def test_the_device_is_the_simulator(group: tuple[Row, ...]) -> None:
    target = Target.of_capability(*torch.cuda.get_device_capability())
    here = [row for row in group if row.needs.holds(target)]
    found = isa.outcomes(here, isa.RESULTS_A_KIND)
    assert [each for each in found if each.mismatches] == []
    assert len(found) == len(here) and all(each.results >= 10_000 for each in found)


@pytest.mark.parametrize("group", GROUPS, ids=named)
def test_the_kernel_computes_the_rows(group: tuple[Row, ...], run: Any, device: str) -> None:
    """On the simulator the kernel gives what the rows' meanings say, so the device is compared with those."""
    given = isa.cases(group, FEW, seed=1)
    for case, got in zip(given, isa.run_group(given, device, run), strict=True):
        assert case.row.meaning is not None
        types = [operand.dtype.numpy for operand in case.row.operands[1:] if operand.dtype is not None]
        want = case.row.meaning(*(each.view(kind) for each, kind in zip(case.words, types, strict=True)))
        found = isa.compare(case, got, np.ascontiguousarray(want).view(got.dtype))
        assert found.mismatches == 0, found.first
        assert found.results >= FEW * len(kinds(case.row))


def test_every_row_is_in_one_group() -> None:
    together = [row.text for group in GROUPS for row in group]
    assert len(together) == len(set(together)) == 82


def test_a_mismatch_is_found() -> None:
    row = lookup("mma.sync.aligned.m16n8k16.row.col.f16.f16.f16.f16")
    (case,) = isa.cases([row], FEW, seed=0)
    (right,) = isa.run_group([case], "cpu")
    wrong = right.copy()
    wrong[1, 5, 1] ^= 1 << 16  # the second half of the register: row l // 4 + 8, column 2 (l % 4) + 1
    found = isa.compare(case, wrong, right)
    assert (found.results, found.mismatches, found.several_nan) == (FEW * len(kinds(row)), 1, 0)
    assert found.first.startswith("product 1, element (9, 3): 0x")


def test_another_nan_counts_only_where_one_came() -> None:
    row = lookup("mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64")
    (case,) = isa.cases([row], FEW, seed=0)
    made = Matrices(*(np.full_like(each, 0x3FF0000000000000) for each in (case.made.a, case.made.b, case.made.c)))
    made.a[0, 0, 0] = 0x7FF8000000000001
    case = dataclasses.replace(case, made=made, words=registers(row, made))
    (right,) = isa.run_group([case], "cpu")
    assert results(row, right)[0, 0, 0] == 0x7FF8000000000001
    other = np.where(right == 0x7FF8000000000001, np.uint64(0xFFF8000000000000), right)
    assert isa.compare(case, other, right).mismatches == 8
    made.b[0, :, 2] = 0x7FF8000000000002
    found = isa.compare(case, other, right)
    assert (found.mismatches, found.several_nan, found.other_nan) == (0, 8, 8)


@pytest.mark.parametrize(
    "row", [row for row in isa.dense_rows(SM_90A) if element_of(row.operand("D")).is_float], ids=str
)
def test_inputs_reach_the_rules(row: Row) -> None:
    """NaN, infinities, subnormals and zeros among the results."""
    (case,) = isa.cases([row], isa.QUICK_RESULTS, seed=0)
    assert row.meaning is not None
    types = [operand.dtype.numpy for operand in row.operands[1:] if operand.dtype is not None]
    codes = results(row, row.meaning(*(each.view(kind) for each, kind in zip(case.words, types, strict=True))))
    fields = FORMATS[element_of(row.operand("D"))]
    magnitudes = codes & codes.dtype.type(fields.sign_bit - 1)
    seen = {
        "nan": magnitudes > fields.exponent_mask,
        "infinity": magnitudes == fields.exponent_mask,
        "zero": magnitudes == 0,
        "subnormal": (magnitudes > 0) & (magnitudes < 1 << fields.fraction),
    }
    # Products of short floats are too large for a subnormal float32; a chain of roundings hardly comes back to zero.
    rare = {"f32": {"subnormal"}, "f64": {"zero"}, "f16": set()}[element_of(row.operand("D")).ptx]
    missing = {name for name, hit in seen.items() if not hit.any()}
    assert missing <= (set() if element_of(row.operand("A")).ptx in ("bf16", "tf32") else rare)


def test_inputs_are_the_same_again_and_differ_by_seed() -> None:
    row = lookup("mma.sync.aligned.m16n8k32.row.col.s32.s8.u8.s32")
    for kind in KINDS:
        first, again, other = (matrices(row, kind, 3, seed) for seed in (4, 4, 5))
        assert all((getattr(first, name) == getattr(again, name)).all() for name in "abc")
        assert not all((getattr(first, name) == getattr(other, name)).all() for name in "abc")
        assert (first.a.shape, first.b.shape, first.c.shape) == ((3, 16, 32), (3, 8, 32), (3, 16, 8))
    double = lookup("mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64")
    assert double.operand("A").dtype == float64
    assert [each.dtype for each in registers(double, matrices(double, "normal", 2))] == [np.uint64] * 3


def test_the_table_of_the_figure() -> None:
    found = isa.Outcome("mma.sync.aligned.m16n8k16.row.col.satfinite.s32.s8.s8.s32", 64_000, 2, 0, 0, "product 1")
    content = {"figures": {"rows": [dataclasses.asdict(found)] * 2, "seconds": 3.0}}
    (table,) = isa.tables(content)
    assert table.rows[0] == (found.row, "64,000", "2", "0", "0", "product 1")
    assert table.rows[-1] == ("all", "128,000", "4", "0", "0", "")
