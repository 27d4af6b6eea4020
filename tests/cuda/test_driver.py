"""Loading and launching against a stand-in for libcuda that logs what is called, with what, in which context."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from driver_stand_in import OTHER, PRIMARY, Fake, build, in_thread

from warpjit.cuda import driver as driver_module
from warpjit.cuda.driver import Device, Driver, DriverError
from warpjit.errors import LaunchError, TargetError

# --- the driver and its devices ----------------------------------------------------------------------------------


def test_nothing_is_called_before_the_first_use(as_libcuda: Fake) -> None:
    assert as_libcuda.log == []
    driver_module.driver()
    driver_module.driver()
    assert as_libcuda.log == ["cuInit 0"]


def test_the_import_loads_no_library() -> None:
    program = "import warpjit.cuda.driver; print('libcuda' in open('/proc/self/maps').read())"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"


def test_without_a_driver_one_sentence_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(driver_module, "LIBRARY", "libcuda-of-nobody.so.1")
    with pytest.raises(LaunchError, match="only be launched where NVIDIA's driver is installed"):
        driver_module.load(b"", 0)
    assert driver_module.present_target() is None


def test_a_driver_without_a_device_is_an_error_of_cuinit_and_no_target(as_libcuda: Fake) -> None:
    as_libcuda.fail("cuInit", 100, times=2)
    with pytest.raises(DriverError) as caught:
        driver_module.driver()
    assert (caught.value.call, caught.value.code, caught.value.name) == ("cuInit", 100, "CUDA_ERROR_OTHER")
    assert driver_module.present_target() is None
    assert driver_module.driver().device(0).ordinal == 0  # a failure is not remembered


def test_the_present_target_is_found_without_a_context(as_libcuda: Fake) -> None:
    target = driver_module.present_target()
    assert target is not None and target.name == "sm_90a"
    assert as_libcuda.log == ["cuInit 0", "cuDeviceGetAttribute 75 of 0", "cuDeviceGetAttribute 76 of 0"]
    assert driver_module.present_target(7) is None


def test_a_device_of_an_unknown_kind_has_no_target(as_libcuda: Fake) -> None:
    as_libcuda.library.fake_capability(7, 0)
    assert driver_module.present_target() is None
    with pytest.raises(TargetError, match="sm_70"):
        _ = driver_module.driver().device(0).target


def test_a_device_answers_for_its_own_number(fake: Fake) -> None:
    device = Driver(str(fake.path)).device(1)
    assert device.attribute(16) == 132  # CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT
    assert fake.log[-1] == "cuDeviceGetAttribute 16 of 1"
    assert device.context == PRIMARY + 1


def test_a_child_of_a_fork_starts_anew(as_libcuda: Fake) -> None:
    driver_module.driver()
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        os.write(writing, repr(driver_module._shared).encode())
        os._exit(0)
    os.waitpid(child, 0)
    assert os.read(reading, 100) == b"{}"
    os.close(reading)
    os.close(writing)
    assert list(driver_module._shared) == [str(as_libcuda.path)]


# --- errors ------------------------------------------------------------------------------------------------------


def test_an_error_has_the_call_the_name_the_number_and_the_drivers_words(fake: Fake) -> None:
    kernel = fake.kernel()
    fake.fail("cuFuncSetAttribute", 1)
    with pytest.raises(DriverError) as caught:
        kernel.set_attribute(8, 100_000)
    assert str(caught.value) == "cuFuncSetAttribute failed with CUDA_ERROR_INVALID_VALUE (1): words of the driver"
    assert fake.contexts == (0, None)
    kernel.set_attribute(8, 100_000)
    assert "set 8 to 100000" in fake.log  # what failed is not taken for done


def test_an_error_that_the_driver_has_no_words_for_is_told(fake: Fake) -> None:
    kernel = fake.kernel()
    fake.fail("cuFuncSetAttribute", 12345)
    with pytest.raises(DriverError, match=r"an unknown error \(12345\)"):
        kernel.set_attribute(8, 1)


def test_an_error_of_an_earlier_kernel_is_called_that(fake: Fake) -> None:
    prepared = fake.kernel().prepare([], (32, 1, 1))
    fake.fail("cuLaunchKernelEx", 700)
    with pytest.raises(DriverError, match="a kernel that ran before did this"):
        prepared.launch((1, 1, 1), 0, ())


def test_errors_in_a_forked_child_name_the_cause(fake: Fake) -> None:
    """The first call of the driver there, or the launch of a kernel that its parent had loaded."""
    prepared = fake.kernel().prepare([], (32, 1, 1))
    fake.fail("cuInit", 3)
    with pytest.raises(DriverError, match="does not survive a fork"):
        Driver(str(fake.path))
    fake.fail("cuLaunchKernelEx", 3)
    with pytest.raises(DriverError, match="does not survive a fork"):
        prepared.launch((1, 1, 1), 0, ())


def test_a_missing_function_and_an_unloadable_cubin_are_errors(fake: Fake) -> None:
    device = Driver(str(fake.path)).device(0)
    with pytest.raises(DriverError, match="cuModuleGetFunction"):
        device.load(b"cubin").function("missing")
    fake.fail("cuModuleLoadData", 209)
    with pytest.raises(DriverError, match="cuModuleLoadData"):
        device.load(b"cubin")
    assert fake.contexts == (0, None)


def test_an_old_driver_lacks_a_call_by_name(tmp_path: Path) -> None:
    fake = Fake(build(tmp_path, "-DOLD_DRIVER"))
    kernel = fake.kernel()
    assert kernel.parameter_sizes() is None
    with pytest.raises(LaunchError, match="too old: it has no cuLaunchKernelEx"):
        kernel.prepare(["Q"], (32, 1, 1))


# --- contexts ----------------------------------------------------------------------------------------------------


def test_loading_pushes_the_primary_context_and_restores_none(fake: Fake) -> None:
    device = Driver(str(fake.path)).device(1)
    module = device.load(b"cubin")
    module.function("k")
    module.function("k")
    context = hex(PRIMARY + 1)
    expected = ["cuInit 0", "retain 1", f"push {context}", f"load cubin in {context}", f"pop {context}"]
    assert fake.log == [*expected, f"push {context}", "function k", f"pop {context}"]
    assert fake.contexts == (0, None)


def test_a_context_of_somebody_else_is_current_again_afterwards(fake: Fake) -> None:
    fake.push(OTHER)
    kernel = fake.kernel()
    kernel.set_attribute(8, 1)
    kernel.prepare([], (32, 1, 1)).launch((1, 1, 1), 0, ())
    assert fake.contexts == (1, OTHER)


def test_nothing_is_pushed_where_the_primary_context_is_current(fake: Fake) -> None:
    fake.push(PRIMARY)
    kernel = fake.kernel()
    kernel.prepare([], (32, 1, 1), shared=100_000).launch((1, 1, 1), 0, ())
    assert not any(line.startswith(("push", "pop")) for line in fake.log)


def test_a_launch_in_the_right_context_is_one_call(fake: Fake) -> None:
    fake.push(PRIMARY)
    prepared = fake.kernel().prepare([], (32, 1, 1))
    fake.library.fake_clear()
    prepared.launch((1, 1, 1), 0, ())
    assert fake.log == ["launch 1,1,1 x 32,1,1 shared 0 stream (nil):"]


@pytest.mark.parametrize(("current", "code"), [(None, 201), (OTHER, 400), (PRIMARY + 1, 400)])
def test_a_launch_elsewhere_is_repeated_in_the_right_context(fake: Fake, current: int | None, code: int) -> None:
    if current is not None:
        fake.push(current)
    prepared = fake.kernel().prepare([], (32, 1, 1))
    before = fake.contexts
    fake.library.fake_clear()
    prepared.launch((4, 1, 1), 0, ())
    launch = "launch 4,1,1 x 32,1,1 shared 0 stream (nil):"
    assert fake.log == [f"refused {code}", f"push {hex(PRIMARY)}", launch, f"pop {hex(PRIMARY)}"]
    assert fake.contexts == before


def test_a_refusal_in_the_right_context_is_not_repeated(fake: Fake) -> None:
    fake.push(PRIMARY)
    prepared = fake.kernel().prepare([], (32, 1, 1))
    fake.library.fake_clear()
    fake.fail("cuLaunchKernelEx", 400)
    with pytest.raises(DriverError, match="cuLaunchKernelEx"):
        prepared.launch((1, 1, 1), 0, ())
    assert fake.log == ["cuLaunchKernelEx fails 400"]


def test_a_thread_that_never_touched_cuda_can_launch(fake: Fake) -> None:
    fake.push(PRIMARY)
    fake.parameters(4)
    kernel = fake.kernel()

    def work() -> tuple[int, int | None]:
        kernel.prepare(["i"], (32, 1, 1)).launch((1, 1, 1), 0, (5,))
        return fake.contexts

    assert in_thread(work) == (0, None)
    assert "launch 1,1,1 x 32,1,1 shared 0 stream (nil): 05000000" in fake.log


# --- capture -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("status", "code", "expected"), [(0, 0, False), (1, 0, True), (2, 0, True), (0, 906, True)])
def test_capture_is_seen(as_libcuda: Fake, status: int, code: int, expected: bool) -> None:
    as_libcuda.push(PRIMARY)
    as_libcuda.library.fake_capture(status, code)
    assert driver_module.is_capturing(0x30, 0) is expected
    assert as_libcuda.log[-1] == "capturing 0x30"


def test_capture_is_asked_for_in_the_right_context(as_libcuda: Fake) -> None:
    assert driver_module.is_capturing(0, 1) is False
    context = hex(PRIMARY + 1)
    assert as_libcuda.log[-3:] == [f"push {context}", "capturing (nil)", f"pop {context}"]
    assert as_libcuda.contexts == (0, None)


def test_a_stream_that_is_none_is_an_error(as_libcuda: Fake) -> None:
    as_libcuda.push(PRIMARY)
    as_libcuda.fail("cuStreamIsCapturing", 1)
    with pytest.raises(DriverError, match="cuStreamIsCapturing"):
        driver_module.is_capturing(0x99, 0)


def test_the_shared_driver_loads_on_the_device_that_is_named(as_libcuda: Fake) -> None:
    module = driver_module.load(b"cubin", 1)
    assert isinstance(module.device, Device) and module.device.ordinal == 1
    assert f"load cubin in {hex(PRIMARY + 1)}" in as_libcuda.log
