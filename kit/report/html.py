"""The report as one HTML file that needs nothing else: figures inline, light and dark, fit to print.

It is made from the Markdown, whose foreign text is escaped already. What reaches the page as HTML is still only what
this module writes itself, the folds that templates hold, and the figures; a policy in the page forbids everything else.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from html import escape
from importlib import resources
from typing import Any

from markdown_it import MarkdownIt
from markdown_it.renderer import RendererHTML
from markdown_it.token import Token

from kit.report.escape import clean
from kit.report.figures.picture import Picture

__all__ = ["verdict_html"]

_FOLD = re.compile(r"(?:<details><summary>[^<>]*</summary>|</details>)\s*")
_PROLOG = re.compile(r"^.*?(?=<svg )|<metadata>.*?</metadata>", re.DOTALL)
_SIZE = re.compile(r' (?:width|height)="[^"]*"')
_NAMED = re.compile(r'(\bid="|href="#|url\(#)')
_SOURCE = re.compile(r"figures/([a-z]+)\.svg")
# The house colours of figures, by the names under which the style sheet gives them for light and for dark.
_COLOURS = {
    "#ffffff": "paper",
    "#000000": "ink",
    "#202124": "ink",
    "#5f6368": "grey",
    "#e3e5e8": "grid",
    "#0072b2": "blue",
    "#d55e00": "orange",
    "#009e73": "green",
    "#cc79a7": "pink",
    "#b8860b": "gold",
    "#56b4e9": "sky",
}
_COLOUR = re.compile("|".join(_COLOURS), re.IGNORECASE)

Tokens = Sequence[Token]


def verdict_html(markdown: str, *, title: str, figures: Mapping[str, Picture]) -> str:
    """The document; `figures` replace the pictures of the same name that `markdown` links to."""
    parser = _parser(figures)
    tokens = parser.parse(markdown)
    body = parser.renderer.render(tokens, parser.options, {})
    before, heading, after = body.partition("<h2")
    return _PAGE.format(
        title=escape(clean(title)),
        style=resources.files("kit.report").joinpath("templates", "verdict.css").read_text(encoding="utf-8"),
        body=f"{before}{_contents(tokens)}{heading}{after}",
    )


_PAGE = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">
<meta name="color-scheme" content="light dark">
<title>{title}</title>
<style>
{style}</style>
</head>
<body>
<main>
{body}</main>
</body>
</html>
"""


def _parser(figures: Mapping[str, Picture]) -> MarkdownIt:
    def image(_: RendererHTML, tokens: Tokens, at: int, *rest: Any) -> str:
        name = _SOURCE.fullmatch(str(tokens[at].attrs.get("src", "")))
        return _inline(name[1], figures[name[1]]) if name and name[1] in figures else escape(tokens[at].content)

    parser = MarkdownIt("commonmark", {"html": True}).enable("table")
    parser.add_render_rule("image", image)
    parser.add_render_rule("html_block", _only_folds)
    parser.add_render_rule("html_inline", _only_folds)
    parser.add_render_rule("table_open", lambda *_: '<div class="wide"><table>\n')
    parser.add_render_rule("table_close", lambda *_: "</table></div>\n")
    parser.add_render_rule("heading_open", _heading)
    return parser


def _only_folds(_: RendererHTML, tokens: Tokens, at: int, *rest: Any) -> str:
    content = tokens[at].content
    return content if _FOLD.fullmatch(content) else escape(content)


def _heading(_: RendererHTML, tokens: Tokens, at: int, *rest: Any) -> str:
    tag, anchor = tokens[at].tag, _anchor(tokens[at + 1].content)
    return f'<{tag} id="{anchor}">' if tag == "h2" else f"<{tag}>"


def _anchor(heading: str) -> str:
    return re.sub(r"[^a-z0-9]+", "-", heading.lower()).strip("-")


def _contents(tokens: Tokens) -> str:
    names = [tokens[at + 1].content for at, one in enumerate(tokens) if (one.type, one.tag) == ("heading_open", "h2")]
    links = " · ".join(f'<a href="#{_anchor(name)}">{escape(name)}</a>' for name in names)
    return f"<nav>{links}</nav>\n"


def _inline(name: str, picture: Picture) -> str:
    """The figure inside the page: ids of its own, colours by name, its words for those who cannot see it."""
    svg = _NAMED.sub(rf"\g<1>{name}-", _PROLOG.sub("", picture.svg))
    opening, close, rest = svg.partition(">")
    opening = _SIZE.sub("", opening).replace("<svg ", f'<svg role="img" aria-label="{escape(picture.alt)}" ', 1)
    coloured = _COLOUR.sub(lambda found: f"var(--{_COLOURS[found.group().lower()]})", rest)
    return f'<span class="figure">{opening}{close}{coloured}</span>'
