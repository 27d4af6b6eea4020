"""One kernel on the simulator and, where there is one, on the GPU: the same bits."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

import torch

import warpjit


def bits(tensor: torch.Tensor) -> torch.Tensor:
    """The tensor's bit patterns, so that NaN equals itself and −0 differs from 0."""
    words = {1: torch.uint8, 2: torch.int16, 4: torch.int32, 8: torch.int64}
    return tensor.contiguous().view(words[tensor.element_size()])


def assert_same_bits(expected: torch.Tensor, got: torch.Tensor) -> None:
    different = bits(expected.cpu()) != bits(got.cpu())
    if different.any():
        where = tuple(int(x) for x in different.nonzero()[0])
        raise AssertionError(
            f"{int(different.sum())} of {different.numel()} elements differ, the first at {where}: "
            f"expected {expected[where].item()!r} but got {got[where].item()!r}"
        )


def run_both(run: Callable[..., None], kernel: warpjit.Kernel, *args: Any, **constants: Any) -> None:
    """Call a kernel by `run`; where its tensors are on a GPU, the simulator must leave the same bits in all of them."""
    if all(tensor.is_cpu for tensor in _tensors(args)):
        run(kernel, *args, **constants)
        return
    copies = _copied(args)
    kernel(*copies, **constants)
    run(kernel, *args, **constants)
    for expected, tensor in zip(_tensors(copies), _tensors(args), strict=True):
        assert_same_bits(expected, tensor)


def unbuilt(kernel: warpjit.Kernel, *args: Any, **constants: Any) -> None:
    """In place of the fixture `run`, for one of many alike kernels, of which others are built for every target."""
    kernel(*args, **constants)


def _tensors(args: Iterable[Any]) -> Iterator[torch.Tensor]:
    for arg in args:
        if isinstance(arg, tuple):
            yield from _tensors(arg)
        elif isinstance(arg, torch.Tensor):
            yield arg


def _copied(args: tuple[Any, ...]) -> tuple[Any, ...]:
    """The arguments with every tensor copied to the CPU."""
    return tuple(
        _copied(arg) if isinstance(arg, tuple) else arg.cpu().clone() if isinstance(arg, torch.Tensor) else arg
        for arg in args
    )
