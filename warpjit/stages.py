"""The stages from a function's source to a program: trace → verify → prune → plan.

Loaded with the first call that needs them: a module that defines kernels starts without the tracer. What each stage
does stands in the folder of its name.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from warpjit.build import Program
from warpjit.frontend.kinds import Specialization
from warpjit.frontend.source import FunctionSource
from warpjit.frontend.trace import trace
from warpjit.frontend.tracer import Settings
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
    kernel = prune(traced.kernel)
    launch = plan(kernel, target.max_shared)
    leaves = tuple(specialization.leaves())
    return Program(kernel, launch, target, leaves, traced.captures, launch.compile())
