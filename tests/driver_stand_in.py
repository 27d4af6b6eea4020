"""A stand-in for libcuda that logs what is called, with what, in which context; and the fixtures that hand it out."""

from __future__ import annotations

import ctypes
import subprocess
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from warpjit.cuda import driver as driver_module
from warpjit.cuda.driver import Driver, Function

SOURCE = Path(__file__).parent / "cuda" / "fake_libcuda.c"
PRIMARY = 0x1000
OTHER = 0x9000


def build(folder: Path, *flags: str) -> Path:
    path = folder / "libcuda_stand_in.so"
    subprocess.run(["cc", "-shared", "-fPIC", "-pthread", *flags, str(SOURCE), "-o", str(path)], check=True)
    return path


@pytest.fixture(scope="session")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build(tmp_path_factory.mktemp("libcuda"))


class Fake:
    """The stand-in, loaded afresh for one test (a copy of the file is another library to the loader)."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.library = ctypes.CDLL(str(path))
        self.library.fake_log.restype = ctypes.c_char_p
        self.library.fake_current.restype = ctypes.c_void_p

    @property
    def log(self) -> list[str]:
        """What was called since the last look."""
        lines: list[str] = self.library.fake_log().decode().splitlines()
        self.library.fake_clear()
        return lines

    @property
    def contexts(self) -> tuple[int, int | None]:
        """How many contexts this thread has pushed, and the current one."""
        return self.library.fake_depth(), self.library.fake_current()

    def push(self, context: int) -> None:
        self.library.fake_push(ctypes.c_void_p(context))

    def fail(self, call: str, code: int, times: int = 1) -> None:
        self.library.fake_fail(call.encode(), code, times)

    def parameters(self, *sizes: int) -> None:
        self.library.fake_parameters(len(sizes), (ctypes.c_int * len(sizes))(*sizes))

    def kernel(self, ordinal: int = 0) -> Function:
        function = Driver(str(self.path)).device(ordinal).load(b"cubin").function("k")
        assert self.log
        return function


@pytest.fixture
def fake(library: Path, tmp_path: Path) -> Fake:
    copy = tmp_path / "libcuda.so.1"
    copy.write_bytes(library.read_bytes())
    return Fake(copy)


@pytest.fixture
def as_libcuda(fake: Fake, monkeypatch: pytest.MonkeyPatch) -> Iterator[Fake]:
    monkeypatch.setattr(driver_module, "LIBRARY", str(fake.path))
    yield fake
    driver_module._shared.clear()


def in_thread(work: Callable[[], object], seconds: float | None = None) -> object:
    """What `work` gives, or raises, in a thread of its own. A thread that hangs is left alone after `seconds`."""
    results: list[object] = []

    def run() -> None:
        try:
            results.append(work())
        except Exception as error:
            results.append(error)

    thread = threading.Thread(target=run, daemon=seconds is not None)
    thread.start()
    thread.join(seconds)
    assert not thread.is_alive()
    return results[0]
