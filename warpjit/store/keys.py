"""Keys: one sha256 over named parts."""

from __future__ import annotations

import hashlib
import struct
from collections.abc import Mapping

Part = str | bytes | bool | int | float
"""What a key is made of. Each enters with its type: 1, True and 1.0 give three keys."""


def key_of(parts: Mapping[str, Part]) -> str:
    """The sha256, in hex, of the named parts: sorted, each with its type and length; floats by their bits."""
    digest = hashlib.sha256()
    for name in sorted(parts):
        for tag, data in ((b"n", name.encode()), _tagged(parts[name])):
            digest.update(tag + struct.pack("<Q", len(data)))
            digest.update(data)
    return digest.hexdigest()


def _tagged(part: Part) -> tuple[bytes, bytes]:
    if isinstance(part, bool):
        return b"b", bytes([part])
    if isinstance(part, int):
        return b"i", str(part).encode()
    if isinstance(part, float):
        return b"f", struct.pack("<d", part)
    if isinstance(part, str):
        return b"s", part.encode("utf-8", "surrogatepass")
    return b"y", part
