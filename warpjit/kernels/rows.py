"""Kernels that go along the rows of a matrix: who works on a row, what a thread holds of it, and how threads agree.

A row's elements are dealt out in pieces of up to 16 bytes, one a thread and round. A row that fits stays in registers,
its loads under way together; a longer one is read again for each pass. What is computed is the kernels'.
"""

# What a helper of a kernel takes is known when it is traced.
# mypy: disable-error-code="no-untyped-def, no-untyped-call, assignment"

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from warpjit.errors import ArgumentError
from warpjit.frontend import language as T
from warpjit.frontend.specialize import brief
from warpjit.kernel import Kernel
from warpjit.kernels.facts import Facts, check_disjoint
from warpjit.layout.axis import LANES

BLOCK = 128
"""Threads of a CTA where a row takes no more than a warp."""
PIECES = 8
"""Of a row that a thread holds, where it has so many: measured on an H200."""
HELD = 32768
"""Elements of a row that a CTA holds: half of the registers of a multiprocessor."""
FLOATS = ("torch.float16", "torch.bfloat16", "torch.float32", "torch.float64")


@dataclass(frozen=True)
class Case:
    """How rows are shared out; what a kernel of rows is compiled for besides types.

    items    elements of a piece: a power of two that divides the length of rows
    threads  of a row: a power of two, from 8 to 1,024
    pieces   of a row that a thread holds; 0: rows are too long, and are read again for each pass
    """

    items: int
    threads: int
    pieces: int

    @property
    def rows(self) -> int:
        """Rows of a CTA."""
        return max(BLOCK // self.threads, 1) if self.threads <= LANES else 1

    @property
    def block(self) -> int:
        """Threads of a CTA."""
        return self.rows * self.threads

    @property
    def span(self) -> int:
        """Elements of a piece of each thread of a row."""
        return self.threads * self.items


@functools.lru_cache(maxsize=4096)
def case_of(columns: int, size: int) -> Case:
    """For rows of so many elements of `size` bytes."""
    items = math.gcd(columns, 16 // size)
    pieces = -(-columns // items)
    threads = 8
    while threads < 1024 and threads * PIECES < pieces:
        threads *= 2
    each = _power_of_two(-(-pieces // threads))
    return Case(items, threads, each if each * items * threads <= HELD else 0)


def _power_of_two(n: int) -> int:
    """The least that is not below n."""
    return 1 << max(n - 1, 0).bit_length()


def checked(name: str, x: Any, like: Any = None) -> Any:
    """`x`, if it is a tensor of floats with an axis (of the shape and type of `like`); else ArgumentError."""
    if not hasattr(x, "data_ptr"):
        raise ArgumentError(f"{name}: expected a tensor but got {brief(x)}")
    try:
        x.stride(), x.data_ptr()
    except RuntimeError as error:
        raise ArgumentError(f"{name}: expected a dense tensor in memory, but {error}") from None
    if x.is_nested:
        raise ArgumentError(f"{name}: expected a dense tensor in memory but got a nested one")
    if like is not None and (x.shape != like.shape or x.dtype != like.dtype):
        raise ArgumentError(
            f"{name}: expected shape {tuple(like.shape)} of {like.dtype} but got shape {tuple(x.shape)} of {x.dtype}"
        )
    if x.ndim == 0 or str(x.dtype) not in FLOATS:
        raise ArgumentError(
            f"{name}: expected floats with one axis or more but got shape {tuple(x.shape)} of {x.dtype}"
        )
    return x


def number(name: str, value: Any) -> float:
    """`value` as a float, if it is a number; else ArgumentError."""
    try:
        if not isinstance(value, str | bytes):
            return float(value)
    except (TypeError, ValueError, OverflowError, RuntimeError):
        pass
    raise ArgumentError(f"{name}: expected a number but got {brief(value)}")


def matrix(x: Any) -> Any:
    """The last axis of `x` as rows of a matrix, in place where its strides allow it."""
    if x.ndim == 2 and x.stride(1) == 1:
        return x
    flat = x.reshape(math.prod(x.shape[:-1]), x.shape[-1])
    return flat if flat.stride(1) == 1 else flat.contiguous()


def vector(name: str, x: Any, like: Any) -> Any:
    """One number for each element of a row of `like`, contiguous, or None; else ArgumentError."""
    if x is None:
        return None
    if checked(name, x).shape != like.shape[-1:]:
        raise ArgumentError(f"{name}: expected shape {tuple(like.shape[-1:])} but got shape {tuple(x.shape)}")
    return x.contiguous()


def run(kernel_of: Callable[[Case], Kernel], x: Any, out: Any, *more: Any, **vectors: Any) -> Any:
    """Y = kernel(X, *vectors, *more, Y) for each vector along the last axis of `x`; `out`, or a new tensor for None."""
    import torch  # noqa: PLC0415  heavy

    if out is None:
        out = torch.empty_like(checked("x", x))
    else:
        if not checked("out", out, checked("x", x)).is_contiguous():
            Facts.of("out", out).check_apart("out")
        check_disjoint(out, itself=True, x=x, **vectors)
    if x.numel():
        source, target = matrix(x), matrix(out)
        kernel_of(case_of(x.shape[-1], x.element_size()))(source, *vectors.values(), *more, target)
        if target.data_ptr() != out.data_ptr():
            with torch.inference_mode():  # in which leaves with a gradient and inference tensors may be written
                out.copy_(target.view(out.shape))
    return out


# ---- in kernels -----------------------------------------------------------------------------------------------


def compute_type(dtype):
    """The type in which elements are computed."""
    return T.float64 if dtype == T.float64 else T.float32


def start(case, X):
    """(row, this thread's first element, scratch) of a CTA's thread in a grid of CTAs of `case.rows` rows."""
    thread = T.cuda.thread_idx()
    row = T.cuda.block_idx() * case.rows + thread // case.threads
    scratch = T.alloc_shared((case.block // LANES,), compute_type(X.dtype))
    return row, thread % case.threads * case.items, scratch


def load(case, X, row, i):
    """The piece of a row that begins at i; undefined where it does not exist."""
    return T.load(X[row, i : i + case.items], where=row < X.shape[0] and i < X.shape[1])


def hold(case, X, row, first):
    """This thread's pieces of a row in the type of computation; none where rows are too long."""
    loaded: tuple[Any, ...] = ()
    for c in T.unroll(case.pieces):
        loaded = (*loaded, load(case, X, row, first + c * case.span))
    held: tuple[Any, ...] = ()
    for piece in loaded:
        held = (*held, piece.cast(compute_type(X.dtype)))
    return held


def load_vector(case, vector, i, X):
    """The piece of a vector that begins at i, in the type in which X's elements are computed; of None nothing."""
    if vector is None:
        return None
    return T.load(vector[i : i + case.items], where=i < X.shape[1]).cast(compute_type(X.dtype))


def fold(case, X, row, first, held, initial, step):
    """`step(total, x)` over this thread's elements of a row, beginning with `initial`."""
    total = compute_type(X.dtype)(initial)
    if case.pieces:
        # The last piece first: the compiler does not delay its load until others are used.
        for c, piece in reversed(tuple(enumerate(held))):
            if first + c * case.span < X.shape[1]:
                for j in T.unroll(case.items):
                    total = step(total, piece[j])
    else:
        for i in range(first, X.shape[1], case.span):
            piece = load(case, X, row, i).cast(total.dtype)
            for j in T.unroll(case.items):
                total = step(total, piece[j])
    return total


def replace(case, held, f):
    """f(x) in place of each element x that is held."""
    for piece in held:
        for j in T.unroll(case.items):
            piece[j] = f(piece[j])


def store(case, X, Y, row, first, held, result):
    """Y's row, from `result(piece, i)` of X's pieces; of those that are held, all are computed before one is stored."""
    if held:
        results: tuple[Any, ...] = ()
        for c, piece in enumerate(held):
            results = (*results, result(piece, first + c * case.span).cast(Y.dtype))
        for c, piece in enumerate(results):
            store_piece(case, Y, row, first + c * case.span, piece)
    else:
        for i in range(first, X.shape[1], case.span):
            piece = load(case, X, row, i).cast(compute_type(X.dtype))
            store_piece(case, Y, row, i, result(piece, i).cast(Y.dtype))


def store_piece(case, Y, row, i, piece):
    """A piece of Y, where it exists."""
    T.store(Y[row, i : i + case.items], piece, where=row < Y.shape[0] and i < Y.shape[1])


def reduce(case, x, scratch, over_warp, over_cta):
    """`x` of all threads of a row together."""
    return over_cta(x, scratch) if case.threads > LANES else over_warp(x, case.threads)
