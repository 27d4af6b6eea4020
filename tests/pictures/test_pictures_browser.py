"""Pictures in headless Chromium: boxes have the size they should have, and no text leaves its box or the picture."""

from __future__ import annotations

import json
import re
import subprocess
from pathlib import Path
from typing import Any

import pytest
from browser import find_browser
from picture_cases import FRAGMENT, PICTURES

pytestmark = pytest.mark.browser

MEASURE = """
<script>
function inside(inner, outer, slack) {
  return inner.left >= outer.left - slack && inner.right <= outer.right + slack
      && inner.top >= outer.top - slack && inner.bottom <= outer.bottom + slack;
}
function crossings(rects) {
  let found = 0;
  for (let i = 1; i < rects.length; i++)
    if (rects[i].left < rects[i - 1].right && Math.abs(rects[i].top - rects[i - 1].top) < 1
        && rects[i].left > rects[i - 1].left) found++;
  return found;
}
const rect = node => node.getBoundingClientRect();
const result = [...document.querySelectorAll("svg")].map(svg => {
  const boxes = [...svg.querySelectorAll("g > rect")];
  const texts = [...svg.querySelectorAll("text")];
  return {
    width: rect(svg).width, height: rect(svg).height, boxes: boxes.length,
    narrowest: Math.min(...boxes.map(box => rect(box).width)),
    lowest: Math.min(...boxes.map(box => rect(box).height)),
    overflowing: boxes.flatMap(box => [...box.parentNode.querySelectorAll("text")]
      .filter(text => !inside(rect(text), rect(box), 0.5)).map(text => text.textContent)),
    outside: [...texts, ...boxes].filter(each => !inside(rect(each), rect(svg), 0)).length,
    crossing: crossings(texts.map(rect)),
    font: Math.min(...texts.map(text => parseFloat(getComputedStyle(text).fontSize))),
    colors: new Set(boxes.map(box => getComputedStyle(box).fill)).size,
  };
});
document.body.innerHTML = "<pre id=result></pre>";
document.getElementById("result").textContent = JSON.stringify(result);
</script>
"""


def measured(folder: Path, pictures: list[str]) -> list[dict[str, Any]]:
    """What the browser says about each SVG."""
    page = folder / "page.html"
    body = "\n".join(f"<div>{each}</div>" for each in pictures)
    page.write_text(f"<!doctype html><meta charset=utf-8><body>{body}{MEASURE}</body>", encoding="utf-8")
    done = subprocess.run(
        [
            *(find_browser(), "--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-quic"),
            *("--disable-background-networking", "--disable-component-update", "--disable-sync"),
            *(f"--user-data-dir={folder / 'profile'}", "--dump-dom", page.as_uri()),
        ],
        capture_output=True,
        text=True,
        timeout=120,
        check=True,
    )
    found = re.search(r'<pre id="result">(.*?)</pre>', done.stdout, re.DOTALL)
    assert found is not None, done.stdout[:400]
    answer: list[dict[str, Any]] = json.loads(found[1].replace("&amp;", "&").replace("&lt;", "<").replace("&gt;", ">"))
    return answer


@pytest.fixture(scope="module")
def shown(tmp_path_factory) -> dict[str, dict[str, Any]]:
    """All pictures, measured in one page."""
    folder = tmp_path_factory.mktemp("browser")
    return dict(zip(PICTURES, measured(folder, [draw().svg() for draw in PICTURES.values()]), strict=True))


@pytest.mark.parametrize("kind", PICTURES)
def test_a_picture_is_shown_as_it_was_drawn(kind, shown):
    picture, seen = PICTURES[kind](), shown[kind]
    boxes = [box for panel in picture.panels for box in panel.boxes]
    assert seen["boxes"] == len(boxes)
    assert seen["overflowing"] == []
    assert seen["outside"] == 0
    assert seen["crossing"] == 0
    assert seen["narrowest"] >= 16
    assert seen["lowest"] >= 14
    assert seen["font"] >= 8
    assert seen["colors"] == len({box.shade for box in boxes})
    width, height = re.findall(r'(?:width|height)="(\d+)"', picture.svg())[:2]
    assert (seen["width"], seen["height"]) == (int(width), int(height))


def test_small_pictures_have_larger_labels_than_large_ones(shown):
    assert shown["A by lane"]["font"] >= 10 > shown["fragment 64 x 64"]["font"]
    assert shown["fragment 64 x 64"]["width"] <= 1800
    assert shown["banks 64 x 64"]["width"] <= 1800


def test_the_measure_sees_text_that_is_too_wide(tmp_path):
    picture = FRAGMENT.draw((64, 64)).svg().replace(">R127<", ">R127127<")
    (seen,) = measured(tmp_path, [picture])
    assert set(seen["overflowing"]) == {"R127127"}


def test_a_notebook_shows_the_layouts_picture(tmp_path):
    (seen,) = measured(tmp_path, [FRAGMENT._repr_html_()])
    assert (seen["boxes"], seen["overflowing"], seen["outside"]) == (4096, [], 0)
