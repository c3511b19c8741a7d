"""Commands about what comes from outside: captures, server logs, SGLang's own source, models."""

from __future__ import annotations

from dataclasses import asdict
from importlib.util import find_spec
from pathlib import Path

import click

from kit import contract
from kit.cli.options import json_option, print_json
from kit.diagnosis import Cause, diagnose
from kit.errors import ImportFileError, PrerequisiteError
from kit.models import fetch
from kit.pipeline import import_run
from kit.spec.model import Engine
from kit.store import read_header

__all__ = ["diagnose_log", "extract_contract", "fetch_model", "import_capture_files"]


@click.command("import")
@click.argument("source", type=click.Path(path_type=Path))
@click.option("--out", type=click.Path(path_type=Path), required=True, help="Run file to write.")
@json_option
def import_capture_files(source: Path, out: Path, as_json: bool) -> None:
    """Read a recorded capture in SOURCE into a run file that `speckit report` renders like any other.

    \b
    speckit import captures/h200 --out results/h200.duckdb
    """
    path = import_run(source, out=out)
    if as_json:
        header = read_header(path)
        print_json({"schema_version": 1, "file": str(path), "run": header.run_id, "spec": header.spec_name})
    else:
        click.echo(path)


@click.command("diagnose")
@click.argument("log", type=click.Path(path_type=Path))
@click.option("--exit-code", type=int, help="How the server ended, for instance -9.")
@click.option("--sglang", "version", default=Engine.model_fields["sglang"].default, help="Version that wrote the log.")
@json_option
def diagnose_log(log: Path, exit_code: int | None, version: str, as_json: bool) -> None:
    """Find the root cause in a server LOG: not its last line, the first thing that went wrong.

    \b
    speckit diagnose server.log --exit-code -9
    """
    known = contract.load(version)
    try:
        text = log.read_text(encoding="utf-8", errors="replace")
    except OSError as error:
        raise ImportFileError(f"{log}: cannot be read ({error.strerror}); name a server log") from None
    if "\0" in text or not text.strip():
        raise ImportFileError(f"{log}: empty, or not text; name the file that the server's output and errors went to")
    found = diagnose(text, exit_code=exit_code, names=known)
    if as_json:
        print_json(asdict(found))
        return
    click.echo(found.title)
    if found.line is not None:
        click.echo(f"line {found.line}: {found.evidence}")
    if found.cause is Cause.UNKNOWN:
        click.echo("\n".join(f"  | {line}" for line in found.excerpt))
    click.echo(found.advice)


@click.command("extract")
@click.option(
    "--sglang",
    "source",
    type=click.Path(path_type=Path),
    required=True,
    help="Wheel, package folder, or `installed` for this Python's own.",
)
@click.option("--out", type=click.Path(path_type=Path), help="File to write; stdout by default.")
def extract_contract(source: Path, out: Path | None) -> None:
    """Read an SGLang version's request fields, flags and endpoints from its own source.

    \b
    speckit contract extract --sglang sglang-0.5.23.whl --out kit/contract/sglang-0.5.23.json
    """
    text = contract.dump(contract.extract(_installed() if str(source) == "installed" else source))
    if out is None:
        click.echo(text, nl=False)
    else:
        out.write_text(text, encoding="utf-8")


def _installed() -> Path:
    """The folder of this Python's SGLang, found without importing it."""
    found = find_spec("sglang")
    if found is None or not found.submodule_search_locations:
        raise PrerequisiteError("--sglang installed: this Python has no SGLang; give a wheel or the package's folder")
    return Path(found.submodule_search_locations[0])


@click.command("fetch")
@click.argument("name")
def fetch_model(name: str) -> None:
    """Fetch and convert a model of the kit into the user's cache.

    \b
    speckit models fetch smollm2-135m
    """
    click.echo(fetch(name, say=lambda message: click.echo(message, err=True)))
