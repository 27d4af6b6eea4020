"""How a text finds its row, and what is said of a text that names none."""

from __future__ import annotations

import dataclasses
import subprocess
import sys

import pytest

from warpjit.errors import InstructionError
from warpjit.isa.needs import EVERYWHERE, only, since
from warpjit.isa.row import Asm, Kind, Operand, Row
from warpjit.isa.scalar import ARITHMETIC
from warpjit.isa.table import FILES, _name, collect, family, lookup, rows
from warpjit.isa.target import Target

MMA = "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32"


def test_every_row_is_found_by_its_text() -> None:
    assert len(rows()) > 600
    for row in rows():
        assert lookup(row.text) is row
        assert row.section, row
        assert row.needs.text


def test_a_name_that_files_declare_stands_in_no_other() -> None:
    homes: dict[str, set[str]] = {}
    for file in FILES:
        for row in family(file).values():
            homes.setdefault(_name(row), set()).add(file)
    declared = {name for names in FILES.values() for name in names}
    assert {name: homes[name] for name in declared} == {
        name: {file for file, names in FILES.items() if name in names} for name in declared
    }


def test_a_text_loads_the_family_that_it_is_of() -> None:
    check = (
        "import sys; from warpjit.isa.table import lookup; "
        f"lookup({MMA!r}); print(sorted(name for name in sys.modules if name.startswith('warpjit.isa.mma')))"
    )
    done = subprocess.run([sys.executable, "-c", check], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "['warpjit.isa.mma_floats', 'warpjit.isa.mma_shapes']"


@pytest.mark.parametrize(
    "text",
    [
        "ldmatrix.sync.aligned.m8n8.shared.x4.b16",
        "ldmatrix.aligned.sync.x4.m8n8.b16.shared",
        " ldmatrix.sync.aligned.m8n8.x4.shared.b16; ",
    ],
)
def test_modifiers_may_stand_in_any_order(text: str) -> None:
    assert lookup(text).text == "ldmatrix.sync.aligned.m8n8.x4.shared.b16"


def test_types_of_operands_keep_their_order() -> None:
    assert lookup(MMA.replace(".sync.aligned", ".aligned.sync")).text == MMA
    for wrong in (MMA.replace(".row.col", ".col.row"), MMA.replace("f32.f16.f16.f32", "f16.f32.f16.f32")):
        with pytest.raises(InstructionError, match="stand in another order than in any row; nearest: mma"):
            lookup(wrong)


def refusal(text: str) -> str:
    with pytest.raises(InstructionError) as caught:
        lookup(text)
    return str(caught.value)


def test_a_wrong_modifier_is_answered_by_the_legal_ones() -> None:
    said = refusal("ldmatrix.sync.aligned.m8n8.x3.shared.b16")
    assert said == "ldmatrix.sync.aligned.m8n8 has no modifier '.x3'; legal here: .x1, .x2, .x4"


def test_a_combination_that_does_not_exist_names_the_nearest() -> None:
    said = refusal("mma.sync.aligned.m16n8k16.row.col.f32.f16.bf16.f32")
    assert "'.bf16' does not go with mma.sync.aligned.m16n8k16.row.col.f32.f16; legal here: .f16" in said
    assert MMA in said.split("nearest: ")[1]
    assert MMA.replace("f16", "bf16") in said.split("nearest: ")[1]
    assert "'.row' does not go with" in refusal(MMA.replace(".row.col", ".row.row"))


def test_what_is_missing_is_said() -> None:
    said = refusal("ldmatrix.sync.aligned.m8n8.x4.b16")
    assert "is not complete; it may go on with .shared, .shared::cta, .trans" in said


def test_an_unknown_name_has_near_ones() -> None:
    assert (
        refusal("ldmatri.sync") == "there is no instruction 'ldmatri'; did you mean ldmatrix or stmatrix or movmatrix?"
    )
    assert refusal("zzzzzz") == "there is no instruction 'zzzzzz'"


def test_what_is_no_text_is_refused() -> None:
    for wrong in (5, None, ["mma"]):
        assert refusal(wrong) == f"expected the text of an instruction but got {wrong!r}"  # type: ignore[arg-type]


def test_two_rows_of_one_text_are_refused() -> None:
    row = ARITHMETIC["add", "int32"]
    with pytest.raises(InstructionError, match=r"two rows have the text 'add.s32'"):
        collect([row, dataclasses.replace(row, pure=False)])


def test_a_bad_row_is_refused_with_a_sentence() -> None:
    def make(**changes: object) -> Row:
        fields = {"text": "bad", "operands": (), "code": Asm("bad;"), "meaning": None, "needs": EVERYWHERE}
        return Row(**{**fields, **changes})  # type: ignore[arg-type]

    operand = Operand("d", Kind.SCALAR)
    with pytest.raises(InstructionError, match="operand 'd' does not stand in its code"):
        make(operands=(operand,))
    with pytest.raises(InstructionError, match="operand name 'd' stands twice"):
        make(operands=(operand, operand), code=Asm("{d}"))
    with pytest.raises(InstructionError, match="a fragment needs dtype, shape and layout"):
        make(operands=(Operand("d", Kind.FRAGMENT),), code=Asm("{d}"))
    with pytest.raises(InstructionError, match="a pure row cannot touch memory"):
        make(pure=True, memory=True)


def test_needs_in_words_and_as_a_predicate() -> None:
    sm_80, sm_90, sm_90a, sm_120 = (Target.parse(name) for name in ("sm_80", "sm_90", "sm_90a", "sm_120"))
    assert since(90).text == "sm_90 or later"
    assert [since(90).holds(target) for target in (sm_80, sm_90, sm_120)] == [False, True, True]
    assert [only(90).holds(target) for target in (sm_90, sm_90a, sm_120)] == [False, True, False]
    assert not lookup("stmatrix.sync.aligned.m8n8.x4.shared.b16").needs.holds(sm_80)
    assert lookup(MMA).needs.holds(sm_80)


def test_an_unknown_operand_lists_the_known_ones() -> None:
    with pytest.raises(InstructionError, match="has no operand 'X'; its operands are D, A, B, C"):
        lookup(MMA).operand("X")


def test_optional_operands_change_the_template() -> None:
    row = lookup("bar.sync")
    assert row.written({}, ()).text == "bar.sync {id};"
    assert row.written({}, {"count"}).text == "bar.sync {id}, {count};"
    copy = lookup("cp.async.cg.shared.global")
    assert "src_size" not in copy.written({"size": 16}, ()).text
    assert copy.written({"size": 16}).text.endswith("{size}, {src_size};")


def test_a_sparse_product_is_another_instruction() -> None:
    sparse = "mma.sp.sync.aligned.m16n8k32.row.col.f32.f16.f16.f32"
    assert lookup("mma.sync.aligned.sp.m16n8k32.row.col.f32.f16.f16.f32").text == sparse
    said = refusal("mma.sp.sync.aligned.m16n8k4.row.col.f32.f16.f16.f32")
    assert said.startswith("mma.sp.sync.aligned has no modifier '.m16n8k4'; legal here: .m16n8k32, .m16n8k16, .m16n8k8")
