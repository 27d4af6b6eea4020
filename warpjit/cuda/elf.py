"""What a cubin says about its kernels: registers, stack, shared memory, parameters. Reads the ELF file with `struct`.

A cubin is an ELF64 file. Each kernel `k` has its code in `.text.k`, its static shared memory in `.nv.shared.k`, its
attributes in `.nv.info.k`; `.nv.info` holds, by symbol, what the linker computed (registers, stack). The attribute
numbers are those that `readelf` of the CUDA binary utilities prints as EIATTR_...; the tests compare every number
here with what ptxas reports for the same kernel.

Left out: how much of the stack is spills (the disassembly tells), relocations, debug sections.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator

from warpjit.errors import CompileError
from warpjit.record import record

_FILE_HEADER = struct.Struct("<16sHHIQQQIHHHHHH")
_SECTION_HEADER = struct.Struct("<IIQQQQIIQQ")
_SYMBOL = struct.Struct("<IBBHQQ")
_ATTRIBUTE = struct.Struct("<BBH")
_NO_DATA = 8  # section type NOBITS: a size, but no bytes in the file
_ENTRY = 0x10  # st_other of a symbol that can be launched
_SIZED_VALUE = 4  # format of an attribute whose value follows it; other formats hold it in the header

_MIN_STACK_SIZE = 0x12
_PARAMETER_INFO = 0x17
_PARAMETER_BYTES = 0x19
_REGISTER_COUNT = 0x2F
_BARRIER_COUNT = 0x4C

_RESERVED_SHARED = 1024
"""What the section of a kernel's shared memory begins with where `.nv.shared.reserved.0` exists (sm_90 and later)."""


@record
class Section:
    """A section of the file. `size` is in bytes; `data` is empty if the section has none in the file."""

    name: str
    kind: int
    info: int
    size: int
    data: bytes


@record
class Parameter:
    """Where a kernel's parameter is in constant memory, from the first one on: offset and size in bytes.

    The order and the sizes are those of the declaration. An offset is C's unless an alignment above 16 is asked for:
    that one is counted from the start of the constant bank, so a 64-byte aligned first parameter has offset 48 on
    sm_90. A launch that hands over one pointer per parameter need not know.
    """

    offset: int
    size: int


@record
class Resources:
    """What one kernel takes.

    `registers` per thread; `stack_bytes` of local memory per thread (arrays in memory and spills, of called functions
    too); `shared_bytes` of static shared memory per block, without what the system reserves; `barriers`, one more than
    the highest named barrier used; `parameters` in order, and the bytes that they fill.
    """

    registers: int
    stack_bytes: int
    shared_bytes: int
    barriers: int
    parameters: tuple[Parameter, ...]
    parameter_bytes: int


@record
class _Attribute:
    number: int
    words: tuple[int, ...]


def resources(cubin: bytes) -> dict[str, Resources]:
    """The resources of every kernel in `cubin`, by name. Raises `CompileError` if it is not a cubin."""
    by_name = {section.name: section for section in sections(cubin)}
    linked = list(_attributes(by_name.get(".nv.info")))
    registers, stacks = _per_symbol(linked, _REGISTER_COUNT), _per_symbol(linked, _MIN_STACK_SIZE)
    reserved = _RESERVED_SHARED if ".nv.shared.reserved.0" in by_name else 0
    return {
        name: _resources(name, by_name, registers.get(symbol), stacks.get(symbol, 0), reserved)
        for symbol, name in _kernels(by_name)
    }


def sections(cubin: bytes) -> list[Section]:
    """The sections of a cubin, in the file's order. Raises `CompileError` if `cubin` is not an ELF64 file."""
    try:
        header = _FILE_HEADER.unpack_from(cubin)
        if header[0][:5] != b"\x7fELF\x02":
            raise CompileError("this is not a cubin: it does not begin as an ELF64 file")
        offset, size, count, names = header[6], header[11], header[12], header[13]
        rows = [_SECTION_HEADER.unpack_from(cubin, offset + index * size) for index in range(count)]
        return [_section(cubin, row, rows[names][4]) for row in rows]
    except (struct.error, IndexError, ValueError) as error:
        raise CompileError(f"this cubin is damaged: {error}") from error


def _section(cubin: bytes, row: tuple[int, ...], names: int) -> Section:
    data = b"" if row[1] == _NO_DATA else cubin[row[4] : row[4] + row[5]]
    return Section(_text_at(cubin, names + row[0]), row[1], row[7], row[5], data)


def _text_at(data: bytes, start: int) -> str:
    return data[start : data.index(b"\0", start)].decode()


def _kernels(by_name: dict[str, Section]) -> Iterator[tuple[int, str]]:
    """Number and name of each symbol that can be launched."""
    symbols, names = by_name.get(".symtab"), by_name.get(".strtab")
    if symbols is None or names is None:
        return
    for number, (name, _, other, _, _, _) in enumerate(_SYMBOL.iter_unpack(symbols.data)):
        if other & _ENTRY and (text := _text_at(names.data, name)) and f".text.{text}" in by_name:
            yield number, text


def _attributes(section: Section | None) -> Iterator[_Attribute]:
    data, offset = (section.data if section else b""), 0
    while offset + _ATTRIBUTE.size <= len(data):
        form, number, value = _ATTRIBUTE.unpack_from(data, offset)
        offset += _ATTRIBUTE.size
        if form != _SIZED_VALUE:
            yield _Attribute(number, (value,))
            continue
        yield _Attribute(number, struct.unpack_from(f"<{value // 4}I", data, offset))
        offset += value


def _per_symbol(attributes: list[_Attribute], number: int) -> dict[int, int]:
    return {attribute.words[0]: attribute.words[1] for attribute in attributes if attribute.number == number}


def _resources(name: str, by_name: dict[str, Section], registers: int | None, stack: int, reserved: int) -> Resources:
    own = list(_attributes(by_name.get(f".nv.info.{name}")))
    single = {attribute.number: attribute.words[0] for attribute in own if len(attribute.words) == 1}
    shared = by_name.get(f".nv.shared.{name}")
    return Resources(
        # Where .nv.info has no count (older toolkits) it is in the upper byte of the code section's sh_info.
        registers=by_name[f".text.{name}"].info >> 24 if registers is None else registers,
        stack_bytes=stack,
        shared_bytes=max(shared.size - reserved, 0) if shared else 0,
        barriers=single.get(_BARRIER_COUNT, 0) & 0xFF,
        parameters=tuple(_parameters(own)),
        parameter_bytes=single.get(_PARAMETER_BYTES, 0),
    )


def _parameters(attributes: list[_Attribute]) -> list[Parameter]:
    """In order. The attribute's words: an index; ordinal and offset, 16 bits each; the size from bit 18 on."""
    found = [attribute.words for attribute in attributes if attribute.number == _PARAMETER_INFO]
    ordered = sorted(found, key=lambda words: words[1] & 0xFFFF)
    return [Parameter(words[1] >> 16, words[2] >> 18) for words in ordered]
