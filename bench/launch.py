"""The host's time of a warm launch: an empty kernel, three tensors, two integers, one warp, on a side stream.

Interleaved rounds over all launchers in shuffled order; in each round chunks of 500 launches are timed without the
synchronisation behind them, in one process pinned to one core. Microseconds move with core, moment and machine:
what is to be read are the ratios to Triton and to the C loop, each of the least chunks of one round.
"""

from __future__ import annotations

import gc
import os
import random
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING, Any

import torch

from bench.harness import Bench, Record, Settings, Table, error_text
from bench.launchers import C_LOOP, LAUNCHERS, TRITON, Ground, Launcher, Loop
from bench.measures import Spread, ratios

if TYPE_CHECKING:
    from matplotlib.figure import Figure

ROUNDS, CHUNKS, LAUNCHES = 9, 8, 500
BASES = (TRITON, C_LOOP)

Chunks = dict[str, list[list[float]]]
"""Microseconds of a launch: per launcher, per round, per chunk."""


def run(settings: Settings, record: Record) -> None:
    """Measure all launchers that can take part."""
    rounds = 2 if settings.quick else ROUNDS
    with ExitStack() as stack:
        core = stack.enter_context(pinned(settings.core))
        stack.enter_context(torch.cuda.stream(torch.cuda.Stream()))
        loops, errors = prepared(LAUNCHERS, settings, Ground.here(), stack)
        chunks = interleaved(loops, errors, rounds, random.Random(settings.seed), torch.cuda.synchronize)
    record.put(
        core=core,
        launchers={each.name: each.what for each in LAUNCHERS},
        rounds=rounds,
        **figures(chunks),
        errors=errors,
    )


@contextmanager
def pinned(core: int | None) -> Iterator[int | None]:
    """This thread on one core: the given one, or the last that it may use. None where cores cannot be chosen."""
    if not hasattr(os, "sched_setaffinity"):
        yield None
        return
    before = os.sched_getaffinity(0)
    chosen = max(before) if core is None else core
    os.sched_setaffinity(0, {chosen})
    try:
        yield chosen
    finally:
        os.sched_setaffinity(0, before)


def prepared(
    launchers: tuple[Launcher, ...], settings: Settings, ground: Ground, stack: ExitStack
) -> tuple[dict[str, Loop], dict[str, str]]:
    """The loops of those that can launch, each tried, and the errors of the others."""
    loops: dict[str, Loop] = {}
    errors: dict[str, str] = {}
    names = settings.chosen([each.name for each in launchers])
    for launcher in launchers:
        if launcher.name not in names:
            continue
        try:
            loop = launcher.prepare(ground, stack)
            loop(10)
            torch.cuda.synchronize()
        except Exception as error:
            errors[launcher.name] = error_text(error)
        else:
            loops[launcher.name] = loop
    return loops, errors


def interleaved(
    loops: dict[str, Loop],
    errors: dict[str, str],
    rounds: int,
    order: random.Random,
    synchronize: Callable[[], object],
) -> Chunks:
    """Time all loops, round after round. One that raises is left out, and its error noted."""
    found: Chunks = {name: [] for name in loops}
    collects = gc.isenabled()
    gc.disable()
    try:
        for _ in range(rounds):
            for name in order.sample(list(loops), len(loops)):
                if name in errors:
                    continue
                try:
                    found[name].append([_chunk(loops[name], synchronize) for _ in range(CHUNKS)])
                except Exception as error:
                    errors[name] = error_text(error)
                    del found[name]
    finally:
        if collects:
            gc.enable()
    return found


def _chunk(loop: Loop, synchronize: Callable[[], object]) -> float:
    synchronize()
    start = time.perf_counter_ns()
    loop(LAUNCHES)
    took = time.perf_counter_ns() - start
    synchronize()
    return took / LAUNCHES / 1e3


def figures(chunks: Chunks) -> dict[str, Any]:
    """Microseconds of a launch over all chunks, and ratios to what is compared with."""
    least = {name: [min(each) for each in rounds] for name, rounds in chunks.items()}
    return {
        "launch, us": {
            name: Spread.of([each for chunk in rounds for each in chunk]).as_json() for name, rounds in chunks.items()
        },
        "ratios": {
            f"{name} / {base}": ratios(least[name], least[base]).as_json()
            for base in BASES
            if base in least
            for name in least
            if name != base
        },
    }


def tables(content: dict[str, Any]) -> list[Table]:
    """Times and ratios, and who is missing."""
    found = content["figures"]
    rows = []
    for name, spread in sorted(found["launch, us"].items(), key=lambda item: item[1]["least"]):
        shown = [found["ratios"].get(f"{name} / {base}") for base in BASES]
        rows.append((name, f"{spread['least']:.2f}", f"{spread['median']:.2f}", *map(_compared, shown)))
    columns = ("launcher", "least, us", "median, us", *(f"to {base}" for base in BASES))
    shown_tables = [Table(f"a warm launch, host's time, core {found['core']}", columns, tuple(rows))]
    if found["errors"]:
        shown_tables.append(Table("left out", ("launcher", "why"), tuple(found["errors"].items())))
    return shown_tables


def _compared(ratio: dict[str, Any] | None) -> str:
    return f"{ratio['median']:.2f} ({ratio['least']:.2f} to {ratio['most']:.2f})" if ratio else ""


def draw(content: dict[str, Any], figure: Figure) -> None:
    """A bar per launcher: the least time, with the median behind it."""
    found = sorted(content["figures"]["launch, us"].items(), key=lambda item: -item[1]["least"])
    names = [name for name, _ in found]
    axes = figure.add_subplot()
    axes.barh(names, [spread["median"] for _, spread in found], color="lightgrey", label="median")
    axes.barh(names, [spread["least"] for _, spread in found], height=0.5, label="least")
    axes.set_xlabel("µs a launch, host")
    axes.legend()


BENCH = Bench(
    "launch",
    "the host's time of a warm launch of an empty kernel",
    True,
    run,
    tables,
    draw,
    tuple(each.name for each in LAUNCHERS),
)
