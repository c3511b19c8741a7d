"""A report appears whole, once, with the same bytes for the same run."""

from __future__ import annotations

import hashlib
import json
from dataclasses import replace
from pathlib import Path

import pytest

from kit.errors import RunFileError
from kit.report import ReportPaths, folder_digest, write_report
from kit.report.figures import FIGURES
from tests.report.samples import VERDICT, WHAT_RAN
from tests.report.test_page import empty

NAME = "2026-11-29-quickstart-20261129-120000-0a1b2c"


BARE = replace(empty(VERDICT), what_ran=WHAT_RAN)  # no figures, which take most of the time


def contents(folder: Path) -> dict[str, bytes]:
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> ReportPaths:
    return write_report(VERDICT, out=tmp_path_factory.mktemp("reports"))


def test_a_report_is_a_text_beside_a_folder_and_an_index(written: ReportPaths) -> None:
    assert sorted(contents(written.page.parent)) == [
        f"{NAME}.md",
        *(f"{NAME}/figures/{name}.{form}" for name in sorted(FIGURES) for form in ("png", "svg")),
        f"{NAME}/verdict.html",
        f"{NAME}/verdict.json",
        f"{NAME}/verdict.md",
        "README.md",
    ]


def test_the_last_line_of_the_text_names_the_hash_that_sha256sum_gives_for_the_folder(written: ReportPaths) -> None:
    found = sorted(contents(written.folder).items())
    lines = [f"{hashlib.sha256(data).hexdigest()}  {name}\n" for name, data in found]
    digest = hashlib.sha256("".join(lines).encode()).hexdigest()
    assert folder_digest(written.folder) == written.digest == digest
    assert digest in written.page.read_text().splitlines()[-1]


def test_the_text_stands_alone_and_the_one_in_the_folder_shows_every_figure(written: ReportPaths) -> None:
    assert "![" not in written.page.read_text()
    shown = (written.folder / "verdict.md").read_text()
    for figure in (written.folder / "figures").glob("*.svg"):
        assert f"](figures/{figure.name})" in shown


def test_the_json_in_the_folder_says_what_the_text_says(written: ReportPaths) -> None:
    assert json.loads((written.folder / "verdict.json").read_text())["answer"] == VERDICT.answer


def test_the_same_run_gives_the_same_bytes_anywhere_and_again(written: ReportPaths, tmp_path: Path) -> None:
    first = write_report(VERDICT, out=tmp_path)
    assert contents(tmp_path) == contents(written.page.parent)
    assert write_report(VERDICT, out=tmp_path) == first
    assert contents(tmp_path) == contents(written.page.parent)


def test_another_verdict_on_the_same_run_supersedes_the_first_and_leaves_it_alone(tmp_path: Path) -> None:
    first = write_report(BARE, out=tmp_path)
    before = contents(first.folder)
    second = write_report(replace(BARE, answer="Corrected."), out=tmp_path)
    assert second.folder.name == f"{NAME}-2"
    assert f"supersedes `{NAME}`" in second.page.read_text()
    assert contents(first.folder) == before
    assert write_report(replace(BARE, answer="Corrected."), out=tmp_path) == second


def test_a_run_whose_names_are_paths_stays_inside_the_folder(tmp_path: Path) -> None:
    ran = replace(WHAT_RAN, spec_name="../../etc/passwd", run_id="..\n/ ")
    paths = write_report(replace(BARE, what_ran=ran), out=tmp_path / "reports")
    assert paths.folder == tmp_path / "reports" / "2026-11-29-etc-passwd-unnamed"
    assert list(tmp_path.iterdir()) == [tmp_path / "reports"]


def test_a_run_without_a_date_is_refused_and_leaves_nothing(tmp_path: Path) -> None:
    with pytest.raises(RunFileError, match="yesterday"):
        write_report(replace(BARE, what_ran=replace(WHAT_RAN, created_utc="yesterday")), out=tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_attached_files_are_part_of_the_folder_and_its_hash(tmp_path: Path) -> None:
    data = tmp_path / "requests.parquet"
    data.write_bytes(b"PAR1")
    paths = write_report(BARE, out=tmp_path / "reports", attachments=(data,))
    assert (paths.folder / "requests.parquet").read_bytes() == b"PAR1"
    assert hashlib.sha256(b"PAR1").hexdigest() in paths.page.read_text()


def test_the_index_lists_the_newest_first_and_survives_a_broken_report(tmp_path: Path) -> None:
    write_report(BARE, out=tmp_path)
    later = replace(WHAT_RAN, created_utc="2026-12-01T00:00:00+00:00", run_id="later")
    newest = write_report(replace(BARE, what_ran=later, title="The later one"), out=tmp_path)
    (tmp_path / "2020-01-01-broken").mkdir()
    (tmp_path / "2020-01-01-broken" / "verdict.json").write_text("{")
    write_report(BARE, out=tmp_path)
    rows = [line for line in newest.index.read_text().splitlines() if line.startswith("| 20")]
    assert ["later" in rows[0], NAME in rows[1], "cannot be read" in rows[2]] == [True, True, True]
