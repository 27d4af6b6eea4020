"""What tensors, pointers, scalars and instructions offer inside a kernel: how it is called and what it means.

Nothing here runs: in a kernel these are the tracer's values, and `frontend.methods` (attributes and methods),
`frontend.expressions` (operators) and `frontend.raw` (calls of instructions) say what is done with them. The page
`docs/language.md` and the stub of `T` are made from these classes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Generic, TypeVar

if TYPE_CHECKING:
    from warpjit.frontend.language import DTypeOf, Index, Instruction, Integer, Layout, Number, Scalar

E = TypeVar("E")
F = TypeVar("F")


class TensorInKernel(Generic[E]):
    """A tensor in a kernel: a parameter, `T.alloc_shared`, `T.alloc_local`, or a window onto one of these.

    `t[i, j]` is one element: reading takes its value now, `t[i, j] = x` converts `x` to the element type and stores it.
    A subscript with slices (`t[8 * w : 8 * w + 8, 0]`) is a window: starts may be runtime, extents must be static (an
    extent is static if stop - start is), and an axis that has an integer instead of a slice is dropped. Indices count
    elements, from 0; negative ones are refused. No access is widened silently.

    Raises TraceError: another number of indices than axes; an index that is no integer, or is static and outside; a
    slice with a step, or whose length is not static; an index of a register that is a device value.
    """

    @property
    def shape(self) -> tuple[Any, ...]:
        """The sizes: ints where static, int32 scalars where runtime."""
        return ()

    @property
    def ndim(self) -> int:
        """The number of axes."""
        return 0

    @property
    def dtype(self) -> type[E]:
        """The element type, `T.float16` for instance."""
        raise AssertionError

    @property
    def layout(self) -> Layout | None:
        """Where each element is: lanes and registers, or elements from the start. None: runtime sizes or strides."""
        return None

    @property
    def storage(self) -> TensorInKernel[Any]:
        """The bytes under a shared or local tensor, as a one-dimensional uint8 tensor.

        A view of it is the one way to use shared memory twice. Raises TraceError for a parameter.
        """
        return self

    @property
    def sub(self) -> TensorInKernel[E]:
        """`t.sub[...]` is a window, as `t[...]` with slices is, also where there is no slice: `t.sub[2]` is a row."""
        return self

    def view(self, dtype: DTypeOf[E]) -> TensorInKernel[E]:
        """The same bytes seen otherwise; nothing moves. Two forms:

        view(dtype)                  elements of another type; of another width: the last axis shrinks or grows
        view(*shape)                 the same elements, row-major, under another shape; one extent may be -1
        view(*shape, layout=layout)  element x of `shape` is where `layout` puts it, in the storage of a contiguous
                                     tensor: axes of lanes and warps say who holds it, `m` counts elements (registers)

        Raises TraceError: the last axis (or a stride, or a start) is no multiple of the ratio of the widths; another
        number of elements; strides that a new shape would have to merge; with `layout`: its size is not that of the
        shape, it reaches past the storage, or its owners lie outside of their axis (lane 32).
        """
        return self

    def rearrange(self, pattern: str, /, **sizes: int) -> TensorInKernel[E]:
        """Axes split, reordered and merged: `t.rearrange("row (chunk word) -> chunk row word", chunk=2)`.

        pattern  names of axes, left as they are, right as they shall be; brackets hold the parts of one axis, outermost
                 first; `1` is an axis of size 1
        sizes    sizes of names, where the brackets leave more than one unknown

        Splitting by static sizes works for runtime axes as well. Raises TraceError: a name on one side only, a size
        that does not divide, parts that no stride can merge.
        """
        return self

    def permute(self, *dims: int) -> TensorInKernel[E]:
        """The axes in another order: axis i of the result is axis `dims[i]`. Raises TraceError: no permutation."""
        return self

    @property
    def regs(self) -> TensorInKernel[E]:
        """The registers of this lane, in order, as a tensor of one axis: `t.regs[i]` reads and writes one.

        Of tensors in registers: local tensors, fragments, and windows of them, whose registers need not be neighbours.
        Raises TraceError: another tensor, owners other than lanes, registers that hold two elements.
        """
        return self

    def fill(self, value: Number) -> None:
        """Every register of this lane becomes `value`. Raises TraceError as `t.regs`."""

    def cast(self, dtype: DTypeOf[F]) -> TensorInKernel[F]:
        """New registers with the same elements in another type, converted where they are.

        The layout is kept; registers that lie between those of a window are left out.
        Two neighbouring float32 become 16- or 8-bit floats, and two 8-bit floats 16-bit ones, in one instruction (8-bit
        floats from sm_89 on); the bits are those of `T.cast`. Raises TraceError as `t.regs`.
        """
        raise AssertionError

    def each(self) -> tuple[tuple[Any, ...], ...]:
        """What this lane holds: `for register, row, column in t.each()`, expanded; `t.regs[register]` is the element.

        A fragment of four axes (row repeats, column repeats, rows, columns), as `T.cuda.fragments` gives it, is the
        matrix of (row repeats · rows, column repeats · columns); any other tensor has one coordinate for each axis.
        `register` is static, coordinates are int32 scalars (or ints where all lanes agree).
        Raises TraceError as `t.regs`; a layout in which lanes share an element, or hold none.
        """
        return ()

    def as_operand(self, instruction: Instruction, operand: str) -> TensorInKernel[E]:
        """The same registers under the axes of an operand ("A", "D", …): proven to be in place, never moved.

        The matrix (as in `each`) is cut into the operand's atoms. Raises TraceError with a counterexample where an
        element is not where the instruction reads it.
        """
        return self

    def convert(self, layout: Layout, scratch: TensorInKernel[E] | None = None) -> TensorInKernel[E]:
        """The same elements where `layout` has them, for the same shape.

        scratch  a shared tensor of the same type and number of elements, for elements that leave their warp

        `warpjit.isa.convert` says beforehand what it takes: nothing (the same registers are returned), registers under
        other names, parts of registers put together, `movmatrix`, or shuffles, which all lanes execute together. Where
        elements leave their warp, all warps of the CTA store them to `scratch`, then `T.cuda.cta_sync()`, load them,
        then `T.cuda.cta_sync()` again: `scratch` is free afterwards. Before the call it must not be in use by others.
        Raises TraceError as `t.regs`; another number of elements; elements that would leave their warp without
        scratch, or with layouts that are not of all warps.
        """
        return self

    def ptr(self, *indices: Index) -> Pointer:
        """The address of an element (without indices: of the first), for an instruction's raw form.

        Raises TraceError for a tensor in registers.
        """
        return Pointer()


class Pointer:
    """The address of an element of a global or shared tensor, `t.ptr(i, j)`: an operand of instructions.

    Its known alignment follows from the tensor's and from the multiples known of the indices. `p + n`, `n + p` and
    `p - n` move it by n bytes, an int or an integer of the device; which element it means is not checked then, only
    that what is accessed are bytes of the tensor.
    """

    def __add__(self, bytes: Integer) -> Pointer:
        raise AssertionError

    def __radd__(self, bytes: Integer) -> Pointer:
        raise AssertionError

    def __sub__(self, bytes: Integer) -> Pointer:
        raise AssertionError


class ScalarInKernel:
    """A device value of one of the scalar types.

    Operators are Python's: `+ - * / // % << >> & | ^ ~`, comparisons (chained ones too), `and`, `or`, `not`,
    `a if c else b`, and the builtins `min`, `max`, `abs`, `int` (int32), `float` (float32), `bool`. `//` and `%` floor;
    `/` of integers is float32; `>>` keeps the sign; shifts by the width or more give 0 or the sign; integers wrap.
    float16 and bfloat16 compute in float32 and round once an operation.

    Types meet as in torch (`torch.promote_types`), two unsigned types in the wider; a number known while tracing takes
    the other side's type and must fit it; bools in arithmetic are int32. uint16, uint32 and uint64 do not meet signed
    types: TraceError suggests the cast.

    8-bit floats (float8_e4m3fn, float8_e5m2) are loaded, stored, moved and converted, and compute nothing. Narrowing to
    them rounds to nearest even and saturates: what is too large, infinities too, becomes 448 or 57344 of its sign, and
    NaN stays NaN (`cvt.rn.satfinite` from sm_89 on; older targets get the same bits by integer arithmetic).

    4-bit integers (int4, uint4) are elements of tensors only, the even one of two in the low half of their byte:
    torch has none, so a tensor of uint8 is viewed, `t.view("int4")`. Read, one is an int8 or uint8; `T.load`, `T.store`
    and `T.copy` move them by whole bytes, and elements of local tensors are written one by one (integers modulo 16,
    floats towards zero, saturating). A store of one to memory is refused, for a lane would have to keep its neighbour.

    Pairs, float16x2 and bfloat16x2, are two 16-bit floats in one 32-bit register. `T.float16x2(low, high)` makes one
    (of two float32 by one conversion), `T.float16x2(x)` has x in both halves, `pair[0]` and `pair[1]` are the halves,
    `t.view("float16x2")` reads tensors of float16 by pairs, and `T.reinterpret(word, "float16x2")` takes the bits of a
    word. `+ - *`, `-x`, `abs`, `min`, `max`, `T.min`, `T.max` and `T.fma` are one instruction for both halves, each
    rounded once, with the bits of the scalar operation, and never contracted to an fma; Python numbers stand for both
    halves. Comparisons give a mask, uint32, with 0xFFFF in each half for which they hold. Shuffles, `T.cuda.warp_sum`
    and its like, and `T.atomic_add` and `T.red_add` on global and shared pairs take them too. No other type meets a
    pair, and an argument of a call cannot be one.
    """

    @property
    def dtype(self) -> type[Scalar]:
        """The type, `T.float32` for instance."""
        raise AssertionError


class InstructionInKernel:
    """An instruction, `T.ptx["<full PTX text>"]`: a row of the instruction table.

    It is given to `T.cuda.tile.apply`, or called (the raw form): `T.ptx["..."](operands..., pred=)` takes the operands
    in the manual's order, or by name; a scalar one value, an address a `t.ptr(...)`, an immediate a number known while
    tracing, a fragment a local tensor of its registers. Scalars that the instruction writes are returned. `pred`: a
    bool; lanes where it is false do nothing (only instructions that a thread executes by itself).

    Raises InstructionError: the text names no instruction (the legal modifiers are listed). Raises TraceError: missing
    operands, a pointer into another space or without the alignment that is needed, an immediate that is not legal.
    """
