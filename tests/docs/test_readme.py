"""What the README shows is what happens: the example's text, its output, and the two mistakes."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
README = (ROOT / "README.md").read_text(encoding="utf-8")
EXAMPLE = (ROOT / "examples/warp_matmul.py").read_text(encoding="utf-8")
NUMBER = re.compile(r"-?\d+\.\d+(?:e-\d+)?")


def blocks(language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", README, re.DOTALL)


def run_on_cpu(text: str, folder: Path) -> subprocess.CompletedProcess[str]:
    """Run the text as `warp_matmul.py`, without a GPU."""
    (folder / "warp_matmul.py").write_text(text, encoding="utf-8")
    return subprocess.run(
        [sys.executable, "warp_matmul.py"],
        capture_output=True,
        text=True,
        cwd=folder,
        env={"PYTHONPATH": str(ROOT), "CUDA_VISIBLE_DEVICES": "", "PATH": ""},
    )


def test_the_kernel_is_the_examples():
    kernel = blocks("python")[0]
    assert kernel.startswith("import torch\n")
    assert kernel.strip() in EXAMPLE


def test_the_output_is_the_examples(tmp_path):
    done = run_on_cpu(EXAMPLE, tmp_path)
    assert done.returncode == 0, done.stderr
    shown = blocks("text")[0]
    # The random inputs of one seed differ between torch's builds and processors: the words must be the same.
    words, expected = (NUMBER.sub("#", text).split() for text in (done.stdout, shown))
    assert words == expected
    assert float(NUMBER.findall(done.stdout)[-1]) <= 2e-6


MISTAKES = {
    1: ("16, 8, layout=a_mma_layout", "16, 8, layout=a_load_layout"),
    2: ("for q in range(8):", "for q in range(7):"),
}


@pytest.mark.parametrize("block", MISTAKES)
def test_the_mistakes_are_answered_as_shown(block, tmp_path):
    right, wrong = MISTAKES[block]
    assert EXAMPLE.count(right) == 1
    assert f"`{right.rstrip(':').removeprefix('16, 8, layout=').removeprefix('for q in ')}`" in README
    done = run_on_cpu(EXAMPLE.replace(right, wrong), tmp_path)
    assert done.returncode == 1
    said = done.stderr[done.stderr.index("\nwarpjit.errors.") + 1 :].removeprefix("warpjit.errors.")
    assert said.replace(str(tmp_path / "warp_matmul.py"), "warp_matmul.py") == blocks("text")[block]
