"""From a kernel to its launch plan: where shared buffers lie, and what a launch computes."""

from __future__ import annotations

from warpjit.errors import Finding, TargetError
from warpjit.ir.nodes import GlobalBuffer, Kernel, Parameter, SharedBuffer
from warpjit.passes.effects import effects
from warpjit.passes.launch_plan import LaunchPlan, PlannedParameter, SharedSlot


def plan(kernel: Kernel, shared_limit: int) -> LaunchPlan:
    """The plan of `kernel` for a target that gives a CTA at most `shared_limit` bytes of dynamic shared memory.

    TargetError: the kernel allocates more; its finding lists the allocations.
    """
    shared, total = _place(kernel.shared)
    if total > shared_limit:
        raise TargetError.collect([_too_much(kernel, shared, total, shared_limit)])
    memory = effects(kernel)
    return LaunchPlan(
        name=kernel.name,
        grid=kernel.launch.grid,
        block=kernel.launch.block,
        cluster=kernel.launch.cluster,
        shared=shared,
        shared_bytes=total,
        parameters=tuple(_parameter(parameter) for parameter in kernel.parameters),
        reads=tuple(sorted(memory.reads)),
        writes=tuple(sorted(memory.writes)),
        max_registers=kernel.launch.max_registers,
        min_blocks_per_sm=kernel.launch.min_blocks_per_sm,
    )


def _place(buffers: tuple[SharedBuffer, ...]) -> tuple[tuple[SharedSlot, ...], int]:
    """Each buffer at the next offset that its alignment allows, and the end of the last.

    The arena's start is a multiple of the largest alignment, so an aligned offset is an aligned address.
    """
    slots, end = [], 0
    for buffer in buffers:
        offset = -(-end // buffer.align) * buffer.align
        slots.append(SharedSlot(buffer.name, offset, buffer.bytes, buffer.align))
        end = offset + buffer.bytes
    return tuple(slots), end


def _too_much(kernel: Kernel, shared: tuple[SharedSlot, ...], total: int, limit: int) -> Finding:
    every = ", ".join(f"{slot.name} {slot.bytes:,} at {slot.offset:,}" for slot in shared)
    return Finding(
        f"expected at most {limit:,} bytes of shared memory a CTA, which is what the target has, but {kernel.name} "
        f"allocates {total:,}: {every}",
        kernel.loc,
    )


def _parameter(parameter: Parameter) -> PlannedParameter:
    target = parameter.target
    return PlannedParameter(target.name, target.dtype, isinstance(target, GlobalBuffer), parameter.source)
