"""One program run by the oracle and by warpjit, and what differs.

`Case` is a module with its arguments; `oracle` and `warpjit` give its tensors afterwards; `compare` says the first
element that differs. Everything that warpjit raises is a failure, for the programs are right: a refusal of the tracer,
a finding of the simulator, and most of all an exception that is not of the WarpjitError family.
"""

from __future__ import annotations

import importlib.util
import signal
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import torch

import warpjit

from . import oracle
from .memory import Cells, natural
from .numbers import Number, cast
from .types import BITS, FLOATS

SECONDS = 30
"""After so long a run counts as one that does not end."""
THREADS = 16
"""Programs that are built at once."""
EXPECTED = ("more than 4,096", "does not fit", "is too large for", "expected it within shape")
"""Refusals that a right program may meet: literals computed while tracing, loops that are too long to expand, windows
that are known to lie outside where they would be made."""

Tensors = dict[str, torch.Tensor]


@dataclass(frozen=True)
class Failure:
    """What went wrong: a kind for the shrinker, and the whole story."""

    kind: str
    text: str
    mutant: bool = False


def dtype(kind: str) -> torch.dtype:
    return getattr(torch, kind)


def tensor_of(kind: str, values: Sequence[Any]) -> torch.Tensor:
    """Values as a `Number` holds them, as a tensor; of torch's unsigned types as well."""
    if kind in BITS:
        return torch.from_numpy(np.array(values, dtype=kind))
    wide = np.float64 if kind == "float64" else np.float32
    return torch.from_numpy(np.array(values, dtype=np.bool_ if kind == "bool" else wide)).to(dtype(kind))


class Case:
    """A program's text, loaded as a module from a file of its own."""

    def __init__(self, text: str, folder: Path, name: str = "program"):
        self.text = text
        path = folder / f"{name}.py"
        path.write_text(text)
        spec = importlib.util.spec_from_file_location(name, path)
        assert spec is not None and spec.loader is not None
        self.module: ModuleType = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(self.module)
        self.kernel: warpjit.Kernel = self.module.kernel
        self.threads: int = self.module.GRID * self.module.BLOCK

    def _texts(self) -> Iterator[tuple[str, str, list[Any]]]:
        for name, (kind, text) in {**self.module.SCALARS, **self.module.INPUTS}.items():
            yield name, kind, [_read(kind, item) for item in text.split()]

    def order(self) -> list[str]:
        return [*self.module.SCALARS, *self.module.INPUTS, *self.module.COUNTS, *self.module.RESULTS]

    def cells(self) -> dict[str, Any]:
        """The arguments for the oracle."""
        found: dict[str, Any] = {}
        for name, kind, values in self._texts():
            found[name] = (
                Number(values[0], kind) if name in self.module.SCALARS else Cells(values, kind, (len(values),))
            )
        for name, (kind, size) in self.module.COUNTS.items():
            found[name] = Cells([natural(0, kind)] * size, kind, (size,))
        for name, (kind, size) in self.module.RESULTS.items():
            found[name] = Cells([natural(0, kind)] * (size * self.threads), kind, (self.threads, size))
        return {name: found[name] for name in self.order()}

    def arguments(self, device: str) -> dict[str, Any]:
        """The arguments for warpjit."""
        found: dict[str, Any] = {}
        for name, kind, values in self._texts():
            scalar = name in self.module.SCALARS
            found[name] = values[0] if scalar else tensor_of(kind, values).to(device)
            if scalar and kind in FLOATS:
                found[name] = float(values[0])
        for name, (kind, size) in self.module.COUNTS.items():
            found[name] = torch.zeros(size, dtype=dtype(kind), device=device)
        for name, (kind, size) in self.module.RESULTS.items():
            found[name] = torch.zeros((self.threads, size), dtype=dtype(kind), device=device)
        return {name: found[name] for name in self.order()}

    def run(self, device: str) -> Tensors:
        """The tensors on the CPU. Raises what warpjit raises."""
        arguments = self.arguments(device)
        self.kernel(*arguments.values())
        return {name: value.cpu() for name, value in arguments.items() if isinstance(value, torch.Tensor)}


def _read(kind: str, text: str) -> Any:
    if kind == "bool":
        return text == "True"
    with np.errstate(over="ignore"):
        return cast(float(text), kind).value if kind in FLOATS else int(text)


# ---- comparison ----------------------------------------------------------------------------------------


def _bits(tensor: torch.Tensor) -> np.ndarray[Any, Any]:
    """Elements as integers; all NaNs are one."""
    if not tensor.dtype.is_floating_point:
        return tensor.numpy()
    wide = tensor.to(torch.float64).numpy().copy()
    wide[np.isnan(wide)] = np.nan
    return wide.view(np.int64)


def compare(expected: Tensors, got: Tensors, rows: Sequence[int] | None = None) -> str:
    """The first element that differs, in words; "" where none does. `rows`: those of the results that count."""
    for name, tensor in expected.items():
        kept = list(rows) if rows is not None and tensor.ndim == 2 else slice(None)
        one, other = tensor[kept], got[name][kept]
        different = np.argwhere(_bits(one) != _bits(other))
        if len(different):
            place = tuple(int(x) for x in different[0])
            row = (rows[place[0]], *place[1:]) if rows is not None and tensor.ndim == 2 else place
            return (
                f"{len(different)} elements of {name} differ, the first at {row}: expected {one[place].item()!r} but "
                f"got {other[place].item()!r}"
            )
    return ""


@contextmanager
def limited(seconds: int = SECONDS) -> Iterator[None]:
    """TimeoutError after some seconds (in the main thread). What another alarm had left goes on afterwards."""

    def stop(*_: Any) -> None:
        raise TimeoutError(f"it did not end within {seconds} seconds")

    before = signal.signal(signal.SIGALRM, stop)
    left = signal.alarm(seconds)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)
        signal.alarm(left)


def expected(case: Case) -> tuple[Tensors, list[int]]:
    """The oracle's tensors, and the rows that it computed. Raises `Invalid`."""
    cells, rows = oracle.run(case.text, case.cells())
    return {name: tensor_of(each.kind, each.cells).view(each.shape) for name, each in cells.items()}, rows


def attempt(case: Case, device: str) -> Tensors | Failure:
    """warpjit's tensors, or what it raised."""
    try:
        with limited():
            return case.run(device)
    except warpjit.WarpjitError as error:
        said = str(error)
        kind = "accepted" if any(each in said for each in EXPECTED) else type(error).__name__
        return Failure(f"{kind}: {_sentence(said)}", said)
    except TimeoutError as error:
        return Failure("TimeoutError", str(error))
    except Exception as error:
        return Failure(f"leaked {type(error).__name__}", f"{type(error).__name__}: {error}")


def _sentence(said: str) -> str:
    """An error without what is the program's own: names, numbers, lines."""
    lines = said.splitlines() or [""]
    first = lines[2] if lines[0].endswith(" errors") and len(lines) > 2 else lines[0]
    words = [word for word in first.split() if word.isalpha()]
    return " ".join(words[:12])


def build(cases: Sequence[Case]) -> None:
    """Fill the store for the GPU, several programs at once; what is wrong shows when they run."""

    def cubin(case: Case) -> None:
        with suppress(Exception):
            case.kernel.cubin(*case.arguments("cuda").values())

    with ThreadPoolExecutor(THREADS) as pool:
        list(pool.map(cubin, cases))


def judge(case: Case, device: str = "cpu") -> Failure | None:
    """The failure of a program, None where all agree. Raises `Invalid`."""
    wanted, rows = expected(case)
    found = attempt(case, device)
    if isinstance(found, Failure):
        return None if found.kind.startswith("accepted") else found
    words = compare(wanted, found, rows)
    return Failure("different", words) if words else None
