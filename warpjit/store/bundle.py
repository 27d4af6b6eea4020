"""A bundle: entries of a store in one zip file, for machines that shall not compile, or cannot.

Members are the entries' files under the names that a store gives them, of any number of architectures, and
`manifest.json`, which names each with its size and sha256. Taking a bundle in verifies all of it before anything is
kept: nothing is extracted by its name, executed or unpickled, and an entry goes where its key says. That finds damage,
not malice: cubins run with the user's rights, so a bundle is worth as much trust as the place that it comes from.

Left out: what an entry's content means. Merging needs to know one thing: variants of an index stand beside each other.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import stat
import struct
import zipfile
import zlib
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path, PurePosixPath
from typing import Any

from warpjit import config
from warpjit.errors import CacheError
from warpjit.store import contents, files
from warpjit.store import entry as format_of
from warpjit.store.contents import KINDS, Item
from warpjit.store.entry import CUBIN, INDEX, SCHEMA, SUFFIX, TUNING, DamagedEntryError, Entry
from warpjit.store.store import Store, store_of

FORMAT = "warpjit bundle"
VERSION = 1
MANIFEST = "manifest.json"
MEMBERS = 100_000
"""Members that a bundle may have."""
MEMBER_BYTES, MANIFEST_BYTES, TOTAL_BYTES = 256 << 20, 64 << 20, 4 << 30
"""Bytes that an entry, the manifest and all entries together may have, unpacked."""
_KEY = re.compile(r"[0-9a-f]{64}")
_EPOCH = (1980, 1, 1, 0, 0, 0)
"""The time of every member: equal entries give equal bundles."""
_BROKEN: tuple[type[Exception], ...] = (zipfile.BadZipFile, zlib.error, struct.error, RuntimeError, EOFError, OSError)
_BROKEN += (NotImplementedError, ValueError, LookupError)
"""What `zipfile`, `json` and `entry` raise for a file that is no zip, or is damaged."""


@dataclass(frozen=True)
class Member:
    """An entry in a bundle, as its manifest says: `bytes` and `sha256` are those of the entry's file."""

    kind: str
    key: str
    bytes: int
    sha256: str

    @property
    def name(self) -> str:
        return f"{self.kind}/{self.key[:2]}/{self.key}{SUFFIX[self.kind]}"


@dataclass(frozen=True)
class Exported:
    """What went into a bundle: entries by kind, and the files of damaged ones, which did not."""

    entries: Mapping[str, int]
    damaged: tuple[Path, ...]


@dataclass(frozen=True)
class Imported:
    """What a bundle brought: new entries by kind, how many were there already, and what was not looked at, in words."""

    entries: Mapping[str, int]
    known: int
    ignored: tuple[str, ...]


# ---- export -----------------------------------------------------------------------------------------------------


def export_bundle(
    path: str | os.PathLike[str],
    *,
    store: Store | None = None,
    targets: Iterable[str] = (),
    kernels: Iterable[str] = (),
) -> Exported:
    """Write the entries of a store (default: the one that kernels use) to a file.

    targets  only cubins for these ("sm_90a"), and what the index says of them; default: all
    kernels  only entries of kernels with these names; default: all. What tuning found goes by this alone.

    CacheError: no entry is asked for, the store cannot be trusted, or the file cannot be written.
    """
    choice = _Choice(frozenset(targets), frozenset(kernels))
    root = contents.checked_root((store or store_of(config.read())).root)
    path = Path(path)
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        with zipfile.ZipFile(temporary, "w", zipfile.ZIP_DEFLATED) as archive:
            exported = _Writer(archive, choice).write(contents.items(root))
        if not any(exported.entries.values()):
            raise CacheError(f"expected entries to export, but the kernel cache holds none{choice}")
        os.replace(temporary, path)
    except OSError as error:
        raise CacheError(f"the bundle {path} cannot be written: {_words(error)}") from error
    finally:
        files.discard(temporary)
    return exported


@dataclass(frozen=True)
class _Choice:
    targets: frozenset[str]
    kernels: frozenset[str]

    def __str__(self) -> str:
        """As words that end a sentence."""
        parts = {"for": self.targets, "of": self.kernels}
        return "".join(f" {word} {', '.join(sorted(names))}" for word, names in parts.items() if names)

    def kernel(self, header: Mapping[str, Any]) -> bool:
        name = str(header.get("kernel", ""))
        return not self.kernels or name in self.kernels or name.rpartition(".")[2] in self.kernels

    def cubin(self, header: Mapping[str, Any]) -> bool:
        return self.kernel(header) and (not self.targets or header.get("target") in self.targets)


@dataclass
class _Writer:
    """Entries to members: cubins first, then what the index says of those that are in."""

    archive: zipfile.ZipFile
    choice: _Choice
    members: list[Member] = field(default_factory=list)
    damaged: list[Path] = field(default_factory=list)

    def write(self, items: Iterable[Item]) -> Exported:
        current = [each for each in items if each.current]
        for kind, take in ((CUBIN, self._cubin), (INDEX, self._index), (TUNING, self._tuning)):
            for item in current:
                if item.kind == kind:
                    try:
                        data = take(contents.whole(item), item)
                    except (OSError, DamagedEntryError):
                        self.damaged.append(item.path)
                        continue
                    if data is not None:
                        self._add(kind, item.key, data)
        manifest = {"format": FORMAT, "version": VERSION, "schema": SCHEMA, "members": [*map(asdict, self.members)]}
        self._member(MANIFEST, json.dumps(manifest, indent=1).encode())
        counts = {kind: sum(each.kind == kind for each in self.members) for kind in KINDS}
        return Exported(counts, tuple(self.damaged))

    def _cubin(self, found: Entry, item: Item) -> bytes | None:
        return files.owned_bytes(item.path) if self.choice.cubin(found.header) else None

    def _index(self, found: Entry, item: Item) -> bytes | None:
        """The variants whose cubins are in the bundle."""
        if not self.choice.kernel(found.header):
            return None
        inside = {each.key for each in self.members if each.kind == CUBIN}
        variants = []
        for variant in _variants(found.header):
            cubins = {name: key for name, key in variant["cubins"].items() if key in inside}
            variants += [{**variant, "cubins": cubins}] if cubins else []
        value = {**found.header, "variants": variants}
        return format_of.pack(INDEX, found.key, {}, _json(value)) if variants else None

    def _tuning(self, found: Entry, item: Item) -> bytes | None:
        return found.cubin if self.choice.kernel(found.header) else None

    def _add(self, kind: str, key: str, data: bytes) -> None:
        member = Member(kind, key, len(data), hashlib.sha256(data).hexdigest())
        self._member(member.name, data)
        self.members.append(member)

    def _member(self, name: str, data: bytes) -> None:
        info = zipfile.ZipInfo(name, _EPOCH)
        info.compress_type, info.external_attr = zipfile.ZIP_DEFLATED, (stat.S_IFREG | 0o644) << 16
        self.archive.writestr(info, data)


def _json(value: Mapping[str, Any]) -> bytes:
    return json.dumps(value, sort_keys=True).encode()


def _variants(value: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The variants of an index's object that name cubins. Other objects of the index are a machine's own."""
    found = value.get("variants")
    variants = found if isinstance(found, list) else []
    return [each for each in variants if isinstance(each, dict) and _are_keys(each.get("cubins"))]


def _are_keys(cubins: Any) -> bool:
    return isinstance(cubins, dict) and all(isinstance(key, str) for key in cubins.values())


# ---- import -----------------------------------------------------------------------------------------------------


class _Refusal(ValueError):
    """Why a file is no bundle that can be taken."""


def import_bundle(path: str | os.PathLike[str], *, store: Store | None = None) -> Imported:
    """Take the entries of a bundle into a store (default: the one that kernels use). What is there already stays.

    CacheError: the file is no whole bundle of this schema, and nothing was taken; or the store cannot be written.
    """
    store = store or store_of(config.read())
    contents.checked_root(store.root)
    try:
        with zipfile.ZipFile(path) as archive:
            reader = _Reader(archive)
            for member in reader.members:  # all of it is looked at before anything is kept
                reader.read(member)
            counts, known = dict.fromkeys(KINDS, 0), 0
            for member in reader.members:
                with _writing():
                    new = _take(store, member, reader.read(member))
                counts[member.kind] += new
                known += not new
            return Imported(counts, known, tuple(reader.ignored))
    except _BROKEN as error:
        raise CacheError(
            f"expected a bundle that `warpjit cache export` wrote, but got {path}: {_words(error)}"
        ) from error


def _words(error: BaseException) -> str:
    said = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
    return said or type(error).__name__


@contextmanager
def _writing() -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise CacheError(f"the kernel cache cannot be written: {_words(error)}") from error


class _Reader:
    """A bundle's members, none of which is taken at its word. `_Refusal`, and what `_BROKEN` names."""

    def __init__(self, archive: zipfile.ZipFile) -> None:
        self._archive = archive
        self.ignored: list[str] = []
        infos = archive.infolist()
        if len(infos) > MEMBERS:
            raise _Refusal(f"it has {len(infos)} members, more than {MEMBERS}")
        self._infos = {each.filename: each for each in infos}
        if len(self._infos) < len(infos):
            raise _Refusal("two members have one name")
        for info in infos:
            _check_name(info)
        self.members = list(self._listed(self._manifest()))
        strangers = self._infos.keys() - {MANIFEST, *(each.name for each in self.members)}
        self.ignored += [f"{name!r} is not in the manifest" for name in sorted(strangers)]
        if sum(each.bytes for each in self.members) > TOTAL_BYTES:
            raise _Refusal(f"its entries take more than {TOTAL_BYTES} bytes")

    def _manifest(self) -> dict[str, Any]:
        manifest = json.loads(self._content(MANIFEST, MANIFEST_BYTES))
        if not isinstance(manifest, dict) or manifest.get("format") != FORMAT:
            raise _Refusal("its manifest is not that of a bundle")
        if manifest.get("version") != VERSION:
            raise _Refusal(f"it is of version {manifest.get('version')!r}, and this warpjit reads {VERSION}")
        if manifest.get("schema") != SCHEMA:
            raise _Refusal(f"its entries are of schema {manifest.get('schema')!r}, and this warpjit reads {SCHEMA}")
        return manifest

    def _listed(self, manifest: Mapping[str, Any]) -> Iterator[Member]:
        rows, seen = manifest.get("members"), set()
        if not isinstance(rows, list):
            raise _Refusal("its manifest lists no members")
        for row in rows:
            if not isinstance(row, dict):
                raise _Refusal("its manifest has a row that is no object")
            if row.get("kind") not in KINDS:
                self.ignored.append(f"{row.get('kind')!r} is no kind of entry that this warpjit knows")
                continue
            member = _member(row)
            if member.name in seen:
                raise _Refusal(f"its manifest names {member.name} twice")
            seen.add(member.name)
            yield member

    def read(self, member: Member) -> bytes:
        """The file of an entry, whole, of the kind and key that its name says."""
        data = self._content(member.name, member.bytes)
        if len(data) != member.bytes or hashlib.sha256(data).hexdigest() != member.sha256:
            raise _Refusal(f"{member.name} is not what the manifest says")
        if _entry(member, data).key != member.key:
            raise _Refusal(f"{member.name} holds another key")
        return data

    def _content(self, name: str, limit: int) -> bytes:
        """A member's bytes. However small it is packed, no more than `limit` are unpacked."""
        info = self._infos.get(name)
        if info is None:
            raise _Refusal(f"it has no {name}")
        if info.flag_bits & 1 or info.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
            raise _Refusal(f"{name} is encrypted, or packed in a way that bundles are not")
        with self._archive.open(info) as content:
            data = content.read(limit + 1)
        if len(data) > limit:
            raise _Refusal(f"{name} has more than {limit} bytes")
        return data


def _check_name(info: zipfile.ZipInfo) -> None:
    """Nothing is extracted, so no name could lead anywhere: but a file that tries is nobody's bundle."""
    name = info.orig_filename
    path = PurePosixPath(name)
    if path.is_absolute() or ".." in path.parts or "\\" in name or "\0" in name or re.match(r"[A-Za-z]:", name):
        raise _Refusal(f"the member {name!r} leads out of it")
    if stat.S_ISLNK(info.external_attr >> 16):
        raise _Refusal(f"the member {name!r} is a link")


def _member(row: Mapping[str, Any]) -> Member:
    kind, key, size, digest = (row.get(name) for name in ("kind", "key", "bytes", "sha256"))
    if not (isinstance(key, str) and _KEY.fullmatch(key) and isinstance(digest, str) and _KEY.fullmatch(digest)):
        raise _Refusal(f"its manifest has an entry without a key or sha256: {key!r}")
    if type(size) is not int or not 0 <= size <= MEMBER_BYTES:
        raise _Refusal(f"{key[:12]} is said to have {size!r} bytes, at most {MEMBER_BYTES} are taken")
    return Member(str(kind), key, size, digest)


def _entry(member: Member, data: bytes) -> Entry:
    """An entry in a bundle. DamagedEntryError: it is none, or an index without programs."""
    if member.kind == TUNING:
        key, value = format_of.unpack_json(data)
        return Entry(key, value, data)
    found = format_of.unpack(member.kind, data)
    if member.kind == INDEX and not _variants(format_of.index_value(found)):
        raise DamagedEntryError(f"{member.name} is no index of programs")
    return found


def _take(store: Store, member: Member, data: bytes) -> bool:
    """Keep an entry; whether it is new. What is there stays, and variants of an index are added to those there.

    What is new need not outlast a crash of the machine: it would be a miss, and the bundle is still there.
    """
    path = store.path(member.kind, member.key)
    assert path is not None, "the root was checked"
    if member.kind == INDEX:
        with store.turn(INDEX, member.key):
            return _take_index(store, path, _entry(member, data), data)
    if (store.get(member.key) if member.kind == CUBIN else store.get_tuning(member.key)) is not None:
        return False
    files.publish(path, data, lasting=False)
    return True


def _take_index(store: Store, path: Path, new: Entry, data: bytes) -> bool:
    old = store.get_index(new.key)
    if old is not None and _variants(old):
        merged = {**old, "variants": _merged(_variants(old), _variants(format_of.index_value(new)))}
        if merged == old:
            return False
        data = format_of.pack(INDEX, new.key, {}, _json(merged))
    files.publish(path, data)
    return True


def _merged(old: list[dict[str, Any]], new: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The old variants, with the cubins of equal new ones, and those of the new that are like none."""

    def program(variant: Mapping[str, Any]) -> bytes:
        return _json({name: value for name, value in variant.items() if name != "cubins"})

    found = {program(each): each for each in old}
    for each in new:
        known = found.get(program(each), each)
        found[program(each)] = {**known, "cubins": {**each["cubins"], **known["cubins"]}}
    return list(found.values())
