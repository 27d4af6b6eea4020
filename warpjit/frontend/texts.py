"""Texts that hold values of the device, and the formats of C that print them.

An f-string with a device value in it is a `Text`: pieces that `print`, `T.printf` and the messages of assertions take.
`printable` turns a piece into a format and an operand; `checked_format` holds a user's own format to its arguments.
What becomes of them is `debugging`'s.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from warpjit.errors import TraceError
from warpjit.frontend import arithmetic
from warpjit.frontend.builder import Builder
from warpjit.frontend.literals import describe
from warpjit.frontend.values import Scalar, Text, TextPiece, Value, is_kernel_value, is_number
from warpjit.ir import dtypes
from warpjit.ir.dtypes import DType
from warpjit.ir.nodes import Atom
from warpjit.isa.printing import MAX_ARGUMENTS


@dataclass
class Printable:
    """A format under construction, with the operands that fill it."""

    builder: Builder
    what: str
    format: str = ""
    atoms: list[Atom] = field(default_factory=list)
    dtypes: list[DType] = field(default_factory=list)

    def write(self, text: str) -> None:
        """Text as it stands. C's functions end at a character 0."""
        if "\0" in text:
            raise TraceError(f"{self.what}: expected a text without the character 0")
        self.format += text.replace("%", "%%")

    def add(self, conversion: str, scalar: Scalar) -> None:
        """A value by one conversion."""
        self.format += conversion
        self.atoms.append(self.builder.atom(scalar))
        self.dtypes.append(scalar.dtype)
        if len(self.atoms) > MAX_ARGUMENTS:
            raise TraceError(f"{self.what}: expected at most {MAX_ARGUMENTS} values but got more")

    def put(self, value: Value) -> None:
        """A value as `print` shows it."""
        pieces = value.pieces if isinstance(value, Text) else (TextPiece(value),) if isinstance(value, Scalar) else None
        if pieces is None:
            if is_kernel_value(value):
                raise TraceError(
                    f"{self.what}: expected numbers and texts but got {describe(value)}: print its elements"
                )
            self.write(str(value))
            return
        for piece in pieces:
            if isinstance(piece, str):
                self.write(piece)
            else:
                self.add(*_shown(self.builder, piece))


# ---- f-strings ------------------------------------------------------------------------------------------

_SPEC = re.compile(r"(?P<align>[<>])?(?P<flags>[-+ #]*)(?P<zero>0?)(?P<width>\d*)(?P<precision>\.\d+)?(?P<type>\w?)")
MAX_WIDTH = 1000
"""The widest field, and the longest precision, that is printed: what is longer is a slip, and fills memory."""
_TYPES = {"bool": "", "int": "dxXoc", "float": "eEfFgG"}


def check_widths(what: str, conversion: str) -> None:
    """TraceError: a width or precision that nobody means."""
    for digits in re.findall(r"\d+", conversion):
        if len(digits) > len(str(MAX_WIDTH)) or int(digits) > MAX_WIDTH:
            raise TraceError(f"{what}: expected widths and precisions up to {MAX_WIDTH} but got {digits}")


def formatted(scalar: Scalar, spec: str) -> TextPiece:
    """`{value:spec}`. TraceError: a specification that C's formats cannot say."""
    found = _SPEC.fullmatch(spec)
    kind = "bool" if scalar.dtype.is_bool else "float" if scalar.dtype.is_float else "int"
    legal = _TYPES[kind]
    if found is None or found["type"] not in legal:
        types = f", one of {', '.join(legal)}" if legal else ""
        raise TraceError(
            f"expected a format [<>][+ #][0][width][.precision]{types} for {describe(scalar)} but got {spec!r}"
        )
    check_widths("the format of an f-string", spec)
    left = "-" if found["align"] == "<" else ""
    return TextPiece(
        scalar, f"%{left}{found['flags']}{found['zero']}{found['width']}{found['precision'] or ''}", found["type"]
    )


def joined(parts: Sequence[Value]) -> Value:
    """An f-string of its parts: a string, or a text if one holds a device value."""
    if not any(isinstance(part, TextPiece | Text) for part in parts):
        return "".join(str(part) for part in parts)
    pieces: list[str | TextPiece] = []
    for part in parts:
        pieces += part.pieces if isinstance(part, Text) else [part]
    return Text(tuple(pieces))


def _shown(builder: Builder, piece: TextPiece) -> tuple[str, Scalar]:
    """The conversion and the operand of a piece."""
    scalar, dtype = piece.scalar, piece.scalar.dtype
    if dtype.is_bool:
        return f"{piece.flags}s", scalar
    if dtype.is_float:
        return f"{piece.flags}{piece.type or 'g'}", arithmetic.convert(builder, scalar, dtypes.float64)
    letter = piece.type or "d"
    if letter == "d" and not dtype.signed:
        letter = "u"
    return _integer(builder, piece.flags, letter, scalar)


def _integer(builder: Builder, flags: str, letter: str, scalar: Scalar) -> tuple[str, Scalar]:
    if letter == "c":  # C prints the low byte
        scalar = arithmetic.binary(builder, "and", scalar, 0xFF)
    wide = scalar.dtype.bits == 64
    of = dtypes.dtype(f"{'int' if letter in 'dic' else 'uint'}{64 if wide else 32}")
    return f"{flags}{'ll' if wide else ''}{letter}", arithmetic.convert(builder, scalar, of)


# ---- formats of C ---------------------------------------------------------------------------------------

_CONVERSION = re.compile(r"%(?P<flags>[-+ #0]*\d*(?:\.\d+)?)(?P<size>hh|h|ll|l|j|z|t|L)?(?P<letter>.)?", re.DOTALL)


def fill_format(printable: Printable, text: str, args: Sequence[Value]) -> None:
    """A format of the user's with its arguments. TraceError: they do not fit, or are not as many."""
    rest = list(args)
    end = number = 0
    for found in _CONVERSION.finditer(text):
        printable.write(text[end : found.start()])
        end = found.end()
        if found[0] == "%%":
            printable.write("%")
            continue
        handler = _LETTERS.get(found["letter"])
        if handler is None:
            raise TraceError(
                f"{printable.what}: format: expected one of %{' %'.join(_LETTERS)} or %% but got {found[0]!r}"
            )
        number += 1
        check_widths(f"{printable.what}: format", found["flags"])
        if not rest:
            raise TraceError(f"{printable.what}: expected a value for each conversion, but {found[0]!r} has none")
        handler(printable, f"{printable.what}: argument {number}", found, rest.pop(0))
    printable.write(text[end:])
    if rest:
        raise TraceError(f"{printable.what}: expected a conversion for each value, but {len(rest)} have none")


def _mismatch(what: str, wanted: str, found: re.Match[str], value: Value) -> TraceError:
    return TraceError(f'{what}: expected {wanted} for "{found[0]}" but got {describe(value)}')


def _number(printable: Printable, what: str, wanted: str, found: re.Match[str], value: Value) -> Scalar:
    if isinstance(value, Scalar):
        return value
    if not is_number(value):
        raise _mismatch(what, wanted, found, value)
    wide = isinstance(value, int) and found["size"] is not None
    return (
        arithmetic.literal(printable.builder, value, dtypes.int64)
        if wide
        else arithmetic.natural(printable.builder, value)
    )


def _whole(signed: bool | None) -> Callable[[Printable, str, re.Match[str], Value], None]:
    """Integers: signed ones, unsigned ones, or either. A size of `l` or `ll` is for 64 bits."""

    def run(printable: Printable, what: str, found: re.Match[str], value: Value) -> None:
        wide = found["size"] in ("l", "ll")
        sign = {True: "a signed ", False: "an unsigned ", None: "an "}[signed]
        wanted = f"{sign}integer of {'64 bits' if wide else 'at most 32 bits'}"
        scalar = _number(printable, what, wanted, found, value)
        dtype = scalar.dtype
        narrow = dtype.bits < 32 or dtype.is_bool  # which C promotes to int
        fits = dtype.is_bool or (dtype.is_int and (dtype.bits == 64) == wide)
        suits = signed is None or narrow or is_number(value) or dtype.signed == signed
        if not fits or not suits or found["size"] not in (None, "l", "ll"):
            raise _mismatch(what, wanted, found, value)
        printable.add(*_integer(printable.builder, f"%{found['flags']}", found["letter"], scalar))

    return run


def _float(printable: Printable, what: str, found: re.Match[str], value: Value) -> None:
    scalar = _number(printable, what, "a float", found, value)
    if not scalar.dtype.is_float or found["size"] not in (None, "l"):
        raise _mismatch(what, "a float", found, value)
    converted = arithmetic.convert(printable.builder, scalar, dtypes.float64)
    printable.add(f"%{found['flags']}{found['letter']}", converted)


def _string(printable: Printable, what: str, found: re.Match[str], value: Value) -> None:
    """Known while tracing, so it becomes part of the format."""
    if not isinstance(value, str) or found["size"]:
        raise _mismatch(what, "a string", found, value)
    printable.write(f"%{found['flags']}s" % value)


_LETTERS: dict[str, Callable[[Printable, str, re.Match[str], Value], None]] = {
    **dict.fromkeys("di", _whole(True)),
    "u": _whole(False),
    **dict.fromkeys("oxXc", _whole(None)),
    **dict.fromkeys("eEfFgG", _float),
    "s": _string,
}
