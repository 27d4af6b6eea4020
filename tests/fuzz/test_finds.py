"""Programs in which the fuzzer found something, each made small: they compute what Python computes."""

from __future__ import annotations

from pathlib import Path

import pytest

from .trial import Case, compare, expected

FINDS = sorted((Path(__file__).parent / "finds").glob("*.py"))


@pytest.mark.parametrize("path", FINDS, ids=lambda path: path.stem)
def test_a_find(path, device, run, tmp_path):
    case = Case(path.read_text(), tmp_path, path.stem)
    arguments = case.arguments(device)
    run(case.kernel, *arguments.values())
    wanted, rows = expected(case)
    got = {name: arguments[name].cpu() for name in wanted}
    assert compare(wanted, got, rows) == ""
