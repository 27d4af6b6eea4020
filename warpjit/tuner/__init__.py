"""Autotuning: which configuration of a kernel is fastest for a kind of call, found by trying, and remembered.

`config` is what is chosen among, `key` for what, `record` what is kept of it; `candidates` compiles, `memory` and
`trials` run on data of their own, `timing` and `race` time. `tuner` puts these together for anything that has
candidates, `tuned` for a kernel's constants. Left out: what a kernel is (`kernel`), where records are (`store`).
"""

from warpjit.tuner.candidates import Candidate
from warpjit.tuner.config import Config, space
from warpjit.tuner.key import KeyRule, key_of_call, source_digest
from warpjit.tuner.race import Rules
from warpjit.tuner.record import Entry, State
from warpjit.tuner.report import TuningReport
from warpjit.tuner.settings import Limits, Settings
from warpjit.tuner.timing import EventTimer, Timer, Trial
from warpjit.tuner.tuned import Tuned, autotune
from warpjit.tuner.tuner import Choice, Problem, Tuner

__all__ = [
    "Candidate",
    "Choice",
    "Config",
    "Entry",
    "EventTimer",
    "KeyRule",
    "Limits",
    "Problem",
    "Rules",
    "Settings",
    "State",
    "Timer",
    "Trial",
    "Tuned",
    "Tuner",
    "TuningReport",
    "autotune",
    "key_of_call",
    "source_digest",
    "space",
]
