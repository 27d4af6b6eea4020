"""Which targets have an instruction, in the few forms that the tables use.

The conditions of single instructions stand in their rows ("Target ISA Notes" of each section of the PTX manual).
"""

from __future__ import annotations

from warpjit.isa.row import Needs

EVERYWHERE = Needs("every target", lambda target: True)


def since(arch: int) -> Needs:
    """`arch` and everything after it, e.g. 80 for "sm_80 or later"."""
    return Needs(f"sm_{arch} or later", lambda target: target.at_least(arch))


def only(*archs: int) -> Needs:
    """What the suffix `a` unlocks on these architectures alone, e.g. 90 for "sm_90a"."""
    return Needs(" or ".join(f"sm_{arch}a" for arch in archs), lambda target: target.specific(*archs))


def families(*archs: int) -> Needs:
    """What the suffixes `f` and `a` unlock in the families that begin with `archs`, e.g. 120 for "sm_120f or later"."""
    names = " or ".join(f"sm_{arch}f" for arch in archs)
    return Needs(f"{names}, or later in the family", lambda target: target.in_family(*archs))
