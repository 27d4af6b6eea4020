"""What tuning found, as it is kept: one record for a kernel and key, in it one entry for each configuration.

Plain JSON: states, microseconds and sentences. An entry holds a digest of the generated code that was timed, so that an
entry of code that has changed since, by whatever path, is not believed.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field
from enum import Enum
from typing import Any

from warpjit.tuner.config import Config
from warpjit.tuner.key import SCHEMA, Key

CODES = 4
"""Codes of a configuration whose entries are kept: captured values may change and come back."""


class State(Enum):
    """What became of a configuration."""

    TIMED = "timed"
    PRUNED = "pruned"  # the user's rule left it out
    REFUSED = "refused"  # the arguments or the program do not fit it
    COMPILE_ERROR = "compile-error"
    TOO_MUCH_SHARED = "too-much-shared"
    TOO_MANY_REGISTERS = "too-many-registers"
    LAUNCH_ERROR = "launch-error"
    TIMEOUT = "timeout"
    MISMATCH = "mismatch"
    CONTEXT_LOST = "context-lost"
    UNTIMED = "untimed"  # the budget was spent, or no timing was a positive number


@dataclass(frozen=True)
class Entry:
    """What is known of a configuration.

    median_us, spread_us   of one launch: the median, and half the distance of the quartiles
    samples                timings
    reason                 why it was not timed
    code                   digest of the generated code
    """

    config: str
    state: State
    median_us: float | None = None
    spread_us: float | None = None
    samples: int = 0
    reason: str = ""
    code: str = ""

    @property
    def timed(self) -> bool:
        """Whether it may win: a time that is a positive number."""
        return self.state is State.TIMED and self.median_us is not None and 0.0 < self.median_us < math.inf

    def to_json(self) -> dict[str, Any]:
        found = {**asdict(self), "state": self.state.value}
        found.pop("config")
        return {name: value for name, value in found.items() if value not in (None, "", 0)}

    @classmethod
    def from_json(cls, config: str, data: Any) -> Entry | None:
        """None: it is none of this schema."""
        try:
            state = State(data["state"])
            median, spread = data.get("median_us"), data.get("spread_us")
            if not all(each is None or isinstance(each, int | float) for each in (median, spread)):
                return None
            reason, code = str(data.get("reason", "")), str(data.get("code", ""))
            return cls(config, state, median, spread, int(data.get("samples", 0)), reason, code)
        except (KeyError, ValueError, TypeError, AttributeError):
            return None


@dataclass(frozen=True)
class Record:
    """The entries of a key: for each configuration's text, one for each code, the newest first."""

    name: str
    key: Key
    entries: Mapping[str, tuple[Entry, ...]] = field(default_factory=dict)

    @classmethod
    def from_json(cls, name: str, key: Key, data: Mapping[str, Any] | None) -> Record:
        """What a store held; empty where it held nothing that is understood."""
        configs = data.get("configs") if data and data.get("schema") == SCHEMA else None
        read: dict[str, tuple[Entry, ...]] = {}
        for text, items in configs.items() if isinstance(configs, dict) else ():
            found = [Entry.from_json(text, each) for each in items] if isinstance(items, list) else []
            read[text] = tuple(each for each in found if each is not None)
        return cls(name, key, {text: each for text, each in read.items() if each})

    def to_json(self) -> dict[str, Any]:
        return {
            "schema": SCHEMA,
            "kernel": self.name,
            "key": dict(self.key.facts),
            "configs": {text: [entry.to_json() for entry in found] for text, found in self.entries.items()},
        }

    def entry(self, config: Config, code: str | None = None) -> Entry | None:
        """Of a configuration, with this code; None: the newest."""
        found = self.entries.get(config.text, ())
        return next((each for each in found if code is None or each.code == code), None)

    def timed(self, configs: Iterable[Config]) -> list[tuple[Config, Entry]]:
        """The entries of these configurations that may win, the fastest first."""
        found = [(config, entry) for config in configs for entry in self.entries.get(config.text, ()) if entry.timed]
        return sorted(found, key=lambda each: each[1].median_us or math.inf)

    def with_entries(self, entries: Iterable[Entry]) -> Record:
        """With these before, and in place of, older ones."""
        known = dict(self.entries)
        for new in entries:
            others = [each for each in known.get(new.config, ()) if each.code != new.code]
            known[new.config] = (new, *others)[:CODES]
        return Record(self.name, self.key, known)
