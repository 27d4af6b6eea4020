"""The source-level index: a hit loads nothing else, what cannot be compared is traced, and nothing in it is trusted."""

from __future__ import annotations

import json
import logging
import os
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import pytest
import torch
from call_kernels import CudaTensor
from driver_stand_in import Fake
from processes import Processes

import warpjit as package
from warpjit import index
from warpjit.cuda import toolchain
from warpjit.isa.target import Target
from warpjit.store import Store

ROOT = Path(package.__file__).resolve().parents[1]
KERNEL = """
from warpjit import T, warpjit
SCALE = 2.0
PARTS = frozenset(("some", "names", "in", "no", "order"))

def scaled(x):
    return x * SCALE + len(PARTS)

@warpjit
def kernel(X: T.Tensor((32,), "float32"), Out: T.Tensor((32,), "float32"), *, parts=PARTS):
    T.device_entry(launch=T.cuda.LaunchConfig(grid=1, block=32))
    lane = T.cuda.lane_id()
    Out[lane] = scaled(X[lane]) + len(parts)
"""
CALL = """
import ctypes, json, sys
import torch
before = set(sys.modules)

class CudaTensor:
    shape, dtype, device = torch.Size([32]), torch.float32, torch.device("cuda", 0)
    stride, data_ptr, is_neg = lambda self: (1,), lambda self: 0x1000, lambda self: False

from program import kernel
from warpjit import arguments
from warpjit.cuda import driver
library = driver.LIBRARY = sys.argv[1]
fake = ctypes.CDLL(library)
fake.fake_log.restype = ctypes.c_char_p
fake.fake_parameters(2, (ctypes.c_int * 2)(8, 8))
arguments.stream_reader = lambda: lambda device: 0x70
torch.cuda.is_available = lambda: False
kernel(CudaTensor(), CudaTensor())
loaded = sorted(set(sys.modules) - before)
print(json.dumps({"loaded": loaded, "log": fake.fake_log().decode().splitlines()}))
"""
LEFT_OUT = {"tracer", "trace", "builder", "stages", "build", "codegen", "elf", "disassemble", "nodes", "table", "sim"}
"""Modules of the package that a launch from the index does without, by the last part of their names."""


@pytest.mark.nvcc
def test_a_new_process_loads_neither_tracer_nor_compiler(
    library: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, processes: Processes
) -> None:
    """Nor is there a compiler; the file has another name and place, and strings another order in sets."""
    monkeypatch.undo()
    monkeypatch.setenv("WARPJIT_CACHE_DIR", str(tmp_path / "warpjit"))
    package.compile(processes.module(KERNEL).kernel, target="sm_90a")
    (tmp_path / "program.py").write_text(f"# in another file\n{KERNEL}")
    env = {**os.environ, "PYTHONHASHSEED": "7", "PATH": "", "PYTHONPATH": f"{ROOT}:{tmp_path}"}
    env["XDG_CACHE_HOME"] = str(tmp_path)
    for name in ("CUDA_HOME", "WARPJIT_CACHE_DIR"):
        env.pop(name, None)
    command = [sys.executable, "-c", CALL, str(library)]
    done = subprocess.run(command, cwd=tmp_path, env=env, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert [line.partition(" ")[0] for line in found["log"]].count("launch") == 1
    ours = {name.rpartition(".")[2] for name in found["loaded"] if name.startswith("warpjit.")}
    assert ours & LEFT_OUT == set() and "index" in ours
    heavy = {"filelock", "rich", "platformdirs", "pycuda", "ml_dtypes", "html", "matplotlib"}
    assert heavy & set(found["loaded"]) == set()


# ---- what is never kept ---------------------------------------------------------------------------------------

PRELUDE = """
import os, random
import torch
from warpjit import T, warpjit

class Settings:
    def __init__(self):
        self.factor = 3

SETTINGS = Settings()

def by_environment(n):
    return n + len(os.environ.get("SOME_NAME", ""))

def by_device(n):
    return n + torch.cuda.device_count()

def by_hash(n):
    return n + hash("a") % 2

def by_import(n):
    import time
    return n + int(time.time() > 0)

def by_attribute(n):
    return n + SETTINGS.factor

@warpjit
def kernel(Out: T.Tensor((32,), "int32")):
    T.device_entry(launch=T.cuda.LaunchConfig(grid=1, block=32))
    Out[T.cuda.lane_id()] = BODY
"""


@pytest.mark.parametrize(
    "body",
    ["by_environment(1)", "by_device(1)", "by_hash(1)", "by_import(1)", "by_attribute(1)", "random.randrange(5)"],
)
def test_what_another_process_may_see_otherwise_is_traced_anew(processes: Processes, body: str) -> None:
    text = PRELUDE.replace("BODY", body)
    found = [processes.call(text, CudaTensor(32, dtype=torch.int32)) for _ in range(2)]
    assert [traced for traced, _ in found] == [1, 1]
    assert processes.call(PRELUDE.replace("BODY", "1"), CudaTensor(32, dtype=torch.int32))[0] == 1
    assert processes.call(PRELUDE.replace("BODY", "1"), CudaTensor(32, dtype=torch.int32)) == (0, 0)


def test_what_prints_while_it_is_traced_prints_in_each_process(
    processes: Processes, capsys: pytest.CaptureFixture[str]
) -> None:
    text = KERNEL.replace("    lane =", '    T.static_print("tracing")\n    lane =')
    assert [processes.call(text, CudaTensor(32), CudaTensor(32)) for _ in range(2)] == [(1, 1), (1, 0)]
    assert capsys.readouterr().out == "tracing\n" * 2


# ---- what is found --------------------------------------------------------------------------------------------


def test_a_change_after_a_hit_is_noticed(processes: Processes) -> None:
    assert processes.call(KERNEL, CudaTensor(32), CudaTensor(32)) == (1, 1)
    module = processes.module(KERNEL)
    for value, made in ((2.0, (0, 0)), (3.0, (1, 1)), (2.0, (0, 0)), (3.0, (0, 0))):
        module.SCALE = value
        for _ in range(3):
            module.kernel(CudaTensor(32), CudaTensor(32))
        assert processes.made.taken == made, value
    assert len(processes.launches) == 13


FUNCTIONS = """
from dataclasses import dataclass
from warpjit import T, warpjit

@dataclass(frozen=True)
class Scaled:
    by: int

    def apply(self, x):
        return x * self.by

    @warpjit
    def method(self, Out: T.Tensor((32,), "float32")):
        T.device_entry(launch=T.cuda.LaunchConfig(grid=1, block=32))
        Out[T.cuda.lane_id()] = self.apply(Out[T.cuda.lane_id()])

@warpjit
def kernel(Out: T.Tensor((32,), "float32"), *, epilogue):
    T.device_entry(launch=T.cuda.LaunchConfig(grid=1, block=32))
    Out[T.cuda.lane_id()] = epilogue(Out[T.cuda.lane_id()])

def made(factor):
    def inner(x):
        return x + factor
    return inner

EPILOGUES = (made(1), lambda x: x * 2)
"""


def test_functions_and_methods_as_constants(processes: Processes) -> None:
    def call(text: str = FUNCTIONS, by: int = 2) -> list[tuple[int, int]]:
        module, found = processes.module(text), []
        for epilogue in module.EPILOGUES:
            module.kernel(CudaTensor(32), epilogue=epilogue)
            found.append(processes.made.taken)
        module.Scaled(by).method(CudaTensor(32))
        return [*found, processes.made.taken]

    assert call() == [(1, 1)] * 3
    assert call() == [(0, 0)] * 3
    assert call(FUNCTIONS.replace("made(1)", "made(5)")) == [(1, 1), (0, 0), (0, 0)]
    assert call(FUNCTIONS.replace("x + factor", "x - factor")) == [(1, 1), (0, 0), (0, 0)]
    assert call(FUNCTIONS.replace("x: x * 2", "x: x * 3")) == [(0, 0), (1, 1), (0, 0)]
    assert call(FUNCTIONS.replace("x * self.by", "x / self.by")) == [(0, 0), (0, 0), (1, 1)]
    assert call(by=7) == [(0, 0), (0, 0), (1, 1)]


def test_helpers_of_the_packages_own_modules(processes: Processes) -> None:
    """Such a module's attributes are not looked at again, so no capture leads to the helper's names."""
    text = KERNEL.replace("SCALE =", "from warpjit.kernels import flash\nSCALE =")
    text = text.replace("scaled(X[lane])", "flash.finite(X[lane])")
    assert [processes.call(text, CudaTensor(32), CudaTensor(32)) for _ in range(2)] == [(1, 1), (0, 0)]


def test_what_compile_has_built_is_found_by_a_call(processes: Processes, monkeypatch: pytest.MonkeyPatch) -> None:
    package.compile(processes.module(KERNEL).kernel, target="sm_90a")
    package.compile(processes.module(KERNEL).kernel, target="sm_90")
    assert processes.made.taken == (2, 2)
    assert processes.call(KERNEL, CudaTensor(32), CudaTensor(32)) == (0, 0)

    def nothing(*args: Any) -> str:
        raise toolchain.NoCompilerError("none")

    monkeypatch.setattr(toolchain, "compiler_identity", nothing)
    assert processes.call(KERNEL, CudaTensor(32), CudaTensor(32)) == (0, 0)


def test_what_warming_up_has_built_is_found_by_a_call(processes: Processes) -> None:
    processes.module(KERNEL).kernel.warmup([()], target="sm_90a", progress=False)
    assert processes.made.taken == (1, 1)
    assert processes.call(KERNEL, CudaTensor(32), CudaTensor(32)) == (0, 0)


# ---- what is wrong with it ------------------------------------------------------------------------------------


def entries(processes: Processes) -> tuple[Store, str, dict[str, Any]]:
    kept = Store(processes.folder / "cache")
    key = next(key for key in kept.keys("index") if "variants" in (kept.get_index(key) or {}))
    return kept, key, kept.get_index(key) or {}


BROKEN: dict[str, Any] = {
    "variants": lambda variant: 5,
    "a variant": lambda variant: [7],
    "nothing": lambda variant: [{}],
    "a path": lambda variant: [{**variant, "captures": [[[["nonsense", 0]], "cell", "x", ""]]}],
    "a long path": lambda variant: [{**variant, "captures": [[[["start", 9]], "cell", "x", ""]]}],
    "a read": lambda variant: [
        {**variant, "captures": [[*row[:1], "nonsense", *row[2:]] for row in variant["captures"]]}
    ],
    "a plan": lambda variant: [{**variant, "plan": {**variant["plan"], "schema": -1}}],
    "an expression": lambda variant: [{**variant, "plan": {**variant["plan"], "grid": [["nonsense"], 1, 1]}}],
    "a cubin's key": lambda variant: [{**variant, "cubins": {"a compiler": "0" * 64}}],
    "cubins": lambda variant: [{**variant, "cubins": None}],
}


def test_a_damaged_entry_is_a_miss(processes: Processes) -> None:
    assert processes.call(KERNEL, CudaTensor(32), CudaTensor(32)) == (1, 1)
    for name, change in BROKEN.items():
        kept, key, value = entries(processes)
        kept.put_index(key, {**value, "variants": change(value["variants"][0])})
        assert processes.call(KERNEL, CudaTensor(32), CudaTensor(32)) == (1, 0), name
        assert processes.call(KERNEL, CudaTensor(32), CudaTensor(32)) == (0, 0), name


def test_old_variants_are_forgotten(processes: Processes, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(index, "VARIANTS", 2)
    texts = [KERNEL.replace("SCALE = 2.0", f"SCALE = {scale}.0") for scale in (1, 2, 3)]
    assert [processes.call(text, CudaTensor(32), CudaTensor(32)) for text in texts] == [(1, 1)] * 3
    _, _, value = entries(processes)
    assert value["kernel"] == "kernel" and len(value["variants"]) == 2
    found = [processes.call(text, CudaTensor(32), CudaTensor(32)) for text in reversed(texts)]
    assert found == [(0, 0), (0, 0), (1, 0)]


def test_variants_that_are_recorded_at_once_all_stay(processes: Processes, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each thread is as good as a process: all locks are files'."""
    made = []
    for scale in (1, 2, 3):
        kernel = processes.module(KERNEL.replace("SCALE = 2.0", f"SCALE = {scale}.0")).kernel
        specialization = kernel.specialization((), {})
        made.append((kernel, kernel.built(specialization, Target.parse("sm_90a")), specialization))
    get = Store.get_index

    def slow(store: Store, key: str) -> Any:
        found = get(store, key)
        time.sleep(0.02)
        return found

    monkeypatch.setattr(Store, "get_index", slow)
    for _ in range(2):  # the second time adds nothing
        threads = [threading.Thread(target=kernel.keep, args=rest) for kernel, *rest in made]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        _, _, value = entries(processes)
        assert len(value["variants"]) == 3


def test_a_forced_trace_reports_an_index_that_is_wrong(
    processes: Processes, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    assert processes.call(KERNEL, CudaTensor(32), CudaTensor(32)) == (1, 1)
    monkeypatch.setenv("WARPJIT_RETRACE", "1")
    with caplog.at_level(logging.ERROR, "warpjit.index"):
        assert processes.call(KERNEL, CudaTensor(32), CudaTensor(32)) == (1, 0)
        assert caplog.text == ""
        monkeypatch.setattr(index, "_digest", lambda forms, capture: "the same, whatever it is")
        assert processes.call(KERNEL, CudaTensor(32), CudaTensor(32)) == (1, 0)
        other = KERNEL.replace("SCALE = 2.0", "SCALE = 3.0")
        assert processes.call(other, CudaTensor(32), CudaTensor(32)) == (1, 1)
    assert "the index is wrong about kernel: cubin: stored " in caplog.text


def test_a_trace_of_many_objects_ends(processes: Processes, gpu: Fake) -> None:
    """What a kernel captures may lead to everything: the search for ways ends at a number of objects."""
    text = KERNEL.replace("def scaled", "MANY = tuple((i,) for i in range(20_000))\n\ndef scaled").replace(
        "len(PARTS)", "len(PARTS) + MANY[5][0]"
    )
    assert [processes.call(text, CudaTensor(32), CudaTensor(32)) for _ in range(2)] == [(1, 1), (0, 0)]
