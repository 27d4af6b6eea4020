"""Liveness against small programs with known answers, and against running programs down all their paths."""

from __future__ import annotations

import ast
import copy
import textwrap
from typing import Any

import pytest
from hypothesis import event, given, settings
from hypothesis import strategies as st

from warpjit.frontend import names
from warpjit.frontend.liveness import Liveness


def function(body: str, parameters: str = "a, b, c") -> ast.FunctionDef:
    text = f"def f({parameters}):\n" + textwrap.indent(textwrap.dedent(body).strip("\n"), "    ")
    node = ast.parse(text).body[0]
    assert isinstance(node, ast.FunctionDef)
    return node


def at(node: ast.FunctionDef, mark: str) -> Any:
    """The innermost statement that starts on the line with this text."""
    lines = ast.unparse(node).splitlines()
    again = ast.parse("\n".join(lines)).body[0]
    line = next(number for number, text in enumerate(lines, 1) if text.strip() == mark)
    index = [getattr(part, "lineno", 0) if isinstance(part, ast.stmt) else 0 for part in ast.walk(again)].index(line)
    return list(ast.walk(node))[index]


def after(body: str, mark: str) -> set[str]:
    node = function(body)
    return set(Liveness(node).live_after(at(node, mark)))


def exposed(body: str, mark: str) -> set[str]:
    node = function(body)
    return set(Liveness(node).exposed(at(node, mark)))


AFTER = [
    ("x = 1\nuse(x)", "x = 1", "x"),
    ("x = 1\nx = a\nuse(x)", "x = 1", "a"),
    ("x = 1\nx += a", "x = 1", "x a"),
    ("x = 1\nx[a] = b", "x = 1", "x a b"),
    ("x = 1\n(x, y[a]) = b", "x = 1", "a b"),
    ("x = 1\nif a:\n    x = 2\nuse(x)", "x = 1", "x a"),
    ("x = 1\nif a:\n    x = 2\nelse:\n    x = 3\nuse(x)", "x = 1", "a"),
    ("x = 1\nif a:\n    x = 2\n    return x\nuse(b)", "x = 1", "a b"),
    ("x = 1\nif a:\n    x = 2\n    return x\nuse(b)", "x = 2", "x"),
    ("x = 1\nfor i in a:\n    use(x)\n    x = b", "x = b", "x b"),
    ("x = 1\nfor i in a:\n    x = b\n    use(x)", "x = 1", "a b"),
    ("x = 1\nfor i in a:\n    x = b\n    use(x)", "use(x)", "b"),
    ("x = 1\nfor x in a:\n    pass\nuse(x)", "x = 1", "a x"),
    ("for i in a:\n    pass\nuse(i)", "for i in a:", "i"),
    ("for i in a:\n    if b:\n        break\nelse:\n    use(c)\nuse(i)", "for i in a:", "c i"),
    ("for i in a:\n    if b:\n        break\nelse:\n    use(c)\nuse(i)", "break", "i"),
    ("x = 1\nfor i in a:\n    if b:\n        continue\n    x = 2\nelse:\n    use(x)", "continue", "x b"),
    ("x = 1\nwhile True:\n    if a:\n        break\n    x = b\nuse(c)", "x = 1", "a b c"),
    ("x = 1\nwhile True:\n    x = 2\n    if a:\n        break\nuse(x)", "x = 1", "a"),
    ("x = 1\nwhile a:\n    x = 2\n    if a:\n        break\nuse(x)", "x = 1", "a x"),
    ("x = 1\nreturn a\nuse(x)", "x = 1", "a"),
    ("x = 1\nreturn a", "return a", ""),
    ("x = 1\nassert a, x\nx = b\nuse(x)", "x = 1", "a b x"),
    ("x = 1\nwith a as x:\n    use(x)", "x = 1", "a"),
    ("x = 1\nx: int = a\nuse(x)", "x = 1", "a"),
    ("x = 1\nx: int\nuse(x)", "x = 1", "x"),
    ("x = 1\nimport x\nuse(x)", "x = 1", ""),
    ("x = 1\ndel x", "x = 1", "x"),
    ("x = 1\nuse((x := a), x)", "x = 1", "a"),
    ("x = 1\nuse(x, (x := a))", "x = 1", "a x"),
    ("x = 1\na and (x := b)\nuse(x)", "x = 1", "a b x"),
    ("x = 1\n(x := a) and b\nuse(x)", "x = 1", "a b"),
    ("x = 1\n(x := a) if b else (x := c)\nuse(x)", "x = 1", "a b c"),
    ("x = 1\n(x := a) if b else c\nuse(x)", "x = 1", "a b c x"),
    ("x = 1\na < (x := b)\nuse(x)", "x = 1", "a b"),
    ("x = 1\na < b < (x := c)\nuse(x)", "x = 1", "a b c x"),
    ("x = 1\nuse({(x := a): x})", "x = 1", "a"),
    ("x = 1\nx = f'{x!r:{a}}'", "x = 1", "a x"),
    ("x = 1\n[x for x in a]", "x = 1", "a"),
    ("x = 1\n[b for x in x]", "x = 1", "b x"),
    ("x = 1\n[y for y in a if y < x]\nx = 2", "x = 1", "a x"),
    ("x = 1\nsum((x for _ in a))\nx = 2", "sum((x for _ in a))", ""),
    ("x = 1\ny = (x for _ in a)\nx = 2", "x = 2", "x a"),
    ("x = 1\ny = lambda b: x + b\nx = 2", "x = 2", "x"),
    ("x = 1\ny = lambda b=x: b\nx = 2", "x = 2", ""),
    ("x = 1\n\ndef g(b):\n    y = x\n    return y + b\nx = 2", "x = 2", "x"),
    ("x = 1\n\ndef g():\n    x = 3\n    return x\nx = 2", "x = 1", ""),
    ("x = 1\n\ndef g():\n    nonlocal x\n    x = 3\n    return x\nx = 2", "x = 2", "x"),
    ("x = 1\n\ndef g():\n    return g\nx = 2", "x = 1", ""),
    ("x = 1\nx = 2\n\ndef g():\n    return x", "x = 1", ""),
    ("for i in a:\n    x = 1\n    x = 2\n    y = lambda: x", "x = 1", "x"),
    ("x = 1\ntry:\n    x = 2\nexcept a:\n    use(x)", "x = 1", "a x"),
    ("x = 1\nfor i in a:\n    try:\n        x = 2\n        break\n    except b:\n        pass\nuse(x)", "x = 2", "b x"),
]


@pytest.mark.parametrize(("body", "mark", "expected"), AFTER)
def test_live_after(body: str, mark: str, expected: str) -> None:
    assert after(body, mark) - {"use", "f"} == set(expected.split())


EXPOSED = [
    ("x = 0\nfor i in a:\n    x = x + b", "for i in a:", "b x"),
    ("x = 0\nfor i in a:\n    x = b\n    use(x)", "for i in a:", "b"),
    ("x = 0\nfor i in a:\n    if b:\n        x = 1\n    use(x)", "for i in a:", "b x"),
    ("x = 0\nfor i in a:\n    if b:\n        x = 1\n    else:\n        x = 2\n    use(x)", "for i in a:", "b"),
    ("x = 0\nfor i in a:\n    if b:\n        continue\n    use(x)", "for i in a:", "b x"),
    ("x = 0\nfor i in a:\n    x = 1\n    if b:\n        break\n    use(x)\nuse(c)", "for i in a:", "b"),
    ("x = 0\nwhile x < a:\n    x = b", "while x < a:", "a b x"),
    ("x = 0\nwhile (x := a):\n    use(x)", "while (x := a):", "a"),
    ("x = 0\nwhile a and (x := b):\n    use(x)", "while a and (x := b):", "a b"),
    ("x = 0\nfor i in a:\n    for j in b:\n        use(x)\n        x = c", "for i in a:", "b c x"),
    ("x = 0\nfor i in a:\n    for x in b:\n        use(x)", "for i in a:", "b"),
    ("x = 0\nfor i in a:\n    for j in b:\n        x = 1\n    use(x)", "for i in a:", "b x"),
    ("x = 0\nfor i in a:\n    while True:\n        x = 1\n        break\n    use(x)", "for i in a:", ""),
    ("x = 0\nfor i in a:\n    for j in b:\n        break\n    else:\n        x = 1\n    use(x)", "for i in a:", "b x"),
    ("x = 0\nfor x[b] in a:\n    pass", "for x[b] in a:", "b x"),
    ("x = 0\ng = lambda: x\nfor i in a:\n    x = 1\n    g()", "for i in a:", "g x"),
    ("x = 0\nfor i in a:\n    x = 1\n    return x", "for i in a:", ""),
]


@pytest.mark.parametrize(("body", "mark", "expected"), EXPOSED)
def test_exposed(body: str, mark: str, expected: str) -> None:
    assert exposed(body, mark) - {"use"} == set(expected.split())


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("x = 1\ny += 1\nz: int = 1\nw: int", "x y z"),
        ("(x, [y, *z]), w[u] = a", "x y z"),
        ("for x, y in a:\n    z = 1\nelse:\n    w = 1", "x y z w"),
        ("while (x := a):\n    if b:\n        y = 1", "x y"),
        ("with a as x, b as (y, z):\n    w = 1", "x y z w"),
        ("def x(y):\n    z = 1", "x"),
        ("[x for x in a if (y := b)]", "y"),
        ("f = lambda x: (y := x)", "f"),
        ("import x.y, z as w\nfrom u import v", "x w v"),
        ("class x(y):\n    z = 1", "x"),
        ("try:\n    x = 1\nexcept a as y:\n    pass", "x y"),
        ("match a:\n    case [x, *y] | {'k': z, **w}:\n        v = 1\n    case b.c as u:\n        pass", "x y z w v u"),
        ("x.y = a\nx[b] = c\ndel x", ""),
    ],
)
def test_assigned(body: str, expected: str) -> None:
    assert Liveness.assigned(function(body).body) == set(expected.split())


def test_local_names_are_the_functions_own() -> None:
    live = Liveness(function("global g\ng = 1\nx = T.y\nuse(k)", "a, /, b=1, *c, d, **e"))
    assert live.local == set("abcdex")


def test_a_lambda_has_parameters_and_walruses() -> None:
    node = ast.parse("lambda a: (x := a) + y", mode="eval").body
    assert isinstance(node, ast.Lambda)
    assert Liveness(node).local == {"a", "x"}


def test_what_a_nested_function_reads_from_outside() -> None:
    node = function("y = [x + z for z in a]\n\ndef g(v=w):\n    return y + u + v", "a")
    assert names.free(node) == {"x", "u", "w"}
    assert names.captured(node.body[1]) == {"y", "u"}


# ---- against execution --------------------------------------------------------------------------------

NAMES = ("a", "b", "c")
FUEL = 7
RUNS = 2500


class Stop(Exception):
    """A path ends."""


class Path:
    """One execution: the n-th question is answered by the n-th of `answers`, by False beyond them."""

    def __init__(self, answers: list[bool]):
        self.answers = answers
        self.asked = 0
        self.fuel = FUEL
        self.events: list[tuple[str, Any]] = []

    def choose(self) -> bool:
        if self.asked == len(self.answers):
            self.answers.append(False)
        self.asked += 1
        return self.answers[self.asked - 1]

    def iteration(self, loop: int) -> bool:
        self.fuel -= 1
        if self.fuel < 0:
            raise Stop
        self.events.append(("iteration", loop))
        return True

    def items(self, loop: int, _: object) -> Any:
        while self.choose():
            self.iteration(loop)
            yield Anything(self)


class Anything:
    """A value of which nothing is known."""

    def __init__(self, path: Path):
        self.path = path

    def __bool__(self) -> bool:
        return self.path.choose()

    def __lt__(self, _: object) -> Anything:
        return self

    def __add__(self, _: object) -> Anything:
        return self

    def __setitem__(self, _: object, __: object) -> None:
        pass


class Variables(dict[str, Any]):
    """The names of a running program; reads and writes are noted."""

    def __init__(self, path: Path):
        super().__init__(ITERATION=path.iteration, ITEMS=path.items, DONE=self.done, STOP=Stop)
        self.path = path

    def done(self, statement: int) -> None:
        self.path.events.append(("done", statement))

    def __getitem__(self, name: str) -> Any:
        if name not in NAMES:
            return super().__getitem__(name)
        self.path.events.append(("read", name))
        return Anything(self.path)

    def __setitem__(self, name: str, _: object) -> None:
        self.path.events.append(("write", name))


def call(name: str, *arguments: ast.expr | int) -> ast.expr:
    values = [ast.Constant(item) if isinstance(item, int) else item for item in arguments]
    return ast.Call(ast.Name(name, ast.Load()), values, [])


def note(number: int) -> ast.stmt:
    return ast.Expr(call("DONE", number))


def instrumented(block: list[ast.stmt], number: dict[ast.AST, int], loop: int = 0) -> list[ast.stmt]:
    """`block` with a note after each statement (where a jump jumps, where a loop is left) and at each iteration."""
    out: list[ast.stmt] = []
    for item in block:
        own = number[item]
        if isinstance(item, ast.Break):
            out += [note(own), note(loop), item]
        elif isinstance(item, ast.Continue):
            out += [note(own), item]
        elif isinstance(item, ast.Return):
            out += [ast.Expr(item.value or ast.Constant(0)), note(own), ast.Raise(ast.Name("STOP", ast.Load()))]
        elif isinstance(item, ast.For | ast.While):
            item.body, item.orelse = instrumented(item.body, number, own), instrumented(item.orelse, number, loop)
            item.orelse.insert(0, note(own))
            if isinstance(item, ast.For):
                item.iter = call("ITEMS", own, item.iter)
            else:
                item.test = ast.BoolOp(ast.And(), [call("ITERATION", own), item.test])
            out.append(item)
        elif isinstance(item, ast.If):
            item.body, item.orelse = instrumented(item.body, number, loop), instrumented(item.orelse, number, loop)
            out += [item, note(own)]
        else:
            out += [item, note(own)]
    return out


class Observed:
    """What was seen to be read before it was written, over all paths that were run."""

    def __init__(self, node: ast.FunctionDef):
        twin = copy.deepcopy(node)
        number = {part: index for index, part in enumerate(ast.walk(twin))}
        module = ast.fix_missing_locations(ast.Module(instrumented(twin.body, number), []))
        self.code = compile(module, "<program>", "exec")
        self.statements = {index for part, index in number.items() if isinstance(part, ast.stmt) and index}
        self.loops = [index for part, index in number.items() if isinstance(part, ast.For | ast.While)]
        self.after: dict[int, set[str]] = {}
        self.exposed: dict[int, set[str]] = {}
        self.complete = self._run_all() and set(self.after) == self.statements

    def _run_all(self) -> bool:
        answers: list[bool] = []
        for _ in range(RUNS):
            path = Path(answers)
            try:
                exec(self.code, {}, Variables(path))
            except Stop:
                pass
            self._learn(path.events)
            while answers and answers[-1]:
                answers.pop()
            if not answers:
                return True
            answers[-1] = True
        return False

    def _learn(self, events: list[tuple[str, Any]]) -> None:
        """From the end to the start: `live` holds what is read before it is written from here on."""
        live: set[str] = set()
        iterations: dict[int, set[str]] = {loop: set() for loop in self.loops}
        for kind, what in reversed(events):
            if kind == "read":
                for names_read in (live, *iterations.values()):
                    names_read.add(what)
            elif kind == "write":
                for names_read in (live, *iterations.values()):
                    names_read.discard(what)
            elif kind == "done":
                self.after.setdefault(what, set()).update(live)
                iterations[what] = set()
            else:
                self.exposed.setdefault(what, set()).update(iterations[what])
                iterations[what] = set()


def check(node: ast.FunctionDef) -> bool:
    """Compare; returns whether all paths were run and all statements reached: then the answers are equal."""
    live, observed = Liveness(node), Observed(node)
    parts = list(ast.walk(node))
    for answers, ask in ((observed.after, live.live_after), (observed.exposed, live.exposed)):
        for index, seen in answers.items():
            told = ask(parts[index])  # type: ignore[arg-type]
            assert seen <= told, ast.unparse(node)
            assert not observed.complete or seen == told, f"{ast.unparse(node)}\n{ast.unparse(parts[index])}"
    return observed.complete


def expressions() -> st.SearchStrategy[str]:
    name = st.sampled_from(NAMES)
    forms = ["({} and {})", "({} or {})", "({} < {})", "({} + {})"]
    return st.one_of(
        name,
        st.builds("(not ({} and ({} := {})))".format, name, name, name),
        st.builds("(({} or ({} := {})) and {})".format, name, name, name, name),
        st.builds("(({} and ({} := {})) or {})".format, name, name, name, name),
        st.builds("({} := {})".format, name, name),
        st.builds(lambda form, a, b: form.format(a, b), st.sampled_from(forms), name, name),
        st.builds("({} and ({} := {}))".format, name, name, name),
        st.builds("({} if {} else ({} := {}))".format, name, name, name, name),
        st.builds("({} < {} < ({} := {}))".format, name, name, name, name),
    )


SIMPLE = [
    st.builds("{} = {}".format, st.sampled_from(NAMES), expressions()),
    st.builds("{} += {}".format, st.sampled_from(NAMES), st.sampled_from(NAMES)),
    st.builds("{}[{}] = {}".format, st.sampled_from(NAMES), st.sampled_from(NAMES), st.sampled_from(NAMES)),
    st.builds("{}".format, expressions()),
]


@st.composite
def blocks(draw: st.DrawFn, depth: int = 2, inside: bool = False) -> str:
    parts = [draw(statements(depth, inside)) for _ in range(draw(st.integers(1, 3 if depth == 2 else 2)))]
    return "\n".join(parts)


@st.composite
def statements(draw: st.DrawFn, depth: int, inside: bool) -> str:
    kinds = ["simple"] * 3 + ["if", "for", "while"] * (depth > 0) + ["break", "continue"] * inside + ["return"]
    kind = draw(st.sampled_from(kinds))
    if kind == "simple":
        return draw(st.one_of(SIMPLE))
    if kind in ("break", "continue"):
        return kind
    if kind == "return":
        return f"return {draw(st.sampled_from(NAMES))}"
    heads = {
        "if": st.builds("if {}:".format, expressions()),
        "for": st.builds("for {} in {}:".format, st.sampled_from(NAMES), st.sampled_from(NAMES)),
        "while": st.one_of(st.just("while True:"), st.builds("while {}:".format, expressions())),
    }
    text = draw(heads[kind]) + "\n" + textwrap.indent(draw(blocks(depth - 1, inside or kind != "if")), "    ")
    if draw(st.booleans()):
        text += "\nelse:\n" + textwrap.indent(draw(blocks(depth - 1, inside)), "    ")
    return text


@settings(max_examples=120, deadline=None)
@given(blocks())
def test_every_path_of_a_random_program(body: str) -> None:
    event("all paths" if check(function(body)) else "some paths")


def test_the_oracle_finds_a_wrong_answer() -> None:
    node = function("a = b\nwhile c:\n    b = a\n    a = c")
    observed = Observed(node)
    assert observed.complete
    loop = list(ast.walk(node)).index(node.body[1])
    assert observed.exposed[loop] == {"a", "c"}
    assert observed.after[list(ast.walk(node)).index(node.body[0])] == {"a", "c"}
