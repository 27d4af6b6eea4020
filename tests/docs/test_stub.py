"""The stub of `T` types a kernel's body: mypy --strict passes the example, infers types, and finds mistakes.

A tensor annotation is a call, which mypy calls `valid-type`: that one code is off.
"""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
EXAMPLE = ROOT / "examples/warp_matmul.py"

HEAD = """from __future__ import annotations
from warpjit import T, warpjit
from warpjit.layout import S, TileLayout, laneid
layout = TileLayout(S[(4, 8, 4) : (1, 4 @ laneid, 1 @ laneid)])

"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A folder with a configuration that keeps mypy from reading torch; all files share one cache."""
    made = tmp_path_factory.mktemp("typed")
    (made / "mypy.ini").write_text("[mypy]\n[mypy-torch.*]\nfollow_imports = skip\n")
    return made


def mypy(folder: Path, text: str) -> list[str]:
    """What mypy says: `line: kind: message` each."""
    file = folder / "kernel.py"
    file.write_text(text, encoding="utf-8")
    options = ["--strict", "--disable-error-code=valid-type", "--follow-imports=silent", "--no-error-summary"]
    done = subprocess.run(
        [sys.executable, "-m", "mypy", "--config-file=mypy.ini", *options, file.name],
        capture_output=True,
        text=True,
        cwd=folder,
        env={"MYPYPATH": str(ROOT), "PATH": ""},
    )
    assert done.returncode in (0, 1), done.stderr
    return [re.sub(r"^kernel\.py:", "", line) for line in done.stdout.splitlines()]


def kernel_of_the_example() -> str:
    """The example without what runs it; mypy --strict asks for `-> None` besides."""
    kernel = EXAMPLE.read_text(encoding="utf-8").split("def main()")[0]
    assert kernel.count("):\n    T.device_entry") == 1
    return kernel.replace("):\n    T.device_entry", ") -> None:\n    T.device_entry").replace("import torch\n", "")


def test_the_example_is_typed(folder):
    assert mypy(folder, kernel_of_the_example()) == []


def test_a_mistake_in_the_example_is_found(folder):
    text = kernel_of_the_example()
    wrong = text.replace("lane_id()", "lane_idx()").replace('"uint32").rearrange("row', '"uint33").rearrange("row')
    assert [line.split(": ", 1)[1].split("[")[-1] for line in mypy(folder, wrong) if ": error:" in line] == [
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


def test_expressions_have_the_types_that_the_tracer_gives(folder):
    text = HEAD + "def body() -> None:\n" + "".join(f"    reveal_type({each})\n" for each in TYPED)
    shown = [re.findall(r'Revealed type is "(.*)"', line) for line in mypy(folder, text)]
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


def test_mistakes_are_found(folder):
    text = HEAD + "def body() -> None:\n" + "".join(f"    {each}\n" for each in WRONG)
    first = len(HEAD.splitlines()) + 2
    said = [re.match(r"(\d+): error: .*\[([\w-]+)\]$", line) for line in mypy(folder, text)]
    found = {int(each[1]) - first: each[2] for each in said if each}
    assert {name: found.get(line) for line, name in enumerate(WRONG)} == WRONG


def test_the_stub_itself_is_typed(folder):
    options = ["--strict", "--follow-imports=silent", "--config-file", str(folder / "mypy.ini")]
    options += ["--cache-dir", str(folder / ".mypy_cache")]
    files = [f"warpjit/frontend/language/{name}.pyi" for name in ("__init__", "approx", "cuda")]
    done = subprocess.run([sys.executable, "-m", "mypy", *options, *files], capture_output=True, text=True, cwd=ROOT)
    assert done.returncode == 0, done.stdout
