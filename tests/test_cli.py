"""The command line: data on stdout, one line of error on stderr, the exit code that says what happened."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import click
import pytest
from click.testing import CliRunner, Result

from kit.cli import main
from kit.pipeline import import_run
from kit.spec import schema_text
from kit.store import write_facts
from tests.compare.runs import pair

ROOT = Path(__file__).parents[1]
QUICKSTART = str(ROOT / "specs" / "quickstart.yaml")
CAPTURE = Path(__file__).parent / "data" / "captures" / "cpu-smollm2-eagle3"


def speckit(*arguments: str) -> Result:
    return CliRunner().invoke(main, arguments)


@pytest.fixture(scope="module")
def run_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return import_run(CAPTURE, out=tmp_path_factory.mktemp("runs") / "capture.duckdb")


def commands(group: click.Group = main, prefix: tuple[str, ...] = ()) -> list[tuple[str, ...]]:
    names: list[tuple[str, ...]] = []
    for name, command in group.commands.items():
        path = (*prefix, name)
        names += commands(command, path) if isinstance(command, click.Group) else [path]
    return names


@pytest.mark.parametrize("command", commands(), ids=" ".join)
def test_every_command_explains_itself_with_an_example(command: tuple[str, ...]) -> None:
    result = speckit(*command, "--help")
    assert result.exit_code == 0
    assert f"speckit {' '.join(command)}" in result.stdout.replace("Usage: main", "")


def test_check_says_ok_and_what_it_checked() -> None:
    result = speckit("check", QUICKSTART)
    assert (result.exit_code, result.stderr) == (0, "")
    assert ": ok: 6 arms" in result.stdout


@pytest.mark.parametrize(
    ("old", "new", "field"),
    [("world: crossover", "world: mars", "engine.world"), ("  seed: 1\n", "  seed: -1\n", "design.seed")],
)
def test_check_finds_what_only_a_run_would_meet(tmp_path: Path, old: str, new: str, field: str) -> None:
    text = Path(QUICKSTART).read_text()
    assert old in text
    (tmp_path / "x.yaml").write_text(text.replace(old, new).replace("workloads/general.jsonl", "general.jsonl"))
    (tmp_path / "general.jsonl").write_text((ROOT / "specs" / "workloads" / "general.jsonl").read_text())
    result = speckit("check", str(tmp_path / "x.yaml"))
    assert (result.exit_code, field in result.stderr) == (2, True)


def test_check_as_json_is_one_object_with_the_hashes() -> None:
    facts = json.loads(speckit("check", QUICKSTART, "--json").stdout)
    assert (facts["schema_version"], facts["spec"], len(facts["spec_hash"])) == (1, "quickstart", 64)


def test_plan_prints_order_command_lines_and_time() -> None:
    text = speckit("plan", QUICKSTART).stdout
    assert "--speculative-num-steps 7" in text
    assert "estimated" in text
    assert text.count("baseline") >= 4


def test_a_selection_is_called_partial() -> None:
    text = speckit("plan", QUICKSTART, "--arms", "baseline,k3", "--levels", "1,8", "--blocks", "1").stdout
    assert text.count("PARTIAL: ") == 3


def test_plan_tells_how_many_blocks_a_difference_needs() -> None:
    text = speckit("plan", QUICKSTART, "--blocks", "2").stdout
    assert "this plan has 2)" in text
    quiet, busy, wild = json.loads(speckit("plan", QUICKSTART, "--json").stdout)["blocks_needed"]
    assert [row["launch_sd"] for row in (quiet, busy, wild)] == [0.01, 0.03, 0.1]
    assert quiet["blocks"]["1.5"] == 3
    assert quiet["blocks"]["1.05"] < busy["blocks"]["1.05"] < wild["blocks"]["1.05"]


def test_plan_as_json_holds_every_launch() -> None:
    plan = json.loads(speckit("plan", QUICKSTART, "--json", "--blocks", "1", "--arms", "baseline,k3").stdout)
    assert {launch["arm"] for launch in plan["launches"]} == {"baseline", "k3"}
    assert plan["estimated_minutes"] > 0


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (("check", "specs/none.yaml"), 2, "cannot be read"),
        (("plan", QUICKSTART, "--arms", "nobody"), 2, "--arms nobody"),
        (("plan", QUICKSTART, "--levels", "one"), 2, "comma-separated list of whole numbers"),
        (("plan", QUICKSTART, "--blocks", "0"), 2, "--blocks"),
        (("report", "none.duckdb"), 1, "no such run file"),
        (("show", "none.duckdb"), 1, "no such run file"),
        (("import", "no-folder", "--out", "x.duckdb"), 1, "no-folder"),
        (("diagnose", "no.log"), 1, "cannot be read"),
        (("contract", "extract", "--sglang", "nothing.whl"), 1, "nothing.whl"),
        (("contract", "extract", "--sglang", "installed"), 4, "this Python has no SGLang"),
    ],
)
def test_errors_are_one_line_with_their_code(arguments: tuple[str, ...], code: int, message: str) -> None:
    result = speckit(*arguments)
    assert (result.exit_code, result.stdout) == (code, "")
    assert message in result.stderr
    assert "Traceback" not in result.stderr
    assert not Path("x.duckdb").exists()


def test_a_runtime_that_is_missing_ends_with_4_and_names_alternatives(tmp_path: Path) -> None:
    out = tmp_path / "run.duckdb"
    result = speckit("run", str(ROOT / "specs" / "a6000_triton.yaml"), "--out", str(out))
    assert result.exit_code == 4
    assert "specs/quickstart.yaml" in result.stderr
    assert not out.exists()


def test_a_run_file_is_listed_and_shown(run_file: Path) -> None:
    listed = json.loads(speckit("list", str(run_file.parent), "--json").stdout)["runs"]
    assert [row["file"] for row in listed] == [str(run_file)]
    assert str(run_file) in speckit("list", str(run_file.parent)).stdout
    shown = json.loads(speckit("show", str(run_file), "--json").stdout)
    assert (shown["requests"], len(shown["launches"])) == (144, 3)
    assert "144 requests" in speckit("show", str(run_file)).stdout


def test_the_log_of_a_launch_can_be_read(run_file: Path) -> None:
    assert "server_args" in speckit("show", str(run_file), "--log", "0").stdout
    assert speckit("show", str(run_file), "--log", "99").exit_code == 2


def test_an_empty_folder_has_no_newest_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    result = speckit("report")
    assert (result.exit_code, "speckit run" in result.stderr) == (1, True)


def test_a_report_prints_its_summary_and_where_it_lies(run_file: Path, tmp_path: Path) -> None:
    result = speckit("report", str(run_file), "--out", str(tmp_path))
    assert result.exit_code == 0
    assert result.stdout.startswith("IMPORTED")
    page = next(line.split()[1] for line in result.stdout.splitlines() if line.startswith("verdict"))
    assert Path(page).read_text().startswith("**IMPORTED**")


def test_a_folder_that_cannot_be_written_is_one_line(run_file: Path, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    for command in (("report", str(run_file), "--out"), ("run", QUICKSTART, "--reports")):
        result = speckit(*command, str(tmp_path / "file" / "reports"))
        assert (result.exit_code, result.stdout) == (1, "")
        assert "check the path" in result.stderr


def test_a_report_as_json_is_one_object(run_file: Path, tmp_path: Path) -> None:
    verdict = json.loads(speckit("report", str(run_file), "--out", str(tmp_path), "--json").stdout)
    assert "schema_version" in verdict


def test_a_run_file_is_never_overwritten_by_an_import(run_file: Path) -> None:
    result = speckit("import", str(CAPTURE), "--out", str(run_file))
    assert (result.exit_code, "exists already" in result.stderr) == (1, True)


def test_a_healthy_log_is_called_healthy(tmp_path: Path) -> None:
    (tmp_path / "server.log").write_text("[2026-01-01 00:00:00] The server is fired up and ready to roll!\n")
    found = json.loads(speckit("diagnose", str(tmp_path / "server.log"), "--json").stdout)
    assert set(found) >= {"cause", "evidence", "line", "advice"}


@pytest.mark.parametrize("content", [b"", b" \n\n", b"\x7fELF\0\1\2\n"])
def test_what_is_no_log_is_refused_instead_of_called_healthy(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "server.log").write_bytes(content)
    result = speckit("diagnose", str(tmp_path / "server.log"))
    assert (result.exit_code, "empty, or not text" in result.stderr) == (1, True)


def test_a_wrong_flag_gets_the_nearest_of_the_version_that_wrote_the_log(tmp_path: Path) -> None:
    (tmp_path / "server.log").write_text("launch_server.py: error: unrecognized arguments: --speculative-nmu-steps 3\n")
    assert "did you mean --speculative-num-steps?" in speckit("diagnose", str(tmp_path / "server.log")).stdout


def test_the_end_of_a_log_that_explains_nothing_is_shown(tmp_path: Path) -> None:
    (tmp_path / "server.log").write_text("something else went on\nand then it stopped\n")
    assert "  | and then it stopped" in speckit("diagnose", str(tmp_path / "server.log"), "--exit-code", "1").stdout


def test_generated_files_are_written_and_checked(tmp_path: Path) -> None:
    assert speckit("schema", "--check", "--out", str(tmp_path)).exit_code == 2
    assert speckit("schema", "--out", str(tmp_path)).exit_code == 0
    assert (tmp_path / "specs" / "schema" / "spec.v1.schema.json").read_text() == schema_text()
    assert speckit("schema", "--check", "--out", str(tmp_path)).exit_code == 0


def test_the_committed_generated_files_are_fresh() -> None:
    assert speckit("schema", "--check", "--out", str(ROOT)).exit_code == 0


def test_a_report_can_be_printed_as_a_record_or_for_pasting(run_file: Path, tmp_path: Path) -> None:
    record = speckit("report", str(run_file), "--out", str(tmp_path), "--format", "madr").stdout
    assert record.startswith('---\nstatus: "proposed"\n')
    pasted = speckit("report", str(run_file), "--out", str(tmp_path), "--heading-level", "3").stdout
    (page,) = tmp_path.glob("20*.md")
    assert pasted.replace("#", "") == page.read_text().replace("#", "")
    assert "\n#### Verdict\n" in pasted
    assert page.name in record


def test_an_import_says_as_json_what_it_made(tmp_path: Path) -> None:
    made = json.loads(speckit("import", str(CAPTURE), "--out", str(tmp_path / "x.duckdb"), "--json").stdout)
    assert (made["file"], made["run"][:8]) == (str(tmp_path / "x.duckdb"), "imported")


def test_a_refused_comparison_names_every_field_on_a_line(tmp_path: Path) -> None:
    first, second = (tmp_path / f"{name}.duckdb" for name in ("triton", "flashinfer"))
    for path, facts in zip((first, second), pair(), strict=True):
        write_facts(path, facts)
    assert speckit("compare", str(first), str(second), "--factor", "backend").exit_code == 0
    refused = speckit("compare", str(first), str(second), "--factor", "day")
    assert (refused.exit_code, refused.stdout) == (2, "")
    assert refused.stderr == (
        "Error: the runs differ in more than --factor day allows:\n"
        '  spec.server.attention_backend: "triton" | "flashinfer"\n'
    )


@pytest.mark.slow
def test_two_stand_in_runs_are_compared_and_two_unlike_ones_are_refused(tmp_path: Path, run_file: Path) -> None:
    files = [_measured(tmp_path, backend) for backend in ("triton", "flashinfer")]
    result = speckit("compare", *map(str, files), "--factor", "backend", "--out", str(tmp_path / "comparison.md"))
    assert (result.exit_code, result.stderr) == (0, "")
    assert "# flashinfer against triton" in result.stdout
    assert (tmp_path / "comparison.md").read_text() == result.stdout
    tree = json.loads(speckit("compare", *map(str, files), "--factor", "backend", "--json").stdout)
    assert {row["batch_size"] for row in tree["depth_times"]} == {8}

    refused = speckit("compare", str(files[0]), str(run_file), "--factor", "backend")
    assert (refused.exit_code, refused.stdout) == (2, "")
    assert refused.stderr.startswith("Error: the runs differ in more than --factor backend allows:\n  origin: ")
    assert '\n  spec.engine.world: "crossover" | null\n' in refused.stderr


def _measured(folder: Path, backend: str) -> Path:
    """A small run of the quickstart on a stand-in that was told that backend."""
    text = Path(QUICKSTART).read_text().replace("attention_backend: triton", f"attention_backend: {backend}")
    spec, out = folder / f"{backend}.yaml", folder / f"{backend}.duckdb"
    (folder / "workloads").mkdir(exist_ok=True)
    shutil.copy(ROOT / "specs" / "workloads" / "general.jsonl", folder / "workloads")
    spec.write_text(text)
    part = ("--arms", "baseline,k3", "--levels", "8", "--blocks", "1")
    done = speckit("run", str(spec), *part, "--out", str(out), "--reports", str(folder / "reports"), "--no-progress")
    assert done.exit_code == 0, done.stderr
    return out
