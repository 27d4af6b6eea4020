"""Kernels of texts, called as by another process each time, and a count of what each call made.

A text is written to a file of its own, and run as a module: all that is remembered in a process is by object, so a new
module is as good as a new process. The driver is a stand-in, the compiler gives a digest of what it sees.
"""

from __future__ import annotations

import hashlib
import itertools
import sys
import types
from collections import defaultdict
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from driver_stand_in import PRIMARY, Fake

from warpjit import arguments, build, stages
from warpjit.cuda import driver, elf, toolchain
from warpjit.cuda.driver import Function
from warpjit.cuda.toolchain import Compiled
from warpjit.frontend import digest

RESOURCES = elf.Resources(32, 0, 0, 1, (), 0)


@dataclass
class Made:
    """What calls made: programs that were traced, and texts that were compiled."""

    traced: int = 0
    compiled: int = 0

    @property
    def taken(self) -> tuple[int, int]:
        """Both, since the last look."""
        found = (self.traced, self.compiled)
        self.traced = self.compiled = 0
        return found


@dataclass
class Processes:
    """Where the texts are written, and what their kernels made."""

    folder: Path
    fake: Fake
    made: Made = field(default_factory=Made)
    compiler: str = "a compiler"
    _number: Any = field(default_factory=lambda: itertools.count(1))

    def module(self, text: str, name: str | None = None, **files: str) -> types.ModuleType:
        """The module of a text, in a folder of its own, with others beside it that it imports by their names."""
        name = name or f"process_{next(self._number)}"
        folder = self.folder / f"{next(self._number)}"
        folder.mkdir()
        for each, said in files.items():
            (folder / f"{each}.py").write_text(said)
            sys.modules.pop(each, None)
        path = folder / f"{name}.py"
        path.write_text(text)
        module = types.ModuleType(name)
        module.__file__ = str(path)
        sys.path.insert(0, str(folder))
        try:
            exec(compile(text, str(path), "exec", dont_inherit=True), vars(module))
        finally:
            sys.path.remove(str(folder))
            for each in files:
                sys.modules.pop(each, None)
        return module

    def call(
        self, text: str, *args: Any, name: str | None = None, files: Any = (), **constants: Any
    ) -> tuple[int, int]:
        """Call `kernel` of a text in a new process; how many programs it traced, and how many texts it compiled."""
        self.module(text, name, **dict(files)).kernel(*args, **constants)
        return self.made.taken

    def forget_device(self) -> None:
        """Let the driver be asked again which device there is."""
        driver._shared.clear()

    @property
    def launches(self) -> list[str]:
        """What was launched since the last look."""
        return [line for line in self.fake.log if line.startswith("launch")]


@pytest.fixture
def processes(gpu: Fake, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Processes:
    monkeypatch.setenv("WARPJIT_CACHE_DIR", str(tmp_path / "cache"))
    found = Processes(tmp_path, gpu)
    trace = stages.program_of

    def traced(*args: Any) -> Any:
        found.made.traced += 1
        return trace(*args)

    def compiled(text: str, target: Any, *, options: Any, **how: Any) -> Compiled:
        found.made.compiled += 1
        seen = f"{text}{target}{options}{found.compiler}"
        return Compiled(hashlib.sha256(seen.encode()).hexdigest().encode(), "")

    monkeypatch.setattr(stages, "program_of", traced)
    monkeypatch.setattr(toolchain, "compile_cubin", compiled)
    monkeypatch.setattr(toolchain, "compiler_identity", lambda *args: found.compiler)
    monkeypatch.setattr(build.elf, "resources", lambda cubin: defaultdict(lambda: RESOURCES))
    monkeypatch.setattr(Function, "parameter_sizes", lambda self: None)
    monkeypatch.setattr(arguments, "current_device", lambda: 0)
    digest._CODES.clear()
    gpu.push(PRIMARY)
    return found
