"""Candidates for one call: traced and compiled beside each other, and what became of each.

What cannot run is known as early as can be: too much shared memory from the plan, before any compiler. Many are made in
copies of this process, which leave them in the store (`forks`); what is not found there afterwards is made here.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from warpjit import config as configuration
from warpjit.build import Built, Resources
from warpjit.cuda.driver import FATAL, OUT_OF_RESOURCES, DriverError
from warpjit.cuda.toolchain import NoCompilerError, Nvcc
from warpjit.errors import ArgumentError, CompileError, LaunchError, SimulationError, TargetError, WarpjitError
from warpjit.forks import Task
from warpjit.frontend.kinds import ConstantKind, Kind, Specialization, TupleKind
from warpjit.frontend.specialize import specialize
from warpjit.isa.target import Target
from warpjit.kernel import Kernel
from warpjit.launchable import Executable
from warpjit.parallel import Job, in_copies, run_all
from warpjit.passes.launch_plan import LaunchPlan
from warpjit.progress import Bar
from warpjit.tuner.config import Config
from warpjit.tuner.record import Entry, State
from warpjit.tuner.settings import Limits, Settings


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
class Call:
    """A candidate, and what its kernel is specialised on."""

    candidate: Candidate
    specialization: Specialization
    runtime: Sequence[Any]

    @classmethod
    def of(cls, candidate: Candidate) -> Call:
        """Raises ArgumentError as the call would."""
        found, runtime = specialize(candidate.kernel.signature, candidate.args, candidate.constants)
        return cls(candidate, found, runtime)

    @property
    def config(self) -> Config:
        return self.candidate.config

    def built(self, target: Target) -> Built:
        """Raises as the call would: TraceError, TargetError."""
        return self.candidate.kernel.built(self.specialization, target)

    def found(self, target: Target) -> Executable | None:
        """What the store has."""
        return self.candidate.kernel.found(self.specialization, target)

    def failed(self, state: State, reason: str, code: str = "") -> Entry:
        return Entry(self.config.text, state, reason=reason, code=code)


@dataclass(frozen=True)
class Prepared:
    """A candidate whose program is known; `executable` is None where nothing is compiled, for the simulator."""

    call: Call
    plan: LaunchPlan
    code: str
    executable: Executable | None

    @property
    def config(self) -> Config:
        return self.call.config

    def failed(self, state: State, reason: str) -> Entry:
        return self.call.failed(state, reason, self.code)

    def on(self, runtime: Sequence[Any]) -> tuple[Any, ...]:
        """The positional arguments with these in the places of the runtime ones."""
        rest = iter(runtime)
        given = self.call.candidate.args
        kinds = self.call.specialization.parameters[: len(given)]
        return tuple(_replaced(kind, value, rest) for kind, value in zip(kinds, given, strict=True))


def _replaced(kind: Kind, value: Any, rest: Iterator[Any]) -> Any:
    if isinstance(kind, ConstantKind):
        return value
    if isinstance(kind, TupleKind):
        return tuple(_replaced(item, part, rest) for item, part in zip(kind.items, value, strict=True))
    return next(rest)


def code_of(candidate: Candidate, target: Target) -> str:
    """A digest of the candidate's code: whatever changes what runs changes it. Raises as the call would."""
    return candidate.kernel.code(Call.of(candidate).specialization, target)


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
    with Bar(f"{title}: compiling", len(configs), settings.progress) as bar:
        work = _Work(target, settings, bar)
        calls = work.specialized(candidate, configs)
        ready = work.compiled(calls) if build else work.traced(calls)
    if configs and len(work.refused) == len(configs):
        raise work.refused[0]
    return ready, work.failed


@dataclass
class _Work:
    """Candidates on their way.

    failed   what became of those that fell out
    refused  the ArgumentErrors that made some fall out
    """

    target: Target
    settings: Settings
    bar: Bar
    failed: list[Entry] = field(default_factory=list)
    refused: list[ArgumentError] = field(default_factory=list)

    def specialized(self, candidate: Callable[[Config], Candidate], configs: Sequence[Config]) -> list[Call]:
        found: list[Call] = []
        for config in configs:
            try:
                found.append(Call.of(candidate(config)))
            except WarpjitError as error:
                self._out(Entry(config.text, state_of(error), reason=sentence(error)), error)
        return found

    def _out(self, entry: Entry, error: WarpjitError | None = None) -> None:
        self.failed.append(entry)
        self.refused += [error] if isinstance(error, ArgumentError) else []
        self.bar.step(entry.config)

    def _built(self, call: Call) -> Built | None:
        """Traced, unless it falls out by that."""
        try:
            built = call.built(self.target)
        except WarpjitError as error:
            self._out(call.failed(state_of(error), sentence(error)), error)
            return None
        reason = _too_much(built.program.plan, self.target, self.settings.limits)
        if not reason:
            return built
        self._out(call.failed(State.PRUNED, reason, built.code))
        return None

    def traced(self, calls: Sequence[Call]) -> list[Prepared]:
        """For the simulator."""
        found = [(call, built) for call in calls if (built := self._built(call)) is not None]
        return [Prepared(call, built.program.plan, built.code, None) for call, built in found]

    def compiled(self, calls: Sequence[Call]) -> list[Prepared]:
        begun: list[tuple[Call, Executable | Built]] = []

        def jobs() -> Iterator[Job]:
            for call, made in self._stored(calls):
                either = made or self._built(call)
                if either is not None:
                    begun.append((call, either))
                if isinstance(either, Built):
                    yield Job(call.config.text, lambda built=either: built.cubin)  # type: ignore[misc]

        errors = iter(run_all(jobs(), self.bar, self.settings.jobs))
        ready = [self._within(call, made, next(errors) if isinstance(made, Built) else None) for call, made in begun]
        return [each for each in ready if each is not None]

    def _within(self, call: Call, made: Executable | Built, error: Exception | None) -> Prepared | None:
        if isinstance(error, NoCompilerError) or (error is not None and not isinstance(error, WarpjitError)):
            raise error
        if error is not None:
            self.failed.append(call.failed(state_of(error), sentence(error), made.code))
            return None
        executable = made.executable if isinstance(made, Built) else made
        plan, limits, target = executable.program.plan, self.settings.limits, self.target
        reason = _too_much(plan, target, limits) or limits.after(Resources.of(executable), plan.threads, target)
        if reason:
            self.failed.append(call.failed(State.PRUNED, reason, made.code))
            return None
        return Prepared(call, plan, made.code, executable)

    def _stored(self, calls: Sequence[Call]) -> list[tuple[Call, Executable | None]]:
        """Those that have not fallen out, with what the store has for them by now: copies of this process make what
        it does not have."""
        made = [each.found(self.target) for each in calls]
        missing = [index for index, each in enumerate(made) if each is None]
        tasks = [
            Task(functools.partial(_attempt, calls[index], self.target, self.settings.limits)) for index in missing
        ]
        labels = [calls[index].config.text for index in missing]
        fallen: set[int] = set()
        for index, outcome in zip(missing, in_copies(tasks, labels, self.bar, self.settings.jobs), strict=True):
            if outcome is not None and outcome.value is None:
                made[index] = calls[index].found(self.target)
            elif outcome is not None:
                fallen.add(index)
                entry = Entry.from_json(calls[index].config.text, outcome.value)
                self.failed += [entry] if entry is not None else []
        return [(call, made[index]) for index, call in enumerate(calls) if index not in fallen]


def _too_much(plan: LaunchPlan, target: Target, limits: Limits) -> str:
    return limits.before(plan.shared_bytes + target.reserved_shared)


def _attempt(call: Call, target: Target, limits: Limits, waits: Callable[[float], None]) -> dict[str, Any] | None:
    """Trace and compile into the store, in a copy of the process. An entry's JSON, if the candidate falls out by that;
    what is the call's own error is raised."""
    built: Built | None = None
    try:
        built = call.built(target)
        reason = _too_much(built.program.plan, target, limits)
        if reason:
            return call.failed(State.PRUNED, reason, built.code).to_json()
        waits(Nvcc.of(configuration.read()).seconds)
        built.executable  # noqa: B018  it is the store that keeps it
    except (ArgumentError, NoCompilerError):
        raise
    except WarpjitError as error:
        return call.failed(state_of(error), sentence(error), built.code if built else "").to_json()
    if not call.candidate.kernel.keep(built, call.specialization):
        raise LookupError("the original would not find it")
    return None


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
    """The beginning of an error, on one line, with the user's line of its first finding, if it has one."""
    findings = error.findings if isinstance(error, WarpjitError) else ()
    text = findings[0].message if findings else str(error)
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    said = f"{type(error).__name__}: {'; '.join(lines[:2])[:400]}"
    place = findings[0].loc.innermost if findings else None
    said += f" ({place.file}:{place.line})" if place is not None else ""
    return said + (f", and {len(findings) - 1} more" if len(findings) > 1 else "")
