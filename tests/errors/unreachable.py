"""The errors that no user can cause, or no test, each with the reason."""

from __future__ import annotations

from dataclasses import dataclass

from sites import Site


@dataclass(frozen=True)
class Unreachable:
    """The sites of `file` whose text holds `text`, and why no case causes them."""

    file: str
    text: str
    reason: str

    def holds(self, site: Site) -> bool:
        return site.file == self.file and self.text in site.text


BY_HAND = "proven while tracing: only programs put together by hand come here (tests/sim, tests/cuda, tests/isa)"
BY_ROWS = "needs arrays that the rows never give: a check of what a row says"

UNREACHABLE: tuple[Unreachable, ...] = (
    Unreachable("warpjit/errors.py", "", "how the family makes its own members: each error goes by here"),
    Unreachable(
        "warpjit/frontend/source.py",
        "lambdas stand on this line",
        "only where Python keeps no columns; see test_source.py",
    ),
    Unreachable("warpjit/frontend/source.py", "_no_source(plain)", "only of `python -c`; see test_source.py"),
    Unreachable("warpjit/sim/effects.py", "findings.add_warps(sentence", BY_HAND),
    Unreachable("warpjit/sim/waiting.py", "step.loc, turn.rows[bad])", BY_HAND),
    Unreachable("warpjit/sim/waiting.py", "first.step.loc, row, (note,)", BY_HAND),
    Unreachable("warpjit/sim/run.py", "arguments, one a parameter", BY_HAND),
    Unreachable("warpjit/sim/run.py", "but got {type(argument)", BY_HAND),
    Unreachable("warpjit/cuda/operands.py", "_mismatch(operand, value)", BY_HAND),
    Unreachable("warpjit/cuda/operands.py", "is of kind {operand.kind.value} but got", BY_HAND),
    Unreachable("warpjit/cuda/operands.py", "has no dtype, so C++", BY_HAND),
    Unreachable("warpjit/cuda/scalars.py", "", BY_HAND),
    Unreachable("warpjit/cuda/statements.py", "", BY_HAND),
    Unreachable("warpjit/cuda/codegen.py", "", BY_HAND),
    Unreachable("warpjit/isa/pairing.py", "", BY_HAND),
    Unreachable("warpjit/isa/proof.py", "but got a view of {dtype}", BY_HAND),
    Unreachable("warpjit/isa/proof.py", "has {view.layout.size()} elements", BY_HAND),
    Unreachable("warpjit/isa/proof.py", "is at {name} = ", BY_HAND),
    Unreachable("warpjit/isa/proof.py", "is slot {slots", BY_HAND),
    Unreachable("warpjit/isa/tile_proof.py", "no tile can stand for", BY_HAND),
    Unreachable("warpjit/isa/tile_proof.py", "the layout {layout!r} has {layout.size()}", BY_HAND),
    Unreachable("warpjit/isa/fitting.py", "no tile can stand", BY_HAND),
    Unreachable("warpjit/passes/expressions.py", "launch plan but got", BY_HAND),
    Unreachable("warpjit/ir/matrix_fp8.py", "", BY_ROWS),
    Unreachable("warpjit/ir/matrix_integers.py", "", BY_ROWS),
    Unreachable("warpjit/ir/matrix_numerics.py", "", BY_ROWS),
    Unreachable("warpjit/ir/operands.py", "", BY_ROWS),
    Unreachable("warpjit/ir/words.py", "", BY_ROWS),
    Unreachable("warpjit/ir/conversion.py", "", BY_ROWS),
    Unreachable("warpjit/ir/dtypes.py", "no data type of the language is stored", BY_ROWS),
    Unreachable("warpjit/ir/dtypes.py", "has no smallest and largest", BY_ROWS),
)
