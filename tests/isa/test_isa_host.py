"""The C++ templates of scalar rows, run on the host, against the rows' meanings.

Every template without inline PTX and without a call of the device's functions is plain C++: a host compiler runs it as
the device does, and reports undefined behaviour.
"""

from __future__ import annotations

import ctypes
import re
import shutil
import subprocess
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
from isa_values import extremes, same, values

from warpjit.isa.row import Array, Cxx, Kind, Row
from warpjit.isa.scalar import MATH, ROWS
from warpjit.isa.scalar_text import C_TYPES

COUNT = 1000


@dataclass(frozen=True)
class Case:
    """One template of a row: its params, and which inputs it is for (None: all)."""

    row: Row
    params: Mapping[str, int]
    name: str

    @property
    def code(self) -> str:
        return self.row.written(self.params).text


def params_of(row: Row) -> Iterator[Mapping[str, int]]:
    numbers = [operand for operand in row.operands if operand.kind is Kind.IMMEDIATE]
    if numbers:
        yield from ({numbers[0].name: choice} for choice in numbers[0].choices)
        return
    yield {}
    if callable(row.code):
        yield from ({flag: 1} for flag in ("nowrap", "nonnegative", "bounded"))


def cases() -> list[Case]:
    found: dict[tuple[str, str], Case] = {}
    for row in ROWS:
        if row.meaning is None or row in MATH.values():
            continue
        for params in params_of(row):
            code = row.written(params)
            if isinstance(code, Cxx) and "asm(" not in code.text:
                found.setdefault((row.text, code.text), Case(row, params, f"f{len(found)}"))
    return list(found.values())


CASES = cases()

PRELUDE = """#include <cstring>
static float __uint_as_float(unsigned int bits) { float value; std::memcpy(&value, &bits, 4); return value; }
"""
"""The compiler's functions that the templates call."""


def function(case: Case) -> str:
    """void f(long long n, operands...): element by element."""
    operands = [operand for operand in case.row.operands if operand.kind is Kind.SCALAR]
    names = {operand.name: f"v_{operand.name}" for operand in operands} | {
        name: str(number) for name, number in case.params.items()
    }
    types = {operand.name: C_TYPES[operand.dtype.name] for operand in operands if operand.dtype is not None}
    text = re.sub(r"\{(\w+)\}", lambda found: names[found[1]], case.code.replace("{{", "\1").replace("}}", "\2"))
    text = text.replace("\1", "{").replace("\2", "}")
    loads = " ".join(
        f"{types[each.name]} v_{each.name}{f' = p_{each.name}[i]' if each.reads else ''};" for each in operands
    )
    stores = " ".join(f"p_{each.name}[i] = v_{each.name};" for each in operands if each.writes)
    arguments = ", ".join(f"{types[each.name]}* p_{each.name}" for each in operands)
    loop = f"for (long long i = 0; i < n; ++i) {{ {loads} {text} {stores} }}"
    return f'extern "C" void {case.name}(long long n, {arguments}) {{ {loop} }}\n'


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> ctypes.CDLL:
    folder = tmp_path_factory.mktemp("host")
    compiler = shutil.which("g++") or shutil.which("c++")
    assert compiler is not None, "nvcc needs a host compiler, and so does this test"
    source, binary = Path(folder, "rows.cpp"), Path(folder, "rows.so")
    source.write_text(PRELUDE + "".join(map(function, CASES)))
    flags = ["-O0", "-w", "-shared", "-fPIC", "-ffp-contract=off", "-fsanitize=undefined"]
    subprocess.run([compiler, *flags, str(source), "-o", str(binary)], check=True)
    return ctypes.CDLL(str(binary))


def legal(case: Case, arrays: list[Array]) -> Array:
    """Inputs on which the template is defined: what a flag promises, and no division that means nothing."""
    keep = np.ones(arrays[0].shape, bool)
    of = case.row.operands[1].dtype
    assert of is not None
    operation = case.row.text.split(".")[0]
    if operation in ("floordiv", "mod") and of.is_int:
        keep &= arrays[1] != 0
        if of.signed and of.bits >= 32:
            keep &= ~((arrays[0] == of.min) & (arrays[1] == -1))
    if "nonnegative" in case.params:
        keep &= (arrays[0] >= 0) & (arrays[1] > 0)
    if "bounded" in case.params or (operation == "shl" and "nowrap" in case.params):
        keep &= (arrays[1] >= 0) & (arrays[1] < of.bits)
    if "nowrap" in case.params:
        exact = _exact(operation, [array.tolist() for array in arrays])
        keep &= np.array([of.min <= each <= of.max for each in exact])
    return keep


def _exact(operation: str, arrays: list[list[int]]) -> list[int]:
    if operation == "neg":
        return [-x for x in arrays[0]]
    python = {
        "add": lambda x, y: x + y,
        "sub": lambda x, y: x - y,
        "mul": lambda x, y: x * y,
        "shl": lambda x, y: x << y if 0 <= y < 64 else 0,
    }[operation]
    return [python(x, y) for x, y in zip(*arrays, strict=True)]


def test_host_code_has_the_rows_meaning(library: ctypes.CDLL, capfd: pytest.CaptureFixture[str]) -> None:
    assert len(CASES) > 350
    wrong = []
    for case in CASES:
        reads = [each for each in case.row.operands if each.kind is Kind.SCALAR and each.reads]
        arrays = []
        for position, operand in enumerate(reads):
            assert operand.dtype is not None
            if operand.dtype.name.startswith("float8"):
                arrays.append(np.arange(2 * COUNT).astype(np.uint8).view(operand.dtype.numpy))
            else:
                of = operand.dtype.unsigned_word if operand.dtype.is_pair else operand.dtype
                edge = extremes(of)
                grid = np.repeat(edge, edge.size) if position == 0 else np.tile(edge, edge.size)
                arrays.append(np.concatenate([np.resize(grid, COUNT), values(of, COUNT, position)]))
        keep = legal(case, arrays)
        arrays = [np.ascontiguousarray(array[keep]) for array in arrays]
        assert case.row.meaning is not None
        want = np.asarray(case.row.meaning(*arrays, **case.params))
        got = np.zeros_like(want)
        pointers = [array.ctypes.data_as(ctypes.c_void_p) for array in (got, *arrays)]
        getattr(library, case.name)(ctypes.c_longlong(want.size), *pointers)
        undefined = capfd.readouterr().err
        assert "runtime error" not in undefined, (case.row, case.params, undefined[:400])
        agree = same(got, want)
        if not agree.all():
            first = int(np.flatnonzero(~agree)[0])
            wrong.append((case.row, case.params, [array[first] for array in arrays], got[first], want[first]))
    assert not wrong
