"""Random programs of loops, branches, jumps, helpers and registers compute what Python computes."""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path
from typing import Any

import pytest
import torch
from random_programs import SIZE, I, Skip, program

from warpjit import Kernel

HEAD = """\
from warpjit import T, warpjit


@warpjit
def kernel(n: T.int32, x, result):
    T.device_entry(launch=T.cuda.LaunchConfig(grid=1, block=32))
    unroll, lane = T.unroll, T.cuda.lane_id()
    out = result[lane, 0:8]
    r = T.alloc_local((4,), "int32")
"""
X = (5, -7, 100, 3, 0, 2**31 - 1, -(2**31), 9)
LITERAL = re.compile(r"<(-?\d+)>")


class Cells:
    """A tensor of one axis, for Python."""

    def __init__(self, values: list[Any]):
        self.values = values

    def __getitem__(self, index: I) -> I:
        return self.values[index.value]

    def __setitem__(self, index: I, value: I) -> None:
        self.values[index.value] = I(value.value, fixed=False)


def counted(*bounds: Any) -> list[I]:
    return [I(number, fixed=False) for number in range(*(bound.__index__() for bound in bounds))]


def by_python(text: str, n: int) -> list[list[int]]:
    """What each of 32 lanes leaves in its 8 results."""
    names: dict[str, Any] = {"I": I, "range": counted, "unroll": counted}
    exec("def body(lane, n, x, out, r):\n" + LITERAL.sub(r"I(\1)", text), names)
    results = []
    for lane in range(32):
        x, out = ([I(value, fixed=False) for value in values] for values in (X, [0] * SIZE))
        names["body"](I(lane, fixed=False), I(n, fixed=False), Cells(x), Cells(out), Cells([None] * 4))
        results.append([cell.value for cell in out])
    return results


def by_warpjit(text: str, folder: Path) -> Kernel:
    path = folder / "random_program.py"
    path.write_text(HEAD + LITERAL.sub(r"\1", text) + "\n")
    spec = importlib.util.spec_from_file_location("random_program", path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.kernel


@pytest.mark.parametrize("seed", (0, 1, 3, 4, 5, 6, 7, 8, 9, 10, 11, 13))
def test_a_random_program(seed, device, run, tmp_path):
    text = program(seed, size=6)
    try:
        expected = by_python(text, 3)
    except Skip:
        expected = by_python(text := program(seed + 1000, size=6), 3)
    result = torch.zeros((32, SIZE), dtype=torch.int32, device=device)
    run(by_warpjit(text, tmp_path), 3, torch.tensor(X, dtype=torch.int32, device=device), result)
    assert result.tolist() == expected, text
