"""Tuning on a GPU: real times, nobody's data touched, failures as data, graphs, threads, warm calls."""

from __future__ import annotations

import random
import time
from pathlib import Path
from typing import Any

import pytest
import torch
from tuner_kernels import added, blocks, doubled, evens

from warpjit import Config, LaunchError, T, TuningError, warpjit
from warpjit.kernels import attention as attentions
from warpjit.kernels.attention import attention
from warpjit.kernels.matmul import matmul
from warpjit.tuner import Limits, Tuned, tuner
from warpjit.tuner.trials import ContextLostError

pytestmark = pytest.mark.gpu


@pytest.fixture(autouse=True)
def own_store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WARPJIT_CACHE_DIR", str(tmp_path / "cache"))


def tuned(kernel: Any, configs: Any = None, **settings: Any) -> Tuned:
    return warpjit.autotune(configs or blocks(32, 64, 128, 256), **settings)(kernel)


def ones(count: int = 10000) -> torch.Tensor:
    return torch.ones(count, device="cuda")


@pytest.mark.parametrize("l2", ["cold", "warm"])
def test_an_accumulating_kernel_is_right_on_every_call(l2: str) -> None:
    kernel, x, total = tuned(added, l2=l2), ones(), torch.zeros(10000, device="cuda")
    for call in range(1, 5):
        kernel(x, total)
        assert (total == call).all()


@pytest.mark.parametrize("l2", ["cold", "warm"])
def test_in_place_overlapping_and_in_part(l2: str) -> None:
    x = ones()
    tuned(doubled, l2=l2)(x, x)
    assert (x == 2).all()
    base = torch.arange(200.0, device="cuda")
    expected = base.clone()
    expected[:100] += base[100:]
    tuned(added, l2=l2)(base[100:], base[:100])
    assert torch.equal(base, expected)
    out = torch.full((100,), -1.0, device="cuda")
    tuned(evens, l2=l2)(torch.arange(100.0, device="cuda"), out)
    assert torch.equal(out[::2], torch.arange(0.0, 100.0, 2.0, device="cuda"))
    assert (out[1::2] == -1).all()


def test_times_are_positive_and_a_later_tuner_reads_them() -> None:
    args = ones(), torch.empty(10000, device="cuda")
    report = tuned(doubled).tune(*args)
    assert all(each.timed and 0.5 < each.median_us < 1000 for each in report.entries)
    start = time.perf_counter()
    assert tuned(doubled).tune(*args).best == report.best
    assert time.perf_counter() - start < 0.1


@warpjit
def slower(Out: T.Tensor((32,), "float32"), *, steps):
    """A chain of so many steps, one after the other."""
    T.device_entry(launch=T.cuda.LaunchConfig(grid=1, block=32))
    lane = T.cuda.lane_id()
    x = T.float32(lane)
    for _ in T.range(steps):
        x = T.sin(x)
    Out[lane] = x


def test_shuffled_configurations_give_the_same_winner() -> None:
    steps = [400, 430, 470, 520, 600, 800, 1600, 6400]
    for seed in range(10):
        order = random.Random(seed).sample(steps, len(steps))
        kernel = tuned(slower, [Config(steps=each) for each in order], seed=seed)
        report = kernel.tune(torch.empty(32, device="cuda"), again=True)
        assert report.best.steps == 400, str(report)


@warpjit
def hungry(Out: T.Tensor((32,), "float32"), *, kib):
    T.device_entry(launch=T.cuda.LaunchConfig(grid=1, block=32))
    arena = T.alloc_shared((kib * 256,), "float32")
    lane = T.cuda.lane_id()
    arena[lane] = 1.0
    Out[lane] = arena[lane]


def test_too_much_shared_memory_and_limits_are_data() -> None:
    configs = [Config(kib=each) for each in (1000, 100, 40, 4)]
    report = tuned(hungry, configs, prune=Limits(shared_bytes=64 << 10, ctas_per_sm=8)).tune(
        torch.empty(32, device="cuda")
    )
    states = {each.config: each.state.value for each in report.entries}
    assert states == {"kib=4": "timed", "kib=40": "pruned", "kib=100": "pruned", "kib=1000": "too-much-shared"}


def test_all_failing_lists_the_reasons() -> None:
    with pytest.raises(TuningError, match=r"none of 2 does\n  kib=1000: too-much-shared: .*\n  kib=2000: too-much-sh"):
        tuned(hungry, [Config(kib=1000), Config(kib=2000)])(torch.empty(32, device="cuda"))


@warpjit
def wrong_if(Out: T.Tensor((32,), "float32"), *, value):
    T.device_entry(launch=T.cuda.LaunchConfig(grid=1, block=32))
    Out[T.cuda.lane_id()] = value


def test_what_disagrees_is_told() -> None:
    out = torch.zeros(32, device="cuda")
    report = tuned(wrong_if, [Config(value=each) for each in (1.0, 2.0, 1.001)], check=True).tune(out)
    states = {each.config: (each.state.value, each.reason) for each in report.entries}
    assert states["value=2.0"] == ("mismatch", "32 of 32 elements of Out differ from most others'")
    report = tuned(
        wrong_if, [Config(value=each) for each in (1.0, 2.0)], reference=lambda Out: Out.fill_(2.0), l2="warm"
    ).tune(out)
    assert report.best == Config(value=2.0)
    assert (out == 0).all()


@warpjit
def lost(Out: T.Tensor((32,), "float32"), far: T.int64, *, bad):
    """A configuration that writes far outside, or never ends."""
    T.device_entry(launch=T.cuda.LaunchConfig(grid=1, block=32))
    if bad == 1:
        T.asm("st.global.f32 [%0], 0f00000000;", ins=far)
    if bad == 2:
        x = T.int32(1)
        while x != 0:
            T.asm("ld.volatile.global.u32 %0, [%1];", outs=T.int32, ins=Out.ptr(0), volatile=True)
            x = x | 1
    Out[T.cuda.lane_id()] = 1.0


def test_what_ends_its_context_is_found_in_a_process_of_its_own() -> None:
    out = torch.zeros(32, device="cuda")
    kernel = tuned(lost, [Config(bad=1), Config(bad=0)], isolate=True)
    kernel(out, 8)
    assert (out == 1).all()
    states = {each.config: each.state.value for each in kernel.tune(out, 8).entries}
    assert states == {"bad=1": "context-lost", "bad=0": "timed"}


def test_tuning_in_a_capture_is_refused_and_the_capture_goes_on() -> None:
    x, out = ones(), torch.zeros(10000, device="cuda")
    cold, warm = tuned(doubled), tuned(added)
    warm(x, out)
    out.zero_()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        with pytest.raises(LaunchError, match="would be tuned while a CUDA graph is captured"):
            cold(x, out)
        warm(x, out)
    out.zero_()
    graph.replay()
    graph.replay()
    assert (out == 2).all()


def test_a_warm_call_costs_what_a_kernels_does() -> None:
    args = ones(64), torch.empty(64, device="cuda")
    kernel = tuned(doubled)
    kernel(*args)
    plain = kernel.kernel
    block = kernel.best(*args).BLOCK

    def least(call: Any) -> float:
        times = []
        for _ in range(20):
            start = time.perf_counter()
            for _ in range(200):
                call()
            times.append((time.perf_counter() - start) / 200 * 1e6)
            torch.cuda.synchronize()
        return min(times)

    assert least(lambda: kernel(*args)) <= least(lambda: plain(*args, BLOCK=block)) + 1.0


def test_products_and_attention_are_tuned(monkeypatch: pytest.MonkeyPatch) -> None:
    a, b = (torch.randn(512, 512, device="cuda", dtype=torch.bfloat16) for _ in range(2))
    assert torch.equal(matmul(a, b, tile="tune"), matmul(a, b))
    monkeypatch.setattr(tuner, "_Choosing", lambda *given: pytest.fail("it tunes again"))
    assert torch.equal(matmul(a, b, tile="tune"), matmul(a, b))
    assert ContextLostError.__doc__


def test_attention_is_tuned(monkeypatch: pytest.MonkeyPatch) -> None:
    some = attentions.candidates
    monkeypatch.setattr(attentions, "candidates", lambda *given: some(*given)[::9])  # all of them take a minute
    q, k, v = (torch.randn(1, 4, 512, 64, device="cuda", dtype=torch.float16) for _ in range(3))
    assert torch.allclose(attention(q, k, v, tile="tune"), attention(q, k, v), atol=2e-3)
