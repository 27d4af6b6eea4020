"""Bundles and objects in kernels: frozen dataclasses, named tuples, and plain classes whose attributes change."""

from __future__ import annotations

import copy
import dataclasses
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import torch
from language_cases import findings, ints, kinds, label, reported

import warpjit
from warpjit import T

FEW = torch.empty(64, dtype=torch.int32)


@dataclass(frozen=True)
class Pipe:
    """A pipeline's state: which buffer, in which phase; `stages` stays static."""

    stages: int
    buffers: Any
    stage: Any = 0
    phase: Any = 0

    def advanced(self):
        """The state of the next step."""
        last = self.stage == self.stages - 1
        return replace(self, stage=0 if last else self.stage + 1, phase=self.phase ^ 1 if last else self.phase)

    @property
    def buffer(self):
        return self.buffers.sub[self.stage]

    def __getitem__(self, lane):
        return self.buffers[self.stage, lane]

    def __call__(self, lane, value):
        self.buffers[self.stage, lane] = value


class Walker:
    """Tiles in the order in which a CTA visits them; an object whose attributes change."""

    STEP = 3

    def __init__(self, start, count, *, wide=False):
        self.tile = start
        self.count = count
        self.seen: list[Any] = []
        self.step = self.STEP * (2 if wide else 1)

    def advance(self, times=1):
        for _ in T.unroll(times):
            self.tile += self.step
        return self

    @property
    def done(self):
        return self.tile >= self.count

    @staticmethod
    def doubled(value):
        return value * 2

    @classmethod
    def of(cls, count):
        return cls(T.cuda.lane_id() % 4, count)


class Named(Walker):
    """Inherits, and has a property that is assigned."""

    def __init__(self, start, count, offset):
        Walker.__init__(self, start, count)
        self.offset = offset

    @property
    def place(self):
        return self.tile + self.offset

    @place.setter
    def place(self, value):
        self.tile = value - self.offset

    def advance(self, times=1):
        super().advance(times)
        self.offset = self.offset + 1


@dataclass
class Counter:
    """A dataclass that is not frozen."""

    total: Any = 0
    items: list[Any] = field(default_factory=list)

    def __post_init__(self):
        self.largest = self.total

    def add(self, value):
        self.total += value
        if value > self.largest:
            self.largest = value


class Pair(NamedTuple):
    """A named tuple with a method."""

    first: Any
    second: Any

    def swapped(self):
        return self._replace(first=self.second, second=self.first)


def test_a_frozen_dataclass_is_carried_by_its_numbers(device, run):
    @warpjit.jit
    def kernel(n: T.int32, out):
        T.device_entry(launch=T.cuda.LaunchConfig(grid=1, block=32))
        lane = T.cuda.lane_id()
        s = T.alloc_shared((3, 32), "int32")
        pipe = Pipe(3, s)
        for k in range(3):
            s[k, lane] = 0
        for k in range(n):
            pipe(lane, pipe[lane] + k)
            pipe.buffer[lane] += 100
            pipe = pipe.advanced()
            if k % 4 == 3:
                pipe = replace(pipe, phase=pipe.phase + 10)
        static = [None] * pipe.stages
        out[0, lane] = pipe.stage + 10 * pipe.phase + 1000 * len(static)
        for k in range(3):
            out[1 + k, lane] = s[k, lane]

    out = ints(device, 4, 32)
    run(kernel, 10, out)
    stage = phase = 0
    rows = [0, 0, 0]
    for k in range(10):
        rows[stage] += k + 100
        stage, phase = (0, phase ^ 1) if stage == 2 else (stage + 1, phase)
        phase += 10 * (k % 4 == 3)
    assert out.T.tolist() == [[stage + 10 * phase + 3000, *rows]] * 32
    assert kinds(kernel, 10, out)[-1] == "For"


def test_objects_whose_attributes_change(device, run):
    @warpjit.jit
    def kernel(n: T.int32, out):
        T.device_entry(launch=T.cuda.LaunchConfig(grid=1, block=32))
        lane = T.cuda.lane_id()
        walker = Walker(lane, n)
        while not walker.done:
            walker.advance()
        out[0, lane] = walker.tile + walker.doubled(walker.step)
        other = Walker.of(n)
        alias = other
        if lane % 2 == 0:
            alias.advance(2).advance()
        else:
            other.tile = -1
        out[1, lane] = other.tile
        named = Named(lane, n, 5)
        for k in T.range(4):
            named.advance()
            if k == lane:
                continue
            named.place = named.place + 100
        out[2, lane] = named.tile * 100 + named.offset + isinstance(named, Walker)
        counter = Counter(lane)
        twin = copy.copy(counter)
        for k in range(n):
            counter.add(k * (lane % 3))
            counter.items = counter.items
        out[3, lane] = counter.total * 100 + counter.largest + twin.total - lane
        pair = Pair(lane, n)
        for _ in range(3):
            pair = pair.swapped()
        out[4, lane] = pair.first * 100 + pair.second
        walkers = [Walker(k, n) for k in range(3)]
        for k in range(n):
            for each in walkers:
                if k % 2:
                    each.tile += each.step * k
        out[5, lane] = sum(each.tile for each in walkers)

    n = 11
    out = ints(device, 6, 32)
    run(kernel, n, out)

    def expected(lane):
        tile = lane
        while tile < n:
            tile += 3
        named, offset = lane, 5
        for k in range(4):
            named, offset = named + 3, offset + 1
            named += 100 * (k != lane)
        values = [k * (lane % 3) for k in range(n)]
        moved = sum(3 * k for k in range(n) if k % 2)
        return [
            tile + 6, lane % 4 + 9 if lane % 2 == 0 else -1, named * 100 + offset + 1,
            (lane + sum(values)) * 100 + max(lane, *values), n * 100 + lane, 3 + 3 * moved,
        ]  # fmt: skip

    assert out.T.tolist() == [expected(lane) for lane in range(32)]


def test_what_stays_the_same_stays_static(device, run):
    """An attribute that a loop does not change may index registers; a tensor may stand in a bundle that is carried."""

    @warpjit.jit
    def kernel(n: T.int32, out):
        T.device_entry(launch=T.cuda.LaunchConfig(grid=1, block=1))
        r = T.alloc_local((4,), "int32")
        state = (Pipe(2, r, stage=1), Walker(0, 4), 0)
        for k in range(4):
            r[k] = 10 * k
        for _ in range(n):
            pipe, walker, total = state
            total += pipe.buffers[pipe.stage] + pipe.buffers[walker.step]
            state = (pipe, walker, total)
            walker.tile += 1
        out[0] = state[2]
        out[1] = state[1].tile

    out = ints(device, 2)
    run(kernel, 5, out)
    assert out.tolist() == [200, 5]


class Sizes:
    """An object of static values, with operators that Python runs."""

    def __init__(self, *sizes):
        self.sizes = list(sizes)
        self.used = 0

    def __len__(self):
        return len(self.sizes)

    def __eq__(self, other):
        return isinstance(other, Sizes) and self.sizes == other.sizes

    def __add__(self, other):
        return Sizes(*self.sizes, *other.sizes)

    __hash__ = None

    def use(self, value):
        self.sizes.append(value)
        self.used += 1


class Restricted:
    """A class whose objects a kernel does not make itself."""

    __slots__ = ("size",)

    def __init__(self, size):
        self.size = size


def described(sizes):
    """Python calls it: it holds what a kernel cannot."""
    try:
        return ", ".join(str(size) for size in sizes.sizes)
    finally:
        sizes.described = True


def test_objects_of_static_values_are_python_s(device, run):
    @warpjit.jit
    def kernel(n: T.int32, out):
        T.device_entry(launch=T.cuda.LaunchConfig(grid=1, block=32))
        lane = T.cuda.lane_id()
        sizes, more = Sizes(1, 2), Sizes(3)
        both = sizes + more
        out[0, lane] = len(both) + 10 * (both == Sizes(1, 2, 3)) + 100 * len(described(both))
        out[1, lane] = Restricted(4).size + more.sizes[0]
        more.use(lane)
        more.use(n)
        out[2, lane] = sum(more.sizes) + 100 * more.used
        for k in range(n):
            if k % 2 == lane % 2:
                sizes.used += k
        out[3, lane] = sizes.used

    out = ints(device, 4, 32)
    for n in (4, 5):
        run(kernel, n, out)
    assert out.T.tolist() == [
        [13 + 100 * len("1, 2, 3"), 7, 3 + lane + 5 + 200, sum(range(lane % 2, 5, 2))] for lane in range(32)
    ]
    assert all(len(variants) == 1 for variants in kernel._programs.values())  # nothing made here is a capture


def test_objects_that_are_refused():
    class Slotted:
        __slots__ = ("a",)

        def __init__(self, a):
            self.a = a

    class Outside:
        count = 1

    outside = Outside()

    @warpjit.jit
    def kernel(n: T.int32, x, out):
        T.device_entry(launch=T.cuda.LaunchConfig(grid=1, block=32))
        lane = T.cuda.lane_id()
        pipe = Pipe(3, x)
        pipe.stage = 1  #: frozen
        outside.count = 2  #: outside
        x.count = 2  #: tensor
        Slotted(lane)  #: slots
        Walker(lane)  #: missing
        Pipe(lane)  #: field
        out[0] = pipe.nothing  #: attribute
        pipe + 1  #: sum
        out[0] = pipe == pipe  #: equal
        walker = Walker(lane, n)  #: made
        for _ in range(n):
            walker.late = 1  #: late
        second = Walker(lane, n)  #: second
        second.tile = n  #: whole
        if lane > 3:  #: branch
            second.tile = 0.5 * n  #: real
        third = Walker(x, n)
        for _ in range(n):  #: loop
            third.tile = out  #: other
        out[0] = second.advance().tile if lane else 0  #: expression
        dataclasses.replace(3, stage=lane)  #: replaced

    got = findings(kernel, 3, FEW, FEW)
    names = [label(finding.loc) for finding in got]
    assert names == [
        "frozen", "outside", "tensor", "slots", "missing", "field", "attribute", "sum", "equal", "late", "branch",
        "loop", "expression", "replaced",
    ]  # fmt: skip
    sentences = dict(zip(names, (finding.message for finding in got), strict=True))
    assert sentences["frozen"] == (
        "Pipe is frozen, so stage cannot be assigned: make a new one, x = dataclasses.replace(x, stage=...)"
    )
    assert sentences["outside"] == (
        "count of Outside cannot be assigned: only attributes of objects that the kernel made can"
    )
    assert "Slotted has __slots__" in sentences["slots"]
    assert sentences["attribute"] == "AttributeError: 'Pipe' object has no attribute 'nothing'"
    assert sentences["late"].startswith("Walker.late is first assigned inside of a loop or branch of the device")
    assert sentences["branch"] == "Walker.tile would change its type from float32 to int32: convert one of them"
    notes = {name: [label(note.loc) for note in finding.notes] for name, finding in zip(names, got, strict=True)}
    assert notes["branch"] == ["real", "whole"] and notes["late"] == ["made"] and notes["loop"][1] == "other"
    assert "may not be evaluated: write an if statement" in sentences["expression"]


def test_a_loop_may_not_change_the_class_of_a_name():
    @warpjit.jit
    def kernel(n: T.int32, x, out):
        T.device_entry(launch=T.cuda.LaunchConfig(grid=1, block=32))
        state = Pair(n, 0)  #: pair
        for _ in range(n):  #: loop
            state = Pipe(3, x)  #: pipe
        walker = Walker(n, 0)  #: walker
        if n > 3:  #: branch
            walker = Walker(n, 0)  #: another
        out[0] = walker.tile + state.stage

    got = [(label(f.loc), f.message, [label(n.loc) for n in f.notes]) for f in findings(kernel, 3, FEW, FEW)]
    assert got == [
        ("loop", "state would change from a Pair to a Pipe", ["pair", "pipe"]),
        (
            "branch",
            "walker would be carried by the control flow, but a Walker cannot be: only numbers can",
            ["another", "walker"],
        ),
    ]
    assert reported(kernel, 3, FEW, FEW)[0][0] == "loop"
