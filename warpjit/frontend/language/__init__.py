"""The namespace `T`: the language's names, with their documentation.

A name here says how it is called and what it means; what tracing does with it stands in
`warpjit.frontend.intrinsics`.
"""

from __future__ import annotations

from warpjit.frontend.language import cuda as cuda
from warpjit.frontend.language.core import (
    abs,
    alloc_local,
    alloc_shared,
    assume,
    cast,
    cdiv,
    device_entry,
    fma,
    max,
    min,
    reinterpret,
    sqrt,
    unroll,
)
from warpjit.frontend.language.ptx import ptx
from warpjit.frontend.language.types import SCALAR_TYPES, Tensor, constexpr, dynamic

globals().update(SCALAR_TYPES)

__all__ = [
    "Tensor",
    "abs",
    "alloc_local",
    "alloc_shared",
    "assume",
    "cast",
    "cdiv",
    "constexpr",
    "cuda",
    "device_entry",
    "dynamic",
    "fma",
    "max",
    "min",
    "ptx",
    "reinterpret",
    "sqrt",
    "unroll",
    *SCALAR_TYPES,
]
