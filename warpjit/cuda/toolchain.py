"""From CUDA C++ text to a cubin or PTX: the one place that runs nvcc, through PyCUDA.

Also finds the toolkit and says which compiler it is, so that the disk store's keys change when the compiler does.
Left out: what the text says (`codegen`), where cubins are kept (`store`), and what is in them (`elf`). PyCUDA's own
cache is off: it writes entries in place and verifies nothing.
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import subprocess
import types
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from warpjit.config import Config
from warpjit.cuda import processes
from warpjit.cuda.messages import CompilerMessage, Locate, parse_messages, refusal, with_text_lines
from warpjit.errors import CompileError
from warpjit.isa.target import Target
from warpjit.record import record
from warpjit.store import Store, key_of

BASE_FLAGS = ("-std=c++17", "-w", "-D__CUDA_RUNTIME_H__")
"""The flags of every build. `-w`: PyCUDA turns chatter into warnings. The define: see `prelude`."""
COMPILE_SECONDS = 1800.0
"""What a run of nvcc may take where WARPJIT_COMPILE_TIMEOUT does not say: one that hangs must end some time."""
_FOREVER = 1e6
"""More seconds than these no wait takes."""


class NoCompilerError(CompileError):
    """nvcc or PyCUDA is not installed: nothing can be built here, whatever the text says."""


@record
class Compiled:
    """A cubin, and what the compiler said although it succeeded (often nothing)."""

    cubin: bytes
    log: str

    @property
    def messages(self) -> tuple[CompilerMessage, ...]:
        return parse_messages(self.log)


def option_flags(*, contract: bool = True, lineinfo: bool = False) -> tuple[str, ...]:
    """nvcc's flags for what a kernel may ask for, in a fixed order (they are part of the cubin's key).

    `contract=False` forbids fusing a product and a sum into an fma. `lineinfo` keeps line numbers for profilers.
    """
    flags = [] if contract else ["-fmad=false"]
    flags += ["-lineinfo"] if lineinfo else []
    return tuple(flags)


def compile_flags(target: Target, options: Sequence[str] = ()) -> tuple[str, ...]:
    """Every flag that a cubin for `target` is built with: what belongs into its key."""
    return (*BASE_FLAGS, "-gencode", target.gencode, *options)


def compile_cubin(
    text: str, target: Target, *, options: Sequence[str] = (), config: Config, locate: Locate | None = None
) -> Compiled:
    """Build `text` for `target`.

    Raises `CompileError`: PyCUDA or nvcc is missing, nvcc did not end in time, or it refused the text; then it has one
    finding per message, at the place that `locate` gives for the line of the text.
    """
    nvcc = Nvcc.of(config)
    built = _build(text, compile_flags(target, options), nvcc, "cubin")
    if built.binary is not None:
        return Compiled(built.binary, built.said)
    messages = parse_messages(built.said)
    if any(message.tool == "ptxas" and message.line for message in messages):
        messages = _ptxas_messages(text, target, options, nvcc) or messages
    raise refusal(messages, built.said, text, locate)


def compile_ptx(
    text: str, target: Target, *, options: Sequence[str] = (), config: Config, locate: Locate | None = None
) -> str:
    """The PTX that nvcc makes of `text`. Raises as `compile_cubin` does (ptxas does not run)."""
    built = _build(text, (*BASE_FLAGS, "-gencode", target.ptx_gencode, *options), Nvcc.of(config), "ptx")
    if built.binary is None:
        raise refusal(parse_messages(built.said), built.said, text, locate)
    return built.binary.decode()


def _ptxas_messages(text: str, target: Target, options: Sequence[str], nvcc: Nvcc) -> tuple[CompilerMessage, ...]:
    """ptxas's messages with lines of `text`: built again with line marks, since the PTX of a cubin is not kept."""
    marked = tuple(dict.fromkeys((*options, "-lineinfo")))
    ptx = _build(text, (*BASE_FLAGS, "-gencode", target.ptx_gencode, *marked), nvcc, "ptx")
    again = _build(text, compile_flags(target, marked), nvcc, "cubin")
    if ptx.output is None or again.binary is not None:
        return ()
    return with_text_lines(parse_messages(again.said), ptx.output.decode())


@dataclass(frozen=True)
class Nvcc:
    """The compiler that is run: its path, and how many seconds it may take."""

    path: str
    seconds: float

    @classmethod
    def of(cls, config: Config) -> Nvcc:
        """Raises `CompileError`: there is none, or WARPJIT_COMPILE_TIMEOUT is no number of seconds."""
        path, wanted = find_nvcc(config), config.compile_timeout
        try:
            seconds = COMPILE_SECONDS if wanted is None else float(wanted)
        except ValueError:
            seconds = 0.0
        if not seconds > 0:
            raise CompileError(f"WARPJIT_COMPILE_TIMEOUT: expected a positive number of seconds but got {wanted!r}")
        return cls(path, min(seconds, _FOREVER))

    def run(self, command: Sequence[str], cwd: str | None = None) -> subprocess.CompletedProcess[bytes]:
        """Run a command of its. `CompileError`: it cannot be run, or has not ended in time and was killed."""
        try:
            return processes.run(command, cwd, self.seconds)
        except subprocess.TimeoutExpired:
            raise CompileError(
                f"expected nvcc ({self.path}) to end within {self.seconds:g} seconds but it still ran and was killed: "
                "WARPJIT_COMPILE_TIMEOUT gives it more"
            ) from None
        except OSError as error:
            raise CompileError(f"nvcc could not be run ({self.path}): {error}") from error


@dataclass
class _Run:
    """What happened in one run of nvcc: what was made (None: it failed), what was said, where PyCUDA put its files.

    `output` is there as well where nvcc wrote a file and failed then: it has ptxas look at the PTX that it makes.
    """

    binary: bytes | None = None
    output: bytes | None = None
    said: str = ""
    folder: str | None = None


def _build(text: str, flags: Sequence[str], nvcc: Nvcc, kind: str) -> _Run:
    run = _Run()
    compile_plain = _compile_plain(run, nvcc)
    try:
        run.binary = compile_plain(text, list(flags), False, nvcc.path, False, kind)
    except CompileError:
        raise
    except Exception as error:
        # PyCUDA's failure path imports its driver module, so without a CUDA driver an ImportError hides the
        # compiler's words. They are in `run` already, unless PyCUDA failed before it got to run nvcc.
        if not run.said:
            raise CompileError(f"nvcc could not be run ({nvcc.path}): {error}") from error
    finally:
        run.output = run.binary
        # PyCUDA leaves its folder behind when a build fails.
        if run.binary is None and run.folder is not None:
            run.output = next((file.read_bytes() for file in Path(run.folder).glob(f"*.{kind}")), None)
            shutil.rmtree(run.folder, ignore_errors=True)
    return run


def _compile_plain(run: _Run, nvcc: Nvcc) -> Callable[..., bytes]:
    """PyCUDA's `compile_plain`, recording in `run` what nvcc says.

    PyCUDA shows the compiler's chatter as a warning (an error under `-W error`, and lost to the caller), and loses
    its words when no driver is installed. Its function is therefore given a process runner of ours; filters of the
    `warnings` module would not do, they belong to all threads.
    """
    try:
        # An optional package, and most calls are served by the store.
        from pycuda import compiler  # noqa: PLC0415
    except ImportError as error:
        raise NoCompilerError("building a kernel needs PyCUDA: pip install warpjit[cuda]") from error

    def call(command: list[str], cwd: str | None = None, error_on_nonzero: bool = True) -> tuple[int, bytes, bytes]:
        run.folder = cwd
        done = nvcc.run(command, cwd)
        run.said = (done.stdout + done.stderr).decode(errors="replace")
        if done.returncode != 0:
            run.said = run.said or f"exit status {done.returncode}"
            return done.returncode, done.stdout, done.stderr
        return 0, b"", b""

    plain: Any = compiler.compile_plain
    scope = {**vars(compiler), "call_capture_output": call}
    return types.FunctionType(plain.__code__, scope, plain.__name__, plain.__defaults__, plain.__closure__)


def find_nvcc(config: Config) -> str:
    """The path of nvcc: under CUDA_HOME if that is set, else the first on PATH. Raises `CompileError`."""
    if config.cuda_home:
        nvcc = Path(config.cuda_home, "bin", "nvcc")
        if nvcc.is_file():
            return str(nvcc)
        raise NoCompilerError(f"CUDA_HOME is {config.cuda_home}, but there is no bin/nvcc in it")
    found = shutil.which("nvcc", path=config.path)
    if found is None:
        raise NoCompilerError("nvcc was not found: set CUDA_HOME to the CUDA toolkit's root or put nvcc on PATH")
    return found


_roots: dict[tuple[str, int, int], str] = {}
_identities: dict[tuple[str | None, str], str] = {}
_versions: dict[str, str] = {}


def toolkit_root(config: Config, store: Store | None = None) -> Path:
    """The root of the toolkit that builds: CUDA_HOME, else what `nvcc --dryrun` names.

    The nvcc on PATH may be a script, so only nvcc itself knows. Its answer is remembered in this process, and in
    `store` if one is given, under nvcc's path, size and time: a warm start runs nothing.
    """
    nvcc = find_nvcc(config)
    if config.cuda_home:
        return Path(config.cuda_home)
    stat = os.stat(nvcc)
    memo = (nvcc, stat.st_size, stat.st_mtime_ns)
    if memo not in _roots:
        _roots[memo] = _stored_root(memo, store) or _asked_root(memo, store, config)
    return Path(_roots[memo])


def _memo_key(memo: tuple[str, int, int], store: Store) -> str:
    return key_of({"kind": "toolkit", "nvcc": memo[0], "size": memo[1], "mtime_ns": memo[2]})


def _stored_root(memo: tuple[str, int, int], store: Store | None) -> str | None:
    known = store.get_index(_memo_key(memo, store)) if store is not None else None
    root = known.get("root") if known else None
    return root if isinstance(root, str) and Path(root, "bin", "nvcc").is_file() else None


def _asked_root(memo: tuple[str, int, int], store: Store | None, config: Config) -> str:
    nvcc = Nvcc.of(config)
    done = nvcc.run([nvcc.path, "--dryrun", "-cubin", "-x", "cu", os.devnull])
    said = (done.stdout + done.stderr).decode(errors="replace")
    root = next((line[len("#$ TOP=") :].strip() for line in said.splitlines() if line.startswith("#$ TOP=")), None)
    if not root:
        raise CompileError(f"nvcc --dryrun ({nvcc.path}) does not name the toolkit's root; it said: {said.strip()}")
    if store is not None:
        store.put_index(_memo_key(memo, store), {"root": root})
    return root


def compiler_identity(config: Config, store: Store | None = None) -> str:
    """A digest of the compiler: size and time of nvcc, cicc and ptxas in the toolkit's root.

    Found once per process and (CUDA_HOME, PATH). Runs no process when CUDA_HOME is set or `store` knows nvcc.
    Raises `CompileError` when there is no nvcc.
    """
    where = (config.cuda_home, config.path)
    if where not in _identities:
        root = toolkit_root(config, store)
        digest = hashlib.sha256()
        for tool, folders in _TOOLS.items():
            digest.update(_fingerprint(tool, [root / folder / tool for folder in folders]).encode())
        _identities[where] = digest.hexdigest()
    return _identities[where]


def compiler_version(config: Config, identity: str) -> str:
    """What the compiler of this identity says of itself: "release 13.0, V13.0.88, cuda_13.0.r13.0/compiler.36424714_0".

    For people: no key depends on it. nvcc is asked once for each identity in a process. Raises `CompileError`.
    """
    if identity not in _versions:
        nvcc = Nvcc.of(config)
        said = nvcc.run([nvcc.path, "--version"]).stdout.decode(errors="replace")
        found = [each.group(1) for each in _VERSION.finditer(said)]
        _versions[identity] = ", ".join(found) or said.strip()[:80]
    return _versions[identity]


_VERSION = re.compile(r"^(?:Cuda compilation tools, |Build )(.*\S)", re.MULTILINE)
_TOOLS = {"nvcc": ("bin",), "cicc": ("nvvm/bin", "bin"), "ptxas": ("bin",)}
"""Where the tools are in a toolkit's root. Debian's packages keep cicc beside nvcc."""


def _fingerprint(tool: str, candidates: Sequence[Path]) -> str:
    for path in candidates:
        try:
            stat = path.stat()
        except OSError:
            continue
        return f"{tool} {stat.st_size} {stat.st_mtime_ns}\n"
    return f"{tool} absent\n"
