"""One issue of an operation as a C++ statement: its row's template filled with the operands.

PTX templates become asm statements: constraints follow from the operands' types, words of another type go through
bit casts, a predicate guards each instruction. C++ templates are filled with expressions and lvalues. Which issues
there are, and how statements nest, is in `statements`.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from warpjit.cuda import templates
from warpjit.cuda.operands import Bound, Number, Place, Texts, Words, bind, lvalue
from warpjit.cuda.scalars import asm_dtype, c_type, constraint, recast
from warpjit.cuda.templates import GUARD, Form, Hole, Template
from warpjit.errors import InstructionError
from warpjit.ir.dtypes import DType
from warpjit.ir.nodes import Atom, Const, Local, Op
from warpjit.isa.row import Asm, Mode, Row
from warpjit.record import record

Fresh = Callable[[Local], bool]
"""Whether a local has no declaration yet; asking declares it."""


def issue_statements(texts: Texts, op: Op, row: Row, fresh: Fresh) -> list[str]:
    """Each execution of `op`, with the declarations of locals that it defines, on one line."""
    form, is_asm = _form(row, op.params, tuple([value is not None for value in op.operands]))
    condition = None if isinstance(op.predicate, Const) or op.predicate is None else texts.atom(op.predicate)
    never = isinstance(op.predicate, Const) and not op.predicate.value
    write = _Issue.declarations if never else _Issue.asm if is_asm else _Issue.cxx
    return [write(_issue(texts, row, form, bind(op, row, issue), condition), fresh) for issue in range(op.issues)]


@functools.lru_cache(maxsize=4096)
def _form(row: Row, params: tuple[tuple[str, int], ...], present: tuple[bool, ...]) -> tuple[Form, bool]:
    """How a row is written for these params and operands, and whether that is PTX."""
    given = {operand.name for operand, there in zip(row.operands, present, strict=False) if there}
    code = row.written(dict(params), given)
    return templates.form(code.text), isinstance(code, Asm)


@record
class _Written:
    """One register or scalar that the statement writes, and the type in which the template does so."""

    atom: Atom
    dtype: DType
    updated: bool


@dataclass
class _Temporaries:
    """Variables of the template's types around the statement, where the written variables have others."""

    before: list[str] = field(default_factory=list)
    after: list[str] = field(default_factory=list)

    def around(self, declarations: str, statement: str) -> str:
        if not self.before:
            return f"{declarations} {statement}".strip()
        return f"{declarations} {{ {' '.join([*self.before, statement, *self.after])} }}".strip()


def _issue(texts: Texts, row: Row, form: Form, bound: Mapping[str, Bound], condition: str | None) -> _Issue:
    """One execution. Raises `InstructionError` for an operand that is missing."""
    holes: dict[str, Bound] = {}
    written: dict[str, tuple[_Written, ...]] = {}
    for name in form.names:
        words = bound.get(name)
        if words is None:
            raise InstructionError(f"the code of {row.text} needs {name!r}, which was not given")
        holes[name] = words
        if isinstance(words, Words) and words.operand.writes:
            updated = words.operand.mode is Mode.UPDATE
            pairs = zip(words.atoms, words.dtypes, strict=True)
            written[name] = tuple([_Written(atom, dtype, updated) for atom, dtype in pairs])
    return _Issue(texts, row, form, condition, holes, written)


@record
class _Issue:
    """`holes`: the operands that the template names, in its order; `written`: what it writes of these."""

    texts: Texts
    row: Row
    form: Form
    condition: str | None
    holes: Mapping[str, Bound]
    written: Mapping[str, tuple[_Written, ...]]

    # ---- both languages ----------------------------------------------------------------------------

    def declarations(self, fresh: Fresh) -> str:
        """Declarations of the locals that the statement defines."""
        atoms = [each.atom for words in self.written.values() for each in words]
        return " ".join(
            f"{c_type(atom.dtype)} {self.texts.atom(atom)};"
            for atom in atoms
            if isinstance(atom, Local) and fresh(atom)
        )

    def read(self, atom: Atom, dtype: DType) -> str:
        """The value as an expression of type `dtype`."""
        return recast(self.texts.atom(atom), atom.dtype, dtype)

    def temporary(self, written: _Written, dtype: DType, keeps: bool, temporaries: _Temporaries) -> str:
        """A variable of type `dtype` that becomes the written one afterwards; with `keeps` it has its value before."""
        name = self.texts.temporary(len(temporaries.before))
        value = f" = {recast(self.read(written.atom, written.dtype), written.dtype, dtype)}" if keeps else ""
        temporaries.before.append(f"{c_type(dtype)} {name}{value};")
        back = recast(recast(name, dtype, written.dtype), written.dtype, written.atom.dtype)
        temporaries.after.append(f"{self.texts.atom(written.atom)} = {back};")
        return name

    # ---- PTX ---------------------------------------------------------------------------------------

    def asm(self, fresh: Fresh) -> str:
        guarded = None if self.condition is None else self.form.guarded
        statement = self.asm_statement(guarded, self.declarations(fresh))
        if self.condition is None or guarded is not None:
            return statement
        return f"if ({self.condition}) {statement}"

    def asm_statement(self, guarded: Template | None, declarations: str) -> str:
        temporaries = _Temporaries()
        outputs: list[str] = []
        inputs: list[str] = []
        numbers: dict[str, tuple[str, ...]] = {}
        for name, words in self.written.items():
            start = len(outputs)
            outputs += [self.output(each, guarded is not None, temporaries) for each in words]
            numbers[name] = tuple(f"%{index}" for index in range(start, len(outputs)))
        for name, bound in self.holes.items():
            if name not in numbers and not isinstance(bound, Number):
                start = len(outputs) + len(inputs)
                inputs += self.inputs(bound)
                numbers[name] = tuple(f"%{index}" for index in range(start, len(outputs) + len(inputs)))
        text = templates.fill(guarded or self.form.inline, lambda hole: self.asm_hole(hole, numbers))
        if guarded is not None:
            number = f"%{len(outputs) + len(inputs)}"
            inputs.append(f'"r"((int){self.condition})')
            text = f"{{ .reg .pred {GUARD}; setp.ne.b32 {GUARD}, {number}, 0; {text} }}"
        return temporaries.around(declarations, _asm(text, outputs, inputs, self.row))

    def output(self, written: _Written, guarded: bool, temporaries: _Temporaries) -> str:
        """The entry of a written word. Under a guard it keeps its value where the guard is false."""
        keeps = guarded or written.updated
        carrier, have = asm_dtype(written.dtype), written.atom.dtype
        letter = constraint(carrier)
        name = self.texts.atom(written.atom)
        if letter != constraint(have) or carrier.bits != have.bits:
            name = self.temporary(written, carrier, keeps, temporaries)
        return f'"{"+" if keeps else "="}{letter}"({name})'

    def inputs(self, bound: Words | Place) -> list[str]:
        if isinstance(bound, Place):
            letter = "r" if bound.address.buffer.space == "shared" else "l"
            return [f'"{letter}"({self.texts.address(bound.address)})']
        entries = []
        for atom, dtype in zip(bound.atoms, bound.dtypes, strict=True):
            letter, have = constraint(dtype), atom.dtype
            # Signed and unsigned words of a width are one to PTX.
            same = letter == constraint(have) and dtype.bits == have.bits != 8
            value = self.texts.atom(atom) if same else self.read(atom, dtype)
            carried = recast(value, dtype, asm_dtype(dtype)) if dtype.bits == 8 else value
            entries.append(f'"{letter}"({carried})')
        return entries

    def asm_hole(self, hole: Hole, numbers: Mapping[str, tuple[str, ...]]) -> str:
        bound = self.holes[hole.name]
        if isinstance(bound, Number):
            return str(bound.value)
        if isinstance(bound, Words) and bound.braced and hole.index is None:
            return "{" + ", ".join(numbers[hole.name]) + "}"
        return numbers[hole.name][hole.index or 0]

    # ---- C++ ---------------------------------------------------------------------------------------

    def cxx(self, fresh: Fresh) -> str:
        short = self.cxx_result(fresh)
        if short is not None:
            return short
        temporaries = _Temporaries()
        declarations = self.declarations(fresh)
        names = {
            name: tuple(self.cxx_target(each, temporaries) for each in words) for name, words in self.written.items()
        }
        for name, bound in self.holes.items():
            names.setdefault(name, self.cxx_values(bound))
        statement = templates.fill(self.form.pieces, lambda hole: names[hole.name][hole.index or 0])
        if self.condition is None:
            return temporaries.around(declarations, statement)
        return f"{declarations} if ({self.condition}) {{ {temporaries.around('', statement)} }}".strip()

    def cxx_result(self, fresh: Fresh) -> str | None:
        """`int t = expression;` or `r_0 = cast(expression);`, where the template is one assignment to a scalar."""
        found = self.form.result
        written = self.written
        if found is None or list(written) != [found[0].name] or len(written[found[0].name]) != 1:
            return None
        (target,) = written[found[0].name]
        values = {name: self.cxx_values(bound) for name, bound in self.holes.items() if name != found[0].name}
        expression = templates.fill(found[1], lambda hole: values[hole.name][hole.index or 0]).strip()
        if not _assignable(target):
            expression = recast(f"({expression})", target.dtype, target.atom.dtype)
        name = self.texts.atom(target.atom)
        defines = f"{c_type(target.atom.dtype)} {name}"
        is_fresh = isinstance(target.atom, Local) and fresh(target.atom)
        if self.condition is not None:
            return (f"{defines}; " if is_fresh else "") + f"if ({self.condition}) {name} = {expression};"
        return f"{defines if is_fresh else name} = {expression};"

    def cxx_target(self, written: _Written, temporaries: _Temporaries) -> str:
        if _assignable(written):
            return self.texts.atom(written.atom)
        return self.temporary(written, written.dtype, keeps=True, temporaries=temporaries)

    def cxx_values(self, bound: Bound) -> tuple[str, ...]:
        if isinstance(bound, Number):
            return (str(bound.value) if bound.value >= 0 else f"({bound.value})",)
        if isinstance(bound, Place):
            return (lvalue(self.texts, bound),)
        return tuple([self.read(atom, dtype) for atom, dtype in zip(bound.atoms, bound.dtypes, strict=True)])


def _assignable(written: _Written) -> bool:
    """Whether C++ assigns a value of the template's type to the variable without changing bits."""
    have, want = written.dtype, written.atom.dtype
    return have is want or c_type(have) == c_type(want) or (have.is_int and want.is_int and have.bits == want.bits)


def _asm(text: str, outputs: list[str], inputs: list[str], row: Row) -> str:
    volatile = " volatile" if row.memory or row.volatile else ""
    sections = [", ".join(outputs), ", ".join(inputs)] + (['"memory"'] if row.memory else [])
    tail = " :".join(f" {section}" if section else "" for section in sections)
    return f'asm{volatile}("{text}" :{tail});'
