"""What tells the outside something while a kernel runs, as rows made for one use: printing, and checks that end it.

    print_row("%d of %g\\n", (int32, float64))     operands a0, a1, …
    check_row("…", (bool_, int32), place)          operands condition, a1, …

Formats are C's. Operands are of types that C passes to a function of any number of arguments (32- and 64-bit integers,
float64), or bools, which print as "True" and "False" (%s). On the device `printf` puts them into a buffer that the
driver writes to the process's stdout when it synchronises (CUDA C++ Programming Guide, "Formatted Output"), and
`__assertfail` ends the kernel with an error ("Assertion").
"""

from __future__ import annotations

from collections.abc import Sequence

from warpjit.ir.dtypes import DType, bool_
from warpjit.isa.needs import EVERYWHERE
from warpjit.isa.row import Check, Cxx, Print, Row
from warpjit.isa.scalar_text import value
from warpjit.record import record

MAX_ARGUMENTS = 32
"""Values that one call prints at most (CUDA C++ Programming Guide, "Formatted Output": Limitations)."""


@record
class Place:
    """Where a check stands: what a failure names."""

    file: str
    line: int
    function: str


def print_row(text: str, dtypes: Sequence[DType]) -> Row:
    """Each active thread prints the format `text`, filled with its operands."""
    operands = tuple(value(f"a{index}", dtype) for index, dtype in enumerate(dtypes))
    return Row(
        text="printf",
        operands=operands,
        code=Cxx(_printf(text, dtypes, 0)),
        meaning=None,
        needs=EVERYWHERE,
        effect=Print(text),
        memory=True,
        section="CUDA C++ Programming Guide: Formatted Output",
    )


def check_row(text: str, dtypes: Sequence[DType], place: Place) -> Row:
    """Threads in which the bool `condition` is false end the kernel: with the format `text`, filled with the others."""
    operands = (value("condition", bool_), *(value(f"a{index}", dtype) for index, dtype in enumerate(dtypes, 1)))
    said = _escaped(text.replace("%%", "%"))
    before = ""
    if dtypes:  # the driver's own message holds no values
        before, said = _printf(f"{text}\n", dtypes, 1) + " ", "see the line printed above"
    where = f'"{_escaped(place.file)}", {place.line}, "{_escaped(place.function)}", 1'
    return Row(
        text="assert",
        operands=operands,
        code=Cxx(f'if (!{{condition}}) {{{{ {before}__assertfail("{said}", {where}); }}}}'),
        meaning=None,
        needs=EVERYWHERE,
        effect=Check(text),
        memory=True,
        section="CUDA C++ Programming Guide: Assertion",
    )


def _printf(text: str, dtypes: Sequence[DType], first: int) -> str:
    shown = [
        f'({{a{index}}} ? "True" : "False")' if dtype.is_bool else f"{{a{index}}}"
        for index, dtype in enumerate(dtypes, first)
    ]
    return f"printf({', '.join([_quoted(text), *shown])});"


def _quoted(text: str) -> str:
    return f'"{_escaped(text)}"'


def _escaped(text: str) -> str:
    """Inside of a C++ string, in a template."""
    plain = text.replace("\\", "\\\\").replace('"', '\\"').replace("{", "{{").replace("}", "}}")
    return "".join(each if each >= " " and each != "\x7f" else f"\\{ord(each):03o}" for each in plain)
