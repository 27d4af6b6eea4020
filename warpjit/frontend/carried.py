"""What a device loop carries from iteration to iteration.

Names that an iteration may read before it assigns them, or that are read after the loop, live in typed locals which
each iteration assigns where it ends. So do the parts of tuples and frozen dataclasses, and the attributes of objects,
that an iteration is seen to change. What is assumed of them is first what held before the loop; where an iteration
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
from warpjit.frontend.liveness import returns
from warpjit.frontend.merge import RESULT, RETURNED, Bound
from warpjit.frontend.objects import Made
from warpjit.frontend.structure import Pair, mapped, pairs
from warpjit.frontend.tracer import Edge, LoopFrame, Reject, Thresholds, Tracer, widen
from warpjit.frontend.values import Poison, Scalar, Unbound, Value, is_kernel_value
from warpjit.ir import facts as fact
from warpjit.ir.dtypes import DType
from warpjit.ir.facts import Facts, Uniformity
from warpjit.ir.nodes import Assign, Declare, Local

MAX_ATTEMPTS = 4


@dataclass
class Carried:
    """One number that lives across iterations: its local and what is assumed of it."""

    key: str
    initial: Bound
    local: Local
    facts: Facts

    @property
    def starts_bound(self) -> bool:
        return not isinstance(self.initial.value, Unbound)


@dataclass
class Holder:
    """What an iteration may change: a name, or an attribute of an object that was made before the loop.

    key      its name; of an attribute the object's number and the attribute, since labels may be equal
    eager    its number is carried whatever an iteration does: of a name that is assigned in the loop
    start    its value where each iteration begins, in this attempt
    sample   without a value before the loop: what the first path of this attempt left in it
    """

    key: str
    label: str
    initial: Bound
    read: Callable[[], Bound]
    write: Callable[[Value], None]
    eager: bool
    start: Value = None
    sample: Bound | None = None

    @property
    def starts_bound(self) -> bool:
        return not isinstance(self.initial.value, Unbound)

    def shown(self, key: str) -> str:
        """A part's key as messages show it."""
        return self.label + key[len(self.key) :]


def _holders(tracer: Tracer, node: ast.For | ast.While) -> list[Holder]:
    scope = tracer.scope
    flow = scope.liveness
    assigned = flow.assigned([node])
    wanted = (assigned & flow.live_after(node)) | (assigned & flow.exposed(node) & scope.names.keys())
    names = sorted(wanted)
    if scope.inlined and returns([node]):
        names += [RESULT, RETURNED]
    holders = [_name(tracer, name) for name in names]
    return holders + [_attribute(tracer, made, name) for made in tracer.objects for name in made.fields]


def _name(tracer: Tracer, name: str) -> Holder:
    scope = tracer.scope

    def read() -> Bound:
        value = scope.names.get(name, Unbound(name, tracer.builder.loc))
        return Bound(value, scope.bound.get(name, tracer.builder.loc))

    def write(value: Value) -> None:
        scope.names[name] = value

    initial = read()
    if isinstance(initial.value, Scalar):
        initial = Bound(tracer.fresh(initial.value), initial.loc)
    return Holder(name, name, initial, read, write, eager=True)


def _attribute(tracer: Tracer, made: Made, name: str) -> Holder:
    def read() -> Bound:
        return Bound(made.fields.get(name, Unbound(name, tracer.builder.loc)), made.bound.get(name, made.loc))

    def write(value: Value) -> None:
        made.set(name, value)

    return Holder(f"{made.serial}.{name}", made.label(name), read(), read, write, eager=False)


@dataclass
class Assumed:
    """What a loop's attempts have come to: facts and types of its carried numbers, which parts change, who runs it,
    and the same of the loops in it, by how they are met, so that an attempt begins where the one before it ended.

    samples   values that names without one before the loop get in it
    """

    facts: dict[str, Facts] = field(default_factory=dict)
    types: dict[str, DType] = field(default_factory=dict)
    varying: set[str] = field(default_factory=set)
    samples: dict[str, Value] = field(default_factory=dict)
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

    def learn(self, frame: LoopFrame, weaker: dict[str, Facts]) -> None:
        """What an attempt that broke an assumption has shown."""
        self.types.update((carried.key, carried.local.dtype) for carried in frame.carried.values())
        self.samples.update((each.key, each.sample.value) for each in frame.holders if each.sample is not None)
        self.facts.update(weaker)
        self.varying |= frame.varying


def settle(tracer: Tracer, node: ast.For | ast.While, body: Callable[[LoopFrame], None]) -> None:
    """Trace the loop until what was assumed of what it carries holds: first in drafts, then in full."""
    outer = tracer.assumed
    assumed = Assumed() if outer is None else outer.of(node)
    assumed.control = max(assumed.control, tracer.builder.control)
    holders = _holders(tracer, node)
    state = tracer.save()
    draft, broken, limit = tracer.draft or bool(holders), 0, 16
    while broken < limit:
        sketched = tracer.sketched
        frame = _attempt(tracer, holders, assumed, body, draft)
        limit = max(limit, 16 + 8 * (len(frame.carried) + len(frame.varying)))
        weaker = _check(frame, assumed.facts, tracer.thresholds, broken)
        wider = frame.leaves if frame.leaves > frame.control else assumed.control
        if weaker or frame.varying - assumed.varying or wider != assumed.control:
            broken += 1
            assumed.learn(frame, weaker)
            assumed.control = wider
        elif draft == tracer.draft or tracer.sketched == sketched:
            _end(tracer, frame)
            return
        else:  # it holds, but something was left out
            draft = tracer.draft
        loc = tracer.builder.loc
        tracer.restore(state)
        tracer.builder.loc = loc
    raise AssertionError("the facts of a loop did not settle")


def _attempt(
    tracer: Tracer, holders: list[Holder], assumed: Assumed, body: Callable[[LoopFrame], None], draft: bool
) -> LoopFrame:
    """The loop traced on what is assumed."""
    assumed.met.clear()
    frame = LoopFrame(tracer.scope, {}, holders, control=assumed.control, assumed=assumed)
    _begin(tracer, frame, assumed)
    tracer.loop_frames.append(frame)
    around, tracer.draft = tracer.draft, draft
    try:
        body(frame)
    finally:
        tracer.draft = around
    tracer.loop_frames.pop()
    return frame


def _begin(tracer: Tracer, frame: LoopFrame, assumed: Assumed) -> None:
    """Declare the carried locals and give them their values from before the loop."""
    builder = tracer.builder
    for holder in frame.holders:
        holder.start, holder.sample = holder.initial.value, None
        if isinstance(holder.start, Poison | Unbound):
            continue

        def carry(key: str, leaf: Value, holder: Holder = holder) -> Value:
            dtype = merge.number_type(leaf)
            if dtype is None or not (key in assumed.varying or (holder.eager and key == holder.key)):
                return leaf
            initial = merge.lift(tracer, leaf, dtype)
            facts = initial.facts.join(assumed.facts.get(key, initial.facts)).at(Uniformity.GRID)
            local = builder.local(merge.hint(holder.shown(key)), dtype, facts, initial.loops)
            builder.emit(Declare(local, loc=builder.loc))
            builder.emit(Assign(local, builder.atom(initial), loc=builder.loc))
            frame.carried[key] = Carried(key, holder.initial, local, facts)
            return builder.scalar_of(local)

        holder.start = mapped(holder.key, holder.start, carry)
        if holder.start is not holder.initial.value:
            holder.write(holder.start)
    for holder in frame.holders:
        if holder.starts_bound or holder.key not in assumed.samples:
            continue
        for part in pairs(holder.key, assumed.samples[holder.key], assumed.samples[holder.key]):
            if part.key in assumed.facts:
                carried = _late(tracer, frame, holder, part.key, assumed.types[part.key], assumed.facts[part.key])
                builder.emit(Declare(carried.local, loc=builder.loc))


def _late(tracer: Tracer, frame: LoopFrame, holder: Holder, key: str, dtype: DType, facts: Facts) -> Carried:
    """A number of a name that has no value before the loop."""
    local = tracer.builder.local(merge.hint(holder.shown(key)), dtype, facts)
    carried = frame.carried[key] = Carried(key, holder.initial, local, facts)
    return carried


def leave(tracer: Tracer, frame: LoopFrame, edges: list[Edge]) -> None:
    """Control reaches the end of an iteration, a `continue` or a `break`: assign the carried locals."""
    values: dict[str, Scalar] = {}
    moves: list[tuple[Local, Scalar]] = []
    for holder in frame.holders:
        here = holder.read()
        if isinstance(here.value, Unbound) and holder.starts_bound:
            raise TraceError(f"{holder.label} may have its old or a new value here: it is assigned on some paths only")
        if isinstance(here.value, Poison | Unbound) or isinstance(holder.start, Poison):
            continue
        if not holder.starts_bound and holder.sample is None:
            holder.sample = here
        before = holder.start if holder.sample is None else holder.sample.value
        for part in pairs(holder.key, before, here.value):
            carried = _changed(tracer, frame, holder, part, here)
            if carried is None:
                continue
            dtype = merge.meeting_type(
                tracer,
                holder.shown(part.key),
                [_as_bound(tracer, carried, holder), Bound(part.b, here.loc)],
                tracer.builder.loc,
            )
            scalar = tracer.fresh(part.b) if isinstance(part.b, Scalar) else merge.lift(tracer, part.b, dtype)
            values[part.key] = scalar
            moves.append((carried.local, scalar))
    _check_attributes(tracer, frame)
    merge.assign_all(tracer, moves)
    edges.append(Edge(values, tracer.builder.control))


def _changed(tracer: Tracer, frame: LoopFrame, holder: Holder, part: Pair, here: Bound) -> Carried | None:
    """The carried number that a part's new value goes to; None for what stays the same.

    A part that changes and is not carried yet is from the next attempt on. What is no number cannot change.
    """
    carried: Carried | None = frame.carried.get(part.key)
    if carried is not None or (holder.starts_bound and merge.same(part.a, part.b)):
        return carried
    dtype, at, label = merge.number_type(part.b), tracer.builder.loc, holder.shown(part.key)
    if holder.starts_bound:
        before = holder.initial.loc
        merge.meeting_type(tracer, label, [Bound(part.a, before), Bound(part.b, here.loc)], at)
        frame.varying.add(part.key)
        return None
    if dtype is None:
        constant = holder.key == RESULT and not is_kernel_value(part.b)
        if not constant or not merge.same(part.a, part.b):
            others = [] if part.a is part.b or holder.sample is None else [Bound(part.a, holder.sample.loc)]
            merge.meeting_type(tracer, label, [*others, Bound(part.b, here.loc)], at)
        return None
    if merge.number_type(part.a) is None:
        assert holder.sample is not None
        merge.meeting_type(tracer, label, [Bound(part.a, holder.sample.loc), Bound(part.b, here.loc)], at)
    whole = dtype.is_int or dtype.is_bool
    facts = Facts(0, 0, 0, Uniformity.STATIC) if whole else Facts(uniformity=Uniformity.STATIC)
    return _late(tracer, frame, holder, part.key, dtype, facts)


def _check_attributes(tracer: Tracer, frame: LoopFrame) -> None:
    """Reject attributes that an iteration adds to an object from before the loop."""
    known = {holder.key for holder in frame.holders}
    serials = {holder.key.partition(".")[0] for holder in frame.holders if not holder.eager}
    for made in tracer.objects:
        for name in made.fields:
            if str(made.serial) in serials and f"{made.serial}.{name}" not in known:
                raise Reject(made.late(name, made.bound.get(name, made.loc)))


def _as_bound(tracer: Tracer, carried: Carried, holder: Holder) -> Bound:
    return Bound(tracer.builder.scalar_of(carried.local), (holder.sample or holder.initial).loc)


def _check(frame: LoopFrame, assumed: dict[str, Facts], thresholds: Thresholds, attempt: int) -> dict[str, Facts]:
    """Assumptions that an iteration broke, weakened."""
    weaker: dict[str, Facts] = {}
    for carried in frame.carried.values():
        seen = [edge.values[carried.key].facts for edge in [*frame.edges, *frame.breaks] if carried.key in edge.values]
        new = carried.facts
        for facts in seen:
            new = new.join(facts)
        late = not carried.starts_bound and carried.key not in assumed
        if new == carried.facts and not late:
            continue
        limits = fact.of_type(carried.local.dtype)
        if attempt < MAX_ATTEMPTS:
            wider = widen(carried.local.name, carried.facts, new, thresholds)
            weaker[carried.key] = (_joined(seen) if late else wider).meet(limits)
        else:
            weaker[carried.key] = fact.of_type(carried.local.dtype, new.uniformity)
    return weaker


def _joined(seen: list[Facts]) -> Facts:
    result = seen[0]
    for facts in seen[1:]:
        result = result.join(facts)
    return result.at(Uniformity.GRID)


def _end(tracer: Tracer, frame: LoopFrame) -> None:
    """After the loop: carried numbers are their locals; lanes that left at different times may differ."""
    builder, scope = tracer.builder, tracer.scope
    for carried in frame.carried.values():
        builder.facts[carried.local.name] = carried.facts.at(frame.control)
    exits = frame.breaks if frame.endless else [*frame.edges, *frame.breaks]

    def ended(key: str, leaf: Value) -> Value:
        carried = frame.carried.get(key)
        return leaf if carried is None else builder.scalar_of(carried.local)

    for holder in frame.holders:
        if isinstance(holder.start, Poison) or (holder.sample is None and not holder.starts_bound):
            continue
        if holder.sample is None:
            value = mapped(holder.key, holder.start, ended)
            if value is not holder.start:
                scope.bound.update({holder.key: builder.loc} if holder.eager else {})
            holder.write(value)
            continue
        keys = [part.key for part in pairs(holder.key, holder.sample.value, holder.sample.value)]
        sure = (frame.runs or frame.endless) and all(
            key in edge.values for edge in exits for key in keys if key in frame.carried
        )
        certain = sure or holder.key == RESULT  # which is read where it is known to have a value
        value = mapped(holder.key, holder.sample.value, ended)
        holder.write(value if certain else Unbound(holder.key, builder.loc))
        scope.bound[holder.key] = builder.loc
    builder.control = max(builder.control, tracer.returned)
    builder.refine(frame.after)
