"""`warpjit cache`: what is kept on disk, why a kernel is not found there, and bundles of it for other machines.

    warpjit cache ls [TEXT] [--kind cubin|index|tuning] [--target sm_90a] [--json]
    warpjit cache show KEY [--json]            a key may be shortened
    warpjit cache why KERNEL [SPEC ...]        see `cli.why`
    warpjit cache verify [--heal] [--json]     exit status 1 if something is damaged
    warpjit cache prune [--older DAYS] [--limit BYTES]
    warpjit cache clear [--yes]
    warpjit cache stats [--json]
    warpjit cache export FILE [--target sm_90a] [--kernel NAME]
    warpjit cache import FILE

All of them take `--dir`; without it, the directory is the one that kernels use. A directory that cannot be trusted is
refused. Neither torch nor a compiler nor a GPU is needed, but by `why`.
"""

from __future__ import annotations

import re
import sys
import time
from argparse import ArgumentParser, ArgumentTypeError, Namespace
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from warpjit.cli.command import Command, Group
from warpjit.cli.directory import SHORT, add_directory, entries, root_of
from warpjit.cli.printing import add_json, ago_text, counted, print_facts, print_json, print_table, size_text
from warpjit.errors import CacheError
from warpjit.store import Store, contents, eviction, export_bundle, import_bundle
from warpjit.store.compare import flat
from warpjit.store.contents import KINDS, Item
from warpjit.store.entry import CUBIN, SCHEMA, DamagedEntryError
from warpjit.store.store import LIMIT

# ---- ls ---------------------------------------------------------------------------------------------------------


def _ls_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("text", nargs="?", default="", help="only kernels whose name contains this")
    parser.add_argument("--kind", choices=KINDS, default=CUBIN, help="which entries (default: cubin)")
    parser.add_argument("--target", help="only what was built for this target: sm_90a")
    add_json(parser)
    add_directory(parser)


def _ls(chosen: Namespace) -> None:
    root = root_of(chosen)
    found = sorted((each for each in entries(root) if each.kind == chosen.kind), key=lambda each: -each.used)
    records = [_record(each) for each in found]
    records = [each for each in records if chosen.text in each["kernel"] and chosen.target in (None, each["target"])]
    if chosen.json:
        print_json(records)
        return
    now = time.time()
    rows = [
        (each["kernel"], each["target"], size_text(each["bytes"]), ago_text(now - each["used"]), each["key"][:SHORT])
        for each in records
    ]
    if rows:
        print_table(("kernel", "target", "size", "used", "key"), rows, right=("size", "used"))
        print(counted(len(rows), "entry", "entries"))
    else:  # somebody expected some: say where they are not
        print(f"0 of {counted(len(found), 'entry', 'entries')} in {root}" if found else f"0 entries in {root}")


def _record(item: Item) -> dict[str, Any]:
    """An entry as plain data; of a damaged one, what can still be seen."""
    header = _header(item)
    kernel, target = str(header.get("kernel", "")), str(header.get("target", ""))
    return {"kernel": kernel, "target": target, "bytes": item.size, "used": item.used, "key": item.key}


def _header(item: Item) -> Mapping[str, Any]:
    try:
        return contents.made_from(item) if item.kind != "index" else contents.whole(item).header
    except (OSError, DamagedEntryError):
        return {"kernel": "(damaged)"}


# ---- show -------------------------------------------------------------------------------------------------------


def _show_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("key", help="of the entry; its first digits do where no other begins with them")
    add_json(parser)
    add_directory(parser)


def _show(chosen: Namespace) -> None:
    item = contents.match(entries(root_of(chosen)), chosen.key)
    try:
        found = contents.whole(item)
    except (OSError, DamagedEntryError) as error:
        advice = "`warpjit cache verify --heal` removes it"
        raise CacheError(f"expected a whole entry, but {item.key[:SHORT]} is damaged ({error}): {advice}") from error
    facts = {"kind": item.kind, "key": item.key, "bytes": item.size, "used": item.used, "path": str(item.path)}
    if chosen.json:
        print_json({**facts, "made_from": dict(found.header)})
        return
    used = f"{time.strftime('%Y-%m-%d %H:%M:%S', time.localtime(item.used))}, {ago_text(time.time() - item.used)}"
    print_facts({**{name: str(fact) for name, fact in facts.items()}, "bytes": f"{item.size:,}", "used": used})
    print()
    print_facts(flat(found.header))


# ---- why --------------------------------------------------------------------------------------------------------


def _why_arguments(parser: ArgumentParser) -> None:
    parser.add_argument(
        "kernel",
        help="module:kernel or script.py:kernel, whose top level is EXECUTED to find it; or the key of an entry",
    )
    parser.add_argument(
        "specs",
        nargs="*",
        default=[],
        metavar="SPEC",
        help='what it is called on: "float16[128, 64]" for a tensor, int32, 3, and NAME=value for constants '
        "(default: what its annotations say)",
    )
    parser.add_argument("--target", help="the architecture (default: that of a call here): sm_90a")
    add_json(parser)
    add_directory(parser)


def _why(chosen: Namespace) -> None:
    from warpjit.cli.why import why  # noqa: PLC0415  other commands start without the stages of a kernel

    why(chosen)


# ---- verify -----------------------------------------------------------------------------------------------------


def _verify_arguments(parser: ArgumentParser) -> None:
    parser.add_argument(
        "--heal", action="store_true", help="remove what is damaged; it is made again when it is needed"
    )
    add_json(parser)
    add_directory(parser)


def _verify(chosen: Namespace) -> int:
    found = entries(root_of(chosen))
    damaged = list(contents.verify(found))
    healed = {each.path for each in contents.remove(each.item for each in damaged)} if chosen.heal else set()
    left = [each for each in damaged if each.item.path not in healed]
    if chosen.json:
        rows = [{"path": str(each.item.path), "why": each.why, "removed": each.item.path in healed} for each in damaged]
        print_json({"entries": len(found), "damaged": rows})
        return 1 if left else 0
    for each in damaged:
        print(f"{each.item.path}: {each.why}{' (removed)' if each.item.path in healed else ''}")
    print(f"{counted(len(found), 'entry', 'entries')}, {len(damaged)} damaged")
    return 1 if left else 0


# ---- prune, clear -----------------------------------------------------------------------------------------------

_SIZE = re.compile(r"([0-9]+(?:\.[0-9]+)?)\s*([KMG]?)(?:i?B)?", re.IGNORECASE)
_UNITS = {"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30}


def _bytes(text: str) -> int:
    found = _SIZE.fullmatch(text)
    if found is None:
        raise ArgumentTypeError(f"expected a number of bytes such as 500M or 2G but got {text!r}")
    return int(float(found[1]) * _UNITS[found[2].upper()])


def _days(text: str) -> float:
    try:
        days = float(text)
    except ValueError:
        days = -1.0
    if not days >= 0:
        raise ArgumentTypeError(f"expected a number of days but got {text!r}")
    return days


def _prune_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("--older", type=_days, metavar="DAYS", help="remove what was not used for so many days")
    parser.add_argument(
        "--limit",
        type=_bytes,
        metavar="BYTES",
        help=f"what may stay (default: {size_text(LIMIT)}): the least recently used go, nothing of the last hour",
    )
    add_directory(parser)


def _prune(chosen: Namespace) -> None:
    root = root_of(chosen)
    before = contents.items(root)
    if chosen.older is not None:
        contents.remove(contents.older(before, chosen.older))
    if chosen.older is None or chosen.limit is not None:
        eviction.evict(root, LIMIT if chosen.limit is None else chosen.limit)
    left = {each.path for each in contents.items(root)}
    _say_removed([each for each in before if each.path not in left])


def _say_removed(removed: Sequence[Item]) -> None:
    print(f"removed {counted(len(removed), 'file')}, {size_text(sum(each.size for each in removed))}")


def _clear_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("--yes", action="store_true", help="do not ask")
    add_directory(parser)


def _clear(chosen: Namespace) -> int:
    root = root_of(chosen)
    found = contents.items(root)
    if found and not chosen.yes:
        total = size_text(sum(each.size for each in found))
        print(
            f"Remove {counted(len(found), 'file')}, {total}, of the kernel cache in {root}? [y/N] ", end="", flush=True
        )
        if sys.stdin.readline().strip().lower() not in ("y", "yes"):
            print("nothing was removed")
            return 1
    removed = contents.clear(root)
    _say_removed(removed)
    return 0 if len(removed) >= len(found) else 1


# ---- stats ------------------------------------------------------------------------------------------------------


def _stats_arguments(parser: ArgumentParser) -> None:
    add_json(parser)
    add_directory(parser)


def _stats(chosen: Namespace) -> None:
    root = root_of(chosen)
    found = contents.items(root)
    current = [each for each in found if each.schema == SCHEMA]
    kinds = contents.sums(current, lambda each: each.kind)
    targets = contents.sums(
        (each for each in current if each.kind == CUBIN), lambda each: _record(each)["target"] or "?"
    )
    others = contents.sums((each for each in found if each.schema != SCHEMA), lambda each: f"schema {each.schema}")
    sections = {"kinds": kinds, "targets": targets, "other schemas": others}
    total = sum(each.size for each in found)
    if chosen.json:
        plain = {name: {each: vars(sum_) for each, sum_ in section.items()} for name, section in sections.items()}
        print_json({"directory": str(root), "schema": SCHEMA, "files": len(found), "bytes": total, **plain})
        return
    print(f"{root}: {counted(len(found), 'file')}, {size_text(total)}, schema {SCHEMA}")
    rows = [
        (f"cubins of {name}" if section is targets else name, f"{each.files:,}", size_text(each.bytes))
        for section in sections.values()
        for name, each in section.items()
    ]
    if rows:
        print_table(("", "files", "size"), rows, right=("files", "size"))


# ---- export, import ---------------------------------------------------------------------------------------------


def _export_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("file", help="the bundle to write")
    parser.add_argument("--target", action="append", default=[], help="only for this target: sm_90a (may be repeated)")
    parser.add_argument("--kernel", action="append", default=[], help="only of this kernel (may be repeated)")
    add_directory(parser)


def _export(chosen: Namespace) -> None:
    store = Store(root_of(chosen))
    done = export_bundle(chosen.file, store=store, targets=chosen.target, kernels=chosen.kernel)
    for path in done.damaged:
        print(f"left out, since it is damaged: {path}")
    print(f"{chosen.file}: {_by_kind(done.entries)}, {size_text(Path(chosen.file).stat().st_size)}")


def _by_kind(entries: Mapping[str, int]) -> str:
    words = {"cubin": ("cubin", "cubins"), "index": ("index entry", "index entries")}
    words |= {"tuning": ("tuning record", "tuning records")}
    return ", ".join(counted(entries[kind], *words[kind]) for kind in KINDS)


def _import_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("file", help="a bundle that `warpjit cache export` wrote; import only what you would execute")
    add_directory(parser)


def _import(chosen: Namespace) -> None:
    done = import_bundle(chosen.file, store=Store(root_of(chosen, may_be_new=True)))
    for said in done.ignored:
        print(f"ignored: {said}")
    print(f"new: {_by_kind(done.entries)}; there already: {done.known}")


CACHE = Group(
    "cache",
    "what is kept on disk, and why a kernel is not found there",
    (
        Command("ls", "the entries, those used last first", _ls_arguments, _ls),
        Command("show", "an entry: what it was made from, what it takes", _show_arguments, _show),
        Command("why", "what an entry is made of now, and how the nearest stored one differs", _why_arguments, _why),
        Command("verify", "read every entry in full and name the damaged ones", _verify_arguments, _verify),
        Command("prune", "remove what was not used for longest", _prune_arguments, _prune),
        Command("clear", "remove everything that is the cache's own", _clear_arguments, _clear),
        Command("stats", "how much there is, by kind and target", _stats_arguments, _stats),
        Command("export", "write entries to a file, for other machines", _export_arguments, _export),
        Command("import", "take the entries of such a file", _import_arguments, _import),
    ),
)
