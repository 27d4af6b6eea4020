"""Run figures and show what they found.

    python -m bench                          all that can run on this machine
    python -m bench gemm launch --quick      these, to see that they run
    python -m bench --list                   what there is
    python -m bench --show                   the tables and plots of what was measured before

Each figure is written to `results/<name>.<cpu or gpu>.json` (with `--label`, `<name>-<label>`), with a PNG beside it.
Cubins are kept in the checkout's cache/, unless WARPJIT_CACHE_DIR says otherwise.
"""

from __future__ import annotations

import argparse
import os
import random
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import torch
from rich.console import Console

from bench import attention, gemm, isa, launch, norms, quant, start, trace, tune
from bench.harness import RESULTS, ROOT, Bench, Settings, error_text, start_record
from bench.products import DTYPES, Case, Size
from bench.report import load, plot, show

FIGURES = (attention, gemm, isa, launch, norms, quant, start, trace, tune)
BENCHES: dict[str, Bench] = {each.BENCH.name: each.BENCH for each in FIGURES}
FAILED = 1
"""Exit status when a figure failed."""


def listed(allowed: Sequence[str], name: str) -> Callable[[str], tuple[str, ...]]:
    """A type for argparse: a list with commas, of the allowed words."""

    def read(text: str) -> tuple[str, ...]:
        words = tuple(word.strip() for word in text.split(","))
        for word in words:
            if word not in allowed:
                raise argparse.ArgumentTypeError(f"{name}: expected some of {', '.join(allowed)}, but got {word!r}")
        return words

    return read


def _sizes(text: str) -> tuple[Size, ...]:
    return tuple(map(Size.parse, text.split(",")))


def parser() -> argparse.ArgumentParser:
    """The command line."""
    names = sorted({name for bench in BENCHES.values() for name in bench.contestants})
    made = argparse.ArgumentParser(
        "python -m bench", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    made.add_argument(
        "names", nargs="*", metavar="figure", help=f"some of {', '.join(BENCHES)}; none: all that can run"
    )
    made.add_argument("--list", action="store_true", help="say what there is, and run nothing")
    made.add_argument("--show", action="store_true", help="show and draw what was measured before, and run nothing")
    made.add_argument("--quick", action="store_true", help="few repetitions: to see that it runs, not for quoting")
    made.add_argument("--results", type=Path, default=RESULTS, help="the folder for JSON and PNG files")
    made.add_argument("--label", default="", help="goes into the files' names, beside the figure's")
    made.add_argument("--contestants", type=listed(names, "contestants"), default=(), help="who takes part")
    made.add_argument("--seed", type=int, default=None, help="of random data and orders (default: a new one)")
    made.add_argument("--sizes", type=_sizes, default=(), help="gemm: MxNxK,MxNxK")
    made.add_argument("--dtype", type=listed(tuple(DTYPES), "dtype"), default=(), help="gemm: bfloat16,float16")
    made.add_argument(
        "--regimes", type=listed(tuple(gemm.MEASURES), "regimes"), default=tuple(gemm.MEASURES), help="gemm"
    )
    made.add_argument("--core", type=int, default=None, help="launch: the core to run on (default: the last)")
    made.add_argument("--runs", type=int, default=None, help="start: fresh processes of each kind")
    return made


def settings_of(given: argparse.Namespace) -> Settings:
    """What the command line asks for."""
    return Settings(
        quick=given.quick,
        cases=_cases(given.sizes, given.dtype),
        regimes=given.regimes,
        contestants=given.contestants,
        core=given.core,
        runs=given.runs,
        seed=random.SystemRandom().randrange(2**31) if given.seed is None else given.seed,
    )


def _cases(sizes: Sequence[Size], dtypes: Sequence[str]) -> tuple[Case, ...]:
    """The products of sizes and types; what is not given is as in the figure's own cases."""
    if not sizes:
        return tuple(case for case in gemm.CASES if case.dtype in dtypes)
    return tuple(Case(size, dtype) for size in sizes for dtype in dtypes or ("bfloat16",))


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; gives the exit status."""
    made = parser()
    given = made.parse_args(arguments)
    for name in given.names:
        if name not in BENCHES:
            made.error(f"figure: expected some of {', '.join(BENCHES)}, but got {name!r}")
    benches = [BENCHES[name] for name in given.names or BENCHES]
    # Wide enough for a log that is not a terminal.
    console = Console(width=None if sys.stdout.isatty() else 140)
    if given.list:
        for bench in benches:
            console.print(f"{bench.name:8} {bench.summary}{' (GPU)' if bench.needs_gpu else ''}", highlight=False)
        return 0
    if given.show:
        return show_recorded(benches, given.results, console)
    return run_all(benches, settings_of(given), given.results, given.label, console)


def run_all(benches: Sequence[Bench], settings: Settings, folder: Path, label: str, console: Console) -> int:
    """Run what can run here; say in one line what cannot."""
    os.environ.setdefault("WARPJIT_CACHE_DIR", str(ROOT / "cache"))
    gpu = torch.cuda.is_available()
    status = 0
    for bench in benches:
        if bench.needs_gpu and not gpu:
            continue
        record = start_record(bench, settings, folder, label)
        try:
            bench.run(settings, record)
        except Exception as error:
            record.put(error=error_text(error))
            console.print(f"{bench.name} failed: {error_text(error)}", markup=False, highlight=False)
            status = FAILED
            continue
        _present(bench, record.content, record.path, console)
    away = [bench.name for bench in benches if bench.needs_gpu and not gpu]
    if away:
        console.print(f"left out, since there is no GPU: {', '.join(away)}", highlight=False)
    return status


def show_recorded(benches: Sequence[Bench], folder: Path, console: Console) -> int:
    """Show and draw what is in a folder of results."""
    known = {bench.name: bench for bench in benches}
    for path in sorted(folder.glob("*.json")):
        content = load(path)
        if content.get("bench") in known and "error" not in content["figures"]:
            _present(known[content["bench"]], content, path, console)
    return 0


def _present(bench: Bench, content: dict[str, Any], path: Path, console: Console) -> None:
    show(bench, content, console)
    drawn = plot(bench, content, path.with_suffix(".png"))
    where = f"{path} and {drawn.name}" if drawn else f"{path} (no plot: matplotlib is not installed)"
    console.print(where, markup=False, highlight=False, soft_wrap=True)


if __name__ == "__main__":
    sys.exit(main())
