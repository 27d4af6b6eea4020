"""The launch of one program written out in Python, for calls of one pattern: no loop, no check done twice.

`Template.text` is the source of a function that takes what a call passes and either launches and returns True, or
launches nothing and returns False. It is made of the plan's expressions, positions and the phrases below; no text of a
user is in it. What depends on sizes and strides alone is computed once for each of them and handed to the function
(`launch_of`); what depends on numbers is computed inline.

It launches what `execute.Loaded.launch` would launch. Whatever it cannot, a number that does not fit its type as well,
is False, and the slow path says what is wrong. Which function a call tries is `dispatch`'s.
"""

from __future__ import annotations

import math
import struct
import types
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

from warpjit import arguments
from warpjit.cuda.launch import KEEPING
from warpjit.errors import WarpjitError
from warpjit.execute import Loaded
from warpjit.frontend.captures import MISSING, PARTS, Capture, of_cell, of_globals, of_object, settled
from warpjit.frontend.kinds import BASE_ALIGNMENT, ConstantKind, Kind, ScalarKind, TensorKind, TupleKind
from warpjit.frontend.signature import NOTHING
from warpjit.frontend.specialize import OVERFLOWS, constant_kind
from warpjit.ir.dtypes import DType
from warpjit.isa.target import MAX_GRID
from warpjit.passes.expressions import Planned, Writer, compile_plan, reads_arguments

if TYPE_CHECKING:
    from warpjit.ir.nodes import PlanExpr

Launch: TypeAlias = Callable[..., Any]

MISFITS = (LookupError, ValueError, ArithmeticError, struct.error)
"""What the written code may raise: a capture that is gone, a division by zero, a number that does not fit."""


@dataclass(frozen=True)
class Slot:
    """What a call passed for one parameter: the name that the written function has for it, and the value.

    name is None where nothing was passed: the parameter has its default.
    """

    name: str | None
    value: Any


@dataclass(frozen=True)
class Ready:
    """A call that has been prepared: its program on a device, and its arguments.

    kinds, runtime   as `specialize` gave them, one kind for each parameter
    captures         what is looked at again before each launch
    """

    loaded: Loaded
    kinds: tuple[Kind, ...]
    runtime: Sequence[Any]
    captures: tuple[Capture, ...] = ()


@dataclass(frozen=True)
class Style:
    """How a written function begins, and what it gives. {names} are those of what is passed.

    head        its parameters
    first       its first lines
    done, other its end after a launch, and where it does not launch
    """

    head: str
    first: tuple[str, ...]
    done: str
    other: str


CALL = Style("{names}", (), "return True", "return False")
BOUND = Style(
    "{defaults}*rest",
    ("if rest:", "    return other({names}, *rest)", "if {first} is absent:", "    return again()"),
    "return",
    "return other({names})",
)
"""`again` launches with the arguments of before, `other` is the slow path."""


@dataclass(frozen=True)
class Template:
    """A written function, and what it wants to be told for a call.

    make        (guard, fixed, again, other) to the function; the last two are for `BOUND`
    folded      computes what depends on sizes and strides
    constants   the positions of the parameters that are constants with a value
    defaults    the positions, among the runtime arguments, of numbers that were not passed
    """

    text: str
    make: Callable[..., Launch]
    folded: Planned
    constants: tuple[int, ...]
    defaults: tuple[int, ...]


# ---- from a call to its function ------------------------------------------------------------------------------


def pattern(kind: Kind, value: Any) -> Any:
    """What the text depends on of an argument, besides its kind; hashable."""
    if isinstance(kind, TensorKind):
        return value.data_ptr() % BASE_ALIGNMENT == 0, 0 in value.shape
    if isinstance(kind, TupleKind):
        return (type(value), *(pattern(item, part) for item, part in zip(kind.items, value, strict=True)))
    return type(value) if isinstance(kind, ScalarKind) else None


def template(ready: Ready, slots: Sequence[Slot], names: Sequence[str], style: Style = CALL) -> Template | None:
    """The function for calls like this one, written once for each pattern. `names`: what a call passes, in order.

    None: there can be none, since a tensor is a default.
    """
    passed = tuple(
        (slot.name, None if slot.name is None else pattern(kind, slot.value))
        for kind, slot in zip(ready.kinds, slots, strict=True)
    )
    key = (style, tuple(names), passed, ready.captures == ())
    known: dict[Any, Template | None] = ready.loaded.templates
    if key not in known:
        known[key] = _Composer(ready, slots, names, style).template()
    return known[key]


def fixed(template: Template, ready: Ready, slots: Sequence[Slot]) -> tuple[Any, ...]:
    """What the function is told of this call. ArgumentError: an expression divides by zero."""
    given = arguments.planned(ready.runtime, ready.loaded.program.leaves)
    constants = [slots[position].value for position in template.constants]
    held = {id(capture.holder) for capture in ready.captures}
    return (
        *template.folded(given.values, given.sizes, given.strides),
        *(given.values[leaf] for leaf in template.defaults),
        *(value if settled(value, held) else UNLIKE for value in constants),
        *(same_constant(value) for value in constants),
    )


UNLIKE = object()
"""Stands for a constant that is compared anew at each call: no argument is it."""


def same_constant(value: Any) -> Callable[[Any], bool]:
    """Whether another object is the same constant."""
    kind = type(value)
    if kind in (int, str):
        return lambda other: type(other) is kind and other == value
    key = constant_kind("", value).key

    def same(other: Any) -> bool:
        try:
            return bool(constant_kind("", other).key == key)
        except WarpjitError:
            return False

    return same


# ---- the text -------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Leaf:
    """A runtime argument. It holds no tensor: a template outlives the call that it was written for.

    text      how the written function calls it; None: it is a default
    pattern   see `pattern`: a number's type, or whether a tensor is aligned, and empty
    """

    kind: TensorKind | ScalarKind
    text: str | None
    pattern: Any


_AS_IT_IS = {("int", int), ("bool", bool), ("float", float)}
"""A number of this type is written as it is where one of that sort is wanted."""


class _Composer:
    """Writes one template.

    tests   what must be true of the arguments, in the order of their cost
    names   objects that the text names, for all calls
    """

    def __init__(self, ready: Ready, slots: Sequence[Slot], names: Sequence[str], style: Style) -> None:
        self.loaded, self.captures, self.passed, self.style = ready.loaded, ready.captures, names, style
        leaves = zip(ready.loaded.program.leaves, ready.runtime, strict=True)
        self.patterns = [pattern(kind, value) for kind, value in leaves]
        used = {slot.name for slot in slots}
        self.tests = [f"{name} is absent" for name in names if name not in used]
        self.leaves: list[_Leaf] = []
        self.constants: list[int] = []
        self.folded: dict[str, PlanExpr] = {}
        self.writer = Writer(self._known)
        self.names: dict[str, Any] = self.writer.names
        self.names |= {"absent": NOTHING, "missing": MISSING, "misfits": MISFITS}
        for position, (kind, slot) in enumerate(zip(ready.kinds, slots, strict=True)):
            if isinstance(kind, ConstantKind) and kind.value is not None and slot.name is not None:
                index = len(self.constants)
                self.tests.append(f"({slot.name} is c{index} or same{index}({slot.name}))")
                self.constants.append(position)
            else:
                self._argument(kind, slot.name, slot.value)

    def _argument(self, kind: Kind, text: str | None, value: Any) -> None:
        if isinstance(kind, ConstantKind):
            self.tests += [] if text is None else [f"{text} is None"]
        elif isinstance(kind, TupleKind):
            if text is not None:
                self.tests += [f"type({text}) is {self._type(type(value))}", f"len({text}) == {len(kind.items)}"]
            for index, item in enumerate(kind.items):
                part = (None, None) if text is None else (f"{text}[{index}]", value[index])
                self._argument(item, *part)
        else:
            if isinstance(kind, ScalarKind) and text is not None:
                self.tests.append(f"type({text}) is {self._type(type(value))}")
            self.leaves.append(_Leaf(kind, text, self.patterns[len(self.leaves)]))

    def _type(self, kind: type) -> str:
        """A type's name; only Python's own are called what they are called."""
        return kind.__name__ if kind in (int, float, bool, tuple) else self._object("type", kind)

    def _object(self, prefix: str, thing: Any) -> str:
        name = f"{prefix}{sum(known.rstrip('0123456789') == prefix for known in self.names)}"
        self.names[name] = thing
        return name

    # ---- numbers -----------------------------------------------------------------------------------

    def _number(self, index: int) -> str:
        """A scalar as the plan's expressions want it, see `arguments.number`."""
        leaf = self.leaves[index]
        if leaf.text is None:
            return f"d{index}"
        dtype = leaf.kind.dtype
        if dtype.is_float and dtype.bits == 16:
            return f"{self._shared('number', arguments.number)}({leaf.text}, {self._shared('dtype', dtype)})"
        sort = "int" if dtype.is_int else "bool" if dtype.is_bool else "float"
        return leaf.text if (sort, leaf.pattern) in _AS_IT_IS else f"{sort}({leaf.text})"

    def _float(self, index: Any, dtype: DType) -> str | None:
        """A scalar of this float type before it is rounded to the type; None for a default."""
        leaf = self.leaves[index]
        if leaf.text is None or leaf.kind.dtype != dtype:
            return None
        return leaf.text if leaf.pattern is float else f"float({leaf.text})"

    def _known(self, expression: PlanExpr) -> str | None:
        """The name of what is known before the launch: an argument, or the value of what depends on sizes alone."""
        if not isinstance(expression, tuple):
            return None
        if expression[0] == "arg":
            index = expression[1]
            assert isinstance(index, int)
            return f"a{index}" if isinstance(self.leaves[index].kind, TensorKind) else self._number(index)
        if reads_arguments(expression):
            return None
        text = repr(expression)
        self.folded.setdefault(text, expression)
        return f"s{list(self.folded).index(text)}"

    def _values(self) -> list[str]:
        """The texts of the kernel's parameters."""
        texts = []
        for parameter in self.loaded.program.plan.parameters:
            source, dtype = parameter.source, parameter.dtype
            if parameter.pointer or not dtype.is_float or dtype.bits != 16:
                texts.append(self.writer.write(source))
                continue
            plain = self._float(source[1], dtype) if isinstance(source, tuple) and source[0] == "arg" else None
            encode = arguments.encoded if plain is None else arguments.half_bits
            text = self.writer.write(source) if plain is None else plain
            texts.append(f"{self._shared('encode', encode)}({text}, {self._shared('dtype', dtype)})")
        return texts

    def _check_numbers(self) -> Iterator[str]:
        """Lines that check what packing does not: integers that are not packed as they came, and sizes of floats."""
        packed = {
            (parameter.source, parameter.dtype)
            for parameter in self.loaded.program.plan.parameters
            if not parameter.pointer and isinstance(parameter.source, tuple)
        }
        for index, leaf in enumerate(self.leaves):
            dtype = leaf.kind.dtype
            if isinstance(leaf.kind, TensorKind) or leaf.text is None:
                continue
            if dtype.is_int and (("arg", index), dtype) not in packed:
                yield f"if not {dtype.min} <= {self._number(index)} <= {dtype.max}:"
                yield f"    {self.other}"
            beyond = OVERFLOWS.get(dtype.name)
            if beyond is not None:
                text = self._float(index, dtype)
                infinity = self._shared("infinity", math.inf)
                yield f"if not {-beyond!r} < {text} < {beyond!r} and abs({text}) < {infinity}:"
                yield f"    {self.other}"

    # ---- tensors -----------------------------------------------------------------------------------

    def _addresses(self) -> Iterator[str]:
        """Lines that read addresses, and look at their alignment and that there is memory."""
        wrong, full = [], []
        for index, leaf in enumerate(self.leaves):
            if not isinstance(leaf.kind, TensorKind):
                continue
            yield f"a{index} = {leaf.text}.data_ptr()"
            aligned, empty = leaf.pattern
            least = max(leaf.kind.align, BASE_ALIGNMENT) if aligned else leaf.kind.align
            wrong += [] if aligned else [f"not a{index} % {BASE_ALIGNMENT}"]
            wrong += [f"a{index} % {least}"] if least > 1 else []
            full += [] if empty else [f"a{index}"]
        wrong += [f"not ({' and '.join(full)})"] if full else []
        if wrong:
            yield f"if {' or '.join(wrong)}:"
            yield f"    {self.other}"

    # ---- the grid ----------------------------------------------------------------------------------

    def _grid(self) -> Iterator[str]:
        """Lines that compute and check what of the grid depends on numbers: its names are x0, x1, x2."""
        plan = self.loaded.program.plan
        for axis, (expression, cluster) in enumerate(zip(plan.grid, plan.cluster, strict=True)):
            if reads_arguments(expression):
                parted = f" or x{axis} % {cluster}" if cluster > 1 else ""
                yield f"x{axis} = {self.writer.write(expression)}"
                yield f"if not 0 <= x{axis} <= {MAX_GRID[axis]}{parted}:"
                yield f"    {self.other}"

    def _extents(self) -> list[str]:
        grid = self.loaded.program.plan.grid
        return [
            f"x{axis}" if reads_arguments(expression) else self.writer.write(expression)
            for axis, expression in enumerate(grid)
        ]

    def _nothing(self) -> Iterator[str]:
        """Lines that leave where the grid may have no blocks, and has none."""
        grid = self.loaded.program.plan.grid
        extents = zip(self._extents(), grid, strict=True)
        open_ = [text for text, expression in extents if not isinstance(expression, int) or expression == 0]
        if open_:
            yield f"if not ({' and '.join(open_)}):"
            yield from (f"    {line}" for line in (*KEEPING, self.style.done))

    # ---- captures ----------------------------------------------------------------------------------

    def _captures(self) -> Iterator[str]:
        for capture in self.captures:
            yield f"if {self._changed(capture)}:"
            yield f"    {self.other}"

    def _changed(self, capture: Capture) -> str:
        """Whether something else stands where a value was taken from."""
        holder, value = self._shared("holder", capture.holder), self._shared("value", capture.value)
        if capture.read is of_globals and type(capture.holder) is dict:
            name = self._shared("name", capture.name)
            return f"{name} in {holder}" if capture.value is MISSING else f"{holder}[{name}] is not {value}"
        if capture.read is of_cell and capture.value is not MISSING:
            return f"{holder}.cell_contents is not {value}"
        if capture.read is of_object and capture.name in PARTS and isinstance(capture.holder, types.FunctionType):
            return f"{holder}.{capture.name} is not {value}"
        read, name = self._shared("read", capture.read), self._shared("name", capture.name)
        return f"{read}({holder}, {name}) is not {value}"

    def _shared(self, prefix: str, thing: Any) -> str:
        """The name of an object; the same one for the same object."""
        found = next((name for name, known in self.names.items() if known is thing and name.startswith(prefix)), None)
        return found or self._object(prefix, thing)

    # ---- together ----------------------------------------------------------------------------------

    @property
    def other(self) -> str:
        return self._styled(self.style.other)

    def _styled(self, text: str) -> str:
        names = self.passed
        shown = {"names": ", ".join(names), "defaults": "".join(f"{name}=absent, " for name in names)}
        return text.format(first=names[0] if names else "", **shown)

    def template(self) -> Template | None:
        tensors = [leaf for leaf in self.leaves if isinstance(leaf.kind, TensorKind)]
        if any(leaf.text is None for leaf in tensors):
            return None
        prepared = self.loaded.prepared
        self.names |= {"stream": arguments.stream_reader(), **prepared.names()}
        tests = [*self.tests, f"check({', '.join(str(leaf.text) for leaf in tensors)})"]
        grid, filling = [*self._grid()], prepared.filling(self._values(), self._extents())
        inside = [*self._captures(), *self._check_numbers(), *self.writer.lines, *grid, *filling]
        body = [
            *(self._styled(line) for line in self.style.first),
            f"if not ({' and '.join(tests)}):",
            f"    {self.other}",
            *self._addresses(),
            "try:",
            *(f"    {line}" for line in inside),
            "except misfits:",
            f"    {self.other}",
            *self._nothing(),
            *prepared.sending(f"stream({self.loaded.device})"),
            self.style.done,
        ]
        return self._made(body)

    def _made(self, body: Sequence[str]) -> Template:
        defaults = [i for i, leaf in enumerate(self.leaves) if leaf.text is None]
        count = range(len(self.constants))
        told = [
            *(f"s{index}" for index in range(len(self.folded))),
            *(f"d{index}" for index in defaults),
            *(f"c{index}" for index in count),
            *(f"same{index}" for index in count),
        ]
        lines = [
            "def make(check, fixed, again=None, other=None):",
            *([f"    {', '.join(told)}, = fixed"] if told else []),
            f"    def launch({self._styled(self.style.head)}):",
            *(f"        {line}" for line in body),
            "    return launch",
        ]
        text = "\n".join(lines) + "\n"
        make = run_text(text, self.names)["make"]
        folded = compile_plan(list(self.folded.values()))
        return Template(text, make, folded, tuple(self.constants), tuple(defaults))


def run_text(text: str, names: Mapping[str, Any]) -> dict[str, Any]:
    """What a written text defines, run with these names."""
    space = dict(names)
    exec(compile(text, "<warpjit>", "exec"), space)
    return space
