"""The stages from a function's source to a program: trace → verify → prune → plan.

Loaded with the first call that needs them: a module that defines kernels starts without the tracer. What each stage
does stands in the folder of its name.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from warpjit.build import Origin, Program
from warpjit.frontend.kinds import Specialization
from warpjit.frontend.source import FunctionSource
from warpjit.frontend.trace import trace
from warpjit.frontend.tracer import Settings
from warpjit.ir.nodes import Kernel
from warpjit.passes.plan import plan
from warpjit.passes.prune import prune
from warpjit.passes.verify import verify

__all__ = ["Settings", "program_of"]


def program_of(
    source: FunctionSource, function: Callable[..., Any], specialization: Specialization, settings: Settings
) -> Program:
    """The verified program of a specialisation. TraceError: all that the tracer or the verifier has found."""
    target = settings.target
    traced = trace(source, function, specialization, settings)
    verify(traced.kernel, target)
    kernel = _limited(prune(traced.kernel), settings.max_registers)
    launch = plan(kernel, target.max_shared)
    return Program(
        plan=launch,
        target=target,
        leaves=tuple(specialization.leaves()),
        captures=traced.captures,
        evaluate=launch.compile(),
        kernel=kernel,
        origin=_origin(source, specialization, settings),
        repeatable=traced.repeatable,
    )


def _limited(kernel: Kernel, max_registers: int | None) -> Kernel:
    """The kernel with another limit of registers than the one that it asks for, which decides alone."""
    if max_registers is None:
        return kernel
    return replace(kernel, launch=replace(kernel.launch, max_registers=max_registers, min_blocks_per_sm=None))


def _origin(source: FunctionSource, specialization: Specialization, settings: Settings) -> Origin:
    options = {name: value for name, value in vars(settings).items() if name != "target"}
    return Origin(source.fingerprint, {name: str(kind) for name, kind in specialization.kinds}, options)
