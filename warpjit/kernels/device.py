"""What kernels of this folder will run on: what the choice of their tiles depends on besides shapes."""

from __future__ import annotations

from typing import Any

from warpjit.cuda.driver import present_target
from warpjit.isa.target import Target
from warpjit.kernel import cpu_target

MULTIPROCESSORS = 132
"""Of the device that tiles are chosen for where there is none."""


def limits(place: Any) -> tuple[int, int]:
    """(multiprocessors, shared bytes of a CTA) of what the kernel will run on: a CUDA device, or the CPU's target."""
    if isinstance(place, Target):
        return MULTIPROCESSORS, place.max_shared
    import torch  # noqa: PLC0415  heavy

    target = present_target(place.index) or cpu_target()
    return int(torch.cuda.get_device_properties(place).multi_processor_count), target.max_shared
