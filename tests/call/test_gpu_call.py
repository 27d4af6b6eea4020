"""The call on a GPU: streams, graphs, threads, contexts, large shared memory, large tensors."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
import torch
from call_kernels import double, nothing_new, rows
from warp_matmul import warp_matmul

import warpjit as package
from warpjit import ArgumentError, LaunchError, T, stages, warpjit

pytestmark = pytest.mark.gpu

SLEEP = 200_000_000  # clock cycles: about a tenth of a second
M = T.dynamic("M")


def cold() -> package.Kernel:
    """A kernel that nobody has called."""

    @warpjit
    def added(X: T.Tensor((M, 32), "float32"), Out: T.Tensor((M, 32), "float32"), by: T.float32):
        T.device_entry(launch=T.cuda.LaunchConfig(grid=M, block=32))
        row, lane = T.cuda.block_idx("x"), T.cuda.lane_id()
        Out[row, lane] = X[row, lane] + by

    return added


def poison(*shape: int) -> torch.Tensor:
    return torch.full(shape, float("nan"), device="cuda")


# ---- streams --------------------------------------------------------------------------------------------------


def test_the_current_stream_orders_the_launch() -> None:
    x, out = torch.zeros(32, device="cuda"), poison(32)
    double(x, out)
    torch.cuda.synchronize()
    side = torch.cuda.Stream()
    with torch.cuda.stream(side):
        torch.cuda._sleep(SLEEP)
        x.fill_(3.0)
        double(x, out)
    assert not side.query()  # the call does not wait
    side.synchronize()
    assert (out == 6).all()


def test_other_streams_are_not_waited_for() -> None:
    x, out = torch.ones(32, device="cuda"), poison(32)
    double(x, out)
    torch.cuda.synchronize()
    out.fill_(float("nan"))
    side, finished = torch.cuda.Stream(), torch.cuda.Event()
    with torch.cuda.stream(side):
        torch.cuda._sleep(5 * SLEEP)
        finished.record()
    double(x, out)
    torch.cuda.current_stream().synchronize()
    assert (out == 2).all()
    assert not finished.query()
    side.synchronize()


def test_the_streams_change_from_call_to_call() -> None:
    x = torch.arange(32, dtype=torch.float32, device="cuda")
    streams, outputs = [torch.cuda.Stream() for _ in range(4)], [poison(32) for _ in range(12)]
    torch.cuda.synchronize()
    for index, out in enumerate(outputs):
        with torch.cuda.stream(streams[index % 4]):
            double(x, out)
    double(x, x.clone())
    torch.cuda.synchronize()
    assert all(torch.equal(out, 2 * x) for out in outputs)


# ---- graphs ---------------------------------------------------------------------------------------------------


def test_a_warm_call_is_captured_and_replayed() -> None:
    added = cold()
    x, middle, out = torch.zeros((5, 32), device="cuda"), poison(5, 32), poison(5, 32)
    added(x, middle, 1.0)
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        added(x, middle, 2.0)
        added(middle, out, 0.5)
    for start in (10.0, -4.0):
        x.fill_(start)
        middle.fill_(float("nan"))
        out.fill_(float("nan"))
        graph.replay()
        torch.cuda.synchronize()
        assert (middle == start + 2).all() and (out == start + 2.5).all()


def test_a_cold_call_in_a_capture_is_an_error_and_the_capture_goes_on() -> None:
    warm, added = cold(), cold()
    x, out = torch.ones((3, 32), device="cuda"), poison(3, 32)
    warm(x, out, 1.0)
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        with pytest.raises(LaunchError) as caught:
            added(x, out, 5.0)
        warm(x, out, 7.0)
    assert str(caught.value) == (
        f"{added!r} would be compiled and loaded while a CUDA graph is captured: call it once before the capture with "
        "arguments of the same kinds"
    )
    out.fill_(float("nan"))
    graph.replay()
    torch.cuda.synchronize()
    assert (out == 8).all()
    added(x, out, 5.0)
    torch.cuda.synchronize()
    assert (out == 6).all()


def test_a_compiled_kernel_is_captured_once_it_was_called() -> None:
    compiled = package.compile(cold(), target="cuda")
    x, out = torch.ones((3, 32), device="cuda"), poison(3, 32)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph), pytest.raises(LaunchError, match="while a CUDA graph is captured"):
        compiled(x, out, 5.0)
    compiled(x, out, 5.0)
    torch.cuda.synchronize()
    assert (out == 6).all()


# ---- threads and contexts -------------------------------------------------------------------------------------


def test_threads_share_a_cold_kernel(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WARPJIT_CACHE_DIR", str(tmp_path / "cache"))  # another test may have left it in the other
    added, traced = cold(), []
    real = stages.trace

    def trace(*args: Any) -> Any:
        traced.append(1)
        return real(*args)

    monkeypatch.setattr(stages, "trace", trace)
    gate = threading.Barrier(8)

    def work(number: int) -> bool:
        stream = torch.cuda.Stream()
        with torch.cuda.stream(stream):
            x, out = torch.full((number + 1, 32), float(number), device="cuda"), poison(number + 1, 32)
            gate.wait()
            for step in range(50):
                added(x, out, float(step))
                added(out, x, -float(step))
            stream.synchronize()
            return bool((x == number).all() and (out == number + 49).all())

    with ThreadPoolExecutor(8) as pool:
        assert list(pool.map(work, range(8))) == [True] * 8
    assert traced == [1]


def test_a_thread_that_never_touched_cuda_can_launch() -> None:
    x, out = torch.ones(32, device="cuda"), poison(32)
    double(x, out)
    torch.cuda.synchronize()
    out.fill_(float("nan"))
    torch.cuda.synchronize()
    thread = threading.Thread(target=double, args=(x, out))
    thread.start()
    thread.join()
    torch.cuda.synchronize()
    assert (out == 2).all()


def test_the_current_device_is_as_it_was() -> None:
    before = torch.cuda.current_device()
    last = torch.cuda.device_count() - 1
    x, out = (torch.ones(32, device=f"cuda:{last}") for _ in range(2))
    double(x, out)
    torch.cuda.synchronize(last)
    assert (out == 2).all()
    assert torch.cuda.current_device() == before


# ---- arguments ------------------------------------------------------------------------------------------------


def test_a_cpu_tensor_among_cuda_ones_changes_nothing() -> None:
    x, out = torch.ones(32, device="cuda"), torch.zeros(32)
    with pytest.raises(ArgumentError) as caught:
        double(x, out)
    assert str(caught.value) == "expected all tensors on one device, but X is on cuda:0, Out is on cpu"
    assert not out.any() and (x == 1).all()


def test_a_second_call_does_no_work_twice(monkeypatch: pytest.MonkeyPatch) -> None:
    a = torch.randn((16, 16), device="cuda").half()
    b = torch.randn((8, 16), device="cuda").half()
    first, second = poison(16, 8), poison(16, 8)
    warp_matmul(a, b, first)
    torch.cuda.synchronize()
    held = torch.cuda.memory_allocated()
    with nothing_new(monkeypatch):
        warp_matmul(a, b, second)
    torch.cuda.synchronize()
    assert torch.cuda.memory_allocated() == held
    torch.testing.assert_close(second, a.float() @ b.float().T, rtol=2e-4, atol=2e-4)
    assert torch.equal(first, second)


def test_kernels_without_tensors_run() -> None:
    @warpjit
    def nothing(n: T.int32):
        T.device_entry(launch=T.cuda.LaunchConfig(grid=n, block=32))

    for count in (0, 1, 7):
        nothing(count)
    torch.cuda.synchronize()


def test_more_than_48_kibibytes_of_shared_memory() -> None:
    @warpjit
    def turned(X: T.Tensor((60, 256), "float32"), Out: T.Tensor((60, 256), "float32")):
        T.device_entry(launch=T.cuda.LaunchConfig(grid=1, block=256))
        tile = T.alloc_shared((60, 256), "float32")
        column = T.cuda.thread_idx("x")
        for row in range(60):
            tile[row, column] = X[row, column]
        T.cuda.cta_sync()
        for row in range(60):
            Out[row, column] = tile[59 - row, 255 - column]

    x, out = torch.randn((60, 256), device="cuda"), poison(60, 256)
    for _ in range(2):
        turned(x, out)
    torch.cuda.synchronize()
    assert torch.equal(out, x.flip(0, 1))


@warpjit
def ends(X):
    T.device_entry(launch=T.cuda.LaunchConfig(grid=1, block=32))
    lane = T.cuda.lane_id()
    X[X.shape[0] - 1, X.shape[1] - 32 + lane] = T.int8(lane + 1)


@warpjit
def runtime_ends(X: T.Tensor((T.dynamic("R"), T.dynamic("C")), "int8")):
    T.device_entry(launch=T.cuda.LaunchConfig(grid=1, block=32))
    lane = T.cuda.lane_id()
    X[X.shape[0] - 1, X.shape[1] - 32 + lane] = T.int8(lane + 1)


@pytest.mark.parametrize("chosen", [ends, runtime_ends])
@pytest.mark.parametrize("columns", [1 << 10, 1 << 30])
def test_offsets_beyond_32_bits(chosen: package.Kernel, columns: int) -> None:
    x = torch.zeros((5, columns), dtype=torch.int8, device="cuda")
    chosen(x)
    torch.cuda.synchronize()
    assert torch.equal(x[4, -32:].cpu(), torch.arange(1, 33, dtype=torch.int8))
    assert int(x.count_nonzero()) == 32


def test_runtime_sizes_take_one_cubin(monkeypatch: pytest.MonkeyPatch) -> None:
    x, out = (torch.ones((3, 8), dtype=torch.int32, device="cuda") for _ in range(2))
    rows(x, out)
    torch.cuda.synchronize()
    with nothing_new(monkeypatch):
        for count in (1, 2, 100, 5000):
            x = torch.randint(-9, 9, (count, 8), dtype=torch.int32, device="cuda")
            out = torch.zeros_like(x)
            rows(x, out)
            torch.cuda.synchronize()
            assert torch.equal(out, x + 1)


# ---- targets --------------------------------------------------------------------------------------------------


def test_resources_are_those_that_the_driver_reports() -> None:
    a, b = torch.ones((16, 16), device="cuda").half(), torch.ones((8, 16), device="cuda").half()
    warp_matmul(a, b, poison(16, 8))
    torch.cuda.synchronize()
    found = warp_matmul.resources()
    functions = {key[0]: function for key, function in warp_matmul._functions.items()}
    function = functions[warp_matmul.cubin()]
    assert (found.registers, found.stack_bytes) == (
        function.attribute(4),
        function.attribute(3),
    )  # NUM_REGS, LOCAL_SIZE


def test_a_cubin_for_another_architecture_is_refused() -> None:
    major, _ = torch.cuda.get_device_capability()
    other = "sm_80" if major != 8 else "sm_90"
    compiled = package.compile(cold(), target=other)
    x, out = torch.ones((3, 32), device="cuda"), torch.zeros((3, 32), device="cuda")
    with pytest.raises(LaunchError, match=f"compiled for {other}> does not run on device 0, which is sm_"):
        compiled(x, out, 1.0)
    torch.cuda.synchronize()
    assert not out.any()
