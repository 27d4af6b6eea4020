"""The errors that no user can cause, or no test, each with the reason."""

from __future__ import annotations

from dataclasses import dataclass

from sites import Site


@dataclass(frozen=True)
class Unreachable:
    """The sites of `file` whose text holds `text` (in `function`, if it is named), and why no case causes them."""

    file: str
    text: str
    reason: str
    function: str = ""

    def holds(self, site: Site) -> bool:
        return site.file == self.file and self.text in site.text and self.function in (site.function, "")


BY_HAND = "proven while tracing: only programs put together by hand come here (tests/sim, tests/cuda, tests/isa)"
BY_ROWS = "needs arrays that the rows never give: a check of what a row says"
BY_DEVICE = "needs a driver, a compiler or a GPU that fails: tests/cuda and tests/call run it with a stand-in"

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
    Unreachable("warpjit/bound.py", "expected arguments on {self.place}", BY_DEVICE),
    Unreachable("warpjit/bound.py", "only its __call__ was kept", BY_DEVICE),
    Unreachable("warpjit/build.py", "", BY_DEVICE),
    Unreachable("warpjit/compiled.py", "does not run on device", BY_DEVICE),
    Unreachable("warpjit/execute.py", "graph is captured", BY_DEVICE),
    Unreachable("warpjit/cuda/driver.py", "DriverError(", BY_DEVICE),
    Unreachable("warpjit/cuda/driver.py", "but the launch gives", BY_DEVICE),
    Unreachable("warpjit/cuda/disassemble.py", "could not be run", BY_DEVICE),
    Unreachable("warpjit/cuda/toolchain.py", "nvcc could not be run", BY_DEVICE),
    Unreachable("warpjit/kernel.py", "no supported CUDA device", BY_DEVICE),
    Unreachable("warpjit/kernel.py", "simulate: expected CPU tensors", BY_DEVICE),
    Unreachable("warpjit/cuda/issues.py", "", BY_ROWS),
    Unreachable("warpjit/sim/accesses.py", "step.loc, touch.row[bad], touch.lane[bad])", BY_HAND, "_check_alignment"),
    Unreachable("warpjit/frontend/containers.py", "NeedsStatic(loops", "the loop is expanded then: nobody reads it"),
    Unreachable(
        "warpjit/frontend/admit.py",
        "less than 2**31 bytes",
        "needs a tensor of 2 GiB; tests/call has one without memory",
    ),
    Unreachable(
        "warpjit/frontend/chunks.py",
        "misaligned(what, tensor, 'a chunk'",
        "a second proof: the first names the chunk that is wrong",
    ),
    Unreachable(
        "warpjit/frontend/matrices.py",
        "must be known while tracing",
        "only tensors of shared memory come here, and they have layouts",
    ),
    Unreachable(
        "warpjit/frontend/tiles.py",
        "must be known while tracing",
        "only tensors of shared memory come here, and they have layouts",
    ),
    Unreachable("warpjit/tuner/trials.py", "", BY_DEVICE),
    Unreachable("warpjit/tuner/isolated.py", "to start with torch and a device", BY_DEVICE),
    Unreachable("warpjit/tuner/tuner.py", "graph is captured", BY_DEVICE),
    Unreachable("warpjit/tuner/tuner.py", "no supported CUDA device", BY_DEVICE),
    Unreachable("warpjit/tuner/tuner.py", "self._none(entries)", BY_DEVICE, "_Choosing.choice"),
    Unreachable(
        "warpjit/frontend/addresses.py",
        "NeedsStatic(value.loops",
        "a guard: each loop that a value derives from is being tried or expanded",
    ),
    Unreachable(
        "warpjit/frontend/tracer.py",
        "changes from iteration to iteration",
        "a guard: each loop that a value derives from is being tried or expanded",
    ),
    Unreachable("warpjit/tuner/config.py", "prints as what it is", "its sentence shows an address: tests/tuner"),
)
