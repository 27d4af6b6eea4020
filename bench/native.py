"""Kernels by other hands, in CUDA C++: compiled by warpjit's toolchain and launched by its driver, as its own are."""

from __future__ import annotations

import functools
from collections.abc import Sequence

import torch

from bench.harness import REFERENCE
from warpjit import config
from warpjit.cuda import driver, toolchain
from warpjit.isa.target import Target

# These read CUDA's headers, which warpjit's own text does without.
WITH_HEADERS = ("-U__CUDA_RUNTIME_H__",)


@functools.cache
def cubin(file: str, target: Target, *options: str) -> bytes:
    """`reference/<file>` built for `target`. Raises `CompileError`."""
    text = (REFERENCE / file).read_text(encoding="utf-8")
    return toolchain.compile_cubin(text, target, options=(*WITH_HEADERS, *options), config=config.read()).cubin


def function(file: str, name: str, *options: str) -> driver.Function:
    """The kernel `name` of `reference/<file>`, loaded on torch's current device. Raises of the WarpjitError family."""
    device = torch.cuda.current_device()
    return _module(file, device, *options).function(name)


@functools.cache
def _module(file: str, device: int, *options: str) -> driver.Module:
    target = driver.driver().device(device).target
    return driver.load(cubin(file, target, *options), device)


class Native:
    """A kernel that is launched again and again with the same arguments, on torch's current stream."""

    def __init__(
        self,
        kernel: driver.Function,
        formats: Sequence[str],
        values: Sequence[int],
        *,
        grid: int,
        block: int,
        shared: int = 0,
    ) -> None:
        self._prepared = kernel.prepare(formats, (block, 1, 1), shared=shared)
        self._grid, self._values = (grid, 1, 1), tuple(values)
        self._device = torch.cuda.current_device()

    def launch(self) -> None:
        stream = torch._C._cuda_getCurrentRawStream(self._device)
        self._prepared.launch(self._grid, stream, self._values)
