"""From a checked kernel to CUDA C++: one readable, header-free text that follows the Python statement by statement.

    emitted = emit(kernel, plan)

The text is the cubin's key, so equal kernels have equal text: no path, no line of the user's program, no time. A
side table says which place each line came from. The statements are written in `statements`, the instructions in
`issues`; compiling is `toolchain`'s.
"""

from __future__ import annotations

import re

from warpjit.cuda.names import ARENA, ARENA_ADDRESS
from warpjit.cuda.operands import SharedPlan, Texts
from warpjit.cuda.prelude import FUNCTIONS, prelude
from warpjit.cuda.scalars import c_type
from warpjit.cuda.statements import INDENT, Statements
from warpjit.errors import NOWHERE, Loc
from warpjit.ir.nodes import GlobalBuffer, Kernel, Launch, Parameter
from warpjit.ir.walk import constants
from warpjit.record import record

ARENA_ALIGN = 1024
"""Alignment of the arena's first byte: the period of the 128-byte swizzle (PTX ISA, "Swizzling Modes")."""


@record
class Emitted:
    """A kernel's text. `entry` is the name of its function; `lines[n - 1]` is the place that line n came from."""

    text: str
    lines: tuple[Loc, ...]
    entry: str

    def place(self, line: int) -> Loc:
        """Where line `line` of the text (counted from 1) came from; `NOWHERE` for lines that nobody wrote."""
        return self.lines[line - 1] if 0 < line <= len(self.lines) else NOWHERE


def emit(kernel: Kernel, plan: SharedPlan, *, lineinfo: bool = False) -> Emitted:
    """The CUDA C++ of `kernel`, with its shared buffers where `plan` puts them; the same for every target.

    With `lineinfo`, `#line` names the user's file and line before each statement (then the text is not the same for
    equal kernels). Raises `InstructionError` for an operand that its row cannot take.
    """
    texts = Texts()
    entry = texts.namer.name("kernel", kernel.name)
    signature = _signature(kernel, entry, texts)
    buffers = {buffer.name: texts.buffer(buffer) for buffer in kernel.shared}
    statements = Statements(texts)
    statements.declared[0].update(
        parameter.target.name for parameter in kernel.parameters if not isinstance(parameter.target, GlobalBuffer)
    )
    statements.nodes(kernel.body)
    declared = [*_constants(kernel, texts), *_arena(kernel, plan, buffers, statements)]
    lines = [*signature, *declared, *statements.lines, ("}", NOWHERE)]
    head = prelude(_functions(lines)).splitlines()
    everything = [*((line, NOWHERE) for line in head), *lines]
    if lineinfo:
        everything = _with_line_marks(everything, entry)
    return Emitted("".join(f"{text}\n" for text, _ in everything), tuple(loc for _, loc in everything), entry)


# ---- the kernel's head -------------------------------------------------------------------------------


def _signature(kernel: Kernel, entry: str, texts: Texts) -> list[tuple[str, Loc]]:
    parameters = ", ".join(_parameter(parameter, texts) for parameter in kernel.parameters)
    words = " ".join(['extern "C" __global__ void', *_attributes(kernel.launch)])
    return [(words, kernel.loc), (f"{entry}({parameters}) {{", kernel.loc)]


def _parameter(parameter: Parameter, texts: Texts) -> str:
    if isinstance(parameter.target, GlobalBuffer):
        # With __restrict__ the compiler sees by itself which parameters are only read (ld.global.nc).
        restrict = " __restrict__" if parameter.target.noalias else ""
        return f"unsigned char*{restrict} {texts.buffer(parameter.target)}"
    return f"{c_type(parameter.target.dtype)} {texts.local(parameter.target)}"


def _attributes(launch: Launch) -> list[str]:
    """The limits by which ptxas chooses registers, and the cluster.

    nvcc refuses `__launch_bounds__` beside `__maxnreg__`, and ptxas ignores `-maxrregcount` for a kernel that has
    launch bounds, so a limit of registers stands alone (CUDA C++ Programming Guide, "Maximum Number of Registers
    per Thread").
    """
    if launch.max_registers is not None:
        attributes = [f"__attribute__((maxnreg({launch.max_registers})))"]
    elif launch.min_blocks_per_sm is not None:
        attributes = [f"__launch_bounds__({launch.threads}, {launch.min_blocks_per_sm})"]
    else:
        attributes = [f"__launch_bounds__({launch.threads})"]
    if launch.cluster != (1, 1, 1):
        attributes.append(f"__cluster_dims__({', '.join(map(str, launch.cluster))})")
    return attributes


def _arena(kernel: Kernel, plan: SharedPlan, names: dict[str, str], body: Statements) -> list[tuple[str, Loc]]:
    """The dynamic shared memory, its address, and the buffers in it."""
    if not kernel.shared:
        return []
    lines = [f"extern __shared__ __align__({ARENA_ALIGN}) unsigned char {ARENA}[];"]
    if any(ARENA_ADDRESS in text for text, _ in body.lines):
        # What __cvta_generic_to_shared calls in the toolkit's headers; the compiler knows it without them.
        lines.append(f"const unsigned int {ARENA_ADDRESS} = (unsigned int)__nv_cvta_generic_to_shared_impl({ARENA});")
    places = ", ".join(f"{names[buffer.name]} = {plan.shared_offset(buffer.name)}" for buffer in kernel.shared)
    lines.append(f"enum {{ {places} }};  // bytes from the arena's begin; {plan.shared_bytes} in all")
    return [(INDENT + line, kernel.loc) for line in lines]


def _constants(kernel: Kernel, texts: Texts) -> list[tuple[str, Loc]]:
    """The tables that the kernel reads, in constant memory."""
    lines = []
    for table in constants(kernel.body):
        octets = ", ".join(map(str, table.data))
        array = f"{texts.buffer(table)}[{len(table.data)}]"
        lines.append(f"static const __constant__ __align__(16) unsigned char {array} = {{{octets}}};")
    return [(INDENT + line, kernel.loc) for line in lines]


_CALL = re.compile(r"(?<!\w)[A-Za-z_]\w*(?=\()")  # with \b in front, three times as slow


def _functions(lines: list[tuple[str, Loc]]) -> set[str]:
    """The built-in functions that these lines call."""
    return set(_CALL.findall("\n".join([text for text, _ in lines]))) & FUNCTIONS.keys()


# ---- marks for profilers -----------------------------------------------------------------------------


def _with_line_marks(lines: list[tuple[str, Loc]], entry: str) -> list[tuple[str, Loc]]:
    """The lines with `#line` before each whose place is not the one that the compiler would count to.

    A line that nobody wrote is at its own line of the generated text.
    """
    own = f"{entry}.cu"
    marked: list[tuple[str, Loc]] = []
    counted: tuple[str, int] = ("", 1)
    for text, loc in lines:
        frame = loc.innermost
        natural = counted if counted[0] in ("", own) else (own, len(marked) + 2)
        place = (frame.file, frame.line) if frame else natural
        if place != counted:
            marked.append((_line_mark(*place), loc))
        marked.append((text, loc))
        counted = (place[0], place[1] + 1)
    return marked


def _line_mark(file: str, line: int) -> str:
    escaped = file.replace("\\", "\\\\").replace('"', '\\"')
    return f'#line {line} "{escaped}"'
