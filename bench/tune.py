"""Tuning a product: 32 configurations here beside 32 of Triton's, in wall time, and how good the winners are.

    python -m bench tune

Both begin with empty caches of kernels and of timings. Ours are tiles of `matmul`, tried by the tuner; Triton's are
configurations of a plain product, tried by its autotuner. `shuffles`: how far the winner of each of ten races in other
orders is from the fastest, with all configurations compiled; the fastest is the one with the least time in a race whose
final is longer.
`first` and `later` are whole calls in fresh processes: the one that tunes, and one that reads what it found.
"""

from __future__ import annotations

import json
import os
import random
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import torch

from bench.harness import Bench, Record, Settings, Table, error_text, fresh_process
from bench.measures import shown
from warpjit.kernel import Kernel
from warpjit.kernels.facts import Facts
from warpjit.kernels.gemm import Tile
from warpjit.kernels.matmul import plan_of
from warpjit.kernels.products import CHOICES, candidates
from warpjit.kernels.tiles import TunedTiles, problem_of
from warpjit.tuner import Rules, Tuner
from warpjit.tuner import Settings as TunerSettings

if TYPE_CHECKING:
    from matplotlib.figure import Figure

SIZE, QUICK = 4096, 1024
CONFIGS = 32
SHUFFLES, SHOWN = 10, 5
LONG = Rules(first=10, close=1.1, final=100)

CALL = """
import json, sys, time
import torch
size = int(sys.argv[1])
a, b = (torch.randn(size, size, device="cuda", dtype=torch.bfloat16) for _ in range(2))
{imports}
torch.cuda.synchronize()
start = time.perf_counter()
out = {call}
torch.cuda.synchronize()
took = time.perf_counter() - start
right = torch.allclose(out.float(), (a @ b).float(), rtol=2e-2, atol=size ** 0.5 * 2e-2)
start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
for _ in range(20): {call}
start.record()
for _ in range(50): {call}
end.record()
torch.cuda.synchronize()
print(json.dumps(dict(seconds=took, right=right, us=start.elapsed_time(end) * 20, chosen={chosen})))
"""
OURS = CALL.format(
    imports="from bench import tune\ntiles = tune.TunedTiles('bench.tune', tune.Tile)",
    call="tune.call(tiles, a, b)",
    chosen="repr(next(iter(tiles.known.values())))",
)
TRITON = CALL.format(
    imports="from bench import triton_tuned",
    call="triton_tuned.call(a, b)",
    chosen="str(triton_tuned.matmul.best_config)",
)


def configs() -> list[Tile]:
    """The first 32 of those that `matmul` tries."""
    first = CHOICES[0].tile
    return candidates(first, True, 227 * 1024)[:CONFIGS]


@dataclass(frozen=True)
class Call:
    """a @ b as the tuner sees it: the kernel of a tile, and what it is called with."""

    facts: tuple[Facts, ...]
    kernel: Callable[[Tile], Kernel]
    args: tuple[Any, ...]

    @classmethod
    def of(cls, a: torch.Tensor, b: torch.Tensor) -> Call:
        out = torch.empty(a.shape[0], b.shape[1], dtype=a.dtype, device=a.device)
        left, right, result = (Facts.of(name, each) for name, each in (("a", a), ("b", b), ("out", out)))
        plan = plan_of(left, right, result, (), None, a.device)
        return cls(
            (left, right, result),
            lambda tile: plan_of(left, right, result, (), tile, a.device).kernel,
            (plan.left.of(a, plan.shape), plan.right.of(b.mT, plan.shape), out, ()),
        )

    @property
    def out(self) -> torch.Tensor:
        out: torch.Tensor = self.args[2]
        return out


def call(tuned: TunedTiles[Tile], a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    """a @ b with a tile of `tuned`."""
    made = Call.of(a, b)
    tile = tuned.tile(made.facts, configs, made.kernel, lambda: (made.args, {"epilogue": None}))
    made.kernel(tile)(*made.args, epilogue=None)
    return made.out


@contextmanager
def empty_caches() -> Iterator[dict[str, str]]:
    with tempfile.TemporaryDirectory(prefix="warpjit-tune-") as folder:
        yield {"WARPJIT_CACHE_DIR": f"{folder}/ours", "TRITON_CACHE_DIR": f"{folder}/triton"}


def run(settings: Settings, record: Record) -> None:
    size = QUICK if settings.quick else SIZE
    record.put(size=size, configs=CONFIGS, processes={}, errors={})
    with empty_caches() as where:
        for name, program in (("warpjit", OURS), ("Triton", TRITON)):
            for when in ("first", "later"):
                key = f"{name}, {when}"
                try:
                    said = fresh_process(program, str(size), **where).splitlines()[-1]
                    record.figures["processes"][key] = json.loads(said)
                except Exception as error:
                    record.figures["errors"][key] = error_text(error)
                record.put()
        before = os.environ.get("WARPJIT_CACHE_DIR")
        os.environ["WARPJIT_CACHE_DIR"] = where["WARPJIT_CACHE_DIR"]
        try:
            record.put(shuffles=shuffles(size, 2 if settings.quick else SHUFFLES))
        finally:
            if before is None:
                del os.environ["WARPJIT_CACHE_DIR"]
            else:
                os.environ["WARPJIT_CACHE_DIR"] = before


def shuffles(size: int, count: int) -> dict[str, Any]:
    """Races in shuffled orders: the winner's time, by a long race, as a ratio to the least."""
    a, b = (torch.randn(size, size, device="cuda", dtype=torch.bfloat16) for _ in range(2))
    truth = _times(a, b, TunerSettings(rules=LONG, seed=0))
    least = min(truth.values())
    winners, seconds, finals = [], [], []
    for seed in range(count):
        start = time.perf_counter()
        found = _times(a, b, TunerSettings(seed=seed), random.Random(seed))
        seconds.append(time.perf_counter() - start)
        ranked = sorted(found, key=lambda config: found[config])
        winners.append(ranked[0])
        finals.append({config: found[config] for config in ranked[:SHOWN]})
    return {
        "least, us": least,
        "winners": winners,
        "ratios": [truth[winner] / least for winner in winners],
        "seconds": seconds,
        "first of each race, us": finals,
        "times, us": dict(sorted(truth.items(), key=lambda each: each[1])),
    }


def _times(
    a: torch.Tensor, b: torch.Tensor, how: TunerSettings, order: random.Random | None = None
) -> dict[str, float]:
    """The median of each configuration in a race of its own; nothing is taken from records."""
    every = configs()
    if order is not None:
        order.shuffle(every)
    made = Call.of(a, b)
    problem = problem_of(Tile, every, made.kernel, made.args, {"epilogue": None})
    choice = Tuner("bench.tune", how).choose(problem, again=True)
    return {each.config: each.median_us for each in choice.entries if each.timed and each.median_us}


def tables(content: dict[str, Any]) -> list[Table]:
    figures = content["figures"]
    rows = [
        (name, shown(each["seconds"]), shown(each["us"]), str(each["right"]), each["chosen"][:60])
        for name, each in figures["processes"].items()
    ]
    rows += [(name, error, "", "", "") for name, error in figures["errors"].items()]
    title = f"tuning {figures['configs']} configurations of a product, {figures['size']}³ bfloat16"
    found = [Table(title, ("process", "first call, s", "then, µs", "right", "chosen"), tuple(rows))]
    if "shuffles" in figures:
        each = figures["shuffles"]
        worst, seconds = max(each["ratios"]), sorted(each["seconds"])
        row = (
            str(len(each["ratios"])),
            f"{worst:.4f}",
            shown(seconds[len(seconds) // 2]),
            str(len(set(each["winners"]))),
        )
        columns = ("races", "worst winner / least", "seconds of one", "different winners")
        found.append(Table("races in shuffled orders, all compiled", columns, (row,)))
    return found


def draw(content: dict[str, Any], figure: Figure) -> None:
    figures = content["figures"]
    left, right = figure.subplots(1, 2)
    processes = figures["processes"]
    left.bar(list(processes), [each["seconds"] for each in processes.values()])
    left.set_title(f"first call with {figures['configs']} configurations")
    left.set_ylabel("seconds")
    left.tick_params(axis="x", labelrotation=30)
    times = list(figures.get("shuffles", {}).get("times, us", {}).values())
    right.plot(times, marker=".")
    right.set_title("all configurations, a long race")
    right.set_ylabel("µs")


BENCH = Bench("tune", "tuning a product, beside Triton's autotuner", True, run, tables, draw)
