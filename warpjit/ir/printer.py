"""A kernel as indented text, for people and for tests.

One line a statement: an operation is its instruction's text and its operands in their order, as in an assembler.
The text is complete enough to compare two kernels by, except for places in the source and, unless asked for, facts.
It cannot be read back.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from warpjit.ir.facts import Facts, Uniformity
from warpjit.ir.nodes import (
    Address,
    Allocate,
    Assign,
    Assume,
    Atom,
    Break,
    Const,
    Continue,
    Declare,
    For,
    Fragment,
    GlobalBuffer,
    If,
    Kernel,
    Node,
    Op,
    OperandValue,
    Parameter,
    PlanExpr,
    Return,
    Slot,
    Tile,
    While,
)

_INFIX = {"+", "-", "*", "//", "%", "<", "<=", "==", "!=", ">", ">=", "and", "or"}


def show(kernel: Kernel, facts: bool = False) -> str:
    """The text of `kernel`; with `facts`, what is known of each local follows."""
    launch = kernel.launch
    limits = [("max_registers", launch.max_registers), ("min_blocks_per_sm", launch.min_blocks_per_sm)]
    extra = [f"{name}={value}" for name, value in limits if value is not None]
    extra += ["contract=False"] * (not kernel.contract) + ["strict=True"] * kernel.strict
    extra += ["unverified=True"] * kernel.unverified
    if launch.cluster != (1, 1, 1):
        extra.insert(0, f"cluster={launch.cluster}")
    grid = ", ".join(show_expression(each) for each in launch.grid)
    lines = [f"kernel {kernel.name}", " ".join([f"    launch grid=({grid}) block={launch.block}", *extra])]
    lines += [f"    param {_parameter(parameter)}" for parameter in kernel.parameters]
    lines += [f"    shared {each.name}: {each.bytes} bytes, align {each.align}" for each in kernel.shared]
    lines += _indented(kernel.body)
    if facts:
        lines += [f"    known {name}: {_facts(kernel.facts[name])}" for name in sorted(kernel.facts)]
    return "\n".join(lines) + "\n"


def show_nodes(nodes: Iterable[Node]) -> str:
    """The text of some statements."""
    return "\n".join(line for node in nodes for line in _lines(node))


def show_expression(expression: PlanExpr) -> str:
    """An expression of the launch plan, in Python's notation: "(size(0, 1) + 3) // 4"."""
    return _expression(expression, outermost=True)


def _expression(expression: Any, outermost: bool = False) -> str:
    if not isinstance(expression, tuple):
        return repr(expression)
    head, *operands = expression
    if head in ("arg", "size", "stride"):
        return f"{head}({', '.join(str(operand) for operand in operands)})"
    written = [_expression(operand) for operand in operands]
    if head == "select":
        text = f"{written[1]} if {written[0]} else {written[2]}"
    elif head in _INFIX and len(written) == 2:
        text = f"{written[0]} {head} {written[1]}"
    elif head in ("-", "not"):
        text = f"{head} {written[0]}"
    else:
        return f"{head}({', '.join(written)})"
    return text if outermost else f"({text})"


def _parameter(parameter: Parameter) -> str:
    target, source = parameter.target, show_expression(parameter.source)
    if isinstance(target, GlobalBuffer):
        flags = ", wide" * target.wide + ", noalias" * target.noalias
        return f"{target.name}: {target.dtype} * = {source}, align {target.align}{flags}"
    return f"{target.name}: {target.dtype} = {source}"


def _facts(facts: Facts) -> str:
    lo = "" if facts.lo is None else str(facts.lo)
    hi = "" if facts.hi is None else str(facts.hi)
    return f"{lo}..{hi}, multiple of {facts.multiple}, {facts.uniformity.phrase}"


# ---- operands ---------------------------------------------------------------------------------------


def _atom(atom: Atom) -> str:
    if isinstance(atom, Const):
        return repr(atom.value)
    return f"{atom.registers.name}[{atom.index}]" if isinstance(atom, Slot) else atom.name


def _address(address: Address) -> str:
    text = address.buffer.name
    if address.offset is not None:
        text += f" + {_atom(address.offset)}"
    if address.constant:
        text += f" {'-' if address.constant < 0 else '+'} {abs(address.constant)}"
    return f"[{text}]"


def _registers(atoms: tuple[Atom, ...]) -> str:
    """Consecutive registers as a slice."""
    slots = [atom for atom in atoms if isinstance(atom, Slot)]
    if len(slots) == len(atoms) > 1:
        first = slots[0]
        if all((slot.registers, slot.index) == (first.registers, first.index + at) for at, slot in enumerate(slots)):
            return f"{first.registers.name}[{first.index}:{first.index + len(slots)}]"
    return "{" + ", ".join(_atom(atom) for atom in atoms) + "}"


def _operand(value: OperandValue) -> str:
    if value is None:
        return "_"
    if isinstance(value, Fragment):
        return " | ".join(_registers(issue) for issue in value.items)
    if isinstance(value, Tile):
        return " | ".join(_address(address) for address in value.addresses)
    return _address(value) if isinstance(value, Address) else _atom(value)


# ---- statements -------------------------------------------------------------------------------------


def _op(op: Op) -> list[str]:
    guard = "" if op.predicate is None else f"@{_atom(op.predicate)} "
    parts = [", ".join(_operand(value) for value in op.operands)]
    parts += [f"{name}={value}" for name, value in op.params]
    parts += [f"issues={op.issues}"] * (op.issues != 1)
    parts += [f"scope={op.scope}"] * (op.scope != "thread")
    parts += [f"control={op.control.name.lower()}"] * (op.control is not Uniformity.GRID)
    return [f"{guard}{op.row.text} {'; '.join(part for part in parts if part)}".rstrip()]


def _for(node: For) -> list[str]:
    start, stop = _atom(node.start), _atom(node.stop)
    head = f"for {node.variable.name}: {node.variable.dtype} in range({start}, {stop}, {node.step}):"
    return [head + _control(node.control), *_indented(node.body)]


def _while(node: While) -> list[str]:
    head = ["while:" + _control(node.control), *_indented(node.head)]
    return [*head, f"    leave unless {_atom(node.condition)}", *_indented(node.body)]


def _if(node: If) -> list[str]:
    lines = [f"if {_atom(node.condition)}:  # {node.uniformity.name.lower()}", *_indented(node.then)]
    return lines + (["else:", *_indented(node.orelse)] if node.orelse else [])


def _control(control: Uniformity) -> str:
    return "" if control is Uniformity.GRID else f"  # {control.name.lower()}"


_SHOW: dict[type[Any], Callable[[Any], list[str]]] = {
    Op: _op,
    Declare: lambda node: [f"declare {node.local.name}: {node.local.dtype}"],
    Assign: lambda node: [f"{node.local.name} = {_atom(node.value)}"],
    Assume: lambda node: [f"assume {_atom(node.condition)}"],
    Allocate: lambda node: [f"allocate {node.registers.name}: {node.registers.word}[{node.registers.count}]"],
    For: _for,
    While: _while,
    If: _if,
    Break: lambda node: ["break"],
    Continue: lambda node: ["continue"],
    Return: lambda node: ["return"],
}


def _lines(node: Node) -> list[str]:
    return _SHOW[type(node)](node)


def _indented(nodes: Iterable[Node]) -> list[str]:
    return [f"    {line}" for node in nodes for line in _lines(node)]
