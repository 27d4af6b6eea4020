"""From a verified program to machine code: emit → (store | compile).

`Program` is what both back ends start from. `Built` makes text, PTX, cubin and disassembly when they are first
asked for. Loading, launching and simulating is `execute`'s.
"""

from __future__ import annotations

import contextlib
import types
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from warpjit import config
from warpjit.config import VERSION, Config
from warpjit.cuda import disassemble, elf, toolchain
from warpjit.errors import CompileError
from warpjit.frontend.captures import Capture, shown
from warpjit.frontend.digest import Forms, NoDigest
from warpjit.ir.nodes import Kernel
from warpjit.launchable import Executable, Launchable
from warpjit.locks import Lock
from warpjit.passes.prune import prune
from warpjit.store import SCHEMA, Part, Store, key_of, store_of
from warpjit.store.generator import generator_digest

if TYPE_CHECKING:
    from warpjit.cuda.codegen import Emitted


@dataclass(frozen=True)
class Origin:
    """What a program was made of, in words: what an entry of the store says of itself.

    source      the digest of the kernel's definition
    parameters  of each parameter what the kernel is specialised on
    options     those of the decorator
    """

    source: str
    parameters: Mapping[str, str]
    options: Mapping[str, Any]


@dataclass(frozen=True, eq=False)
class Program(Launchable):
    """A traced, verified and planned kernel for one specialisation and target.

    repeatable  a process that finds the program in the index may do without the trace (`trace.Traced`)
    """

    kernel: Kernel
    origin: Origin
    repeatable: bool

    @property
    def built(self) -> Built:
        """The program as CUDA C++, and as a cubin when one is asked for. (Two threads must not ask first at once.)"""
        known = vars(self)
        if "_built" not in known:
            known["_built"] = build(self, config.read())
        made: Built = known["_built"]
        return made


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

    @classmethod
    def of(cls, made: Executable) -> Resources:
        """What the cubin's own notes say."""
        found, target, plan = elf.resources(made.cubin)[made.entry], made.program.target, made.program.plan
        return cls(found.registers, found.stack_bytes, plan.shared_bytes + found.shared_bytes + target.reserved_shared)


class Built:
    """A program in the compiler's forms. Safe for threads: each form is made once."""

    def __init__(self, program: Program, emitted: Emitted, config: Config, store: Store):
        self.program = program
        self.emitted = emitted
        self._config = config
        self._store = store
        self._lock = Lock()
        self._texts: dict[str, str] = {}
        self._made: tuple[str, bytes] | None = None

    @property
    def options(self) -> tuple[str, ...]:
        return toolchain.option_flags(contract=self.program.kernel.contract, lineinfo=self._config.lineinfo)

    @property
    def compiler(self) -> str:
        """Which compiler builds the text: `toolchain.compiler_identity`. CompileError: there is none."""
        return toolchain.compiler_identity(self._config, self._store)

    @property
    def key(self) -> str:
        """Everything that the compiler sees: text, flags with the architecture, the compiler itself, the schema."""
        flags = toolchain.compile_flags(self.program.target, self.options)
        parts: dict[str, Part] = {
            "text": self.emitted.text,
            "flags": "\0".join(flags),
            "target": self.program.target.name,
            "compiler": self.compiler,
            "schema": SCHEMA,
        }
        return key_of(parts)

    @property
    def code(self) -> str:
        """A short digest of the text."""
        return key_of({"text": self.emitted.text})[:16]

    @property
    def cubin(self) -> bytes:
        """From the store, or compiled now and kept there; without a compiler, what another made of the same text."""
        return self._obtained()[1]

    def _obtained(self) -> tuple[str, bytes]:
        """(the key of the entry, the cubin)."""
        with self._lock:
            if self._made is None:
                made = self._obtain()
                self._check_strict(made[1])
                self._made = made
            return self._made

    def _obtain(self) -> tuple[str, bytes]:
        try:
            key = self.key
            return key, self._store.obtain(key, self._compile, self.facts)
        except toolchain.NoCompilerError:
            facts = self.facts()
            found = self._store.find({name: facts[name] for name in ("text", "flags", "target")})
            if found is None:
                raise
            return found.key, found.cubin

    def _compile(self) -> tuple[dict[str, Any], bytes]:
        """(what it was made from, the cubin)."""
        compiled = toolchain.compile_cubin(
            self.emitted.text,
            self.program.target,
            options=self.options,
            config=self._config,
            locate=self.emitted.place,
        )
        found = elf.resources(compiled.cubin)[self.emitted.entry]
        resources = {"registers": found.registers, "stack_bytes": found.stack_bytes}
        return {**self.facts(), "resources": resources}, compiled.cubin

    def facts(self) -> dict[str, Any]:
        """What the cubin is made from, in the clear, for `warpjit cache`; where there is no compiler, its name is None.

        `text`, `flags`, `target`, `compiler` and `schema` are what the key is made of; the others say what made the
        text what it is.
        """
        origin = self.program.origin
        compiler: str | None = None
        version: str | None = None
        with contextlib.suppress(CompileError):
            compiler = self.compiler
            version = toolchain.compiler_version(self._config, compiler)
        return {
            "kernel": self.program.kernel.name,
            "source": origin.source,
            "parameters": dict(origin.parameters),
            "options": dict(origin.options),
            "captures": dict(shown(self.program.captures)),
            "helpers": _helpers(self.program.captures),
            "target": self.program.target.name,
            "flags": list(self.options),
            "compiler": compiler,
            "compiler_version": version,
            "text": key_of({"text": self.emitted.text}),
            "generator": generator_digest(self._store),
            "warpjit": VERSION,
            "schema": SCHEMA,
        }

    def _check_strict(self, cubin: bytes) -> None:
        if not self.program.kernel.strict:
            return
        stack = elf.resources(cubin)[self.emitted.entry].stack_bytes
        if stack:
            raise CompileError(
                f"{self.program.kernel.name} uses {stack} bytes of local memory a thread (a stack frame or spilled "
                "registers), which strict=True forbids: use fewer registers, or raise max_registers"
            )

    @property
    def ptx(self) -> str:
        return self._once("ptx", self._compile_ptx)

    def _compile_ptx(self) -> str:
        return toolchain.compile_ptx(
            self.emitted.text,
            self.program.target,
            options=self.options,
            config=self._config,
            locate=self.emitted.place,
        )

    @property
    def sass(self) -> str:
        return self._once("sass", lambda: disassemble.sass(self.cubin, self._config))

    def _once(self, name: str, make: Callable[[], str]) -> str:
        """What `make` gives, once. (A cached property of Python 3.11 has one lock for all programs.)"""
        with self._lock:
            if name not in self._texts:
                self._texts[name] = make()
            return self._texts[name]

    @property
    def executable(self) -> Executable:
        """The program compiled. Raises CompileError."""
        key, cubin = self._obtained()
        return Executable(self.program, self.emitted.entry, cubin, key, self.code)

    @property
    def resources(self) -> Resources:
        return Resources.of(self.executable)


def _helpers(captures: tuple[Capture, ...]) -> dict[str, str]:
    """The functions that a trace went through, with a digest of what each one's definition says."""
    found = {}
    for each in captures:
        if each.name == "__code__" and isinstance(each.holder, types.FunctionType):
            with contextlib.suppress(NoDigest):
                found[each.holder.__qualname__] = Forms().digest_of_code(each.holder)
    return found


def build(program: Program, config: Config) -> Built:
    """The program's CUDA C++; nothing is compiled yet. What only findings need is left out of the text."""
    from warpjit.cuda.codegen import emit  # noqa: PLC0415  the simulator does without

    lean = prune(program.kernel, accesses=False)
    emitted = emit(lean, program.plan, lineinfo=config.lineinfo)
    return Built(program, emitted, config, store_of(config))
