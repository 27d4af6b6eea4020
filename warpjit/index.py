"""The source-level index: from what determines a trace to its launch plan and cubin; a new process traces nothing.

The key is all that a trace depends on inside of a call: the kernel's definition, its parameters and options, what it is
specialised on, the target, and warpjit itself. Under it stand variants, which differ by what the trace took from
outside: each says where that stands (`places`), what was there (`digest`), how the program is launched, and under which
keys the store has its cubin, one for each compiler. What has no digest is never looked up and never kept.

Left out: what a launch is, and how a variant is loaded (`kernel`).
"""

from __future__ import annotations

import logging
import struct
import sys
import types
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from warpjit.config import Config
from warpjit.cuda import toolchain
from warpjit.errors import ArgumentError, CompileError
from warpjit.frontend.captures import Capture
from warpjit.frontend.digest import Forms, NoDigest
from warpjit.frontend.kinds import ConstantKind, Kind, Specialization, TupleKind
from warpjit.frontend.places import NAMES, READS, Places, follow
from warpjit.frontend.signature import Signature
from warpjit.frontend.source import FunctionSource
from warpjit.isa.target import Target
from warpjit.launchable import Executable, Launchable
from warpjit.passes.launch_plan import LaunchPlan
from warpjit.store import Part, Store, key_of, store_of
from warpjit.store.generator import generator_digest

if TYPE_CHECKING:
    from warpjit.build import Built

SCHEMA = 1
VARIANTS = 32
"""Variants of one key that are kept, the newest first."""
_log = logging.getLogger("warpjit.index")
_CHANGED = (LookupError, AttributeError, TypeError, ValueError, NoDigest)
"""What following a path raises where the way is another now."""
_DAMAGED = (LookupError, AttributeError, TypeError, ValueError, ArgumentError, struct.error)
"""What reading a variant raises that another version wrote."""


@dataclass(frozen=True, eq=False)
class Question:
    """What determines a trace: asked before one, and answered by `record` after it.

    key     the index's key
    roots   the function, then the constants that it was called with: where paths begin
    """

    key: str
    source: FunctionSource
    roots: tuple[Any, ...]
    specialization: Specialization
    target: Target
    config: Config
    store: Store


def question(
    source: FunctionSource,
    function: Callable[..., Any],
    signature: Signature,
    options: Mapping[str, Any],
    specialization: Specialization,
    target: Target,
    config: Config,
) -> Question | None:
    """The question for a call; None where something in it has no digest (a constant of a class that can change)."""
    store = store_of(config)
    generator = generator_digest(store)
    if generator is None:
        return None
    forms = Forms(known=source.origin)
    try:
        parts: dict[str, Part] = {
            "schema": SCHEMA,
            "generator": generator,
            "python": f"{sys.implementation.cache_tag} {sys.version_info.micro}",
            "source": source.fingerprint,
            "signature": forms.digest(
                tuple((each.name, each.kind, each.tensor, each.dtype, each.owner) for each in signature.parameters)
            ),
            "options": forms.digest(tuple(sorted(options.items()))),
            "specialization": forms.digest(tuple((name, *described(kind)) for name, kind in specialization.kinds)),
            "target": forms.digest(target),
            "lines": f"{source.file}:{source.first_line}" if config.lineinfo else "",
        }
    except NoDigest as reason:
        _log.debug("%s is not looked up in the index: %s", signature.name, reason)
        return None
    roots = (function, *constants_of(specialization.parameters))
    return Question(key_of(parts), source, roots, specialization, target, config, store)


def described(kind: Kind) -> tuple[Any, ...]:
    """A kind as values that have digests: of a constant its value, not the key that holds its type by identity."""
    if isinstance(kind, ConstantKind):
        return "constant", kind.value
    if isinstance(kind, TupleKind):
        return ("tuple", *(described(item) for item in kind.items))
    return "runtime", kind, getattr(kind, "names", ())


def constants_of(kinds: Sequence[Kind]) -> Iterator[Any]:
    """The values of all constants, in order."""
    for kind in kinds:
        if isinstance(kind, ConstantKind):
            yield kind.value
        elif isinstance(kind, TupleKind):
            yield from constants_of(kind.items)


# ---- asking ---------------------------------------------------------------------------------------------------


def find(asked: Question) -> Executable | None:
    """The program of which all that its trace took from outside is the same now, with its cubin."""
    for variant in _listed(asked.store.get_index(asked.key) or {}):
        try:
            captures = _captures(asked, variant["captures"])
            if captures is None:
                continue
            cubin_key = _cubin_key(asked, variant["cubins"])
            entry = asked.store.get(cubin_key) if cubin_key is not None else None
            if entry is None:
                continue
            plan = LaunchPlan.from_json(variant["plan"])
            leaves = tuple(asked.specialization.leaves())
            launchable = Launchable(plan, asked.target, leaves, captures, plan.compile())
            return Executable(launchable, variant["entry"], entry.cubin, entry.key, variant["code"])
        except _DAMAGED as problem:
            _log.debug("an entry of the index is ignored: %r", problem)
    return None


def _listed(value: Mapping[str, Any]) -> list[Any]:
    found = value.get("variants")
    return found if isinstance(found, list) else []


def _captures(asked: Question, rows: Sequence[Any]) -> tuple[Capture, ...] | None:
    """What stands now where the trace took its values from; None if one of them is another."""
    try:
        captures = tuple(_capture(asked, path, read, name) for path, read, name, _ in rows)
        forms = _forms(asked, captures)
        same = all(_digest(forms, each) == row[3] for each, row in zip(captures, rows, strict=True))
    except _CHANGED:
        return None
    return captures if same else None


def _capture(asked: Question, path: Sequence[Any], read: str, name: str) -> Capture:
    holder = follow(asked.roots, path)
    return Capture(name, holder, READS[read](holder, name), READS[read])


def _cubin_key(asked: Question, keys: Mapping[str, str]) -> str | None:
    """The cubin that this machine's compiler made; without a compiler, that of any."""
    try:
        return keys.get(toolchain.compiler_identity(asked.config, asked.store))
    except CompileError:
        return next(reversed(list(keys.values())), None)


# ---- answering ------------------------------------------------------------------------------------------------


def record(asked: Question, built: Built) -> bool:
    """Keep what a trace and the compiler made, if it can be found again, and compared; whether it can."""
    program = built.program
    if not program.repeatable:
        return False
    places = Places(asked.roots)
    try:
        forms = _forms(asked, program.captures)
        rows = [_row(places, forms, each) for each in program.captures]
        compiler = built.compiler
    except (NoDigest, CompileError) as reason:
        _log.debug("%s is not kept in the index: %s", program.plan.name, reason)
        return False
    new: dict[str, Any] = {
        "captures": rows,
        "plan": program.plan.to_json(),
        "entry": built.emitted.entry,
        "code": built.code,
        "cubins": {compiler: built.key},
    }

    def added(old: Mapping[str, Any]) -> dict[str, Any]:
        return {"kernel": program.plan.name, "variants": _with(_listed(old), new)[:VARIANTS]}

    asked.store.change_index(asked.key, added)
    return True


def _with(variants: Sequence[Any], new: Mapping[str, Any]) -> list[Any]:
    """The variants with a new one first, which knows the cubins that another compiler made of the same program."""
    others, cubins = [], dict(new["cubins"])
    for variant in variants:
        if isinstance(variant, dict) and all(variant.get(name) == new[name] for name in ("captures", "plan")):
            known = variant.get("cubins")
            cubins = {**(known if isinstance(known, dict) else {}), **cubins}
        else:
            others.append(variant)
    return [{**new, "cubins": cubins}, *others]


def _row(places: Places, forms: Forms, capture: Capture) -> list[Any]:
    path = places.of(capture)
    if path is None:
        raise NoDigest(f"there is no way to the holder of {capture.name} from the kernel")
    try:
        said = _digest(forms, capture)
    except NoDigest as reason:
        raise NoDigest(f"{capture.name}: {reason}") from None
    return [[list(step) for step in path], NAMES[capture.read], capture.name, said]


def _forms(asked: Question, captures: Sequence[Capture]) -> Forms:
    inlined = {id(each.holder) for each in captures if _is_code(each)}
    return Forms(inlined, asked.source.origin)


def _is_code(capture: Capture) -> bool:
    return capture.name == "__code__" and isinstance(capture.holder, types.FunctionType)


def _digest(forms: Forms, capture: Capture) -> str:
    if _is_code(capture):
        return forms.digest_of_code(capture.holder)
    if capture.name == "__kwdefaults__" and isinstance(capture.holder, types.FunctionType):
        return forms.digest(tuple(sorted((capture.value or {}).items())))
    return forms.digest(capture.value)


# ---- WARPJIT_RETRACE ------------------------------------------------------------------------------------------


def check(asked: Question, built: Built) -> None:
    """Say, on the logger "warpjit.index", where a program of the index is not what its trace gives now."""
    stored = find(asked)
    if stored is None:
        return
    try:
        key = built.key
    except CompileError:  # each compiler has its own cubin: which one would be expected?
        return
    pairs = {
        "launch plan": (stored.program.plan, built.program.plan),
        "entry": (stored.entry, built.emitted.entry),
        "captures": (len(stored.program.captures), len(built.program.captures)),
        "cubin": (stored.key, key),
    }
    wrong = [f"{name}: stored {old!r}, traced {new!r}" for name, (old, new) in pairs.items() if old != new]
    if wrong:
        _log.error("the index is wrong about %s: %s", built.program.plan.name, "; ".join(wrong))
