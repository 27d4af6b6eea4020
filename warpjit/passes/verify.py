"""Legality of a traced kernel on a target: a list of rules, read off the rows. Collects all findings.

Rules about operands stand where operands are proven, in the tracer; here stands what needs the whole operation: does
the target have it, and do all threads that must execute it together get there together?
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from operator import attrgetter
from typing import TypeAlias

from warpjit.errors import Finding, Note, TraceError
from warpjit.ir.facts import Uniformity
from warpjit.ir.nodes import Const, GlobalBuffer, Kernel, Node, Op
from warpjit.ir.walk import addresses, every
from warpjit.isa.pairing import paired, row_of
from warpjit.isa.row import BarrierSync, Operand, Participants, Row, Special
from warpjit.isa.target import MAX_CLUSTER, Target
from warpjit.layout.axis import LANES
from warpjit.passes.parting import where_threads_part

Check: TypeAlias = Callable[[Op], str | None]
"""What is wrong with one operation, in a sentence."""
Rule: TypeAlias = Callable[[Row, Kernel, Target], Check | None]
"""How the operations of a row are to be checked: read off the row once. None: no operation of it can be wrong."""


def _always(message: str) -> Check:
    return lambda op: message


def _target_has_it(row: Row, kernel: Kernel, target: Target) -> Check | None:
    if not row.needs.holds(target):
        return _always(f"{row.text} needs {row.needs.text}, but the target is {target.name}")
    lacking = {
        operand.name: operand.needs.text
        for operand in row.operands
        if operand.needs is not None and not operand.needs.holds(target)
    }
    if not lacking:
        return None

    def check(op: Op) -> str | None:
        given = (operand.name for operand, value in paired(op) if value is not None)
        name = next((name for name in given if name in lacking), None)
        if name is None:
            return None
        return f"{row.text} with {name} needs {lacking[name]}, but the target is {target.name}"

    return check


def _verified(row: Row, kernel: Kernel, target: Target) -> Check | None:
    if not row.unverified or kernel.unverified:
        return None
    return _always(
        f"{row.text} is unverified: what is said of it was never compared with a device; expected "
        "@warpjit(unverified=True), which allows such instructions"
    )


def _together(row: Row, kernel: Kernel, target: Target) -> Check | None:
    """Collectives need control flow that their participants share (PTX manual: the `.aligned` forms, `bar.sync`)."""
    if isinstance(row.effect, Special) or row.participants not in _CONTROL:
        return None

    def check(op: Op) -> str | None:
        allowed = _widest_control(op, row)
        if op.control <= allowed:
            return None
        return (
            f"{row.text} must be executed by {_WHO[allowed]} together, but it stands under control flow that is "
            f"{op.control.phrase}: not all of its threads get there"
        )

    return check


_CONTROL = {
    Participants.WARP: Uniformity.WARP,
    Participants.WARPGROUP: Uniformity.WARPGROUP,
    Participants.CTA: Uniformity.CTA,
}
_WHO = {Uniformity.CTA: "the whole CTA", Uniformity.WARP: "a whole warp", Uniformity.WARPGROUP: "a whole warpgroup"}


def _widest_control(op: Op, row: Row) -> Uniformity:
    """How far the control flow around an operation may differ from thread to thread."""
    if row.participants is Participants.CTA and isinstance(row.effect, BarrierSync) and _partial_barrier(op, row):
        return Uniformity.WARP
    return _CONTROL.get(row.participants, Uniformity.LANE)


def _partial_barrier(op: Op, row: Row) -> bool:
    """A barrier that names how many threads take part: whole warps may stay away."""
    given = {operand.name: value for operand, value in paired(op)}
    return given.get("count") is not None


def _full_warps(row: Row, kernel: Kernel, target: Target) -> Check | None:
    if row.participants in (Participants.THREAD, Participants.CTA) or isinstance(row.effect, Special):
        return None
    threads = kernel.launch.threads
    if threads % LANES == 0:
        return None
    return _always(
        f"{row.text}: all 32 lanes must be active, but the block's {threads} threads leave the last warp partly empty"
    )


def _barrier_number(row: Row, kernel: Kernel, target: Target) -> Check | None:
    """PTX manual, section "bar, barrier": sixteen barriers a CTA; the count a multiple of the warp size."""
    if row.participants is not Participants.CTA or not isinstance(row.effect, BarrierSync):
        return None
    threads = kernel.launch.threads

    def check(op: Op) -> str | None:
        given = {operand.name: value for operand, value in paired(op)}
        number, count = given.get("id"), given.get("count")
        if isinstance(number, Const) and not 0 <= number.value < 16:
            return f"{row.text}: expected a barrier from 0 to 15 but got {number.value}"
        if isinstance(count, Const) and (count.value % LANES or not 0 < count.value <= threads):
            return f"{row.text}: expected a multiple of 32 up to the block's {threads} threads but got {count.value}"
        return None

    return check


def _cluster(kernel: Kernel, target: Target) -> str | None:
    """CUDA C++ Programming Guide, "Thread Block Clusters": from sm_90 on; up to 16 CTAs where a kernel opts in."""
    x, y, z = kernel.launch.cluster
    if x * y * z == 1:
        return None
    if not target.has_clusters:
        return f"expected a cluster of (1, 1, 1) but got {(x, y, z)}: {target.name} has no clusters"
    if x * y * z > MAX_CLUSTER:
        return f"cluster {(x, y, z)} has {x * y * z} CTAs: expected at most {MAX_CLUSTER}"
    return None


def _fixed_memory(ops: Sequence[Op]) -> Iterator[Finding]:
    """A non-coherent load reads what no thread writes while the kernel runs (PTX manual, "ld.global.nc")."""
    fixed = [(op, row_of(op)) for op in ops if row_of(op).fixed]
    if not fixed:
        return
    written = {buffer.name: (buffer, op.loc) for op in ops for buffer in _global_buffers(op, attrgetter("writes"))}
    for op, row in fixed:
        for buffer in _global_buffers(op, attrgetter("reads")):
            for other, loc in written.values():
                if other.name == buffer.name:
                    yield Finding(
                        f"{row.text} reads {buffer.name}, which the kernel writes: expected a tensor that does not "
                        "change while it runs",
                        op.loc,
                        (Note("it is written here", loc),),
                    )
                elif not (buffer.noalias or other.noalias):
                    yield Finding(
                        f"{row.text} reads {buffer.name}, which may share memory with {other.name}, which the kernel "
                        "writes: expected noalias=True in the annotation of one of them",
                        op.loc,
                        (Note(f"{other.name} is written here", loc),),
                    )


def _global_buffers(op: Op, mode: Callable[[Operand], bool]) -> Iterator[GlobalBuffer]:
    """The tensors that an operation reads, or writes."""
    for operand, value in paired(op):
        if mode(operand):
            yield from (each.buffer for each in addresses(value) if isinstance(each.buffer, GlobalBuffer))


RULES: tuple[Rule, ...] = (_target_has_it, _verified, _together, _full_warps, _barrier_number)


def operations(nodes: tuple[Node, ...]) -> Iterator[Op]:
    """Every operation, in order."""
    return (node for node in every(nodes) if isinstance(node, Op))


def verify(kernel: Kernel, target: Target) -> None:
    """TraceError with everything in `kernel`, its launch included, that is illegal on `target`."""
    launch = _cluster(kernel, target)
    findings = [] if launch is None else [Finding(launch, kernel.loc)]
    ops = list(operations(kernel.body))
    checks: dict[Row, list[tuple[Rule, Check]]] = {}
    for op in ops:
        row = row_of(op)
        if row not in checks:
            made = ((rule, rule(row, kernel, target)) for rule in RULES)
            checks[row] = [(rule, check) for rule, check in made if check is not None]
        for rule, check in checks[row]:
            message = check(op)
            if message is not None:
                notes = where_threads_part(kernel.body, op, _widest_control(op, row)) if rule is _together else ()
                finding = Finding(message, op.loc, notes)
                if finding not in findings:
                    findings.append(finding)
    findings += [each for each in _fixed_memory(ops) if each not in findings]
    if findings:
        raise TraceError.collect(findings)
