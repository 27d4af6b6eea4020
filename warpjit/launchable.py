"""What a launch needs to know of a program, however it was come by: traced here, or found in the store's index.

How a program is traced, and what both back ends make of it, is not in it: a process that finds its kernels in the
index never loads that.
"""

from __future__ import annotations

from dataclasses import dataclass

from warpjit.frontend.captures import Capture
from warpjit.frontend.kinds import Kind
from warpjit.isa.target import Target
from warpjit.passes.expressions import Planned
from warpjit.passes.launch_plan import LaunchPlan


@dataclass(frozen=True, eq=False)
class Launchable:
    """A program as a launch knows it.

    leaves    the kinds of the runtime arguments, in order
    captures  what the trace took from outside
    evaluate  computes the plan's expressions for a call
    """

    plan: LaunchPlan
    target: Target
    leaves: tuple[Kind, ...]
    captures: tuple[Capture, ...]
    evaluate: Planned


@dataclass(frozen=True, eq=False)
class Executable:
    """A program as machine code.

    entry  the name of its entry in the cubin
    key    the cubin's in the store
    code   a digest of the CUDA C++ that it was compiled from
    """

    program: Launchable
    entry: str
    cubin: bytes
    key: str
    code: str
