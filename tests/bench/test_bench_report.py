"""Tables, plots and the command line, on results that were made up."""

from __future__ import annotations

import json
from io import StringIO
from pathlib import Path

import pytest
import torch
from made_up import RECORDS, record, timings
from matplotlib.figure import Figure
from matplotlib.image import imread
from rich.console import Console

from bench import __main__ as command
from bench import gemm, harness
from bench.harness import Bench, Record, Settings, start_record
from bench.products import Case, Size
from bench.report import plot, show

SHOWN = {
    "gemm": [
        "sustained: TFLOP/s product generated reference reference again cuBLAS",
        "8192x8192x8192 bfloat16 954.5 ±45.5 1000.0 ±0.0 995.0 ±4.9 1291.7 ±41.6",
        "alternating: ratios product generated / reference reference again / reference",
        "8192x8192x8192 bfloat16 0.955 ±0.045 0.995 ±0.005 0.739 ±0.011 0.775 ±0.025",
        "8192x8192x8192 bfloat16 1500 (1650, 690 W)",
        "Triton ModuleNotFoundError: No module named 'triton' 8192x8192x8192 bfloat16",
        "case RuntimeError: no 1x1x1 float16",
    ],
    "launch": [
        "warpjit 4.00 4.35 0.50 (0.50 to 0.50) 2.00 (2.00 to 2.00)",
        "C loop 2.00 2.05 0.25 (0.25 to 0.25)",
        "PyCUDA ImportError: none",
    ],
    "start": ["warpjit, cold 120 (110 to 130) 120 (110 to 130)", "Triton none"],
    "tune": [
        "tuning 32 configurations of a product, 4096³ bfloat16",
        "warpjit, first 12.3 250 True Tile(m=128)",
        "Triton, first none",
        "2 1.0125 0.7 2",
    ],
    "trace": ["example: trace 4.5 4 to 6 4: not kept", "example: emit 4.5 4 to 6", "gemm: emit ImportError: none"],
}


def console() -> Console:
    return Console(file=StringIO(), width=160)


def written(on: Console) -> str:
    """What was printed, without the lines of tables, each run of spaces as one."""
    assert isinstance(on.file, StringIO)
    return " ".join(on.file.getvalue().split())


@pytest.mark.parametrize("name", RECORDS)
def test_a_record_is_shown(name: str) -> None:
    on = console()
    show(command.BENCHES[name], RECORDS[name](), on)
    text = written(on)
    for words in SHOWN[name]:
        assert words in text
    machine = (
        "a GPU, driver 580.0, at most 1980 MHz, 700.00 W, torch 2.11.0, triton 3.6.0, nvcc 13.0.88, commit unknown"
    )
    assert machine in text


@pytest.mark.parametrize("name", RECORDS)
def test_a_record_is_drawn(name: str, tmp_path: Path) -> None:
    drawn = plot(command.BENCHES[name], RECORDS[name](), tmp_path / "figure.png")
    assert drawn is not None
    pixels = imread(drawn)
    assert pixels.shape[0] > 300
    assert pixels.min() < 0.5 < pixels.max()


def test_the_bars_are_the_medians() -> None:
    figure = Figure()
    gemm.draw(RECORDS["gemm"](), figure)
    sustained, alternating = figure.axes
    assert (sustained.get_title(), alternating.get_title()) == ("sustained", "alternating")
    labels = [text.get_text() for text in sustained.get_legend().get_texts()]
    bars = {label: container[0].get_height() for label, container in zip(labels, sustained.containers, strict=True)}
    assert bars == {"generated": 954.55, "reference": 1000.0, "reference again": 995.05, "cuBLAS": 1291.7}


def test_ratios_leave_out_who_is_missing() -> None:
    found = gemm.figures(timings(reference=[2.0, 4.0], cuBLAS=[1.0, 2.0]), {"reference": 10**12, "cuBLAS": 10**12})
    assert set(found["ratios"]) == {"reference / cuBLAS"}
    assert found["ratios"]["reference / cuBLAS"]["median"] == 0.5
    assert found["spread of equals"] is None


# ---- records ---------------------------------------------------------------------------------------------------


def test_a_record_keeps_what_it_has(tmp_path: Path) -> None:
    kept = Record(tmp_path / "deep/gemm.gpu.json", {"bench": "gemm"})
    kept.put(cases=[1])
    kept.put(contestants={"a": "b"})
    assert json.loads(kept.path.read_text()) == {"bench": "gemm", "figures": {"cases": [1], "contestants": {"a": "b"}}}
    assert [each.name for each in kept.path.parent.iterdir()] == ["gemm.gpu.json"]


def test_a_machine_without_commits_is_no_obstacle(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(harness, "ROOT", tmp_path)
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    kept = start_record(command.BENCHES["gemm"], Settings(seed=7), tmp_path, "layers")
    assert kept.path == tmp_path / "gemm-layers.cpu.json"
    assert kept.head["machine"]["commit"] == "unknown"
    assert torch.__version__.startswith(kept.head["machine"]["versions"]["torch"])  # which has no "+cu130"
    assert kept.head["seed"] == 7


def test_the_sources_are_told_apart(tmp_path: Path) -> None:
    package = tmp_path / "warpjit"
    package.mkdir()
    seen = []
    for name, text in (("a.py", "x = 1"), ("a.py", "x = 2"), ("b.py", "x = 2")):
        (package / name).write_text(text, encoding="utf-8")
        seen.append(harness.sources(tmp_path))
    (package / "notes.txt").write_text("no code", encoding="utf-8")
    assert len(set(seen)) == 3 and harness.sources(tmp_path) == seen[-1]


# ---- the command line ------------------------------------------------------------------------------------------


def stand_in(name: str, needs_gpu: bool, ran: list[str], fails: bool = False) -> Bench:
    def run(settings: Settings, into: Record) -> None:
        ran.append(name)
        if fails:
            raise RuntimeError("no figures today")
        into.put(**record(name, {"times": {}, "errors": {}})["figures"])

    trace = command.BENCHES["trace"]
    return Bench(name, "a figure", needs_gpu, run, trace.tables, trace.draw)


@pytest.mark.parametrize("gpu", [False, True])
def test_what_cannot_run_is_left_out_in_one_line(gpu: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: gpu)
    monkeypatch.setattr(harness, "machine", lambda: {**record("x", {})["machine"], "device": "cpu"})
    ran: list[str] = []
    on = console()
    benches = [stand_in("fast", True, ran), stand_in("here", False, ran), stand_in("big", True, ran)]
    assert command.run_all(benches, Settings(), tmp_path, "", on) == 0
    assert ran == (["fast", "here", "big"] if gpu else ["here"])
    assert ("left out, since there is no GPU: fast, big" in written(on)) is not gpu
    assert (tmp_path / "here.cpu.json").exists()


def test_a_figure_that_fails_is_noted_and_the_others_run(tmp_path: Path) -> None:
    ran: list[str] = []
    on = console()
    benches = [stand_in("broken", False, ran, fails=True), stand_in("here", False, ran)]
    assert command.run_all(benches, Settings(), tmp_path, "", on) == 1
    assert ran == ["broken", "here"]
    assert "broken failed: RuntimeError: no figures today" in written(on)
    (path,) = tmp_path.glob("broken.*.json")
    assert json.loads(path.read_text())["figures"] == {"error": "RuntimeError: no figures today"}


def test_what_was_measured_is_shown_again(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for name, make in RECORDS.items():
        (tmp_path / f"{name}.gpu.json").write_text(json.dumps(make()))
    assert command.main(["--show", "launch", "trace", "--results", str(tmp_path)]) == 0
    printed = capsys.readouterr().out
    assert "a warm launch" in printed
    assert "cuBLAS" not in printed
    assert sorted(path.name for path in tmp_path.glob("*.png")) == ["launch.gpu.png", "trace.gpu.png"]


def test_the_list_names_every_figure(capsys: pytest.CaptureFixture[str]) -> None:
    assert command.main(["--list"]) == 0
    listed = [line.split()[0] for line in capsys.readouterr().out.splitlines()]
    assert listed == list(command.BENCHES) and {"gemm", "launch", "trace"} <= set(listed)


def test_the_arguments_are_read() -> None:
    line = "gemm --sizes 8192x8192x8192,64x32x16 --dtype float16 --regimes sustained --contestants cuBLAS,reference"
    settings = command.settings_of(command.parser().parse_args(line.split()))
    assert settings.cases == (Case(Size(8192, 8192, 8192), "float16"), Case(Size(64, 32, 16), "float16"))
    assert (settings.regimes, settings.contestants) == (("sustained",), ("cuBLAS", "reference"))
    default = command.settings_of(command.parser().parse_args(["--dtype", "float16"]))
    assert [str(case) for case in default.cases] == ["8192x8192x8192 float16", "4096x4096x4096 float16"]


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("nothing", f"figure: expected some of {', '.join(command.BENCHES)}, but got 'nothing'"),
        ("gemm --sizes 8192", "sizes: expected MxNxK, e.g. 4096x6144x4096, but got '8192'"),
        ("gemm --dtype fp8", "dtype: expected some of bfloat16, float16, but got 'fp8'"),
        ("gemm --regimes burst", "regimes: expected some of sustained, alternating, but got 'burst'"),
        ("gemm --contestants me", "but got 'me'"),
    ],
)
def test_wrong_arguments_are_refused(line: str, said: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        command.main(line.split())
    assert said in capsys.readouterr().err
