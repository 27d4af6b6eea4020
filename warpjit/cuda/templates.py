"""The code templates of rows, taken apart: literal text and holes that name operands.

A hole is `{name}`, or `{name[2]}` for one register of a fragment; `{{` and `}}` are braces. What fills a hole is
said in `operands` and `issues`; this file knows the templates' syntax and that of PTX statements.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache

from warpjit.errors import InstructionError
from warpjit.record import record


@record
class Hole:
    """A place for the operand `name`, or for its register `index`."""

    name: str
    index: int | None = None


Piece = str | Hole
Template = tuple[Piece, ...]

_TOKEN = re.compile(r"(?P<open>\{\{)|(?P<close>\}\})|\{(?P<name>\w+)(?:\[(?P<index>\d+)\])?\}|(?P<stray>[{}])")
_ASSIGNS = " = "
_BETWEEN = "{} \n\t"
_LABEL = re.compile(r"[\w$%]+\s*:")


GUARD = "issue"
"""The PTX predicate register that guards a predicated asm statement."""


@dataclass(frozen=True, eq=False)
class Form:
    """A template, and what can be said of it whatever its operands are: worked out once for a text."""

    pieces: Template

    @cached_property
    def names(self) -> tuple[str, ...]:
        """The operands that it names, in its order."""
        return tuple(dict.fromkeys(piece.name for piece in self.pieces if isinstance(piece, Hole)))

    @cached_property
    def result(self) -> tuple[Hole, Template] | None:
        return single_result(self.pieces)

    @cached_property
    def inline(self) -> Template:
        """PTX as it stands in an asm statement."""
        return _inline(self.pieces)

    @cached_property
    def guarded(self) -> Template | None:
        """`inline` with each instruction under `GUARD`, None where that cannot be done."""
        found = predicated(self.pieces, f"@{GUARD} ")
        return None if found is None else _inline(found)


def _inline(template: Template) -> Template:
    return tuple(piece if isinstance(piece, Hole) else quoted(piece) for piece in template)


@lru_cache(maxsize=4096)
def form(text: str) -> Form:
    """The form of a row's code. Raises `InstructionError` for a single brace."""
    return Form(parse(text))


def parse(text: str) -> Template:
    """The template's pieces, neighbouring text joined. Raises `InstructionError` for a single brace."""
    pieces: list[Piece] = []
    end = 0
    for found in _TOKEN.finditer(text):
        if found["stray"]:
            raise InstructionError(f"a single brace at position {found.start()} of the code {text!r}: write it twice")
        _append(pieces, text[end : found.start()] + ("{" if found["open"] else "}" if found["close"] else ""))
        if found["name"]:
            pieces.append(Hole(found["name"], int(found["index"]) if found["index"] else None))
        end = found.end()
    _append(pieces, text[end:])
    return tuple(pieces)


def _append(pieces: list[Piece], text: str) -> None:
    if not text:
        return
    if pieces and isinstance(pieces[-1], str):
        pieces[-1] += text
    else:
        pieces.append(text)


def fill(template: Sequence[Piece], text_of: Callable[[Hole], str]) -> str:
    """The template with its holes filled."""
    return "".join([text_of(piece) if isinstance(piece, Hole) else piece for piece in template])


def single_result(template: Template) -> tuple[Hole, Template] | None:
    """For `{d} = expression;`, a single statement: the hole of `d` and the expression, in which `d` does not stand."""
    if len(template) < 2 or not isinstance(template[0], Hole) or not isinstance(template[1], str):
        return None
    last = template[-1]
    if not template[1].startswith(_ASSIGNS) or not isinstance(last, str) or not last.endswith(";"):
        return None
    rest: list[Piece] = [template[1][len(_ASSIGNS) :], *template[2:]]
    rest[-1] = str(rest[-1])[:-1]
    if any(piece == template[0] if isinstance(piece, Hole) else ";" in piece for piece in rest):
        return None
    return template[0], tuple(rest)


def quoted(text: str) -> str:
    """PTX text inside a C++ string of an asm statement with operands: % stands twice, as in `%%laneid`."""
    plain = text.replace("%%", "%").replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return plain.replace("%", "%%")


def predicated(template: Template, guard: str) -> Template | None:
    """The PTX template with `guard` ("@p ") before each instruction.

    None if that cannot be done: a label, or an instruction that has a guard of its own.
    """
    pieces: list[Piece] = []
    starts = True
    for piece in template:
        if isinstance(piece, Hole):
            pieces += [guard, piece] if starts else [piece]
            starts = False
            continue
        done = ""
        for statement in re.split(r"(?<=;)", piece):
            guarded = _guarded(statement, guard) if starts else statement
            if guarded is None:
                return None
            done += guarded
            starts = statement.rstrip().endswith(";") or (starts and not statement.strip(_BETWEEN))
        pieces.append(done)
    return tuple(pieces)


def _guarded(text: str, guard: str) -> str | None:
    """`text`, the beginning of a statement and scopes' braces before it, with the guard where it belongs."""
    bare = text.lstrip(_BETWEEN)
    if not bare or bare.startswith("."):
        return text
    if bare.startswith("@") or _LABEL.match(bare):
        return None
    return text[: len(text) - len(bare)] + guard + bare
