"""All about an instruction, as lines for a reader and as plain data: what `warpjit isa show` prints above pictures."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from warpjit.isa.picture import content
from warpjit.isa.row import Kind, Mode, Operand, Row
from warpjit.isa.target import ARCHITECTURES, Target

_MODES = {Mode.READ: "read", Mode.WRITE: "written", Mode.UPDATE: "read and written"}


def sheet(row: Row) -> str:
    """The instruction's text, who executes it and where, and its operands with their layouts in S notation."""
    facts = {
        "executed by": row.participants.value,
        "targets": row.needs.text,
        "section": row.section,
        "notes": notes_of(row),
        "completion": row.completion.value if row.completion.value != "none" else "",
    }
    lines = [row.text, "", *(f"{name:<13}{text}" for name, text in facts.items() if text), ""]
    for operand in row.operands:
        lines += _operand_lines(operand)
    return "\n".join(lines)


def notes_of(row: Row) -> str:
    """What a user should know, "unverified" first."""
    unverified = "unverified: never compared with a device" if row.unverified else ""
    return "; ".join(each for each in (unverified, row.notes) if each)


def targets_of(row: Row) -> list[str]:
    """The names of all targets that have the instruction."""
    every = (Target(arch.arch, suffix) for arch in ARCHITECTURES.values() for suffix in ("", *arch.suffixes))
    return [target.name for target in every if row.needs.holds(target)]


def row_record(row: Row) -> dict[str, Any]:
    """The instruction without its operands, as plain data."""
    return {
        "text": row.text,
        "participants": row.participants.value,
        "needs": row.needs.text,
        "targets": targets_of(row),
        "section": row.section,
        "notes": row.notes,
        "unverified": row.unverified,
    }


def operand_record(operand: Operand) -> dict[str, Any]:
    """An operand as plain data.

    Of a fragment, shape and layout are in elements of `bits` bits, `registers` are those of a lane. Of metadata the
    elements are groups of rows, and the layout's replicas are the places for the selectors.
    """
    record: dict[str, Any] = {"name": operand.name, "kind": operand.kind.value, "mode": operand.mode.value}
    element = operand.element or operand.dtype
    if element is not None:
        record["dtype"] = element.name
    if operand.optional:
        record["optional"] = True
    if operand.choices:
        record["choices"] = list(operand.choices)
    if operand.kind is Kind.FRAGMENT and operand.layout is not None and operand.dtype is not None:
        held = operand.held
        record |= {
            "shape": list(held.shape),
            "axes": list(held.names),
            "bits": held.bits,
            "registers": operand.registers,
            "register_bits": operand.dtype.bits,
            "layout": repr(held.layout),
            "register_layout": repr(operand.layout),
        }
    if operand.kind in (Kind.ADDRESS, Kind.BARRIER):
        record |= {"space": operand.space, "align": operand.align}
    if operand.kind is Kind.ADDRESS and operand.bytes:
        record["bytes"] = operand.bytes
    if operand.kind is Kind.ADDRESS and operand.layout is not None:
        record |= {"row_shape": list(operand.shape[:-1]), "row_layout": repr(operand.layout)}
    return record


def _operand_lines(operand: Operand) -> Iterator[str]:
    optional = ", may be left out" if operand.optional else ""
    yield f"{operand.name}  {_MODES[operand.mode]}, {_WORDS[operand.kind](operand)}{optional}"
    if operand.layout is None:
        return
    if operand.kind is Kind.ADDRESS:
        yield f"    lane of each row     {operand.layout!r}"
        return
    if operand.fields is not None:
        yield f"    layout in groups     {operand.fields.layout!r}"
    elif operand.packed > 1:
        yield f"    layout in elements   {operand.held.layout!r}"
    yield f"    layout in registers  {operand.layout!r}"


def _fragment(operand: Operand) -> str:
    assert operand.dtype is not None
    plural = "" if operand.registers == 1 else "s"
    packed = f", {operand.packed} elements each" if operand.packed > 1 else ""
    return (
        f"{content(operand)} ({', '.join(operand.held.names)}), "
        f"{operand.registers} register{plural} of {operand.dtype.bits} bits a lane{packed}"
    )


def _scalar(operand: Operand) -> str:
    return f"{operand.dtype} of each thread"


def _immediate(operand: Operand) -> str:
    return "a number in the text" + (f": {', '.join(map(str, operand.choices))}" if operand.choices else "")


def _address(operand: Operand) -> str:
    if not operand.bytes:
        return f"{operand.space} memory, as many bytes as the operand size says"
    plural = "" if operand.bytes == 1 else "s"
    aligned = f" at multiples of {operand.align}" if operand.align > 1 else ""
    return f"{operand.space} memory: {operand.bytes} byte{plural}{aligned} at each address"


def _barrier(operand: Operand) -> str:
    return f"an mbarrier in {operand.space} memory"


_WORDS = {
    Kind.FRAGMENT: _fragment,
    Kind.SCALAR: _scalar,
    Kind.IMMEDIATE: _immediate,
    Kind.ADDRESS: _address,
    Kind.BARRIER: _barrier,
}
