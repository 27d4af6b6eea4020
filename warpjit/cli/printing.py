"""How commands print: JSON, plain tables, sizes and times in words."""

from __future__ import annotations

import json
from argparse import ArgumentParser
from collections.abc import Mapping, Sequence
from typing import Any

_MINUTE, _HOUR, _DAY = 60, 3600, 86400


def add_json(parser: ArgumentParser) -> None:
    parser.add_argument("--json", action="store_true", help="print JSON")


def print_json(content: Mapping[str, Any] | Sequence[Mapping[str, Any]]) -> None:
    """An object in a line, a list in a line for each object."""
    if isinstance(content, Mapping):
        print(json.dumps(content))
    else:
        print("[" + ",".join(f"\n  {json.dumps(each)}" for each in content) + ("\n]" if content else "]"))


def print_table(names: Sequence[str], rows: Sequence[Sequence[str]], right: Sequence[str] = ()) -> None:
    """Columns two spaces apart under their names; those in `right` end in line."""
    widths = [max(len(row[column]) for row in (names, *rows)) for column in range(len(names))]
    for row in (names, *rows):
        cells = [
            text.rjust(width) if name in right else text.ljust(width)
            for name, text, width in zip(names, row, widths, strict=True)
        ]
        print("  ".join(cells).rstrip())


def print_facts(facts: Mapping[str, str], indent: str = "") -> None:
    """A name and what it is, a line each."""
    width = max(map(len, facts), default=0)
    for name, text in facts.items():
        print(f"{indent}{name:<{width}}  {text}".rstrip())


def counted(number: int, thing: str, plural: str | None = None) -> str:
    """ "1 entry", "2 entries"."""
    return f"{number:,} {thing if number == 1 else plural or thing + 's'}"


def size_text(size: float) -> str:
    """Bytes in the largest unit that keeps a digit: "932 B", "9.5 KiB"."""
    for unit in ("B", "KiB", "MiB"):
        if size < 1024:
            return f"{size:.0f} B" if unit == "B" else f"{size:.1f} {unit}"
        size /= 1024
    return f"{size:.1f} GiB"


def ago_text(seconds: float) -> str:
    """How long ago: "now", "5 min ago", "3 h ago", "12 d ago"."""
    if seconds < _MINUTE:
        return "now"
    number, unit = next(
        (seconds / each, name) for each, name in ((_DAY, "d"), (_HOUR, "h"), (_MINUTE, "min")) if seconds >= each
    )
    return f"{number:.0f} {unit} ago"
