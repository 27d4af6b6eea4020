"""First launches in a process of their own: a kernel that hangs, or ends its context, takes nobody with it.

The process (`serve`) reads folders from its input, a line each, and answers with lines of JSON. A request is a
folder with the cubin, the launch plan and a description of the arguments as JSON, and the bytes of integer tensors
(they may be indices). Tensors of the same shapes, strides and alignment are made of them; floats are random. The
process serves one request after the other until one ends it; the next gets a new process.
"""

from __future__ import annotations

import json
import math
import select
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from warpjit import arguments
from warpjit.cuda.driver import load
from warpjit.errors import TuningError
from warpjit.execute import checked_grid
from warpjit.frontend.kinds import TensorKind
from warpjit.passes.launch_plan import LaunchPlan
from warpjit.tuner.candidates import Prepared, sentence, state_of
from warpjit.tuner.record import State

START_SECONDS = 120.0
"""That a process may take to be ready: it imports torch."""
LAUNCH_SECONDS = 20.0
PROGRAM = """
import json, sys
sys.path[:] = json.loads(sys.argv[2])
from warpjit.tuner.isolated import serve
serve(int(sys.argv[1]))
"""
ALIGNMENT = 256
PAYLOAD = 64 << 20
"""Bytes of a tensor of integers that are handed over; a larger one is all zeros."""


# ---- the side that asks ---------------------------------------------------------------------------------------


@dataclass
class Isolation:
    """The process, while there is one."""

    device: int
    seconds: float = LAUNCH_SECONDS
    child: subprocess.Popen[str] | None = field(default=None, repr=False)

    def try_out(self, each: Prepared) -> tuple[State, str] | None:
        """Run a candidate once there. None: it went well; else what became of it."""
        import tempfile  # noqa: PLC0415  rarely needed

        with tempfile.TemporaryDirectory(prefix="warpjit-") as folder:
            _write(each, Path(folder))
            if self.child is None:
                self.child = self._started()
            assert self.child.stdin is not None
            self.child.stdin.write(folder + "\n")
            self.child.stdin.flush()
            try:
                answer = self._answer(self.seconds)
            except TimeoutError:
                self.close()
                return State.TIMEOUT, f"it did not end within {self.seconds} s"
        if answer is None:
            self.close()
            return State.CONTEXT_LOST, "its process ended"
        if answer["state"]:
            if State(answer["state"]) is State.CONTEXT_LOST:
                self.close()
            return State(answer["state"]), str(answer["reason"])
        return None

    def _started(self) -> subprocess.Popen[str]:
        # The package need not be installed: the process finds it where this one did.
        command = [sys.executable, "-c", PROGRAM, str(self.device), json.dumps(sys.path)]
        self.child = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        try:
            ready = self._answer(START_SECONDS)
        except TimeoutError:
            ready = None
        if ready is None:
            self.close()
            raise TuningError(f"isolate: expected {sys.executable} to start with torch and a device, but it did not")
        return self.child

    def _answer(self, seconds: float) -> dict[str, Any] | None:
        """A line of the process; None: it has ended. TimeoutError: it said nothing for so long."""
        assert self.child is not None and self.child.stdout is not None
        if not select.select([self.child.stdout], [], [], seconds)[0]:
            raise TimeoutError
        line = self.child.stdout.readline()
        found: dict[str, Any] | None = json.loads(line) if line else None
        return found

    def close(self) -> None:
        """End the process."""
        if self.child is not None:
            self.child.kill()
            self.child.communicate()
            self.child = None


def _write(each: Prepared, folder: Path) -> None:
    assert each.executable is not None
    (folder / "cubin").write_bytes(each.executable.cubin)
    described: list[dict[str, Any]] = []
    for index, (kind, value) in enumerate(zip(each.call.specialization.leaves(), each.call.runtime, strict=True)):
        if not isinstance(kind, TensorKind):
            described.append({"number": arguments.number(value, kind.dtype)})  # type: ignore[union-attr]
            continue
        shape, strides = list(value.shape), list(value.stride())
        whole = not (value.is_floating_point() or value.is_complex())
        if whole and value.numel() * value.element_size() <= PAYLOAD:
            torch = arguments.torch_module()
            octets = value.contiguous().view(-1).view(torch.uint8).cpu().numpy() if value.numel() else b""
            (folder / f"bytes{index}").write_bytes(bytes(octets))
        dtype = str(value.dtype).removeprefix("torch.")
        place = value.data_ptr() % ALIGNMENT
        described.append({"dtype": dtype, "shape": shape, "strides": strides, "place": place})
    request = {"plan": each.plan.to_json(), "entry": each.executable.entry, "arguments": described}
    (folder / "request.json").write_text(json.dumps(request), encoding="utf-8")


# ---- the process ----------------------------------------------------------------------------------------------


def serve(device: int) -> None:
    """Answer until the input ends, or a request has ended the context."""
    import torch  # noqa: PLC0415  heavy

    torch.zeros(1, device=f"cuda:{device}")
    print(json.dumps({"state": ""}), flush=True)
    for line in sys.stdin:
        state, reason = "", ""
        try:
            _launch(Path(line.rstrip("\n")), device, torch)
            torch.cuda.synchronize(device)
        except Exception as error:
            state, reason = state_of(error).value, sentence(error)
        print(json.dumps({"state": state, "reason": reason}), flush=True)


def _launch(folder: Path, device: int, torch: Any) -> None:
    request = json.loads((folder / "request.json").read_text(encoding="utf-8"))
    plan = LaunchPlan.from_json(request["plan"])
    values: list[Any] = []
    sizes: list[Sequence[int]] = []
    strides: list[Sequence[int]] = []
    kept = []
    for index, each in enumerate(request["arguments"]):
        if "number" in each:
            values.append(each["number"])
            sizes.append(())
            strides.append(())
            continue
        tensor = _tensor(each, folder / f"bytes{index}", f"cuda:{device}", torch)
        kept.append(tensor)
        values.append(tensor.data_ptr())
        sizes.append(each["shape"])
        strides.append(each["strides"])
    planned = plan.compile()(values, sizes, strides)
    formats = ["P" if each.pointer else arguments.FORMATS[each.dtype.name] for each in plan.parameters]
    function = load((folder / "cubin").read_bytes(), device).function(request["entry"])
    prepared = function.prepare(formats, plan.block, shared=plan.shared_bytes, cluster=plan.cluster)
    encoded = [
        value if parameter.pointer else arguments.encoded(value, parameter.dtype)
        for parameter, value in zip(plan.parameters, planned[3:], strict=True)
    ]
    prepared.launch(checked_grid(plan, planned[:3]), arguments.stream_reader()(device), encoded)
    torch.cuda.synchronize(device)


def _tensor(given: dict[str, Any], payload: Path, place: str, torch: Any) -> Any:
    shape, strides, dtype = given["shape"], given["strides"], getattr(torch, given["dtype"])
    reach = 0 if 0 in shape else 1 + sum((size - 1) * step for size, step in zip(shape, strides, strict=True))
    size = torch.empty(0, dtype=dtype).element_size()
    buffer = torch.zeros(reach * size + 2 * ALIGNMENT, dtype=torch.uint8, device=place)
    shift = (given["place"] - buffer.data_ptr()) % ALIGNMENT
    tensor = torch.empty(0, dtype=dtype, device=buffer.device)
    tensor.set_(buffer.untyped_storage(), shift // size, shape, strides)
    if payload.exists() and math.prod(shape):
        flat = torch.frombuffer(bytearray(payload.read_bytes()), dtype=dtype)
        once = tuple(slice(0, 1) if step == 0 else slice(None) for step in strides)  # torch writes no place twice
        tensor[once].copy_(flat.view(shape)[once].to(buffer.device))
    elif dtype.is_floating_point and reach:
        line = torch.empty(0, dtype=dtype, device=buffer.device).set_(buffer.untyped_storage(), shift // size, (reach,))
        line.copy_(torch.rand(reach, device=buffer.device) - 0.5)
    return tensor
