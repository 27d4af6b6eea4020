"""Random exchanges between threads, where all of a CTA are together: their results depend on no order.

Shared tensors are written between two barriers, each element by one thread or by one kind of atomic operation.
"""

from __future__ import annotations

import random
from collections.abc import Callable

from .structure import Structure
from .types import ALL, FLOATS, INTS, WORDS

CELLS = 8
LANES = 32


class Exchanges(Structure):
    """The kernel's own statements."""

    def __init__(self, rng: random.Random, types: tuple[str, ...], inputs: tuple[str, ...], block: int):
        super().__init__(rng, types, inputs)
        self.threads = block
        self.warp_only = False  # under a vote, where warps may have parted
        self.shared: dict[str, str] = {}
        self.cells: dict[str, str] = {}
        self.scratch: dict[str, str] = {}

    def allow(self) -> None:
        """Let threads exchange values in this program."""
        self.statements.append((18, self.exchange))

    def exchange(self, indent: int) -> None:
        if not self.together:
            return self.assignment(indent)
        ways: list[Callable[[int], None]] = [self.shuffle, self.vote, self.reduction]
        if self.warp_only:
            return self.rng.choice(ways)(indent)
        ways += [self.through_shared] if self.shared else []
        ways += [self.counted_in_shared] if self.cells else []
        ways += [self.over_cta] if self.scratch else []
        self.rng.choice(ways)(indent)

    def told(self, indent: int, kind: str, text: str) -> None:
        """Bind what an exchange gave: to a new name or to one that is there."""
        names = self.changeable(kind)
        name = self.rng.choice(names) if names and self.chance(0.3) else self.fresh()
        self.emit(indent, f"{name} = {text}")
        self.scope.names[name] = kind

    def width(self) -> str:
        return self.pick("", "", ", width=16", ", width=8", ", width=2")

    def shuffle(self, indent: int) -> None:
        kind, width = self.kind(), self.width()
        value, lanes = self.of(kind, 2), int(width[8:] or LANES)
        way = self.pick("shuffle", "shuffle_xor", "shuffle_up", "shuffle_down")
        if way == "shuffle" and self.chance(0.7):
            count = self.pick("lane ^ 3", "31 - lane", "lane // 2", f"({self.of('int32', 1)}) & 31", "n & 31")
        else:
            count = str(self.rng.randrange(lanes))
        self.told(indent, kind, f"T.cuda.{way}({value}, {count}{width})")

    def vote(self, indent: int) -> None:
        name = self.pick("any", "all", "ballot", "match_any", "match_all")
        if name.startswith("match"):
            value = self.of(self.any_type(*INTS), 2)
        else:
            value = self.fact(1) if self.chance(0.4) else self.of("bool", 2)
        kind = "uint32" if name in ("ballot", "match_any") else "bool"
        if kind == "bool" and self.chance(0.3):
            self.emit(indent, f"if T.cuda.{name}({value}):")
            outer, self.warp_only = self.warp_only, True
            self.block(indent + 1, self.rng.randint(1, 2), True)
            self.warp_only = outer
        else:
            self.told(indent, kind, f"T.cuda.{name}({value})")

    def reduction(self, indent: int) -> None:
        kind = self.any_type(*WORDS, *FLOATS)
        name = self.pick("sum", "min", "max", "scan", "reduce")
        if name == "reduce":
            return self.combined(indent)
        if name == "scan":
            options = self.pick("", ", exclusive=True")
        else:
            options = self.width()
        self.told(indent, kind, f"T.cuda.warp_{name}({self.of(kind, 2)}{options})")

    def combined(self, indent: int) -> None:
        """By a function, of a number or of several together."""
        function = self.pick("a + b", "min(a, b)", "b", "a", "max(a, b)", "a + b")
        kind = self.any_type(*INTS, *FLOATS)
        if self.chance(0.6):
            return self.told(
                indent, kind, f"T.cuda.warp_reduce({self.of(kind, 2)}, lambda a, b: {function}{self.width()})"
            )
        other, names = self.any_type(*INTS, *FLOATS), [self.fresh(), self.fresh()]
        pair = f"({self.of(kind, 2)}, {self.of(other, 2)})"
        both = "lambda a, b: (min(a[0], b[0]), a[1] if a[0] <= b[0] else b[1])"
        self.emit(indent, f"{', '.join(names)} = T.cuda.warp_reduce({pair}, {both})")
        self.scope.names |= {names[0]: kind, names[1]: other}

    def over_cta(self, indent: int) -> None:
        kind, scratch = self.rng.choice(list(self.scratch.items()))
        name = self.pick("sum", "min", "max", "scan")
        options = ", exclusive=True" if name == "scan" and self.chance(0.5) else ""
        self.told(indent, kind, f"T.cuda.cta_{name}({self.of(kind, 2)}, {scratch}{options})")

    def through_shared(self, indent: int) -> None:
        """Each thread writes its element, and reads one of any thread's."""
        kind, name = self.rng.choice(list(self.shared.items()))
        place = self.pick("T.cuda.thread_idx()", f"{self.threads - 1} - T.cuda.thread_idx()")
        self.emit(indent, f"{name}[{place}] = {self.of(kind, 2)}")
        self.emit(indent, "T.cuda.cta_sync()")
        self.told(indent, kind, f"{name}[{self.index(self.threads, 1)}]")
        self.emit(indent, "T.cuda.cta_sync()")

    def counted_in_shared(self, indent: int) -> None:
        """A few elements that all threads update."""
        kind, name = self.rng.choice(list(self.cells.items()))
        operation = self.pick("add", "min", "max", "and", "or", "xor")
        self.emit(indent, f"if T.cuda.thread_idx() < {CELLS}:")
        self.emit(indent + 1, f"{name}[T.cuda.thread_idx()] = {self.of(kind, 1)}")
        self.emit(indent, "T.cuda.cta_sync()")
        self.emit(indent, f"if {self.condition(1)}:")
        form = self.pick("red", "atomic")
        self.emit(indent + 1, f"T.{form}_{operation}({name}, {self.index(CELLS, 1)}, {self.of(kind, 2)})")
        self.emit(indent, "T.cuda.cta_sync()")
        self.told(indent, kind, f"{name}[{self.index(CELLS, 1)}]")
        self.emit(indent, "T.cuda.cta_sync()")

    def allocate(self, indent: int) -> None:
        """Tensors of the program: registers, and shared ones."""
        for _ in range(self.rng.randrange(3)):
            name, kind = self.fresh("r"), self.kind()
            self.emit(indent, f'{name} = T.alloc_local((4,), "{kind}")')
            for place in range(4):
                self.emit(indent, f"{name}[{place}] = {self.leaf(kind)}")
            self.registers[name] = kind
        shared = ((self.shared, ALL, self.threads), (self.cells, WORDS, CELLS), (self.scratch, (*WORDS, *FLOATS), 8))
        for found, kinds, size in shared:
            if self.chance(0.6):
                name, kind = self.fresh("s"), self.any_type(*kinds)
                self.emit(indent, f'{name} = T.alloc_shared(({size},), "{kind}")')
                found[kind] = name
