"""A machine with neither nvcc nor a toolkit: kernels come from a bundle, or from what is stored of the same text."""

from __future__ import annotations

import json
import logging
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from call_kernels import CudaTensor
from processes import Processes
from test_index import KERNEL

import warpjit as package
from warpjit import CompileError, config
from warpjit.cuda import toolchain
from warpjit.store import store_of

ROOT = Path(package.__file__).resolve().parents[1]


def no_compiler(*args: Any) -> str:
    raise toolchain.NoCompilerError("there is none")


# ---- the store has it -----------------------------------------------------------------------------------------


def test_what_another_compiler_made_of_the_same_text_is_used(
    processes: Processes, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also where the index knows nothing of it: each way asks for the text, the flags and the target."""
    made = processes.module(KERNEL).kernel.cubin(target="sm_90a")
    assert processes.made.taken == (1, 1)
    monkeypatch.setattr(toolchain, "compiler_identity", no_compiler)
    kernel = processes.module(KERNEL).kernel
    compiled = package.compile(kernel, target="sm_90a")
    assert compiled.cubin == kernel.cubin(target="sm_90a") == made
    assert compiled.resources.registers == 32
    kernel.warmup([()], target="sm_90a", progress=False)
    kernel(CudaTensor(32), CudaTensor(32))
    assert len(processes.launches) == 1
    assert processes.made.taken == (1, 0)
    assert processes.call(KERNEL, CudaTensor(32), CudaTensor(32)) == (1, 0)


def test_another_text_target_or_flag_is_not_taken_for_it(processes: Processes, monkeypatch: pytest.MonkeyPatch) -> None:
    processes.module(KERNEL).kernel.cubin(target="sm_90a")
    monkeypatch.setattr(toolchain, "compiler_identity", no_compiler)
    other = processes.module(KERNEL.replace("SCALE = 2.0", "SCALE = 3.0")).kernel
    unfused = processes.module(KERNEL.replace("@warpjit", "@warpjit(contract=False)")).kernel
    same = processes.module(KERNEL).kernel
    for kernel, target in ((other, "sm_90a"), (unfused, "sm_90a"), (same, "sm_90")):
        with pytest.raises(CompileError, match=r"^there is none$"):
            package.compile(kernel, target=target)
    monkeypatch.setenv("WARPJIT_LINEINFO", "1")
    with pytest.raises(CompileError, match=r"^there is none$"):
        processes.module(KERNEL).kernel.cubin(target="sm_90a")
    for path in Path(str(store_of(config.read()).root)).rglob("cubin/*/*"):
        path.write_bytes(path.read_bytes()[:-1])
    monkeypatch.delenv("WARPJIT_LINEINFO")
    with pytest.raises(CompileError, match=r"^there is none$"):
        processes.module(KERNEL).kernel.cubin(target="sm_90a")


def test_without_a_compiler_a_forced_trace_compares_no_cubins(
    processes: Processes, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    assert processes.call(KERNEL, CudaTensor(32), CudaTensor(32)) == (1, 1)
    monkeypatch.setenv("WARPJIT_RETRACE", "1")
    monkeypatch.setattr(toolchain, "compiler_identity", no_compiler)
    with caplog.at_level(logging.ERROR, "warpjit.index"):
        assert processes.call(KERNEL, CudaTensor(32), CudaTensor(32)) == (1, 0)
    assert caplog.text == ""


# ---- a bundle brings it ---------------------------------------------------------------------------------------

PROGRAM = """
import hashlib
import torch
from warpjit import Config, T, warpjit

class MadeUp:
    times_of = {"BLOCK=32": 5.0, "BLOCK=64": 3.0}
    begin, now = lambda self, trials: None, lambda self: 0.0
    times = lambda self, trial, count: [self.times_of[trial.config]] * count

def body(X, Out, scale):
    lane = T.cuda.lane_id()
    Out[lane] = X[lane] * scale

@warpjit
def called(X: T.Tensor((32,), "float32"), Out: T.Tensor((32,), "float32")):
    T.device_entry(launch=T.cuda.LaunchConfig(grid=1, block=32))
    body(X, Out, 2)

@warpjit
def built(X: T.Tensor((32,), "float32"), Out: T.Tensor((32,), "float32")):
    T.device_entry(launch=T.cuda.LaunchConfig(grid=2, block=32))
    body(X, Out, 3)

TIMER = MadeUp()

@warpjit.autotune([Config(BLOCK=32), Config(BLOCK=64)], timer=TIMER)
@warpjit
def tuned(X: T.Tensor((32,), "float32"), Out: T.Tensor((32,), "float32"), *, BLOCK):
    T.device_entry(launch=T.cuda.LaunchConfig(grid=1, block=BLOCK))
    body(X, Out, 4)

def digest(cubin):
    return hashlib.sha256(cubin).hexdigest()
"""
EXPORT = """
import json, sys
import torch, warpjit
from program import called, built, tuned, digest
from warpjit.store import export_bundle
cubins = [digest(warpjit.compile(called, target="sm_90a").cubin), digest(built.cubin(target="sm_90a"))]
tuned(torch.ones(32), torch.ones(32))
print(json.dumps([cubins, dict(export_bundle(sys.argv[1]).entries)]))
"""
IMPORT = """
import ctypes, json, subprocess, sys
import torch, warpjit

class CudaTensor:
    shape, dtype, device = torch.Size([32]), torch.float32, torch.device("cuda", 0)
    stride, data_ptr, is_neg = lambda self: (1,), lambda self: 0x1000, lambda self: False

def refuse(*args, **how):
    raise AssertionError("a process was started")

subprocess.Popen = refuse
from warpjit.store import import_bundle
taken = dict(import_bundle(sys.argv[1]).entries)
import program
from program import called, built, tuned, digest
from warpjit import arguments, kernel
from warpjit.cuda import driver
library = driver.LIBRARY = sys.argv[2]
fake = ctypes.CDLL(library)
fake.fake_log.restype = ctypes.c_char_p
fake.fake_parameters(2, (ctypes.c_int * 2)(8, 8))
arguments.stream_reader = lambda: lambda device: 0x70
torch.cuda.is_available = lambda: False
loaded, load = [], kernel.load

def noted(cubin, device):
    loaded.append(digest(cubin))
    return load(cubin, device)

kernel.load = noted
called(CudaTensor(), CudaTensor())
built(CudaTensor(), CudaTensor())
program.TIMER.times = refuse
best = str(tuned.best(torch.ones(32), torch.ones(32)))
launches = [line.split(" shared")[0] for line in fake.fake_log().decode(errors="replace").splitlines()]
compiled = digest(warpjit.compile(called, target="sm_90a").cubin)
print(json.dumps([loaded, taken, [each for each in launches if each.startswith("launch")], best, compiled]))
"""


def run(folder: Path, script: str, *args: Path, **env: str) -> Any:
    full = {**os.environ, "PYTHONPATH": f"{ROOT}:{folder}", "PYTHONDONTWRITEBYTECODE": "1", **env}
    command = [sys.executable, "-c", script, *map(str, args)]
    done = subprocess.run(command, cwd=folder, env=full, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.mark.nvcc
def test_a_bundle_is_all_that_a_machine_without_a_compiler_needs(library: Path, tmp_path: Path) -> None:
    """Called kernels by the index, others by their text, what tuning found by its key; no process is started."""
    bundle = tmp_path / "kernels.zip"
    (tmp_path / "program.py").write_text(PROGRAM)
    cubins, exported = run(tmp_path, EXPORT, bundle, WARPJIT_CACHE_DIR=str(tmp_path / "from"))
    assert exported == {"cubin": 2, "index": 1, "tuning": 1}
    bare = {"CUDA_HOME": "/nonexistent", "PATH": "", "WARPJIT_CACHE_DIR": str(tmp_path / "to")}
    loaded, taken, launches, best, compiled = run(tmp_path, IMPORT, bundle, library, **bare)
    assert (loaded, compiled, taken) == (cubins, cubins[0], exported)
    assert launches == ["launch 1,1,1 x 32,1,1", "launch 2,1,1 x 32,1,1"]
    assert best == "Config(BLOCK=64)"
