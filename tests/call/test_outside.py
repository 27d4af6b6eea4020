"""What a trace takes from outside: a change of it, of every kind, is noticed by other processes and the next call."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from call_kernels import CudaTensor
from processes import Processes

TEXT = """
import collections, enum, functools, operator, types
from dataclasses import dataclass, field
from typing import NamedTuple
from warpjit import T, warpjit

DEFINITION

@warpjit
def kernel(Out: T.Tensor((32,), "int32")):
    T.device_entry(launch=T.cuda.LaunchConfig(grid=1, block=32))
    Out[T.cuda.lane_id()] = EXPRESSION
"""

EDITS = {
    "the value of an enum": ("class E(enum.Enum):\n    A = 3", "E.A.value", "A = 3", "A = 4"),
    "of an int's enum": ("class E(enum.IntEnum):\n    A = 3", "E.A + 1", "A = 3", "A = 4"),
    "what an enum makes of it": (
        "class E(enum.Enum):\n    A = (3, 4)\n    def __init__(self, a, b):\n        self.c = a + b",
        "E.A.c",
        "(3, 4)",
        "(3, 5)",
    ),
    "the size of an enum": ("class E(enum.Enum):\n    A = 3\n    B = 4", "len(E)", "B = 4", "B = 4\n    C = 5"),
    "the order of fields": (
        "@dataclass(frozen=True)\nclass P:\n    a: int\n    b: int",
        "P(1, 2).a",
        "a: int\n    b: int",
        "b: int\n    a: int",
    ),
    "the default of a slot": (
        "@dataclass(frozen=True, slots=True)\nclass P:\n    a: int = 3",
        "P().a",
        "a: int = 3",
        "a: int = 4",
    ),
    "a default that is made": (
        "@dataclass(frozen=True)\nclass P:\n    a: tuple = field(default_factory=lambda: (3,))",
        "P().a[0]",
        "(3,)",
        "(4,)",
    ),
    "the order of a named tuple": (
        "class P(NamedTuple):\n    a: int\n    b: int",
        "P(1, 2).a",
        "a: int\n    b: int",
        "b: int\n    a: int",
    ),
    "a named tuple's default": ("class P(NamedTuple):\n    a: int = 3", "P().a", "a: int = 3", "a: int = 4"),
    "the class of a class": (
        "class M(type):\n    def __len__(kind):\n        return 3\nclass C(metaclass=M):\n    pass",
        "len(C)",
        "return 3",
        "return 4",
    ),
    "a keyword's default": ("def f(x, *, k=3):\n    return x * k", "f(T.cuda.lane_id())", "k=3", "k=4"),
}


@pytest.mark.parametrize("definition, expression, old, new", EDITS.values(), ids=EDITS)
def test_an_edit_is_noticed_by_another_process(
    processes: Processes, definition: str, expression: str, old: str, new: str
) -> None:
    text = TEXT.replace("DEFINITION", definition).replace("EXPRESSION", expression)
    out = CudaTensor(32, dtype=torch.int32)
    assert [processes.call(text, out) for _ in range(2)] == [(1, 1), (0, 0)]
    assert processes.call(text.replace(old, new), out)[0] == 1


HIDDEN = {
    "an attribute by another name": ("import math as m", "operator.attrgetter('pi')(m) > 3"),
    "a module's names": ("import math as m", "vars(m)['pi'] > 3"),
    "one of them in a helper": ("import math as m\ndef f():\n    return getattr(m, 'pi') > 3", "f()"),
    "a module that a helper is given": ("import math as m\ndef f(m):\n    return m.pi > 3", "f(m)"),
    "the process": ("", "hash('a') > 0"),
    "functions by types": (
        "@functools.singledispatch\ndef f(x):\n    return 0\n@f.register\ndef _(x: int):\n    return x + 1",
        "f(1)",
    ),
}


@pytest.mark.parametrize("definition, expression", HIDDEN.values(), ids=HIDDEN)
def test_what_no_capture_shows_is_traced_anew(processes: Processes, definition: str, expression: str) -> None:
    text = TEXT.replace("DEFINITION", definition).replace("EXPRESSION", f"int({expression})")
    out = CudaTensor(32, dtype=torch.int32)
    assert [processes.call(text, out)[0] for _ in range(2)] == [1, 1]


CHANGES = {
    "getattr": ("N = types.ModuleType('N')\nN.x = 3", "getattr(N, 'x')", "N", "x"),
    "an attribute that comes later": ("N = types.ModuleType('N')", "getattr(N, 'x', 3)", "N", "x"),
    "a class that a helper reads": ("class N:\n    x = 3\ndef f():\n    return N.x", "f()", "N", "x"),
    "one below it": ("class N:\n    x = 3\nclass M(N):\n    pass\ndef f():\n    return M.x", "f()", "N", "x"),
    "the class of an object": ("class N:\n    x = 3\nn = N()\ndef f():\n    return n.x", "f()", "N", "x"),
    "an object": (
        "class C:\n    def __init__(self):\n        self.x = 3\nN = C()\ndef f():\n    return N.x",
        "f()",
        "N",
        "x",
    ),
    "one in a closure": (
        "class N:\n    x = 3\ndef made(kind):\n    def f():\n        return kind.x\n    return f\nf = made(N)",
        "f()",
        "N",
        "x",
    ),
    "what a property reads": (
        "class N:\n    x = 3\n@dataclass(frozen=True)\nclass P:\n    @property\n"
        "    def p(self):\n        return N.x\np = P()",
        "p.p",
        "N",
        "x",
    ),
    "a variable of a frozen class": (
        "@dataclass(frozen=True)\nclass N:\n    a: int = 1\n    x = 3\np = N()",
        "p.x",
        "N",
        "x",
    ),
}


@pytest.mark.parametrize("definition, expression, owner, name", CHANGES.values(), ids=CHANGES)
def test_a_change_is_noticed_by_the_next_call(
    processes: Processes, definition: str, expression: str, owner: str, name: str
) -> None:
    module: Any = processes.module(TEXT.replace("DEFINITION", definition).replace("EXPRESSION", expression))

    def called() -> list[int]:
        out = torch.zeros(32, dtype=torch.int32)
        module.kernel(out)
        return list(set(out.tolist()))

    assert [called(), called()] == [[3], [3]]
    setattr(getattr(module, owner), name, 5)
    assert called() == [5]
