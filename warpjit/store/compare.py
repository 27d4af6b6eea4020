"""Why an entry is not the one that is wanted: what both were made from, field by field.

A key says nothing of what went into it, so entries keep that in the clear. Here the header of a stored entry is
compared with what a new one would have, and the nearest of all entries is found.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from warpjit.store import contents
from warpjit.store.contents import Item
from warpjit.store.entry import CUBIN, SCHEMA, DamagedEntryError

DECIDING = ("text", "flags", "target", "compiler", "schema")
"""The fields that a cubin's key is made of. The others say where a difference of the text comes from."""
RESULTS = "resources"
"""The field that says what came out."""
RECENT = 500
"""Entries, those used last, among which the log looks for the nearest: a call waits for it."""


@dataclass(frozen=True)
class Difference:
    """A field of which two entries differ, as texts; None where one of them has no such field."""

    field: str
    stored: str | None
    wanted: str | None

    @property
    def deciding(self) -> bool:
        return self.field in DECIDING


@dataclass(frozen=True)
class Nearest:
    """A stored entry, and how it differs from what is wanted."""

    item: Item
    differences: tuple[Difference, ...]


def flat(header: Mapping[str, Any], prefix: str = "") -> dict[str, str]:
    """What an entry was made from as dotted names and texts: `parameters.A`, `resources.registers`."""
    found: dict[str, str] = {}
    for name, value in header.items():
        if isinstance(value, Mapping):
            found.update(flat(value, f"{prefix}{name}."))
        elif isinstance(value, list) and all(isinstance(each, str) for each in value):
            found[prefix + name] = " ".join(value)
        else:
            found[prefix + name] = value if isinstance(value, str) else repr(value)
    return found


def differences(stored: Mapping[str, Any], wanted: Mapping[str, Any]) -> tuple[Difference, ...]:
    """The fields that differ, those that decide first; what came out is left out."""
    old, new = (flat({name: value for name, value in each.items() if name != RESULTS}) for each in (stored, wanted))
    found = [
        Difference(name, old.get(name), new.get(name)) for name in {**new, **old} if old.get(name) != new.get(name)
    ]
    return tuple(sorted(found, key=lambda each: not each.deciding))


def nearest(items: Iterable[Item], wanted: Mapping[str, Any], besides: str = "") -> Nearest | None:
    """The cubin of the same kernel with the fewest differences, of all schemas, the last used of equals.

    besides  the key of an entry, of this schema, that does not count
    """
    best: Nearest | None = None
    wanted = {"schema": SCHEMA, **wanted}
    for item in sorted(items, key=lambda each: -each.used):
        if item.kind != CUBIN or (item.current and item.key == besides):
            continue
        header = header_of(item)
        if header.get("kernel") == wanted.get("kernel"):
            found = differences(header, wanted)
            if best is None or len(found) < len(best.differences):
                best = Nearest(item, found)
    return best


@dataclass(frozen=True)
class Head:
    """Of a cubin what decides about it: its key, and the fields that it is made of."""

    key: str
    facts: Mapping[str, Any]


def heads(root: Path) -> tuple[Head, ...]:
    """Those of all cubins of this schema, the last used first."""
    items = sorted((each for each in contents.items(root) if each.current), key=lambda each: -each.used)
    headers = ((each.key, header_of(each)) for each in items if each.kind == CUBIN)
    return tuple(Head(key, {name: header.get(name) for name in DECIDING}) for key, header in headers)


def header_of(item: Item) -> Mapping[str, Any]:
    """What an entry was made from, and the schema that it is of; {} where that cannot be read."""
    try:
        return {"schema": item.schema, **contents.made_from(item)}
    except (OSError, DamagedEntryError):
        return {}


def why_missing(root: Path, key: str, wanted: Mapping[str, Any]) -> str:
    """Why there is no entry under a key, in a few words."""
    cubins = [each for each in contents.items(root) if each.kind == CUBIN]
    recent = sorted(cubins, key=lambda each: -each.used)[:RECENT]
    found = nearest(recent, wanted, besides=key)
    if found is None:
        return f"no entry of {wanted.get('kernel')}"
    fields = ", ".join(each.field for each in found.differences) or "nothing that is recorded"
    return f"the nearest entry, {found.item.key[:12]}, differs in {fields}"
