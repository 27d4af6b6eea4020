"""One kernel on the simulator and, where there is one, on the GPU: the same bits."""

from __future__ import annotations

from collections.abc import Callable
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


def simulated(kernel: warpjit.Kernel, *args: Any, **constants: Any) -> list[torch.Tensor]:
    """The tensors among the arguments after a run in the simulator, on copies of them."""
    copies = [arg.cpu().clone() if isinstance(arg, torch.Tensor) else arg for arg in args]
    kernel(*copies, **constants)
    return [copy for copy in copies if isinstance(copy, torch.Tensor)]


def run_both(run: Callable[..., None], kernel: warpjit.Kernel, *args: Any, **constants: Any) -> None:
    """Call a kernel by `run`; where its tensors are on a GPU, the simulator must leave the same bits in all of them."""
    tensors = [arg for arg in args if isinstance(arg, torch.Tensor)]
    if all(tensor.is_cpu for tensor in tensors):
        run(kernel, *args, **constants)
        return
    expected = simulated(kernel, *args, **constants)
    run(kernel, *args, **constants)
    for tensor, other in zip(tensors, expected, strict=True):
        assert_same_bits(other, tensor)
