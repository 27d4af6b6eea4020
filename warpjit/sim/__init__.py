"""The simulator: runs a traced kernel on the CPU, lane by lane, and reports what it does wrong.

    simulate(kernel, plan, arguments, *, seed=0, numerics="exact") -> Report

Needs no torch: tensors come as `GlobalMemory`, numpy views of their storages.
"""

from warpjit.sim.memory import GlobalMemory
from warpjit.sim.run import Plan, Prepared, Report, simulate

__all__ = ["GlobalMemory", "Plan", "Prepared", "Report", "simulate"]
