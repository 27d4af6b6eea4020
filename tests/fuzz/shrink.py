"""A smaller program that fails in the same way: pieces of the syntax tree are taken away while the failure stays.

Statements are dropped, blocks take the place of what holds them, expressions that of the expressions around them, and
a typed literal that of anything. A candidate counts if `fails` says so; the oracle refuses what is no longer well
defined.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator
from typing import Any

KINDS = ("int32", "float32", "int64", "int16", "int8", "bool", "float16", "uint32", "float64", "bfloat16")
BLOCKS = ("body", "orelse")
KEPT = ("T.device_entry", "T.cuda.cta_sync")
Change = Callable[[], None]
"""Makes one change in a tree."""


def size_of(tree: ast.AST) -> int:
    return sum(1 for _ in ast.walk(tree))


def _lists(tree: ast.AST) -> Iterator[list[ast.stmt]]:
    """The lists of statements of all functions, outer ones first."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Module):
            yield node.body
        for name in BLOCKS:
            block = getattr(node, name, None)
            if isinstance(block, list) and block and not isinstance(node, ast.Module):
                yield block


def _dropped(tree: ast.Module) -> Iterator[Change]:
    """Runs of statements taken away, long ones first; and blocks in the place of what holds them."""
    for length in (16, 8, 4, 2, 1):
        for block in _lists(tree):
            for start in range(len(block) - 1, -1, -1):
                if length > 1 and start + length > len(block):
                    continue
                if isinstance(block[start], ast.ImportFrom) or _is_settled(tree, block[start]):
                    continue
                yield _without(block, start, length)
    for block in _lists(tree):
        for start, statement in enumerate(block):
            for name in BLOCKS:
                inner = getattr(statement, name, None)
                if isinstance(inner, list) and inner and not isinstance(statement, ast.FunctionDef):
                    yield _unwrapped(block, start, inner)
                    if name == "orelse":
                        yield _without(inner, 0, len(inner), empty=True)


def _is_settled(tree: ast.Module, statement: ast.stmt) -> bool:
    """What a module needs to be a case: its arguments and its kernel."""
    return statement in tree.body and (isinstance(statement, ast.Assign) or getattr(statement, "name", "") == "kernel")


def _without(block: list[ast.stmt], start: int, length: int, empty: bool = False) -> Change:
    def change() -> None:
        del block[start : start + length]
        if not block and not empty:
            block.append(ast.Pass())

    return change


def _unwrapped(block: list[ast.stmt], start: int, inner: list[ast.stmt]) -> Change:
    def change() -> None:
        block[start : start + 1] = inner

    return change


def _expressions(tree: ast.Module) -> Iterator[tuple[Any, str, int | None, ast.expr]]:
    """Every place that holds an expression, in functions: the node, its field, the index in a list."""
    for function in tree.body:
        if not isinstance(function, ast.FunctionDef):
            continue
        for node in ast.walk(function):
            if isinstance(node, ast.arguments | ast.arg) or node in function.decorator_list:
                continue
            for name, value in ast.iter_fields(node):
                if name in ("targets", "target", "func", "decorator_list", "annotation", "keywords"):
                    continue
                for index, item in enumerate(value if isinstance(value, list) else [value]):
                    if isinstance(item, ast.expr) and not isinstance(item, ast.Attribute):
                        yield node, name, index if isinstance(value, list) else None, item


def _inner(expression: ast.expr) -> Iterator[ast.expr]:
    for node in ast.iter_child_nodes(expression):
        if isinstance(node, ast.expr) and not isinstance(node, ast.Attribute):
            yield node


def _replaced(tree: ast.Module) -> Iterator[Change]:
    """Expressions in whose place stands a part of them, or a literal."""
    for node, name, index, expression in _expressions(tree):
        if isinstance(expression, ast.Constant | ast.Slice | ast.Starred):
            continue
        for part in _inner(expression):
            if not isinstance(part, ast.Constant):
                yield _put(node, name, index, part)
        if isinstance(expression, ast.Call) and all(isinstance(each, ast.Constant) for each in expression.args):
            continue
        if not isinstance(expression, ast.Name):
            for kind in KINDS:
                text = "True" if kind == "bool" else f"T.{kind}(1)"
                yield _put(node, name, index, ast.parse(text, mode="eval").body)


def _put(node: Any, name: str, index: int | None, expression: ast.expr) -> Change:
    def change() -> None:
        if index is None:
            setattr(node, name, expression)
        else:
            getattr(node, name)[index] = expression

    return change


def _candidates(text: str, changes: Callable[[ast.Module], Iterator[Change]]) -> Iterator[tuple[int, str]]:
    """Texts with one change each, and the number of the change."""
    count = sum(1 for _ in changes(ast.parse(text)))
    for number in range(count):
        tree = ast.parse(text)
        for position, change in enumerate(changes(tree)):
            if position == number:
                change()
                break
        yield number, ast.unparse(ast.fix_missing_locations(tree))


def shrunk(text: str, fails: Callable[[str], bool], most: int = 1500) -> str:
    """`text`, smaller; `fails` says whether a text still fails in the same way, and is asked `most` times at most."""
    text, asked, seen = ast.unparse(ast.parse(text)), 0, {text}
    changed = True
    while changed and asked < most:
        changed = False
        for changes in (_dropped, _replaced):
            again = True
            while again and asked < most:
                again = False
                for _, candidate in _candidates(text, changes):
                    if candidate in seen or len(candidate) > len(text) + 8:
                        continue
                    seen.add(candidate)
                    asked += 1
                    if fails(candidate) and size_of(ast.parse(candidate)) < size_of(ast.parse(text)):
                        text, again, changed = candidate, True, True
                        break
                    if asked >= most:
                        break
    return text
