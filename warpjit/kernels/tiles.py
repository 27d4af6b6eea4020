"""Tiles that are chosen by trying them: what `tile="tune"` means to the functions of this folder.

A kernel is built for each tile, so what is tuned is not the constants of one kernel; all else is as for those: one
record for a kind of call, in it one entry a tile.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import asdict
from typing import Any, Generic, TypeVar

from warpjit import arguments
from warpjit.frontend.specialize import specialize
from warpjit.kernel import Kernel
from warpjit.tuner import Candidate, Config, KeyRule, Problem, Settings, Tuner, key_of_call, source_digest

Tile = TypeVar("Tile")
TUNE = "tune"
KNOWN = 4096
"""Kinds of calls that are remembered; then all are forgotten."""


class TunedTiles(Generic[Tile]):
    """The tiles of one function, by kinds of calls.

    settings   for tests, which bring a timer; None: the usual ones
    """

    def __init__(self, name: str, kind: Callable[..., Tile], settings: Settings | None = None) -> None:
        self._kind, self._tuner = kind, Tuner(name, settings or Settings())
        self.known: dict[Hashable, Tile] = {}

    def tile(
        self,
        call: Hashable,
        tiles: Callable[[], Sequence[Tile]],
        kernel: Callable[[Tile], Kernel],
        args: Callable[[], tuple[tuple[Any, ...], Mapping[str, Any]]],
    ) -> Tile:
        """The fastest tile for a call of this kind.

        call    what the tile may depend on, hashable
        tiles   to choose among, the one that is taken without trying first
        kernel  of a tile
        args    the arguments and constants of all these kernels
        """
        found = self.known.get(call)
        if found is None:
            if len(self.known) >= KNOWN:
                self.known.clear()
            config = self._tuner.choose(problem_of(self._kind, tiles(), kernel, *args())).config
            found = self.known[call] = self._kind(**config.constants)
        return found


def problem_of(
    kind: Callable[..., Tile],
    tiles: Sequence[Tile],
    kernel: Callable[[Tile], Kernel],
    args: tuple[Any, ...],
    constants: Mapping[str, Any],
) -> Problem:
    """The choice among `tiles`, made by `kind` of their fields, for one call."""
    first = kernel(tiles[0])
    specialization, runtime = specialize(first.signature, args, constants)
    names = [each.name for each in first.signature.positional]
    values = {**dict(zip(names, args, strict=True)), **constants}
    facts = key_of_call(KeyRule(), specialization, values)

    def candidate(config: Config) -> Candidate:
        return Candidate(config, kernel(kind(**config.constants)), args, constants)

    configs = tuple(Config(**asdict(tile)) for tile in tiles)  # type: ignore[call-overload]
    place = arguments.place_of(specialization, runtime)
    return Problem((("source", source_digest(first.function_source)), *facts), place, lambda: configs, candidate)
