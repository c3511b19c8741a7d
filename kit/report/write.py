"""Files: a report folder, the text that is attached to a decision, and the index of all reports.

Nothing is ever half-written: a folder is filled under another name and renamed. Nothing is overwritten either: if the
same run renders to something else, a new report appears that names the one it supersedes.
"""

from __future__ import annotations

import hashlib
import re
import shutil
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date
from itertools import count
from pathlib import Path
from tempfile import TemporaryDirectory

from kit.errors import RunFileError
from kit.report.dump import verdict_json
from kit.report.escape import label
from kit.report.figures import Picture, pictures
from kit.report.html import verdict_html
from kit.report.index import write_index
from kit.report.page import Extras, render
from kit.verdict import Verdict

__all__ = ["ReportPaths", "folder_digest", "report_name", "write_report"]

_UNSAFE = re.compile(r"[^a-z0-9._-]+")


@dataclass(frozen=True, slots=True)
class ReportPaths:
    """Where a report lies: `page` stands alone, `folder` holds the same with figures and JSON.

    `digest` is the folder's SHA-256, which the last line of `page` names.
    """

    page: Path
    folder: Path
    index: Path
    digest: str


@dataclass(frozen=True, slots=True)
class _Draft:
    """What is told in Markdown and in HTML."""

    verdict: Verdict
    figures: Mapping[str, Picture]


def write_report(
    verdict: Verdict,
    *,
    out: Path,
    notes: str | None = None,
    command: str | None = None,
    attachments: Sequence[Path] = (),
) -> ReportPaths:
    """Write the report on `verdict` below `out`, and the index anew; the same run gives the same bytes.

    `notes` are the spec's, `command` repeats the run, `attachments` are files copied into the folder. RunFileError when
    the verdict has no date.
    """
    out.mkdir(parents=True, exist_ok=True)
    extras = Extras(notes=notes, command=command)
    with TemporaryDirectory(dir=out, prefix=".unfinished-") as scratch:
        draft = Path(scratch) / "report"
        shown = _fill(draft, verdict, attachments)
        linked = replace(extras, figures={name: _link(name, picture) for name, picture in shown.items()})
        folder, extras = _publish(draft, _Draft(verdict, shown), out, linked)
        digest = folder_digest(folder)
        text = render(verdict, extras=replace(extras, figures={}, files=_hashes(folder)))
        page = _place(Path(scratch) / "page", text + _signature(folder.name, digest), out / f"{folder.name}.md")
    return ReportPaths(page, folder, write_index(out), digest)


def report_name(verdict: Verdict) -> str:
    """`<date>-<spec>-<run>` in lower case, safe as a file name. RunFileError when the run has no date."""
    ran = verdict.what_ran
    try:
        day = date.fromisoformat(ran.created_utc[:10])
    except ValueError as error:
        raise RunFileError(f"the run says it was created at {ran.created_utc!r}, which is no date: {error}") from error
    return f"{day.isoformat()}-{_slug(ran.spec_name)}-{_slug(ran.run_id)}"


def folder_digest(folder: Path) -> str:
    """SHA-256 over `<sha256>  <relative name>` lines in order of name: what `sha256sum` prints, hashed again."""
    lines = (f"{digest}  {name}\n" for name, digest in _hashes(folder).items())
    return hashlib.sha256("".join(lines).encode()).hexdigest()


def _fill(draft: Path, verdict: Verdict, attachments: Sequence[Path]) -> Mapping[str, Picture]:
    """Write everything but the text into `draft`; the figures by name."""
    shown = pictures(verdict)
    (draft / "figures").mkdir(parents=True)
    for name, picture in shown.items():
        _write(draft / "figures" / f"{name}.svg", picture.svg)
        (draft / "figures" / f"{name}.png").write_bytes(picture.png)
    _write(draft / "verdict.json", verdict_json(verdict))
    for attachment in attachments:
        shutil.copyfile(attachment, draft / attachment.name)
    return shown


def _link(name: str, picture: Picture) -> str:
    return f"![{label(picture.alt)}](figures/{name}.svg)"


def _publish(draft: Path, content: _Draft, out: Path, extras: Extras) -> tuple[Path, Extras]:
    """Move `draft` to the first free name, or find it already there; what its text says besides the verdict."""
    files = _hashes(draft)
    verdict = content.verdict
    names = _names(report_name(verdict))
    while True:
        name, supersedes = next(names)
        said = replace(extras, files=files, supersedes=supersedes)
        text = render(verdict, extras=said)
        _write(draft / "verdict.md", text)
        _write(draft / "verdict.html", verdict_html(text, title=verdict.title, figures=content.figures))
        target = out / name
        if not target.exists():
            draft.rename(target)
            return target, said
        if folder_digest(target) == folder_digest(draft):
            return target, said


def _names(stem: str) -> Iterator[tuple[str, str | None]]:
    """The stem, then numbered names, each with the one before it."""
    yield stem, None
    previous = stem
    for number in count(2):
        name = f"{stem}-{number}"
        yield name, previous
        previous = name


def _hashes(folder: Path) -> dict[str, str]:
    """SHA-256 of every file below `folder` by relative name, in order of name."""
    files = sorted((path.relative_to(folder).as_posix(), path) for path in folder.rglob("*") if path.is_file())
    return {name: hashlib.sha256(path.read_bytes()).hexdigest() for name, path in files}


def _signature(name: str, digest: str) -> str:
    return f"\nThe folder `{name}` that belongs to this text has SHA-256 `{digest}`.\n"


def _place(scratch: Path, text: str, target: Path) -> Path:
    """Write `text` under another name first, so that `target` is whole at every moment."""
    _write(scratch, text)
    return scratch.replace(target)


def _write(path: Path, text: str) -> None:
    path.write_text(text, encoding="utf-8", newline="\n")


def _slug(name: str) -> str:
    return _UNSAFE.sub("-", name.lower()).strip("-.")[:80] or "unnamed"
