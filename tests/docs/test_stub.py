"""The stub of `T` types a kernel's body: mypy --strict passes the example, infers types, and finds mistakes.

A tensor annotation is a call, which mypy calls `valid-type`: that one code is off.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path

import filelock
import pytest

ROOT = Path(__file__).resolve().parents[2]
EXAMPLE = ROOT / "examples/warp_matmul.py"

HEAD = """from __future__ import annotations
from warpjit import T, warpjit
from warpjit.layout import S, TileLayout, laneid
layout = TileLayout(S[(4, 8, 4) : (1, 4 @ laneid, 1 @ laneid)])

"""


APART = ("torch", "numpy", "matplotlib", "filelock", "rich", "platformdirs")
"""Packages that mypy does not read: no type of the language comes from them."""


@dataclass
class Said:
    """What mypy says, of each text `line: kind: message` each, and of the stub."""

    of_text: dict[str, list[str]] = field(default_factory=dict)
    of_stub: list[str] = field(default_factory=list)


def answer_of_mypy(folder: Path) -> str:
    """mypy's words on all texts and the stub."""
    folder.mkdir()
    apart = [f"[mypy-{name}.*]\nfollow_imports = skip\n" for name in APART]
    (folder / "mypy.ini").write_text("".join(["[mypy]\n", *apart]))
    for name, text in texts().items():
        (folder / f"{name}.py").write_text('# mypy: disable-error-code="valid-type"\n' + text, encoding="utf-8")
    stubs = [str(ROOT / f"warpjit/frontend/language/{name}.pyi") for name in ("__init__", "approx", "cuda")]
    options = ["--config-file=mypy.ini", "--strict", "--follow-imports=silent", "--no-error-summary"]
    done = subprocess.run(
        [sys.executable, "-m", "mypy", *options, *(f"{name}.py" for name in texts()), *stubs],
        capture_output=True,
        text=True,
        cwd=folder,
        env={"MYPYPATH": str(ROOT), "PATH": ""},
    )
    assert done.returncode in (0, 1), done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def said(tmp_path_factory: pytest.TempPathFactory) -> Said:
    """mypy takes most of its time to read the stub, so it runs once, also where workers share these tests."""
    folder = tmp_path_factory.getbasetemp()
    folder = folder.parent if "PYTEST_XDIST_WORKER" in os.environ else folder
    answer = folder / "mypy.txt"
    with filelock.FileLock(folder / "mypy.lock"):
        if not answer.exists():
            answer.write_text(answer_of_mypy(folder / "mypy"), encoding="utf-8")
    found = Said({name: [] for name in texts()})
    for line in answer.read_text(encoding="utf-8").splitlines():
        where = re.match(r"(\w+)\.py:(\d+): (.*)", line)
        if where and where[1] in found.of_text:
            found.of_text[where[1]].append(f"{int(where[2]) - 1}: {where[3]}")
        else:
            found.of_stub.append(line)
    return found


def kernel_of_the_example() -> str:
    """The example without what runs it; mypy --strict asks for `-> None` besides."""
    kernel = EXAMPLE.read_text(encoding="utf-8").split("def main()")[0]
    assert kernel.count("):\n    T.device_entry") == 1
    return kernel.replace("):\n    T.device_entry", ") -> None:\n    T.device_entry").replace("import torch\n", "")


def texts() -> dict[str, str]:
    """What mypy reads, each a file."""
    example = kernel_of_the_example()
    mistaken = example.replace("lane_id()", "lane_idx()")
    return {
        "example": example,
        "mistaken": mistaken.replace('"uint32").rearrange("row', '"uint33").rearrange("row'),
        "typed": HEAD + "def body() -> None:\n" + "".join(f"    reveal_type({each})\n" for each in TYPED),
        "wrong": HEAD + "def body() -> None:\n" + "".join(f"    {each}\n" for each in WRONG),
    }


def test_the_example_is_typed(said):
    assert said.of_text["example"] == []


def test_a_mistake_in_the_example_is_found(said):
    assert [line.split("[")[-1] for line in said.of_text["mistaken"] if ": error:" in line] == [
        "attr-defined]",
        "call-overload]",
    ]


TYPED = {
    "T.cuda.lane_id() // 4 + 8": "int32",
    "32 * T.cuda.lane_id()": "int32",
    "T.cuda.lane_id() * 0.5": "float32",
    "T.cuda.lane_id() / 2": "float32",
    "T.cuda.lane_id() < 4": "bool",
    "T.float16(1) + T.bfloat16(1)": "float32",
    "T.float16(1) + T.int64(1)": "float16",
    "T.uint8(1) + T.int8(1)": "int16",
    "-T.float64(1)": "float64",
    "T.bool(True) + T.bool(False)": "int32",
    'T.alloc_shared((4, 4), "bfloat16")[0, T.cuda.lane_id()]': "bfloat16",
    'T.alloc_shared((4, 4), "bfloat16")[0:2, 1]': "Tensor[warpjit.frontend.language.bfloat16]",
    'T.alloc_shared((4, 4), "float16").view("uint32")': "Tensor[warpjit.frontend.language.uint32]",
    "T.alloc_local((4,))": "Tensor[warpjit.frontend.language.float32]",
    "T.alloc_local((4,), T.int8).sub[0:2]": "Tensor[warpjit.frontend.language.int8]",
    'T.cast(T.int32(0), "float16")': "float16",
    "T.min(T.float16(0), 1.0)": "float16",
    "T.cdiv(7, 2)": "int",
    "T.exp(T.float64(1))": "float64",
    "T.exp(2)": "float",
    "T.round(T.bfloat16(1))": "bfloat16",
    "T.approx.exp2(T.float32(1) * 2)": "float32",
    "T.max(3, T.int32(7))": "int32",
    'T.dynamic("M") // 16': "int32",
    "T.cuda.elect_sync()": "bool",
    'T.ptx["mbarrier.try_wait.parity.shared.b64"](T.alloc_shared((1,), "mbarrier").ptr(0), 0)': "bool",
    'T.alloc_local((4,), "uint32").view(4, 8, 4, layout=layout)': "Tensor[warpjit.frontend.language.uint32]",
}


def test_expressions_have_the_types_that_the_tracer_gives(said):
    shown = [re.findall(r'Revealed type is "(.*)"', line) for line in said.of_text["typed"]]
    assert [re.sub(r"^(warpjit.frontend.language|builtins)\.", "", name[0]) for name in shown] == list(TYPED.values())


WRONG = {
    'T.alloc_shared((16, 16), "float61")': "call-overload",
    "T.cuda.LaunchConfig(block=32)": "call-arg",
    'T.cuda.lane_id() + "x"': "operator",
    "T.uint32(1) + T.int32(1)": "operator",
    "T.float32(1) << 1": "operator",
    "~T.float32(1)": "operator",
    'T.cuda.thread_idx("w")': "arg-type",
    'T.ptx["cp.async.wait_group"]()': "call-arg",
    'T.ptx["cp.async.cg.shared.global"](T.alloc_shared((8,)).ptr(0), T.alloc_shared((8,)).ptr(0), 4)': "arg-type",
    'T.ptx["bar.warp.sync"](1, pred=True)': "call-arg",
    'T.cuda.tile.apply(T.ptx["ldmatrix.sync.aligned.m8n8.x4.shared.b16"], scope="lane")': "arg-type",
    "T.alloc_local((4,), layout=3)": "call-overload",
    "T.alloc_local(T.cuda.lane_id())": "call-overload",
    "T.device_entry()": "call-arg",
    "T.exp(T.cuda.lane_id())": "call-overload",
    "T.approx.exp(T.float64(1))": "call-overload",
    "T.alloc_shared((4,)).permutate(0)": "attr-defined",
}


def test_mistakes_are_found(said):
    first = len(HEAD.splitlines()) + 2
    errors = [re.match(r"(\d+): error: .*\[([\w-]+)\]$", line) for line in said.of_text["wrong"]]
    found = {int(each[1]) - first: each[2] for each in errors if each}
    assert {name: found.get(line) for line, name in enumerate(WRONG)} == WRONG


def test_the_stub_itself_is_typed(said):
    assert said.of_stub == []
