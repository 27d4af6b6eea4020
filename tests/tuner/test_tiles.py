"""`tile="tune"` of matmul and attention, with times that are made up."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from tuner_kernels import MadeUp

from warpjit import ArgumentError
from warpjit.kernels import attention as attentions
from warpjit.kernels import flash, gemm
from warpjit.kernels import matmul as matmuls
from warpjit.kernels.device import MULTIPROCESSORS
from warpjit.kernels.products import candidates, default_tile, is_small
from warpjit.kernels.tiles import TunedTiles
from warpjit.tuner import Settings, Trial

SMALL = (gemm.Tile(32, 16, 32, 16, 16, 2), gemm.Tile(16, 16, 32, 16, 16, 2))


class ByRows(MadeUp):
    """The fewer rows, the faster; the tiles are timed by the simulator's own time, which nobody looks at."""

    def times(self, trial: Trial, count: int) -> list[float]:
        self.log.append(trial.config)
        rows = next(int(word.split("=")[1]) for word in trial.config.split(", ") if word.startswith(("m=", "rows=")))
        return [float(rows)] * count


@pytest.fixture
def timer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> MadeUp:
    monkeypatch.setenv("WARPJIT_CACHE_DIR", str(tmp_path))
    return ByRows({})


def test_a_product_with_tuned_tiles(timer: MadeUp, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(matmuls, "TILES", TunedTiles("matmul", gemm.Tile, Settings(timer=timer)))
    monkeypatch.setattr(matmuls, "candidates", lambda first, wide, shared: list(SMALL))
    a, b = torch.randn(24, 32).half(), torch.randn(32, 16).half()
    out = torch.zeros(24, 16).half()
    for _ in range(2):
        assert matmuls.matmul(a, b, out, tile="tune") is out
        assert torch.equal(out, matmuls.matmul(a, b, tile=SMALL[1]))
    assert timer.log.count("begin") == 1
    assert list(matmuls.TILES.known.values()) == [SMALL[1]]
    matmuls.matmul(a, b, epilogue=lambda value, row, column: value + 1.0, tile="tune")
    assert timer.log.count("begin") == 2


def test_attention_with_tuned_tiles(timer: MadeUp, monkeypatch: pytest.MonkeyPatch) -> None:
    tiles = [flash.Tile(32, 16, 2), flash.Tile(16, 16, 1)]
    monkeypatch.setattr(attentions, "TILES", TunedTiles("attention", flash.Tile, Settings(timer=timer)))
    monkeypatch.setattr(attentions, "candidates", lambda first, dim, shared: tiles)
    q, k, v = (torch.randn(1, 1, 16, 16).half() for _ in range(3))
    for _ in range(2):
        assert torch.equal(attentions.attention(q, k, v, tile="tune"), attentions.attention(q, k, v, tile=tiles[1]))
    assert timer.log.count("begin") == 1
    assert list(attentions.TILES.known.values()) == [tiles[1]]


def test_without_a_timer_the_cpu_takes_the_usual_tile() -> None:
    a, b = torch.randn(16, 32).half(), torch.randn(32, 16).half()
    usual = default_tile(16, 16, 1, True, MULTIPROCESSORS, 227 * 1024)
    assert torch.equal(matmuls.matmul(a, b, tile="tune"), matmuls.matmul(a, b))
    assert usual in matmuls.TILES.known.values()


@pytest.mark.parametrize("wide", [True, False])
@pytest.mark.parametrize("shared", [99 << 10, 227 << 10])
def test_the_candidates_are_legal_and_begin_with_the_usual_one(wide: bool, shared: int) -> None:
    first = default_tile(512, 512, 1, wide, MULTIPROCESSORS, shared)
    found = candidates(first, wide, shared)
    assert found[0] == first
    assert len(set(found)) == len(found) >= 12
    assert all(tile.shared_bytes <= shared and (wide or is_small(tile)) for tile in found)


@pytest.mark.parametrize("dim", [16, 64, 128])
def test_the_candidates_of_attention(dim: int) -> None:
    first = attentions.default_tile(dim)
    found = attentions.candidates(first, dim, 227 << 10)
    assert found[0] == first
    assert len(set(found)) == len(found) > 20
    assert all(tile.shared_bytes(dim) <= 227 << 10 for tile in found)


@pytest.mark.parametrize("call", ["matmul", "attention"])
def test_other_words_are_refused(call: str) -> None:
    args: dict[str, Any] = {
        "matmul": (matmuls.matmul, torch.zeros(16, 16).half(), torch.zeros(16, 16).half()),
        "attention": (attentions.attention, *[torch.zeros(1, 1, 16, 16).half()] * 3),
    }
    function, *tensors = args[call]
    with pytest.raises(ArgumentError, match="tile: expected a Tile, \"tune\" or None but got 'best'"):
        function(*tensors, tile="best")
