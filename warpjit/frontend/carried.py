"""What a device loop carries from iteration to iteration.

Names that an iteration may read before it assigns them, or that are read after the loop, live in typed locals which
each iteration assigns where it ends. What is assumed of them is first what held before the loop; where an iteration
breaks the assumption, the attempt is dropped and the body is traced again on a weaker one. Attempts are drafts, without
the operations on tiles, until the assumption holds.
"""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field

from warpjit.errors import TraceError
from warpjit.frontend import merge
from warpjit.frontend.merge import Bound
from warpjit.frontend.tracer import Edge, LoopFrame, Thresholds, Tracer, widen
from warpjit.frontend.values import Poison, Scalar, Unbound
from warpjit.ir import facts as fact
from warpjit.ir.dtypes import DType
from warpjit.ir.facts import Facts, Uniformity
from warpjit.ir.nodes import Assign, Declare, Local

MAX_ATTEMPTS = 4


@dataclass
class Carried:
    """One name that lives across iterations: its local (None until its type is known) and what is assumed of it."""

    name: str
    initial: Bound
    local: Local | None
    facts: Facts | None

    @property
    def starts_bound(self) -> bool:
        return not isinstance(self.initial.value, Unbound)


def _carried(tracer: Tracer, node: ast.For | ast.While) -> list[Carried]:
    scope = tracer.scope
    flow = scope.liveness
    assigned = flow.assigned([node])
    wanted = (assigned & flow.live_after(node)) | (assigned & flow.exposed(node) & scope.names.keys())
    result = []
    for name in sorted(wanted):
        value = scope.names.get(name, Unbound(name, tracer.builder.loc))
        if isinstance(value, Scalar):
            value = tracer.fresh(value)
        result.append(Carried(name, Bound(value, scope.bound.get(name, tracer.builder.loc)), None, None))
    return result


@dataclass
class Assumed:
    """What a loop's attempts have come to: facts and types of its carried names, who runs it, and the same of the
    loops in it, by how they are met, so that an attempt begins where the one before it ended."""

    facts: dict[str, Facts] = field(default_factory=dict)
    types: dict[str, DType] = field(default_factory=dict)
    control: Uniformity = Uniformity.STATIC
    inner: dict[tuple[int, int], Assumed] = field(default_factory=dict)
    met: Counter[int] = field(default_factory=Counter)

    def mark(self) -> Callable[[], None]:
        """What forgets the loops that are met from now on."""
        met, known = Counter(self.met), set(self.inner)

        def forget() -> None:
            self.met = met
            self.inner = {key: value for key, value in self.inner.items() if key in known}

        return forget

    def of(self, node: ast.For | ast.While) -> Assumed:
        """What is assumed of a loop inside of this one: of its copies one after the other."""
        self.met[id(node)] += 1
        return self.inner.setdefault((id(node), self.met[id(node)]), Assumed())


def settle(tracer: Tracer, node: ast.For | ast.While, body: Callable[[LoopFrame], None]) -> None:
    """Trace the loop until what was assumed of its carried names holds: first in drafts, then in full."""
    outer = tracer.assumed
    assumed = Assumed() if outer is None else outer.of(node)
    assumed.control = max(assumed.control, tracer.builder.control)
    names = _carried(tracer, node)
    state = tracer.save()
    draft, broken = tracer.draft or bool(names), 0
    while broken < 16 + 8 * len(names):
        sketched = tracer.sketched
        frame = _attempt(tracer, names, assumed, body, draft)
        weaker = _check(frame, names, assumed.facts, tracer.thresholds, broken)
        wider = frame.leaves if frame.leaves > frame.control else assumed.control
        if weaker or wider != assumed.control:
            broken += 1
            assumed.types.update((carried.name, carried.local.dtype) for carried in names if carried.local is not None)
            assumed.facts.update(weaker)
            assumed.control = wider
        elif draft == tracer.draft or tracer.sketched == sketched:
            _end(tracer, frame, names)
            return
        else:  # it holds, but something was left out
            draft = tracer.draft
        loc = tracer.builder.loc
        tracer.restore(state)
        tracer.builder.loc = loc
    raise AssertionError("the facts of a loop did not settle")


def _attempt(
    tracer: Tracer, names: list[Carried], assumed: Assumed, body: Callable[[LoopFrame], None], draft: bool
) -> LoopFrame:
    """The loop traced on what is assumed."""
    assumed.met.clear()
    frame = LoopFrame(tracer.scope, {}, control=assumed.control, assumed=assumed)
    _begin(tracer, frame, names, assumed)
    tracer.loop_frames.append(frame)
    around, tracer.draft = tracer.draft, draft
    try:
        body(frame)
    finally:
        tracer.draft = around
    tracer.loop_frames.pop()
    return frame


def _begin(tracer: Tracer, frame: LoopFrame, names: list[Carried], assumed: Assumed) -> None:
    """Declare the carried locals and give them their values from before the loop."""
    builder, scope = tracer.builder, tracer.scope
    for carried in names:
        value = carried.initial.value
        carried.local = None
        if isinstance(value, Poison) or merge.number_type(value) is None:
            continue
        dtype = merge.number_type(value)
        assert dtype is not None
        initial = merge.lift(tracer, value, dtype)
        carried.facts = initial.facts.join(assumed.facts.get(carried.name, initial.facts)).at(Uniformity.GRID)
        carried.local = builder.local(carried.name, dtype, carried.facts, initial.loops)
        builder.emit(Declare(carried.local, loc=builder.loc))
        builder.emit(Assign(carried.local, builder.atom(initial), loc=builder.loc))
        scope.names[carried.name] = builder.scalar_of(carried.local)
    for carried in names:
        frame.carried[carried.name] = carried
        if not carried.starts_bound and carried.name in assumed.facts:
            carried.facts = assumed.facts[carried.name]
            carried.local = builder.local(carried.name, assumed.types[carried.name], carried.facts)
            builder.emit(Declare(carried.local, loc=builder.loc))


def leave(tracer: Tracer, frame: LoopFrame, edges: list[Edge]) -> None:
    """Control reaches the end of an iteration, a `continue` or a `break`: assign the carried locals."""
    scope = tracer.scope
    values: dict[str, Scalar] = {}
    pairs: list[tuple[Local, Scalar]] = []
    for name, carried in frame.carried.items():
        value = scope.names.get(name, Unbound(name, tracer.builder.loc))
        if isinstance(value, Unbound) and carried.starts_bound:
            raise TraceError(f"{name} may have its old or a new value here: it is assigned on some paths only")
        if isinstance(value, Poison | Unbound):
            continue
        here = Bound(value, scope.bound.get(name, tracer.builder.loc))
        if carried.local is None:
            _first_value(tracer, frame, carried, here)
            if carried.local is None:
                continue
        dtype = merge.meeting_type(tracer, name, [_as_bound(tracer, carried), here], tracer.builder.loc)
        scalar = merge.lift(tracer, value, dtype)
        if isinstance(value, Scalar):
            scalar = tracer.fresh(value)
        values[name] = scalar
        pairs.append((carried.local, scalar))
    merge.assign_all(tracer, pairs)
    edges.append(Edge(values, tracer.builder.control))


def _as_bound(tracer: Tracer, carried: Carried) -> Bound:
    assert carried.local is not None
    return Bound(tracer.builder.scalar_of(carried.local), carried.initial.loc)


def _first_value(tracer: Tracer, frame: LoopFrame, carried: Carried, here: Bound) -> None:
    """A name without a value before the loop, or with one that is no number: what an iteration leaves in it."""
    if carried.starts_bound and merge.same(carried.initial.value, here.value):
        return
    if carried.starts_bound:
        merge.meeting_type(tracer, carried.name, [carried.initial, here], tracer.builder.loc)
        return
    dtype = merge.number_type(here.value)
    if dtype is None:
        merge.meeting_type(tracer, carried.name, [here], tracer.builder.loc)
        return
    carried.facts = (
        Facts(0, 0, 0, Uniformity.STATIC) if dtype.is_int or dtype.is_bool else Facts(uniformity=Uniformity.STATIC)
    )
    carried.local = tracer.builder.local(carried.name, dtype, carried.facts)


def _check(
    frame: LoopFrame, names: list[Carried], assumed: dict[str, Facts], thresholds: Thresholds, attempt: int
) -> dict[str, Facts]:
    """Assumptions that an iteration broke, weakened."""
    weaker: dict[str, Facts] = {}
    for carried in names:
        if carried.local is None or carried.facts is None:
            continue
        seen = [
            edge.values[carried.name].facts for edge in [*frame.edges, *frame.breaks] if carried.name in edge.values
        ]
        new = carried.facts
        for facts in seen:
            new = new.join(facts)
        late = not carried.starts_bound and carried.name not in assumed
        if new == carried.facts and not late:
            continue
        limits = fact.of_type(carried.local.dtype)
        if attempt < MAX_ATTEMPTS:
            wider = widen(carried.local.name, carried.facts, new, thresholds)
            weaker[carried.name] = (_joined(seen) if late else wider).meet(limits)
        else:
            weaker[carried.name] = fact.of_type(carried.local.dtype, new.uniformity)
    return weaker


def _joined(seen: list[Facts]) -> Facts:
    result = seen[0]
    for facts in seen[1:]:
        result = result.join(facts)
    return result.at(Uniformity.GRID)


def _end(tracer: Tracer, frame: LoopFrame, names: list[Carried]) -> None:
    """After the loop: carried names are their locals; lanes that left at different times may differ."""
    builder, scope = tracer.builder, tracer.scope
    for carried in names:
        if carried.local is None:
            continue
        facts = carried.facts.at(frame.control) if carried.facts else Facts()
        builder.facts[carried.local.name] = facts
        scalar = builder.scalar_of(carried.local)
        exits = frame.breaks if frame.endless else [*frame.edges, *frame.breaks]
        sure = (frame.runs or frame.endless) and all(carried.name in edge.values for edge in exits)
        certain = carried.starts_bound or sure
        scope.names[carried.name] = scalar if certain else Unbound(carried.name, builder.loc)
        scope.bound[carried.name] = builder.loc
    builder.control = max(builder.control, tracer.returned)
    builder.refine(frame.after)
