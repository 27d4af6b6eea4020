"""A kernel's own text, run by Python: what each tensor holds afterwards.

The text is parsed and changed a little, so that Python does with `Number`s what it does with its own numbers: `not`
gives a bool of the language, a name bound to a literal is told from the literal, the arms of a choice must be of one
type, loops are counted. Threads run one after the other; in a kernel whose threads tell each other something, each
becomes a generator that hands out what it says, and goes on when the warp, or the CTA, has said it.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Generator, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from .collective import CTA, WARP, together
from .memory import Cells
from .names import BUILTINS, Names
from .numbers import LITERAL, LOOSE, Invalid, Number, lifted

MOST_STEPS = 4000
"""Iterations of loops in one thread."""
LANES = 32
ANY_LANES = (0, 5, 31)
"""Which threads of a warp are run where no thread's result depends on others."""


@dataclass
class Thread:
    """Who runs, for the names that ask."""

    block: int
    index: int
    shared: list[Cells]
    allocated: int = 0
    steps: int = 0


@dataclass
class Machine:
    """The launch, and the thread that runs now."""

    grid: int = 0
    block: int = 0
    thread: Thread | None = None
    arms: dict[int, str] = field(default_factory=dict)

    def tick(self) -> None:
        assert self.thread is not None
        self.thread.steps += 1
        if self.thread.steps > MOST_STEPS:
            raise Invalid("a loop that does not end")

    def arm(self, choice: int, value: Any) -> Number:
        """The value of an arm: both arms must be of one type, for the language makes them so."""
        number = lifted(value)
        if number.type in (LITERAL, LOOSE) or self.arms.setdefault(choice, number.type) != number.type:
            raise Invalid("arms of two types")
        return number


def bound(value: Any) -> Any:
    """What a name becomes when it is bound to `value`."""
    if isinstance(value, tuple):
        return tuple(bound(item) for item in value)
    if isinstance(value, float) and not isinstance(value, np.floating):
        raise Invalid("a name of a static float")
    if isinstance(value, bool):
        return lifted(value)
    return Number(value, LOOSE) if isinstance(value, int) else value


def counted(*bounds: Any) -> Iterable[Any]:
    """`range`: of static numbers names may be bound to, else of int32."""
    if all(isinstance(each, int) for each in bounds):
        return (Number(number, LOOSE) for number in range(*bounds))
    kinds = {each.type for each in map(lifted, bounds)} - {LITERAL, LOOSE}
    if not kinds <= {"int32"}:
        raise Invalid("a range of other integers")
    return (Number(number, "int32") for number in range(*(each.__index__() for each in bounds)))


# ---- the text ------------------------------------------------------------------------------------------


def _call(name: str, *args: ast.expr) -> ast.Call:
    return ast.Call(ast.Name(name, ast.Load()), list(args), [])


class Adapt(ast.NodeTransformer):
    """Changes the text; `talking` are the names of functions in which threads exchange something."""

    def __init__(self, talking: set[str]):
        self.talking, self.choices = talking, 0

    def visit_Module(self, node: ast.Module) -> ast.Module:
        """Names outside of functions stay Python's: they are static."""
        node.body = [
            self.visit(each) if isinstance(each, ast.FunctionDef | ast.ClassDef) else each
            for each in node.body
            if not (isinstance(each, ast.ImportFrom) and each.module == "warpjit")
        ]
        return node

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.FunctionDef:
        if node.name == "kernel":
            node.decorator_list = []
        node.returns = None
        for argument in node.args.args:
            argument.annotation = None
        self.generic_visit(node)
        return node

    def visit_Assign(self, node: ast.Assign) -> ast.Assign:
        self.generic_visit(node)
        node.value = _call("bound_", node.value)
        return node

    def visit_NamedExpr(self, node: ast.NamedExpr) -> ast.NamedExpr:
        self.generic_visit(node)
        node.value = _call("bound_", node.value)
        return node

    def visit_UnaryOp(self, node: ast.UnaryOp) -> ast.expr:
        self.generic_visit(node)
        return _call("not_", node.operand) if isinstance(node.op, ast.Not) else node

    def visit_IfExp(self, node: ast.IfExp) -> ast.IfExp:
        self.generic_visit(node)
        self.choices += 1
        number = ast.Constant(self.choices)
        node.body, node.orelse = _call("arm_", number, node.body), _call("arm_", number, node.orelse)
        return node

    def visit_For(self, node: ast.For) -> ast.For:
        return self._loop(node)

    def visit_While(self, node: ast.While) -> ast.While:
        return self._loop(node)

    def _loop(self, node: Any) -> Any:
        self.generic_visit(node)
        node.body.insert(0, ast.Expr(_call("tick_")))
        return node

    def visit_Call(self, node: ast.Call) -> ast.expr:
        self.generic_visit(node)
        name = ast.unparse(node.func)
        if name in together():
            words = ast.Dict([ast.Constant(word.arg) for word in node.keywords], [w.value for w in node.keywords])
            return ast.Yield(ast.Tuple([ast.Constant(name), ast.Tuple(node.args, ast.Load()), words], ast.Load()))
        return ast.YieldFrom(node) if name in self.talking else node


def talkers(tree: ast.Module) -> set[str]:
    """The functions that exchange something, also through others."""
    functions = [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)]
    calls = {
        function.name: {ast.unparse(node.func) for node in ast.walk(function) if isinstance(node, ast.Call)}
        for function in functions
    }
    found: set[str] = set()
    while True:
        more = {name for name, called in calls.items() if called & (together() | found)}
        if more <= found:
            return found
        found |= more


def _compiled(text: str, name: str, names: dict[str, Any]) -> tuple[Callable[..., Any], bool]:
    tree = ast.parse(text)
    talking = talkers(tree)
    changed = ast.fix_missing_locations(Adapt(talking).visit(tree))
    exec(compile(changed, name, "exec"), names)
    return names["kernel"], "kernel" in talking


# ---- threads -------------------------------------------------------------------------------------------

Talk = Generator[Any, Any, None]


def _step(machine: Machine, thread: Thread, talk: Talk, answer: Any) -> Any:
    """What a thread says next; None: it has ended."""
    machine.thread = thread
    try:
        return talk.send(answer)
    except StopIteration:
        return None


def _in_step(machine: Machine, threads: Sequence[Thread], talks: Sequence[Talk]) -> None:
    """All threads of a CTA, as far as each can go, until all have ended."""
    said = [_step(machine, thread, talk, None) for thread, talk in zip(threads, talks, strict=True)]
    while any(said):
        moved = False
        for names, size in ((WARP, LANES), (CTA, machine.block)):
            for first in range(0, machine.block, size):
                group = range(first, first + size)
                heads = {said[index][0] if said[index] else None for index in group}
                if len(heads) != 1 or not heads <= set(names):
                    continue
                (name,) = heads
                answers = names[name]([said[index][1:] for index in group])
                for index, answer in zip(group, answers, strict=True):
                    said[index] = _step(machine, threads[index], talks[index], answer)
                moved = True
        if not moved:
            raise Invalid(f"threads wait for each other: {sorted({str(each and each[0]) for each in said})}")


def run(text: str, arguments: dict[str, Any]) -> tuple[dict[str, Cells], list[int]]:
    """The tensors afterwards, and which threads (rows of results) were run. Raises `Invalid`."""
    machine = Machine()
    names: dict[str, Any] = {
        **{"T": Names(machine), "bound_": bound, "tick_": machine.tick, "arm_": machine.arm},
        **{"not_": lambda x: Number(not x, "bool"), "range": counted, **BUILTINS},
    }
    tensors = {name: value for name, value in arguments.items() if isinstance(value, Cells)}
    with np.errstate(all="ignore"):
        kernel, talking = _compiled(text, "oracle", names)
        machine.grid, machine.block = names["GRID"], names["BLOCK"]
        alone = not talking and "T.red_" not in text and "T.atomic_" not in text
        ran: list[int] = []
        for block in range(machine.grid):
            shared: list[Cells] = []
            threads = [Thread(block, index, shared) for index in range(machine.block)]
            if alone:
                threads = [thread for thread in threads if thread.index % LANES in ANY_LANES]
            ran += [block * machine.block + thread.index for thread in threads]
            if talking:
                _in_step(machine, threads, [kernel(**arguments) for _ in threads])
                continue
            for thread in threads:
                machine.thread = thread
                kernel(**arguments)
    return tensors, ran
