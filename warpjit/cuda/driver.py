"""Devices, contexts, modules and functions: what warpjit calls of the CUDA driver (libcuda), through ctypes.

With `launch`, which holds the launch itself, the one place that knows the driver. Everything happens in a device's
primary context, the one that torch uses. Nothing is called when this module is imported, so a process may fork until
it first uses the GPU. Modules are never unloaded.

Left out: what is launched with which arguments (the launch plan), which stream is torch's current one, and the
Python-level check for stream capture. Names and numbers: CUDA Driver API.
"""

from __future__ import annotations

import ctypes
import os
import struct
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import cached_property
from typing import Any

from warpjit.cuda.launch import Dim3, PreparedLaunch
from warpjit.errors import LaunchError, TargetError
from warpjit.isa.target import DEFAULT_SHARED, PORTABLE_CLUSTER, Target
from warpjit.locks import Lock

LIBRARY = "libcuda.so.1"

# CUdevice_attribute
CAPABILITY_MAJOR = 75
CAPABILITY_MINOR = 76
# CUfunction_attribute
STATIC_SHARED_BYTES = 1
MAX_DYNAMIC_SHARED_BYTES = 8
NON_PORTABLE_CLUSTER = 14

OUT_OF_RESOURCES = 701
"""A launch that needs more registers than there are."""
_INVALID_VALUE = 1
_NOT_INITIALIZED = 3
_INVALID_CONTEXT = 201
_INVALID_HANDLE = 400
_CAPTURE_IMPLICIT = 906
# What a launch gives in a thread without a context, and in one where another context is current.
_WRONG_CONTEXT = (_INVALID_CONTEXT, _INVALID_HANDLE)
# Errors of a kernel that ran before: reported by whatever call comes next, and the end of the context.
FATAL = {700, 702, 710, 714, 715, 716, 717, 718, 719}


class DriverError(LaunchError):
    """A driver call that failed: `call` is its name, `code` its CUresult, `name` e.g. "CUDA_ERROR_INVALID_VALUE"."""

    def __init__(self, call: str, code: int, name: str, text: str) -> None:
        super().__init__(f"{call} failed with {name} ({code}): {text}{_hint(code)}")
        self.call, self.code, self.name = call, code, name


def _hint(code: int) -> str:
    if code in FATAL:
        return "; a kernel that ran before did this, and this process can no longer use the device"
    if code == _NOT_INITIALIZED:
        return "; CUDA does not survive a fork: start the process with 'spawn', or fork before the first use of the GPU"
    return ""


class Driver:
    """libcuda, loaded and initialised, and the devices it shows.

    Raises `LaunchError` where there is no driver, `DriverError` where it cannot be initialised (no GPU, say).
    """

    def __init__(self, library: str = LIBRARY) -> None:
        try:
            self.library = ctypes.CDLL(library)
        except OSError as error:
            raise LaunchError(
                f"kernels can only be launched where NVIDIA's driver is installed ({library}): {error}"
            ) from error
        self._devices: dict[int, Device] = {}
        self._lock = threading.Lock()
        self.call("cuInit", 0)

    def call(self, name: str, *arguments: Any) -> None:
        """Call the entry point `name`; raise `DriverError` unless it succeeds. Pointers must be ctypes objects."""
        self.check(name, self.entry(name)(*arguments))

    def entry(self, name: str) -> Callable[..., int]:
        """The entry point `name`, which gives a CUresult. Raises `LaunchError` for one that this driver lacks."""
        try:
            found: Callable[..., int] = getattr(self.library, name)
        except AttributeError as error:
            raise LaunchError(f"this NVIDIA driver is too old: it has no {name}") from error
        return found

    def check(self, name: str, code: int) -> None:
        """Raise `DriverError` unless `code`, which the call `name` gave, is success."""
        if code:
            raise DriverError(
                name, code, *(self._error_text(call, code) for call in ("cuGetErrorName", "cuGetErrorString"))
            )

    def _error_text(self, call: str, code: int) -> str:
        text = ctypes.c_char_p()
        getattr(self.library, call)(code, ctypes.byref(text))
        return (text.value or b"an unknown error").decode()

    def device(self, ordinal: int) -> Device:
        """The device with this number, as torch counts (CUDA_VISIBLE_DEVICES applies to both)."""
        with self._lock:
            if ordinal not in self._devices:
                self._devices[ordinal] = Device(self, ordinal)
            return self._devices[ordinal]


class Device:
    """A GPU and its primary context (which is retained when it is first needed, and kept)."""

    def __init__(self, driver: Driver, ordinal: int) -> None:
        self.driver, self.ordinal = driver, ordinal
        handle = ctypes.c_int()
        driver.call("cuDeviceGet", ctypes.byref(handle), ordinal)
        self._handle = handle.value

    def attribute(self, number: int) -> int:
        """The value of a CUdevice_attribute. Makes no context."""
        value = ctypes.c_int()
        self.driver.call("cuDeviceGetAttribute", ctypes.byref(value), number, self._handle)
        return value.value

    @cached_property
    def target(self) -> Target:
        """The fullest target that this device runs, e.g. "sm_90a". Raises `TargetError` for an unknown one."""
        return Target.of_capability(self.attribute(CAPABILITY_MAJOR), self.attribute(CAPABILITY_MINOR))

    @cached_property
    def context(self) -> int:
        """The handle of the primary context."""
        context = ctypes.c_void_p()
        self.driver.call("cuDevicePrimaryCtxRetain", ctypes.byref(context), self._handle)
        return context.value or 0

    @contextmanager
    def current(self) -> Iterator[None]:
        """Make the primary context this thread's current one, and restore what was current (also none) afterwards."""
        if self.is_current():
            yield
            return
        self.driver.call("cuCtxPushCurrent_v2", ctypes.c_void_p(self.context))
        try:
            yield
        finally:
            self.driver.call("cuCtxPopCurrent_v2", ctypes.byref(ctypes.c_void_p()))

    def is_current(self) -> bool:
        """True if the primary context is current in this thread."""
        context = ctypes.c_void_p()
        self.driver.call("cuCtxGetCurrent", ctypes.byref(context))
        return (context.value or 0) == self.context

    def retry(self, call: Callable[[], int], code: int) -> int:
        """The result of `call`, which gave `code`: called again in this device's context if that was not current."""
        if code not in _WRONG_CONTEXT or self.is_current():
            return code
        with self.current():
            return call()

    def load(self, cubin: bytes) -> Module:
        """Load `cubin` into the primary context, for the rest of the process."""
        handle = ctypes.c_void_p()
        with self.current():
            self.driver.call("cuModuleLoadData", ctypes.byref(handle), cubin)
        return Module(self, handle)

    def is_capturing(self, stream: int) -> bool:
        """True while work on `stream` (a handle, 0 the default stream) is recorded into a graph, or may not be issued.

        The default stream may not be used while a stream that waits for it is captured.
        """
        status = ctypes.c_int()
        entry = self.driver.entry("cuStreamIsCapturing")

        def ask() -> int:
            return entry(ctypes.c_void_p(stream), ctypes.byref(status))

        code = self.retry(ask, ask())
        if code == _CAPTURE_IMPLICIT:
            return True
        self.driver.check("cuStreamIsCapturing", code)
        return status.value != 0


class Module:
    """A loaded cubin. Its functions are looked up once."""

    def __init__(self, device: Device, handle: ctypes.c_void_p) -> None:
        self.device, self._handle = device, handle
        self._functions: dict[str, Function] = {}

    def function(self, name: str) -> Function:
        """The kernel of this name. Raises `DriverError` if the cubin has none."""
        if name not in self._functions:
            handle = ctypes.c_void_p()
            with self.device.current():
                self.device.driver.call("cuModuleGetFunction", ctypes.byref(handle), self._handle, name.encode())
            self._functions[name] = Function(self.device, name, handle)
        return self._functions[name]


class Function:
    """A loaded kernel."""

    def __init__(self, device: Device, name: str, handle: ctypes.c_void_p) -> None:
        self.device, self.name, self.handle = device, name, handle
        self._set: dict[int, int] = {}

    def attribute(self, number: int) -> int:
        """The value of a CUfunction_attribute."""
        value = ctypes.c_int()
        with self.device.current():
            self.device.driver.call("cuFuncGetAttribute", ctypes.byref(value), number, self.handle)
        return value.value

    def set_attribute(self, number: int, value: int) -> None:
        """Set a CUfunction_attribute, unless this object has set it to `value` already."""
        if self._set.get(number) != value:
            with self.device.current():
                self.device.driver.call("cuFuncSetAttribute", self.handle, number, value)
            self._set[number] = value

    def parameter_sizes(self) -> tuple[int, ...] | None:
        """The size in bytes of each parameter; None where the driver (before 12.4) does not tell."""
        entry = getattr(self.device.driver.library, "cuFuncGetParamInfo", None)
        if entry is None:
            return None
        offset, size = ctypes.c_size_t(), ctypes.c_size_t()
        sizes: list[int] = []
        with self.device.current():
            while not (
                code := entry(self.handle, ctypes.c_size_t(len(sizes)), ctypes.byref(offset), ctypes.byref(size))
            ):
                sizes.append(size.value)
        if code != _INVALID_VALUE:  # what an index after the last parameter gives
            self.device.driver.check("cuFuncGetParamInfo", code)
        return tuple(sizes)

    def prepare(
        self, formats: Sequence[str], block: Dim3, *, shared: int = 0, cluster: Dim3 = (1, 1, 1)
    ) -> PreparedLaunch:
        """What is needed to launch the kernel many times.

        `formats` has a native `struct` format per parameter, e.g. ("P", "i", "f", "128s"). `shared`
        is dynamic shared memory in bytes, and `cluster` the blocks of the cluster that is compiled into the kernel;
        the function is opted in to either where it needs that. Raises `LaunchError` if the formats are not the
        kernel's parameters.
        """
        sizes = tuple(struct.calcsize("@" + form) for form in formats)
        known = self.parameter_sizes()
        if known is not None and known != sizes:
            raise LaunchError(f"kernel {self.name} has parameters of {known} bytes, but the launch gives {sizes}")
        if shared and shared + self.attribute(STATIC_SHARED_BYTES) > DEFAULT_SHARED:
            self.set_attribute(MAX_DYNAMIC_SHARED_BYTES, shared)
        if cluster[0] * cluster[1] * cluster[2] > PORTABLE_CLUSTER:
            self.set_attribute(NON_PORTABLE_CLUSTER, 1)
        return PreparedLaunch(self, formats, block, shared)


_shared: dict[str, Driver] = {}
_shared_lock = Lock()


def driver() -> Driver:
    """This process's driver, loaded and initialised by the first call. Raises as `Driver` does."""
    found = _shared.get(LIBRARY)
    if found is None:
        with _shared_lock:
            found = _shared.get(LIBRARY) or _shared.setdefault(LIBRARY, Driver(LIBRARY))
    return found


def load(cubin: bytes, device: int) -> Module:
    """Load `cubin` on the device with this number."""
    return driver().device(device).load(cubin)


def is_capturing(stream: int, device: int) -> bool:
    """True while `stream`, a handle on the device with this number, is captured into a graph."""
    return driver().device(device).is_capturing(stream)


def present_target(device: int = 0) -> Target | None:
    """The target of the device with this number; None without a driver, such a device, or support for its kind.

    Makes no context.
    """
    try:
        return driver().device(device).target
    except (LaunchError, TargetError):
        return None


# A child of a fork must not use its parent's handles; its own cuInit, or the first launch that is known, says so.
os.register_at_fork(after_in_child=_shared.clear)
