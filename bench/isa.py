"""Every warp-matrix instruction on the device against the simulator, bit for bit.

One kernel holds the rows whose operands have the same numbers of registers, and reads each lane's registers from
memory, so that a few kernels test all rows. Inputs are those of `isa_inputs`. A result counts as a mismatch if a bit
differs; only where a NaN of float64 meets others, or what may become one, is one as good as another: which of them
comes out is not known. Those results are counted, and those of them whose bits differ.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from bench import isa_sparse
from bench.harness import Bench, Record, Settings, Table
from bench.isa_inputs import Matrices, element_shape, kinds, matrices, registers, results
from bench.isa_kernels import call, groups, loaded
from warpjit import T, warpjit
from warpjit.ir.dtypes import float64
from warpjit.isa import mma_double, mma_floats, mma_fp8, mma_integers
from warpjit.isa.row import Row
from warpjit.isa.target import Target

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Array = np.ndarray[Any, Any]

RESULTS_A_KIND, QUICK_RESULTS = 12800, 2560
"""Results of a row for each kind of inputs; five or six kinds give 64 000 and more."""


@warpjit
def products(A, B, C, Out, *, texts):
    """Out[i] = A[i] @ B[i].T + C[i] by instruction texts[i], in registers by lane: (rows, products, 32, registers)."""
    T.device_entry(launch=T.cuda.LaunchConfig(grid=Out.shape[1], block=32))
    product, lane = T.cuda.block_idx(), T.cuda.lane_id()
    for index, text in enumerate(texts):
        mma = T.ptx[text]
        a = loaded(T.cuda.fragments(mma, "A"), A, index, product, lane)
        b = loaded(T.cuda.fragments(mma, "B"), B, index, product, lane)
        c = loaded(T.cuda.fragments(mma, "C"), C, index, product, lane)
        d = T.cuda.fragments(mma, "D")
        T.cuda.tile.apply(mma, d, a, b, c)
        words = d.storage.view(Out.dtype)
        for r in T.unroll(Out.shape[3]):
            Out[index, product, lane, r] = words[r]


# ---- groups of rows ---------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Outcome:
    """One row.

    results      compared
    mismatches   of them that differ
    several_nan  of them where several NaN of float64 may meet, and either is right
    other_nan    of these whose bits differ
    first        one mismatch
    """

    row: str
    results: int
    mismatches: int
    several_nan: int
    other_nan: int
    first: str = ""


DENSE = (*mma_floats.ROWS, *mma_double.ROWS, *mma_fp8.ROWS, *mma_integers.ROWS)
"""Every dense `mma.sync`."""


def dense_rows(target: Target) -> list[Row]:
    """Those of them that the target has."""
    return [row for row in DENSE if row.needs.holds(target)]


@dataclass(frozen=True)
class Case:
    """One row's inputs, as matrices and as registers."""

    row: Row
    made: Matrices
    words: tuple[Array, Array, Array]


def cases(group: Sequence[Row], results_a_kind: int, seed: int) -> list[Case]:
    """The inputs of each row of a group, every kind."""
    found = []
    for row in group:
        count = -(-results_a_kind // prod(element_shape(row.operand("D"))))
        made = [matrices(row, kind, count, seed) for kind in kinds(row)]
        whole = Matrices(*(np.concatenate([getattr(each, name) for each in made]) for name in "abc"))
        found.append(Case(row, whole, registers(row, whole)))
    return found


def run_group(given: Sequence[Case], device: str, run: Callable[..., object] = call) -> list[Array]:
    """D's registers of each row, computed on "cuda", or on "cpu" by the simulator; `run` calls the kernel."""
    operands = [torch.from_numpy(np.stack([case.words[index] for case in given])).to(device) for index in range(3)]
    out = torch.from_numpy(np.full(operands[2].shape, 123, given[0].words[2].dtype)).to(device)
    run(products, *operands, out, texts=tuple(case.row.text for case in given))
    return list(out.cpu().numpy())


def compare(case: Case | isa_sparse.Case, device: Array, simulator: Array) -> Outcome:
    """How the device's registers differ from the simulator's."""
    got, want = results(case.row, device), results(case.row, simulator)
    differ = got != want
    several = np.zeros(got.shape, bool)
    if case.row.operand("D").dtype == float64:
        both = np.isnan(got.view(np.float64)) & np.isnan(want.view(np.float64))
        several = both & several_nan(case.made)
    other = differ & several
    differ &= ~several
    first = ""
    if differ.any():
        where = tuple(int(each) for each in np.argwhere(differ)[0])
        first = f"product {where[0]}, element {where[1:]}: {got[where]:#x} instead of {want[where]:#x}"
    return Outcome(case.row.text, got.size, int(differ.sum()), int(several.sum()), int(other.sum()), first)


def several_nan(made: Matrices) -> Array:
    """Where a NaN operand meets another, or what may make one: infinities, and numbers large enough for them."""
    values = [each.view(np.float64) for each in (made.a, made.b, made.c)]

    def along(flags: Sequence[Array]) -> Array:
        """How many of the operands of each result."""
        counts = [each.astype(np.int64) for each in flags]
        return np.asarray(counts[0].sum(-1)[..., :, None] + counts[1].sum(-1)[..., None, :] + counts[2])

    with np.errstate(invalid="ignore"):
        exceptional = along([~(np.abs(each) < 2.0**500) for each in values])
    return (along([np.isnan(each) for each in values]) > 0) & (exceptional > 1)


def outcomes(group: Sequence[Row], results_a_kind: int, seed: int = 0) -> list[Outcome]:
    """The device against the simulator, for the rows of one kernel."""
    given = cases(group, results_a_kind, seed)
    found = zip(given, run_group(given, "cuda"), run_group(given, "cpu"), strict=True)
    return [compare(*each) for each in found]


def sparse_outcomes(group: Sequence[Row], results_a_kind: int, seed: int = 0) -> list[Outcome]:
    """The same for rows of `mma.sp`."""
    given = isa_sparse.cases(group, results_a_kind, seed)
    found = zip(given, isa_sparse.run_group(given, "cuda"), isa_sparse.run_group(given, "cpu"), strict=True)
    return [compare(*each) for each in found]


# ---- the figure -------------------------------------------------------------------------------------------


def run(settings: Settings, record: Record) -> None:
    """Compare every row that the present GPU has."""
    start = time.perf_counter()
    target = Target.of_capability(*torch.cuda.get_device_capability())
    found: list[Outcome] = []
    for group in groups(dense_rows(target)):
        found += outcomes(group, QUICK_RESULTS if settings.quick else RESULTS_A_KIND, settings.seed)
        record.put(rows=[asdict(each) for each in found], seconds=round(time.perf_counter() - start, 1))
    for group in groups(isa_sparse.sparse_rows(target)):
        found += sparse_outcomes(group, QUICK_RESULTS if settings.quick else RESULTS_A_KIND, settings.seed)
        record.put(rows=[asdict(each) for each in found], seconds=round(time.perf_counter() - start, 1))


def tables(content: dict[str, Any]) -> list[Table]:
    """One line a row, and the sum."""
    figures = content["figures"]
    numbers = ("results", "mismatches", "several_nan", "other_nan")
    lines = [(each["row"], *(f"{each[name]:,}" for name in numbers), each["first"]) for each in figures["rows"]]
    total = ("all", *(f"{sum(each[name] for each in figures['rows']):,}" for name in numbers), "")
    columns = ("instruction", "results", "mismatches", "several NaN", "another NaN", "first mismatch")
    title = f"device against simulator, bit for bit, {figures['seconds']} s"
    return [Table(title, columns, (*lines, total))]


def draw(content: dict[str, Any], figure: Figure) -> None:
    """A bar per type of A: results compared."""
    counts: dict[str, int] = {}
    for each in content["figures"]["rows"]:
        name = each["row"].split(".row.col.")[1].removeprefix("satfinite.").split(".")[1]
        counts[name] = counts.get(name, 0) + each["results"]
    axes = figure.add_subplot()
    axes.bar(list(counts), list(counts.values()))
    mismatches = sum(each["mismatches"] for each in content["figures"]["rows"])
    axes.set_ylabel("results compared")
    axes.set_xlabel(f"type of A ({mismatches} mismatches in all)")


BENCH = Bench("isa", "every warp-matrix instruction against the simulator, bit for bit", True, run, tables, draw)
