"""Random programs with fixed seeds: Python, the simulator and the GPU agree; nvcc has nothing against their text."""

from __future__ import annotations

import pytest
import torch

from warpjit.isa.target import Target

from .mutate import mutant, trouble
from .numbers import Invalid, cast
from .programs import program
from .shrink import shrunk
from .texts import complaints, emitted
from .trial import Case, Failure, attempt, build, compare, expected, judge

SIZE = 4
GROUP = 10


def cases(first, count, folder):
    return [Case(program(seed, SIZE), folder, f"seed_{seed}") for seed in range(first, first + count)]


@pytest.mark.parametrize("first", range(0, 60, GROUP))
def test_python_and_the_simulator_agree(first, tmp_path):
    agreed = 0
    for case in cases(first, GROUP, tmp_path):
        try:
            failure = judge(case)
        except Invalid:
            continue
        assert failure is None, f"{case.text}\n{failure.text}"
        agreed += 1
    assert agreed >= GROUP - 2


@pytest.mark.gpu
def test_python_and_the_gpu_agree(tmp_path):
    made = cases(0, 200, tmp_path)
    build(made)
    agreed = 0
    for case in made:
        try:
            failure = judge(case, "cuda")
        except Invalid:
            continue
        assert failure is None, f"{case.text}\n{failure.text}"
        agreed += 1
    assert agreed >= 190


@pytest.mark.nvcc
def test_nvcc_has_nothing_against_the_text(tmp_path):
    target = Target.parse("sm_90a")
    texts = [emitted(case, target) for case in cases(100, 8, tmp_path)]
    assert list(complaints(texts, target)) == []


def test_wrong_programs_meet_errors_of_the_family(tmp_path):
    for seed in range(30):
        text = mutant(program(seed, 3), seed)
        failure = trouble(text, tmp_path, f"mutant_{seed}")
        assert failure is None, f"{text}\n{failure.text}"


# ---- the fuzzer itself ---------------------------------------------------------------------------------

WRONG = """\
from warpjit import T, warpjit

GRID, BLOCK = 1, 32
SCALARS = {"n": ("int32", "3")}
INPUTS = {"x_int32": ("int32", "1 2 3 4")}
COUNTS = {}
RESULTS = {"o_int32": ("int32", 4)}


@warpjit(contract=False)
def kernel(n: T.int32, x_int32, o_int32):
    T.device_entry(launch=T.cuda.LaunchConfig(grid=GRID, block=BLOCK))
    lane = T.cuda.lane_id()
    v1 = x_int32[n] * 5 + lane
    for i2 in range(n):
        v1 = v1 - (3 * i2)
    if lane > 3:
        v1 += 7
    o_int32[lane, 0] = v1 - 2
"""


def test_a_seed_makes_one_program():
    assert program(7) == program(7) != program(8)


def test_a_difference_is_seen_and_made_small(tmp_path):
    """Python is told that 3 * i2 is 4 * i2: what is left of the program is a product with 3."""

    def difference(text):
        case = Case(text.replace("4 *", "3 *"), tmp_path)
        wanted, rows = expected(Case(text.replace("3 *", "4 *"), tmp_path, "other"))
        found = attempt(case, "cpu")
        return "" if isinstance(found, Failure) else compare(wanted, found, rows)

    assert "3 elements of o_int32 differ, the first at (0, 0): expected 6 but got 9" in difference(WRONG)

    def fails(text):
        try:
            return difference(text) != ""
        except Exception:
            return False

    small = shrunk(WRONG, fails, 120)
    assert "3 *" in small
    assert len(small.splitlines()) < len(WRONG.splitlines()) - 3


def test_the_oracle_refuses_what_is_not_defined(tmp_path):
    for broken in ("x_int32[n + 1]", "x_int32[n] // (n - 3)", "lane << (n - 4)"):
        with pytest.raises(Invalid):
            judge(Case(WRONG.replace("x_int32[n]", broken), tmp_path))


def test_what_warpjit_refuses_is_a_failure(tmp_path):
    caught = WRONG.replace("        v1 += 7", "        try:\n            v1 += 7\n        finally:\n            pass")
    failure = judge(Case(caught, tmp_path))
    assert failure is not None
    assert failure.kind.startswith("TraceError")


def test_literals_must_fit():
    assert cast(255, "uint8").value == 255
    with pytest.raises(Invalid):
        cast(256, "uint8")


def test_all_nans_are_one():
    nan = torch.tensor([float("nan"), 0.0])
    assert compare({"x": nan}, {"x": -nan}) != ""
    assert compare({"x": nan}, {"x": torch.tensor([-float("nan"), 0.0])}) == ""
