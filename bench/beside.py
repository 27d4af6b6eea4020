"""Functions called like torch's, beside torch's own: what each figure of such functions has in common.

A `Case` is one problem with several `Entrant`s on the same data. Each is called once and checked; those that are right
are timed in alternating rounds (`regimes`): one by one, or, where a call is short, many in a graph, so that the GPU's
time counts and not the host's. Ratios are of rates of the same round, to the case's base, which runs twice: how far the
two runs lie apart is what a ratio must exceed.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import torch

from bench.harness import Record, Settings, Table, error_text
from bench.measures import Spread, deviation, ratios
from bench.regimes import Alternating, GpuTimer, Runner, alternating, runner_of

if TYPE_CHECKING:
    from matplotlib.figure import Figure

AGAIN = " again"


@dataclass(frozen=True)
class Entrant:
    """One function on one problem.

    call    issues it on torch's current stream, and gives its result
    amount  what a call gets done, in the case's unit times seconds: bytes / 1e9, or operations / 1e12
    check   what is wrong with a result; None: nothing
    """

    call: Callable[[], Any]
    amount: float
    check: Callable[[Any], str | None] = lambda result: None


@dataclass(frozen=True)
class Case:
    """A problem: its name, the unit of rates ("GB/s", "TFLOP/s"), the entrants by name, and which is the base."""

    name: str
    unit: str
    entrants: dict[str, Entrant]
    base: str


def run(cases: Iterable[Callable[[], Case]], settings: Settings, record: Record) -> None:
    """Measure case by case; the record has a list of them. A case is made when it is its turn."""
    done: list[dict[str, Any]] = []
    record.put(cases=done)
    with torch.cuda.stream(torch.cuda.Stream()):
        for make in cases:
            case = make()
            done.append({"case": case.name, "unit": case.unit, "base": case.base, **measure(case, settings)})
            record.put(cases=done)
            torch.cuda.empty_cache()


def measure(case: Case, settings: Settings) -> dict[str, Any]:
    """Rates, times and ratios of those that are right, and why others are left out."""
    timer, errors = GpuTimer(), {}
    runners = []
    for name in settings.chosen(list(case.entrants)):
        entrant = case.entrants[name]
        try:
            wrong = entrant.check(entrant.call())
            if wrong is None:
                runners.append(runner_of(name, entrant.call, timer))
                continue
            errors[name] = f"wrong: {wrong}"
        except Exception as error:
            errors[name] = error_text(error)
    runners += [Runner(each.name + AGAIN, each.issue, each.launches) for each in runners if each.name == case.base]
    how = Alternating(rounds=5) if settings.quick else Alternating(rounds=25)
    timings = alternating(runners, timer, how, random.Random(settings.seed))
    times = {each.name: timings.milliseconds(each.name) for each in runners if each.name not in timings.errors}
    return {**_figures(case, times), "errors": {**errors, **timings.errors}}


def _figures(case: Case, times: dict[str, list[float]]) -> dict[str, Any]:
    rates = {
        name: [case.entrants[name.removesuffix(AGAIN)].amount / each * 1e3 for each in milliseconds]
        for name, milliseconds in times.items()
    }
    found = {
        name: ratios(rate, rates[case.base]) for name, rate in rates.items() if name != case.base and case.base in rates
    }
    same = found.get(case.base + AGAIN)
    return {
        "contestants": {
            name: {case.unit: Spread.of(rate).as_json(), "ms": Spread.of(times[name]).as_json()}
            for name, rate in rates.items()
        },
        "ratios": {name: spread.as_json() for name, spread in found.items()},
        "spread of equals": None if same is None else deviation(same),
    }


def tables(content: dict[str, Any]) -> list[Table]:
    """A row for each case: each contestant's rate, and its ratio to the base."""
    cases = content["figures"]["cases"]
    names = list(dict.fromkeys(name for case in cases for name in case["contestants"] if not name.endswith(AGAIN)))
    rows = [
        (f"{case['case']} ({case['unit']})", *(_cell(case, name) for name in names), _equals(case)) for case in cases
    ]
    missing = [(case["case"], name, why) for case in cases for name, why in case["errors"].items()]
    found = [Table("rates, and ratios to the base (*)", ("case", *names, "equals"), tuple(rows))]
    return [*found, Table("left out", ("case", "contestant", "why"), tuple(missing))] if missing else found


def _cell(case: dict[str, Any], name: str) -> str:
    if name not in case["contestants"]:
        return ""
    rate = f"{case['contestants'][name][case['unit']]['median']:.0f}"
    ratio = case["ratios"].get(name)
    return f"{rate} *" if name == case["base"] else f"{rate} {ratio['median']:.2f}" if ratio else rate


def _equals(case: dict[str, Any]) -> str:
    spread = case["spread of equals"]
    return "" if spread is None else f"±{spread:.3f}"


def draw(content: dict[str, Any], figure: Figure) -> None:
    """Bars of ratios to the base for each case."""
    cases: Sequence[dict[str, Any]] = [case for case in content["figures"]["cases"] if case["ratios"]]
    names = list(dict.fromkeys(name for case in cases for name in case["ratios"] if not name.endswith(AGAIN)))
    figure.set_size_inches(9.0, max(3.0, 0.3 * len(cases) * (len(names) + 1)))
    axes = figure.add_subplot()
    for position, name in enumerate(names):
        widths = [case["ratios"][name]["median"] if name in case["ratios"] else 0 for case in cases]
        places = [-at - position * 0.8 / len(names) for at in range(len(cases))]
        axes.barh(places, widths, 0.8 / len(names), label=name)
    axes.set_yticks([-at - 0.4 for at in range(len(cases))], [f"{case['case']} / {case['base']}" for case in cases])
    axes.axvline(1.0, color="grey", linewidth=0.8)
    axes.legend(fontsize="small")
