"""The format of an entry: one checksummed file, its header in the clear.

Magic (8 bytes), schema (u32), kind (u32), header length (u32), JSON header, payload, sha256 of all before it.
What tuning found is kept as plain JSON instead, for people to read, with the checksum as one of its fields.
"""

from __future__ import annotations

import hashlib
import json
import struct
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

SCHEMA = 2
"""Changes with the format of an entry or of a stored launch plan; entries of another schema are never read."""

MAGIC = b"WARPJIT\0"
CUBIN, INDEX, TUNING = "cubin", "index", "tuning"
SUFFIX = {CUBIN: ".wjk", INDEX: ".wjk", TUNING: ".json"}
"""The kinds of entries, and how their files' names end."""

_FIXED = struct.Struct("<8sIII")
_DIGEST_BYTES = 32
_NUMBERS = {CUBIN: 1, INDEX: 2}


@dataclass(frozen=True)
class Entry:
    """A stored cubin: its key, what it was made from (JSON, in the clear), its bytes."""

    key: str
    header: Mapping[str, Any]
    cubin: bytes


class DamagedEntryError(ValueError):
    """A file that is not a whole entry of this schema. Never leaves the store."""


def pack(kind: str, key: str, header: Mapping[str, Any], payload: bytes) -> bytes:
    """An entry's file. `header` must be JSON-able; the key is kept in it, so that a renamed file is found out."""
    text = json.dumps({"key": key, "made_from": dict(header)}, sort_keys=True).encode()
    body = _FIXED.pack(MAGIC, SCHEMA, _NUMBERS[kind], len(text)) + text + payload
    return body + hashlib.sha256(body).digest()


def unpack(kind: str, data: bytes) -> Entry:
    """The entry in a file's bytes. Raises `DamagedEntryError` for anything that `pack` did not write for `kind`."""
    if len(data) < _FIXED.size + _DIGEST_BYTES:
        raise DamagedEntryError(f"{len(data)} bytes are too few for an entry")
    magic, schema, number, length = _FIXED.unpack_from(data)
    if magic != MAGIC or schema != SCHEMA or number != _NUMBERS[kind]:
        raise DamagedEntryError("not an entry of this kind and schema")
    body = memoryview(data)[:-_DIGEST_BYTES]
    if hashlib.sha256(body).digest() != data[-_DIGEST_BYTES:]:
        raise DamagedEntryError("the checksum does not fit")
    if _FIXED.size + length > len(body):
        raise DamagedEntryError("the header is longer than the entry")
    try:
        header = json.loads(bytes(body[_FIXED.size : _FIXED.size + length]))
        key, made_from = header["key"], header["made_from"]
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise DamagedEntryError(f"the header cannot be read: {error}") from error
    if not isinstance(key, str) or not isinstance(made_from, dict):
        raise DamagedEntryError("the header is not that of an entry")
    return Entry(key, made_from, bytes(body[_FIXED.size + length :]))


def head(data: bytes) -> dict[str, Any] | None:
    """What the beginning of a file says that the entry was made from, unchecked; None: more bytes are needed.

    An entry of another schema is read as well, as far as it begins alike: for people to see what it was.
    Raises `DamagedEntryError`.
    """
    if len(data) < _FIXED.size or data[: len(MAGIC)] != MAGIC:
        raise DamagedEntryError("not an entry")
    _, _, _, length = _FIXED.unpack_from(data)
    if _FIXED.size + length > len(data):
        return None
    try:
        return dict(json.loads(data[_FIXED.size : _FIXED.size + length])["made_from"])
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise DamagedEntryError(f"the header cannot be read: {error}") from error


def index_value(entry: Entry) -> dict[str, Any]:
    """The JSON object in an entry of the index. Raises `DamagedEntryError`."""
    try:
        value = json.loads(entry.cubin)
    except (ValueError, RecursionError) as error:
        raise DamagedEntryError(f"it is no JSON: {error}") from error
    if not isinstance(value, dict):
        raise DamagedEntryError("it is no JSON object")
    return value


def pack_json(key: str, value: Mapping[str, Any]) -> bytes:
    """A JSON object as a file for people to read, with its key and checksum."""
    document = {"schema": SCHEMA, "key": key, "sha256": _checksum(value), "value": dict(value)}
    return json.dumps(document, indent=1, sort_keys=True).encode() + b"\n"


def unpack_json(data: bytes) -> tuple[str, dict[str, Any]]:
    """(key, object) of such a file. Raises `DamagedEntryError` for anything else."""
    try:
        document = json.loads(data)
        key, value = document["key"], document["value"]
        whole = document["schema"] == SCHEMA and isinstance(value, dict) and document["sha256"] == _checksum(value)
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise DamagedEntryError(f"it is no record: {error}") from error
    if not whole:
        raise DamagedEntryError("the checksum does not fit")
    return key, value


def _checksum(value: Mapping[str, Any]) -> str:
    return hashlib.sha256(json.dumps(dict(value), sort_keys=True).encode()).hexdigest()
