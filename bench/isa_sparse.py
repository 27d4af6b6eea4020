"""Operands for sparse warp-matrix instructions, and the kernel that runs them: what `isa` compares for `mma.sp`.

Elements are those of `isa_inputs`. Metadata is random, ordered, and of its own for every row of A; lanes that the
selector does not name hold noise. Where sums are to cancel, the second half of k has the places of the first.
"""

from __future__ import annotations

import dataclasses
import zlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np
import torch

from bench.isa_inputs import Matrices, element_of, element_shape, kinds, matrices, registers
from bench.isa_kernels import call, loaded
from warpjit import T, warpjit
from warpjit.isa import mma_sparse
from warpjit.isa.fragments import Gather
from warpjit.isa.mma_shapes import left_operand
from warpjit.isa.row import Row
from warpjit.isa.sparse_metadata import KEPT, STORED_ROWS, Metadata
from warpjit.isa.target import Target

Array = np.ndarray[Any, Any]

PLACES = np.array([(i, j) for i in range(4) for j in range(i + 1, 4)], np.uint8)
"""The two places that are stored, of four; for tf32, whose elements are two units, the first and the last pair."""


@warpjit
def products(A, B, C, E, Out, *, texts, selectors):
    """As `isa.products`, with metadata E (rows, products, 32, 1)."""
    T.device_entry(launch=T.cuda.LaunchConfig(grid=Out.shape[1], block=32))
    product, lane = T.cuda.block_idx(), T.cuda.lane_id()
    for index, text in enumerate(texts):
        mma = T.ptx[text]
        a = loaded(T.cuda.fragments(mma, "A"), A, index, product, lane)
        b = loaded(T.cuda.fragments(mma, "B"), B, index, product, lane)
        c = loaded(T.cuda.fragments(mma, "C"), C, index, product, lane)
        e = loaded(T.cuda.fragments(mma, "E"), E, index, product, lane)
        d = T.cuda.fragments(mma, "D")
        T.cuda.tile.apply(mma, d, a, b, c, e, selectors[index])
        words = d.storage.view(Out.dtype)
        for r in T.unroll(Out.shape[3]):
            Out[index, product, lane, r] = words[r]


@dataclass(frozen=True)
class Case:
    """One row's inputs: matrices as they are stored, registers of A, B, C and E, and the selector."""

    row: Row
    made: Matrices
    words: tuple[Array, Array, Array, Array]
    selector: int


def sparse_rows(target: Target) -> list[Row]:
    """The rows of `mma.sp` that the target has."""
    return [row for row in mma_sparse.ROWS if row.needs.holds(target)]


def cases(group: Sequence[Row], results_a_kind: int, seed: int) -> list[Case]:
    """The inputs of each row of a group, every kind."""
    return [_case(row, results_a_kind, seed) for row in group]


def _case(row: Row, results_a_kind: int, seed: int) -> Case:
    count = -(-results_a_kind // prod(element_shape(row.operand("D"))))
    operand = row.operand("A")
    metadata = Metadata.of(element_of(operand), operand.shape[1])
    rng = np.random.default_rng(zlib.crc32(f"{row.text} metadata {seed}".encode()))
    selector = int(rng.choice(metadata.selectors))
    made, codes = [], []
    for kind in kinds(row):
        whole = matrices(_as_dense(row), kind, count, seed)
        places = _random_codes(rng, metadata, count, repeated=kind == "cancelling")
        made.append(dataclasses.replace(whole, a=_stored(whole.a, places, metadata)))
        codes.append(places)
    joined = Matrices(*(np.concatenate([getattr(each, name) for each in made]) for name in "abc"))
    quads = metadata.packed(np.concatenate(codes))
    own = np.arange(4) // metadata.words == selector
    noise = rng.integers(0, 1 << 32, quads.shape, dtype=np.uint32)
    words = Gather.of(row.operand("E")).registers(np.where(own, quads, noise))
    return Case(row, joined, (*registers(row, joined), words), selector)


def _as_dense(row: Row) -> Row:
    """The row with all of A stored, whose inputs those of the sparse one are taken from."""
    whole = left_operand(STORED_ROWS, element_shape(row.operand("B"))[1], element_of(row.operand("A")))
    return dataclasses.replace(row, operands=tuple(whole if each.name == "A" else each for each in row.operands))


def _random_codes(rng: np.random.Generator, metadata: Metadata, count: int, repeated: bool) -> Array:
    """(count, 16, stored) units' places, ordered; `repeated`: the second half is as the first."""
    legal = PLACES[[0, 5]] if metadata.whole == 2 else PLACES
    groups_of_row = metadata.stored // KEPT // (2 if repeated else 1)
    codes = legal[rng.integers(0, len(legal), (count, STORED_ROWS, groups_of_row))].reshape(count, STORED_ROWS, -1)
    return np.tile(codes, 2) if repeated else codes


def _stored(codes: Array, places: Array, metadata: Metadata) -> Array:
    """The elements of whole rows (count, 16, K) that stand in these places."""
    units = metadata.places(places)
    elements = units[..., :: metadata.whole] // metadata.whole
    per = codes.shape[-1] // (2 * metadata.stored // metadata.whole)  # two 4-bit integers are one unit
    index = (per * elements[..., None] + np.arange(per)).reshape(*elements.shape[:-1], -1)
    return np.take_along_axis(codes, index, axis=-1)


def run_group(given: Sequence[Case], device: str, run: Callable[..., object] = call) -> list[Array]:
    """D's registers of each row, computed on "cuda", or on "cpu" by the simulator; `run` calls the kernel."""
    operands = [torch.from_numpy(np.stack([case.words[index] for case in given])).to(device) for index in range(4)]
    out = torch.empty_like(operands[2]).fill_(123)
    texts, selectors = tuple(case.row.text for case in given), tuple(case.selector for case in given)
    run(products, *operands, out, texts=texts, selectors=selectors)
    return list(out.cpu().numpy())
