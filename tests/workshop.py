"""Kernels that tests ran, built by nvcc for every target that has their instructions.

Each kernel is traced once for all of `TARGETS`, unless the trace asks which target it is for; a target that lacks an
instruction must refuse it by name. A kernel's text is built as a cubin of the package is for `MAIN`, and without
optimisation, which is most of the compiler's time, for the others: they are asked only whether they take it.

What one kernel becomes in one test function is first built for every target, and then, for other parameters, for `MAIN`
and one of the others, a different one each time: each row by itself is assembled for all of them in tests/isa. Texts
that differ in their numbers alone are alike: but for the first, each is built for one target, a different one each
time. `KERNELS_A_BUILD` kernels are one run of nvcc; what is left is built at the end of the session, and so is said
which kernels of which tests were refused.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import pytest

import warpjit
from warpjit import config, stages
from warpjit.cuda import toolchain
from warpjit.cuda.prelude import FUNCTIONS, prelude
from warpjit.isa.target import Target

MAIN = Target.parse("sm_90a")
TARGETS = (Target.parse("sm_80"), Target.parse("sm_89"), MAIN, Target.parse("sm_120"))
KERNELS_A_BUILD = 48
QUICKLY = ("-Ofc", "max")
_NUMBER = re.compile(r"\b(0x[0-9a-f]+|\d[\d.]*(e[-+]?\d+)?)[uUlLf]*\b")


@dataclass(frozen=True)
class Noted:
    """A kernel's text, and the test that ran it first."""

    test: str
    text: str
    entry: str


@dataclass
class Workshop:
    """Kernels that tests ran. Without a compiler they are only traced and refused."""

    compiler: bool
    waiting: dict[Target, list[Noted]] = field(default_factory=lambda: {target: [] for target in TARGETS})
    refused: list[str] = field(default_factory=list)
    _known: set[tuple[str, Target]] = field(default_factory=set)
    _seen: Counter[tuple[str, ...]] = field(default_factory=Counter)

    def note(self, test: str, kernel: warpjit.Kernel, args: tuple[Any, ...], constants: dict[str, Any]) -> None:
        specialization = kernel.specialization(args, constants)
        made: list[tuple[Any, Noted, list[Target]]] = []
        for target in TARGETS:
            program = _program(kernel, specialization, target)
            if program is None:
                continue
            for known, _, targets in made:
                # A text is made of these two.
                if known.kernel is program.kernel and known.plan == program.plan:
                    targets.append(target)
                    break
            else:
                emitted = kernel.built(specialization, target).emitted
                made.append((program, Noted(test, emitted.text, emitted.entry), [target]))
        for _, noted, targets in made:
            new = [target for target in targets if (noted.text, target) not in self._known]
            self._known.update((noted.text, target) for target in new)
            for target in self._chosen(noted, new) if new else ():
                self._wait(target, noted)

    def _chosen(self, noted: Noted, targets: list[Target]) -> list[Target]:
        """Those of `targets` that the text is built for."""
        alike, others = self._count(_NUMBER.sub("#", noted.text)), self._count(noted.test.split("[")[0], noted.entry)
        if alike:
            return [targets[alike % len(targets)]]
        rest = [target for target in targets if target != MAIN]
        return [MAIN, rest[others % len(rest)]] if others and rest != targets and rest else targets

    def _count(self, *kind: str) -> int:
        """How many of a kind there were."""
        self._seen[kind] += 1
        return self._seen[kind] - 1

    def _wait(self, target: Target, noted: Noted) -> None:
        self.waiting[target].append(noted)
        if len(self.waiting[target]) == KERNELS_A_BUILD:
            self._build(target)

    def _build(self, target: Target) -> None:
        chosen, self.waiting[target] = self.waiting[target], []
        if not chosen or not self.compiler:
            return
        try:
            _compile(chosen, target)
        except warpjit.CompileError:
            for noted in chosen:
                try:
                    _compile([noted], target)
                except warpjit.CompileError as refusal:
                    self.refused.append(f"{noted.test}: {noted.entry} for {target.name}: {refusal}\n{noted.text}")

    def finish(self) -> None:
        for target in TARGETS:
            self._build(target)
        assert not self.refused, "\n\n".join(self.refused)


def _compile(chosen: list[Noted], target: Target) -> None:
    kernels = (
        re.sub(rf"\b{noted.entry}\(", f"{noted.entry}_{index}(", noted.text) for index, noted in enumerate(chosen)
    )
    # Each text begins with the functions that it calls; the first prelude of a file hides all others.
    whole = prelude(FUNCTIONS) + "\n".join(kernels)
    toolchain.compile_cubin(whole, target, options=() if target == MAIN else QUICKLY, config=config.read())


def _program(kernel: warpjit.Kernel, specialization: Any, target: Target) -> Any:
    """The program for a target; None where it must be, and is, refused."""
    try:
        return kernel.program(specialization, target)
    except warpjit.TraceError as refusal:
        assert target.name in str(refusal), refusal
        return None
    except warpjit.TargetError as refusal:
        assert "shared memory" in str(refusal), refusal
        return None


class _Watched:
    """Settings that know whether their target was asked for."""

    def __init__(self, settings: Any) -> None:
        self.settings, self.asked = settings, False

    def __getattr__(self, name: str) -> Any:
        self.asked |= name == "target"
        return getattr(self.settings, name)


@contextmanager
def one_trace() -> Iterator[None]:
    """Kernels are traced and pruned once for all targets, those that do not ask for theirs."""
    traces: dict[Any, Any] = {}
    pruned: dict[int, tuple[Any, Any]] = {}
    trace: Callable[..., Any] = stages.trace
    prune: Callable[..., Any] = stages.prune

    def traced_once(source: Any, function: Any, specialization: Any, settings: Any) -> Any:
        key = (function, specialization, *(value for name, value in vars(settings).items() if name != "target"))
        if key not in traces:
            watched = _Watched(settings)
            made = trace(source, function, specialization, watched)
            if watched.asked:
                return made
            traces[key] = made
        return traces[key]

    def pruned_once(kernel: Any) -> Any:
        if id(kernel) not in pruned:
            pruned[id(kernel)] = (kernel, prune(kernel))
        return pruned[id(kernel)][1]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(stages, "trace", traced_once)
        patch.setattr(stages, "prune", pruned_once)
        yield
