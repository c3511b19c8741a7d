"""Foreign text is read as text, whatever it holds."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from kit.report.escape import clean, code, fence, label, paragraphs, prose, text
from tests.report.hostile import HOSTILE

MARKDOWN = MarkdownIt("commonmark").enable(["table", "strikethrough"])
anything = st.text() | st.sampled_from(HOSTILE) | st.text(alphabet="`|\\*_[]()<>#~-+=1. a&;:!$\n")


def inline(markdown: str) -> list[str]:
    """Kinds of the inline tokens of a one-paragraph document; other blocks show as themselves."""
    tokens = MARKDOWN.parse(markdown)
    kinds = [token.type for token in tokens if token.type not in ("paragraph_open", "inline", "paragraph_close")]
    return kinds + [child.type for token in tokens for child in token.children or ()]


def read(markdown: str) -> str:
    """What a reader sees of a one-paragraph document."""
    return "".join(child.content for token in MARKDOWN.parse(markdown) for child in token.children or ())


def row(cell: str) -> list[str]:
    """What a reader sees in the cells of a table's only row."""
    tokens = MARKDOWN.parse(f"| a | b |\n|---|---|\n| {cell} | end |\n")
    return [token.content for token in tokens if token.type == "inline"][2:]


@given(anything)
def test_text_is_one_run_of_plain_text_that_reads_as_it_was_given(foreign: str) -> None:
    shown = text(foreign)
    assert set(inline(shown)) <= {"text", "text_special"}
    assert read(shown) == clean(foreign)


@given(anything)
def test_a_paragraph_that_starts_with_text_stays_a_paragraph(foreign: str) -> None:
    blocks = [token.type for token in MARKDOWN.parse(f"before\n\n{text(foreign)} after")]
    assert blocks == ["paragraph_open", "inline", "paragraph_close"] * 2


@given(anything, st.sampled_from([text, code, prose]))
def test_no_text_adds_a_cell_or_ends_a_table(foreign: str, escape: object) -> None:
    assert callable(escape)
    cells = row(escape(foreign))
    assert len(cells) == 2
    assert cells[1] == "end"


@given(anything)
def test_a_code_span_shows_exactly_what_was_given(foreign: str) -> None:
    assert set(inline(code(foreign))) <= {"text", "text_special", "code_inline"}
    assert read(code(foreign)) == clean(foreign)


@given(anything)
def test_prose_may_hold_code_and_nothing_else(words: str) -> None:
    assert set(inline(prose(words))) <= {"text", "text_special", "code_inline"}


@given(st.lists(anything))
def test_a_fence_holds_every_line_and_nothing_can_close_it(lines: list[str]) -> None:
    tokens = MARKDOWN.parse(f"{fence(lines)}\n\nafter")
    assert [token.type for token in tokens] == ["fence", "paragraph_open", "inline", "paragraph_close"]
    assert tokens[0].content == "".join(f"{clean(line, longest=10**9)}\n" for line in lines)


@given(anything)
def test_a_label_cannot_end_its_link_or_become_another(foreign: str) -> None:
    assert inline(f"[{label(foreign)}](target.md)").count("link_open") == 1
    (link,) = [t for t in MARKDOWN.parse(f"[{label(foreign)}](target.md)") if t.type == "inline"]
    assert link.children is not None
    assert link.children[0].attrGet("href") == "target.md"
    assert set(inline(f"![{label(foreign)}](target.svg)")) == {"image"}


@given(anything)
def test_paragraphs_are_paragraphs(foreign: str) -> None:
    kinds = [token.type for token in MARKDOWN.parse(paragraphs(foreign))]
    assert kinds == ["paragraph_open", "inline", "paragraph_close"] * (len(kinds) // 3)


@given(anything)
def test_clean_text_has_no_control_and_is_one_line(foreign: str) -> None:
    shown = clean(foreign)
    assert "\x1b" not in shown
    assert shown.splitlines() in ([], [shown])
    shown.encode("utf-8")


@pytest.mark.parametrize(
    ("foreign", "shown"),
    [
        ("\x1b[1;31mred\x1b[0m", "red"),
        ("\x1b]0;title\x07prompt", "prompt"),
        ("two\nlines\ttab", "two lines tab"),
        ("a\u202eb", "ab"),
        ("x" * 700, "x" * 599 + "…"),
    ],
)
def test_terminal_and_layout_control_is_gone(foreign: str, shown: str) -> None:
    assert clean(foreign) == shown


@pytest.mark.parametrize("harmless", ["eagle3_k3", "1.27 [1.19, 1.36]", "0.1.0", "-5 %", "a (b) c", "K = 3; 2 + 2"])
def test_harmless_text_is_left_readable(harmless: str) -> None:
    assert text(harmless) == harmless


def test_prose_keeps_the_commands_that_the_kit_names() -> None:
    assert prose("run `speckit show RUN` on *it*") == "run `speckit show RUN` on \\*it\\*"
