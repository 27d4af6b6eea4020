"""The catalogue of errors: programs that are wrong on purpose, and the whole sentences that they are refused with.

A file of `cases/` holds one `Topic`, a list of `Case`s. `docs/errors.md` is written from them, and `test_errors.py`
runs each of them. To add an error's case, add a line to the file of its topic; where an error needs other lines around
it, give the case a `frame` of its own. What a program can use without importing it stands in `PRELUDE`.
"""

from __future__ import annotations

import importlib.util
import linecache
import sys
import textwrap
import types
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
import torch
from sites import Recorder, Site

from warpjit.errors import ArgumentError, Finding, TraceError, WarpjitError

HERE = Path(__file__).resolve().parent
FILE = "example.py"
"""The name that a case's program goes by."""

PRELUDE = """\
import dataclasses

import numpy as np
import torch
import warpjit as wj
from warpjit import T, isa, layout, warpjit
from warpjit.layout import ComposeLayout, R, S, Swizzle, TileLayout, laneid, m, warpid
"""

KERNEL = """\
@warpjit
def kernel(A: T.Tensor((8, 8), "float32"), I: T.Tensor((32,), "int32"), n: T.int32):
    T.device_entry(launch=T.cuda.LaunchConfig(grid=1, block=32))
    lane = T.cuda.lane_id()
    ...

kernel(torch.zeros(8, 8), torch.zeros(32, dtype=torch.int32), 5)
"""
"""What stands around the statements of most cases about the language."""

Given = Callable[[pytest.MonkeyPatch, Path], None]


@dataclass(frozen=True)
class Case:
    """One error.

    program   what the user wrote: it takes the place of `...` in the frame
    message   the whole sentence; notes follow on lines of their own, after "note: "; further findings likewise
    at        the text that the (first) finding's carets stand under; "" where the error has no place
    exactly   the same from Python 3.12 on, where a part of an f-string has a place of its own; "" where it is the same
    error     the class; None for the topic's
    frame     what stands around the program; None for the topic's, "" where the program is complete
    given     makes the machine what the error needs, in a folder of its own; its docstring says what that is
    """

    program: str
    message: str
    at: str = ""
    error: type[WarpjitError] | None = None
    frame: str | None = None
    given: Given | None = None
    exactly: str = ""

    @property
    def place(self) -> str:
        """What the carets stand under here."""
        return self.exactly if self.exactly and sys.version_info >= (3, 12) else self.at


@dataclass(frozen=True)
class Topic:
    """The errors about one thing. `stage` is the heading that it stands under, `text` what is to be known first."""

    stage: str
    title: str
    cases: tuple[Case, ...]
    text: str = ""
    frame: str = KERNEL
    error: type[WarpjitError] = TraceError
    file: str = field(default="", compare=False)


STAGES = ("Layouts", "Instructions", "The language", "Calling a kernel", "Compiling and launching", "The simulator",
          "The package's kernels", "The command line")  # fmt: skip


@dataclass(frozen=True)
class Outcome:
    """What a case came to: the error that was raised, and the places of the package that its sentence came from."""

    error: BaseException | None
    sites: frozenset[Site]


def _module(path: Path) -> Any:
    spec = importlib.util.spec_from_file_location(f"error_cases_{path.stem}", path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def topics() -> list[Topic]:
    """Every topic, in the order of the document."""
    found = []
    for path in sorted((HERE / "cases").glob("*.py")):
        topic = _module(path).TOPIC
        found.append(Topic(**{**vars(topic), "file": path.name}))
    return sorted(found, key=lambda topic: STAGES.index(topic.stage))


def listing(topic: Topic, case: Case) -> str:
    """The program of a case within its frame."""
    frame = topic.frame if case.frame is None else case.frame
    program = textwrap.dedent(case.program).strip("\n")
    if not frame:
        return program + "\n"
    lines = []
    for line in frame.splitlines():
        indent = line[: len(line) - len(line.lstrip())]
        lines += textwrap.indent(program, indent).splitlines() if line.strip() == "..." else [line]
    return "\n".join(lines) + "\n"


def outcome(topic: Topic, case: Case, folder: Path) -> Outcome:
    """Run a case's program, in a folder of its own."""
    text = listing(topic, case)
    module = types.ModuleType("example")
    linecache.cache[FILE] = (len(text), None, text.splitlines(keepends=True), FILE)
    caught: BaseException | None = None
    with pytest.MonkeyPatch.context() as patch, Recorder() as recorder:
        patch.chdir(folder)
        # A kernel without tensors would run on a GPU, where what is wrong on purpose hangs.
        patch.setattr(torch.cuda, "is_available", lambda: False)
        patch.setitem(sys.modules, module.__name__, module)
        exec(PRELUDE, module.__dict__)
        try:
            if case.given is not None:
                case.given(patch, folder)
            exec(compile(text, FILE, "exec"), module.__dict__)
        except Exception as error:
            caught = error
    said = "" if caught is None else f"{caught}\n{getattr(caught, 'code', '')}"
    return Outcome(caught, recorder.heard(said))


def said(error: BaseException | None) -> str:
    """What an error says, without the places that it shows."""
    findings: tuple[Finding, ...] = getattr(error, "findings", ())
    if not findings:
        return str(error)
    lines = []
    for finding in findings:
        lines += [finding.message, *(f"note: {note.message}" for note in finding.notes)]
    return "\n".join(lines)


def marked(error: BaseException | None) -> str:
    """The text under the carets of an error's first finding."""
    findings: tuple[Finding, ...] = getattr(error, "findings", ())
    frame = findings[0].loc.innermost if findings else None
    if frame is None:
        return ""
    return frame.text.rstrip()[frame.column : frame.end_column]


__all__ = ["KERNEL", "PRELUDE", "STAGES", "ArgumentError", "Case", "Outcome", "Topic", "TraceError"]
