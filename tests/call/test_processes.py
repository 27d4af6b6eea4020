"""Other processes: a second one compiles nothing wherever it runs, and `import warpjit` is light."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import warpjit

ROOT = Path(warpjit.__file__).resolve().parents[1]

PROGRAM = """
import hashlib, json, sys
from dataclasses import dataclass
from warpjit import T, warpjit
from warpjit.layout import S, TileLayout, laneid

@dataclass(frozen=True)
class Tile:
    rows: int
    names: frozenset

TILE = Tile(4, frozenset(("a", "b", "c")))
layout = TileLayout(S[(8, 4) : (4 @ laneid, 1 @ laneid)])
M = T.dynamic("M")

def helper(x, scale):
    return x * scale

@warpjit
def kernel(X: T.Tensor((M, 32), "float32"), Out: T.Tensor((M, 32), "float32"), by, *, flags):
    T.device_entry(launch=T.cuda.LaunchConfig(grid=M, block=32))
    stage = T.alloc_shared((TILE.rows, 32), "float32")
    row, lane = T.cuda.block_idx("x"), T.cuda.lane_id()
    stage[0, lane] = X[row, lane]
    T.cuda.cta_sync()
    Out[row, lane] = helper(stage[0, 31 - lane], by) + len(flags)

cubin = kernel.cubin(T.Tensor((M, 32)), T.Tensor((M, 32)), 2.0, flags=frozenset("xyz"), target="sm_90a")
print(json.dumps({"cubin": hashlib.sha256(cubin).hexdigest(), "file": __file__, "seed": hash("a string")}))
"""


@pytest.fixture
def counting_nvcc(tmp_path: Path) -> Path:
    """A folder with an nvcc that notes each run in the file `runs` and then is the real one."""
    folder = tmp_path / "bin"
    folder.mkdir()
    real = shutil.which("nvcc")
    script = folder / "nvcc"
    script.write_text(f'#!/bin/sh\necho "$*" >> "{folder}/runs"\nexec "{real}" "$@"\n')
    script.chmod(0o755)
    return folder


def runs(folder: Path) -> list[str]:
    """The command lines so far: builds, and questions about the toolkit."""
    path = folder / "runs"
    return path.read_text().splitlines() if path.exists() else []


def run(checkout: Path, folder: Path, seed: str, **env: str) -> dict[str, str]:
    """Run the program from a new directory `folder` with the package of `checkout`."""
    folder.mkdir(parents=True)
    (folder / "user program.py").write_text(PROGRAM)
    full = {**os.environ, "PYTHONPATH": paths(checkout), "PYTHONHASHSEED": seed, **env}
    full.pop("CUDA_HOME", None)
    done = subprocess.run(
        [sys.executable, "user program.py"], cwd=folder, env=full, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    found: dict[str, str] = json.loads(done.stdout)
    return found


def paths(checkout: Path) -> str:
    """The package of `checkout` before whatever this process finds its packages by."""
    return os.pathsep.join([str(checkout), os.environ.get("PYTHONPATH", "")]).rstrip(os.pathsep)


@pytest.mark.nvcc
def test_a_second_process_compiles_nothing(counting_nvcc: Path, tmp_path: Path) -> None:
    checkout = tmp_path / "another checkout"
    shutil.copytree(ROOT / "warpjit", checkout / "warpjit", ignore=shutil.ignore_patterns("__pycache__"))
    env = {"WARPJIT_CACHE_DIR": str(tmp_path / "cache"), "PATH": f"{counting_nvcc}:{os.environ['PATH']}"}
    first = run(ROOT, tmp_path / "here", "1", **env)
    built = [line for line in runs(counting_nvcc) if line.startswith("--cubin")]
    assert len(built) == 1 and "code=sm_90a" in built[0]
    before = len(runs(counting_nvcc))
    second = run(checkout, tmp_path / "far" / "away", "2", **env)
    assert len(runs(counting_nvcc)) == before
    assert second["cubin"] == first["cubin"]
    assert second["seed"] != first["seed"] and second["file"] != first["file"]
    fresh = run(ROOT, tmp_path / "elsewhere", "3", **{**env, "WARPJIT_CACHE_DIR": str(tmp_path / "empty")})
    assert len(runs(counting_nvcc)) > before  # the count counts
    assert fresh["cubin"] == first["cubin"]


@pytest.mark.nvcc
def test_two_processes_at_once_agree(counting_nvcc: Path, tmp_path: Path) -> None:
    env = {**os.environ, "WARPJIT_CACHE_DIR": str(tmp_path / "cache"), "PYTHONPATH": paths(ROOT)}
    env["PATH"] = f"{counting_nvcc}:{env['PATH']}"
    env.pop("CUDA_HOME", None)
    (tmp_path / "program.py").write_text(PROGRAM)
    command = [sys.executable, "program.py"]
    both = [subprocess.Popen(command, cwd=tmp_path, env=env, stdout=subprocess.PIPE, text=True) for _ in range(2)]
    outputs = [json.loads(process.communicate()[0])["cubin"] for process in both]
    assert [process.returncode for process in both] == [0, 0]
    assert outputs[0] == outputs[1]
    entries = list((tmp_path / "cache").rglob("cubin/*/*"))
    assert len(entries) == 1 and entries[0].suffix == ".wjk"


LIGHT = """
import sys
import warpjit
from warpjit import T, warpjit as decorator
heavy = ("torch", "pycuda", "rich", "platformdirs", "filelock", "matplotlib", "triton")
print([name for name in heavy if name in sys.modules], "libcuda" in open("/proc/self/maps").read())
"""

BARE = """
import sys
import warpjit
early = [name for name in ("numpy", "warpjit.isa", "warpjit.frontend", "warpjit.sim") if name in sys.modules]
print(early, {"T", "compile", "warpjit"} <= set(dir(warpjit)) and warpjit.T.float32.dtype.bits == 32)
"""

DECORATED = """
import sys
from warpjit import T, warpjit

@warpjit
def kernel(X: T.Tensor((32,), "float32")):
    T.device_entry(launch=T.cuda.LaunchConfig(grid=1, block=32))
    X[T.cuda.lane_id()] = 1.0

text = kernel.source(target="sm_90a")
print([name for name in ("torch", "pycuda", "rich", "filelock") if name in sys.modules], "__global__" in text)
"""

SIMULATED = """
import sys
import torch
before = set(sys.modules)
from warpjit import T, warpjit

@warpjit
def kernel(X: T.Tensor((32,), "float32")):
    T.device_entry(launch=T.cuda.LaunchConfig(grid=1, block=32))
    X[T.cuda.lane_id()] = 1.0

x = torch.zeros(32)
kernel(x)
heavy = ("pycuda", "rich", "platformdirs", "filelock")
print([name for name in heavy if name in set(sys.modules) - before], bool((x == 1).all()))
"""


@pytest.mark.parametrize(
    ("program", "printed"),
    [(BARE, "[] True"), (LIGHT, "[] False"), (DECORATED, "[] True"), (SIMULATED, "[] True")],
    ids=["bare", "import", "source", "call"],
)
def test_what_is_imported(program: str, printed: str, tmp_path: Path) -> None:
    (tmp_path / "program.py").write_text(program)
    env = {**os.environ, "PYTHONPATH": paths(ROOT)}
    done = subprocess.run(
        [sys.executable, "program.py"], cwd=tmp_path, env=env, capture_output=True, text=True, check=False
    )
    assert (done.stdout.strip(), done.returncode) == (printed, 0), done.stderr


def test_the_language_is_read_from_standard_input_with_one_error(tmp_path: Path) -> None:
    env = {**os.environ, "PYTHONPATH": paths(ROOT)}
    done = subprocess.run(
        [sys.executable], input=DECORATED, cwd=tmp_path, env=env, capture_output=True, text=True, check=False
    )
    assert done.returncode == 1
    assert "SourceError: the source of kernel cannot be had: '<stdin>' cannot be read" in done.stderr
