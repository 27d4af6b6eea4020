"""How tests run kernels: on the simulator, and on the GPU when there is one.

A test takes `device` ("cpu" or "cuda") for its tensors, and `run(kernel, *args, **constants)` to call a kernel on
them. On the CPU, `run` also notes the kernel, which is then built by nvcc: see `workshop`.
"""

from __future__ import annotations

import functools
import gc
import importlib.util
import tempfile
from collections.abc import Callable, Generator, Iterator
from typing import Any

import pytest
import torch
from both import run_both
from browser import find_browser
from driver_stand_in import as_libcuda, fake, library  # noqa: F401  fixtures
from workshop import Workshop, one_trace

import warpjit
from warpjit import config
from warpjit.cuda import toolchain


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


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """What is loaded stays: the garbage collector need not look at it, neither now nor in each test's collections.

    Those are few: what the tracer makes lives for a while, and would be looked at again and again in vain.
    """
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.set_threshold(20_000, 10, 50)
        gc.enable()


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


@pytest.fixture(scope="session")
def workshop() -> Iterator[Workshop]:
    shop = Workshop(COMPILER)
    yield shop
    shop.finish()


@pytest.fixture
def run(device: str, workshop: Workshop, request: pytest.FixtureRequest) -> Callable[..., None]:
    """Call a kernel on tensors of `device`; on the CPU also note it for building."""

    def on_gpu(kernel: warpjit.Kernel, *args: Any, **constants: Any) -> None:
        kernel(*args, **constants)
        torch.cuda.synchronize()

    def on_cpu(kernel: warpjit.Kernel, *args: Any, **constants: Any) -> None:
        with one_trace():
            kernel(*args, **constants)
            workshop.note(request.node.nodeid, kernel, args, constants)

    return on_cpu if device == "cpu" else on_gpu


@pytest.fixture
def both(run: Callable[..., None]) -> Callable[..., None]:
    """As `run`; on the GPU the simulator runs the same kernel as well, and must leave the same bits in every tensor."""
    return functools.partial(run_both, run)
