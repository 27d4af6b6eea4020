"""Barriers, fences, mbarriers and the election of a lane.

    bar.sync, barrier.sync, ...      operands id, count (optional: threads that take part)
    bar.arrive, barrier.arrive, ...  operands id, count: does not wait
    bar.warp.sync                    operand membermask
    membar, fence                    no operands
    mbarrier.*                       operands as in the manual, in shared memory of this CTA
    mbarrier_wait                    a row of ours: blocks until the phase of that parity is complete
    elect.sync                       d is true in one lane

Sections of the manual: "Parallel Synchronization and Communication Instructions". What an mbarrier holds is in
`mbarrier_state`. Left out: remote mbarriers, `bar.red`, and the arrive forms that return a state.
"""

from __future__ import annotations

from collections.abc import Mapping

from warpjit.ir.dtypes import bool_, int32, mbarrier, uint32
from warpjit.isa import mbarrier_state
from warpjit.isa.needs import EVERYWHERE, since
from warpjit.isa.row import (
    Array,
    Asm,
    BarrierArrive,
    BarrierSync,
    Code,
    Elect,
    Fence,
    Kind,
    Mode,
    Needs,
    Operand,
    Participants,
    Row,
    WaitUntil,
)
from warpjit.isa.scalar_text import plain, result, value

_SECTION = "Parallel Synchronization and Communication Instructions: "


# ---- barriers of threads -----------------------------------------------------------------------------


def _cta_barrier(text: str) -> Row:
    def code(params: Mapping[str, int]) -> Asm:
        return Asm(f"{text} {{id}}, {{count}};" if params.get("has_count") else f"{text} {{id}};")

    return Row(
        text=text,
        operands=(value("id", int32), Operand("count", Kind.SCALAR, dtype=int32, optional=True)),
        code=code,
        meaning=None,
        needs=EVERYWHERE,
        participants=Participants.CTA,
        effect=BarrierSync(),
        memory=True,
        section=_SECTION + "bar, barrier",
    )


CTA_BARRIERS = tuple(
    _cta_barrier(text)
    for text in (
        *("bar.sync", "bar.cta.sync"),
        *(f"barrier{cta}.sync{aligned}" for cta in ("", ".cta") for aligned in ("", ".aligned")),
    )
)

CTA_ARRIVALS = tuple(
    Row(
        text=text,
        operands=(value("id", int32), value("count", int32)),
        code=Asm(f"{text} {{id}}, {{count}};"),
        meaning=None,
        needs=EVERYWHERE,
        participants=Participants.CTA,
        effect=BarrierArrive(),
        memory=True,
        section=_SECTION + "bar, barrier",
    )
    for text in (
        *("bar.arrive", "bar.cta.arrive"),
        *(f"barrier{cta}.arrive{aligned}" for cta in ("", ".cta") for aligned in ("", ".aligned")),
    )
)

WARP_BARRIER = Row(
    text="bar.warp.sync",
    operands=(value("membermask", uint32),),
    code=Asm("bar.warp.sync {membermask};"),
    meaning=None,
    needs=EVERYWHERE,
    participants=Participants.WARP,
    effect=BarrierSync(),
    memory=True,
    section=_SECTION + "bar.warp.sync",
)


# ---- fences ------------------------------------------------------------------------------------------


def _fence(text: str, what: str, needs: Needs) -> Row:
    return Row(
        text=text,
        operands=(),
        code=Asm(f"{text};"),
        meaning=None,
        needs=needs,
        effect=Fence(what),
        memory=True,
        section=_SECTION + "membar, fence",
    )


_SCOPES = {"cta": 70, "cluster": 90, "gpu": 70, "sys": 70}

FENCES = (
    *(_fence(f"membar.{level}", what, EVERYWHERE) for level, what in (("cta", "cta"), ("gl", "gpu"), ("sys", "sys"))),
    *(
        _fence(f"fence.{order}.{scope}", scope, since(arch))
        for order in ("acq_rel", "sc")
        for scope, arch in _SCOPES.items()
    ),
    *(
        _fence(f"fence.proxy.async{space}", f"proxy.async{space}", since(90))
        for space in ("", ".global", ".shared::cta")
    ),
    _fence("fence.mbarrier_init.release.cluster", "mbarrier_init", since(90)),
)
"""`Fence.what`: the scope of a fence between threads; "proxy.async" (with a space) between the generic and the async
proxy; "mbarrier_init" makes initialised barriers visible to the cluster and the async proxy."""


# ---- mbarriers ---------------------------------------------------------------------------------------


def barrier_operand(name: str, mode: Mode) -> Operand:
    """An mbarrier object in this CTA's shared memory."""
    return Operand(name, Kind.BARRIER, mode, dtype=mbarrier, space="shared", bytes=8, align=8)


def _mbarrier(
    text: str,
    code: Code,
    meaning: object,
    *operands: Operand,
    needs: Needs,
    effect: WaitUntil | None = None,
    section: str = "",
) -> Row:
    return Row(
        text=text,
        operands=operands,
        code=code,
        meaning=plain(meaning) if callable(meaning) else None,
        needs=needs,
        effect=effect,
        memory=True,
        section=_SECTION + (section or ".".join(text.split(".")[:2])),
    )


def _init(space: str) -> Row:
    text = f"mbarrier.init.{space}.b64"
    operands = (barrier_operand("bar", Mode.WRITE), value("count", int32))
    return _mbarrier(text, Asm(f"{text} [{{bar}}], {{count}};"), mbarrier_state.init, *operands, needs=since(80))


def _inval(space: str) -> Row:
    text = f"mbarrier.inval.{space}.b64"
    bar = barrier_operand("bar", Mode.UPDATE)
    return _mbarrier(text, Asm(f"{text} [{{bar}}];"), mbarrier_state.inval, bar, needs=since(80))


def _arrive(order: str, space: str) -> Row:
    text = f"mbarrier.arrive{order}.{space}.b64"
    # Before sm_90 an arrival of more than one must not complete a phase.
    count = Operand("count", Kind.SCALAR, dtype=int32, optional=True, needs=since(90))
    operands = (barrier_operand("bar", Mode.UPDATE), count)

    def code(params: Mapping[str, int]) -> Asm:
        more = ", {count}" if params.get("has_count") else ""
        return Asm(f"{{{{ .reg .b64 state; {text} state, [{{bar}}]{more}; }}}}")

    def meaning(state: Array, count: Array | None) -> Array:
        return mbarrier_state.arrive(state, 1 if count is None else count)

    return _mbarrier(text, code, meaning, *operands, needs=since(80))


def _arrive_expect_tx(order: str, space: str) -> Row:
    text = f"mbarrier.arrive.expect_tx{order}.{space}.b64"
    operands = (barrier_operand("bar", Mode.UPDATE), value("tx_count", int32))
    code = Asm(f"{{{{ .reg .b64 state; {text} state, [{{bar}}], {{tx_count}}; }}}}")
    return _mbarrier(text, code, mbarrier_state.arrive_expect_tx, *operands, needs=since(90))


def _tx(name: str, order: str, space: str) -> Row:
    text = f"mbarrier.{name}{order}.{space}.b64"
    meaning = {"expect_tx": mbarrier_state.expect_tx, "complete_tx": mbarrier_state.complete_tx}[name]
    operands = (barrier_operand("bar", Mode.UPDATE), value("tx_count", int32))
    return _mbarrier(text, Asm(f"{text} [{{bar}}], {{tx_count}};"), meaning, *operands, needs=since(90))


def _test(name: str, order: str, space: str, arch: int) -> Row:
    text = f"mbarrier.{name}.parity{order}.{space}.b64"
    operands = (result("d", bool_), barrier_operand("bar", Mode.READ), value("parity", int32))
    code = Asm(f"{{{{ .reg .pred p; {text} p, [{{bar}}], {{parity}}; selp.u32 {{d}}, 1, 0, p; }}}}")
    return _mbarrier(text, code, mbarrier_state.parity_done, *operands, needs=since(arch))


_SPACES = ("shared", "shared::cta")
_RELEASE, _ACQUIRE, _RELAXED = ("", ".release.cta"), ("", ".acquire.cta"), ("", ".relaxed.cta")

MBARRIERS = (
    *(_init(space) for space in _SPACES),
    *(_inval(space) for space in _SPACES),
    *(_arrive(order, space) for order in _RELEASE for space in _SPACES),
    *(_arrive_expect_tx(order, space) for order in _RELEASE for space in _SPACES),
    *(_tx(name, order, space) for name in ("expect_tx", "complete_tx") for order in _RELAXED for space in _SPACES),
    *(_test("test_wait", order, space, 80) for order in _ACQUIRE for space in _SPACES),
    *(_test("try_wait", order, space, 90) for order in _ACQUIRE for space in _SPACES),
)

# Labels inside a PTX scope are local to it, so copies of the loop do not meet.
MBARRIER_WAIT = _mbarrier(
    "mbarrier_wait",
    Asm(
        "{{ .reg .pred p; WAIT: mbarrier.try_wait.parity.shared::cta.b64 p, [{bar}], {parity}; "
        "@p bra DONE; bra WAIT; DONE: }}"
    ),
    None,
    barrier_operand("bar", Mode.READ),
    value("parity", int32),
    needs=since(90),
    effect=WaitUntil(mbarrier_state.parity_done),
    section="mbarrier.test_wait, mbarrier.try_wait",
)
"""Blocks each lane until the phase of this parity is complete."""


# ---- election ----------------------------------------------------------------------------------------

ELECT = Row(
    text="elect.sync",
    operands=(result("d", bool_), value("membermask", uint32)),
    code=Asm("{{ .reg .pred p; elect.sync _|p, {membermask}; selp.u32 {d}, 1, 0, p; }}"),
    meaning=None,
    needs=since(90),
    participants=Participants.WARP,
    effect=Elect(),
    memory=True,
    section=_SECTION + "elect.sync",
)

ROWS: tuple[Row, ...] = (*CTA_BARRIERS, *CTA_ARRIVALS, WARP_BARRIER, *FENCES, *MBARRIERS, MBARRIER_WAIT, ELECT)
