"""What an instruction of the table is made of.

A `Row` says everything about one instruction: its text, its operands with their layouts, who executes it,
which targets have it, how it is written in CUDA and what it does to arrays. The tracer checks operands
against it, the emitter writes its `code`, the simulator runs its `meaning`; none of them knows any row by
name. The rows themselves stand in the files named for their families.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from enum import Enum
from functools import cached_property, lru_cache
from math import prod
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from warpjit.errors import InstructionError
from warpjit.ir.dtypes import DType
from warpjit.isa.target import Target
from warpjit.layout import TileLayout
from warpjit.record import record

if TYPE_CHECKING:
    from warpjit.layout.picture import Picture

Array: TypeAlias = "np.ndarray[Any, np.dtype[Any]]"


class Kind(Enum):
    """What an operand is. A new kind is a change of the machine: emitter and simulator have a handler for each."""

    FRAGMENT = "fragment"  # registers of all lanes, placed by a layout
    SCALAR = "scalar"  # one value a thread
    IMMEDIATE = "immediate"  # a number in the instruction's text: in `Op.params` under the operand's name
    ADDRESS = "address"  # memory: `bytes` contiguous bytes at this lane's address
    BARRIER = "mbarrier"  # an 8-byte mbarrier object in shared memory

    __hash__ = object.__hash__  # a member is one object; Enum's own hash is a function of Python's


class Mode(Enum):
    READ = "read"
    WRITE = "write"
    UPDATE = "update"  # read and written


class Participants(Enum):
    """Who executes the instruction together."""

    THREAD = "thread"
    WARP = "warp"
    WARPGROUP = "warpgroup"
    CTA = "cta"
    CLUSTER = "cluster"


class Completion(Enum):
    """How the program learns that an operand which is busy "until completion" is free."""

    NONE = "none"
    CP_ASYNC_GROUP = "cp.async group"
    BULK_GROUP = "bulk group"
    WGMMA_GROUP = "wgmma group"
    MBARRIER_BYTES = "mbarrier bytes"


@record
class Needs:
    """Which targets have the instruction, and the same in words ("sm_80 or later")."""

    text: str
    holds: Callable[[Target], bool] = field(compare=False)


@record
class Fields:
    """What the registers of a fragment hold, bit by bit: the elements of a matrix, or the metadata of one.

    names     of the coordinates, in order
    shape     their extents
    layout    coordinates -> laneid and, on m, the place among all fields of the lane's registers, low bits first;
              with replicas where several lanes may hold the same
    bits      of one field
    selector  name of the immediate that says which of the replicas is read
    """

    names: tuple[str, ...]
    shape: tuple[int, ...]
    layout: TileLayout
    bits: int
    selector: str = ""


@dataclass(frozen=True)
class Operand:
    """One operand of a row.

    name        as in the manual, lower case except matrices: "d", "a", "D", "A"
    dtype       of one register or scalar; of one element for an address that loads or stores a scalar
    element     FRAGMENT: what a register packs several of, low bits first, where it does; uint16 for any 16 bits
    shape       FRAGMENT, or an ADDRESS that a tile can stand for: extents of the atom, in units of `dtype`
    layout      FRAGMENT: atom coordinates -> laneid and register (axis m).
                ADDRESS: atom coordinates without the last -> laneid of the lane that gives this row's address
    transposed  ADDRESS that a tile can stand for: a row of memory is a column of the matrix in the fragment
    repeats     names of the repeat axes before the atom, outermost first ("M", "N"); leading batch axes are free
    space       ADDRESS, BARRIER: "global", "shared" or "constant"
    bytes       ADDRESS: contiguous bytes moved at each address (0: given by the immediate or scalar named `size`)
    align       ADDRESS: the address must be a multiple of this many bytes; where `size` is an immediate, of it too
    proxy       "generic" or "async": through which proxy the memory is accessed
    busy        "issue": free again after the instruction; "completion": until `Row.completion`
    optional    may be left out
    needs       targets on which the operand may be given, where they are fewer than the row's
    choices     IMMEDIATE: the legal values, empty for any
    names       what the coordinates of the atom are called, where `axes` would say something else
    fields      FRAGMENT: what its registers hold, where that is not the elements of the atom
    """

    name: str
    kind: Kind
    mode: Mode = Mode.READ
    dtype: DType | None = None
    shape: tuple[int, ...] = ()
    layout: TileLayout | None = None
    repeats: tuple[str, ...] = ()
    space: str = ""
    bytes: int = 0
    align: int = 1
    proxy: str = "generic"
    busy: str = "issue"
    optional: bool = False
    choices: tuple[int, ...] = ()
    element: DType | None = None
    needs: Needs | None = None
    transposed: bool = False
    names: tuple[str, ...] = ()
    fields: Fields | None = None

    @property
    def registers(self) -> int:
        """FRAGMENT: registers of one lane."""
        return self.layout.span("m") if self.kind is Kind.FRAGMENT and self.layout is not None else 0

    @property
    def packed(self) -> int:
        """How many elements one register packs."""
        return 1 if self.element is None or self.dtype is None else self.dtype.bits // self.element.bits

    @property
    def axes(self) -> tuple[str, ...]:
        """What the coordinates of the atom are called, in order.

        Operands of products carry the product's letters: A is (m, k), B is (n, k) as everywhere in warpjit (the
        manual's B[k][n]), C and D are (m, n). Others are (matrix, row, column), or (row, column), or `names`.
        """
        if self.names:
            return self.names
        if len(self.repeats) == len(self.shape):
            return tuple(name.lower() for name in self.repeats)
        return ("matrix", "row", "column")[-len(self.shape) :]

    @property
    def held(self) -> Fields:
        """FRAGMENT: what its registers hold: `fields`, or the elements of the atom."""
        if self.fields is not None:
            return self.fields
        assert self.layout is not None
        assert self.dtype is not None
        *outer, last = self.shape
        elements = (*outer, last * self.packed)
        return Fields(self.axes, elements, self.layout.unpack(self.packed), self.dtype.bits // self.packed)

    @cached_property
    def reads(self) -> bool:
        return self.mode is not Mode.WRITE

    @cached_property
    def writes(self) -> bool:
        return self.mode is not Mode.READ


# ---- how a row is written in CUDA C++ -----------------------------------------------------------------


@record
class Asm:
    """An inline-PTX statement. `{name}` is an operand: a fragment becomes `{%0, %1, ...}`, an address or a barrier
    its register (write the brackets: `[{src}]`), an immediate its number. `{{` is a brace, `%%` a percent sign.
    A bool or 8-bit scalar stands for a 32-bit register that holds the value (0 or 1; sign-extended if signed):
    inline assembly has no narrower constraint than "h", so the emitter converts around the statement."""

    text: str


@record
class Cxx:
    """A C++ statement over the operands, e.g. `{d} = {a} + {b};`. An address is a typed lvalue:
    `{d} = {src};`, an immediate its number, `{{` a brace; all else stands as it is. An operand is a name or a
    literal and may stand several times. The generated text is header-free: it calls no function but those of
    the compiler that `cuda.prelude` declares."""

    text: str


Code: TypeAlias = Asm | Cxx | Callable[[Mapping[str, int]], "Asm | Cxx"]
"""A template, or a function of the operation's params that gives one. For each optional operand the mapping also
holds `has_<name>`, 1 where it is given: call `Row.written`, which adds them."""


# ---- what a row does besides computing ----------------------------------------------------------------


@record
class Commit:
    """Closes the group of asynchronous copies issued so far."""

    group: Completion


@record
class WaitGroup:
    """Blocks until at most `n` (immediate operand) of the latest groups are pending; with `all_groups` none."""

    group: Completion
    all_groups: bool = False


@dataclass(frozen=True)
class BarrierSync:
    """Blocks until the participants have come: the CTA (operands `id`, `count` where the row has them) or the warp."""


@dataclass(frozen=True)
class BarrierArrive(BarrierSync):
    """Comes to the barrier of the operands `id` and `count` as its other participants do, and does not wait."""


@record
class WaitUntil:
    """Blocks each lane until `ready(*reads)` is true; reads are the arrays of the reading operands."""

    ready: Callable[..., Array]


@record
class Fence:
    """Orders memory accesses: of one proxy against the other, or against other threads."""

    what: str


@record
class Special:
    """Reads a special register: "laneid", "tid.x", "ctaid.y", "nctaid.z", "warp" (this warp's index), ..."""

    register: str


@record
class Elect:
    """Chooses one active lane of the warp."""


@record
class CompleteBytes:
    """When its copy completes, `bytes` are subtracted from the pending count of the mbarrier operand."""


@record
class ArriveWhenCopied:
    """When all copies of groups that the thread has issued so far are done, it arrives at the mbarrier operand."""


@record
class Hint:
    """Tells the memory system what may come: no result depends on it, and any address is legal."""


@record
class Print:
    """Each active lane prints `text`: a format of C, filled with the operands."""

    text: str


@record
class Check:
    """Lanes in which the first operand is false end the kernel; `text` is a format, filled with the others."""

    text: str


Effect: TypeAlias = (
    Commit | WaitGroup | BarrierSync | WaitUntil | Fence | Special | Elect | CompleteBytes | ArriveWhenCopied | Hint
    | Print | Check
)  # fmt: skip


@dataclass(frozen=True, eq=False)
class Row:
    """One instruction.

    text          full PTX text in the manual's order of modifiers; a name of ours where PTX has no single instruction
    code          how it is written
    meaning       what it does: takes the arrays of the reading operands in order (and params as keywords), returns
                  the array of the writing one (a tuple of arrays, in order, if several write; an optional operand
                  that is left out is None). Shapes: scalars (*batch, 32); fragments (*batch, 32, registers);
                  addresses uint8 (*batch, 32, bytes); barriers uint64 (*batch, 32). Of a row that updates an address
                  it is elementwise, and takes and gives some of the lanes: (k,) and (k, bytes). None: no data.
                  InstructionError: the manual leaves open what these values give.
    effect        what it does to synchronisation
    memory        touches memory or synchronises: its asm is volatile with a "memory" clobber
    volatile      its asm is volatile without that clobber: lanes execute it together, so it stays on its path
    uniform       its results are the same in all lanes of the warp
    fixed         what it reads must not change while the kernel runs (non-coherent loads)
    pure          no effect but its result: unused results may be dropped, equal ones shared
    moves         only moves bits: an unwritten input is not used by it, its bits are unwritten in the result
    divisor       name of the operand that must not be zero, for integer divisions
    tile          may be used through `T.cuda.tile.apply`
    section       where the manual describes it
    notes         what a user should know ("emulated on sm_90")
    unverified    what the row says was never compared with a device: only a kernel that allows it may use it
    """

    text: str
    operands: tuple[Operand, ...]
    code: Code
    meaning: Callable[..., Any] | None
    needs: Needs
    participants: Participants = Participants.THREAD
    completion: Completion = Completion.NONE
    effect: Effect | None = None
    memory: bool = False
    volatile: bool = False
    uniform: bool = False
    fixed: bool = False
    pure: bool = False
    moves: bool = False
    divisor: str = ""
    tile: bool = False
    section: str = ""
    notes: str = ""
    unverified: bool = False

    def __post_init__(self) -> None:
        for problem in self._problems():
            raise InstructionError(f"row {self.text!r}: {problem}")

    def _problems(self) -> list[str]:
        names = [operand.name for operand in self.operands]
        found = [f"operand name {name!r} stands twice" for name in set(names) if names.count(name) > 1]
        for operand in self.operands:
            found += _operand_problems(operand)
        if self.divisor and self.divisor not in names:
            found.append(f"its divisor {self.divisor!r} is no operand")
        if self.pure and self.memory:
            found.append("a pure row cannot touch memory")
        if self.completion is Completion.NONE and any(operand.busy == "completion" for operand in self.operands):
            found.append("an operand is busy until completion, but the row names no completion")
        if isinstance(self.code, Asm | Cxx):
            found += [
                f"operand {name!r} does not stand in its code" for name in names if "{" + name not in self.code.text
            ]
        return found

    def operand(self, name: str) -> Operand:
        """The operand of this name; InstructionError lists the names."""
        for operand in self.operands:
            if operand.name == name:
                return operand
        known = ", ".join(operand.name for operand in self.operands)
        raise InstructionError(f"{self.text} has no operand {name!r}; its operands are {known}")

    def written(self, params: Mapping[str, int], given: Collection[str] | None = None) -> Asm | Cxx:
        """The template for these params; `given` names the optional operands that are present (None: all)."""
        if isinstance(self.code, Asm | Cxx):
            return self.code
        optional = [operand.name for operand in self.operands if operand.optional]
        presence = {f"has_{name}": int(given is None or name in given) for name in optional}
        return self.code({**params, **presence})

    def draw(self, operand: str, *, color: str = "lane") -> Picture:
        """A picture of an operand: its `svg()`, its `text()`, `save(path)`, and in a notebook the picture itself.

        operand  a fragment, in elements of its own type; or the address of a tile's rows
        color    "lane" or "register"

        Labels: T lane, R register. Boxes hold the elements of one register.
        Raises InstructionError: no such operand, one that is not spread over lanes, another colour.
        """
        from warpjit.isa.picture import draw_operand  # noqa: PLC0415  kernels do without

        return draw_operand(self, operand, color=color)

    def _repr_html_(self) -> str:
        from warpjit.isa.picture import row_html  # noqa: PLC0415  kernels do without

        return row_html(self)

    def __repr__(self) -> str:
        return f'T.ptx["{self.text}"]'


def _operand_problems(operand: Operand) -> list[str]:
    """What is wrong with an operand by itself."""
    where = f"operand {operand.name!r}"
    if operand.kind is Kind.FRAGMENT:
        if operand.layout is None or operand.dtype is None or not operand.shape:
            return [f"{where}: a fragment needs dtype, shape and layout"]
        if operand.layout.size() != prod(operand.shape):
            return [f"{where}: layout {operand.layout!r} does not have the size of shape {operand.shape}"]
        if not _is_bijective(operand.layout):
            return [f"{where}: layout {operand.layout!r} is not a bijection onto lanes and registers"]
    if operand.kind in (Kind.ADDRESS, Kind.BARRIER) and operand.space not in ("global", "shared", "constant"):
        return [f"{where}: an address needs a space, global, shared or constant"]
    return []


@lru_cache(maxsize=256)
def _is_bijective(layout: TileLayout) -> bool:
    """Onto lanes and registers; rows of a family share layouts."""
    return layout.is_bijective(("laneid", "m"))
