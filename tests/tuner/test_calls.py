"""Calls of tuned kernels: right on the first call as on the tenth, tuned once, by records that later processes read."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
import torch
from tuner_kernels import MadeUp, added, blocks, doubled, evens

from warpjit import ArgumentError, Config, T, TuningError, warpjit
from warpjit.tuner import Limits, Rules, Tuned

TIMES = {"BLOCK=32": 5.0, "BLOCK=64": 3.0, "BLOCK=128": 7.0}


@pytest.fixture(autouse=True)
def own_store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WARPJIT_CACHE_DIR", str(tmp_path / "cache"))


def tuned(kernel: Any, timer: Any, configs: Any = None, **settings: Any) -> Tuned:
    return warpjit.autotune(configs or blocks(32, 64, 128), timer=timer, **settings)(kernel)


def ones(count: int = 100) -> torch.Tensor:
    return torch.ones(count)


# ---- nobody's data is touched ---------------------------------------------------------------------------------


def test_an_accumulating_kernel_is_right_on_every_call() -> None:
    timer = MadeUp(TIMES, launches=True)
    kernel, x, total = tuned(added, timer), ones(), torch.zeros(100)
    for call in range(1, 4):
        kernel(x, total)
        assert (total == call).all()
    assert sorted(timer.timed) == sorted(TIMES)


def test_a_kernel_in_place_is_right_on_the_first_call() -> None:
    x = ones()
    tuned(doubled, MadeUp(TIMES, launches=True))(x, x)
    assert (x == 2).all()


def test_arguments_that_overlap_are_right_on_the_first_call() -> None:
    base = torch.arange(200.0)
    expected = base.clone()
    expected[:100] += base[100:].clone()
    tuned(added, MadeUp(TIMES, launches=True))(base[100:], base[:100])
    assert torch.equal(base, expected)


def test_what_is_written_in_part_keeps_the_rest() -> None:
    out = torch.full((100,), -1.0)
    tuned(evens, MadeUp(TIMES, launches=True))(torch.arange(100.0), out)
    assert torch.equal(out[::2], torch.arange(0.0, 100.0, 2.0))
    assert (out[1::2] == -1).all()


# ---- what is chosen -------------------------------------------------------------------------------------------


def test_the_fastest_is_chosen_and_told() -> None:
    kernel = tuned(doubled, MadeUp(TIMES))
    args = ones(), torch.empty(100)
    assert kernel.best(*args) == Config(BLOCK=64)
    report = kernel.tune(*args)
    assert [each.config for each in report.entries] == ["BLOCK=64", "BLOCK=32", "BLOCK=128"]
    assert (report.entries[0].median_us, report.best) == (3.0, Config(BLOCK=64))
    assert "BLOCK=32  5.00 ±0.00  1.667" in str(report)


@pytest.mark.parametrize("bad", [float("nan"), 0.0, -3.0])
def test_a_time_that_is_no_positive_number_never_wins(bad: float) -> None:
    kernel = tuned(doubled, MadeUp({**TIMES, "BLOCK=32": bad}))
    report = kernel.tune(ones(), torch.empty(100))
    assert report.best == Config(BLOCK=64)
    last = report.entries[-1]
    assert (last.config, last.state.value, last.reason) == ("BLOCK=32", "untimed", "no time was a positive number")


def test_the_budget_ends_the_timing() -> None:
    timer = MadeUp(dict.fromkeys(TIMES, 1000000.0))
    kernel = tuned(doubled, timer, budget=4.0, rules=Rules(first=3))
    report = kernel.tune(ones(), torch.empty(100))
    assert [each.state.value for each in report.entries] == ["timed", "timed", "untimed"]
    assert report.entries[-1].reason == "the budget of 4.0 s was spent"


def test_configurations_by_a_function_of_the_arguments() -> None:
    timer = MadeUp(TIMES)
    kernel = tuned(doubled, timer, configs=lambda given: blocks(32, 64) if given.X.shape[0] < 64 else blocks(128))
    assert kernel.best(ones(10), torch.empty(10)) == Config(BLOCK=64)
    assert kernel.best(ones(), torch.empty(100)) == Config(BLOCK=128)
    assert timer.timed == ["BLOCK=32", "BLOCK=64"] or timer.timed == ["BLOCK=64", "BLOCK=32"]


def test_one_configuration_is_taken_without_timing() -> None:
    timer = MadeUp({})
    kernel = tuned(doubled, timer, configs=blocks(64))
    out = torch.empty(100)
    kernel(ones(), out)
    assert (out == 2).all()
    assert timer.log == []


def test_what_is_pruned_is_not_timed() -> None:
    timer = MadeUp(TIMES)
    kernel = tuned(doubled, timer, prune=lambda config, given: given.X.shape[0] < 100 and config.BLOCK == 64)
    small = kernel.tune(ones(50), torch.empty(50))
    assert small.best == Config(BLOCK=32)
    assert [each.config for each in small.entries if each.state.value == "pruned"] == ["BLOCK=64"]
    assert kernel.best(ones(), torch.empty(100)) == Config(BLOCK=64)


def test_a_limit_of_registers_is_an_attribute_of_the_launch() -> None:
    configs = [Config(BLOCK=64), Config(BLOCK=64, max_registers=32)]
    kernel = tuned(doubled, MadeUp({"BLOCK=64": 5.0, "BLOCK=64, max_registers=32": 4.0}), configs=configs)
    args = ones(), torch.empty(100)
    assert kernel.best(*args).max_registers == 32
    assert "maxnreg(32)" in kernel.kernel.limited(32).source(*args, BLOCK=64)
    kernel(*args)
    assert (args[1] == 2).all()


def test_a_call_can_be_bound() -> None:
    kernel = tuned(doubled, MadeUp(TIMES))
    x, out = ones(), torch.empty(100)
    bound = kernel.bind(x, out)
    bound()
    assert (out == 2).all()
    bound(x, x)
    assert (x == 2).all()


# ---- records --------------------------------------------------------------------------------------------------


def test_a_later_process_does_not_tune() -> None:
    args = ones(), torch.empty(100)
    tuned(doubled, MadeUp(TIMES))(*args)
    timer = MadeUp({})
    assert tuned(doubled, timer).best(*args) == Config(BLOCK=64)
    assert timer.log == []


def test_adding_a_configuration_times_one() -> None:
    args = ones(), torch.empty(100)
    tuned(doubled, MadeUp(TIMES))(*args)
    timer = MadeUp({"BLOCK=96": 2.0})
    kernel = tuned(doubled, timer, configs=blocks(32, 64, 96, 128))
    assert kernel.best(*args) == Config(BLOCK=96)
    assert timer.timed == ["BLOCK=96"]


def test_removing_the_winner_takes_the_next() -> None:
    args = ones(), torch.empty(100)
    tuned(doubled, MadeUp(TIMES))(*args)
    timer = MadeUp({})
    assert tuned(doubled, timer, configs=blocks(32, 128)).best(*args) == Config(BLOCK=32)
    assert timer.log == []


def test_tuning_again_times_all_and_calls_follow() -> None:
    args = ones(), torch.empty(100)
    times = dict(TIMES)
    timer = MadeUp(times)
    kernel = tuned(doubled, timer)
    kernel(*args)
    times["BLOCK=128"] = 1.0
    assert kernel.tune(*args).best == Config(BLOCK=64)
    assert kernel.tune(*args, again=True).best == Config(BLOCK=128)
    assert kernel.best(*args) == Config(BLOCK=128)


FACTOR = 2.0


@warpjit
def scaled(X: T.Tensor((100,), "float32"), Out: T.Tensor((100,), "float32"), *, BLOCK):
    T.device_entry(launch=T.cuda.LaunchConfig(grid=T.cdiv(100, BLOCK), block=BLOCK))
    i = T.cuda.block_idx("x") * BLOCK + T.cuda.thread_idx("x")
    if i < 100:
        Out[i] = X[i] * FACTOR


def test_a_changed_capture_is_tuned_anew_and_remembered(monkeypatch: pytest.MonkeyPatch) -> None:
    args = ones(), torch.empty(100)
    times = dict(TIMES)
    timer = MadeUp(times)
    kernel = tuned(scaled, timer)
    kernel(*args)
    monkeypatch.setitem(globals(), "FACTOR", 3.0)
    times["BLOCK=32"] = 1.0
    kernel(*args)
    assert (args[1] == 3).all()
    assert timer.log.count("begin") == 2
    assert kernel.best(*args) == Config(BLOCK=32)
    monkeypatch.setitem(globals(), "FACTOR", 2.0)
    kernel(*args)
    assert (args[1] == 2).all()
    assert timer.log.count("begin") == 2  # that code was timed before


# ---- keys -----------------------------------------------------------------------------------------------------


@warpjit
def offset(X, Out, by: T.float32, *, BLOCK, again=1):
    T.device_entry(launch=T.cuda.LaunchConfig(grid=T.cdiv(X.shape[0], BLOCK), block=BLOCK))
    i = T.cuda.block_idx("x") * BLOCK + T.cuda.thread_idx("x")
    if i < X.shape[0]:
        Out[i] = X[i] + by


def test_each_fact_of_the_arguments_is_in_the_key() -> None:
    timer = MadeUp(TIMES)
    kernel = tuned(offset, timer, key=["by"])
    x, out = torch.ones(256), torch.empty(256)
    calls: list[Callable[[], Any]] = [
        lambda: kernel(x[:64], out[:64], 1.0),
        lambda: kernel(x[:65], out[:65], 1.0),  # a shape
        lambda: kernel(x[:128:2], out[:64], 1.0),  # strides
        lambda: kernel(x[1:65], out[:64], 1.0),  # alignment
        lambda: kernel(x[:64].int(), out[:64], 1.0),  # a data type
        lambda: kernel(x[:64], out[:64], 2.0),  # a number that is named
        lambda: kernel(x[:64], out[:64], 1.0, again=2),  # a constant
    ]
    for count, call in enumerate(calls, 1):
        call()
        call()
        assert timer.log.count("begin") == count


def test_other_numbers_are_in_the_key_by_their_type_alone() -> None:
    timer = MadeUp(TIMES)
    kernel = tuned(offset, timer)
    for by in (1.0, 2.0, 3.0):
        out = torch.empty(64)
        kernel(ones(64), out, by)
        assert (out == 1.0 + by).all()
    assert timer.log.count("begin") == 1


@pytest.mark.parametrize(
    ("bucket", "tunings"),
    [("pow2", [65, 128, 100, 129]), (50, [51, 100, 60, 101]), (lambda size: size > 70, [71, 200, 99, 70])],
    ids=["pow2", "multiple", "function"],
)
@pytest.mark.parametrize("name", ["N", "X.shape[0]"])
def test_sizes_of_one_bucket_are_tuned_once(name: str, bucket: Any, tunings: list[int]) -> None:
    timer = MadeUp(TIMES)
    names = {name: bucket} if name == "N" else {"X.shape[0]": bucket, "Out.shape[0]": bucket}
    kernel = tuned(doubled, timer, bucket=names)
    counts = []
    for size in tunings:
        out = torch.empty(size)
        kernel(ones(size), out)
        assert (out == 2).all()
        counts.append(timer.log.count("begin"))
    assert counts == [1, 1, 1, 2]


def test_the_device_and_the_source_are_in_the_key(monkeypatch: pytest.MonkeyPatch) -> None:
    args = ones(), torch.empty(100)
    keys = [tuned(doubled, MadeUp(TIMES)).tune(*args).key]
    monkeypatch.setenv("WARPJIT_TARGET", "sm_80")
    keys.append(tuned(doubled, MadeUp(TIMES)).tune(*args).key)
    keys.append(tuned(added, MadeUp(TIMES)).tune(*args).key)
    keys.append(tuned(doubled, MadeUp(TIMES), l2="warm").tune(*args).key)
    keys.append(tuned(doubled, MadeUp(TIMES), prune=Limits(shared_bytes=1 << 20)).tune(*args).key)
    assert len({key.digest for key in keys}) == 5


# ---- the rest -------------------------------------------------------------------------------------------------


def test_without_a_timer_the_cpu_takes_the_first_that_fits_and_says_so_once(caplog: pytest.LogCaptureFixture) -> None:
    kernel = warpjit.autotune(blocks(32, 64))(doubled)
    with caplog.at_level(logging.WARNING, "warpjit.tuner"):
        for size in (100, 50):
            out = torch.empty(size)
            kernel(ones(size), out)
            assert (out == 2).all()
    assert kernel.best(ones(), torch.empty(100)) == Config(BLOCK=32)
    assert [record.getMessage().split(": ", 1)[1] for record in caplog.records] == [
        "on CPU tensors nothing is timed: the first configuration that fits, BLOCK=32, is used"
    ]


N = T.dynamic("N")


@warpjit
def of_32(X: T.Tensor((N,), "float32"), Out: T.Tensor((N,), "float32"), *, BLOCK, first):
    """Out = X, by a helper that some configurations give what is no number."""
    T.device_entry(launch=T.cuda.LaunchConfig(grid=1, block=BLOCK))
    i = T.cuda.thread_idx("x")
    if i < N:
        Out[i] = X[i] if first else "no number"


def test_what_is_left_out_before_the_first_that_fits_is_said(caplog: pytest.LogCaptureFixture) -> None:
    kernel = warpjit.autotune(warpjit.space(first=[False, True], BLOCK=[2048, 64, 32]))(of_32)
    with caplog.at_level(logging.WARNING, "warpjit.tuner"):
        for size in (10, 20):
            kernel(ones(size), out := torch.zeros(size))
            assert (out == 1).all()
    (said,) = [record.getMessage() for record in caplog.records]
    assert said.endswith(
        "the first configuration that fits, BLOCK=64, first=True, is used; 4 before it do not (see tuning_report), the "
        "first: BLOCK=2048, first=False: compile-error: TraceError: block: expected at most 1024 threads but got "
        f"(2048, 1, 1), 2048 of them ({__file__}:{of_32.function.__code__.co_firstlineno + 3})"
    )
    report = kernel.tune(ones(10), torch.zeros(10))
    assert [each.state.value for each in report.entries] == ["compile-error"] * 4 + ["untimed"]


def test_many_threads_tune_once() -> None:
    timer = MadeUp(TIMES)
    kernel = tuned(doubled, timer)
    ready = threading.Barrier(4)

    def call() -> torch.Tensor:
        out = torch.empty(100)
        ready.wait()
        kernel(ones(), out)
        return out

    with ThreadPoolExecutor(4) as pool:
        results = [future.result() for future in [pool.submit(call) for _ in range(4)]]
    assert all((out == 2).all() for out in results)
    assert timer.log.count("begin") == 1


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"configs": []}, "configs: expected at least one Config to try but got none"),
        ({"configs": None}, "configs: expected Configs in a list, or a function that gives them, but got None"),
        ({"configs": "BM"}, "configs: expected Configs in a list, or a function that gives them, but got 'BM'"),
        ({"configs": [Config(BM=1)]}, "configs: expected compile-time constants of doubled.*but got BM"),
        ({"configs": blocks(32), "key": "by"}, "key: expected names in a list but got 'by'"),
        ({"configs": blocks(32), "key": ["M"]}, "key: expected names of parameters, or of sizes, .* but got 'M'"),
        ({"configs": blocks(32), "bucket": {"N": "pow3"}}, "bucket"),
        ({"configs": blocks(32), "l2": "hot"}, 'l2: expected "cold" or "warm" but got \'hot\''),
        ({"configs": blocks(32), "budget": 0}, "budget: expected a positive number"),
        ({"configs": blocks(32), "prune": 3}, "prune: expected a function"),
        ({"configs": blocks(32), "reference": 3}, "reference: expected a function"),
    ],
)
def test_bad_settings_are_refused_at_once(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(ArgumentError, match=message):
        warpjit.autotune(**arguments)(doubled)


def test_only_kernels_are_tuned_and_arguments_are_checked_as_theirs() -> None:
    with pytest.raises(ArgumentError, match="autotune: expected a function decorated with @warpjit"):
        warpjit.autotune(blocks(32))(print)
    kernel = tuned(doubled, MadeUp(TIMES))
    with pytest.raises(ArgumentError, match="X: expected a tensor of float32 but got int32"):
        kernel(ones().int(), torch.empty(100))
    with pytest.raises(ArgumentError, match="expected names of its parameters but got 'BLOKC'"):
        kernel(ones(), torch.empty(100), BLOKC=32)


@warpjit
def times(X: T.Tensor((N,), "float32"), Out: T.Tensor((N,), "float32"), scale: T.float32, *, BLOCK):
    T.device_entry(launch=T.cuda.LaunchConfig(grid=T.cdiv(N, BLOCK), block=BLOCK))
    i = T.cuda.block_idx("x") * BLOCK + T.cuda.thread_idx("x")
    if i < N:
        Out[i] = X[i] * scale


@pytest.mark.parametrize("key", [(), ("scale",)], ids=["", "by value"])
def test_a_value_for_what_is_tuned_is_refused_everywhere(key: tuple[str, ...]) -> None:
    kernel, out = tuned(times, MadeUp(TIMES), key=key), torch.zeros(100)
    for asked in (kernel, kernel.best, kernel.bind, kernel.tune, kernel.tuning_report):
        with pytest.raises(
            ArgumentError, match="expected no value for BLOCK, which is tuned, but got 32: leave it out"
        ):
            asked(ones(), out, 2.0, BLOCK=32)
    assert (out == 0).all()
    kernel.kernel(ones(), out, 2.0, BLOCK=32)
    assert (out == 2).all()


def test_a_tuned_kernel_is_looked_into_with_its_constants_given() -> None:
    kernel, args = tuned(doubled, MadeUp(TIMES)), (ones(), torch.zeros(100))
    chosen = kernel.best(*args)
    assert (
        kernel.source(*args, **chosen.constants) == doubled.source(*args, BLOCK=64) != doubled.source(*args, BLOCK=32)
    )
    assert kernel.simulate(*args, BLOCK=32).steps == doubled.simulate(*args, BLOCK=32).steps
    with pytest.raises(ArgumentError, match="for BLOCK"):
        kernel.source(*args)
    with pytest.raises(
        AttributeError, match=r"no attribute 'options': it is an attribute of its kernel, .kernel.options"
    ):
        kernel.options  # noqa: B018
    with pytest.raises(AttributeError, match=r"no attribute 'sources'$"):
        kernel.sources  # noqa: B018
    assert not hasattr(object.__new__(Tuned), "kernel")  # no recursion before it is set up, as in a copy


def test_where_nothing_is_left_an_error_says_so() -> None:
    kernel = tuned(doubled, MadeUp(TIMES), prune=lambda config, given: True)
    with pytest.raises(TuningError, match="expected a configuration to try, but prune leaves out all 3"):
        kernel(ones(), torch.empty(100))
