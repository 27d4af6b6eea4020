"""How long a fresh process takes to its first result, after `import torch` and the start of CUDA.

The example's kernel beside Triton's product of one 64 x 64 x 64 block. Cold: the cache of kernels is empty. Warm:
another process has filled it. Every pair of a cold and a warm process has a cache folder of its own, in a temporary
directory; Python's bytecode is there in both.

    import   the package and the kernel
    first    its first call, until the result is there
    again    a second call
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from bench.harness import ROOT, Bench, Record, Settings, Table, error_text, fresh_process
from bench.measures import summary

if TYPE_CHECKING:
    from matplotlib.figure import Figure

RUNS = 3
PARTS = ("import", "first", "again")
KINDS = ("cold", "warm")

PROGRAM = """
import json, sys, time
sys.path[:0] = sys.argv[2:]
import torch
device = sys.argv[1]
wait = torch.cuda.synchronize if device != "cpu" else lambda: None
{tensors}
wait()
marks = [time.perf_counter()]
{imports}
marks.append(time.perf_counter())
for _ in range(2):
    {call}
    wait()
    marks.append(time.perf_counter())
assert torch.allclose(c.float(), ({expected}).float(), rtol=2e-3, atol=2e-3), "a wrong result"
print(json.dumps([(end - start) * 1e3 for start, end in zip(marks, marks[1:])]))
"""


@dataclass(frozen=True)
class Contestant:
    """A kernel that is started: the variable that names its cache, and the parts of the program."""

    name: str
    cache: str
    program: str


WARPJIT = Contestant(
    "warpjit",
    "WARPJIT_CACHE_DIR",
    PROGRAM.format(
        tensors="a, b = (torch.randn((rows, 16), device=device).half() for rows in (16, 8))\n"
        "c = torch.empty((16, 8), device=device)",
        imports="from warp_matmul import warp_matmul",
        call="warp_matmul(a, b, c)",
        expected="a.double() @ b.double().t()",
    ),
)
TRITON = Contestant(
    "Triton",
    "TRITON_CACHE_DIR",
    PROGRAM.format(
        tensors="a, b = (torch.randn((64, 64), device=device).half() for _ in range(2))\n"
        "c = torch.empty((64, 64), device=device)",
        imports="from bench.triton_kernels import dot",
        call="dot[(1,)](a, b, c)",
        expected="a.double() @ b.double()",
    ),
)
CONTESTANTS = (WARPJIT, TRITON)


@dataclass(frozen=True)
class Started:
    """Milliseconds of one process: a number for each of `PARTS`."""

    kind: str
    milliseconds: tuple[float, ...]


def started(contestant: Contestant, device: str, pairs: int) -> Iterator[Started]:
    """Cold and warm starts in turn. A first start, not counted, leaves its bytecode and fills the file cache."""
    with tempfile.TemporaryDirectory() as cache:
        _start(contestant, device, cache)
    for _ in range(pairs):
        with tempfile.TemporaryDirectory() as cache:
            for kind in KINDS:
                yield Started(kind, _start(contestant, device, cache))


def _start(contestant: Contestant, device: str, cache: str) -> tuple[float, ...]:
    paths = (str(ROOT / "examples"), str(ROOT))
    printed = fresh_process(contestant.program, device, *paths, **{contestant.cache: cache})
    return tuple(json.loads(printed.splitlines()[-1]))


def run(settings: Settings, record: Record, device: str = "cuda") -> None:
    """Start each contestant several times; one that fails is noted with its error."""
    pairs = settings.runs or (1 if settings.quick else RUNS)
    errors: dict[str, str] = {}
    record.put(starts={}, errors=errors)
    starts: dict[str, Any] = {}
    for contestant in CONTESTANTS:
        if contestant.name not in settings.chosen([each.name for each in CONTESTANTS]):
            continue
        try:
            found = list(started(contestant, device, pairs))
        except Exception as error:
            errors[contestant.name] = error_text(error)
        else:
            starts |= {f"{contestant.name}, {kind}": figures(found, kind) for kind in KINDS}
        record.put(starts=starts, errors=errors)


def figures(found: list[Started], kind: str) -> dict[str, Any]:
    """Each part's time, and that of import and first call together: the wait for the first result."""
    times = [each.milliseconds for each in found if each.kind == kind]
    parts = {part: summary([each[index] for each in times]) for index, part in enumerate(PARTS)}
    return {"to the first result": summary([each[0] + each[1] for each in times]), **parts}


def tables(content: dict[str, Any]) -> list[Table]:
    """The waits and their parts."""
    rows = [
        (name, *(f"{each['median']:.0f} ({each['least']:.0f} to {each['most']:.0f})" for each in parts.values()))
        for name, parts in content["figures"]["starts"].items()
    ]
    columns = ("start", "to the first result, ms", *(f"{part}, ms" for part in PARTS))
    shown = [Table("a fresh process, after `import torch` and the start of CUDA", columns, tuple(rows))]
    errors = content["figures"]["errors"]
    if errors:
        shown.append(Table("left out", ("contestant", "why"), tuple(errors.items())))
    return shown


def draw(content: dict[str, Any], figure: Figure) -> None:
    """A bar per start: import, then the first call."""
    found = list(content["figures"]["starts"].items())[::-1]
    names = [name for name, _ in found]
    imports, firsts = ([parts[part]["median"] for _, parts in found] for part in PARTS[:2])
    axes = figure.add_subplot()
    axes.barh(names, imports, label="import")
    axes.barh(names, firsts, left=imports, label="first call")
    axes.set_xlabel("ms")
    axes.legend()


BENCH = Bench(
    "start",
    "the first result of a fresh process, cold and warm, beside Triton's",
    True,
    run,
    tables,
    draw,
    tuple(each.name for each in CONTESTANTS),
)
