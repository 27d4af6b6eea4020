"""The disk store: what a key distinguishes, that only whole entries are read, and that no disk trouble is an error."""

from __future__ import annotations

import hashlib
import json
import logging
import os
import stat
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from warpjit.config import Config
from warpjit.store import DamagedEntryError, Store, default_root, key_of
from warpjit.store import entry as format_of
from warpjit.store.entry import pack, unpack

KEY = "ab" * 32
HEADER = {"target": "sm_90a", "flags": ["-w"], "name": "kernel"}


def only_file(root: Path) -> Path:
    (path,) = [path for path in root.rglob("*") if path.is_file()]
    return path


def test_what_is_put_is_got_by_another_store(tmp_path: Path) -> None:
    Store(tmp_path).put(KEY, HEADER, b"\x7fELF cubin")
    entry = Store(tmp_path).get(KEY)
    assert entry is not None
    assert (entry.key, entry.header, entry.cubin) == (KEY, HEADER, b"\x7fELF cubin")
    assert Store(tmp_path).get("cd" * 32) is None


def test_an_entry_is_one_file_in_the_documented_format(tmp_path: Path) -> None:
    Store(tmp_path).put(KEY, HEADER, b"cubin")
    data = only_file(tmp_path).read_bytes()
    assert data[:8] == b"WARPJIT\0"
    length = int.from_bytes(data[16:20], "little")
    assert json.loads(data[20 : 20 + length])["made_from"] == HEADER
    assert data[20 + length : -32] == b"cubin"
    assert data[-32:] == hashlib.sha256(data[:-32]).digest()


def test_a_put_replaces_the_entry_and_leaves_no_other_file(tmp_path: Path) -> None:
    store = Store(tmp_path)
    store.put(KEY, HEADER, b"old")
    store.put(KEY, {}, b"new")
    entry = store.get(KEY)
    assert entry is not None and entry.cubin == b"new"
    assert only_file(tmp_path).name == KEY + ".wjk"


def test_every_truncation_and_every_flipped_byte_is_found() -> None:
    data = pack("cubin", KEY, {"a": 1}, b"payload")
    assert unpack("cubin", data).cubin == b"payload"
    for length in range(len(data)):
        with pytest.raises(DamagedEntryError):
            unpack("cubin", data[:length])
    for position in range(len(data)):
        damaged = bytearray(data)
        damaged[position] ^= 0x10
        with pytest.raises(DamagedEntryError):
            unpack("cubin", bytes(damaged))


def test_an_entry_of_another_kind_or_with_a_wrong_header_is_refused() -> None:
    with pytest.raises(DamagedEntryError, match="kind"):
        unpack("index", pack("cubin", KEY, {}, b""))
    wrong = (b'{"key": "x", "made_from": []}', b'{"key": 1, "made_from": {}}', b"[" * 100_000)
    for text in (b"[]", b"{}", b"{", b'"x"', *wrong):
        body = format_of._FIXED.pack(format_of.MAGIC, format_of.SCHEMA, 1, len(text)) + text
        with pytest.raises(DamagedEntryError, match="header"):
            unpack("cubin", body + hashlib.sha256(body).digest())
    body = format_of._FIXED.pack(format_of.MAGIC, format_of.SCHEMA, 1, 999) + b"{}"
    with pytest.raises(DamagedEntryError, match="longer"):
        unpack("cubin", body + hashlib.sha256(body).digest())


def test_a_damaged_file_is_a_miss_that_is_said_once_and_mended_by_a_put(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    store = Store(tmp_path)
    store.put(KEY, HEADER, b"cubin")
    path = only_file(tmp_path)
    path.write_bytes(path.read_bytes()[:-1])
    with caplog.at_level(logging.WARNING, "warpjit.store"):
        assert store.get(KEY) is None
        assert store.get(KEY) is None
    assert [record.getMessage().count("checksum") for record in caplog.records] == [1]
    store.put(KEY, HEADER, b"cubin")
    assert store.get(KEY) is not None


def test_a_renamed_file_is_a_miss(tmp_path: Path) -> None:
    store = Store(tmp_path)
    store.put(KEY, HEADER, b"cubin")
    other = KEY[:2] + "cd" * 31
    path = only_file(tmp_path)
    path.rename(path.with_name(other + ".wjk"))
    assert store.get(other) is None


def test_a_folder_in_the_place_of_an_entry_is_a_miss(tmp_path: Path) -> None:
    store = Store(tmp_path)
    store.put(KEY, HEADER, b"cubin")
    path = only_file(tmp_path)
    path.unlink()
    path.mkdir()
    assert store.get(KEY) is None
    store.put(KEY, HEADER, b"cubin")
    entry = store.get(KEY)
    assert entry is not None and entry.cubin == b"cubin"


def test_a_root_that_cannot_be_made_is_said_once_and_memory_serves(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "file").write_text("")
    store = Store(tmp_path / "file" / "cache")
    with caplog.at_level(logging.WARNING, "warpjit.store"):
        store.put(KEY, HEADER, b"cubin")
        store.put_index(KEY, {"a": 1})
    assert len(caplog.records) == 1
    entry = store.get(KEY)
    assert entry is not None and entry.cubin == b"cubin"
    assert store.get_index(KEY) == {"a": 1}


def test_a_full_disk_is_said_once_and_leaves_no_temporary_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def full(source: object, target: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "replace", full)
    store = Store(tmp_path)
    with caplog.at_level(logging.WARNING, "warpjit.store"):
        store.put(KEY, HEADER, b"cubin")
        store.put("cd" * 32, HEADER, b"cubin")
    assert ["No space left" in record.getMessage() for record in caplog.records] == [True]
    assert [path for path in tmp_path.rglob("*") if path.is_file()] == []
    assert store.get(KEY) is not None


def test_a_directory_of_another_user_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    Store(tmp_path).put(KEY, HEADER, b"planted")
    monkeypatch.setattr(os, "getuid", lambda: tmp_path.stat().st_uid + 1)
    store = Store(tmp_path)
    with caplog.at_level(logging.WARNING, "warpjit.store"):
        assert store.get(KEY) is None
        store.put("cd" * 32, HEADER, b"mine")
    assert ["another user" in record.getMessage() for record in caplog.records] == [True]
    assert store.root is None
    entry = store.get("cd" * 32)
    assert entry is not None and entry.cubin == b"mine"


def test_a_file_of_another_user_in_the_users_directory_is_a_miss(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = Store(tmp_path)
    store.put(KEY, HEADER, b"planted")
    assert store.get(KEY) is not None  # the root is trusted from here on
    monkeypatch.setattr(os, "getuid", lambda: tmp_path.stat().st_uid + 1)
    assert store.get(KEY) is None


def test_new_directories_and_files_are_closed_to_others(tmp_path: Path) -> None:
    root = tmp_path / "a" / "b"
    Store(root).put(KEY, HEADER, b"cubin")
    for path in (tmp_path / "a", root, root / f"v{format_of.SCHEMA}", only_file(tmp_path)):
        assert stat.S_IMODE(path.stat().st_mode) & 0o077 == 0, path


def test_without_a_root_entries_stay_in_memory() -> None:
    store = Store(None)
    store.put(KEY, HEADER, b"cubin")
    entry = store.get(KEY)
    assert entry is not None and entry.header == HEADER
    assert list(store.cubins()) == []


def test_the_index_keeps_json_and_is_apart_from_the_cubins(tmp_path: Path) -> None:
    value = {"cubin": KEY, "plan": {"grid": ["M", 1, 1], "shared": 1024, "align": None}}
    Store(tmp_path).put_index(KEY, value)
    assert Store(tmp_path).get_index(KEY) == value
    assert Store(tmp_path).get(KEY) is None
    assert Store(tmp_path).get_index("cd" * 32) is None


def test_an_index_that_is_no_json_object_is_a_miss(tmp_path: Path) -> None:
    store = Store(tmp_path)
    store.put_index(KEY, {"a": 1})
    path = only_file(tmp_path)
    for payload in (b"[1]", b"{", b"\xff"):
        path.write_bytes(pack("index", KEY, {}, payload))
        assert store.get_index(KEY) is None


def test_cubins_lists_whole_entries_in_the_order_of_their_keys(tmp_path: Path) -> None:
    store = Store(tmp_path)
    keys = sorted(key_of({"n": n}) for n in range(5))
    for key in reversed(keys):
        store.put(key, {"key": key}, key.encode())
    next(tmp_path.rglob(keys[2] + "*")).write_bytes(b"damaged")
    assert [entry.key for entry in store.cubins()] == keys[:2] + keys[3:]


def test_a_key_depends_on_names_types_and_lengths_but_not_on_order() -> None:
    same = key_of({"a": "x", "b": 1})
    assert same == key_of({"b": 1, "a": "x"})
    assert len(same) == 64
    different = [
        {"a": "x", "b": 1},
        {"a": "x", "b": True},
        {"a": "x", "b": 1.0},
        {"a": "x", "b": "1"},
        {"a": b"x", "b": 1},
        {"a": "x1", "b": ""},
        {"a": "", "b": "x1"},
        {"ax": "", "b": 1},
        {"a": "x"},
        {"a": 0.0},
        {"a": -0.0},
        {"a": -1},
        {"a": 2**70},
        {"a": "\udcff"},
        {},
    ]
    assert len({key_of(parts) for parts in different}) == len(different)


def test_readers_beside_writers_see_whole_entries_only(tmp_path: Path) -> None:
    payloads = [bytes([n]) * 200_000 for n in range(4)]
    store = Store(tmp_path)
    store.put(KEY, {}, payloads[0])

    def write(payload: bytes) -> None:
        for _ in range(10):
            Store(tmp_path).put(KEY, {}, payload)

    writers = [threading.Thread(target=write, args=(payload,)) for payload in payloads]
    for writer in writers:
        writer.start()
    seen = []
    while any(writer.is_alive() for writer in writers):
        seen.append(store.get(KEY))
    assert seen and all(entry is not None and entry.cubin in payloads for entry in seen)


def test_the_configured_directory_is_taken_and_made_absolute(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert default_root(Config(cache_dir=str(tmp_path))) == tmp_path
    monkeypatch.chdir(tmp_path)
    assert default_root(Config(cache_dir="here")) == tmp_path / "here"


def test_who_waits_for_nobody_loads_no_package(tmp_path: Path) -> None:
    """Also who compiles, and adds to the index."""
    program = (
        "import sys\n"
        "from warpjit.store import Store\n"
        f"store = Store({str(tmp_path)!r})\n"
        f"store.obtain({KEY!r}, lambda: ({{}}, b'cubin'))\n"
        f"store.change_index({KEY!r}, lambda old: {{'a': 1}})\n"
        "print(sorted({'filelock', 'platformdirs', 'asyncio'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
    assert len(list(tmp_path.rglob("*.lock"))) == 2


def test_the_store_imports_no_heavy_package() -> None:
    program = (
        "import sys, warpjit.store\n"
        "heavy = {'torch', 'platformdirs', 'pycuda', 'filelock', 'rich'}\n"
        "print(sorted(heavy & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
