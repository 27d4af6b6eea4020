"""What the figure `attention` takes for right, on CPU tensors."""

from __future__ import annotations

import math

import pytest
import torch

from bench.attention import SIZES, Problem, Size


@pytest.mark.parametrize("causal", [False, True])
def test_who_is_right(causal: bool) -> None:
    problem = Problem((1, 2, 40, 16), causal, "cpu", 3)
    assert problem.rows.tolist() == list(range(40))
    assert problem.error(problem.by_torch) is None
    other = Problem((1, 2, 40, 16), not causal, "cpu", 3)
    for wrong in (problem.by_torch * 1.05, other.by_torch, problem.by_torch.flip(1)):
        found = problem.error(wrong)
        assert found is not None and found.endswith("from torch's")
    missing = problem.by_torch.clone()
    missing[0, 1, 7, 5] = math.nan
    assert problem.error(missing) == "elements are NaN, or were not written"


def test_sizes() -> None:
    size = Size(1024, 128, False)
    assert str(size) == "1024 tokens, dim 128" and str(Size(1024, 64, True)) == "1024 tokens, dim 64, causal"
    assert size.shape == (16, 16, 1024, 128)
    assert size.flop == 16 * 16 * 4 * 1024 * 1024 * 128 == 2 * Size(1024, 128, True).flop
    assert len({torch.Size(each.shape).numel() for each in SIZES}) == 1
