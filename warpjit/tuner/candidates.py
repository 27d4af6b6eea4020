"""Candidates for one call: traced one after the other, compiled beside each other, and what became of each.

What cannot run is known as early as can be: too much shared memory from the plan, before any compiler.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from warpjit.build import Built
from warpjit.cuda.driver import FATAL, OUT_OF_RESOURCES, DriverError
from warpjit.cuda.toolchain import NoCompilerError
from warpjit.errors import ArgumentError, CompileError, LaunchError, SimulationError, TargetError, WarpjitError
from warpjit.frontend.kinds import ConstantKind, Kind, Specialization, TupleKind
from warpjit.frontend.specialize import specialize
from warpjit.isa.target import Target
from warpjit.kernel import Kernel
from warpjit.parallel import Job, run_all
from warpjit.passes.effects import Effects, effects
from warpjit.progress import Bar
from warpjit.tuner.config import Config
from warpjit.tuner.record import Entry, State
from warpjit.tuner.settings import Settings


@dataclass(frozen=True)
class Candidate:
    """A configuration of a call: the kernel that it needs, and its constants besides the call's arguments.

    args       one for each positional parameter of the kernel; the same objects for all candidates
    constants  the others, by name
    """

    config: Config
    kernel: Kernel
    args: tuple[Any, ...]
    constants: Mapping[str, Any]


@dataclass(frozen=True)
class Prepared:
    """A candidate whose program is known."""

    candidate: Candidate
    specialization: Specialization
    runtime: Sequence[Any]
    built: Built

    @property
    def config(self) -> Config:
        return self.candidate.config

    @property
    def effects(self) -> Effects:
        return effects(self.built.program.kernel)

    @property
    def code(self) -> str:
        return self.built.code

    def failed(self, state: State, reason: str) -> Entry:
        return Entry(self.config.text, state, reason=reason, code=self.code)

    def on(self, runtime: Sequence[Any]) -> tuple[Any, ...]:
        """The positional arguments with these in the places of the runtime ones."""
        rest = iter(runtime)
        kinds = self.specialization.parameters[: len(self.candidate.args)]
        return tuple(_replaced(kind, value, rest) for kind, value in zip(kinds, self.candidate.args, strict=True))


def _replaced(kind: Kind, value: Any, rest: Iterator[Any]) -> Any:
    if isinstance(kind, ConstantKind):
        return value
    if isinstance(kind, TupleKind):
        return tuple(_replaced(item, part, rest) for item, part in zip(kind.items, value, strict=True))
    return next(rest)


def code_of(candidate: Candidate, target: Target) -> str:
    """A digest of the candidate's code: whatever changes what runs changes it. Raises as the call would."""
    kernel = candidate.kernel
    return kernel.code(specialize(kernel.signature, candidate.args, candidate.constants)[0], target)


def prepared(candidate: Candidate, target: Target) -> Prepared:
    """Raises as the call would: ArgumentError, TraceError, TargetError."""
    kernel = candidate.kernel
    specialization, runtime = specialize(kernel.signature, candidate.args, candidate.constants)
    return Prepared(candidate, specialization, runtime, kernel.built(specialization, target))


def compiled(
    candidate: Callable[[Config], Candidate],
    configs: Sequence[Config],
    target: Target,
    settings: Settings,
    title: str,
    *,
    build: bool = True,
) -> tuple[list[Prepared], list[Entry]]:
    """Those that are built and within the limits, and what became of the others.

    Without `build` nothing is compiled: for the simulator. Raises ArgumentError if the arguments fit no candidate, and
    CompileError where there is no compiler.
    """
    ready: list[Prepared] = []
    failed: list[Entry] = []
    refused: list[ArgumentError] = []

    def jobs() -> Iterator[Job]:
        for config in configs:
            try:
                each = prepared(candidate(config), target)
            except WarpjitError as error:
                refused.extend([error] if isinstance(error, ArgumentError) else [])
                failed.append(Entry(config.text, state_of(error), reason=sentence(error)))
                bar.step(config.text)
                continue
            plan = each.built.program.plan
            reason = settings.limits.before(plan.shared_bytes + target.reserved_shared)
            if reason:
                failed.append(each.failed(State.PRUNED, reason))
                bar.step(config.text)
                continue
            ready.append(each)
            if build:
                yield Job(config.text, lambda built=each.built: built.cubin)  # type: ignore[misc]

    with Bar(f"{title}: compiling", len(configs), settings.progress) as bar:
        outcomes = run_all(jobs(), bar, settings.jobs)
    if configs and len(refused) == len(configs):
        raise refused[0]
    if not build:
        return ready, failed
    good: list[Prepared] = []
    for each, error in zip(ready, outcomes, strict=True):
        if isinstance(error, NoCompilerError) or (error is not None and not isinstance(error, WarpjitError)):
            raise error
        reason = sentence(error) if error is not None else _beyond(each, settings)
        if error is not None:
            failed.append(each.failed(state_of(error), reason))
        elif reason:
            failed.append(each.failed(State.PRUNED, reason))
        else:
            good.append(each)
    return good, failed


def _beyond(each: Prepared, settings: Settings) -> str:
    program = each.built.program
    return settings.limits.after(each.built.resources, program.plan.threads, program.target)


# ---- errors as data -------------------------------------------------------------------------------------------


def state_of(error: Exception) -> State:
    """What an error says of the configuration that it met."""
    if isinstance(error, DriverError):
        if error.code in FATAL:
            return State.CONTEXT_LOST
        return State.TOO_MANY_REGISTERS if error.code == OUT_OF_RESOURCES else State.LAUNCH_ERROR
    if isinstance(error, TargetError) and "shared memory" in str(error):
        return State.TOO_MUCH_SHARED
    if isinstance(error, CompileError) and "spilled registers" in str(error):
        return State.TOO_MANY_REGISTERS
    if isinstance(error, ArgumentError):
        return State.REFUSED
    if isinstance(error, LaunchError | SimulationError) or not isinstance(error, WarpjitError):
        # torch reports at the next wait what a kernel did, and then the context is gone.
        return State.CONTEXT_LOST if "CUDA error" in str(error) else State.LAUNCH_ERROR
    return State.COMPILE_ERROR


def sentence(error: Exception) -> str:
    """The beginning of an error, on one line."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    text = "; ".join(lines[:2])
    return f"{type(error).__name__}: {text[:400]}"
