"""The check of a product: what is right passes, and one wrong element anywhere does not."""

from __future__ import annotations

import argparse
import math

import pytest
import torch

from bench.harness import Settings
from bench.products import DTYPES, ROUNDING, STRIP, Case, Problem, Size

TALL = Size(STRIP + 40, 48, 64)


def problem(dtype: str, size: Size = TALL) -> Problem:
    return Problem(Case(size, dtype), "cpu", seed=3)


def right(of: Problem) -> torch.Tensor:
    """The product, rounded once."""
    return (of.a.double() @ of.w.double().t()).to(of.dtype)


@pytest.mark.parametrize("dtype", DTYPES)
def test_a_right_product_passes(dtype: str) -> None:
    of = problem(dtype)
    found = of.check(right(of))
    assert found.error is None
    assert 0.5 < found.allowed <= 1
    assert found.relative < ROUNDING[of.dtype] / 2
    assert found.equal > 0.9


@pytest.mark.parametrize("dtype", DTYPES)
def test_an_element_that_was_not_written_is_found(dtype: str) -> None:
    of = problem(dtype)
    out = of.poisoned()
    assert out.shape == (TALL.m, TALL.n)
    out[:-1] = right(of)[:-1]
    assert of.check(out).error == f"{TALL.n} of {out.numel()} elements are NaN, or were not written"


@pytest.mark.parametrize("dtype", DTYPES)
def test_a_wrong_element_of_an_exact_row_is_found(dtype: str) -> None:
    of = problem(dtype)
    assert {0, TALL.m - 1} <= set(of.rows.tolist())
    for row in (0, TALL.m - 1):
        out = right(of)
        out[row, 7] += 4 * ROUNDING[of.dtype] * out[row, 7].abs() + 0.01
        assert "times the allowed error from float64" in str(of.check(out).error)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("last", [False, True])
def test_a_wrong_element_of_another_row_is_found(dtype: str, last: bool) -> None:
    of = problem(dtype)
    others = sorted(set(range(TALL.m)) - set(of.rows.tolist()))
    row = others[-1] if last else others[0]
    out = right(of)
    out[row, 7] += 8 * ROUNDING[of.dtype] * out[row, 7].abs() + 0.01
    assert "times the allowed error from cuBLAS's" in str(of.check(out).error)


def test_what_is_allowed_is_the_formula() -> None:
    assert problem("float16").accumulation == 5 * 2.0**-22
    assert problem("float16", Size(8, 8, 8200)).accumulation == (math.ceil(8200 / 16) + 1) * 2.0**-22
    assert ROUNDING == {torch.bfloat16: 2.0**-8, torch.float16: 2.0**-11}


def test_an_error_of_all_elements_is_found_where_none_is_too_large() -> None:
    of = problem("bfloat16")
    # Truncated, not rounded to nearest: every element is within one unit in the last place.
    exact = (of.a.double() @ of.w.double().t()).float()
    bits = exact.view(torch.int32) & -65536
    found = of.check(bits.view(torch.float32).to(torch.bfloat16))
    assert "is" in str(found.error)
    assert found.relative > 1.8e-3


def test_a_seed_makes_the_same_problem() -> None:
    assert torch.equal(problem("bfloat16").a, problem("bfloat16").a)
    assert not torch.equal(problem("bfloat16").a, Problem(Case(TALL, "bfloat16"), "cpu", seed=4).a)


def test_sizes_are_read() -> None:
    assert Size.parse("4096x6144x128") == Size(4096, 6144, 128)
    assert str(Size(1, 2, 3)) == "1x2x3"
    assert Size(2, 3, 4).flop == 48
    for wrong in ("4096", "1x2", "0x1x1", "ax2x3", "1x2x3x4", "-1x2x3"):
        with pytest.raises(argparse.ArgumentTypeError, match="sizes: expected MxNxK"):
            Size.parse(wrong)


def test_those_who_take_part_keep_their_order() -> None:
    assert Settings(contestants=("c", "a")).chosen(["a", "b", "c"]) == ("a", "c")
    assert Settings().chosen(["a", "b"]) == ("a", "b")
