"""`warpjit.isa.fits`: mutated layouts are refused with a counterexample that loops confirm, rewritings are accepted."""

from __future__ import annotations

from dataclasses import replace

import pytest
from fragment_layouts import Case, own_cases, refused, rewritten

from warpjit.errors import InstructionError
from warpjit.isa import fits
from warpjit.isa.fitting import Fit
from warpjit.isa.operands import operand_layout, operand_shape
from warpjit.isa.refusal import Counterexample, Fix, MemoryPlace, Place
from warpjit.isa.table import lookup
from warpjit.layout import ComposeLayout, R, S, TileLayout, laneid, mma_shared_layout, tx, warpid

MMA = lookup("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32")
LOAD = "ldmatrix.sync.aligned.m8n8.x4.shared.b16"
OWN = own_cases()
each_own = pytest.mark.parametrize("own", OWN, ids=str)


def fit_of(case: Case) -> Fit:
    return fits(case.row, case.operand.name, case.layout, shape=case.shape, dtype=case.dtype)


def test_there_are_enough_mutations_and_rewritings() -> None:
    assert {"mma", "ldmatrix", "stmatrix"} <= {case.row.text.split(".")[0] for case in OWN}
    assert sum(len(refused(own)) for own in OWN) >= 60
    assert sum(1 for own in OWN for _ in rewritten(own)) >= 30


@each_own
def test_what_does_not_fit_is_shown_on_one_element(own: Case) -> None:
    for case in refused(own):
        fit = fit_of(case)
        assert not fit and fit.fix is not None, case
        check_counterexample(case, fit.counterexample)
        assert fit.fix.sentence in fit.sentence
        check_fix(case, fit.fix)


def check_counterexample(case: Case, example: Counterexample | None) -> None:
    """It says where the element is and should be, and that is a contradiction: by looking up one element at a time."""
    assert example is not None and isinstance(example.found, Place) and isinstance(example.wanted, Place), case
    found, wanted = case.where(example.element), case.wanted(example.element)
    assert (example.found.lane, example.found.register, example.found.part) == found, case
    assert (example.wanted.lane, example.wanted.register, example.wanted.part) == wanted, case
    if example.witness is None:
        assert (found[0], found[2]) != (wanted[0], wanted[2]), case
        return
    other, wanted_of_other = case.where(example.witness), case.wanted(example.witness)
    one_register_for_two = other[1] == found[1] and wanted_of_other[1] != wanted[1]
    two_registers_for_one = other[1] != found[1] and wanted_of_other[1] == wanted[1]
    assert two_registers_for_one or (one_register_for_two and case.operand.writes), case


def check_fix(case: Case, fix: Fix) -> None:
    """A layout that is offered fits; registers and k are what they are said to be."""
    if fix.layout is not None:
        assert isinstance(fix.layout, TileLayout), case
        assert replace(case, layout=fix.layout).in_place(), case
    if fix.kind == "k":
        assert sorted(fix.k) == list(range(len(fix.k))) != list(fix.k), case
    if fix.kind == "registers":
        for element in case.elements():
            lane, word, part = case.where(element)
            own_lane, own_word, own_part = case.wanted(element)
            assert lane == own_lane and fix.registers[own_word][own_part] == (word, part), case


@each_own
def test_a_matching_layout_written_otherwise_is_accepted(own: Case) -> None:
    for case in rewritten(own):
        assert case.in_place(), case
        fit = fit_of(case)
        assert fit, fit.sentence
        for element in case.elements():
            assert fit.slots[0][case.wanted(element)[1]] == case.where(element)[1], case


# ---- fixes ---------------------------------------------------------------------------------------------------


CONTIGUOUS = TileLayout(S[(2, 8, 4, 2, 2) : (2, 4 @ laneid, 1 @ laneid, 4, 1)])
"""A of 16 x 16 elements whose lanes hold four neighbours in k."""


def test_permuted_k() -> None:
    fit = fits(MMA, "A", CONTIGUOUS, shape=(16, 16), dtype="float16")
    assert fit.fix is not None and fit.fix.kind == "k"
    assert fit.fix.k == (0, 1, 4, 5, 8, 9, 12, 13, 2, 3, 6, 7, 10, 11, 14, 15)
    assert "let k = 0, 1, 2, … of the instruction be k = 0, 1, 4, 5, 8, 9, 12, 13, 2, 3, 6, 7" in fit.sentence
    # Position k of the fitting layout is where the given one has k's element.
    assert fit.fix.layout is not None
    for row in range(16):
        for position, k in enumerate(fit.fix.k):
            assert fit.fix.layout.apply(row, position, shape=(16, 16)) == CONTIGUOUS.apply(row, k, shape=(16, 16))
    # B in the same order of k has the same fix.
    other = TileLayout(S[(8, 4, 2, 2) : (4 @ laneid, 1 @ laneid, 2, 1)])
    again = fits(MMA, "B", other, shape=(8, 16), dtype="float16")
    assert again.fix is not None and again.fix.k == fit.fix.k


def test_permuted_k_over_several_repeats() -> None:
    """Eight neighbours a lane: a permutation of the k of two instructions."""
    eight = TileLayout(S[(8, 4, 4, 2) : (4 @ laneid, 1 @ laneid, 2, 1)])
    fit = fits(MMA, "B", eight, shape=(8, 32), dtype="float16")
    assert fit.fix is not None and fit.fix.kind == "k"
    assert fit.fix.k[:10] == (0, 1, 8, 9, 16, 17, 24, 25, 2, 3)
    assert fit.counterexample is not None and fit.counterexample.element == (0, 2)


def test_registers_to_be_put_together() -> None:
    """Both halves of a register come from different ones: k and k + 8 are neighbours."""
    apart = TileLayout(S[(2, 8, 2, 4, 2) : (2, 4 @ laneid, 1, 1 @ laneid, 4)])
    fit = fits(MMA, "A", apart, shape=(16, 16), dtype="float16")
    assert fit.fix is not None and fit.fix.kind == "registers"
    assert fit.fix.registers == (((0, 0), (2, 0)), ((1, 0), (3, 0)), ((0, 1), (2, 1)), ((1, 1), (3, 1)))
    assert "register 0 is part 0 of 0, part 0 of 2; register 1 is part 0 of 1, part 0 of 3; and 2 more" in fit.sentence


def test_transposed_blocks() -> None:
    """What ldmatrix loads without .trans of a tile that lies the other way."""
    turned = TileLayout(S[(2, 4, 2, 2, 8) : (2, 1 @ laneid, 1, 4, 4 @ laneid)])
    fit = fits(MMA, "A", turned, shape=(16, 16), dtype="float16")
    assert fit.fix is not None and fit.fix.kind == "trans"
    assert "load it with .trans if it is loaded without" in fit.sentence
    assert fit.counterexample is not None and fit.counterexample.element == (0, 1)


def test_parts_of_registers() -> None:
    halves = TileLayout(S[(2, 8, 2, 4, 2) : (2, 4 @ laneid, 4, 1 @ laneid, 1)])
    exchanged = ComposeLayout(0, 1, 6, TileLayout.from_iters(halves.shard, offset={"m": 64}))
    fit = fits(MMA, "A", exchanged, shape=(16, 16), dtype="float16")
    assert fit.fix is not None and fit.fix.registers[0] == ((32, 1), (32, 0))


# ---- what stands for the rest -----------------------------------------------------------------------------------


def test_types_and_shapes_follow_from_sizes() -> None:
    words = operand_layout(MMA, "A")
    assert fits(MMA.text, "A", words).slots == ((0, 1, 2, 3),)
    assert fits(MMA, "A", operand_layout(MMA, "A", element=True))
    shape = operand_shape(MMA, "A", M=2, K=3)
    assert fits(MMA, "A", operand_layout(MMA, "A", M=2, K=3), shape=shape).slots[1] == (4, 5, 6, 7)
    assert fits(MMA, "A", TileLayout(S[(4, 16, 8) : (8, 1 @ laneid, 1)])).sentence == (
        f"{MMA.text}: operand A has 128 registers, or 256 float16, but the layout has 512: give the shape"
    )
    said = fits(MMA, "A", words, dtype="float64").sentence
    assert "expected 32-bit registers, or float16 elements, but got a view of float64" in said
    assert "has replicas" in fits(MMA, "A", TileLayout.from_iters(words.shard, R[2:4].replica)).sentence
    assert fits(
        MMA, "A", TileLayout(S[(4, 2, 8, 2, 4) : (1 @ warpid, 1, 4 @ laneid, 2, 1 @ laneid)]), scope="cta", warps=4
    )
    wrong = fits(MMA, "A", TileLayout(S[(4, 2, 8, 2, 4) : (2 @ warpid, 1, 4 @ tx, 2, 1 @ tx)]), scope="cta", warps=4)
    assert wrong.counterexample is not None
    assert wrong.counterexample.found == Place(0, 0, warp=2) and wrong.counterexample.wanted == Place(0, 0, warp=1)
    with pytest.raises(InstructionError, match="has no operand 'X'"):
        fits(MMA, "X", words)
    with pytest.raises(InstructionError, match="there is no instruction"):
        fits("mmma.sync", "A", words)


def test_a_matrix_of_several_atoms() -> None:
    """The sums of two instructions, rounded, are the next product's A."""
    sums = TileLayout(S[(2, 8, 2, 4, 2) : (2, 4 @ laneid, 4, 1 @ laneid, 1)])
    assert fits(MMA, "A", sums, shape=(16, 16)).slots == ((0, 1, 2, 3),)
    wide = TileLayout(S[(2, 2, 8, 4, 4, 2) : (16, 2, 4 @ laneid, 4, 1 @ laneid, 1)])
    fit = fits(MMA, "A", wide, shape=(32, 32))
    assert fit.slots == ((0, 1, 2, 3), (4, 5, 6, 7), (8, 9, 10, 11), (12, 13, 14, 15))
    shifted = TileLayout.from_iters(wide.shard, offset={"m": 1})
    example = fits(MMA, "A", shifted, shape=(32, 32)).counterexample
    assert example is not None and example.element == (0, 0) and example.found == Place(0, 0, 1)
    assert not fits(MMA, "A", TileLayout(S[(3, 16, 16) : (1, 1 @ laneid, 3)]), shape=(48, 16))


def test_tiles_in_memory() -> None:
    plain = TileLayout(S[(4, 8, 8) : (64, 8, 1)])
    fit = fits(LOAD, "src", plain)
    assert fit.ok and fit.rows == (tuple(range(0, 512, 16)),)
    assert fits(LOAD, "src", TileLayout(S[(4, 8, 4) : (32, 4, 1)]))
    swizzled = mma_shared_layout("float16", 3, (8, 64)).group((8, 8, 8))[0].permute_by_groups((0, 1, 2, 3), (1, 0, 2))
    assert fits(LOAD, "src", swizzled, shape=(2, 4, 8, 8))
    turned = TileLayout(S[(4, 8, 8) : (64, 1, 8)])
    wrong = fits(LOAD, "src", turned)
    assert wrong.fix is not None and wrong.fix.kind == "trans" and wrong.counterexample is not None
    assert wrong.counterexample.element == (0, 0, 1)
    assert (wrong.counterexample.found, wrong.counterexample.wanted) == (MemoryPlace(16.0), MemoryPlace(2.0))
    other = "ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16"
    assert wrong.sentence.endswith(f"exchange its last two axes, and use {other}")
    assert lookup(other).text == other and wrong.fix.layout is not None and fits(other, "src", wrong.fix.layout)
    odd = fits(LOAD, "src", TileLayout(S[(4, 8, 4) : (40, 5, 1)]))
    assert odd.counterexample is not None and odd.counterexample.found == MemoryPlace(20.0) and odd.fix is None
    twice = fits(LOAD.replace("ld", "st"), "dst", TileLayout(S[(4, 8, 4) : (0, 4, 1)]))
    assert twice.counterexample is not None and twice.counterexample.witness == (0, 0, 0)
    assert not fits(LOAD, "src", TileLayout(S[64:1]))
    with pytest.raises(InstructionError, match="an address for which no tile can stand"):
        fits("cp.async.ca.shared.global", "dst", plain)
