"""Random branches and loops, with what may leave them early."""

from __future__ import annotations

import random
from collections.abc import Callable

from .expressions import ELEMENTS, LOOSE, STATIC
from .statements import Statements


class Control(Statements):
    """Statements that hold blocks."""

    def __init__(self, rng: random.Random, types: tuple[str, ...], inputs: tuple[str, ...]):
        super().__init__(rng, types, inputs)
        self.statements += [(14, self.branch), (12, self.loop), (5, self.expanded), (4, self.over_tuple)]
        self.statements += [(4, self.inside), (4, self.device_range)]

    def nesting(self) -> tuple[Callable[[int], None], ...]:
        return (self.branch, self.loop, self.expanded, self.over_tuple, self.inside, self.device_range)

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
        elif self.returns and self.chance(0.3):
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
        if self.chance(0.1):
            self.emit(indent, f"{name} = 0")
            self.scope.names[name] = LOOSE
            self.emit(indent, "while True:")
            self.emit(indent + 1, f"{name} += 1")
            self.emit(indent + 1, f"if {name} > {self.pick('2', '4', n)} or {self.condition(1)}:")
            self.emit(indent + 2, "break")
            self.looped(indent + 1, "device", False, {})
            return
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

    def inside(self, indent: int) -> None:
        """A branch in which a name is known to be an index; it stays what it is there."""
        name = self.rng.choice(
            [each for each in self.bound("int32") if each not in (*self.scope.ranges, "tid")] or ["lane"]
        )
        if name not in self.scope.names:
            return self.assignment(indent)
        size = self.rng.choice((4, 8, ELEMENTS))
        test = self.pick(
            f"0 <= {name} < {size}", f"{name} >= 0 and {name} < {size}", f"not ({name} < 0 or {name} >= {size})"
        )
        self.emit(indent, f"if {test}:")
        outer, ranges, self.captured = self.captured, dict(self.scope.ranges), self.captured | {name}
        self.scope.ranges[name] = size
        self.block(indent + 1, self.rng.randint(1, 3), False)
        self.captured, self.scope.ranges = outer, ranges

    def device_range(self, indent: int) -> None:
        """`T.range`, which is never expanded; with `unroll` its body stands several times."""
        name, part = self.fresh("i"), self.fresh("i")
        same = self.together and self.chance(0.4)
        n = "n" if "n" in self.scope.names else "5"
        stop = self.pick("3", "6", n) if same else self.pick("3", n, f"({self.of('int32', 1)} % 7)")
        bounds = self.pick(stop, stop, f"1, {stop}", f"{stop}, -1, -1", f"0, {stop}, 2")
        if self.chance(0.4):
            self.emit(indent, f"for {name} in T.range({bounds}):")
            self.looped(indent + 1, "device", same, {name: "int32"})
            return
        self.emit(indent, f"for {name}, {part} in T.range({bounds}, unroll={self.pick('2', '3', '4')}):")
        self.looped(indent + 1, "device", same, {name: "int32", part: STATIC})
