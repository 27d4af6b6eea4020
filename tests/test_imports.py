"""The package's own rules: imports go one way and stay light, one file reads the environment, files stay small."""

from __future__ import annotations

import ast
import functools
import re
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
PACKAGE = ROOT / "warpjit"

# Each may import those before it; what shares a set may not import each other (but itself).
ORDER: list[set[str]] = [
    {"record"},
    {"errors", "config", "locks", "progress"},
    {"store"},
    {"layout"},
    {"ir"},
    {"isa"},
    {"frontend"},
    {"passes"},
    {"cuda", "sim"},
    {"arguments", "forks", "launchable"},
    {"build"},
    {"execute", "guards", "index", "stages"},
    {"fastcall"},
    {"dispatch"},
    {"bound", "methods", "parallel"},
    {"kernel"},
    {"compiled"},
    {"tuner"},
    {"decorator"},
    {"kernels"},
    {"cli"},
    {"__init__"},
    {"__main__"},
]
RANK = {name: rank for rank, names in enumerate(ORDER) for name in names}

# Parts of the package that a process may do without: loaded with the first call, or the first text, that needs them.
LATE_PARTS = {"warpjit.cuda.codegen", "warpjit.isa.table", "warpjit.sim", "warpjit.stages"}
LATE_PARTS |= {"warpjit.cli.why", "warpjit.compiled", "warpjit.kernel", "warpjit.parallel", "warpjit.tuner"}
LATE_PARTS |= {"warpjit.build", "warpjit.ir.conversion", "warpjit.isa.picture", "warpjit.layout.picture"}
# Heavy, optional or rarely used: imported where they are used, if need be inside a function.
LATE = {
    "torch",
    "pycuda",
    "ml_dtypes",
    "rich",
    "matplotlib",
    "filelock",
    "platformdirs",
    "triton",
    "tempfile",
    "importlib",
}
LINES, FUNCTION_LINES, KERNEL_LINES = 450, 60, 130
"""A kernel is one function, written from top to bottom."""


def modules() -> list[Path]:
    return sorted(PACKAGE.rglob("*.py"))


def name_of(path: Path) -> str:
    return ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")


def part_of(module: str) -> str:
    """The top-level part of the package that a module belongs to: "warpjit.ir.nodes" is "ir"."""
    pieces = module.split(".")
    return pieces[1] if len(pieces) > 1 else "__init__"


def parse(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"))


def imported(tree: ast.AST) -> Iterator[tuple[ast.stmt, str]]:
    """Import statements with the module that each names."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from ((node, alias.name) for alias in node.names)
        if isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"line {node.lineno}: a relative import"
            assert node.module is not None
            yield from ((node, f"{node.module}.{alias.name}") for alias in node.names)


def functions(tree: ast.AST) -> list[ast.FunctionDef | ast.AsyncFunctionDef]:
    return [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)]


def wrong_way(module: str, tree: ast.AST) -> list[str]:
    """What a module imports of the package that stands after it."""
    own = part_of(module)
    found = []
    for node, target in imported(tree):
        if target.split(".")[0] != "warpjit":
            continue
        other = part_of(target) if part_of(target) in RANK else "__init__"
        if other != own and RANK[other] >= RANK[own]:
            found.append(f"{module}, line {node.lineno}: imports {target}")
    return found


def late_imports(module: str, tree: ast.AST) -> list[str]:
    found = []
    for function in functions(tree):
        for node, target in imported(function):
            if target.split(".")[0] not in LATE and target.rpartition(".")[0] not in LATE_PARTS:
                found.append(f"{module}, line {node.lineno}: imports {target} inside {function.name}")
    return found


def environment_reads(tree: ast.AST) -> list[int]:
    words = {"environ", "getenv", "environb", "putenv"}
    return [
        node.lineno
        for node in ast.walk(tree)
        if (isinstance(node, ast.Attribute) and node.attr in words)
        or (isinstance(node, ast.ImportFrom) and node.module == "os" and words & {alias.name for alias in node.names})
    ]


@dataclass(frozen=True)
class Read:
    """What the tests ask of a file, which is parsed once.

    lengths   lines of each function
    """

    wrong_way: list[str]
    late_imports: list[str]
    environment_reads: list[int]
    docstring: str | None
    lengths: list[tuple[str, int]]


@functools.cache
def read(path: Path) -> Read:
    tree, name = parse(path), name_of(path)
    ours = path.is_relative_to(PACKAGE)
    return Read(
        wrong_way(name, tree) if ours else [],
        late_imports(name, tree) if ours else [],
        environment_reads(tree) if ours else [],
        ast.get_docstring(tree),
        [(each.name, (each.end_lineno or 0) - each.lineno + 1) for each in functions(tree)],
    )


def test_imports_go_one_way() -> None:
    assert {part_of(name_of(path)) for path in modules()} <= set(RANK), "a new part needs a place in the order"
    assert {name_of(path): wrong for path in modules() if (wrong := read(path).wrong_way)} == {}


def test_only_heavy_packages_are_imported_inside_functions() -> None:
    assert {name_of(path): late for path in modules() if (late := read(path).late_imports)} == {}


def test_the_design_has_the_same_order_and_every_part() -> None:
    design = (ROOT / "docs/design.md").read_text(encoding="utf-8")
    shown = design[design.index("    record -> errors") :].split("\n\n")[0]
    order = [set(step.replace(",", " ").split()) for step in shown.split("->")]
    assert order == [names for names in ORDER if not any(name.startswith("__") for name in names)]
    rows = "\n".join(line.split("|")[1] for line in design.splitlines() if line.startswith("| `"))
    assert set(re.findall(r"`(\w+)(?:\.py|/)`", rows)) == set.union(*order)


def test_only_config_reads_the_environment() -> None:
    found = {name_of(path) for path in modules() if read(path).environment_reads}
    assert found == {"warpjit.config"}


def test_files_and_functions_are_small() -> None:
    files, functions = {}, {}
    for path in sorted([*modules(), *(ROOT / "bench").rglob("*.py"), *(ROOT / "tests").rglob("*.py")]):
        files[name_of(path)] = len(path.read_text(encoding="utf-8").splitlines())
        limit = KERNEL_LINES if path.is_relative_to(PACKAGE / "kernels") else FUNCTION_LINES
        functions |= {(name_of(path), name): length for name, length in read(path).lengths if length > limit}
    assert len(files) > 500
    assert {name: count for name, count in files.items() if count > LINES} == {}, "split them"
    assert functions == {}, f"functions of more than {FUNCTION_LINES} lines (kernels: {KERNEL_LINES})"


def test_every_file_says_what_it_is() -> None:
    assert [name_of(path) for path in modules() if not read(path).docstring] == []


LIGHT = ["warpjit.errors", "warpjit.config", "warpjit.layout", "warpjit.ir.nodes", "warpjit.isa", "warpjit.store"]


@pytest.mark.parametrize("module", ["warpjit", *LIGHT])
def test_imports_without_torch(module: str) -> None:
    heavy = ("torch", "pycuda", "matplotlib", "rich")
    check = f"import sys, {module}; print([name for name in {heavy!r} if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", check], capture_output=True, text=True, cwd=ROOT, check=True)
    assert done.stdout.strip() == "[]"


def test_the_names_load_neither_kernels_nor_table_nor_either_back_end() -> None:
    check = f"import sys; from warpjit import T, warpjit; print(sorted({LATE_PARTS!r} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", check], capture_output=True, text=True, cwd=ROOT, check=True)
    assert done.stdout.strip() == "[]"


# ---- the rules themselves -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("module", "text", "count"),
    [
        ("warpjit.ir.nodes", "from warpjit.isa.row import Row", 1),
        ("warpjit.ir.nodes", "import warpjit.isa.row", 1),
        ("warpjit.ir.nodes", "from warpjit import isa", 1),
        ("warpjit.ir.nodes", "from warpjit import T", 1),
        ("warpjit.ir.nodes", "def f():\n    from warpjit.kernel import K", 1),
        ("warpjit.cuda.driver", "from warpjit.sim import machine", 1),
        ("warpjit.isa.row", "from warpjit.ir.nodes import Op\nfrom warpjit.layout import S\nimport numpy", 0),
        ("warpjit.ir.printer", "from warpjit.ir.nodes import Op", 0),
        ("warpjit", "from warpjit.kernel import warpjit", 0),
    ],
)
def test_the_rule_of_imports_sees(module: str, text: str, count: int) -> None:
    assert len(wrong_way(module, ast.parse(text))) == count


def test_the_rules_of_functions_and_environment_see() -> None:
    text = "def f():\n    import json\n    import torch\n    from warpjit import errors\n    return os.environ['A']"
    assert len(late_imports("m", ast.parse(text))) == 2
    assert environment_reads(ast.parse(text + "\nfrom os import getenv")) == [6, 5]
