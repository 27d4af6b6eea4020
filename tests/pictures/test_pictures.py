"""Pictures: each box says where its elements are, the colours differ, and the forms are what they claim to be."""

from __future__ import annotations

import re
from itertools import combinations, pairwise, product
from xml.etree import ElementTree

import pytest
from picture_cases import FRAGMENT, HALVES, LOAD, PICTURES

import warpjit
from warpjit import isa
from warpjit.layout import S, TileLayout, laneid, mma_shared_layout
from warpjit.layout.picture import default_shape
from warpjit.layout.picture_parts import SHADES

SVG = "{http://www.w3.org/2000/svg}"


@pytest.mark.parametrize("kind", PICTURES)
def test_boxes_fill_their_panels(kind):
    for panel in PICTURES[kind]().panels:
        covered = [(box.row, box.column + part) for box in panel.boxes for part in range(box.width)]
        assert sorted(covered) == list(product(range(panel.rows), range(panel.columns)))


@pytest.mark.parametrize("operand", ["A", "B", "D"])
def test_labels_of_a_fragment_are_the_calculators(operand):
    (panel,) = isa.lookup(HALVES).draw(operand).panels
    for box in panel.boxes:
        places = [isa.where(HALVES, operand, box.row, box.column + part) for part in range(box.width)]
        assert {(f"T{place.lane}", f"R{place.register}") for place in places} == {box.lines}
        assert box.short == f"{places[0].lane}:{places[0].register}"
        assert sum(high - low + 1 for low, high in (place.bits for place in places)) == 32


def test_labels_of_addresses_are_the_calculators():
    for matrix, panel in enumerate(isa.lookup(LOAD).draw("src").panels):
        assert panel.title == f"matrix {matrix}"
        assert [box.lines for box in panel.boxes] == [
            (f"T{isa.giver(LOAD, 'src', matrix, row).lane}",) for row in range(8)
        ]


def test_labels_of_shared_memory_are_its_banks():
    layout = mma_shared_layout("float16", 128, (64, 64))
    (panel,) = layout.draw((64, 64)).panels
    assert len(panel.boxes) == 64 * 32
    for box in panel.boxes:
        byte = 2 * layout.apply(box.row, box.column, shape=(64, 64))["m"]
        assert box.lines == (f"B{byte // 4 % 32}", f"+{byte}")
        assert box.shade == byte // 4 % 32
    # The eight rows of a column of 16-byte units lie in different banks: that is what the swizzle is for.
    first = {box.row: box.shade for box in panel.boxes if box.column == 0 and box.row < 8}
    assert sorted(first.values()) == list(range(0, 32, 4))


def test_colours_follow_the_argument():
    row = isa.lookup(HALVES)
    by_lane, by_register = (row.draw("D", color=color).panels[0].boxes for color in ("lane", "register"))
    assert len({box.shade for box in by_lane}) == 32
    assert len({box.shade for box in by_register}) == 4
    for boxes, line in ((by_lane, 0), (by_register, 1)):
        assert len({(box.lines[line], box.shade) for box in boxes}) == len({box.shade for box in boxes})


def test_the_text_shows_every_place_once():
    text = str(isa.lookup(HALVES).draw("A"))
    assert sorted(re.findall(r"T\d+ R\d", text)) == sorted(f"T{lane} R{r}" for lane in range(32) for r in range(4))
    lines = text.splitlines()
    assert lines[0] == HALVES
    assert lines[4].split() == [str(column) for column in range(0, 16, 2)]
    assert lines[5 + 5].split()[:3] == ["5", "T20", "R0"]


@pytest.mark.parametrize("kind", PICTURES)
@pytest.mark.parametrize("width", [80, 200])
def test_the_text_keeps_to_its_width(kind, width):
    picture = PICTURES[kind]()
    shown = [line for line in picture.text(width).splitlines() if line not in (picture.title, *picture.caption)]
    assert max(map(len, shown)) <= width
    plain = re.sub(r"\x1b\[[0-9;]*m", "", picture.text(width, color=True))
    assert [line.rstrip() for line in plain.splitlines()] == picture.text(width).splitlines()


def test_the_coloured_text_has_the_boxes_colours():
    red, green, blue = (int(SHADES[20][at : at + 2], 16) for at in (1, 3, 5))
    text = isa.lookup(HALVES).draw("A").text(color=True)
    assert re.search(rf"\x1b\[48;2;{red};{green};{blue}m\x1b\[30m *T20 R0\x1b\[0m", text)


@pytest.mark.parametrize("kind", PICTURES)
def test_the_svg_is_a_document_of_its_own(kind):
    picture = PICTURES[kind]()
    text = picture.svg()
    root = ElementTree.fromstring(text)
    assert root.tag == f"{SVG}svg"
    boxes = [group for group in root.iter(f"{SVG}g") if group.find(f"{SVG}rect") is not None]
    expected = [box for panel in picture.panels for box in panel.boxes]
    assert [tuple(line.text for line in group.findall(f"{SVG}text")) for group in boxes] == [b.lines for b in expected]
    assert [group.find(f"{SVG}title").text for group in boxes] == [box.tip for box in expected]
    assert [group.find(f"{SVG}rect").get("fill") for group in boxes] == [SHADES[box.shade] for box in expected]
    assert not re.search(r"<style|<script|href|url\(|@import", text)


def test_a_box_says_all_about_it():
    first, *_ = isa.lookup(HALVES).draw("A").panels[0].boxes
    assert first.tip == "m 0, k 0 to 1: lane 0, register 0"


def test_a_picture_is_saved_as_svg_or_text(tmp_path):
    picture = isa.lookup(HALVES).draw("A")
    picture.save(tmp_path / "a.svg")
    picture.save(str(tmp_path / "a.txt"))
    assert (tmp_path / "a.svg").read_text(encoding="utf-8") == picture.svg() == picture._repr_svg_()
    assert (tmp_path / "a.txt").read_text(encoding="utf-8") == picture.text()


def test_notebooks_show_layouts_and_instructions():
    for shown in (FRAGMENT._repr_html_(), isa.lookup(HALVES)._repr_html_(), isa.lookup(LOAD)._repr_html_()):
        assert shown.startswith("<code>")
    assert FRAGMENT._repr_html_().count("<svg") == 1
    assert isa.lookup(HALVES)._repr_html_().count("<svg") == 3  # C lies as D does
    assert "<svg" not in isa.lookup("cp.async.commit_group")._repr_html_()
    assert "<svg" not in TileLayout(S[128, 64])._repr_html_()


@pytest.mark.parametrize(
    ("layout", "shape"),
    [
        (TileLayout(S[(2, 8, 4, 2) : (2, 4 @ laneid, 1 @ laneid, 1)]), (16, 8)),
        (TileLayout(S[(8, 4) : (4 @ laneid, 1 @ laneid)]), (8, 4)),
        (TileLayout(S[1024]), (32, 32)),
        (TileLayout(S[20]), (20, 1)),
        (TileLayout(S[()]), (1, 1)),
    ],
)
def test_without_a_shape_the_picture_is_nearly_square(layout, shape):
    assert default_shape(layout) in (shape, shape[::-1])


# ---- colours ---------------------------------------------------------------------------------------------------


def linear(color: str) -> list[float]:
    values = [int(color[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    return [v / 12.92 if v <= 0.04045 else ((v + 0.055) / 1.055) ** 2.4 for v in values]


def lab(color: str) -> tuple[float, float, float]:
    """OKLab: distances are as the eye sees them."""
    r, g, b = linear(color)
    cones = (
        0.4122214708 * r + 0.5363325363 * g + 0.0514459929 * b,
        0.2119034982 * r + 0.6806995451 * g + 0.1073969566 * b,
        0.0883024619 * r + 0.2817188376 * g + 0.6299787005 * b,
    )
    long, middle, short = (value ** (1 / 3) for value in cones)
    return (
        0.2104542553 * long + 0.7936177850 * middle - 0.0040720468 * short,
        1.9779984951 * long - 2.4285922050 * middle + 0.4505937099 * short,
        0.0259040371 * long + 0.7827717662 * middle - 0.8086757660 * short,
    )


def test_colours_can_be_told_apart_and_bear_black_text():
    assert len(set(SHADES)) == 32
    for one, two in combinations(SHADES, 2):
        assert sum((a - b) ** 2 for a, b in zip(lab(one), lab(two), strict=True)) ** 0.5 > 0.03
    for color in SHADES:
        r, g, b = linear(color)
        assert (0.2126 * r + 0.7152 * g + 0.0722 * b + 0.05) / 0.05 > 6


def test_the_tints_of_a_hue_differ_in_grey():
    for hue in range(0, 32, 4):
        lightness = [lab(color)[0] for color in SHADES[hue : hue + 4]]
        assert all(first - second > 0.07 for first, second in pairwise(lightness))


# ---- refusals ----------------------------------------------------------------------------------------------------

REFUSED = {
    "shape": (lambda: FRAGMENT.draw((64, 32)), "shape: expected one of 4096 elements but got (64, 32), which has 2048"),
    "colour": (lambda: FRAGMENT.draw(color="bank"), "expected color 'lane' or 'register' but got 'bank'"),
    "bank": (lambda: TileLayout(S[8, 8]).draw(color="lane"), "expected color 'bank' but got 'lane'"),
    "type": (
        lambda: FRAGMENT.draw(dtype="float17x"),
        "dtype: expected a type, its name or a number of bits but got 'float17x'",
    ),
    "size": (lambda: TileLayout(S[256, 256]).draw(), "expected at most 16384 elements but got shape (256, 256)"),
    "operand": (lambda: isa.lookup(HALVES).draw("E"), "has no operand 'E'"),
    "scalar": (lambda: isa.lookup("cp.async.wait_group").draw("n"), "of kind immediate: there is nothing to draw"),
    "operand's colour": (
        lambda: isa.lookup(HALVES).draw("A", color="red"),
        "operand A: draw: expected color 'lane' or",
    ),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_cannot_be_drawn_is_refused_with_a_sentence(case):
    draw, sentence = REFUSED[case]
    with pytest.raises(warpjit.WarpjitError, match=re.escape(sentence)):
        draw()
