"""mma.sync and mma.sp of elements of 8, 6 and 4 bits in any mix (`kind::`), and with scales for blocks of k.

Operands lie as bytes or 4-bit integers of other mma do; `ir.matrix_scaled` says how a number stands in its byte. With
`kind::f8f6f4` and `kind::mxf8f6f4` every element has a byte, with `kind::mxf4` and `kind::mxf4nvf4` 4 bits.

Scales: A has one for each row and each of 1, 2 or 4 blocks of k (`scale_vec::`), a byte each, in operand `SFA`; B one
for each column and block, in `SFB`. Of the four lanes of quad i (lanes 4 i … 4 i + 3), two give those of rows i and
i + 8, in this order: the first or second two, as `thread_a` says; one gives those of column i, that which `thread_b`
names. `byte_a` and `byte_b` are the first byte in the register (PTX manual, section "Block Scaling for mma.sync").

None of these rows was compared with a device: they are `unverified`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import lru_cache
from itertools import product as combinations

import numpy as np

from warpjit.ir.dtypes import DType, float16, float32, uint4, uint8
from warpjit.ir.matrix_scaled import CONTAINERS, NIBBLES, SCALES, container_sum, scaled_sum
from warpjit.isa import mma_shapes
from warpjit.isa.fragments import Gather
from warpjit.isa.mma_shapes import Product, Shape, mma_operands, over_matrices
from warpjit.isa.mma_sparse import ORDERED, over_chosen, quad_operand, sparse_operands
from warpjit.isa.mma_sparse import SECTION as SPARSE_SECTION
from warpjit.isa.needs import families, only
from warpjit.isa.row import Array, Asm, Kind, Needs, Operand, Participants, Row
from warpjit.isa.sparse_metadata import QUAD, STORED_ROWS, Metadata, chosen
from warpjit.record import record

WORDS = 8  # 32-bit words of a row of A that are stored, in all of these
BLACKWELL = families(100, 110, 120)
SM_120 = families(120)
SM_120_ONLY = only(120, 121)


@record
class Scaling:
    """A combination of kind, blocks and scales that exists.

    bits   of an element's place: 8 or 4
    kind   after `kind::`
    vec    blocks of k of one instruction
    scale  the type of scales
    types  of elements, for A and B alike
    """

    bits: int
    kind: str
    vec: int
    scale: str
    types: tuple[str, ...]


SCALINGS = (
    Scaling(8, "mxf8f6f4", 1, "ue8m0", tuple(CONTAINERS)),
    Scaling(4, "mxf4", 2, "ue8m0", ("e2m1",)),
    Scaling(4, "mxf4nvf4", 2, "ue8m0", ("e2m1",)),
    Scaling(4, "mxf4nvf4", 4, "ue4m3", ("e2m1",)),
)


# ---- operands -----------------------------------------------------------------------------------------


@lru_cache(maxsize=16)
def _operands(bits: int, sparse: bool, result: DType) -> tuple[Operand, ...]:
    """D, A, B, C, and with `sparse` E and selector: the same for every mix of types."""
    element = uint8 if bits == 8 else uint4
    stored = 32 * WORDS // bits
    if sparse:
        return sparse_operands(2 * stored, element, element, result, _metadata(bits))
    return mma_operands(Shape(STORED_ROWS, stored), element, element, result)


@lru_cache(maxsize=16)
def _scale_operands(vec: int) -> tuple[Operand, ...]:
    """SFA, SFB and the numbers that say where in a quad's registers the scales are."""
    bytes_ = tuple(range(0, QUAD, vec))
    return (
        quad_operand("SFA", "MK"),
        Operand("byte_a", Kind.IMMEDIATE, choices=bytes_),
        Operand("thread_a", Kind.IMMEDIATE, choices=(0, 1)),
        quad_operand("SFB", "NK"),
        Operand("byte_b", Kind.IMMEDIATE, choices=bytes_),
        Operand("thread_b", Kind.IMMEDIATE, choices=tuple(range(QUAD))),
    )


@lru_cache(maxsize=2)
def _metadata(bits: int) -> Metadata:
    return Metadata.of(uint8 if bits == 8 else uint4, WORDS)


def _row_scales(words: Array, byte: int, thread: int, vec: int) -> Array:
    """(*batch, 8, 4) registers of the quads to the codes (*batch, 16, vec) of A's scales."""
    pair = np.ascontiguousarray(words[..., 2 * thread : 2 * thread + 2].swapaxes(-1, -2))
    return pair.view(np.uint8).reshape(*words.shape[:-2], STORED_ROWS, 4)[..., byte : byte + vec]


def _column_scales(words: Array, byte: int, thread: int, vec: int) -> Array:
    """(*batch, 8, 4) registers of the quads to the codes (*batch, 8, vec) of B's scales."""
    own = np.ascontiguousarray(words[..., thread])
    return own.view(np.uint8).reshape(*own.shape, 4)[..., byte : byte + vec]


# ---- meanings -----------------------------------------------------------------------------------------


def _numbers(words: Array, kind: str, bits: int) -> Array:
    """(…, words) to the float64 numbers (…, elements) in them."""
    octets = words.view(np.uint8)
    if bits == 8:
        return CONTAINERS[kind][octets]
    return NIBBLES[np.stack([octets & 15, octets >> 4], axis=-1).reshape(*octets.shape[:-1], -1)]


def _spread(scales: Array, depth: int) -> Array:
    """A scale for every element: (…, vec) to (…, depth)."""
    return np.repeat(scales, depth // scales.shape[-1], axis=-1)


@record
class _Scaled:
    """A meaning: of one scaling and pair of types, on registers of all lanes."""

    scaling: Scaling
    left: str
    right: str
    sparse: bool

    def dense(self) -> Callable[..., Array]:
        d, a, b, c = (Gather.of(operand) for operand in _operands(self.scaling.bits, False, float32))

        def meaning(
            A: Array,
            B: Array,
            C: Array,
            SFA: Array,
            SFB: Array,
            *,
            byte_a: int,
            thread_a: int,
            byte_b: int,
            thread_b: int,
            fast: bool = False,
        ) -> Array:
            rows = self._rows(a.matrix(A), SFA, byte_a, thread_a)
            columns = self._columns(b.matrix(B), SFB, byte_b, thread_b)
            return d.registers(scaled_sum(rows, columns, c.matrix(C), fast))

        return meaning

    def half(self) -> Callable[..., Array]:
        """Of the stored half of A."""
        d, a, b, c, e = (Gather.of(operand) for operand in _operands(self.scaling.bits, True, float32)[:5])
        metadata = _metadata(self.scaling.bits)

        def meaning(
            A: Array,
            B: Array,
            C: Array,
            E: Array,
            SFA: Array,
            SFB: Array,
            *,
            selector: int,
            byte_a: int,
            thread_a: int,
            byte_b: int,
            thread_b: int,
            fast: bool = False,
        ) -> Array:
            codes = metadata.codes(e.matrix(E), selector)
            metadata.check(codes)
            met = chosen(b.matrix(B), metadata.places(codes), metadata)
            rows = self._rows(a.matrix(A), SFA, byte_a, thread_a)
            columns = self._columns(met, SFB, byte_b, thread_b)
            sums = scaled_sum(rows[..., None, :], columns, c.matrix(C)[..., None, :], fast)
            return d.registers(sums[..., 0, :])

        return meaning

    def _rows(self, words: Array, scales: Array, byte: int, thread: int) -> Array:
        numbers = _numbers(words, self.left, self.scaling.bits)
        codes = _row_scales(_quads(scales), byte, thread, self.scaling.vec)
        return numbers * _spread(SCALES[self.scaling.scale][codes], numbers.shape[-1])

    def _columns(self, words: Array, scales: Array, byte: int, thread: int) -> Array:
        numbers = _numbers(words, self.right, self.scaling.bits)
        codes = _column_scales(_quads(scales), byte, thread, self.scaling.vec)
        factors = _spread(SCALES[self.scaling.scale][codes], numbers.shape[-1])
        return numbers * (factors[..., None, :, :] if self.sparse else factors)


def _quads(registers: Array) -> Array:
    """(*batch, 32, 1) to (*batch, 8, 4)."""
    return registers.reshape(*registers.shape[:-2], 8, QUAD)


def _plain(left: str, right: str, result: DType) -> Product:
    def product(A: Array, B: Array, C: Array, *, fast: bool = False) -> Array:
        sums = C.view(result.numpy)
        return container_sum(A.view(np.uint8), B.view(np.uint8), sums, left, right, result, fast).view(C.dtype)

    return product


# ---- rows ---------------------------------------------------------------------------------------------


def _row(
    text: str, operands: tuple[Operand, ...], numbers: str, meaning: Callable[..., Array], needs: Needs, sparse: bool
) -> Row:
    half = ", {E[0]}, {selector}" if sparse else ""
    return Row(
        text=text,
        operands=operands,
        code=Asm(f"{text} {{D}}, {{A}}, {{B}}, {{C}}{half}{numbers};"),
        meaning=meaning,
        needs=needs,
        participants=Participants.WARP,
        pure=True,
        tile=True,
        section=SPARSE_SECTION if sparse else mma_shapes.SECTION,
        unverified=True,
    )


def _beginning(bits: int, sparse: bool) -> str:
    k = 32 * WORDS // bits * (2 if sparse else 1)
    return f"mma.{ORDERED + '.' if sparse else ''}sync.aligned.m16n8k{k}.row.col"


def _plain_rows(sparse: bool) -> Iterator[Row]:
    for result, left, right in combinations((float32, float16), CONTAINERS, CONTAINERS):
        text = f"{_beginning(8, sparse)}.kind::f8f6f4.{result.ptx}.{left}.{right}.{result.ptx}"
        everywhere = {left, right} <= {"e4m3", "e5m2"} and not (sparse and result == float16)
        operands, product = _operands(8, sparse, result), _plain(left, right, result)
        meaning = over_chosen(operands, product, _metadata(8)) if sparse else over_matrices(operands, product)
        yield _row(text, operands, "", meaning, BLACKWELL if everywhere else SM_120, sparse)


_NUMBERS = ", {SFA[0]}, {{{byte_a}, {thread_a}}}, {SFB[0]}, {{{byte_b}, {thread_b}}}"


def _scaled_rows(sparse: bool) -> Iterator[Row]:
    for scaling in SCALINGS:
        for left, right in combinations(scaling.types, scaling.types):
            kind = f"kind::{scaling.kind}.block_scale.scale_vec::{scaling.vec}X"
            text = f"{_beginning(scaling.bits, sparse)}.{kind}.f32.{left}.{right}.f32.{scaling.scale}"
            operands = (*_operands(scaling.bits, sparse, float32), *_scale_operands(scaling.vec))
            scaled = _Scaled(scaling, left, right, sparse)
            needs = SM_120_ONLY if sparse and scaling.bits == 4 else SM_120
            yield _row(text, operands, _NUMBERS, scaled.half() if sparse else scaled.dense(), needs, sparse)


ROWS: tuple[Row, ...] = tuple(row for sparse in (False, True) for row in (*_plain_rows(sparse), *_scaled_rows(sparse)))
