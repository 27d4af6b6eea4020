"""Work on many cores that is Python, such as tracing: done in forked copies of this process, which hand back data.

A copy has all that a trace may ask for: closures, modules, the user's own objects. It stays away from the device, whose
state does not survive a fork. Whatever goes wrong in one (it dies, it hangs on a lock that a thread of the original
held, the work raises), its work counts as not done, and whoever asked does it himself, where errors belong. So copies
save time, or cost a bounded wait; they decide nothing.

Left out: what the work is (`parallel`, `tuner.candidates`).
"""

from __future__ import annotations

import contextlib
import gc
import io
import json
import os
import selectors
import signal
import struct
import sys
import threading
import time
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from warpjit.cuda import processes

FEWEST = 4
"""Less work is done sooner than handed out."""
MOST = 16000
"""Turns that a pipe holds."""
SILENCE = 30.0
"""Seconds of Python after which a copy hangs: a trace takes a tenth of one."""
GRACE = 2.0
"""Seconds that a copy has to end the compiler that it waits for."""
_SIGNALS = (signal.SIGINT, signal.SIGTERM)
_TURN = struct.Struct("<I")


@dataclass(frozen=True)
class Task:
    """`run(waits)` gives what JSON can hold, or raises: then the task is not done.

    What it writes to `sys.stdout` and `sys.stderr`, the original writes once it is done; of what is not done, nothing.

    `waits(seconds)` says that from now on a process is waited for, for so long at most: the copy does not hang.
    """

    run: Callable[[Callable[[float], None]], Any]


@dataclass(frozen=True)
class Done:
    """What a task gave."""

    value: Any


def run(
    tasks: Sequence[Task], workers: int, step: Callable[[int], None], silence: float = SILENCE
) -> list[Done | None]:
    """What each task gave, in order; None where it was not done, which may be everywhere.

    workers  copies at once
    step     is told the index of each that is done
    silence  seconds after which a copy hangs
    """
    outcomes: list[Done | None] = [None] * len(tasks)
    count = min(workers, len(tasks))
    if count < 2 or len(tasks) < FEWEST or not hasattr(os, "fork"):
        return outcomes
    try:
        turns, queued = _queue(min(len(tasks), MOST))
    except OSError:
        return outcomes
    copies: list[_Copy] = []
    try:
        with contextlib.suppress(OSError):  # fewer copies than were wanted do as well
            for _ in range(count):
                copies.append(_forked(tasks, turns))
        for index, outcome in _answers(copies, queued, silence):
            outcomes[index] = outcome
            step(index)
    finally:
        os.close(turns)
        for copy in copies:
            copy.end()
    return outcomes


def _queue(count: int) -> tuple[int, int]:
    """The end of a pipe to read turns from, and how many it holds."""
    read, write = os.pipe()
    os.set_blocking(write, False)  # the pipes of a user who has many are small
    written = os.write(write, b"".join(map(_TURN.pack, range(count))))
    os.close(write)
    return read, written // _TURN.size


# ---- the side that asks ---------------------------------------------------------------------------------------


@dataclass
class _Copy:
    """A forked process. `deadline`: when it hangs; `text`: what it began to say."""

    process: int
    answers: int
    deadline: float = 0.0
    text: bytes = b""

    def lines(self, said: bytes) -> Iterator[dict[str, Any]]:
        *whole, self.text = (self.text + said).split(b"\n")
        return map(json.loads, whole)

    def end(self) -> None:
        os.close(self.answers)
        for number in (signal.SIGTERM, signal.SIGKILL):
            with contextlib.suppress(ProcessLookupError):
                os.kill(self.process, number)
            if _reaped(self.process, GRACE):
                return


def _reaped(process: int, seconds: float) -> bool:
    until = time.monotonic() + seconds
    try:
        while os.waitpid(process, os.WNOHANG) == (0, 0):
            if time.monotonic() > until:
                return False
            time.sleep(0.002)
    except ChildProcessError:  # the process ignores its children's ends
        pass
    return True


def _answers(copies: Sequence[_Copy], queued: int, silence: float) -> Iterator[tuple[int, Done]]:
    """Until each turn has its answer: what other threads fork meanwhile may keep the copies' pipes open."""
    with selectors.PollSelector() as selector:  # it takes no descriptor
        for copy in copies:
            copy.deadline = time.monotonic() + silence
            selector.register(copy.answers, selectors.EVENT_READ, copy)
        while queued and (running := [key.data for key in selector.get_map().values()]):
            now = time.monotonic()
            for copy in running:
                if copy.deadline < now:
                    selector.unregister(copy.answers)
            for key, _ in selector.select(max(min(copy.deadline - now for copy in running), 0.0)):
                copy = key.data
                said = os.read(copy.answers, 1 << 16)
                if not said:
                    selector.unregister(copy.answers)
                for answer in copy.lines(said):
                    copy.deadline = time.monotonic() + silence + answer.get("waits", 0.0)
                    queued -= "begun" not in answer and "waits" not in answer
                    if "value" in answer:
                        _write(answer["said"])
                        yield answer["done"], Done(answer["value"])


def _write(said: Sequence[tuple[str, str]]) -> None:
    for stream, text in said:
        with contextlib.suppress(Exception):  # whatever it is: see `_forked`
            getattr(sys, stream).write(text)


# ---- a copy ---------------------------------------------------------------------------------------------------


def _forked(tasks: Sequence[Task], turns: int) -> _Copy:
    original = os.getpid()
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(Exception):  # it may be None, closed, or anything that has `write`
            stream.flush()  # or a copy might write it again
    read, write = os.pipe()
    process = 0
    try:
        # Signals wait until the copy has its own handlers: the original's are not for it.
        before = signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", DeprecationWarning)  # Python's own, of threads: see the file's header
                process = os.fork()
            if process == 0:
                _serve(tasks, turns, write, original, before - set(_SIGNALS))
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, before)
    except BaseException:
        if process:  # a signal has waited for the fork, and its handler raised
            _Copy(process, read).end()
        else:
            os.close(read)
        raise
    finally:
        os.close(write)
    return _Copy(process, read)


def _serve(tasks: Sequence[Task], turns: int, answers: int, original: int, blocked: Iterable[int]) -> None:
    """Do tasks while there are any, and the original.

    Nothing of the original is run: no finalizer, no handler of a signal, no function of its exit.
    """
    try:
        gc.freeze()  # garbage of the original may be tensors of a device
        signal.set_wakeup_fd(-1)
        for number in signal.valid_signals():
            if callable(signal.getsignal(number)):
                signal.signal(number, signal.SIG_DFL)
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # the original has it too, and ends its copies
        signal.signal(signal.SIGTERM, _leave)
        signal.pthread_sigmask(signal.SIG_SETMASK, blocked)
        while os.getppid() == original and (turn := os.read(turns, _TURN.size)):
            _answer(tasks, _TURN.unpack(turn)[0], answers)
    finally:
        os._exit(0)


def _answer(tasks: Sequence[Task], index: int, answers: int) -> None:
    _say(answers, json.dumps({"begun": index}))
    said: list[tuple[str, str]] = []
    sys.stdout, sys.stderr = _Writer("stdout", said), _Writer("stderr", said)
    try:
        value = tasks[index].run(lambda seconds: _say(answers, json.dumps({"waits": seconds})))
        answer = json.dumps({"done": index, "value": value, "said": said})
    except BaseException:
        answer = json.dumps({"failed": index})
    _say(answers, answer)


class _Writer(io.TextIOBase):
    """What is written, noted with the name of the stream."""

    def __init__(self, stream: str, said: list[tuple[str, str]]) -> None:
        self._stream, self._said = stream, said

    def writable(self) -> bool:
        return True

    def write(self, text: str) -> int:
        self._said.append((self._stream, text))
        return len(text)


def _say(answers: int, line: str) -> None:
    data = line.encode() + b"\n"
    while data:
        data = data[os.write(answers, data) :]


def _leave(number: int, frame: object) -> None:
    processes.kill_of({threading.get_ident()})
    os._exit(1)
