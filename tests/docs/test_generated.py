"""What is made from the language's docstrings and tables is what lies in the tree, and holds every name."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest

from warpjit import T, isa
from warpjit.frontend.language import approx, cuda
from warpjit.frontend.language.intrinsic import Intrinsic
from warpjit.frontend.language.tensor import TensorInKernel
from warpjit.frontend.methods import ATTRIBUTES, METHODS
from warpjit.frontend.values import TensorValue

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def docs() -> Iterator[ModuleType]:
    """`docs/generate.py` with what it imports."""
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(ROOT / "docs"))
        yield __import__("generate")


def test_check_names_a_stale_file_and_writing_mends_it(docs, tmp_path, monkeypatch):
    for name in docs.FILES:  # what is made of them is what lies in the tree: see below
        text = (ROOT / name).read_text(encoding="utf-8")
        monkeypatch.setitem(docs.FILES, name, lambda text=text: text)
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text, encoding="utf-8")
    page = tmp_path / "docs/language.md"
    text = page.read_text(encoding="utf-8")
    page.write_text(text.replace("T.cuda.lane_id", "T.cuda.lane"), encoding="utf-8")
    assert docs.stale(tmp_path) == {"docs/language.md": text}
    (tmp_path / "warpjit/frontend/language/cuda.pyi").unlink()
    assert list(docs.stale(tmp_path)) == ["docs/language.md", "warpjit/frontend/language/cuda.pyi"]


def test_the_files_in_the_tree_are_fresh():
    done = subprocess.run([sys.executable, "docs/generate.py", "--check"], cwd=ROOT, capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (0, ""), "run python docs/generate.py"


def test_the_page_has_every_name(docs):
    text = (ROOT / "docs/language.md").read_text(encoding="utf-8")
    names = docs.language_page.named()
    assert {"T.alloc_shared", "T.float16", "T.cuda.tile.apply", "T.cuda.LaunchConfig", "t.rearrange"} <= names
    assert [name for name in sorted(names) if f"`{name}" not in text] == []
    assert [row.text for row in isa.listed() if f"| `{row.text}` |" not in text] == []


def test_the_documented_members_of_tensors_are_those_that_exist():
    documented = {name for name in vars(TensorInKernel) if not name.startswith("_")}
    assert documented == {*METHODS[TensorValue], *ATTRIBUTES[TensorValue], "sub"}


@pytest.mark.parametrize("module", [T, cuda, approx], ids=["T", "T.cuda", "T.approx"])
def test_every_name_has_a_docstring_and_types(module):
    for name in module.__all__:
        item = getattr(module, name)
        if isinstance(item, Intrinsic):
            assert item.__doc__, name
            assert all(each.annotation is not each.empty for each in item.signature.parameters.values()), name


def test_a_docstring_becomes_lists_and_paragraphs(docs):
    text = """What it is.

    shape   ints,
            in elements
    align   bytes

        x = f(y)

    Used in a kernel.
    Raises TraceError: never.
    """
    assert docs.language_page.markdown(text) == (
        "What it is.\n\n* `shape`: ints, in elements\n* `align`: bytes\n\n```python\nx = f(y)\n```\n\n"
        "Used in a kernel.\n\nRaises TraceError: never."
    )
