"""What the README shows is what happens: the example's text, its output, the two mistakes, and the shorter snippets."""

from __future__ import annotations

import re
import runpy
import subprocess
import sys
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

from warpjit import T, WarpjitError, warpjit
from warpjit.kernels.matmul import matmul

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
def test_the_mistakes_are_answered_as_shown(block, tmp_path, monkeypatch):
    right, wrong = MISTAKES[block]
    assert EXAMPLE.count(right) == 1
    assert f"`{right.rstrip(':').removeprefix('16, 8, layout=').removeprefix('for q in ')}`" in README
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    script = tmp_path / "warp_matmul.py"
    script.write_text(EXAMPLE.replace(right, wrong), encoding="utf-8")
    with pytest.raises(WarpjitError) as caught:
        runpy.run_path(str(script), run_name="__main__")
    said = "".join(traceback.format_exception_only(caught.value)).removeprefix("warpjit.errors.")
    assert said.replace(str(script), "warp_matmul.py") == blocks("text")[block]


# ---- the shorter snippets ---------------------------------------------------------------------------------------


def half(*shape: int) -> torch.Tensor:
    return torch.randn(shape).half()


GIVEN: dict[str, Callable[[], dict[str, Any]]] = {
    "bias_gelu": lambda: {"a": half(16, 32), "b": half(32, 16), "bias": half(16)},
    "matmul_int8": lambda: {
        **{"torch": torch, "weight": half(64, 128), "x": half(2, 128), "a": torch.ones(16, 32).char()},
        **{"w": torch.ones(16, 32).char(), "row_scales": torch.full((16,), 0.5), "column_scales": torch.ones(16)},
    },
    "return_lse": lambda: dict(zip("qkv", half(3, 1, 2, 16, 64), strict=True)),
    "layernorm": lambda: {"x": torch.randn(2, 3, 8), "weight": torch.ones(8), "bias": torch.zeros(8)},
    "autotune": lambda: {
        **{"warpjit": warpjit, "T": T, "M": T.dynamic("M"), "K": T.dynamic("K"), "a": half(16, 32), "b": half(32, 16)},
        "matmul": matmul,
    },
}
"""What the snippets that contain these words take as given."""


def ran(word: str, folder: Path) -> dict[str, Any]:
    (text,) = (block for block in blocks("python")[1:] if word in block)
    (folder / "snippet.py").write_text(text, encoding="utf-8")
    torch.manual_seed(1)
    return runpy.run_path(str(folder / "snippet.py"), init_globals=GIVEN[word]())


EXPECTED: dict[str, Callable[[dict[str, Any]], torch.Tensor]] = {
    "bias_gelu": lambda names: torch.nn.functional.gelu(names["a"].float() @ names["b"].float() + names["bias"]),
    "matmul_int8": lambda names: torch.full((16, 16), 16.0),
    "return_lse": lambda names: torch.nn.functional.scaled_dot_product_attention(
        *(names[name].float() for name in "qkv"), is_causal=True
    ),
    "layernorm": lambda names: torch.nn.functional.layer_norm(names["x"], (8,)),
    "autotune": lambda names: names["a"].float() @ names["b"].float(),
}


@pytest.mark.parametrize("word", EXPECTED)
def test_the_snippets_run_and_are_right(word, tmp_path):
    names = ran(word, tmp_path)
    result = names["y"] if word == "layernorm" else names["out"]
    torch.testing.assert_close(result.float(), EXPECTED[word](names), rtol=1e-2, atol=1e-2)


def test_no_snippet_is_left_out():
    words = [*GIVEN, "warp_matmul.source"]
    assert [len([word for word in words if word in block]) for block in blocks("python")[1:]] == [1] * len(words)


@pytest.mark.nvcc
def test_looking_inside_works_as_shown():
    (text,) = (block for block in blocks("python") if "warp_matmul.source" in block)
    kernel = runpy.run_path(str(ROOT / "examples/warp_matmul.py"))["warp_matmul"]
    given = {"a": half(16, 16), "b": half(8, 16), "out": torch.empty(16, 8)}
    exec(text, {"warp_matmul": kernel, "warpjit": warpjit, **given})
    torch.testing.assert_close(given["out"], given["a"].float() @ given["b"].float().T, rtol=2e-4, atol=2e-4)
