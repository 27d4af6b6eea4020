"""What a simulated kernel prints and asserts.

Lines are kept until the CTAs that run together are done, and come out CTA by CTA and warp by warp, whatever the order
in which warps ran: of one operation the lanes in order. A failed check is a finding of its lane, with the values.
"""

from __future__ import annotations

import re
import sys
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from warpjit.isa.row import Check, Print
from warpjit.layout.axis import LANES
from warpjit.sim.groups import Turn
from warpjit.sim.state import State
from warpjit.sim.step import Step

Array: TypeAlias = npt.NDArray[Any]

_SIZE = re.compile(r"(%[-+ #0-9.]*)ll")


def flush(state: State) -> None:
    """Write to stdout what the CTAs printed."""
    text = "".join("".join(state.printed[row]) for row in sorted(state.printed))
    if text:
        sys.stdout.write(text)
        sys.stdout.flush()


def print_lines(state: State, step: Step, turn: Turn, effect: Print) -> list[Array]:
    """Each active lane prints."""
    values = _values(state, step, turn)
    for position, lane in np.argwhere(turn.mask).tolist():
        state.printed.setdefault(int(turn.rows[position]), []).append(_filled(effect.text, values, position, lane))
    return []


def check(state: State, step: Step, turn: Turn, effect: Check) -> list[Array]:
    """A finding where the first operand is false."""
    condition, *values = _values(state, step, turn)
    position, lane = np.nonzero(~condition.astype(bool) & turn.mask)
    state.findings.add(
        lambda i: f"assertion failed: {_filled(effect.text, values, int(position[i]), int(lane[i]))}",
        step.loc,
        turn.rows[position],
        lane,
    )
    state.findings.settle()
    return []


def _values(state: State, step: Step, turn: Turn) -> list[Array]:
    """The operands (n, 32)."""
    shape = (turn.count, LANES)
    return [np.broadcast_to(state.values.read(bound.atoms[0][0], turn.index), shape) for bound in step.bound]


def _filled(text: str, values: list[Array], position: int, lane: int) -> str:
    """The format with the values of one lane. Python's formats are C's but for sizes."""
    return _SIZE.sub(r"\1", text) % tuple(each[position, lane].item() for each in values)
