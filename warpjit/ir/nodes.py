"""The program between tracing and the two back ends.

An `Op` names a row of the instruction table and gives its operands; everything that computes, moves or
synchronises is an `Op`, from `add.s32` to `mma.sync`. Around it stand control statements (`For`, `While`, `If`,
`Break`, `Continue`, `Return`) and what is no instruction (`Declare`, `Assign`, `Allocate`, `Assume`). Statements
are in order, scalars are three-address, locals are mutable and typed (no SSA): only `Assign` ever writes a local
twice. Every node carries the place it came from. What a row *means* or how it is written in CUDA is not here.

Addresses are byte offsets into a buffer, computed by ordinary `Op`s: both back ends read the same sums.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Protocol, TypeAlias

from warpjit.errors import NOWHERE, Loc
from warpjit.ir.dtypes import DType
from warpjit.ir.facts import Facts, Uniformity
from warpjit.record import record


class Instruction(Protocol):
    """What the IR needs to know of a row: its full text. (The row itself is `warpjit.isa.row.Row`.)"""

    @property
    def text(self) -> str: ...


# ---- values -----------------------------------------------------------------------------------------


@record
class Const:
    """A literal. Integers and bools are exact; a float holds the value already rounded to `dtype`."""

    value: int | float | bool
    dtype: DType


@record
class Local:
    """A scalar of one thread. `name` is unique in the kernel and an identifier of Python."""

    name: str
    dtype: DType

    def __hash__(self) -> int:
        return hash(self.name)  # which the string remembers: sums of locals are looked up all the time


@record
class Registers:
    """`count` registers of each lane: what `T.alloc_local` gives. `word` is a 32- or 64-bit type; narrower
    elements are packed into 32-bit words, the first element in the low bits."""

    name: str
    word: DType
    count: int


@record
class Slot:
    """One register of `registers`, by a static index. Its type is `registers.word`."""

    registers: Registers
    index: int

    @property
    def dtype(self) -> DType:
        return self.registers.word


Atom: TypeAlias = Const | Local | Slot


# ---- memory -----------------------------------------------------------------------------------------


@record
class GlobalBuffer:
    """The memory of a tensor parameter, from the first byte of element (0, …, 0). `index` counts arguments;
    `align` is the number of bytes that the base is known to be a multiple of; `wide`: offsets into it may need
    64 bits; `noalias`: reached through this parameter only."""

    name: str
    dtype: DType
    index: int
    align: int
    wide: bool = False
    noalias: bool = False

    @property
    def space(self) -> str:
        return "global"


@record
class SharedBuffer:
    """One allocation in the CTA's dynamic shared memory; the plan decides where it lies."""

    name: str
    bytes: int
    align: int

    @property
    def space(self) -> str:
        return "shared"


@record
class ConstantBuffer:
    """A table that is part of the kernel: `data` are the bytes of its elements."""

    name: str
    dtype: DType
    data: bytes

    @property
    def space(self) -> str:
        return "constant"


Buffer: TypeAlias = GlobalBuffer | SharedBuffer | ConstantBuffer


@record
class Access:
    """Which element an address means, for findings: tensor, coordinates and extents (ints or atoms)."""

    tensor: str
    coordinates: tuple[Atom, ...]
    shape: tuple[Atom, ...]


@record
class Address:
    """`buffer` + `offset` + `constant`, in bytes. `offset` is an int32 or int64 atom, or None for 0."""

    buffer: Buffer
    offset: Atom | None = None
    constant: int = 0
    access: Access | None = field(default=None, compare=False)


# ---- operands that differ from issue to issue of one operation ---------------------------------------


@record
class Fragment:
    """The registers of a fragment operand: `items[issue][register]`, each a slot, or a scalar that stands in."""

    items: tuple[tuple[Atom, ...], ...]


@record
class Tile:
    """The address that this lane gives, for each issue."""

    addresses: tuple[Address, ...]


OperandValue: TypeAlias = Const | Local | Slot | Fragment | Address | Tile | None


# ---- statements -------------------------------------------------------------------------------------


@record
class Op:
    """`issues` executions of `row`, one after the other.

    operands    one for each of the row's, in its order (None: an immediate, which stands in params, or an optional
                one left out); a scalar or an `Address` serves every issue
    params      named immediates of the row, e.g. (("n", 2),), and flags that its code template reads
    predicate   an issue happens only in lanes where this bool holds
    control     how uniform the control flow around the operation is: what its legality depends on
    scope       the threads that execute it together ("thread", "warp", "warpgroup", "cta")
    """

    row: Instruction
    operands: tuple[OperandValue, ...]
    params: tuple[tuple[str, int], ...] = ()
    issues: int = 1
    predicate: Atom | None = None
    control: Uniformity = Uniformity.GRID
    scope: str = "thread"
    loc: Loc = field(default=NOWHERE, compare=False)

    def param(self, name: str, default: int = 0) -> int:
        return dict(self.params).get(name, default)


@record
class Declare:
    """A carried local comes into being, without a value."""

    local: Local
    loc: Loc = field(default=NOWHERE, compare=False)


@record
class Assign:
    """`local` takes the value of `value` (same type)."""

    local: Local
    value: Atom
    loc: Loc = field(default=NOWHERE, compare=False)


@record
class Assume:
    """A promise by the user: `condition` is true here. The simulator checks it."""

    condition: Atom
    loc: Loc = field(default=NOWHERE, compare=False)


@record
class Allocate:
    """Registers come into being (unwritten), each time control passes here."""

    registers: Registers
    loc: Loc = field(default=NOWHERE, compare=False)


@record
class For:
    """`variable` = start, start + step, … while it is before `stop`; `step` is a nonzero int and the
    variable never overflows its type. The body does not assign it."""

    variable: Local
    start: Atom
    stop: Atom
    step: int
    body: tuple[Node, ...]
    control: Uniformity = Uniformity.GRID
    loc: Loc = field(default=NOWHERE, compare=False)


@record
class While:
    """Run `head`, leave if `condition` is false, run `body`, again."""

    head: tuple[Node, ...]
    condition: Atom
    body: tuple[Node, ...]
    control: Uniformity = Uniformity.GRID
    loc: Loc = field(default=NOWHERE, compare=False)


@record
class If:
    condition: Atom
    then: tuple[Node, ...]
    orelse: tuple[Node, ...] = ()
    uniformity: Uniformity = Uniformity.LANE
    loc: Loc = field(default=NOWHERE, compare=False)


@record
class Break:
    loc: Loc = field(default=NOWHERE, compare=False)


@record
class Continue:
    loc: Loc = field(default=NOWHERE, compare=False)


@record
class Return:
    loc: Loc = field(default=NOWHERE, compare=False)


Node: TypeAlias = Op | Declare | Assign | Assume | Allocate | For | While | If | Break | Continue | Return


# ---- the kernel -------------------------------------------------------------------------------------

PlanExpr: TypeAlias = int | float | bool | tuple[object, ...]
"""An integer expression of the launch plan: a number, ("arg", i) the i-th argument's value, ("size", i, d) and
("stride", i, d) of the i-th argument's tensor (strides in elements), or (operator, a, b[, c]) with operators
+ - * // % min max < <= == != > >= and or not select."""


@record
class Parameter:
    """One parameter of the generated kernel: a tensor's base address, or a scalar computed by the plan."""

    target: GlobalBuffer | Local
    source: PlanExpr


@record
class Launch:
    """Grid may be runtime, block and cluster are static."""

    grid: tuple[PlanExpr, PlanExpr, PlanExpr]
    block: tuple[int, int, int]
    cluster: tuple[int, int, int] = (1, 1, 1)
    max_registers: int | None = None
    min_blocks_per_sm: int | None = None

    @property
    def threads(self) -> int:
        return self.block[0] * self.block[1] * self.block[2]


@dataclass(frozen=True)
class Kernel:
    """A traced kernel: all that both back ends read. `facts` says what is known of each local."""

    name: str
    parameters: tuple[Parameter, ...]
    shared: tuple[SharedBuffer, ...]
    body: tuple[Node, ...]
    launch: Launch
    facts: dict[str, Facts] = field(default_factory=dict, compare=False)
    loc: Loc = field(default=NOWHERE, compare=False)
    contract: bool = True
    strict: bool = False
    unverified: bool = False
