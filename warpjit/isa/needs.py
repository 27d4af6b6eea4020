"""Which targets have an instruction, in the few forms that the tables use.

The conditions of single instructions stand in their rows ("Target ISA Notes" of each section of the PTX manual).
"""

from __future__ import annotations

from warpjit.isa.row import Needs

EVERYWHERE = Needs("every target", lambda target: True)


def since(arch: int) -> Needs:
    """`arch` and everything after it, e.g. 80 for "sm_80 or later"."""
    return Needs(f"sm_{arch} or later", lambda target: target.at_least(arch))


def only(arch: int) -> Needs:
    """What the suffix `a` unlocks on `arch` alone, e.g. 90 for "sm_90a"."""
    return Needs(f"sm_{arch}a", lambda target: target.specific(arch))
