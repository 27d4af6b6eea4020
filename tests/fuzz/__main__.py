"""Run many random programs, and make what fails small.

    python -m tests.fuzz --programs 2000 --seed 0      on the simulator; --gpu: on the GPU as well
    python -m tests.fuzz --program 31 --show           one program: print it, and what it leaves

A find is printed as a module: it can be kept as a file in tests/fuzz/finds, and run again by its path (`--program`).
"""

from __future__ import annotations

import argparse
import collections
import os
import sys
import tempfile
import warnings
from collections.abc import Sequence
from pathlib import Path

from rich.console import Console
from rich.progress import Progress

from .mutate import mutant, trouble
from .numbers import Invalid
from .programs import program
from .shrink import shrunk
from .trial import Case, Failure, build, judge

FAILED = 1
TRIES = 600
AT_ONCE = 64
"""Programs that are built together before they run."""


def parser() -> argparse.ArgumentParser:
    """The command line."""
    made = argparse.ArgumentParser(
        "python -m tests.fuzz", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    made.add_argument("--programs", type=int, default=200, help="how many (default: 200)")
    made.add_argument("--seed", type=int, default=0, help="of the first program; the next ones follow")
    made.add_argument("--size", type=int, default=9, help="statements of a kernel's body (default: 9)")
    made.add_argument("--program", default="", help="one program: a seed, or the path of a module")
    made.add_argument("--show", action="store_true", help="print each program")
    made.add_argument(
        "--mutants", type=int, default=0, help="programs made wrong that are traced, of each (default: 0)"
    )
    made.add_argument("--gpu", action="store_true", help="run on the GPU as well")
    made.add_argument(
        "--tries", type=int, default=TRIES, help=f"programs tried to make a find small (default: {TRIES})"
    )
    return made


class Session:
    """A folder for the programs' files, and what came of them."""

    def __init__(self, folder: Path, device: str):
        self.folder, self.device, self.count = folder, device, 0
        self.outcomes: collections.Counter[str] = collections.Counter()

    def case(self, text: str) -> Case:
        self.count += 1
        return Case(text, self.folder, f"program_{self.count}")

    def failure(self, text: str) -> Failure | None:
        """What is wrong with a program; None as well where the oracle refuses it."""
        try:
            failure = judge(self.case(text), "cpu")
            if failure is None and self.device != "cpu":
                failure = judge(self.case(text), self.device)
        except Invalid as refusal:
            self.outcomes[f"left out: {refusal}"] += 1
            return None
        except Exception as error:
            failure = Failure(f"oracle {type(error).__name__}", f"{type(error).__name__}: {error}")
        self.outcomes[failure.kind if failure else "agreed"] += 1
        return failure

    def trouble(self, text: str) -> Failure | None:
        """What comes of a mutant that should not."""
        self.count += 1
        failure = trouble(text, self.folder, f"program_{self.count}")
        self.outcomes[failure.kind if failure else "mutants without harm"] += 1
        return failure

    def fails_like(self, failure: Failure, text: str) -> bool:
        try:
            again = self.trouble(text) if failure.mutant else judge(self.case(text), "cpu")
            if again is None and self.device != "cpu" and not failure.mutant:
                again = judge(self.case(text), self.device)
        except Exception:  # a candidate that the oracle cannot run, or that is no kernel any more
            return False
        return again is not None and again.kind == failure.kind


def main(arguments: Sequence[str] | None = None) -> int:
    given = parser().parse_args(arguments)
    warnings.simplefilter("ignore")
    console = Console()
    with tempfile.TemporaryDirectory() as folder:
        os.environ.setdefault("WARPJIT_CACHE_DIR", folder)
        session = Session(Path(folder), "cuda" if given.gpu else "cpu")
        texts = _texts(given)
        finds: list[tuple[str, str, Failure]] = []
        with Progress(console=console, disable=not console.is_terminal) as progress:
            task = progress.add_task("programs", total=len(texts))
            for number, (name, text) in enumerate(texts):
                if given.gpu and number % AT_ONCE == 0:
                    build([session.case(each) for _, each in texts[number : number + AT_ONCE]])
                if given.show:
                    console.print(text, markup=False, highlight=False)
                failure = session.failure(text)
                if failure is not None:
                    finds.append((name, text, failure))
                for seed in range(given.mutants):
                    wrong = mutant(text, seed)
                    failure = session.trouble(wrong)
                    if failure is not None:
                        finds.append((f"{name}, mutant {seed}", wrong, failure))
                progress.update(task, advance=1, description=f"programs ({len(finds)} finds)")
        for name, text, failure in finds:
            _report(console, session, name, text, failure, given.tries)
        for outcome, count in session.outcomes.most_common():
            console.print(f"{count:6} {outcome}", markup=False, highlight=False)
    return FAILED if finds else 0


def _texts(given: argparse.Namespace) -> list[tuple[str, str]]:
    if given.program:
        path = Path(given.program)
        text = path.read_text() if path.exists() else program(int(given.program), given.size)
        return [(given.program, text)]
    seeds = range(given.seed, given.seed + given.programs)
    return [(f"seed {seed}", program(seed, given.size)) for seed in seeds]


def _report(console: Console, session: Session, name: str, text: str, failure: Failure, tries: int) -> None:
    """A find, made small: the program with its arguments, and what differs."""
    outcomes = session.outcomes.copy()
    small = shrunk(text, lambda candidate: session.fails_like(failure, candidate), tries)
    again = session.trouble(small) if failure.mutant else session.failure(small)
    again = again or failure
    session.outcomes = outcomes
    console.rule(f"{name}: {failure.kind}")
    console.print(small, markup=False, highlight=False, soft_wrap=True)
    console.print(again.text, markup=False, highlight=False, soft_wrap=True)


if __name__ == "__main__":
    sys.exit(main())
