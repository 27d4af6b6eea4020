"""How long the example's kernel takes to trace and verify (limit 20 ms) and to simulate (0.2 s), and `import warpjit`.

    python bench/trace_seed.py

Traced and verified: from a specialisation to a planned program, by a new kernel each time; once with cold caches in a
new process, and as the median of many. Import: after torch (limit 30 ms), of the package alone, whose names load when
they are asked for, and with the names that every kernel needs.
"""

from __future__ import annotations

import sys

import torch
from harness import ROOT, in_fresh_processes, record, summary, timed

sys.path.insert(0, str(ROOT / "examples"))

from warp_matmul import warp_matmul

from warpjit import Kernel, warpjit
from warpjit.isa.target import Target

TRACE_LIMIT, SIMULATE_LIMIT, IMPORT_LIMIT = 20, 200, 30
RUNS = 30

IMPORT = """
import time, torch
start = time.perf_counter()
{}
print((time.perf_counter() - start) * 1e3)
"""

NAMES = "from warpjit import T, warpjit; T.float32"

COLD = """
import sys
sys.path[:0] = ["examples", "bench"]
from trace_seed import traced, warp_matmul
print(traced(warp_matmul))
"""

COLD_SIMULATION = """
import sys
sys.path[:0] = ["examples", "bench"]
from trace_seed import simulated
print(simulated())
"""


def traced(kernel: Kernel) -> float:
    """Milliseconds to trace, verify and plan a kernel that has no program yet."""
    specialization = kernel.specialization((), {})
    return timed(lambda: kernel.program(specialization, Target.parse("sm_90a")))


def simulated() -> float:
    """Milliseconds of a simulated call; tracing is done before."""
    kernel = warpjit(warp_matmul.function)
    kernel.program(kernel.specialization((), {}), Target.parse("sm_90a"))
    a, b = (torch.randn((rows, 16), dtype=torch.float16) for rows in (16, 8))
    out = torch.empty((16, 8))
    return timed(lambda: kernel.simulate(a, b, out))


def main() -> None:
    """Take and record the figures."""
    record(
        "trace_seed",
        {
            "trace and verify, cold": summary(in_fresh_processes(COLD, 7), TRACE_LIMIT),
            "trace and verify": summary([traced(warpjit(warp_matmul.function)) for _ in range(RUNS)], TRACE_LIMIT),
            "simulate, cold": summary(in_fresh_processes(COLD_SIMULATION, 7), SIMULATE_LIMIT),
            "simulate": summary([simulated() for _ in range(RUNS)], SIMULATE_LIMIT),
            "import warpjit, after torch": summary(
                in_fresh_processes(IMPORT.format("import warpjit"), 7), IMPORT_LIMIT
            ),
            "the names a kernel needs, after torch": summary(in_fresh_processes(IMPORT.format(NAMES), 7), IMPORT_LIMIT),
        },
    )


if __name__ == "__main__":
    main()
