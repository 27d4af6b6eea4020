"""How kernels use the disk store and the compiler: what is built once, what has a key of its own, what is reported."""

from __future__ import annotations

import inspect
import re
import sys
from pathlib import Path
from typing import Any

import pytest
import torch
from warp_matmul import warp_matmul

import warpjit as package
from warpjit import CompileError, T, config, store, warpjit
from warpjit.cuda import codegen, disassemble, toolchain
from warpjit.store.generator import generator_digest

pytestmark = pytest.mark.nvcc

HERE = Path(__file__).name


class Counts:
    """What the store and the compiler were asked for."""

    def __init__(self) -> None:
        self.built = self.hits = self.misses = 0
        self.flags: list[tuple[str, ...]] = []


@pytest.fixture
def counts(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Counts:
    """A store of the test's own, and what it is asked for."""
    monkeypatch.setenv("WARPJIT_CACHE_DIR", str(tmp_path / "cache"))
    seen = Counts()
    get, compile_cubin = store.Store.get, toolchain.compile_cubin

    def counting_get(self: Any, key: str, *facts: Any) -> Any:
        entry = get(self, key, *facts)
        seen.hits += entry is not None
        seen.misses += entry is None
        return entry

    def counting_compile(text: str, target: Any, **how: Any) -> Any:
        seen.built += 1
        seen.flags.append(tuple(how["options"]))
        return compile_cubin(text, target, **how)

    monkeypatch.setattr(store.Store, "get", counting_get)
    monkeypatch.setattr(toolchain, "compile_cubin", counting_compile)
    return seen


def kernel(step: int = 1, **options: Any) -> package.Kernel:
    """A new kernel object each time; equal text for equal arguments."""

    @warpjit(**options)
    def stepped(Out: T.Tensor((32,), "float32"), x: T.float32, y: T.float32):
        T.device_entry(launch=T.cuda.LaunchConfig(grid=1, block=32))
        Out[T.cuda.lane_id()] = x * y + step

    return stepped


def test_a_miss_compiles_and_keeps_and_a_hit_compiles_nothing(counts: Counts) -> None:
    first = kernel().cubin(target="sm_80")
    assert (counts.built, counts.misses, counts.hits) == (1, 1, 0)
    assert kernel().cubin(target="sm_80") == first
    assert (counts.built, counts.misses, counts.hits) == (1, 1, 1)
    same = kernel()
    assert {same.cubin(target="sm_80") for _ in range(3)} == {first}
    assert (counts.built, counts.misses, counts.hits) == (1, 1, 2)


def test_all_that_the_compiler_sees_has_its_own_key(counts: Counts, monkeypatch: pytest.MonkeyPatch) -> None:
    kernel().cubin(target="sm_80")
    kernel(2).cubin(target="sm_80")
    kernel().cubin(target="sm_86")
    kernel().cubin(target="sm_90")
    kernel().cubin(target="sm_90a")
    kernel(contract=False).cubin(target="sm_80")
    assert (counts.built, counts.hits) == (6, 0)
    monkeypatch.setattr(toolchain, "compiler_identity", lambda *args: "another compiler")
    kernel().cubin(target="sm_80")
    assert (counts.built, counts.hits) == (7, 0)
    kernel(strict=True).cubin(target="sm_80")  # strict looks at the result, and changes nothing
    assert (counts.built, counts.hits) == (7, 1)
    assert counts.flags[5] == ("-fmad=false",)


def test_a_damaged_entry_is_built_again(counts: Counts, tmp_path: Path) -> None:
    cubin = kernel().cubin(target="sm_80")
    (path,) = (tmp_path / "cache").rglob("cubin/*/*.wjk")
    path.write_bytes(path.read_bytes()[:-7])
    assert kernel().cubin(target="sm_80") == cubin
    assert counts.built == 2
    assert kernel().cubin(target="sm_80") == cubin
    assert counts.built == 2


def test_an_entry_says_what_it_is(counts: Counts, tmp_path: Path) -> None:
    cubin = kernel().cubin(target="sm_80")
    (entry,) = store.Store(tmp_path / "cache").cubins()
    assert entry.cubin == cubin
    header = {**entry.header}
    assert header.pop("resources") == {"registers": kernel().resources(target="sm_80").registers, "stack_bytes": 0}
    assert header.pop("text") == store.key_of({"text": kernel().source(target="sm_80")})
    assert header.pop("compiler") == toolchain.compiler_identity(config.read())
    assert re.fullmatch(r"release \d+\.\d, V[\d.]+, cuda_\S+", header.pop("compiler_version"))
    assert header.pop("source") == kernel().function_source.fingerprint
    assert header.pop("generator") == generator_digest(store.Store(None))
    assert header == {
        "kernel": "stepped",
        "parameters": {
            "Out": "a tensor of float32, shape (32,), strides (one), aligned to 16 bytes",
            "x": "a number of type float32",
            "y": "a number of type float32",
        },
        "options": {"contract": True, "strict": False, "unverified": False, "debug": False, "max_registers": None},
        "captures": {"T": "module warpjit.frontend.language", "step": "1"},
        "helpers": {},
        "schema": store.SCHEMA,
        "target": "sm_80",
        "flags": [],
        "warpjit": package.__version__,
    }


def test_line_marks_are_built_under_another_key(counts: Counts, monkeypatch: pytest.MonkeyPatch) -> None:
    plain = kernel()
    text, cubin = plain.source(target="sm_80"), plain.cubin(target="sm_80")
    monkeypatch.setenv("WARPJIT_LINEINFO", "1")
    marked = kernel()
    assert marked.cubin(target="sm_80") != cubin
    assert f'{HERE}"' in marked.source(target="sm_80") and HERE not in text and "#line" not in text
    assert counts.flags == [(), ("-lineinfo",)]
    assert (counts.built, counts.hits) == (2, 0)
    monkeypatch.setenv("WARPJIT_LINEINFO", "0")
    assert kernel().cubin(target="sm_80") == cubin
    assert counts.built == 2


def test_nothing_of_the_users_place_is_in_the_text() -> None:
    text = kernel().source(target="sm_80")
    assert str(Path.cwd()) not in text and HERE not in text and sys.prefix not in text


# ---- what the compiler says -----------------------------------------------------------------------------------


def heavy(registers: int, **options: Any) -> package.Kernel:
    """A kernel that holds many values at once, within a limit of registers."""

    @warpjit(**options)
    def spilling(X: T.Tensor((128, 32), "float32"), Out: T.Tensor((128, 32), "float32")):
        T.device_entry(
            launch=T.cuda.LaunchConfig(grid=1, block=32),
            attributes=T.cuda.KernelAttributes(max_registers=registers),
        )
        lane = T.cuda.lane_id()
        values = T.alloc_local((128,), "float32")
        for i in T.unroll(128):
            values[i] = X[i, lane]
        T.cuda.cta_sync()
        for i in T.unroll(128):
            Out[127 - i, lane] = values[i] * values[(i * 37 + 11) % 128]

    return spilling


def test_strict_refuses_local_memory() -> None:
    loose = heavy(32).resources(target="sm_90a")
    assert loose.stack_bytes > 0 and loose.registers <= 32
    strict = heavy(32, strict=True)
    for _ in range(2):  # the second time it comes from the store
        with pytest.raises(CompileError) as caught:
            strict.cubin(target="sm_90a")
        assert str(caught.value) == (
            f"spilling uses {loose.stack_bytes} bytes of local memory a thread (a stack frame or spilled registers), "
            "which strict=True forbids: use fewer registers, or raise max_registers"
        )
    with pytest.raises(CompileError, match="strict=True forbids"):
        package.compile(heavy(32, strict=True), target="sm_90a")
    assert heavy(255, strict=True).resources(target="sm_90a").stack_bytes == 0


@pytest.mark.parametrize("method", ["cubin", "ptx"])
def test_a_refusal_of_the_compiler_is_shown_at_the_users_line(method: str, monkeypatch: pytest.MonkeyPatch) -> None:
    real = codegen.emit

    def broken(*args: Any, **how: Any) -> Any:
        emitted = real(*args, **how)
        object.__setattr__(emitted, "text", emitted.text.replace(" * ", " ** not_a_name * "))
        return emitted

    monkeypatch.setattr(codegen, "emit", broken)
    wrong = kernel(7)
    with pytest.raises(CompileError) as caught:
        getattr(wrong, method)(target="sm_80")
    (finding,) = caught.value.findings
    assert finding.message == 'nvcc refused the generated code: identifier "not_a_name" is undefined'
    assert finding.loc.innermost is not None
    assert finding.loc.innermost.text.strip() == "Out[T.cuda.lane_id()] = x * y + step"
    assert "not_a_name" in finding.notes[0].message
    assert f'{HERE}", line {finding.loc.line}, in kernel.<locals>.stepped' in str(caught.value)
    monkeypatch.setattr(codegen, "emit", real)
    assert kernel(7).cubin(target="sm_80")[:4] == b"\x7fELF"


def test_a_refusal_of_the_assembler_is_shown_at_the_users_line(monkeypatch: pytest.MonkeyPatch) -> None:
    real = codegen.emit

    def broken(*args: Any, **how: Any) -> Any:
        emitted = real(*args, **how)
        object.__setattr__(
            emitted, "text", emitted.text.replace("mma.sync.aligned.m16n8k16", "mma.sync.aligned.m16n8k9")
        )
        return emitted

    monkeypatch.setattr(codegen, "emit", broken)
    wrong = warpjit(warp_matmul.function)
    with pytest.raises(CompileError) as caught:
        wrong.cubin(target="sm_80")
    finding = caught.value.findings[0]
    assert finding.message.startswith("ptxas refused the generated code: ")
    lines = inspect.getsource(inspect.getmodule(wrong.function)).splitlines()
    assert finding.loc.line == 1 + next(i for i, line in enumerate(lines) if "m16n8k16" in line) - 1
    assert lines[finding.loc.line - 1].strip() == "T.cuda.tile.apply("


def test_sass_and_resources_come_from_the_stored_cubin(counts: Counts, monkeypatch: pytest.MonkeyPatch) -> None:
    kernel().cubin(target="sm_90a")
    monkeypatch.setattr(toolchain, "compile_cubin", lambda *args, **how: pytest.fail("compiled"))
    again = kernel()
    assert again.resources(target="sm_90a").shared_bytes == 1024
    assert "FFMA" in {line.mnemonic for line in disassemble.instructions(again.sass(target="sm_90a"))}


def test_without_pycuda_stored_cubins_still_load(counts: Counts, monkeypatch: pytest.MonkeyPatch) -> None:
    cubin = kernel().cubin(target="sm_80")
    monkeypatch.setitem(sys.modules, "pycuda", None)
    assert kernel().cubin(target="sm_80") == cubin
    with pytest.raises(CompileError) as caught:
        kernel(9).cubin(target="sm_80")
    assert str(caught.value) == "building a kernel needs PyCUDA: pip install warpjit[cuda]"


def test_an_unusable_cache_compiles_in_memory(counts: Counts, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    blocked = tmp_path / "file"
    blocked.write_text("not a directory")
    monkeypatch.setenv("WARPJIT_CACHE_DIR", str(blocked / "cache"))
    first = kernel().cubin(target="sm_80")
    assert kernel().cubin(target="sm_80") == first
    assert (counts.built, counts.hits) == (1, 1)
    assert blocked.read_text() == "not a directory"
    assert config.read().cache_dir == str(blocked / "cache")


def test_simulating_builds_nothing(counts: Counts) -> None:
    out = torch.zeros(32)
    kernel(4)(out, 2.0, 3.0)
    assert (out == 10).all()
    assert (counts.built, counts.hits, counts.misses) == (0, 0, 0)
