"""Random statements that bind names and write memory: names of one type for life, tuples, registers, windows, results.

A name that a block binds first is known in this block only. Who may exchange values is known as well: `together` is
False where threads may have parted. Branches and loops are in `control`.
"""

from __future__ import annotations

import random
from collections.abc import Callable

from .expressions import ELEMENTS, LOOSE, STATIC, Expressions
from .types import ALL, FLOATS, INTS

RESULTS = 4
"""Results of each type that a thread leaves."""
DEEPEST = 4


class Statements(Expressions):
    """Writes lines at an indent."""

    def __init__(self, rng: random.Random, types: tuple[str, ...], inputs: tuple[str, ...]):
        super().__init__(rng, types, inputs)
        self.lines: list[str] = []
        self.counter = 0
        self.captured: set[str] = set()
        self.together = True
        self.loop_together = False
        self.returns = False
        self.stores = True
        self.jumps = ""  # how the innermost loop may be left: "" (it may not), "static", "device"
        self.atomics: dict[str, str] = {}
        self.statements: list[tuple[int, Callable[[int], None]]] = [
            *[(30, self.assignment), (12, self.result), (4, self.tuples), (5, self.register), (3, self.walrus)],
            *[(3, self.counted), (4, self.call_statement), (3, self.assumption), (4, self.swap), (7, self.ranged)],
            *[(5, self.window), (3, self.wide_load), (2, self.wide_store)],
        ]

    def emit(self, indent: int, text: str) -> None:
        self.lines.append("    " * indent + text)

    def fresh(self, letter: str = "v") -> str:
        self.counter += 1
        return f"{letter}{self.counter}"

    def kind(self) -> str:
        return self.any_type(*ALL)

    def block(self, indent: int, size: int, together: bool, scope: dict[str, str] | None = None) -> None:
        """Statements that bind nothing outside."""
        outer, known = self.together, self.scope
        self.together, self.scope = outer and together, known.copy()
        self.scope.names.update(scope or {})
        for _ in range(size):
            self.statement(indent)
        self.together, self.scope = outer, known

    def statement(self, indent: int) -> None:
        deep = indent >= DEEPEST
        choices = [(weight, each) for weight, each in self.statements if not deep or each not in self.nesting()]
        (chosen,) = self.rng.choices([each for _, each in choices], [weight for weight, _ in choices])
        chosen(indent)

    def nesting(self) -> tuple[Callable[[int], None], ...]:
        """Statements that hold blocks of several lines."""
        return ()

    # ---- names -----------------------------------------------------------------------------------------

    def changeable(self, *kinds: str, letter: str = "v") -> list[str]:
        """Names that may be bound again: a helper's own, not those that it captures."""
        return [name for name in self.bound(*kinds) if name[0] == letter and name not in self.captured]

    def assignment(self, indent: int) -> None:
        changeable = self.changeable(*ALL)
        if not changeable or self.chance(0.35):
            name, kind = self.fresh(), self.kind()
            self.emit(indent, f"{name} = {self.of(kind, 3)}")
            self.scope.names[name] = kind
            return
        name = self.rng.choice(changeable)
        kind = self.scope.names[name]
        if kind != "bool" and self.chance(0.35):
            self.augmented(indent, name, kind)
        else:
            self.emit(indent, f"{name} = {self.of(kind, 3)}")

    def augmented(self, indent: int, name: str, kind: str) -> None:
        value = self.weak(kind) if self.chance(0.3) else self.of(kind, 2)
        signs = ("+=", "-=", "*=") if kind in FLOATS else ("+=", "-=", "*=", "&=", "|=", "^=")
        if self.chance(0.2):
            self.emit(indent, f"{name} {self.pick('//=', '%=')} {self.divisor(kind, 1)}")
        else:
            self.emit(indent, f"{name} {self.pick(*signs)} {value}")

    def swap(self, indent: int) -> None:
        kinds = [kind for kind in ALL if len(self.changeable(kind)) > 1]
        if not kinds:
            return self.assignment(indent)
        kind = self.rng.choice(kinds)
        a, b = self.rng.sample(self.changeable(kind), 2)
        self.emit(indent, f"{a}, {b} = {b}, {a if self.chance(0.5) else self.of(kind, 2)}")

    def counted(self, indent: int) -> None:
        """A name of a literal: static, or an int32 where a loop carries it."""
        if known := self.changeable(LOOSE, letter="c"):
            self.emit(indent, f"{self.rng.choice(known)} {self.pick('+=', '^=', '-=')} {self.pick('1', '2', '5')}")
            return
        name = self.fresh("c")
        self.emit(indent, f"{name} = {self.rng.randrange(5)}")
        self.scope.names[name] = LOOSE

    def walrus(self, indent: int) -> None:
        name, kind = self.fresh(), self.any_type(*INTS, *FLOATS)
        self.emit(indent, f"if ({name} := {self.of(kind, 2)}) {self.pick('<', '>', '!=')} {self.number(kind)}:")
        self.scope.names[name] = kind
        self.block(indent + 1, 1, False)

    def tuples(self, indent: int) -> None:
        """A tuple, its items read by their numbers, and taken apart."""
        kinds = [self.kind() for _ in range(self.rng.choice((2, 3)))]
        name, parts = self.fresh("t"), [self.fresh() for _ in kinds]
        self.emit(indent, f"{name} = ({', '.join(self.of(kind, 2) for kind in kinds)})")
        self.block(indent, self.rng.randrange(2), True)
        if self.chance(0.5):
            self.emit(indent, f"{', '.join(parts)} = {name}")
        else:
            self.emit(indent, f"{', '.join(parts)} = {', '.join(f'{name}[{k}]' for k in range(len(parts)))}")
        self.scope.names.update(zip(parts, kinds, strict=True))

    def assumption(self, indent: int) -> None:
        fact = self.fact(1)
        self.emit(indent, f"if {fact}:")
        self.emit(indent + 1, self.pick(f"T.assume({fact})", f"assert {fact}", f"T.device_assert({fact}, 'text')"))
        self.block(indent + 1, 1, False)

    # ---- memory ----------------------------------------------------------------------------------------

    def result(self, indent: int) -> None:
        if not self.stores:
            return self.assignment(indent)
        kind = self.rng.choice(self.types)
        place = f"o_{kind}[tid, {self.index(RESULTS, 1)}]"
        if self.atomics and self.chance(0.3):
            return self.atomic(indent)
        if kind != "bool" and self.chance(0.3):
            value = self.weak(kind) if self.chance(0.2) else self.of(kind, 2)
            self.emit(indent, f"{place} {self.pick('+=', '-=', '*=')} {value}")
        else:
            self.emit(indent, f"{place} = {self.of(self.kind() if self.chance(0.3) else kind, 3)}")

    def atomic(self, indent: int) -> None:
        kind, operation = self.rng.choice(list(self.atomics.items()))
        form = self.pick("red", "red", "atomic")
        value = self.of(kind, 2) if self.chance(0.8) else self.of(self.any_type(*INTS), 2)
        self.emit(indent, f"T.{form}_{operation}(g_{kind}, {self.index(8, 1)}, {value})")

    def register(self, indent: int) -> None:
        if not self.registers:
            return self.assignment(indent)
        name, kind = self.rng.choice(list(self.registers.items()))
        statics = [*self.bound(STATIC), *(f"{each} ^ 1" for each in self.bound(STATIC)), "0", "1", "2", "3"]
        if self.chance(0.5):
            sign = self.pick("=", "+=", "*=") if kind != "bool" else "="
            self.emit(indent, f"{name}[{self.rng.choice(statics)}] {sign} {self.of(kind, 2)}")
        else:
            value = self.fresh()
            self.emit(indent, f"{value} = {name}[{self.rng.choice(statics)}]")
            self.scope.names[value] = kind

    def ranged(self, indent: int) -> None:
        """A name of an int32 that stays from 0 to below its bound: it is an index as it is."""
        known = [name for name in self.scope.ranges if name[0] == "m" and name not in self.captured]
        if not known or self.chance(0.35):
            name, size = self.fresh("m"), self.rng.choice((2, 4, 4, 8, 16, 16))
            self.emit(indent, f"{name} = T.int32({self.index(size, 2)})")
            self.scope.names[name], self.scope.ranges[name] = "int32", size
            return
        name = self.rng.choice(known)
        size = self.scope.ranges[name]
        step = self.pick("1", "2", "3", "5", *self.bound("int32")[:3], f"({self.of('int32', 1)} & 3)")
        changes = (
            *(f"{name} = ({name} + {step}) % {size}", f"{name} = {name} + 1 if {name} < {size - 1} else 0"),
            *(f"{name} = {size - 1} - {name}", f"{name} = {name} // 2", f"{name} = max({name} - 1, 0)"),
            *(f"{name} = ({name} * {step} + {step}) & {size - 1}", f"{name} ^= 1", f"{name} >>= 1"),
            *(f"{name} = min({name} * 2, {size - 1})", f"{name} = T.int32({self.index(size, 2)})"),
        )
        self.emit(indent, self.rng.choice(changes))

    # ---- windows ---------------------------------------------------------------------------------------

    def window(self, indent: int) -> None:
        """Another view of an input: other axes, another order, a part."""
        if not self.inputs:
            return self.assignment(indent)
        kind, name, rows = self.rng.choice(self.inputs), self.fresh("w"), self.rng.choice((2, 4, 8))
        tensor, columns = f"x_{kind}", ELEMENTS // rows
        forms: list[tuple[str, tuple[int, ...]]] = [
            (f"{tensor}.view({rows}, {columns})", (rows, columns)),
            (f"{tensor}.view({rows}, {columns}).permute(1, 0)", (columns, rows)),
            (f'{tensor}.rearrange("(a b) -> b a", a={rows})', (columns, rows)),
            (f"{tensor}.view({rows}, {columns})[{self.index(rows, 1)}, 0:{columns}]", (columns,)),
            (f"{tensor}.view({rows}, {columns}).sub[{self.index(rows, 1)}]", (columns,)),
            (f"{tensor}.view(2, 2, 4).permute(2, 0, 1)", (4, 2, 2)),
        ]
        start = self.start(indent, 9, 1)
        forms.append((f"{tensor}[{start} : {start} + 8]", (8,)))
        text, shape = self.rng.choice(forms)
        self.emit(indent, f"{name} = {text}")
        self.scope.windows[name] = (kind, shape, False)

    def start(self, indent: int, count: int, step: int) -> str:
        """Where a window begins: a number, or a name, which stands twice in the slice."""
        if self.chance(0.3):
            return str(self.rng.randrange(count) * step)
        name = self.fresh("m")
        self.emit(indent, f"{name} = ({self.index(count, 1)}) * {step}")
        return name

    def wide_load(self, indent: int) -> None:
        """Several elements at once, into registers."""
        if not self.inputs:
            return self.assignment(indent)
        kind, name, size = self.rng.choice(self.inputs), self.fresh("w"), self.rng.choice((2, 4, 8))
        start = (
            self.start(indent, ELEMENTS // size, size) if self.chance(0.6) else self.start(indent, ELEMENTS - size, 1)
        )
        where = f", where={self.of('bool', 1)}" if self.chance(0.3) else ""
        self.emit(indent, f"{name} = T.load(x_{kind}[{start} : {start} + {size}]{where})")
        self.scope.windows[name] = (kind, (size,), True)

    def wide_store(self, indent: int) -> None:
        known = [name for name, kind in self.registers.items() if kind in self.types]
        if not known or not self.stores:
            return self.assignment(indent)
        name = self.rng.choice(known)
        where = f", where={self.of('bool', 1)}" if self.chance(0.3) else ""
        self.emit(indent, f"T.store(o_{self.registers[name]}[tid, 0:{RESULTS}], {name}{where})")

    # ---- helpers ---------------------------------------------------------------------------------------

    def call_statement(self, indent: int) -> None:
        known = [each for each in self.scope.helpers if len(each.results) > 1]
        if not known:
            return self.assignment(indent)
        helper = self.rng.choice(known)
        parts = [self.fresh() for _ in helper.results]
        self.emit(indent, f"{', '.join(parts)} = {self.call_of(helper, 2)}")
        self.scope.names.update(zip(parts, helper.results, strict=True))
