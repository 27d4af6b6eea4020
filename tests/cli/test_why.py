"""`warpjit cache why`: for each field of what an entry is made from, that a difference of it, alone, is named.

No compiler runs: entries are stored as a compilation would, and the toolkit is files of the right names.
"""

from __future__ import annotations

import importlib.util
import json
import os
import re
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from warpjit import config
from warpjit.cli import main
from warpjit.store import SCHEMA, Store, compare, key_of

SCRIPT = """\
from warpjit import T, warpjit

SCALE, NAME, FLAG = 2.0, "rows", True
raise_at_top = False

def deep(x):
    return x * SCALE

def helper(x):
    return deep(x) + 1.0

@warpjit(contract=True)
def kernel(X, Out: T.Tensor((32,), "float32"), n: T.int32, *, C=1, D=0.5):
    T.device_entry(launch=T.cuda.LaunchConfig(grid=1, block=32))
    lane = T.cuda.lane_id()
    if FLAG:
        Out[lane] = helper(T.float32(X[lane])) + n + C + D

class Holder:
    kernel = kernel

not_a_kernel = 3

if __name__ == "__main__":
    raise SystemExit("the script ran")
"""
SPECS = ("float32[32]",)
Ask = Callable[..., Any]


@pytest.fixture(autouse=True)
def toolkit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A toolkit that cannot compile, a folder of scripts, and a store of the test's own."""
    root = tmp_path / "cuda"
    (root / "bin").mkdir(parents=True)
    for name in ("nvcc", "cicc", "ptxas"):
        (root / "bin" / name).write_text(name)
    monkeypatch.setenv("CUDA_HOME", str(root))
    monkeypatch.setenv("WARPJIT_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    (tmp_path / "script.py").write_text(SCRIPT)
    yield root
    sys.modules.pop("script", None)


@pytest.fixture
def ask(capsys: pytest.CaptureFixture[str]) -> Ask:
    def run(*words: str, name: str = "script.py:kernel", target: str = "sm_90a", specs: tuple[str, ...] = SPECS) -> Any:
        assert main(["cache", "why", name, *specs, *words, "--target", target, "--json"]) == 0
        return json.loads(capsys.readouterr().out)

    return run


def store_of() -> Store:
    return Store(str(config.read().cache_dir))


def keep(found: Any, **changed: Any) -> str:
    """Store what `why` says that an entry is made from, with changes."""
    made_from = {**found["made_from"], **changed, "resources": {"registers": 32}}
    key = found["key"] if not changed else key_of({"changed": json.dumps(changed)})
    store_of().put(key, made_from, b"cubin")
    return str(key)


def fields(found: Any) -> set[str]:
    """The fields of which the nearest entry differs."""
    return {each["field"] for each in found["nearest"]["differences"]}


def edit(old: str, new: str, path: str = "script.py") -> None:
    text = Path(path).read_text()
    assert text.count(old) == 1
    Path(path).write_text(text.replace(old, new))
    # In the same second, and as long as before, Python takes its bytecode for fresh.
    Path(importlib.util.cache_from_source(str(Path(path).resolve()))).unlink(missing_ok=True)


# ---- a field at a time ------------------------------------------------------------------------------------------


def test_what_is_stored_is_found(ask: Ask) -> None:
    found = ask()
    assert (found["state"], found["nearest"]) == ("missing", None)
    keep(found)
    again = ask()
    assert (again["state"], again["key"], again["nearest"]) == ("stored", found["key"], None)


EDITS = {
    "source": (("Out[lane] = helper", "Out[31 - lane] = helper"), {"text", "source"}),
    "capture": (("SCALE, NAME, FLAG = 2.0", "SCALE, NAME, FLAG = 3.0"), {"text", "captures.SCALE"}),
    "capture's type": (('FLAG = 2.0, "rows", True', 'FLAG = 2.0, "rows", 1'), {"captures.FLAG"}),
    "capture's bits": (
        ("= 2.0,", "= 2.0000000000000004,"),
        {"captures.SCALE"},  # in float32 both are 2: the text is the same
    ),
    "helper": (("return deep(x) + 1.0", "return deep(x) + 1.5"), {"text", "helpers.helper"}),
    "deep helper": (("return x * SCALE", "return SCALE * x"), {"text", "helpers.deep"}),
    "options": (("contract=True", "contract=False"), {"flags", "options.contract"}),
    "default": (("D=0.5", "D=0.25"), {"text", "parameters.D"}),
}


@pytest.mark.parametrize("case", EDITS)
def test_an_edit_is_named(ask: Ask, case: str) -> None:
    """What the nearest entry says is what the script said; where the text is the same, the entry is found."""
    first = ask()
    keep(first)
    edit(*EDITS[case][0])
    second = ask()
    expected = EDITS[case][1]
    named = {each.field for each in compare.differences(first["made_from"], second["made_from"])}
    named -= {"source"} if case == "default" else set()  # the parameters' defaults stand in the definition
    assert named == expected
    if second["state"] == "missing":
        assert fields(second) - {"source"} == expected - {"source"}
        decides = {each["field"] for each in second["nearest"]["differences"] if each["decides"]}
        assert decides == expected & set(compare.DECIDING) != set()
    else:
        assert not expected & set(compare.DECIDING)


SPECIALISED = {
    "constant": ({"words": ("C=2",)}, "parameters.C", "the constant 1", "the constant 2"),
    "constant's type": ({"words": ("C=True",)}, "parameters.C", "the constant 1", "the constant True"),
    "other constant": ({"words": ("D=0.25",)}, "parameters.D", "the constant 0.5", "the constant 0.25"),
    "dtype": ({"specs": ("float16[32]",)}, "parameters.X", "a tensor of float32, shape", "a tensor of float16, shape"),
    "shape": ({"specs": ("float32[64]",)}, "parameters.X", "shape (32,)", "shape (64,)"),
    "target": ({"target": "sm_80"}, "target", "sm_90a", "sm_80"),
}


@pytest.mark.parametrize("case", SPECIALISED)
def test_a_specialisation_is_named(ask: Ask, case: str) -> None:
    """Where the text is the same all the same, the entry is found: a key is made of what the compiler sees."""
    first = ask()
    keep(first)
    how, field, old, new = SPECIALISED[case]
    second = ask(*how.get("words", ()), **{name: value for name, value in how.items() if name != "words"})
    found = compare.differences(first["made_from"], second["made_from"])
    (difference,) = [each for each in found if each.field == field]
    assert old in str(difference.stored)
    assert new in str(difference.wanted)
    assert {each.field for each in found} <= {field, "text"}
    assert (second["state"] == "stored") == (case in ("constant's type", "shape"))
    if second["state"] == "missing":
        assert fields(second) == {each.field for each in found}


def test_flags_of_the_environment_are_named(ask: Ask, monkeypatch: pytest.MonkeyPatch) -> None:
    keep(ask())
    monkeypatch.setenv("WARPJIT_LINEINFO", "1")
    found = ask()
    assert fields(found) == {"flags", "text"}
    assert ("", "-lineinfo") in [(each["stored"], each["now"]) for each in found["nearest"]["differences"]]


def test_another_compiler_is_named(ask: Ask, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    keep(ask())
    other = tmp_path / "other"
    (other / "bin").mkdir(parents=True)
    (other / "bin" / "nvcc").write_text("another")
    monkeypatch.setenv("CUDA_HOME", str(other))
    assert fields(ask()) == {"compiler"}


def test_without_a_compiler_there_is_no_key_but_an_answer(
    ask: Ask, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    keep(ask())
    monkeypatch.setenv("CUDA_HOME", str(tmp_path / "nothing"))
    found = ask()
    assert (found["key"], found["state"], fields(found)) == (None, "missing", {"compiler"})


@pytest.mark.parametrize("field", ["generator", "warpjit"])
def test_another_warpjit_is_named(ask: Ask, field: str) -> None:
    key = keep(ask(), **{field: "0.0.9", "text": "another"})
    found = ask()
    assert (fields(found), found["nearest"]["key"]) == ({field, "text"}, key)


def test_another_schema_is_named(ask: Ask) -> None:
    found = ask()
    path = store_of().path("cubin", keep(found))
    assert path is not None
    old = path.parents[3] / f"v{SCHEMA - 1}" / "cubin" / path.parent.name
    old.mkdir(parents=True)
    data = bytearray(path.read_bytes())
    data[8:12] = (SCHEMA - 1).to_bytes(4, "little")
    (old / path.name).write_bytes(data.replace(f'"schema": {SCHEMA}'.encode(), f'"schema": {SCHEMA - 1}'.encode()))
    path.unlink()
    found = ask()
    assert (found["state"], fields(found)) == ("missing", {"schema"})
    assert found["nearest"]["differences"][0] == {
        **{"field": "schema", "stored": str(SCHEMA - 1), "now": str(SCHEMA), "decides": True}
    }


def test_a_damaged_entry_is_named(ask: Ask, capsys: pytest.CaptureFixture[str]) -> None:
    path = store_of().path("cubin", keep(ask()))
    assert path is not None
    path.write_bytes(path.read_bytes()[:-1])
    assert ask()["state"] == "damaged"
    assert main(["cache", "why", "script.py:kernel", *SPECS, "--target", "sm_90a"]) == 0
    assert "Its entry is damaged: the checksum does not fit." in capsys.readouterr().out
    assert path.exists()


# ---- which entry is nearest, and how it is said -----------------------------------------------------------------


def test_the_nearest_has_the_fewest_differences_and_was_used_last(ask: Ask) -> None:
    found = ask()
    keep(found, kernel="another")
    keep(found, text="x", target="sm_80")
    older = keep(found, text="y")
    newer = keep(found, text="z")
    path = store_of().path("cubin", older)
    assert path is not None
    os.utime(path, (1.0, 1.0))
    assert ask()["nearest"] == {
        "key": newer,
        "differences": [{"field": "text", "stored": "z", "now": found["made_from"]["text"], "decides": True}],
    }


def test_people_read_digests_by_their_first_digits(ask: Ask, capsys: pytest.CaptureFixture[str]) -> None:
    found = ask()
    keep(found, text="0" * 64, captures={})
    assert main(["cache", "why", "script.py:kernel", *SPECS, "--target", "sm_90a"]) == 0
    said = capsys.readouterr().out
    text = found["made_from"]["text"]
    assert re.search(rf"^text +0{{12}}  {text[:12]} +the CUDA C\+\+ that is compiled$", said, re.MULTILINE)
    assert re.search(r"^captures.SCALE +- {13}2\.0$", said, re.MULTILINE)
    assert "It is not stored: a call compiles it.\n" in said
    assert text not in said


def test_modules_and_names_inside_are_found(ask: Ask) -> None:
    assert ask(name="script:kernel")["key"] == ask()["key"] == ask(name="script.py:Holder.kernel")["key"]


def test_the_only_kernel_of_a_script_need_not_be_named(ask: Ask) -> None:
    assert ask(name="script.py")["key"] == ask(name="script.py:")["key"] == ask()["key"]


def test_a_tuned_kernel_is_its_kernel(ask: Ask) -> None:
    edit("@warpjit(", "@warpjit.autotune([warpjit.Config(C=1), warpjit.Config(C=2)])\n@warpjit(")
    assert ask("C=2")["made_from"]["parameters"]["C"] == "the constant 2"


def test_words_become_specs() -> None:
    from warpjit.cli.why import specs_of  # noqa: PLC0415  a part that other commands start without
    from warpjit.frontend.language.types import SCALAR_TYPES, Tensor, as_dtype  # noqa: PLC0415

    words = ["float16[8, 4]", "bfloat16[]", "int32", "3", "2.5", "None", "(1, 2)", "word", "C=3", "D=int8", "E=a=b"]
    args, constants = specs_of(words)
    tensors = [Tensor((8, 4), as_dtype("float16")), Tensor((), as_dtype("bfloat16"))]
    assert args == [*tensors, SCALAR_TYPES["int32"], 3, 2.5, None, (1, 2), "word"]
    assert constants == {"C": 3, "D": SCALAR_TYPES["int8"], "E": "a=b"}


# ---- a key ------------------------------------------------------------------------------------------------------


def test_a_stored_entry_is_compared_with_what_is_here(
    ask: Ask, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    found = ask()
    key = keep(found)

    def about(*words: str) -> Any:
        assert main(["cache", "why", key[:10], *words]) == 0
        return capsys.readouterr().out

    assert json.loads(about("--json")) == {"key": key, "changed": [], "nearest": None}
    used = "A call uses it while the kernel is what it was: the compiler and warpjit here are those that made it.\n"
    assert about().endswith(f"\n\n{used}There is no other entry of kernel.\n")
    other = keep(found, text="x", compiler="y", generator="z")
    monkeypatch.setattr("warpjit.cli.why.VERSION", "9.9")
    assert "\nA call uses it if the kernel still becomes the same text. What made it is not what is here:\n" in about()
    another = tmp_path / "another"
    (another / "bin").mkdir(parents=True)
    (another / "bin" / "nvcc").write_text("another")
    monkeypatch.setenv("CUDA_HOME", str(another))
    assert "\nA call does not use it, but compiles its kernel again. What made it is not what is here:\n" in about()
    monkeypatch.setenv("CUDA_HOME", str(tmp_path / "nothing"))
    said = json.loads(about("--json"))
    assert {each["field"] for each in said["changed"]} == {"compiler", "warpjit"}
    assert said["nearest"]["key"] == other
    assert {each["field"] for each in said["nearest"]["differences"]} == {"text", "compiler", "generator"}
    assert said["changed"][0]["now"] is None
    text = about()
    assert "\nA call uses it, since there is no compiler here, if the kernel still becomes the same text. What " in text
    assert re.search(rf"^compiler +{found['made_from']['compiler'][:12]} +- ", text, re.MULTILINE)
    assert f"\n\nThe nearest other entry is {other[:12]}, last used now. It differs in:\n" in text
    assert re.search(rf"^field +{other[:12]} +{key[:12]}$", text, re.MULTILINE)


# ---- mistakes ---------------------------------------------------------------------------------------------------

MISTAKES = {
    "no script": (("missing.py:kernel",), "but missing.py:kernel gives FileNotFoundError: "),
    "no module": (("no_such_module:kernel",), "gives ModuleNotFoundError: No module named 'no_such_module'"),
    "no script, no name": (("missing.py",), "but missing.py gives FileNotFoundError: "),
    "no name": (("script.py:nothing",), "with the name of one of its kernels (kernel) but got 'nothing'"),
    "no kernel": (("script.py:not_a_kernel",), "one of its kernels (kernel) but script.py:not_a_kernel is 3"),
    "a class": (("script.py:Holder",), "one of its kernels (kernel) but script.py:Holder is <class 'script.Holder'>"),
    "several kernels": (
        ("several.py",),
        "expected several.py:NAME with the name of one of its kernels (first, second)",
    ),
    "no kernels": (("exits_not.py",), "a function decorated with @warpjit, but exits_not.py has none at its top level"),
    "a module alone": (("script",), "as module:name or script.py:name, or the hex digits of a key but got 'script'"),
    "exits": (("exits.py:kernel",), "exits.py:kernel gives SystemExit: 3 (exits.py:2)"),
    "specs missing": (("script.py:kernel",), "expected arguments or specs (the annotations do not say all) for X"),
    "dtype": (("script.py:kernel", "float17[3]"), "float17"),
    "target": (("script.py:kernel", "float32[32]", "--target", "sm90"), "sm90"),
    "key": (("abcd",), "expected the key of an entry"),
    "key and specs": (("abcd", "int32"), "expected abcd alone"),
}


@pytest.mark.parametrize("case", MISTAKES)
def test_a_mistake_is_one_sentence(case: str, capsys: pytest.CaptureFixture[str]) -> None:
    Path("exits.py").write_text("import sys\nsys.exit(3)\n")
    Path("exits_not.py").write_text("")
    rest = "\n@warpjit.autotune([warpjit.Config(C=1)])\n@warpjit\ndef second(X, *, C): ...\n"
    Path("several.py").write_text(f"from warpjit import warpjit\n@warpjit\ndef first(X): ...\n{rest}")
    words, sentence = MISTAKES[case]
    assert main(["cache", "why", *words]) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.startswith("warpjit: ")
    assert sentence in captured.err
    assert captured.err.count("\n") == 1


def test_the_help_says_that_scripts_are_executed(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["cache", "why", "--help"])
    assert "EXECUTED" in capsys.readouterr().out
