"""Who launches an empty kernel in `launch`: three tensors and two integers, one block of a warp.

Each gives, for one `Ground`, a function that launches a number of times and returns; only the host's time counts. Each
loop is written out, so that none pays for a call that another does not make.
"""

from __future__ import annotations

import ctypes
import itertools
import subprocess
import tempfile
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from bench.harness import REFERENCE
from bench.native import cubin, function
from warpjit import T, warpjit
from warpjit.cuda import driver

WARPJIT, BOUND, TRITON, TORCH = "warpjit", "bound", "Triton", "torch.add"
C_LOOP, CTYPES, PYCUDA = "C loop", "ctypes", "PyCUDA"
BLOCK = 32
INTEGERS = (3, 5)

Loop = Callable[[int], object]
"""Launches so many times."""


@dataclass(frozen=True)
class Ground:
    """What all launch on: float32 tensors of one device, and torch's current stream there."""

    a: torch.Tensor
    b: torch.Tensor
    c: torch.Tensor
    stream: int
    device: int

    @classmethod
    def here(cls) -> Ground:
        """On torch's current device and stream."""
        a, b, c = (torch.zeros(BLOCK, device="cuda") for _ in range(3))
        device = torch.cuda.current_device()
        return cls(a, b, c, torch.cuda.current_stream().cuda_stream, device)


@dataclass(frozen=True)
class Launcher:
    """A name, what stands behind it, and its loop. `prepare` raises where it cannot; the stack closes what it opens."""

    name: str
    what: str
    prepare: Callable[[Ground, ExitStack], Loop]


# ---- warpjit --------------------------------------------------------------------------------------------------


@warpjit
def empty(a: T.Tensor, b: T.Tensor, c: T.Tensor, m: T.int32, n: T.int32):
    T.device_entry(launch=T.cuda.LaunchConfig(grid=1, block=BLOCK))


def of_warpjit(ground: Ground, stack: ExitStack) -> Loop:
    """The kernel's call."""
    a, b, c, (m, n) = ground.a, ground.b, ground.c, INTEGERS

    def loop(count: int) -> None:
        for _ in itertools.repeat(None, count):
            empty(a, b, c, m, n)

    return loop


def of_bound(ground: Ground, stack: ExitStack) -> Loop:
    """The call of what `bind` gives."""
    a, b, c, (m, n) = ground.a, ground.b, ground.c, INTEGERS
    bound = empty.bind(a, b, c, m, n)

    def loop(count: int) -> None:
        for _ in itertools.repeat(None, count):
            bound(a, b, c, m, n)

    return loop


# ---- others ---------------------------------------------------------------------------------------------------


def of_triton(ground: Ground, stack: ExitStack) -> Loop:
    """Triton's call, of one warp."""
    from bench.triton_kernels import empty as kernel  # noqa: PLC0415  an optional package

    a, b, c, (m, n), grid = ground.a, ground.b, ground.c, INTEGERS, (1,)

    def loop(count: int) -> None:
        for _ in itertools.repeat(None, count):
            kernel[grid](a, b, c, m, n, num_warps=1)

    return loop


def of_torch(ground: Ground, stack: ExitStack) -> Loop:
    """A small operation of torch."""
    a, b, c, add = ground.a, ground.b, ground.c, torch.add

    def loop(count: int) -> None:
        for _ in itertools.repeat(None, count):
            add(a, b, out=c)

    return loop


class Parameters:
    """The kernel's parameters as the driver takes them: an array of pointers to values, which live as long."""

    def __init__(self, ground: Ground) -> None:
        self._values = [
            *(ctypes.c_void_p(each.data_ptr()) for each in (ground.a, ground.b, ground.c)),
            *(ctypes.c_int(each) for each in INTEGERS),
        ]
        self.array = (ctypes.c_void_p * len(self._values))(*map(ctypes.addressof, self._values))


def built_loop(folder: Path) -> Any:
    """`launch_loop` of the small C program, built into `folder`. Raises where there is no C compiler."""
    path = folder / "launch_loop.so"
    command = ["cc", "-O2", "-shared", "-fPIC", str(REFERENCE / "launch_loop.c"), "-o", str(path)]
    subprocess.run(command, check=True, capture_output=True)
    return ctypes.CDLL(str(path)).launch_loop


def of_c(ground: Ground, stack: ExitStack) -> Loop:
    """cuLaunchKernel from C."""
    launch_loop = built_loop(Path(stack.enter_context(tempfile.TemporaryDirectory())))
    parameters, kernel = Parameters(ground), function("empty.cu", "empty")
    entry = ctypes.cast(driver.driver().library.cuLaunchKernel, ctypes.c_void_p)
    stream = ctypes.c_void_p(ground.stream)

    def loop(count: int) -> None:
        code = launch_loop(entry, kernel.handle, BLOCK, stream, parameters.array, count)
        driver.driver().check("cuLaunchKernel", code)

    return loop


class Configuration(ctypes.Structure):
    """CUlaunchConfig (CUDA Driver API)."""

    _fields_ = (
        ("grid", ctypes.c_uint * 3),
        ("block", ctypes.c_uint * 3),
        ("shared", ctypes.c_uint),
        ("stream", ctypes.c_void_p),
        ("attributes", ctypes.c_void_p),
        ("count", ctypes.c_uint),
    )


def of_ctypes(ground: Ground, stack: ExitStack) -> Loop:
    """cuLaunchKernelEx through ctypes, with arguments that are ready: the least that Python can do without C."""
    parameters, kernel = Parameters(ground), function("empty.cu", "empty")
    configuration = Configuration((1, 1, 1), (BLOCK, 1, 1), 0, ground.stream, None, 0)
    call, handle = driver.driver().entry("cuLaunchKernelEx"), kernel.handle
    first, array, extra = ctypes.byref(configuration), parameters.array, ctypes.c_void_p(0)

    def loop(count: int) -> None:
        for _ in itertools.repeat(None, count):
            code = call(first, handle, array, extra)
        driver.driver().check("cuLaunchKernelEx", code)
        assert parameters.array is array

    return loop


def of_pycuda(ground: Ground, stack: ExitStack) -> Loop:
    """PyCUDA's prepared call, on a stream of its own: it cannot launch on torch's."""
    from pycuda import driver as pycuda  # noqa: PLC0415  an optional package

    pycuda.init()
    context = pycuda.Device(ground.device).retain_primary_context()
    context.push()
    stack.callback(context.pop)
    target = driver.driver().device(ground.device).target
    module = pycuda.module_from_buffer(cubin("empty.cu", target))
    kernel, stream = module.get_function("empty"), pycuda.Stream()
    kernel.prepare("PPPii")
    a, b, c = (each.data_ptr() for each in (ground.a, ground.b, ground.c))
    (m, n), grid, block, call = INTEGERS, (1, 1), (BLOCK, 1, 1), kernel.prepared_async_call

    def loop(count: int) -> None:
        for _ in itertools.repeat(None, count):
            call(grid, block, stream, a, b, c, m, n)

    return loop


LAUNCHERS = (
    Launcher(WARPJIT, "kernel(a, b, c, m, n)", of_warpjit),
    Launcher(BOUND, "bound = kernel.bind(a, b, c, m, n); bound(a, b, c, m, n)", of_bound),
    Launcher(TRITON, "kernel[(1,)](a, b, c, m, n, num_warps=1)", of_triton),
    Launcher(TORCH, "torch.add(a, b, out=c)", of_torch),
    Launcher(C_LOOP, "cuLaunchKernel in a C loop", of_c),
    Launcher(CTYPES, "cuLaunchKernelEx through ctypes, arguments ready", of_ctypes),
    Launcher(PYCUDA, "prepared_async_call on PyCUDA's own stream", of_pycuda),
)
