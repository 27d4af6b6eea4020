"""Which compiler there is, what it says of itself, and that a run of it ends."""

from __future__ import annotations

import os
import subprocess
import tempfile
import time
from pathlib import Path

import pytest

from warpjit import config as config_module
from warpjit.config import Config
from warpjit.cuda import toolchain
from warpjit.cuda.prelude import PRELUDE
from warpjit.cuda.toolchain import compile_cubin, compile_ptx, compiler_identity
from warpjit.errors import CompileError
from warpjit.isa.target import Target
from warpjit.store import Store

CONFIG = config_module.read()
SM_80 = Target.parse("sm_80")
EMPTY = PRELUDE + 'extern "C" __global__ void empty() {}\n'


def fake_toolkit(root: Path) -> Path:
    """A toolkit's root with files that only have a size and a time."""
    for tool in ("bin/nvcc", "bin/ptxas", "nvvm/bin/cicc"):
        (root / tool).parent.mkdir(parents=True, exist_ok=True)
        (root / tool).write_text(tool)
        (root / tool).chmod(0o755)
    return root


def fake_nvcc(folder: Path, root: Path) -> Path:
    """An nvcc on PATH that is a script: it names `root` and counts its runs in a file beside it."""
    folder.mkdir(parents=True, exist_ok=True)
    nvcc = folder / "nvcc"
    nvcc.write_text(f'#!/bin/sh\necho run >> "{folder}/runs"\necho "#$ TOP={root}" >&2\n')
    nvcc.chmod(0o755)
    return nvcc


@pytest.fixture(autouse=True)
def _forget_toolkits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(toolchain, "_roots", {})
    monkeypatch.setattr(toolchain, "_identities", {})


def test_the_root_is_what_nvcc_says_not_where_the_script_is(tmp_path: Path) -> None:
    root = fake_toolkit(tmp_path / "toolkit")
    fake_nvcc(tmp_path / "path", root)
    config = Config(path=str(tmp_path / "path"))
    assert toolchain.toolkit_root(config) == root
    assert compiler_identity(config) == compiler_identity(Config(cuda_home=str(root)))
    assert (tmp_path / "path" / "runs").read_text() == "run\n"


@pytest.mark.parametrize("tool", ["bin/nvcc", "bin/ptxas", "nvvm/bin/cicc"])
def test_the_identity_changes_with_each_tools_size_and_time(tmp_path: Path, tool: str) -> None:
    root = fake_toolkit(tmp_path / "toolkit")
    config = Config(cuda_home=str(root))

    def identity() -> str:
        toolchain._identities.clear()
        return compiler_identity(config)

    os.utime(root / tool, ns=(1, 1))
    seen = [identity(), identity()]
    os.utime(root / tool, ns=(1, 2))
    seen.append(identity())
    (root / tool).write_text("another size")
    os.utime(root / tool, ns=(1, 2))
    seen.append(identity())
    (root / "bin" / "nvcc").touch()
    assert seen[0] == seen[1] and len(set(seen)) == 3


def test_cicc_beside_nvcc_is_found_as_in_debians_packages(tmp_path: Path) -> None:
    root = fake_toolkit(tmp_path / "toolkit")
    (root / "nvvm/bin/cicc").rename(root / "bin/cicc")
    before = compiler_identity(Config(cuda_home=str(root)))
    (root / "bin/cicc").write_text("another size")
    toolchain._identities.clear()
    assert compiler_identity(Config(cuda_home=str(root))) != before


def test_a_warm_start_asks_the_store_and_runs_nothing(tmp_path: Path) -> None:
    root = fake_toolkit(tmp_path / "toolkit")
    nvcc = fake_nvcc(tmp_path / "path", root)
    config = Config(path=str(tmp_path / "path"))
    first = compiler_identity(config, Store(tmp_path / "store"))
    for _ in range(2):
        toolchain._roots.clear()
        toolchain._identities.clear()
        assert compiler_identity(config, Store(tmp_path / "store")) == first
    assert (tmp_path / "path" / "runs").read_text() == "run\n"
    os.utime(nvcc, ns=(1, 1))
    toolchain._roots.clear()
    toolchain._identities.clear()
    assert compiler_identity(config, Store(tmp_path / "store")) == first
    assert (tmp_path / "path" / "runs").read_text() == "run\nrun\n"


def test_a_remembered_root_that_is_gone_is_asked_for_again(tmp_path: Path) -> None:
    fake_nvcc(tmp_path / "path", fake_toolkit(tmp_path / "old"))
    config = Config(path=str(tmp_path / "path"))
    store = Store(tmp_path / "store")
    assert toolchain.toolkit_root(config, store) == tmp_path / "old"
    (tmp_path / "old" / "bin" / "nvcc").unlink()
    toolchain._roots.clear()
    toolchain.toolkit_root(config, store)
    assert (tmp_path / "path" / "runs").read_text() == "run\nrun\n"


def test_with_cuda_home_no_process_is_started(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*args: object, **kwargs: object) -> None:
        raise AssertionError("a process was started")

    monkeypatch.setattr(subprocess, "Popen", refuse)
    assert len(compiler_identity(Config(cuda_home=str(fake_toolkit(tmp_path))))) == 64


def test_an_nvcc_that_does_not_name_its_root_is_refused(tmp_path: Path) -> None:
    nvcc = fake_nvcc(tmp_path, tmp_path)
    nvcc.write_text("#!/bin/sh\necho nonsense\n")
    with pytest.raises(CompileError, match="nonsense"):
        compiler_identity(Config(path=str(tmp_path)))
    nvcc.write_bytes(b"\0")
    os.utime(nvcc, ns=(1, 1))
    with pytest.raises(CompileError, match="could not be run"):
        compiler_identity(Config(path=str(tmp_path)))


def test_a_version_is_what_nvcc_says_and_is_asked_for_once(tmp_path: Path) -> None:
    nvcc = fake_nvcc(tmp_path, tmp_path)
    for said, version in (
        (
            "nvcc: NVIDIA\nCuda compilation tools, release 13.0, V13.0.88\nBuild b/c.1\n",
            "release 13.0, V13.0.88, b/c.1",
        ),
        ("another compiler\n", "another compiler"),
    ):
        nvcc.write_text(f"#!/bin/sh\necho run >> {tmp_path}/runs\nprintf '{said}'\n")
        assert {toolchain.compiler_version(Config(path=str(tmp_path)), said) for _ in range(3)} == {version}
    assert (tmp_path / "runs").read_text() == "run\n" * 2


@pytest.mark.nvcc
def test_the_installed_toolkit_has_its_tools() -> None:
    root = toolchain.toolkit_root(CONFIG)
    assert (root / "bin" / "ptxas").is_file()
    assert compiler_identity(CONFIG) == compiler_identity(CONFIG)


# ---- a compiler that hangs --------------------------------------------------------------------------------------


def slow_nvcc(folder: Path) -> Path:
    """A toolkit whose nvcc waits for a process of its own, whose number it writes down."""
    nvcc = folder / "bin" / "nvcc"
    nvcc.parent.mkdir(parents=True)
    nvcc.write_text(f'#!/bin/sh\nsleep 60 &\necho $! > "{folder}/child"\nwait\n')
    nvcc.chmod(0o755)
    return folder


def runs(process: int) -> bool:
    """Whether there is such a process that is more than an entry of the table, a moment after it was killed."""
    time.sleep(0.1)
    try:
        return "\nState:\tZ" not in Path(f"/proc/{process}/status").read_text()
    except OSError:
        return False


@pytest.mark.nvcc
def test_a_compiler_that_hangs_is_killed_with_what_it_started(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "temporary").mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "temporary"))
    home = slow_nvcc(tmp_path / "toolkit")
    limited = Config(cuda_home=str(home), compile_timeout="0.5")
    sentence = rf"^expected nvcc \({home}/bin/nvcc\) to end within 0.5 seconds but it still ran and was killed"
    began = time.monotonic()
    for attempt in (compile_cubin, compile_ptx):
        with pytest.raises(CompileError, match=sentence):
            attempt(EMPTY, SM_80, config=limited)
        assert not runs(int((home / "child").read_text()))
    assert time.monotonic() - began < 20
    assert list((tmp_path / "temporary").iterdir()) == []
    with pytest.raises(CompileError, match=r"to end within 0\.5 seconds"):
        toolchain.compiler_version(limited, "a slow one")
    with pytest.raises(CompileError, match=r"to end within 0\.5 seconds"):
        toolchain.toolkit_root(Config(path=str(home / "bin"), compile_timeout="0.5"))


@pytest.mark.parametrize("text", ["soon", "0", "-1", "nan"])
def test_a_time_that_is_none_is_refused(tmp_path: Path, text: str) -> None:
    slow_nvcc(tmp_path)
    with pytest.raises(CompileError, match=f"^WARPJIT_COMPILE_TIMEOUT: expected a positive number of .* got '{text}'"):
        toolchain.toolkit_root(Config(path=str(tmp_path / "bin"), compile_timeout=text))


@pytest.mark.nvcc
def test_the_longest_times_are_as_good_as_for_ever() -> None:
    longest = Config(cuda_home=CONFIG.cuda_home, path=CONFIG.path, compile_timeout="inf")
    assert compile_cubin(EMPTY, SM_80, config=longest).cubin[:4] == b"\x7fELF"
