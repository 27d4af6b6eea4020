"""`T.asm`."""

# The bodies never run (see `core`).

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from warpjit.frontend.language.intrinsic import intrinsic

if TYPE_CHECKING:
    from warpjit.frontend.language import Flag, ScopeName


@intrinsic()
def asm(
    text: str,
    outs: Any = (),
    ins: Any = (),
    *,
    updates: Any = (),
    volatile: Flag = False,
    memory: Flag | None = None,
    scope: ScopeName = "thread",
    meaning: Callable[..., Any] | None = None,
) -> Any:
    """Inline PTX, for what has no instruction in the table: `d = T.asm("add.u32 %0, %1, %2;", "uint32", (a, b))`.

    text      PTX. `%0`, `%1`, … are the operands' registers: those of `outs`, then of `updates`, then of `ins`. `%%` is
              a percent sign (`%%laneid`), braces stand as they are. A text with labels or `.reg` gets its own scope
    outs      results, one or a tuple: data types, whose values are returned, or windows that are written
    ins       operands, one or a tuple: numbers, pointers, or windows that are read
    updates   local tensors that are read and written
    volatile  it is executed where it stands, also if its results are not used (always, where there are none)
    memory    it accesses memory, or orders accesses; omitted: whether a pointer or a window of memory is an operand
    scope     who executes it together: "thread", "warp", "warpgroup" or "cta". Where they may part, it is refused
    meaning   what it does, for the simulator: a Python function, defined outside of the kernel, that takes the arrays
              of what is read, in order, and returns that of what is written (a tuple, if several; None, if nothing).
              Scalars are (warps, 32), windows (warps, 32, items); items are elements, or 32-bit words of registers
              that pack narrower ones. Lanes that are not active hold anything

    A scalar is one register of its type; bool and 8-bit types lie in a 32-bit one. A local tensor (`t`, `t[0:4]`, or
    `f.regs` of a fragment) is as many registers as it has, with a number each. A window of global or shared memory is
    the register that holds its address, 64 bits wide, or 32 bits in the shared window: write `[%3]`. The text accesses
    the bytes of the window and no others; of a pointer nobody says how many, so there is no meaning with one.
    Results of it are taken to differ from lane to lane.
    Raises TraceError for operands that do not fit the text, CompileError at this line where ptxas refuses it, and
    SimulationError where it is simulated without a `meaning`.
    """


__all__ = ["asm"]
