"""The memory of trials: copies that keep every view's place, and the caller's bytes as they were."""

from __future__ import annotations

import pytest
import torch

from warpjit.tuner.memory import ALIGNMENT, POISON, workspace


def test_what_is_only_read_is_the_callers_own() -> None:
    x, out = torch.arange(8.0), torch.zeros(8)
    space = workspace([x, out, 3], [0], [1])
    assert space.arguments[0] is x
    assert space.arguments[2] == 3
    assert space.arguments[1].data_ptr() != out.data_ptr()
    assert (space.written, space.updated) == ((1,), False)


def test_what_is_only_written_is_poisoned() -> None:
    out = torch.zeros(8)
    space = workspace([out], [], [0])
    space.restore()
    assert space.arguments[0].isnan().all()
    assert (space.arguments[0].view(torch.uint8) == POISON).all()
    assert (out == 0).all()


def test_what_is_read_and_written_is_restored() -> None:
    x = torch.arange(8.0)
    space = workspace([x], [0], [0])
    for _ in range(2):
        space.restore()
        assert torch.equal(space.arguments[0], x)
        space.arguments[0].fill_(7)
    assert torch.equal(x, torch.arange(8.0))


@pytest.mark.parametrize(
    "view",
    [
        lambda base: base[1:5, 2:7],
        lambda base: base.t(),
        lambda base: base[::2, ::3],
        lambda base: base[:, 3],
        lambda base: base[1].expand(4, 8),
        lambda base: base.view(-1)[5:],
    ],
    ids=["offset", "turned", "steps", "column", "expanded", "flat"],
)
def test_strides_offsets_and_alignment_are_kept(view) -> None:  # type: ignore[no-untyped-def]
    tensor = view(torch.arange(64.0).view(8, 8))
    space = workspace([tensor], [0], [0])
    space.restore()
    copy = space.arguments[0]
    assert (copy.shape, copy.stride(), copy.dtype) == (tensor.shape, tensor.stride(), tensor.dtype)
    assert copy.data_ptr() % ALIGNMENT == tensor.data_ptr() % ALIGNMENT
    assert torch.equal(copy, tensor)


def test_tensors_that_overlap_share_one_copy() -> None:
    base = torch.arange(16.0)
    first, second, apart = base[:10], base[6:], torch.zeros(4)
    space = workspace([first, second, apart], [0, 2], [1])
    assert len(space.regions) == 1
    space.restore()
    a, b, c = space.arguments
    assert b.data_ptr() - a.data_ptr() == second.data_ptr() - first.data_ptr()
    assert c is apart
    assert torch.equal(a, first) and torch.equal(b, second)  # what is read through one view is written through another
    b[0] = -1
    assert a[6] == -1
    assert base[6] == 6


def test_one_tensor_in_two_places_is_one_copy() -> None:
    x = torch.arange(4.0)
    space = workspace([x, x], [0], [1])
    assert space.arguments[0].data_ptr() == space.arguments[1].data_ptr() != x.data_ptr()
    assert space.updated


def test_parts_of_one_storage_that_do_not_meet_are_apart() -> None:
    base = torch.arange(16.0)
    space = workspace([base[:8], base[8:]], [0], [1])
    assert space.arguments[0].data_ptr() == base.data_ptr()
    assert not space.updated
    assert space.regions[0].clone.numel() == 32


def test_views_of_other_types_are_one_region() -> None:
    base = torch.arange(8, dtype=torch.int32)
    space = workspace([base, base.view(torch.float16)], [0], [1])
    space.restore()
    assert torch.equal(space.arguments[0], base)
    assert space.arguments[1].data_ptr() == space.arguments[0].data_ptr()


def test_empty_tensors_have_no_memory() -> None:
    empty = torch.empty(0, 4)
    space = workspace([empty], [], [0])
    assert (space.arguments, space.regions, space.written) == ((empty,), (), ())


def test_results_are_copies() -> None:
    out = torch.zeros(4)
    space = workspace([out], [], [0])
    space.arguments[0].fill_(1)
    (found,) = space.results()
    space.restore()
    assert (found == 1).all()
