"""The report as one HTML file: self-contained, escaped, and drawn by a browser as it is meant."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Mapping
from dataclasses import replace
from functools import cache
from html.parser import HTMLParser
from pathlib import Path

import matplotlib.image
import numpy as np
import pytest

from kit.report import Extras, Picture, pictures, render
from kit.report.escape import label
from kit.report.html import verdict_html
from kit.verdict import Verdict
from tests.report.hostile import HOSTILE, everywhere
from tests.report.samples import VERDICT
from tests.report.test_page import NAMES

_ALLOWED = {"a", "code", "details", "div", "em", "h1", "h2", "h3", "hr", "li", "main", "nav", "ol", "p", "pre", "span"}
_ALLOWED |= {"strong", "summary", "table", "tbody", "td", "th", "thead", "tr", "ul", "body", "br"}
_HEAD = {"html", "head", "meta", "title", "style"}
_DRAWING = {"clippath", "defs", "g", "path", "rect", "svg", "use", "title"}


class _Tags(HTMLParser):
    """Every tag with its attributes, and the text outside the style sheet."""

    def __init__(self, document: str) -> None:
        super().__init__()
        self.found: list[tuple[str, dict[str, str | None]]] = []
        self.feed(document)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, dict(attrs)))


@cache
def drawn() -> dict[str, Picture]:
    return pictures(VERDICT)


def page(verdict: Verdict, figures: Mapping[str, Picture], *, notes: str | None = None) -> str:
    links = {name: f"![{label(picture.alt)}](figures/{name}.svg)" for name, picture in figures.items()}
    markdown = render(verdict, extras=Extras(figures=links, notes=notes))
    return verdict_html(markdown, title=verdict.title, figures=figures)


@pytest.fixture(scope="module")
def document() -> str:
    return page(VERDICT, drawn())


def test_nothing_is_loaded_from_elsewhere(document: str) -> None:
    addresses = [
        value or ""
        for _, attributes in _Tags(document).found
        for name, value in attributes.items()
        if name in ("href", "src", "xlink:href", "action", "srcset", "poster")
    ]
    assert addresses
    assert all(address.startswith("#") for address in addresses)
    assert "default-src 'none'" in document
    assert "@import" not in document
    assert not re.search(r"url\((?!#)", document)


def test_every_figure_is_inline_with_its_words(document: str) -> None:
    inline = [attributes for tag, attributes in _Tags(document).found if tag == "svg"]
    assert {one["role"] for one in inline} == {"img"}
    assert {one["aria-label"] for one in inline} == {picture.alt for picture in drawn().values()}


def test_ids_are_unique_and_every_reference_has_one(document: str) -> None:
    tags = _Tags(document).found
    ids = [attributes["id"] for _, attributes in tags if "id" in attributes]
    assert len(ids) == len(set(ids))
    used = re.findall(r'href="#([^"]+)"|url\(#([^)]+)\)', document)
    assert {one or other for one, other in used} <= set(ids)


def test_sections_are_listed_and_linked(document: str) -> None:
    assert '<nav><a href="#verdict">Verdict</a>' in document
    assert '<h2 id="what-was-not-measured-and-why">' in document


def test_hostile_text_brings_no_tag_and_no_attribute() -> None:
    figures = {name: replace(picture, svg="<svg ></svg>") for name, picture in drawn().items()}
    for hostile in HOSTILE:
        said = everywhere(figures, lambda words: f"{words}{hostile}", keep=frozenset({"svg"}))  # noqa: B023
        verdict = everywhere(VERDICT, lambda _: f"x{hostile}", keep=NAMES)  # noqa: B023
        document = page(verdict, said, notes=hostile)
        tags = _Tags(document).found
        assert {tag for tag, _ in tags} <= _ALLOWED | _HEAD | _DRAWING
        assert not [name for _, attributes in tags for name in attributes if name.startswith("on")]


def test_both_schemes_name_the_same_colours(document: str) -> None:
    light, dark, printed = re.findall(r":root \{(.*?)\}", document, re.DOTALL)
    names = [set(re.findall(r"--(\w+):", scheme)) for scheme in (light, dark, printed)]
    assert names[0] == names[1] == names[2]
    assert set(re.findall(r"var\(--(\w+)\)", document)) <= names[0]


def _screenshot(folder: Path, body: str, *, dark: bool) -> np.ndarray:
    (folder / "page.html").write_text(body, encoding="utf-8")
    scheme = ["--blink-settings=preferredColorScheme=0"] if dark else []
    command = ["chromium", "--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", *scheme]
    target = folder / "page.png"
    subprocess.run(
        [*command, "--window-size=900,700", f"--screenshot={target}", f"file://{folder}/page.html"],
        check=True,
        capture_output=True,
        timeout=120,
    )
    return matplotlib.image.imread(target)[..., :3]


@pytest.mark.browser
@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
def test_a_browser_draws_every_figure_in_the_colours_of_the_scheme(document: str, tmp_path: Path, dark: bool) -> None:
    figures = re.findall(r'<span class="figure">.*?</svg>\s*</span>', document, re.DOTALL)
    assert len(figures) == len(drawn())
    head = document[: document.index("<main>")]
    for figure in figures:
        seen = _screenshot(tmp_path, f"{head}<main>{figure}</main></body></html>", dark=dark)
        paper = seen[-1, -1]
        assert bool(paper.mean() < 0.2) is dark
        ink = np.abs(seen - paper).max(axis=2) > 0.25
        assert 0.004 < ink.mean() < 0.6  # neither empty nor a broken fill over everything
        rows, columns = ink.any(axis=1).sum(), ink.any(axis=0).sum()
        assert rows > 150
        assert columns > 500
        assert len(np.unique((seen[ink] * 8).round(), axis=0)) > 3  # lines of several arms, not text alone


@pytest.mark.browser
def test_a_browser_opens_the_whole_page(document: str, tmp_path: Path) -> None:
    seen = _screenshot(tmp_path, document, dark=False)
    assert seen.shape == (700, 900, 3)
    assert (np.abs(seen - seen[-1, -1]).max(axis=2) > 0.25).mean() > 0.01
