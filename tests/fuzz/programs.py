"""A whole program from a seed: a module's text with arguments, one kernel, and helpers around it.

The module says by itself what it is called with: GRID, BLOCK, SCALARS, INPUTS (elements of each input), RESULTS (the
shape of each result, zeros before) and COUNTS (tensors of atomic operations). A kept find is such a module.
"""

from __future__ import annotations

import random

from .exchanges import CELLS, Exchanges
from .expressions import ELEMENTS, Scope
from .helpers import Body, shortcut
from .statements import RESULTS
from .types import ALL, FLOATS, INTS, SIGNED, WORDS, greatest, least

INFINITY = "1e999"


def elements(rng: random.Random, kind: str, count: int) -> list[str]:
    """Values of a type, as text: small ones, the edges, and any."""
    if kind == "bool":
        return [rng.choice(("True", "False")) for _ in range(count)]
    if kind in FLOATS:
        special = ("0.0", "-0.0", INFINITY, f"-{INFINITY}", "nan", "1e-45", "6e-8", "65504.0", "3.4e38", "1.0")
        return [
            rng.choice(special) if rng.random() < 0.25 else repr(round(rng.uniform(-100, 100), rng.choice((0, 2, 9))))
            for _ in range(count)
        ]
    edges = (least(kind), greatest(kind), 0, 1, greatest(kind) - 1, -1 if kind in SIGNED else 1)
    low, high = (-9 if kind in SIGNED else 0), 20
    return [
        str(rng.choice((rng.choice(edges), rng.randint(low, high), rng.randint(least(kind), greatest(kind)))))
        for _ in range(count)
    ]


def _types(rng: random.Random) -> tuple[str, ...]:
    """A few types, so that values meet often; int32 is always of use."""
    liked = {"int32", *rng.sample(INTS, rng.choice((0, 1, 1, 2))), *rng.sample(FLOATS, rng.choice((0, 1, 1, 2)))}
    liked |= {"bool"} if rng.random() < 0.4 else set()
    return tuple(kind for kind in ALL if kind in liked)


def program(seed: int, size: int = 9) -> str:
    """The module's text."""
    rng = random.Random(seed)
    types = _types(rng)
    inputs = tuple(kind for kind in types if rng.random() < 0.7)
    grid, block = rng.choice((1, 1, 2)), rng.choice((32, 32, 64))
    my = Exchanges(rng, types, inputs, block)
    scalar = rng.choice(("int32", "int64", "float32", *ALL))
    atomics = {kind: rng.choice(("add", "add", "min", "max", "and", "or", "xor")) for kind in types if kind in WORDS}
    my.atomics = atomics if rng.random() < 0.3 else {}
    lines = [
        "from dataclasses import dataclass, replace",
        "",
        "from warpjit import T, warpjit",
        "",
        f"GRID, BLOCK, SIZE = {grid}, {block}, {rng.randint(1, 5)}",
    ]
    n, k = rng.randint(0, 5), elements(rng, scalar, 1)[0]
    lines += [f'SCALARS = {{"n": ("int32", "{n}"), "k": ("{scalar}", "{k}")}}', "INPUTS = {"]
    lines += [f'    "x_{kind}": ("{kind}", "{" ".join(elements(rng, kind, ELEMENTS))}"),' for kind in inputs]
    counts = {f"g_{kind}": (kind, CELLS) for kind in my.atomics}
    results = {f"o_{kind}": (kind, RESULTS) for kind in types}
    lines += ["}", f"COUNTS = {counts}", f"RESULTS = {results}", ""]
    talks = rng.random() < 0.45
    for _ in range(rng.choice((0, 0, 1, 2))):
        my.define_class()
    classes, my.lines = my.lines, []
    outside = Body(my, 0, Scope())
    if rng.random() < 0.4:
        my.scope.helpers.append(outside.define())
        my.counter = outside.counter
    tensors = [f"x_{kind}" for kind in inputs] + [f"g_{kind}" for kind in my.atomics] + [f"o_{kind}" for kind in types]
    _kernel(my, size, scalar, talks)
    options = rng.choice(("", "", ", debug=True"))
    head = [
        "",
        f"@warpjit(contract=False{options})",
        f"def kernel({', '.join(['n: T.int32', f'k: T.{scalar}', *tensors])}):",
    ]
    return "\n".join([*lines, *classes, *outside.lines, *head, *my.lines, ""])


def _kernel(my: Exchanges, size: int, scalar: str, talks: bool) -> None:
    """The kernel's body."""
    rng = my.rng
    hosts = [_host(my) for _ in range(rng.choice((0, 0, 1, 2)))]
    grid = rng.choice(("GRID", "GRID", "min(GRID, n + 9)", "max(min(GRID, n + 7), 1)"))
    my.emit(1, f"T.device_entry(launch=T.cuda.LaunchConfig(grid={grid}, block=BLOCK))")
    my.emit(1, "lane = T.cuda.lane_id()")
    ways = ("T.cuda.thread_idx()", "(T.cuda.warp_id() * 32 + lane)")
    my.emit(1, f"tid = T.cuda.block_idx() * {my.threads} + {rng.choice(ways)}")
    for host in hosts:  # an int64 where its range asks for one
        my.emit(1, f"{host} = T.int32({host})")
    my.scope.names |= {"n": "int32", "k": scalar, "lane": "int32", "tid": "int32", **dict.fromkeys(hosts, "int32")}
    if talks:
        my.allow()
    my.allocate(1)
    my.returns = not talks and rng.random() < 0.3
    for _ in range(rng.choice((0, 0, 1, 2))):
        my.assignment(1)
    for _ in range(rng.choice((0, 1, 1, 2))):
        if rng.random() < 0.35:
            shortcut(my, 1)
            continue
        inner = Body(my, 1, my.scope)
        my.scope.helpers.append(inner.define())
        my.lines += inner.lines
        my.counter = inner.counter
    for _ in range(size):
        my.statement(1)
    _results(my)


def _host(my: Exchanges) -> str:
    """A name of the host part: data of the launch."""
    name = my.fresh("b")
    values = (
        "n * 2 + 1",
        "T.cdiv(n, 3)",
        "n // 2 - 1",
        "(n + 5) % 3",
        "min(n, 3)",
        "n if n > 2 else n + 7",
        "max(n - 3, 0) * 4",
    )
    my.emit(1, f"{name} = {my.pick(*values)}")
    return name


def _results(my: Exchanges) -> None:
    """Every name that is bound by now, as far as there is room."""
    for kind in my.types:
        names = [name for name in my.bound(kind) if name[0] == "v"]
        for place, name in enumerate(names[-RESULTS:]):
            my.emit(1, f"o_{kind}[tid, {place}] = {name}")
