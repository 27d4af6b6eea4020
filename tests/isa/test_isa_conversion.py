"""`warpjit.isa.convert`: plans between fragments, executed here one lane and register at a time."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from warpjit.errors import LayoutError
from warpjit.isa import convert, lookup, matrix_layout
from warpjit.isa.conversion import Conversion, Exchange, MoveMatrix, Rename, Repack, ThroughMemory
from warpjit.isa.warp import SHUFFLE
from warpjit.layout import Iter, R, S, TileLayout, laneid, m, warpid

F16 = "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32"
F16_K8 = "mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32"
TF32 = "mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32"
S8 = "mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32"


def held(layout: TileLayout, bits: int, count: int) -> np.ndarray:
    """(32, words, parts): which element is where; parts of at most 32 bits, wide elements as several of them."""
    packed, wide = max(32 // bits, 1), max(bits // 32, 1)
    registers = np.full((32, count * packed), -1)
    for element in range(layout.size()):
        place = layout.apply(element)
        for part in range(wide):
            registers[place.get("laneid", 0), place.get("m", 0) * wide + part] = element * wide + part
    return registers.reshape(32, count, packed)


def executed(conversion: Conversion, source: np.ndarray) -> np.ndarray:
    """What the plan makes of registers (32, words, parts)."""
    step = conversion.step
    if step is None:
        return source
    if isinstance(step, Rename):
        return np.stack([source[:, register] for register in step.registers], axis=1)
    if isinstance(step, Repack):
        words = [[source[:, register, part] for register, part in word] for word in step.words]
        return np.moveaxis(np.array(words), -1, 0)
    if isinstance(step, MoveMatrix):
        blocks = [source[:, register].reshape(8, 8).T.reshape(32, 2) for register in step.registers]
        return np.stack(blocks, axis=1)
    assert isinstance(step, Exchange)
    read = [source[list(shuffle.lanes), shuffle.register] for shuffle in step.shuffles]
    made = [[[read[k][lane, part] for k, part in word[lane]] for word in step.words] for lane in range(32)]
    return np.array(made)


def check(source: TileLayout, target: TileLayout, dtype: str, bits: int) -> Conversion:
    conversion = convert(source, target, dtype)
    per_word = max(32 // bits, 1)
    words = [-(-layout.span("m") * max(bits // 32, 1) // per_word) for layout in (source, target)]
    result = executed(conversion, held(source, bits, words[0]))
    assert np.array_equal(result[:, : words[1]], held(target, bits, words[1]))
    return conversion


def test_the_sums_are_the_next_products_operand() -> None:
    """Attention's P @ V: D of two instructions, rounded to halves, is A of the next."""
    found = check(matrix_layout(F16, "D", N=2), matrix_layout(F16, "A"), "float16", 16)
    assert found.in_place and found.free
    assert found.sentence == "every element is in place as it stands"
    assert check(matrix_layout(F16, "D", M=2, N=1), matrix_layout(F16_K8, "A", M=2), "float16", 16).in_place


PAIRS = {
    "k16 from two of k8": (matrix_layout(F16_K8, "A", K=2), matrix_layout(F16, "A"), "float16", 16, None),
    "A is a B": (matrix_layout(F16, "A"), matrix_layout(F16, "B", N=2), "float16", 16, Rename),
    "B is an A": (matrix_layout(F16, "B", N=2), matrix_layout(F16, "A"), "float16", 16, Rename),
    "sums of floats to tf32": (matrix_layout(TF32, "D"), matrix_layout(TF32, "A"), "float32", 32, Exchange),
    "tf32 to sums": (matrix_layout(TF32, "A"), matrix_layout(TF32, "D"), "float32", 32, Exchange),
    "sums to bytes": (matrix_layout(S8, "D", N=4), matrix_layout(S8, "A"), "int8", 8, Exchange),
    "halves to bytes": (matrix_layout(F16, "A", K=2), matrix_layout(S8, "A"), "int8", 8, Exchange),
    "blocks transposed": (
        TileLayout(S[(2, 4, 2, 2, 8) : (2, 1 @ laneid, 1, 4, 4 @ laneid)]),
        matrix_layout(F16, "A"),
        "float16",
        16,
        MoveMatrix,
    ),
    "parts within a lane": (
        TileLayout(S[(2, 8, 2, 4, 2) : (2, 4 @ laneid, 1, 1 @ laneid, 4)]),
        matrix_layout(F16, "A"),
        "float16",
        16,
        Repack,
    ),
    "doubles": (
        TileLayout(S[(32, 2) : (1 @ laneid, 1)]),
        TileLayout(S[(2, 32) : (1, 1 @ laneid)]),
        "float64",
        64,
        Exchange,
    ),
    "nibbles": (
        TileLayout(S[(32, 8) : (1 @ laneid, 1)]),
        TileLayout(S[(32, 2, 2, 2) : (1 @ laneid, 1, 4, 2)]),
        "int4",
        4,
        Repack,
    ),
    "a window": (
        TileLayout.from_iters(matrix_layout(F16, "D").shard, offset={m: 8}),
        matrix_layout(F16, "D"),
        "float32",
        32,
        Rename,
    ),
}


@pytest.mark.parametrize("name", PAIRS)
def test_pairs(name: str) -> None:
    source, target, dtype, bits, kind = PAIRS[name]
    found = check(source, target, dtype, bits)
    assert type(found.step) is (kind or type(None))
    assert found.in_place == (kind is None)


def test_sentences_and_counts() -> None:
    source, target, dtype, *_ = PAIRS["sums of floats to tf32"]
    found = convert(source, target, dtype)
    assert isinstance(found.step, Exchange) and len(found.step.shuffles) == 8
    assert found.sentence == (
        "8 shuffles (shfl.sync.idx.b32) make 4 registers: in the first the lanes read register 0 of lanes 0, 0, 1, 1, "
        "4, 4, 5, 5, …"
    )
    assert convert(*PAIRS["A is a B"][:3]).sentence == "the registers are in place under other names: 0, 2, 1, 3"
    assert convert(*PAIRS["blocks transposed"][:3]).sentence == "the 8 x 8 blocks are transposed: 4 movmatrix"
    assert convert(*PAIRS["parts within a lane"][:3]).sentence == (
        "every element is in its lane: 4 of 4 registers are put together from parts of others"
    )
    warps = convert(
        TileLayout(S[(4, 2, 32) : (1 @ warpid, 1, 1 @ laneid)]), TileLayout(S[(2, 4, 32) : (1, 1 @ warpid, 1 @ laneid)])
    )
    assert warps.step == ThroughMemory(1024)
    assert warps.sentence.startswith("elements leave their warp: store them to 1024 bytes of shared memory")
    four = TileLayout(S[(4, 2, 32) : (1 @ warpid, 1, 1 @ laneid)])
    same = convert(four, four.group((2, 2, 2, 2, 16))[0])
    assert same.in_place


def test_what_is_where_it_was_is_in_place_even_with_gaps() -> None:
    for layout in (TileLayout(S[32 : 1 @ laneid]), TileLayout(S[(16, 2) : (1 @ laneid, 3)])):
        assert convert(layout, layout, "uint8").in_place


def test_refusals() -> None:
    own = matrix_layout(F16, "D")
    for source, target, said in (
        (own, matrix_layout(F16, "D", N=2), "has 128 elements, but"),
        (TileLayout(S[(2, 64) : (1, 1 @ laneid)]), own, "has lanes up to 63, but a warp has 32"),
        (own, TileLayout(S[(2, 2, 32) : (4, 1, 1 @ laneid)]), "lane 0, place 2 holds none"),
        (TileLayout.from_iters(own.shard, R[2:4].replica), own, "once each, but the layout is"),
        (TileLayout(S[(128,) : ("tx",)]), own, "expected lanes, registers"),
    ):
        with pytest.raises(LayoutError, match="convert: ") as caught:
            convert(source, target)
        assert said in str(caught.value)


@st.composite
def spread(draw: st.DrawFn, registers: int) -> TileLayout:
    """32 lanes and so many places, in bits of any order."""
    bits = 5 + registers.bit_length() - 1
    order = draw(st.permutations(range(bits)))
    return TileLayout.from_iters(
        Iter(2, 1 << each, laneid) if each < 5 else Iter(2, 1 << each - 5, m) for each in order
    )


@settings(max_examples=80, deadline=None)
@given(st.data(), st.sampled_from([("float16", 16), ("int8", 8), ("uint32", 32), ("float64", 64)]))
def test_any_two_fragments(data: st.DataObject, of: tuple[str, int]) -> None:
    count = data.draw(st.sampled_from([4, 8]))
    check(data.draw(spread(count)), data.draw(spread(count)), *of)


# ---- shuffles ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("mode", SHUFFLE)
def test_shuffles_by_the_manual(mode: str) -> None:
    """The manual's pseudocode, lane by lane."""
    rng = np.random.default_rng(5)
    a = rng.integers(0, 2**32, (4, 32)).astype(np.uint32)
    b, full = rng.integers(-40, 70, (4, 32)).astype(np.int32), np.full((4, 32), 0xFFFFFFFF, np.uint32)
    for clamp, mask in ((31, 0), (0, 0), (31, 24), (0, 24), (7, 24), (15, 16), (31, 30), (5, 0)):
        meaning = lookup(f"shfl.sync.{mode}.b32").meaning
        assert meaning is not None
        got = meaning(a, b, np.full((4, 32), mask << 8 | clamp, np.uint32), full)
        for batch, lane in np.ndindex(4, 32):
            bval = int(b[batch, lane]) & 31
            most, least = (lane & mask) | (clamp & ~mask & 31), lane & mask
            j = {"up": lane - bval, "down": lane + bval, "bfly": lane ^ bval, "idx": least | (bval & ~mask & 31)}[mode]
            inside = j >= most if mode == "up" else j <= most
            assert got[batch, lane] == a[batch, j if inside else lane]
