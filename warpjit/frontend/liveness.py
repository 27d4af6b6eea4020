"""Which names a loop or a branch must carry: what may be read before it is assigned again.

A backward data flow over one function's statements, through `if`, loops with their `else`, `break`, `continue`,
`return`, and inside expressions through short circuits and walruses. Exact for these, in the sense that every
condition may go either way (constants excepted); `try` and `match`, which kernels do not have, are taken to
read and keep everything. Nested functions read their names where they are defined and, as they may be called at
any time, ever after. Statements of nested functions are not covered: each function has its own `Liveness`.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable, Sequence
from typing import TypeAlias

from warpjit.frontend import names
from warpjit.frontend.names import NONE, AnyFunction, Names
from warpjit.record import record

Loop: TypeAlias = ast.For | ast.While


class Liveness:
    """The flow of names through a function. `local`: all names of its scope; only these are ever reported."""

    def __init__(self, function: AnyFunction):
        self.local = names.local(function)
        self._exposed: dict[ast.stmt, Names] = {}
        self._captured: dict[ast.stmt, Names] = {}
        self._after: dict[ast.stmt, Names] = {}
        if not isinstance(function, ast.Lambda):
            if names.makes_functions(function.body):
                self._capture(function.body, NONE)
            _Flow(self._after).block(function.body, NONE, _Exits())

    @staticmethod
    def assigned(statements: Iterable[ast.AST]) -> Names:
        """The names that any of `statements` may bind, at any depth but not in nested functions."""
        return names.bound(statements)

    def exposed(self, loop: Loop) -> Names:
        """The names that one iteration may read before it assigns them.

        A `for` assigns its target first; its iterable is no part of the iteration, the condition of a `while` is.
        """
        if loop not in self._exposed:
            self._exposed[loop] = _iteration(loop)
        return (self._exposed[loop] | self._captured.get(loop, NONE)) & self.local

    def live_after(self, statement: ast.stmt) -> Names:
        """The names that may be read after `statement` before they are assigned again.

        After a loop means where its last iteration leads: to its `else`, or past it by `break`. After a `break`,
        `continue` or `return` means where it goes.
        """
        return (self._after[statement] | self._captured.get(statement, NONE)) & self.local

    def _capture(self, statements: Sequence[ast.stmt], seen: Names) -> None:
        """Note for each statement what nested functions may read once it is done: those made before it, and all
        those of a loop around it."""
        for statement in statements:
            every = names.captured(statement)
            head = every if isinstance(statement, _REPEATED) else _captured_by_head(statement)
            for block in _blocks(statement):
                self._capture(block, seen | head)
            seen |= every
            self._captured[statement] = seen


# ---- blocks of a statement ----------------------------------------------------------------------------

_REPEATED = (ast.For, ast.AsyncFor, ast.While, ast.Try, ast.Match)


def _blocks(statement: ast.stmt) -> list[list[ast.stmt]]:
    """The statement lists inside a compound statement of this scope."""
    if isinstance(statement, names.SCOPES):
        return []
    holders = [statement, *getattr(statement, "handlers", ()), *getattr(statement, "cases", ())]
    fields = ("body", "orelse", "finalbody")
    return [block for holder in holders for field in fields if (block := getattr(holder, field, None))]


def _captured_by_head(statement: ast.stmt) -> Names:
    inside = {child for block in _blocks(statement) for child in block}
    heads = (child for child in ast.iter_child_nodes(statement) if child not in inside)
    return NONE.union(*(names.captured(child) for child in heads))


# ---- the flow -----------------------------------------------------------------------------------------


@record
class _Exits:
    """What is live where a `break` and a `continue` go."""

    after_break: Names = NONE
    after_continue: Names = NONE


def _iteration(loop: Loop) -> Names:
    """What is live where an iteration starts if nothing is where it ends."""
    flow = _Flow({})
    inside = flow.block(loop.body, NONE, _Exits())
    return flow.target(loop.target, inside) if isinstance(loop, ast.For) else flow.condition(loop.test, inside, NONE)


class _Flow:
    """One walk backwards. Each method takes what is live after a piece of code and returns what is live before it;
    `after` collects what is live after each statement."""

    def __init__(self, after: dict[ast.stmt, Names]):
        self.after = after

    def block(self, statements: Sequence[ast.stmt], live: Names, exits: _Exits) -> Names:
        for statement in reversed(statements):
            live = self.statement(statement, live, exits)
        return live

    def statement(self, statement: ast.stmt, live: Names, exits: _Exits) -> Names:
        self.after[statement] = live
        return _STATEMENTS.get(type(statement), _opaque)(self, statement, live, exits)

    def expression(self, node: ast.AST | None, live: Names) -> Names:
        if node is None:
            return live
        return _EXPRESSIONS.get(type(node), _in_order)(self, node, live)

    def condition(self, node: ast.expr, yes: Names, no: Names) -> Names:
        """An expression that decides: `yes` is live after it where it is true, `no` where it is false."""
        handler = _CONDITIONS.get(type(node))
        return handler(self, node, yes, no) if handler is not None else self.expression(node, yes | no)

    def target(self, node: ast.AST, live: Names) -> Names:
        """Assigning to `node`: names are bound, the parts of an element or an attribute are read."""
        if isinstance(node, ast.Name):
            return live - {node.id}
        if isinstance(node, ast.Tuple | ast.List):
            for item in reversed(node.elts):
                live = self.target(item, live)
            return live
        if isinstance(node, ast.Starred):
            return self.target(node.value, live)
        return _in_order(self, node, live)

    def sequence(self, nodes: Iterable[ast.AST | None], live: Names) -> Names:
        """Expressions that are evaluated one after the other."""
        for node in reversed(list(nodes)):
            live = self.expression(node, live)
        return live


# ---- statements: one function a kind ------------------------------------------------------------------


def _opaque(flow: _Flow, statement: ast.stmt, live: Names, exits: _Exits) -> Names:
    """A statement whose order is not followed: all that it reads is live all through it."""
    live |= names.reads(statement) | exits.after_break | exits.after_continue
    for part in ast.walk(statement):
        if isinstance(part, ast.stmt):
            flow.after[part] = live
    return live


def _simple(flow: _Flow, statement: ast.stmt, live: Names, exits: _Exits) -> Names:
    return flow.sequence(ast.iter_child_nodes(statement), live)


def _assign(flow: _Flow, statement: ast.Assign, live: Names, exits: _Exits) -> Names:
    for target in reversed(statement.targets):
        live = flow.target(target, live)
    return flow.expression(statement.value, live)


def _aug_assign(flow: _Flow, statement: ast.AugAssign, live: Names, exits: _Exits) -> Names:
    if isinstance(statement.target, ast.Name):
        return flow.expression(statement.value, live - {statement.target.id}) | {statement.target.id}
    return flow.target(statement.target, flow.expression(statement.value, live))


def _ann_assign(flow: _Flow, statement: ast.AnnAssign, live: Names, exits: _Exits) -> Names:
    if statement.value is None and isinstance(statement.target, ast.Name):
        return live
    return flow.expression(statement.value, flow.target(statement.target, live))


def _delete(flow: _Flow, statement: ast.Delete, live: Names, exits: _Exits) -> Names:
    return live | names.reads(statement)


def _definition(flow: _Flow, statement: ast.FunctionDef, live: Names, exits: _Exits) -> Names:
    # Inside itself the function's name means the function that is being defined.
    later = (live | names.free(statement)) - {statement.name}
    return later.union(*(names.reads(part) for part in names.outside(statement)))


def _import(flow: _Flow, statement: ast.Import | ast.ImportFrom, live: Names, exits: _Exits) -> Names:
    return live - names.bound([statement])


def _if(flow: _Flow, statement: ast.If, live: Names, exits: _Exits) -> Names:
    then, orelse = flow.block(statement.body, live, exits), flow.block(statement.orelse, live, exits)
    return flow.condition(statement.test, then, orelse)


def _assert(flow: _Flow, statement: ast.Assert, live: Names, exits: _Exits) -> Names:
    return flow.condition(statement.test, live, flow.expression(statement.msg, NONE))


def _with(flow: _Flow, statement: ast.With, live: Names, exits: _Exits) -> Names:
    live = flow.block(statement.body, live, exits)
    for item in reversed(statement.items):
        live = flow.target(item.optional_vars, live) if item.optional_vars is not None else live
        live = flow.expression(item.context_expr, live)
    return live


def _jump(flow: _Flow, statement: ast.stmt, live: Names) -> Names:
    flow.after[statement] = live
    return live


def _leave(flow: _Flow, statement: ast.Return | ast.Raise, live: Names, exits: _Exits) -> Names:
    return _simple(flow, statement, _jump(flow, statement, NONE), exits)


def _breaks(statements: Sequence[ast.stmt]) -> bool:
    """Whether one of `statements` leaves the loop whose body they are."""
    for statement in statements:
        blocks = [statement.orelse] if isinstance(statement, ast.For | ast.While) else _blocks(statement)
        if isinstance(statement, ast.Break) or any(_breaks(block) for block in blocks):
            return True
    return False


def continues(statements: Sequence[ast.stmt]) -> bool:
    """Whether one of `statements` ends an iteration of the loop whose body they are."""
    for statement in statements:
        blocks = [] if isinstance(statement, ast.For | ast.While) else _blocks(statement)
        if isinstance(statement, ast.Continue) or any(continues(block) for block in blocks):
            return True
    return False


def endless(loop: Loop) -> bool:
    """Whether nothing comes after a loop, but for what follows a `return` in it."""
    if isinstance(loop, ast.For) or _breaks(loop.body):
        return False
    return isinstance(loop.test, ast.Constant) and bool(loop.test.value)


def returns(statements: Sequence[ast.stmt]) -> bool:
    """Whether one of `statements` leaves the function whose body they belong to."""
    return any(isinstance(each, ast.Return) or any(map(returns, _blocks(each))) for each in statements)


def _for(flow: _Flow, statement: ast.For, live: Names, exits: _Exits) -> Names:
    done = flow.block(statement.orelse, live, exits)
    flow.after[statement] = done | (live if _breaks(statement.body) else NONE)
    head = done
    while True:  # what an iteration reads is live at the end of the one before
        inside = flow.block(statement.body, head, _Exits(live, head))
        grown = flow.target(statement.target, inside) | done
        if grown == head:
            return flow.expression(statement.iter, head)
        head = grown


def _while(flow: _Flow, statement: ast.While, live: Names, exits: _Exits) -> Names:
    done = flow.block(statement.orelse, live, exits)
    endless = isinstance(statement.test, ast.Constant) and bool(statement.test.value)
    flow.after[statement] = (NONE if endless else done) | (live if _breaks(statement.body) else NONE)
    head: Names = NONE
    while True:
        inside = flow.block(statement.body, head, _Exits(live, head))
        grown = flow.condition(statement.test, inside, done)
        if grown == head:
            return head
        head = grown


_STATEMENTS: dict[type[ast.AST], Callable[..., Names]] = {
    ast.Expr: _simple,
    ast.Assign: _assign,
    ast.AugAssign: _aug_assign,
    ast.AnnAssign: _ann_assign,
    ast.Delete: _delete,
    ast.FunctionDef: _definition,
    ast.Import: _import,
    ast.ImportFrom: _import,
    ast.If: _if,
    ast.For: _for,
    ast.While: _while,
    ast.With: _with,
    ast.Assert: _assert,
    ast.Return: _leave,
    ast.Raise: _leave,
    ast.Break: lambda flow, statement, live, exits: _jump(flow, statement, exits.after_break),
    ast.Continue: lambda flow, statement, live, exits: _jump(flow, statement, exits.after_continue),
    ast.Pass: lambda flow, statement, live, exits: live,
    ast.Global: lambda flow, statement, live, exits: live,
    ast.Nonlocal: lambda flow, statement, live, exits: live,
}


# ---- expressions: one function a kind -----------------------------------------------------------------


def _in_order(flow: _Flow, node: ast.AST, live: Names) -> Names:
    """The parts from left to right, as `ast` lists them."""
    return flow.sequence(ast.iter_child_nodes(node), live)


def _name(flow: _Flow, node: ast.Name, live: Names) -> Names:
    return live | {node.id} if isinstance(node.ctx, ast.Load) else live


def _walrus(flow: _Flow, node: ast.NamedExpr, live: Names) -> Names:
    return flow.expression(node.value, flow.target(node.target, live))


def _bool(flow: _Flow, node: ast.BoolOp, live: Names) -> Names:
    """The first is evaluated; after each, the next may be or not."""
    before = flow.expression(node.values[-1], live)
    for value in reversed(node.values[:-1]):
        before = flow.condition(value, *_outcomes(node.op, before, live))
    return before


def _outcomes(op: ast.boolop, before: Names, done: Names) -> tuple[Names, Names]:
    """Where a true and a false operand lead: to the next one, or out."""
    return (before, done) if isinstance(op, ast.And) else (done, before)


def _compare(flow: _Flow, node: ast.Compare, live: Names) -> Names:
    return _chain(flow, node, live, live)


def _chain(flow: _Flow, node: ast.Compare, yes: Names, no: Names) -> Names:
    """A chained comparison stops at the first that is false."""
    before = flow.expression(node.comparators[-1], yes | no)
    for comparator in reversed(node.comparators[:-1]):
        before = flow.expression(comparator, before | no)
    return flow.expression(node.left, before)


def _conditional(flow: _Flow, node: ast.IfExp, live: Names) -> Names:
    return flow.condition(node.test, flow.expression(node.body, live), flow.expression(node.orelse, live))


def _dict(flow: _Flow, node: ast.Dict, live: Names) -> Names:
    return flow.sequence((part for pair in zip(node.keys, node.values, strict=True) for part in pair), live)


def _any_order(flow: _Flow, node: ast.AST, live: Names) -> Names:
    return live | names.reads(node)


_EXPRESSIONS: dict[type[ast.AST], Callable[..., Names]] = {
    ast.Name: _name,
    ast.NamedExpr: _walrus,
    ast.BoolOp: _bool,
    ast.Compare: _compare,
    ast.IfExp: _conditional,
    ast.Dict: _dict,
    ast.Lambda: _any_order,
    ast.ListComp: _any_order,
    ast.SetComp: _any_order,
    ast.DictComp: _any_order,
    ast.GeneratorExp: _any_order,
}


# ---- conditions: one function a kind ------------------------------------------------------------------


def _decide_bool(flow: _Flow, node: ast.BoolOp, yes: Names, no: Names) -> Names:
    before = flow.condition(node.values[-1], yes, no)
    for value in reversed(node.values[:-1]):
        before = flow.condition(value, *_outcomes(node.op, before, no if isinstance(node.op, ast.And) else yes))
    return before


def _decide_not(flow: _Flow, node: ast.UnaryOp, yes: Names, no: Names) -> Names:
    return flow.condition(node.operand, no, yes) if isinstance(node.op, ast.Not) else flow.expression(node, yes | no)


def _decide_walrus(flow: _Flow, node: ast.NamedExpr, yes: Names, no: Names) -> Names:
    return flow.condition(node.value, flow.target(node.target, yes), flow.target(node.target, no))


def _decide_conditional(flow: _Flow, node: ast.IfExp, yes: Names, no: Names) -> Names:
    return flow.condition(node.test, flow.condition(node.body, yes, no), flow.condition(node.orelse, yes, no))


_CONDITIONS: dict[type[ast.AST], Callable[..., Names]] = {
    ast.BoolOp: _decide_bool,
    ast.UnaryOp: _decide_not,
    ast.NamedExpr: _decide_walrus,
    ast.IfExp: _decide_conditional,
    ast.Compare: _chain,
    ast.Constant: lambda flow, node, yes, no: yes if node.value else no,
}
