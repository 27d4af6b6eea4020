"""Assertions and printing: while tracing (`T.static_assert`, `T.static_print`), and on the device.

`assert`, `T.device_assert` and `print` are executed in kernels with `debug` only. In others they are traced all the
same, so that their mistakes are found, and what that wrote is dropped. `T.printf` always prints.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Sequence

from warpjit.errors import Loc, TraceError
from warpjit.frontend import arithmetic
from warpjit.frontend.addresses import shown, static_int
from warpjit.frontend.calls import INTRINSICS
from warpjit.frontend.language import debugging as language
from warpjit.frontend.literals import describe
from warpjit.frontend.texts import Printable, fill_format
from warpjit.frontend.tracer import STATEMENTS, Tracer
from warpjit.frontend.values import Pointer, Scalar, TensorValue, Text, Value, is_kernel_value
from warpjit.ir.facts import Facts
from warpjit.isa.printing import Place, check_row, print_row

# ---- while tracing ----------------------------------------------------------------------------------------


def static_assert(tracer: Tracer, condition: Value, message: Value = "") -> None:
    value = tracer.decisive(condition)
    if isinstance(value, Scalar):
        value = static_int(value, "T.static_assert: the condition")
    if not isinstance(message, str):
        raise TraceError(f"T.static_assert: message: expected a string but got {describe(message)}")
    if not value:
        raise TraceError(_failed(message))


def _failed(message: str) -> str:
    return f"assertion failed: {message}" if message else "assertion failed"


def static_print(tracer: Tracer, *values: Value) -> None:
    tracer.printed.append(" ".join(_static(value) for value in values))


def _static(value: Value) -> str:
    """A value of the kernel by its type and what is known of it; any other as Python prints it."""
    if isinstance(value, TensorValue):
        where = f"layout {value.layout!r}" if value.layout is not None else f"strides {shown(value.strides or ())}"
        return f"{value.name}: {value.space} {value.dtype} {shown(value.shape)}, {where}"
    if isinstance(value, Pointer):
        return f"pointer to {value.tensor.name}: {value.tensor.space}, a multiple of {value.align} bytes"
    if isinstance(value, Scalar):
        return f"{value.dtype}{_known(value.facts)}" if value.static is None else f"{value.dtype}({value.static})"
    if is_kernel_value(value) and isinstance(value, tuple | list):
        return f"({', '.join(_static(item) for item in value)})"
    return str(value) if not is_kernel_value(value) else describe(value)


def _known(facts: Facts) -> str:
    """What is known of a scalar."""
    least, most = ("…" if bound is None else str(bound) for bound in (facts.lo, facts.hi))
    bounds = "" if facts.lo is facts.hi is None else f", {least} to {most}"
    return bounds + (f", a multiple of {facts.multiple}" if facts.multiple > 1 else "") + f", {facts.uniformity.phrase}"


# ---- printing ---------------------------------------------------------------------------------------------


def printf(tracer: Tracer, format: Value, *args: Value) -> None:
    tracer.require_device("T.printf")
    if not isinstance(format, str):
        raise TraceError(f"T.printf: format: expected a string but got {describe(format)}")
    printable = Printable(tracer.builder, "T.printf")
    fill_format(printable, format, args)
    _print(tracer, printable)


def device_print(tracer: Tracer, *values: Value, sep: Value = " ", end: Value = "\n") -> None:
    tracer.require_device("print")
    for name, value in (("sep", sep), ("end", end)):
        if not isinstance(value, str):
            raise TraceError(f"print: {name}: expected a string but got {describe(value)}")
    printable = Printable(tracer.builder, "print")
    for index, value in enumerate(values):
        printable.write(sep if index else "")
        printable.put(value)
    printable.write(end)
    _print(tracer, printable)


def _print(tracer: Tracer, printable: Printable) -> None:
    tracer.builder.issue(print_row(printable.format, printable.dtypes), tuple(printable.atoms))


def debug_print(tracer: Tracer, *values: Value, sep: Value = " ", end: Value = "\n") -> None:
    in_debug(tracer, lambda: device_print(tracer, *values, sep=sep, end=end))


# ---- assertions on the device -----------------------------------------------------------------------------


def device_assert(tracer: Tracer, condition: Value, message: Value = "") -> None:
    in_debug(tracer, lambda: _assert(tracer, "T.device_assert", condition, message))


def _assert(tracer: Tracer, what: str, condition: Value, message: Value) -> None:
    if not isinstance(message, str | Text):
        raise TraceError(f"{what}: message: expected a string but got {describe(message)}")
    value = tracer.decisive(condition)
    if not isinstance(value, Scalar):
        if not value:
            raise TraceError(_failed(message if isinstance(message, str) else ""))
        return
    tracer.require_device(what)
    truth = arithmetic.truth(tracer.builder, value)
    printable = Printable(tracer.builder, what)
    printable.put(message)
    row = check_row(printable.format or "the condition is false", printable.dtypes, _place(tracer.builder.loc))
    tracer.builder.issue(row, (tracer.builder.atom(truth), *printable.atoms))


def _place(loc: Loc) -> Place:
    """Without folders: checkouts at other places make the same text."""
    frame = loc.innermost
    if frame is None:
        return Place("", 0, "")
    return Place(frame.file.replace("\\", "/").rpartition("/")[2], frame.line, frame.function)


# ---- what is executed with `debug` only -------------------------------------------------------------------


def in_debug(tracer: Tracer, run: Callable[[], None]) -> None:
    """Trace `run`; without `debug` forget what it wrote."""
    if tracer.settings.debug:
        run()
        return
    before = tracer.save()
    run()
    tracer.restore(before)


def _assert_statement(tracer: Tracer, node: ast.Assert) -> None:
    def run() -> None:
        condition = tracer.condition(node.test)
        message = ast.unparse(node.test) if node.msg is None else tracer.evaluate(node.msg)
        tracer.builder.loc = tracer.scope.loc(node)
        _assert(tracer, "assert", condition, message)

    in_debug(tracer, run)


def debugs(tracer: Tracer, node: ast.expr) -> bool:
    """Whether an expression statement is a call that is executed with `debug` only."""
    if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Name | ast.Attribute):
        return False
    name = node.func.id if isinstance(node.func, ast.Name) else node.func.attr
    return name in _NAMES and tracer.evaluate(node.func) in _CALLS


_CALLS: Sequence[Value] = (print, language.device_assert)
_NAMES = ("print", "device_assert")

INTRINSICS.update(
    {
        "T.static_assert": static_assert,
        "T.static_print": static_print,
        "T.printf": printf,
        "T.device_assert": device_assert,
        "print": debug_print,
    }
)
STATEMENTS[ast.Assert] = _assert_statement
