"""The trials of compiled candidates: run each once on memory of its own, compare what they give, race the rest."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from typing import Any

from warpjit import arguments
from warpjit.arguments import Place
from warpjit.bound import Bound
from warpjit.errors import TuningError
from warpjit.progress import Bar
from warpjit.tuner import race
from warpjit.tuner.candidates import Prepared, sentence, state_of
from warpjit.tuner.isolated import Isolation
from warpjit.tuner.memory import Workspace, workspace
from warpjit.tuner.race import Race
from warpjit.tuner.record import Entry, State
from warpjit.tuner.settings import Settings
from warpjit.tuner.timing import EventTimer, Timer, Trial


class ContextLostError(TuningError):
    """A candidate has made the device unusable for this process. `entry` is the candidate's."""

    def __init__(self, message: str, entry: Entry) -> None:
        super().__init__(message)
        self.entry = entry


@dataclass(frozen=True)
class Runner:
    """A candidate that can be launched on the workspace."""

    prepared: Prepared
    launch: Bound


@dataclass
class Trials:
    """Candidates of one call. `entries`: what has become of those that are decided."""

    settings: Settings
    place: Place
    title: str
    entries: list[Entry] = field(default_factory=list)
    isolation: Isolation | None = None

    def __post_init__(self) -> None:
        if self.settings.isolate and self.place.kind == "cuda":
            self.isolation = Isolation(self.place.index)

    def run(self, ready: Sequence[Prepared]) -> list[Entry]:
        """Try all; one entry for each. ContextLostError: the device cannot be used any more."""
        if not ready:
            return []
        with self._device():
            return self._run(ready)

    def _device(self) -> AbstractContextManager[object]:
        """The tensors' device is torch's current one: events are recorded on its stream."""
        cuda = self.place.kind == "cuda"
        return arguments.torch_module().cuda.device(self.place.index) if cuda else nullcontext()

    def _run(self, ready: Sequence[Prepared]) -> list[Entry]:
        space = self._workspace(ready)
        try:
            runners = [runner for each in ready if (runner := self._first(each, space)) is not None]
        finally:
            if self.isolation is not None:
                self.isolation.close()
        if self.settings.checks:
            runners = self._agreeing(runners, space)
        if runners:
            self._race(runners, space)
        return self.entries

    def _workspace(self, ready: Sequence[Prepared]) -> Workspace:
        reads = frozenset().union(*(each.plan.reads for each in ready))
        writes = frozenset().union(*(each.plan.writes for each in ready))
        try:
            return workspace(ready[0].call.runtime, reads, writes)
        except arguments.torch_module().OutOfMemoryError as error:
            raise TuningError(f"{self.title}: expected memory for copies of what is written, but {error}") from error

    # ---- the first launch --------------------------------------------------------------------------

    def _first(self, each: Prepared, space: Workspace) -> Runner | None:
        try:
            failure = self.isolation.try_out(each) if self.isolation is not None else None
            if failure is not None:
                self.entries.append(each.failed(*failure))
                return None
            candidate = each.call.candidate
            runner = Runner(each, candidate.kernel.bind(*each.on(space.arguments), **candidate.constants))
            self._launched(runner, space)
        except TuningError:  # not the configuration's fault
            raise
        except Exception as error:
            self._failed(each, error)
            return None
        return runner

    def _launched(self, runner: Runner, space: Workspace) -> None:
        space.restore()
        runner.launch()
        self._wait()

    def _wait(self) -> None:
        if self.place.kind == "cuda":
            arguments.torch_module().cuda.synchronize(self.place.index)

    def _failed(self, each: Prepared, error: Exception) -> None:
        entry = each.failed(state_of(error), sentence(error))
        self.entries.append(entry)
        if entry.state is State.CONTEXT_LOST:
            raise ContextLostError(
                f"{self.title}: {each.config!r} has made the device unusable for this process ({entry.reason}): it is "
                "left out from now on; start a new process, or tune with isolate=True",
                entry,
            ) from error

    # ---- results -----------------------------------------------------------------------------------

    def _agreeing(self, runners: Sequence[Runner], space: Workspace) -> list[Runner]:
        """Those whose results are the reference's, or, without one, the results of most."""
        groups: list[tuple[Any, list[Runner]]] = []
        if self.settings.reference is not None and runners:
            first = runners[0].prepared
            space.restore()
            self.settings.reference(*first.on(space.arguments))
            groups.append((space.results(), []))
        for runner in runners:
            try:
                self._launched(runner, space)
            except Exception as error:
                self._failed(runner.prepared, error)
                continue
            found = space.results()
            for results, members in groups:
                if self._equal(found, results):
                    members.append(runner)
                    break
            else:
                groups.append((found, [runner]))
        if not groups:
            return []
        right = groups[0] if self.settings.reference is not None else max(groups, key=lambda group: len(group[1]))
        for results, members in groups:
            for runner in members if results is not right[0] else ():
                reason = self._difference(space.written, results, right[0], runner.prepared)
                self.entries.append(runner.prepared.failed(State.MISMATCH, reason))
        return right[1]

    def _equal(self, found: Sequence[Any], expected: Sequence[Any]) -> bool:
        return all(bool(self._close(x, y).all()) for x, y in zip(found, expected, strict=True))

    def _close(self, x: Any, y: Any) -> Any:
        """Element by element; what nobody wrote is the same poison on both sides."""
        torch = arguments.torch_module()
        if not x.is_floating_point():
            return x == y
        return torch.isclose(x.double(), y.double(), rtol=self.settings.rtol, atol=self.settings.atol, equal_nan=True)

    def _difference(self, written: Sequence[int], found: Sequence[Any], expected: Sequence[Any], each: Prepared) -> str:
        names = each.call.specialization.leaf_names()
        parts = []
        for position, x, y in zip(written, found, expected, strict=True):
            wrong = int((~self._close(x, y)).sum())
            parts += [f"{wrong} of {x.numel()} elements of {names[position]} differ"] if wrong else []
        whose = "the reference's" if self.settings.reference is not None else "most others'"
        return f"{', '.join(parts)} from {whose}"

    # ---- the race ----------------------------------------------------------------------------------

    def _race(self, runners: Sequence[Runner], space: Workspace) -> None:
        settings = self.settings
        timer: Timer = settings.timer or EventTimer(self.place.index, settings.l2)
        restore = space.restore if space.updated else None
        trials = [Trial(each.prepared.config.text, each.launch, restore) for each in runners]
        deadline = None if settings.budget is None else timer.now() + settings.budget
        timer.begin(trials)
        with Bar(f"{self.title}: timing", len(trials), settings.progress) as bar:
            found = race.run(
                len(trials),
                lambda which, launches: timer.times(trials[which], launches),
                settings.rules,
                random.Random(settings.seed),
                lambda: deadline is not None and timer.now() >= deadline,
                _shown(bar, trials),
            )
        for which, runner in enumerate(runners):
            self._decide(runner, which, found)

    def _decide(self, runner: Runner, which: int, found: Race) -> None:
        each, times = runner.prepared, found.times.get(which)
        if which in found.errors:
            self._failed(each, found.errors[which])
        elif times:
            low, high = found.quartiles(which)
            self.entries.append(
                Entry(each.config.text, State.TIMED, found.median(which), (high - low) / 2, len(times), code=each.code)
            )
        else:
            spent = times is None and found.stopped
            reason = f"the budget of {self.settings.budget} s was spent" if spent else "no time was a positive number"
            self.entries.append(each.failed(State.UNTIMED, reason))


def _shown(bar: Bar, trials: Sequence[Trial]) -> Callable[[Race], None]:
    def progress(found: Race) -> None:
        ranked = found.ranked
        if ranked:
            bar.step(f"best {found.median(ranked[0]):.1f} µs: {trials[ranked[0]].config}", 1)

    return progress
