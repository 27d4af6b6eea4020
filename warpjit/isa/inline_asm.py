"""Inline PTX of a user as a row: `T.asm` writes what no row of the tables says.

    row = asm_row("add.u32 %0, %1, %2;", (result("operand0", uint32), …), …)

In the text `%0`, `%1`, … are the operands, one number a register, in their order; `%%` is a percent sign; braces stand
as they are. A text that declares registers or has labels gets a scope of its own, so that its copies do not meet.
Meanings of users are checked here too: what they take and give are arrays of lanes. Not judged: whether the text is
legal PTX (ptxas says so, at the user's line), and which targets have it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from warpjit.errors import InstructionError
from warpjit.ir.dtypes import DType, uint8
from warpjit.isa.needs import EVERYWHERE
from warpjit.isa.row import Array, Asm, Kind, Mode, Operand, Participants, Row
from warpjit.layout import S, TileLayout, laneid
from warpjit.layout.axis import LANES
from warpjit.record import record

SECTION = "Inline PTX Assembly in CUDA"

_COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/", re.DOTALL)
_TOKEN = re.compile(r"%%|%(?P<number>\d+)|(?P<stray>%)|(?P<brace>[{}])")
_OWN_SCOPE = re.compile(r"\.reg\b|(?:^|[;{}])\s*[A-Za-z_$][\w$]*\s*:(?!:)")
_SHOWN = 48


@record
class Effects:
    """What the compiler and the verifier are told of a text.

    volatile      it stays where it is, also if its results are not used
    memory        it reads or writes memory, or orders accesses (implies `volatile`)
    participants  the threads that execute it together
    """

    volatile: bool = False
    memory: bool = False
    participants: Participants = Participants.THREAD


def registers(name: str, mode: Mode, dtype: DType, count: int) -> Operand:
    """`count` registers of each lane, each with a number of its own in the text."""
    layout = TileLayout(S[(LANES, count) : (1 @ laneid, 1)])
    return Operand(name, Kind.FRAGMENT, mode, dtype=dtype, shape=(LANES, count), layout=layout)


def asm_row(text: str, operands: tuple[Operand, ...], effects: Effects, meaning: Callable[..., Any] | None) -> Row:
    """The row. InstructionError: a number that is no operand, an operand that does not stand in the text, a single %,
    braces that do not match, no semicolon at the end."""
    name = shown(text)
    collective = effects.participants is not Participants.THREAD
    stays = effects.volatile or effects.memory or collective or not any(each.writes for each in operands)
    return Row(
        text=name,
        operands=operands,
        code=Asm(_template(text, operands)),
        meaning=_unknown if meaning is None else _checked(meaning, operands),
        needs=EVERYWHERE,
        participants=effects.participants,
        memory=effects.memory,
        volatile=stays,
        pure=not stays,
        section=SECTION,
    )


def is_opaque(row: Row, operand: Operand) -> bool:
    """Whether the text gets a bare pointer here: what it does with the memory behind it, nobody says."""
    return row.section == SECTION and operand.kind is Kind.ADDRESS and operand.bytes <= 1


def shown(text: str) -> str:
    """How the text is called in a sentence: on one line, shortened."""
    line = " ".join(text.split())
    return f'T.asm("{line if len(line) <= _SHOWN else line[:_SHOWN] + "…"}")'


# ---- the text ----------------------------------------------------------------------------------------


def _template(text: str, operands: Sequence[Operand]) -> str:
    """The text with holes for numbers, braces doubled."""
    bare = _COMMENT.sub(" ", text).strip()
    if bare and not bare.endswith((";", "}", ":")):  # a label may stand at the end
        raise InstructionError(f"expected a semicolon at the end of the text but got {bare[-1]!r}")
    holes = list(_holes(operands))
    used: set[int] = set()
    depth = 0
    pieces: list[str] = []
    end = 0
    for found in _TOKEN.finditer(bare):
        pieces += [bare[end : found.start()], found[0]]
        end = found.end()
        if found["stray"]:
            raise InstructionError(
                f"expected the number of an operand after % but got {bare[found.start() : found.start() + 12]!r}: a "
                "percent sign is written %%"
            )
        if found["brace"]:
            depth += 1 if found["brace"] == "{" else -1
            pieces[-1] = 2 * found["brace"]
        if depth < 0:
            break
        if found["number"]:
            number = int(found["number"])
            if number >= len(holes):
                raise InstructionError(f"expected an operand from {_range(len(holes))} but got %{number}")
            used.add(number)
            pieces[-1] = holes[number]
    if depth:
        raise InstructionError("expected as many { as } in the text, each after its {")
    for number in range(len(holes)):
        if number not in used:
            raise InstructionError(f"expected every operand in the text, but %{number} of {_range(len(holes))} is not")
    whole = "".join([*pieces, bare[end:]])
    return f"{{{{ {whole} }}}}" if _OWN_SCOPE.search(bare) else whole


def _holes(operands: Sequence[Operand]) -> Iterator[str]:
    """What stands for each number."""
    for operand in operands:
        if operand.kind is Kind.FRAGMENT:
            yield from (f"{{{operand.name}[{index}]}}" for index in range(operand.registers))
        else:
            yield f"{{{operand.name}}}"


def _range(count: int) -> str:
    return f"%0 to %{count - 1}" if count else "none (there are no operands)"


# ---- the meaning -------------------------------------------------------------------------------------


def _unknown(*arrays: Array) -> Array:
    raise InstructionError(
        "the simulator does not know what this text does: expected meaning=, a function over arrays of lanes"
    )


def _checked(meaning: Callable[..., Any], operands: Sequence[Operand]) -> Callable[..., tuple[Array, ...]]:
    """A user's function, called on arrays (warps, 32[, items]) and held to giving such arrays."""
    inputs = [operand for operand in operands if operand.reads]
    outputs = [operand for operand in operands if operand.writes]

    def run(*arrays: Array) -> tuple[Array, ...]:
        given = [_of_lanes(operand, array) for operand, array in zip(inputs, arrays, strict=True)]
        warps = max((array.shape[0] for array in given), default=1)
        try:
            returned = meaning(*given)
        except Exception as error:
            raise InstructionError(f"meaning raised {type(error).__name__}: {error}") from error
        results = returned if isinstance(returned, tuple) else () if returned is None else (returned,)
        if len(results) != len(outputs):
            raise InstructionError(f"meaning: expected {len(outputs)} results but got {len(results)}")
        return tuple(_result(each, np.asarray(value), warps) for each, value in zip(outputs, results, strict=True))

    return run


def _of_lanes(operand: Operand, array: Array) -> Array:
    """What a user's function sees of an operand: its elements, of memory as well."""
    if operand.kind is Kind.ADDRESS:
        assert operand.dtype is not None
        octets = np.ascontiguousarray(array)
        return octets != 0 if operand.dtype.is_bool else octets.view(operand.dtype.numpy)
    return np.broadcast_to(array, (array.shape[0], LANES)) if operand.kind is Kind.SCALAR else array


def _result(operand: Operand, value: Array, warps: int) -> Array:
    """A result as the machine takes it. InstructionError: another shape, or a type of another kind."""
    assert operand.dtype is not None
    what = operand.name.replace("operand", "%")
    items = {Kind.SCALAR: (), Kind.FRAGMENT: (operand.registers,)}.get(
        operand.kind, (operand.bytes // operand.dtype.bytes,)
    )
    want = operand.dtype.numpy
    whole = {value.dtype.kind, want.kind} <= set("iub")
    if value.dtype != want and not whole and not np.can_cast(value.dtype, want, "same_kind"):
        raise InstructionError(f"meaning: expected an array of {operand.dtype} for {what} but got {value.dtype}")
    try:
        laid_out = np.broadcast_to(value, (warps, LANES, *items))
    except ValueError:
        shape = ", ".join(str(each) for each in ("warps", LANES, *items))
        raise InstructionError(
            f"meaning: expected an array of shape ({shape}) for {what} but got {value.shape}"
        ) from None
    typed = laid_out.astype(want)
    return typed.view(uint8.numpy) if operand.kind is Kind.ADDRESS else typed
