"""warpjit: warp-level tensor-core kernels in Python.

    from warpjit import T, warpjit

`@warpjit` makes a kernel of a function in the language `T`. Called on CUDA tensors it is compiled and launched; on
CPU tensors the same program runs in a lane-accurate simulator.

The names are loaded when they are first asked for, so that `warpjit.layout` and the command line start without them.
"""

import importlib
from typing import TYPE_CHECKING, Any

from warpjit.config import VERSION
from warpjit.errors import (
    ArgumentError,
    CacheError,
    CompileError,
    InstructionError,
    LaunchError,
    LayoutError,
    SimulationError,
    SourceError,
    TargetError,
    TraceError,
    TuningError,
    WarpjitError,
)

if TYPE_CHECKING:
    from warpjit.compiled import Compiled, compile
    from warpjit.decorator import jit, warpjit
    from warpjit.frontend import language as T
    from warpjit.kernel import Kernel
    from warpjit.tuner import Config, Limits, Tuned, TuningReport, autotune, space

__version__ = VERSION

__all__ = [
    "ArgumentError",
    "CacheError",
    "CompileError",
    "Compiled",
    "Config",
    "InstructionError",
    "Kernel",
    "LaunchError",
    "LayoutError",
    "Limits",
    "SimulationError",
    "SourceError",
    "T",
    "TargetError",
    "TraceError",
    "Tuned",
    "TuningError",
    "TuningReport",
    "WarpjitError",
    "autotune",
    "compile",
    "jit",
    "space",
    "warpjit",
]

_HOMES = {
    "space": ("warpjit.tuner", "space"),
    "autotune": ("warpjit.tuner", "autotune"),
    "TuningReport": ("warpjit.tuner", "TuningReport"),
    "Tuned": ("warpjit.tuner", "Tuned"),
    "Limits": ("warpjit.tuner", "Limits"),
    "Config": ("warpjit.tuner", "Config"),
    "Compiled": ("warpjit.compiled", "Compiled"),
    "Kernel": ("warpjit.kernel", "Kernel"),
    "T": ("warpjit.frontend.language", None),
    "compile": ("warpjit.compiled", "compile"),
    "jit": ("warpjit.decorator", "jit"),
    "warpjit": ("warpjit.decorator", "warpjit"),
}
"""The module of each name that is loaded late, and what it is called there (None: it is the module)."""


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    home, own = _HOMES[name]
    module = importlib.import_module(home)
    value = module if own is None else getattr(module, own)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
