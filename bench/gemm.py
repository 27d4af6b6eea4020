"""Products of 16-bit matrices: the generated kernel beside a hand-written one, cuBLAS, Triton, and the roof.

    python -m bench gemm --sizes 8192x8192x8192,4096x4096x4096 --dtype bfloat16 --regimes sustained,alternating

All contestants in one process, on the same random operands, each with a result of its own that is poisoned before it is
timed and checked afterwards as well as before. Rates are 2 M N K over the time between events; ratios are of the same
round, and mean something where they leave the spread of a kernel against itself (`reference again`).
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

import torch

from bench.clocks import Watch, over, watching
from bench.contestants import AGAIN, CONTESTANTS, RATIOS, REFERENCE, Contestant, Entrant
from bench.harness import Bench, Record, Settings, Table, error_text
from bench.loop import Probe
from bench.measures import Spread, deviation, rate, ratios
from bench.products import Case, Problem, Size
from bench.regimes import (
    Alternating,
    GpuTimer,
    Runner,
    Segment,
    Sustained,
    Timer,
    Timings,
    alternating,
    runner_of,
    sustained,
)

if TYPE_CHECKING:
    from matplotlib.figure import Figure

SQUARE = (Size(8192, 8192, 8192), Size(4096, 4096, 4096))
# 8448 = 33 * 256 = 66 * 128: whole waves of 132 multiprocessors.
WHOLE_WAVES = Size(8448, 8448, 8192)
LAYERS = (Size(4096, 6144, 4096), Size(4096, 28672, 4096), Size(4096, 4096, 14336), Size(512, 6144, 4096))
CASES = (
    *(Case(size, "bfloat16") for size in (*SQUARE, WHOLE_WAVES, *LAYERS)),
    *(Case(size, "float16") for size in SQUARE),
)
QUICK_CASES = (Case(Size(4096, 4096, 4096), "bfloat16"),)


def run(settings: Settings, record: Record) -> None:
    """Measure each case; the record has a list of them."""
    cases = settings.cases or (QUICK_CASES if settings.quick else CASES)
    record.put(contestants={each.name: each.what for each in CONTESTANTS}, cases=[])
    done: list[dict[str, Any]] = []
    with torch.cuda.stream(torch.cuda.Stream()), watching() as watch:
        for case in cases:
            try:
                found = measure(case, settings, Stage("cuda", GpuTimer(), watch))
            except Exception as error:
                found = {"errors": {"case": error_text(error)}}
            done.append({"size": str(case.size), "dtype": case.dtype, **found})
            record.put(cases=done)
            torch.cuda.empty_cache()


@dataclass(frozen=True)
class Stage:
    """Where products are timed: a device, its timer, and who watches its clock."""

    device: str
    timer: Timer
    watch: Watch


def measure(case: Case, settings: Settings, stage: Stage) -> dict[str, Any]:
    """All contestants on one problem, in each regime."""
    # cuBLAS's sums stay in float32, as all others'.
    torch.backends.cuda.matmul.allow_bf16_reduced_precision_reduction = False
    torch.backends.cuda.matmul.allow_fp16_reduced_precision_reduction = False
    problem = Problem(case, stage.device, settings.seed)
    errors: dict[str, str] = {}
    checks: dict[str, Any] = {}
    entrants: dict[str, Entrant] = {}
    names = settings.chosen([each.name for each in CONTESTANTS])
    for contestant in CONTESTANTS:
        if contestant.name in names:
            _enter(contestant, problem, settings.seed, stage.timer, entrants, checks, errors)
    runners = [runner_of(name, entrant.launch, stage.timer) for name, entrant in entrants.items()]
    regimes = {}
    for name in settings.regimes:
        try:
            regimes[name] = MEASURES[name](runners, entrants, settings, stage)
        except Exception as error:
            regimes[name] = {**figures(Timings(), {}), "errors": {"regime": error_text(error)}}
    return {
        "checks": checks,
        "notes": {name: entrant.note for name, entrant in entrants.items() if entrant.note},
        "launches in a graph": {each.name: each.launches for each in runners if each.launches > 1},
        "errors": errors,
        "regimes": regimes,
    }


def _enter(
    contestant: Contestant,
    problem: Problem,
    seed: int,
    timer: Timer,
    entrants: dict[str, Entrant],
    checks: dict[str, Any],
    errors: dict[str, str],
) -> None:
    """Prepare and check a contestant; only one that is right is timed."""
    try:
        entrant = contestant.prepare(problem, seed)
        entrant.poison()
        entrant.launch()
        timer.wait()
        check = entrant.check()
    except Exception as error:
        errors[contestant.name] = error_text(error)
        return
    checks[contestant.name] = asdict(check)
    if check.error is None:
        entrants[contestant.name] = entrant
    else:
        errors[contestant.name] = f"wrong: {check.error}"


# ---- regimes --------------------------------------------------------------------------------------------------


def _sustained(
    runners: Sequence[Runner], entrants: dict[str, Entrant], settings: Settings, stage: Stage
) -> dict[str, Any]:
    how = Sustained(seconds=0.2, rounds=1, warm_up=0.3) if settings.quick else Sustained()
    probe = Probe()
    _poison(entrants)
    timings = sustained(runners, stage.timer, how, random.Random(settings.seed), probe)
    found = figures(timings, {name: entrant.flop for name, entrant in entrants.items()})
    samples = stage.watch.samples
    for name, figure in found["contestants"].items():
        figure["clock, MHz"] = probe.clock(name)
        figure["clock in it, MHz"] = entrants[name].clock()
        reading = over(samples, [_last_two_thirds(segment) for segment in timings.segments[name]])
        figure["nvidia-smi"] = asdict(reading) if reading is not None else None
    return _checked(found, entrants)


def _last_two_thirds(segment: Segment) -> tuple[float, float]:
    return segment.begin + (segment.end - segment.begin) / 3, segment.end


def _alternating(
    runners: Sequence[Runner], entrants: dict[str, Entrant], settings: Settings, stage: Stage
) -> dict[str, Any]:
    how = Alternating(rounds=5) if settings.quick else Alternating()
    _poison(entrants)
    timings = alternating(runners, stage.timer, how, random.Random(settings.seed + 1))
    found = figures(timings, {name: entrant.flop for name, entrant in entrants.items()})
    for name, figure in found["contestants"].items():
        figure["clock in it, MHz"] = entrants[name].clock()
    return _checked(found, entrants)


MEASURES = {"sustained": _sustained, "alternating": _alternating}


def _poison(entrants: dict[str, Entrant]) -> None:
    for entrant in entrants.values():
        entrant.poison()


def _checked(found: dict[str, Any], entrants: dict[str, Entrant]) -> dict[str, Any]:
    """The figures without those whose results, after thousands of launches, are wrong."""
    for name in list(found["contestants"]):
        wrong = entrants[name].check().error
        if wrong is not None:
            found["errors"][name] = f"wrong after the regime: {wrong}"
            del found["contestants"][name]
            found["ratios"] = {pair: each for pair, each in found["ratios"].items() if name not in pair.split(" / ")}
    return found


def figures(timings: Timings, flop: dict[str, int]) -> dict[str, Any]:
    """Rates, and ratios of rates, from the times of a regime."""
    rates = {
        name: [rate(flop[name], milliseconds) for milliseconds in timings.milliseconds(name)]
        for name in timings.segments
    }
    contestants = {
        name: {"TFLOP/s": Spread.of(rates[name]).as_json(), "ms": Spread.of(timings.milliseconds(name)).as_json()}
        for name in flop
        if name in rates
    }
    pairs = [(above, below) for above, below in RATIOS if above in rates and below in rates]
    found = {f"{above} / {below}": ratios(rates[above], rates[below]) for above, below in pairs}
    same = found.get(f"{AGAIN} / {REFERENCE}")
    return {
        "contestants": contestants,
        "ratios": {name: spread.as_json() for name, spread in found.items()},
        "spread of equals": deviation(same) if same is not None else None,
        "errors": timings.errors,
    }


# ---- shown ----------------------------------------------------------------------------------------------------


def tables(content: dict[str, Any]) -> list[Table]:
    """For each regime rates, ratios and clocks, a row for each case; then who is missing. Rounds are in the record."""
    cases = [case for case in content["figures"]["cases"] if case.get("regimes")]
    found: list[Table] = []
    for regime in dict.fromkeys(name for case in cases for name in case["regimes"]):
        rows = {
            f"{case['size']} {case['dtype']}": case["regimes"][regime] for case in cases if regime in case["regimes"]
        }
        names = list(content["figures"]["contestants"])
        pairs = [f"{above} / {below}" for above, below in RATIOS]
        found.append(_table(f"{regime}: TFLOP/s", rows, names, "contestants", _rate))
        found.append(_table(f"{regime}: ratios", rows, pairs, "ratios", _ratio))
        found.append(_table(f"{regime}: MHz in a kernel (nvidia-smi)", rows, names, "contestants", _clock))
    missing = _missing(content["figures"]["cases"])
    return [each for each in (*found, missing) if each.rows and len(each.columns) > 1]


def _table(
    title: str, regimes: dict[str, Any], names: Sequence[str], part: str, cell: Callable[[dict[str, Any]], str]
) -> Table:
    """A row for each case, a column for each name that has something in it."""
    cells = {
        name: [cell(regime[part][name]) if name in regime[part] else "" for regime in regimes.values()]
        for name in names
    }
    columns = [name for name, column in cells.items() if any(column)]
    rows = [(case, *(cells[name][index] for name in columns)) for index, case in enumerate(regimes)]
    return Table(title, ("product", *columns), tuple(rows))


def _rate(figure: dict[str, Any]) -> str:
    return _with_spread(figure["TFLOP/s"], 1)


def _ratio(ratio: dict[str, Any]) -> str:
    return _with_spread(ratio, 3)


def _with_spread(spread: dict[str, Any], digits: int) -> str:
    half = (spread["most"] - spread["least"]) / 2
    return f"{spread['median']:.{digits}f} ±{half:.{digits}f}"


def _clock(figure: dict[str, Any]) -> str:
    clock, smi = figure.get("clock, MHz") or figure.get("clock in it, MHz"), figure.get("nvidia-smi")
    return (f"{clock:.0f}" if clock else "") + (f" ({smi['mhz']:.0f}, {smi['watts']:.0f} W)" if smi else "")


def _missing(cases: Sequence[dict[str, Any]]) -> Table:
    """Errors, each with the products that it befell."""
    found: dict[tuple[str, str], list[str]] = {}
    for case in cases:
        errors = [case["errors"], *(regime["errors"] for regime in case.get("regimes", {}).values())]
        for name, why in (item for each in errors for item in each.items()):
            found.setdefault((name, why), []).append(f"{case['size']} {case['dtype']}")
    rows = tuple((name, why, ", ".join(dict.fromkeys(products))) for (name, why), products in found.items())
    return Table("left out", ("contestant", "why", "products"), rows)


def draw(content: dict[str, Any], figure: Figure) -> None:
    """A panel per regime: bars of TFLOP/s for each case."""
    cases = [case for case in content["figures"]["cases"] if case.get("regimes")]
    regimes = list(dict.fromkeys(name for case in cases for name in case["regimes"]))
    names = list(content["figures"]["contestants"])
    figure.set_size_inches(max(9.0, 1.8 * len(cases) + 2), 4.0 * max(1, len(regimes)))
    for index, regime in enumerate(regimes):
        axes = figure.add_subplot(len(regimes), 1, index + 1)
        for position, name in enumerate(names):
            found = [case["regimes"].get(regime, {}).get("contestants", {}).get(name) for case in cases]
            heights = [each["TFLOP/s"]["median"] if each else 0 for each in found]
            places = [at + (position - len(names) / 2) * 0.8 / len(names) for at in range(len(cases))]
            if any(heights):
                axes.bar(places, heights, 0.8 / len(names), label=name, align="edge", color=f"C{position}")
        axes.set_xticks(range(len(cases)), [f"{case['size']}\n{case['dtype']}" for case in cases])
        axes.set_ylabel("TFLOP/s")
        axes.set_title(regime)
        axes.legend(fontsize="small", ncols=len(names), loc="upper center", bbox_to_anchor=(0.5, -0.12))


BENCH = Bench(
    "gemm",
    "products of 16-bit matrices, beside reference, cuBLAS and Triton",
    True,
    run,
    tables,
    draw,
    tuple(each.name for each in CONTESTANTS),
)
