"""Integer expressions of a launch: compiled to one Python function, and kept as JSON.

The form is `PlanExpr` of the IR. The meaning is Python's: `//` and `%` floor, integers do not wrap, `and`, `or` and
`select` evaluate only what they need. Which expressions a launch has is the plan's.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

from warpjit.errors import ArgumentError
from warpjit.record import record

if TYPE_CHECKING:
    from warpjit.ir.nodes import PlanExpr

Number: TypeAlias = int | float | bool
Planned: TypeAlias = Callable[[Sequence[Any], Sequence[Sequence[int]], Sequence[Sequence[int]]], tuple[Any, ...]]
"""(values, sizes, strides) of a call to the values of the expressions; see `Arguments`."""


@record
class Arguments:
    """What a call's expressions may read, by the arguments' positions.

    values    of scalars the number, of tensors the base address
    sizes     of tensors the extents; empty for a scalar
    strides   of tensors the strides in elements; empty for a scalar
    """

    values: Sequence[Any]
    sizes: Sequence[Sequence[int]] = ()
    strides: Sequence[Sequence[int]] = ()


# How Python writes an operator with so many operands.
_OPERATORS: dict[tuple[str, int], str] = {
    **{(name, 2): f"({{}} {name} {{}})" for name in ("+", "-", "*", "//", "%", "<", "<=", "==", "!=", ">", ">=")},
    **{(name, 2): f"({{}} {name} {{}})" for name in ("and", "or")},
    ("-", 1): "(-{})",
    ("not", 1): "(not {})",
    ("min", 2): "minimum({}, {})",
    ("max", 2): "maximum({}, {})",
    ("select", 3): "({1} if {0} else {2})",
}
_SOURCES: dict[tuple[str, int], str] = {("arg", 1): "values[{}]", ("size", 2): "sizes[{}][{}]"}
_SOURCES[("stride", 2)] = "strides[{}][{}]"
_DEEPEST = 40  # Python's parser allows some 90 nested parentheses


def parts(expression: PlanExpr) -> tuple[str, tuple[Any, ...]]:
    """The head and the operands of a compound expression. ArgumentError: it is none, or malformed."""
    if isinstance(expression, tuple) and expression and isinstance(expression[0], str):
        head, operands = expression[0], expression[1:]
        known = (head, len(operands))
        if known in _OPERATORS or (known in _SOURCES and all(type(each) is int and each >= 0 for each in operands)):
            return head, operands
    raise _unknown(expression)


def _unknown(thing: object) -> ArgumentError:
    return ArgumentError(f"expected an expression of a launch plan but got {thing!r}")


_BY_ZERO = "a size, stride or grid expression of this launch divides by zero"


def compile_plan(expressions: Sequence[PlanExpr]) -> Planned:
    """One function that computes all `expressions`, for the path of a launch.

    Its text is made of the tables above, positions and numbers; names and other text of a user are never in it. It
    raises ArgumentError where an expression divides by zero.
    """
    writer = Writer(_source)
    items = "".join(f"{writer.write(expression)}, " for expression in expressions)
    text = (
        "def planned(values, sizes, strides):\n"
        "    try:\n" + "".join(f"        {line}\n" for line in writer.lines) + f"        return ({items})\n"
        "    except ZeroDivisionError:\n"
        "        raise ArgumentError(divides) from None\n"
    )
    names: dict[str, Any] = {"ArgumentError": ArgumentError, "divides": _BY_ZERO, **writer.names}
    exec(compile(text, "<launch plan>", "exec"), names)
    function: Planned = names["planned"]
    return function


class Writer:
    """Expressions as Python text.

    named   the text that stands for an expression, or None where its operands are to be written
    lines   come before the texts: what would nest too deeply is a function of its own, called where it stands
    names   what the texts and lines use
    """

    def __init__(self, named: Callable[[PlanExpr], str | None]) -> None:
        self._named = named
        self.names: dict[str, Any] = {"minimum": min, "maximum": max}
        self.lines: list[str] = []

    def write(self, expression: PlanExpr) -> str:
        return self._text(expression)[0]

    def _text(self, expression: PlanExpr) -> tuple[str, int]:
        """The text and how deeply it nests."""
        name = self._named(expression)
        if name is not None:
            return name, 0
        if not isinstance(expression, tuple):
            return self._number(expression), 0
        head, operands = parts(expression)
        written = [self._text(operand) for operand in operands]
        depth = max(depth for _, depth in written) + 1
        text = _OPERATORS[head, len(operands)].format(*(part for part, _ in written))
        if depth < _DEEPEST:
            return text, depth
        name = f"part{len(self.lines)}"
        self.lines.append(f"{name} = lambda: {text}")
        return f"{name}()", 0

    def _number(self, value: Number) -> str:
        if isinstance(value, bool | int):
            return f"({value!r})"
        if not isinstance(value, float):
            raise _unknown(value)
        name = f"constant{len(self.names)}"  # infinities and NaNs have no literal
        self.names[name] = value
        return name


def _source(expression: PlanExpr) -> str | None:
    """The text of what an expression reads of a call, as `Planned` gets it."""
    if not isinstance(expression, tuple):
        return None
    head, operands = parts(expression)
    source = _SOURCES.get((head, len(operands)))
    return None if source is None else source.format(*operands)


def reads_arguments(expression: PlanExpr) -> bool:
    """Whether an expression reads the value of an argument: otherwise it is a matter of sizes and strides alone."""
    if not isinstance(expression, tuple):
        return False
    head, operands = parts(expression)
    if (head, len(operands)) in _SOURCES:
        return head == "arg"
    return any(reads_arguments(operand) for operand in operands)


# ---- JSON -------------------------------------------------------------------------------------------


def to_json(expression: PlanExpr) -> Any:
    """Lists, ints, bools and strings. A float is kept by its bits."""
    if isinstance(expression, tuple):
        head, operands = parts(expression)
        return [head, *(to_json(operand) for operand in operands)]
    if isinstance(expression, float):
        return {"float64": struct.pack(">d", expression).hex()}
    if not isinstance(expression, bool | int):
        raise _unknown(expression)
    return expression


def from_json(data: Any) -> PlanExpr:
    """The expression that `to_json` gave. ArgumentError: it did not come from there."""
    if isinstance(data, list) and data:
        expression: PlanExpr = (data[0], *(from_json(item) for item in data[1:]))
        parts(expression)
        return expression
    if isinstance(data, dict) and data.keys() == {"float64"}:
        return float(struct.unpack(">d", bytes.fromhex(data["float64"]))[0])
    if isinstance(data, bool | int):
        return data
    raise _unknown(data)
