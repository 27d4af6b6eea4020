"""Where the source of a function may come from, one test each, and what is refused."""

from __future__ import annotations

import ast
import functools
import importlib.util
import linecache
import os
import subprocess
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from warpjit.errors import SourceError
from warpjit.frontend.source import FunctionSource, of_function

HERE = Path(__file__)


def register(function: Any) -> Any:
    return function


def with_arguments(*_: Any, **__: Any) -> Any:
    return register


def load(path: Path, text: str, name: str = "loaded") -> ModuleType:
    """Import `text` as a module from `path`."""
    path.write_text(text, encoding="utf-8", newline="")
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def in_linecache(text: str, file: str, monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """Run `text` as an interactive interpreter or a notebook does."""
    monkeypatch.setitem(linecache.cache, file, (len(text), None, text.splitlines(keepends=True), file))
    names: dict[str, Any] = {"__name__": "__main__"}
    exec(compile(text, file, "exec", dont_inherit=True), names)
    return names


def line_of(needle: str, text: str) -> int:
    return next(number for number, line in enumerate(text.splitlines(), 1) if needle in line)


def plain(a, b):  # a comment that stays
    """Adds."""
    return a + b


def test_a_file_is_walked_once_for_all_its_functions(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = "".join(f"def f{number}(a):\n    return a + {number}, lambda b: b - {number}\n" for number in range(30))
    module = load(tmp_path / "many.py", text)
    walked: list[ast.AST] = []
    walk = ast.walk

    def noted(node: ast.AST) -> Any:
        walked.append(node)
        return walk(node)

    monkeypatch.setattr(ast, "walk", noted)
    found = [
        of_function(each) for number in range(30) for f in [getattr(module, f"f{number}")] for each in (f, f(0)[1])
    ]
    assert [each.first_line for each in found] == [2 * number + line for number in range(30) for line in (1, 2)]
    assert len([node for node in walked if isinstance(node, ast.Module)]) == 2  # to count characters, and to find all


def test_a_function_of_a_file() -> None:
    source = of_function(plain)
    assert source.file == __file__
    assert source.qualname == source.name == "plain"
    assert source.first_line == line_of("def plain(", HERE.read_text())
    assert source.text == 'def plain(a, b):  # a comment that stays\n    """Adds."""\n    return a + b'
    assert isinstance(source.node, ast.FunctionDef)
    assert source.node.body[-1].lineno == source.first_line + 2
    assert source.node.body[-1].col_offset == 4


def test_a_nested_function() -> None:
    def inner(a):
        return a * 2

    source = of_function(inner)
    assert source.qualname == "test_a_nested_function.<locals>.inner"
    assert source.text == "    def inner(a):\n        return a * 2"
    assert source.node.col_offset == 4


def test_a_closure() -> None:
    def make(count):
        def inner(a):
            return a * count

        return inner

    first, second = of_function(make(2)), of_function(make(3))
    assert first.text.strip().startswith("def inner(a)")
    assert first.node is second.node


def test_stacked_decorators() -> None:
    @register
    @register
    def stacked(a):
        return a

    source = of_function(stacked)
    assert source.text.splitlines()[0].strip() == "@register"
    assert source.node.lineno == source.first_line + 2
    assert source.loc().innermost is not None and source.loc().innermost.text.strip() == "def stacked(a):"


def test_decorated_with_arguments_over_several_lines() -> None:
    @with_arguments(
        1,
        strict=True,
    )
    def decorated(a):
        return a

    source = of_function(decorated)
    assert source.text.splitlines()[0].strip() == "@with_arguments("
    assert source.name == "decorated"


def test_a_static_method() -> None:
    class Holder:
        @staticmethod
        def method(a):
            return a.__secret

    source = of_function(Holder.method)
    assert source.name == "method"
    assert of_function(Holder.__dict__["method"]).node is source.node


def test_the_future_annotations(tmp_path: Path) -> None:
    text = "from __future__ import annotations\n"
    text += "def f(a: undefined[1, 'x']):\n    def g(b: also): return b\n    return g(a)\n"
    source = of_function(load(tmp_path / "future.py", text).f)
    assert isinstance(source.node, ast.FunctionDef)
    assert ast.unparse(source.node.args.args[0].annotation or ast.Pass()) == "undefined[1, 'x']"


def test_characters_outside_ascii_before_and_in_the_code(tmp_path: Path) -> None:
    text = "# ångström 波\nüber = '波波'\ndef f(größe): x = 'äöü'; return größe + über\n"
    source = of_function(load(tmp_path / "wide.py", text).f)
    assert isinstance(source.node, ast.FunctionDef)
    assert isinstance(source.node.body[1], ast.Return)
    returned = source.node.body[1].value
    line = "def f(größe): x = 'äöü'; return größe + über"
    assert isinstance(returned, ast.BinOp)
    assert line[returned.col_offset : returned.end_col_offset] == "größe + über"
    assert line[returned.right.col_offset : returned.right.end_col_offset] == "über"
    frame = source.loc(returned.right).innermost
    assert frame is not None
    shown, caret = frame.render().splitlines()[1:]
    assert [shown[at] for at, mark in enumerate(caret) if mark == "^"] == list("über")


def test_lambdas_after_wide_characters(tmp_path: Path) -> None:
    module = load(tmp_path / "lambdas.py", "fs = ['波波', lambda a: a + 1, lambda a: a + 2]\n")
    assert [of_function(f).text for f in module.fs[1:]] == ["lambda a: a + 1", "lambda a: a + 2"]


def test_the_history_of_an_interactive_interpreter(monkeypatch: pytest.MonkeyPatch) -> None:
    text = "def f(a):\n    return a - 1\n"
    source = of_function(in_linecache(text, "<python-input-3>", monkeypatch)["f"])
    assert (source.file, source.text) == ("<python-input-3>", text.rstrip())


def test_a_notebook_cell_with_await(monkeypatch: pytest.MonkeyPatch) -> None:
    text = "def f(a):\n    return a - 1\nawait f\n"
    monkeypatch.setitem(linecache.cache, "<cell 1>", (len(text), None, text.splitlines(keepends=True), "<cell 1>"))
    names: dict[str, Any] = {}
    exec(compile("def f(a):\n    return a - 1\n", "<cell 1>", "exec"), names)
    assert of_function(names["f"]).name == "f"


def test_the_lambda_that_stands_there_among_several() -> None:
    pair = (lambda a: a + 1, lambda a: a + 2)
    nested = lambda a: lambda b: a + b  # noqa: E731
    constant = [lambda: 1, lambda: True, lambda: 1.0]
    assert [of_function(f).text for f in pair] == ["lambda a: a + 1", "lambda a: a + 2"]
    assert of_function(nested).text == "lambda a: lambda b: a + b"
    assert of_function(nested(1)).text == "lambda b: a + b"
    assert [of_function(f).text for f in constant] == ["lambda: 1", "lambda: True", "lambda: 1.0"]
    assert of_function(pair[0]).name == "<lambda>"


def test_a_lambda_over_several_lines() -> None:
    f = lambda a: (  # noqa: E731
        a + 1
    )
    assert of_function(f).text == "lambda a: (  # noqa: E731\n        a + 1\n    )"


def test_multi_line_strings_keep_their_text() -> None:
    def f():
        return """one
  two
"""

    source = of_function(f)
    assert isinstance(source.node, ast.FunctionDef)
    assert ast.literal_eval(source.node.body[0].value) == "one\n  two\n"  # type: ignore[attr-defined]


def test_a_test_module_whose_asserts_pytest_rewrote() -> None:
    def f(a):
        assert a > 1, "too small"
        return a

    assert of_function(f).name == "f"


def test_windows_line_ends(tmp_path: Path) -> None:
    module = load(tmp_path / "crlf.py", "x = '''a\r\nb'''\r\ndef f(a):\r\n    return a\r\n")
    assert of_function(module.f).text == "def f(a):\n    return a"


def test_places_show_the_line_and_carets() -> None:
    def f(a):
        return max(a,
                   1)  # fmt: skip

    source = of_function(f)
    assert isinstance(source.node, ast.FunctionDef)
    frame = source.loc(source.node.body[0]).innermost
    assert frame is not None
    assert frame.render().splitlines()[1:] == ["    return max(a,", "    ^^^^^^^^^^^^^"]
    assert (frame.file, frame.function, frame.line) == (__file__, source.qualname, source.first_line + 1)


def test_what_a_fingerprint_sees(tmp_path: Path) -> None:
    def of(text: str) -> str:
        path = tmp_path / f"m{len(list(tmp_path.iterdir()))}.py"
        return of_function(load(path, text).f).fingerprint

    base = of("def f(a):\n    return a + 1\n")
    assert of("\n\nif 1:\n  def f( a ):  # comment\n\n      return (a+1)\n") == base
    assert of("d = lambda f: f\n@d\ndef f(a): return a + 1\n") == base
    others = {of(f"def f(a):\n    return a + {literal}\n") for literal in ("2", "True", "1.0", "'1'")}
    assert len(others | {base}) == 5


# ---- an edited file -----------------------------------------------------------------------------------


def edited(tmp_path: Path, before: str, after: str) -> FunctionSource:
    path = tmp_path / "edited.py"
    function = load(path, before).f
    path.write_text(after)
    os.utime(path, (1, 1))
    return of_function(function)


@pytest.mark.parametrize(
    "after",
    [
        "def f(a):\n    return a + 2\n",
        "def f(a):\n    return a + True\n",
        "def f(b):\n    return b + 1\n",
        "def g(a):\n    return a + 1\n",
        "\ndef f(a):\n    return a + 1\n",
        "def f(a):\n    return b + 1\n",
        "def f(a: 1 +):\n    return",
        "# nothing\n",
    ],
)
def test_a_file_that_was_edited_is_refused(tmp_path: Path, after: str) -> None:
    with pytest.raises(SourceError, match="edited"):
        edited(tmp_path, "def f(a):\n    return a + 1\n", after)


def test_an_edit_elsewhere_in_the_file_does_not_matter(tmp_path: Path) -> None:
    before = "def f(a):\n    return a + 1\n"
    assert edited(tmp_path, before, before + "x = 1\n").text == before.rstrip()


def test_lambdas_that_changed_places_are_refused(tmp_path: Path) -> None:
    with pytest.raises(SourceError, match="edited"):
        edited(tmp_path, "f, g = lambda a: a + 1, lambda a: a + 2\n", "f, g = lambda a: a + 2, lambda a: a + 1\n")


def test_a_later_edit_leaves_what_was_read(tmp_path: Path) -> None:
    path = tmp_path / "later.py"
    source = of_function(load(path, "def f(a):\n    return a + 1\n").f)
    path.write_text("def f(a):\n    return a + 2\n")
    assert source.text.endswith("a + 1")
    assert source.loc().innermost is not None and source.loc().innermost.text == "def f(a):"


# ---- what has no source -------------------------------------------------------------------------------


def test_exec_without_a_source_is_refused() -> None:
    names: dict[str, Any] = {}
    exec("def f(a):\n    return a\n", names)
    with pytest.raises(SourceError, match="source of f cannot be had"):
        of_function(names["f"])


def test_standard_input_is_refused() -> None:
    text = (
        "from warpjit.frontend.source import of_function\nfrom warpjit.errors import SourceError\ndef f(a): return a\n"
        "try: of_function(f)\nexcept SourceError as problem: print('refused', problem)\n"
    )
    done = subprocess.run([sys.executable, "-"], input=text, capture_output=True, text=True, check=True)
    assert done.stdout.startswith("refused the source of f cannot be had: '<stdin>'")


@pytest.mark.parametrize("thing", [len, 3, functools.partial(plain, 1), ModuleType])
def test_what_is_no_python_function_is_refused(thing: Any) -> None:
    with pytest.raises(SourceError, match="expected a Python function but got"):
        of_function(thing)


def test_an_async_def_is_refused() -> None:
    async def f(a):
        return a

    with pytest.raises(SourceError, match="is an async def"):
        of_function(f)


def test_lambdas_without_columns_are_refused_unless_they_say_the_same(tmp_path: Path) -> None:
    path = tmp_path / "columns.py"
    path.write_text(
        "from warpjit.frontend.source import of_function\nfrom warpjit.errors import SourceError\n"
        "a, b = lambda x: x, lambda x: x\nc, d = lambda x: x, lambda y: y\n"
        "print(of_function(b).text)\n"
        "try: of_function(c)\nexcept SourceError as problem: print(problem)\n"
    )
    command = [sys.executable, "-X", "no_debug_ranges", str(path)]
    root = str(HERE.parents[2])
    done = subprocess.run(command, capture_output=True, text=True, check=True, env=os.environ | {"PYTHONPATH": root})
    assert done.stdout.splitlines()[0] == "lambda x: x"
    assert "2 lambdas stand on this line" in done.stdout
