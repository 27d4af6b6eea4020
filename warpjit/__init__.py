"""warpjit: warp-level tensor-core kernels in Python.

    from warpjit import T, warpjit

`@warpjit` makes a kernel of a function in the language `T`. Called on CUDA tensors it is compiled and launched; on
CPU tensors the same program runs in a lane-accurate simulator.
"""

from warpjit.compiled import Compiled, compile
from warpjit.decorator import jit, warpjit
from warpjit.errors import (
    ArgumentError,
    CompileError,
    InstructionError,
    LaunchError,
    LayoutError,
    SimulationError,
    SourceError,
    TargetError,
    TraceError,
    WarpjitError,
)
from warpjit.frontend import language as T
from warpjit.kernel import Kernel

__version__ = "0.1.0"

__all__ = [
    "ArgumentError",
    "CompileError",
    "Compiled",
    "InstructionError",
    "Kernel",
    "LaunchError",
    "LayoutError",
    "SimulationError",
    "SourceError",
    "T",
    "TargetError",
    "TraceError",
    "WarpjitError",
    "compile",
    "jit",
    "warpjit",
]
