"""Random tuples, lists, dictionaries, bundles and objects that hold values of the device.

What they hold is bound under a name of its own, `q1[0]` or `u1.a`, in the scope: expressions read it like any name. A
tuple and a bundle are bound again anywhere, an object's attributes are assigned anywhere: loops carry their numbers.
"""

from __future__ import annotations

from dataclasses import dataclass

from .control import Control
from .expressions import STATIC, Scope


@dataclass(frozen=True)
class Class:
    """A class of the program: frozen or not, the types of its fields, of what a step takes, of its property."""

    name: str
    frozen: bool
    fields: dict[str, str]
    step: str
    value: str


class Structure(Control):
    """Statements about what exists while tracing only."""

    def __init__(self, *args: object):
        super().__init__(*args)  # type: ignore[arg-type]
        self.classes: list[Class] = []
        self.made: dict[str, Class] = {}
        self.statements += [(5, self.carried_tuple), (3, self.listed), (2, self.keyed), (7, self.instance)]

    def parts(self, name: str, kinds: dict[str, str]) -> None:
        """Bind what a structure holds; `kinds` by what stands after its name."""
        self.scope.names |= {f"{name}{suffix}": kind for suffix, kind in kinds.items()}

    # ---- tuples, lists, dictionaries -------------------------------------------------------------------

    def carried_tuple(self, indent: int) -> None:
        known = sorted({name.partition("[")[0] for name in self.scope.names if name[0] == "q"} - self.captured)
        if known and self.chance(0.6):
            name = self.rng.choice(known)
            kinds = [kind for each, kind in self.scope.names.items() if each.startswith(f"{name}[")]
        else:
            name, kinds = self.fresh("q"), [self.kind() for _ in range(self.rng.choice((2, 2, 3)))]
        self.emit(indent, f"{name} = ({', '.join(self.of(kind, 2) for kind in kinds)})")
        self.parts(name, {f"[{place}]": kind for place, kind in enumerate(kinds)})

    def listed(self, indent: int) -> None:
        name, kind, item = self.fresh("l"), self.kind(), self.fresh("j")
        outer, self.scope = self.scope, self.scope.copy()
        self.scope.names[item] = STATIC
        text, test = self.of(kind, 2), f" if {item} != 2" if self.chance(0.2) else ""
        self.scope = outer
        self.emit(indent, f"{name} = [{text} for {item} in (0, 1, {self.pick('3', '2, 3')}){test}]")
        count = 2
        if self.chance(0.3):
            self.emit(indent, f"{name}[1] = {self.of(kind, 1)}")
        if self.chance(0.3):
            self.emit(indent, f"{name}.insert(0, {self.of(kind, 1)})")
            count = 3
        self.parts(name, {f"[{place}]": kind for place in (*range(count), -1)})
        if self.chance(0.3):
            first, rest = self.fresh(), self.fresh("l")
            self.emit(indent, f"{first}, *{rest} = {name}")
            self.scope.names[first] = kind
            self.parts(rest, {f"[{place}]": kind for place in range(count - 1)})

    def keyed(self, indent: int) -> None:
        name, kinds = self.fresh("d"), {key: self.kind() for key in ("a", "b")}
        items = ", ".join(f'"{key}": {self.of(kind, 2)}' for key, kind in kinds.items())
        self.emit(indent, f"{name} = {{{items}}}")
        if self.chance(0.5):
            kinds["c"] = self.kind()
            self.emit(indent, f'{name}["c"] = {self.of(kinds["c"], 2)}')
        self.parts(name, {f'["{key}"]': kind for key, kind in kinds.items()})
        if self.chance(0.3):
            key, value = self.fresh("j"), self.fresh("e")
            self.emit(indent, f"for {key}, {value} in {name}.items():")
            outer, self.jumps = self.jumps, ""
            self.emit(indent + 1, f'if {key} == "a":')
            self.block(indent + 2, 1, True, {value: kinds["a"]})
            self.jumps = outer

    # ---- bundles and objects ---------------------------------------------------------------------------

    def instance(self, indent: int) -> None:
        known = [name for name in self.made if f"{name}.a" in self.scope.names and name not in self.captured]
        if not self.classes or (known and self.chance(0.65)):
            if not known:
                return self.assignment(indent)
            return self.advance(indent, self.rng.choice(known))
        made, name = self.rng.choice(self.classes), self.fresh("u")
        self.emit(indent, f"{name} = {made.name}({', '.join(self.of(kind, 2) for kind in made.fields.values())})")
        self.made[name] = made
        self.parts(name, {**{f".{field}": kind for field, kind in made.fields.items()}, ".value": made.value})

    def advance(self, indent: int, name: str) -> None:
        """The next state of a bundle, or of an object."""
        made = self.made[name]
        field, kind = self.rng.choice(list(made.fields.items()))
        if made.frozen:
            way = self.pick(f"{name}.step({self.of(made.step, 2)})", f"replace({name}, {field}={self.of(kind, 2)})")
            self.emit(indent, f"{name} = {way}")
        elif self.chance(0.6):
            result = self.fresh()
            self.emit(indent, f"{result} = {name}.step({self.of(made.step, 2)})")
            self.scope.names[result] = made.value
        else:
            sign = self.pick("=", "+=", "-=") if kind != "bool" else "="
            self.emit(indent, f"{name}.{field} {sign} {self.of(kind, 2)}")

    def define_class(self) -> None:
        """A class outside of the kernel."""
        fields = {letter: self.kind() for letter in ("a", "b", "c")[: self.rng.choice((2, 2, 3))]}
        made = Class(self.fresh("C"), self.chance(0.5), fields, self.kind(), self.kind())
        outer, self.scope = self.scope, Scope({f"self.{field}": kind for field, kind in fields.items()})
        inputs, self.inputs = self.inputs, ()
        if made.frozen:
            self.emit(0, "@dataclass(frozen=True)")
        self.emit(0, f"class {made.name}:")
        if made.frozen:
            for field in fields:
                self.emit(1, f"{field}: object")
        else:
            self.emit(1, f"def __init__(self, {', '.join(f'{field}_' for field in fields)}):")
            for field in fields:
                self.emit(2, f"self.{field} = {field}_")
        self.emit(1, "@property")
        self.emit(1, "def value(self):")
        self.emit(2, f"return {self.of(made.value, 2)}")
        self.emit(1, "def step(self, p):")
        self.scope.names["p"] = made.step
        self._step(made)
        self.scope, self.inputs = outer, inputs
        self.classes.append(made)

    def _step(self, made: Class) -> None:
        if made.frozen:
            changes = {field: kind for field, kind in made.fields.items() if self.chance(0.7)}
            text = ", ".join(f"{field}={self.of(kind, 2)}" for field, kind in changes.items())
            if self.chance(0.3):
                self.emit(2, f"if {self.condition(1)}:")
                self.emit(3, "return self")
            self.emit(2, f"return replace(self, {text})")
            return
        for field, kind in made.fields.items():
            if self.chance(0.3):
                self.emit(2, f"if {self.condition(1)}:")
                self.emit(3, f"self.{field} = {self.of(kind, 2)}")
            elif self.chance(0.6):
                self.emit(2, f"self.{field} = {self.of(kind, 2)}")
        self.emit(2, f"return {self.of(made.value, 2)}")
