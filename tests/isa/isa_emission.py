"""A small emitter for tests: one kernel for each row, every operand a plain variable loaded from or stored to memory.

Independent of the package's own emitter, so that a row's code is tested by itself.
"""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterable, Mapping
from pathlib import Path

from warpjit.ir.dtypes import DType
from warpjit.isa.row import Asm, Cxx, Kind, Operand, Row
from warpjit.isa.scalar_text import C_TYPES

_HOLE = re.compile(r"\{\{|\}\}|\{(\w+(?:\[\d+\])?)\}")


def c_type(dtype: DType) -> str:
    return C_TYPES.get(dtype.name, "unsigned long long")


def _register_type(dtype: DType) -> tuple[str, str]:
    """C type and constraint inside an asm statement."""
    if dtype.bits == 8:
        return ("int" if dtype.kind == "int" else "unsigned int"), "r"
    letter = {"float32": "f", "float64": "d"}.get(dtype.name) or {16: "h", 32: "r", 64: "l"}[dtype.bits]
    return c_type(dtype), letter


def _fill(text: str, names: Mapping[str, str]) -> str:
    def one(found: re.Match[str]) -> str:
        return {"{{": "{", "}}": "}"}.get(found[0]) or names[found[1]]

    return _HOLE.sub(one, text)


def _count(operand: Operand) -> int:
    return operand.registers if operand.kind is Kind.FRAGMENT else 1


def kernel(row: Row, name: str, params: Mapping[str, int], given: frozenset[str] | None = None) -> str:
    """A kernel (char* operand0, char* operand1, ...): thread i reads and writes element i of each operand.

    Fragments are (thread, register); global addresses point at element i of `bytes`; shared operands and barriers at
    16 bytes a thread of a static array.
    """
    return _function(name, len(row.operands), body(row, params, given))


def together(uses: Iterable[tuple[Row, Mapping[str, int], frozenset[str]]], name: str) -> str:
    """A kernel of many rows, one after the other, for who asks only whether they assemble: kernels take most time.

    The shared arrays of all are one that the launch would give.
    """
    arguments, blocks = 1, []
    for row, params, given in uses:
        arguments = max(arguments, len(row.operands))
        lines = [re.sub(r"^(__shared__ .*)\[16 \* 1024\];", r"extern \1[];", line) for line in body(row, params, given)]
        # Stores that the next row's hide would be dropped, and the row with them.
        blocks += ["{", *lines, "}", 'asm volatile("" ::: "memory");']
    return _function(name, arguments, blocks)


def _function(name: str, arguments: int, lines: list[str]) -> str:
    parameters = ", ".join(f"char* p{index}" for index in range(max(arguments, 1)))
    text = "\n  ".join(["const int i = blockIdx.x * blockDim.x + threadIdx.x;", *lines])
    return f'extern "C" __global__ void {name}({parameters}) {{\n  {text}\n}}\n'


def body(row: Row, params: Mapping[str, int], given: frozenset[str] | None = None) -> list[str]:
    """The lines of `kernel`."""
    code = row.written(params, given)
    operands = [each for each in row.operands if not (each.optional and given is not None and each.name not in given)]
    lines, after, names = [], [], {key: str(number) for key, number in params.items()}
    outputs, inputs = [], []
    for position, operand in enumerate(each for each in operands if each.kind is not Kind.IMMEDIATE):
        argument = f"p{position}"
        if operand.kind in (Kind.ADDRESS, Kind.BARRIER):
            _address(operand, argument, code, lines, after, names, inputs)
            continue
        assert operand.dtype is not None
        registers = [f"{operand.name}_{index}" for index in range(_count(operand))]
        kind, letter = _register_type(operand.dtype) if isinstance(code, Asm) else (c_type(operand.dtype), "")
        memory = f"(({c_type(operand.dtype)}*){argument})"
        for index, register in enumerate(registers):
            place = f"{memory}[i * {len(registers)} + {index}]"
            lines.append(f"{kind} {register}" + (f" = {place};" if operand.reads else ";"))
            if operand.writes:
                after.append(f"{place} = {register};")
                outputs.append(f'"{"+" if operand.reads else "="}{letter}"({register})')
            else:
                inputs.append(f'"{letter}"({register})')
        names[operand.name] = "\0" + operand.name if isinstance(code, Asm) else registers[0]
    if isinstance(code, Asm):
        statement = _asm(code, row, operands, names, outputs, inputs)
    else:
        statement = _fill(code.text, names)
    return [*lines, statement, *after]


def _address(
    operand: Operand,
    argument: str,
    code: Asm | Cxx,
    lines: list[str],
    after: list[str],
    names: dict[str, str],
    inputs: list[str],
) -> None:
    stride = operand.bytes or 16
    pointer = f"({argument} + (long long)i * {stride})"
    if operand.space == "shared":
        # Shared memory is filled from the argument before, and written back to it afterwards.
        copy = f"for (int j = 0; j < {stride}; ++j)"
        mine = f"s_{operand.name}[threadIdx.x * {stride} + j]"
        lines.append(f"__shared__ __align__(16) char s_{operand.name}[16 * 1024];")
        lines.append(f"{copy} {mine} = {pointer}[j]; __syncthreads();")
        after.append(f"__syncthreads(); {copy} {pointer}[j] = {mine};")
        pointer = f"(s_{operand.name} + threadIdx.x * {stride})"
    if isinstance(code, Asm):
        register = f"a_{operand.name}"
        if operand.space == "shared":
            lines.append(
                f'unsigned int {register}; asm("{{ .reg .u64 t; cvta.to.shared.u64 t, %1; cvt.u32.u64 %0, t; }}" '
                f': "=r"({register}) : "l"({pointer}));'
            )
        else:
            lines.append(f"char* {register} = {pointer};")
        inputs.append(f'"{"r" if operand.space == "shared" else "l"}"({register})')
        names[operand.name] = "\0" + operand.name
    else:
        assert operand.dtype is not None
        names[operand.name] = f"*({c_type(operand.dtype)}*){pointer}"


def _asm(
    code: Asm, row: Row, operands: list[Operand], names: dict[str, str], outputs: list[str], inputs: list[str]
) -> str:
    """The asm statement: written operands are numbered first, then the others, both in the row's order."""
    number = 0
    bound = [each for each in operands if each.kind is not Kind.IMMEDIATE]
    memory_kinds = (Kind.ADDRESS, Kind.BARRIER)
    written = [each for each in bound if each.writes and each.kind not in memory_kinds]
    for operand in written + [each for each in bound if each not in written]:
        numbers = [f"%{number + index}" for index in range(_count(operand))]
        number += len(numbers)
        names[operand.name] = "{" + ", ".join(numbers) + "}" if operand.kind is Kind.FRAGMENT else numbers[0]
        names.update((f"{operand.name}[{index}]", each) for index, each in enumerate(numbers))
    clobber = ' : "memory"' if row.memory else ""
    text = _fill(code.text, names)
    return f'asm {"volatile" if row.memory else ""}("{text}" : {", ".join(outputs)} : {", ".join(inputs)}{clobber});'


def compile_ptx(text: str, target: str, folder: Path) -> Path:
    """nvcc's PTX of `text` for "sm_90a"."""
    source, ptx = folder / f"{target}.cu", folder / f"{target}.ptx"
    source.write_text(text)
    virtual = target.replace("sm_", "compute_")
    subprocess.run(["nvcc", "-std=c++17", "-w", "-ptx", f"-arch={virtual}", str(source), "-o", str(ptx)], check=True)
    return ptx


def entries(ptx: str) -> tuple[str, dict[str, str]]:
    """PTX of kernels: what all of them share, and the text of each by its name."""
    shared, *parts = re.split(r"^(?=\.visible \.entry |\.func )", ptx, flags=re.MULTILINE)
    kernels = {re.findall(r"\w+", part)[2]: part for part in parts if not part.startswith(".func")}
    return "".join([shared, *(part for part in parts if part.startswith(".func"))]), kernels


def assemble(ptx: Path, target: str, output: Path) -> str:
    """What ptxas says, empty if it is content. What it does not optimise it assembles as well."""
    done = subprocess.run(
        ["ptxas", "-w", "-O0", "-arch", target, str(ptx), "-o", str(output)],
        capture_output=True,
        text=True,
        check=False,
    )
    return "" if done.returncode == 0 else done.stdout + done.stderr
