"""What makes a new program and what does not: each change of a kernel's source, surroundings, arguments or machine."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest
from call_kernels import CudaTensor
from driver_stand_in import Fake
from processes import Processes

from warpjit import index, store
from warpjit.store import generator

TEXT = '''
"""A module."""
import math
from dataclasses import dataclass
from enum import Enum
import helping
from warpjit import T, warpjit
from warpjit.layout import S, TileLayout, laneid

SCALE = 2.0
COUNT = 3
KIND = 1
UNRELATED = 5
LAYOUT = TileLayout(S[(32, 2) : (1 @ laneid, 1)])
DTYPE = "float32"
KINDS = (int, bool, float)

class Mode(Enum):
    PLAIN = 1
    TWICE = 2

@dataclass(frozen=True)
class Tile:
    rows: int
    mode: Mode = Mode.PLAIN

    @property
    def size(self):
        return self.rows * 2

TILE = Tile(4)

def inner(x, bias=1.0):
    return x + bias

def outer(x):
    """Calls a helper."""
    return inner(x) * SCALE

def counted(n):
    return math.gcd(n, 6) * COUNT

def made(factor):
    @warpjit()
    def kernel(X: T.Tensor((32,), "float32"), Out: T.Tensor(None, "float32"), n: T.int32, *, mode=1):
        """What it does."""
        T.device_entry(launch=T.cuda.LaunchConfig(grid=1, block=32))
        lane = T.cuda.lane_id()
        words = T.alloc_local((32, 2), DTYPE, layout=LAYOUT)
        assert n >= 0
        value = outer(X[lane]) * factor + n  # a comment
        words.regs[0] = helping.twice(value) + TILE.size
        words.regs[1] = words.regs[0] + (TILE.mode.value if mode is not None else 0)
        Out[lane] = words.regs[1] + counted(4) + (mode or 0) + KINDS.index(type(KIND))
    return kernel

kernel = made(3)
'''
HELPING = """
DEPTH = 1

def twice(x):
    return once(x) * 2

def once(x):
    return x + DEPTH
"""
FILES = {"helping": HELPING}


def arguments() -> tuple[Any, ...]:
    return CudaTensor(32), CudaTensor(32), 5


def changed(old: str, new: str, text: str = TEXT) -> str:
    assert text.count(old) == 1, old
    return text.replace(old, new)


MAKING = {
    "a float": changed("SCALE = 2.0", "SCALE = 2.0000002384185791"),
    "an int to a bool": changed("KIND = 1", "KIND = True"),
    "an int to a float": changed("KIND = 1", "KIND = 1.0"),
    "an int": changed("COUNT = 3", "COUNT = 4"),
    "a layout": changed("1 @ laneid, 1)])", "1 @ laneid, 2)])"),
    "a data type": changed('DTYPE = "float32"', 'DTYPE = "float64"'),
    "a field of a dataclass": changed("TILE = Tile(4)", "TILE = Tile(5)"),
    "a default of a dataclass": changed("mode: Mode = Mode.PLAIN", "mode: Mode = Mode.TWICE"),
    "a property": changed("self.rows * 2", "self.rows * 3"),
    "an enum's value": changed("PLAIN = 1", "PLAIN = 7"),
    "a default of a helper": changed("bias=1.0", "bias=1.5"),
    "a helper's body at depth 2": changed("return x + bias", "return x - bias"),
    "a function that Python calls": changed("math.gcd(n, 6)", "math.lcm(n, 6)"),
    "a closure": changed("kernel = made(3)", "kernel = made(4)"),
    "the body": changed("* factor + n", "* factor - n"),
    "contract": changed("@warpjit()", "@warpjit(contract=False)"),
    "debug": changed("@warpjit()", "@warpjit(debug=True)"),
    "a default of the kernel": changed("*, mode=1", "*, mode=2"),
    "an annotation": changed('X: T.Tensor((32,), "float32")', 'X: T.Tensor((32,), "float32", noalias=True)'),
}
"""Texts of another program: one trace, one compilation."""


def test_each_change_of_the_program_compiles_once(processes: Processes) -> None:
    assert processes.call(TEXT, *arguments(), files=FILES) == (1, 1)
    wrong = {}
    for name, text in MAKING.items():
        found = [processes.call(text, *arguments(), files=FILES) for _ in range(2)]
        if found != [(1, 1), (0, 0)]:
            wrong[name] = found
    assert wrong == {}
    assert processes.call(TEXT, *arguments(), files=FILES) == (0, 0)


@pytest.mark.parametrize(("old", "new"), [("DEPTH = 1", "DEPTH = 2"), ("return x + DEPTH", "return x - DEPTH")])
def test_a_helper_in_another_file(processes: Processes, old: str, new: str) -> None:
    assert processes.call(TEXT, *arguments(), files=FILES) == (1, 1)
    other = {"helping": changed(old, new, HELPING)}
    assert [processes.call(TEXT, *arguments(), files=other) for _ in range(2)] == [(1, 1), (0, 0)]
    assert processes.call(TEXT, *arguments(), files=FILES) == (0, 0)


TRACING = {
    "strict": changed("@warpjit()", "@warpjit(strict=True)"),
    "unverified": changed("@warpjit()", "@warpjit(unverified=True)"),
    "an unused branch's constant": changed("else 0)", "else 1)"),
    "a float by a bit that float32 has not": changed("SCALE = 2.0", "SCALE = 2.0000000000000004"),
    "an int beside a float": changed("SCALE = 2.0", "SCALE = 2"),
    "a closure's type": changed("kernel = made(3)", "kernel = made(3.0)"),
}
"""Texts that are traced, since they could be another program, and turn out to be the same one: no compilation."""


def test_what_gives_the_same_text_is_compiled_no_more(processes: Processes) -> None:
    assert processes.call(TEXT, *arguments(), files=FILES) == (1, 1)
    found = {name: processes.call(text, *arguments(), files=FILES) for name, text in TRACING.items()}
    assert found == dict.fromkeys(TRACING, (1, 0))


NOTHING = {
    "a comment": changed("# a comment", "# another\n"),
    "a docstring": changed("What it does.", "What it does, in other words."),
    "no docstring": changed('        """What it does."""\n', ""),
    "a helper's docstring": changed('    """Calls a helper."""\n', ""),
    "the module's docstring": changed('"""A module."""', ""),
    "lines": "\n\n\n" + TEXT,
    "spacing": changed("outer(X[lane]) * factor + n", "outer( X[lane] )*factor  +  n"),
    "the order of globals": changed("SCALE = 2.0\nCOUNT = 3\n", "COUNT = 3\nSCALE = 2.0\n"),
    "an unrelated global": changed("UNRELATED = 5", "UNRELATED = [6]"),
    "an equal number": changed("SCALE = 2.0", "SCALE = 1.0 + 1.0"),
    "the same through a name": changed("kernel = made(3)", "three = 3\nkernel = made(three)"),
    "another decorator's call": changed("@warpjit()", "@warpjit"),
}
"""Texts of the same program: no trace, no compilation."""


def test_what_does_not_change_the_program_traces_nothing(processes: Processes, monkeypatch: pytest.MonkeyPatch) -> None:
    assert processes.call(TEXT, *arguments(), files=FILES) == (1, 1)
    found = {name: processes.call(text, *arguments(), files=FILES) for name, text in NOTHING.items()}
    assert found == dict.fromkeys(NOTHING, (0, 0))
    assert processes.call(TEXT, *arguments(), name="renamed", files=FILES) == (0, 0)
    assert processes.call(TEXT, *arguments(), files={"helping": f"# moved\n\n{HELPING}"}) == (0, 0)
    monkeypatch.chdir(processes.folder)
    assert processes.call(TEXT, *arguments(), files=FILES) == (0, 0)


# ---- arguments and machine ------------------------------------------------------------------------------------


ARGUMENTS: dict[str, tuple[tuple[Any, ...], dict[str, Any]]] = {
    "a shape": ((CudaTensor(32), CudaTensor(64), 5), {}),
    "an alignment": ((CudaTensor(32, pointer=0x1008), CudaTensor(32), 5), {}),
    "a stride": ((CudaTensor(32), CudaTensor(32, strides=(2,)), 5), {}),
    "a constant": (arguments(), {"mode": 2}),
    "a constant's type": (arguments(), {"mode": True}),
    "a constant to a float": (arguments(), {"mode": 1.0}),
    "no constant": (arguments(), {"mode": None}),
}


def test_kinds_of_arguments_and_numbers(processes: Processes) -> None:
    assert processes.call(TEXT, *arguments(), files=FILES) == (1, 1)
    for name, (args, named) in ARGUMENTS.items():
        traced, compiled = processes.call(TEXT, *args, files=FILES, **named)
        assert traced == 1 and compiled <= 1, name
        assert processes.call(TEXT, *args, files=FILES, **named) == (0, 0), name
    assert processes.call(TEXT, CudaTensor(32, pointer=0x2000), CudaTensor(32), -7, files=FILES) == (0, 0)


def test_a_runtime_size_has_one_program(processes: Processes) -> None:
    text = changed("T.Tensor(None,", 'T.Tensor((T.dynamic("N"),),')
    assert processes.call(text, *arguments(), files=FILES) == (1, 1)
    assert processes.call(text, CudaTensor(32), CudaTensor(77), 5, files=FILES) == (0, 0)


def test_another_device_compiler_or_warpjit(processes: Processes, gpu: Fake, monkeypatch: pytest.MonkeyPatch) -> None:
    def call() -> tuple[int, int]:
        return processes.call(TEXT, *arguments(), files=FILES)

    assert [call(), call()] == [(1, 1), (0, 0)]
    processes.compiler = "another compiler"
    assert [call(), call()] == [(1, 1), (0, 0)]
    processes.compiler = "a compiler"
    assert call() == (0, 0)
    with monkeypatch.context() as patch:
        patch.setattr(index, "generator_digest", lambda store: "another warpjit")
        assert [call(), call()] == [(1, 0), (0, 0)]
    with monkeypatch.context() as patch:
        patch.setenv("WARPJIT_LINEINFO", "1")
        assert call() == (1, 1)
    with monkeypatch.context() as patch:
        patch.setenv("CUDA_HOME", "/another/toolkit")  # of which the compiler's files are the same
        assert call() == (0, 0)
    gpu.library.fake_capability(8, 9)
    processes.forget_device()
    assert [call(), call()] == [(1, 1), (0, 0)]


def test_a_digest_of_warpjit_is_of_what_its_files_say(tmp_path: Path) -> None:
    kept = store.Store(tmp_path / "cache")
    for name in ("one", "two"):
        folder = tmp_path / name
        (folder / "inside").mkdir(parents=True)
        (folder / "inside" / "a.py").write_text("1")
        (folder / "b.py").write_text("2")
    first, second = (generator.generator_digest(kept, tmp_path / name) for name in ("one", "two"))
    assert first == second is not None
    os.utime(tmp_path / "two" / "b.py", (1, 1))
    (tmp_path / "two" / "notes.txt").write_text("no source")
    generator.generator_digest.cache_clear()
    assert generator.generator_digest(kept, tmp_path / "two") == first
    (tmp_path / "two" / "b.py").write_text("3")
    generator.generator_digest.cache_clear()
    assert generator.generator_digest(kept, tmp_path / "two") not in (first, None)
    assert generator.generator_digest(kept, tmp_path / "nothing") is None
