"""The source of a function, read once, at decoration, and proven to be what Python runs.

`of_function` reads the lines that `linecache` gives at that moment (of `python -c` the interpreter's own argument),
parses the whole file (so line numbers, columns and multi-line strings stay the user's), finds the definition by the
code object's line, name and positions, and compiles the text again to see that it gives the same code: a file that was
edited since it was imported is refused, never traced. What names mean (globals, closure) stays with the function
object; what the definition means is the tracer's.
"""

from __future__ import annotations
import __future__

import ast
import copy
import functools
import hashlib
import inspect
import linecache
import sys
import types
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from warpjit.errors import Frame, Loc, SourceError

FunctionNode: TypeAlias = ast.FunctionDef | ast.Lambda

_FUTURE_FLAGS = functools.reduce(
    lambda flags, name: flags | int(getattr(__future__, name).compiler_flag), __future__.all_feature_names, 0
)
_FUTURE_FLAGS &= ~inspect.CO_NESTED  # that of nested_scopes, which functions in functions have whatever is imported
COMMAND = "<string>"
"""What Python calls the program of `python -c`, and any other text without a file."""
_PYTEST_NAMES = ("@py_builtins", "@pytest_ar")


@dataclass(frozen=True, eq=False)
class SourceFile:
    """One text as it was when it was read. `tree` has columns in characters, not in bytes as `ast` gives them."""

    file: str
    lines: tuple[str, ...]
    tree: ast.Module = field(repr=False)
    code: types.CodeType = field(repr=False)

    # A file may hold hundreds of kernels: each walk over all of it is done once.

    @functools.cached_property
    def definitions(self) -> Mapping[tuple[str, int], Sequence[FunctionNode]]:
        """The functions and lambdas by name and first line."""
        found: dict[tuple[str, int], list[FunctionNode]] = {}
        for node in ast.walk(self.tree):
            if isinstance(node, ast.FunctionDef | ast.Lambda):
                found.setdefault((_name(node), _first_line(node)), []).append(node)
        return found

    @functools.cached_property
    def codes(self) -> Mapping[tuple[str, int], Sequence[types.CodeType]]:
        """What Python compiles of them, likewise."""
        found: dict[tuple[str, int], list[types.CodeType]] = {}
        for code in _codes(self.code):
            found.setdefault((code.co_name, code.co_firstlineno), []).append(code)
        return found

    def frame(self, node: ast.AST, function: str) -> Frame:
        """Where `node` stands. A node of several lines is shown to the end of its first."""
        line = getattr(node, "lineno", 0)
        if not 1 <= line <= len(self.lines):
            return Frame(self.file, function, line, 0, 0)
        text = self.lines[line - 1]
        column = getattr(node, "col_offset", 0)
        end = getattr(node, "end_col_offset", None)
        if end is None or getattr(node, "end_lineno", line) != line:
            end = max(len(text.rstrip()), column + 1)
        return Frame(self.file, function, line, column, end, text)


@dataclass(frozen=True, eq=False)
class FunctionSource:
    """One definition.

    file        the name of the file, as the code object gives it
    qualname    "outer.<locals>.kernel"
    first_line  of the definition with its decorators, counted from 1
    text        exactly as written: whole lines of a `def` with its decorators, the expression of a lambda
    node        the parsed definition; lines are the file's, columns are characters from 0
    origin      the whole file, for places
    """

    file: str
    qualname: str
    first_line: int
    text: str
    node: FunctionNode = field(repr=False)
    origin: SourceFile = field(repr=False)
    _frames: dict[ast.AST, Frame] = field(default_factory=dict, init=False, repr=False)

    @property
    def name(self) -> str:
        """The function's own name, "<lambda>" for a lambda."""
        return _name(self.node)

    def frame(self, node: ast.AST) -> Frame:
        """The place of `node`, worked out once: a helper is traced wherever it is called."""
        found = self._frames.get(node)
        if found is None:
            found = self._frames[node] = self.origin.frame(node, self.qualname)
        return found

    def loc(self, node: ast.AST | None = None) -> Loc:
        """The place of `node`, or of the definition's `def` line."""
        return Loc((self.frame(self.node if node is None else node),))

    @functools.cached_property
    def fingerprint(self) -> str:
        """A hash of what the definition says: no line, path, comment, spacing, docstring or decorator is in it."""
        node = self.node
        if isinstance(node, ast.FunctionDef):
            node = copy.copy(node)
            node.decorator_list = []
            if ast.get_docstring(node, clean=False) is not None:
                node.body = node.body[1:]
        return hashlib.sha256(ast.dump(node).encode("utf-8", "surrogatepass")).hexdigest()


def of_function(function: Callable[..., Any], known: SourceFile | None = None) -> FunctionSource:
    """The source of a Python function, lambda or static method, as it is now.

    known   a text that was read before: if it is the one that the function was compiled from, it is not read again
    SourceError: not a Python function; no source to be had (standard input, `exec`); the text is not the one
    that the function was compiled from; a lambda that cannot be told from its neighbours.
    """
    plain = getattr(function, "__func__", function)
    if not isinstance(plain, types.FunctionType):
        raise SourceError(f"expected a Python function but got {type(function).__name__} {function!r}")
    code = plain.__code__
    if code.co_flags & (inspect.CO_COROUTINE | inspect.CO_ASYNC_GENERATOR):
        raise SourceError(f"expected a function of def or lambda but {plain.__qualname__} is an async def")
    found = _definition(plain, known) if known is not None and known.file == code.co_filename else None
    found = found or _definition(plain, _read(plain))
    if found is None and code.co_filename == COMMAND:
        raise _no_source(plain)
    if found is None:
        raise SourceError(
            f"{code.co_filename}, line {code.co_firstlineno}: the text of {plain.__qualname__} is not what Python "
            "compiled: the file was edited after it was imported, or something rewrote the code. Import it afresh."
        )
    return found


def of_kernel(function: Callable[..., Any]) -> FunctionSource:
    """The source of a kernel. SourceError as in `of_function`, and for a lambda: a kernel is made of statements."""
    found = of_function(function)
    if isinstance(found.node, ast.Lambda):
        raise SourceError(
            f"{found.file}, line {found.first_line}: expected a function of def but got a lambda: a kernel begins with "
            "T.device_entry(...) and is made of statements; a lambda can be a helper"
        )
    return found


def _definition(function: types.FunctionType, origin: SourceFile) -> FunctionSource | None:
    """The function's definition in a text; None if the text is not what it was compiled from."""
    code = function.__code__
    # Lambdas of one line may have equal code, and only their positions tell which is which.
    find = _found.__wrapped__ if code.co_name == "<lambda>" else _found
    return find(origin, code, function.__qualname__)


@functools.lru_cache(maxsize=1024)
def _found(origin: SourceFile, code: types.CodeType, qualname: str) -> FunctionSource | None:
    """The definition of a code object: a factory of kernels asks for each of them, and they share one."""
    node = _find(origin, code)
    if node is None or not _same_code(origin, code, node):
        return None
    return FunctionSource(code.co_filename, qualname, code.co_firstlineno, _text_of(origin.lines, node), node, origin)


# ---- reading and parsing ------------------------------------------------------------------------------


def _read(function: types.FunctionType) -> SourceFile:
    """The file that `function` was compiled from, as it is at this moment."""
    code = function.__code__
    linecache.checkcache(code.co_filename)
    lines = linecache.getlines(code.co_filename, function.__globals__)
    if not lines and hasattr(linecache, "_getlines_from_code"):  # the interactive interpreter of 3.13 and later
        lines = linecache._getlines_from_code(code)
    if not lines and code.co_filename == COMMAND:
        lines = (command(sys.orig_argv) or "").splitlines(keepends=True)
    if not lines:
        raise _no_source(function)
    try:
        text = "".join(lines).replace("\r\n", "\n")
        return _parse(code.co_filename, text, code.co_flags & _FUTURE_FLAGS)
    except SyntaxError as problem:
        raise SourceError(
            f"{code.co_filename}, line {problem.lineno}: the file no longer parses ({problem.msg}); it was edited "
            f"after {function.__qualname__} was imported from it."
        ) from None


def _no_source(function: types.FunctionType) -> SourceError:
    return SourceError(
        f"the source of {function.__qualname__} cannot be had: {function.__code__.co_filename!r} cannot be read. "
        "Kernels are traced from their source, so define them in a file or a notebook cell "
        "(not on standard input, and not through exec without a linecache entry)."
    )


def command(arguments: Sequence[str]) -> str | None:
    """The program of `python -c program`, from the interpreter's own arguments; None where there is none.

    Options are read as Python's manual has them ("Command line and environment"): -W and -X take an argument, letters
    may stand together, and -c ends the options. Whether it is the text of a function is for the caller to prove.
    """
    waiting = list(arguments[1:])
    while waiting:
        option = waiting.pop(0)
        if option.startswith("--"):
            del waiting[: option == "--check-hash-based-pycs"]
            continue
        letters = option[1:] if option.startswith("-") else ""
        first = next((i for i, letter in enumerate(letters) if letter in "cmWX"), None)
        if not letters:
            return None
        if first is None:
            continue
        attached = letters[first + 1 :]
        if letters[first] in "cm":
            program = attached or (waiting[0] if waiting else "")
            return program + "\n" if letters[first] == "c" else None
        del waiting[: not attached]
    return None


@functools.lru_cache(maxsize=64)
def _parse(file: str, text: str, flags: int) -> SourceFile:
    """Parse and compile a text once, however many kernels it holds. `flags`: the __future__ imports in force."""
    flags |= ast.PyCF_ALLOW_TOP_LEVEL_AWAIT  # notebook cells may have it
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # Python has shown them to the user when it compiled the file
        tree = compile(text, file, "exec", flags | ast.PyCF_ONLY_AST, dont_inherit=True)
        code = compile(text, file, "exec", flags, dont_inherit=True)
    lines = tuple(text.split("\n"))
    _count_characters(tree, lines)
    return SourceFile(file, lines, tree, code)


def _count_characters(tree: ast.AST, lines: tuple[str, ...]) -> None:
    """Turn the columns of `tree` from UTF-8 bytes into characters, in place."""
    node: Any
    for node in ast.walk(tree):
        if hasattr(node, "col_offset"):
            node.col_offset = _characters(lines, node.lineno, node.col_offset)
            node.end_col_offset = _characters(lines, node.end_lineno, node.end_col_offset)


def _characters(lines: tuple[str, ...], line: int, column: int) -> int:
    """The column in characters of a column in UTF-8 bytes."""
    text = lines[line - 1]
    return column if text.isascii() else len(text.encode("utf-8", "surrogatepass")[:column].decode("utf-8", "replace"))


def _text_of(lines: tuple[str, ...], node: FunctionNode) -> str:
    first, last = _first_line(node), int(node.end_lineno or node.lineno)
    chosen = list(lines[first - 1 : last])
    if isinstance(node, ast.Lambda):
        chosen[-1] = chosen[-1][: node.end_col_offset]
        chosen[0] = chosen[0][node.col_offset :]
    return "\n".join(chosen)


# ---- finding the definition ---------------------------------------------------------------------------


def _name(node: FunctionNode) -> str:
    return "<lambda>" if isinstance(node, ast.Lambda) else node.name


def _first_line(node: FunctionNode) -> int:
    """As `co_firstlineno` counts: the line of the first decorator."""
    decorators = node.decorator_list if isinstance(node, ast.FunctionDef) else []
    return min([node.lineno, *(decorator.lineno for decorator in decorators)])


def _find(origin: SourceFile, code: types.CodeType) -> FunctionNode | None:
    """The definition that `code` was compiled from, by its line and name and, among lambdas, its positions."""
    found = origin.definitions.get((code.co_name, code.co_firstlineno), ())
    if len(found) < 2:
        return found[0] if found else None
    spans = list(_spans(origin.lines, code))
    if not spans:
        return _only_meaning(found, code)
    holders = [node for node in found if isinstance(node, ast.Lambda) and _holds(node.body, spans)]
    return min(holders, key=_extent, default=None)  # of nested ones the innermost


def _spans(lines: tuple[str, ...], code: types.CodeType) -> Iterator[tuple[int, int, int, int]]:
    """(line, column, end line, end column) of the instructions of a lambda, columns in characters."""
    for line, end_line, column, end_column in code.co_positions():
        if line is None or end_line is None or column is None or end_column is None:
            continue
        if (line, column) == (end_line, end_column) or max(line, end_line) > len(lines):
            continue  # what the compiler adds in front of the body has no extent
        yield line, _characters(lines, line, column), end_line, _characters(lines, end_line, end_column)


def _holds(body: ast.expr, spans: list[tuple[int, int, int, int]]) -> bool:
    start, end = (body.lineno, body.col_offset), (body.end_lineno or 0, body.end_col_offset or 0)
    return all(start <= (line, column) and (last, stop) <= end for line, column, last, stop in spans)


def _extent(node: ast.Lambda) -> tuple[int, int]:
    """Orders lambdas that hold each other, the inner one first."""
    return (-node.lineno, -node.col_offset)


def _only_meaning(found: Sequence[FunctionNode], code: types.CodeType) -> FunctionNode:
    """Of lambdas without positions: the one that returns the code's constant, or any if all say the same.

    Python keeps no positions with -X no_debug_ranges, and none for a lambda that returns a constant from 3.12 on.
    """
    constants = {repr(value) for value in code.co_consts}
    if not code.co_names and not code.co_varnames:
        returned: list[FunctionNode] = [
            node
            for node in found
            if isinstance(node, ast.Lambda)
            and isinstance(node.body, ast.Constant)
            and repr(node.body.value) in constants
        ]
        found = returned or found
    if len({ast.dump(node) for node in found}) == 1:
        return found[0]
    raise SourceError(
        f"{code.co_filename}, line {code.co_firstlineno}: {len(found)} lambdas stand on this line and Python keeps no "
        "columns here, so they cannot be told apart. Put each on its own line, or use def."
    )


# ---- proving that it is the one -----------------------------------------------------------------------


def _same_code(origin: SourceFile, code: types.CodeType, node: FunctionNode) -> bool:
    """Whether compiling the text of `node` gives `code`."""
    return any(
        _matches(candidate, code) and _find(origin, candidate) is node
        for candidate in origin.codes.get((code.co_name, code.co_firstlineno), ())
    )


def _codes(code: types.CodeType) -> Iterator[types.CodeType]:
    """All code objects inside `code`."""
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            yield constant
            yield from _codes(constant)


def _matches(compiled: types.CodeType, running: types.CodeType) -> bool:
    if any(name in running.co_names for name in _PYTEST_NAMES):
        # pytest rewrites `assert` in test modules and adds to the rest: all that the text says must be there.
        return _parameters(compiled) == _parameters(running) and _words(compiled) <= _words(running)
    return _summary(compiled) == _summary(running)


def _parameters(code: types.CodeType) -> tuple[object, ...]:
    count = code.co_argcount + code.co_kwonlyargcount
    return (code.co_argcount, code.co_posonlyargcount, code.co_kwonlyargcount, code.co_varnames[:count])


def _words(code: types.CodeType) -> frozenset[str]:
    """The names that a code object uses."""
    return frozenset(code.co_names + code.co_varnames + code.co_freevars + code.co_cellvars)


def _summary(code: types.CodeType) -> tuple[object, ...]:
    """What a code object does, without where it stands. Constants with their types: 1, True and 1.0 differ."""
    return (
        _parameters(code),
        code.co_code,
        code.co_names,
        code.co_varnames,
        code.co_freevars,
        code.co_cellvars,
        tuple(_constant(value) for value in code.co_consts),
    )


def _constant(value: object) -> object:
    if isinstance(value, types.CodeType):
        return _summary(value)
    if isinstance(value, tuple):
        return tuple(_constant(item) for item in value)
    if isinstance(value, frozenset):
        return frozenset(_constant(item) for item in value)
    return (type(value).__name__, repr(value))
