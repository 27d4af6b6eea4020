"""Random expressions of a type, well defined whatever the values of the names in them.

`Expressions.of(type, depth)` gives text that is of this type for certain: literals stand only beside something typed,
or in a conversion. Divisors are never 0, shifts never below 0, indices inside. Names whose type depends on whether a
loop carries them (`loose`: bound to a literal) and static ones (variables of expanded loops) stand in few places only.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass, field

from .types import ALL, BITS, FLOATS, INTS, SIGNED, WORDS, greatest, least, meeting_in

LOOSE, STATIC = "loose", "static"
ELEMENTS = 16
"""Elements of an input, and of a local tensor 4."""
REGISTERS = 4
Maker = Callable[[int], str]


@dataclass(frozen=True)
class Helper:
    """A function of the program: the types of its parameters and of what it returns."""

    name: str
    parameters: tuple[str, ...]
    names: tuple[str, ...]
    results: tuple[str, ...]
    optional: int = 0


@dataclass
class Scope:
    """What is bound on every path to the present line: types of names, bounds of indices, windows.

    A window has a type, a shape, and whether its indices must be static.
    """

    names: dict[str, str] = field(default_factory=dict)
    helpers: list[Helper] = field(default_factory=list)
    ranges: dict[str, int] = field(default_factory=dict)
    windows: dict[str, tuple[str, tuple[int, ...], bool]] = field(default_factory=dict)

    def copy(self) -> Scope:
        return Scope(dict(self.names), list(self.helpers), dict(self.ranges), dict(self.windows))


class Expressions:
    """Makes expressions in a scope; `types` are those that this program likes."""

    def __init__(self, rng: random.Random, types: tuple[str, ...], inputs: tuple[str, ...]):
        self.rng, self.types, self.inputs = rng, types, inputs
        self.scope = Scope()
        self.registers: dict[str, str] = {}
        self.tables: dict[str, list[tuple[int, Callable[[str, int], str]]]] = {
            "int": INTEGERS,
            "float": REALS,
            "bool": TRUTHS,
        }

    # ---- choices ---------------------------------------------------------------------------------------

    def pick(self, *choices: str) -> str:
        return self.rng.choice(choices)

    def chance(self, probability: float) -> bool:
        return self.rng.random() < probability

    def bound(self, *kinds: str) -> list[str]:
        return [name for name, kind in self.scope.names.items() if kind in kinds]

    def any_type(self, *among: str) -> str:
        """One that the program likes, else any."""
        liked = [kind for kind in self.types if kind in among]
        return self.rng.choice(liked) if liked and self.chance(0.9) else self.rng.choice(among)

    # ---- leaves ----------------------------------------------------------------------------------------

    def number(self, kind: str) -> str:
        """A literal that fits."""
        if kind == "bool":
            return self.pick("True", "False")
        if kind in FLOATS:
            return self.pick("0.0", "1.0", "-1.5", "0.1", "3.0", "1e-3", "-0.0", "2.5", "100.0", "65504.0")
        top, low = greatest(kind), least(kind)
        edges = [0, 1, 2, 3, 4, 5, 7, 8, 10, 16, 31, 32, 63, 100, 127, top, top - 1, low, low + 1, top // 2 + 1]
        edges += [-1, -2, -3, -7, -8, -100] if kind in SIGNED else []
        value = self.rng.choice(edges if self.chance(0.4) else edges[:9])
        return str(value)

    def literal(self, kind: str) -> str:
        return self.number(kind) if kind == "bool" else f"T.{kind}({self.number(kind)})"

    def leaf(self, kind: str) -> str:
        names = self.bound(kind)
        if names and self.chance(0.75):
            return self.rng.choice(names)
        if (windows := [each for each, found in self.scope.windows.items() if found[0] == kind]) and self.chance(0.6):
            return self.element(self.rng.choice(windows))
        if kind in self.inputs and self.chance(0.6):
            return f"x_{kind}[{self.index(ELEMENTS, 0)}]"
        others = [name for name, other in self.scope.names.items() if other in (*ALL, LOOSE)]
        if others and self.chance(0.5):
            return f"T.{kind}({self.rng.choice(others)})"
        return self.literal(kind)

    def element(self, window: str) -> str:
        _, shape, static = self.scope.windows[window]
        places = (str(self.rng.randrange(size)) if static else self.index(size, 0) for size in shape)
        return f"{window}[{', '.join(places)}]"

    def weak(self, kind: str) -> str:
        """What stands beside an expression of a type: a literal, a static name, a loose one."""
        names = self.bound(STATIC) if kind in INTS else []
        if kind in ("int32", "int64", *FLOATS):
            names += self.bound(LOOSE)
        return self.rng.choice(names) if names and self.chance(0.5) else self.number(kind)

    def index(self, size: int, depth: int) -> str:
        """An int32 (or static) from 0 to size - 1."""
        statics = self.bound(STATIC)
        kind = self.rng.random()
        ranged = [name for name, bound in self.scope.ranges.items() if bound <= size]
        if ranged and self.chance(0.5):
            return self.rng.choice(ranged)
        if kind < 0.15:
            return str(self.rng.randrange(size))
        if len(small := [name for name, bound in self.scope.ranges.items() if bound <= 4]) > 1 and size >= 16:
            a, b = self.rng.sample(small, 2)
            return f"{a} * 4 + {b}"
        if kind < 0.25 and statics and size >= REGISTERS:
            return self.rng.choice(statics)
        inner = self.of("int32", depth) if depth else self.rng.choice(self.bound("int32") or ["T.int32(5)"])
        if kind < 0.45 and size & size - 1 == 0:
            return f"({inner} & {size - 1})"
        if kind < 0.6:
            return f"min(max({inner}, 0), {size - 1})"
        if kind < 0.7:
            return f"({inner} * {self.pick('2', '3', '4', '8')} + {self.pick('0', '1', '4')}) % {size}"
        return f"{inner} % {size}"

    # ---- expressions -----------------------------------------------------------------------------------

    def of(self, kind: str, depth: int) -> str:
        if depth <= 0 or self.chance(0.15):
            return self.leaf(kind)
        table = self.tables["bool" if kind == "bool" else "int" if kind in INTS else "float"]
        (maker,) = self.rng.choices([each for _, each in table], [weight for weight, _ in table])
        return maker(self, kind, depth - 1)

    def beside(self, kind: str, depth: int) -> tuple[str, str]:
        """Two operands, of which one may be weak."""
        a = self.of(kind, depth)
        b = self.weak(kind) if self.chance(0.35) else self.of(kind, depth - 1)
        return (a, b) if self.chance(0.7) else (b, a)

    def divisor(self, kind: str, depth: int) -> str:
        """Never 0."""
        if kind in FLOATS:
            return self.of(kind, depth)
        way = self.rng.random()
        if way < 0.5:
            signs = ("", "-") if kind in SIGNED else ("",)
            return self.pick(*signs) + self.pick("1", "2", "3", "4", "5", "7", "8", "16", "100")
        inner = self.of(kind, depth)
        return f"({inner} | 1)" if way < 0.75 else f"({inner} % {self.pick('3', '5', '8')} + {self.pick('1', '2')})"

    def condition(self, depth: int) -> str:
        """What stands after `if` and `while`: a bool, or a number that is meant as `!= 0`."""
        if self.chance(0.08):
            return self.of(self.any_type(*INTS), depth)
        return self.of("bool", depth)

    def fact(self, depth: int) -> str:
        """A comparison that teaches something of a name."""
        # Not `tid`: where it is known to be large, its row of the results is known to be outside.
        names = [name for name in self.bound("int32", "int64") if name != "tid"] or ["T.int32(7)"]
        name = self.rng.choice(names)
        low, high = sorted(self.rng.sample(range(-4, 40), 2))
        step = self.pick("2", "4", "8", "3")
        choices = (f"{low} <= {name} < {high}", f"{name} % {step} == {self.pick('0', '1')}", f"{name} < {high}")
        return self.pick(*choices, f"{low} < {name}", f"{name} == {high}", f"{name} >= 0", f"not {name} > {high}")

    def call(self, kind: str, depth: int) -> str | None:
        """A call of a helper that returns one value of the type, if there is one."""
        known = [each for each in self.scope.helpers if each.results == (kind,)]
        return self.call_of(self.rng.choice(known), depth) if known else None

    def call_of(self, helper: Helper, depth: int) -> str:
        kept = len(helper.parameters) - self.rng.randint(0, helper.optional)
        args = [
            str(self.rng.randrange(4)) if each == STATIC else self.of(each, depth) for each in helper.parameters[:kept]
        ]
        words = self.rng.randint(0, kept) if self.chance(0.2) else kept
        args[words:] = [f"{name}={arg}" for name, arg in list(zip(helper.names, args, strict=False))[words:]]
        return f"{helper.name}({', '.join(args)})"


# ---- what makes an expression: weights and makers -------------------------------------------------------

Make = Callable[[Expressions, str, int], str]


def _operator(*signs: str) -> Make:
    def make(my: Expressions, kind: str, depth: int) -> str:
        a, b = my.beside(kind, depth)
        return f"({a} {my.pick(*signs)} {b})"

    return make


def _divided(my: Expressions, kind: str, depth: int) -> str:
    return f"({my.of(kind, depth)} {my.pick('//', '%')} {my.divisor(kind, depth - 1)})"


def _shifted(my: Expressions, kind: str, depth: int) -> str:
    way = my.rng.random()
    if way < 0.5:
        count = str(my.rng.randrange(BITS[kind] + 3))
    elif way < 0.75:
        count = f"({my.of(my.any_type(*INTS), depth - 1)} & {my.pick('3', '7', '31', '63', '127')})"
    else:
        count = f"{my.of('int32', depth - 1)} % {my.pick('8', '33', '70', '300')}"
        count = f"({count})"
    return f"({my.of(kind, depth)} {my.pick('<<', '>>')} {count})"


def _unary(*signs: str) -> Make:
    return lambda my, kind, depth: f"{my.pick(*signs)}{my.of(kind, depth)}"


def _extreme(my: Expressions, kind: str, depth: int) -> str:
    a, b = my.beside(kind, depth)
    if kind in FLOATS and my.chance(0.3):
        return f"T.{my.pick('min', 'max')}({a}, {b}, nan=True)"
    return f"{my.pick('min', 'max', 'T.min', 'T.max')}({a}, {b})"


def _absolute(my: Expressions, kind: str, depth: int) -> str:
    return f"{my.pick('abs', 'T.abs')}({my.of(kind, depth)})"


def _mixed(my: Expressions, kind: str, depth: int) -> str:
    pairs = list(meeting_in(kind, (*INTS, *FLOATS)))
    if not pairs:
        return my.of(kind, depth)
    liked = [pair for pair in pairs if pair[0] in my.types and pair[1] in my.types]
    a, b = my.rng.choice(liked or pairs)
    signs = ("+", "-", "*") if kind in FLOATS else ("+", "-", "*", "&", "|", "^")
    return f"({my.of(a, depth)} {my.pick(*signs)} {my.of(b, depth)})"


def _converted(my: Expressions, kind: str, depth: int) -> str:
    inner = my.of(my.any_type(*ALL), depth)
    if kind == "int32" and my.chance(0.3):
        return f"int({inner})"
    if kind == "float32" and my.chance(0.3):
        return f"float({inner})"
    return f'T.cast({inner}, "{kind}")' if my.chance(0.2) else f"T.{kind}({inner})"


def _said(my: Expressions, kind: str, depth: int) -> str:
    """A conversion with its direction, or with or without saturation."""
    integer, source = kind in INTS, my.any_type(*INTS, *FLOATS)
    inner = my.of(source, depth)
    saturate = f", saturate={my.pick('True', 'False')}"
    if integer and source in INTS:
        return f'T.cast({inner}, "{kind}"{saturate})'
    modes = ("nearest", "zero") if kind == "bfloat16" else ("nearest", "zero", "up", "down")
    rounding = f', rounding="{my.pick(*modes)}"'
    return f'T.cast({inner}, "{kind}"{rounding}{saturate if not integer and my.chance(0.3) else ""})'


def _paired(my: Expressions, kind: str, depth: int) -> str:
    """Half of what is computed of two 16-bit floats at once."""
    if kind not in ("float16", "bfloat16"):
        return my.of(kind, depth)
    parts = [f"T.{kind}x2({my.of(kind, depth - 1)}, {my.of(my.pick(kind, 'float32'), depth - 1)})" for _ in range(3)]
    a, b, c = parts[0], my.pick(parts[1], "2.0", "-0.5"), parts[2]
    forms = (f"({a} {my.pick('+', '-', '*')} {b})", f"T.fma({a}, {b}, {c})", f"(-{a})", f"abs({a})", f"min({a}, {b})")
    return f"{my.pick(*forms, f'T.max({a}, {c}, nan=True)')}[{my.pick('0', '1')}]"


def _choice(my: Expressions, kind: str, depth: int) -> str:
    test = my.fact(depth) if my.chance(0.3) else my.condition(depth)
    return f"({my.of(kind, depth)} if {test} else {my.of(kind, depth)})"


def _called(my: Expressions, kind: str, depth: int) -> str:
    return my.call(kind, depth) or my.of(kind, depth)


def _power(my: Expressions, kind: str, depth: int) -> str:
    return f"{my.leaf(kind)} ** {my.pick('1', '2', '3')}"


def _cdiv(my: Expressions, kind: str, depth: int) -> str:
    return f"T.cdiv({my.of(kind, depth)}, {my.pick('1', '3', '4', '8', '100')})"


def _bits(my: Expressions, kind: str, depth: int) -> str:
    if kind == "int32" and my.chance(0.4):
        return f"T.{my.pick('popc', 'clz')}({my.of(my.any_type(*WORDS), depth)})"
    if kind not in WORDS:
        return my.of(kind, depth)
    if kind in ("int64", "uint64") or my.chance(0.3):
        return f"T.brev({my.of(kind, depth)})"
    a, b, c = (my.of(each, depth - 1) for each in (kind, my.any_type("int32", "uint32"), kind))
    return my.pick(
        f"T.lop3({a}, {b}, {c}, {my.rng.randrange(256)})",
        f"T.prmt({a}, {b}, {my.pick('0x3210', '0x5410', '0x89AB', '0x7531', c)})",
        f"T.funnel_shift_{my.pick('left', 'right')}({a}, {b}, {c}, clamp={my.pick('True', 'False')})",
    )


def _of_bools(my: Expressions, kind: str, depth: int) -> str:
    if kind != "int32":
        return my.of(kind, depth)
    return f"(T.bool({my.of('bool', depth)}) {my.pick('+', '-', '*')} {my.of('bool', depth)})"


def _aggregate(my: Expressions, kind: str, depth: int) -> str:
    """Of a few values, of a comprehension."""
    name = my.pick("any", "all") if kind == "bool" else my.pick("sum", "min", "max")
    if my.chance(0.5):
        items = ", ".join(my.of(kind, depth) for _ in range(my.rng.choice((2, 3))))
        return f"{name}({items})" if name in ("min", "max") else f"{name}([{items}])"
    outer = my.scope
    my.scope = outer.copy()
    my.scope.names["j"] = STATIC
    inner = my.of(kind, depth)
    my.scope = outer
    return f"{name}({inner} for j in ({my.pick('0, 1', '1, 2', '0, 2, 3')}))"


def _fma(my: Expressions, kind: str, depth: int) -> str:
    return f"T.fma({', '.join(my.of(kind, depth - 1) for _ in range(3))})"


def _function(my: Expressions, kind: str, depth: int) -> str:
    return f"T.{my.pick('sqrt', 'floor', 'ceil', 'trunc', 'round', 'rcp')}({my.of(kind, depth)})"


def _quotient(my: Expressions, kind: str, depth: int) -> str:
    if kind == "float32" and my.chance(0.4):
        integer = my.any_type(*INTS)
        return f"({my.of(integer, depth)} / {my.of(integer, depth)})"
    a, b = my.beside(kind, depth)
    return f"({a} / {b})"


def _with_integer(my: Expressions, kind: str, depth: int) -> str:
    return f"({my.of(kind, depth)} {my.pick('+', '-', '*', '/')} {my.of(my.any_type(*INTS), depth)})"


def _reinterpreted(my: Expressions, kind: str, depth: int) -> str:
    source = {"float16": "int16", "bfloat16": "uint16", "float32": "int32", "float64": "uint64"}[kind]
    return f'T.reinterpret({my.of(source, depth)}, "{kind}")'


def _compared(my: Expressions, kind: str, depth: int) -> str:
    if my.chance(0.3):
        return f"({my.fact(depth)})"
    a, b = my.beside(my.any_type(*INTS, *FLOATS), depth)
    return f"({my.pick('', '', '', 'not ')}{a} {my.pick('<', '<=', '==', '!=', '>', '>=')} {b})"


def _compared_mixed(my: Expressions, kind: str, depth: int) -> str:
    meeting = my.any_type("int16", "int32", "int64", "uint64", *FLOATS)
    a, b = my.rng.choice(list(meeting_in(meeting, (*INTS, *FLOATS))))
    return f"({my.of(a, depth)} {my.pick('<', '<=', '==', '!=', '>', '>=')} {my.of(b, depth)})"


def _chained(my: Expressions, kind: str, depth: int) -> str:
    number = my.any_type(*INTS, *FLOATS)
    a, b, c = my.of(number, depth), my.of(number, depth), my.weak(number) if my.chance(0.4) else my.of(number, depth)
    return f"({a} {my.pick('<', '<=', '!=')} {b} {my.pick('<', '<=', '==', '>')} {c})"


def _joined(my: Expressions, kind: str, depth: int) -> str:
    parts = [f"({my.of('bool', depth)})" for _ in range(my.rng.choice((2, 2, 3)))]
    return f"({(my.pick(' and ', ' or ')).join(parts)})"


def _index(my: Expressions) -> tuple[str, str]:
    """An index that may be outside, and a condition that says it is not."""
    name = my.rng.choice([each for each in my.bound("int32") if each != "tid"] or ["T.int32(3)"])
    inner = my.pick(name, f"{name} - 5", f"{name} * 2", f"lane - {name}" if "lane" in my.scope.names else name)
    return inner, f"0 <= {inner} < {ELEMENTS}"


def _guarded(my: Expressions, kind: str, depth: int) -> str:
    """What only one side of a condition may compute."""
    if kind in my.inputs and my.chance(0.6):
        index, test = _index(my)
        return f"(x_{kind}[{index}] if {test} else {my.of(kind, depth)})"
    divisors = my.bound(kind)
    if not divisors or kind in FLOATS:
        return my.of(kind, depth)
    divisor, a, b = my.rng.choice(divisors), my.of(kind, depth), my.of(kind, depth)
    sign = my.pick("//", "%")
    return my.pick(
        f"({a} {sign} {divisor} if {divisor} != 0 else {b})", f"({b} if {divisor} == 0 else {a} {sign} {divisor})"
    )


def _guarded_truth(my: Expressions, kind: str, depth: int) -> str:
    if my.inputs and my.chance(0.6):
        tensor = my.rng.choice(my.inputs)
        index, test = _index(my)
        read = f"x_{tensor}[{index}] {my.pick('<', '!=', '>=')} {my.number(tensor)}"
        return my.pick(
            f"({test} and {read})", f"(not ({test}) or {read})", f"({test} and ({my.of('bool', depth)}) and {read})"
        )
    divisor = my.rng.choice(my.bound("int32", "int64") or ["T.int32(2)"])
    a, b = my.of("int32", depth), my.number("int32")
    return my.pick(f"({divisor} != 0 and {a} % {divisor} < {b})", f"({divisor} == 0 or {a} // {divisor} >= {b})")


def _negated(my: Expressions, kind: str, depth: int) -> str:
    return f"(not ({my.condition(depth)}))"


INTEGERS: list[tuple[int, Make]] = [
    *[(24, _operator("+", "-", "*", "&", "|", "^")), (12, _divided), (8, _shifted), (5, _unary("-", "~"))],
    *[(7, _extreme), (3, _absolute), (7, _mixed), (9, _converted), (7, _choice), (7, _called), (2, _power)],
    *[(2, _cdiv), (5, _bits), (2, _of_bools), (4, _guarded), (4, _aggregate), (3, _said)],
]
REALS: list[tuple[int, Make]] = [
    *[(24, _operator("+", "-", "*")), (6, _quotient), (5, _divided), (4, _unary("-")), (7, _extreme), (3, _absolute)],
    *[(7, _mixed), (8, _converted), (6, _choice), (7, _called), (2, _power), (5, _fma), (6, _function)],
    *[(3, _with_integer), (3, _reinterpreted), (3, _guarded), (4, _aggregate), (4, _said), (3, _paired)],
]
TRUTHS: list[tuple[int, Make]] = [
    *[(24, _compared), (6, _compared_mixed), (6, _chained), (8, _joined), (5, _negated), (4, _converted)],
    *[(2, _choice), (2, _called), (2, _operator("&", "|", "^", "==", "!=")), (6, _guarded_truth), (4, _aggregate)],
]
