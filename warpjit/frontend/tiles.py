"""`T.cuda.tile.apply`: an instruction on whole tiles.

Everything here reads the row: which operands it has, what they must look like, who executes it. An operand's proof
is `warpjit.isa`'s; here a proven operand becomes registers and addresses, issue by issue. The form that takes single
values and pointers is in `raw`.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from warpjit.errors import TraceError
from warpjit.frontend import arithmetic
from warpjit.frontend.addresses import Index, address, start_alignment, static_int, tile_of
from warpjit.frontend.copies import apply_copy, copies_chunks
from warpjit.frontend.intrinsics import lane_id, warp_id
from warpjit.frontend.lookup import instruction_row
from warpjit.frontend.matrices import apply_matrix, move_of
from warpjit.frontend.packed import register_of
from warpjit.frontend.raw import immediate
from warpjit.frontend.tracer import Tracer
from warpjit.frontend.values import Scalar, TensorValue, Value, is_number
from warpjit.ir.nodes import Address, Atom, Fragment, OperandValue, Registers, Slot, Tile
from warpjit.isa.operands import Group
from warpjit.isa.proof import prove
from warpjit.isa.row import Kind, Mode, Operand, Row
from warpjit.isa.tile_proof import prove_tile
from warpjit.layout import Axis, ComposeLayout, TileLayout, m
from warpjit.layout.axis import LANES
from warpjit.record import record

# ---- operands of tile.apply --------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Issues:
    """What a proven operand gives each issue: `at(coordinate)` over its own batch and repeat axes."""

    operand: Operand
    value: Value
    repeats: tuple[int, ...]
    slots: object = field(compare=False, default=None)
    addresses: dict[tuple[int, ...], Address] = field(compare=False, default_factory=dict)

    @property
    def batch(self) -> tuple[int, ...]:
        return self.repeats[: len(self.repeats) - len(self.operand.repeats)]

    @property
    def named(self) -> dict[str, int]:
        return dict(zip(self.operand.repeats, self.repeats[len(self.batch) :], strict=True))


@record
class Application:
    """One `tile.apply` being traced."""

    tracer: Tracer
    row: Row
    group: Group

    def refused(self, operand: Operand, sentence: str) -> TraceError:
        return TraceError(f"{self.row.text}: operand {operand.name}: {sentence}")


def _scope(tracer: Tracer, row: Row, scope: Value) -> Group:
    own = row.participants.value
    scope = own if scope is None else scope
    legal = {"thread": ("thread",), "warp": ("warp", "warpgroup", "cta"), "warpgroup": ("warpgroup", "cta")}.get(
        own, (own,)
    )
    if scope not in legal:
        if own == "warp" and scope == "thread":
            raise TraceError(
                f'{row.text}: all 32 lanes must be active: expected scope="warp", "warpgroup" or "cta" but got "thread"'
            )
        raise TraceError(
            f"{row.text} is executed by a whole {own}: expected scope {' or '.join(map(repr, legal))} but got {scope!r}"
        )
    assert tracer.launch is not None
    threads = tracer.launch.threads
    if own != "thread" and threads % LANES:
        raise TraceError(
            f"{row.text}: all 32 lanes must be active, but the block's {threads} threads leave the last warp "
            "partly empty"
        )
    if scope == "warpgroup" and threads % (4 * LANES):
        raise TraceError(
            f'{row.text}: scope "warpgroup" needs a block of whole warpgroups (128 threads), but it has {threads}'
        )
    return Group(scope if own != "thread" else "warp", threads // LANES)


def _fragment(application: Application, operand: Operand, tensor: TensorValue) -> Issues:
    if not isinstance(tensor.base, Registers):
        raise application.refused(
            operand, f"expected a local tensor (registers), but {tensor.name} is in {tensor.space} memory"
        )
    assert operand.dtype is not None and tensor.layout is not None
    if tensor.base.word.bits != operand.dtype.bits:
        raise application.refused(
            operand,
            f"expected {operand.dtype.bits}-bit registers, but {tensor.name} has {tensor.base.word.bits}-bit ones",
        )
    layout = tensor.layout
    start = static_int(tensor.offset, "the offset of a view")
    if start:
        tile = tile_of(layout)
        offset: dict[Axis | str, int] = dict(tile.offset.items())
        offset[m] = tile.offset.get(m, 0) + start
        moved = TileLayout.from_iters(tile.shard, tile.replica, offset)
        layout = replace(layout, tile_layout=moved) if isinstance(layout, ComposeLayout) else moved
    shape = tuple(static_int(extent, "an extent") for extent in tensor.shape)
    placement = prove(application.row, operand.name, layout, shape, tensor.dtype, tensor.base.count, application.group)
    return Issues(operand, tensor, placement.repeats, placement.slots)


def _tile(application: Application, operand: Operand, tensor: TensorValue) -> Issues:
    if tensor.space != operand.space:
        raise application.refused(operand, f"expected a {operand.space} tensor, but {tensor.name} is {tensor.space}")
    if tensor.layout is None:
        raise application.refused(operand, f"the layout of {tensor.name} must be known while tracing")
    builder = application.tracer.builder
    shape = tuple(static_int(extent, "an extent") for extent in tensor.shape)
    start = start_alignment(builder, tensor)
    whole = prove_tile(application.row, operand.name, tensor.layout, shape, tensor.dtype.bits, start)
    group = application.group.extents
    if whole.repeats[: len(group)] != group:
        raise application.refused(
            operand,
            f"scope {application.group.scope!r} needs a leading axis of {group[0]} warps, but {tensor.name} has shape "
            f"{shape}",
        )
    repeats = whole.repeats[len(group) :]
    atom = len(shape) - len(whole.repeats)
    warp = _group_coordinate(application)
    lane = _row_coordinates(application, operand)
    zeros: tuple[Index, ...] = (0,) * (atom - len(lane))
    addresses = {
        coordinate: address(builder, tensor, (*warp, *coordinate, *lane, *zeros))
        for coordinate in itertools.product(*map(range, repeats))
    }
    return Issues(operand, tensor, repeats, addresses=addresses)


def _group_coordinate(application: Application) -> tuple[Index, ...]:
    if not application.group.extents:
        return ()
    warp = warp_id(application.tracer)
    if application.group.scope == "warpgroup":
        return (arithmetic.binary(application.tracer.builder, "mod", warp, 4),)
    return (warp,)


def _row_coordinates(application: Application, operand: Operand) -> tuple[Index, ...]:
    """Which row of the atom this lane addresses: the operand's layout, inverted (a mixed radix in the lane)."""
    assert operand.layout is not None
    builder = application.tracer.builder
    lane = lane_id(application.tracer)
    return tuple(
        arithmetic.binary(builder, "mod", arithmetic.binary(builder, "floordiv", lane, it.stride), it.extent)
        if it.extent > 1
        else 0
        for it in operand.layout.shard
    )


# ---- issues ----------------------------------------------------------------------------------------------------


def _agree(row: Row, proven: Sequence[Issues]) -> tuple[tuple[int, ...], dict[str, int]]:
    """Batch and named repeats of the operation. TraceError: operands disagree."""
    first = proven[0]
    extents: dict[str, tuple[int, str]] = {}
    for issues in proven:
        if issues.batch != first.batch:
            raise TraceError(
                f"{row.text}: repeat shapes must agree, but operand {first.operand.name} has batch axes {first.batch} "
                f"and operand {issues.operand.name} has {issues.batch}"
            )
        for name, extent in issues.named.items():
            known = extents.setdefault(name, (extent, issues.operand.name))
            if known[0] != extent:
                raise TraceError(
                    f"{row.text}: repeat shapes must agree, but operand {known[1]} has {name}={known[0]} and operand "
                    f"{issues.operand.name} has {name}={extent}"
                )
    return first.batch, {name: extent for name, (extent, _) in extents.items()}


def _accumulator(row: Row) -> tuple[Operand, Operand] | None:
    """(written, read): the fragment that is read like the one that is written: C of D = A B + C."""
    for written in row.operands:
        for read in row.operands:
            same = written.repeats == read.repeats and written.shape == read.shape and written.layout == read.layout
            if (
                same
                and written.kind is read.kind is Kind.FRAGMENT
                and written.mode is Mode.WRITE
                and read.mode is Mode.READ
                and written.repeats
            ):
                return written, read
    return None


def apply(
    tracer: Tracer, instruction: Value, *operands: Value, scope: Value = None, pred: Value = None, **parameters: Value
) -> None:
    tracer.require_device("T.cuda.tile.apply")
    if tracer.sketches():
        return
    row = instruction_row("T.cuda.tile.apply", instruction)
    if not row.tile:
        raise TraceError(f"{row.text} has no tile form: call it, {row!r}(...), with scalars and pointers")
    if copies_chunks(row):
        apply_copy(tracer, row, operands, scope, parameters if pred is None else {**parameters, "pred": pred})
        return
    given = _given(row, operands, parameters if pred is None else {"pred": pred, **parameters})
    group = _scope(tracer, row, scope)
    move = move_of(row, operands)
    if move is not None:
        apply_matrix(tracer, move, operands, group)
        return
    application = Application(tracer, row, group)
    accumulator = _accumulator(row)
    proven: dict[str, Issues] = {}
    scalars: dict[str, Atom] = {}
    params: list[tuple[str, int]] = []
    for operand, value in ((operand, given[operand.name]) for operand in row.operands):
        if operand.kind is Kind.IMMEDIATE:
            params.append((operand.name, immediate(row, operand, value)))
        elif isinstance(value, TensorValue):
            proven[operand.name] = TILES[operand.kind](application, operand, value)
        elif accumulator is not None and operand is accumulator[1]:
            scalars[operand.name] = _broadcast(tracer, row, operand, value)
        else:
            raise TraceError(
                f"{row.text}: operand {operand.name}: expected a tensor but got {arithmetic.describe(value)}"
            )
    _issue(application, proven, scalars, accumulator, tuple(params))


def _given(row: Row, operands: Sequence[Value], named: Mapping[str, Value]) -> dict[str, Value]:
    """The operands by name: given in order, or, if they are numbers in the instruction's text, by name."""
    given: dict[str, Value] = dict(zip((operand.name for operand in row.operands), operands, strict=False))
    immediates = {operand.name for operand in row.operands if operand.kind is Kind.IMMEDIATE}
    for name, value in named.items():
        if name not in immediates or name in given:
            raise TraceError(f"{row.text} takes no {name}=: all 32 lanes execute it together")
        given[name] = value
    if len(operands) + len(named) != len(row.operands):
        names = ", ".join(operand.name for operand in row.operands)
        raise TraceError(f"{row.text}: expected {len(row.operands)} operands ({names}) but got {len(operands)}")
    return given


def _broadcast(tracer: Tracer, row: Row, operand: Operand, value: Value) -> Atom:
    """C as a number: the same for every element."""
    kind = operand.element or operand.dtype
    assert kind is not None
    what = f"{row.text}: operand {operand.name}"
    if isinstance(value, int) and kind.is_float:
        raise TraceError(
            f"{what}: expected {kind} but got the int {value!r}: write {float(value)!r} or T.{kind}({value})"
        )
    if isinstance(value, Scalar) and value.dtype != kind:
        raise TraceError(f"{what}: expected {kind} but got a scalar of type {value.dtype}")
    if not isinstance(value, Scalar) and not is_number(value):
        raise TraceError(f"{what}: expected a tensor or a number but got {arithmetic.describe(value)}")
    return tracer.builder.atom(register_of(tracer.builder, operand, value))


TILES: dict[Kind, Callable[[Application, Operand, TensorValue], Issues]] = {
    Kind.FRAGMENT: _fragment,
    Kind.ADDRESS: _tile,
}


def _issue(
    application: Application,
    proven: dict[str, Issues],
    scalars: dict[str, Atom],
    accumulator: tuple[Operand, Operand] | None,
    params: tuple[tuple[str, int], ...],
) -> None:
    """The one operation: every operand's registers and addresses, issue by issue; what is contracted runs innermost."""
    row = application.row
    batch, named = _agree(row, list(proven.values()))
    written = {name for issues in proven.values() if issues.operand.writes for name in issues.operand.repeats}
    order = sorted(named, key=lambda name: name not in written)
    contracted = [name for name in order if name not in written]
    coordinates = list(itertools.product(*map(range, batch), *(range(named[name]) for name in order)))
    values: list[OperandValue] = []
    for operand in row.operands:
        if operand.kind is Kind.ADDRESS:
            values.append(Tile(tuple(proven[operand.name].addresses[c] for c in coordinates)))
            continue
        if operand.kind is Kind.IMMEDIATE:
            values.append(None)
            continue
        items = []
        for coordinate in coordinates:
            where = dict(zip(order, coordinate[len(batch) :], strict=True))
            source = operand
            if accumulator is not None and operand is accumulator[1] and any(where[name] for name in contracted):
                source = accumulator[0]
            items.append(_registers(proven, scalars, source, coordinate[: len(batch)], where))
        values.append(Fragment(tuple(items)))
    application.tracer.builder.issue(
        row, tuple(values), issues=len(coordinates), params=params, scope=application.group.scope
    )


def _registers(
    proven: dict[str, Issues], scalars: dict[str, Atom], operand: Operand, batch: tuple[int, ...], where: dict[str, int]
) -> tuple[Atom, ...]:
    if operand.name in scalars:
        return (scalars[operand.name],) * operand.registers
    issues = proven[operand.name]
    own = (*batch, *(where[name] for name in operand.repeats))
    index = 0
    for position, extent in zip(own, issues.repeats, strict=True):
        index = index * extent + position
    return tuple(Slot(issues.value.base, int(slot)) for slot in issues.slots[index])  # type: ignore[index]
