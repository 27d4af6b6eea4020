"""One thing that is tuned: from a call's key to the configuration to use, through memory, the store, or trials.

What candidates are (configurations of one kernel, or tiles that kernels are built for) is the caller's to say, as a
`Problem`. Any number of threads and processes may ask at once: one tunes, the others wait and read.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from warpjit import arguments, config
from warpjit.arguments import Place
from warpjit.cuda.driver import present_target
from warpjit.errors import ArgumentError, LaunchError, TargetError, TraceError, TuningError, WarpjitError
from warpjit.isa.target import Target
from warpjit.kernel import cpu_target
from warpjit.locks import Lock
from warpjit.store import Store, store_of
from warpjit.tuner.candidates import Candidate, code_of, compiled, sentence, state_of
from warpjit.tuner.config import Config
from warpjit.tuner.key import Key
from warpjit.tuner.record import Entry, Record, State
from warpjit.tuner.settings import Settings
from warpjit.tuner.trials import ContextLostError, Trials

KNOWN = 4096
"""Choices that a process remembers; then all are forgotten, and read from the store again."""
_log = logging.getLogger("warpjit.tuner")


@dataclass(frozen=True)
class Problem:
    """A call to be tuned.

    facts       of the arguments, for the key; the device and the limits are added
    configs     makes the configurations to choose among: asked for where nothing is known
    candidate   a configuration to what it runs. All candidates have the same arguments
    arguments   of the call by name, for the user's functions
    """

    facts: tuple[tuple[str, str], ...]
    place: Place
    configs: Callable[[], Sequence[Config]]
    candidate: Callable[[Config], Candidate]
    arguments: Any = None


@dataclass(frozen=True)
class Choice:
    """What to use for a key. entries: of all configurations, for reports; config: the best."""

    key: Key
    config: Config
    entries: tuple[Entry, ...]
    code: str = ""


class Tuner:
    """What a process knows of one tuned thing, by name. `store`: None: the one that the environment asks for."""

    def __init__(self, name: str, settings: Settings, store: Store | None = None) -> None:
        self.name, self.settings = name, settings
        self._store = store
        self._known: dict[Key, Choice] = {}
        self._locks: dict[Key, Lock] = {}
        self._said: set[bool] = set()

    def key_of(self, problem: Problem) -> Key:
        """Every fact that what is fastest may depend on."""
        limits = self.settings.limits
        facts = [("device", device_name(problem.place)), ("l2", self.settings.l2), ("limits", repr(limits))]
        return Key((("kernel", self.name), *facts, *problem.facts))

    def choose(self, problem: Problem, *, again: bool = False, unlike: Choice | None = None) -> Choice:
        """The choice for a problem: tuned now if it is not known.

        again    tune all anew
        unlike   a choice that was given, but whose code is not what is generated now: something captured has changed

        Raises ArgumentError (the arguments fit nothing), LaunchError (a graph is being captured, and it would have to
        be tuned), TuningError (nothing runs; the reasons are listed).
        """
        key = self.key_of(problem)
        with self._locks.setdefault(key, Lock()):
            found = None if again else self._known.get(key)
            if found is None or found is unlike:
                found = _Choosing(self, problem, key).choice(again)
                if len(self._known) >= KNOWN:
                    self._known.clear()
                self._known[key] = found
            return found

    def store(self) -> Store:
        return self._store or store_of(config.read())

    def say_once(self, used: Config, failed: Sequence[Entry]) -> None:
        """That nothing is timed on the CPU; and, the first time that some `failed`, why the first did."""
        if self._said >= {bool(failed)}:
            return
        self._said |= {False, bool(failed)}
        said = f"on CPU tensors nothing is timed: the first configuration that fits, {used.text}, is used"
        if failed:
            first, count = failed[0], len(failed)
            said += f"; {count} before it {'does' if count == 1 else 'do'} not (see tuning_report)"
            said += f", the first: {first.config}: {first.state.value}: {first.reason}"
        _log.warning("%s: %s", self.name, said)


class _Choosing:
    """The making of one choice. `codes`: digests of what configurations are now, so far as it was asked for."""

    def __init__(self, tuner: Tuner, problem: Problem, key: Key) -> None:
        self.name, self.settings, self.tuner = tuner.name, tuner.settings, tuner
        self.problem, self.key = problem, key
        every = problem.configs()
        self.configs = [each for each in every if not self.settings.left_out(each, problem.arguments)]
        self.pruned = [Entry(each.text, State.PRUNED, reason="prune") for each in every if each not in self.configs]
        self.codes: dict[str, str] = {}

    def choice(self, again: bool) -> Choice:
        if not self.configs:
            raise TuningError(
                f"{self.name}: expected a configuration to try, but prune leaves out all {len(self.pruned)}"
            )
        if len(self.configs) == 1 and not again:
            return self._only()
        if self.problem.place.kind != "cuda" and self.settings.timer is None:
            return self._first_valid()
        record = Record.from_json(self.name, self.key, self.tuner.store().get_tuning(self.key.digest))
        wanted = self.configs if again else self._unknown(record)
        if wanted:
            record = self._tuned(wanted, again)
        winner = self._winner(record)
        entries = [each for config in self.configs if (each := record.entry(config, self.codes.get(config.text)))]
        if winner is None:
            raise self._none(entries)
        return Choice(self.key, winner, (*entries, *self.pruned), self.codes[winner.text])

    def _code(self, config: Config) -> str:
        """What a configuration's entry must be about; "" where there is no program."""
        if config.text not in self.codes:
            try:
                self.codes[config.text] = code_of(self.problem.candidate(config), target_of(self.problem.place))
            except WarpjitError:
                self.codes[config.text] = ""
        return self.codes[config.text]

    def _winner(self, record: Record) -> Config | None:
        """The fastest whose code is what was timed. Only those that seem to be faster are looked at as well."""
        return next((each for each, entry in record.timed(self.configs) if entry.code == self._code(each)), None)

    def _unknown(self, record: Record) -> list[Config]:
        """The configurations to try. One that was never seen is; and if code has changed by a path that is not in the
        key (a helper, a captured number), all of which the present code is not known."""
        new = [each for each in self.configs if record.entry(each) is None]
        winner = self._winner(record)
        looked_at = [each for each in self.configs if each.text in self.codes]
        changed = any(record.entry(each) and not record.entry(each, self._code(each)) for each in looked_at)
        if changed or (winner is None and not new):
            return [each for each in self.configs if record.entry(each, self._code(each)) is None]
        return new

    # ---- trying ------------------------------------------------------------------------------------

    def _tuned(self, wanted: Sequence[Config], again: bool) -> Record:
        """Try these, while other processes wait; what they have found meanwhile is not tried."""
        self._refuse_capture()
        lost: list[ContextLostError] = []

        def change(old: Mapping[str, Any]) -> Mapping[str, Any]:
            record = Record.from_json(self.name, self.key, old)
            missing = [each for each in wanted if again or record.entry(each, self.codes.get(each.text)) is None]
            try:
                found = self._try(missing)
            except ContextLostError as error:
                lost.append(error)
                found = [error.entry]
            return record.with_entries(found).to_json()

        changed = self.tuner.store().change_tuning(self.key.digest, change)
        if lost:
            raise lost[0]
        return Record.from_json(self.name, self.key, changed)

    def _try(self, configs: Sequence[Config]) -> list[Entry]:
        if not configs:
            return []
        place = self.problem.place
        ready, failed = compiled(
            self.problem.candidate, configs, target_of(place), self.settings, self.name, build=place.kind == "cuda"
        )
        trials = Trials(self.settings, place, self.name)
        trials.run(ready)
        return [*failed, *trials.entries]

    def _refuse_capture(self) -> None:
        """LaunchError before the driver is touched."""
        place = self.problem.place
        if place.kind != "cuda":
            return
        cuda = arguments.torch_module().cuda
        with cuda.device(place.index):
            capturing = cuda.is_current_stream_capturing()
        if capturing:
            raise LaunchError(
                f"{self.name} would be tuned while a CUDA graph is captured: call it once before the capture with "
                "arguments of the same kinds"
            )

    def _none(self, entries: Sequence[Entry]) -> TuningError:
        lines = "\n".join(f"  {each.config}: {each.state.value}: {each.reason}" for each in entries)
        return TuningError(f"{self.name}: expected a configuration that runs but none of {len(entries)} does\n{lines}")

    # ---- without timing ----------------------------------------------------------------------------

    def _only(self) -> Choice:
        """Where there is nothing to choose, nothing is timed, and an error is the call's own."""
        (only,) = self.configs
        code = code_of(self.problem.candidate(only), target_of(self.problem.place))
        entry = Entry(only.text, State.UNTIMED, reason="there is no other", code=code)
        return Choice(self.key, only, (entry, *self.pruned), code)

    # ---- without a device --------------------------------------------------------------------------

    def _first_valid(self) -> Choice:
        """On the CPU nothing is timed."""
        entries: list[Entry] = []
        refused: list[ArgumentError] = []
        for each in self.configs:
            try:
                code = code_of(self.problem.candidate(each), target_of(self.problem.place))
            except (ArgumentError, TraceError, TargetError) as error:
                refused.extend([error] if isinstance(error, ArgumentError) else [])
                entries.append(Entry(each.text, state_of(error), reason=sentence(error)))
                continue
            self.tuner.say_once(each, entries)
            entries.append(Entry(each.text, State.UNTIMED, reason="nothing is timed on the CPU", code=code))
            return Choice(self.key, each, (*entries, *self.pruned), code)
        if len(refused) == len(self.configs):
            raise refused[0]
        raise self._none(entries)


def target_of(place: Place) -> Target:
    """What candidates are built for. LaunchError: no supported device."""
    if place.kind != "cuda":
        return cpu_target()
    found = present_target(place.index)
    if found is None:
        raise LaunchError(f"there is no supported CUDA device {place.index}")
    return found


def device_name(place: Place) -> str:
    """The model, and how much of it there is (a part of a GPU is another device)."""
    if place.kind != "cuda":
        return f"the simulator of {cpu_target()}"
    properties = arguments.torch_module().cuda.get_device_properties(place.index)
    return f"{properties.name}, {properties.multi_processor_count} multiprocessors"
