"""Sparse matrices as tensors: pruned, packed and unpacked, and the metadata against the manual's figures."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from sparse_reference import Form, metadata_of

from warpjit.errors import ArgumentError
from warpjit.isa import mma_sparse, sparse
from warpjit.isa.row import Row
from warpjit.isa.table import lookup

F16 = "mma.sp::ordered_metadata.sync.aligned.m16n8k32.row.col.f32.f16.f16.f32"
TF32 = "mma.sp::ordered_metadata.sync.aligned.m16n8k16.row.col.f32.tf32.tf32.f32"
S4 = "mma.sp::ordered_metadata.sync.aligned.m16n8k64.row.col.s32.s4.s4.s32"
TYPES = {"f16": torch.float16, "bf16": torch.bfloat16, "tf32": torch.float32, "s8": torch.int8, "u8": torch.uint8}
TYPES |= {"s4": torch.uint8, "u4": torch.uint8, "e4m3": torch.float8_e4m3fn, "e5m2": torch.float8_e5m2}
ORDERED = [row for row in mma_sparse.ROWS if Form.of(row).ordered and not Form.of(row).saturate]


def dense(form: Form, rows: int, tiles: int, seed: int) -> torch.Tensor:
    """Random bits without NaN of 8-bit floats' kind; 4-bit integers as bytes."""
    kind = TYPES[form.left]
    columns = tiles * form.k * form.bits // (8 * torch.empty(0, dtype=kind).element_size())
    generator = torch.Generator().manual_seed(seed)
    if kind.is_floating_point:
        return torch.randn(rows, columns, generator=generator).to(kind)
    return torch.randint(-128, 128, (rows, columns), generator=generator).to(kind)


def bits(matrix: torch.Tensor) -> torch.Tensor:
    return matrix.contiguous().view(torch.uint8)


@pytest.mark.parametrize("row", ORDERED, ids=lambda row: row.text)
def test_what_is_packed_comes_back(row: Row) -> None:
    form = Form.of(row)
    pruned = sparse.prune(dense(form, 32, 3, 1), row)
    packed = sparse.pack(pruned, row)
    assert packed.values.shape == (32, pruned.shape[1] // 2) and packed.values.dtype == pruned.dtype
    assert packed.metadata.shape == (2, 3, 32) and packed.metadata.dtype == torch.uint32
    assert (bits(sparse.unpack(packed, row)) == bits(pruned)).all()
    assert (bits(sparse.prune(pruned, row)) == bits(pruned)).all()


@pytest.mark.parametrize("row", ORDERED, ids=lambda row: row.text)
def test_metadata_is_as_in_the_figures(row: Row) -> None:
    """Matrices of ones, whose zeros say where the others stand."""
    form = Form.of(row)
    stored, whole = form.group
    rng = np.random.default_rng(5)
    per = 2 if form.bits == 4 else 1
    present = np.zeros((16, form.k // whole, whole // per), bool)
    for chunk in np.ndindex(16, form.k // whole):
        present[chunk][rng.choice(whole // per, stored // per, replace=False)] = True
    flags = torch.from_numpy(present.reshape(16, -1))
    matrix = (flags * (0x11 if form.bits == 4 else 1)).to(torch.float32).to(TYPES[form.left])
    columns = np.repeat(present.reshape(16, -1), per, axis=-1)
    places = [np.flatnonzero(line).tolist() for line in columns]
    packed = sparse.pack(matrix, row)
    assert (packed.values.float() == (17 if form.bits == 4 else 1)).all()
    words = packed.metadata.view(torch.int32).numpy().view(np.uint32)[0, 0]
    for selector in row.operand("selector").choices:
        assert (metadata_of(form, places, selector, words) == words).all()


def test_prune_keeps_the_largest() -> None:
    line = torch.tensor([[1.0, -3.0, 2.0, 0.5, 5.0, 5.0, -5.0, 5.0, 0.0, float("nan"), 7.0, 8.0, -0.0, 1.0, 0.0, 0.0]])
    matrix = line.half().repeat(16, 2)
    kept = sparse.prune(matrix, F16)
    want = torch.tensor([[0.0, -3.0, 2.0, 0.0, 5.0, 5.0, 0.0, 0.0, 0.0, float("nan"), 0.0, 8.0, 0.0, 1.0, 0.0, 0.0]])
    assert torch.equal(kept.nan_to_num(99), want.half().repeat(16, 2).nan_to_num(99))
    assert matrix[0, 0] == 1  # the argument is as it was
    pairs = torch.tensor([[0x1F, 0x70, 0x08, 0x00]], dtype=torch.uint8).repeat(16, 8)  # (-1, 1), (0, 7), (-8, 0), 0
    assert sparse.prune(pairs, S4)[0, :4].tolist() == [0, 0x70, 0x08, 0]
    assert sparse.prune(torch.tensor([[3.0, -4.0]]).repeat(16, 8), TF32)[0, :2].tolist() == [0, -4]


def test_groups_with_fewer_elements_are_filled_up() -> None:
    matrix = torch.zeros(16, 32, dtype=torch.float16)
    matrix[3, 7] = 2
    packed = sparse.pack(matrix, F16)
    assert packed.values.count_nonzero() == 1
    assert torch.equal(sparse.unpack(packed, F16), matrix)


def refusal(call: object, *args: object) -> str:
    with pytest.raises(ArgumentError) as caught:
        call(*args)  # type: ignore[operator]
    return str(caught.value)


def test_what_is_refused() -> None:
    ones = torch.ones(16, 32, dtype=torch.float16)
    assert refusal(sparse.pack, ones, F16) == (
        "dense: expected at most 2 of 4 elements of a group that are not zero, but row 0, group 0 has 4: "
        "prune(dense, instruction) keeps the largest"
    )
    some = sparse.prune(ones, F16)
    some[5, 18] = 1
    assert "row 5, group 4 has 3" in refusal(sparse.pack, some, F16)
    pairs = torch.ones(16, 32, dtype=torch.uint8)
    assert "at most 2 of 4 pairs of elements" in refusal(sparse.pack, pairs, S4)
    assert "expected a matrix of torch.float16 (float16) but got torch.float32" in refusal(
        sparse.pack, ones.float(), F16
    )
    assert "(int4 packed as bytes)" in refusal(sparse.prune, ones, S4)
    assert "a multiple of 16 rows and of 32 columns but got shape (8, 32)" in refusal(sparse.prune, ones[:8], F16)
    dense_text = "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32"
    assert refusal(sparse.pack, ones, dense_text) == f"instruction: expected a sparse one, mma.sp, but got {dense_text}"
    packed = sparse.pack(torch.zeros_like(ones), F16)
    assert refusal(sparse.unpack, sparse.Packed(packed.values, packed.metadata[:, :0]), F16) == (
        "metadata: expected uint32 of shape (1, 1, 32) but got torch.uint32 of shape (1, 0, 32)"
    )
    floats = sparse.Packed(packed.values, packed.metadata.view(torch.float32))
    assert "expected uint32 of shape (1, 1, 32) but got torch.float32" in refusal(sparse.unpack, floats, F16)
    wrong = sparse.Packed(packed.values, torch.zeros(1, 1, 32, dtype=torch.uint32))
    assert "row 0, group 0: expected two different places" in refusal(sparse.unpack, wrong, F16)


def test_an_instruction_is_a_row_or_its_text() -> None:
    matrix = sparse.prune(torch.randn(16, 32).half(), lookup(F16))
    assert torch.equal(sparse.pack(matrix, F16).values, sparse.pack(matrix, lookup(F16)).values)
