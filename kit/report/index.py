"""reports/README.md: every report of a folder, newest first, made anew from what lies there."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kit.report.escape import label, prose, text
from kit.report.page import templates, tidy
from kit.report.table import table

__all__ = ["index_text", "write_index"]

_OWN_NAME = re.compile(r"[a-z0-9][a-z0-9._-]*")  # what the writer of reports gives; needs no escaping in a link


@dataclass(frozen=True, slots=True)
class _Listed:
    name: str
    created: str
    flags: str
    title: str
    answer: str

    def said(self) -> tuple[str, str]:
        return self.flags, self.answer


def write_index(out: Path) -> Path:
    """Write `out`/README.md, whole at every moment; the same reports give the same bytes."""
    target = out / "README.md"
    scratch = out / ".README.md.unfinished"
    scratch.write_text(index_text(out), encoding="utf-8", newline="\n")
    return scratch.replace(target)


def index_text(out: Path) -> str:
    """The index of the report folders below `out`, as Markdown."""
    listed = sorted(_reports(out), key=lambda report: (report.created, report.name), reverse=True)
    rows = [
        (report.created[:10], f"[{report.title}]({report.name}.md)", f"[files]({report.name}/)", *report.said())
        for report in listed
    ]
    header = ("Date", "Report", "Folder", "Flags", "Answer")
    shown = table(header, rows, align="lllll") if rows else ""
    return tidy(templates().get_template("index.md.j2").render(table=shown))


def _reports(out: Path) -> Iterator[_Listed]:
    for source in out.glob("*/verdict.json"):
        if _OWN_NAME.fullmatch(source.parent.name):
            yield _listed(source.parent.name, _object(source))


def _object(source: Path) -> Mapping[str, Any]:
    """The verdict as it was written, empty when it cannot be read: one broken report must not hide the others."""
    try:
        found = json.loads(source.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}


def _listed(name: str, verdict: Mapping[str, Any]) -> _Listed:
    ran = verdict.get("what_ran") or {}
    return _Listed(
        name=name,
        created=text(str(ran.get("created_utc", name[:10]))),
        flags=text(", ".join(map(str, verdict.get("headings") or ())) or "none"),
        title=label(str(verdict.get("title") or name)),
        answer=prose(str(verdict.get("answer") or "verdict.json cannot be read")),
    )
