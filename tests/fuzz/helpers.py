"""Random helpers: functions inside and outside of the kernel, and lambdas; they may read names of the kernel."""

from __future__ import annotations

from .control import Control
from .expressions import STATIC, Helper, Scope


class Body(Control):
    """The body of a helper: it may return early, and leaves no results but what it returns."""

    def __init__(self, parent: Control, indent: int, captured: Scope):
        super().__init__(parent.rng, parent.types, parent.inputs if captured.names else ())
        self.scope, self.counter = captured.copy(), parent.counter
        self.stores, self.together, self.returns = False, False, True
        self.indent = indent
        self.results: tuple[str, ...] = ()

    def return_text(self) -> str:
        return f"return {', '.join(self.of(kind, 2) for kind in self.results)}"

    def define(self) -> Helper:
        """Write it, and say what it is."""
        kinds = tuple(self.kind() for _ in range(self.rng.randint(1, 3)))
        self.results = tuple(self.kind() for _ in range(self.rng.choice((1, 1, 1, 2, 3))))
        optional = int(self.chance(0.3))
        name = self.fresh("h")
        parameters = [self.fresh() for _ in kinds]
        texts, default = list(parameters), self.fresh("p")
        texts += [f"{default}={self.rng.randrange(4)}"] if optional else []
        self.emit(self.indent, f"def {name}({', '.join(texts)}):")
        self.scope.names = {
            **{each: kind for each, kind in self.scope.names.items() if each[0] != "v" or self.chance(0.5)},
            **dict(zip(parameters, kinds, strict=True)),
        }
        self.captured = set(self.scope.names) - set(parameters)
        if optional:
            self.scope.names[default] = STATIC
        for _ in range(self.rng.randint(0, 3)):
            self.statement(self.indent + 1)
        self.emit(self.indent + 1, self.return_text())
        if optional:
            kinds, parameters = (*kinds, STATIC), [*parameters, default]
        return Helper(name, kinds, tuple(parameters), self.results, optional)


def shortcut(my: Control, indent: int) -> None:
    """A lambda."""
    kinds = [my.kind() for _ in range(my.rng.randint(1, 2))]
    name, result = my.fresh("f"), my.kind()
    parameters = {my.fresh("p"): kind for kind in kinds}
    outer, my.scope = my.scope, my.scope.copy()
    my.scope.names |= parameters
    text = my.of(result, 2)
    my.scope = outer
    my.emit(indent, f"{name} = lambda {', '.join(parameters)}: {text}")
    my.scope.helpers.append(Helper(name, tuple(kinds), tuple(parameters), (result,)))
