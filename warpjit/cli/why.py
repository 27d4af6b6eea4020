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
import string
import sys
import time
import traceback
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
from warpjit.methods import KernelMethod
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
    if ":" in chosen.kernel or chosen.kernel.endswith(".py"):
        _why_kernel(chosen, root)
    elif set(chosen.kernel) <= set(string.hexdigits):
        _why_entry(chosen, root)
    else:
        raise CacheError(
            f"expected a kernel, as module:name or script.py:name, or the hex digits of a key but got {chosen.kernel!r}"
        )


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
    from warpjit.kernel import resolve_target  # noqa: PLC0415  other commands start without torch

    kernel = _kernel(chosen.kernel)
    args, constants = specs_of(chosen.specs)
    program = kernel.program(kernel.specialization(args, constants), resolve_target(chosen.target))
    return build(program, dataclasses.replace(config.read(), cache_dir=str(root)))


def _kernel(text: str) -> Any:
    """What "module:name" or "script.py:name" names; "script.py" alone: its only kernel. CacheError."""
    where, _, name = text.rpartition(":") if ":" in text else (text, "", "")
    module = _imported(where, text)
    kernels = [each for each, value in vars(module).items() if _kernel_in(value) is not None]
    if not name and len(kernels) == 1:
        (name,) = kernels
    found = module
    for part in name.split(".") if name else ():
        found = getattr(found, part, None)
    kernel = _kernel_in(found)
    if kernel is not None:
        return kernel
    if not kernels:
        raise CacheError(
            f"expected a kernel, a function decorated with @warpjit, but {where} has none at its top level"
        )
    got = "got no name" if not name else f"got {name!r}" if found is None else f"{text} is {found!r}"
    raise CacheError(f"expected {where}:NAME with the name of one of its kernels ({', '.join(kernels)}) but {got}")


def _kernel_in(value: Any) -> Any:
    """The kernel that a value is, or that is below a tuned one, or one in a class. None: there is none."""
    from warpjit.kernel import Kernel  # noqa: PLC0415  other commands start without torch
    from warpjit.tuner import Tuned  # noqa: PLC0415

    while isinstance(value, Tuned | KernelMethod):
        value = value.kernel
    return value if isinstance(value, Kernel) else None


def _imported(where: str, text: str) -> Any:
    """The module, or the script as one. CacheError, with the line where the script ends by an error."""
    path = Path(where)
    try:
        return _script(path) if where.endswith(".py") else _module(where)
    except (Exception, SystemExit) as error:
        why = f"{type(error).__name__}: {error}"
        lines = [
            each.lineno for each in traceback.extract_tb(error.__traceback__) if Path(each.filename) == path.absolute()
        ]
        why += f" ({where}:{lines[-1]})" if lines else ""
        raise CacheError(f"expected a kernel as module:name or script.py:name, but {text} gives {why}") from error


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
    changed = compare.differences(
        *({name: fact for name, fact in each.items() if fact is not None} for each in (stored, now))
    )
    near = compare.nearest(contents.items(root), stored, besides=item.key)
    if chosen.json:
        print_json({"key": item.key, "changed": list(map(_as_record, changed)), "nearest": _record(near)})
        return
    print_facts({"key": item.key, **_shown(compare.flat(stored))})
    print()
    print(_verdict(changed, now))
    if changed:
        _print_differences(changed)
        print()
    _say_nearest(near, str(stored.get("kernel")), item.key[:SHORT])


def _verdict(changed: Sequence[Difference], now: Mapping[str, Any]) -> str:
    """What a call here makes of an entry whose kernel is still what it was."""
    if not changed:
        return "A call uses it while the kernel is what it was: the compiler and warpjit here are those that made it."
    made_here = "What made it is not what is here:"
    if now["compiler"] is None:
        return (
            f"A call uses it, since there is no compiler here, if the kernel still becomes the same text. {made_here}"
        )
    if any(each.deciding for each in changed):
        return f"A call does not use it, but compiles its kernel again. {made_here}"
    return f"A call uses it if the kernel still becomes the same text. {made_here}"


# ---- differences ------------------------------------------------------------------------------------------------


def _say_nearest(near: Nearest | None, kernel: str, this: str = "") -> None:
    """`this`: the entry that another is compared with; "": a kernel as it is now is."""
    if near is None:
        print(f"There is no {'other ' if this else ''}entry of {kernel}.")
        return
    used, other = ago_text(max(0.0, time.time() - near.item.used)), near.item.key[:SHORT]
    print(f"The nearest {'other' if this else 'stored'} entry is {other}, last used {used}. It differs in:")
    _print_differences(near.differences, *((other, this) if this else ()))


def _print_differences(differences: Sequence[Difference], first: str = "stored", second: str = "now") -> None:
    rows = [(each.field, _short(each.stored), _short(each.wanted), MEANING.get(each.field, "")) for each in differences]
    print_table(("field", first, second, ""), rows)


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
