"""One launch through ctypes: the driver's structures, and objects that are made beforehand.

The call packs arguments and grid into a buffer and calls cuLaunchKernelEx. It does not ask for the current context
first: a launch in the wrong one fails without effect and is then repeated in the right one. What a launch costs beside
the driver's own time is decided here and in `fastcall`, so each line that runs at a launch is here for a reason.

Left out: which values, grid and stream. Names and numbers: CUDA Driver API.
"""

from __future__ import annotations

import ctypes
import struct
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from warpjit.record import record

if TYPE_CHECKING:
    from warpjit.cuda.driver import Function

Dim3 = tuple[int, int, int]


class _Configuration(ctypes.Structure):
    """CUlaunchConfig, without attributes: a cluster is compiled into its kernel."""

    _fields_ = (
        ("grid_x", ctypes.c_uint),
        ("grid_y", ctypes.c_uint),
        ("grid_z", ctypes.c_uint),
        ("block", ctypes.c_uint * 3),
        ("shared", ctypes.c_uint),
        ("stream", ctypes.c_void_p),
        ("attributes", ctypes.c_void_p),
        ("count", ctypes.c_uint),
    )


@record
class Slot:
    """The ctypes objects of one launch at a time.

    buffer          the parameters' bytes, then a `_Configuration`
    words           the same memory as 64-bit words: `words[stream_word]` is the stream
    configuration   for the driver: the address of the configuration
    pointers        for the driver: the address of the addresses of the parameters
    addresses       those addresses, kept alive
    """

    buffer: Any
    words: memoryview
    configuration: Any
    pointers: Any
    addresses: Any


class PreparedLaunch:
    """A launch that is repeated with other arguments, by any number of threads at once.

    Always cuLaunchKernelEx, which is no slower for the driver than cuLaunchKernel and has 4 arguments for ctypes to
    convert, not 11. They are made beforehand by `from_param`, the form that ctypes only copies. A launch takes a `Slot`
    from `free`, or a new one, and puts it back: a thread that comes in between, or a finalizer that launches, takes
    another.

    `launch` is the plain form. A function that is generated (`fastcall`) does the same inline, by `filling` and
    `SENDING` with the names of `names`.
    """

    def __init__(self, function: Function, formats: Sequence[str], block: Dim3, shared: int) -> None:
        self.function = function
        # Native formats: struct packs them twice as fast as "<" ones, each where C would have it.
        whole = struct.calcsize("@" + "".join(formats))
        starts = (struct.calcsize("@" + "".join(formats[:index])) for index in range(1, len(formats) + 1))
        self._offsets = [end - struct.calcsize("@" + form) for end, form in zip(starts, formats, strict=True)]
        self._start = -(-whole // 8) * 8
        self.stream_word = (self._start + _Configuration.stream.offset) // 8
        self.pack = struct.Struct("@" + "".join(formats) + f"{self._start - whole}x3I").pack_into
        self._pattern = _Configuration(0, 0, 0, block, shared)
        self.enter = function.device.driver.entry("cuLaunchKernelEx")
        self.handle = ctypes.c_void_p.from_param(function.handle.value)
        self.extra = ctypes.c_void_p.from_param(0)
        self.free: list[Slot] = []

    def slot(self) -> Slot:
        """New objects for one launch.

        The parameters are given by one pointer each. Not the packed form of a launch
        (CU_LAUNCH_PARAM_BUFFER_POINTER): its offsets are those of the constant bank, which are not C's where a
        parameter is aligned to more than 16 bytes (a tensor map in C's place: the launch is refused on sm_90). It is no
        faster either.
        """
        buffer = ctypes.create_string_buffer(self._start + ctypes.sizeof(_Configuration))
        start = ctypes.addressof(buffer)
        ctypes.memmove(start + self._start, ctypes.byref(self._pattern), ctypes.sizeof(_Configuration))
        addresses = (ctypes.c_void_p * max(len(self._offsets), 1))(*(start + offset for offset in self._offsets))
        address = ctypes.c_void_p.from_param
        words = memoryview(buffer).cast("B").cast("Q")
        return Slot(buffer, words, address(start + self._start), address(ctypes.addressof(addresses)), addresses)

    def launch(self, grid: Dim3, stream: int, values: Sequence[Any]) -> None:
        """Launch `grid` blocks on `stream` (a handle, 0 the default stream) with one value per parameter.

        A grid of no blocks is no launch. Raises `DriverError`, and `struct.error` for values that do not fit.
        """
        try:
            slot = self.free.pop()
        except IndexError:
            slot = self.slot()
        self.pack(slot.buffer, 0, *values, *grid)
        if 0 not in grid:
            slot.words[self.stream_word] = stream
            code = self.enter(slot.configuration, self.handle, slot.pointers, self.extra)
            if code:
                self.recover(slot, code)
        self.free.append(slot)

    def recover(self, slot: Slot, code: int) -> None:
        """Launch what lies in `slot` again if it was refused, with `code`, for its context. Raises `DriverError`."""
        device = self.function.device

        def again() -> int:
            return self.enter(slot.configuration, self.handle, slot.pointers, self.extra)

        device.driver.check("cuLaunchKernelEx", device.retry(again, code))

    # ---- inline ------------------------------------------------------------------------------------

    def filling(self, values: Sequence[str], grid: Sequence[str]) -> list[str]:
        """Lines that fill a slot with the values and the grid of these texts. They raise as `launch` does."""
        return [
            "try:",
            "    slot = take()",
            "except IndexError:",
            "    slot = new()",
            f"pack(slot.buffer, 0, {', '.join([*values, *grid])})",
        ]

    def sending(self, stream: str) -> list[str]:
        """Lines that launch, on the stream of this text, what `filling` filled."""
        return [
            f"slot.words[{self.stream_word}] = {stream}",
            "code = enter(slot.configuration, handle, slot.pointers, extra)",
            "if code:",
            "    recover(slot, code)",
            *KEEPING,
        ]

    def names(self) -> dict[str, Any]:
        """The names in those lines."""
        return {
            **{"take": self.free.pop, "keep": self.free.append, "new": self.slot, "pack": self.pack},
            **{"enter": self.enter, "handle": self.handle, "extra": self.extra, "recover": self.recover},
        }


KEEPING = ("keep(slot)",)
"""Lines that give back, without a launch, the slot that `filling` took."""
