"""The machine code of a cubin as text, through NVIDIA's nvdisasm, and that text as a list of instructions.

Finds nvdisasm in the toolkit, on PATH, or in the pip package `nvidia-cuda-nvdisasm`. `instructions` and `loops` say
what is executed and where it jumps; they know no instruction's meaning.
Text format: CUDA Binary Utilities, "nvdisasm".
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path

from warpjit.config import Config
from warpjit.errors import CompileError
from warpjit.record import record

_PACKAGES = ("nvidia-cuda-nvdisasm", "nvidia-cuda-nvdisasm-cu12")
_ADVICE = "nvdisasm was not found: install the CUDA toolkit (CUDA_HOME or PATH) or run pip install nvidia-cuda-nvdisasm"


@record
class Instruction:
    """One machine instruction.

    `function` is the kernel it lies in, `address` its offset in bytes from the kernel's start, `predicate` "" or e.g.
    "@!P0", `opcode` with its modifiers, e.g. "LDG.E.64", `operands` the rest as nvdisasm writes it. `labels` are those
    that stand before it; `target` is the address that the label among its operands stands for, None without one.
    """

    function: str
    address: int
    predicate: str
    opcode: str
    operands: str
    labels: tuple[str, ...] = ()
    target: int | None = None

    @property
    def mnemonic(self) -> str:
        """The opcode without modifiers, e.g. "LDG"."""
        return self.opcode.partition(".")[0]

    @property
    def jumps(self) -> bool:
        """True if executing it may go on at `target` (BSSY and the like only name a place)."""
        return self.target is not None and self.mnemonic in ("BRA", "JMP", "BRX", "JMX")


@record
class Loop:
    """What a backward jump encloses: addresses of the first and the last instruction, of one function."""

    function: str
    start: int
    end: int

    def holds(self, instruction: Instruction) -> bool:
        return instruction.function == self.function and self.start <= instruction.address <= self.end


def sass(cubin: bytes, config: Config) -> str:
    """nvdisasm's text of the code in `cubin`. Raises `CompileError`: no nvdisasm, or not a cubin."""
    tool = find_nvdisasm(config)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "kernel.cubin")
        path.write_bytes(cubin)
        try:
            done = subprocess.run([tool, "-c", str(path)], capture_output=True, text=True, check=False)
        except OSError as error:
            raise CompileError(f"nvdisasm could not be run ({tool}): {error}") from error
    if done.returncode != 0:
        raise CompileError(f"nvdisasm refused the cubin: {(done.stdout + done.stderr).strip()}")
    return done.stdout


def find_nvdisasm(config: Config) -> str:
    """The path of nvdisasm. Raises `CompileError` that says how to get it."""
    home = os.path.join(config.cuda_home, "bin") if config.cuda_home else ""
    found = (home and shutil.which("nvdisasm", path=home)) or shutil.which("nvdisasm", path=config.path) or _packaged()
    if not found:
        raise CompileError(_ADVICE)
    return found


def _packaged() -> str | None:
    """nvdisasm of an installed pip package, wherever that package puts it (nvidia/cu13/bin in version 13)."""
    from importlib import metadata  # noqa: PLC0415  only needed where there is no toolkit

    for package in _PACKAGES:
        try:
            files = metadata.files(package) or []
        except metadata.PackageNotFoundError:
            continue
        for file in files:
            if file.name == "nvdisasm":
                return str(file.locate())
    return None


_INSTRUCTION = re.compile(r"\s*/\*([0-9a-f]{4,})\*/\s+(?:(@!?U?P\w+)\s+)?([A-Z][\w.]*)\s*(.*?)\s*;")
_LABEL = re.compile(r"([.$\w]+):\s*")
_NAMED = re.compile(r"`\(([^)]+)\)")


def instructions(text: str) -> list[Instruction]:
    """The instructions in nvdisasm's `text`, in order, function after function."""
    function = ""
    labels: list[str] = []
    places: dict[tuple[str, str], int] = {}
    found: list[Instruction] = []
    for line in text.splitlines():
        label, code = _LABEL.fullmatch(line), _INSTRUCTION.match(line)
        if label and label[1].startswith(".text."):
            function, labels = label[1].removeprefix(".text."), []
        elif label:
            labels.append(label[1])
        elif code:
            address = int(code[1], 16)
            places.update({(function, name): address for name in labels})
            found.append(Instruction(function, address, code[2] or "", code[3], code[4], tuple(labels)))
            labels = []
    return [replace(instruction, target=_target(instruction, places)) for instruction in found]


def _target(instruction: Instruction, places: dict[tuple[str, str], int]) -> int | None:
    named = _NAMED.search(instruction.operands)
    return places.get((instruction.function, named[1])) if named else None


def loops(code: Sequence[Instruction]) -> list[Loop]:
    """Every loop, inner before outer: from the target of a backward jump to the last such jump to it.

    The jump to itself that ends each kernel is none.
    """
    ends: dict[tuple[str, int], int] = {}
    for instruction in code:
        if instruction.jumps and instruction.target is not None and instruction.target < instruction.address:
            ends[instruction.function, instruction.target] = instruction.address
    found = [Loop(function, start, end) for (function, start), end in ends.items()]
    return sorted(found, key=lambda loop: (loop.function, loop.end - loop.start, loop.start))


def count(code: Iterable[Instruction], mnemonic: str) -> int:
    """How many of the instructions have this mnemonic (or, if it has dots, begin with this opcode)."""
    return sum(instruction.opcode == mnemonic or instruction.opcode.startswith(mnemonic + ".") for instruction in code)
