"""A report's own folder is enough to write the same report again."""

from __future__ import annotations

from pathlib import Path

import pytest

from kit.pipeline import published
from kit.store import read_run, write_facts
from kit.verdict import judge
from tests.captures import CPU, H200, facts_of


@pytest.mark.parametrize("capture", [H200, CPU])
def test_the_parquet_of_a_report_gives_the_same_report(capture: str, tmp_path: Path) -> None:
    run_file = tmp_path / "run.duckdb"
    write_facts(run_file, facts_of(capture))
    _, first = published(run_file, out=tmp_path / "first")
    _, second = published(first.folder, out=tmp_path / "second")
    assert second.page.read_bytes() == first.page.read_bytes()
    names = sorted(path.relative_to(first.folder) for path in first.folder.rglob("*") if path.is_file())
    assert all((second.folder / name).read_bytes() == (first.folder / name).read_bytes() for name in names)
    assert {"requests.parquet", "rounds.parquet", "verdict.json", "verdict.md"} <= {str(name) for name in names}


def test_a_report_again_beside_itself_changes_nothing(tmp_path: Path) -> None:
    write_facts(tmp_path / "run.duckdb", facts_of(CPU))
    _, first = published(tmp_path / "run.duckdb", out=tmp_path)
    _, again = published(first.folder, out=tmp_path)
    assert again == first


def test_no_word_is_judged_by_a_place_of_the_host(tmp_path: Path) -> None:
    write_facts(tmp_path / "run.duckdb", facts_of(H200))
    verdict, paths = published(tmp_path / "run.duckdb", out=tmp_path)
    assert verdict.answer == judge(facts_of(H200)).answer
    shared = read_run(paths.folder)
    said = "".join(f"{one.command}{one.server_info}{one.log}" for one in shared.launches)
    assert not any(place in said for place in ("/home/", "/root/", "/tmp/", "/opt/", "/usr/"))
