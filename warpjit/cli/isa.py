"""`warpjit isa`: the instructions, what each of them is, and where its operands' elements are.

    warpjit isa list [TEXT] [--target sm_90a] [--dtype bf16] [--json]
    warpjit isa show "<ptx text>" [--json] [--color auto|always|never]
    warpjit isa where "<ptx text>" A 5 9 [--json]                        element -> lane, register, bits
    warpjit isa where "<ptx text>" A --lane 3 --register 1 [--json]      and back

The answers come from `isa.calculator`; tables are printed by rich. Neither torch nor a compiler nor a GPU is needed.
"""

from __future__ import annotations

import json
import re
import shutil
import sys
from argparse import ArgumentParser, Namespace
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from warpjit.cli.command import Command, Group
from warpjit.cli.printing import add_json, counted, print_json
from warpjit.errors import InstructionError
from warpjit.isa.calculator import Place, RowAddress, given, giver, has_rows, holds, listed, where
from warpjit.isa.operands import fragment_operand
from warpjit.isa.picture import drawn_operands
from warpjit.isa.row import Operand, Row
from warpjit.isa.sheet import notes_of, operand_record, row_record, sheet
from warpjit.isa.table import as_row

WIDE = 200
"""Columns of a table that is not printed on a terminal."""


# ---- list --------------------------------------------------------------------------------------------


def _list_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("text", nargs="?", default="", help="only instructions whose text contains this: mma.sync")
    parser.add_argument("--target", help="only what this target has: sm_90a")
    parser.add_argument("--dtype", help="only those with an operand of this type: bf16, bfloat16")
    add_json(parser)


def _list(chosen: Namespace) -> None:
    rows = [row for row in listed(chosen.target, chosen.dtype) if chosen.text in row.text]
    if chosen.json:
        print_json([row_record(row) for row in rows])
        return
    sections: dict[str, list[Row]] = {}
    for row in rows:
        sections.setdefault(row.section, []).append(row)
    _print_tables(sections)
    print(counted(len(rows), "instruction"))


def _print_tables(sections: Mapping[str, Sequence[Row]]) -> None:
    """A table a section; where there is no terminal, no instruction is folded."""
    from rich import box  # noqa: PLC0415  it takes longer to import than all else
    from rich.console import Console  # noqa: PLC0415
    from rich.table import Table  # noqa: PLC0415

    console = Console(highlight=False, markup=False, emoji=False)
    if not console.is_terminal:
        console.width = WIDE
    for section, rows in sections.items():
        table = Table(title=section, title_justify="left", box=box.SIMPLE_HEAD, padding=(0, 2, 0, 0))
        for name in ("instruction", "executed by", "targets", "notes"):
            table.add_column(name, overflow="fold", no_wrap=name == "instruction" and not console.is_terminal)
        for row in rows:
            table.add_row(row.text, row.participants.value, row.needs.text, notes_of(row))
        console.print(table)


# ---- show --------------------------------------------------------------------------------------------


def _show_arguments(parser: ArgumentParser) -> None:
    _text_argument(parser)
    parser.add_argument(
        "--color", choices=("auto", "always", "never"), default="auto", help="colours (default: on a terminal)"
    )
    add_json(parser)


def _text_argument(parser: ArgumentParser) -> None:
    parser.add_argument("text", help="the instruction's full text, modifiers in any order")


def _show(chosen: Namespace) -> None:
    row = as_row(chosen.text)
    if chosen.json:
        operands = [operand_record(operand) for operand in row.operands]
        print(json.dumps({**row_record(row), "operands": operands}, indent=2))
        return
    print(sheet(row))
    width = shutil.get_terminal_size((120, 24)).columns
    color = chosen.color == "always" or (chosen.color == "auto" and sys.stdout.isatty())
    for name, alike in drawn_operands(row).items():
        # The first line, the instruction's text, stands above already.
        print("\n" + row.draw(name).text(width, color).split("\n", 1)[1], end="")
        if alike:
            print(f"\n{' and '.join(alike)} as {name}")


# ---- where -------------------------------------------------------------------------------------------


def _where_arguments(parser: ArgumentParser) -> None:
    _text_argument(parser)
    parser.add_argument("operand", help="its name: A")
    parser.add_argument("coordinates", nargs="*", default=[], help="of the element: 5 9, or m=5 k=9")
    parser.add_argument("--lane", type=int, help="ask what this lane holds")
    parser.add_argument("--register", type=int, help="in this register (default: in all of them)")
    add_json(parser)


def _where(chosen: Namespace) -> None:
    row = as_row(chosen.text)
    operand = row.operand(chosen.operand)
    if chosen.lane is None and chosen.register is not None:
        raise InstructionError(f"expected --lane with --register {chosen.register}")
    if chosen.lane is not None and chosen.coordinates:
        raise InstructionError(
            f"expected an element, or --lane, but got both: {' '.join(chosen.coordinates)} and --lane {chosen.lane}"
        )
    if has_rows(operand):
        _where_rows(chosen, row, operand)
    elif chosen.lane is None:
        positions, named = _coordinates(chosen.coordinates)
        found = where(row, operand.name, *positions, **named)
        _say_places(chosen, operand, [found, *found.others], one=True)
    else:
        _where_lane(chosen, row, operand)


def _where_lane(chosen: Namespace, row: Row, operand: Operand) -> None:
    registers = range(fragment_operand(row, operand.name).registers) if chosen.register is None else [chosen.register]
    places = [place for register in registers for place in holds(row, operand.name, chosen.lane, register)]
    _say_places(chosen, operand, places)


def _say_places(chosen: Namespace, operand: Operand, places: Sequence[Place], one: bool = False) -> None:
    records = [_place_record(operand, place) for place in places]
    _answer(chosen.json, records, (_said(operand, place) for place in places), one)


def _where_rows(chosen: Namespace, row: Row, operand: Operand) -> None:
    """Which lane gives the address of a row, or the address of which row a lane gives."""
    if chosen.register is not None:
        raise InstructionError(f"{row.text}: operand {operand.name} is an address: expected no --register")
    if chosen.lane is None:
        positions, named = _coordinates(chosen.coordinates)
        rows = [giver(row, operand.name, *positions, **named)]
    else:
        rows = list(given(row, operand.name, chosen.lane))
    said = [
        f"{_element(operand, operand.axes, each.row)}: lane {each.lane} gives the address of its {each.bytes} bytes"
        for each in rows
    ]
    one = chosen.lane is None
    _answer(
        chosen.json,
        [_row_record(operand, each) for each in rows],
        said or [f"no row of {operand.name}: the address that lane {chosen.lane} gives is not used"],
        one=one,
    )


def _answer(as_json: bool, records: Sequence[Mapping[str, Any]], said: Iterable[str], one: bool = False) -> None:
    """With `one`, the record of a single answer stands alone, not in a list."""
    if as_json:
        print_json(records[0] if one and len(records) == 1 else records)
        return
    print("\n".join(said))


_COORDINATE = re.compile(r"(?:(?P<name>\w+)=)?(?P<value>-?[0-9]+)")


def _coordinates(words: Sequence[str]) -> tuple[list[int], dict[str, int]]:
    """ "5" and "k=9" as positions and names. Raises InstructionError for anything else, and for a name given twice."""
    positions, named = [], {}
    for word in words:
        found = _COORDINATE.fullmatch(word)
        if found is None or found["name"] in named:
            raise InstructionError(f"expected coordinates such as 5 9 or m=5 k=9 but got {' '.join(words)!r}")
        if found["name"]:
            named[found["name"]] = int(found["value"])
        else:
            positions.append(int(found["value"]))
    return positions, named


def _element(operand: Operand, names: Sequence[str], coordinates: Sequence[int]) -> str:
    """A[m=5, k=9]."""
    named = (f"{name}={value}" for name, value in zip(names, coordinates, strict=False))
    return f"{operand.name}[{', '.join(named)}]"


def _said(operand: Operand, place: Place) -> str:
    low, high = place.bits
    bits = f"bit {low}" if low == high else f"bits {low} to {high}"
    selector = "" if place.selector is None else f", with selector {place.selector}"
    where = f"lane {place.lane}, register {place.register}, {bits}{selector}"
    return f"{_element(operand, operand.held.names, place.element)}: {where}"


def _place_record(operand: Operand, place: Place) -> dict[str, Any]:
    selector = {} if place.selector is None else {"selector": place.selector}
    return {
        "element": dict(zip(operand.held.names, place.element, strict=True)),
        "lane": place.lane,
        "register": place.register,
        "bits": list(place.bits),
        **selector,
    }


def _row_record(operand: Operand, address: RowAddress) -> dict[str, Any]:
    return {
        "row": dict(zip(operand.axes, address.row, strict=False)),
        "lane": address.lane,
        "bytes": address.bytes,
    }


ISA = Group(
    "isa",
    "the instructions, and where their operands' elements are",
    (
        Command("list", "the instructions there are", _list_arguments, _list),
        Command("show", "an instruction: operands, layouts, targets, pictures", _show_arguments, _show),
        Command("where", "where an element is, or what a register holds", _where_arguments, _where),
    ),
)
