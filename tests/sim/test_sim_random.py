"""Random structured programs against one thread at a time in plain Python, for several seeds.

A program is a nested list of statements over two variables; `Writer` makes IR of it, `trace` runs one thread.
"""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest
from sim_kernels import Hand

from warpjit.ir.nodes import Local

THREADS = 96
Program = list[tuple[Any, ...]]


def generate(rng: random.Random, depth: int, in_loop: bool, barriers: bool) -> Program:
    """Statements; barriers stand only where every thread comes by."""
    body: Program = []
    for _ in range(rng.randint(1, 4)):
        kind = rng.choice(["add", "mix", "if", "for", "leave", "sync"] if depth else ["add", "mix", "leave"])
        condition = (rng.choice(["thread", "x"]), rng.randint(2, 7), rng.choice([32, 1]))
        if kind in ("add", "mix"):
            body.append((kind, rng.randint(1, 9)))
        elif kind == "if":
            arms = [generate(rng, depth - 1, in_loop, False) for _ in range(2)]
            body.append(("if", condition, arms[0], arms[1] if rng.random() < 0.6 else []))
        elif kind == "for":
            varying = rng.random() < 0.5
            body.append(("for", rng.randint(1, 4), varying, generate(rng, depth - 1, True, barriers and not varying)))
        elif kind == "sync" and barriers:
            body.append(("sync",))
        elif kind == "leave" and rng.random() < 0.5 and not barriers:
            body.append(("if", condition, [(rng.choice(["break", "continue"]) if in_loop else "return",)], []))
    return body or [("add", 1)]


# ---- as IR --------------------------------------------------------------------------------------------


class Writer:
    def __init__(self, program: Program):
        self.h = Hand(block=(THREADS, 1, 1))
        out = self.h.tensor("Out", (2, THREADS))
        self.thread = self.h.thread()
        self.warp = self.h.arith("floordiv", self.thread, 32)
        self.x, self.y = self.h.variable("x", self.thread), self.h.variable("y", 0)
        self.loops = 0
        # One turn of a loop, so that a return may become a break and the results are always stored.
        with self.h.for_("once", 1):
            self.block(program)
        for row, local in enumerate((self.x, self.y)):
            self.h.store(out, local, row, self.thread)

    def holds(self, condition: tuple[str, int, int]) -> Local:
        what, modulus, grain = condition
        value = self.x if what == "x" else self.thread
        if grain == 32:
            value = self.warp
        return self.h.compare("eq", self.h.arith("mod", value, modulus), 1)

    def block(self, body: Program) -> None:
        for statement in body:
            getattr(self, "write_" + statement[0])(*statement[1:])

    def write_add(self, n: int) -> None:
        self.h.assign(self.x, self.h.arith("add", self.x, n))

    def write_mix(self, n: int) -> None:
        mixed = self.h.arith("add", self.h.arith("mul", self.y, 3), self.x)
        self.h.assign(self.y, self.h.arith("mod", self.h.arith("add", mixed, n), 10007))

    def write_if(self, condition: tuple[str, int, int], then: Program, orelse: Program) -> None:
        with self.h.if_(self.holds(condition)):
            self.block(then)
        if orelse:
            with self.h.else_():
                self.block(orelse)

    def write_for(self, count: int, varying: bool, body: Program) -> None:
        self.loops += 1
        stop = self.h.arith("mod", self.h.arith("add", self.thread, count), 5) if varying else count
        with self.h.for_(f"i{self.loops}", stop):
            self.block(body)

    def write_sync(self) -> None:
        self.h.sync()

    def write_break(self) -> None:
        self.h.break_()

    write_return = write_break

    def write_continue(self) -> None:
        self.h.continue_()


# ---- one thread in Python -----------------------------------------------------------------------------


class Left(Exception):
    """A break, continue or return on its way out; `how` says which."""

    def __init__(self, how: str):
        super().__init__(how)
        self.how = how


def trace(program: Program, thread: int) -> tuple[int, int]:
    held = {"x": thread, "y": 0}

    def block(body: Program) -> None:
        for kind, *rest in body:
            if kind == "add":
                held["x"] += rest[0]
            elif kind == "mix":
                held["y"] = (held["y"] * 3 + held["x"] + rest[0]) % 10007
            elif kind == "if":
                (what, modulus, grain), then, orelse = rest
                value = thread // 32 if grain == 32 else held["x"] if what == "x" else thread
                block(then if value % modulus == 1 else orelse)
            elif kind == "for":
                count, varying, inner = rest
                loop((thread + count) % 5 if varying else count, inner)
            elif kind in ("break", "continue", "return"):
                raise Left(kind)

    def loop(count: int, inner: Program) -> None:
        for _ in range(count):
            try:
                block(inner)
            except Left as left:
                if left.how == "return":
                    raise
                if left.how == "break":
                    break

    try:
        block(program)
    except Left as left:
        assert left.how == "return"
    return held["x"], held["y"]


@pytest.mark.parametrize("barriers", [False, True])
@pytest.mark.parametrize("number", range(40))
def test_a_random_program(number, barriers):
    program = generate(random.Random(2 * number + barriers), 4, False, barriers)
    expected = np.array([trace(program, thread) for thread in range(THREADS)]).T
    h = Writer(program).h
    for seed in (0, 1, -2):
        result = np.zeros((2, THREADS), np.int32)
        h.run(result, seed=seed)
        np.testing.assert_array_equal(result, expected, err_msg=repr(program))
