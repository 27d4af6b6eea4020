"""Objects of plain classes that a kernel makes: their attributes are assigned like names.

What a branch or a loop of the device does to an attribute is seen by comparing the attributes before and after, whoever
assigned them. How a class is called, and what its methods do, is `classes`'.
"""

from __future__ import annotations

import types
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from warpjit.errors import Finding, Loc, Note
from warpjit.frontend.values import KernelObject, Value
from warpjit.record import record

_CLASSES: dict[type, type] = {}


def kernel_class(kind: type) -> type:
    """The class whose objects a kernel makes in place of those of `kind`."""
    if issubclass(kind, KernelObject):
        return kind
    if kind not in _CLASSES:
        named = {"__module__": kind.__module__, "__qualname__": kind.__qualname__, "__doc__": kind.__doc__}
        _CLASSES[kind] = types.new_class(kind.__name__, (kind, KernelObject), exec_body=lambda body: body.update(named))
    return _CLASSES[kind]


@dataclass(eq=False)
class Made:
    """An object of this kernel: which one, where it was made, and where its attributes got their values."""

    value: Any
    serial: int
    loc: Loc
    bound: dict[str, Loc] = field(default_factory=dict)

    @property
    def fields(self) -> dict[str, Value]:
        return dict(vars(self.value))

    def label(self, name: str) -> str:
        """What messages call an attribute."""
        return f"{type(self.value).__name__}.{name}"

    def late(self, name: str, at: Loc) -> Finding:
        """What is wrong with an attribute that exists on some paths only."""
        message = (
            f"{self.label(name)} is first assigned inside of a loop or branch of the device: give it a value where the "
            "object is made"
        )
        return Finding(message, at, (Note("the object is made here", self.loc),))

    def set(self, name: str, value: Value, loc: Loc | None = None) -> None:
        """Assign an attribute. An object that Python has made is one of the kernel's from then on."""
        if not isinstance(self.value, KernelObject):
            self.value.__class__ = kernel_class(type(self.value))
        object.__setattr__(self.value, name, value)
        if loc is not None:
            self.bound[name] = loc


@record
class Picture:
    """The attributes of one object at one time."""

    made: Made
    fields: dict[str, Value]
    bound: dict[str, Loc]

    def changes(self) -> list[str]:
        """The attributes that are not what they were."""
        now = self.made.fields
        names = [*self.fields, *(name for name in now if name not in self.fields)]
        return [name for name in names if name not in now or now[name] is not self.fields.get(name, now)]


class Objects:
    """All objects that the kernel has made so far, in order."""

    def __init__(self) -> None:
        self._made: dict[int, Made] = {}

    def __iter__(self) -> Iterator[Made]:
        return iter(list(self._made.values()))

    def add(self, value: Any, loc: Loc) -> Made:
        made = self._made[id(value)] = Made(value, len(self._made), loc)
        made.bound = dict.fromkeys(made.fields, loc)
        return made

    def find(self, value: Any) -> Made | None:
        return self._made.get(id(value))

    def picture(self) -> list[Picture]:
        """All attributes as they are now."""
        return [Picture(made, made.fields, dict(made.bound)) for made in self]

    def restore(self, pictures: list[Picture], *, forget: bool = False) -> None:
        """Put the attributes back. `forget`: objects made since then never were."""
        for picture in pictures:
            inside = vars(picture.made.value)
            inside.clear()
            inside.update(picture.fields)
            picture.made.bound = dict(picture.bound)
        if forget:
            kept = {id(picture.made.value) for picture in pictures}
            self._made = {key: made for key, made in self._made.items() if key in kept}
