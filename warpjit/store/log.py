"""What the cache does, a line each, for who asks: `WARPJIT_LOG=cache`, or Python's logging at level INFO.

Nothing is written, and no text is made, where nobody asks. A warm launch never comes here.
"""

from __future__ import annotations

import functools
import logging
import sys
from typing import Any

CACHE = logging.getLogger("warpjit.cache")
"""Hits, misses, compilations, waits and evictions, at level INFO."""
TOPICS = {"cache": {"warpjit.cache": logging.INFO, "warpjit.index": logging.DEBUG}}
"""The loggers of each name that WARPJIT_LOG may have, and their levels."""


class _ToStderr(logging.StreamHandler[Any]):
    """Writes to what `sys.stderr` is at that moment."""

    def __init__(self) -> None:
        logging.Handler.__init__(self)
        self.setFormatter(logging.Formatter("%(name)s: %(message)s"))

    @property
    def stream(self) -> Any:
        return sys.stderr

    @stream.setter
    def stream(self, value: Any) -> None:
        raise AttributeError("it is sys.stderr")


@functools.cache
def follow(topics: tuple[str, ...]) -> None:
    """Write what these topics' loggers say to stderr, from now on."""
    for topic in topics:
        if topic not in TOPICS:
            known = ", ".join(TOPICS)
            said = "WARPJIT_LOG: expected names of what to report (%s), commas between them, but got %r"
            logging.getLogger("warpjit").warning(said, known, topic)
        for name, level in TOPICS.get(topic, {}).items():
            logger = logging.getLogger(name)
            logger.addHandler(_ToStderr())
            logger.setLevel(level)
            logger.propagate = False  # who has handlers as well would see each line twice


def on() -> bool:
    """Whether anybody reads what the cache does."""
    return CACHE.isEnabledFor(logging.INFO)


def short(key: str) -> str:
    """The digits of a key that are shown."""
    return key[:12]
