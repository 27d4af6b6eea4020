"""Loading and launching against a stand-in for libcuda that logs what is called, with what, in which context."""

from __future__ import annotations

import os
import struct
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path

import pytest
from driver_stand_in import OTHER, PRIMARY, Fake, build

from warpjit.cuda import driver as driver_module
from warpjit.cuda.driver import Device, Driver, DriverError, Launcher, PreparedLaunch
from warpjit.errors import LaunchError, TargetError


def in_thread(work: Callable[[], object]) -> object:
    results: list[object] = []

    def run() -> None:
        try:
            results.append(work())
        except Exception as error:
            results.append(error)

    thread = threading.Thread(target=run)
    thread.start()
    thread.join()
    return results[0]


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
    assert device.attribute(driver_module.MULTIPROCESSOR_COUNT) == 132
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


def test_cuinit_in_a_forked_child_names_the_cause(fake: Fake) -> None:
    fake.fail("cuInit", 3)
    with pytest.raises(DriverError, match="does not survive a fork"):
        Driver(str(fake.path))


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


# --- launches ----------------------------------------------------------------------------------------------------


def test_each_parameter_is_handed_over_with_its_own_bytes(fake: Fake) -> None:
    fake.parameters(8, 4, 1, 128, 4, 8)
    prepared = fake.kernel().prepare(["Q", "i", "?", "128s", "f", "d"], (8, 4, 2), shared=512)
    blob = bytes(range(128))
    prepared.launch((3, 2, 1), 0xABC, (0x7F0011223344, -2, True, blob, 1.5, -0.0))
    line = fake.log[-2]
    head, _, bytes_text = line.partition(": ")
    assert head == "launch 3,2,1 x 8,4,2 shared 512 stream 0xabc"
    assert [bytes.fromhex(part) for part in bytes_text.split()] == [
        struct.pack("<Q", 0x7F0011223344),
        struct.pack("<i", -2),
        b"\1",
        blob,
        struct.pack("<f", 1.5),
        struct.pack("<d", -0.0),
    ]


def test_a_prepared_launch_takes_new_arguments_grid_and_stream_each_time(fake: Fake) -> None:
    fake.push(PRIMARY)
    fake.parameters(4)
    prepared = fake.kernel().prepare(["i"], (32, 1, 1))
    fake.library.fake_clear()
    calls = [((1, 1, 1), 0, 1), ((1, 1, 1), 0, 2), ((2, 1, 1), 0, 3), ((2, 1, 1), 0x10, 4), ((1, 3, 1), 0, 5)]
    for grid, stream, value in calls:
        prepared.launch(grid, stream, (value,))
    assert fake.log == [
        "launch {},{},{} x 32,1,1 shared 0 stream {}: {:02x}000000".format(
            *grid, hex(stream) if stream else "(nil)", value
        )
        for grid, stream, value in calls
    ]


@pytest.mark.parametrize("grid", [(0, 1, 1), (5, 0, 1), (5, 1, 0)])
def test_a_grid_of_no_blocks_is_no_launch(fake: Fake, grid: tuple[int, int, int]) -> None:
    fake.push(PRIMARY)
    prepared = fake.kernel().prepare([], (32, 1, 1))
    fake.library.fake_clear()
    prepared.launch(grid, 0, ())
    assert fake.log == []
    prepared.launch((5, 1, 1), 0, ())
    prepared.launch(grid, 0, ())
    assert len(fake.log) == 1


@pytest.mark.parametrize(
    ("cluster", "cooperative", "words"),
    [
        ((2, 1, 1), False, " cluster 2,1,1"),
        (None, True, " cooperative 1"),
        ((1, 4, 2), True, " cluster 1,4,2 cooperative 1"),
    ],
)
def test_clusters_and_cooperative_launches_carry_their_attributes(
    fake: Fake, cluster: tuple[int, int, int] | None, cooperative: bool, words: str
) -> None:
    fake.push(PRIMARY)
    fake.parameters(8, 2)
    prepared = fake.kernel().prepare(["Q", "h"], (64, 2, 1), shared=16, cluster=cluster, cooperative=cooperative)
    fake.library.fake_clear()
    prepared.launch((8, 4, 2), 0x20, (1, -1))
    prepared.launch((16, 4, 2), 0, (2, 3))
    assert fake.log == [
        f"launch 8,4,2 x 64,2,1 shared 16 stream 0x20{words}: 0100000000000000 ffff",
        f"launch 16,4,2 x 64,2,1 shared 16 stream (nil){words}: 0200000000000000 0300",
    ]


def test_wrong_parameters_are_refused_before_anything_is_read(fake: Fake) -> None:
    fake.parameters(8, 4)
    kernel = fake.kernel()
    assert kernel.parameter_sizes() == (8, 4)
    for formats in (["Q"], ["Q", "q"], ["Q", "i", "i"], []):
        with pytest.raises(LaunchError, match=r"k has parameters of \(8, 4\) bytes, but"):
            kernel.prepare(formats, (32, 1, 1))


def test_an_error_while_parameters_are_listed_is_not_taken_for_their_end(fake: Fake) -> None:
    fake.parameters(8, 4)
    kernel = fake.kernel()
    fake.fail("cuFuncGetParamInfo", 700)
    with pytest.raises(DriverError, match="a kernel that ran before did this"):
        kernel.prepare(["Q", "i"], (32, 1, 1))


def test_values_that_do_not_fit_launch_nothing(fake: Fake) -> None:
    fake.push(PRIMARY)
    fake.parameters(4)
    prepared = fake.kernel().prepare(["i"], (32, 1, 1))
    fake.library.fake_clear()
    for values in ((2**31,), (1, 2), ()):
        with pytest.raises(struct.error):
            prepared.launch((1, 1, 1), 0, values)
    assert fake.log == []


@pytest.mark.parametrize(
    ("static", "dynamic", "expected"),
    [
        (0, 48 * 1024, []),
        (0, 48 * 1024 + 1, ["set 8 to 49153"]),
        (1024, 48 * 1024, ["set 8 to 49152"]),
        (50_000, 0, []),
    ],
)
def test_more_than_48_kibibytes_of_shared_memory_are_asked_for_once(
    fake: Fake, static: int, dynamic: int, expected: list[str]
) -> None:
    fake.push(PRIMARY)
    kernel = fake.kernel()
    fake.library.fake_shared(static)
    for _ in range(2):
        kernel.prepare([], (32, 1, 1), shared=dynamic)
    assert fake.log == expected


def test_a_cluster_above_eight_is_asked_for(fake: Fake) -> None:
    fake.push(PRIMARY)
    kernel = fake.kernel()
    kernel.prepare([], (32, 1, 1), cluster=(4, 2, 1))
    assert fake.log == []
    kernel.prepare([], (32, 1, 1), cluster=(16, 1, 1))
    assert fake.log == ["set 14 to 1"]


def test_each_thread_has_its_own_prepared_launch(fake: Fake) -> None:
    fake.parameters(4)
    launcher = Launcher(fake.kernel(), ["i"], (32, 1, 1), shared=64)
    mine = launcher.prepared
    assert launcher.prepared is mine
    theirs = in_thread(lambda: launcher.prepared)
    assert isinstance(theirs, PreparedLaunch) and theirs is not mine


def test_threads_that_launch_at_once_do_not_mix_their_arguments(fake: Fake) -> None:
    fake.parameters(8, 8)
    launcher = Launcher(fake.kernel(), ["Q", "Q"], (32, 1, 1))

    def work(number: int) -> None:
        for _ in range(50):
            launcher.prepared.launch((number, 1, 1), number, (number, number))

    threads = [threading.Thread(target=work, args=(number,)) for number in range(1, 5)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    launches = [line for line in fake.log if line.startswith("launch")]
    assert len(launches) == 200
    for line in launches:
        number = int(line.split()[1].split(",")[0])
        assert line.endswith(f"stream {number:#x}: " + " ".join([struct.pack("<Q", number).hex()] * 2))


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
