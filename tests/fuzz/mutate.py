"""Programs made wrong at random: warpjit computes something or says what is wrong, by an error of its family.

A mutant has a few changes in its syntax tree: expressions and statements from elsewhere in the program, constants and
operators of any kind, other names of `T`, arguments too few or too many, statements that the language does not have.
What a mutant computes is not looked at.
"""

from __future__ import annotations

import ast
import copy
import random
from collections.abc import Callable
from pathlib import Path

import warpjit
from warpjit import T

from .trial import Case, Failure, limited

SECONDS = 10
CONSTANTS = (None, "float16", 2**70, -1, 1.5, True, 0, 1e400, b"x", ..., 1j, -(2**31), 64, "x")
OPERATORS = (ast.Add, ast.Sub, ast.Mult, ast.Div, ast.FloorDiv, ast.Mod, ast.LShift, ast.BitAnd, ast.MatMult)
COMPARISONS = (ast.Eq, ast.Lt, ast.Is, ast.IsNot, ast.In, ast.NotIn, ast.GtE)
NAMES = tuple(name for name in dir(T) if not name.startswith("_"))
CUDA_NAMES = tuple(name for name in dir(T.cuda) if not name.startswith("_"))
STATEMENTS = (
    *("pass", "return", "break", "continue", "return lane", "del lane", "global GRID", "raise ValueError(lane)"),
    *("import math", "assert lane < 40", "assert lane, 'text'", "lane: T.int32 = 3", "x = [lane, n]", "x = {1: lane}"),
    *(
        "with lane: pass",
        "try: lane\nexcept Exception: pass",
        "match lane:\n    case 1: pass",
        "yield lane",
        "print(lane)",
    ),
    *("lane, *rest = (n, n, n)", "lane = tid = n", "n.x = lane", "T.x = lane", "kernel = lane", "x = lambda: lane"),
    *("class C: pass", "def lane(): return 1", "for lane in 5: pass", "for a, b in ((n, 1), (n, 2)): pass", "lane()"),
    *(
        "x = f'{lane}'",
        "x = [i for i in range(3)]",
        "x = {*()}",
        "x = (yield)",
        "T.device_entry(launch=None)",
        "lane[0]",
    ),
    *(
        "T = lane",
        "while lane: lane -= 1",
        "if n: lane = 1.5",
        "lane = 'a' if lane else 'b'",
        "x = lane if n else None",
    ),
)
Change = Callable[[random.Random, ast.Module], None]


def _bodies(tree: ast.Module) -> list[list[ast.stmt]]:
    functions = [node for node in tree.body if isinstance(node, ast.FunctionDef)]
    found = []
    for function in functions:
        for node in ast.walk(function):
            found += [block for name in ("body", "orelse") if isinstance(block := getattr(node, name, None), list)]
    return [block for block in found if block]


def _places(tree: ast.Module) -> list[tuple[ast.AST, str, int | None]]:
    """Where an expression that is read stands."""
    found: list[tuple[ast.AST, str, int | None]] = []
    for block in _bodies(tree):
        for statement in block:
            for node in ast.walk(statement):
                for name, value in ast.iter_fields(node):
                    items = value if isinstance(value, list) else [value]
                    for index, item in enumerate(items):
                        read = isinstance(item, ast.expr) and not isinstance(getattr(item, "ctx", None), ast.Store)
                        if read and not isinstance(item, ast.Starred | ast.Slice) and name != "decorator_list":
                            found.append((node, name, index if isinstance(value, list) else None))
    return found


def _get(place: tuple[ast.AST, str, int | None]) -> ast.expr:
    node, name, index = place
    value = getattr(node, name)
    return value if index is None else value[index]


def _put(place: tuple[ast.AST, str, int | None], expression: ast.expr) -> None:
    node, name, index = place
    if index is None:
        setattr(node, name, expression)
    else:
        getattr(node, name)[index] = expression


def _other_expression(rng: random.Random, tree: ast.Module) -> None:
    places = _places(tree)
    _put(rng.choice(places), copy.deepcopy(_get(rng.choice(places))))


def _constant(rng: random.Random, tree: ast.Module) -> None:
    _put(rng.choice(_places(tree)), ast.Constant(rng.choice(CONSTANTS)))


def _drop(rng: random.Random, tree: ast.Module) -> None:
    block = rng.choice(_bodies(tree))
    del block[rng.randrange(len(block))]
    if not block:
        block.append(ast.Pass())


def _copy_statement(rng: random.Random, tree: ast.Module) -> None:
    source, block = rng.choice(_bodies(tree)), rng.choice(_bodies(tree))
    block.insert(rng.randrange(len(block) + 1), copy.deepcopy(rng.choice(source)))


def _foreign(rng: random.Random, tree: ast.Module) -> None:
    block = rng.choice(_bodies(tree))
    block.insert(rng.randrange(len(block) + 1), ast.parse(rng.choice(STATEMENTS)).body[0])


def _operator(rng: random.Random, tree: ast.Module) -> None:
    nodes = [node for node in ast.walk(tree) if isinstance(node, ast.BinOp | ast.AugAssign | ast.Compare)]
    if not nodes:
        return
    node = rng.choice(nodes)
    if isinstance(node, ast.Compare):
        node.ops = [rng.choice(COMPARISONS)() for _ in node.ops]
    else:
        node.op = rng.choice(OPERATORS)()


def _attribute(rng: random.Random, tree: ast.Module) -> None:
    places = [place for place in _places(tree) if isinstance(_get(place), ast.Attribute)]
    if places:
        node = _get(rng.choice(places))
        assert isinstance(node, ast.Attribute)
        node.attr = rng.choice(CUDA_NAMES if isinstance(node.value, ast.Attribute) else NAMES)


def _arguments(rng: random.Random, tree: ast.Module) -> None:
    calls = [_get(place) for place in _places(tree) if isinstance(_get(place), ast.Call)]
    if not calls:
        return
    node = rng.choice(calls)
    assert isinstance(node, ast.Call)
    if node.args and rng.random() < 0.5:
        del node.args[rng.randrange(len(node.args))]
    elif rng.random() < 0.3:
        node.keywords.append(ast.keyword(rng.choice(("width", "where", "n", "unroll")), ast.Constant(3)))
    else:
        node.args.insert(rng.randrange(len(node.args) + 1), copy.deepcopy(_get(rng.choice(_places(tree)))))


CHANGES: tuple[Change, ...] = (
    *(_other_expression, _other_expression, _constant, _drop, _copy_statement, _foreign, _operator),
    *(_attribute, _arguments),
)


def mutant(text: str, seed: int) -> str:
    """The program with one to three changes."""
    rng, tree = random.Random(seed), ast.parse(text)
    for _ in range(rng.randint(1, 3)):
        rng.choice(CHANGES)(rng, tree)
    return ast.unparse(ast.fix_missing_locations(tree))


def trouble(text: str, folder: Path, name: str) -> Failure | None:
    """What a mutant raises that is not of the family; None where it is, or where nothing is raised."""
    try:
        compile(text, name, "exec")
    except SyntaxError:
        return None
    try:
        with limited(SECONDS):
            case = Case(text, folder, name)
            case.kernel.source(*case.arguments("cpu").values())
    except warpjit.WarpjitError:
        return None
    except Exception as error:
        return Failure(f"leaked {type(error).__name__}", f"{type(error).__name__}: {error}", mutant=True)
    return None
