"""Kernels of the language, traced: the text that they become, and the matrix and barrier instructions in it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from building import SM_90A, built, emitted
from golden import check_golden
from traced_kernels import producer_consumer, swizzled_round_trip, traced, warp_matmul

from warpjit.cuda.disassemble import count


@pytest.mark.parametrize("function", [warp_matmul, swizzled_round_trip, producer_consumer])
def test_the_text_is_as_it_was_read(function: Callable[..., Any]) -> None:
    check_golden(function.__name__, emitted(traced(function, SM_90A)).text)


@pytest.mark.nvcc
@pytest.mark.parametrize(
    ("function", "instructions"),
    [
        (warp_matmul, {"HMMA": 1, "LDSM": 2, "LDSM.16.M88.4": 1, "LDSM.16.M88.2": 1, "BAR": 1, "STG": 4}),
        (swizzled_round_trip, {"LDSM.16.M88.4": 4, "STSM.16.M88.4": 4, "BAR": 2, "LDL": 0, "STL": 0}),
        (producer_consumer, {"BAR": 1, "SHFL": 1, "UBLKCP": 1, "LDL": 0}),
    ],
)
def test_what_was_asked_for_is_in_the_machine_code(function: Callable[..., Any], instructions: dict[str, int]) -> None:
    code = built(traced(function, SM_90A))
    assert {name: count(code, name) for name in instructions} == instructions
