"""Random statements: names of one type for life, branches, loops, jumps, tuples, registers, helpers.

A name that a block binds first is known in this block only. Who may exchange values is known as well: `together` is
False where threads may have parted.
"""

from __future__ import annotations

import random
from collections.abc import Callable

from .expressions import LOOSE, REGISTERS, STATIC, Expressions, Helper, Scope
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
            *[(30, self.assignment), (12, self.result), (14, self.branch), (12, self.loop), (5, self.expanded)],
            *[(4, self.tuples), (4, self.over_tuple), (5, self.register), (3, self.walrus), (3, self.counted)],
            *[(4, self.call_statement), (3, self.assumption), (4, self.swap)],
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
        return (self.branch, self.loop, self.expanded, self.over_tuple)

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
        self.emit(indent + 1, f"T.assume({fact})")
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

    # ---- control ---------------------------------------------------------------------------------------

    def uniform(self) -> str:
        """A condition on which all threads agree."""
        if "n" not in self.scope.names:
            return self.pick("SIZE > 2", "SIZE < 3")
        return self.pick("n > 2", "n % 2 == 1", "k < 0", "T.cuda.block_idx() == 0", "n < 2 or k > 5", "SIZE > 2")

    def branch(self, indent: int) -> None:
        same = self.chance(0.25)
        kind = self.rng.random()
        test = self.uniform() if same else self.fact(1) if kind < 0.3 else self.condition(2)
        self.emit(indent, f"if {test}:")
        self.block(indent + 1, self.rng.randint(1, 3), same)
        self.jump(indent + 1, same)
        if self.chance(0.3):
            self.emit(indent, f"elif {self.uniform() if same else self.condition(2)}:")
            self.block(indent + 1, self.rng.randint(1, 2), same)
            self.jump(indent + 1, same)
        if self.chance(0.5):
            self.emit(indent, "else:")
            self.block(indent + 1, self.rng.randint(1, 2), same)

    def jump(self, indent: int, same: bool) -> None:
        """The end of a branch: `break`, `continue` and `return`, where they may stand."""
        if self.jumps == "device" and self.chance(0.3) and (not self.loop_together or (same and self.together)):
            self.emit(indent, self.pick("break", "continue"))
        elif self.returns and not self.jumps and self.chance(0.3):
            self.emit(indent, self.return_text())

    def return_text(self) -> str:
        return "return"

    def looped(self, indent: int, jumps: str, together: bool, names: dict[str, str]) -> None:
        """The body of a loop."""
        outer = self.jumps, self.loop_together
        self.jumps, self.loop_together = jumps, self.together and together
        self.block(indent, self.rng.randint(1, 3), together, names)
        self.jumps, self.loop_together = outer

    def loop(self, indent: int) -> None:
        name = self.fresh("i")
        same = self.together and self.chance(0.4)
        n = "n" if "n" in self.scope.names else "3"
        if self.chance(0.25):
            test = self.pick(f"{name} < {self.pick('3', '5')} and {self.condition(1)}", f"{name} < {n}", f"{name} < 4")
            self.emit(indent, f"{name} = 0")
            self.scope.names[name] = LOOSE
            self.emit(indent, f"while {test}:")
            self.emit(indent + 1, f"{name} += {self.pick('1', '1', '2')}")
            self.looped(indent + 1, "device", False, {})
            return
        stop = self.pick("3", "4", n) if same else self.pick("3", n, f"({self.of('int32', 1)} % 5)")
        bounds = self.pick(stop, stop, f"1, {stop}", f"{stop}, -1, -1", f"0, {stop}, 2", f"2, {stop}, -3")
        runtime = any(part not in ("3", "4") and not part.lstrip("-").isdigit() for part in bounds.split(", "))
        self.emit(indent, f"for {name} in range({bounds}):")
        self.looped(indent + 1, "device", same, {name: "int32" if runtime else LOOSE})

    def expanded(self, indent: int) -> None:
        """A loop whose variable is static: registers are indexed with it."""
        name = self.fresh("i")
        items = self.pick(
            "T.unroll(4)", "T.unroll(1, 3)", "T.unroll(3, -1, -1)", "(0, 2, 3)", "range(4)", "T.unroll(1)"
        )
        self.emit(indent, f"for {name} in {items}:")
        inner = {name: STATIC if items[0] != "r" else LOOSE}
        if self.chance(0.25) and items[0] != "r":
            self.emit(indent + 1, f"if {name} {self.pick('==', '>', '<')} {self.pick('1', '2')}:")
            self.emit(indent + 2, self.pick("break", "continue"))
        if self.registers and items[0] == "r":
            register, kind = self.rng.choice(list(self.registers.items()))
            self.emit(indent + 1, f"{register}[{name}] = {self.of(kind, 2)}")
        self.looped(indent + 1, "static", True, inner)

    def over_tuple(self, indent: int) -> None:
        kind, name, place = self.kind(), self.fresh("e"), self.fresh("i")
        items = f"({', '.join(self.of(kind, 2) for _ in range(self.rng.choice((2, 3))))})"
        if self.chance(0.5):
            self.emit(indent, f"for {place}, {name} in enumerate({items}):")
            self.looped(indent + 1, "static", True, {name: kind, place: STATIC})
        else:
            self.emit(indent, f"for {name} in {items}:")
            self.looped(indent + 1, "static", True, {name: kind})

    # ---- helpers ---------------------------------------------------------------------------------------

    def call_statement(self, indent: int) -> None:
        known = [each for each in self.scope.helpers if len(each.results) > 1]
        if not known:
            return self.assignment(indent)
        helper = self.rng.choice(known)
        parts = [self.fresh() for _ in helper.results]
        self.emit(indent, f"{', '.join(parts)} = {self.call_of(helper, 2)}")
        self.scope.names.update(zip(parts, helper.results, strict=True))

    def shortcut(self, indent: int) -> None:
        """A lambda, which may read names of the kernel."""
        kinds = [self.kind() for _ in range(self.rng.randint(1, 2))]
        name, result = self.fresh("f"), self.kind()
        parameters = {self.fresh("p"): kind for kind in kinds}
        outer, self.scope = self.scope, Scope({**self.scope.names, **parameters}, list(self.scope.helpers))
        text = self.of(result, 2)
        self.scope = outer
        self.emit(indent, f"{name} = lambda {', '.join(parameters)}: {text}")
        self.scope.helpers.append(Helper(name, tuple(kinds), (result,)))


class Body(Statements):
    """The body of a helper: it may return early, and leaves no results but what it returns."""

    def __init__(self, parent: Statements, indent: int, captured: Scope):
        super().__init__(parent.rng, parent.types, parent.inputs if captured.names else ())
        self.scope, self.counter = captured.copy(), parent.counter
        self.stores, self.together, self.returns = False, False, True
        self.indent = indent
        self.results: tuple[str, ...] = ()

    def return_text(self) -> str:
        return f"return {', '.join(self.of(kind, 2) for kind in self.results)}"

    def define(self) -> Helper:
        """Write it, and say what it is."""
        kinds = tuple(self.kind() for _ in range(self.rng.randint(1, 3)))
        self.results = tuple(self.kind() for _ in range(self.rng.choice((1, 1, 1, 2, 3))))
        self.returns = len(self.results) == 1  # of several, the control flow cannot carry which tuple it is
        optional = int(self.chance(0.3))
        name = self.fresh("h")
        parameters = [self.fresh() for _ in kinds]
        texts, default = list(parameters), self.fresh("p")
        texts += [f"{default}={self.rng.randrange(4)}"] if optional else []
        self.emit(self.indent, f"def {name}({', '.join(texts)}):")
        self.scope.names = {
            **{each: kind for each, kind in self.scope.names.items() if each[0] != "v" or self.chance(0.5)},
            **dict(zip(parameters, kinds, strict=True)),
        }
        self.captured = set(self.scope.names) - set(parameters)
        if optional:
            self.scope.names[default] = STATIC
        for _ in range(self.rng.randint(0, 3)):
            self.statement(self.indent + 1)
        self.emit(self.indent + 1, self.return_text())
        return Helper(name, (*kinds, STATIC) if optional else kinds, self.results, optional)


__all__ = ["REGISTERS", "RESULTS", "Body", "Statements"]
