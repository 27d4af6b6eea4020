"""From a kernel built by hand to its text, to machine code, and what tests look at in them."""

from __future__ import annotations

from hand_built import const, tensor

from warpjit import config as config_module
from warpjit.cuda.codegen import Emitted, emit
from warpjit.cuda.disassemble import Instruction, instructions, sass
from warpjit.cuda.toolchain import compile_cubin
from warpjit.errors import Frame, Loc
from warpjit.ir.dtypes import int32
from warpjit.ir.nodes import Kernel, Local
from warpjit.isa.table import lookup
from warpjit.isa.target import Target
from warpjit.passes.plan import plan

CONFIG = config_module.read()
SM_90A = Target.parse("sm_90a")
SM_80 = Target.parse("sm_80")
DATA = tensor("data", "float32", 0)
N = Local("n", int32)
SYNC = (lookup("bar.sync"), const(0), None)


def emitted(of: Kernel, target: Target = SM_90A, lineinfo: bool = False) -> Emitted:
    return emit(of, plan(of, target.max_shared), lineinfo=lineinfo)


def body(of: Kernel) -> list[str]:
    """The lines between the kernel's braces, without their indentation."""
    lines = emitted(of).text.splitlines()
    start = next(index for index, line in enumerate(lines) if line.startswith(f"{of.name}("))
    return [line.strip() for line in lines[start + 1 : -1]]


def built(of: Kernel, target: Target = SM_90A) -> list[Instruction]:
    """The machine code."""
    text = emitted(of, target)
    return instructions(sass(compile_cubin(text.text, target, config=CONFIG, locate=text.place).cubin, CONFIG))


def place(line: int) -> Loc:
    return Loc((Frame("/home/user/kernels.py", "kernel", line, 4, 9, "    secret = source"),))
