"""Commands about runs: run, report, list, show."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator, Sequence
from pathlib import Path

import click

from kit.analysis import FailedAnswer, failed_answers
from kit.cli.options import json_option, print_json, selected, selection_options, spec_argument
from kit.console import progress
from kit.errors import SpecError
from kit.pipeline import Sitting, newest_run, preview, published, results_folder, run_files, run_spec
from kit.records import Launch, RunFacts
from kit.report import madr, summary, verdict_json, with_headings_from
from kit.runtime import become_owner, require_writable
from kit.store import read_run

__all__ = ["list_runs", "report", "run", "show"]


def _reports() -> Path:
    """Where verdicts go unless a user says otherwise."""
    return Path(os.environ.get("SPECKIT_REPORTS", "reports"))


@click.command()
@spec_argument
@selection_options
@click.option("--out", type=click.Path(path_type=Path), help="Run file to write; results/<run id>.duckdb by default.")
@click.option("--reports", type=click.Path(path_type=Path), default=_reports, help="Folder of the verdict.")
@click.option(
    "--fault",
    "faults",
    multiple=True,
    metavar="[ARM:]NAME[=VALUE]",
    help="Let a stand-in get something wrong; the verdict says so. `python -m kit.standin --help` lists the names.",
)
@click.option("--launches", type=click.IntRange(min=1), help="At most so many launches now; the rest with --resume.")
@click.option("--resume", is_flag=True, help="Go on with the run in --out; an interrupted launch is begun again.")
@click.option("--no-progress", is_flag=True, help="No progress bar.")
@json_option
def run(  # noqa: PLR0913
    spec: Path,
    arms: tuple[str, ...] | None,
    levels: tuple[int, ...] | None,
    blocks: int | None,
    out: Path | None,
    reports: Path,
    faults: tuple[str, ...],
    launches: int | None,
    resume: bool,
    no_progress: bool,
    as_json: bool,
) -> None:
    """Measure SPEC into a run file, then render its verdict.

    \b
    speckit run specs/quickstart.yaml
    """
    if resume and out is None:
        raise SpecError("--resume: which run? name its file with --out")
    sitting = Sitting(out, selected(arms, levels, blocks), resume=resume, launches=launches, faults=faults)
    _end_politely()
    # Before measuring: an hour later is too late to find out.
    _require_places(reports, (out or results_folder() / "x").parent)
    with progress(wanted=not no_progress) as watcher:
        path = run_spec(spec, sitting=sitting, watcher=watcher)
    _publish(path, reports, as_json)


def _end_politely() -> None:
    """Let whatever asks the process to end do what Ctrl-C does, also in the background, where shells ignore Ctrl-C.

    A hang-up that somebody chose to survive (nohup) stays ignored.
    """
    for asked in (signal.SIGINT, signal.SIGTERM):
        signal.signal(asked, signal.default_int_handler)
    if signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN:
        signal.signal(signal.SIGHUP, signal.default_int_handler)


def _require_places(*folders: Path) -> None:
    become_owner(results_folder())
    require_writable(folders)


@click.command()
@click.argument("run_file", required=False, type=click.Path(path_type=Path))
@click.option("--out", type=click.Path(path_type=Path), default=_reports, help="Folder of the verdict.")
@click.option(
    "--format",
    "form",
    type=click.Choice(["summary", "markdown", "madr"]),
    help="What to print: a few lines (the default), the whole text, or the draft of a decision record (MADR 4.0.0).",
)
@click.option(
    "--heading-level",
    type=click.IntRange(1, 5),
    help="Print the text with its first heading at this level, to paste it below another; implies --format markdown.",
)
@json_option
def report(run_file: Path | None, out: Path, form: str | None, heading_level: int | None, as_json: bool) -> None:
    """Judge RUN_FILE (default: the newest in results/) and render its verdict. Needs no server and no GPU.

    RUN_FILE may be the folder of a report: its Parquet files give the same report again.
    In an image, where no run is there yet, the image's own spec is measured first.

    \b
    speckit report results/20261129-120000-abcdef.duckdb
    speckit report results/20261129-120000-abcdef.duckdb --format madr > docs/decisions/0007-eagle3.md
    """
    _require_places(out)
    default = os.environ.get("SPECKIT_DEFAULT_SPEC")
    if run_file is None and default and not run_files():
        run_file = _measured_default(Path(default))
    path = run_file or newest_run()
    if as_json or (form in (None, "summary") and heading_level is None):
        _publish(path, out, as_json)
        return
    verdict, paths = published(path, out=out)
    document = madr(verdict, paths) if form == "madr" else paths.page.read_text(encoding="utf-8")
    click.echo(with_headings_from(heading_level or 1, document), nl=False)


def _measured_default(spec: Path) -> Path:
    """A run of the image's default spec, announced on the first line."""
    title = preview(spec).spec.title
    _end_politely()
    with progress() as watcher:
        watcher.say(f"{results_folder()} holds no run: measuring the image's default spec ({title})")
        return run_spec(spec, sitting=Sitting(), watcher=watcher)


def _publish(path: Path, out: Path, as_json: bool) -> None:
    verdict, paths = published(path, out=out)
    if as_json:
        click.echo(verdict_json(verdict), nl=False)
    else:
        click.echo(summary(verdict))
        click.echo(f"\nverdict   {paths.page}\nevidence  {paths.folder}\nfacts     {path}")


@click.command("list")
@click.argument("folder", type=click.Path(path_type=Path), default=results_folder)
@json_option
def list_runs(folder: Path, as_json: bool) -> None:
    """List the run files in FOLDER (default: results/), newest first.

    \b
    speckit list
    """
    rows = [
        {
            "file": str(path),
            "run": header.run_id,
            "spec": header.spec_name,
            "origin": header.origin.value,
            "created": header.created_utc,
            "spec_hash": header.spec_hash,
        }
        for path, header in run_files(folder)
    ]
    if as_json:
        print_json({"schema_version": 1, "runs": rows})
    elif not rows:
        click.echo(f"{folder} holds no run file", err=True)
    for row in rows if not as_json else ():
        click.echo(f"{row['created']}  {row['origin']:<9}  {row['spec']:<24}  {row['file']}")


@click.command()
@click.argument("run_file", type=click.Path(path_type=Path))
@click.option("--log", "logged", type=click.IntRange(min=0), help="Print the server log of this launch instead.")
@click.option("--failed", is_flag=True, help="List the failed requests instead, each with what the server's log says.")
@json_option
def show(run_file: Path, logged: int | None, failed: bool, as_json: bool) -> None:
    """Show what RUN_FILE holds: its launches and how each ended.

    \b
    speckit show results/20261129-120000-abcdef.duckdb --log 0
    """
    facts = read_run(run_file)
    if logged is not None:
        click.echo(_log(facts, logged), nl=False)
    elif failed:
        _show_failed(failed_answers(facts), as_json)
    elif as_json:
        print_json(_contents(facts))
    else:
        click.echo("\n".join(_lines(facts)))


def _log(facts: RunFacts, number: int) -> str:
    for launch in facts.launches:
        if launch.launch == number:
            return launch.log
    raise SpecError(f"--log {number}: the run has launches 0 to {len(facts.launches) - 1}")


def _show_failed(answers: Sequence[FailedAnswer], as_json: bool) -> None:
    rows = [
        {
            "launch": one.launch,
            "phase": one.phase.value,
            "rid": one.request.rid,
            "outcome": one.request.outcome.value,
            "status": one.request.status,
            "error": one.request.error,
            "why": one.why.title if one.why else None,
            "line": one.why.line if one.why else None,
        }
        for one in answers
    ]
    if as_json:
        print_json({"schema_version": 1, "failed": rows})
        return
    if not rows:
        click.echo("no request failed", err=True)
    for row in rows:
        why = f"; {row['why']} (line {row['line']} of the log)" if row["why"] else ""
        click.echo(f"{row['launch']:>4}  {row['rid']:<20} {row['outcome']:<13} {row['error']}{why}")


def _contents(facts: RunFacts) -> dict[str, object]:
    return {
        "schema_version": 1,
        "run": facts.header.run_id,
        "spec": facts.header.spec_name,
        "origin": facts.header.origin.value,
        "requests": len(facts.requests),
        "rounds": len(facts.trace.rounds),
        "launches": [
            {
                "launch": launch.launch,
                "block": launch.block,
                "arm": launch.arm,
                "role": launch.role.value,
                "status": launch.status.value,
                "startup_s": launch.startup_s,
                "failure": launch.failure,
                "concurrency": _levels(facts, launch),
            }
            for launch in facts.launches
        ],
    }


def _lines(facts: RunFacts) -> Iterator[str]:
    header = facts.header
    yield f"{header.run_id}  {header.spec_name}  {header.origin.value}  {header.created_utc}"
    yield f"{len(facts.requests):,} requests, {len(facts.trace.rounds):,} traced rounds"
    for launch in facts.launches:
        levels = ", ".join(map(str, _levels(facts, launch))) or "none"
        yield f"{launch.launch:>4}  {launch.arm:<20} {launch.role:<9} {launch.status:<11} concurrency {levels}"
        if launch.failure:
            yield f"      {launch.failure}"


def _levels(facts: RunFacts, launch: Launch) -> list[int]:
    return [cell.concurrency for cell in facts.cells if cell.launch == launch.launch]
