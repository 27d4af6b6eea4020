"""`warpjit cache` without `why` and bundles: what it shows and removes, and what it leaves alone."""

from __future__ import annotations

import io
import json
import os
import re
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from warpjit.cli import main
from warpjit.cli.printing import size_text
from warpjit.store import SCHEMA, Store, key_of
from warpjit.store.entry import pack

DAY = 86400.0
KEYS = sorted(key_of({"n": n}) for n in range(3))
Ask = Callable[..., str]


@pytest.fixture
def ask(capsys: pytest.CaptureFixture[str]) -> Ask:
    """Runs a command of the cache, and gives what it printed."""

    def run(*words: object, status: int = 0) -> str:
        assert main(["cache", *map(str, words)]) == status
        captured = capsys.readouterr()
        assert captured.err == ""
        return captured.out

    return run


@pytest.fixture
def filled(tmp_path: Path) -> Store:
    """Three cubins, an index, a record of tuning; used 0, 1 and 2 days ago."""
    store = Store(tmp_path / "cache")
    for age, key in enumerate(KEYS):
        header = {
            "kernel": f"kernel_{age}",
            "target": "sm_80" if age == 2 else "sm_90a",
            "resources": {"registers": age},
        }
        store.put(key, header, bytes(1000 * (age + 1)))
        used(store, "cubin", key, age * DAY)
    store.put_index(KEYS[0], {"kernel": "kernel_0", "variants": []})
    store.put_tuning(KEYS[1], {"kernel": "kernel_1", "configs": {}})
    return store


def path_of(store: Store, kind: str, key: str) -> Path:
    path = store.path(kind, key)
    assert path is not None
    return path


def used(store: Store, kind: str, key: str, ago: float) -> None:
    moment = time.time() - ago
    os.utime(path_of(store, kind, key), (moment, moment))


def damage(path: Path) -> None:
    data = bytearray(path.read_bytes())
    data[-40] ^= 1
    path.write_bytes(data)


# ---- ls, show ---------------------------------------------------------------------------------------------------


def test_ls_shows_the_last_used_first(filled: Store, ask: Ask) -> None:
    lines = [re.split(r"  +", line) for line in ask("ls", "--dir", filled.root).splitlines()]
    assert lines[0] == ["kernel", "target", "size", "used", "key"]
    sizes = [f"{path_of(filled, 'cubin', key).stat().st_size / 1024:.1f} KiB" for key in KEYS]
    assert lines[1:] == [
        ["kernel_0", "sm_90a", sizes[0], "now", KEYS[0][:12]],
        ["kernel_1", "sm_90a", sizes[1], "1 d ago", KEYS[1][:12]],
        ["kernel_2", "sm_80", sizes[2], "2 d ago", KEYS[2][:12]],
        ["3 entries"],
    ]


def test_ls_as_json_is_filtered(filled: Store, ask: Ask) -> None:
    def keys(*words: str) -> list[str]:
        return [each["key"] for each in json.loads(ask("ls", *words, "--json", "--dir", filled.root))]

    assert keys() == KEYS
    assert keys("--target", "sm_90a") == KEYS[:2]
    assert keys("nel_2") == KEYS[2:]
    assert keys("other") == []
    assert keys("--kind", "index") == KEYS[:1]
    assert keys("--kind", "tuning", "kernel_1") == KEYS[1:2]


def test_ls_tells_a_damaged_head_and_leaves_it(filled: Store, ask: Ask) -> None:
    path = path_of(filled, "cubin", KEYS[0])
    path.write_bytes(b"WARPJIT")
    assert "(damaged)" in ask("ls", "--dir", filled.root)
    assert path.read_bytes() == b"WARPJIT"


def test_show_gives_the_header_for_a_shortened_key(filled: Store, ask: Ask) -> None:
    shown = ask("show", KEYS[2][:8].upper(), "--dir", filled.root)
    facts = dict(re.split(r"  +", line, maxsplit=1) for line in shown.splitlines() if line)
    assert (facts["key"], facts["kernel"], facts["target"]) == (KEYS[2], "kernel_2", "sm_80")
    assert facts["resources.registers"] == "2"
    assert facts["used"].endswith("2 d ago")
    found = json.loads(ask("show", KEYS[2], "--json", "--dir", filled.root))
    assert found["made_from"]["resources"] == {"registers": 2}
    assert found["bytes"] == path_of(filled, "cubin", KEYS[2]).stat().st_size


def test_show_reads_headers_that_are_long(tmp_path: Path, ask: Ask) -> None:
    Store(tmp_path).put(KEYS[0], {"kernel": "k", "target": "sm_80", "captures": {"x": "y" * 100_000}}, b"")
    assert "k       sm_80" in ask("ls", "--dir", tmp_path)
    assert "y" * 100_000 in ask("show", KEYS[0], "--dir", tmp_path)


# ---- verify -----------------------------------------------------------------------------------------------------


def test_verify_names_what_is_damaged_and_heals_on_demand(filled: Store, ask: Ask) -> None:
    root = filled.root
    assert ask("verify", "--dir", root) == "5 entries, 0 damaged\n"
    cubin, index, record = (path_of(filled, kind, KEYS[n]) for kind, n in (("cubin", 2), ("index", 0), ("tuning", 1)))
    damage(cubin)
    damage(index)
    record.write_text(record.read_text().replace("kernel_1", "kernel_9"))
    renamed = path_of(filled, "cubin", KEYS[1])
    renamed.rename(renamed.with_name(f"{KEYS[1][:2]}{KEYS[0][2:]}.wjk"))
    said = ask("verify", "--dir", root, status=1).splitlines()
    assert [line.split(": ")[1] for line in said[:-1]] == [
        "the checksum does not fit" if name != "renamed" else "it holds another key"
        for name in sorted_names(cubin, index, record, renamed)
    ]
    assert said[-1] == "5 entries, 4 damaged"
    assert json.loads(ask("verify", "--json", "--dir", root, status=1))["entries"] == 5
    assert ask("verify", "--heal", "--dir", root).count("(removed)") == 4
    assert ask("verify", "--dir", root) == "1 entry, 0 damaged\n"


def sorted_names(cubin: Path, index: Path, record: Path, renamed: Path) -> list[str]:
    return [name for _, name in sorted([(cubin, ""), (index, ""), (record, ""), (renamed, "renamed")])]


def test_verify_finds_an_entry_that_cannot_be_read(filled: Store, ask: Ask) -> None:
    path = path_of(filled, "cubin", KEYS[0])
    path.unlink()
    path.symlink_to("/etc/passwd")
    assert "1 damaged" in ask("verify", "--dir", filled.root, status=1)


def test_an_index_that_is_no_object_is_damaged(filled: Store, ask: Ask) -> None:
    for payload in (b"[1]", b"{", b"[" * 100_000):
        path_of(filled, "index", KEYS[0]).write_bytes(pack("index", KEYS[0], {}, payload))
        assert "it is no JSON" in ask("verify", "--dir", filled.root, status=1)


# ---- prune, clear -----------------------------------------------------------------------------------------------


def test_prune_removes_what_is_older(filled: Store, ask: Ask) -> None:
    assert ask("prune", "--older", "1.5", "--dir", filled.root).startswith("removed 1 file, ")
    assert filled.keys("cubin") == KEYS[:2]
    assert ask("prune", "--older", 0, "--dir", filled.root).startswith("removed 4 files, ")


def test_prune_keeps_to_a_limit_but_nothing_young_goes(filled: Store, ask: Ask) -> None:
    assert ask("prune", "--dir", filled.root) == "removed 0 files, 0 B\n"
    total = sum(path.stat().st_size for path in Path(str(filled.root)).rglob("*") if path.is_file())
    ask("prune", "--limit", total - 1, "--dir", filled.root)
    assert filled.keys("cubin") == KEYS[:2]
    ask("prune", "--limit", "0", "--dir", filled.root)
    assert (filled.keys("cubin"), filled.keys("index"), filled.keys("tuning")) == (KEYS[:1], KEYS[:1], KEYS[1:2])


def test_prune_leaves_locks(filled: Store, ask: Ask) -> None:
    filled.obtain(key_of({"n": 9}), lambda: ({}, b""))
    locks = list(Path(str(filled.root)).rglob("*.lock"))
    assert len(locks) == 1
    os.utime(locks[0], (1.0, 1.0))
    ask("prune", "--limit", "0", "--older", "0", "--dir", filled.root)
    assert locks[0].exists()


def test_clear_removes_what_is_the_stores_own_and_nothing_else(filled: Store, ask: Ask) -> None:
    root = Path(str(filled.root))
    filled.obtain(key_of({"n": 9}), lambda: ({}, b""))
    filled.change_tuning(KEYS[1], dict)
    entry = path_of(filled, "cubin", KEYS[0])
    entry.with_name(f".{entry.name}.77.0123456789ab").write_bytes(b"half")
    old = root / "v1" / "cubin" / "ab" / f"{'ab' * 32}.wjk"
    old.parent.mkdir(parents=True)
    old.write_bytes(b"of another schema")
    foreign = [root / "notes.txt", root / "v2x", entry.with_name("mine"), root / "vault" / "a", root / "v1" / "b.wjk"]
    for path in foreign:
        path.parent.mkdir(exist_ok=True)
        path.write_text("not the store's")
    stats = json.loads(ask("stats", "--json", "--dir", root))
    assert {name: each["files"] for name, each in stats["kinds"].items()} == {
        **{"cubin": 4, "index": 1, "lock": 2, "temporary": 1, "tuning": 1}
    }
    assert ask("clear", "--yes", "--dir", root).startswith("removed 10 files, ")
    assert sorted(path for path in root.rglob("*") if path.is_file()) == sorted(foreign)
    assert ask("clear", "--dir", root) == "removed 0 files, 0 B\n"


def test_clear_does_not_follow_links(filled: Store, tmp_path: Path, ask: Ask) -> None:
    root = Path(str(filled.root))
    (root / f"v{SCHEMA}").rename(tmp_path / "elsewhere")
    (root / f"v{SCHEMA}").symlink_to(tmp_path / "elsewhere")
    assert ask("clear", "--yes", "--dir", root) == "removed 0 files, 0 B\n"
    assert len([path for path in (tmp_path / "elsewhere").rglob("*") if path.is_file()]) == 5


@pytest.mark.parametrize(("answer", "goes"), [("y\n", True), ("YES\n", True), ("n\n", False), ("", False)])
def test_clear_asks(filled: Store, ask: Ask, monkeypatch: pytest.MonkeyPatch, answer: str, goes: bool) -> None:
    monkeypatch.setattr(sys, "stdin", io.StringIO(answer))
    said = ask("clear", "--dir", filled.root, status=0 if goes else 1)
    assert re.match(r"Remove 5 files, \d.\d KiB, of the kernel cache in .*\? \[y/N\] ", said)
    assert (filled.keys("cubin") == []) == goes


# ---- export, import ---------------------------------------------------------------------------------------------


def test_entries_go_to_another_directory(filled: Store, tmp_path: Path, ask: Ask) -> None:
    file, other = tmp_path / "kernels.zip", tmp_path / "other"
    said = ask("export", file, "--dir", filled.root)
    assert said == f"{file}: 3 cubins, 0 index entries, 1 tuning record, {size_text(file.stat().st_size)}\n"
    said = ask("import", file, "--dir", other)
    assert said == "new: 3 cubins, 0 index entries, 1 tuning record; there already: 0\n"
    assert ask("ls", "--dir", other).count("kernel_") == 3
    assert ask("import", file, "--dir", other).endswith("there already: 4\n")


def test_a_choice_is_exported_without_what_is_damaged(filled: Store, tmp_path: Path, ask: Ask) -> None:
    damage(path_of(filled, "cubin", KEYS[0]))
    file = tmp_path / "kernels.zip"
    said = ask("export", file, "--target", "sm_90a", "--target", "sm_75", "--kernel=kernel_1", "--dir", filled.root)
    left_out, exported = said.splitlines()
    assert left_out == f"left out, since it is damaged: {path_of(filled, 'cubin', KEYS[0])}"
    assert exported.startswith(f"{file}: 1 cubin, 0 index entries, 1 tuning record, ")


# ---- stats, and directories that are not as expected ------------------------------------------------------------


def test_stats_sums_by_kind_and_target(filled: Store, ask: Ask) -> None:
    found = json.loads(ask("stats", "--json", "--dir", filled.root))
    sizes = [path_of(filled, "cubin", key).stat().st_size for key in KEYS]
    assert found["targets"] == {
        "sm_80": {"files": 1, "bytes": sizes[2]},
        "sm_90a": {"files": 2, "bytes": sizes[0] + sizes[1]},
    }
    assert found["kinds"]["cubin"] == {"files": 3, "bytes": sum(sizes)}
    assert (found["files"], found["schema"], found["other schemas"]) == (5, SCHEMA, {})
    assert "cubins of sm_90a      2" in ask("stats", "--dir", filled.root)


def test_an_empty_directory_is_no_error_nor_is_the_kernels_own_before_its_first(
    tmp_path: Path, ask: Ask, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("WARPJIT_CACHE_DIR", str(tmp_path / "missing"))
    for root, where in ((tmp_path, ("--dir", tmp_path)), (tmp_path / "missing", ())):
        assert ask("ls", *where) == f"0 entries in {root}\n"
        assert json.loads(ask("ls", "--json", *where)) == []
        assert ask("verify", *where) == "0 entries, 0 damaged\n"
        assert ask("prune", *where) == ask("clear", *where) == "removed 0 files, 0 B\n"
        assert ask("stats", *where) == f"{root}: 0 files, 0 B, schema {SCHEMA}\n"
    assert list(tmp_path.iterdir()) == []


def test_a_directory_that_is_named_must_be_there(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    root = tmp_path / "mistyped"
    for words in (
        "ls",
        "ls --json",
        "show abcd",
        "verify",
        "prune",
        "clear --yes",
        "stats",
        "export f.zip",
        "why abcd",
    ):
        assert main(["cache", *words.split(), "--dir", str(root)]) == 2
        captured = capsys.readouterr()
        expected = f"warpjit: expected the directory of a kernel cache, but {root} does not exist\n"
        assert (captured.out, captured.err) == ("", expected)


def test_ls_says_where_nothing_was_found(filled: Store, ask: Ask) -> None:
    assert ask("ls", "kernel_9", "--dir", filled.root) == f"0 of 3 entries in {filled.root}\n"


def test_a_directory_of_all_users_is_refused_with_what_can_be_done(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for mode, advice in ((0o1777, "name a folder of your own in it"), (0o777, "chmod go-w forbids it")):
        tmp_path.chmod(mode)
        assert main(["cache", "ls", "--dir", str(tmp_path)]) == 2
        assert capsys.readouterr().err.endswith(f"in {tmp_path} can be written by other users ({advice})\n")


def test_a_directory_that_cannot_be_written_can_be_looked_at(
    filled: Store, ask: Ask, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(path: object, *more: object) -> None:
        raise PermissionError(13, "Permission denied", str(path))

    damage(path_of(filled, "cubin", KEYS[0]))
    for name in ("unlink", "rmdir", "mkdir", "utime", "replace"):
        monkeypatch.setattr(os, name, refuse)
    assert "3 entries" in ask("ls", "--dir", filled.root)
    assert "(removed)" not in ask("verify", "--heal", "--dir", filled.root, status=1)
    assert ask("prune", "--older", 0, "--dir", filled.root) == "removed 0 files, 0 B\n"
    assert ask("clear", "--yes", "--dir", filled.root, status=1) == "removed 0 files, 0 B\n"


def test_the_kernels_own_directory_is_the_default(filled: Store, ask: Ask, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WARPJIT_CACHE_DIR", str(filled.root))
    assert ask("ls").endswith("3 entries\n")


REFUSED = {
    "key": (("show", "no-key"), "expected the key of an entry, 4 or more of its hex digits, but got 'no-key'"),
    "short key": (("show", "ab"), "4 or more of its hex digits, but got 'ab'"),
    "unknown key": (("show", "0000aaaa"), "one that `warpjit cache ls` shows, but got '0000aaaa'"),
    "several": (("show", KEYS[0]), f"more digits, 2 entries begin with these ({KEYS[0][:12]}, {KEYS[0][:12]})"),
    "damaged": (("show", KEYS[2]), "is damaged (the checksum does not fit): `warpjit cache verify --heal` removes it"),
    "days": (("prune", "--older", "x"), "expected a number of days but got 'x'"),
    "negative days": (("prune", "--older=-1"), "expected a number of days but got '-1'"),
    "bytes": (("prune", "--limit", "2T"), "expected a number of bytes such as 500M or 2G but got '2T'"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_a_mistake_is_one_sentence(filled: Store, case: str, capsys: pytest.CaptureFixture[str]) -> None:
    damage(path_of(filled, "cubin", KEYS[2]))
    words, sentence = REFUSED[case]
    try:
        status = main(["cache", *words, "--dir", str(filled.root)])
    except SystemExit as stop:
        status = int(str(stop.code))
    captured = capsys.readouterr()
    assert (status, captured.out, captured.err.count("\n")) == (2, "", 1)
    assert sentence in captured.err


def test_a_directory_that_cannot_be_trusted_is_refused(
    filled: Store, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    root = Path(str(filled.root))
    root.chmod(0o777)
    for words in (["ls"], ["show", KEYS[0]], ["verify"], ["prune"], ["clear", "--yes"], ["stats"]):
        assert main(["cache", *words, "--dir", str(root)]) == 2
        assert "can be written by other users" in capsys.readouterr().err
    root.chmod(0o700)
    monkeypatch.setattr(os, "getuid", lambda: root.stat().st_uid + 1)
    assert main(["cache", "ls", "--dir", str(root)]) == 2
    assert "belongs to another user" in capsys.readouterr().err
    monkeypatch.undo()
    assert len(filled.keys("cubin")) == 3
