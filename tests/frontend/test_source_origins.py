"""Kernels from where Python keeps no file: commands, notebook cells, `exec`, doctests; and files edited later."""

from __future__ import annotations

import doctest
import importlib.util
import linecache
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import torch

import warpjit
from warpjit.errors import SourceError
from warpjit.frontend.source import command

ROOT = Path(__file__).parents[2]
KERNEL = """
import torch
import warpjit
from warpjit import T

def helper(value):
    return value + {added} + T.cuda.lane_id()

@warpjit.jit
def kernel(out):
    T.device_entry(launch=T.cuda.LaunchConfig(grid=1, block=32))
    out[T.cuda.lane_id()] = helper({value})
"""


def run_kernel(kernel: Any) -> int:
    """What a kernel of KERNEL writes for lane 0."""
    out = torch.zeros(32, dtype=torch.int32)
    kernel(out)
    assert out.tolist() == list(range(int(out[0]), int(out[0]) + 32))
    return int(out[0])


def test_a_command(tmp_path: Path) -> None:
    program = (
        KERNEL.format(added=1, value=2)
        + "out = torch.zeros(32, dtype=torch.int32)\nkernel(out)\nprint(out[:2].tolist())\n"
        + 'exec("def other(out): T.device_entry(launch=None)")\ntry: warpjit.jit(other)\n'
        + "except warpjit.WarpjitError as problem: print(problem)\n"
    )
    arguments = [sys.executable, "-W", "ignore", "-uBc", program, "-c", "print('an argument of the program')"]
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    done = subprocess.run(arguments, capture_output=True, text=True, check=True, env=environment, cwd=tmp_path)
    first, second = done.stdout.splitlines()
    assert first == "[3, 4]"
    assert second.startswith("the source of other cannot be had: '<string>' cannot be read.")


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (["python", "-c", "a"], "a\n"),
        (["python", "-Ic", "a", "b"], "a\n"),
        (["python", "-uBca", "b"], "a\n"),
        (["python", "-W", "c", "-Xdev", "-X", "utf8", "-c", "a"], "a\n"),
        (["python", "--check-hash-based-pycs", "always", "-c", "a"], "a\n"),
        (["python", "-m", "x", "-c", "a"], None),
        (["python", "script.py", "-c", "a"], None),
        (["python", "-", "-c", "a"], None),
        (["python"], None),
        (["python", "-c"], "\n"),
    ],
)
def test_the_program_among_the_arguments(arguments: list[str], expected: str | None) -> None:
    assert command(arguments) == expected


def cell(text: str, file: str, names: dict[str, Any]) -> None:
    """Run a notebook cell as IPython does: its text is in linecache, without a time."""
    linecache.cache[file] = (len(text), None, text.splitlines(keepends=True), file)
    exec(compile(text, file, "exec", dont_inherit=True), names)


def test_a_notebook_cell_that_runs_again() -> None:
    """A cell of new text has a new name or (as in some notebooks) the old one; both times the new text is traced."""
    names: dict[str, Any] = {"__name__": "__main__"}
    results, kernels = [], []
    for file, added in (("<cell-1>", 1), ("<cell-2>", 5), ("<cell-2>", 50)):
        cell(KERNEL.format(added=added, value=10), file, names)
        kernels.append(names["kernel"])
        results.append(run_kernel(names["kernel"]))
    assert results == [11, 15, 60]
    # An old kernel looks up its helper by name, as Python does, and finds the new one.
    assert [run_kernel(kernel) for kernel in kernels] == [60, 60, 60]


def test_a_doctest() -> None:
    prompts = [
        f"... {line}" if line.startswith((" ", "def")) else f">>> {line}" for line in KERNEL.splitlines() if line
    ]
    text = "\n".join(prompts).format(added=3, value=4).replace("... def", ">>> def", 1)
    text += "\n>>> out = torch.zeros(32, dtype=torch.int32)\n>>> kernel(out)\n>>> int(out[1])\n8\n"
    test = doctest.DocTestParser().get_doctest(text, {}, "sample", "sample.txt", 0)
    failures, tried = doctest.DocTestRunner(verbose=False).run(test)
    assert (failures, tried) == (0, 8)


def test_a_file_that_is_edited_after_the_decoration(tmp_path: Path) -> None:
    """The kernel, and helpers beside it that are traced only now, are what was read with the kernel."""
    path = tmp_path / "edited.py"
    path.write_text(KERNEL.format(added=1, value=2))
    spec = importlib.util.spec_from_file_location("edited", path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    path.write_text(KERNEL.format(added=100, value=200))
    assert run_kernel(module.kernel) == 3


def test_a_lambda_is_no_kernel() -> None:
    with pytest.raises(SourceError, match="expected a function of def but got a lambda"):
        warpjit.jit(lambda out: None)
