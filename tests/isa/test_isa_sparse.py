"""mma.sp: lane maps and metadata by the manual's figures, and what the instructions compute."""

from __future__ import annotations

import functools
import zlib

import numpy as np
import pytest
from mma_model import make
from mma_references import small_floats
from sparse_reference import Form, float_products, integer_products, metadata_of, random_places

from warpjit.errors import InstructionError
from warpjit.isa import mma_sparse
from warpjit.isa.row import Array, Kind, Operand, Row
from warpjit.isa.sparse_metadata import Metadata
from warpjit.isa.table import lookup
from warpjit.layout import TileLayout

K32 = "mma.sp::ordered_metadata.sync.aligned.m16n8k32.row.col.f32.f16.f16.f32"
pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning")
every_row = pytest.mark.parametrize("row", mma_sparse.ROWS, ids=lambda row: row.text)


def holder(operand: Operand, *coordinates: int) -> tuple[int, int]:
    assert operand.layout is not None
    place = operand.layout.apply(*coordinates, shape=operand.shape)
    return place.get("laneid", 0), place.get("m", 0)


@functools.cache
def holders(layout: TileLayout, shape: tuple[int, ...]) -> tuple[list[int], list[int]]:
    """The lane and the register of each element, in order."""
    places = [layout.apply(*where, shape=shape) for where in np.ndindex(*shape)]
    return [place.get("laneid", 0) for place in places], [place.get("m", 0) for place in places]


def in_registers(operand: Operand, words: Array) -> Array:
    """A matrix of words spread over lanes: (32, registers)."""
    assert operand.dtype is not None and operand.layout is not None
    registers = np.zeros((32, operand.registers), operand.dtype.numpy)
    registers[holders(operand.layout, operand.shape)] = words.view(operand.dtype.numpy).reshape(-1)
    return registers


@every_row
def test_lane_maps_are_the_manuals(row: Row) -> None:
    """a_i: row groupID for the first and third quarter of the registers, else groupID + 8; b_i as in dense products."""
    form = Form.of(row)
    per = 32 // form.bits  # elements of a register
    for lane in range(32):
        group, thread = lane >> 2, lane % 4
        for register in range(row.operand("A").registers):
            line = group if register % 2 == 0 else group + 8
            word = thread + 4 * (register // 2)
            assert holder(row.operand("A"), line, word) == (lane, register)
        for register in range(row.operand("B").registers):
            depth = per * thread + 4 * per * register  # the first k of the register, by the manual's formula
            assert holder(row.operand("B"), group, depth // per) == (lane, register)
        assert holder(row.operand("E"), group, thread) == (lane, 0)
        for i in range(4):
            line, column = (group if i < 2 else group + 8), thread * 2 + (i & 1)
            for name in "DC":
                packed = 2 if form.result == "f16" else 1
                assert holder(row.operand(name), line, column // packed) == (lane, i // packed)
    assert row.operand("A").shape == (16, form.k * form.bits // 64)
    assert row.operand("B").shape == (8, form.k * form.bits // 32)
    selector = row.operand("selector")
    assert selector.kind is Kind.IMMEDIATE and selector.choices == tuple(range(4 // form.threads))


def operands_of(row: Row, kind: str, seed: int) -> tuple[Form, list[list[int]], tuple[Array, Array, Array]]:
    form = Form.of(row)
    rng = np.random.default_rng(zlib.crc32(f"{row.text} {kind} {seed}".encode()))
    rows = random_places(form, rng)
    a, b, c = make(kind, form.left, form.result, (1, 16, 8, form.k))
    return form, rows, (a[0, :, : form.k // 2], b[0], c[0])


@pytest.mark.parametrize("kind", ["normal", "spread", "every pattern", "specials", "subnormal", "cancelling"])
@pytest.mark.parametrize(
    "row", [row for row in mma_sparse.ROWS if Form.of(row).left in ("f16", "bf16", "tf32")], ids=lambda row: row.text
)
def test_products_of_floats(row: Row, kind: str) -> None:
    for selector in row.operand("selector").choices:
        form, rows, (a, b, c) = operands_of(row, kind, selector)
        noise = np.random.default_rng(selector).integers(0, 2**32, 32, dtype=np.uint32)
        words = metadata_of(form, rows, selector, noise)
        registers = [in_registers(row.operand(name), each) for name, each in zip("ABC", (a, b, c), strict=True)]
        assert row.meaning is not None
        got = row.meaning(*registers, words[:, None], selector=selector)
        want = in_registers(row.operand("D"), float_products(form, a, b, c, rows))
        assert (got.view(np.uint32) == want.view(np.uint32)).all()
        fast = row.meaning(*registers, words[:, None], selector=selector, fast=True)
        assert fast.shape == got.shape and fast.dtype == got.dtype


@pytest.mark.parametrize(
    "row", [row for row in mma_sparse.ROWS if Form.of(row).bits == 8 and "f32" in row.text], ids=str
)
def test_products_of_small_floats(row: Row) -> None:
    """All codes occur; of the stored elements those with k % 4 in (0, 1) are added first."""
    form = Form.of(row)
    rng = np.random.default_rng(zlib.crc32(row.text.encode()))
    rows = random_places(form, rng)
    a = rng.permutation(np.arange(512) % 256).reshape(16, 32).astype(np.uint8)
    b = rng.permutation(np.arange(512) % 256).reshape(8, 64).astype(np.uint8)
    a[1::2], b[1::2] = (rng.integers(0x20, 0x50, each[1::2].shape) for each in (a, b))  # rows without NaN
    c = rng.standard_normal((16, 8)).astype(np.float32)
    result = small_floats(form.left, form.right, "f32")
    want = np.zeros((16, 8), np.uint32)
    for i, j in np.ndindex(16, 8):
        want[i, j] = result(a[i].tolist(), b[j, rows[i]].tolist(), int(c.view(np.uint32)[i, j]))
    registers = [
        in_registers(row.operand(name), each)
        for name, each in zip("ABC", (a.view(np.uint32), b.view(np.uint32), c), strict=True)
    ]
    words = metadata_of(form, rows, 0, np.zeros(32, np.uint32))
    assert row.meaning is not None
    got = row.meaning(*registers, words[:, None], selector=0)
    assert (got.view(np.uint32) == in_registers(row.operand("D"), want.view(np.float32)).view(np.uint32)).all()


def as_words(codes: Array, width: int) -> Array:
    """Codes (…, elements) packed low bits first."""
    if width == 4:
        codes = codes[..., 0::2] | codes[..., 1::2] << 4
    return np.ascontiguousarray(codes.astype(np.uint8)).view(np.uint32)


@pytest.mark.parametrize("kind", ["random", "extreme", "cancelling"])
@pytest.mark.parametrize(
    "row", [row for row in mma_sparse.ROWS if Form.of(row).result == "s32"], ids=lambda row: row.text
)
def test_products_of_integers(row: Row, kind: str) -> None:
    form = Form.of(row)
    rng = np.random.default_rng(zlib.crc32(f"{row.text} {kind}".encode()))
    top = 1 << form.bits
    a, b = rng.integers(0, top, (16, form.k // 2)), rng.integers(0, top, (8, form.k))
    c = rng.integers(-(2**31), 2**31, (16, 8))
    rows = random_places(form, rng)
    if kind == "extreme":
        a, b = (rng.choice([0, top // 2 - 1, top // 2, top - 1], each.shape) for each in (a, b))
        c = rng.choice([-(2**31), 2**31 - 1, -(2**31) + 5], c.shape)
    if kind == "cancelling":
        c = -integer_products(form, a, b, np.zeros_like(c), rows).astype(np.int64)
    registers = [
        in_registers(row.operand("A"), as_words(a, form.bits)),
        in_registers(row.operand("B"), as_words(b, form.bits)),
        in_registers(row.operand("C"), c.astype(np.int32)),
    ]
    want = in_registers(row.operand("D"), integer_products(form, a, b, c, rows))
    assert row.meaning is not None
    for selector in row.operand("selector").choices:
        words = metadata_of(form, rows, selector, rng.integers(0, 2**32, 32, dtype=np.uint32))
        assert (row.meaning(*registers, words[:, None], selector=selector) == want).all()


def test_elements_that_are_not_met_do_not_exist() -> None:
    row = lookup(K32)
    form = Form.of(row)
    rows = [[place for chunk in range(8) for place in (4 * chunk, 4 * chunk + 2)] for _ in range(16)]
    words = metadata_of(form, rows, 1, np.zeros(32, np.uint32))
    a, c = np.ones((16, 16), np.float16), np.zeros((16, 8), np.float32)
    b = np.ones((8, 32), np.float16)
    b[:, 1::2] = np.nan
    registers = [in_registers(row.operand(name), each) for name, each in zip("ABC", (a, b, c), strict=True)]
    assert row.meaning is not None
    assert (row.meaning(*registers, words[:, None], selector=1) == 16).all()


def test_batches_have_metadata_of_their_own() -> None:
    row = lookup(K32)
    parts = [operands_of(row, "normal", seed) for seed in range(3)]
    stacked = []
    for _, rows, matrices in parts:
        words = metadata_of(Form.of(row), rows, 0, np.zeros(32, np.uint32))
        registers = [in_registers(row.operand(name), each) for name, each in zip("ABC", matrices, strict=True)]
        stacked.append([*registers, words[:, None]])
    assert row.meaning is not None
    got = row.meaning(*(np.stack(each) for each in zip(*stacked, strict=True)), selector=0)
    for index, arrays in enumerate(stacked):
        assert (got[index] == row.meaning(*arrays, selector=0)).all()


@every_row
def test_codes_and_words_are_inverse(row: Row) -> None:
    form = Form.of(row)
    metadata = Metadata.of(row.operand("A").element or row.operand("A").dtype, row.operand("A").shape[1])
    codes = np.random.default_rng(3).integers(0, 4, (2, 16, metadata.stored)).astype(np.uint8)
    words = metadata.packed(codes)
    assert words.shape == (2, 8, 4) and words.dtype == np.uint32
    assert metadata.selectors == tuple(range(4 // form.threads))
    for selector in metadata.selectors:
        assert (metadata.codes(words, selector) == codes).all()


@pytest.mark.parametrize(
    ("text", "code", "said"),
    [
        (K32, 0b0101, "row 0, group 0: expected two different places, the lower one first, but got 0b0101"),
        (K32, 0b0001, "row 0, group 0: expected two different places, the lower one first, but got 0b0001"),
        (K32.replace("::ordered_metadata", ""), 0b1111, "expected two different places, but got 0b1111"),
        (K32.replace("k32", "k16").replace("f16", "tf32"), 0b1001, "expected 0b0100 or 0b1110 but got 0b1001"),
    ],
)
def test_undefined_metadata_is_refused(text: str, code: int, said: str) -> None:
    row = lookup(text)
    zeros = [np.zeros((32, row.operand(name).registers), row.operand(name).dtype.numpy) for name in "ABC"]
    words = np.full((32, 1), int(f"{code:x}" * 8, 16), np.uint32)
    assert row.meaning is not None
    with pytest.raises(InstructionError, match="whose effect is undefined") as caught:
        row.meaning(*zeros, words, selector=0)
    assert said in str(caught.value)


def test_the_plain_form_takes_places_in_any_order() -> None:
    row = lookup(K32.replace("::ordered_metadata", ""))
    ordered = lookup(K32)
    _, rows, matrices = operands_of(row, "normal", 7)
    form = Form.of(row)
    registers = [in_registers(row.operand(name), each) for name, each in zip("ABC", matrices, strict=True)]
    words = metadata_of(form, rows, 0, np.zeros(32, np.uint32))
    a = matrices[0].reshape(16, 8, 2)[..., ::-1].reshape(16, 16)
    turned = [[places[i ^ 1] for i in range(16)] for places in rows]
    swapped = metadata_of(form, turned, 0, np.zeros(32, np.uint32))
    assert row.meaning is not None and ordered.meaning is not None
    got = row.meaning(
        in_registers(row.operand("A"), np.ascontiguousarray(a)), *registers[1:], swapped[:, None], selector=0
    )
    assert (got == ordered.meaning(*registers, words[:, None], selector=0)).all()
    assert "ptxas advises" in row.notes and not ordered.notes
