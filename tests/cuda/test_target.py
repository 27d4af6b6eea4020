"""Targets: the names they take and give, the questions that instruction rows ask, the sizes of each architecture."""

from __future__ import annotations

import pytest

from warpjit.errors import TargetError
from warpjit.isa.target import ARCHITECTURES, Target


@pytest.mark.parametrize(
    ("text", "arch", "suffix"), [("sm_75", 75, ""), ("sm_90a", 90, "a"), ("sm_100f", 100, "f"), ("sm_121a", 121, "a")]
)
def test_a_name_is_parsed_and_given_back(text: str, arch: int, suffix: str) -> None:
    target = Target.parse(text)
    assert (target.arch, target.suffix, target.name) == (arch, suffix, text)
    assert target == Target(arch, suffix)
    assert hash(target) == hash(Target(arch, suffix))


def test_gencode_names_one_real_architecture() -> None:
    assert Target.parse("sm_90a").gencode == "arch=compute_90a,code=sm_90a"
    assert Target.parse("sm_80").ptx_gencode == "arch=compute_80,code=compute_80"


@pytest.mark.parametrize(
    "text", ["", "90a", "sm_90b", "sm_80a", "sm_90f", "sm_70", "sm_99", "sm_90a ", "SM_90", "cuda"]
)
def test_an_unknown_name_is_refused_with_the_form_and_the_list(text: str) -> None:
    with pytest.raises(TargetError) as caught:
        Target.parse(text)
    assert 'of the form "sm_90a"' in str(caught.value)
    assert repr(text) in str(caught.value)
    assert "sm_90|a" in str(caught.value)


@pytest.mark.parametrize(
    ("capability", "name"),
    [((7, 5), "sm_75"), ((8, 9), "sm_89"), ((9, 0), "sm_90a"), ((10, 0), "sm_100a"), ((12, 1), "sm_121a")],
)
def test_a_device_gets_the_fullest_target_of_its_capability(capability: tuple[int, int], name: str) -> None:
    assert Target.of_capability(*capability).name == name


def test_an_unknown_device_is_refused() -> None:
    with pytest.raises(TargetError, match="sm_70"):
        Target.of_capability(7, 0)


def test_specific_means_exactly_that_architecture() -> None:
    assert Target.parse("sm_90a").specific(90)
    assert not Target.parse("sm_90").specific(90)
    assert not Target.parse("sm_100a").specific(90)
    assert not Target.parse("sm_100f").specific(100)


def test_family_features_reach_later_members_of_the_family_only() -> None:
    assert Target.parse("sm_103a").in_family(100)
    assert Target.parse("sm_103f").in_family(100)
    assert not Target.parse("sm_100f").in_family(103)
    assert not Target.parse("sm_103").in_family(100)
    assert not Target.parse("sm_120a").in_family(100)
    assert not Target.parse("sm_90a").in_family(90)


def test_at_least_compares_numbers() -> None:
    target = Target.parse("sm_100a")
    assert target.at_least(90)
    assert not target.at_least(103)


@pytest.mark.parametrize(
    ("arch", "kib"),
    [(75, 64), (80, 163), (86, 99), (87, 163), (89, 99), (90, 227), (100, 227), (103, 227), (110, 227), (120, 99)],
)
def test_shared_memory_of_a_block(arch: int, kib: int) -> None:
    assert Target(arch).max_shared == kib * 1024


def test_the_system_keeps_one_kibibyte_from_8_0_on() -> None:
    assert Target(75).reserved_shared == 0
    assert {Target(arch).reserved_shared for arch in ARCHITECTURES if arch >= 80} == {1024}


def test_every_row_holds_whole_blocks() -> None:
    for arch, row in ARCHITECTURES.items():
        assert row.arch == arch
        assert row.threads_per_sm % 512 == 0
        assert row.blocks_per_sm in (16, 24, 32)
        assert Target(arch).has_clusters == (arch >= 90)
