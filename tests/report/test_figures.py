"""Figures are the same bytes for the same verdict, and say in words what they show."""

from __future__ import annotations

from xml.etree import ElementTree

import matplotlib as mpl
import pytest

from kit.analysis import ArmSummary
from kit.report import Picture, pictures
from kit.report.figures import FIGURES
from kit.report.figures.style import looks
from tests.report.hostile import HOSTILE, everywhere
from tests.report.samples import ARMS, VERDICT
from tests.report.test_page import empty

FOR_A_PICTURE = [text for text in HOSTILE if "script" in text or "\x1b" in text or "\ud800" in text]


@pytest.fixture(scope="module")
def drawn() -> dict[str, Picture]:
    return pictures(VERDICT)


def test_there_is_a_figure_for_each_question(drawn: dict[str, Picture]) -> None:
    assert list(drawn) == list(FIGURES)


def test_a_verdict_without_numbers_has_no_figure() -> None:
    assert pictures(empty(VERDICT)) == {}


def test_the_same_verdict_gives_the_same_bytes_whatever_the_users_own_style(drawn: dict[str, Picture]) -> None:
    with mpl.rc_context({"axes.grid": False, "font.size": 30, "lines.linewidth": 9}):
        assert pictures(VERDICT) == drawn


def test_drawing_leaves_the_users_own_style_alone() -> None:
    before = dict(mpl.rcParams)
    pictures(VERDICT)
    assert dict(mpl.rcParams) == before


def test_a_figure_carries_no_date(drawn: dict[str, Picture]) -> None:
    assert all("dc:date" not in picture.svg for picture in drawn.values())


def test_the_words_name_every_arm_and_every_point(drawn: dict[str, Picture]) -> None:
    assert drawn["ratio"].alt == (
        "Throughput of each arm divided by its baseline's, over requests at once. "
        "eagle3_k3: 1.27 at 1, 1.10 at 8, 0.72 at 32; adaptive: 1.22 at 1, 1.05 at 8, 0.77 at 32."
    )


def test_figures_with_hostile_names_are_figures() -> None:
    names = {arm.name: f"x{hostile}" for arm, hostile in zip(ARMS, FOR_A_PICTURE, strict=True)}
    for picture in pictures(everywhere(VERDICT, lambda said: names.get(said, said))).values():
        root = ElementTree.fromstring(picture.svg.encode())
        assert not [element for element in root.iter() if element.tag.endswith(("script", "}a"))]


def test_arms_differ_in_colour_marker_and_line_and_baselines_are_black() -> None:
    many = (*ARMS, *(ArmSummary(f"k{k}", "eagle3", k, 1, "baseline", 3) for k in (1, 5, 7)))
    found = looks(many)
    assert found["baseline"].colour == "#000000"
    assert len({(look.colour, look.marker) for look in found.values()}) == len(many)
    assert len({look.marker for look in found.values()}) == len(many)
