"""One launch against a stand-in for libcuda: parameters, grid, stream, attributes, several launches at once."""

from __future__ import annotations

import struct
import threading

import pytest
from driver_stand_in import PRIMARY, Fake, in_thread

from warpjit.cuda.driver import DriverError
from warpjit.errors import LaunchError


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


def test_a_compiled_cluster_above_eight_is_asked_for(fake: Fake) -> None:
    fake.push(PRIMARY)
    kernel = fake.kernel()
    kernel.prepare([], (32, 1, 1), cluster=(4, 2, 1))
    assert fake.log == []
    kernel.prepare([], (32, 1, 1), cluster=(16, 1, 1))
    assert fake.log == ["set 14 to 1"]


def test_launches_one_after_the_other_share_their_objects(fake: Fake) -> None:
    fake.parameters(4)
    prepared = fake.kernel().prepare(["i"], (32, 1, 1))
    for value in range(3):
        prepared.launch((1, 1, 1), 0, (value,))
    assert in_thread(lambda: prepared.launch((1, 1, 1), 0, (3,))) is None
    assert len(prepared.free) == 1


def test_a_launch_in_the_midst_of_another_has_its_own_objects(fake: Fake) -> None:
    fake.push(PRIMARY)
    fake.parameters(8, 4)
    prepared = fake.kernel().prepare(["P", "i"], (32, 1, 1))

    class Late:
        """An argument that launches when it is read, as a finalizer may."""

        def __index__(self) -> int:
            prepared.launch((2, 1, 1), 0x20, (0x2222, 2))
            return 1

    fake.library.fake_clear()
    prepared.launch((1, 1, 1), 0x10, (0x1111, Late()))
    assert fake.log == [
        "launch 2,1,1 x 32,1,1 shared 0 stream 0x20: 2222000000000000 02000000",
        "launch 1,1,1 x 32,1,1 shared 0 stream 0x10: 1111000000000000 01000000",
    ]
    assert len(prepared.free) == 2


def test_the_inline_form_launches_the_same(fake: Fake) -> None:
    fake.push(PRIMARY)
    fake.parameters(8, 1, 2, 8)
    prepared = fake.kernel().prepare(["P", "b", "h", "d"], (32, 2, 1), shared=64)
    values = (0x7F0011223344, -3, 500, 0.5)
    lines = [*prepared.filling([repr(value) for value in values], ["2", "3", "4"]), *prepared.sending("0x30")]
    fake.library.fake_clear()
    exec("\n".join(lines), prepared.names())
    prepared.launch((2, 3, 4), 0x30, values)
    first, second = fake.log
    assert first == second
    assert first.startswith("launch 2,3,4 x 32,2,1 shared 64 stream 0x30: 4433221100")
    fake.fail("cuLaunchKernelEx", 700)
    with pytest.raises(DriverError, match="a kernel that ran before did this"):
        exec("\n".join(lines), prepared.names())


def test_threads_that_launch_at_once_do_not_mix_their_arguments(fake: Fake) -> None:
    fake.parameters(8, 8)
    prepared = fake.kernel().prepare(["Q", "Q"], (32, 1, 1))

    def work(number: int) -> None:
        for _ in range(50):
            prepared.launch((number, 1, 1), number, (number, number))

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
