"""`warpjit cache why`: what an entry's key would be made of now, and how the nearest stored entry differs.

    warpjit cache why gemm.py:kernel "float16[128, 64]" int32 STAGES=3 [--target sm_90a] [--json]
    warpjit cache why package.module:kernel        what the annotations describe need not be given
    warpjit cache why KEY                          how a stored entry differs from what is here now

A kernel is found by importing its module, or by executing the script: what stands at their top level runs. The kernel
is traced and its CUDA C++ made, but nothing is compiled or launched.
"""

from __future__ import annotations

import ast
import contextlib
import dataclasses
import importlib.util
import sys
import time
from argparse import Namespace
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from warpjit import config
from warpjit.build import Built, build
from warpjit.cli.directory import SHORT, entries, root_of
from warpjit.cli.printing import ago_text, print_facts, print_json, print_table
from warpjit.config import VERSION
from warpjit.cuda import toolchain
from warpjit.errors import CacheError, CompileError
from warpjit.frontend.language.types import SCALAR_TYPES, Tensor, as_dtype
from warpjit.store import SCHEMA, Store, compare, contents, generator
from warpjit.store.compare import Difference, Nearest

HEXADECIMAL = 64
"""Digits of a digest, of which the first few are shown."""
MEANING = {
    "text": "the CUDA C++ that is compiled",
    "compiler": "size and time of nvcc, cicc and ptxas",
    "compiler_version": "what nvcc says of itself",
    "schema": "the format of the cache's entries",
    "source": "what the kernel's definition says",
    "generator": "warpjit's own source",
}
"""What the digests are of."""


def why(chosen: Namespace) -> None:
    """Runs the command. CacheError, and what tracing a kernel raises."""
    root = root_of(chosen)
    if ":" in chosen.kernel:
        _why_kernel(chosen, root)
    else:
        _why_entry(chosen, root)


# ---- a kernel ---------------------------------------------------------------------------------------------------


def _why_kernel(chosen: Namespace, root: Path) -> None:
    """`key` is None where there is no compiler, which every key names."""
    built = _built(chosen, root)
    wanted = built.facts()
    key = built.key if wanted["compiler"] else None
    found = contents.items(root)
    stored = next((each for each in found if each.current and each.kind == "cubin" and each.key == key), None)
    damaged = [each.why for each in contents.verify([stored] if stored else [])]
    near = None if stored and not damaged else compare.nearest(found, wanted, besides=key or "")
    if chosen.json:
        state = "damaged" if damaged else "stored" if stored else "missing"
        print_json({"key": key, "state": state, "made_from": wanted, "nearest": _record(near)})
        return
    print_facts({"key": key or "(without a compiler there is none)", **_shown(compare.flat(wanted))})
    print()
    if damaged:
        print(f"Its entry is damaged: {damaged[0]}. The next call compiles it again.")
    elif stored:
        print("It is stored: a call compiles nothing.")
    else:
        print("It is not stored: a call compiles it.")
    if not stored:
        _say_nearest(near, wanted["kernel"])


def _built(chosen: Namespace, root: Path) -> Built:
    """The kernel as CUDA C++, with the store in `root`."""
    from warpjit.kernel import Kernel, resolve_target  # noqa: PLC0415  other commands start without torch

    kernel = _imported(chosen.kernel)
    if not isinstance(kernel, Kernel):
        kernel = getattr(kernel, "kernel", kernel)  # of a tuned kernel, or one in a class
    if not isinstance(kernel, Kernel):
        raise CacheError(f"expected a function decorated with @warpjit but {chosen.kernel} is {kernel!r}")
    args, constants = specs_of(chosen.specs)
    program = kernel.program(kernel.specialization(args, constants), resolve_target(chosen.target))
    return build(program, dataclasses.replace(config.read(), cache_dir=str(root)))


def _imported(text: str) -> Any:
    """What "module:name" or "script.py:name" names. CacheError."""
    where, _, name = text.rpartition(":")
    try:
        found = _script(Path(where)) if where.endswith(".py") else _module(where)
        for part in name.split("."):
            found = getattr(found, part)
    except (Exception, SystemExit) as error:
        why = f"{type(error).__name__}: {error}"
        raise CacheError(f"expected a kernel as module:name or script.py:name, but {text} gives {why}") from error
    return found


def _script(path: Path) -> Any:
    """A script as a module under its own name, not as `__main__`: what that guards does not run."""
    sys.path.insert(0, str(path.resolve().parent))
    path.stat()  # a file that is missing is named as it was given
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None and spec.loader is not None, "its name ends with .py"
    module = importlib.util.module_from_spec(spec)
    sys.modules[path.stem] = module
    spec.loader.exec_module(module)
    return module


def _module(name: str) -> Any:
    sys.path.insert(0, str(Path.cwd()))
    return importlib.import_module(name)


def specs_of(words: Sequence[str]) -> tuple[list[Any], dict[str, Any]]:
    """Words as arguments and constants: tensors and scalar types by name, Python's literals, other words as strings."""
    args, constants = [], {}
    for word in words:
        name, equals, value = word.partition("=")
        if equals and name.isidentifier():
            constants[name] = _spec(value)
        else:
            args.append(_spec(word))
    return args, constants


def _spec(word: str) -> Any:
    dtype, bracket, shape = word.partition("[")
    if bracket and dtype.isidentifier() and shape.endswith("]"):
        sizes = [each.strip() for each in shape[:-1].split(",")]
        return Tensor(tuple(int(each) if each.isdecimal() else each for each in sizes if each), as_dtype(dtype))
    if word in SCALAR_TYPES:
        return SCALAR_TYPES[word]
    try:
        return ast.literal_eval(word)
    except (ValueError, SyntaxError):
        return word


# ---- an entry ---------------------------------------------------------------------------------------------------


def _why_entry(chosen: Namespace, root: Path) -> None:
    """How an entry differs from what this machine would write, as far as that does not depend on the kernel."""
    if chosen.specs or chosen.target:
        raise CacheError(f"expected {chosen.kernel} alone, or a kernel as module:name or script.py:name with SPECs")
    item = contents.match(entries(root), chosen.kernel)
    stored = compare.header_of(item)
    store, now = Store(root), dict(stored)
    now |= {"schema": SCHEMA, "compiler": None, "compiler_version": None, "warpjit": VERSION}
    now["generator"] = generator.generator_digest(store)
    with contextlib.suppress(CompileError):
        now["compiler"] = toolchain.compiler_identity(config.read(), store)
        now["compiler_version"] = toolchain.compiler_version(config.read(), now["compiler"])
    changed = compare.differences(stored, now)
    near = compare.nearest(contents.items(root), stored, besides=item.key)
    if chosen.json:
        print_json({"key": item.key, "changed": list(map(_as_record, changed)), "nearest": _record(near)})
        return
    print_facts({"key": item.key, **_shown(compare.flat(stored))})
    print()
    if changed:
        print("What an entry names besides its kernel is another here now:")
        _print_differences(changed)
    else:
        print("What an entry names besides its kernel is the same here now.")
    _say_nearest(near, str(stored.get("kernel")), "this")


# ---- differences ------------------------------------------------------------------------------------------------


def _say_nearest(near: Nearest | None, kernel: str, other: str = "now") -> None:
    """`other` heads the column of what the nearest entry is compared with."""
    if near is None:
        print(f"There is no other entry of {kernel}.")
        return
    used = ago_text(max(0.0, time.time() - near.item.used))
    print(f"The nearest other entry, {near.item.key[:SHORT]}, used {used}, differs in")
    _print_differences(near.differences, other)


def _print_differences(differences: Sequence[Difference], other: str = "now") -> None:
    rows = [(each.field, _short(each.stored), _short(each.wanted), MEANING.get(each.field, "")) for each in differences]
    print_table(("field", "stored", other, ""), rows)


def _short(text: str | None) -> str:
    """A digest by its first digits."""
    if text is None:
        return "-"
    digest = len(text) == HEXADECIMAL and not set(text) - set("0123456789abcdef")
    return text[:SHORT] if digest else text


def _shown(facts: Mapping[str, str]) -> dict[str, str]:
    return {name: _short(text) for name, text in facts.items()}


def _record(near: Nearest | None) -> dict[str, Any] | None:
    if near is None:
        return None
    return {"key": near.item.key, "differences": list(map(_as_record, near.differences))}


def _as_record(each: Difference) -> dict[str, Any]:
    return {"field": each.field, "stored": each.stored, "now": each.wanted, "decides": each.deciding}
