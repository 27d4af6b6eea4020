"""How tests run kernels: on the simulator, and on the GPU when there is one.

A test takes `device` ("cpu" or "cuda") for its tensors, and `run(kernel, *args, **constants)` to call a kernel on
them. On the CPU, `run` also notes the kernel: at the end of the session every noted kernel is built by nvcc for each of
`TARGETS` that has its instructions (many kernels in one text), and is refused with the target's name on the others.
"""

from __future__ import annotations

import functools
import importlib.util
import re
import tempfile
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch
from both import run_both
from browser import find_browser
from driver_stand_in import as_libcuda, fake, library  # noqa: F401  fixtures

import warpjit
from warpjit import config
from warpjit.cuda import toolchain
from warpjit.cuda.prelude import FUNCTIONS, prelude
from warpjit.isa.target import Target

TARGETS = tuple(Target.parse(name) for name in ("sm_80", "sm_89", "sm_90a", "sm_120"))
KERNELS_A_TEXT = 24


def has_compiler() -> bool:
    """Whether kernels can be built here: PyCUDA is installed, and nvcc is found."""
    try:
        toolchain.find_nvcc(config.read())
    except warpjit.CompileError:
        return False
    return importlib.util.find_spec("pycuda") is not None


COMPILER = has_compiler()


@pytest.fixture(autouse=True, scope="session")
def cache() -> Iterator[None]:
    """A cache of the tests' own, so that they neither see nor leave anything."""
    with tempfile.TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        patch.setenv("WARPJIT_CACHE_DIR", folder)
        yield


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Tests of what the machine lacks, a GPU, the compiler or a browser, are deselected, not skipped."""
    lacking = {"gpu": not torch.cuda.is_available(), "nvcc": not COMPILER, "browser": find_browser() is None}
    away = [item for item in items if any(lacks and item.get_closest_marker(name) for name, lacks in lacking.items())]
    if away:
        config.hook.pytest_deselected(items=away)
        items[:] = [item for item in items if item not in away]


@pytest.fixture(params=["cpu", pytest.param("cuda", marks=pytest.mark.gpu)])
def device(request: pytest.FixtureRequest) -> str:
    return str(request.param)


class Workshop:
    """Kernels that tests ran, to be built for every target."""

    def __init__(self) -> None:
        self.texts: dict[Target, dict[str, str]] = {target: {} for target in TARGETS}

    def note(self, kernel: warpjit.Kernel, args: tuple[Any, ...], constants: dict[str, Any]) -> None:
        specialization = kernel.specialization(args, constants)
        for target in TARGETS:
            program = _program(kernel, specialization, target)
            if program is None:
                continue
            emitted = kernel.built(specialization, target).emitted
            self.texts[target].setdefault(emitted.text, emitted.entry)

    def build(self) -> None:
        for target, texts in self.texts.items():
            items = list(texts.items())
            for start in range(0, len(items), KERNELS_A_TEXT):
                kernels = "\n".join(
                    re.sub(rf"\b{entry}\(", f"{entry}_{start + index}(", text)
                    for index, (text, entry) in enumerate(items[start : start + KERNELS_A_TEXT])
                )
                # Each text begins with the functions that it calls; the first prelude of a file hides all others.
                whole = prelude(FUNCTIONS) + kernels
                toolchain.compile_cubin(whole, target, config=config.read())


def _program(kernel: warpjit.Kernel, specialization: Any, target: Target) -> Any:
    """The program for a target; None where it must be, and is, refused."""
    try:
        return kernel.program(specialization, target)
    except warpjit.TraceError as refusal:
        assert target.name in str(refusal), refusal
        return None
    except warpjit.TargetError as refusal:
        assert "shared memory" in str(refusal), refusal
        return None


@pytest.fixture(scope="session")
def workshop() -> Iterator[Workshop]:
    shop = Workshop()
    yield shop
    if COMPILER:
        shop.build()


@pytest.fixture
def run(device: str, workshop: Workshop) -> Callable[..., None]:
    """Call a kernel on tensors of `device`; on the CPU also note it for building."""

    def call(kernel: warpjit.Kernel, *args: Any, **constants: Any) -> None:
        kernel(*args, **constants)
        if device == "cpu":
            workshop.note(kernel, args, constants)
        else:
            torch.cuda.synchronize()

    return call


@pytest.fixture
def both(run: Callable[..., None]) -> Callable[..., None]:
    """As `run`; on the GPU the simulator runs the same kernel as well, and must leave the same bits in every tensor."""
    return functools.partial(run_both, run)
