"""The page `docs/language.md`: every name of `T`, with its docstring, and every instruction of the table."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterator
from typing import Any

from warpjit import T, layout
from warpjit.frontend.language import approx, atomics, bits, core, cuda, debugging, inline_asm, mathematics, warp
from warpjit.frontend.language.intrinsic import Intrinsic
from warpjit.frontend.language.ptx import PtxNames
from warpjit.frontend.language.tensor import InstructionInKernel, Pointer, ScalarInKernel, TensorInKernel
from warpjit.frontend.language.types import SCALAR_TYPES, ScalarType, Tensor, constexpr
from warpjit.isa import table
from warpjit.isa.calculator import listed
from warpjit.isa.row import Kind, Mode, Row
from warpjit.layout.drawn import Drawn

HEAD = """# The language `T`

<!-- Made by docs/generate.py from the docstrings in warpjit/frontend/language and the tables in warpjit/isa. -->
"""

_ITEM = re.compile(r"^(\S.*?)\s{2,}(\S.*)$")


# ---- docstrings ----------------------------------------------------------------------------------------


def markdown(docstring: str | None) -> str:
    """A docstring as Markdown: blocks of `name  meaning` become lists, indented blocks code, the rest stands."""
    text = re.sub(r"\n(?=Raises )", "\n\n", inspect.cleandoc(docstring or ""))
    blocks = re.split(r"\n\s*\n", text)
    return "\n\n".join(_block(block) for block in blocks)


def _block(block: str) -> str:
    lines = block.splitlines()
    if all(line.startswith("    ") for line in lines):
        return "\n".join(["```python", *(line[4:] for line in lines), "```"])
    if not all(_ITEM.match(line) or line.startswith(" ") for line in lines):
        return block
    items: list[str] = []
    for line in lines:
        found = None if line.startswith(" ") else _ITEM.match(line)
        if found:
            items.append(f"* `{found[1]}`: {found[2]}")
        else:
            items[-1] += " " + line.strip()
    return "\n".join(items)


def _signature(item: Any) -> str:
    """As one calls it: names and defaults, without types."""
    shown = item.signature if isinstance(item, Intrinsic) else inspect.signature(item)
    bare = [each.replace(annotation=each.empty) for each in shown.parameters.values() if each.name != "self"]
    return str(inspect.Signature(bare)).replace("'", '"')


def _entry(name: str, item: Any, level: int = 3) -> str:
    """A heading with the call, and the docstring."""
    return f"{'#' * level} `{name}{_signature(item)}`\n\n{markdown(item.__doc__)}\n"


def _functions(prefix: str, module: Any, names: tuple[str, ...]) -> Iterator[str]:
    for name in names:
        yield _entry(prefix + name, getattr(module, name))


# ---- parts -----------------------------------------------------------------------------------------------


def _parameters() -> Iterator[str]:
    yield "## Parameters\n"
    yield _entry("T.Tensor", Tensor)
    yield _entry("T.dynamic", T.dynamic)
    yield f"### `T.constexpr`\n\n{markdown(constexpr.__doc__)}\n"
    names = ", ".join(f"`T.{name}`" for name in SCALAR_TYPES)
    yield f"### Scalar types\n\n{names}.\n\n{markdown(ScalarType.__doc__)}\n"


def _entry_names() -> Iterator[str]:
    yield "## Entry\n"
    yield from _functions("T.", core, ("device_entry",))
    yield _entry("T.cuda.LaunchConfig", cuda.LaunchConfig)
    yield _entry("T.cuda.KernelAttributes", cuda.KernelAttributes)


def _members(kind: type, owner: str) -> Iterator[str]:
    for name, member in vars(kind).items():
        if isinstance(member, property):
            yield f"### `{owner}.{name}`\n\n{markdown(member.__doc__)}\n"
        elif inspect.isfunction(member) and not name.startswith("_"):
            shown = "(dtype)` and `t.view(*shape, layout=None)" if name == "view" else _signature(member)
            yield f"### `{owner}.{name}{shown}`\n\n{markdown(member.__doc__)}\n"


def _tensors() -> Iterator[str]:
    yield "## Tensors in a kernel\n"
    yield _entry("T.constant", T.constant)
    yield from _functions("T.", core, ("alloc_shared", "alloc_local", "load", "store", "copy", "prefetch"))
    yield f"### Elements and windows: `t[...]`\n\n{markdown(TensorInKernel.__doc__)}\n"
    yield from _members(TensorInKernel, "t")
    yield f"### Pointers\n\n{markdown(Pointer.__doc__)}\n"


SCALAR_FUNCTIONS = ("cast", "reinterpret", "min", "max", "abs", "fma", "sqrt", "cdiv", "assume")


def _scalars() -> Iterator[str]:
    yield f"## Scalars\n\n{markdown(ScalarInKernel.__doc__)}\n"
    yield from _members(ScalarInKernel, "x")
    yield from _functions("T.", core, SCALAR_FUNCTIONS)
    yield "## Bits of words\n"
    yield from _functions("T.", bits, tuple(bits.__all__))
    yield "## Loops\n"
    yield from _functions("T.", core, ("unroll", "range"))


def _mathematics() -> Iterator[str]:
    yield (
        "## Mathematical functions\n\nOf a float, in its type. float16 and bfloat16 compute in float32 and are rounded "
        "once more. A number that is known while tracing is computed in float64, an int as well. Largest errors are "
        'those that the CUDA C++ Programming Guide states ("Mathematical Functions"), in ulp of the correctly rounded '
        "result. Raises TraceError: not a float.\n"
    )
    yield from _functions("T.", mathematics, tuple(mathematics.__all__))
    yield f"## Fast mathematical functions: `T.approx`\n\n{markdown(approx.__doc__)}\n"
    yield from _functions("T.approx.", approx, tuple(approx.__all__))


WHO = ("lane_id", "warp_id", "thread_idx", "block_idx", "block_dim", "grid_dim")
SYNCHRONISATION = (
    "cta_sync",
    "warp_sync",
    "named_barrier_sync",
    "named_barrier_arrive",
    "fence",
    "mbarrier_wait",
    "elect_sync",
)


def _threads() -> Iterator[str]:
    yield "## Threads, warps and CTAs\n"
    yield from _functions("T.cuda.", cuda, WHO)
    yield "## Synchronisation\n"
    yield from _functions("T.cuda.", cuda, SYNCHRONISATION)
    yield f"## Lanes together\n\n{markdown(warp.__doc__)}\n"
    yield from _functions("T.cuda.", warp, tuple(warp.__all__))
    yield f"## Atomic operations\n\n{markdown(atomics.__doc__)}\n"
    yield from _functions("T.", atomics, tuple(atomics.__all__))


def _debugging() -> Iterator[str]:
    yield f"## Assertions and printing\n\n{markdown(debugging.__doc__)}\n"
    yield from _functions("T.", debugging, tuple(debugging.__all__))


def _layouts() -> Iterator[str]:
    yield f"## Layouts\n\n{markdown(layout.__doc__)}\n"
    yield _entry("T.cuda.layout.mma_shared_layout", layout.mma_shared_layout)
    yield f"### `T.cuda.layout.SwizzleMode`\n\n{markdown(layout.SwizzleMode.__doc__)}\n"
    for kind in (layout.TileLayout, layout.ComposeLayout):
        yield f"### `{kind.__name__}`\n\n{markdown(kind.__doc__)}\n"
        for name, member in {**vars(kind), **vars(Drawn)}.items():
            function = getattr(member, "__func__", member)
            if not name.startswith("_") and inspect.isfunction(function) and function.__doc__:
                yield _entry(f"{kind.__name__}.{name}", function, level=4)


# ---- instructions ------------------------------------------------------------------------------------------


def _call(row: Row) -> str:
    """The operands of the raw form and what it returns."""
    results = [each for each in row.operands if each.kind is Kind.SCALAR and each.mode is Mode.WRITE]
    operands = [each.name + ("?" if each.optional else "") for each in row.operands if each not in results]
    returned = f" → {', '.join(str(each.dtype) for each in results)}" if results else ""
    return f"({', '.join(operands)}){returned}"


def _instructions() -> Iterator[str]:
    yield "## Instructions\n"
    yield f"### `T.ptx[text]`\n\n{markdown(PtxNames.__doc__)}\n\n{markdown(InstructionInKernel.__doc__)}\n"
    yield _entry("T.cuda.tile.apply", cuda.apply)
    yield _entry("T.cuda.fragments", cuda.fragments)
    yield _entry("T.cuda.convert", cuda.convert)
    yield _entry("T.cuda.has", cuda.has)
    yield from _functions("T.", inline_asm, tuple(inline_asm.__all__))
    sections: dict[str, list[Row]] = {}
    for row in listed():
        sections.setdefault(row.section, []).append(row)
    yield (
        "### The table\n\nOperands with `?` may be left out; D, A, B, C of `mma`, and fragments, are local tensors. "
        '"tile" marks what `T.cuda.tile.apply` takes; "unverified" what was never compared with a device, and is legal '
        "only in a kernel with `@warpjit(unverified=True)`. Each heading is a section of the PTX manual.\n"
    )
    for section, rows in sections.items():
        yield f"#### {section}\n\n| instruction | operands | executed by | targets |\n| --- | --- | --- | --- |"
        for row in rows:
            tile = ", tile" if row.tile else ""
            said = ([row.notes] if row.notes else []) + ["unverified"] * row.unverified
            notes = "".join(f"; {each}" for each in said)
            yield f"| `{row.text}` | {_call(row)} | {row.participants.value}{tile} | {row.needs.text}{notes} |"
        yield ""
    implied = len(table.rows()) - len(listed())
    yield (
        f"The {implied} rows of scalar arithmetic, functions, conversions, special registers and element accesses "
        "are what operators, names of `T`, conversions and subscripts stand for.\n"
    )


PARTS: tuple[Callable[[], Iterator[str]], ...] = (
    _parameters,
    _entry_names,
    _tensors,
    _scalars,
    _mathematics,
    _threads,
    _debugging,
    _instructions,
    _layouts,
)


def page() -> str:
    """The whole page."""
    parts = [HEAD, markdown(T.__doc__) + "\n", *(text for part in PARTS for text in part())]
    return "\n".join(parts).rstrip() + "\n"


def named() -> set[str]:
    """Every public name that the page must hold: of `T`, `T.approx`, `T.cuda` with its namespaces, and of tensors."""
    names = {f"T.{name}" for name in T.__all__}
    names |= {each.name for name in cuda.__all__ if isinstance(each := getattr(cuda, name), Intrinsic)}
    names |= {f"T.approx.{name}" for name in approx.__all__}
    names |= {f"T.cuda.{name}" for name in ("LaunchConfig", "KernelAttributes")}
    names |= {f"T.cuda.layout.{name}" for name in vars(cuda.layout)}
    return names | {f"t.{name}" for name in vars(TensorInKernel) if not name.startswith("_")}
