"""The launch path where there is no GPU: a stand-in for the driver, and CPU tensors that are taken for CUDA tensors."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch
from driver_stand_in import PRIMARY, Fake
from processes import processes  # noqa: F401  a fixture

from warpjit import Kernel, arguments, build, kernel
from warpjit.arguments import Place
from warpjit.isa.target import Target


@pytest.fixture
def gpu(as_libcuda: Fake, monkeypatch: pytest.MonkeyPatch) -> Iterator[Fake]:
    """An H200 as the call sees it. The stream that is current on device d is 0x70 + d."""
    monkeypatch.setattr(arguments, "stream_reader", lambda: lambda device: 0x70 + device)
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)  # whatever GPU there is stays out of it
    kernel.present.cache_clear()
    yield as_libcuda
    kernel.present.cache_clear()


class Launches:
    """Launches of kernels on CPU tensors as if they were on device 0: nothing is compiled, and nothing runs.

    slow   how often a call took the slow path
    """

    def __init__(self, fake: Fake) -> None:
        self.fake, self.slow = fake, 0

    def expect(self, kernel: Kernel, *args: Any, **constants: Any) -> None:
        """Tell the driver which parameters the kernel has for these arguments."""
        specialization = kernel.specialization(args, constants)
        plan = kernel.program(specialization, Target.parse("sm_90a")).plan
        self.fake.parameters(*(8 if each.pointer else max(each.dtype.bits // 8, 1) for each in plan.parameters))
        self.slow = 0

    @property
    def lines(self) -> list[str]:
        """The launches since the last look."""
        return [line for line in self.fake.log if line.startswith("launch")]

    def of(self, call: Callable[[], object]) -> tuple[list[str], int]:
        """The launches of `call`, and how often it took the slow path."""
        assert self.lines is not None
        self.slow = 0
        call()
        return self.lines, self.slow


def _digest(built: build.Built) -> tuple[str, bytes]:
    """What stands for a cubin, with its key: a digest of the text."""
    found = hashlib.sha256(built.emitted.text.encode()).hexdigest()
    return found, found.encode()


@pytest.fixture
def launches(gpu: Fake, monkeypatch: pytest.MonkeyPatch) -> Launches:
    """CPU tensors are taken for tensors on device 0, which is current."""
    monkeypatch.setattr(arguments, "place_of", lambda specialization, runtime: Place("cuda", 0))
    monkeypatch.setattr(arguments, "current_device", lambda: 0)
    monkeypatch.setattr(build.Built, "_obtained", _digest)
    found = Launches(gpu)
    specialize = kernel.specialize

    def counted(*args: Any, **how: Any) -> Any:
        found.slow += 1
        return specialize(*args, **how)

    monkeypatch.setattr(kernel, "specialize", counted)
    gpu.push(PRIMARY)
    return found
