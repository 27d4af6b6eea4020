"""Bundles: what goes in and comes out, and that a hostile or damaged one brings nothing."""

from __future__ import annotations

import hashlib
import json
import os
import stat
import zipfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from warpjit.errors import CacheError
from warpjit.store import SCHEMA, Store, bundle, export_bundle, import_bundle, key_of
from warpjit.store.entry import pack, pack_json

KEYS = sorted(key_of({"n": n}) for n in range(4))
TARGETS = ("sm_80", "sm_90a", "sm_90a", "sm_120")


def variant(**cubins: str) -> dict[str, Any]:
    return {"captures": [], "plan": {"grid": [1]}, "entry": "kernel", "cubins": cubins}


SECOND = {**variant(a=KEYS[1]), "captures": [["scale", 2]]}


@pytest.fixture
def filled(tmp_path: Path) -> Store:
    """Cubins of two kernels for three targets, what the index says of them, a machine's own memo, a tuning record."""
    store = Store(tmp_path / "from")
    for number, (key, target) in enumerate(zip(KEYS, TARGETS, strict=True)):
        store.put(key, {"kernel": f"kernel_{number // 2}", "target": target}, bytes(500) + os.urandom(500))
    store.put_index(KEYS[0], {"kernel": "kernel_0", "variants": [variant(a=KEYS[0]), SECOND]})
    store.put_index(KEYS[1], {"root": "/usr/local/cuda"})
    store.put_tuning(KEYS[2], {"kernel": "module.kernel_1", "configs": {"BM=64": [{"median_us": 2.5}]}})
    return store


def snapshot(store: Store) -> dict[str, bytes]:
    root = Path(str(store.root))
    files = (path for path in root.rglob("*") if path.is_file() and path.suffix != ".lock")
    return {path.relative_to(root).as_posix(): path.read_bytes() for path in files}


# ---- there and back ---------------------------------------------------------------------------------------------


def test_all_entries_come_out_as_they_were(filled: Store, tmp_path: Path) -> None:
    done = export_bundle(tmp_path / "all.zip", store=filled)
    assert (done.entries, done.damaged) == ({"cubin": 4, "index": 1, "tuning": 1}, ())
    other = Store(tmp_path / "a" / "to")
    taken = import_bundle(tmp_path / "all.zip", store=other)
    assert (taken.entries, taken.known, taken.ignored) == ({"cubin": 4, "index": 1, "tuning": 1}, 0, ())
    kept = {
        name: data for name, data in snapshot(filled).items() if name != f"v{SCHEMA}/index/{KEYS[1][:2]}/{KEYS[1]}.wjk"
    }
    assert snapshot(other) == kept
    assert stat.S_IMODE(Path(str(other.root)).stat().st_mode) == 0o700
    again = import_bundle(tmp_path / "all.zip", store=other)
    assert (again.entries, again.known) == ({"cubin": 0, "index": 0, "tuning": 0}, 6)
    assert snapshot(other) == kept


def test_equal_stores_give_equal_bundles_and_leave_no_other_file(filled: Store, tmp_path: Path) -> None:
    for name in ("a.zip", "b.zip"):
        export_bundle(tmp_path / name, store=filled)
    assert (tmp_path / "a.zip").read_bytes() == (tmp_path / "b.zip").read_bytes()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.zip", "b.zip", "from"]


@pytest.mark.parametrize(
    ("choice", "expected"),
    [
        ({"targets": ["sm_80"]}, {"cubin": 1, "index": 1, "tuning": 1}),
        ({"targets": ["sm_90a", "sm_120"]}, {"cubin": 3, "index": 1, "tuning": 1}),
        ({"kernels": ["kernel_1"]}, {"cubin": 2, "index": 0, "tuning": 1}),
        ({"kernels": ["kernel_0"], "targets": ["sm_90a"]}, {"cubin": 1, "index": 1, "tuning": 0}),
        ({"kernels": ["module.kernel_1"]}, {"cubin": 0, "index": 0, "tuning": 1}),
    ],
)
def test_a_choice_of_targets_and_kernels(
    filled: Store, tmp_path: Path, choice: Mapping[str, Any], expected: Mapping[str, int]
) -> None:
    assert export_bundle(tmp_path / "some.zip", store=filled, **choice).entries == expected
    other = Store(tmp_path / "to")
    assert import_bundle(tmp_path / "some.zip", store=other).entries == expected
    index = other.get_index(KEYS[0])
    cubins = [] if index is None else [key for each in index["variants"] for key in each["cubins"].values()]
    assert set(cubins) <= set(other.keys("cubin"))
    assert len(cubins) == (0 if index is None else len(set(cubins)))


def test_what_is_there_stays_and_variants_stand_beside_each_other(filled: Store, tmp_path: Path) -> None:
    export_bundle(tmp_path / "all.zip", store=filled)
    other = Store(tmp_path / "to")
    other.put(KEYS[0], {"kernel": "mine"}, b"mine")
    other.put_tuning(KEYS[2], {"kernel": "mine"})
    mine = {**variant(b=KEYS[3]), "entry": "another"}
    other.put_index(KEYS[0], {"kernel": "kernel_0", "variants": [variant(b=KEYS[2]), mine]})
    assert import_bundle(tmp_path / "all.zip", store=other).entries == {"cubin": 3, "index": 1, "tuning": 0}
    entry, record, index = other.get(KEYS[0]), other.get_tuning(KEYS[2]), other.get_index(KEYS[0])
    assert entry is not None and entry.cubin == b"mine"
    assert record == {"kernel": "mine"}
    assert index is not None
    assert index["variants"] == [variant(a=KEYS[0], b=KEYS[2]), mine, SECOND]
    assert import_bundle(tmp_path / "all.zip", store=other).entries["index"] == 0


def test_a_damaged_entry_is_left_out_and_is_mended_by_an_import(filled: Store, tmp_path: Path) -> None:
    export_bundle(tmp_path / "all.zip", store=filled)
    path = filled.path("cubin", KEYS[0])
    assert path is not None
    path.write_bytes(path.read_bytes()[:-1])
    done = export_bundle(tmp_path / "less.zip", store=filled)
    assert (done.entries["cubin"], done.damaged) == (3, (path,))
    assert import_bundle(tmp_path / "all.zip", store=filled).entries["cubin"] == 1
    assert filled.get(KEYS[0]) is not None


# ---- hostile and damaged bundles --------------------------------------------------------------------------------

Row = dict[str, Any]
Change = Callable[[dict[str, Any], dict[str, bytes]], None]
CUBIN = f"cubin/{KEYS[0][:2]}/{KEYS[0]}.wjk"
RECORD = f"tuning/{KEYS[2][:2]}/{KEYS[2]}.json"


def swapped(manifest: dict[str, Any], members: dict[str, bytes], name: str, data: bytes) -> None:
    """Give a member other content, and the manifest that content's checksum."""
    members[name] = data
    row = row_of(manifest, name)
    row.update(bytes=len(data), sha256=hashlib.sha256(data).hexdigest())


def row_of(manifest: dict[str, Any], name: str) -> Row:
    (row,) = [each for each in manifest["members"] if each["key"] in name and name.startswith(each["kind"])]
    found: Row = row
    return found


HOSTILE: dict[str, tuple[Change, str]] = {
    "no manifest": (lambda m, z: m.clear(), "it has no manifest.json"),
    "other format": (lambda m, z: m.update(format="zip"), "its manifest is not that of a bundle"),
    "other version": (lambda m, z: m.update(version=2), "it is of version 2, and this warpjit reads 1"),
    "other schema": (lambda m, z: m.update(schema=SCHEMA + 1), f"of schema {SCHEMA + 1}, and this"),
    "no list": (lambda m, z: m.update(members={}), "lists no members"),
    "no row": (lambda m, z: m["members"].append("cubin"), "a row that is no object"),
    "key": (lambda m, z: row_of(m, CUBIN).update(key="../../../evil"), "without a key or sha256: '../../../evil'"),
    "key's case": (lambda m, z: row_of(m, CUBIN).update(key="AB" * 32), "without a key or sha256"),
    "key and newline": (lambda m, z: row_of(m, CUBIN).update(key=KEYS[0] + "\n"), "without a key or sha256"),
    "no sha256": (lambda m, z: row_of(m, CUBIN).pop("sha256"), "without a key or sha256"),
    "bytes": (lambda m, z: row_of(m, CUBIN).update(bytes=1 << 40), "is said to have 1099511627776 bytes"),
    "bytes' type": (lambda m, z: row_of(m, CUBIN).update(bytes=True), "is said to have True bytes"),
    "few bytes": (lambda m, z: row_of(m, CUBIN).update(bytes=9), "has more than 9 bytes"),
    "many bytes": (lambda m, z: row_of(m, CUBIN).update(bytes=90_000), "is not what the manifest says"),
    "checksum": (lambda m, z: row_of(m, CUBIN).update(sha256="0" * 64), "is not what the manifest says"),
    "twice": (lambda m, z: m["members"].append(m["members"][0]), "names cubin/"),
    "missing": (lambda m, z: z.pop(CUBIN) and None, f"it has no {CUBIN}"),
    "parent": (lambda m, z: z.update({"../evil": b""}), "'../evil' leads out of it"),
    "absolute": (lambda m, z: z.update({"/etc/evil": b""}), "'/etc/evil' leads out of it"),
    "drive": (lambda m, z: z.update({"C:/evil": b""}), "'C:/evil' leads out of it"),
    "backslash": (lambda m, z: z.update({"a\\..\\evil": b""}), "leads out of it"),
    "no entry": (lambda m, z: swapped(m, z, CUBIN, b"\x80\x04pickle" * 20), "not an entry of this kind and schema"),
    "entry's checksum": (lambda m, z: swapped(m, z, CUBIN, z[CUBIN][:-1] + b"?"), "the checksum does not fit"),
    "entry's key": (lambda m, z: swapped(m, z, CUBIN, pack("cubin", KEYS[1], {}, b"")), "holds another key"),
    "kind": (lambda m, z: swapped(m, z, CUBIN, pack("index", KEYS[0], {}, b"{}")), "of this kind"),
    "record's checksum": (lambda m, z: swapped(m, z, RECORD, z[RECORD].replace(b"2.5", b"0.5")), "does not fit"),
    "record's key": (lambda m, z: swapped(m, z, RECORD, pack_json(KEYS[3], {})), "holds another key"),
    "deep record": (lambda m, z: swapped(m, z, RECORD, b"[" * 100_000), "it is no record"),
}  # fmt: skip


@pytest.fixture
def rewritten(filled: Store, tmp_path: Path) -> Callable[..., Path]:
    """A bundle with a changed manifest and members."""

    def rewrite(change: Change, pack_info: Callable[[zipfile.ZipInfo], None] = lambda info: None) -> Path:
        path = tmp_path / "bundle.zip"
        export_bundle(path, store=filled)
        with zipfile.ZipFile(path) as archive:
            members = {name: archive.read(name) for name in archive.namelist()}
        manifest = json.loads(members.pop("manifest.json"))
        change(manifest, members)
        with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
            for name, data in {
                **members,
                **({"manifest.json": json.dumps(manifest).encode()} if manifest else {}),
            }.items():
                info = zipfile.ZipInfo(name)
                info.compress_type = zipfile.ZIP_DEFLATED
                pack_info(info)
                archive.writestr(info, data)
        return path

    return rewrite


def refuse(path: Path, sentence: str, folder: Path) -> None:
    """The whole bundle is refused, in one sentence, and nothing of it is kept."""
    store = Store(folder / "to")
    with pytest.raises(CacheError) as refusal:
        import_bundle(path, store=store)
    said = str(refusal.value)
    assert said.startswith(f"expected a bundle that `warpjit cache export` wrote, but got {path}: ")
    assert sentence in said
    assert not (folder / "to").exists()
    known = Store(folder / "known")
    for key in KEYS:
        known.put(key, {}, b"mine")
        known.put_index(key, {"variants": [variant(b=KEYS[3])]})
        known.put_tuning(key, {"kernel": "mine"})
    before = snapshot(known)
    with pytest.raises(CacheError, match=r"^expected a bundle"):
        import_bundle(path, store=known)
    assert snapshot(known) == before
    assert not any(path.name == "evil" for path in folder.rglob("*"))


@pytest.mark.parametrize("case", HOSTILE)
def test_a_hostile_bundle_brings_nothing(rewritten: Callable[..., Path], tmp_path: Path, case: str) -> None:
    change, sentence = HOSTILE[case]
    refuse(rewritten(change), sentence, tmp_path)


def test_links_are_refused(rewritten: Callable[..., Path], tmp_path: Path) -> None:
    def link(info: zipfile.ZipInfo) -> None:
        info.external_attr = (stat.S_IFLNK | 0o777) << 16

    refuse(rewritten(lambda m, z: None, link), "is a link", tmp_path)


def test_other_compressions_are_refused(rewritten: Callable[..., Path], tmp_path: Path) -> None:
    def lzma(info: zipfile.ZipInfo) -> None:
        info.compress_type = zipfile.ZIP_LZMA

    refuse(rewritten(lambda m, z: None, lzma), "packed in a way that bundles are not", tmp_path)


def test_a_bomb_is_not_unpacked(
    rewritten: Callable[..., Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = rewritten(lambda m, z: z.update({CUBIN: bytes(50_000_000)}))
    read = zipfile.ZipExtFile.read
    most = []

    def counting(self: Any, n: int = -1) -> bytes:
        data = read(self, n)
        most.append(len(data))
        return data

    monkeypatch.setattr(zipfile.ZipExtFile, "read", counting)
    refuse(path, "has more than", tmp_path)
    assert max(most) < 10_000


def test_bundles_that_are_too_large_are_refused(
    rewritten: Callable[..., Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = rewritten(lambda m, z: None)
    for name, limit, sentence in (
        ("MEMBERS", 6, "it has 7 members, more than 6"),
        ("TOTAL_BYTES", 2000, "its entries take more than 2000 bytes"),
        ("MANIFEST_BYTES", 100, "manifest.json has more than 100 bytes"),
    ):
        with monkeypatch.context() as patch:
            patch.setattr(bundle, name, limit)
            refuse(path, sentence, tmp_path)


def test_one_name_for_two_members_is_refused(filled: Store, tmp_path: Path) -> None:
    path = tmp_path / "bundle.zip"
    export_bundle(path, store=filled)
    with zipfile.ZipFile(path, "a") as archive, pytest.warns(UserWarning, match="Duplicate"):
        archive.writestr(CUBIN, b"another")
    refuse(path, "two members have one name", tmp_path)


def test_every_truncation_and_flipped_bit_brings_nothing_but_what_was_exported(filled: Store, tmp_path: Path) -> None:
    path = tmp_path / "bundle.zip"
    export_bundle(path, store=filled, kernels=["kernel_1"], targets=["sm_120"])
    data = path.read_bytes()
    damaged = [data[:length] for length in range(0, len(data), 101)]
    for position in range(0, len(data), 41):
        damaged.append(data[:position] + bytes([data[position] ^ 0x10]) + data[position + 1 :])
    refused = 0
    for number, each in enumerate(damaged):
        path.write_bytes(each)
        store = Store(tmp_path / str(number))
        try:
            import_bundle(path, store=store)
        except CacheError:
            refused += 1
            assert not (tmp_path / str(number)).exists()
        else:  # a bit that says nothing, of a time for example
            assert snapshot(store).items() <= snapshot(filled).items()
    assert refused > 0.8 * len(damaged)


def test_what_is_unknown_is_ignored_with_a_word(rewritten: Callable[..., Path], tmp_path: Path) -> None:
    def change(manifest: dict[str, Any], members: dict[str, bytes]) -> None:
        members["read/me.txt"] = b"hello"
        manifest["members"].append({"kind": "profile", "key": KEYS[0], "bytes": 1, "sha256": "0" * 64})
        manifest["made_by"] = "a later version"

    taken = import_bundle(rewritten(change), store=Store(tmp_path / "to"))
    assert taken.entries == {"cubin": 4, "index": 1, "tuning": 1}
    assert taken.ignored == (
        "'profile' is no kind of entry that this warpjit knows",
        "'read/me.txt' is not in the manifest",
    )


def test_files_that_are_no_bundles(tmp_path: Path) -> None:
    (tmp_path / "text").write_text("text")
    refuse(tmp_path / "text", "File is not a zip file", tmp_path)
    refuse(tmp_path / "missing", "No such file", tmp_path)


# ---- where it cannot be written ---------------------------------------------------------------------------------


def test_nothing_to_export_is_an_error_and_leaves_no_file(filled: Store, tmp_path: Path) -> None:
    for store, choice, sentence in (
        (filled, {"targets": ["sm_75"], "kernels": ["a", "b"]}, "holds none for sm_75 of a, b"),
        (Store(tmp_path / "empty"), {}, "holds none"),
    ):
        with pytest.raises(CacheError, match="expected entries to export") as refusal:
            export_bundle(tmp_path / "none.zip", store=store, **choice)  # type: ignore[arg-type]
        assert str(refusal.value).endswith(sentence)
    assert [path.name for path in tmp_path.iterdir()] == ["from"]


def test_a_store_or_file_that_cannot_be_written(filled: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(CacheError, match=r"the bundle .* cannot be written"):
        export_bundle(tmp_path / "no" / "bundle.zip", store=filled)
    with pytest.raises(CacheError, match="set WARPJIT_CACHE_DIR"):
        import_bundle(tmp_path / "x", store=Store(None))
    export_bundle(tmp_path / "bundle.zip", store=filled)
    Path(str(filled.root)).chmod(0o777)
    for act in (lambda: export_bundle(tmp_path / "b", store=Store(filled.root)),
                lambda: import_bundle(tmp_path / "bundle.zip", store=Store(filled.root))):  # fmt: skip
        with pytest.raises(CacheError, match="can be written by other users"):
            act()

    def full(source: object, target: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "replace", full)
    with pytest.raises(CacheError, match="the kernel cache cannot be written: No space left"):
        import_bundle(tmp_path / "bundle.zip", store=Store(tmp_path / "to"))
