"""From a verified program to something that can be launched: emit → (store | compile) → load.

`Program` is what both back ends start from. `Built` makes text, PTX, cubin and disassembly when they are first
asked for. `loaded` puts a cubin on a device.
"""

from __future__ import annotations

import functools
import threading
from dataclasses import dataclass
from typing import Any

from warpjit.arguments import FORMATS
from warpjit.config import Config
from warpjit.cuda import disassemble, elf, toolchain
from warpjit.cuda.codegen import Emitted, emit
from warpjit.cuda.driver import Launcher, load
from warpjit.cuda.store import SCHEMA, Part, Store, default_root
from warpjit.errors import CompileError
from warpjit.frontend.scope import Capture
from warpjit.ir.nodes import Kernel
from warpjit.isa.target import Target
from warpjit.passes.expressions import Planned
from warpjit.passes.plan import LaunchPlan
from warpjit.passes.prune import prune


@dataclass(frozen=True, eq=False)
class Program:
    """A traced, verified and planned kernel for one specialisation and target."""

    kernel: Kernel
    plan: LaunchPlan
    target: Target
    captures: tuple[Capture, ...]
    evaluate: Planned


@dataclass(frozen=True)
class Resources:
    """What one launch takes.

    registers     of a thread
    stack_bytes   of a thread in local memory: a frame or spilled registers (0 is what one wants)
    shared_bytes  of a CTA: the kernel's arena and what the system reserves
    """

    registers: int
    stack_bytes: int
    shared_bytes: int


class Built:
    """A program in the compiler's forms. Safe for threads: each form is made once."""

    def __init__(self, program: Program, emitted: Emitted, config: Config, store: Store):
        self.program = program
        self.emitted = emitted
        self._config = config
        self._store = store
        self._lock = threading.Lock()
        self._cubin: bytes | None = None

    @property
    def options(self) -> tuple[str, ...]:
        return toolchain.option_flags(contract=self.program.kernel.contract, lineinfo=self._config.lineinfo)

    @property
    def key(self) -> str:
        """Everything that the compiler sees: text, flags with the architecture, the compiler itself, the schema."""
        flags = toolchain.compile_flags(self.program.target, self.options)
        parts: dict[str, Part] = {
            "text": self.emitted.text,
            "flags": "\0".join(flags),
            "target": self.program.target.name,
            "compiler": toolchain.compiler_identity(self._config, self._store),
            "schema": SCHEMA,
        }
        return Store.key_of(parts)

    @property
    def cubin(self) -> bytes:
        """From the store, or compiled now and kept there."""
        with self._lock:
            if self._cubin is None:
                key = self.key
                entry = self._store.get(key)
                self._cubin = entry.cubin if entry is not None else self._compile(key)
                self._check_strict()
            return self._cubin

    def _compile(self, key: str) -> bytes:
        target = self.program.target
        compiled = toolchain.compile_cubin(
            self.emitted.text, target, options=self.options, config=self._config, locate=self.emitted.place
        )
        header = {"kernel": self.program.kernel.name, "target": target.name, "flags": list(self.options)}
        self._store.put(key, header, compiled.cubin)
        return compiled.cubin

    def _check_strict(self) -> None:
        assert self._cubin is not None
        if not self.program.kernel.strict:
            return
        stack = elf.resources(self._cubin)[self.emitted.entry].stack_bytes
        if stack:
            self._cubin = None
            raise CompileError(
                f"{self.program.kernel.name} uses {stack} bytes of local memory a thread (a stack frame or spilled "
                "registers), which strict=True forbids: use fewer registers, or raise max_registers"
            )

    @functools.cached_property
    def ptx(self) -> str:
        return toolchain.compile_ptx(
            self.emitted.text,
            self.program.target,
            options=self.options,
            config=self._config,
            locate=self.emitted.place,
        )

    @functools.cached_property
    def sass(self) -> str:
        return disassemble.sass(self.cubin, self._config)

    @functools.cached_property
    def resources(self) -> Resources:
        found = elf.resources(self.cubin)[self.emitted.entry]
        reserved = self.program.target.reserved_shared
        return Resources(
            found.registers, found.stack_bytes, self.program.plan.shared_bytes + found.shared_bytes + reserved
        )


def build(program: Program, config: Config) -> Built:
    """The program's CUDA C++; nothing is compiled yet. What only findings need is left out of the text."""
    lean = prune(program.kernel, accesses=False)
    emitted = emit(lean, program.plan, program.target, lineinfo=config.lineinfo)
    return Built(program, emitted, config, Store(default_root(config)))


@dataclass(frozen=True, eq=False)
class Loaded:
    """A program on a device."""

    program: Program
    launcher: Launcher


def loaded(built: Built, device: int) -> Loaded:
    """Put the cubin on a device (it is never unloaded: a graph may hold it) and make ready to launch."""
    plan = built.program.plan
    function = load(built.cubin, device).function(built.emitted.entry)
    formats: list[Any] = ["Q" if parameter.pointer else FORMATS[parameter.dtype.name] for parameter in plan.parameters]
    return Loaded(built.program, Launcher(function, formats, plan.block, shared=plan.shared_bytes))
