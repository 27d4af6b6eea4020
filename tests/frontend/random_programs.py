"""Random integer programs as text: for the tracer, and the same for Python with 32-bit integers.

A program is the body of a helper `body(lane, n, x, out)`; `x` and `out` have 8 elements a lane. Literals are written
`3` for the tracer and `I(3)` for Python, where `I` wraps as int32 does. An overflow among literals only, which the
tracer computes exactly and then refuses, raises `Skip`: such a program says nothing.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, field

SIZE = 8


class Skip(Exception):
    """The program leaves what this comparison covers."""


class I:  # noqa: E742
    """An int32; `fixed` while it is made of literals only."""

    def __init__(self, value: int, fixed: bool = True):
        wrapped = (value + 2**31) % 2**32 - 2**31
        if fixed and wrapped != value:
            raise Skip
        self.value, self.fixed = wrapped, fixed

    def __index__(self) -> int:
        return self.value

    def __bool__(self) -> bool:
        return self.value != 0

    def __neg__(self) -> I:
        return I(-self.value, self.fixed)

    def __invert__(self) -> I:
        return I(~self.value, self.fixed)

    def __abs__(self) -> I:
        return I(abs(self.value), self.fixed)


def _binary(name: str):
    def run(self: I, other: I) -> I:
        return I(getattr(int, name)(self.value, other.value), self.fixed and other.fixed)

    return run


def _compare(name: str):
    return lambda self, other: getattr(int, name)(self.value, other.value)


for _name in ("add", "sub", "mul", "floordiv", "mod", "and", "or", "xor", "lshift", "rshift"):
    setattr(I, f"__{_name}__", _binary(f"__{_name}__"))
for _name in ("lt", "le", "eq", "ne", "gt", "ge"):
    setattr(I, f"__{_name}__", _compare(f"__{_name}__"))


@dataclass
class Writer:
    """One program being written; `names` are bound on every path."""

    rng: random.Random
    lines: list[str] = field(default_factory=list)
    names: list[str] = field(default_factory=lambda: ["lane", "n"])
    counters: int = 0
    loops: int = 0
    unrolled: bool = False  # the innermost loop is expanded: it can only be left under static conditions
    helper: bool = False  # in a helper's body: it may return

    def pick(self, *choices: str) -> str:
        return self.rng.choice(choices)

    def literal(self) -> str:
        return f"<{self.rng.choice((-3, -1, 0, 1, 2, 3, 4, 5, 7, 8, 16, 31))}>"

    def expression(self, depth: int = 2) -> str:
        kind = self.rng.random()
        if depth == 0 or kind < 0.25:
            return self.literal() if self.rng.random() < 0.35 else self.rng.choice(self.names)
        a, b = self.expression(depth - 1), self.expression(depth - 1)
        if kind < 0.6:
            return f"({a} {self.pick('+', '-', '*', '&', '|', '^')} {b})"
        if kind < 0.7:
            return f"({a} {self.pick('//', '%')} {self.pick('<3>', '<8>', '<-4>', f'({b} % <5> + <1>)')})"
        if kind < 0.75:
            return f"({a} {self.pick('<<', '>>')} {self.pick('<1>', '<3>')})"
        if kind < 0.82:
            return f"{self.pick('min', 'max')}({a}, {b})"
        if kind < 0.86:
            return f"{self.pick('-', '~')}{a}"
        if kind < 0.9 and not self.helper:
            return f"h({a}, {b})"
        if kind < 0.94:
            return f"({a} if {self.condition(depth - 1)} else {b})"
        return f"x[{a} % <{SIZE}>]" if self.helper or kind < 0.98 else f"r[{self.pick('<0>', '<3>')}]"

    def condition(self, depth: int = 1) -> str:
        a, b = self.expression(depth), self.expression(depth)
        kind = self.rng.random()
        if depth and kind < 0.3:
            return f"({self.condition(depth - 1)} {self.pick('and', 'or')} {self.condition(depth - 1)})"
        if kind < 0.4:
            return f"not {a} {self.pick('<', '==')} {b}"
        if kind < 0.5:
            return f"{a} {self.pick('<', '<=')} {b} < {self.expression(0)}"
        return f"{a} {self.pick('<', '<=', '==', '!=', '>', '>=')} {b}"

    def emit(self, indent: int, text: str) -> None:
        self.lines.append("    " * indent + text)

    def block(self, indent: int, size: int) -> None:
        known = len(self.names)
        for _ in range(size):
            self.statement(indent)
        del self.names[known:]

    def statement(self, indent: int) -> None:
        kind = self.rng.random()
        deep = indent > 4
        if kind < 0.45 or (deep and kind < 0.75):
            self.assignment(indent)
        elif kind < 0.6 or deep:
            self.emit(indent, f"out[{self.expression(1)} % <{SIZE}>] {self.pick('=', '+=', '-=')} {self.expression()}")
        elif kind < 0.8:
            self.branch(indent)
        else:
            self.loop(indent)

    def assignment(self, indent: int) -> None:
        name = self.rng.choice("abcd")
        if name in self.names and self.rng.random() < 0.3:
            self.emit(indent, f"{name} {self.pick('+=', '-=', '*=', '^=')} {self.expression(1)}")
        elif self.rng.random() < 0.15 and {"a", "b"} <= set(self.names):
            self.emit(indent, f"a, b = b, {self.expression(1)}")
        else:
            self.emit(indent, f"{name} = {self.expression()}")
            if name not in self.names:
                self.names.append(name)

    def branch(self, indent: int) -> None:
        self.emit(indent, f"if {self.condition()}:")
        self.block(indent + 1, self.rng.randint(1, 3))
        if self.helper and not self.loops and self.rng.random() < 0.5:
            self.emit(indent + 1, f"return {self.expression()}")
        elif self.loops and not self.unrolled and self.rng.random() < 0.2:
            self.emit(indent + 1, self.pick("break", "continue"))
        elif not self.helper and not self.unrolled and self.rng.random() < 0.05:
            self.emit(indent + 1, "return")
        if self.rng.random() < 0.3:
            self.emit(indent, f"elif {self.condition()}:")
            self.block(indent + 1, self.rng.randint(1, 2))
        if self.rng.random() < 0.5:
            self.emit(indent, "else:")
            self.block(indent + 1, self.rng.randint(1, 2))

    def loop(self, indent: int) -> None:
        self.counters += 1
        name = f"i{self.counters}"
        if self.rng.random() < 0.25:
            self.expanded(indent, name)
            return
        outer, self.unrolled = self.unrolled, False
        if self.rng.random() < 0.3:
            self.emit(indent, f"{name} = {self.pick('<0>', '<1>')}")
            self.emit(indent, f"while {name} < {self.pick('<4>', 'n')} and {self.condition(0)}:")
            self.emit(indent + 1, f"{name} += <1>")
        else:
            self.emit(indent, f"for {name} in {self.range()}:")
        self.names.append(name)
        self.loops += 1
        self.block(indent + 1, self.rng.randint(1, 3))
        self.loops -= 1
        self.unrolled = outer
        self.names.remove(name)

    def expanded(self, indent: int, name: str) -> None:
        """A loop whose variable must be static, for it is a register index."""
        outer, self.unrolled = self.unrolled, True
        self.emit(indent, f"for {name} in {self.pick('range(<4>)', 'unroll(<3>)', 'range(<3>, <-1>, -1)')}:")
        self.names.append(name)
        self.loops += 1
        if self.rng.random() < 0.3:
            self.emit(indent + 1, f"if {name} {self.pick('==', '>')} <2>:")
            self.emit(indent + 2, self.pick("break", "continue"))
        self.block(indent + 1, 1)
        self.emit(indent + 1, f"r[{name}] {self.pick('=', '+=')} {self.expression()}")
        self.emit(indent + 1, f"a = r[{self.pick('<0>', f'{name} ^ <1>')}]")
        self.loops -= 1
        self.unrolled = outer
        self.names.remove(name)

    def define(self) -> None:
        """A nested helper with early returns."""
        inner = Writer(self.rng, names=["v", "w", "lane", "a", "b"], helper=True)
        inner.block(2, 4)
        inner.emit(2, f"return {inner.expression()}")
        self.lines += ["    def h(v, w):", *("        a = v", "        b = w"), *inner.lines]

    def range(self) -> str:
        stop = self.pick("<3>", "<4>", "n", "(lane % <4>)", f"({self.expression(1)} % <5>)")
        return self.pick(f"range({stop})", f"range(<1>, {stop})", f"range({stop}, <-1>, -1)", f"range(<0>, {stop}, 2)")


def program(seed: int, size: int = 9) -> str:
    """The statements of one program, literals in angle brackets."""
    writer = Writer(random.Random(seed))
    writer.define()
    for index in range(4):
        writer.emit(1, f"r[<{index}>] = <{index}>")
    for name in "abc":
        writer.emit(1, f"{name} = {writer.pick('<0>', '<2>', 'lane', 'x[<1>]')}")
        writer.names.append(name)
    writer.block(1, size)
    for index, name in enumerate("abc"):
        writer.emit(1, f"out[<{index}>] += {name}")
    return "\n".join(writer.lines)
