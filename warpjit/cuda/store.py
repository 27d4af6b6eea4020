"""The disk store: cubins, and the small index that leads from a kernel's source to its cubin.

One file an entry, in one checksummed format, written under a temporary name and renamed; so a reader sees a whole
entry or none, with no lock. Whatever goes wrong with a file is a miss. Nothing here ever fails a launch: where the
disk cannot be used the store says so once, on the logger "warpjit.store", and keeps its entries in memory.

Entry: magic (8 bytes), schema (u32), kind (u32), header length (u32), JSON header, payload, sha256 of all before it.
Left out: what goes into a key (its callers know), removing old entries, locks against compiling twice.
"""

from __future__ import annotations

import hashlib
import json
import logging
import os
import stat
import struct
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from warpjit.config import Config

SCHEMA = 1
"""Changes with the format of an entry or of a stored launch plan; entries of another schema are never read."""

MAGIC = b"WARPJIT\0"
SUFFIX = ".wjk"
_FIXED = struct.Struct("<8sIII")
_DIGEST_BYTES = 32
_KINDS = {"cubin": 1, "index": 2}
_log = logging.getLogger("warpjit.store")

Part = str | bytes | bool | int | float
"""What a key is made of. Each enters with its type: 1, True and 1.0 give three keys."""


@dataclass(frozen=True)
class Entry:
    """A stored cubin: its key, what it was made from (JSON, in the clear), its bytes."""

    key: str
    header: Mapping[str, Any]
    cubin: bytes


class DamagedEntryError(ValueError):
    """A file that is not a whole entry of this schema. Never leaves the store's `get` functions."""


def pack(kind: str, key: str, header: Mapping[str, Any], payload: bytes) -> bytes:
    """An entry's file. `header` must be JSON-able; the key is kept in it, so that a renamed file is found out."""
    text = json.dumps({"key": key, "made_from": dict(header)}, sort_keys=True).encode()
    body = _FIXED.pack(MAGIC, SCHEMA, _KINDS[kind], len(text)) + text + payload
    return body + hashlib.sha256(body).digest()


def unpack(kind: str, data: bytes) -> Entry:
    """The entry in a file's bytes. Raises `DamagedEntryError` for anything that `pack` did not write for `kind`."""
    if len(data) < _FIXED.size + _DIGEST_BYTES:
        raise DamagedEntryError(f"{len(data)} bytes are too few for an entry")
    magic, schema, number, length = _FIXED.unpack_from(data)
    if magic != MAGIC or schema != SCHEMA or number != _KINDS[kind]:
        raise DamagedEntryError("not an entry of this kind and schema")
    body = memoryview(data)[:-_DIGEST_BYTES]
    if hashlib.sha256(body).digest() != data[-_DIGEST_BYTES:]:
        raise DamagedEntryError("the checksum does not fit")
    if _FIXED.size + length > len(body):
        raise DamagedEntryError("the header is longer than the entry")
    try:
        header = json.loads(bytes(body[_FIXED.size : _FIXED.size + length]))
        return Entry(header["key"], header["made_from"], bytes(body[_FIXED.size + length :]))
    except (ValueError, KeyError, TypeError) as error:
        raise DamagedEntryError(f"the header cannot be read: {error}") from error


class Store:
    """Entries under `root`, or in memory alone if `root` is None.

    `root` must belong to the user: a cubin from somebody else's directory would run with the user's rights. It is
    looked at on the first access, and created (mode 0700) by the first `put`. Safe for threads and processes.
    """

    def __init__(self, root: str | os.PathLike[str] | None) -> None:
        self._root = Path(root) if root is not None else None
        self._memory: dict[tuple[str, str], Entry] = {}
        self._said: set[str] = set()
        self._trusted = False

    @property
    def root(self) -> Path | None:
        """Where the entries are; None once the store runs from memory."""
        return self._root

    @staticmethod
    def key_of(parts: Mapping[str, Part]) -> str:
        """The sha256, in hex, of the named parts: sorted, each with its type and length; floats by their bits."""
        digest = hashlib.sha256()
        for name in sorted(parts):
            for tag, data in ((b"n", name.encode()), _tagged(parts[name])):
                digest.update(tag + struct.pack("<Q", len(data)))
                digest.update(data)
        return digest.hexdigest()

    def get(self, key: str) -> Entry | None:
        """The cubin stored under `key`; None if there is none or it cannot be trusted."""
        return self._read("cubin", key)

    def put(self, key: str, header: Mapping[str, Any], cubin: bytes) -> None:
        """Keep `cubin` under `key` with `header`, the JSON-able facts that it was made from. Never raises OSError."""
        self._write("cubin", key, header, cubin)

    def get_index(self, key: str) -> dict[str, Any] | None:
        """The JSON object stored under a source-level `key`, or None."""
        entry = self._read("index", key)
        try:
            value = json.loads(entry.cubin) if entry is not None else None
        except ValueError:
            return None
        return value if isinstance(value, dict) else None

    def put_index(self, key: str, value: Mapping[str, Any]) -> None:
        """Keep a JSON-able object, e.g. a cubin's key with its launch plan, under `key`. Never raises OSError."""
        self._write("index", key, {}, json.dumps(dict(value), sort_keys=True).encode())

    def cubins(self) -> Iterator[Entry]:
        """Every whole cubin entry on disk, in the order of the keys."""
        root = self._usable_root()
        for path in sorted((root / f"v{SCHEMA}" / "cubin").glob(f"*/*{SUFFIX}")) if root else ():
            entry = self._read("cubin", path.stem)
            if entry is not None:
                yield entry

    def _read(self, kind: str, key: str) -> Entry | None:
        remembered = self._memory.get((kind, key))
        root = self._usable_root() if remembered is None else None
        if root is None:
            return remembered
        path = _place(root, kind, key)
        try:
            entry = unpack(kind, _owned_bytes(path))
            if entry.key != key:
                raise DamagedEntryError("it holds another key")
        except FileNotFoundError:
            return None
        except (OSError, DamagedEntryError) as error:
            self._say("read", f"an entry of the kernel cache is ignored ({path}): {error}")
            return None
        return entry

    def _write(self, kind: str, key: str, header: Mapping[str, Any], payload: bytes) -> None:
        data = pack(kind, key, header, payload)
        root = self._usable_root()
        if root is not None:
            try:
                _write_whole(_place(root, kind, key), data)
                self._memory.pop((kind, key), None)
                return
            except OSError as error:
                self._say("write", f"the kernel cache in {root} cannot be written, kernels stay in memory: {error}")
        self._memory[kind, key] = Entry(key, dict(header), payload)

    def _usable_root(self) -> Path | None:
        """The root if it may be used. A directory that is not there yet may; one of another user never is again."""
        if self._root is None or self._trusted:
            return self._root
        try:
            owner = self._root.stat().st_uid
        except FileNotFoundError:
            return self._root
        except OSError as error:
            self._say("root", f"the kernel cache in {self._root} cannot be used, kernels stay in memory: {error}")
            self._root = None
            return None
        if owner != os.getuid():
            self._say("root", f"the kernel cache in {self._root} belongs to another user, kernels stay in memory")
            self._root = None
            return None
        self._trusted = True
        return self._root

    def _say(self, about: str, message: str) -> None:
        if about not in self._said:
            self._said.add(about)
            _log.warning(message)


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


def _place(root: Path, kind: str, key: str) -> Path:
    return root / f"v{SCHEMA}" / kind / key[:2] / f"{key}{SUFFIX}"


def _owned_bytes(path: Path) -> bytes:
    """The bytes of a regular file that belongs to the user (in a shared directory anybody can put a file)."""
    with open(path, "rb") as file:
        facts = os.fstat(file.fileno())
        if not stat.S_ISREG(facts.st_mode) or facts.st_uid != os.getuid():
            raise DamagedEntryError("it is not a file of this user")
        return file.read()


def _write_whole(path: Path, data: bytes) -> None:
    """Write `data` so that `path` holds the old file or the whole new one at every moment, also after a crash."""
    _make_private(path.parent)
    temporary = path.with_name(f".{path.name}.{os.getpid()}.{os.urandom(6).hex()}")
    try:
        descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with open(descriptor, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise


def _make_private(folder: Path) -> None:
    """`folder` and its missing parents, each created with mode 0700 (`Path.mkdir` gives that mode to the last only)."""
    missing = []
    while not folder.is_dir():
        missing.append(folder)
        folder = folder.parent
    for path in reversed(missing):
        path.mkdir(mode=0o700, exist_ok=True)


def default_root(config: Config) -> Path | None:
    """Where the store of this user is, or None if there is no place that can be trusted.

    `config.cache_dir` if it is set; else the user's cache directory if it can be written; else a directory of the
    user's own, closed to others, under the temporary directory.
    """
    if config.cache_dir:
        return Path(os.path.abspath(os.path.expanduser(config.cache_dir)))
    return _user_cache() or _temporary_cache()


def _user_cache() -> Path | None:
    import platformdirs  # noqa: PLC0415  costs more than a cache hit, and is not needed where the variable is set

    try:
        root = Path(platformdirs.user_cache_dir("warpjit"))
        _make_private(root)
    except (OSError, RuntimeError):
        # RuntimeError: HOME is unset and the user has no entry in the password file.
        return None
    return root if root.stat().st_uid == os.getuid() and os.access(root, os.W_OK | os.X_OK) else None


def _temporary_cache() -> Path | None:
    import tempfile  # noqa: PLC0415  rarely needed

    root = Path(tempfile.gettempdir(), f"warpjit-{os.getuid()}")
    try:
        root.mkdir(mode=0o700, exist_ok=True)
        facts = root.lstat()
    except OSError:
        return None
    closed = stat.S_ISDIR(facts.st_mode) and facts.st_uid == os.getuid() and not facts.st_mode & 0o077
    return root if closed else None
