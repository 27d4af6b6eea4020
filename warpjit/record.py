"""Frozen dataclasses with slots that are quick to make and quick to define.

    @record
    class Point:
        x: int
        y: int = 0

is `@dataclass(frozen=True, slots=True)` with methods of another making. Python's own `__init__` assigns each field of
a frozen class by `object.__setattr__`, which looks the field up by its name; here the slots' descriptors are called,
found once: half the time, and a tracer makes values by the ten thousand. And where Python compiles six methods for a
class one by one, here it is three at once: a third of the time, which a process pays when it imports the class.
Left out is what no record needs: factories of defaults, fields by keyword only, inheritance.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import MISSING, Field, FrozenInstanceError, dataclass, field, fields
from typing import Any, NoReturn, TypeVar, dataclass_transform

Class = TypeVar("Class", bound=type)
Record = TypeVar("Record")


@dataclass_transform(frozen_default=True, field_specifiers=(field,))
def record(cls: Class) -> Class:
    """The class as a frozen dataclass with slots. What it defines itself stays; a field may say
    `field(default=..., compare=False)`."""
    own = set(vars(cls))
    cls.__doc__ = cls.__doc__ or cls.__name__  # a dataclass without one would be given its signature, which takes long
    made: Any = dataclass(init=False, repr=False, eq=False, slots=True)(cls)
    made.__dataclass_params__.frozen = True
    for name, method in (_SHARED | _compiled(made)).items():
        if name not in own:
            setattr(made, name, method)
    return made  # type: ignore[no-any-return]


def changed(value: Record, **fields: Any) -> Record:
    """`dataclasses.replace` of a record: the same with other values in some fields."""
    kind: Any = type(value)
    return kind(*[fields[name] if name in fields else getattr(value, name) for name in kind.__match_args__])  # type: ignore[no-any-return]


# ---- methods of one class --------------------------------------------------------------------------


def _compiled(cls: Any) -> dict[str, Callable[..., Any]]:
    """The methods that name each field. Their text is made of the names of fields alone."""
    names: dict[str, Any] = {"cls": cls}
    parameters, lines = ["self"], []
    for each in fields(cls):
        assert each.init and not each.kw_only and each.default_factory is MISSING, each.name
        names[f"set_{each.name}"] = getattr(cls, each.name).__set__
        lines.append(f" set_{each.name}(self, {each.name})\n")
        parameters.append(each.name if each.default is MISSING else f"{each.name}=default_{each.name}")
        names[f"default_{each.name}"] = each.default
    lines.append(" self.__post_init__()\n" if hasattr(cls, "__post_init__") else " pass\n")
    compared = [each for each in fields(cls) if each.compare]
    text = (
        f"def __init__({', '.join(parameters)}):\n{''.join(lines)}"
        f"def __eq__(self, other):\n"
        f" if other.__class__ is cls:\n"
        f"  return self is other or {_values('self', compared)} == {_values('other', compared)}\n"
        f" return NotImplemented\n"
        f"def __hash__(self):\n return hash({_values('self', compared)})\n"
    )
    exec(text, names)
    names["__init__"].__annotations__ = {each.name: each.type for each in fields(cls)} | {"return": None}
    return {name: names[name] for name in ("__init__", "__eq__", "__hash__")}


def _values(owner: str, every: list[Field[Any]]) -> str:
    """The text of a tuple of fields."""
    return f"({''.join(f'{owner}.{each.name}, ' for each in every)})"


# ---- methods of all --------------------------------------------------------------------------------


def _repr(self: Any) -> str:
    inside = ", ".join(f"{each.name}={getattr(self, each.name)!r}" for each in fields(self) if each.repr)
    return f"{type(self).__qualname__}({inside})"


def _set(self: Any, name: str, value: Any) -> NoReturn:
    raise FrozenInstanceError(f"cannot assign to field {name!r}")


def _delete(self: Any, name: str) -> NoReturn:
    raise FrozenInstanceError(f"cannot delete field {name!r}")


def _state(self: Any) -> list[Any]:
    """What is kept of a record that is pickled or copied."""
    return [getattr(self, name) for name in self.__match_args__]


def _restore(self: Any, state: list[Any]) -> None:
    for name, value in zip(self.__match_args__, state, strict=True):
        object.__setattr__(self, name, value)


_SHARED: dict[str, Callable[..., Any]] = {
    "__repr__": _repr,
    "__setattr__": _set,
    "__delattr__": _delete,
    "__getstate__": _state,
    "__setstate__": _restore,
}
