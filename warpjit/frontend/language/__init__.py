"""The names of warpjit's language, for `from warpjit import T`.

A kernel is a Python function under `@warpjit`. It is traced: Python computes what is known now, and what is not
becomes a program for every thread of the GPU (or of the simulator). Three times at which a value may be known:

static    depends only on Python values (numbers, tuples, strings, layouts, types, captured names, static shapes):
          computed while tracing; of an `if` on it only the arm that is taken is traced
unrolled  the variable of `T.unroll`, or of a `for` over any static iterable but `range`: the loop is expanded. A static
          `range` is a device loop, unless a value that derives from its variable must be static (a register index, the
          extent of a window, an immediate): then it is expanded (to at most 4,096 statements). `T.range` never is
device    everything else

Names. Assigning a scalar takes its value now, assigning a tensor gives it a second name. A name that a device loop or
branch carries (bound before it and changed in it, or read after it) becomes a typed variable of the device: a static
int is int32, a float float32, a bool bool; other types are written (`total = T.int64(0)`). A tuple or a frozen
dataclass is carried by those of its numbers that change: its structure and all else in it stay. Tensors, views, strings
and layouts cannot be carried, and a name that may be unbound cannot be read: both are errors that show the lines.

Helpers. Python functions (nested ones and lambdas too) are inlined when an argument or a captured name is a value of
the kernel, or when they use `T`; others are called by Python, on static arguments. The builtins min, max, abs, int,
float, bool, sum, any and all work on everything; len, range, zip, enumerate, reversed, map, sorted, isinstance, tuple,
list and dict arrange what is known while tracing.

Structure. Tuples, lists, dictionaries, comprehensions over static iterables and strings exist while tracing only; what
they hold may be values of the device. A list or dictionary is changed where it was made, or in loops that are expanded:
under a branch or in a loop of the device that is an error. Generators are arguments of calls; there are no sets.

Classes. A frozen dataclass or named tuple that the kernel makes is a bundle of anything (tensors, barriers, scalars);
`dataclasses.replace` makes the next one. An object of a plain class that the kernel makes has attributes that are
assigned like names: `self.stage = (self.stage + 1) % 4` in a method is carried by the loop or branch around its call.
Methods, properties, `__init__`, `__call__` and `__getitem__` are inlined. Classes are defined outside of kernels. A
kernel in a class has its object as a compile-time constant, which must be one that cannot change.

Leaving early. `break`, `continue` and `return` may stand under any condition; a helper may return from its loops, with
values whose types meet. What threads miss by leaving is theirs only: a barrier after a `return` that not all threads of
the CTA take is refused.

Python's meaning is kept: `//` and `%` floor, chained comparisons evaluate the middle once, `and` and `or` short-
circuit, a loop variable keeps its last value. What cannot be kept is refused.

Parameters. Positional ones are tensors, numbers, tuples of these, or None; keyword-only ones (after `*`), and any
annotated `T.constexpr`, are constants that the kernel is specialised on. An annotation is optional: without one an int
is int32 (with a range check), a float float32, a bool bool.

Errors are of one family, `warpjit.WarpjitError`; one about the program carries the file, line and column of each
finding.
"""

# What tracing does with a name stands in `warpjit.frontend.intrinsics`; the stub beside this file is generated.

from __future__ import annotations

from warpjit.frontend.language import approx as approx
from warpjit.frontend.language import cuda as cuda
from warpjit.frontend.language.atomics import (
    atomic_add,
    atomic_and,
    atomic_cas,
    atomic_exchange,
    atomic_max,
    atomic_min,
    atomic_or,
    atomic_xor,
    red_add,
    red_and,
    red_max,
    red_min,
    red_or,
    red_xor,
)
from warpjit.frontend.language.bits import brev, clz, funnel_shift_left, funnel_shift_right, lop3, popc, prmt
from warpjit.frontend.language.constant import constant
from warpjit.frontend.language.core import (
    abs,
    alloc_local,
    alloc_shared,
    assume,
    cast,
    cdiv,
    copy,
    device_entry,
    fma,
    load,
    max,
    min,
    prefetch,
    range,
    reinterpret,
    sqrt,
    store,
    unroll,
)
from warpjit.frontend.language.debugging import device_assert, printf, static_assert, static_print
from warpjit.frontend.language.inline_asm import asm
from warpjit.frontend.language.mathematics import (
    ceil,
    cos,
    erf,
    exp,
    exp2,
    floor,
    log,
    log2,
    rcp,
    round,
    rsqrt,
    sin,
    tanh,
    trunc,
)
from warpjit.frontend.language.ptx import ptx
from warpjit.frontend.language.types import SCALAR_TYPES, Tensor, constexpr, dynamic

globals().update(SCALAR_TYPES)

__all__ = [
    "Tensor",
    "abs",
    "alloc_local",
    "alloc_shared",
    "approx",
    "asm",
    "assume",
    "atomic_add",
    "atomic_and",
    "atomic_cas",
    "atomic_exchange",
    "atomic_max",
    "atomic_min",
    "atomic_or",
    "atomic_xor",
    "brev",
    "cast",
    "cdiv",
    "ceil",
    "clz",
    "constant",
    "constexpr",
    "copy",
    "cos",
    "cuda",
    "device_assert",
    "device_entry",
    "dynamic",
    "erf",
    "exp",
    "exp2",
    "floor",
    "fma",
    "funnel_shift_left",
    "funnel_shift_right",
    "load",
    "log",
    "log2",
    "lop3",
    "max",
    "min",
    "popc",
    "prefetch",
    "printf",
    "prmt",
    "ptx",
    "range",
    "rcp",
    "red_add",
    "red_and",
    "red_max",
    "red_min",
    "red_or",
    "red_xor",
    "reinterpret",
    "round",
    "rsqrt",
    "sin",
    "sqrt",
    "static_assert",
    "static_print",
    "store",
    "tanh",
    "trunc",
    "unroll",
    *SCALAR_TYPES,
]
